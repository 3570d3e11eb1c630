"""Labels as people write them: with a decimal point or comma, a minus sign of any kind, perhaps
with the unit behind the number; what may be meant in two ways is asked about."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import polars as pl

from sketchridge.active.checks import checked_targets
from sketchridge.campaign.encoding import Encoding
from sketchridge.sheets.cells import decimal_of, hyphens, numbers
from sketchridge.sheets.files import Sheet
from sketchridge.words import listed, shown

__all__ = ["label_values", "number_of", "value_of"]

Array = np.ndarray
_WITH_UNIT = r"^([+-]?[\d.,]+(?:[eE][+-]?\d+)?)\s*([^\d\s.,eE+_-].*)$"
_OTHER_BASE = r"^[+-]?0[xXoObB]\d"  # which no laboratory means
_THOUSANDS = {mark: rf"^[+-]?[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}$" for mark in ",."}
_NAMES = {",": "comma", ".": "point"}


def label_values(
    sheet: Sheet, column: str, encoding: Encoding, usual: str
) -> tuple[pl.Series, Array]:
    """The cells of a column of labels without their units, and as numbers: NaN where there is none.

    ``usual`` is the mark of decimals in the campaign's first table. ValueError for another unit,
    for commas beside points, and where a mark may be one of thousands.
    """
    if column in sheet.percents:
        raise ValueError(
            f"{sheet.name} shows cells of {shown(column)} in percent, and holds 0.125 for 12.5%: "
            "format them as plain numbers, and correct those that are not what was measured; "
            "nothing was changed."
        )
    cells = sheet.frame[column]
    if cells.dtype.is_numeric() or cells.dtype == pl.Null:
        return cells, numbers(cells)
    if cells.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Boolean):
        raise ValueError(
            f"The column {shown(column)} of {sheet.name} holds {cells.dtype}, which is no label: "
            "write numbers."
        )
    cells = cells.cast(pl.String)
    cells = _without_unit(hyphens(cells), encoding, sheet.name)
    bare = replace(sheet, frame=sheet.frame.with_columns(cells))
    features = [f.name for f in encoding.features if f.values is None]
    columns = [column, *(name for name in features if name in bare.frame.columns)]
    mark = decimal_of(bare, columns)
    if mark != usual and not (mark == "." and bare.has_points):
        _check_thousands(bare, column, columns, mark)
    return cells, numbers(cells, mark, words=False)


def _check_thousands(sheet: Sheet, column: str, columns: Iterable[str], mark: str) -> None:
    """ValueError where a mark may be one of thousands, and no cell shows that it is not."""
    texts = [sheet.frame[name] for name in columns if sheet.frame[name].dtype == pl.String]
    marked = pl.concat([text.filter(text.str.contains(mark, literal=True)) for text in texts])
    unclear = sheet.frame[column].drop_nulls()
    unclear = unclear.filter(unclear.str.contains(_THOUSANDS[mark]))
    if len(unclear) and marked.str.contains(_THOUSANDS[mark]).all():
        raise ValueError(
            f"{sheet.name} was refused and nothing was changed: {_two_ways(unclear[0], mark)}: "
            f"write it without the {_NAMES[mark]}, and all labels alike."
        )


def _two_ways(text: str, mark: str) -> str:
    """What a number such as 1,500 may be."""
    other = "," if mark == "." else "."
    return f"{shown(text)} may be {text.replace(mark, '')} or {text.replace(mark, other)}"


def value_of(text: str, encoding: Encoding, usual: str = ".") -> float:
    """A label as someone types it; ``usual`` is the mark of decimals in the first table."""
    whole = text.strip().replace("−", "-")
    bare = whole.removesuffix(encoding.unit).strip()
    found = re.match(_WITH_UNIT, whole)
    if found and re.match(_WITH_UNIT, bare) and not re.match(_OTHER_BASE, bare):
        wanted = f" in {encoding.unit}" if encoding.unit else ""
        raise ValueError(
            f"{shown(text)} is no finite number{wanted}: convert it, and leave {shown(found[2])} "
            "out."
        )
    value = number_of(bare, usual)
    checked_targets([value])
    return value


def number_of(text: str, usual: str = ".") -> float:
    """A finite number as someone types it, whose mark of decimals may be a comma.

    >>> number_of("0,5"), number_of("-1.25")
    (0.5, -1.25)
    """
    bare = text.strip().replace("−", "-")
    other = "," if usual == "." else "."
    if re.match(_THOUSANDS[other], bare):
        raise ValueError(f"{_two_ways(bare, other)}: type it without the {_NAMES[other]}.")
    if re.fullmatch(r"[+-]?\d*,\d+", bare):
        bare = bare.replace(",", ".")
    try:
        value = np.nan if "_" in bare else float(bare)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(f"{shown(text)} is no finite number.")
    return value


def _without_unit(cells: pl.Series, encoding: Encoding, file: str) -> pl.Series:
    """Cells such as 12.5 mg/L without the unit, once; another unit is a ValueError."""
    bare = cells.str.strip_suffix(encoding.unit).str.strip_chars() if encoding.unit else cells
    is_left = bare.str.contains(_WITH_UNIT) & ~bare.str.contains(_OTHER_BASE)
    wrong = cells.filter(is_left).str.extract(_WITH_UNIT, 2).unique(maintain_order=True)
    if len(wrong):
        wanted = f"in {encoding.unit}" if encoding.unit else "as plain numbers"
        raise ValueError(
            f"{file} has labels with {listed(wrong)} behind the number, but "
            f"{shown(encoding.target)} is expected {wanted}: convert them and leave the unit out."
        )
    return bare
