"""From the sketch to the exact answer: preconditioned conjugate gradients, with a proof of how far the result can be off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sketchridge.backends.base import Array, Backend
from sketchridge.certify import rounding
from sketchridge.progress import status
from sketchridge.state import Ridge

__all__ = ["PrecisionError", "Refined", "exact_mean", "refined_variance", "v1"]

_BYTES = 2**30  # of the arrays as long as the data while a block of points is refined
_STEPS = 500  # before the residual is taken afresh
_WIDTH = 256  # points in a block: wider ones gain little and cost more algebra
_DEPENDENT = 1e-12  # squared length below which a direction is taken for a combination of the others
_TINY = np.finfo(float).tiny
_DROP = 1e-3  # of a residual, as far as steps in lower precision can be trusted


class PrecisionError(RuntimeError):
    """A tolerance that the chosen precision cannot reach."""


@dataclass(frozen=True, eq=False)
class Refined:
    """Variances for unit noise with a rigorous bound on |√V1 − √V|, rounding included: each (t,)."""

    variance: np.ndarray
    bound: np.ndarray


def refined_variance(ridge: Ridge, X_new: np.ndarray, *, steps: int) -> Refined:
    """V2 after a number of steps toward V1. One product with K a step and one for the bound: O(n²) a point each."""

    def block(system: System, B: Array) -> tuple[Array, Array]:
        Z = system.start(B)
        if steps:
            Z = _walk(system, Z, system.residual(B, Z), steps)
        return Z, system.residual(B, Z)

    return _in_blocks(ridge, X_new, block)


def v1(ridge: Ridge, X_new: np.ndarray, *, tol: float, first: Backend, quick: Backend) -> Refined:
    """V1 with a relative error of at most ``tol``, by as many steps as each point needs.

    A point is done when bound/√V ≤ √(1 + tol) − 1. The first residual is computed by ``first``, steps by ``quick``, bounds by the
    state's backend. A tolerance below rounding raises PrecisionError.
    """
    allowed = np.sqrt(1 + tol) - 1
    lost = rounding(ridge, ridge.state.backend) / ridge.lam

    def unfinished(Z: Array, R: Array) -> Array:
        return _norms(R) / ridge.lam > (allowed - lost) * _norms(Z)

    def block(system: System, B: Array) -> tuple[Array, Array]:
        Z, R = _solve(system, System(ridge, first), System(ridge, quick), B, system.start(B), unfinished)
        if unfinished(Z, R).any():
            worst = float((_norms(R) / ridge.lam / (_norms(Z) + _TINY)).max()) + lost
            raise PrecisionError(_advice(ridge, (1 + worst) ** 2 - 1, tol))
        return Z, R

    if lost >= allowed:
        raise PrecisionError(_advice(ridge, (1 + lost) ** 2 - 1, tol))
    return _in_blocks(ridge, X_new, block)


def exact_mean(ridge: Ridge, *, tol: float, quick: Backend) -> tuple[Array, Array]:
    """Coefficients ω (n, q) and offset (q,) of the exact mean k_xᵀω + offset, with ‖residual‖ ≤ tol·‖Y‖.

    The mean is then off by at most √(V1(x)/σ²)·tol·‖Y‖ at every x.
    """
    system, scale, xp = System(ridge, ridge.state.backend), _norms(ridge.state.Y), ridge.state.xp
    scale = xp.where(scale > 0, scale, 1.0)
    Y = ridge.state.Y / scale
    Z, R = _solve(system, system, System(ridge, quick), Y, system.precondition(Y), lambda Z, R: _norms(R) > tol)
    if (_norms(R) > tol).any():
        raise PrecisionError(
            f"The exact mean was not reached: with {ridge.state.backend.precision} products and λ = {ridge.lam:.3g} the residual "
            f"stopped at {float(_norms(R).max()):.3g} of ‖y‖ instead of {tol:.3g}. Use dtype='float64', a larger alpha, a larger "
            "sketch_size, or solver='sketch'."
        )
    offset = (Y - system.product(Z)).mean(axis=0) if ridge.fit_intercept else 0 * scale
    return scale * Z / len(Y), scale * offset


@dataclass(frozen=True, eq=False)
class System:
    """(K + λI)z = k_x with the sketch as preconditioner; with an intercept, on the vectors of sum zero (and z on sum n)."""

    ridge: Ridge
    backend: Backend

    def product(self, Z: Array) -> Array:
        """(K + λI)Z."""
        state = self.ridge.state
        out = self.backend.matmul(state.kernel, state.X, state.X, Z)
        out /= len(state.X)
        out += self.ridge.lam * Z
        return out

    def project(self, R: Array) -> Array:
        return R - R.mean(axis=0) if self.ridge.fit_intercept else R

    def residual(self, B: Array, Z: Array) -> Array:
        return self.project(B - self.product(Z))

    def precondition(self, R: Array) -> Array:
        """(K̂ + λI)⁻¹R = (R − H D HᵀR)/λ, then moved along u to sum zero."""
        ridge, H = self.ridge, self.ridge.state.H
        Z = self.backend.product(H, -ridge.shrink(self.backend.gram(H, R)))
        Z += R
        Z /= ridge.lam
        return Z - ridge.unit_weights[:, None] * Z.sum(axis=0) if ridge.fit_intercept else Z

    def directions(self, R: Array, P: Array, Q: Array) -> tuple[Array, Array]:
        """A basis P' of the preconditioned residuals, with P'ᵀ(K + λI)P' = I and conjugate to P, and Q' = (K + λI)P'.

        What depends on other columns, or has a curvature below λ by rounding, is left out.
        """
        D, eigh = self.precondition(R), self.backend.xp.linalg.eigh
        D -= self.backend.product(P, self.backend.gram(Q, D))
        D /= _norms(D) + _TINY
        squares, U = eigh(self.backend.gram(D))
        some = squares > _DEPENDENT
        P = self.backend.product(D, U[:, some] / squares[some] ** 0.5)
        Q = self.project(self.product(P))
        curvature, U = eigh(self.backend.gram(P, Q))
        some = curvature > self.ridge.lam / 2
        U = U[:, some] / curvature[some] ** 0.5
        return self.backend.product(P, U), self.backend.product(Q, U)

    def start(self, B: Array) -> Array:
        """z₀ = n w' with the weights w' behind V2."""
        Z = self.precondition(B)
        return Z + len(B) * self.ridge.unit_weights[:, None] if self.ridge.fit_intercept else Z


def _solve(
    system: System, first: System, quick: System, B: Array, Z: Array, unfinished: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Iterate the unfinished columns until none is left or none comes closer.

    The first residual is that of the ``first`` system, and steps are taken with the ``quick`` one as long as it helps; every
    residual that is judged is taken afresh with ``system``.
    """
    R = first.residual(B, Z)
    active = unfinished(Z, R) | (first.backend is not system.backend)
    while active.any():
        before, drop = _norms(R), 0.0 if quick.backend is system.backend else _DROP
        Z[:, active] = _descend(quick, Z[:, active], R[:, active], lambda Z, R: unfinished(Z, 1.1 * R), drop)
        R[:, active] = system.residual(B[:, active], Z[:, active])
        active = unfinished(Z, R)
        stalled = _norms(R) > 0.5 * before
        if (active & stalled).any():
            active, quick = (active & ~stalled, quick) if quick.backend is system.backend else (active, system)
    return Z, R


def _descend(system: System, Z: Array, R: Array, unfinished: Callable[[Array, Array], Array], drop: float) -> Array:
    """Block conjugate gradients: each step moves every column to its best point in the span of all columns' directions.

    A column ends when it is finished, or when its residual (by recursion) has fallen by the factor ``drop``.
    """
    out, columns, least = Z * 1, system.backend.xp.arange(Z.shape[1], device=Z.device), drop * _norms(R)
    P = Q = Z[:, :0]
    with status("Refining") as say:
        for step in range(_STEPS):
            P, Q = system.directions(R, P, Q)
            length = system.backend.gram(P, R)
            Z, R = Z + system.backend.product(P, length), R - system.backend.product(Q, length)
            keep = unfinished(Z, R) & (_norms(R) > least)
            say(f"Refining: step {step + 1}, {int(keep.sum())} of {out.shape[1]} points unfinished")
            out[:, columns] = Z
            Z, R, least, columns = Z[:, keep], R[:, keep], least[keep], columns[keep]
            if not keep.any() or not P.shape[1]:
                break
    return out


def _walk(system: System, Z: Array, R: Array, steps: int) -> Array:
    """A number of steps of conjugate gradients, each column on its own: its result does not depend on the others."""
    P = system.precondition(R)
    rho = _dots(R, P)
    for _ in range(steps):
        Q = system.project(system.product(P))
        length = _ratio(rho, _dots(P, Q))
        Z, R = Z + length * P, R - length * Q
        D, old = system.precondition(R), rho
        rho = _dots(R, D)
        P = D + _ratio(rho, old) * P
    return Z


def _in_blocks(ridge: Ridge, X_new: np.ndarray, block: Callable[[System, Array], tuple[Array, Array]]) -> Refined:
    """Weights and residuals by ``block``, turned into variances and bounds, for as many points at a time as memory allows."""
    state, n = ridge.state, len(ridge.state.X)
    system, lost = System(ridge, state.backend), rounding(ridge, state.backend) / ridge.lam
    size = min(_WIDTH, max(1, _BYTES // (8 * 8 * n)))
    std, bound = np.empty(len(X_new)), np.empty(len(X_new))
    with state.backend.alone():
        for start in range(0, len(X_new), size):
            rows = slice(start, min(start + size, len(X_new)))
            B = state.backend.block(state.kernel, state.X, X_new[rows])  # (n, t)
            scale = 1.0
            if not ridge.fit_intercept:
                largest = state.xp.max(state.xp.abs(B), axis=0)
                scale = state.xp.where(largest > 0, largest, 1.0)  # far from the data squares would underflow
            Z, R = block(system, B / scale)
            std[rows] = state.backend.to_numpy(scale * _norms(Z) / n)
            bound[rows] = state.backend.to_numpy(scale * _norms(R) / (n * ridge.lam)) + lost * std[rows]
    variance = std**2
    return Refined(variance, bound + np.abs(std - np.sqrt(variance)))


def _dots(A: Array, B: Array) -> Array:
    return np.einsum("ij,ij->j", A, B) if isinstance(A, np.ndarray) else (A * B).sum(axis=0)


def _norms(A: Array) -> Array:
    return _dots(A, A) ** 0.5


def _ratio(a: Array, b: Array) -> Array:
    """a/b, and 0 where b is not positive: a column that is solved, or beyond its precision, stays where it is."""
    positive = b > 0
    return positive * a / (b + ~positive * (1 - b))


def _advice(ridge: Ridge, reached: float, tol: float) -> str:
    dtype = ridge.state.backend.precision
    remedy = "dtype='float64', " if dtype != "float64" else ""
    return (
        f"The tolerance {tol:.3g} was not reached: with {dtype} products and λ = {ridge.lam:.3g} the relative error is only known "
        f"to be below {reached:.3g}. Use {remedy}a tol above that, a larger alpha, or a larger sketch_size."
    )
