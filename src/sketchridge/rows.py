"""Training rows: identical rows of X merged into one, with its weight and its mean of y.

A row given twice and a row of weight 2 are then the same thing, in every formula. Rules that count
rows count merged rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from sketchridge.backends import on_cluster, over_rows

__all__ = [
    "Repeats",
    "Rows",
    "changed",
    "deviations",
    "merged",
    "positions",
    "standardized",
    "two_values",
]

Array = np.ndarray
_ROUNDING = 1e-14  # of the largest y: deviations below it are none
_CACHED = 10_000  # rows whose keys are made at a time
_MARKED = 16  # bits of a key


@dataclass(frozen=True, eq=False)
class Repeats:
    """What distinct rows do not show of rows that repeat x: squares of y around their means, each
    times its weight, and the degrees of freedom of these."""

    squares: Array  # (n, q)
    dof: Array  # (n,): different y of a distinct row, less one

    def take(self, rows: Array) -> Repeats:
        """Those of some distinct rows."""
        return Repeats(self.squares[rows], self.dof[rows])


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct rows X in order of first appearance, and the rows as they were given."""

    first: Array  # (n,): the given row at which each first appeared
    group: Array  # (N,): which distinct row each given row is
    Y_given: Array  # (N, q)
    w_given: Array  # (N,)

    def __len__(self) -> int:
        return len(self.first)

    def __getstate__(self) -> dict[str, Any]:
        """What was given; the rest follows from it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def w(self) -> Array:
        """Summed weights: (n,)."""
        if len(self.first) == len(self.group):
            return self.w_given
        several = self._several
        w = self.w_given[self.first]
        w[several.rows] = several.sums(self.w_given)
        return w

    @cached_property
    def Y(self) -> Array:
        """Weighted means of y: (n, q)."""
        if len(self.first) == len(self.group):
            return self.Y_given
        several = self._several
        Y = self.Y_given[self.first]
        weighted = [several.sums(self.w_given * y) for y in self.Y_given.T]
        mean = np.column_stack(weighted) / self.w[several.rows, None]
        Y[several.rows] = np.where(self._alike[:, None], Y[several.rows], mean)
        return Y

    @cached_property
    def _several(self) -> _Several:
        """The distinct rows that were given more than once: few, where the data are long."""
        again = np.ones(len(self.group), dtype=bool)
        again[self.first] = False
        rows = np.unique(self.group[again])
        given = np.union1d(np.flatnonzero(again), self.first[rows])
        return _Several(rows, given, np.searchsorted(rows, self.group[given]))

    @cached_property
    def _alike(self) -> Array:
        """Whether all y of each of those are the same: (p,)."""
        several = self._several
        first = self.Y_given[self.first[several.rows]]
        differs = (self.Y_given[several.given] != first[several.place]).any(axis=1)
        return np.bincount(several.place, differs, minlength=len(several.rows)) == 0

    @property
    def within(self) -> Array:
        """Σ w (y − mean of its distinct row)²: (q,)."""
        return self.repeats(np.ones(self.Y_given.shape[1])).squares.sum(axis=0)

    @cached_property
    def replicates(self) -> float:
        """The degrees of freedom of those squares: different y of a distinct row, less one."""
        return float((self._different - 1).sum())

    def repeats(self, scale: Array) -> Repeats:
        """Those squares and their degrees of freedom, row by row, for y divided by scale (q,)."""
        squares = np.zeros((len(self), len(scale)))
        dof = np.zeros(len(self), dtype=int)
        several = self._several
        given = several.given
        left = (self.Y_given[given] - self.Y[several.rows][several.place]) / scale
        np.add.at(squares, several.rows[several.place], self.w_given[given, None] * left**2)
        dof[several.rows] = self._different - 1
        return Repeats(squares, dof)

    @property
    def tied(self) -> bool:
        """Whether a distinct row has y that differ and others that are the same."""
        times = np.bincount(self._several.place, minlength=len(self._different))
        return bool(((self._different > 1) & (times > self._different)).any())

    @cached_property
    def _different(self) -> Array:
        """How many different y each row that was given more than once has: (p,)."""
        several = self._several
        some = np.flatnonzero(~self._alike[several.place])
        records = np.column_stack([several.place[some], self.Y_given[several.given[some]]])
        of = np.unique(records, axis=0)[:, 0].astype(int)
        return np.maximum(np.bincount(of, minlength=len(several.rows)), 1)

    def extended(self, X: Array, X_new: Array, Y: Array, w: Array) -> tuple[Rows, Array]:
        """With further rows, and which of the new ones are distinct from all before.

        X (n, d) are the distinct rows so far.
        """
        found = _groups(np.concatenate([X, X_new]))
        fresh = found.first[found.first >= len(X)] - len(X)
        group = np.concatenate([self.group, found.group[len(X) :]])
        first = np.concatenate([self.first, len(self.group) + fresh])
        Y_given = np.concatenate([self.Y_given, Y])
        return Rows(first, group, Y_given, np.concatenate([self.w_given, w])), fresh

    def keeps_weights(self, old: Rows) -> bool:
        """Whether the rows of an earlier state have the weights they had."""
        return bool(np.array_equal(self.w[: len(old)], old.w))


def merged(X: Array, Y: Array, w: Array) -> Rows:
    """The distinct rows of X (N, d), with Y (N, q) and weights w (N,).

    >>> rows = merged(np.array([[1.0], [2.0], [1.0]]), np.array([[3.0], [4.0], [5.0]]), np.ones(3))
    >>> rows.w, rows.Y[:, 0], rows.within, rows.replicates
    (array([2., 1.]), array([4., 4.]), array([2.]), 1.0)
    """
    found = _groups(X)
    return Rows(found.first, found.group, Y, w)


def deviations(Y: Array, w: Array, fit_intercept: bool = True) -> Array:
    """Weighted standard deviations of Y (n, q), 0 where rounding alone makes them: (q,).

    Without an intercept targets that are all constant are functions too: they deviate from 0.

    >>> deviations(np.array([[1.0, 0.1], [3.0, 0.1], [2.0, 0.1]]), np.array([1.0, 1.0, 0.7]))[1]
    np.float64(0.0)
    """
    total = w.sum()
    found = np.sqrt(w @ (Y - w @ Y / total) ** 2 / total)
    found = np.where(found > _ROUNDING * np.abs(Y).max(axis=0), found, 0.0)
    return found if fit_intercept or found.any() else np.sqrt(w @ Y**2 / total)


def standardized(Y: Array, w: Array, fit_intercept: bool) -> Array:
    """The targets that vary, in standard deviations, and centered where there is an intercept."""
    deviation = deviations(Y, w, fit_intercept)
    varies = deviation > 0
    mean = w @ Y / w.sum() * fit_intercept
    return (Y - mean)[:, varies] / deviation[varies]


def positions(X: Array, X_new: Array) -> Array:
    """The row of X, whose rows are distinct, that each row of X_new is; −1 where it is none.

    >>> positions(np.array([[1.0], [2.0]]), np.array([[2.0], [3.0]]))
    array([ 1, -1])
    """
    group = _groups(np.concatenate([X, X_new])).group[len(X) :]
    return np.where(group < len(X), group, -1)


def two_values(X: Any) -> dict[int, tuple[float, float]]:
    """The features with two different values, and these."""
    some = X.gathered(_three_values) if on_cluster(X) else X  # on a cluster
    three = _three_values(some)
    return {
        j: (float(low), float(high))
        for j, (low, other, high) in enumerate(three.T)
        if low < high and other in (low, high)
    }


def _three_values(X: Array) -> Array:
    """The smallest value of each column, one between if there is any, and the largest: (3, d)."""
    low, high = X.min(axis=0), X.max(axis=0)
    between = np.where((low < X) & (high > X), X, low)
    return np.stack([low, between.max(axis=0), high])


def changed(j: int, value: float, rows: Array) -> Array:
    """The rows with another value of a feature."""
    out = np.array(rows, dtype=float)
    out[:, j] = value
    return out


@dataclass(frozen=True)
class _Several:
    """Distinct rows that were given more than once."""

    rows: Array  # (p,), in ascending order
    given: Array  # (k,): the given rows that are one of them, in ascending order
    place: Array  # (k,): which of the p each is

    def sums(self, values: Array) -> Array:
        """Of values of the given rows (N,): (p,)."""
        return np.bincount(self.place, values[self.given], minlength=len(self.rows))


@dataclass(frozen=True)
class _Groups:
    first: Array
    group: Array


def _groups(X: Any) -> _Groups:
    """Rows that are equal, among those whose keys are."""
    every = np.arange(len(X))
    keys = X.gathered(_keys) if on_cluster(X) else _keys(X)  # on a cluster, or here
    some = _occurring_twice(keys)
    if not len(some):
        return _Groups(every, every)
    _, first, inverse = np.unique(X[some] + 0.0, axis=0, return_index=True, return_inverse=True)
    earliest = every.copy()
    earliest[some] = some[first][inverse.ravel()]
    is_first = earliest == every
    return _Groups(np.flatnonzero(is_first), (np.cumsum(is_first) - 1)[earliest])


def _occurring_twice(keys: Array) -> Array:
    """Places of the keys that occur more than once, in ascending order. O(N log N).

    Some bits of those keys tell at once that most others are not among them.
    """
    ordered = np.sort(keys)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeated):
        return np.empty(0, dtype=np.intp)
    marks = np.zeros(2**_MARKED, dtype=bool)
    marks[repeated >> np.uint64(64 - _MARKED)] = True
    shares = over_rows(lambda rows: marks[keys[rows] >> np.uint64(64 - _MARKED)], len(keys))
    near = np.flatnonzero(np.concatenate(shares))
    return near[np.isin(keys[near], repeated)]


def _keys(X: Array) -> Array:
    """A number for each row, a mix of the bits of its entries: (N,)."""
    odd = np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64)
    odd = 2 * odd + np.uint64(1)
    keys = np.empty(len(X), dtype=np.uint64)

    def fill(rows: slice) -> None:
        for start in range(rows.start, rows.stop, _CACHED):
            some = slice(start, min(start + _CACHED, rows.stop))
            bits = (np.ascontiguousarray(X[some]) + 0.0).view(np.uint64)  # −0.0 is 0.0
            bits ^= bits >> np.uint64(29)
            keys[some] = bits @ odd

    over_rows(fill, len(X))
    return keys
