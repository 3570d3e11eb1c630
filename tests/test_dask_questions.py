"""Covariances, curves, contrasts, slopes and effects of a model whose rows are on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import dask.array as da
import numpy as np
import pytest
from local_cluster import shared_client

from sketchridge import SketchedKernelRidge
from sketchridge.backends.dask_blocks import DaskBlocks

Array = np.ndarray
N, T, D = 3000, 30, 3
AGREEMENT = 1e-10
SETTINGS: dict[str, dict[str, Any]] = {
    "sketch": {"kernel": "gaussian", "bandwidth": 0.7, "solver": "sketch"},
    "exact mean": {"kernel": "matern52", "bandwidth": 1.0, "solver": "pcg"},
    "polynomial": {"kernel": "polynomial", "solver": "sketch"},
}
MODELS = list(SETTINGS)


def problem() -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.random((N, D))
    X[:, 2] = X[:, 2] > 0.5  # a feature of two values
    y = np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(N)
    return X, y, X[rng.permutation(N)[:T]] + 0.01, rng.standard_normal((4, T))


@lru_cache
def models(name: str) -> tuple[SketchedKernelRidge, SketchedKernelRidge]:
    """The one of a Dask array on the cluster, and the one of this machine."""
    X, y, *_ = problem()
    options = {"alpha": 0.5, "sketch_size": 60, "dtype": "float64", "random_state": 0}
    there = SketchedKernelRidge(
        **SETTINGS[name], **options, backend=DaskBlocks(shared_client(), rows=800)
    )
    here = SketchedKernelRidge(**SETTINGS[name], **options, backend="numpy")
    there.fit(da.from_array(X, chunks=700), da.from_array(y, chunks=900))
    return there, here.fit(X, y)


def assert_agree(name: str, ask: Callable[[SketchedKernelRidge], Any]) -> None:
    """Each array of the answers to 1e-10 of its largest number."""
    there, here = (ask(model) for model in models(name))
    assert models(name)[0].backend_ == "dask"
    tol = AGREEMENT if name != "exact mean" else 1e-7  # to which the mean is solved
    for actual, desired in zip(as_tuple(there), as_tuple(here), strict=True):
        assert np.shape(actual) == np.shape(desired)
        scale = max(np.abs(desired).max(), np.finfo(float).tiny)
        np.testing.assert_allclose(actual, desired, rtol=0, atol=tol * scale)


def as_tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["v2", "v3", "vbar", "gp"])
def test_covariance(name, kind):
    Z = problem()[2]
    assert_agree(name, lambda model: model.covariance(Z, kind))


def test_exact_covariance():
    Z = problem()[2][:4]
    there, here = (model.covariance(Z, "v1") for model in models("sketch"))
    np.testing.assert_allclose(there, here, rtol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_covariance_beside_the_mean(name):
    Z = problem()[2]
    assert_agree(name, lambda model: model.predict(Z, return_cov=True))


@pytest.mark.parametrize("kind", ["gp", "v3"])
def test_curves(kind):
    """Of one seed they have the same covariance, whatever the signs of its square root."""
    Z = problem()[2]
    assert_agree("sketch", lambda model: model.sample(Z, 3, kind, random_state=0))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["v2", "v3", "vbar", "gp"])
def test_contrasts(name, kind):
    _, _, Z, A = problem()
    assert_agree(name, lambda model: model.contrast(A, Z, kind))


def test_bounds_of_contrasts():
    _, _, Z, A = problem()
    for model in models("sketch"):
        _, v, bound = model.contrast(A, Z, "vbar", refine=1, return_bound=True)
        _, v1 = model.contrast(A, Z, "v1", tol=1e-6)
        assert (np.abs(np.sqrt(v1) - np.sqrt(v)) <= bound * (1 + 1e-6) + 1e-9 * np.sqrt(v)).all()


@pytest.mark.parametrize("name", MODELS)
def test_tests_of_contrasts(name):
    _, _, Z, A = problem()

    def ask(model: SketchedKernelRidge) -> tuple[Array, ...]:
        found = model.test_contrast(A, Z, kind="v3")
        return found.estimate, found.std, found.z, found.p_value

    assert_agree(name, ask)


@pytest.mark.parametrize("name", MODELS)
def test_gradients(name):
    Z = problem()[2]
    assert_agree(name, lambda model: model.gradient(Z, return_std=True, kind="v3"))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("rows", ["given", "training"])
def test_marginal_effects(name, rows):
    Z = problem()[2] if rows == "given" else None

    def ask(model: SketchedKernelRidge) -> tuple[Array, ...]:
        found = model.marginal_effects(Z, kind="v3")
        assert found.kind == ("derivative", "derivative", "first difference")
        return found.effect, found.std_error

    assert_agree(name, ask)


def test_questions_of_a_dask_array():
    """Answers that are no rows of numbers are computed at once."""
    _, _, Z, A = problem()
    there = models("sketch")[0]
    lazy = da.from_array(Z, chunks=7)
    for ask in (
        lambda X: there.covariance(X, "gp"),
        lambda X: there.contrast(A, X, "gp")[1],
        lambda X: there.test_contrast(A, X, kind="v3").std,
        lambda X: there.gradient(X),
        lambda X: there.marginal_effects(X, kind="v3").effect,
        lambda X: there.sample(X, 2, random_state=0),
    ):
        np.testing.assert_allclose(ask(lazy), ask(Z), rtol=1e-12)
    with pytest.raises(ValueError, match="A covariance is not lazy"):
        there.predict(lazy, return_cov=True)
