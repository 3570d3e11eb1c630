"""What further points would teach, before they are measured."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from sketchridge.dense import DenseRidge, dense_ridge
from sketchridge.state import Ridge

__all__ = ["with_points"]

Array = np.ndarray


@singledispatch
def with_points(ridge: Any, X_new: Array) -> Any:
    """The ridge with further points at the same alpha = nλ. Their labels are left at 0: variances do not depend on them."""
    raise TypeError(f"No further points for {type(ridge).__name__}.")


@with_points.register
def _(ridge: Ridge, X_new: Array) -> Ridge:
    state = ridge.state.extended(X_new, np.zeros((len(X_new), ridge.state.Y.shape[1])))
    return Ridge(state, ridge.lam * len(ridge.state.X) / len(state.X), ridge.fit_intercept, ridge.backend)


@with_points.register
def _(ridge: DenseRidge, X_new: Array) -> DenseRidge:
    X = np.concatenate([ridge.X, X_new])
    Y = np.concatenate([ridge.Y, np.zeros((len(X_new), ridge.Y.shape[1]))])
    return dense_ridge(ridge.backend, ridge.kernel, X, Y, ridge.lam * len(ridge.X) / len(X), ridge.fit_intercept)
