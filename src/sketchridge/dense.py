"""Exact kernel ridge regression by a dense Cholesky factorisation of K + λI."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from sketchridge.backends.base import Backend
from sketchridge.kernels import Kernel

__all__ = ["DenseRidge", "dense_ridge"]

Array = np.ndarray
_COLUMNS = 2048  # of a matrix handled at a time


def dense_ridge(backend: Backend, kernel: Kernel, X: Array, Y: Array, lam: float, fit_intercept: bool) -> DenseRidge:
    """Factorise K + λI = L Lᵀ. O(n³) time, one n×n matrix."""
    M = backend.block(kernel, X, X)
    M /= len(X)
    np.fill_diagonal(M, M.diagonal() + lam)
    try:
        return DenseRidge(backend, kernel, X, Y, lam, fit_intercept, _cholesky(M.T))
    except np.linalg.LinAlgError:
        raise ValueError(
            f"alpha = {len(X) * lam:.3g} is too small: rounding makes the kernel matrix plus alpha indefinite. Give a larger "
            "alpha, rescale X (outliers?), or use SketchedKernelRidge, which leaves out what rounding decides."
        ) from None


@dataclass(frozen=True, eq=False)
class DenseRidge:
    """Mean and, for unit noise variance, variances of exact kernel ridge regression."""

    backend: Backend
    kernel: Kernel
    X: Array  # (n, d)
    Y: Array  # (n, q)
    lam: float
    fit_intercept: bool
    L: Array  # (n, n), lower triangular; what stands above the diagonal is not used

    def solve(self, B: Array) -> Array:
        """(K + λI)⁻¹ B."""
        half = solve_triangular(self.L, B, lower=True, check_finite=False)
        return solve_triangular(self.L, half, lower=True, trans="T", check_finite=False)

    @cached_property
    def inverse_diagonal(self) -> Array:
        """The diagonal of (K + λI)⁻¹, the column norms² of L⁻¹: (n,). O(n³)."""
        diagonal = np.empty(len(self.X))
        for c in _blocks(len(self.X)):
            columns = np.eye(len(self.X) - c.start, c.stop - c.start, order="F")
            below = solve_triangular(self.L[c.start :, c.start :], columns, lower=True, overwrite_b=True, check_finite=False)
            diagonal[c] = (below**2).sum(axis=0)
        return diagonal

    @cached_property
    def unit_weights(self) -> Array:
        """u = (K+λI)⁻¹1/(1ᵀ(K+λI)⁻¹1): (n,)."""
        z = self.solve(np.ones(len(self.X)))
        return z / z.sum()

    @cached_property
    def constant_gap(self) -> float:
        """1ᵀ(I − Ĥ)1 = λ 1ᵀ(K+λI)⁻¹1."""
        return float(self.lam * self.solve(np.ones(len(self.X))).sum())

    @cached_property
    def offset(self) -> Array:
        return self.unit_weights @ self.Y if self.fit_intercept else np.zeros(self.Y.shape[1])

    @cached_property
    def coefficients(self) -> Array:
        """ω = (K+λI)⁻¹(Y − offset)/n: (n, q)."""
        return self.solve(self.Y - self.offset) / len(self.X)

    def residuals(self) -> Array:
        """Y − fitted values = nλω: (n, q)."""
        return len(self.X) * self.lam * self.coefficients

    def leverages(self) -> Array:
        """The smoother's diagonal, 1 − λ(K+λI)⁻¹_ii: (n,)."""
        h = 1 - self.lam * self.inverse_diagonal
        return h + self.constant_gap * self.unit_weights**2 if self.fit_intercept else h

    @property
    def df(self) -> float:
        return float(self.leverages().sum())

    def mean(self, X_new: Array) -> Array:
        """k_xᵀω: (t, q)."""
        return self.offset + self.backend.matmul(self.kernel, X_new, self.X, self.coefficients)

    def v1(self, X_new: Array) -> Array:
        """V1(x)/σ² = ‖w‖² with the weights w = (K+λI)⁻¹k_x/n of the prediction: (t,). O(n²) a point."""
        return self._budget(X_new)[0]

    def gp(self, X_new: Array) -> Array:
        """k(x,x) − k_xᵀ(K+λI)⁻¹k_x/n: (t,)."""
        return self._budget(X_new)[1]

    def bias2(self, X_new: Array) -> Array:
        """gp − nλ V1/σ², the worst squared bias over the unit ball: (t,)."""
        v1, gp = self._budget(X_new)
        return np.maximum(gp - len(self.X) * self.lam * v1, 0)

    def _budget(self, X_new: Array) -> tuple[Array, Array]:
        v1, gp = np.empty(len(X_new)), np.empty(len(X_new))
        for rows in _blocks(len(X_new)):
            v1[rows], gp[rows] = self._budget_block(X_new[rows])
        return v1, gp

    def _budget_block(self, X_new: Array) -> tuple[Array, Array]:
        n = len(self.X)
        half = solve_triangular(self.L, self.backend.block(self.kernel, self.X, X_new), lower=True, check_finite=False)  # (n, t)
        gp = np.maximum(self.kernel.diag(X_new) - (half**2).sum(axis=0) / n, 0)
        w = solve_triangular(self.L, half, lower=True, trans="T", check_finite=False) / n
        if self.fit_intercept:
            missing = 1 - w.sum(axis=0)
            w += np.outer(self.unit_weights, missing)
            gp += missing**2 * n * self.lam / self.constant_gap
        return (w**2).sum(axis=0), gp


def _cholesky(M: Array) -> Array:
    """L with M = L Lᵀ, in place of M's lower triangle.

    Block by block, since the threaded LAPACK routine of OpenBLAS corrupts memory from about n = 15,000 up.
    """
    for j in _blocks(len(M)):
        done, below = slice(0, j.start), slice(j.stop, len(M))
        M[j.start :, j] -= M[j.start :, done] @ M[j, done].T
        M[j, j] = cholesky(M[j, j], lower=True, check_finite=False)
        M[below, j] = solve_triangular(M[j, j], M[below, j].T, lower=True, check_finite=False).T
    return M


def _blocks(n: int) -> list[slice]:
    return [slice(i, min(i + _COLUMNS, n)) for i in range(0, n, _COLUMNS)]
