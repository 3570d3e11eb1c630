"""What a model says of points, as columns of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchridge.active.settings import Estimator

__all__ = ["left_out", "prediction_columns"]

Array = np.ndarray
_POINTS = 2**15  # predicted at a time


def prediction_columns(estimator: Estimator, X: Array, confidence: float) -> dict[str, Any]:
    """The mean, an interval for a new measurement, and the budget of its uncertainty.

    The budget is in units of y: the standard deviation of the mean that the labels' noise makes,
    what may be missed because there are no labels near (bias), and the noise of a measurement.
    Their squares add up to the predictive variance.
    """
    parts = [_of_some(estimator, X[i : i + _POINTS], confidence) for i in range(0, len(X), _POINTS)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _of_some(estimator: Estimator, X: Array, confidence: float) -> dict[str, Array]:
    low, high = estimator.predict_interval(X, confidence_level=confidence)
    total = estimator.predictive_variance(X, include_noise=False)
    noise = np.sqrt(estimator.predictive_variance(X) - total)
    bias2 = np.asarray(estimator.variance(X, kind="bias2"))
    bias = np.minimum(estimator.amplitude_ * bias2, total)
    percent = f"{100 * confidence:g}%"
    return {
        "predicted": estimator.predict(X),
        f"low {percent}": low,
        f"high {percent}": high,
        "sd of the mean": np.sqrt(total - bias),
        "sd of the bias": np.sqrt(bias),
        "sd of the noise": noise,
    }


def left_out(estimator: Estimator) -> Array:
    """What a model without a label predicts in its place, in the order of the labels: (t,).

    Labels of identical points are left out together.
    """
    fitted = estimator.fitted_
    rows = fitted.data.rows
    return (rows.Y - fitted.loo_errors)[rows.group, 0]
