"""Choosing landmarks: a Cholesky factor of the kernel matrix that grows by blocks of columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchridge.backends import Backend, Points, Tall
from sketchridge.sketches import RowSketch

__all__ = ["Landmarks", "grow", "no_landmarks", "remaining", "with_rows"]

Array = np.ndarray
_EPS = np.finfo(float).eps
_BLOCK = 128  # landmarks taken at a time
_WIDEST = 1024  # columns of F in one piece


@dataclass(frozen=True, eq=False)
class Landmarks:
    """F = k(X, X_p) L⁻ᵀ with L the Cholesky factor of k(X_p, X_p).

    Landmarks whose residual is at rounding level are passed over, so that ``pivots`` can be shorter
    than the rows that were asked for. Nothing there is ever changes when landmarks are added.
    """

    pivots: Array  # (r,), row numbers p
    L: Array  # (r, r), lower triangular
    F: Tall  # (n, r)
    residual: Tall  # (n, 1): diag(G − F Fᵀ), zero at rounding level


def no_landmarks(backend: Backend, diag: Array) -> Landmarks:
    """The start: nothing is explained."""
    none = np.empty(0, dtype=np.intp)
    F = backend.tall(np.empty((len(diag), 0)))
    return Landmarks(none, np.empty((0, 0)), F, backend.tall(diag[:, None]))


def grow(
    start: Landmarks, points: Points, weights: Tall, diag: Tall, sketch: RowSketch, size: int
) -> tuple[Landmarks, RowSketch]:
    """As many landmarks as the sketch is to have rows, or fewer where the rank runs out.

    The sketch proposes rows from w_i (G − F Fᵀ)_ii, what is left unexplained. O(n r²) in all.
    """
    build = _Build(start, points, diag, max(size - sketch.size, 0))
    while sketch.size < size:
        left = build.residual.map(lambda r, w: r * w, weights)
        if not left.mass() > 0:
            break
        rows, shares = sketch.propose(min(_BLOCK, size - sketch.size), left)
        sketch = sketch.with_rows(build.take(rows, shares))
    return build.done(), sketch


def with_rows(start: Landmarks, points: Points, diag: Tall, rows: Array) -> Landmarks:
    """The landmarks with rows that are given, as far as they are independent."""
    build = _Build(start, points, diag, len(rows))
    for first in range(0, len(rows), _BLOCK):
        some = rows[first : first + _BLOCK]
        build.take(some, np.zeros(len(some)))
    return build.done()


class _Build:
    """Landmarks under construction."""

    def __init__(self, start: Landmarks, points: Points, diag: Tall, more: int) -> None:
        self.points = points
        self.diag = diag
        self.start = start
        self.pivots = start.pivots
        self.F = start.F
        self.room = start.F.room(more)
        self.residual = start.residual
        self.below: list[tuple[Array, Array]] = []  # new rows of L: left of the diagonal, and at it

    def take(self, rows: Array, shares: Array) -> Array:
        """Append the candidates that keep their share of residual; where it is 0, all that are
        independent."""
        accepted, corner, dependent = self._accept(rows, shares)
        F_accepted = self.F.take(accepted)
        landmarks = self.points.take(accepted)
        new = self.points.backend.schur(self.points, landmarks, self.F, F_accepted, corner)
        self.below.append((F_accepted, corner))
        self.pivots = np.concatenate([self.pivots, accepted])
        self.F = self.room.add(new)
        zeros = np.concatenate([accepted, dependent])
        self.residual = remaining(self.residual, new, self.diag, len(self.pivots), zeros)
        return accepted

    def _accept(self, rows: Array, shares: Array) -> tuple[Array, Array, Array]:
        """Cholesky steps on the candidates' residual block: those accepted, their triangular
        factor, and those that rounding makes dependent."""
        F = self.F.take(rows)
        candidates = self.points.take(rows)
        M = candidates.backend.block(candidates, candidates).host() - F @ F.T  # (b, b)
        floor = (len(self.pivots) + len(rows) + 1) * _EPS * self.diag.take(rows)[:, 0]
        none = np.empty(0, dtype=np.intp)
        whole = None if shares.any() else _cholesky(M, floor)
        if whole is not None:
            return rows, whole, none
        needed = shares * np.diagonal(M)
        places: list[int] = []
        columns = np.zeros_like(M)
        dependent: list[int] = []
        for j in range(len(rows)):
            r = len(places)
            row = columns[j, :r]
            left = M[j, j] - row @ row
            if left <= floor[j]:
                dependent.append(rows[j])
            elif left > needed[j]:
                columns[j:, r] = (M[j:, j] - columns[j:, :r] @ row) / np.sqrt(left)
                places.append(j)
        corner = columns[places, : len(places)]
        return rows[places], corner, np.array(dependent, dtype=np.intp)

    def done(self) -> Landmarks:
        r = len(self.start.L)
        L = np.zeros((len(self.pivots), len(self.pivots)))
        L[:r, :r] = self.start.L
        for left, corner in self.below:
            stop = r + len(corner)
            L[r:stop, :r] = left
            L[r:stop, r:stop] = corner
            r = stop
        F = self.F.compact(_WIDEST)
        if 2 * self.room.used < self.room.columns:  # the rank ran out: keep no room for the rest
            F = F.map(lambda f: f)
        return Landmarks(self.pivots, self.points.backend.frozen(L), F, self.residual)


def remaining(residual: Tall, F: Tall, diag: Tall, rank: int, zeros: Array | None = None) -> Tall:
    """What columns F leave of a residual, and 0 in the rows ``zeros`` and where rounding in so many
    columns decides: (n, 1)."""
    floor = (rank + 1) * _EPS

    def left(r: Array, f: Array, d: Array) -> Array:
        less = r - (f * f).sum(axis=1)[:, None]
        return less * (less > floor * d)

    return residual.map(left, F, diag, zeros=zeros)


def _cholesky(M: Array, floor: Array) -> Array | None:
    """The factor of a matrix whose pivots are all above the floor; None for any other."""
    try:
        L = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        return None
    return L if (np.diagonal(L) ** 2 > floor).all() else None
