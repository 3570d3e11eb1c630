"""What landmarks tell of a model whose rows are on a cluster: without the rows, wherever it is."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from local_cluster import new_client, shared_client, stopped

from sketchridge import SketchedKernelRidge
from sketchridge.backends.dask_blocks import DaskBlocks
from sketchridge.saving import load, save

Array = np.ndarray
N, T = 9000, 30  # more rows than are brought to the caller
SETTINGS: dict[str, Any] = {
    "kernel": "gaussian",
    "bandwidth": 0.5,
    "sketch_size": 40,
    "solver": "sketch",
    "dtype": "float64",
    "random_state": 0,
}
TOLD: dict[str, Callable[[Any, Any], Any]] = {
    "mean": lambda model, X: model.predict(X),
    "v3": lambda model, X: model.variance(X, "v3"),
    "gp": lambda model, X: model.variance(X, "gp"),
    "bias2": lambda model, X: model.variance(X, "bias2"),
    "interval": lambda model, X: np.stack(model.predict_interval(X)),
    "noise": lambda model, X: model.predictive_variance(X),
}
NEEDS = "This needs all training rows, and the model is here without them"
GONE = "start a new cluster|needs a Dask client"


def problem(n: int = N) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    y = np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + (0.05 + 0.2 * X[:, 2]) * rng.standard_normal(n)
    return X, y, rng.random((T, 3))


def fitted(client: Any, n: int = N, rows: int = 2500, **settings: Any) -> SketchedKernelRidge:
    X, y, _ = problem(n)
    model = SketchedKernelRidge(**SETTINGS | settings, backend=DaskBlocks(client, rows=rows))
    return model.fit(da.from_array(X, chunks=2000), y)


CASES = {
    "leave-one-out": {"alpha": "loo"},
    "varying noise": {"alpha": "loo", "noise": "varying"},
    "penalty": {"alpha": 0.5, "noise_variance": 0.01},
    "no intercept": {"alpha": 0.5, "fit_intercept": False},
}


def test_landmarks_answer_when_the_cluster_is_gone(tmp_path):
    client = new_client(1)
    models = {name: fitted(client, 3000, 900, **case) for name, case in CASES.items()}
    twins = {name: fitted(client, 3000, 900, **case) for name, case in CASES.items()}
    X = problem()[2]
    wanted = {
        name: {what: ask(twin, X) for what, ask in TOLD.items()} for name, twin in twins.items()
    }
    stopped(client)
    for name, model in models.items():  # nothing was asked of them before
        asked = TOLD if CASES[name]["alpha"] == "loo" else list(TOLD)[:4]
        for what in asked:
            np.testing.assert_array_equal(TOLD[what](model, X), wanted[name][what])
        with pytest.raises(RuntimeError, match=GONE):
            model.variance(X)
        with pytest.warns(UserWarning, match="saved without its training rows"):
            copied = pickle.loads(pickle.dumps(model))
        model.set_params(backend="auto")
        with pytest.warns(UserWarning, match="saved without its training rows"):
            save(model, tmp_path / f"{name}.skops")
        for again in (copied, load(tmp_path / f"{name}.skops")):
            for what in asked:
                np.testing.assert_allclose(TOLD[what](again, X), wanted[name][what], rtol=1e-9)
            for ask in (
                lambda one: one.variance(X),
                lambda one: one.predict(X, return_std=True),
                lambda one: one.certificate("norm"),
                lambda one: one.path_,
                lambda one: one.partial_fit(X, X[:, 0]),
            ):
                with pytest.raises(RuntimeError, match=NEEDS):
                    ask(again)
    for name in ("penalty", "no intercept"):  # nobody has asked for an interval in time
        with pytest.raises(RuntimeError, match=GONE):
            models[name].predict_interval(X)
        np.testing.assert_array_equal(TOLD["interval"](twins[name], X), wanted[name]["interval"])


def test_a_model_of_a_cluster_is_in_a_file(tmp_path):
    model = fitted(shared_client(), 3000, 900, alpha=0.5).set_params(backend="auto")
    save(model, tmp_path / "model.skops")
    X = problem()[2]
    again = load(tmp_path / "model.skops")
    np.testing.assert_allclose(again.variance(X), model.variance(X), rtol=1e-8)


def test_rows_of_numpy_are_saved_when_the_cluster_is_gone():
    client = new_client(1)
    X, y, Xt = problem(3000)
    model = SketchedKernelRidge(**SETTINGS, alpha=0.5, backend=DaskBlocks(client, rows=900))
    model.fit(X, y)
    mean, v2 = model.predict(Xt), model.variance(Xt)
    stopped(client)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(copied.predict(Xt), mean, rtol=1e-10)
    np.testing.assert_allclose(copied.variance(Xt), v2, rtol=1e-8)
