"""The predictive distribution of a new observation: its variance, intervals and density.

They are made of leave-one-out scores (`scores`): the error of a new observation, divided by
√(α + gp(x)), is compared with theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from scipy.stats import t as student

from sketchridge.notices import warn
from sketchridge.scores import Scores, tempered

__all__ = ["Predictive", "Ranks", "gained", "predictive_of", "ranks_of", "student_fit"]

Array = np.ndarray
_FAR = 1.0, 20.0  # half-width of a 95% interval far from the data, in spreads of y
_NORMAL95 = 1.959963984540054
_LEVELS = np.array([*np.arange(1, 100), 99.5, 99.9]) / 100
_POWERS = (1.0, 0.8, 0.6, 0.4)  # of the predicted variance, that widths may follow
_COMPARED = (0.8, 0.95)  # levels of the intervals by which models are compared
_KEPT = 2000  # scores of a table in its middle, and as many at each end
_FITTED = 5000  # scores to which a Student t is fitted
_NU = 1.0, 200.0  # tails of real tables: 1 to 3; above 200 it is a Gaussian
_EPS = np.finfo(float).eps
_TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Ranks:
    """Sorted scores: column j of ``counts`` says how many of n rows have at most each value."""

    values: Array  # (k, q), ascending
    counts: Array  # (k, q)
    n: float

    @property
    def highest(self) -> float:
        """The highest level that n rows can give: n/(n + 1)."""
        return self.n / (self.n + 1)

    def at(self, level: float) -> Array:
        """The ⌈level·(n + 1)⌉-th smallest score, or the largest where that is beyond n: (q,)."""
        rank = level * (self.n + 1) * (1 - 4 * _EPS) - 1e-9
        places = np.array([np.searchsorted(column, rank) for column in self.counts.T])
        places = np.minimum(places, len(self.values) - 1)
        return self.values[places, np.arange(len(places))]


def ranks_of(values: Array, masses: Array) -> Ranks:
    """The table of scores (N, q). A long one is thinned in its middle: ranks are rounded up.

    >>> ranks_of(np.array([[3.0], [1.0], [2.0]]), np.ones(3)).at(0.5)
    array([2.])
    """
    order = np.argsort(values, axis=0, kind="stable")
    counts = np.cumsum(masses[order], axis=0)
    N = len(values)
    kept = np.linspace(0, N - 1, min(N, _KEPT)).round().astype(int)
    ends = np.concatenate([np.arange(min(N, _KEPT)), np.arange(max(N - _KEPT, 0), N)])
    rows = np.union1d(kept, ends)
    sorted_values = np.take_along_axis(values, order, axis=0)
    return Ranks(sorted_values[rows], counts[rows], float(masses.sum()))


@dataclass(frozen=True, eq=False)
class Predictive:
    """What a new observation is expected to be off by, at a point with variance gp(x).

    Methods take gp (t,) in units of the kernel, and the noise of the new observation as its share
    g(x)/w of that of a row of weight 1 (t,): 1 for constant noise and unit weight.
    """

    alpha: float  # in units of the kernel
    amplitude: Array  # ŝ² (q,), widened by factor²
    absolute: Ranks  # of |z|
    above: Ranks  # of z
    below: Ranks  # of −z
    factor: float  # by which scores are widened: at least 1
    power: float  # p: widths go as variances to the power of p/2
    center: float  # the typical variance, at which p does not matter
    typical: float  # the noise of a typical row, α over its weight, in units of the kernel
    nu: Array  # (q,), of the Student t fitted to z
    scale: Array  # (q,), likewise
    spread: Array | None  # (q,), of y
    prior: float | None  # k(x, x) where it is the same for all x, else None

    @property
    def noise_variance(self) -> Array:
        """σ̂² = ŝ²α, in units of y²: (q,)."""
        return self.amplitude * self.alpha

    @property
    def quantiles(self) -> Array:
        """A row for each level that the rows can give: the level and c for each target."""
        levels = _LEVELS[self.absolute.highest >= _LEVELS]
        found = [np.append(level, self.factor * self.absolute.at(level)) for level in levels]
        return np.array(found).reshape(len(levels), 1 + len(self.amplitude))

    def variance(
        self, gp: Array, noise_share: Array | float = 1.0, include_noise: bool = True
    ) -> Array:
        """ŝ²(α·share + gp) of a new observation, ŝ²gp of the function, in units of y²: (t, q)."""
        share = noise_share if include_noise else 0.0
        std = np.sqrt(self.alpha * np.asarray(share) + gp)[:, None]
        return self._bounded(np.sqrt(self.amplitude) * std, 1.0, gp, share) ** 2

    def reached(self, level: float) -> float:
        """The level that these rows can give: the one asked for, or the highest, with a warning."""
        highest = self.absolute.highest
        if level <= highest:
            return level
        warn(
            f"{self.absolute.n:.0f} rows can give intervals of at most {100 * highest:.4g}%, not "
            f"{100 * level:g}%: the largest leave-one-out score is used. Give more rows, a lower "
            'confidence_level, or method="gaussian".'
        )
        return highest

    def half_widths(
        self,
        gp: Array,
        level: float,
        *,
        side: str = "both",
        noise_share: Array | float = 1.0,
        include_noise: bool = True,
    ) -> tuple[Array, Array]:
        """How far the interval reaches below and above the mean, in units of y: each (t, q).

        c√(α·share + gp), or a smaller power of it, c the ⌈level·(n + 1)⌉-th smallest |score|; with
        ``side`` "lower" or "upper" the other side is infinite, and scores are ranked with signs.
        """
        self.reached(level)
        share = noise_share if include_noise else 0.0
        width = self._width(gp, share)
        open_side = np.full((len(gp), len(self.amplitude)), np.inf)
        if side == "both":
            half = self._bounded(self._c(self.absolute, level) * width, _normal(level), gp, share)
            return half, half
        ranks = self.below if side == "lower" else self.above
        half = self._bounded(self._c(ranks, level) * width, norm.ppf(level), gp, share)
        return (half, open_side) if side == "lower" else (open_side, half)

    def gaussian_half_widths(
        self,
        gp: Array,
        level: float,
        *,
        side: str = "both",
        noise_share: Array | float = 1.0,
        include_noise: bool = True,
    ) -> tuple[Array, Array]:
        """The same with the quantiles of a Gaussian of variance ŝ²(α·share + gp)."""
        std = np.sqrt(self.variance(gp, noise_share, include_noise))
        open_side = np.full_like(std, np.inf)
        half = (_normal(level) if side == "both" else norm.ppf(level)) * std
        below = open_side if side == "upper" else half
        return below, open_side if side == "lower" else half

    def log_density(
        self, Y: Array, mean: Array, gp: Array, noise_share: Array | float = 1.0
    ) -> Array:
        """log p(y) of observations Y (t, q), by the Student t fitted to the scores: (t, q)."""
        scale = self._bounded(self.scale * self._width(gp, noise_share), 1.0, gp, noise_share)
        return student.logpdf(Y, self.nu, mean, np.maximum(scale, _TINY))

    def _width(self, gp: Array, share: Array | float) -> Array:
        """The predicted spread for amplitude 1, √(α·share + gp) where the power is 1: (t, 1)."""
        variance = self.alpha * np.asarray(share) + gp
        return np.sqrt(tempered(variance, self.typical + gp, self.power, self.center))[:, None]

    def _c(self, ranks: Ranks, level: float) -> Array:
        """A quantile of scores, moved outwards by the factor."""
        c = ranks.at(level)
        return np.where(c > 0, c * self.factor, c / self.factor)

    def _bounded(self, half: Array, z: float, gp: Array, share: Array | float) -> Array:
        """Half-widths (t, q) that far from the data are 1 to 20 spreads of y, for z = 1.96.

        Where gp(x) = k(x, x) the model knows nothing of x. Leave-one-out scores come from points
        among the data, so what they say there is an extrapolation: it is raised to the spread of y
        times gp(x)/k(x, x), and cut at 20 spreads, or as many more as an observation has more noise
        than one of weight 1. Kernels that grow with x have no such rule.
        """
        if self.spread is None or self.prior is None or z <= 0:
            return half
        unit = self.spread * (z / _NORMAL95)
        unknown = np.minimum(gp / self.prior, 1.0)[:, None]
        more = np.sqrt(np.maximum(share, 1.0))[..., None]
        high = np.where(unit > 0, _FAR[1] * unit, np.inf) * more
        return np.clip(half, _FAR[0] * unit * unknown, high)


def predictive_of(
    scores: Scores,
    alpha: float,
    *,
    factor: float = 1.0,
    spread: Array | None = None,
    prior: float | None = None,
) -> Predictive:
    """The distribution that the scores make. O(N log N) for each target.

    Scores are widened by the ``factor``, at least 1. ``spread`` (q,) and ``prior`` = k(x, x) bound
    the width far from the data; without them it is not bounded.

    >>> from sketchridge.scores import scores_of
    >>> z = np.random.default_rng(0).standard_normal((99, 1))
    >>> found = predictive_of(scores_of(z, np.ones(99), np.full(99, 0.5)), alpha=0.5)
    >>> below, above = found.half_widths(np.array([0.0, 0.5]), 0.95)
    >>> bool(above[1, 0] == np.sort(abs(z[:, 0]))[94])
    True
    """
    power, center = _power(scores)
    z = scores.tempered(power, center).values
    fits = [student_fit(column, scores.masses) for column in z.T]
    nu, scale = np.array(fits).reshape(len(fits), 2).T
    return Predictive(
        alpha,
        scores.amplitude * factor**2,
        ranks_of(np.abs(z), scores.masses),
        ranks_of(z, scores.masses),
        ranks_of(-z, scores.masses),
        factor,
        power,
        center,
        scores.typical_noise,
        nu,
        scale * factor,
        spread,
        prior,
    )


def _power(scores: Scores) -> tuple[float, float]:
    """The power p of the predicted variances that intervals follow, and their typical size.

    Where errors grow more slowly than predicted, as on tables whose rows lie in far clusters,
    intervals that follow the variances are far too wide at uncertain points. The largest power is
    taken whose leave-one-out interval score is within a standard error of the least.
    """
    variances = np.maximum(scores.variances, _TINY)
    center = float(np.exp(scores.masses @ np.log(variances) / scores.masses.sum()))
    each = [scores.tempered(power, center) for power in _POWERS]
    losses = [scores.masses @ _interval_scores(one).mean(axis=1) for one in each]
    best = each[int(np.argmin(losses))]
    for power, one in zip(_POWERS, each, strict=True):
        gain, error = gained(one, best)
        if gain <= error:
            return power, center
    return _POWERS[-1], center


def gained(constant: Scores, varying: Scores) -> tuple[float, float]:
    """By how much the mean interval score falls from one model to another at the rows that both
    have left out, in amplitudes of the first, and the standard error of that."""
    constant = constant.some(np.isin(constant.at, varying.at))
    varying = varying.some(np.isin(varying.at, constant.at))
    scale = np.sqrt(np.maximum(constant.amplitude, _TINY))
    falls = (_interval_scores(constant) - _interval_scores(varying)) / scale
    fall = falls.mean(axis=1)
    total = constant.masses.sum()
    gain = float(constant.masses @ fall / total)
    return gain, float(np.sqrt(constant.masses @ (fall - gain) ** 2) / total)


def _interval_scores(scores: Scores) -> Array:
    """2h + 2/(1 − level)·max(|r| − h, 0), mean over levels, of intervals ±c√variance: (N, q)."""
    ranks = ranks_of(np.abs(scores.values), scores.masses)
    width = np.sqrt(scores.variances)[:, None]
    miss = np.abs(scores.residuals)
    halves = [(level, ranks.at(level) * width) for level in _COMPARED]
    each = [2 * h + 2 / (1 - level) * np.maximum(miss - h, 0) for level, h in halves]
    return np.mean(each, axis=0)


def student_fit(z: Array, masses: Array) -> tuple[float, float]:
    """ν and scale of the Student t about 0 that is likeliest for scores z (N,).

    >>> nu, scale = student_fit(student.ppf((np.arange(999) + 0.5) / 999, 3), np.ones(999))
    >>> round(nu), round(scale, 1)
    (3, 1.0)
    """
    order = np.argsort(z)
    some = order[np.linspace(0, len(z) - 1, min(len(z), _FITTED)).round().astype(int)]
    z2 = z[some] ** 2
    share = masses[some] / masses[some].sum()

    def loss(log_nu: float) -> float:
        nu = float(np.exp(log_nu))
        scale = np.sqrt(_student_scale2(z2, share, nu))
        return -float(share @ student.logpdf(z[some], nu, 0.0, scale))

    nu = float(np.exp(minimize_scalar(loss, bounds=np.log(_NU), method="bounded").x))
    return nu, float(np.sqrt(_student_scale2(z2, share, nu)))


def _student_scale2(z2: Array, share: Array, nu: float) -> float:
    """The likeliest squared scale for a given ν: s² = Σ share (ν + 1)z²/(ν + z²/s²)."""
    s2 = max(float(share @ z2), _TINY)
    for _ in range(50):
        s2 = max(float(share @ ((nu + 1) * z2 / (nu + z2 / s2))), _TINY)
    return s2


def _normal(level: float) -> float:
    return float(norm.ppf((1 + level) / 2))
