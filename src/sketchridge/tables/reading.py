"""A table from a file, with numbers and dates as such, and how later ones are read alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sketchridge.sheets.cells import decimal_of, number_like, numbers
from sketchridge.sheets.files import Sheet, read_sheet
from sketchridge.words import listed, named_rows, no_column, shown

__all__ = ["Table", "read_again", "read_table"]

_GAPS = ("na", "n/a", "#n/a", "nan", "null", "none", "missing", "-", "?", ".")
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %H:%M:%S%.f", "T%H:%M:%S%.f")
_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
_DATE = r"^(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{4}-\d{1,2})$"
_MONTH = "%Y-%m"  # read as the first day
_MOSTLY = 0.5  # share of numbers from which other cells are mistakes


@dataclass(frozen=True, eq=False)
class Table:
    """A typed table, and what its cells were: to be written down in `reading`."""

    frame: pl.DataFrame
    given: pl.DataFrame  # as it was read, for what is written beside it
    name: str
    kinds: Mapping[str, str] = field(default_factory=dict)  # "number", "text" or "date"
    formats: Mapping[str, str] = field(default_factory=dict)  # of dates
    separator: str = ","
    decimal: str = "."

    @property
    def reading(self) -> dict[str, Any]:
        """How a later table is read alike, as plain values."""
        return {"kinds": dict(self.kinds), "formats": dict(self.formats)}

    def check_column(self, name: str) -> None:
        """Refuse a name that is no column."""
        if name not in self.frame.columns:
            raise ValueError(no_column(self.name, name, self.frame.columns))


def read_table(path: Path, *, text: Sequence[str] = (), date_format: str | None = None) -> Table:
    """A table whose columns are what they look like; those in ``text`` stay text.

    ValueError for a column that holds numbers and a few other things, and for dates of which
    nobody knows whether the day or the month comes first.
    """
    sheet = read_sheet(path)
    formats: dict[str, str] = {}
    kinds: dict[str, str] = {}
    for name in sheet.frame.columns:
        kind = sheet.frame[name].dtype
        if kind != pl.String:  # which later files may hold as text
            kinds |= {name: "date"} if kind in (pl.Date, pl.Datetime) else {}
            kinds |= {name: "number"} if kind.is_numeric() or kind == pl.Boolean else {}
            continue
        found = None if name in text else _format_of(sheet, name, date_format)
        if found is not None:
            formats[name] = found
            kinds[name] = "date"
        else:
            kinds[name] = "text" if name in text else _kind(sheet, name)
    return _typed(sheet, kinds, formats)


def read_again(path: Path, reading: Mapping[str, Any]) -> Table:
    """A table whose columns are what they were in the first."""
    sheet = read_sheet(path)
    texts = [name for name in sheet.frame.columns if sheet.frame[name].dtype == pl.String]
    kinds = {name: reading.get("kinds", {}).get(name, "text") for name in texts}
    return _typed(sheet, kinds, reading.get("formats", {}))


def _kind(sheet: Sheet, name: str) -> str:
    """ "number" or "text" of a column of text."""
    cells = _without_gaps(sheet.frame[name]).drop_nulls()
    like = number_like(cells)
    share = float(like.mean() or 0.0) if len(cells) else 0.0  # type: ignore[arg-type]
    if 1 > share >= _MOSTLY:
        wrong = cells.filter(~like).unique(maintain_order=True)
        raise ValueError(
            f"The column {shown(name)} of {sheet.name} holds numbers, but also {listed(wrong)}: "
            f"correct these cells, or give --category {name} or --ignore {name}."
        )
    return "number" if share == 1 else "text"


def _without_gaps(cells: pl.Series) -> pl.Series:
    """With words for nothing as null."""
    gap = cells.str.to_lowercase().is_in(_GAPS)
    return cells.set(gap.fill_null(False), None)


def _format_of(sheet: Sheet, name: str, asked: str | None) -> str | None:
    """The format of a column of dates, or None where it holds something else."""
    cells = _without_gaps(sheet.frame[name]).drop_nulls()
    if not len(cells):
        return None
    if asked is not None and _is_of(cells, asked):
        return asked
    if not cells.str.contains(_DATE).all():
        return None
    found = [day + time for time in _TIMES for day in _DAYS if _is_of(cells, day + time)]
    found += [_MONTH] if cells.str.contains(r"^\d{4}-\d{1,2}$").all() else []
    if len(found) > 1:
        raise ValueError(
            f"The dates of {shown(name)} in {sheet.name}, such as {shown(cells[0])}, may begin "
            f"with the day or the month: give --date-format {shown(found[0])} or {shown(found[1])}."
        )
    return found[0] if found else None


def _is_of(cells: pl.Series, form: str) -> bool:
    return _dates(cells, form).null_count() == 0


def _dates(cells: pl.Series, form: str) -> pl.Series:
    """As moments, null where a cell is no date of that format."""
    if form == _MONTH:
        cells, form = cells + "-01", "%Y-%m-%d"
    if "%H" not in form:
        return cells.str.to_date(form, strict=False).cast(pl.Datetime("us"))
    return cells.str.to_datetime(form, strict=False, time_unit="us")


def _typed(sheet: Sheet, kinds: Mapping[str, str], formats: Mapping[str, str]) -> Table:
    wanted = {n: k for n, k in kinds.items() if sheet.frame[n].dtype == pl.String and k != "text"}
    plain = {name: _without_gaps(sheet.frame[name]) for name in wanted}
    numeric = [name for name, kind in wanted.items() if kind == "number"]
    cleared = Sheet(sheet.frame.with_columns(plain.values()), sheet.name, sheet.separator)
    decimal = decimal_of(cleared, numeric)
    made = [
        _as_numbers(cells, decimal, sheet.name)
        if wanted[name] == "number"
        else _as_dates(cells, formats.get(name, _DAYS[0]), sheet.name)
        for name, cells in plain.items()
    ]
    frame = sheet.frame.with_columns(made)
    separator = sheet.separator_beside(decimal)
    return Table(frame, sheet.frame, sheet.name, kinds, dict(formats), separator, decimal)


def _as_numbers(cells: pl.Series, decimal: str, file: str) -> pl.Series:
    found = numbers(cells, decimal)
    wrong = np.flatnonzero(np.isnan(found) & ~cells.is_null().to_numpy())
    if len(wrong):
        strange = cells[wrong].unique(maintain_order=True)
        remedy = "write numbers, or leave these cells empty"
        if strange.str.contains(r"\d").all():
            remedy = "write them without separators of thousands, and with one decimal mark"
        raise ValueError(
            f"The column {shown(cells.name)} of {file} is to hold numbers, and has "
            f"{listed(strange)} in {named_rows(wrong)}: {remedy}."
        )
    return pl.Series(cells.name, found).fill_nan(None)


def _as_dates(cells: pl.Series, form: str, file: str) -> pl.Series:
    found = _dates(cells, form)
    for day in _DAYS[:1]:  # ISO is understood whatever was there before
        for time in _TIMES:
            found = found.fill_null(_dates(cells, day + time))
    wrong = np.flatnonzero((found.is_null() & ~cells.is_null()).to_numpy())
    if len(wrong):
        raise ValueError(
            f"The column {shown(cells.name)} of {file} is to hold dates such as "
            f"{shown(_example(form))}, and has {listed(cells[wrong].unique(maintain_order=True))} "
            f"in {named_rows(wrong)}."
        )
    return found


def _example(form: str) -> str:
    from datetime import datetime

    return datetime(2024, 1, 31, 13, 5).strftime(form.replace("%.f", ""))
