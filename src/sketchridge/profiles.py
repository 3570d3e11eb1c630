"""Points along one column of a table, the others held at typical values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchridge.columns import cells_of, check_table, kind_of, names_of, numbers_of
from sketchridge.words import no_column

__all__ = ["Along", "along"]

Array = np.ndarray
_LEVELS = 12  # values of a category that are drawn, the most frequent ones


@dataclass(frozen=True, eq=False)
class Along:
    """Where a model is asked, and what is drawn below it."""

    points: Any  # (t, d): like X
    x: Array  # (t,): the column at these points; numbers, dates or text
    seen: Array  # (n,): the column in the data
    name: str

    @property
    def is_category(self) -> bool:
        return self.x.dtype.kind == "O"


def along(X: Any, feature: int | str, grid: int) -> Along:
    """Points at which one column of X takes ``grid`` values of its range, or each of its texts.

    Other columns are at their medians, text at its most frequent value.

    >>> found = along({"size": [1.0, 3.0, 8.0], "color": ["red", "blue", "red"]}, "size", 2)
    >>> found.x, found.points["color"]
    (array([1., 8.]), array(['red', 'red'], dtype=object))
    """
    if not hasattr(X, "columns") and not isinstance(X, Mapping):
        return _of_array(np.asarray(X, dtype=float), feature, grid)
    check_table(X)
    names = names_of(X)
    name = names[_place(feature, len(names))] if not isinstance(feature, str) else feature
    if name not in names:
        raise ValueError(no_column("X", name, names))
    cells = {each: _cells(X, each) for each in names}
    x = _range(cells[name], grid)
    columns = {each: np.full(len(x), _typical(c), dtype=c.dtype) for each, c in cells.items()}
    columns[name] = x
    points = columns if isinstance(X, Mapping) else type(X)(columns)
    return Along(points, x, cells[name], name)


def _of_array(X: Array, feature: int | str, grid: int) -> Along:
    if isinstance(feature, str):
        raise ValueError(f"X is an array, whose columns have no names: got feature={feature!r}.")
    place = _place(feature, X.shape[1])
    points = np.tile(np.median(X, axis=0), (grid, 1))
    points[:, place] = x = _range(X[:, place], grid)
    return Along(points, x, X[:, place], f"feature {place}")


def _place(feature: int, width: int) -> int:
    if not 0 <= feature < width:
        raise ValueError(
            f"feature={feature!r} is not a column of X, which has {width}: give 0 to {width - 1}."
        )
    return feature


def _cells(X: Any, name: str) -> Array:
    """A column as floats, dates or objects; true and false are objects too."""
    cells = cells_of(X, name)
    if cells.dtype.kind == "b":
        return cells.astype(object)
    if cells.dtype.kind == "O" and kind_of(cells, name) == "number":
        return cells if {type(v) for v in cells} <= {bool, type(None)} else numbers_of(cells)
    return cells.astype(float) if cells.dtype.kind in "iuf" else cells


def _range(cells: Array, grid: int) -> Array:
    if cells.dtype.kind == "O":
        return _by_count(cells)[:_LEVELS]
    if cells.dtype.kind == "M":
        moments = cells[~np.isnat(cells)].astype("datetime64[us]")
        steps = np.linspace(0, 1, grid) * (moments.max() - moments.min()).astype(float)
        return moments.min() + steps.astype("timedelta64[us]")
    return np.linspace(np.nanmin(cells), np.nanmax(cells), grid)


def _typical(cells: Array) -> Any:
    if cells.dtype.kind == "O":
        return next(iter(_by_count(cells)), None)
    if cells.dtype.kind == "M":
        known = np.sort(cells[~np.isnat(cells)])
        return known[len(known) // 2] if len(known) else np.datetime64("NaT")
    return np.nanmedian(cells) if not np.isnan(cells).all() else np.nan


def _by_count(cells: Array) -> Array:
    """The values, the most frequent first, and among those as frequent in the order of text."""
    known = Counter(v for v in cells if v is not None)
    made = np.empty(len(known), dtype=object)
    made[:] = sorted(known, key=lambda value: (-known[value], str(value)))
    return made
