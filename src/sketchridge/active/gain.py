"""What further points would teach, before they are measured."""

from __future__ import annotations

import copy
import warnings
from typing import Any, NamedTuple

import numpy as np

from sketchridge.active.pool import Pool
from sketchridge.active.settings import Estimator
from sketchridge.estimator import SketchedKernelRidge

__all__ = ["Gain", "gains", "mean_posterior_variance", "mean_sd", "with_points"]

Array = np.ndarray


_SAMPLE = 1024  # rows of the pool that stand for all


class Gain(NamedTuple):
    """By what share a mean variance falls with two choices of points, and the sketch's rows."""

    ours: float
    even: float
    size_now: int | None = None  # None for an exact estimator
    size_then: int | None = None


def with_points(estimator: Estimator, X_new: Array) -> Estimator:
    """A copy of a fitted estimator with further points at the same alpha.

    Their labels are left at 0, since variances do not depend on them. An automatic sketch grows as
    it would in a fit, so that points far from its landmarks count for what they are worth.
    """
    more: Any = copy.copy(estimator)
    more.set_params(alpha=estimator.alpha_, noise_variance=1.0)
    if isinstance(estimator, SketchedKernelRidge):
        more.set_params(solver="sketch")
    q = len(estimator.fitted_.noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return more.partial_fit(X_new, np.zeros((len(X_new), q)))


def gains(estimator: Estimator, X: Array, one: Array, other: Array) -> Gain:
    """By what share the mean of gp over X falls with one choice of further points, and with
    another, each with the sketch that would be used."""
    now = mean_posterior_variance(estimator, X)
    models = [with_points(estimator, new) for new in (one, other)]
    ours, even = (1 - mean_posterior_variance(model, X) / now for model in models)
    sizes = [getattr(model, "sketch_size_", None) for model in (estimator, models[0])]
    return Gain(ours, even, *sizes)


def mean_posterior_variance(estimator: Estimator, X: Array) -> float:
    """The mean of gp over points, in units of the kernel."""
    return float(np.mean(estimator.variance(X, kind="gp")))


def mean_sd(estimator: Estimator, pool: Pool) -> float:
    """The root of the mean variance that a model leaves to the function over the pool, in units of
    y, at up to 1,024 rows of it."""
    rows = np.unique(np.linspace(0, len(pool) - 1, _SAMPLE).astype(int))
    variances = estimator.predictive_variance(pool[rows], include_noise=False)
    return float(np.sqrt(np.mean(variances)))
