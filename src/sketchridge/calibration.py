"""Whether predicted distributions hold on data that no fit has seen: coverage, scores, a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchridge.proper_scores import (
    PARTS,
    coverage,
    coverage_by_spread,
    crps,
    interval_score,
    negative_log_density,
    pit,
    pit_from_quantiles,
)

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
_MAIN = 0.95  # the level of the coverage by spread


@dataclass(frozen=True, eq=False)
class Calibration:
    """What was found on t observations. Printing it shows a table.

    Parameters
    ----------
    levels, coverage : (l,) arrays
        Confidence levels asked for, and the shares that were found.
    width, score : (l,) arrays
        Median width and mean interval score, in units of y.
    by_spread : (parts,) array
        Coverage at the main level, from the narrowest to the widest intervals.
    main_level : float
        That level.
    pit : (t,) array
        F(y), between 0 and 1.
    crps, log_density : float or None
        Means of Gaussian scores; None where the model tells no predictive variance.

    Attributes
    ----------
    t : int
        The number of observations.
    errors : (l,) array
        Standard errors of the coverages, if the levels held.
    """

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
        """The number of observations."""
        return len(self.pit)

    @property
    def errors(self) -> Array:
        """Standard errors of the coverages, if the levels held: (l,)."""
        return np.sqrt(self.levels * (1 - self.levels) / self.t)

    def histogram(self, parts: int = PARTS) -> Array:
        """Shares of the PIT in equal parts of [0, 1].

        Parameters
        ----------
        parts : int
            How many parts.

        Returns
        -------
        shares : (parts,) array
            Each 1/parts where all holds.
        """
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
    model : estimator
        Anything with `predict_interval(X, level)` → (low, high) for new observations. Its
        `predict` and `predictive_variance(X)`, where it has both, give the Gaussian scores.
    X : (t, d) array or table
        Points that the model was not fitted to.
    y : (t,) or (t, q) array
        What was observed there; several targets are pooled, in their own units.
    levels : sequence of float
        Those of the intervals, each one call of `predict_interval`.

    Returns
    -------
    found : Calibration
        Printing it shows a table; `plotting.plot_calibration` draws it.

    Examples
    --------
    >>> from scipy.stats import norm
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
    y = np.asarray(y, dtype=float)
    if not np.isfinite(y).all():
        bad = int(np.argmin(np.isfinite(y).reshape(len(y), -1).all(axis=1)))
        raise ValueError(
            f"y is missing or infinite in row {bad} (counted from 0): leave out what was not "
            "observed, and the rows of X with it."
        )
    return _compared(model, X, y, levels)


def _compared(model: Any, X: Any, y: Array, levels: Sequence[float]) -> Calibration:
    asked = np.unique(_checked(levels))
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
    above what is asked for below 2,000 rows, where they are widened); what can be learned is
    whether it is so where intervals are narrow and where they are wide.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library.
    levels : sequence of float
        Those of the intervals, each one call of `predict_interval`.

    Returns
    -------
    found : Calibration
        As of `calibrate`.

    Examples
    --------
    >>> from sketchridge import ExactKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((400, 1))
    >>> model = ExactKernelRidge().fit(X, np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(400))
    >>> calibrate_left_out(model, [0.5, 0.9]).coverage.round(2)
    array([0.5, 0.9])
    """
    found = _LeftOut(model.fitted_)
    return _compared(found, None, found.errors, levels)


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
