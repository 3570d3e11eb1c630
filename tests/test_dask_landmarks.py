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
from sketchridge.backends.dask_panel import Panel
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
        for again in (pickle.loads(pickle.dumps(copied)), load(tmp_path / f"{name}.skops")):
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


# Lazy answers


def sizes(model: SketchedKernelRidge) -> list[int]:
    """Bytes of what a worker is given for a mean, and for an interval."""
    asked = ["mean"], ["mean", "gp", "predictive"]
    return [len(pickle.dumps(model.fitted_.apart(each))) for each in asked]


@pytest.mark.parametrize("name", CASES)
def test_lazy_answers_take_no_row_but_landmarks(name, monkeypatch):
    model = fitted(shared_client(), **CASES[name])
    X = problem()[2]
    lazy = da.from_array(X, chunks=(13, 3))
    monkeypatch.setattr(Panel, "__array__", None)
    with shared_client().as_current():  # the workers are given the model
        for what, ask in TOLD.items():
            found = np.asarray(ask(model, lazy))
            np.testing.assert_allclose(found, ask(model, X), rtol=1e-9, err_msg=what)
    assert isinstance(model.predictive_variance(lazy), da.Array)
    assert isinstance(model.noise_at(lazy), da.Array)


def test_what_workers_are_given_does_not_grow_with_the_rows():
    (one, _), (two, interval) = (sizes(fitted(shared_client(), n, alpha=0.5)) for n in (N, 3 * N))
    assert abs(one - two) <= 0.01 * one
    assert interval - two <= 6000 * 6 * 8 + 5000  # three tables of up to 6,000 scores


ALL_ROWS: dict[str, Callable[[Any, Any], Any]] = {
    "v2": lambda model, X: model.variance(X),
    "vbar": lambda model, X: model.variance(X, "vbar", return_bound=True),
    "std": lambda model, X: model.predict(X, return_std=True),
}


def test_questions_that_need_all_rows_are_answered_by_their_blocks(monkeypatch):
    model = fitted(shared_client(), alpha=0.5)
    X = problem()[2]
    array = da.from_array(X, chunks=(13, 3))
    monkeypatch.setattr(Panel, "__array__", None)
    for ask in ALL_ROWS.values():
        wanted = ask(model, X)
        for lazy in (array, array[array[:, 0] > -1]):  # also chunks of unknown length
            found = ask(model, lazy)
            for actual, desired in zip(parts(found), parts(wanted), strict=True):
                assert isinstance(actual, da.Array)
                np.testing.assert_allclose(actual.compute(), desired, rtol=1e-9)
    assert model.variance(array).chunks == ((13, 13, 4),)
    many = model.variance(da.from_array(np.repeat(X, 100, axis=0), chunks=(1000, 3)))
    np.testing.assert_allclose(many.compute()[::100], model.variance(X), rtol=1e-9)


def test_the_exact_mean_is_answered_by_the_blocks(monkeypatch):
    model = fitted(shared_client(), alpha=50.0, solver="pcg")
    X = problem()[2]
    monkeypatch.setattr(Panel, "__array__", None)
    found = model.predict(da.from_array(X, chunks=(13, 3)))
    np.testing.assert_allclose(found.compute(), model.predict(X), rtol=1e-9)


def parts(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)
