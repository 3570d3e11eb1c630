"""What the data choose: the penalty λ, the sketch size m, the bandwidth and the noise variance."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist

from sketchridge.backends.base import Backend
from sketchridge.kernels import Kernel, ScaledKernel
from sketchridge.sketches import RPCholeskySketch
from sketchridge.state import Ridge, State, build, degrees_of_freedom, row_blocks

__all__ = [
    "LambdaPath",
    "choose_lambda",
    "gap",
    "gcv_bandwidth",
    "gcv_scores",
    "grow_sketch",
    "lambda_grid",
    "lambda_path",
    "loo_errors",
    "magnified_rounding",
    "median_bandwidth",
    "noise_variance",
    "probe_rows",
    "single_precision_error",
    "sketch_floor",
]

Array = np.ndarray
_SIZES = [64, 128, 256, 384, 512, 768, 1024, 1536, 2048]
_PROBE = 256
_ROWS = 1000


@dataclass(frozen=True, eq=False)
class LambdaPath:
    """λ with the degrees of freedom, the GCV score and the mean squared leave-one-out error it gives: each (l,)."""

    lam: Array
    df: Array
    gcv: Array
    loo: Array


def lambda_grid(largest: float) -> Array:
    """100 values from 1e-10·E₁ to 10·E₁."""
    return np.geomspace(1e-10, 10, 100) * largest


def lambda_path(state: State, fit_intercept: bool) -> LambdaPath:
    """All scores on the grid. O(nm²)."""
    lams = lambda_grid(state.largest)
    return LambdaPath(
        lams,
        degrees_of_freedom(state, lams, fit_intercept),
        gcv_scores(state, lams, fit_intercept),
        loo_errors(state, lams, fit_intercept),
    )


def gcv_scores(state: State, lams: Array, fit_intercept: bool) -> Array:
    """n·RSS/(n − df)², summed over targets, from E and P alone: O(m) a λ."""
    n, q = state.Y.shape
    E, P, rest = (state.backend.to_numpy(a) for a in (state.E, state.P, state.rest))
    shrink = (lams[:, None] / (E + lams[:, None]))[:, :, None]  # (l, r, 1)
    rss = (shrink**2 * P[:, :q] ** 2).sum(axis=1) + np.diagonal(rest)[:q]  # (l, q): ‖(I − Ĥ)y‖²
    if fit_intercept:
        o = P[:, -1:]
        one_y1 = (shrink * o * P[:, :q]).sum(axis=1) + rest[-1, :q]  # 1ᵀ(I − Ĥ)y
        one_y2 = (shrink**2 * o * P[:, :q]).sum(axis=1) + rest[-1, :q]  # 1ᵀ(I − Ĥ)²y
        one_one1, one_one2 = ((shrink**p * o**2).sum(axis=1) + rest[-1, -1] for p in (1, 2))
        offset = one_y1 / one_one1
        rss = np.maximum(rss - 2 * offset * one_y2 + offset**2 * one_one2, 0)
    return n * rss.sum(axis=1) / (n - degrees_of_freedom(state, lams, fit_intercept)) ** 2


def loo_errors(state: State, lams: Array, fit_intercept: bool) -> Array:
    """Mean squared leave-one-out error, exact for a fixed alpha = nλ and sketch. O(nm) a λ."""
    n, q = state.Y.shape
    backend, xp, root = state.backend, state.xp, state.xp.sqrt(state.E)[:, None]
    ridges = [Ridge(state, lam, fit_intercept, backend) for lam in lams]
    D = xp.stack([ridge.D for ridge in ridges], axis=1)  # (r, l)
    offsets = xp.stack([ridge.offset for ridge in ridges], axis=1)  # (q, l)
    gaps = backend.asarray([ridge.constant_gap for ridge in ridges]) if fit_intercept else None
    total = np.zeros(len(lams))
    for rows in row_blocks(n, len(state.E) + 2 * len(lams)):
        H = state.H[rows]
        h = backend.leverages(H, D)  # (rows, l)
        if fit_intercept:
            h += (1 - backend.product(H, D * root * state.P[:, -1:])) ** 2 / gaps
        left = xp.clip(1 - h, min=np.finfo(float).eps)
        for j in range(q):
            centred = state.P[:, j : j + 1] - state.P[:, -1:] * offsets[j]
            residual = state.Y[rows, j : j + 1] - offsets[j] - backend.product(H, D * root * centred)
            total += backend.to_numpy(((residual / left) ** 2).sum(axis=0))
    return total / (n * q)


def choose_lambda(state: State, criterion: str, fit_intercept: bool, *, floor: float = 0.0) -> float:
    """The minimiser of GCV or leave-one-out over the grid, not below ``floor``."""
    lams = lambda_grid(state.largest)
    score = {"gcv": gcv_scores, "loo": loo_errors}[criterion]
    return max(float(lams[np.argmin(score(state, lams, fit_intercept))]), floor)


def sketch_floor(state: State) -> float:
    """E[rank/2]: below it the sketch, not λ, regularises. 0 for a complete sketch, which cannot."""
    return 0.0 if state.factor.complete or not len(state.E) else float(state.E[len(state.E) // 2])


def noise_variance(residuals: Array, df: float) -> Array:
    """σ̂² = RSS/(n − df) for each target, from the residuals (n, q) themselves: (q,)."""
    return (residuals**2).sum(axis=0) / max(len(residuals) - df, np.finfo(float).eps)


def gap(ridge: Ridge, probe: Array) -> float:
    """The 95% quantile of V2/V3 over the training rows ``probe``: how far V2 may be from V1 at a typical point."""
    X = ridge.state.X[probe]
    v2, v3 = ridge.v2(X), ridge.v3(X)
    ratio = np.divide(v2, v3, out=np.where(v2 > 0, np.inf, 1.0), where=v3 > 0)
    return float(np.quantile(ratio, 0.95, method="higher"))


def probe_rows(n: int, rng: np.random.Generator) -> Array:
    return rng.choice(n, size=min(n, _PROBE), replace=False)


def grow_sketch(
    state: State, penalized: Callable[[State], Ridge], *, tol: float, probe: Array, largest: int | None = None
) -> tuple[Ridge, float]:
    """Grow m = 64, 128, … until the gap is at most 1 + tol, the numerical rank is reached or m = min(n, 2048), or
    another largest size.

    ``penalized`` chooses λ for a state. Where λ is below E[m/2] the gap is far from 1 and not worth measuring.
    Returns the last ridge and its gap.
    """
    limit = max(min(len(state.X), largest or _SIZES[-1]), state.sketch.size)
    while True:
        if state.sketch.size or state.factor.complete:
            ridge = penalized(state)
            full = state.factor.complete or state.sketch.size >= limit
            reached = gap(ridge, probe) if full or ridge.lam >= sketch_floor(state) else np.inf
            if full or reached <= 1 + tol:
                break
        state = state.grown(min(limit, next(m for m in _SIZES if m > state.sketch.size)))
    if reached > 1 + tol and not state.factor.complete:
        warnings.warn(
            f"The sketch reached its largest automatic size, {state.sketch.size}, with a gap V2/V3 of {reached:.3g} instead of "
            f"{1 + tol:.3g}: V2 may be too large by about that factor. Give a larger sketch_size or another "
            "sketch, a larger alpha or bandwidth, or ask for a refined variance.",
            stacklevel=5,
        )
    return ridge, reached


def single_precision_error(state: State, lam: float) -> float:
    """How far float32 products may put V2 off, relative, by ``magnified_rounding``."""
    eps = float(np.finfo(np.float32).eps)
    return magnified_rounding(eps, state.spread, state.kernel.diag(state.X).max(), state.largest / lam)


def magnified_rounding(eps: float, spread: float, diag: float, ratio: float) -> float:
    """ε·max(4, largest ‖u‖²)·E₁/λ, as measured in docs/precision.md, with E₁/λ as ``ratio``.

    Infinite where squares of kernel values, the largest of which is ``diag``, could leave the range of float32.
    """
    return eps * max(4.0, spread) * ratio if 1e-6 < diag < 1e6 else np.inf


def median_bandwidth(X: Array, kernel: Kernel) -> float:
    """The median of the positive distances among up to 1,000 rows, in the kernel's metric."""
    distances = pdist(X[_spread(len(X), _ROWS)], kernel.metric)
    positive = distances[distances > 0]
    if not len(positive):
        raise ValueError(
            "bandwidth='median' needs rows that differ, but all rows of X looked at are identical: give a number as bandwidth."
        )
    median = float(np.median(positive))
    if not np.isfinite(median):
        raise ValueError("The distances between rows of X overflow: rescale X, for example with StandardScaler.")
    return median


def gcv_bandwidth(backend: Backend, kernel: ScaledKernel, X: Array, Y: Array, fit_intercept: bool) -> float:
    """The multiple of the median, from 1/8 to 8, with the smallest GCV score over λ, on up to 2,000 rows with m = 256."""
    rows = _spread(len(X), 2 * _ROWS)
    X, Y = X[rows], Y[rows]
    best, best_score = 0.0, np.inf
    for bandwidth in median_bandwidth(X, kernel) * 2.0 ** np.arange(-3, 3.5, 0.5):
        scaled = kernel.with_bandwidth(bandwidth).fitted(X)
        state = build(backend, scaled, X, Y, RPCholeskySketch()).grown(min(256, len(X)))
        lams = lambda_grid(state.largest)
        scores = gcv_scores(state, lams, fit_intercept)[lams >= sketch_floor(state)]
        if scores.min() < best_score:
            best, best_score = float(bandwidth), scores.min()
    return best


def _spread(n: int, count: int) -> Array:
    """Up to ``count`` distinct rows, always the same for the same n."""
    return np.arange(n) if n <= count else np.sort(np.random.default_rng(0).choice(n, size=count, replace=False))
