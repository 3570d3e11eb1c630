"""Sketched ridge regression from a few small matrices, for campaigns that keep their own products.

With G the kernel matrix of n labeled points (not divided by n), R = G Sᵀ (n, m) and α = nλ. The
rows of R may be given in any orthonormal basis that spans its columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["Exact", "Spectrum", "loo_alpha", "sketched_spectrum"]

Array = np.ndarray
_LEAST = 1e-10  # of 1 − leverage, where a point is interpolated
_GRID = np.geomspace(1e-10, 10, 100)  # times the largest eigenvalue


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Ĝ = H Hᵀ with HᵀH = diag(E), H = R P.

    For a point x with t = S k_x (m,) and b = Hᵀk_x (r,) the features are φ = Pᵀt.
    """

    E: Array  # (r,), descending
    P: Array  # (m, r)
    H: Array  # (n, r), or in the basis of R

    def v2(self, k_x: Array, alpha: float) -> Array:
        """V2 = ‖k_x − H diag(1/(E+α)) Hᵀk_x‖²/α², as a residual; k_x (n, t) or in R's basis."""
        b = self.H.T @ k_x
        residual = k_x - self.H @ (b / (self.E + alpha)[:, None])
        return (residual**2).sum(axis=0) / alpha**2

    def v2_from_sums(self, squares: Array, b: Array, alpha: float) -> Array:
        """The same from ‖k_x‖² (t,) and b = Hᵀk_x (r, t), where rounding leaves that enough."""
        inside = b**2 / self.E[:, None]
        shrunk = (alpha / (self.E + alpha))[:, None] ** 2
        outside = np.maximum(squares - inside.sum(axis=0), 0)
        return (outside + (inside * shrunk).sum(axis=0)) / alpha**2

    def v3(self, t: Array, alpha: float) -> Array:
        """V3 = Σ E φ²/(E+α)², the variance of the sketched mean; t = S k_x (m, ·)."""
        shrunk = np.sqrt(self.E) / (self.E + alpha)
        return ((self.P.T @ t * shrunk[:, None]) ** 2).sum(axis=0)

    def vbar(self, k_x: Array, t: Array, alpha: float) -> Array:
        """V̄ = ‖(z₂ + z₃)/2‖² for the weights z₂ and z₃ behind V2 and V3."""
        b = self.H.T @ k_x
        z2 = (k_x - self.H @ (b / (self.E + alpha)[:, None])) / alpha
        z3 = self.H @ (self.P.T @ t / (self.E + alpha)[:, None])
        return (((z2 + z3) / 2) ** 2).sum(axis=0)

    def gp(self, prior: Array, t: Array, alpha: float) -> Array:
        """k(x,x) − φᵀφ + α Σ φ²/(E+α), with prior = k(x,x) (·,)."""
        squares = (self.P.T @ t) ** 2
        left = np.maximum(prior - squares.sum(axis=0), 0)
        return left + (squares * (alpha / (self.E + alpha))[:, None]).sum(axis=0)

    def mean(self, t: Array, y: Array, alpha: float) -> Array:
        """f̂(x) = φᵀ diag(1/(E+α)) Hᵀy, with y (n,) or in R's basis."""
        return (self.P.T @ t).T @ ((self.H.T @ y) / (self.E + alpha))


@dataclass(frozen=True, eq=False)
class Exact:
    """G = U diag(E) Uᵀ: the exact problem, in any orthonormal basis of its range."""

    G: Array

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        E, U = np.linalg.eigh(self.G)
        return np.maximum(E, 0), U

    @property
    def E(self) -> Array:
        return self._eigen[0]

    @property
    def U(self) -> Array:
        return self._eigen[1]

    def rotated(self, k_x: Array) -> Array:
        """Uᵀk_x."""
        return self.U.T @ k_x

    def v1(self, k_x: Array, alpha: float) -> Array:
        """V1 = ‖(G + α)⁻¹k_x‖²."""
        return ((self.rotated(k_x) / (self.E + alpha)[:, None]) ** 2).sum(axis=0)

    def mean(self, k_x: Array, y: Array, alpha: float) -> Array:
        return self.rotated(k_x).T @ (self.rotated(y) / (self.E + alpha))


def sketched_spectrum(R: Array, W: Array) -> Spectrum:
    """From R = G Sᵀ and W = S G Sᵀ, both in float64.

    S's rows are scaled so that diag W = 1; eigenvalues of W at rounding level are dropped.
    """
    scale = 1 / np.sqrt(np.diag(W))
    omega, Q = np.linalg.eigh(W * scale * scale[:, None])
    keep = omega > len(W) * np.finfo(float).eps * omega[-1]
    root = scale[:, None] * Q[:, keep] / np.sqrt(omega[keep])
    F = R @ root
    E, V = np.linalg.eigh(F.T @ F)
    order = np.flatnonzero(E > 0)[::-1]
    return Spectrum(E[order], root @ V[:, order], F @ V[:, order])


def loo_alpha(U: Array, E: Array, y: Array) -> float:
    """The α with the least leave-one-out error, on a grid of 100 from 1e-10·E₁ to 10·E₁.

    For the smoother U diag(E/(E+α)) Uᵀ: residuals over 1 − leverage.

    Parameters
    ----------
    U : (n, r), orthonormal eigenvectors of the kernel matrix or of its sketch. E : (r,).
    y : (n,).
    """
    grid = _GRID * E.max()
    kept = (E / (E + grid[:, None])).T  # (r, 100)
    leverage = U**2 @ kept
    residual = y[:, None] - U @ (kept * (U.T @ y)[:, None])
    errors = ((residual / np.maximum(1 - leverage, _LEAST)) ** 2).mean(axis=0)
    return float(grid[np.argmin(errors)])
