"""The factor F of the sketched kernel matrix, Ĝ = n K̂ = F Fᵀ, and its features: stable m×m algebra in float64."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from sketchridge.backends.base import Backend
from sketchridge.kernels import Kernel
from sketchridge.sketches import EntrySketch, RowSketch, Sketch

__all__ = ["EntryFactor", "Factor", "RowFactor", "factorize", "spectrum"]

Array = np.ndarray
_EPS = np.finfo(float).eps
_BLOCK = 128  # landmarks taken at a time
_CHUNK = 4096  # sketch columns held at a time


class Factor(ABC):
    """F (n, r) with Ĝ = F Fᵀ, for one sketch, kernel and set of points.

    ``sensitivity`` (r,) is Σ_l M_jl² ‖S_l‖‖G S_l‖ for F = (G Sᵀ) Mᵀ: how much column j amplifies rounding in W = S G Sᵀ.
    """

    sketch: Sketch
    F: Array
    sensitivity: Array

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether Ĝ = G up to rounding, so that a larger sketch would change nothing."""

    @property
    def noise(self) -> float:
        """What rounding in W may put K̂ off by: each column's share of tr K̂ times the relative error of its pivot."""
        squares = np.einsum("ij,ij->j", self.F, self.F) / len(self.F)
        return float(self.sketch.size * _EPS * squares @ self.sensitivity)

    @abstractmethod
    def features(self, backend: Backend, kernel: Kernel, X: Array, X_new: Array) -> Array:
        """ψ(x) (t, r), so that ψ(x)ᵀψ(z) is the sketched kernel and ψ(x_i) is row i of F."""

    @abstractmethod
    def extended(self, backend: Backend, kernel: Kernel, X: Array) -> Factor:
        """The factor of X, whose first rows are the points this one was made of."""

    @abstractmethod
    def grown(self, backend: Backend, kernel: Kernel, X: Array, size: int) -> Factor:
        """The factor with a sketch of ``size`` rows, or fewer where the numerical rank runs out."""


def factorize(backend: Backend, kernel: Kernel, X: Array, sketch: Sketch) -> Factor:
    """The factor of the kernel matrix of X for a sketch as it stands."""
    if isinstance(sketch, RowSketch):
        return RowFactor.empty(sketch, kernel.diag(X)).with_landmarks(backend, kernel, X, sketch.indices)
    if isinstance(sketch, EntrySketch):
        sums = _sketched_sums(backend, kernel, X, X, sketch, range(sketch.size))
        return EntryFactor.of(sketch, sums, kernel.diag(X))
    raise TypeError(f"No factor for a sketch of type {type(sketch).__name__}.")


def spectrum(backend: Backend, F: Array) -> tuple[Array, Array]:
    """E (r,) in descending order and V (r, r) with FᵀF/n = V E Vᵀ; directions at rounding level are dropped. O(nr²)."""
    if not F.shape[1]:
        return np.empty(0), np.empty((0, 0))
    E, V = np.linalg.eigh(backend.gram(F) / len(F))
    keep = len(E) * _EPS * E[-1] < E
    return E[keep][::-1], V[:, keep][:, ::-1]


@dataclass(frozen=True, eq=False)
class RowFactor(Factor):
    """F = k(X, X_p) L⁻ᵀ with L the Cholesky factor of k(X_p, X_p): a sketch that selects points p.

    Column by column nothing ever changes when points or landmarks are added. Landmarks whose residual is at rounding level are
    passed over, so p can be shorter than the sketch.
    """

    sketch: RowSketch
    pivots: Array  # (r,)
    L: Array  # (r, r), lower triangular
    F: Array  # (n, r)
    diag: Array  # (n,): k(x, x)
    residual: Array  # (n,): diag(G − Ĝ), zero at rounding level

    @classmethod
    def empty(cls, sketch: RowSketch, diag: Array) -> RowFactor:
        none = np.empty(0, dtype=np.intp)
        return cls(sketch, none, np.empty((0, 0)), np.empty((len(diag), 0)), diag, diag)

    @property
    def complete(self) -> bool:
        return self.sketch.size >= len(self.F) or not self.residual.any()

    @property
    def sensitivity(self) -> Array:  # type: ignore[override]
        scale = np.sqrt(self.diag[self.pivots])
        return (solve_triangular(self.L, np.diag(scale), lower=True, check_finite=False) ** 2).sum(axis=1)

    def features(self, backend: Backend, kernel: Kernel, X: Array, X_new: Array) -> Array:
        none_new, none = np.empty((len(X_new), 0)), np.empty((len(self.pivots), 0))
        return backend.schur(kernel, X_new, X[self.pivots], none_new, none, self.L)

    def extended(self, backend: Backend, kernel: Kernel, X: Array) -> RowFactor:
        n_old = len(self.F)
        F_new = self.features(backend, kernel, X, X[n_old:])
        diag = np.concatenate([self.diag, kernel.diag(X[n_old:])])
        F = np.concatenate([self.F, F_new])
        residual = _above_rounding(diag - np.einsum("ij,ij->i", F, F), diag, F.shape[1])
        return RowFactor(self.sketch, self.pivots, self.L, F, diag, residual)

    def grown(self, backend: Backend, kernel: Kernel, X: Array, size: int) -> RowFactor:
        """Landmarks are proposed by the sketch from what the earlier ones leave unexplained: O(n r²) in all."""
        build = _Cholesky(self, backend, kernel, X, capacity=size - self.sketch.size)
        sketch = self.sketch
        while sketch.size < size and build.residual.any():
            sketch = sketch.with_rows(build.take(*sketch.propose(min(_BLOCK, size - sketch.size), build.residual)))
        return build.factor(sketch)

    def with_landmarks(self, backend: Backend, kernel: Kernel, X: Array, indices: Array) -> RowFactor:
        """The factor with landmarks that its sketch already holds."""
        build = _Cholesky(self, backend, kernel, X, capacity=len(indices))
        for start in range(0, len(indices), _BLOCK):
            rows = indices[start : start + _BLOCK]
            build.take(rows, np.zeros(len(rows)))
        return build.factor(self.sketch)


class _Cholesky:
    """A RowFactor under construction: blocks of columns are appended in place."""

    def __init__(self, start: RowFactor, backend: Backend, kernel: Kernel, X: Array, *, capacity: int) -> None:
        self.backend, self.kernel, self.X, self.diag = backend, kernel, X, start.diag
        self.pivots, self.residual, r = list(start.pivots), start.residual.copy(), start.F.shape[1]
        self.F, self.L = np.empty((len(X), r + capacity)), np.zeros((r + capacity, r + capacity))
        self.F[:, :r], self.L[:r, :r] = start.F, start.L

    def take(self, rows: Array, shares: Array) -> Array:
        """Append the candidates that keep their share of residual, which is all that are independent where it is 0."""
        r = len(self.pivots)
        F = self.F[:, :r]
        accepted, corner = self._accept(rows, shares)
        stop = r + len(accepted)
        new = self.backend.schur(self.kernel, self.X, self.X[accepted], F, F[accepted], corner)  # (n, b)
        new[accepted] = corner
        self.F[:, r:stop], self.L[r:stop, :r], self.L[r:stop, r:stop] = new, F[accepted], corner
        self.pivots.extend(accepted)
        self.residual = _above_rounding(self.residual - np.einsum("ij,ij->i", new, new), self.diag, stop)
        return accepted

    def _accept(self, rows: Array, shares: Array) -> tuple[Array, Array]:
        """Cholesky steps on the candidates' residual block; the accepted rows and their triangular factor."""
        F = self.F[rows, : len(self.pivots)]
        M = self.backend.block(self.kernel, self.X[rows], self.X[rows]) - F @ F.T  # (b, b)
        floor = _rank_floor(self.diag[rows], len(self.pivots) + len(rows))
        needed = shares * np.diagonal(M)
        places, columns = [], []
        for j in range(len(rows)):
            if M[j, j] <= floor[j]:
                self.residual[rows[j]] = 0
            elif M[j, j] > needed[j]:
                places.append(j)
                columns.append(M[:, j] / np.sqrt(M[j, j]))
                M -= np.outer(columns[-1], columns[-1])
        corner = np.array(columns).reshape(len(places), len(rows))[:, places].T
        return rows[places], np.tril(corner)

    def factor(self, sketch: RowSketch) -> RowFactor:
        r = len(self.pivots)
        pivots = np.array(self.pivots, dtype=np.intp)
        return RowFactor(sketch, pivots, self.L[:r, :r], self.F[:, :r], self.diag, self.residual)


@dataclass(frozen=True, eq=False)
class EntryFactor(Factor):
    """F = (G Sᵀ) R with R Rᵀ = (S G Sᵀ)⁺: a sketch with entries everywhere. The raw sums G Sᵀ are kept, to be added to."""

    sketch: EntrySketch
    sums: Array  # (n, m)
    diag: Array  # (n,): k(x, x)
    R: Array  # (m, r)
    F: Array  # (n, r)
    sensitivity: Array  # (r,)

    @classmethod
    def of(cls, sketch: EntrySketch, sums: Array, diag: Array) -> EntryFactor:
        """R = D Q Ω^(−1/2) from D (S G Sᵀ) D = Q Ω Qᵀ, with D scaling its diagonal to 1 and ω at rounding level dropped."""
        if not sketch.size:
            return cls(sketch, sums, diag, np.empty((0, 0)), sums, np.empty(0))
        W, sizes = np.zeros((sketch.size, sketch.size)), np.zeros(sketch.size)
        for columns, S in _chunks(sketch, range(sketch.size), 0, len(sums)):
            W += S @ sums[columns]
            sizes += (S**2).sum(axis=1)
        d = np.diagonal(W)
        scale = np.where(d > 0, 1 / np.sqrt(np.where(d > 0, d, 1)), 0)
        omega, Q = np.linalg.eigh(scale[:, None] * (W + W.T) / 2 * scale)
        keep = omega > len(omega) * _EPS * omega[-1]
        R = scale[:, None] * Q[:, keep] / np.sqrt(omega[keep])
        return cls(sketch, sums, diag, R, sums @ R, (np.sqrt(sizes) * np.linalg.norm(sums, axis=0)) @ R**2)

    @property
    def complete(self) -> bool:
        left = self.diag.mean() - np.einsum("ij,ij->", self.F, self.F) / len(self.F)
        return bool(left <= 8 * (self.noise + self.sketch.size * _EPS * self.diag.mean()))

    def features(self, backend: Backend, kernel: Kernel, X: Array, X_new: Array) -> Array:
        return _sketched_sums(backend, kernel, X_new, X, self.sketch, range(self.sketch.size)) @ self.R

    def extended(self, backend: Backend, kernel: Kernel, X: Array) -> EntryFactor:
        """Old rows gain k(X_old, X_new) S_newᵀ, new rows are k(X_new, X) Sᵀ: O(m n n_new)."""
        n_old, rows = len(self.sums), range(self.sketch.size)
        old = self.sums + _sketched_sums(backend, kernel, X[:n_old], X, self.sketch, rows, start=n_old)
        new = _sketched_sums(backend, kernel, X[n_old:], X, self.sketch, rows)
        return EntryFactor.of(self.sketch, np.concatenate([old, new]), kernel.diag(X))

    def grown(self, backend: Backend, kernel: Kernel, X: Array, size: int) -> EntryFactor:
        sketch = self.sketch.grown(size)
        new = _sketched_sums(backend, kernel, X, X, sketch, range(self.sketch.size, size))
        return EntryFactor.of(sketch, np.concatenate([self.sums, new], axis=1), self.diag)


def _sketched_sums(
    backend: Backend, kernel: Kernel, X_new: Array, X: Array, sketch: EntrySketch, rows: range, *, start: int = 0
) -> Array:
    """k(X_new, X) S[rows]ᵀ, over the points of X from ``start`` on: (t, len(rows))."""
    sums = np.zeros((len(X_new), len(rows)))
    for columns, S in _chunks(sketch, rows, start, len(X)):
        sums += backend.matmul(kernel, X_new, X[columns], S.T)
    return sums


def _chunks(sketch: EntrySketch, rows: range, start: int, stop: int):  # type: ignore[no-untyped-def]
    for i in range(start, stop, _CHUNK):
        columns = range(i, min(i + _CHUNK, stop))
        yield slice(columns.start, columns.stop), sketch.entries(rows, columns)


def _rank_floor(diag: Array, rank: int) -> Array:
    """The residual below which rounding decides."""
    return (rank + 1) * _EPS * diag


def _above_rounding(residual: Array, diag: Array, rank: int) -> Array:
    return np.where(residual > _rank_floor(diag, rank), residual, 0.0)
