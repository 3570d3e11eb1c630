"""Whether predicted distributions hold on data that no fit has seen: coverage, scores, a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import beta
from scipy.stats import norm
from scipy.stats import t as student

__all__ = [
    "Calibration",
    "calibrate",
    "calibrate_left_out",
    "coverage",
    "coverage_by_spread",
    "crps",
    "interval_score",
    "negative_log_density",
    "pit",
    "pit_from_quantiles",
]

Array = np.ndarray
LEVELS = (0.2, 0.4, 0.5, 0.6, 0.8, 0.9, 0.95)  # with the median, the tenths of a distribution
_PARTS = 10
_MAIN = 0.95  # the level of the coverage by spread


def coverage(y: Array, low: Array, high: Array) -> float:
    """The share of y within [low, high], all of one shape.

    >>> coverage(np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4), np.full(4, 3.0))
    0.75
    """
    return float(((low <= y) & (y <= high)).mean())


def coverage_by_spread(y: Array, low: Array, high: Array, parts: int = _PARTS) -> Array:
    """The coverage in each tenth of the points, from the narrowest intervals to the widest.

    All arrays are (t,). The result is (parts,), or (t,) where there are fewer points than parts.

    >>> coverage_by_spread(np.array([0.0, 5.0]), np.array([-1.0, -2.0]), np.array([1.0, 2.0]), 2)
    array([1., 0.])
    """
    order = np.argsort(high - low, kind="stable")
    inside = ((low <= y) & (y <= high))[order]
    return np.array([part.mean() for part in np.array_split(inside, min(parts, len(y)))])


def interval_score(y: Array, low: Array, high: Array, level: float) -> Array:
    """high − low + 2/(1 − level)·(how far y lies outside), in units of y: the shape of y.

    The smaller the better; its mean is least for the true quantiles.

    >>> interval_score(np.array([0.0, 3.0]), np.array([-1.0, -1.0]), np.array([1.0, 1.0]), 0.9)
    array([ 2., 42.])
    """
    outside = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return high - low + 2 / (1 - level) * outside


def crps(y: Array, mean: Array, scale: Array, nu: float = np.inf) -> Array:
    """The continuous ranked probability score ∫(F(u) − 1{u ≥ y})²du, in units of y.

    Of a Student t with ν > 1 degrees of freedom or, for ν = ∞, of a Gaussian: with z the
    standardised y, F and f the standard distribution and density,
    scale·(z(2F(z) − 1) + 2f(z)(ν + z²)/(ν − 1) − 2√ν/(ν − 1)·B(½, ν − ½)/B(½, ν/2)²).

    >>> float(crps(np.array(0.0), np.array(0.0), np.array(1.0)).round(4))
    0.2337
    """
    z = (y - mean) / scale
    if np.isinf(nu):
        return scale * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    if nu <= 1:
        raise ValueError(f"The score is finite only for more than 1 degree of freedom, got {nu!r}.")
    centre = 2 * np.sqrt(nu) / (nu - 1) * beta(0.5, nu - 0.5) / beta(0.5, nu / 2) ** 2
    tails = 2 * student.pdf(z, nu) * (nu + z**2) / (nu - 1)
    return scale * (z * (2 * student.cdf(z, nu) - 1) + tails - centre)


def negative_log_density(y: Array, mean: Array, scale: Array, nu: float = np.inf) -> Array:
    """−log p(y) of a Student t or, for ν = ∞, of a Gaussian: the shape of y.

    >>> float(negative_log_density(np.array(0.0), np.array(0.0), np.array(1.0)).round(4))
    0.9189
    """
    if np.isinf(nu):
        return -norm.logpdf(y, mean, scale)
    return -student.logpdf(y, nu, mean, scale)


def pit(y: Array, mean: Array, scale: Array, nu: float = np.inf) -> Array:
    """F(y), the probability integral transform: uniform on [0, 1] where the distributions hold.

    >>> pit(np.array([0.0]), np.array([0.0]), np.array([1.0]))
    array([0.5])
    """
    z = (y - mean) / scale
    return norm.cdf(z) if np.isinf(nu) else student.cdf(z, nu)


def pit_from_quantiles(y: Array, quantiles: Array, probabilities: Array) -> Array:
    """The same from quantiles (p, t) at ascending probabilities (p,): linear between them: (t,).

    Beyond the outermost the value lies halfway to 0 or 1.

    >>> pit_from_quantiles(np.array([0.5]), np.array([[0.0], [1.0]]), np.array([0.4, 0.6]))
    array([0.5])
    """
    below, above = probabilities[0] / 2, (1 + probabilities[-1]) / 2
    columns = zip(y, quantiles.T, strict=True)
    return np.array([np.interp(v, q, probabilities, below, above) for v, q in columns])


@dataclass(frozen=True, eq=False)
class Calibration:
    """What was found on t observations. Printing it shows a table."""

    levels: Array  # (l,), asked for
    coverage: Array  # (l,), found
    width: Array  # (l,), median width of the intervals, in units of y
    score: Array  # (l,), mean interval score, in units of y
    by_spread: Array  # (parts,), coverage at main_level, from the narrowest to the widest intervals
    main_level: float
    pit: Array  # (t,)
    crps: float | None  # mean, of Gaussians; None where the model tells no predictive variance
    log_density: float | None  # mean −log p(y), likewise

    @property
    def t(self) -> int:
        return len(self.pit)

    @property
    def errors(self) -> Array:
        """Standard errors of the coverages, if the levels held: (l,)."""
        return np.sqrt(self.levels * (1 - self.levels) / self.t)

    def histogram(self, parts: int = _PARTS) -> Array:
        """Shares of the PIT in equal parts of [0, 1], 1/parts each where all holds: (parts,)."""
        return np.histogram(self.pit, parts, (0, 1))[0] / self.t

    def __str__(self) -> str:
        rows = zip(self.levels, self.coverage, self.errors, self.width, self.score, strict=True)
        lines = [f"{self.t:,} observations", "   asked   found   (s.e.)       width       score"]
        lines += [
            f"{100 * a:7.1f}% {100 * c:6.1f}% {100 * e:7.1f}% {w:11.4g} {s:11.4g}"
            for a, c, e, w, s in rows
        ]
        tenths = " ".join(f"{100 * c:.0f}" for c in self.by_spread)
        lines.append(f"{100 * self.main_level:g}% by predicted spread, narrow to wide: {tenths}")
        if self.crps is not None and self.log_density is not None:
            lines.append(f"Gaussian: CRPS {self.crps:.4g}, -log density {self.log_density:.4g}")
        return "\n".join(lines)


def calibrate(model: Any, X: Any, y: Any, levels: Sequence[float] = LEVELS) -> Calibration:
    """Compare a model's intervals with observations that it was not fitted to.

    Parameters
    ----------
    model : anything with `predict_interval(X, level)` → (low, high) for new observations. Its
        `predict` and `predictive_variance(X)`, where it has both, give the Gaussian scores.
    X, y : (t, d) and (t,), or y (t, q): several targets are pooled, in their own units.
    levels : those of the intervals, each one call of `predict_interval`.

    >>> class Normal:
    ...     def predict_interval(self, X, level):
    ...         half = np.full(len(X), norm.ppf((1 + level) / 2))
    ...         return -half, half
    >>> y = np.random.default_rng(0).standard_normal(1000)
    >>> print(calibrate(Normal(), np.zeros((1000, 1)), y, levels=(0.5, 0.95)))
    1,000 observations
       asked   found   (s.e.)       width       score
       50.0%   51.2%     1.6%       1.349       2.472
       95.0%   96.0%     0.7%        3.92       4.716
    95% by predicted spread, narrow to wide: 96 97 92 97 94 100 96 94 99 95
    """
    asked = np.unique(_checked(levels))
    y = np.asarray(y, dtype=float)
    limits = [model.predict_interval(X, float(level)) for level in asked]
    lows, highs = (np.array([np.ravel(pair[k]) for pair in limits]) for k in (0, 1))  # (l, t)
    seen = y.ravel()
    if lows.shape[1:] != seen.shape:
        raise ValueError(
            f"The model predicts intervals of shape {np.shape(limits[0][0])}, but y has {y.shape}: "
            "give y of the shape it was fitted to, with a row for each row of X."
        )
    main = int(np.argmin(np.abs(asked - _MAIN)))
    scores = [interval_score(seen, *pair) for pair in zip(lows, highs, asked, strict=True)]
    return Calibration(
        asked,
        ((lows <= seen) & (seen <= highs)).mean(axis=1),
        np.median(highs - lows, axis=1),
        np.mean(scores, axis=1),
        coverage_by_spread(seen, lows[main], highs[main]),
        float(asked[main]),
        _pit_from_intervals(seen, lows, highs, asked),
        *_gaussian_scores(model, X, y),
    )


def calibrate_left_out(model: Any, levels: Sequence[float] = LEVELS) -> Calibration:
    """Compare a fitted model's intervals with its own rows, each predicted without itself.

    Over all rows coverage is right by construction, since intervals are made of these errors (or
    above what is asked for below 300 rows, where they are widened); what can be learned is whether
    it is so where intervals are narrow and where they are wide.

    Parameters
    ----------
    model : a fitted estimator of this library. levels : those of the intervals.

    >>> from sketchridge import ExactKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((400, 1))
    >>> model = ExactKernelRidge().fit(X, np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(400))
    >>> calibrate_left_out(model, [0.5, 0.9]).coverage.round(2)
    array([0.5, 0.9])
    """
    found = _LeftOut(model.fitted_)
    return calibrate(found, None, found.errors, levels)


class _LeftOut:
    """The distributions of leave-one-out errors that a fit predicts, as a model of mean 0."""

    def __init__(self, fitted: Any) -> None:
        scores = fitted.left_out.scores
        self.predictive = fitted.predictive
        self.errors = scores.residuals
        self.gp = np.maximum(scores.variances - scores.noise, 0)
        self.share = scores.noise / self.predictive.alpha

    def predict(self, _: Any) -> Array:
        return np.zeros_like(self.errors)

    def predict_interval(self, _: Any, level: float) -> tuple[Array, Array]:
        below, above = self.predictive.half_widths(self.gp, level, noise_share=self.share)
        return -below, above

    def predictive_variance(self, _: Any) -> Array:
        return self.predictive.variance(self.gp, self.share)


def _checked(levels: Sequence[float]) -> Array:
    asked = np.asarray(levels, dtype=float)
    if asked.ndim != 1 or not len(asked) or not ((asked > 0) & (asked < 1)).all():
        raise ValueError(f"levels must lie strictly between 0 and 1, got {levels!r}.")
    return asked


def _pit_from_intervals(y: Array, lows: Array, highs: Array, levels: Array) -> Array:
    """The median is taken to be halfway between the limits of the narrowest interval."""
    median = (lows[:1] + highs[:1]) / 2
    quantiles = np.concatenate([lows[::-1], median, highs])
    probabilities = np.concatenate([(1 - levels[::-1]) / 2, [0.5], (1 + levels) / 2])
    return pit_from_quantiles(y, quantiles, probabilities)


def _gaussian_scores(model: Any, X: Any, y: Array) -> tuple[float | None, float | None]:
    if not hasattr(model, "predictive_variance") or not hasattr(model, "predict"):
        return None, None
    mean = np.asarray(model.predict(X))
    least = np.finfo(float).eps * max(float(np.abs(y).max()), np.finfo(float).tiny)
    std = np.maximum(np.sqrt(np.asarray(model.predictive_variance(X))), least)  # not below rounding
    found = crps(y, mean, std), negative_log_density(y, mean, std)
    return float(found[0].mean()), float(found[1].mean())
