"""Products with the kernel of labeled points that grow with the labels of a campaign.

With a sketch S whose old entries never change, S k_x accumulates over new labels. Hᵀk_x does not,
since H = R P changes in every round: it is a product with k(labeled, pool), which `Held` keeps and
`Streamed` computes anew in double precision on a backend of the library.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from sketchridge.backends import as_backend
from sketchridge.kernels import Gaussian
from sketchridge.sketches import GaussianSketch

__all__ = ["Held", "Labeled", "PoolProducts", "Streamed", "gaussian_block", "median_distance"]

Array = np.ndarray
_PAIRS = 20_000  # of which the median distance is taken
_BLOCK = 2**24  # entries of a kernel block


def median_distance(X: Array, seed: int) -> float:
    """The median distance of 20,000 pairs of rows."""
    rng = np.random.default_rng([seed, 2])
    i, j = rng.integers(len(X), size=(2, _PAIRS))
    apart = i != j
    return float(np.median(np.linalg.norm(X[i[apart]] - X[j[apart]], axis=1)))


def gaussian_block(U: Array, V: Array) -> Array:
    """exp(−‖u − v‖²/2) in the precision of U and V: (t, n)."""
    s = U @ V.T
    s -= (U**2).sum(axis=1)[:, None] / 2
    s -= (V**2).sum(axis=1) / 2
    np.minimum(s, 0, out=s)
    return np.exp(s, out=s)


class Labeled:
    """The labeled points: R = G Sᵀ, W = S R, and S k_x at test points, all in float64.

    Columns of S for m_max rows are drawn at once, so that a sketch of fewer rows is its first ones.
    """

    def __init__(self, X: Array, X_test: Array, m_max: int, seed: int) -> None:
        self.X = X
        self.X_test = X_test
        self.sketch = GaussianSketch(m_max, seed)
        self.ids = np.empty(0, dtype=int)
        self.S = np.empty((m_max, 0))
        self.R = np.empty((0, m_max))
        self.t_test = np.zeros((m_max, len(X_test)))

    def add(self, ids: Array) -> Array:
        """Their columns of S: (m_max, t). O(n t m) for n labels."""
        n = len(self.ids)
        new = self.X[ids]
        S_new = self.sketch.entries(range(self.sketch.size), range(n, n + len(ids)))
        old = self.X[self.ids]
        R_new = gaussian_block(new, new) @ S_new.T
        for rows in slices(n, len(ids)):
            K = gaussian_block(old[rows], new)
            self.R[rows] += K @ S_new.T
            R_new += K.T @ self.S[:, rows].T
        for rows in slices(len(self.X_test), len(ids)):
            self.t_test[:, rows] += S_new @ gaussian_block(new, self.X_test[rows])
        self.R = np.concatenate([self.R, R_new])
        self.S = np.concatenate([self.S, S_new], axis=1)
        self.ids = np.concatenate([self.ids, ids])
        return S_new


class PoolProducts(ABC):
    """What scores need at the rows of the pool."""

    @abstractmethod
    def add(self, ids: Array, S_new: Array, rows: Array) -> None:
        """New labels with their columns of S; ``rows`` of the pool are still open."""

    @abstractmethod
    def sketched(self, rows: Array) -> Array:
        """S k_x: (m_max, t)."""

    @abstractmethod
    def moments(self, H: Array, rows: Array) -> tuple[Array, Array]:
        """‖k_x‖² (t,) and Hᵀk_x (r, t), with H (n, r)."""


class Held(PoolProducts):
    """k(labeled, pool) in one precision, a block for each round, or S k_x alone.

    Scores are weights of a draw. In single precision, 4 bytes per number, the sums behind V2 are
    right to about 1e-6 of ‖k_x‖²: enough where V2·α² is 1e-4 of it or more, which `real` sees to.
    """

    def __init__(self, X: Array, m_max: int, *, keep: bool, dtype: type) -> None:
        self.X: Array = X.astype(dtype)
        self.keep = keep
        self.blocks: list[tuple[Array, Array]] = []  # open rows at the time, k(new, those)
        self.t = np.zeros((m_max, len(X)))
        self.squares = np.zeros(len(X))

    def add(self, ids: Array, S_new: Array, rows: Array) -> None:
        K = np.empty((len(ids) if self.keep else 0, len(rows)), dtype=self.X.dtype)
        S = S_new.astype(self.X.dtype)
        for part in slices(len(rows), len(ids)):
            block = gaussian_block(self.X[ids], self.X[rows[part]])
            self.t[:, rows[part]] += S @ block
            if self.keep:
                K[:, part] = block
                self.squares[rows[part]] += np.einsum("ij,ij->j", block, block)
        if self.keep:
            self.blocks.append((rows, K))

    def sketched(self, rows: Array) -> Array:
        return self.t[:, rows]

    def moments(self, H: Array, rows: Array) -> tuple[Array, Array]:
        left = np.ascontiguousarray(H.T, dtype=self.X.dtype)
        b = np.zeros((H.shape[1], len(self.X)), dtype=self.X.dtype)
        start = 0
        for columns, K in self.blocks:
            stop = start + len(K)
            for part in slices(len(columns), H.shape[1]):
                b[:, columns[part]] += left[:, start:stop] @ K[:, part]
            start = stop
        return self.squares[rows], b[:, rows].astype(float)


class Streamed(PoolProducts):
    """k(labeled, pool) computed anew in every round by a backend of the library, say on a GPU."""

    def __init__(self, X: Array, m_max: int, backend: str) -> None:
        self.X = X
        self.ids = np.empty(0, dtype=int)
        self.S = np.empty((m_max, 0))
        self.backend = as_backend(backend, len(X))
        self.kernel = Gaussian(bandwidth=1.0)

    def add(self, ids: Array, S_new: Array, rows: Array) -> None:
        self.ids = np.concatenate([self.ids, ids])
        self.S = np.concatenate([self.S, S_new], axis=1)

    def sketched(self, rows: Array) -> Array:
        return self.moments(self.S.T, rows)[1]

    def moments(self, H: Array, rows: Array) -> tuple[Array, Array]:
        P = self._placed(self.X[rows])
        Q = self._placed(self.X[self.ids])
        T = self.backend.tall(H)
        ones = self.backend.tall(np.ones((len(H), 1)))
        squares, b = self.backend.moments(P, Q, T, weights=ones, precision="float64")
        return squares, b.host().T

    def _placed(self, X: Array) -> Any:
        return self.backend.place(self.kernel, self.kernel.coordinates(X))


def slices(n: int, width: int) -> list[slice]:
    """Of n rows, so short that blocks of that width stay small."""
    step = max(_BLOCK // max(width, 1), 1)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
