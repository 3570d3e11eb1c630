"""Conformal prediction by MAPIE and scikit-learn's scorers, with our estimators inside."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import d2_absolute_error_score, make_scorer, mean_pinball_loss
from sklearn.model_selection import cross_val_score, cross_validate

from sketchridge import ExactKernelRidge, SketchedKernelRidge

mapie = pytest.importorskip("mapie.regression")
Array = np.ndarray
both = pytest.mark.parametrize("cls", [ExactKernelRidge, SketchedKernelRidge])


def table(n: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(n)


@both
def test_mapie_makes_intervals_of_our_means(cls):
    X, y = table(400, 0)
    X_new, y_new = table(500, 1)
    model = cls("gaussian", bandwidth=1.0, alpha=1.0).fit(X[:200], y[:200])
    split = mapie.SplitConformalRegressor(model, confidence_level=0.9, prefit=True)
    mean, limits = split.conformalize(X[200:], y[200:]).predict_interval(X_new)
    np.testing.assert_allclose(mean, model.predict(X_new))
    held = (limits[:, 0, 0] <= y_new) & (y_new <= limits[:, 1, 0])
    assert 0.84 < held.mean() < 0.96


def test_mapie_clones_and_fits_in_turn():
    X, y = table(150, 2)
    model = SketchedKernelRidge("gaussian", bandwidth=1.0, alpha=1.0, random_state=0)
    cross = mapie.CrossConformalRegressor(model, confidence_level=0.9, cv=5)
    _, limits = cross.fit_conformalize(X, y).predict_interval(X[:9])
    assert (limits[:, 0, 0] < limits[:, 1, 0]).all()


@both
def test_scorers_of_scikit_learn(cls):
    X, y = table(120, 3)
    model = cls("gaussian", bandwidth=1.0, alpha=1.0)
    names = ["r2", "neg_root_mean_squared_error", "neg_median_absolute_error"]
    found = cross_validate(model, X, y, scoring=names, cv=3)
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in names)
    pinball = make_scorer(mean_pinball_loss, alpha=0.9, greater_is_better=False)
    assert (cross_val_score(model, X, y, scoring=pinball, cv=3) < 0).all()
    assert d2_absolute_error_score(y, model.fit(X, y).predict(X)) > 0.4
