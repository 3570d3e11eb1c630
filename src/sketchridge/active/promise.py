"""What a candidate promises for a goal.

It is known by the distribution of the function there, N(mean, std²) in units of y, of which the
noise of a measurement is no part.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, ndtr

from sketchridge.active.goals import Goal

__all__ = ["expected", "log_improvement", "log_promise", "outlook", "score"]

Array = np.ndarray
_WIDE = 1.96  # standard deviations of the bounds: a side is sure to 95%
_LITTLE = 0.01  # of the labels' spread: an improvement that is not worth a label
_NARROW = 1e-3  # δ/std below which the chance of coming closer is δ times a density
_LOG_NORMAL = -0.5 * np.log(2 * np.pi)
_LARGEST = 1e100  # of a ratio, whose square is still a number
_TINY = np.finfo(float).tiny


def log_promise(goal: Goal, mean: Array, std: Array, reached: float) -> Array:
    """Log of the expected improvement on a distance that has been reached: (t,).

    E(f − best)₊, of the function for the largest value, of its negative for the least. Of the
    distance to a value v it is E(δ − |f − v|)₊ = h(v − δ) − 2h(v) + h(v + δ), where δ has been
    reached and h(c) = E(f − c)₊. The logarithm, since far from what is wanted it would
    underflow and all candidates were alike.
    """
    if goal.name == "target":
        return _log_closeness(mean, std, goal.aim, reached)
    return log_improvement(goal.sign * mean + reached, std)


def score(goal: Goal, acquisition: str, mean: Array, std: Array, reached: float) -> Array:
    """What is largest at the candidate to take next: (t,)."""
    if acquisition == "bound":
        return goal.sign * mean + _WIDE * std
    if acquisition == "straddle":
        return _WIDE * std - np.abs(mean - goal.aim)
    return log_promise(goal, mean, std, reached)


def expected(goal: Goal, mean: float, std: float) -> float:
    """The distance that is expected of a candidate that is being measured.

    Of a value to be come near to, E|f − v|, which is never 0 as long as f is not known.
    """
    if goal.name in ("maximize", "minimize"):
        return -goal.sign * mean
    off = mean - goal.aim
    z = float(_ratio(np.array(off), np.array(std)))
    folded = 2 * std * np.exp(_LOG_NORMAL - 0.5 * z * z) + off * (2 * ndtr(z) - 1)
    return float(folded)


def outlook(goal: Goal, mean: Array, std: Array, reached: float, spread: float) -> dict[str, float]:
    """What all candidates that are left promise, in a few numbers.

    "promise": the largest expected improvement, in units of y. "chance": the largest
    probability that a candidate improves by 1% of the labels' ``spread``. "unsure": the
    expected share of candidates that the model has on the wrong side of a boundary.
    """
    if goal.name == "boundary":
        wrong = ndtr(-np.abs(_ratio(mean - goal.aim, std)))
        return {"unsure": float(wrong.mean())}
    wanted = reached - _LITTLE * spread
    if goal.name == "target":
        beyond = max(wanted, 0.0)
        upper, lower = (_ratio(goal.aim + side - mean, std) for side in (beyond, -beyond))
        chance = ndtr(upper) - ndtr(lower)
    else:
        chance = ndtr(_ratio(goal.sign * mean + wanted, std))
    promise = np.exp(log_promise(goal, mean, std, reached).max())
    return {"promise": float(promise), "chance": float(chance.max())}


def log_improvement(mean: Array, std: Array) -> Array:
    """log E(f)₊ for f ~ N(mean, std²), as σ(φ(z) + zΦ(z)) with z = mean/σ: (t,).

    φ + zΦ = φ(z)(1 + z√(π/2) erfcx(−z/√2)), which does not underflow.

    >>> log_improvement(np.array([0.0, -50.0, 50.0]), np.ones(3)).round(1).tolist()
    [-0.9, -1258.7, 3.9]
    """
    std = np.maximum(std, _TINY)
    z = _ratio(mean, std)
    low = np.minimum(z, 1.0)
    share = np.maximum(1 + low * np.sqrt(np.pi / 2) * erfcx(-low / np.sqrt(2)), _TINY)
    far = 1 / np.maximum(low * low, 1.0)  # to which the share tends, where rounding would spoil it
    left = _LOG_NORMAL - 0.5 * low * low + np.log(np.where(low > -1e4, share, far))
    high = np.maximum(z, 1.0)
    above = np.maximum(mean, _TINY) * ndtr(high) + std * np.exp(_LOG_NORMAL - 0.5 * high * high)
    return np.where(z < 1, np.log(std) + left, np.log(above))


def _log_closeness(mean: Array, std: Array, value: float, reached: float) -> Array:
    """log E(δ − |f − v|)₊: (t,)."""
    std = np.maximum(std, _TINY)
    off = -np.abs(mean - value)  # by symmetry f may lie below v
    delta = max(reached, _TINY)
    first = log_improvement(off + delta, std)
    others = [log_improvement(off + shift, std) - first for shift in (0.0, -delta)]
    share = np.maximum(1 - 2 * np.exp(others[0]) + np.exp(others[1]), _TINY)
    z = _ratio(off, std)
    density = 2 * np.log(delta) - np.log(std) + _LOG_NORMAL - 0.5 * z * z
    return np.where(delta < _NARROW * std, density, first + np.log(share))


def _ratio(off: Array, std: Array) -> Array:
    """off/std, large where nothing is unknown."""
    with np.errstate(over="ignore"):
        return np.clip(off / np.maximum(std, _TINY), -_LARGEST, _LARGEST)
