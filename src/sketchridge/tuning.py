"""What the data choose: the penalty λ, the sketch size m, the bandwidth and the noise variance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist

from sketchridge.backends import Backend
from sketchridge.basis import Basis, basis_of, degrees_of_freedom
from sketchridge.factor import factorize, sample_of
from sketchridge.kernels import DistanceKernel, Kernel
from sketchridge.loo import largest_within, penalty_grid
from sketchridge.notices import warn
from sketchridge.precision import FULL
from sketchridge.progress import Say
from sketchridge.query import AtPoints
from sketchridge.ridge import Ridge
from sketchridge.rows import Repeats, deviations
from sketchridge.sketches import RPCholeskySketch

__all__ = [
    "LambdaPath",
    "choose_lambda",
    "chosen",
    "gap",
    "gcv_bandwidth",
    "gcv_scores",
    "grow_sketch",
    "lambda_path",
    "largest_gap",
    "loo_errors",
    "median_bandwidth",
    "median_distance",
    "predicted_error",
    "probe_rows",
    "sketch_floor",
    "some_rows",
    "target_scales",
]

Array = np.ndarray
_FIRST = 64  # rows of an automatic sketch
_STEP = 32
_FACTORS = (1.125, 4.0)  # by which it grows, at least and at most
# The gap V2/V3, and what V̄, above a gap of 2 V_θ, is off by at 95% of points in 93% of problems,
# rounded up and not below that of a smaller gap: printed by benchmarks/averaged.py
_GAPS = np.array([1.001, 1.01, 1.03, 1.1, 1.2, 1.35, 1.6, 2.0, 2.5, 3.0, 5.0, 10.0])
_ERRORS = np.array(
    [0.0005, 0.0043, 0.011, 0.0225, 0.0503, 0.066, 0.11, 0.157, 0.16, 0.165, 0.233, 0.431]
)
_PROBE = 256
_ROWS = 1000
_LARGEST = 700.0  # log of a gap, which must be finite
_ROUGH = 0.01  # error of the gap that is of no interest
_EPS = np.finfo(float).eps
_TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class LambdaPath:
    """λ with the degrees of freedom, the GCV score and the mean squared leave-one-out error it
    gives: each (l,).

    For several targets the scores are means over targets, each divided by its variance and
    multiplied by their mean variance, so that no target decides because of its units.
    """

    lam: Array
    df: Array
    gcv: Array
    loo: Array


def lambda_path(basis: Basis, fit_intercept: bool, scales: Array) -> LambdaPath:
    """All scores on the grid. O(nm²)."""
    lams = penalty_grid(basis.largest)
    return LambdaPath(
        lams,
        degrees_of_freedom(basis, lams, fit_intercept),
        gcv_scores(basis, lams, fit_intercept, scales),
        loo_errors(basis, lams, fit_intercept, scales),
    )


def target_scales(Y: Array, w: Array, units: Array | float = 1.0) -> Array:
    """What each target's squared error is multiplied by: mean variance over its variance: (q,).

    Where Y is y divided by its ``units`` (q,), the mean is that of y.
    """
    variance = deviations(Y, w) ** 2
    varying = variance > 0
    if not varying.any():
        return np.ones(len(variance))
    scales = np.zeros_like(variance)
    scales[varying] = (units**2 * variance)[varying].mean() / variance[varying]
    return scales * (len(variance) / varying.sum())


def gcv_scores(basis: Basis, lams: Array, fit_intercept: bool, scales: Array) -> Array:
    """N² Σ μ_i r_i²/(N − df)², from E and P alone: O(m) per λ.

    The sum is over all rows, and N counts those that repeat x with another y as they were given; a
    row that repeats both is weight.
    """
    n, q = basis.Y.shape
    E, P, rest = basis.E, basis.P, basis.rest
    kept = (lams[:, None] / (E + lams[:, None]))[:, :, None]  # (l, r, 1)
    rss = (kept**2 * P[:, :q] ** 2).sum(axis=1) + np.diagonal(rest)[:q]  # (l, q)
    if fit_intercept:
        o = P[:, -1:]
        one_y1 = (kept * o * P[:, :q]).sum(axis=1) + rest[-1, :q]  # 1ᵀM(I − Ĥ)y
        one_y2 = (kept**2 * o * P[:, :q]).sum(axis=1) + rest[-1, :q]  # 1ᵀM(I − Ĥ)²y
        one_one1 = (kept * o**2).sum(axis=1) + rest[-1, -1]
        one_one2 = (kept**2 * o**2).sum(axis=1) + rest[-1, -1]
        offset = one_y1 / np.maximum(one_one1, _TINY)
        rss = np.maximum(rss - 2 * offset * one_y2 + offset**2 * one_one2, 0)
    if basis.repeats is not None:
        rss = rss + basis.repeats.squares.sum(axis=0) / basis.sample.total
        n += int(basis.repeats.dof.sum())
    df = degrees_of_freedom(basis, lams, fit_intercept)
    left = np.maximum(1 - df / n, _EPS)
    return (rss * scales).mean(axis=1) / left**2


def loo_errors(basis: Basis, lams: Array, fit_intercept: bool, scales: Array) -> Array:
    """Mean squared leave-one-out error, exact for a fixed alpha and sketch. O(nm) per λ."""
    q = basis.Y.shape[1]
    root = np.sqrt(basis.E)[:, None]
    D = 1 / (basis.E[:, None] + lams)  # (r, l)
    total = basis.sample.total
    offsets = np.zeros((q, len(lams)))
    gaps = np.full(len(lams), np.inf)
    if fit_intercept:
        offsets, gaps = _intercepts(basis, lams)
    ones = D * root * basis.P[:, -1:]  # e = 1 − T ones
    errors = np.zeros(len(lams))
    for j in range(q):
        centered = basis.P[:, j : j + 1] - basis.P[:, -1:] * offsets[j]
        fit = D * root * centered  # (r, l)
        errors += scales[j] * basis.T.sum(
            _loo_block,
            basis.Y.columns(j, j + 1),
            basis.sample.weights,
            small=(D, fit, offsets[j], ones, gaps, np.array(total)),
        )
    return errors / (total * q)


def _intercepts(basis: Basis, lams: Array) -> tuple[Array, Array]:
    """The constants (q, l) and 1ᵀM(I − Ĥ)1 (l,) of every λ, from E and P alone."""
    kept = lams / (basis.E[:, None] + lams)  # (r, l)
    o = basis.P[:, -1:]
    gaps = (kept * o**2).sum(axis=0) + basis.rest[-1, -1]
    gaps = np.maximum(gaps, _TINY)
    across = basis.P[:, :-1].T @ (kept * o) + basis.rest[-1, :-1, None]
    return across / gaps, gaps


def _loo_block(
    t: Array, y: Array, w: Array, D: Array, fit: Array, offset: Array, ones: Array, gaps: Array,
    total: Array,
) -> Array:  # fmt: skip
    """Σ_i w_i (r_i/(1 − h_i))² over a block of rows, for each λ: (l,)."""
    e = 1 - t @ ones
    h = w * ((t * t) @ D + e * e / gaps) / total
    left = (1 - h).clip(_EPS, None)
    return (w * ((y - offset - t @ fit) / left) ** 2).sum(axis=0)


def choose_lambda(
    basis: Basis, criterion: str, fit_intercept: bool, scales: Array, *, floor: float = 0.0
) -> float:
    """The λ of the grid that GCV or leave-one-out choose, not below ``floor``."""
    lams = penalty_grid(basis.largest)
    score = {"gcv": gcv_scores, "loo": loo_errors}[criterion]
    return max(chosen(criterion, lams, score(basis, lams, fit_intercept, scales)), floor)


def chosen(criterion: str, lams: Array, scores: Array) -> float:
    """The minimizer of GCV; the largest λ whose leave-one-out error is within 1% of the least."""
    if criterion == "gcv":
        return float(lams[np.argmin(scores)])
    return largest_within(lams, scores)


def sketch_floor(basis: Basis) -> float:
    """E[rank/2]: below it the sketch, not λ, regularizes. 0 for a complete sketch, which cannot."""
    if basis.factor.complete or not len(basis.E):
        return 0.0
    return float(basis.E[len(basis.E) // 2])


def gap(ridge: Ridge, probe: Array) -> float:
    """The 95% quantile of V2/V3 over the training rows ``probe``: how far V2 may be from V1."""
    query = AtPoints(ridge.sample.points.take(probe))
    return _quantile(ridge.v2(query), ridge.v3(query))


def _quantile(v2: Array, v3: Array) -> float:
    ratio = np.divide(v2, v3, out=np.where(v2 > 0, np.inf, 1.0), where=v3 > 0)
    return float(np.quantile(ratio, 0.95, method="higher"))


def probe_rows(n: int, rng: np.random.Generator) -> Array:
    """Up to 256 rows at which the gap is measured."""
    return rng.choice(n, size=min(n, _PROBE), replace=False)


class _Probe:
    """V2 and V3 at some training rows while the sketch grows.

    The sums k_xᵀM[F 1] of columns that are there do not change when others are added, so each is
    computed once. Where rounding spoils such a V2, it is computed as a residual.
    """

    def __init__(self, basis: Basis, rows: Array) -> None:
        self.query = AtPoints(basis.sample.points.take(rows))
        self.rows = rows
        self.squares: Array | None = None
        self.products = np.empty((len(rows), 0))
        self.ones = np.empty(len(rows))

    def gap(self, ridge: Ridge) -> float:
        factor = ridge.basis.factor
        if not factor.nested:  # all columns change as a dense sketch grows
            return gap(ridge, self.rows)
        self._add(ridge)
        a = factor.F.take(self.rows) @ ridge.basis.V
        v3 = ridge.v3_from_features(a)
        b = self.products @ ridge.basis.V
        largest = np.sqrt(factor.explained.max(initial=0.0))  # of the columns of F
        sizes = np.full(b.shape[1], largest)
        assert self.squares is not None
        v2, bound = ridge.from_moments(
            self.squares, b, None, self.ones, theta=1.0, sizes=sizes, precision=FULL
        )
        poor = np.flatnonzero(~(bound <= _ROUGH * v2))
        if len(poor):
            v2[poor] = ridge.residual_form(self.query.some(poor), 1.0)
        return _quantile(v2, v3)

    def _add(self, ridge: Ridge) -> None:
        known = self.products.shape[1]
        sample = ridge.sample
        new = ridge.basis.factor.F.columns(known)
        if self.squares is None:
            squares, products = self.query.moments(sample, new.beside(ridge.basis.ones), FULL)
            sums = products.host()
            self.squares = squares
            self.ones = sums[:, -1]
            self.products = sums[:, :-1]
        elif new.shape[1]:
            more = self.query.products(sample, new, FULL).host()
            self.products = np.column_stack([self.products, more])


def predicted_error(gap: float) -> float:
    """How far V̄, above a gap of 2 V_θ, may be from V1, relative, at 95% of points in 90% of
    problems with that gap.

    >>> f"{predicted_error(1.1):.1%} {predicted_error(2.0):.1%}"
    '2.2% 15.7%'
    """
    above = np.log(max(gap - 1, _TINY))
    return float(np.exp(_along(above, np.log(_GAPS - 1), np.log(_ERRORS))))


def largest_gap(error: float) -> float:
    """The gap with that predicted error: the inverse of `predicted_error`."""
    above = _along(np.log(error), np.log(_ERRORS), np.log(_GAPS - 1))
    return float(1 + np.exp(min(above, _LARGEST)))


def _along(x: float, xs: Array, ys: Array) -> float:
    """Linear interpolation, and beyond the ends along the lines there."""
    i = int(np.clip(np.searchsorted(xs, x) - 1, 0, len(xs) - 2))
    return float(ys[i] + (x - xs[i]) * (ys[i + 1] - ys[i]) / (xs[i + 1] - xs[i]))


def grow_sketch(
    basis: Basis,
    penalized: Callable[[Basis], Ridge],
    *,
    tol: float,
    probe: Array,
    largest: int,
    say: Say,
) -> tuple[Ridge, float]:
    """Grow m from 64 until V̄ or V_θ is within ``tol`` by prediction, the numerical rank is
    reached or m = min(n, largest).

    ``penalized`` chooses λ. Where λ is below E[m/2] the gap is far from 1 and not worth measuring;
    where it is held there, the mean gains by a larger sketch, which grows until V2 is within
    ``tol`` as well. Returns the last ridge and its gap.
    """
    limit = max(min(len(basis.sample), largest), basis.factor.sketch.size)
    at_probe = _Probe(basis, probe)
    while True:
        size = basis.factor.sketch.size
        following = _FIRST
        if size or basis.factor.complete:
            ridge = penalized(basis)
            floor = sketch_floor(basis)
            wanted = 1 + tol if ridge.lam == floor else largest_gap(tol)
            full = basis.factor.complete or size >= limit
            worth = full or ridge.lam >= floor
            reached = at_probe.gap(ridge) if worth else np.inf
            say(f"Growing the sketch: {size} rows, gap V2/V3 {reached:.3g}")
            if full or reached <= wanted:
                break
            following = _next_size(ridge, reached, wanted)
        basis = basis.grown(min(limit, following))
    if reached > wanted and not basis.factor.complete:
        warn(
            f"The sketch reached its largest automatic size, {size}, with a gap V2/V3 of "
            f"{reached:.4g}, above the {wanted:.4g} for which standard deviations are within "
            f"sketch_tol={tol:g}: they may be off by {predicted_error(reached):.2g}, relative, and "
            "V2 by about the gap. Give a larger sketch_size or another sketch, a larger alpha or "
            "bandwidth, or ask for a refined variance.",
        )
    return ridge, reached


def _next_size(ridge: Ridge, reached: float, wanted: float) -> int:
    """The size at which the gap is expected to be as wanted, a multiple of 32.

    Where λ is above E[m/2], the gap less 1 falls about as m^(−5/2) (medians of 2.2 to 3.2 in
    benchmarks/averaged.py); where λ was held at E[m/2], it falls with m, and the gap less 1 hardly
    faster than 1/m. Where λ is below, s_λ is where the eigenvalues, continued as they fall between
    m/4 and m/2, reach it.
    """
    basis = ridge.basis
    size = basis.factor.sketch.size
    floor = sketch_floor(basis)
    if ridge.lam >= floor:
        held = ridge.lam == floor
        factor = min(2.0, ((reached - 1) / max(wanted - 1, _EPS)) ** (1.0 if held else 0.4))
    else:
        quarter = float(basis.E[len(basis.E) // 4])
        slope = np.log2(quarter / floor)  # of −log E against log m
        factor = 2 ** (np.log2(floor / ridge.lam) / max(slope, _TINY)) if slope > 0 else np.inf
    return int(_STEP * np.ceil(size * np.clip(factor, *_FACTORS) / _STEP))


def median_bandwidth(X: Array, kernel: Kernel) -> float:
    """The median of the positive distances among up to 1,000 rows, in the kernel's metric."""
    median = median_distance(X[some_rows(len(X), _ROWS)], kernel)
    if not median:
        raise ValueError(
            "bandwidth='median' needs rows that differ, but all rows of X looked at are identical: "
            "give a number as bandwidth."
        )
    if not np.isfinite(median):
        raise ValueError(
            "The distances between rows of X overflow: rescale X, for example with StandardScaler."
        )
    return median


def median_distance(X: Array, kernel: Kernel) -> float:
    """Of the positive ones, in the kernel's metric; 0 where there are none."""
    distances = pdist(X, kernel.metric)
    positive = distances[distances > 0]
    return float(np.median(positive)) if len(positive) else 0.0


def gcv_bandwidth(
    backend: Backend, kernel: DistanceKernel, X: Array, Y: Array, w: Array, fit_intercept: bool,
    repeats: Repeats | None = None,
) -> float:  # fmt: skip
    """The multiple of the median, from 1/8 to 8, with the smallest GCV score over λ, on up to
    2,000 rows with m = 256."""
    rows = some_rows(len(X), 2 * _ROWS)
    X, Y, w = X[rows], Y[rows], w[rows]
    repeats = None if repeats is None else repeats.take(rows)
    scales = target_scales(Y, w)
    best = median_bandwidth(X, kernel)
    best_score = np.inf
    for bandwidth in best * 2.0 ** np.arange(-3, 3.5, 0.5):
        scaled = kernel.with_bandwidth(bandwidth).fitted(X)
        sample = sample_of(backend.place(scaled, scaled.coordinates(X)), w)
        factor = factorize(sample, RPCholeskySketch(), FULL).grown(min(256, len(X)))
        basis = basis_of(factor, backend.tall(Y), repeats)
        lams = penalty_grid(basis.largest)
        scores = gcv_scores(basis, lams, fit_intercept, scales)[lams >= sketch_floor(basis)]
        if scores.min() < best_score:
            best, best_score = float(bandwidth), float(scores.min())
    return best


def some_rows(n: int, count: int) -> Array:
    """Up to ``count`` distinct rows, always the same for the same n."""
    if n <= count:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, size=count, replace=False))
