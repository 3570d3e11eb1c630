"""Kernel products on the CPU: small tiles of k(X, Z) in cache, one thread per row of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.spatial.distance import cdist

from sketchridge.backends import memory
from sketchridge.backends.base import REMEDY, Backend
from sketchridge.backends.points import Points
from sketchridge.backends.slices import slices
from sketchridge.backends.tall import Tall
from sketchridge.backends.threads import default_workers, in_threads, one_blas_thread
from sketchridge.kernels import Kernel

__all__ = ["NumpyTiles"]

Array = np.ndarray
Filler = Callable[[slice, slice, Array], Array]
_SMALL = 2**16  # kernel evaluations below which threads cost more than they save
_LARGE = 2**23  # numbers in a matrix whose room is checked before it is made
_STRIP = 2**20  # numbers in a strip of a tall matrix while it is worked on


class NumpyTiles(Backend):
    """The reference backend.

    Parameters
    ----------
    memory : int
        Bytes that all tiles together may take, and the sums of all threads where each has its
        own.
    workers : int
        Number of threads; unless given, the cores this process may use (joblib's count and
        OMP_NUM_THREADS are respected).
    tile : int
        The longest side of a tile; 512 keeps one in a core's cache.

    Examples
    --------
    >>> from sketchridge import SketchedKernelRidge
    >>> SketchedKernelRidge(backend=NumpyTiles(workers=1)).backend.name
    'numpy'
    """

    name = "numpy"
    precisions = ("float32", "float64")
    dense_rows = 12_288
    undivided = True
    far: ClassVar[dict[str, float]] = {"float64": 0.0, "float32": 1e-24}

    def __init__(self, *, memory: int = 2**28, workers: int | None = None, tile: int = 512) -> None:
        self.memory = memory
        self.workers = default_workers() if workers is None else _counted(workers)
        side = int(np.sqrt(memory / (3 * self.workers * 8)))
        self.tile = max(1, min(tile, side))
        self.evaluations = 2.0**30 * self.workers

    def alone(self) -> AbstractContextManager[object]:
        return one_blas_thread()

    def side_by_side(self, jobs: Sequence[Callable[[], Any]], numbers: float = 0.0) -> list[Any]:
        at_once = min(self.workers, memory.available() // max(8 * numbers, 1))
        return in_threads(max(1, int(at_once)), jobs)

    def points(self, kernel: Kernel, U: Array) -> Points:
        return Points(self, kernel, np.array(U, dtype=float))

    def block(self, P: Points, Q: Points) -> Tall:
        fill = _filler(P, Q, np.float64)

        def strip(rows: slice, out: Array) -> None:
            for cols in slices(len(Q), self.tile):
                fill(rows, cols, out[:, cols])

        return self._by_rows(strip, len(P), len(Q), len(Q))

    def schur(self, P: Points, Q: Points, F: Tall, F_Q: Array, L: Array) -> Tall:
        fill = _filler(P, Q, np.float64)
        parts = list(_doubling(F if F.right is None else F.held(), F_Q))

        def strip(rows: slice, out: Array) -> None:
            C = fill(rows, slice(0, len(Q)), out)
            part = np.empty_like(C)  # one for all: memory that goes back at once is slow to get
            for columns, its in parts:
                C -= np.matmul(columns[rows], its, out=part)
            out[:] = solve_triangular(L, C.T, lower=True, overwrite_b=True, check_finite=False).T

        return self._by_rows(strip, len(P), len(Q), len(Q))

    def matmul(
        self, P: Points, Q: Points, T: Tall, *, weights: Tall | None = None, precision: str
    ) -> Tall:
        narrow, right = _narrowest(T)
        dtype = np.dtype(precision)
        V, lift = _operand(P.kernel, narrow, weights, dtype)
        fill = _filler(P, Q, dtype)
        if P is Q and self._worth_mirroring(V):
            sums = Tall(self, (np.ldexp(self._mirrored(fill, V), -lift),))
        else:
            strip = partial(self._products, fill, V, lift)
            sums = self._by_rows(strip, len(P), V.shape[1], len(Q))
        return sums if right is None else sums @ right

    def moments(
        self, P: Points, Q: Points, T: Tall, *, weights: Tall, precision: str
    ) -> tuple[Array, Tall]:
        narrow, right = _narrowest(T)
        dtype = np.dtype(precision)
        V, lift = _operand(P.kernel, narrow, weights, dtype)
        fill = _filler(P, Q, dtype)
        squares = np.zeros(len(P))

        def strip(rows: slice, out: Array) -> None:
            def also(k: Array, cols: slice) -> None:
                _add(squares[rows], k, weights, cols)

            self._products(fill, V, lift, rows, out, also)

        sums = self._by_rows(strip, len(P), V.shape[1], len(Q))
        return squares, sums if right is None else sums @ right

    def _products(
        self,
        fill: Filler,
        V: Array,
        lift: int,
        rows: slice,
        out: Array,
        also: Callable[[Array, slice], None] | None = None,
    ) -> None:
        """k(P[rows], Q) V into ``out``, tile by tile; each is then given to ``also``."""
        size = rows.stop - rows.start
        tile = np.empty((size, self.tile), dtype=V.dtype)
        part = np.empty((size, V.shape[1]), dtype=V.dtype)
        out[:] = 0
        for cols in slices(len(V), self.tile):
            k = fill(rows, cols, tile)
            out += np.matmul(k, V[cols], out=part)
            if also is not None:
                also(k, cols)
        if lift:
            np.ldexp(out, -lift, out=out)

    def _worth_mirroring(self, V: Array) -> bool:
        """Whether there are tiles enough to share evenly, and memory for each thread's own sums."""
        enough = len(V) >= 4 * self.workers * self.tile
        return enough and 8 * V.size * self.workers <= self.memory

    def _mirrored(self, fill: Filler, V: Array) -> Array:
        """k(P, P) V from the tiles on and above the diagonal, each used as it is and transposed.

        Threads sum their tiles apart, so that the result does not depend on which is first.
        """
        blocks = slices(len(V), self.tile)
        turn = 2 * self.workers  # 0 1 … 1 0 0 1 …: as much for each

        def share(worker: int) -> Array:
            out = np.zeros(V.shape)
            tile = np.empty((self.tile, self.tile), dtype=V.dtype)
            part = np.empty((self.tile, V.shape[1]), dtype=V.dtype)
            for i, rows in enumerate(blocks):
                if min(i % turn, -(i + 1) % turn) != worker:
                    continue
                for cols in blocks[i:]:
                    k = fill(rows, cols, tile[: rows.stop - rows.start])
                    out[rows] += np.matmul(k, V[cols], out=part if len(k) == len(part) else None)
                    if cols != rows:
                        its = part if len(k.T) == len(part) else None
                        out[cols] += np.matmul(k.T, V[rows], out=its)
            return out

        jobs = [partial(share, worker) for worker in range(self.workers)]
        return np.sum(self._run(jobs, len(V) ** 2), axis=0)

    def residual_sqnorm(
        self, P: Points, Q: Points, T: Tall, C: Tall, *, weights: Tall, precision: str
    ) -> Array:
        narrow, right = _narrowest(T)
        coefficients = C if right is None else C @ right.T
        dtype = np.dtype(precision)
        c = np.asarray(coefficients.whole(), dtype=dtype)
        H = [(np.asarray(p, dtype=dtype), c[:, s]) for p, s in narrow.placed() if p.shape[1]]
        fill = _filler(P, Q, dtype)
        squares = np.zeros(len(P))

        def strip(rows: slice, out: Array) -> None:
            tile, part = np.empty((2, rows.stop - rows.start, self.tile), dtype=dtype)
            for cols in slices(len(Q), self.tile):
                r = fill(rows, cols, tile)
                for panel, its_c in H:
                    its = part[:, : r.shape[1]]
                    r -= np.matmul(its_c[rows], panel[cols].T, out=its)
                _add(squares[rows], r, weights, cols)

        self._by_rows(strip, len(P), 0, len(Q))
        return squares

    # Tall matrices

    def array(self, A: Array) -> Array:
        return np.array(A, dtype=float)

    def host(self, A: Array) -> Array:
        return A

    def reserve(self, numbers: float, what: str, remedy: str = REMEDY) -> None:
        memory.check(8 * numbers, what, remedy)

    def empty(self, n: int, q: int) -> Array:
        if n * q > _LARGE:
            self.reserve(n * q, f"A matrix of {n:,} × {q:,} numbers")
        return np.empty((n, q))

    def joined(self, arrays: Sequence[Array], axis: int) -> Array:
        size = sum(A.size for A in arrays)
        if size > _LARGE:
            self.reserve(size, f"Putting {len(arrays)} matrices together")
        return np.concatenate(arrays, axis=axis)

    def each(self, function: Callable[[slice], None], n: int, width: int) -> None:
        jobs = [partial(function, rows) for rows in self._strips(n, width)]
        self._run(jobs, n * width)

    def total(self, function: Callable[[slice], Any], n: int, width: int) -> Any:
        strips = self._strips(n, width) or [slice(0, 0)]

        def share(worker: int) -> Any:
            return sum(function(rows) for rows in strips[worker :: self.workers])

        busy = range(min(self.workers, len(strips)))
        return sum(self._run([partial(share, worker) for worker in busy], n * width))

    def picked(self, column: Array, places: Array) -> Array:
        return np.flatnonzero(column)[places]

    def drawn(self, cumulative_of: Array, u: Array) -> Array:
        cumulative = np.cumsum(cumulative_of)
        rows = np.searchsorted(cumulative, u * cumulative[-1], side="right")
        return np.minimum(rows, np.flatnonzero(cumulative_of)[-1])

    def cholesky(self, A: Array) -> Array:
        return cholesky(A, lower=True, check_finite=False)

    def triangular(self, L: Array, B: Array, *, transposed: bool = False) -> Array:
        return solve_triangular(
            L, B, lower=True, trans="T" if transposed else "N", check_finite=False
        )

    def eigh(self, A: Array, cut: float | None = None) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(A)
        dropped = 0 if cut is None else int((values <= cut * values[-1]).sum())
        kept = np.ascontiguousarray(vectors[:, dropped:][:, ::-1])
        return np.ascontiguousarray(values[dropped:][::-1]), self.frozen(kept)

    def solve_triangular(self, L: Array, B: Array) -> Array:
        return solve_triangular(L, B, lower=True, check_finite=False)

    def definite(self, A: Array) -> Callable[[Array], Array]:
        factor = cho_factor(A, lower=True)
        return lambda B: cho_solve(factor, B)

    def _strips(self, n: int, width: int) -> list[slice]:
        longest = max(self.tile, _STRIP // max(width, 1))
        return slices(n, min(longest, -(-n // self.workers) or 1))

    def _by_rows(self, strip: Callable[[slice, Array], None], t: int, width: int, n: int) -> Tall:
        """A matrix (t, width) of which ``strip`` fills rows, each from n kernel values."""
        out = self.empty(t, width)
        if t:
            rows = slices(t, min(self.tile, -(-t // self.workers)))
            self._run([partial(strip, r, out[r]) for r in rows], t * n)
        return Tall(self, (out,))

    def _run(self, jobs: list[Any], evaluations: int) -> list[Any]:
        return in_threads(self.workers if evaluations >= _SMALL else 1, jobs)


def _counted(workers: Any) -> int:
    if not isinstance(workers, Integral) or isinstance(workers, bool) or workers < 1:
        raise ValueError(
            "workers must be a whole number from 1 up, or None for all cores that this process may "
            f"use, got {workers!r}."
        )
    return int(workers)


def _doubling(F: Tall, A: Array) -> Iterator[tuple[Array, Array]]:
    """Columns of F with those of A, transposed, whose products add up to F Aᵀ.

    Each time as many as before: columns of F fall off, so that later sums round less apart.
    """
    for panel, place in F.placed():
        first = place.start
        while first < place.stop:
            stop = min(2 * first or 16, place.stop)
            yield panel[:, first - place.start : stop - place.start], A[:, first:stop].T
            first = stop


def _add(squares: Array, k: Array, weights: Tall, cols: slice) -> None:
    """squares += Σ_j w_j k_ij², j being ``cols`` and k used up."""
    if weights.ones:
        squares += np.vecdot(k, k)
    else:
        squares += np.square(k, out=k) @ weights.whole()[cols, 0]


def _narrowest(T: Tall) -> tuple[Tall, Array | None]:
    """(T', R) with T = T' R, by which products are cheapest; R is None where T is formed."""
    if T.right is None:
        return T, None
    if T.right.shape[1] < T.right.shape[0]:
        return T.held(), None
    return T.unmixed, T.right


def _operand(kernel: Kernel, T: Tall, weights: Tall | None, dtype: np.dtype) -> tuple[Array, int]:
    """diag(w) T in a precision, times a power of two: weights of any size are then held, and
    products with small values of a distance's kernel are normal numbers, many times faster."""
    scale = 1.0 if weights is None or weights.ones else weights.whole()
    if dtype == np.float64 and np.ndim(scale) == 0 and len(T.panels) == 1:
        return T.panels[0], 0
    out = np.empty(T.shape, dtype=dtype)
    largest, top = 0.0, 80 if kernel.geometry == "distance" else 0
    if dtype == np.float32:
        largest = float(np.max(scale, initial=0.0)) * T.largest
    lift = top - int(np.frexp(largest)[1]) if 0 < largest < np.inf else 0
    factor = np.ldexp(scale, lift)
    for panel, place in T.placed():
        np.multiply(panel, factor, out=out[:, place], casting="same_kind")
    return out, lift


def _filler(P: Points, Q: Points, dtype: Any) -> Filler:
    """A function that writes k(P[rows], Q[columns]) to the left columns of an array.

    ‖u − v‖² = (−2u, ‖u‖², 1)·(v, 1, ‖v‖²) is one matrix product; rounding can push it below 0,
    hence the clipping. In single precision it is clipped from above too: subnormal kernel values
    would be many times slower. Among points far out, distances are taken of differences.
    """
    kernel = P.kernel
    dtype = np.dtype(dtype)
    if kernel.geometry == "opaque":
        return _opaque_filler(P, Q)

    left, right = _form(P, "left", dtype), _form(Q, "right", dtype)
    is_distance = kernel.geometry == "distance"
    farthest = kernel.reach if is_distance and dtype == np.float32 else np.inf  # type: ignore[attr-defined]

    far_P, far_Q = P.far(), Q.far()
    any_far = far_P.any() and far_Q.any()

    def fill(rows: slice, cols: slice, out: Array) -> Array:
        s = out[:, : cols.stop - cols.start]
        np.matmul(left[rows], right[cols].T, out=s)
        if any_far:
            i, j = np.flatnonzero(far_P[rows]), np.flatnonzero(far_Q[cols])
            s[np.ix_(i, j)] = cdist(P.U[rows][i], Q.U[cols][j], "sqeuclidean")
        if is_distance:
            np.clip(s, 0, farthest, out=s)
        k = kernel.evaluate(s, np)
        if k is not s:
            s[:] = k
        return s

    return fill


def _opaque_filler(P: Points, Q: Points) -> Filler:
    def fill(rows: slice, cols: slice, out: Array) -> Array:
        s = out[:, : cols.stop - cols.start]
        s[:] = P.kernel.block(P.U[rows], Q.U[cols])
        return s

    return fill


def _form(points: Points, side: str, dtype: np.dtype) -> Array:
    """The points as rows whose products are what the kernel is a function of."""

    def make() -> Array:
        U = points.U
        if points.kernel.geometry == "distance":
            squares = np.einsum("ij,ij->i", U, U)
            ones = np.ones(len(U))
            columns = [-2 * U, squares, ones] if side == "left" else [U, ones, squares]
            U = np.column_stack(columns)
        return np.ascontiguousarray(U, dtype=dtype)

    return points.kept((side, dtype.name), make)
