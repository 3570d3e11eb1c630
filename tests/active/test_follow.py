"""Predictions at fixed points that follow a model equal those made afresh."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close, normal

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.active.follow import Follower
from sketchridge.backends import NumpyTiles

X = normal(150, 2)
Y = np.stack([np.sin(2 * X[:, 0]), np.cos(X[:, 1])], axis=1)
FIXED = {
    "bandwidth": 1.0,
    "alpha": 0.1,
    "solver": "sketch",
    "dtype": "float64",
    "random_state": 0,
}
MODELS = {
    "dense": SketchedKernelRidge(sketch="gaussian", sketch_size=9, fit_intercept=True, **FIXED),
    "growing": SketchedKernelRidge(sketch="rademacher", sketch_size=lambda n: n // 10, **FIXED),
    "landmarks": SketchedKernelRidge(sketch_size=9, **FIXED),
    "exact": ExactKernelRidge(bandwidth=1.0, alpha=0.1),
}


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_means_follow_the_model(name, targets):
    y = Y[:, 0] if targets == 1 else Y
    model = MODELS[name].fit(X[:60], y[:60])
    follower = Follower(X[::2])
    for start in (60, 61, 90):
        assert_close(follower.mean(model), model.predict(X[::2]))
        model.partial_fit(X[start : start + 30], y[start : start + 30])
    assert_close(follower.mean(model), model.predict(X[::2]))
    model.fit(X[40:], y[40:])  # another model
    assert_close(follower.mean(model), model.predict(X[::2]))


def test_a_round_takes_new_points_only(monkeypatch):
    model = MODELS["dense"].fit(X[:60], Y[:60, 0])
    follower = Follower(X)
    follower.mean(model)
    model.partial_fit(X[60:70], Y[60:70, 0])
    seen = []
    matmul = NumpyTiles.matmul

    def counted(backend, P, Q, T, **options):
        seen.append(len(Q))
        return matmul(backend, P, Q, T, **options)

    monkeypatch.setattr(NumpyTiles, "matmul", counted)
    follower.mean(model)
    assert seen == [10]
