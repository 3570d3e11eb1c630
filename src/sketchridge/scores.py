"""Leave-one-out scores: how far rows are from what is predicted without them, in predicted spreads.

For A = G + α diag(1/w), B = A⁻¹ (or B − B11ᵀB/(1ᵀB1) with an intercept) and a = By, the prediction
of row i without row i is off by r_i = a_i/B_ii, and 1/B_ii = α/w_i + gp₋ᵢ(x_i) is the variance of
that for amplitude 1, noise included. No data are held out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sketchridge.rows import Rows

__all__ = [
    "Scores",
    "each_observation",
    "scores_of",
    "spread_of",
    "tempered",
]

Array = np.ndarray
_FEWEST = 40  # rows apart from landmarks that are enough: 39 is the rank of 95%
_LITTLE = 0.01  # of a variance: what scores, its roots, do not tell from nothing
_TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Scores:
    """N rows predicted without themselves. Variances are for amplitude 1, in kernel units."""

    residuals: Array  # (N, q), in units of y
    variances: Array  # (N,): noise and what the model does not know
    noise: Array  # (N,): the share α/w of the noise
    at: Array  # (N,): the distinct training row each is of
    masses: Array  # (N,): 1, or 1/k for each of k different observations of one row

    @property
    def values(self) -> Array:
        """r_i/√variance_i, with their signs: (N, q)."""
        return self.residuals / np.sqrt(np.maximum(self.variances, _TINY))[:, None]

    @property
    def amplitude(self) -> Array:
        """ŝ² = mean r_i²/variance_i, in units of y² over those of the kernel: (q,).

        A row's weight is in its variance: the mean itself is over rows, each counted once.
        """
        return self.masses @ self.values**2 / self.masses.sum()

    def some(self, keep: Array) -> Scores:
        """Those of some rows."""
        parts = self.residuals, self.variances, self.noise, self.at, self.masses
        return Scores(*(part[keep] for part in parts))

    @property
    def typical_noise(self) -> float:
        """The mean share of the noise."""
        return float(self.masses @ self.noise / self.masses.sum())

    def tempered(self, power: float, center: float) -> Scores:
        """The same with variances that vary less, by how they would for typical noise."""
        base = np.maximum(self.variances - self.noise, 0) + self.typical_noise
        return replace(self, variances=tempered(self.variances, base, power, center))

    def with_noise(self, noise: Array) -> Scores:
        """The same with another share of the noise: (N,)."""
        left = np.maximum(self.variances - self.noise, 0)
        return replace(self, variances=left + noise, noise=noise)


def tempered(variances: Array, base: Array, power: float, center: float) -> Array:
    """v·(base/center)ᵖ⁻¹, base being v for typical noise: so v is as large as it was where base is
    typical, and goes as baseᵖ elsewhere.

    >>> tempered(np.array([1.0, 9.0]), np.array([1.0, 9.0]), 0.5, 1.0)
    array([1., 3.])
    """
    return variances if power == 1 else variances * (base / center) ** (power - 1)


def scores_of(
    residuals: Array,
    variances: Array,
    noise: Array,
    *,
    unexplained: Array | float = 0.0,
    landmarks: Array | None = None,
) -> Scores:
    """Scores |r_i|/√(1/B_ii + c_i), over rows that are not landmarks.

    Parameters
    ----------
    residuals : (n, q), r_i = a_i/B_ii; exact ones too where the width is the sketched one.
    variances : (n,), 1/B_ii. noise : (n,), α/w_i.
    unexplained : (n,), c_i = k(x_i, x_i) − k̂(x_i, x_i), of sketched models: gp has it, 1/B_ii not.
    landmarks : indices of training rows. New points are unlike them, for c is 0 there. They are
        left in where c is little everywhere, and where fewer than 40 others remain.

    >>> found = scores_of(np.array([[1.0], [-2.0]]), np.array([4.0, 1.0]), np.array([1.0, 1.0]))
    >>> found.values[:, 0], found.amplitude
    (array([ 0.5, -2. ]), array([2.125]))
    """
    at = np.arange(len(residuals))
    every = Scores(residuals, variances + unexplained, noise, at, np.ones(len(at)))
    if landmarks is None or (unexplained <= _LITTLE * variances).all():
        return every
    others = ~np.isin(at, landmarks)
    return every.some(others) if others.sum() >= _FEWEST else every


def each_observation(scores: Scores, rows: Rows, alpha: float) -> Scores:
    """Scores of the observations as they were given, where rows of X are repeated.

    What is left out is always a whole distinct row. Its k different y are then scored one by one,
    as new observations at that point: r_ij = r_i + y_ij − ȳ_i with the variance α/w_ij + gp₋ᵢ, and
    each counts 1/k, so that every distinct row counts once. Equal y of a row are one observation of
    their summed weight. So the average of the r_ij is the r_i of a row of that weight, and a row
    given twice is a row of weight 2 in everything.

    >>> from sketchridge.rows import merged
    >>> rows = merged(np.zeros((2, 1)), np.array([[1.0], [3.0]]), np.ones(2))
    >>> mean = scores_of(np.array([[2.0]]), np.array([1.5]), np.array([0.5]))  # weight 2, α = 1
    >>> found = each_observation(mean, rows, alpha=1.0)
    >>> found.residuals[:, 0], found.variances, found.masses
    (array([1., 3.]), array([2., 2.]), array([0.5, 0.5]))
    """
    if len(rows.first) == len(rows.group):
        return scores
    group, Y, w = _different_observations(rows)
    place = np.full(len(rows), -1)
    place[scores.at] = np.arange(len(scores.at))
    known = place[group] >= 0
    group, Y, w = group[known], Y[known], w[known]
    of = place[group]
    masses = 1 / np.bincount(group)[group]
    residuals = scores.residuals[of] + Y - rows.Y[group]
    repeated = Scores(residuals, scores.variances[of], scores.noise[of], group, masses)
    return repeated.with_noise(alpha / w)


def spread_of(Y: Array, w: Array, fit_intercept: bool) -> Array:
    """The root mean square of Y (n, q) about its mean, or without an intercept about 0: (q,).

    >>> spread_of(np.array([[1.0], [3.0]]), np.ones(2), fit_intercept=True)
    array([1.])
    """
    center = w @ Y / w.sum() if fit_intercept else 0.0
    return np.sqrt(w @ (Y - center) ** 2 / w.sum())


def _different_observations(rows: Rows) -> tuple[Array, Array, Array]:
    """Different y of each distinct row: the row (N,), y (N, q) and summed weights (N,)."""
    records = np.column_stack([rows.group, rows.Y_given])
    found, inverse = np.unique(records, axis=0, return_inverse=True)
    w = np.bincount(inverse.ravel(), rows.w_given)
    return found[:, 0].astype(int), found[:, 1:], w
