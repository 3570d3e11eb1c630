"""Dense Cholesky factors of n×n matrices, where a backend computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchridge.backends.slices import slices
from sketchridge.backends.tall import Tall

__all__ = ["Cholesky"]

Array = np.ndarray
COLUMNS = 2048  # of a matrix handled at a time


class Cholesky:
    """L Lᵀ = M for a positive definite M (n, n), an array of the backend's, which is overwritten.

    Block by block: the threaded LAPACK routine of OpenBLAS corrupts memory from about n = 15,000
    up, and a GPU has no room for copies of the matrix.
    """

    def __init__(self, backend: Any, M: Any) -> None:
        self.backend = backend
        self.L = M.T  # of M by rows: columns lie together, as triangular solvers like them
        self.blocks = slices(len(M), COLUMNS)
        for j in self.blocks:
            done = slice(0, j.start)
            if j.start:
                self.L[j.start :, j] -= self.L[j.start :, done] @ self.L[j, done].T
            self.L[j, j] = backend.cholesky(self.L[j, j])
            below = self._below(j)
            self.L[below, j] = backend.triangular(self.L[j, j], self.L[below, j].T).T

    def __len__(self) -> int:
        return len(self.L)

    def half(self, B: Tall) -> Tall:
        """L⁻¹B, for B (n, t)."""
        if self._undivided:
            return Tall(self.backend, (self.backend.triangular(self.L, B.whole()),))
        return Tall(self.backend, (self._forward(self._copied(B), 0),))

    def solve(self, B: Tall) -> Tall:
        """M⁻¹B, for B (n, t)."""
        return self.finish(self.half(B))

    def finish(self, half: Tall) -> Tall:
        """L⁻ᵀ of what `half` gave."""
        if self._undivided:
            whole = self.backend.triangular(self.L, half.whole(), transposed=True)
            return Tall(self.backend, (whole,))
        Y = self._copied(half)
        for j in reversed(self.blocks):
            below = self._below(j)
            Y[j] -= self.L[below, j].T @ Y[below]
            Y[j] = self.backend.triangular(self.L[j, j], Y[j], transposed=True)
        return Tall(self.backend, (Y,))

    def inverse_diagonal(self) -> Array:
        """The diagonal of M⁻¹, the column norms² of L⁻¹: (n,). O(n³)."""
        parts = []
        for j in self.blocks:
            columns = self.backend.array(np.eye(len(self) - j.start, j.stop - j.start))
            below = self._forward(columns, j.start)
            parts.append(self.backend.host((below * below).sum(axis=0)))
        return np.concatenate(parts)

    def _forward(self, Y: Any, first: int) -> Any:
        """L⁻¹Y in place of Y, for the rows and columns of L from ``first`` on."""
        for j in self.blocks:
            if j.start < first:
                continue
            here, below = (slice(s.start - first, s.stop - first) for s in (j, self._below(j)))
            Y[here] = self.backend.triangular(self.L[j, j], Y[here])
            Y[below] -= self.L[self._below(j), j] @ Y[here]
        return Y

    @property
    def _undivided(self) -> bool:
        """Whether the backend solves with L in one piece: nothing is copied then."""
        return self.backend.undivided or len(self.blocks) == 1

    def _below(self, block: slice) -> slice:
        return slice(block.stop, len(self))

    def _copied(self, B: Tall) -> Any:
        out = self.backend.empty(*B.shape)
        out[:] = B.whole()
        return out
