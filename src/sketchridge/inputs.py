"""Rows, targets and weights as a fit needs them, with scikit-learn's checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from sketchridge.backends import on_cluster
from sketchridge.checks import (
    check_known,
    check_noise_variance,
    check_range,
    check_times,
    checked_weights,
    explained,
)

__all__ = ["validated"]

Array = np.ndarray
_NONE = 1e-300  # of the sum of weights: a share as small would be 0 somewhere and divided by there


def validated(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, targets: int | None
) -> tuple[Array, Array, Array, bool]:
    """X (n, d), Y (n, q) and w (n,) in float64, and whether y was (n,), with scikit-learn's checks.

    ``targets`` are those of the fit that goes on, None for a new one. Call it on a copy of the
    estimator, since scikit-learn remembers there what it saw of the data.
    """
    for name, given in (("X", X), ("y", y)):
        check_times(name, given)
        if np.ma.is_masked(given):
            raise ValueError(f"{name} has masked values: fill or drop them first.")
    try:
        if on_cluster(X):  # on a cluster, where it was checked
            y = check_array(y, ensure_2d=False, dtype=float, input_name="y")
            check_consistent_length(X, y)
        else:
            X, y = _checked(estimator, X, y, targets is None)
        Y = y.reshape(len(y), -1).astype(float)
    except (TypeError, ValueError) as error:
        raise explained(error) from None
    if targets not in (None, Y.shape[1]):
        raise ValueError(
            f"y has {Y.shape[1]} targets, but the estimator was fitted with {targets}."
        )
    check_noise_variance(estimator.noise_variance, Y.shape[1])
    check_known(Y)
    check_range(Y)
    w = checked_weights(sample_weight, X)
    return X, Y, np.where(w / w.sum() < _NONE, 0.0, w), y.ndim == 1


def _checked(estimator: Any, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
    return validate_data(
        estimator,
        X,
        y,
        reset=reset,
        dtype=float,
        multi_output=True,
        y_numeric=True,
        ensure_min_samples=1 + reset,
    )
