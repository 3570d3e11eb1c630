"""How well a kernel suits some rows: the leave-one-out error or the restricted likelihood of exact
kernel ridge regression, with their gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh, lapack
from scipy.linalg.blas import dsymm, dsymv, dsyr, dsyr2k, dsyrk
from scipy.spatial.distance import pdist, squareform

from sketchridge.kernels import DistanceKernel

__all__ = [
    "AlphaPath",
    "Criterion",
    "Exact",
    "Problem",
    "best_alpha",
    "criterion_at",
    "kernel_matrix",
    "largest_within",
    "left_out",
    "penalty_grid",
    "solved",
]

Array = np.ndarray
_TINY = np.finfo(float).tiny
_WITHIN = 0.01  # of the least leave-one-out error
_CACHED = 2**15  # numbers of a matrix that are worked on at a time
_TILE = 128


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, targets of variance about 1, and weights: the noise variance of row i is alpha/w_i."""

    X: Array  # (n, d)
    Y: Array  # (n, q)
    w: Array  # (n,)
    fit_intercept: bool

    def __len__(self) -> int:
        return len(self.X)

    def some(self, rows: Array | slice) -> Problem:
        return Problem(self.X[rows], self.Y[rows], self.w[rows], self.fit_intercept)


@dataclass(frozen=True, eq=False)
class Exact:
    """Exact kernel ridge regression with A = G + αW⁻¹ and B = A⁻¹.

    With an intercept P = B − B11ᵀB/(1ᵀB1) takes the place of B, without one P = B.
    """

    P: Array  # (n, n)
    ones: Array | None  # (n,): B1, with an intercept
    logdet: float  # log|A|, and log 1ᵀB1 with an intercept
    Y: Array  # (n, q)

    @cached_property
    def a(self) -> Array:
        """P Y, the coefficients of the mean: (n, q)."""
        return self.P @ self.Y

    @cached_property
    def b(self) -> Array:
        """diag P; 1/b_i is the leave-one-out variance of row i for amplitude 1: (n,)."""
        return np.maximum(self.P.diagonal(), _TINY)

    @property
    def residuals(self) -> Array:
        """Leave-one-out residuals a_i/b_i: (n, q)."""
        return self.a / self.b[:, None]

    def predict(self, k: Array) -> tuple[Array, Array]:
        """Mean (t, q) and gp for amplitude 1 (t,), from kernel values k (t, n)."""
        mean = k @ self.a
        gp = 1 - np.einsum("ij,ij->i", k @ self.P, k)
        if self.ones is not None:
            total = self.ones.sum()
            mean += self.ones @ self.Y / total
            gp += (1 - 2 * k @ self.ones) / total
        return mean, np.maximum(gp, 0)


def solved(G: Array, alpha: float, problem: Problem) -> Exact | None:
    """The exact problem with kernel matrix G, or None where rounding makes A indefinite.

    O(n³); G is left alone.
    """
    return _solved(np.array(G.T, order="F"), alpha, problem)


def _solved(A: Array, alpha: float, problem: Problem) -> Exact | None:
    """The same, in the memory of a kernel matrix of columns, of which the lower half is read."""
    A.T.flat[:: len(A) + 1] += alpha / problem.w
    L, failed = lapack.dpotrf(A, lower=1, overwrite_a=1, clean=0)
    if failed or not np.isfinite(L.diagonal()).all():
        return None
    logdet = 2 * np.log(L.diagonal()).sum()
    B, failed = lapack.dpotri(L, lower=1, overwrite_c=1)
    if failed:
        return None
    if not problem.fit_intercept:
        return Exact(_mirrored(B), None, logdet, problem.Y)
    ones = dsymv(1.0, B, np.ones(len(B)), lower=1)
    total = ones.sum()
    if not total > 0:
        return None
    B = dsyr(-1 / total, ones, lower=1, a=B, overwrite_a=1)
    return Exact(_mirrored(B), ones, logdet + np.log(total), problem.Y)


def left_out(kernel: DistanceKernel, U: Array, alpha: float, problem: Problem) -> Array | None:
    """Leave-one-out residuals (n, q), or None where rounding makes A indefinite. O(n³)."""
    model = solved(kernel_matrix(kernel, U), alpha, problem)
    return None if model is None else model.residuals


def criterion_at(
    name: str, kernel: DistanceKernel, U: Array, alpha: float, problem: Problem
) -> tuple[float, Array, float] | None:
    """The criterion "loo" or "reml" of k = κ(s), its gradient by U (n, k) and by log α.

    With W = ∂L/∂A ∘ κ'(s), ∂L/∂U_ia = 2 Σ_j W_ij ∂s_ij/∂U_ia: 4(diag(W1)U − WU) where s is
    ‖u − v‖², 2 Σ_j W_ij sign(U_ia − U_ja) where it is ‖u − v‖₁; ∂L/∂log α = α Σ_i (∂L/∂A)_ii/w_i.
    O(n³), three n×n matrices. None where rounding makes A indefinite.
    """
    with np.errstate(all="ignore"):
        distances, gradient = _METRICS[kernel.metric]
        s = distances(U)
        A = _by_rows(lambda rows: kernel.evaluate(rows.copy(), np), s)
        model = _solved(A.T, alpha, problem)
        if model is None:
            return None
        value, by_A = _CRITERIA[name](model, problem)
        by_log_alpha = alpha * float((by_A.diagonal() / problem.w).sum())
        W = _by_rows(lambda rows: _finite(kernel.slope_at(rows, np)), s, out=s).T
        W *= by_A
        by_U = gradient(W, U)
    if not (np.isfinite(value) and np.isfinite(by_U).all() and np.isfinite(by_log_alpha)):
        return None
    return value, by_U, by_log_alpha


def _finite(slopes: Array) -> Array:
    """A slope may be infinite at s = 0, where no distance changes."""
    return np.where(np.isfinite(slopes), slopes, 0.0)


def _by_rows(f: Callable[[Array], Array], s: Array, out: Array | None = None) -> Array:
    """f of an (n, n) matrix, a few rows at a time, which stay in the cache."""
    out = np.empty_like(s) if out is None else out
    step = max(1, _CACHED // max(len(s), 1))
    for start in range(0, len(s), step):
        rows = slice(start, start + step)
        out[rows] = f(s[rows])
    return out


def _leave_one_out(model: Exact, problem: Problem) -> tuple[float, Array]:
    """log L with L = Σ_i w_i r_i²/Σw, averaged over targets, and its gradient by A: the lower half.

    With g = ∂L/∂r, u = P(g/b), ω = g∘r/b: ∂L/∂A = P diag(ω) P − (u aᵀ + a uᵀ)/2.
    """
    r = model.residuals
    share = problem.w / (problem.w.sum() * r.shape[1])
    L = max(float(share @ (r**2).sum(axis=1)), _TINY)
    g = 2 * share[:, None] * r / L  # of the logarithm
    u = model.P @ (g / model.b[:, None])
    omega = (g * r).sum(axis=1) / model.b
    by_A = dsyrk(1.0, model.P * np.sqrt(omega), lower=1)
    by_A = dsyr2k(-0.5, u, model.a, beta=1.0, c=by_A, lower=1, overwrite_c=1)
    return float(np.log(L)), by_A


def _restricted_likelihood(model: Exact, problem: Problem) -> tuple[float, Array]:
    """log(yᵀPy/ν), averaged over targets, plus (log|A| + log 1ᵀB1)/ν, and its gradient by A: the
    lower half.

    That is −2/ν times the restricted log-likelihood, greatest over each target's amplitude, with
    ν = n − 1 (n without an intercept); the gradient is P/ν − a aᵀ/yᵀPy.
    """
    nu = max(len(problem) - problem.fit_intercept, 1)
    squares = np.maximum((problem.Y * model.a).sum(axis=0), _TINY)
    scaled = model.a / np.sqrt(squares * len(squares))
    by_A = dsyrk(-1.0, scaled, beta=1 / nu, c=model.P, lower=1)
    return float(np.log(squares / nu).mean() + model.logdet / nu), by_A


Criterion = Callable[
    [str, DistanceKernel, Array, float, Problem], tuple[float, Array, float] | None
]
_CRITERIA = {"loo": _leave_one_out, "reml": _restricted_likelihood}


@dataclass(frozen=True, eq=False)
class AlphaPath:
    """The penalty chosen, and what it was chosen from: alphas and leave-one-out errors, (l,)."""

    alpha: float
    alphas: Array
    loo: Array


def penalty_grid(largest: float) -> Array:
    """100 penalties from 1e-10 to 10 times the largest eigenvalue."""
    return np.geomspace(1e-10, 10, 100) * largest


def largest_within(penalties: Array, errors: Array) -> float:
    """The largest penalty whose leave-one-out error is within 1% of the least: the curve is flat
    toward small ones, where everything is ill-conditioned."""
    good = errors <= (1 + _WITHIN) * errors.min() + _TINY
    return float(penalties[good][-1])


def best_alpha(G: Array, problem: Problem) -> AlphaPath:
    """The largest α whose mean squared leave-one-out error is within 1% of the least.

    From W^½GW^½ = Q diag(E) Qᵀ, once: B = W^½ Q (E + α)⁻¹ Qᵀ W^½. O(n³) time, three n×n matrices.

    Examples
    --------
    >>> x = np.linspace(0, 1, 30)[:, None]
    >>> G = np.exp(-((x - x.T) ** 2) * 10)
    >>> noise = 0.1 * np.random.default_rng(0).standard_normal((30, 1))
    >>> path = best_alpha(G, Problem(x, np.sin(6 * x) + noise, np.ones(30), True))
    >>> f"{path.alpha:.2g} {path.loo.min():.2g}"
    '0.011 0.0068'
    """
    root = np.sqrt(problem.w)[:, None]
    E, Q = eigh(G * root * root.T, driver="evd", overwrite_a=True, check_finite=False)
    if not np.isfinite(E).all():
        raise ValueError(
            "The kernel matrix has no finite eigenvalues: the bandwidth is too small for X, or X "
            "too large. Give a larger bandwidth, or rescale X."
        )
    E = np.maximum(E, 0)
    alphas = penalty_grid(E[-1])
    D = 1 / (E[:, None] + alphas)  # (n, l)
    P = root**2 * (Q**2 @ D)  # the diagonal: (n, l)
    C = Q.T @ (root * problem.Y)  # (n, q)
    o = Q.T @ root  # (n, 1)
    ones = root * (Q @ (D * o))  # B1 for every α
    total = np.maximum((D * o**2).sum(axis=0), _TINY)  # 1ᵀB1: (l,)
    if problem.fit_intercept:
        P -= ones**2 / total
    errors = np.zeros(len(alphas))
    for c in C.T:
        a = root * (Q @ (D * c[:, None]))
        if problem.fit_intercept:
            a -= ones * ((D * o * c[:, None]).sum(axis=0) / total)
        errors += problem.w @ (a / np.maximum(P, _TINY)) ** 2
    loo = errors / (problem.w.sum() * max(problem.Y.shape[1], 1))
    return AlphaPath(largest_within(alphas, loo), alphas, loo)


def kernel_matrix(kernel: DistanceKernel, U: Array) -> Array:
    """k(u_i, u_j): (n, n)."""
    return kernel.evaluate(_METRICS[kernel.metric][0](U), np)


def _squared_distances(U: Array) -> Array:
    """‖u_i − u_j‖²: (n, n), with a diagonal of 0."""
    U = U - np.median(U, axis=0)
    norms = np.einsum("ij,ij->i", U, U)
    s = U @ (-2 * U.T)
    s += norms[:, None]
    s += norms
    np.maximum(s, 0, out=s)
    np.fill_diagonal(s, 0)
    return s


def _by_squared_distances(W: Array, U: Array) -> Array:
    """Σ_j 2 W_ij ∂s_ij/∂u_i for the symmetric W with that lower half: (n, k)."""
    sums = dsymm(1.0, W, np.column_stack([U, np.ones(len(U))]), lower=1)
    return 4 * (sums[:, -1:] * U - sums[:, :-1])


def _absolute_distances(U: Array) -> Array:
    """‖u_i − u_j‖₁: (n, n)."""
    return squareform(pdist(U, "cityblock"))


def _by_absolute_distances(W: Array, U: Array) -> Array:
    """The same for those, one feature at a time: (n, k). O(n²k) time, one n×n matrix."""
    W = _mirrored(W)
    by_U = np.empty_like(U)
    signs = np.empty_like(W)
    for u, by_u in zip(U.T, by_U.T, strict=True):
        np.subtract(u[:, None], u, out=signs)
        np.sign(signs, out=signs)
        by_u[:] = 2 * np.einsum("ij,ij->i", W, signs)
    return by_U


# The distances s of a metric, and the gradient that ∂L/∂s makes.
_METRICS = {
    "euclidean": (_squared_distances, _by_squared_distances),
    "cityblock": (_absolute_distances, _by_absolute_distances),
}


def _mirrored(A: Array) -> Array:
    """The symmetric matrix with that lower half, in place."""
    for start in range(0, len(A), _TILE):
        stop = start + _TILE
        tile = A[start:stop, start:stop]
        tile[:] = np.tril(tile) + np.tril(tile, -1).T
        for below in range(stop, len(A), _TILE):
            A[start:stop, below : below + _TILE] = A[below : below + _TILE, start:stop].T
    return A
