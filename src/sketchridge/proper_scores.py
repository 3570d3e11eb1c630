"""Scores of predicted intervals and distributions, by what was observed."""

from __future__ import annotations

import numpy as np
from scipy.special import beta
from scipy.stats import norm
from scipy.stats import t as student

__all__ = [
    "PARTS",
    "coverage",
    "coverage_by_spread",
    "crps",
    "interval_score",
    "negative_log_density",
    "pit",
    "pit_from_quantiles",
]

Array = np.ndarray
PARTS = 10  # of the points, by the width of their intervals


def coverage(y: Array, low: Array, high: Array) -> float:
    """The share of y within [low, high], all of one shape.

    Parameters
    ----------
    y : (t,) array
        Observations.
    low, high : (t,) arrays
        Ends of the intervals, in units of y.

    Returns
    -------
    share : float
        Between 0 and 1.

    Examples
    --------
    >>> coverage(np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4), np.full(4, 3.0))
    0.75
    """
    return float(((low <= y) & (y <= high)).mean())


def coverage_by_spread(y: Array, low: Array, high: Array, parts: int = PARTS) -> Array:
    """The coverage in each tenth of the points, from the narrowest intervals to the widest.

    All arrays are (t,). The result is (parts,), or (t,) where there are fewer points than parts.

    Parameters
    ----------
    y : (t,) array
        Observations.
    low, high : (t,) arrays
        Ends of the intervals, in units of y.
    parts : int
        How many parts.

    Returns
    -------
    shares : (parts,) array
        From the narrowest intervals to the widest.

    Examples
    --------
    >>> coverage_by_spread(np.array([0.0, 5.0]), np.array([-1.0, -2.0]), np.array([1.0, 2.0]), 2)
    array([1., 0.])
    """
    order = np.argsort(high - low, kind="stable")
    inside = ((low <= y) & (y <= high))[order]
    return np.array([part.mean() for part in np.array_split(inside, min(parts, len(y)))])


def interval_score(y: Array, low: Array, high: Array, level: float) -> Array:
    """high − low + 2/(1 − level)·(how far y lies outside), in units of y: the shape of y.

    The smaller the better; its mean is least for the true quantiles.

    Parameters
    ----------
    y : (t,) array
        Observations.
    low, high : (t,) arrays
        Ends of the intervals, in units of y.
    level : float
        The confidence level of the intervals.

    Returns
    -------
    score : (t,) array
        In units of y.

    Examples
    --------
    >>> interval_score(np.array([0.0, 3.0]), np.array([-1.0, -1.0]), np.array([1.0, 1.0]), 0.9)
    array([ 2., 42.])
    """
    outside = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return high - low + 2 / (1 - level) * outside


def crps(y: Array, mean: Array, scale: Array, nu: float = np.inf) -> Array:
    """The continuous ranked probability score ∫(F(u) − 1{u ≥ y})²du, in units of y.

    Of a Student t with ν > 1 degrees of freedom or, for ν = ∞, of a Gaussian: with z the
    standardized y, F and f the standard distribution and density,
    scale·(z(2F(z) − 1) + 2f(z)(ν + z²)/(ν − 1) − 2√ν/(ν − 1)·B(½, ν − ½)/B(½, ν/2)²).

    Parameters
    ----------
    y : (t,) array
        Observations.
    mean, scale : (t,) arrays
        Of the predicted distributions, in units of y.
    nu : float
        Degrees of freedom of a Student t; ∞ for a Gaussian.

    Returns
    -------
    score : (t,) array
        In units of y.

    Examples
    --------
    >>> float(crps(np.array(0.0), np.array(0.0), np.array(1.0)).round(4))
    0.2337
    """
    z = (y - mean) / scale
    if np.isinf(nu):
        return scale * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    if nu <= 1:
        raise ValueError(f"The score is finite only for more than 1 degree of freedom, got {nu!r}.")
    center = 2 * np.sqrt(nu) / (nu - 1) * beta(0.5, nu - 0.5) / beta(0.5, nu / 2) ** 2
    tails = 2 * student.pdf(z, nu) * (nu + z**2) / (nu - 1)
    return scale * (z * (2 * student.cdf(z, nu) - 1) + tails - center)


def negative_log_density(y: Array, mean: Array, scale: Array, nu: float = np.inf) -> Array:
    """−log p(y) of a Student t or, for ν = ∞, of a Gaussian: the shape of y.

    Parameters
    ----------
    y : (t,) array
        Observations.
    mean, scale : (t,) arrays
        Of the predicted distributions, in units of y.
    nu : float
        Degrees of freedom of a Student t; ∞ for a Gaussian.

    Returns
    -------
    score : (t,) array
        The natural logarithm of a density per unit of y, negative.

    Examples
    --------
    >>> float(negative_log_density(np.array(0.0), np.array(0.0), np.array(1.0)).round(4))
    0.9189
    """
    if np.isinf(nu):
        return -norm.logpdf(y, mean, scale)
    return -student.logpdf(y, nu, mean, scale)


def pit(y: Array, mean: Array, scale: Array, nu: float = np.inf) -> Array:
    """F(y), the probability integral transform: uniform on [0, 1] where the distributions hold.

    Parameters
    ----------
    y : (t,) array
        Observations.
    mean, scale : (t,) arrays
        Of the predicted distributions, in units of y.
    nu : float
        Degrees of freedom of a Student t; ∞ for a Gaussian.

    Returns
    -------
    F(y) : (t,) array
        Between 0 and 1.

    Examples
    --------
    >>> pit(np.array([0.0]), np.array([0.0]), np.array([1.0]))
    array([0.5])
    """
    z = (y - mean) / scale
    return norm.cdf(z) if np.isinf(nu) else student.cdf(z, nu)


def pit_from_quantiles(y: Array, quantiles: Array, probabilities: Array) -> Array:
    """F(y) from quantiles (p, t) at ascending probabilities (p,), linear between them: (t,).

    Beyond the outermost the value lies halfway to 0 or 1.

    Parameters
    ----------
    y : (t,) array
        Observations.
    quantiles : (p, t) array
        In units of y.
    probabilities : (p,) array
        Theirs, ascending.

    Returns
    -------
    F(y) : (t,) array
        Between 0 and 1.

    Examples
    --------
    >>> pit_from_quantiles(np.array([0.5]), np.array([[0.0], [1.0]]), np.array([0.4, 0.6]))
    array([0.5])
    """
    below, above = probabilities[0] / 2, (1 + probabilities[-1]) / 2
    columns = zip(y, quantiles.T, strict=True)
    return np.array([np.interp(v, q, probabilities, below, above) for v, q in columns])
