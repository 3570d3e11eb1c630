"""Means, rates and shares with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

__all__ = ["MEANS", "Estimate", "arithmetic", "bootstrap", "geometric", "rate", "share"]

Array = np.ndarray
Values = Sequence[float] | Array
_LEAST_SIZES = 3  # for a scatter about a line


@dataclass(frozen=True)
class Estimate:
    """A value with its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.mean):
            return "no slope from one size"
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"

    def __mul__(self, factor: float) -> Estimate:
        ends = sorted((self.low * factor, self.high * factor))
        return Estimate(self.mean * factor, ends[0], ends[1])


def arithmetic(values: Values, level: float = 0.95) -> Estimate:
    """Mean and interval by Student's t; without an end for a single value."""
    values = np.asarray(values, dtype=float)
    half = np.inf
    if len(values) > 1:
        t = stats.t.ppf((1 + level) / 2, len(values) - 1)
        half = t * values.std(ddof=1) / np.sqrt(len(values))
    return Estimate(float(values.mean()), float(values.mean() - half), float(values.mean() + half))


def geometric(values: Values, level: float = 0.95) -> Estimate:
    """Geometric mean and its interval, for positive values of which a few are very large."""
    logs = arithmetic(np.log(values), level)
    return Estimate(*(float(np.exp(value)) for value in (logs.mean, logs.low, logs.high)))


MEANS = {"arithmetic": arithmetic, "geometric": geometric}


def rate(x: Values, means: Values, level: float = 0.95) -> Estimate:
    """The slope of log means on log x, with an interval from their scatter about the line.

    Without an end where there are fewer than three sizes, and without a slope where there is one.

    >>> round(rate([1, 10, 100], [5, 0.5, 0.05]).mean, 9)
    -1.0
    >>> rate([1, 10], [5, 0.5]).high
    inf
    """
    sizes = len(np.unique(x))
    if sizes < 2:
        return Estimate(np.nan, -np.inf, np.inf)
    if sizes >= _LEAST_SIZES and np.ptp(means) == 0:
        return Estimate(0.0, 0.0, 0.0)
    fit = stats.linregress(np.log(x), np.log(means))
    half = np.inf
    if sizes >= _LEAST_SIZES:
        half = stats.t.ppf((1 + level) / 2, len(x) - 2) * fit.stderr
    return Estimate(float(fit.slope), float(fit.slope - half), float(fit.slope + half))


def share(count: int, total: int) -> Estimate:
    """A share with Wilson's 95% interval."""
    found = stats.binomtest(count, total).proportion_ci(method="wilson")
    return Estimate(count / total, float(found.low), float(found.high))


def bootstrap(values: Array, statistic: Callable[[Array], float], draws: int = 2000) -> Estimate:
    """A statistic of rows that are repetitions, with a 95% interval by drawing them again."""
    rng = np.random.default_rng(0)
    rows = rng.integers(len(values), size=(draws, len(values)))
    low, high = np.quantile([statistic(values[some]) for some in rows], [0.025, 0.975])
    return Estimate(statistic(values), float(low), float(high))
