"""Predictions at fixed points that follow a model as labels arrive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchridge.active.settings import Estimator
from sketchridge.backends import Tall
from sketchridge.factor import EntryFactor
from sketchridge.fitted import Fitted
from sketchridge.query import AtPoints

__all__ = ["Follower"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class _Sums:
    """k(x, X)Sᵀ for the points x, sums over the labeled points X of a fit."""

    query: AtPoints
    values: Tall  # (t, m)
    fitted: Fitted

    @property
    def factor(self) -> EntryFactor:
        assert isinstance(self.fitted.factor, EntryFactor)
        return self.fitted.factor


class Follower:
    """The mean of one model after the other at the same points X (t, d).

    With a dense sketch a prediction takes k(x, X)Sᵀ over all n labeled points; here only new
    points, and rows of the sketch that are new, are added: O(m·n_new) per point. Other models are
    asked as they are.

    >>> from sketchridge import SketchedKernelRidge
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> model = SketchedKernelRidge("gaussian", sketch="gaussian", sketch_size=5, alpha=0.1,
    ...     bandwidth=0.3, solver="sketch", random_state=0).fit(X[:30], np.sin(6 * X[:30, 0]))
    >>> follower = Follower(X)
    >>> before = follower.mean(model)
    >>> model = model.partial_fit(X[30:], np.sin(6 * X[30:, 0]))
    >>> np.allclose(follower.mean(model), model.predict(X))
    True
    """

    def __init__(self, X: Array) -> None:
        self._X = np.array(X, dtype=float)
        self._sums: _Sums | None = None

    def mean(self, estimator: Estimator) -> Array:
        """What `predict` of a fitted estimator gives at the points."""
        fitted = estimator.fitted_
        if not isinstance(fitted, Fitted) or not _is_dense(fitted):
            return estimator.predict(self._X)
        with fitted.backend.alone():
            self._sums = sums = _updated(self._sums, fitted, self._X)
            ridge = fitted.ridge
            right = sums.factor.R @ (ridge.basis.V @ ridge.coefficients)
            inside = ridge.offset + (sums.values @ right).host()
        mean = fitted.data.center + fitted.data.scale * inside
        return mean[:, 0] if mean.shape[1] == 1 else mean


def _is_dense(fitted: Fitted) -> bool:
    """Whether the mean is made of sums over all points, by a sketch that has rows."""
    factor = fitted.factor
    return fitted.omega is None and isinstance(factor, EntryFactor) and factor.sketch.size > 0


def _updated(sums: _Sums | None, fitted: Fitted, X: Array) -> _Sums:
    """Sums for a fit, from those of an earlier one where it goes on from that."""
    factor = fitted.factor
    assert isinstance(factor, EntryFactor)
    points = fitted.sample.points
    backend = fitted.backend
    if sums is None or not _goes_on(sums, fitted):
        query = fitted.at(X)
        values = backend.matmul(query.points, points, factor.St, precision=factor.precision)
        return _Sums(query, values.held(), fitted)
    n, m = len(sums.fitted.sample), sums.factor.sketch.size
    values = sums.values
    if len(points) > n:
        St_new = backend.tall(factor.St.columns(0, m).take(slice(n, None)))
        new = points.take(slice(n, None))
        more = backend.matmul(sums.query.points, new, St_new, precision=factor.precision)
        values = values.map(lambda a, b: a + b, more)
    if factor.sketch.size > m:
        rows = factor.St.columns(m)
        more = backend.matmul(sums.query.points, points, rows, precision=factor.precision)
        values = values.beside(more)
    return _Sums(sums.query, values.held(), fitted)


def _goes_on(sums: _Sums, fitted: Fitted) -> bool:
    """Whether a fit has the kernel, the points and the sketch of an earlier one, and more."""
    old = sums.fitted
    factor = fitted.factor
    assert isinstance(factor, EntryFactor)
    same = old.kernel is fitted.kernel and old.backend is fitted.backend
    n = len(old.sample)
    return (
        same
        and sums.factor.precision == factor.precision
        and sums.factor.sketch.size <= factor.sketch.size
        and old.settings.seed == fitted.settings.seed
        and type(sums.factor.sketch) is type(factor.sketch)
        and np.array_equal(fitted.data.X[:n], old.data.X)
    )
