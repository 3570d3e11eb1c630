"""A kernel of one's own, of one module and one row in the table, does all that others do."""

import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import kernel_of_a_user
import numpy as np
import pytest
import skops.io
from helpers import DEVICE, assert_close, matrix_of
from kernel_of_a_user import RationalQuadratic
from problems import (
    ALPHA,
    KERNEL_NAMES,
    X_TEST,
    M,
    N,
    X,
    Y,
    assert_same_answers,
    classes,
    fixed,
    full,
    full_makers,
    intercepts,
    kinds,
    makers,
    names,
    sketched,
    y,
)
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as theirs
from sklearn.model_selection import GridSearchCV
from test_persistence import TRUSTED

from sketchridge import exact
from sketchridge.backends import NumpyTiles
from sketchridge.backends.torch_tiles import TorchTiles
from sketchridge.backends.triton_fused import TritonFused
from sketchridge.kernels import KERNELS, Radial, as_kernel

NAME = "rational_quadratic"
SHOWN_NAME = "RationalQuadratic"
SHAPE = 1.5
H = 0.5
THEIRS = theirs.RationalQuadratic(length_scale=H, alpha=SHAPE)
OWN = {"kernel": NAME, "bandwidth": H}


@pytest.fixture(autouse=True)
def row_in_the_table(monkeypatch):
    monkeypatch.setitem(KERNELS, NAME, RationalQuadratic)


def kernel_matrix(A, B):
    """By scikit-learn, which knows nothing of ours."""
    return THEIRS(A, B)


def test_it_has_a_name_now():
    assert repr(as_kernel(NAME)) == "rational_quadratic(parameters=(1.5,))"
    with pytest.raises(ValueError, match=f"Unknown kernel 'quadratic': give .*one of .*'{NAME}'"):
        as_kernel("quadratic")
    assert NAME not in KERNEL_NAMES  # other tests were collected without it


def test_its_values_are_those_of_scikit_learn():
    assert_close(RationalQuadratic(H)(X, X_TEST), kernel_matrix(X, X_TEST))


def test_its_slope_is_the_derivative_of_its_profile():
    """By a complex step, which does not cancel."""
    s = np.geomspace(1e-3, 1e3, 50)
    derivative = kernel_of_a_user.rational_quadratic(s + 1e-30j, np, SHAPE).imag / 1e-30
    assert_close(kernel_of_a_user.rational_quadratic_slope(s, np, SHAPE), derivative)


# the numbers, against dense formulas of scikit-learn's kernel matrix


@full_makers
@pytest.mark.parametrize("alpha", [1e-2, 1.0, 10.0])
def test_mean_and_posterior_are_those_of_a_gaussian_process(make, alpha):
    process = GaussianProcessRegressor(THEIRS, alpha=alpha, optimizer=None).fit(X, y)
    mean, std = process.predict(X_TEST, return_std=True)
    model = make(alpha=alpha, **OWN).fit(X, y)
    assert_close(model.predict(X_TEST), mean)
    assert_close(model.variance(X_TEST, "gp"), std**2, scale=1.0)


@full_makers
@intercepts
def test_variances_are_those_of_the_definition(make, fit_intercept):
    """The weights of a prediction, from the bordered system of the kernel and a constant."""
    model = make(fit_intercept=fit_intercept, noise_variance=0.3, **OWN).fit(X, y)
    A = kernel_matrix(X, X) + ALPHA * np.eye(N)
    right = kernel_matrix(X, X_TEST)
    if fit_intercept:
        ones = np.ones((N, 1))
        A = np.block([[A, ones], [ones.T, np.zeros((1, 1))]])
        right = np.vstack([right, np.ones((1, len(X_TEST)))])
    weights = np.linalg.solve(A, right)[:N]
    for kind in ("v1",) if make is fixed else ("v2", "v3"):
        assert_close(model.variance(X_TEST, kind), 0.3 * (weights**2).sum(axis=0))
    k_x = kernel_matrix(X, X_TEST)
    bias2 = (
        1
        - 2 * (weights * k_x).sum(axis=0)
        + (weights * (kernel_matrix(X, X) @ weights)).sum(axis=0)
    )
    assert_close(model.variance(X_TEST, "bias2"), bias2, scale=1.0)
    gp = bias2 + ALPHA * (weights**2).sum(axis=0)
    assert_close(model.variance(X_TEST, "gp"), gp, scale=1.0)


@names
def test_every_sketch_of_it_is_the_specification(name):
    model = sketched(sketch=name, sketch_size=M, noise_variance=0.3, **OWN).fit(X, y)
    S = matrix_of(model.sketch_, N)
    K = kernel_matrix(X, X) / N
    k_x = kernel_matrix(X, X_TEST)
    lam = ALPHA / N
    assert_close(model.predict(X_TEST), exact.sketched_mean(K, S, k_x, y, lam))
    assert_close(model.variance(X_TEST, "v2"), exact.v2(K, S, k_x, lam, 0.3))
    assert_close(model.variance(X_TEST, "v3"), exact.v3(K, S, k_x, lam, 0.3))


def test_refinement_leads_to_the_exact_variance():
    model = sketched(sketch_size=M, noise_variance=0.3, **OWN).fit(X, y)
    v1 = fixed(noise_variance=0.3, **OWN).fit(X, y).variance(X_TEST)
    np.testing.assert_allclose(model.variance(X_TEST, "v1", tol=1e-6), v1, rtol=1e-6)
    for steps in (0, 2):
        v, bound = model.variance(X_TEST, refine=steps, return_bound=True)
        assert (np.abs(np.sqrt(v) - np.sqrt(v1)) <= bound).all()


# what else an estimator does


@classes
@pytest.mark.parametrize(
    "bandwidth", ["median", "gcv", [0.4, 0.9], np.array([[1.0, 0.5], [0.0, 1.5]])]
)
def test_bandwidths_are_chosen_and_given(cls, bandwidth):
    model = cls(NAME, bandwidth=bandwidth, fit_intercept=True).fit(X, Y)
    assert model.score(X, Y) > 0.5
    for kind in kinds(model):
        v = model.variance(X_TEST, kind)
        assert np.isfinite(v).all()
        assert (v >= 0).all()


@makers
@intercepts
def test_rows_can_be_appended(make, fit_intercept):
    options = OWN | {"fit_intercept": fit_intercept}
    size = {"sketch_size": M} if make is sketched else {}
    model = make(**options, **size).fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    sketch = {"sketch": model.sketch_} if make is sketched else {}
    assert_same_answers(model, make(**options, **sketch).fit(X, y))


@makers
@pytest.mark.parametrize("kernel", [NAME, RationalQuadratic(shape=3.0)], ids=["name", "object"])
def test_it_is_cloned(make, kernel):
    model = make(kernel=kernel, bandwidth=H).fit(X, y)
    copy = clone(model)
    assert not hasattr(copy, "lambda_")
    np.testing.assert_array_equal(copy.fit(X, y).predict(X_TEST), model.predict(X_TEST))


@makers
@pytest.mark.parametrize("kernel", [NAME, RationalQuadratic(shape=3.0)], ids=["name", "object"])
def test_it_is_pickled(make, kernel):
    model = make(kernel=kernel, bandwidth=H, fit_intercept=True).fit(X, y)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict(X_TEST), model.predict(X_TEST))
    assert_same_answers(restored, model)
    more = X_TEST, X_TEST[:, 0]
    assert_same_answers(restored.partial_fit(*more), model.partial_fit(*more))


FUNCTIONS = [
    "kernel_of_a_user.rational_quadratic",
    "kernel_of_a_user.rational_quadratic_slope",
]


def test_its_functions_take_the_place_of_others_in_the_list_of_types_to_trust():
    model = sketched(**OWN).fit(X, y)
    data = skops.io.dumps(model)
    others = [entry for entry in TRUSTED if ".gaussian" not in entry]
    assert skops.io.get_untrusted_types(data=data) == sorted([*FUNCTIONS, *others])
    restored = skops.io.loads(data, trusted=[*FUNCTIONS, *others])
    assert_same_answers(restored, model)
    with pytest.raises(skops.io.exceptions.UntrustedTypesFoundException, match="kernel_of_a_user"):
        skops.io.loads(data, trusted=others)


def test_it_is_one_of_a_grid():
    grid = {"kernel": [NAME, "gaussian", RationalQuadratic(shape=0.5)], "alpha": [0.1, 1.0]}
    search = GridSearchCV(full(bandwidth=H, sketch_size=40), grid, cv=2, error_score="raise")
    assert np.isfinite(search.fit(X, y).cv_results_["mean_test_score"]).all()


# every backend

BACKENDS = {
    "numpy, small tiles": lambda: NumpyTiles(tile=7, workers=3),
    "torch": lambda: TorchTiles(device="cpu"),
    "torch, wherever it computes": lambda: TorchTiles(device=DEVICE),
    "triton": lambda: TritonFused(device=DEVICE),
}


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("sketch", ["rpcholesky", "rademacher"])
@intercepts
def test_backends_agree(name, sketch, fit_intercept):
    options = OWN | {"sketch": sketch, "sketch_size": M, "fit_intercept": fit_intercept}
    model = sketched(backend=BACKENDS[name](), **options).fit(X, y)
    assert_same_answers(model, sketched(**options).fit(X, y))


@pytest.mark.parametrize("name", BACKENDS)
def test_backends_agree_in_single_precision(name):
    options = OWN | {"sketch_size": M}
    single = sketched(backend=BACKENDS[name](), dtype="float32", **options).fit(X, y)
    double = sketched(**options).fit(X, y)
    assert single.dtype_ == "float32"
    assert_close(single.predict(X_TEST), double.predict(X_TEST), "float32")
    assert_close(single.variance(X_TEST), double.variance(X_TEST), "float32")


def test_without_a_triton_function_triton_leaves_it_to_pytorch():
    plain = Radial(
        kernel_of_a_user.rational_quadratic,
        kernel_of_a_user.rational_quadratic_slope,
        parameters=(SHAPE,),
    )
    options = {"kernel": plain, "bandwidth": H, "sketch_size": M}
    model = sketched(backend=BACKENDS["triton"](), **options).fit(X, y)
    assert_same_answers(model, sketched(**(options | OWN)).fit(X, y))


# a kernel of the library's own

RATIONAL = '''"""The rational quadratic kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sketchridge.kernels.radial import Radial


def rational_quadratic(s: Any, xp: Any, shape: float) -> Any:
    return (1 + s / (2 * shape)) ** -shape


def rational_quadratic_slope(s: Any, xp: Any, shape: float) -> Any:
    return -0.5 * (1 + s / (2 * shape)) ** (-shape - 1)


def RationalQuadratic(bandwidth: Any = None, shape: float = 1.0) -> Radial:
    made = Radial(rational_quadratic, rational_quadratic_slope, None, bandwidth, (shape,))
    return replace(made, name="RationalQuadratic", labels="shape")
'''
ROWS = {  # a file, a line of it, and what comes before that
    "src/sketchridge/kernels/__init__.py": {
        "# A name and what": "from sketchridge.kernels.rational import RationalQuadratic\n\n",
        '    "precomputed": ': f'    "{NAME}": RationalQuadratic,\n',
    },
    "tests/helpers.py": {
        '    KernelCase("polynomial", ': f"""    KernelCase(
        "{NAME}", kernels.RationalQuadratic(bandwidth=0.9, shape=2.0), normal
    ),
"""
    },
}


def test_a_built_in_kernel_is_one_file_and_a_row_in_each_of_two_tables(tmp_path):
    """In a copy of the library, whose tests are collected with it."""
    here = Path(__file__).parents[1]
    for folder in ("src", "tests"):
        unread = shutil.ignore_patterns("__pycache__", "web", "active", "cli")
        ignored = unread if folder == "tests" else shutil.ignore_patterns("__pycache__")
        shutil.copytree(here / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(here / "pyproject.toml", tmp_path)
    (tmp_path / "src/sketchridge/kernels/rational.py").write_text(RATIONAL)
    for name, rows in ROWS.items():
        text = (tmp_path / name).read_text()
        for line, before in rows.items():
            assert text.count(line) == 1
            text = text.replace(line, before + line)
        (tmp_path / name).write_text(text)
    options = ["-p", "no:xdist", "-p", "no:cacheprovider", "-vv", "-k", f"{NAME} or {SHOWN_NAME}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests/test_kernels.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.findall(r"::(\S+)\[(.+)\] PASSED", done.stdout)
    assert (
        "test_the_repr_of_a_built_in_kernel_makes_it_again",
        f"{SHOWN_NAME}(shape=1.0)",
    ) in passed
    assert len([1 for _, row in passed if row == NAME]) >= 5


# what is no kernel


@classes
def test_a_profile_that_is_not_1_at_0_is_refused(cls):
    def twice(s, xp):
        return 2 * xp.exp(-s)

    with pytest.raises(ValueError, match=r"twice\(\) is 2 at s = 0, but .*divide it by that value"):
        cls(Radial(twice)).fit(X, y)
