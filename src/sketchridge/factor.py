"""The factor F of the sketched kernel matrix, Ĝ = n K̂ = F Fᵀ, and its features: stable m×m algebra in float64."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchridge.backends.base import Array, Backend
from sketchridge.kernels import Kernel
from sketchridge.sketches import CELL, EntrySketch, RademacherSketch, RowSketch, Sketch

__all__ = ["EntryFactor", "Factor", "RowFactor", "factorize", "spectrum"]

_EPS = np.finfo(float).eps
_BLOCK = 128  # landmarks taken at a time


class Factor(ABC):
    """F (n, r) with Ĝ = F Fᵀ, for one sketch, kernel and set of points."""

    sketch: Sketch
    F: Array
    gram: Array  # FᵀF/n

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether Ĝ = G up to rounding, so that a larger sketch would change nothing."""

    @property
    def squares(self) -> Array:
        """Each column's share of tr K̂: (r,)."""
        return self.gram.diagonal()

    @abstractmethod
    def sensitivity(self, backend: Backend) -> Array:
        """Σ_l M_jl² ‖S_l‖‖G S_l‖ for F = (G Sᵀ) Mᵀ: how much column j amplifies rounding in W = S G Sᵀ: (r,)."""

    def noise(self, backend: Backend) -> float:
        """What rounding in W may put K̂ off by: each column's share of tr K̂ times the relative error of its pivot."""
        return float(self.sketch.size * _EPS * (self.squares @ self.sensitivity(backend)))

    @abstractmethod
    def features(self, backend: Backend, kernel: Kernel, X: np.ndarray, X_new: np.ndarray) -> Array:
        """ψ(x) (t, r), so that ψ(x)ᵀψ(z) is the sketched kernel and ψ(x_i) is row i of F."""

    @abstractmethod
    def extended(self, backend: Backend, kernel: Kernel, X: np.ndarray) -> Factor:
        """The factor of X, whose first rows are the points this one was made of."""

    @abstractmethod
    def grown(self, backend: Backend, kernel: Kernel, X: np.ndarray, size: int) -> Factor:
        """The factor with a sketch of ``size`` rows, or fewer where the numerical rank runs out."""


def factorize(backend: Backend, kernel: Kernel, X: np.ndarray, sketch: Sketch) -> Factor:
    """The factor of the kernel matrix of X for a sketch as it stands."""
    if isinstance(sketch, RowSketch):
        return RowFactor.empty(backend, sketch, kernel.diag(X)).with_landmarks(backend, kernel, X, sketch.indices)
    if isinstance(sketch, EntrySketch):
        sums = _sketched_sums(backend, kernel, X, X, sketch, range(sketch.size))
        return EntryFactor.of(backend, sketch, sums, backend.asarray(kernel.diag(X)))
    raise TypeError(f"No factor for a sketch of type {type(sketch).__name__}.")


def spectrum(backend: Backend, gram: Array) -> tuple[Array, Array]:
    """E (r,) in descending order and V (m, r) with FᵀF/n = V E Vᵀ; directions at rounding level are dropped. O(m³)."""
    xp = backend.xp
    if not len(gram):
        return gram.diagonal(), gram
    E, V = xp.linalg.eigh(gram)
    keep = len(E) * _EPS * E[-1] < E
    return xp.flip(E[keep]), xp.flip(V[:, keep], axis=1)


@dataclass(frozen=True, eq=False)
class RowFactor(Factor):
    """F = k(X, X_p) L⁻ᵀ with L the Cholesky factor of k(X_p, X_p): a sketch that selects points p.

    Column by column nothing ever changes when points or landmarks are added. Landmarks whose residual is at rounding level are
    passed over, so p can be shorter than the sketch.
    """

    sketch: RowSketch
    pivots: np.ndarray  # (r,)
    L: Array  # (r, r), lower triangular
    F: Array  # (n, r)
    gram: Array  # (r, r)
    diag: Array  # (n,): k(x, x)
    residual: Array  # (n,): diag(G − Ĝ), zero at rounding level

    @classmethod
    def empty(cls, backend: Backend, sketch: RowSketch, diag: np.ndarray) -> RowFactor:
        none, zeros, diag = np.empty(0, dtype=np.intp), backend.zeros, backend.asarray(diag)
        return cls(sketch, none, zeros(0, 0), zeros(len(diag), 0), zeros(0, 0), diag, diag)

    @property
    def complete(self) -> bool:
        return self.sketch.size >= len(self.F) or not bool(self.residual.any())

    def sensitivity(self, backend: Backend) -> Array:
        scale = backend.xp.sqrt(self.diag[self.pivots])
        return (backend.solve_triangular(self.L, backend.asarray(np.eye(len(self.L))) * scale) ** 2).sum(axis=1)

    def features(self, backend: Backend, kernel: Kernel, X: np.ndarray, X_new: np.ndarray) -> Array:
        none_new, none = backend.zeros(len(X_new), 0), backend.zeros(len(self.pivots), 0)
        return backend.schur(kernel, X_new, X[self.pivots], none_new, none, self.L)

    def extended(self, backend: Backend, kernel: Kernel, X: np.ndarray) -> RowFactor:
        n_old = len(self.F)
        F_new = self.features(backend, kernel, X, X[n_old:])
        xp, diag_new = backend.xp, backend.asarray(kernel.diag(X[n_old:]))
        residual = _above_rounding(xp, diag_new - xp.einsum("ij,ij->i", F_new, F_new), diag_new, F_new.shape[1])
        F, diag = xp.concat([self.F, F_new]), xp.concat([self.diag, diag_new])
        gram = (n_old * self.gram + backend.gram(F_new)) / len(F)
        return RowFactor(self.sketch, self.pivots, self.L, F, gram, diag, xp.concat([self.residual, residual]))

    def grown(self, backend: Backend, kernel: Kernel, X: np.ndarray, size: int) -> RowFactor:
        """Landmarks are proposed by the sketch from what the earlier ones leave unexplained: O(n r²) in all."""
        build = _Cholesky(self, backend, kernel, X, capacity=size - self.sketch.size)
        sketch = self.sketch
        while sketch.size < size and bool(build.residual.any()):
            rows, shares = sketch.propose(min(_BLOCK, size - sketch.size), build.residual, backend.xp)
            sketch = sketch.with_rows(build.take(backend.to_numpy(rows), shares))
        return build.factor(sketch)

    def with_landmarks(self, backend: Backend, kernel: Kernel, X: np.ndarray, indices: np.ndarray) -> RowFactor:
        """The factor with landmarks that its sketch already holds."""
        build = _Cholesky(self, backend, kernel, X, capacity=len(indices))
        for start in range(0, len(indices), _BLOCK):
            rows = indices[start : start + _BLOCK]
            build.take(rows, np.zeros(len(rows)))
        return build.factor(self.sketch)


class _Cholesky:
    """A RowFactor under construction: blocks of columns are appended in place."""

    def __init__(self, start: RowFactor, backend: Backend, kernel: Kernel, X: np.ndarray, *, capacity: int) -> None:
        self.start, self.backend, self.kernel, self.X = start, backend, kernel, X
        self.pivots, self.residual, r = list(start.pivots), backend.asarray(start.residual) * 1, start.F.shape[1]
        self.F, self.L = backend.zeros(len(X), r + capacity), backend.zeros(r + capacity, r + capacity)
        self.F[:, :r], self.L[:r, :r] = start.F, start.L

    def take(self, rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Append the candidates that keep their share of residual, which is all that are independent where it is 0."""
        r, xp = len(self.pivots), self.backend.xp
        F = self.F[:, :r]
        accepted, corner = self._accept(rows, shares)
        stop = r + len(accepted)
        new = self.backend.schur(self.kernel, self.X, self.X[accepted], F, F[accepted], corner)  # (n, b)
        new[accepted] = corner
        self.F[:, r:stop], self.L[r:stop, :r], self.L[r:stop, r:stop] = new, F[accepted], corner
        self.pivots.extend(accepted)
        self.residual = _above_rounding(xp, self.residual - xp.einsum("ij,ij->i", new, new), self.start.diag, stop)
        return accepted

    def _accept(self, rows: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, Array]:
        """Cholesky steps on the candidates' residual block; the accepted rows and their triangular factor."""
        F = self.F[rows, : len(self.pivots)]
        M = self.backend.to_numpy(self.backend.block(self.kernel, self.X[rows], self.X[rows]) - F @ F.T)  # (b, b)
        floor = _rank_floor(self.backend.to_numpy(self.start.diag[rows]), len(self.pivots) + len(rows))
        needed = shares * np.diagonal(M)
        whole = None if shares.any() else _cholesky(M, floor)
        if whole is not None:
            return rows, self.backend.asarray(whole)
        places, columns, dependent = [], [], []
        for j in range(len(rows)):
            if M[j, j] <= floor[j]:
                dependent.append(rows[j])
            elif M[j, j] > needed[j]:
                places.append(j)
                columns.append(M[:, j] / np.sqrt(M[j, j]))
                M -= np.outer(columns[-1], columns[-1])
        self.residual[dependent] = 0
        corner = np.array(columns).reshape(len(places), len(rows))[:, places].T
        return rows[places], self.backend.asarray(np.tril(corner))

    def factor(self, sketch: RowSketch) -> RowFactor:
        r, backend, diag = len(self.pivots), self.backend, self.start.diag
        pivots = np.array(self.pivots, dtype=np.intp)
        F, L = self.F[:, :r], self.L[:r, :r]
        return RowFactor(sketch, pivots, L, F, backend.gram(F) / len(F), diag, self.residual)


@dataclass(frozen=True, eq=False)
class EntryFactor(Factor):
    """F = (G Sᵀ) R with R Rᵀ = (S G Sᵀ)⁺: a sketch with entries everywhere. The raw sums G Sᵀ are kept, to be added to."""

    sketch: EntrySketch
    sums: Array  # (n, m)
    diag: Array  # (n,): k(x, x)
    R: Array  # (m, r)
    F: Array  # (n, r)
    gram: Array  # (r, r)
    amplified: Array  # (r,)

    @classmethod
    def of(cls, backend: Backend, sketch: EntrySketch, sums: Array, diag: Array) -> EntryFactor:
        """R = D Q Ω^(−1/2) from D (S G Sᵀ) D = Q Ω Qᵀ, with D scaling its diagonal to 1 and ω at rounding level dropped."""
        zeros, xp, n = backend.zeros, backend.xp, len(sums)
        if not sketch.size:
            return cls(sketch, sums, diag, zeros(0, 0), sums, zeros(0, 0), zeros(0))
        W, sizes = zeros(sketch.size, sketch.size), zeros(sketch.size)
        for columns, S in _chunks(backend, sketch, range(sketch.size), 0, n):
            W += backend.gram(S.T, sums[columns])
            sizes += (S * S).sum(axis=1)
        d = W.diagonal()
        scale = xp.where(d > 0, 1 / xp.sqrt(xp.where(d > 0, d, 1.0)), 0.0)
        omega, Q = xp.linalg.eigh(scale[:, None] * (W + W.T) / 2 * scale)
        keep = omega > len(omega) * _EPS * omega[-1]
        R = scale[:, None] * Q[:, keep] / xp.sqrt(omega[keep])
        F = backend.product(sums, R)
        amplified = (xp.sqrt(sizes) * xp.linalg.vector_norm(sums, axis=0)) @ R**2
        return cls(sketch, sums, diag, R, F, backend.gram(F) / n, amplified)

    @property
    def complete(self) -> bool:
        trace, noise = float(self.diag.mean()), self.sketch.size * _EPS * float(self.squares @ self.amplified)
        return bool(trace - float(self.squares.sum()) <= 8 * (noise + self.sketch.size * _EPS * trace))

    def sensitivity(self, backend: Backend) -> Array:
        return self.amplified

    def features(self, backend: Backend, kernel: Kernel, X: np.ndarray, X_new: np.ndarray) -> Array:
        return _sketched_sums(backend, kernel, X_new, X, self.sketch, range(self.sketch.size)) @ self.R

    def extended(self, backend: Backend, kernel: Kernel, X: np.ndarray) -> EntryFactor:
        """Old rows gain k(X_old, X_new) S_newᵀ, new rows are k(X_new, X) Sᵀ: O(m n n_new)."""
        n_old, rows = len(self.sums), range(self.sketch.size)
        old = self.sums + _sketched_sums(backend, kernel, X[:n_old], X, self.sketch, rows, start=n_old)
        new = _sketched_sums(backend, kernel, X[n_old:], X, self.sketch, rows)
        return EntryFactor.of(backend, self.sketch, backend.xp.concat([old, new]), backend.asarray(kernel.diag(X)))

    def grown(self, backend: Backend, kernel: Kernel, X: np.ndarray, size: int) -> EntryFactor:
        sketch = self.sketch.grown(size)
        new = _sketched_sums(backend, kernel, X, X, sketch, range(self.sketch.size, size))
        return EntryFactor.of(backend, sketch, backend.xp.concat([self.sums, new], axis=1), self.diag)


def _sketched_sums(
    backend: Backend, kernel: Kernel, X_new: np.ndarray, X: np.ndarray, sketch: EntrySketch, rows: range, *, start: int = 0
) -> Array:
    """k(X_new, X) S[rows]ᵀ, over the points of X from ``start`` on: (t, len(rows))."""
    sums, products = backend.zeros(len(X_new), len(rows)), backend.sketching or backend
    for columns, S in _chunks(backend, sketch, rows, start, len(X)):
        sums += products.matmul(kernel, X_new, X if len(S.T) == len(X) else X[columns], S.T)
    return sums


def _chunks(backend: Backend, sketch: EntrySketch, rows: range, start: int, stop: int) -> Iterator[tuple[slice, Array]]:
    width = max(4096, backend.entries // max(1, len(rows)))
    for i in range(start, stop, width):
        columns = range(i, min(i + width, stop))
        made = backend.signs(sketch.seed, rows, columns, CELL) if isinstance(sketch, RademacherSketch) else None
        yield slice(columns.start, columns.stop), backend.asarray(sketch.entries(rows, columns)) if made is None else made


def _cholesky(M: np.ndarray, floor: np.ndarray) -> np.ndarray | None:
    """The factor of a matrix whose pivots are all above the floor; None for any other."""
    try:
        L = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        return None
    return L if (np.diagonal(L) ** 2 > floor).all() else None


def _rank_floor(diag: Array, rank: int) -> Array:
    """The residual below which rounding decides."""
    return (rank + 1) * _EPS * diag


def _above_rounding(xp: Any, residual: Array, diag: Array, rank: int) -> Array:
    return xp.where(residual > _rank_floor(diag, rank), residual, 0.0)
