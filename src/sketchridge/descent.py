"""Descent of a criterion over bandwidths or a linear map of the features, and the penalty."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from sketchridge.kernels import DistanceKernel
from sketchridge.loo import Criterion, Problem, criterion_at
from sketchridge.tuning import median_distance

__all__ = ["Chart", "Descent", "descend", "started", "toward_noise"]

Array = np.ndarray
_BANDWIDTHS = 0.05, 1e3  # in units of a feature's spread
_ALPHA = 1e-8, 1e3
_PULL = 1e-3  # of log-bandwidths toward their mean
_LEVEL = 2e-2  # away from the flat limit: 1e-2 and 3e-2 took an amplitude of 520 to 10 and 6
_STIFFNESS = 0.05  # of a full map: with 1e-3 maps overfit below 2,000 rows (0.27 against 0.235)
# Of log(1 + 1/α) over the degrees of freedom, in the restricted likelihood: a prior of the noise's
# share that grows with it. Without it y that is noise is interpolated below 500 rows (σ² of 0.01
# for 1 at 100 and 300 rows; 1.05 and 0.91 with it). RMSE of default fits to 60 and 200 rows of
# real tables changes by −3 to 0%, of weak signals by −10%, of Friedman's function by −1 and +7%.
_NOISY = 2.0
_FLOOR = 1e6  # the criterion where there is none
_EVALUATIONS = 60
_TOLERANCE = 3e-5
_START_ROWS = 300
_START_ALPHA = 0.01
_FAR = 0.3


@dataclass(frozen=True, eq=False)
class Chart:
    """Coordinates of what is learned: numbers θ that a map of the features is made of.

    Isotropic: one log-bandwidth. Ard: one for each feature. Full: T (d, d), which follows the
    division by ``base``. The last number of θ is log α.
    """

    form: str
    base: Array  # (d,): bandwidths at which θ starts
    alpha: float

    @property
    def start(self) -> Array:
        d = len(self.base)
        if self.form == "full":
            return np.append(np.eye(d).ravel(), np.log(self.alpha))
        logs = np.log(self.base)
        return np.append(logs if self.form == "ard" else logs.mean(), np.log(self.alpha))

    @property
    def bounds(self) -> list[tuple[float | None, float | None]]:
        each: tuple[float | None, float | None] = (None, None)
        if self.form != "full":
            each = (float(np.log(_BANDWIDTHS[0])), float(np.log(_BANDWIDTHS[1])))
        count = len(self.start) - 1
        return [each] * count + [(float(np.log(_ALPHA[0])), float(np.log(_ALPHA[1])))]

    def map(self, theta: Array) -> Array:
        """M (d, d): distances are ‖(x − z)M‖."""
        d = len(self.base)
        if self.form == "full":
            return theta[:-1].reshape(d, d) / self.base[:, None]
        return np.diag(np.broadcast_to(np.exp(-theta[:-1]), d))

    def coordinates(self, theta: Array, X: Array) -> Array:
        """X M: (n, d)."""
        return X @ self.map(theta) if self.form == "full" else X * np.exp(-theta[:-1])

    def gradient(self, theta: Array, X: Array, U: Array, by_U: Array) -> Array:
        """∂L/∂θ, less its last entry, from ∂L/∂U (n, d)."""
        if self.form == "full":
            return ((X / self.base).T @ by_U).ravel()
        by_logs = -np.einsum("ij,ij->j", U, by_U)
        return by_logs if self.form == "ard" else by_logs.sum(keepdims=True)

    def pull(self, theta: Array) -> tuple[float, Array]:
        """A weak pull of log-bandwidths toward their mean, or of T toward the identity."""
        free = theta[:-1]
        if self.form == "full":
            off = free - self.start[:-1]
            return _STIFFNESS * float(off @ off), np.append(2 * _STIFFNESS * off, 0.0)
        off = free - free.mean()
        level, by_logs = self._level(free)
        value = _PULL * float(off @ off) + _LEVEL * level**2
        return value, np.append(2 * _PULL * off + 2 * _LEVEL * level * by_logs, 0.0)

    def _level(self, logs: Array) -> tuple[float, Array]:
        """log of the bandwidth as a whole, (Σ_j h_j⁻²)^(−½), where it is above 1, with gradient.

        As it grows the kernel flattens: predictions converge, while the amplitude and the width of
        intervals far from the data grow without bound.
        """
        inverse = np.exp(-2 * logs)
        each = len(self.base) / len(logs)
        level = -0.5 * float(np.log(each * inverse.sum()))
        return max(level, 0.0), inverse / inverse.sum()


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a descent came from and where it ended."""

    kernel: DistanceKernel
    chart: Chart
    theta: Array
    values: tuple[float, ...]  # of the criterion, by evaluation
    seconds: float

    @property
    def map(self) -> Array:
        return self.chart.map(self.theta)

    @property
    def alpha(self) -> float:
        return float(np.exp(self.theta[-1]))

    def coordinates(self, X: Array) -> Array:
        return self.chart.coordinates(self.theta, X)


def descend(
    criterion: str,
    kernel: DistanceKernel,
    problem: Problem,
    chart: Chart,
    theta: Array | None = None,
    *,
    evaluate: Criterion = criterion_at,
) -> Descent:
    """L-BFGS-B from θ, the chart's start unless given; the best of all values met is kept.

    The restricted likelihood has a weak pull toward noise, since a kernel so narrow that rows know
    nothing of each other is noise by another name.
    """
    begun = time.perf_counter()
    values: list[float] = []
    noisy = _NOISY / max(len(problem) - problem.fit_intercept, 1) * (criterion == "reml")
    best: tuple[float, Array] = (np.inf, chart.start if theta is None else theta)

    def objective(theta: Array) -> tuple[float, Array]:
        nonlocal best
        U = chart.coordinates(theta, problem.X)
        found = evaluate(criterion, kernel, U, float(np.exp(theta[-1])), problem)
        if found is None:
            values.append(_FLOOR)
            return _FLOOR, np.zeros_like(theta)
        value, by_U, by_log_alpha = found
        pull, by_pull = chart.pull(theta)
        toward, by_pull[-1] = toward_noise(theta[-1], noisy)
        pull += toward
        values.append(value)
        if value + pull < best[0]:
            best = value + pull, theta.copy()
        by_theta = np.append(chart.gradient(theta, problem.X, U, by_U), by_log_alpha)
        return value + pull, by_theta + by_pull

    minimize(
        objective,
        best[1],
        jac=True,
        method="L-BFGS-B",
        bounds=chart.bounds,
        options={"maxfun": _EVALUATIONS, "maxiter": _EVALUATIONS, "ftol": _TOLERANCE, "maxcor": 20},
    )
    return Descent(kernel, chart, best[1], tuple(values), time.perf_counter() - begun)


def toward_noise(log_alpha: float, size: float) -> tuple[float, float]:
    """size·log(1 + 1/α), and its slope by log α.

    >>> toward_noise(0.0, 2.0)
    (1.3862943611198906, -1.0)
    """
    return size * float(np.logaddexp(0.0, -log_alpha)), -size / (1 + float(np.exp(log_alpha)))


def started(criterion: str, kernel: DistanceKernel, problem: Problem, form: str) -> Chart:
    """One bandwidth, from a coarse grid on a few rows, and a penalty to descend from.

    Without the grid a function of high frequency is taken for noise. Many bandwidths start at the
    median distance and α = 0.01 unless a smaller bandwidth is far better: from smaller α they end
    in poorer minima, and where many features do not matter the best single bandwidth is that of a
    flat kernel, which no descent leaves.
    """
    few = problem.some(slice(0, _START_ROWS))
    median = median_distance(few.X, kernel) or 1.0
    single = form == "isotropic"
    alphas = (1.0, 1e-2, 1e-4) if single else (_START_ALPHA,)
    margin = _TOLERANCE if single else _FAR
    best = np.inf, median, _START_ALPHA
    for factor in 2.0 ** np.arange(3 if single else 0, -5, -1):
        bandwidth = float(np.clip(median * factor, *_BANDWIDTHS))
        for alpha in alphas:
            found = criterion_at(criterion, kernel, few.X / bandwidth, alpha, few)
            if found is not None and found[0] < best[0] - margin:
                best = found[0], bandwidth, alpha
    return Chart(form, np.full(problem.X.shape[1], best[1]), best[2])
