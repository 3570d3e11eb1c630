"""Training rows: identical rows of X merged into one, with its weight and its mean of y.

A row given twice and a row of weight 2 are then the same thing, in every formula. Rules that count
rows count merged rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["Repeats", "Rows", "deviations", "merged", "positions"]

Array = np.ndarray
_ROUNDING = 1e-14  # of the largest y: deviations below it are none
_MANY = 10_000  # rows from which it is worth looking at one column first


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

    @cached_property
    def w(self) -> Array:
        """Summed weights: (n,)."""
        if len(self.first) == len(self.group):
            return self.w_given
        return np.bincount(self.group, self.w_given, minlength=len(self))

    @cached_property
    def Y(self) -> Array:
        """Weighted means of y: (n, q)."""
        if len(self.first) == len(self.group):
            return self.Y_given
        weighted = (self.w_given * y for y in self.Y_given.T)
        sums = [np.bincount(self.group, wy, minlength=len(self)) for wy in weighted]
        mean = np.column_stack(sums) / self.w[:, None]
        return np.where(self._alike[:, None], self.Y_given[self.first], mean)

    @cached_property
    def _alike(self) -> Array:
        """Whether all y of a distinct row are the same: (n,)."""
        differs = (self.Y_given != self.Y_given[self.first][self.group]).any(axis=1)
        return np.bincount(self.group, differs, minlength=len(self)) == 0

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
        if len(self.first) < len(self.group):
            left = (self.Y_given - self.Y[self.group]) / scale
            np.add.at(squares, self.group, self.w_given[:, None] * left**2)
        return Repeats(squares, self._different - 1)

    @property
    def tied(self) -> bool:
        """Whether a distinct row has y that differ and others that are the same."""
        if len(self.first) == len(self.group):
            return False
        several = self._different > 1
        return bool((np.bincount(self.group)[several] > self._different[several]).any())

    @cached_property
    def _different(self) -> Array:
        """How many different y each distinct row has: (n,)."""
        counts = np.ones(len(self), dtype=int)
        if len(self.first) == len(self.group):
            return counts
        some = np.flatnonzero(~self._alike[self.group])
        records = np.unique(np.column_stack([self.group[some], self.Y_given[some]]), axis=0)
        found = np.bincount(records[:, 0].astype(int), minlength=len(self))
        return np.maximum(counts, found)

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


def positions(X: Array, X_new: Array) -> Array:
    """The row of X, whose rows are distinct, that each row of X_new is; −1 where it is none.

    >>> positions(np.array([[1.0], [2.0]]), np.array([[2.0], [3.0]]))
    array([ 1, -1])
    """
    group = _groups(np.concatenate([X, X_new])).group[len(X) :]
    return np.where(group < len(X), group, -1)


@dataclass(frozen=True)
class _Groups:
    first: Array
    group: Array


def _groups(X: Array) -> _Groups:
    """Rows that are equal, among those whose keys are."""
    every = np.arange(len(X))
    if len(X) > _MANY and _all_differ(X[:, 0]):
        return _Groups(every, every)
    keys = X.gathered(_keys) if hasattr(X, "gathered") else _keys(X)  # on a cluster, or here
    ordered = np.sort(keys)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeated):
        return _Groups(every, every)
    some = np.flatnonzero(np.isin(keys, repeated))
    _, first, inverse = np.unique(X[some] + 0.0, axis=0, return_index=True, return_inverse=True)
    earliest = every.copy()
    earliest[some] = some[first][inverse.ravel()]
    is_first = earliest == every
    return _Groups(np.flatnonzero(is_first), (np.cumsum(is_first) - 1)[earliest])


def _all_differ(column: Array) -> bool:
    ordered = np.sort(column)
    return bool((ordered[1:] != ordered[:-1]).all())


def _keys(X: Array) -> Array:
    """A number for each row, a mix of the bits of its entries: (N,)."""
    odd = np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64)
    odd = 2 * odd + np.uint64(1)
    keys = np.empty(len(X), dtype=np.uint64)
    for start in range(0, len(X), _MANY):  # so few rows that they stay in cache
        bits = (np.ascontiguousarray(X[start : start + _MANY]) + 0.0).view(np.uint64)  # −0.0 is 0.0
        bits ^= bits >> np.uint64(29)
        keys[start : start + _MANY] = bits @ odd
    return keys
