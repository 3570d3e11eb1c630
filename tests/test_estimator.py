"""The estimators' public interface: signatures, what a fit leaves behind, and its numbers against
the specification."""

import inspect
import warnings

import numpy as np
import pytest
from helpers import assert_close, assert_close_each, matrix_of
from problems import (
    ALPHA,
    KERNEL_NAMES,
    SEED,
    SKETCH_NAMES,
    X_TEST,
    D,
    H,
    M,
    N,
    T,
    X,
    Y,
    assert_same_answers,
    classes,
    fixed,
    full_makers,
    intercepts,
    kernel_matrix,
    kinds,
    makers,
    names,
    points,
    sketched,
    values,
    y,
)
from sklearn.exceptions import NotFittedError

from sketchridge import ExactKernelRidge, SketchedKernelRidge, exact
from sketchridge.certify import Certificate
from sketchridge.kernels import KERNELS
from sketchridge.sketches import RPCholeskySketch, Sketch

# signatures

SKETCHED_DEFAULTS = {
    "kernel": "auto",
    "bandwidth": "auto",
    "alpha": "loo",
    "sketch": "auto",
    "sketch_size": "auto",
    "sketch_tol": 0.1,
    "solver": "auto",
    "noise": "constant",
    "noise_variance": "auto",
    "fit_intercept": True,
    "backend": "auto",
    "dtype": "auto",
    "random_state": None,
}
EXACT_DEFAULTS = {
    "kernel": "auto",
    "bandwidth": "auto",
    "alpha": "loo",
    "noise": "constant",
    "noise_variance": "auto",
    "fit_intercept": True,
    "backend": "auto",
    "dtype": "auto",
}


@pytest.mark.parametrize(
    ("cls", "expected"),
    [(SketchedKernelRidge, SKETCHED_DEFAULTS), (ExactKernelRidge, EXACT_DEFAULTS)],
    ids=["sketched", "exact"],
)
@pytest.mark.usefixtures("defaults")
def test_constructor_is_that_of_the_design(cls, expected):
    parameters = inspect.signature(cls).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == expected
    assert list(parameters) == list(expected)
    keyword_only = [name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    assert keyword_only == list(expected)[1:]
    assert cls().get_params() == expected


@pytest.mark.parametrize(
    ("method", "signature"),
    [
        ("fit", {"X": ..., "y": ..., "sample_weight": None}),
        ("partial_fit", {"X": ..., "y": ..., "sample_weight": None}),
        ("predict", {"X": ..., "return_std": False, "return_cov": False}),
        ("covariance", {"X": ..., "kind": None}),
        ("sample", {"X": ..., "size": 1, "kind": "gp", "random_state": None}),
        ("gradient", {"X": ..., "return_std": False, "kind": None}),
        (
            "marginal_effects",
            {"X": None, "sample_weight": None, "kind": None, "confidence_level": 0.95},
        ),
        (
            "predict_interval",
            {
                "X": ...,
                "confidence_level": 0.95,
                "include_noise": True,
                "method": "loo",
                "side": "both",
                "sample_weight": None,
            },
        ),
        ("predictive_variance", {"X": ..., "include_noise": True}),
        ("noise_at", {"X": ...}),
    ],
)
@classes
def test_methods_are_those_of_the_design(cls, method, signature):
    parameters = list(inspect.signature(getattr(cls, method)).parameters.values())[1:]
    assert {p.name: ... if p.default is p.empty else p.default for p in parameters} == signature


def test_variances_are_those_of_the_design():
    parameters = inspect.signature(SketchedKernelRidge.variance).parameters
    given = {name: p.default for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    assert given == {"refine": 0, "tol": None, "return_bound": False}
    assert list(parameters)[:3] == ["self", "X", "kind"]


@pytest.mark.parametrize(
    ("cls", "kind", "std_kind"),
    [(SketchedKernelRidge, "v2", "vbar"), (ExactKernelRidge, "v1", "v1")],
)
def test_default_kind_of_variance(cls, kind, std_kind):
    assert inspect.signature(cls.variance).parameters["kind"].default == kind
    model = cls(alpha=ALPHA).fit(X, y)
    assert_close_each(model.variance(X_TEST), model.variance(X_TEST, kind=kind))
    std = model.predict(X_TEST, return_std=True)[1]
    assert_close_each(std**2, model.variance(X_TEST, kind=std_kind))


# what a fit leaves behind


@classes
@intercepts
@pytest.mark.parametrize("targets", [y, Y], ids=["one target", "three targets"])
def test_fitted_attributes(cls, targets, fit_intercept):
    model = cls(fit_intercept=fit_intercept).fit(X, targets)
    assert isinstance(model.lambda_, float)
    assert model.lambda_ > 0
    assert isinstance(model.alpha_, float)
    assert_close(model.alpha_, N * model.lambda_)
    assert isinstance(model.bandwidth_, float)
    if targets.ndim == 1:
        assert isinstance(model.noise_variance_, float)
    else:
        assert model.noise_variance_.shape == (3,)
    assert np.all(np.asarray(model.noise_variance_) > 0)
    E = model.eigenvalues_
    assert E.ndim == 1
    assert len(E) <= N
    assert (E > 0).all()
    assert (np.diff(E) <= 0).all()
    assert isinstance(model.effective_dof_, float)
    assert 0 < model.effective_dof_ < N
    assert isinstance(model.s_lambda_, int)
    assert model.s_lambda_ == (model.lambda_ < E).sum()
    assert isinstance(model.loo_error_, float)
    path = model.path_
    assert path.lam.shape == path.df.shape == path.gcv.shape == path.loo.shape == (100,)
    assert_close_each(path.lam, np.geomspace(1e-10 * E[0], 10 * E[0], 100))
    if not fit_intercept:
        assert_close_each(path.df, np.array([(E / (E + lam)).sum() for lam in path.lam]))
    assert model.n_features_in_ == D


def test_fitted_attributes_of_a_sketch():
    model = SketchedKernelRidge(random_state=SEED).fit(X, y)
    assert isinstance(model.sketch_, Sketch)
    assert isinstance(model.sketch_, RPCholeskySketch)
    assert isinstance(model.sketch_size_, int)
    assert model.sketch_size_ == model.sketch_.size
    assert len(model.eigenvalues_) <= model.sketch_size_
    assert isinstance(model.gap_, float)
    assert isinstance(model.certificate_, Certificate)
    assert model.certificate_ == model.certificate() == model.certificate(method="trace")
    assert model.certificate_.failure_probability == 0
    assert model.dtype_ in ("float32", "float64")
    assert model.backend_ == "numpy"


@pytest.mark.parametrize("dtype", ["auto", "float64"])
def test_an_exact_fit_tells_its_precision_and_its_backend(dtype):
    model = ExactKernelRidge(dtype=dtype)
    with pytest.raises(NotFittedError):
        model.dtype_  # noqa: B018
    assert (model.fit(X, y).dtype_, model.backend_) == ("float64", "numpy")


@makers
def test_degrees_of_freedom_are_those_of_the_eigenvalues(make):
    model = make().fit(X, y)
    E = model.eigenvalues_
    assert_close(model.effective_dof_, (E / (E + ALPHA / N)).sum())


@makers
def test_fit_returns_the_estimator_and_starts_afresh(make):
    model = make()
    assert model.fit(X, y) is model
    assert_same_answers(make().fit(X[:50, :1], Y[:50]).fit(X, y), model)


@pytest.mark.parametrize("n", [2, 3, 17, 300])
def test_default_fit_is_quiet_and_finite(n):
    A = points(n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean, std = SketchedKernelRidge().fit(A, values(A)[:, 0]).predict(X_TEST, return_std=True)
    assert mean.shape == std.shape == (T,)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std >= 0).all()


# the numbers, against the specification


def test_exact_estimator_is_the_specification():
    model = fixed(noise_variance=0.3).fit(X, Y)
    K = kernel_matrix(X, X) / N
    k_x = kernel_matrix(X, X_TEST)
    lam = ALPHA / N
    v1 = exact.v1(K, k_x, lam, 0.3)
    assert_close(model.predict(X_TEST), exact.mean(K, k_x, Y, lam))
    assert_close(model.variance(X_TEST, "v1"), np.column_stack([v1] * 3))
    gp = 1 - (k_x * np.linalg.solve(K + lam * np.eye(N), k_x)).sum(axis=0) / N
    assert_close(model.variance(X_TEST, "gp"), gp)
    assert_close(model.variance(X_TEST, "bias2"), gp - ALPHA / 0.3 * v1)
    assert model.s_lambda_ == exact.s_lambda(K, lam)
    assert_close(model.eigenvalues_[:20], np.linalg.eigvalsh(K)[::-1][:20])


@names
def test_sketched_estimator_is_the_specification(name):
    model = sketched(sketch=name, sketch_size=M, noise_variance=0.3).fit(X, y)
    S = matrix_of(model.sketch_, N)
    assert S.shape == (M, N)
    K = kernel_matrix(X, X) / N
    k_x = kernel_matrix(X, X_TEST)
    lam = ALPHA / N
    assert_close(model.predict(X_TEST), exact.sketched_mean(K, S, k_x, y, lam))
    assert_close(model.variance(X_TEST, "v2"), exact.v2(K, S, k_x, lam, 0.3))
    assert_close(model.variance(X_TEST, "v3"), exact.v3(K, S, k_x, lam, 0.3))


FULL_SKETCHES = {
    "identity": (np.eye(N), H),
    "identity, short bandwidth": (np.eye(N), 0.15),
    "rpcholesky": ("rpcholesky", H),
    "rpcholesky, short bandwidth": ("rpcholesky", 0.15),
    "landmarks": ("landmarks", H),
    "gaussian, short bandwidth": ("gaussian", 0.15),
}


@pytest.mark.parametrize("case", FULL_SKETCHES)
@intercepts
def test_a_full_sketch_is_exact(case, fit_intercept):
    """A dense S multiplies rounding by its condition number, and by √cond(K) in the features:
    hence the short bandwidth."""
    sketch, h = FULL_SKETCHES[case]
    options = {"bandwidth": h, "fit_intercept": fit_intercept}
    size = N if isinstance(sketch, str) else "auto"
    model = sketched(sketch=sketch, sketch_size=size, **options).fit(X, y)
    reference = fixed(**options).fit(X, y)
    v1 = reference.variance(X_TEST, "v1")
    condition = np.linalg.cond(matrix_of(model.sketch_, N))  # 1 for rows of the identity
    assert_close(model.predict(X_TEST), reference.predict(X_TEST), condition=condition)
    assert_close(model.variance(X_TEST, "v2"), v1, condition=condition)
    assert_close(model.variance(X_TEST, "v3"), v1, condition=condition)
    for kind in ("gp", "bias2"):
        expected = reference.variance(X_TEST, kind)
        assert_close(model.variance(X_TEST, kind), expected, scale=1.0, condition=condition)
    for name in ("noise_variance_", "effective_dof_", "loo_error_", "lambda_", "s_lambda_"):
        assert_close(getattr(model, name), getattr(reference, name), condition=condition)


@intercepts
@pytest.mark.parametrize("name", ["exact", *SKETCH_NAMES])
def test_posterior_variance_is_bias_plus_variance(name, fit_intercept):
    """gp = bias² + (nλ/σ²)·V, with V1 for the exact model and V3 for a sketched one."""
    model = fixed() if name == "exact" else sketched(sketch=name, sketch_size=M)
    model.set_params(noise_variance=0.3, fit_intercept=fit_intercept).fit(X, y)
    v = model.variance(X_TEST, "v1" if name == "exact" else "v3")
    gp = model.variance(X_TEST, "gp")
    assert_close(gp, model.variance(X_TEST, "bias2") + ALPHA / 0.3 * v)


@full_makers
def test_intercept_solves_the_joint_system(make):
    """[K + λI  1; 1ᵀ  0] [z; b/n] = [y/n; 0], the stationary point of the penalized sum with a free
    constant."""
    ones = np.ones((N, 1))
    bordered = np.block(
        [[kernel_matrix(X, X) + ALPHA * np.eye(N), ones], [ones.T, np.zeros((1, 1))]]
    )
    solution = np.linalg.solve(bordered, np.vstack([Y, np.zeros((1, 3))]))
    expected = kernel_matrix(X_TEST, X) @ solution[:-1] + solution[-1]
    assert_close(make(fit_intercept=True).fit(X, Y).predict(X_TEST), expected, scale=1.0)


@intercepts
def test_leave_one_out_error_is_exact(fit_intercept):
    errors = []
    for i in range(N):
        rest = np.arange(N) != i
        model = fixed(fit_intercept=fit_intercept).fit(X[rest], y[rest])
        errors.append(y[i] - model.predict(X[i : i + 1])[0])
    model = fixed(fit_intercept=fit_intercept).fit(X, y)
    assert_close(model.loo_error_, np.mean(np.square(errors)))


def test_leave_one_out_error_of_a_sketch_is_exact_for_that_sketch():
    """A landmark sketch is ridge regression on k(x, X_p) with penalty α cᵀk(X_p, X_p)c; each row is
    left out of the fit alone."""
    model = sketched(sketch="landmarks", sketch_size=M).fit(X, y)
    landmarks = X[model.sketch_.indices]
    F = kernel_matrix(X, landmarks)
    G = kernel_matrix(landmarks, landmarks)
    errors = []
    for i in range(N):
        rest = np.arange(N) != i
        c = np.linalg.solve(F[rest].T @ F[rest] + ALPHA * G, F[rest].T @ y[rest])
        errors.append(y[i] - F[i] @ c)
    assert_close(model.loo_error_, np.mean(np.square(errors)))


@makers
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_every_kernel_by_name_and_by_object(make, kernel):
    A = (X + 1) / 2  # on the unit square, where every kernel is defined
    B = (X_TEST + 1) / 2
    by_name = make(kernel=kernel, bandwidth="median").fit(A, y)
    by_object = make(kernel=KERNELS[kernel](), bandwidth="median").fit(A, y)
    for kind in kinds(by_name):
        v = by_name.variance(B, kind)
        assert (v >= 0).all()
        assert np.isfinite(v).all()
        np.testing.assert_array_equal(v, by_object.variance(B, kind))


@makers
@intercepts
def test_a_precomputed_kernel_is_the_kernel_itself(make, fit_intercept):
    options = {"fit_intercept": fit_intercept, "noise_variance": 0.3}
    given = make(kernel="precomputed", bandwidth="median", **options)
    given.fit(kernel_matrix(X, X), y)
    model = make(**options).fit(X, y)
    k_x = kernel_matrix(X_TEST, X)
    assert_close(given.predict(k_x), model.predict(X_TEST))
    for kind in ("v1",) if make is fixed else ("v2", "v3"):
        assert_close(given.variance(k_x, kind), model.variance(X_TEST, kind))
    assert_close(given.loo_error_, model.loo_error_)
    for kind in ("gp", "bias2"):
        with pytest.raises(ValueError, match="not in a precomputed kernel matrix"):
            given.variance(k_x, kind)
    with pytest.raises(ValueError, match="cannot append to a precomputed kernel matrix"):
        given.partial_fit(kernel_matrix(X, X), y)
