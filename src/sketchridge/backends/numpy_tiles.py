"""Kernel products on the CPU: small tiles of k(X, Z) in cache, one thread a row of tiles."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np
from scipy.linalg import solve_triangular
from threadpoolctl import ThreadpoolController

from sketchridge.backends.base import Backend
from sketchridge.kernels import Kernel

__all__ = ["NumpyTiles"]

Array = np.ndarray
T = TypeVar("T")
Filler = Callable[[slice, slice, Array], Array]
_SMALL = 2**16  # kernel evaluations below which threads cost more than they save


class NumpyTiles(Backend):
    """The reference backend.

    Parameters
    ----------
    dtype : precision of tiles and products.
    memory : bytes that all tiles together may take, and the sums of all threads where each has its own.
    workers : number of threads; all available cores unless given.
    tile : the longest side of a tile; 512 keeps one in a core's cache.
    """

    name = "numpy"

    def __init__(self, dtype: str = "float64", *, memory: int = 2**28, workers: int | None = None, tile: int = 512) -> None:
        self.precision, self.dtype = str(np.dtype(dtype)), np.dtype(dtype)
        self.eps, self.far = float(np.finfo(dtype).eps), 1e-24 if self.dtype == np.float32 else 0.0
        self.workers = workers or len(os.sched_getaffinity(0))
        self.memory = memory
        side = int(np.sqrt(memory / (3 * self.workers * self.dtype.itemsize)))
        self.tile = max(1, min(tile, side))

    def alone(self) -> AbstractContextManager[object]:
        """BLAS held to one thread: its idle threads spin for a while, on the cores that the tiles need."""
        return _controller().limit(limits=1, user_api="blas")

    def matmul(self, kernel: Kernel, X: Array, Z: Array, V: Array) -> Array:
        lift = _lift(kernel, V) if self.dtype == np.float32 else 0
        order: Any = "F" if self.dtype == np.float64 else "C"  # as OpenBLAS is fastest
        V = np.asarray(np.ldexp(V, lift) if lift else V, dtype=self.dtype, order=order)
        fill = _tile_filler(kernel, X, Z, self.dtype)
        if X is Z and self._worth_mirroring(V):
            return np.ldexp(self._mirrored(fill, V, order), -lift)

        def strip(rows: slice, out: Array) -> None:
            tile, part = self._scratch(rows, self.tile), self._scratch(rows, V.shape[1], order)
            for cols in _slices(len(Z), self.tile):
                out += np.matmul(fill(rows, cols, tile), V[cols], out=part)
            np.ldexp(out, -lift, out=out)

        return self._fill_rows(strip, np.zeros((len(X), V.shape[1])), len(Z))

    def _worth_mirroring(self, V: Array) -> bool:
        """Whether there are tiles enough to share out evenly, and memory for each thread's own sums."""
        return len(V) >= 4 * self.workers * self.tile and 8 * V.size * self.workers <= self.memory

    def _mirrored(self, fill: Filler, V: Array, order: Any) -> Array:
        """k(X, X) @ V from the tiles on and above the diagonal, each used as it is and transposed: half of the evaluations.

        Threads sum their tiles apart, so that the result does not depend on which is first.
        """
        blocks = _slices(len(V), self.tile)

        def share(worker: int) -> Array:
            out, tile = np.zeros(V.shape), self._scratch(blocks[0], self.tile)
            part = self._scratch(blocks[0], V.shape[1], order)
            for i, rows in enumerate(blocks):
                if min(i % (2 * self.workers), -(i + 1) % (2 * self.workers)) != worker:  # 0 1 … 1 0 0 1 …: as much for each
                    continue
                for cols in blocks[i:]:
                    k = fill(rows, cols, tile[: rows.stop - rows.start])
                    out[rows] += np.matmul(k, V[cols], out=part if len(k) == len(part) else None)
                    if cols != rows:
                        out[cols] += np.matmul(k.T, V[rows], out=part if len(k.T) == len(part) else None)
            return out

        return np.sum(self._run([partial(share, w) for w in range(self.workers)], len(V) ** 2), axis=0)

    def residual_sqnorm(self, kernel: Kernel, X: Array, Z: Array, H: Array, C: Array) -> Array:
        H, C = np.asarray(H, dtype=self.dtype), np.asarray(C, dtype=self.dtype)
        fill = _tile_filler(kernel, X, Z, self.dtype)

        def strip(rows: slice, out: Array) -> None:
            tile = self._scratch(rows, self.tile)
            for cols in _slices(len(Z), self.tile):
                r = fill(rows, cols, tile)
                if H.shape[1]:
                    r -= C[rows] @ H[cols].T
                out += np.einsum("ij,ij->i", r, r)

        return self._fill_rows(strip, np.zeros(len(X)), len(Z))

    def block(self, kernel: Kernel, X: Array, Z: Array) -> Array:
        fill = _tile_filler(kernel, X, Z, np.dtype(float))

        def strip(rows: slice, out: Array) -> None:
            for cols in _slices(len(Z), self.tile):
                fill(rows, cols, out[:, cols])

        return self._fill_rows(strip, np.empty((len(X), len(Z))), len(Z))

    def schur(self, kernel: Kernel, X: Array, Z: Array, F: Array, F_Z: Array, L: Array) -> Array:
        fill = _tile_filler(kernel, X, Z, np.dtype(float))

        def strip(rows: slice, out: Array) -> None:
            C = fill(rows, slice(0, len(Z)), np.empty(out.shape)) - F[rows] @ F_Z.T
            out[:] = solve_triangular(L, C.T, lower=True, check_finite=False).T

        return self._fill_rows(strip, np.empty((len(X), len(Z))), len(Z))

    def gram(self, F: Array, G: Array | None = None) -> Array:
        G = F if G is None else G

        def strip(rows: slice) -> Array:
            return F[rows].T @ G[rows]

        rows = _slices(len(F), max(self.tile, -(-len(F) // self.workers)))
        return np.sum(self._run([partial(strip, r) for r in rows], F.size), axis=0)

    def product(self, F: Array, V: Array) -> Array:
        def strip(rows: slice, out: Array) -> None:
            np.matmul(F[rows], V, out=out)

        return self._fill_rows(strip, np.empty((len(F), V.shape[1])), F.shape[1])

    def leverages(self, H: Array, D: Array) -> Array:
        def strip(rows: slice, out: Array) -> None:
            np.matmul(H[rows] ** 2, D, out=out)

        return self._fill_rows(strip, np.empty((len(H), D.shape[1])), H.shape[1])

    def _scratch(self, rows: slice, width: int, order: Any = "C") -> Array:
        return np.empty((rows.stop - rows.start, width), dtype=self.dtype, order=order)

    def _fill_rows(self, strip: Callable[[slice, Array], None], out: Array, n: int) -> Array:
        """Let ``strip`` fill every row of tiles of ``out``, each from n columns of the kernel matrix."""
        if out.size:
            rows = _slices(len(out), min(self.tile, -(-len(out) // self.workers)))
            self._run([partial(strip, r, out[r]) for r in rows], len(out) * n)
        return out

    def _run(self, jobs: list[partial[T]], evaluations: int) -> list[T]:
        with self.alone():
            if evaluations < _SMALL or self.workers == 1:
                return [job() for job in jobs]
            with ThreadPoolExecutor(self.workers) as pool:
                return list(pool.map(lambda job: job(), jobs))


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _slices(n: int, size: int) -> list[slice]:
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def _tile_filler(kernel: Kernel, X: Array, Z: Array, dtype: np.dtype) -> Filler:
    """A function that writes k(X[rows], Z[columns]) to the left columns of an array, and returns them.

    −‖u − v‖² = (2u, −‖u‖², 1)·(v, 1, −‖v‖²) is one matrix product; rounding can push it above 0, hence the clipping. In single
    precision it is clipped from below too: subnormal kernel values would be many times slower.
    """
    U, V = (kernel.coordinates(np.asarray(A, dtype=float)) for A in (X, Z))
    if kernel.geometry == "distance":
        left = np.column_stack([2 * U, -_sqnorm(U), np.ones(len(U))]).astype(dtype)
        right = np.column_stack([V, np.ones(len(V)), -_sqnorm(V)]).astype(dtype)
    else:
        left, right = np.asarray(U, dtype=dtype), np.asarray(V, dtype=dtype)
    lowest = -kernel.reach if kernel.geometry == "distance" and dtype == np.float32 else None  # type: ignore[attr-defined]

    def fill(rows: slice, cols: slice, out: Array) -> Array:
        s = out[:, : cols.stop - cols.start]
        if kernel.geometry == "opaque":
            s[:] = kernel.block(U[rows], V[cols])
            return s
        np.matmul(left[rows], right[cols].T, out=s)
        if kernel.geometry == "distance":
            np.clip(s, lowest, 0, out=s)
        kernel.profile(s, np)
        return s

    return fill


def _lift(kernel: Kernel, V: Array) -> int:
    """The power of two that brings V to 2⁸⁰: products with small kernel values are then normal numbers, many times faster."""
    largest = np.abs(V).max(initial=0.0)
    return 80 - int(np.frexp(largest)[1]) if kernel.geometry == "distance" and 0 < largest < np.inf else 0


def _sqnorm(U: Array) -> Array:
    return np.einsum("ij,ij->i", U, U)
