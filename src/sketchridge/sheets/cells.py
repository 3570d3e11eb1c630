"""What stands in the cells of a table: numbers with a point or a comma, true and false."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from sketchridge.sheets.files import Sheet
from sketchridge.words import shown

__all__ = ["WORDS", "decimal_of", "hyphens", "number_like", "numbers"]

Array = np.ndarray
WORDS = {"true": 1.0, "false": 0.0}
_COMMA = r"^[+-]?\d+,\d+([eE][+-]?\d+)?$"
_POINT = r"^[+-]?\d*\.\d+([eE][+-]?\d+)?$"
_NUMBER = r"^[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?$"


def hyphens(text: pl.Series) -> pl.Series:
    """Text with hyphens in the place of true minus signs."""
    return text.str.replace_all("−", "-", literal=True)


def number_like(text: pl.Series) -> pl.Series:
    """Whether each cell of a column of text is meant to be a number, or true or false."""
    text = hyphens(text)
    words = text.str.to_lowercase().is_in([*WORDS, "inf", "-inf", "nan"])
    return text.str.contains(_NUMBER) | words


def numbers(values: pl.Series, decimal: str = ".", *, words: bool = True) -> Array:
    """As floats, NaN where there is none; with ``words`` true is 1 and false is 0."""
    if values.dtype == pl.String:
        values = hyphens(values)
        if decimal == ",":
            values = values.str.replace(",", ".", literal=True)
        found = values.cast(pl.Float64, strict=False)
        if words:
            meant = values.str.to_lowercase().replace_strict(WORDS, default=None)
            found = found.fill_null(meant.cast(pl.Float64))
        return found.fill_null(np.nan).to_numpy()
    return values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def decimal_of(sheet: Sheet, columns: Iterable[str]) -> str:
    """The mark of decimals in some columns of text; one for all of them, or a ValueError."""
    if sheet.separator == ",":
        return "."
    found: dict[str, tuple[str, str]] = {}
    for mark, pattern in ((",", _COMMA), (".", _POINT)):
        for name in columns:
            text = sheet.frame[name]
            if text.dtype != pl.String:
                continue
            like = text.filter(hyphens(text).str.contains(pattern).fill_null(False))
            if len(like):
                found.setdefault(mark, (name, like[0]))
    if len(found) == 2:
        (a, comma), (b, point) = found[","], found["."]
        raise ValueError(
            f"{sheet.name} has decimal commas ({shown(comma)} in {shown(a)}) and decimal points "
            f"({shown(point)} in {shown(b)}): use one of them throughout."
        )
    return next(iter(found), ".")
