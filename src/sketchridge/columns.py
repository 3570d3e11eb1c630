"""Columns of a table (pandas, polars, or a mapping of arrays) as numbers, text and dates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from sketchridge.words import listed, shown

__all__ = [
    "cells_of",
    "check_table",
    "dates_of",
    "distinct",
    "has_gaps",
    "kind_of",
    "names_of",
    "names_rows",
    "numbers_of",
    "side_by_side",
    "texts_of",
    "why_no_category",
]

Array = np.ndarray
_IDS = ("id", "index", "row", "nr", "no", "number", "key")
_DAY = np.timedelta64(1, "D") / np.timedelta64(1, "us")
_NOTHING = ("NAType", "NaTType")  # of pandas, which need not be installed
_WHAT: dict[type, str] = {
    Real: "number",
    Decimal: "number",
    np.bool_: "number",
    str: "text",
    date: "date",
    datetime: "date",
}


def check_table(X: Any) -> None:
    """Refuse what is no table, or one whose columns have no names of their own."""
    if not hasattr(X, "columns") and not isinstance(X, Mapping):
        raise ValueError(
            f"A table is needed (a pandas or polars DataFrame), got {type(X).__name__}: for an "
            "array of numbers use SketchedKernelRidge itself."
        )
    if type(X).__module__.startswith("dask"):
        raise ValueError("A Dask table is not read here: give table.compute().")
    names = names_of(X)
    if not names:
        raise ValueError(
            "The table has no columns to learn from: give at least one beside the target."
        )
    if isinstance(X, Mapping):
        _check_lengths({name: len(X[name]) for name in names})
    if not all(isinstance(name, str) for name in names):
        odd = [name for name in names if not isinstance(name, str)]
        raise ValueError(f"Columns need names that are text, got {listed(odd)}: rename them.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"More than one column is called {listed(twice)}: rename one of them.")


def names_of(X: Any) -> list[str]:
    """The names of the columns, in their order."""
    return list(X) if isinstance(X, Mapping) else list(X.columns)


def _check_lengths(rows: dict[str, int]) -> None:
    first, *others = rows
    for name in others:
        if rows[name] != rows[first]:
            raise ValueError(
                f"Columns need the same number of rows, but {shown(first)} has {rows[first]} rows "
                f"and {shown(name)} {rows[name]} rows."
            )


def cells_of(X: Any, name: str) -> Array:
    """A column as an array: of its own type, or of objects, None where a cell is empty."""
    values = np.asarray(X[name])
    if values.dtype.kind in "US":
        return values.astype(object)
    if values.dtype.kind != "O":
        return values
    cells = np.empty(len(values), dtype=object)
    cells[:] = [None if _is_missing(v) else v for v in values]
    return cells


def kind_of(cells: Array, name: str) -> str:
    """ "number", "text", "date", or "empty" where every cell is.

    >>> kind_of(np.array([1.5, None], dtype=object), "x")
    'number'
    >>> kind_of(np.array(["a", None], dtype=object), "x")
    'text'
    """
    if cells.dtype.kind in "biuf":
        return "empty" if cells.dtype.kind == "f" and np.isnan(cells).all() else "number"
    if cells.dtype.kind == "M":
        return "empty" if np.isnat(cells).all() else "date"
    kinds = set(_kinds(cells.astype(object), name))
    if len(kinds) > 1:
        raise ValueError(
            f"The column {shown(name)} holds {' and '.join(sorted(kinds))}s: make it one of them."
        )
    return kinds.pop() if kinds else "empty"


def _kinds(cells: Array, name: str) -> Iterator[str]:
    for kind in {type(v) for v in cells if v is not None}:
        found = next((what for known, what in _WHAT.items() if issubclass(kind, known)), None)
        if found is None:
            raise ValueError(
                f"The column {shown(name)} holds values of the type {kind.__name__}, which are no "
                "numbers, text or dates: convert it (durations to hours, say), or leave it out."
            )
        yield found


def numbers_of(cells: Array) -> Array:
    """As floats (n,), NaN where a cell is empty."""
    if cells.dtype.kind != "O":
        return cells.astype(float)
    return np.array([np.nan if v is None else float(v) for v in cells], dtype=float)


def texts_of(cells: Array) -> Array:
    """As text (n,), None where a cell is empty; 3.0 is '3', as it was if there were no gaps."""
    if cells.dtype.kind == "f":
        cells = np.array([None if np.isnan(v) else v for v in cells], dtype=object)
    texts = np.empty(len(cells), dtype=object)
    texts[:] = [None if v is None else _text(v) for v in cells]
    return texts


def _text(value: Any) -> str:
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def dates_of(cells: Array) -> Array | None:
    """Days since 1970 (n,), NaN where a cell is empty; None for text that is no ISO date.

    >>> dates_of(np.array(["1970-01-02", "1970-01-01T12:00", None], dtype=object))
    array([1. , 0.5, nan])
    """
    if cells.dtype.kind != "M":
        try:
            moments = [np.datetime64("NaT") if v is None else _moment(v) for v in cells]
            cells = np.array(moments, dtype="datetime64[us]")
        except ValueError:
            return None
    days = cells.astype("datetime64[us]").astype(np.int64) / _DAY
    return np.where(np.isnat(cells), np.nan, days)


def _moment(value: Any) -> np.datetime64:
    """In UTC. ValueError for text that is no date with year, month and day."""
    if isinstance(value, str):
        if len(value) < 10 or value[4] != "-":
            raise ValueError
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in _NOTHING:
        return True
    return isinstance(value, float) and value != value


def distinct(values: Array) -> int:
    """The number of different values, gaps not counted."""
    if values.dtype.kind == "O":
        return len({v for v in values if v is not None})
    return len(np.unique(values[~np.isnan(values)]))


def has_gaps(values: Array) -> bool:
    """Whether a value is missing."""
    if values.dtype.kind == "O":
        return any(v is None for v in values)
    return bool(np.isnan(values).any())


def side_by_side(columns: Sequence[Array]) -> Array:
    """Columns side by side, each with its own type."""
    made = np.empty((len(columns[0]), len(columns)), dtype=object)
    for i, column in enumerate(columns):
        made[:, i] = column
    return made


def why_no_category(count: int, values: Array) -> str:
    """Why a column of texts, so many of them different, is no category, or nothing."""
    filled = sum(v is not None for v in values)
    if count == filled > 1:
        return "its text is different in every row, as names are"
    if count > filled / 2:
        return (
            f"it has {count:,} different texts in {filled:,} rows, too many for a category "
            "(category= makes it one)"
        )
    return ""


def names_rows(name: str, values: Array) -> bool:
    """Whether whole numbers that are all different have a name as ids do."""
    plain = name.strip().lower()
    like = plain in _IDS or plain.endswith(("_id", " id", "-id")) or plain.startswith("unnamed:")
    return like and bool((values == np.round(values)).all())
