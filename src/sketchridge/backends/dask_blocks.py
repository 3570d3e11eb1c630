"""Rows in blocks on the workers of a Dask cluster, each block handled by an inner backend."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from sketchridge.backends import dask_tasks as tasks
from sketchridge.backends.base import REMEDY, Backend
from sketchridge.backends.cholesky import Cholesky
from sketchridge.backends.dask_arrays import BlockPoints, BlockTall, sent
from sketchridge.backends.dask_cluster import Cluster, PerBlock
from sketchridge.backends.dask_panel import Panel, join_columns, panel_of
from sketchridge.backends.numpy_tiles import NumpyTiles
from sketchridge.backends.points import Points
from sketchridge.backends.slices import slices
from sketchridge.backends.tall import Tall
from sketchridge.kernels import Kernel

__all__ = ["DaskBlocks"]

Array = np.ndarray
_FEW = 2**13  # rows up to which everything is done by the caller
_USUAL, _MOST = 2**15, 2**16  # rows of a block: of up to 2²⁵ rows, and of any number
_HELD = 2**32  # bytes of a product F V that is formed beside F; by n alone, not by workers
_TILE = 512  # rows that are handled together
_BLOCKS = 2**10  # as many as a scheduler handles with ease


class DaskBlocks(NumpyTiles):
    """Points and tall matrices in blocks of rows on Dask's workers; few rows, and m×m algebra, are
    handled by NumPy where the estimator is.

    Blocks are cut at rows that depend on n alone, and sums are added in the order of blocks, so
    that results do not depend on the number of workers or on chunks. A block on a worker that is
    lost is made again from what it came from.

    Parameters
    ----------
    client : a `dask.distributed.Client`; unless given, the one made last.
    inner : the backend on the workers: "numpy", or "torch" or "triton" where they have GPUs; or
        one itself, such as ``TorchTiles(device="cuda:1")``.
    rows : rows of a block; unless given, about 32,768, or up to 65,536 where n is beyond 2²⁵.

    Examples
    --------
    >>> DaskBlocks().starts(20_000)
    array([    0, 10240, 20000])
    """

    name = "dask"
    dense_rows = 0

    def __init__(
        self, client: Any = None, *, inner: str | Backend = "numpy", rows: int | None = None
    ) -> None:
        super().__init__()
        self.inner = inner
        self.rows = rows
        self.evaluations = float("inf")
        self.limit = _FEW if rows is None else rows
        self.longest = self.limit
        self.cluster = Cluster(client, inner)

    def __reduce__(self) -> Any:
        return _again, (self.inner, self.rows)

    def _free(self) -> float:
        """Nothing is known of the workers' memory: sketches stay small."""
        return 0.0

    def __deepcopy__(self, memo: Any) -> DaskBlocks:
        return self  # a copy of an estimator has the same cluster

    def __repr__(self) -> str:
        return f"DaskBlocks(inner={self.inner!r}, rows={self.rows})"

    def starts(self, n: int) -> Array:
        """The first row of each block of n rows, and n."""
        return np.append(np.arange(0, max(n, 1), self.rows or _size(n)), n)

    # Points and tall matrices

    def largest(self, U: Any) -> float:
        return max(U.max(0.0), -U.min(0.0)) if isinstance(U, Panel) else super().largest(U)

    def points(self, kernel: Kernel, U: Any) -> Points:
        stays = isinstance(U, Panel) and len(U) > self.limit
        return self.points_at(kernel, U if stays else np.array(U, dtype=float), 0.0)

    def rows_of(self, array: Any) -> Panel:
        """The rows of a Dask array in blocks of this backend's; those of the array are not kept."""
        starts = self.starts(len(array))
        sizes = tuple(np.diff(starts).tolist())
        cut = array.astype(float).rechunk((sizes, -1))
        blocks = self.cluster.computed(cut.to_delayed().ravel().tolist())
        return Panel(self, blocks, starts, cut.shape)

    def points_at(self, kernel: Kernel, U: Any, largest: float) -> Points:
        """Points on the workers where they are many."""
        kind = BlockPoints if len(U) > self.limit else Points
        return kind(self, kernel, U, largest)

    def tall(self, A: Array) -> Tall:
        if len(A) <= self.limit:
            return super().tall(A)
        return BlockTall(self, [panel_of(self, np.array(A, dtype=float))])

    def blocked(self, blocks: list[Any], n: int, q: int) -> BlockTall:
        """The matrix of these blocks."""
        return BlockTall(self, [Panel(self, blocks, self.starts(n), (n, q))])

    def generate(self, sketch: Any, rows: range, columns: range) -> Tall:
        if len(columns) <= self.limit:
            return super().generate(sketch, rows, columns)
        starts = self.starts(len(columns)) + columns.start
        ranges = [range(a, b) for a, b in pairwise(starts.tolist())]
        blocks = self.cluster.work(tasks.generated, sketch, rows, PerBlock(ranges))
        return self.blocked(blocks, len(columns), len(rows))

    def joined(self, arrays: Any, axis: int) -> Any:
        if isinstance(arrays[0], Panel):
            return join_columns(arrays)
        return super().joined(arrays, axis)

    def host(self, A: Any) -> Array:
        return np.asarray(A)

    def reserve(self, numbers: float, what: str, remedy: str = REMEDY) -> None:
        """There is room: workers spill to disk what does not fit."""

    def worth_holding(self, n: int, q: int) -> bool:
        return 8 * n * q <= _HELD

    # Products

    def block(self, P: Points, Q: Points) -> Tall:
        Q = _here(Q)
        if not isinstance(P, BlockPoints):
            return super().block(P, Q)
        made = self.cluster.work(tasks.block, sent(P), sent(Q))
        return self.blocked(made, len(P), len(Q))

    def schur(self, P: Points, Q: Points, F: Tall, F_Q: Array, L: Array) -> Tall:
        Q = _here(Q)
        if not isinstance(P, BlockPoints):
            return super().schur(P, Q, F, F_Q, L)
        small = [self.cluster.shared(np.asarray(A)) for A in (F_Q, L)]
        made = self.cluster.work(tasks.schur, sent(P), sent(Q), sent(F), *small)
        return self.blocked(made, len(P), len(Q))

    def matmul(
        self, P: Points, Q: Points, T: Tall, *, weights: Tall | None = None, precision: str
    ) -> Tall:
        few_P, few_Q = (not isinstance(points, BlockPoints) for points in (P, Q))
        if few_P and few_Q:
            return super().matmul(P, Q, T, weights=weights, precision=precision)
        given = sent(P), sent(Q), sent(T), sent(weights)
        if few_P or few_Q:
            made = self.cluster.work(tasks.product, None, *given, precision)
            if few_P:
                return super().tall(self.cluster.total(made))
            return self.blocked(made, len(P), T.shape[1])
        return self._all_pairs(P, *given, precision, T.shape[1])

    def _all_pairs(
        self, P: Points, its: PerBlock, Q: PerBlock, T: PerBlock, weights: Any, precision: str,
        q: int,
    ) -> Tall:  # fmt: skip
        """Every block of P with all blocks of Q, one after the other."""
        count = len(its.each)
        sums = PerBlock([None] * count)
        for j in range(len(Q.each)):
            w = weights if weights is None else weights.each[j]
            given = Q.each[j], T.each[j], w
            sums = PerBlock(self.cluster.work(tasks.product, sums, its, *given, precision))
        return self.blocked(sums.each, len(P), q)

    def moments(
        self, P: Points, Q: Points, T: Tall, *, weights: Tall, precision: str
    ) -> tuple[Array, Tall]:
        if not isinstance(Q, BlockPoints):
            return super().moments(_here(P), Q, T, weights=weights, precision=precision)
        given = sent(Q), sent(T), sent(weights), precision
        found = [
            self.cluster.total(self.cluster.work(tasks.moments, sent(P.take(rows)), *given))
            for rows in self._few_rows(len(P))
        ]
        squares, sums = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return squares, self.tall(sums)

    def residual_sqnorm(
        self, P: Points, Q: Points, T: Tall, C: Tall, *, weights: Tall, precision: str
    ) -> Array:
        C = super().tall(C.host())
        if not isinstance(Q, BlockPoints):
            return super().residual_sqnorm(_here(P), Q, T, C, weights=weights, precision=precision)
        given = sent(weights), precision
        found = []
        for rows in self._few_rows(len(P)):
            few = sent(P.take(rows)), sent(Q), sent(T), sent(C.rows(rows.start, rows.stop))
            parts = self.cluster.work(tasks.residual, *few, *given)
            found.append(self.cluster.total(parts))
        return np.concatenate(found)

    def _few_rows(self, t: int) -> list[slice]:
        """So many points at a time as the caller handles, at least once."""
        return slices(t, self.limit) or [slice(0, 0)]

    def dense(self, P: Points, root: Tall, lam: float) -> Cholesky:
        if isinstance(P, BlockPoints):
            raise ValueError(
                f"An exact fit needs the {len(P):,} × {len(P):,} kernel matrix, which is not "
                "distributed: use SketchedKernelRidge, or another backend."
            )
        return super().dense(P, root, lam)


def _size(n: int) -> int:
    """Rows of each of as many blocks as two or four workers can share evenly, by n alone."""
    count = min(-(-n // _USUAL), max(_BLOCKS, -(-n // _MOST)))
    count = max(2, -(-count // 4) * 4 if count > 2 else count)
    return max(1, -(-n // count // _TILE)) * _TILE


def _here(points: Points) -> Points:
    """The points where the caller is."""
    if not isinstance(points, BlockPoints):
        return points
    return Points(points.backend, points.kernel, points.host(), points.largest)


def _again(inner: str | Backend, rows: int | None) -> DaskBlocks:
    return DaskBlocks(inner=inner, rows=rows)
