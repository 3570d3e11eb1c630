"""Training rows: identical rows of X merged into one, with its weight and its mean of y.

A row given twice and a row of weight 2 are then the same thing, in every formula. Rules that count
rows count merged rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["Rows", "merged", "positions"]

Array = np.ndarray
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03))


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
        sums = np.zeros((len(self), self.Y_given.shape[1]))
        np.add.at(sums, self.group, self.w_given[:, None] * self.Y_given)
        mean = sums / self.w[:, None]
        return np.where(self._alike[:, None], self.Y_given[self.first], mean)

    @cached_property
    def _alike(self) -> Array:
        """Whether all y of a distinct row are the same: (n,)."""
        differs = (self.Y_given != self.Y_given[self.first][self.group]).any(axis=1)
        return np.bincount(self.group, differs, minlength=len(self)) == 0

    @property
    def within(self) -> Array:
        """Σ w (y − mean of its distinct row)²: (q,)."""
        return self.w_given @ (self.Y_given - self.Y[self.group]) ** 2

    @cached_property
    def replicates(self) -> float:
        """The degrees of freedom of those squares.

        A distinct row whose y differ has as many repetitions as its weight has units, less one.
        The unit is the largest common divisor of all weights where they are whole numbers, as they
        are for rows without weights; elsewhere each different y counts once.
        """
        if len(self.first) == len(self.group):
            return 0.0
        given = np.column_stack([self.group, self.Y_given])
        records, inverse = np.unique(given, axis=0, return_inverse=True)
        weight = np.bincount(inverse.ravel(), self.w_given)
        of = records[:, 0].astype(int)
        counts = np.ones(len(weight))
        if (weight == np.round(weight)).all() and weight.max() < 2**53:
            counts = weight / np.gcd.reduce(weight.astype(np.int64))
        repeated = np.bincount(of, counts, minlength=len(self))
        several = np.bincount(of, minlength=len(self)) > 1
        return float((repeated - 1)[several].sum())

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
    """Rows that are equal, by keys that differ for rows that differ but for one chance in 2⁶⁴."""
    keys = _keys(X)
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():
        every = np.arange(len(X))
        return _Groups(every, every)
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    if not np.array_equal(X[first][group.ravel()], X):
        _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return _Groups(first[order], place[group.ravel()])


def _keys(X: Array) -> Array:
    """A number for each row, a mix of the bits of its entries: (N,)."""
    keys = np.zeros(len(X), dtype=np.uint64)
    for column in X.T:
        bits = np.ascontiguousarray(column + 0.0).view(np.uint64)  # −0.0 is 0.0
        keys ^= bits
        keys *= _MIX[0]
        keys ^= keys >> np.uint64(29)
        keys *= _MIX[1]
        keys ^= keys >> np.uint64(32)
    return keys
