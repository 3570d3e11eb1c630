"""V2 or V̄ at the points of a pool, at a cost that follows the new labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sketchridge.active.pool import Pool
from sketchridge.active.scratch import Place, Scratch
from sketchridge.backends import Backend, Points, Tall
from sketchridge.factor import RowFactor
from sketchridge.fitted import Fitted
from sketchridge.kernels import Kernel
from sketchridge.progress import status
from sketchridge.query import AtPoints

__all__ = ["PoolSums", "has_sums", "pool_sums", "scores_by_sums"]

Array = np.ndarray
_ROWS = 2**13  # whose sums are together: what is computed of them stays in cache
_MEMORY = 2**30  # bytes of sums above which they live in a file
_PLACED = 8  # times as much memory as for its points a pool must leave for them to stay placed
_ROUGH = 0.01  # of V2: rounding beyond it is not worth having
_TASK = "Updating the statistics of the pool"


@dataclass(frozen=True, eq=False)
class _Block:
    """Some rows of the pool, their points where those stay placed, and their sums: (t, 2 + r)."""

    rows: Array
    query: AtPoints | None
    sums: Tall | Place


@dataclass(frozen=True, eq=False)
class PoolSums:
    """[k_xᵀWk_x  k_xᵀW1  k_xᵀWF] for points x of a pool, sums over the labeled points.

    W = diag(w) holds their weights. With a landmark sketch the rows of F never change, so that the
    sums for a later fit are these and those over points that are new, or whose weight is; columns
    of F that are new take a pass over all labeled points. `pool_sums` makes them completely before
    anyone sees them, and they never change: an update that is interrupted leaves those there were.
    """

    kernel: Kernel
    backend: Backend
    X: Array  # (n, d), the labeled points
    w: Array  # (n,)
    pivots: Array  # (r,), of the landmarks
    blocks: tuple[_Block, ...]
    scratch: Scratch | None  # where the sums are, if not in memory

    def precede(self, fitted: Fitted) -> bool:
        """Whether the labeled points and the landmarks here are the first of the fit's."""
        if self.kernel is not fitted.kernel or self.backend is not fitted.backend:
            return False
        same_points = np.array_equal(fitted.data.X[: len(self.X)], self.X)
        return same_points and np.array_equal(_pivots(fitted)[: len(self.pivots)], self.pivots)

    def places(self, rows: Array, size: int) -> list[Array] | None:
        """Where these rows of a pool of that size stand in each block; None if one is nowhere."""
        is_wanted = np.zeros(size, dtype=bool)
        is_wanted[rows] = True
        found = [np.flatnonzero(is_wanted[block.rows]) for block in self.blocks]
        return found if sum(map(len, found)) == len(rows) else None

    def sums(self, block: _Block) -> Tall:
        """The sums of a block, where the backend computes."""
        if not isinstance(block.sums, Place):
            return block.sums
        assert self.scratch is not None
        return self.backend.tall(self.scratch.get(block.sums))


def has_sums(fitted: Fitted) -> bool:
    """Whether V2 and V̄ can be had from sums: F has a fixed row for each labeled point."""
    return isinstance(fitted.factor, RowFactor) and fitted.factor.F.right is None


def pool_sums(
    pool: Pool,
    rows: Array,
    fitted: Fitted,
    start: PoolSums | None = None,
    *,
    memory: int | None = None,
) -> PoolSums:
    """The sums of a fit at some rows of the pool, from those of an earlier fit where that can be.

    O(m·n_new·p) for n_new new points, O(m_new·n·p) for m_new new landmarks. Sums beyond ``memory``
    bytes, 1 GiB unless given, are kept in a scratch file.
    """
    memory = _MEMORY if memory is None else memory
    places = None
    if start is not None and start.precede(fitted):
        places = start.places(rows, len(pool))
    if start is None or places is None:
        blocks = _fresh_blocks(rows)
        increment = _everything(fitted)
    else:
        blocks = _kept_blocks(start, places)
        increment = _difference(start, fitted)
    width = 2 + fitted.factor.F.shape[1]
    size = 8 * len(rows) * width
    in_memory = size <= memory and fitted.backend.worth_holding(len(rows), width)
    scratch = None if in_memory else Scratch(size)
    stays = _PLACED * pool.nbytes <= memory
    made = []
    with fitted.backend.alone(), status(_TASK) as say:
        for block in blocks:
            query = block.query
            if query is None:
                query = fitted.at(pool[block.rows])
            sums = increment.added(query, block.sums)
            kept = sums if scratch is None else scratch.put(sums.host())
            made.append(_Block(block.rows, query if stays else None, kept))
            say(f"{_TASK}: {sum(len(b.rows) for b in made):,} of {len(rows):,} points")
    return PoolSums(
        fitted.kernel,
        fitted.backend,
        fitted.data.X,
        fitted.data.w,
        _pivots(fitted),
        tuple(made),
        scratch,
    )


def scores_by_sums(pool: Pool, sums: PoolSums, fitted: Fitted, theta: float) -> tuple[Array, Array]:
    """`Ridge.mixed` for unit noise at the rows of the sums, 0 elsewhere: (p,), and the rows of
    which it was computed as a residual, because rounding in the sums could be more than 1% of it.

    O(m²) per point. The features that V̄ needs beside the sums are made anew, at the same cost.
    """
    scores = np.zeros(len(pool))
    poor = [np.empty(0, dtype=np.intp)]
    with fitted.backend.alone():
        for block in sums.blocks:
            query = block.query
            if theta < 1 and query is None:
                query = fitted.at(pool[block.rows])
            value, bound = _from_sums(fitted, sums.sums(block), query, theta)
            scores[block.rows] = value
            poor.append(block.rows[~(bound <= _ROUGH * value)])
    again = np.concatenate(poor)
    if len(again):
        ridge = fitted.ridge
        residual = pool.apply(lambda X: ridge.residual_form(fitted.at(X), theta), again)
        scores[again] = residual[again]
    return scores, again


def _from_sums(
    fitted: Fitted, sums: Tall, query: AtPoints | None, theta: float
) -> tuple[Array, Array]:
    """The variance and a bound on its rounding: each (t,)."""
    ridge = fitted.ridge
    total = fitted.sample.total
    squares, ones = sums.columns(0, 2).host().T / total
    b = (sums.columns(2) @ (ridge.basis.V / total)).held()
    a = ridge.features(query) if theta < 1 and query is not None else None
    sizes = np.full(b.shape[1], np.sqrt(fitted.factor.explained.max(initial=0.0)))
    value = np.empty(len(b))
    bound = np.empty(len(b))

    def fill(rows: slice) -> None:
        value[rows], bound[rows] = ridge.from_moments(
            squares[rows],
            b.take(rows),
            None if a is None else a[rows],
            ones[rows],
            theta=theta,
            sizes=sizes,
            precision=fitted.plan.full,
        )

    fitted.backend.each(fill, len(b), b.shape[1])
    return value, bound


@dataclass(frozen=True, eq=False)
class _Increment:
    """What is to be added to sums."""

    points: Points  # labeled points that are new, or whose weight is
    weights: Tall  # (n', 1): by how much their weights grew
    T: Tall  # (n', 1 + r): [1 F] there, with the columns there were
    columns: Tall  # (n, r'): columns of F that are new
    fitted: Fitted

    def added(self, query: AtPoints, sums: Tall | None) -> Tall:
        """The sums at some points with this added; None stands for no sums yet."""
        sample = self.fitted.sample
        backend = sample.backend
        precision = query.safe(self.fitted.plan.full)
        if sums is None or len(self.points):
            squares, products = backend.moments(
                query.points, self.points, self.T, weights=self.weights, precision=precision
            )
            more = backend.tall(squares[:, None]).beside(products)
            sums = more if sums is None else sums.map(lambda a, b: a + b, more)
        if not self.columns.shape[1]:
            return sums
        products = backend.matmul(
            query.points, sample.points, self.columns, weights=sample.weights, precision=precision
        )
        return sums.beside(products)


def _everything(fitted: Fitted) -> _Increment:
    """All labeled points, where there are no sums yet."""
    sample = fitted.sample
    F = fitted.factor.F
    T = fitted.ridge.basis.ones.beside(F)
    return _Increment(sample.points, sample.weights, T, F.columns(F.shape[1]), fitted)


def _difference(start: PoolSums, fitted: Fitted) -> _Increment:
    """What a fit has beyond the sums of an earlier one."""
    sample = fitted.sample
    F = fitted.factor.F
    r = len(start.pivots)
    gained = fitted.data.w.copy()
    gained[: len(start.w)] -= start.w
    rows = np.flatnonzero(gained)
    T = np.column_stack([np.ones(len(rows)), F.columns(0, r).take(rows)])
    backend = sample.backend
    weights = backend.tall(gained[rows, None])
    return _Increment(sample.points.take(rows), weights, backend.tall(T), F.columns(r), fitted)


@dataclass(frozen=True, eq=False)
class _Start:
    """Rows of the pool, and the points and sums they have so far."""

    rows: Array
    query: AtPoints | None
    sums: Tall | None


def _fresh_blocks(rows: Array) -> Iterator[_Start]:
    for i in range(0, len(rows), _ROWS):
        yield _Start(rows[i : i + _ROWS], None, None)


def _kept_blocks(start: PoolSums, places: list[Array]) -> Iterator[_Start]:
    """The blocks there are, with the rows that are still wanted, one at a time."""
    for block, kept in zip(start.blocks, places, strict=True):
        sums = start.sums(block)
        query = block.query
        if len(kept) < len(block.rows):
            sums = Tall(start.backend, (sums.part(kept),))
            query = None if query is None else query.some(kept)
        if len(kept):
            yield _Start(block.rows[kept], query, sums)


def _pivots(fitted: Fitted) -> Array:
    assert isinstance(fitted.factor, RowFactor)
    return fitted.factor.pivots
