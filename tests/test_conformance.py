"""Agreement with scikit-learn: its estimator checks, its exact models, its tools, and the tables
people bring."""

import os
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import assert_close
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.kernels import Polynomial

ALPHAS = [1e-2, 1.0, 10.0]
CLOSE = 1e-8  # of max|f| and of k(x, x): the agreement with scikit-learn that issue 2 asks for
SEED = 0

rng = np.random.default_rng(SEED)
X = rng.uniform(-1, 1, (60, 3))
SIGNAL = np.column_stack([np.sin(3 * X[:, 0]) + X[:, 1], X[:, 2] ** 2, X.sum(axis=1)])
Y = SIGNAL + 0.1 * rng.standard_normal((60, 3))
y = Y[:, 0]
X_TEST = rng.uniform(-1.5, 1.5, (40, 3))


def exact(**parameters):
    return ExactKernelRidge(**parameters)


def full_sketch(sketch, **parameters):
    options = {"dtype": "float64", "random_state": SEED}
    return SketchedKernelRidge(sketch=sketch, **options, **parameters)


def full_landmarks(**parameters):
    return full_sketch("rpcholesky", sketch_size=len(X), **parameters)


def identity_sketch(**parameters):
    return full_sketch(np.eye(len(X)), **parameters)


def full_gaussian(**parameters):
    return full_sketch("gaussian", sketch_size=len(X), **parameters)


def exact_mean(**parameters):
    return full_sketch("rpcholesky", sketch_size=20, solver="pcg", **parameters)


complete = pytest.mark.parametrize("make", [exact, full_landmarks, identity_sketch, full_gaussian])
both = pytest.mark.parametrize(
    "model",
    [ExactKernelRidge(), SketchedKernelRidge(random_state=SEED)],
    ids=["exact", "sketched"],
)
alphas = pytest.mark.parametrize("alpha", ALPHAS)


def assert_within(got, expected, scale):
    np.testing.assert_allclose(got, expected, rtol=0, atol=CLOSE * np.max(scale))


# scikit-learn's own checks


@parametrize_with_checks([ExactKernelRidge(), SketchedKernelRidge()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


WEIGHT_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weights_pandas_series",
    "check_sample_weights_not_overwritten",
    "check_all_zero_sample_weights_error",
}


@pytest.mark.parametrize(
    "model", [ExactKernelRidge(), SketchedKernelRidge()], ids=["exact", "sketched"]
)
def test_no_check_is_skipped_or_excused(model):
    """Those of sample weights among them."""
    assert os.environ.get("SCIPY_ARRAY_API") == "1", (
        "scikit-learn skips checks without SCIPY_ARRAY_API=1; `make test` sets it"
    )
    results = check_estimator(model, on_skip=None, on_fail=None)
    status = {result["check_name"]: result["status"] for result in results}
    assert len(results) > 40
    assert status.keys() >= WEIGHT_CHECKS
    assert {name: found for name, found in status.items() if found != "passed"} == {}


# the same numbers

H = 0.8
RIDGES = {
    "rbf": ({"kernel": "gaussian", "bandwidth": H}, {"kernel": "rbf", "gamma": 1 / (2 * H**2)}),
    "its name": ({"kernel": "rbf", "bandwidth": H}, {"kernel": "rbf", "gamma": 1 / (2 * H**2)}),
    "laplacian": (
        {"kernel": "laplacian", "bandwidth": H},
        {"kernel": "laplacian", "gamma": 1 / H},
    ),
    "polynomial": (
        {"kernel": "polynomial"},
        {"kernel": "polynomial", "degree": 3, "gamma": 1 / 3, "coef0": 1},
    ),
    "polynomial with parameters": (
        {"kernel": Polynomial(degree=2, gamma=0.7, coef0=0.3)},
        {"kernel": "polynomial", "degree": 2, "gamma": 0.7, "coef0": 0.3},
    ),
    "linear": ({"kernel": "linear"}, {"kernel": "linear"}),
}


@pytest.mark.parametrize(
    "make", [exact, full_landmarks, identity_sketch, full_gaussian, exact_mean]
)
@alphas
@pytest.mark.parametrize("name", RIDGES)
def test_mean_equals_kernel_ridge(name, alpha, make):
    ours, theirs = RIDGES[name]
    expected = KernelRidge(alpha=alpha, **theirs).fit(X, Y).predict(X_TEST)
    found = make(alpha=alpha, **ours).fit(X, Y).predict(X_TEST)
    if make is exact_mean:  # iterated to a residual of 1e-8·‖y‖
        assert_close(found, expected, "pcg")
    else:
        assert_within(found, expected, np.abs(expected))


SCALES = np.array([0.5, 0.8, 2.0])
PROCESSES = {
    "RBF": ({"kernel": "gaussian", "bandwidth": H}, RBF(H)),
    "RBF, a bandwidth each": ({"kernel": "gaussian", "bandwidth": SCALES}, RBF(SCALES)),
    "Matern 1.5": ({"kernel": "matern32", "bandwidth": H}, Matern(H, nu=1.5)),
    "Matern 2.5": ({"kernel": "matern52", "bandwidth": H}, Matern(H, nu=2.5)),
    "Matern 2.5, a bandwidth each": (
        {"kernel": "matern52", "bandwidth": SCALES},
        Matern(SCALES, nu=2.5),
    ),
    "linear": ({"kernel": "linear"}, DotProduct(sigma_0=0)),
}
OBJECTS = [
    RBF(H),
    Matern(H, nu=1.5),
    Matern(H, nu=0.5),
    RationalQuadratic(length_scale=H, alpha=1.5),
    DotProduct(sigma_0=0.5),
    ConstantKernel(2.0) * RBF(H),
    RBF(H) + DotProduct(sigma_0=1.0),
    ConstantKernel(0.5) + Matern(H, nu=2.5) * RationalQuadratic(),
    DotProduct(sigma_0=1.0) ** 2,
]


def assert_equals_gaussian_process(model, kernel, alpha):
    process = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None).fit(X, y)
    mean, std = process.predict(X_TEST, return_std=True)
    assert_within(model.predict(X_TEST), mean, np.abs(mean))
    assert_within(model.variance(X_TEST, "gp"), std**2, kernel.diag(X_TEST))


@pytest.mark.filterwarnings("ignore:divide by zero encountered in log:RuntimeWarning")
@complete
@alphas
@pytest.mark.parametrize("name", PROCESSES)
def test_mean_and_gp_equal_gaussian_process(name, alpha, make):
    ours, kernel = PROCESSES[name]
    assert_equals_gaussian_process(make(alpha=alpha, **ours).fit(X, y), kernel, alpha)


@complete
@alphas
@pytest.mark.parametrize("kernel", OBJECTS, ids=str)
def test_scikit_learn_kernel_objects_are_taken_as_they_are(kernel, alpha, make):
    assert_equals_gaussian_process(make(alpha=alpha, kernel=kernel).fit(X, y), kernel, alpha)


@both
@pytest.mark.parametrize(
    "kernel",
    [WhiteKernel(), RBF() + WhiteKernel(), ConstantKernel() * (RBF() + WhiteKernel())],
    ids=str,
)
def test_white_kernel_is_refused(kernel, model):
    with pytest.raises(ValueError, match=r"contains a WhiteKernel.*set alpha to the noise level"):
        clone(model).set_params(kernel=kernel).fit(X, y)


@complete
@alphas
def test_a_callable_equals_the_kernel_it_computes(alpha, make):
    def gaussian(A, B):
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * H**2))

    assert_equals_gaussian_process(make(alpha=alpha, kernel=gaussian).fit(X, y), RBF(H), alpha)


# tables

NAMES = ["speed", "wind", "height"]
TABLES = {
    "pandas": (
        lambda A: pd.DataFrame(A, columns=NAMES),
        lambda v: pd.Series(v, name="delay"),
        pd.DataFrame,
    ),
    "polars": (
        lambda A: pl.DataFrame(A, schema=NAMES),
        lambda v: pl.Series("delay", v),
        pl.DataFrame,
    ),
}


@both
@pytest.mark.parametrize("library", TABLES)
def test_tables_give_what_arrays_give(library, model):
    table, series, _ = TABLES[library]
    from_array = clone(model).fit(X, y)
    from_table = clone(model).fit(table(X), series(y))
    assert list(from_table.feature_names_in_) == NAMES
    assert from_table.n_features_in_ == 3
    ours = from_table.predict(table(X_TEST), return_std=True)
    for found, expected in zip(ours, from_array.predict(X_TEST, return_std=True), strict=True):
        assert isinstance(found, np.ndarray)
        assert found.shape == (len(X_TEST),)
        assert_close(found, expected)
    assert_close(from_table.variance(table(X_TEST), "gp"), from_array.variance(X_TEST, "gp"))
    intervals = from_table.predict_interval(table(X_TEST))
    assert_close(intervals, from_array.predict_interval(X_TEST))


@both
@pytest.mark.parametrize("library", TABLES)
def test_tables_of_several_targets(library, model):
    table, _, frame = TABLES[library]
    from_table = clone(model).fit(table(X), frame(Y))
    expected = clone(model).fit(X, Y).predict(X_TEST)
    assert_close(from_table.predict(table(X_TEST)), expected)


@both
def test_columns_in_another_order_are_refused(model):
    table = TABLES["pandas"][0](X)
    fitted = clone(model).fit(table, y)
    text = "feature names should match those that were passed during fit"
    with pytest.raises(ValueError, match=text):
        fitted.predict(table[NAMES[::-1]])


@both
@pytest.mark.parametrize("library", TABLES)
def test_tables_can_be_appended(library, model):
    table, series, _ = TABLES[library]
    from_table = clone(model).fit(table(X[:40]), series(y[:40]))
    from_table.partial_fit(table(X[40:]), series(y[40:]))
    from_array = clone(model).fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    assert_close(from_table.predict(table(X_TEST)), from_array.predict(X_TEST))
    assert list(from_table.feature_names_in_) == NAMES


@both
def test_a_refit_to_an_array_forgets_the_names_of_a_table(model):
    table = TABLES["pandas"][0]
    fitted = clone(model).fit(table(X), y).fit(X[:, :2], y)
    assert not hasattr(fitted, "feature_names_in_")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict(X_TEST[:, :2])
    assert vars(fitted).keys() == vars(clone(model).fit(X[:, :2], y)).keys()


@both
def test_a_column_of_targets_keeps_its_shape(model):
    fitted = clone(model).fit(X, y[:, None])
    mean, std = fitted.predict(X_TEST, return_std=True)
    assert mean.shape == std.shape == (len(X_TEST), 1)
    np.testing.assert_array_equal(mean[:, 0], clone(model).fit(X, y).predict(X_TEST))


# scikit-learn's tools


@both
def test_pipeline_equals_its_steps(model):
    scaler = StandardScaler().fit(X)
    by_hand = clone(model).fit(scaler.transform(X), y)
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    theirs = by_hand.predict(scaler.transform(X_TEST), return_std=True)
    for found, expected in zip(pipeline.predict(X_TEST, return_std=True), theirs, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert pipeline.score(X, y) == by_hand.score(scaler.transform(X), y)


@both
def test_weights_pass_through_a_pipeline_and_a_search(model):
    w = np.random.default_rng(1).integers(1, 4, len(X))
    step = type(model).__name__.lower()
    ours = clone(model).set_params(alpha=1.0, bandwidth=H)
    pipeline = make_pipeline(StandardScaler(), ours)
    pipeline.fit(X, y, **{f"{step}__sample_weight": w})
    scaled = StandardScaler().fit_transform(X)
    by_hand = clone(ours).fit(scaled, y, sample_weight=w)
    np.testing.assert_array_equal(pipeline.predict(X), by_hand.predict(scaled))
    search = GridSearchCV(clone(ours), {"alpha": [0.1, 10.0]}, cv=3, error_score="raise")
    search.fit(X, y, sample_weight=w)
    chosen = clone(ours).set_params(**search.best_params_).fit(X, y, sample_weight=w)
    assert_close(search.predict(X_TEST), chosen.predict(X_TEST))


@both
def test_grid_search_over_alpha_bandwidth_and_kernel(model):
    grid = [
        {
            "kernel": ["gaussian", "matern52"],
            "alpha": [1e-2, 1e6, "gcv"],
            "bandwidth": [1.0, "median"],
        },
        {"kernel": ["linear", Polynomial(degree=2), RBF(0.5)], "alpha": ["loo"]},
    ]
    search = GridSearchCV(clone(model), grid, cv=3, error_score="raise").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.cv_results_["mean_test_score"]) == 15
    assert search.best_params_["alpha"] != 1e6
    assert search.best_estimator_.predict(X_TEST).shape == (len(X_TEST),)


@both
@pytest.mark.parametrize("targets", [y, Y], ids=["one target", "three targets"])
def test_cross_validation_scores_equal_those_of_kernel_ridge(targets, model):
    ours = clone(model).set_params(alpha=1.0, bandwidth=H)
    theirs = KernelRidge(alpha=1.0, kernel="rbf", gamma=1 / (2 * H**2))
    if isinstance(ours, SketchedKernelRidge):
        ours.set_params(sketch_size=45)
    scores = cross_val_score(ours, X, targets, cv=4, error_score="raise")
    assert_within(scores, cross_val_score(theirs, X, targets, cv=4), 1)


@both
def test_cross_validation_of_a_precomputed_kernel_splits_rows_and_columns(model):
    ours = clone(model).set_params(alpha=1.0, bandwidth=H)
    if isinstance(ours, SketchedKernelRidge):
        ours.set_params(sketch_size=45)
    scores = cross_val_score(ours, X, y, cv=4, error_score="raise")
    G = RBF(H)(X)
    ours.set_params(kernel="precomputed", bandwidth="median")
    assert_within(cross_val_score(ours, G, y, cv=4, error_score="raise"), scores, 1)


UNUSUAL = {
    "kernel": Polynomial(degree=2),
    "bandwidth": "gcv",
    "alpha": 0.3,
    "noise_variance": 0.5,
    "fit_intercept": True,
}
UNUSUAL_SKETCH = UNUSUAL | {
    "sketch": "sparse",
    "sketch_size": 12,
    "sketch_tol": 0.02,
    "backend": "numpy",
    "dtype": "float32",
    "random_state": 7,
}


@pytest.mark.parametrize(
    ("cls", "unusual"),
    [(ExactKernelRidge, UNUSUAL), (SketchedKernelRidge, UNUSUAL_SKETCH)],
    ids=["exact", "sketched"],
)
def test_clone_keeps_parameters_and_forgets_the_fit(cls, unusual):
    model = cls(**unusual).fit(X, y)
    copy = clone(model)
    kept = {name: copy.get_params()[name] for name in unusual if name != "kernel"}
    assert kept == {name: value for name, value in unusual.items() if name != "kernel"}
    assert repr(copy.kernel) == repr(unusual["kernel"])
    assert vars(copy).keys() == cls().get_params().keys()
    np.testing.assert_array_equal(copy.fit(X, y).predict(X_TEST), model.predict(X_TEST))


# warnings name a line of whoever called


def warns_at_cap():
    return SketchedKernelRidge(alpha=1.0, sketch_size=99)


@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize("cls", [SketchedKernelRidge, ExactKernelRidge])
def test_the_defaults_pass_scikit_learns_checks(cls):
    check_estimator(cls())


@pytest.mark.parametrize(
    "fit",
    [
        lambda: warns_at_cap().fit(X, y),
        lambda: warns_at_cap().partial_fit(X, y),
        lambda: make_pipeline(StandardScaler(), warns_at_cap()).fit(X, y),
        lambda: cross_val_score(warns_at_cap(), X, y, cv=2),
        lambda: ExactKernelRidge(alpha=1.0).fit(X, y).predict(X + 1e6, return_std=True),
        lambda: ExactKernelRidge(alpha=1.0).fit(X, y).predict_interval(X, 0.999),
    ],
    ids=["fit", "partial_fit", "pipeline", "cross-validation", "predict", "interval"],
)
def test_warnings_name_the_line_that_called(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    assert {warning.filename for warning in caught} == {__file__}
