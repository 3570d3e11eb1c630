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

__all__ = ["label_values", "value_of"]

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
    cells = sheet.frame[column]
    if cells.dtype == pl.Boolean:
        cells = cells.cast(pl.String)
    if cells.dtype != pl.String:
        return cells, numbers(cells)
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
    bare = text.strip().replace("−", "-").removesuffix(encoding.unit).strip()
    found = re.match(_WITH_UNIT, bare)
    if found and not re.match(_OTHER_BASE, bare):
        wanted = f" in {encoding.unit}" if encoding.unit else ""
        raise ValueError(
            f"{shown(text)} is no finite number{wanted}: convert it, and leave {shown(found[2])} "
            "out."
        )
    if usual == "." and re.match(_THOUSANDS[","], bare):
        raise ValueError(f"{_two_ways(bare, ',')}: type it without the comma.")
    if re.fullmatch(r"[+-]?\d*,\d+", bare):
        bare = bare.replace(",", ".")
    try:
        value = np.nan if "_" in bare else float(bare)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(f"{shown(text)} is no finite number.")
    checked_targets([value])
    return value


def _without_unit(cells: pl.Series, encoding: Encoding, file: str) -> pl.Series:
    """Cells such as 12.5 mg/L as numbers; another unit is a ValueError."""
    if encoding.unit:
        cells = cells.str.strip_suffix(encoding.unit).str.strip_chars()
    parts = cells.str.extract_groups(_WITH_UNIT)
    value, unit = parts.struct.field("1"), parts.struct.field("2").str.strip_chars()
    unit = unit.set(cells.str.contains(_OTHER_BASE).fill_null(False), None)
    given = unit.drop_nulls().unique(maintain_order=True)
    wrong = [u for u in given.to_list() if u != encoding.unit]
    if wrong:
        wanted = f"in {encoding.unit}" if encoding.unit else "as plain numbers"
        raise ValueError(
            f"{file} has labels with {listed(wrong)} behind the number, but "
            f"{shown(encoding.target)} is expected {wanted}: convert them and leave the unit out."
        )
    return value.set(unit.is_null(), None).fill_null(cells).alias(cells.name)
