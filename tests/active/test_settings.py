"""Estimators as plain values: what can be rebuilt is, what cannot is refused, nothing is run."""

from __future__ import annotations

import json
import sqlite3
import sys
from functools import partial
from pathlib import Path

import kernels_of_mine as mine
import numpy as np
import pytest
from helpers import assert_close
from sklearn.gaussian_process.kernels import RBF

from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge
from sketchridge.active import schema
from sketchridge.active.settings import estimator_from, estimator_settings
from sketchridge.active.sql import SQLStore
from sketchridge.backends import NumpyTiles
from sketchridge.kernels import (
    CubicSpline,
    DotProduct,
    Gaussian,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    PeriodicSobolev,
    Polynomial,
    Radial,
)

P = 80
X = np.random.default_rng(0).random((P, 2))
Y = np.sin(5 * X[:, 0]) + X[:, 1]
MAP = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, 1.0]])
NAMED = [
    Gaussian(),
    Gaussian(bandwidth=0.5),
    Matern32(bandwidth=np.array([1.0, 2.0])),
    Matern52(bandwidth=MAP),
    Laplacian(bandwidth=2.0),
    Linear(),
    Polynomial(),
    Polynomial(degree=2, gamma=0.5, coef0=0.25),
    CubicSpline(),
    PeriodicSobolev(order=3),
]
USERS = [
    Radial(mine.rational_quadratic, bandwidth=0.7, parameters=(1.5,)),
    Radial(mine.rational_quadratic, mine.rational_quadratic_slope, parameters=(2,), name="RQ"),
    Radial(mine.rational_quadratic, parameters=(1.0,), bandwidth=np.array([1.0, 2.0])),
    Radial(mine.Shelf.cauchy, bandwidth=MAP),
    Radial(mine.Shelf.cauchy, name="Gaussian"),
    DotProduct(mine.exponential, gamma=0.5),
    DotProduct(mine.exponential),
    Radial(Gaussian().profile, Gaussian().slope, bandwidth=1.0, name="mine"),
]


def through_json(estimator):
    return estimator_from(json.loads(json.dumps(estimator_settings(estimator))))


def refused(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator_settings(estimator)


@pytest.mark.parametrize("kernel", [*NAMED, *USERS], ids=repr)
@pytest.mark.parametrize("make", [ExactKernelRidge, SketchedKernelRidge])
def test_a_kernel_comes_back_as_it_was(kernel, make):
    again = through_json(make(kernel)).kernel
    assert type(again) is type(kernel)
    assert repr(again) == repr(kernel)
    if getattr(kernel, "bandwidth", 1.0) is not None:
        np.testing.assert_array_equal(again(X[:9], X[9:20]), kernel(X[:9], X[9:20]))
    for name in ("profile", "slope", "fused", "parameters"):
        assert getattr(again, name, None) == getattr(kernel, name, None)


@pytest.mark.parametrize(
    "estimator",
    [
        SketchedKernelRidge(Matern32(), alpha=np.float64(0.3), sketch_size=np.int64(9)),
        SketchedKernelRidge("laplacian", bandwidth=[1.0, 0.5], random_state=3),
        SketchedKernelRidge(bandwidth=MAP, noise_variance=(0.1,)),
        ExactKernelRidge("matern52", alpha="loo", noise_variance=0.1, fit_intercept=True),
        SketchedKernelRidge(USERS[0], alpha=0.1),
        ExactKernelRidge(USERS[5], alpha=0.1),
    ],
    ids=repr,
)
def test_a_campaign_goes_on_with_the_same_estimator(estimator, url):
    learner = ActiveLearner(estimator, X, batch_size=15, store=url, random_state=0)
    for _ in range(2):
        ids = learner.ask()
        learner.tell(ids, Y[ids])
    again = ActiveLearner.resume(url)
    assert type(again.estimator_) is type(estimator)
    assert_close(again.estimator_.predict(X), learner.estimator_.predict(X))
    assert again.preview().tolist() == learner.ask().tolist()


def test_kernels_of_this_library_are_stored_as_version_one_did():
    stored = estimator_settings(SketchedKernelRidge(Polynomial(degree=2)))["parameters"]["kernel"]
    assert stored == {"kernel": "Polynomial", "fields": {"degree": 2, "gamma": None, "coef0": 1.0}}
    stored = estimator_settings(SketchedKernelRidge(Gaussian(0.5)))["parameters"]["kernel"]
    assert stored == {"kernel": "Gaussian", "fields": {"bandwidth": 0.5}}


@pytest.mark.parametrize(
    ("stored", "kernel"),
    [
        ({"kernel": "Gaussian", "fields": {"bandwidth": 0.5, "center": None}}, Gaussian(0.5)),
        (
            {"kernel": "Matern32", "fields": {"bandwidth": {"array": [1.0, 2.0]}, "center": None}},
            Matern32(np.array([1.0, 2.0])),
        ),
        ({"kernel": "Laplacian", "fields": {"bandwidth": None, "center": None}}, Laplacian()),
        ({"kernel": "Linear", "fields": {}}, Linear()),
        (
            {"kernel": "Polynomial", "fields": {"degree": 2, "gamma": 0.5, "coef0": 1.0}},
            Polynomial(2, 0.5, 1.0),
        ),
        ({"kernel": "PeriodicSobolev", "fields": {"order": 3}}, PeriodicSobolev(3)),
    ],
)
def test_kernels_that_version_one_stored_come_back(stored, kernel):
    settings = {"estimator": "SketchedKernelRidge", "parameters": {"kernel": stored}}
    assert repr(estimator_from(settings).kernel) == repr(kernel)


def maker():
    def inside(s, xp):
        return xp.exp(-s)

    return inside


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (lambda s, xp: xp.exp(-s), "not as a lambda or inside another function"),
        (maker(), "not as a lambda or inside another function"),
        (partial(mine.rational_quadratic, shape=1.0), "cannot be found by one"),
        (mine.other_arguments, r"arguments must be named \(s, xp, …\)"),
        (np.exp, "cannot be found by one|must be named"),
    ],
)
@pytest.mark.parametrize("make", [Radial, DotProduct])
def test_functions_that_cannot_be_found_again_are_refused(make, profile, message):
    refused(SketchedKernelRidge(make(profile, name="mine")), message)
    refused(SketchedKernelRidge(make(mine.exponential, profile, name="mine")), message)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": RBF()},
        {"kernel": lambda A, B: A @ B.T},
        {"sketch": np.eye(4)},
        {"backend": NumpyTiles()},
        {"random_state": np.random.RandomState(0)},
    ],
    ids=["scikit-learn", "callable", "array", "backend", "random state"],
)
def test_other_estimators_need_a_store_in_memory(options, tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    with pytest.raises(ValueError, match="neither a name, a number nor a kernel"):
        ActiveLearner(SketchedKernelRidge(**options), X, batch_size=5, store=url)
    with pytest.raises(ValueError, match="There is no file"):
        ActiveLearner.resume(url)


def stored_with(**changes):
    settings = estimator_settings(SketchedKernelRidge(USERS[0]))
    settings["parameters"]["kernel"]["fields"].update(changes)
    return settings


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_module_of_mine:f", "import no_such_module_of_mine first, then resume"),
        ("antigravity:fly", "import antigravity first, then resume"),
        ("kernels_of_mine:gone", "there is no such name: define it as it was"),
        ("kernels_of_mine:Shelf.gone.deeper", "there is no such name"),
        ("kernels_of_mine:Shelf", "must be named"),
        ("os:system", "must be named"),
        ("builtins:exec", "must be named"),
        ("shutil:rmtree", "must be named"),
        ("subprocess:Popen", "must be named"),
    ],
)
@pytest.mark.parametrize("role", ["profile", "slope"])
def test_a_file_imports_nothing_and_names_only_profiles(role, path, message):
    before = set(sys.modules)
    with pytest.raises(ValueError, match=message):
        estimator_from(stored_with(**{role: path}))
    assert set(sys.modules) == before


def test_a_triton_function_is_looked_up_where_its_module_is_imported():
    assert estimator_from(stored_with(fused="kernels_of_mine:program")).kernel.fused is mine.program
    ours = "sketchridge.backends.triton_profiles:gaussian"
    assert estimator_from(stored_with(fused=ours)).kernel.fused == ours
    before = set(sys.modules)
    with pytest.warns(UserWarning, match="'antigravity:fly', whose module has not been imported"):
        assert estimator_from(stored_with(fused="antigravity:fly")).kernel.fused is None
    assert set(sys.modules) == before


def test_a_triton_function_is_stored_by_its_path():
    from sketchridge.backends import triton_profiles

    kernel = Radial(mine.Shelf.cauchy, fused=triton_profiles.matern32)
    stored = estimator_settings(SketchedKernelRidge(kernel))["parameters"]["kernel"]["fields"]
    assert stored["fused"] == "sketchridge.backends.triton_profiles:matern32"
    kernel = Radial(mine.Shelf.cauchy, fused="somewhere.else:program")
    stored = estimator_settings(SketchedKernelRidge(kernel))["parameters"]["kernel"]["fields"]
    assert stored["fused"] == "somewhere.else:program"


# Files of version 1: what it asked for next, and predicted at the first three points

VERSION_ONE = {
    "sketched": ([11, 13, 14, 3], [0.23786875650714834, 0.8409138072189355, -0.7843929753136865]),
    "exact": ([34, 24, 14, 13], [0.016805714675156125, 0.13948966858457545, 0.03939754821814284]),
}


@pytest.mark.parametrize("name", VERSION_ONE)
def test_a_campaign_of_version_one_goes_on(name, tmp_path):
    """Its rounds were opened by readers too, and one has lost its metrics."""
    script = (Path(__file__).parent / "version1" / f"{name}.sql").read_text()
    with sqlite3.connect(tmp_path / "old.db") as database:
        database.executescript(script)
    database.close()
    url = f"sqlite:///{tmp_path / 'old.db'}"
    with pytest.raises(ValueError, match=r"older sketchridge \(its tables have version 1"):
        ActiveLearner.resume(url)
    assert SQLStore.migrate(url) == 1
    assert SQLStore.migrate(url) == schema.VERSION
    learner = ActiveLearner.resume(url)
    wanted, predicted = VERSION_ONE[name]
    assert [row["labels"] for row in learner.history_] == [3, 5, 8, 10, 13, 15]
    assert all(row["loo_error"] > 0 for row in learner.history_)
    learner.should_stop()
    assert_close(learner.estimator_.predict(learner.pool_[np.arange(3)]), predicted, "pcg")
    assert learner.ask(4).tolist() == wanted
    assert len(learner.pending_ids_) == 6


def test_a_size_that_is_a_function_is_stored_by_its_name(tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    estimator = SketchedKernelRidge(alpha=0.1, sketch="gaussian", sketch_size=mine.rows_of_a_sketch)
    learner = ActiveLearner(estimator, X, batch_size=5, store=url, random_state=0)
    learner.tell(np.arange(20), np.arange(20.0))
    assert ActiveLearner.resume(url).estimator_.sketch_size_ == 3
    refused(SketchedKernelRidge(sketch_size=lambda n: 3), "not as a lambda")
    refused(SketchedKernelRidge(sketch_size=mine.other_arguments), r"must be named \(n\)")
