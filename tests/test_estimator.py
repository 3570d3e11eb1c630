"""The estimators' public interface: what is fitted, predicted, kept, chosen by the data and promised."""

import inspect
import warnings

import numpy as np
import pytest
from helpers import assert_close, assert_close_each, matrix_of, tol
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import norm

from sketchridge import ExactKernelRidge, SketchedKernelRidge, exact, tuning
from sketchridge.certify import Certificate
from sketchridge.kernels import KERNELS, Gaussian
from sketchridge.sketches import SKETCHES, RPCholeskySketch, Sketch

SEED = 0
N, D, T, M = 80, 2, 30, 15
H = 0.6
ALPHA = 0.8  # λ = 0.01
NAMES = sorted(SKETCHES)


def points(n: int, d: int = D, seed: int = SEED) -> np.ndarray:
    return np.random.default_rng([1, seed]).uniform(-1, 1, (n, d))


def values(X: np.ndarray, q: int = 1, seed: int = SEED) -> np.ndarray:
    """Smooth functions with noise of standard deviation 0.1: (n, q)."""
    signal = np.sin(3 * X[:, :1] * np.arange(1, q + 1)) + X[:, -1:] ** 2
    return signal + 0.1 * np.random.default_rng([2, seed]).standard_normal(signal.shape)


X, X_TEST = points(N), points(T, seed=1)
Y = values(X, q=3)
y = Y[:, 0]


def sketched(**parameters) -> SketchedKernelRidge:
    """A sketched estimator in which nothing is left to the data or to chance but what a test asks for."""
    return SketchedKernelRidge(**({"bandwidth": H, "alpha": ALPHA, "dtype": "float64", "random_state": SEED} | parameters))


def fixed(**parameters) -> ExactKernelRidge:
    return ExactKernelRidge(**({"bandwidth": H, "alpha": ALPHA} | parameters))


def kernel_matrix(A: np.ndarray, B: np.ndarray, h: float = H) -> np.ndarray:
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * h**2))


makers = pytest.mark.parametrize("make", [fixed, sketched])
intercepts = pytest.mark.parametrize("fit_intercept", [False, True])
names = pytest.mark.parametrize("name", NAMES)


def kinds(model) -> list[str]:
    return ["v1", "gp", "bias2"] if isinstance(model, ExactKernelRidge) else ["v2", "v3", "gp", "bias2"]


def assert_same_answers(one, other, condition: float = 1.0):
    """Mean and all variances agree to rounding."""
    assert_close(one.predict(X_TEST), other.predict(X_TEST), condition=condition)
    for kind in kinds(one):
        assert_close(one.variance(X_TEST, kind), other.variance(X_TEST, kind), condition=condition)


# signatures

SKETCHED_DEFAULTS = {
    "kernel": "gaussian",
    "bandwidth": "median",
    "alpha": "gcv",
    "sketch": "auto",
    "sketch_size": "auto",
    "sketch_tol": 0.1,
    "solver": "sketch",
    "noise_variance": "auto",
    "fit_intercept": False,
    "backend": "auto",
    "dtype": "auto",
    "random_state": None,
}
EXACT_DEFAULTS = {
    "kernel": "gaussian",
    "bandwidth": "median",
    "alpha": "gcv",
    "noise_variance": "auto",
    "fit_intercept": False,
}


@pytest.mark.parametrize(
    ("cls", "defaults"), [(SketchedKernelRidge, SKETCHED_DEFAULTS), (ExactKernelRidge, EXACT_DEFAULTS)], ids=["sketched", "exact"]
)
def test_constructor_is_that_of_the_design(cls, defaults):
    parameters = inspect.signature(cls).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == defaults
    assert list(parameters) == list(defaults)
    keyword_only = [name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    assert keyword_only == list(defaults)[1:]
    assert cls().get_params() == defaults


@pytest.mark.parametrize(
    ("method", "signature"),
    [
        ("fit", {"X": ..., "y": ...}),
        ("predict", {"X": ..., "return_std": False}),
        ("predict_interval", {"X": ..., "confidence_level": 0.95, "include_noise": True}),
    ],
)
@pytest.mark.parametrize("cls", [SketchedKernelRidge, ExactKernelRidge])
def test_methods_are_those_of_the_design(cls, method, signature):
    parameters = list(inspect.signature(getattr(cls, method)).parameters.values())[1:]
    assert {p.name: ... if p.default is p.empty else p.default for p in parameters} == signature


@pytest.mark.parametrize(("cls", "kind"), [(SketchedKernelRidge, "v2"), (ExactKernelRidge, "v1")])
def test_default_kind_of_variance(cls, kind):
    assert inspect.signature(cls.variance).parameters["kind"].default == kind
    model = cls(alpha=ALPHA).fit(X, y)
    assert_close_each(model.variance(X_TEST), model.variance(X_TEST, kind))
    assert_close_each(model.predict(X_TEST, return_std=True)[1] ** 2, model.variance(X_TEST, kind=kind))


# what a fit leaves behind


@pytest.mark.parametrize("cls", [SketchedKernelRidge, ExactKernelRidge])
@pytest.mark.parametrize("targets", [y, Y], ids=["one target", "three targets"])
def test_fitted_attributes(cls, targets):
    model = cls().fit(X, targets)
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
    assert_close_each(path.df, [(E / (E + lam)).sum() for lam in path.lam])
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


@makers
def test_degrees_of_freedom_are_those_of_the_eigenvalues(make):
    model = make().fit(X, y)
    assert_close(model.effective_dof_, (model.eigenvalues_ / (model.eigenvalues_ + ALPHA / N)).sum())


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
    K, k_x = kernel_matrix(X, X) / N, kernel_matrix(X, X_TEST)
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
    K, k_x, lam = kernel_matrix(X, X) / N, kernel_matrix(X, X_TEST), ALPHA / N
    assert_close(model.predict(X_TEST), exact.sketched_mean(K, S, k_x, y, lam))
    assert_close(model.variance(X_TEST, "v2"), exact.v2(K, S, k_x, lam, 0.3))
    assert_close(model.variance(X_TEST, "v3"), exact.v3(K, S, k_x, lam, 0.3))


@pytest.mark.parametrize(
    ("sketch", "h"),
    [(np.eye(N), H), (np.eye(N), 0.15), ("rpcholesky", H), ("rpcholesky", 0.15), ("landmarks", H), ("gaussian", 0.15)],
    ids=["identity", "identity-short", "rpcholesky", "rpcholesky-short", "landmarks", "gaussian-short"],
)
@intercepts
def test_a_full_sketch_is_exact(sketch, h, fit_intercept):
    """A dense S multiplies rounding by its condition number, and by √cond(K) in the features: hence the short bandwidth."""
    options = {"bandwidth": h, "fit_intercept": fit_intercept}
    model = sketched(sketch=sketch, sketch_size=N if isinstance(sketch, str) else "auto", **options).fit(X, y)
    reference = fixed(**options).fit(X, y)
    v1 = reference.variance(X_TEST, "v1")
    condition = np.linalg.cond(matrix_of(model.sketch_, N))  # 1 for rows of the identity
    assert_close(model.predict(X_TEST), reference.predict(X_TEST), condition=condition)
    assert_close(model.variance(X_TEST, "v2"), v1, condition=condition)
    assert_close(model.variance(X_TEST, "v3"), v1, condition=condition)
    for kind in ("gp", "bias2"):
        assert_close(model.variance(X_TEST, kind), reference.variance(X_TEST, kind), scale=1.0, condition=condition)
    for name in ("noise_variance_", "effective_dof_", "loo_error_", "lambda_", "s_lambda_"):
        assert_close(getattr(model, name), getattr(reference, name), condition=condition)


@intercepts
@pytest.mark.parametrize("name", ["exact", *NAMES])
def test_posterior_variance_is_bias_plus_variance(name, fit_intercept):
    """gp = bias² + (nλ/σ²)·V, with V1 for the exact model and V3 for a sketched one."""
    model = fixed() if name == "exact" else sketched(sketch=name, sketch_size=M)
    model.set_params(noise_variance=0.3, fit_intercept=fit_intercept).fit(X, y)
    v = model.variance(X_TEST, "v1" if name == "exact" else "v3")
    assert_close(model.variance(X_TEST, "gp"), model.variance(X_TEST, "bias2") + ALPHA / 0.3 * v)


@pytest.mark.parametrize("make", [fixed, lambda **p: sketched(sketch_size=N, **p)], ids=["exact", "sketched"])
def test_intercept_solves_the_joint_system(make):
    """[K + λI  1; 1ᵀ  0] [z; b/n] = [y/n; 0], the stationary point of the penalised sum with a free constant."""
    bordered = np.block([[kernel_matrix(X, X) + ALPHA * np.eye(N), np.ones((N, 1))], [np.ones((1, N)), np.zeros((1, 1))]])
    solution = np.linalg.solve(bordered, np.vstack([Y, np.zeros((1, 3))]))
    assert_close(
        make(fit_intercept=True).fit(X, Y).predict(X_TEST), kernel_matrix(X_TEST, X) @ solution[:-1] + solution[-1], scale=1.0
    )


@intercepts
def test_leave_one_out_error_is_exact(fit_intercept):
    errors = []
    for i in range(N):
        rest = np.arange(N) != i
        errors.append(y[i] - fixed(fit_intercept=fit_intercept).fit(X[rest], y[rest]).predict(X[i : i + 1])[0])
    assert_close(fixed(fit_intercept=fit_intercept).fit(X, y).loo_error_, np.mean(np.square(errors)))


def test_leave_one_out_error_of_a_sketch_is_exact_for_that_sketch():
    """A landmark sketch is ridge regression on k(x, X_p) with penalty α cᵀk(X_p, X_p)c; each row is left out of the fit alone."""
    model = sketched(sketch="landmarks", sketch_size=M).fit(X, y)
    landmarks = X[model.sketch_.indices]
    F, G = kernel_matrix(X, landmarks), kernel_matrix(landmarks, landmarks)
    errors = []
    for i in range(N):
        rest = np.arange(N) != i
        c = np.linalg.solve(F[rest].T @ F[rest] + ALPHA * G, F[rest].T @ y[rest])
        errors.append(y[i] - F[i] @ c)
    assert_close(model.loo_error_, np.mean(np.square(errors)))


# alpha and bandwidth


@makers
@pytest.mark.parametrize("criterion", ["gcv", "loo"])
@intercepts
def test_alpha_minimises_its_criterion(make, criterion, fit_intercept):
    model = make(alpha=criterion, fit_intercept=fit_intercept).fit(X, y)  # at n = 80 the sketch grows to the numerical rank
    path = model.path_
    assert_close(model.lambda_, path.lam[np.argmin(getattr(path, criterion))])
    at = np.argmin(np.abs(path.lam - model.lambda_))
    assert_close(model.loo_error_, path.loo[at])
    assert_close(model.effective_dof_, path.df[at])


@makers
@pytest.mark.parametrize("alpha", [1e-3, 1, np.float32(0.5), np.int64(7)])
def test_a_number_as_alpha_is_kept(make, alpha):
    model = make(alpha=alpha).fit(X, y)
    assert_close(model.alpha_, float(alpha))
    assert_close(model.lambda_, float(alpha) / N)


def smoother_complement(mu: np.ndarray, U: np.ndarray, alpha: float, fit_intercept: bool) -> np.ndarray:
    """R with I − Ĥ = αR: R = M − M11ᵀM/(1ᵀM1), or M without intercept, with M = (G + αI)⁻¹ and G = U diag(mu) Uᵀ."""
    inverse = U / (np.maximum(mu, 0) + alpha) @ U.T
    mass = inverse.sum(axis=0)
    return inverse - np.outer(mass, mass) / mass.sum() if fit_intercept else inverse


def gcv(R: np.ndarray, B: np.ndarray) -> float:
    """n‖RB‖²/(tr R)², in which α cancels."""
    return len(R) * ((R @ B) ** 2).sum() / np.trace(R) ** 2


def leave_one_out(R: np.ndarray, B: np.ndarray) -> float:
    """The mean of ((RB)_i/R_ii)², in which α cancels."""
    return np.mean(((R @ B) / np.diagonal(R).reshape(-1, *[1] * (B.ndim - 1))) ** 2)


full_makers = pytest.mark.parametrize("make", [fixed, lambda **p: sketched(sketch_size=N, **p)], ids=["exact", "full sketch"])
bandwidths = pytest.mark.parametrize("h", [0.05, 0.15, H])


@full_makers
@intercepts
@bandwidths
def test_gcv_and_leave_one_out_scores_are_those_of_the_definition(make, h, fit_intercept):
    path = make(bandwidth=h, fit_intercept=fit_intercept).fit(X, Y).path_
    mu, U = np.linalg.eigh(kernel_matrix(X, X, h))
    for i in (80, 90, 99):
        R = smoother_complement(mu, U, N * path.lam[i], fit_intercept)
        assert_close(path.gcv[i], gcv(R, Y))
        assert_close(path.loo[i], leave_one_out(R, Y))


@full_makers
@intercepts
@bandwidths
@pytest.mark.parametrize(("criterion", "score"), [("gcv", gcv), ("loo", leave_one_out)], ids=["gcv", "loo"])
@pytest.mark.parametrize("seed", range(2))
def test_the_chosen_penalty_is_as_good_as_any(make, seed, criterion, score, h, fit_intercept):
    """The criterion, computed without cancellation, is at the chosen λ within a few per cent of its minimum over the grid."""
    b = np.random.default_rng([5, seed]).standard_normal(N) + np.sin(3 * X[:, 0])
    model = make(bandwidth=h, alpha=criterion, fit_intercept=fit_intercept).fit(X, b)
    mu, U = np.linalg.eigh(kernel_matrix(X, X, h))
    scores = [score(smoother_complement(mu, U, N * lam, fit_intercept), b) for lam in [model.lambda_, *model.path_.lam[40:]]]
    assert scores[0] <= min(scores) * (1 + tol("per cent"))


@full_makers
@intercepts
@bandwidths
def test_degrees_of_freedom_stay_below_the_number_of_rows(make, h, fit_intercept):
    model = make(bandwidth=h, fit_intercept=fit_intercept).fit(X, y)
    assert (model.path_.df < N).all()
    assert (np.diff(model.path_.df) <= 0).all()


@makers
def test_one_bandwidth_a_feature_is_a_rescaling(make):
    h = np.array([0.4, 1.5])
    model = make(bandwidth=h).fit(X, y)
    np.testing.assert_array_equal(model.bandwidth_, h)
    rescaled = make(bandwidth=1.0).fit(X / h, y)
    assert_close(model.predict(X_TEST), rescaled.predict(X_TEST / h))
    assert_close(model.variance(X_TEST, "gp"), rescaled.variance(X_TEST / h, "gp"))


@makers
@pytest.mark.parametrize("bandwidth", [[0.7, 0.7], (0.7, 0.7), np.array([0.7, 0.7])], ids=["list", "tuple", "array"])
def test_equal_bandwidths_are_one(make, bandwidth):
    assert_same_answers(make(bandwidth=bandwidth).fit(X, y), make(bandwidth=0.7).fit(X, y))


@makers
@pytest.mark.parametrize(("kernel", "metric"), [("gaussian", "euclidean"), ("matern52", "euclidean"), ("laplacian", "cityblock")])
def test_median_bandwidth_is_the_median_distance(make, kernel, metric):
    repeated = np.vstack([X, X[:40]])  # distances of 0 do not count
    distances = pdist(repeated, metric)
    model = make(kernel=kernel, bandwidth="median").fit(repeated, np.append(y, y[:40]))
    assert_close(model.bandwidth_, np.median(distances[distances > 0]))


@makers
@intercepts
def test_gcv_bandwidth_is_no_worse_than_the_median(make, fit_intercept):
    wiggly = np.sin(9 * X[:, 0])
    chosen = make(bandwidth="gcv", alpha="gcv", fit_intercept=fit_intercept).fit(X, wiggly)
    median = make(bandwidth="median", alpha="gcv", fit_intercept=fit_intercept).fit(X, wiggly)
    assert isinstance(chosen.bandwidth_, float)
    assert chosen.bandwidth_ != median.bandwidth_
    assert chosen.path_.gcv.min() < median.path_.gcv.min()


@makers
@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_kernels_without_a_bandwidth_have_none(make, kernel):
    assert make(kernel=kernel, bandwidth="median").fit(X, y).bandwidth_ is None


@makers
def test_a_kernel_object_keeps_its_own_bandwidth(make):
    model = make(kernel=Gaussian(bandwidth=0.33), bandwidth="median").fit(X, y)
    assert model.bandwidth_ == 0.33
    assert_same_answers(model, make(bandwidth=0.33).fit(X, y))


@makers
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_every_kernel_by_name_and_by_object(make, kernel):
    A, B = (X + 1) / 2, (X_TEST + 1) / 2  # on the unit square, where every kernel is defined
    by_name = make(kernel=kernel, bandwidth="median").fit(A, y)
    by_object = make(kernel=KERNELS[kernel](), bandwidth="median").fit(A, y)
    for kind in kinds(by_name):
        v = by_name.variance(B, kind)
        assert (v >= 0).all()
        assert np.isfinite(v).all()
        np.testing.assert_array_equal(v, by_object.variance(B, kind))


# sketches


@names
def test_a_named_sketch_has_the_size_asked_for(name):
    model = sketched(sketch=name, sketch_size=M).fit(X, y)
    assert model.sketch_size_ == model.sketch_.size == M
    assert isinstance(model.sketch_, SKETCHES[name])
    assert 0 < len(model.eigenvalues_) <= M


@names
@intercepts
def test_a_fitted_sketch_can_be_used_again(name, fit_intercept):
    model = sketched(sketch=name, sketch_size=M, fit_intercept=fit_intercept).fit(X, y)
    again = sketched(sketch=model.sketch_, fit_intercept=fit_intercept, random_state=SEED + 1).fit(X, y)
    assert again.sketch_size_ == M
    assert_same_answers(again, model)
    by_array = sketched(sketch=matrix_of(model.sketch_, N), fit_intercept=fit_intercept).fit(X, y)
    assert_same_answers(by_array, model)


@pytest.mark.parametrize("m", [1, 7, N, 2 * N + 3])
def test_an_array_may_have_any_number_of_rows(m):
    S = np.random.default_rng(SEED).standard_normal((m, N))
    model = sketched(sketch=S).fit(X, y)
    assert model.sketch_size_ == m
    if m >= N:
        assert_close(model.variance(X_TEST), fixed().fit(X, y).variance(X_TEST))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_only_the_row_space_of_a_sketch_matters(seed):
    """S → QS changes nothing, with Q of condition number up to 1e3."""
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((M, N))
    left, right = (np.linalg.qr(rng.standard_normal((M, M)))[0] for _ in range(2))
    Q = left * np.geomspace(1, 1e3, M) @ right
    assert_same_answers(sketched(sketch=Q @ S).fit(X, y), sketched(sketch=S).fit(X, y), condition=1e3)


@names
def test_a_sketch_larger_than_the_data_is_capped(name):
    with pytest.warns(UserWarning, match=r"sketch_size=200 is more than the 80 training rows; it is capped at 80"):
        model = sketched(sketch=name, sketch_size=200).fit(X, y)
    assert 0 < model.sketch_size_ <= N
    if name in ("landmarks", "rpcholesky"):
        assert_close(model.variance(X_TEST), fixed().fit(X, y).variance(X_TEST))
    else:
        assert model.sketch_size_ == N


@pytest.mark.parametrize("alpha", ["gcv", "loo"])
def test_a_sketch_too_small_for_the_chosen_alpha_warns(alpha):
    with pytest.warns(UserWarning, match=r"too small for a sketch of 4 rows.*Give a larger sketch_size or sketch_size='auto'"):
        sketched(sketch_size=4, alpha=alpha).fit(X, np.sin(2 * X[:, 0]) + X[:, 1])


@pytest.mark.parametrize("name", ["rpcholesky", "landmarks", "gaussian"])
@pytest.mark.parametrize("alpha", ["gcv", "loo"])
@pytest.mark.parametrize("h", [0.01, 0.05, 0.15, H])
def test_a_full_sketch_is_never_too_small(name, alpha, h):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sketched(sketch=name, sketch_size=N, bandwidth=h, alpha=alpha).fit(X, y)


def test_a_sketch_too_small_for_a_given_alpha_is_the_users_choice():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sketched(sketch_size=4, alpha=1e-6).fit(X, y)


@pytest.mark.parametrize("name", ["auto", *NAMES])
def test_automatic_growth_that_ends_at_the_cap_warns_with_a_remedy(name, monkeypatch):
    monkeypatch.setattr(tuning, "_SIZES", [4, 8, 16])  # a cap that a small problem reaches
    with pytest.warns(UserWarning, match=r"largest automatic size, 16, with a gap.*Give a larger sketch_size"):
        model = sketched(sketch=name, alpha=1e-3, bandwidth=0.1).fit(X, y)
    assert model.sketch_size_ == 16
    assert model.gap_ > 1.1


def test_dependent_rows_of_a_sketch_do_not_make_it_complete():
    """A sketch with the same row twice is of less than its size in rank, and yet far from the whole kernel matrix."""
    S = np.random.default_rng(SEED).standard_normal((4, N))
    with pytest.warns(UserWarning, match="too small for a sketch of 8 rows"):
        sketched(sketch=np.vstack([S, S]), alpha="gcv").fit(X, np.sin(2 * X[:, 0]) + X[:, 1])


@pytest.mark.parametrize("name", ["auto", *NAMES])
@pytest.mark.parametrize("sketch_tol", [0.3, 0.02])
def test_automatic_growth_stops_at_the_tolerance(name, sketch_tol):
    A = points(400, d=3)
    model = SketchedKernelRidge(sketch=name, sketch_tol=sketch_tol, random_state=SEED).fit(A, values(A)[:, 0])
    assert model.gap_ <= 1 + sketch_tol
    assert model.sketch_size_ in (64, 128, 256, 384, 400)


def test_a_smaller_tolerance_never_gives_a_smaller_sketch():
    A = points(600, d=3)
    b = values(A)[:, 0]
    sizes = [
        SketchedKernelRidge(alpha=0.6, bandwidth=H, sketch_tol=t, random_state=SEED).fit(A, b).sketch_size_ for t in (1, 0.1, 0.001)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


@names
@intercepts
def test_gap_is_the_quantile_of_v2_over_v3_on_the_training_rows(name, fit_intercept):
    """With up to 256 rows the probe is all of them."""
    model = sketched(sketch=name, sketch_size=M, fit_intercept=fit_intercept).fit(X, y)
    ratio = model.variance(X, "v2") / model.variance(X, "v3")
    assert_close(model.gap_, np.quantile(ratio, 0.95, method="higher"))


@pytest.mark.parametrize("name", ["auto", *NAMES])
def test_a_seed_reproduces_the_fit(name):
    one, again, generator, different = (
        sketched(sketch=name, sketch_size=M, random_state=state).fit(X, y) for state in (7, 7, np.random.RandomState(7), 8)
    )
    for other in (again, generator, again.fit(X, y)):
        np.testing.assert_array_equal(matrix_of(one.sketch_, N), matrix_of(other.sketch_, N))
        np.testing.assert_array_equal(one.predict(X_TEST, return_std=True), other.predict(X_TEST, return_std=True))
        assert one.gap_ == other.gap_
    assert not np.array_equal(matrix_of(one.sketch_, N), matrix_of(different.sketch_, N))


# several targets, noise and scale


@makers
@intercepts
def test_several_targets_are_one_each(make, fit_intercept):
    model = make(fit_intercept=fit_intercept).fit(X, Y)
    mean, std = model.predict(X_TEST, return_std=True)
    low, high = model.predict_interval(X_TEST)
    assert mean.shape == std.shape == low.shape == high.shape == (T, 3)
    assert model.noise_variance_.shape == (3,)
    for j in range(3):
        single = make(fit_intercept=fit_intercept).fit(X, Y[:, j])
        single_mean, single_std = single.predict(X_TEST, return_std=True)
        assert_close(mean[:, j], single_mean)
        assert_close(std[:, j], single_std)
        assert_close(model.noise_variance_[j], single.noise_variance_)
        assert_close([low[:, j], high[:, j]], single.predict_interval(X_TEST))
        assert_close(model.variance(X_TEST, "gp"), single.variance(X_TEST, "gp"))


@makers
@pytest.mark.parametrize("criterion", ["gcv", "loo"])
def test_several_targets_share_one_penalty(make, criterion):
    size = {"sketch_size": N} if make is sketched else {}
    model = make(alpha=criterion, **size).fit(X, Y)
    assert isinstance(model.lambda_, float)
    assert_close(model.path_.gcv, sum(make(alpha=ALPHA, **size).fit(X, column).path_.gcv for column in Y.T))


@makers
@intercepts
def test_variance_is_proportional_to_the_noise(make, fit_intercept):
    one, nine = (make(noise_variance=s, fit_intercept=fit_intercept).fit(X, y) for s in (0.2, 9 * 0.2))
    assert nine.noise_variance_ == 9 * 0.2
    for kind in kinds(one):
        factor = 1 if kind in ("gp", "bias2") else 9
        assert_close_each(nine.variance(X_TEST, kind), factor * one.variance(X_TEST, kind))
    assert_close_each(nine.predict(X_TEST, return_std=True)[1], 3 * one.predict(X_TEST, return_std=True)[1])


@makers
def test_one_noise_variance_for_each_target(make):
    model = make(noise_variance=[0.1, 0.2, 0.4]).fit(X, Y)
    np.testing.assert_array_equal(model.noise_variance_, [0.1, 0.2, 0.4])
    std = model.predict(X_TEST, return_std=True)[1]
    assert_close(std[:, 1], np.sqrt(2) * std[:, 0])
    np.testing.assert_array_equal(make(noise_variance=0.1).fit(X, Y).noise_variance_, [0.1] * 3)


@makers
@intercepts
@pytest.mark.parametrize("alpha", [ALPHA, "gcv", "loo"])
def test_scaling_y_scales_mean_and_std(make, fit_intercept, alpha):
    one, scaled = (make(alpha=alpha, fit_intercept=fit_intercept).fit(X, c * y) for c in (1, 1024))
    assert_close(scaled.predict(X_TEST), 1024 * one.predict(X_TEST))
    assert_close_each(scaled.predict(X_TEST, return_std=True)[1], 1024 * one.predict(X_TEST, return_std=True)[1])


@makers
@pytest.mark.parametrize("alpha", [ALPHA, "gcv", "loo"])
@pytest.mark.parametrize("c", [1.0, -1e3])
def test_an_intercept_follows_a_shift_of_y(make, alpha, c):
    one, shifted = (make(alpha=alpha, fit_intercept=True).fit(X, y + s) for s in (0, c))
    assert_close(shifted.predict(X_TEST), one.predict(X_TEST) + c)
    for kind in kinds(one):
        assert_close(shifted.variance(X_TEST, kind), one.variance(X_TEST, kind))


@pytest.mark.parametrize("c", [1.0, -1e3])
@names
def test_an_intercept_follows_a_shift_of_y_under_every_sketch(name, c):
    one, shifted = (sketched(sketch=name, sketch_size=M, fit_intercept=True).fit(X, y + s) for s in (0, c))
    assert_close(shifted.predict(X_TEST), one.predict(X_TEST) + c)
    for kind in kinds(one):
        assert_close(shifted.variance(X_TEST, kind), one.variance(X_TEST, kind))


@makers
def test_noise_variance_is_estimated(make):
    """σ̂² has a standard deviation of about 0.045σ² = σ²√(2/n), and next to no bias: off by a quarter with probability 1e-7."""
    A = points(1000)
    model = make(alpha=0.01).fit(A, values(A)[:, 0])
    assert abs(model.noise_variance_ / 0.01 - 1) < 0.25


# intervals


@makers
def test_intervals_are_normal_around_the_mean(make):
    model = make().fit(X, y)
    mean, std = model.predict(X_TEST, return_std=True)
    for level in (0.5, 0.95, 0.999):
        for include_noise in (True, False):
            low, high = model.predict_interval(X_TEST, confidence_level=level, include_noise=include_noise)
            width = np.sqrt(std**2 + model.noise_variance_) if include_noise else std
            assert_close((low + high) / 2, mean)
            assert_close((high - low) / 2, norm.isf((1 - level) / 2) * width)
    default = model.predict_interval(X_TEST)
    np.testing.assert_array_equal(default, model.predict_interval(X_TEST, 0.95, True))


@pytest.mark.parametrize("make", [fixed, lambda **p: sketched(sketch_size=N, **p)], ids=["exact", "full sketch"])
@pytest.mark.parametrize("include_noise", [False, True])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_coverage_without_bias(make, level, include_noise):
    """Of pure noise the mean has no bias, so intervals cover 0, or a new observation, with their nominal probability exactly.

    2,000 targets are 2,000 independent experiments: five binomial standard deviations are exceeded with probability below 1e-5.
    """
    q = 2000
    noise = np.random.default_rng([3, SEED]).standard_normal((N + 1, q))
    model = make(noise_variance=1.0).fit(X, noise[:N])
    low, high = model.predict_interval(X_TEST[:1], level, include_noise)
    truth = noise[N] if include_noise else 0.0
    covered = ((low < truth) & (truth < high)).sum()
    assert abs(covered - q * level) <= 5 * np.sqrt(q * level * (1 - level))


@pytest.mark.parametrize("cls", [ExactKernelRidge, SketchedKernelRidge])
def test_coverage_of_new_observations_by_default(cls):
    """The binomial error and that of σ̂ add up to a standard deviation of 0.006: 0.03 is exceeded with probability 1e-6."""
    A, B = points(1000), points(5000, seed=2)
    low, high = cls().fit(A, values(A)[:, 0]).predict_interval(B)
    covered = np.mean((low < values(B, seed=2)[:, 0]) & (values(B, seed=2)[:, 0] < high))
    assert abs(covered - 0.95) < 0.03


# appending rows


def split_fit(model, A, b, cuts):
    """Fit on the first rows, append the others."""
    model.fit(A[: cuts[0]], b[: cuts[0]])
    for start, stop in zip(cuts, [*cuts[1:], len(A)], strict=True):
        if start < stop:
            assert model.partial_fit(A[start:stop], b[start:stop]) is model
    return model


@names
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_appending_rows_equals_fitting_them_all(name, data):
    """Any split, one target or three, with and without intercept, under the sketch as it ended."""
    cuts = sorted(data.draw(st.lists(st.integers(M, N), min_size=1, max_size=4)))
    b = data.draw(st.sampled_from([y, Y]))
    options = {"fit_intercept": data.draw(st.booleans()), "bandwidth": data.draw(st.sampled_from([H, [0.5, 0.9]]))}
    model = split_fit(sketched(sketch=name, sketch_size=M, **options), X, b, cuts)
    whole = sketched(sketch=model.sketch_, **options).fit(X, b)
    assert_same_answers(model, whole)
    assert_close(model.alpha_, ALPHA)
    for attribute in ("lambda_", "noise_variance_", "effective_dof_", "loo_error_", "gap_", "eigenvalues_", "s_lambda_"):
        assert_close(getattr(model, attribute), getattr(whole, attribute))
    assert_close(model.certificate_.norm, whole.certificate_.norm, scale=1.0)


@pytest.mark.parametrize("name", ["gaussian", "rademacher", "sparse", "srht", "fourier"])
def test_appending_rows_equals_a_fit_with_the_same_seed(name):
    """Entries of these sketches are functions of (seed, i, j): they are the same whoever asks, and when."""
    model = split_fit(sketched(sketch=name, sketch_size=M), X, y, [20, 33, 34])
    assert_same_answers(model, sketched(sketch=name, sketch_size=M).fit(X, y))


def test_appending_to_an_array_sketch_adds_zero_columns():
    S = np.random.default_rng(SEED).standard_normal((M, 50))
    model = split_fit(sketched(sketch=S), X, y, [50])
    assert_same_answers(model, sketched(sketch=np.hstack([S, np.zeros((M, N - 50))])).fit(X, y))


@pytest.mark.filterwarnings("ignore:.*too small for a sketch")
@pytest.mark.parametrize("alpha", ["gcv", "loo"])
@intercepts
def test_a_penalty_left_to_the_data_is_chosen_anew(alpha, fit_intercept):
    options = {"alpha": alpha, "sketch_size": 40, "fit_intercept": fit_intercept}
    model = split_fit(sketched(**options), X, y, [60])
    whole = sketched(**(options | {"sketch": model.sketch_, "sketch_size": "auto"})).fit(X, y)
    assert_close(model.lambda_, whole.lambda_)
    assert_same_answers(model, whole)


@pytest.mark.parametrize("name", ["auto", *NAMES])
def test_an_automatic_sketch_may_grow_but_keeps_its_rows(name):
    A = points(300)
    b = values(A)[:, 0]
    options = {"alpha": 2.0, "bandwidth": 0.2}
    model = sketched(sketch=name, **options).fit(A[:60], b[:60])
    first = matrix_of(model.sketch_, 60)
    model.partial_fit(A[60:], b[60:])
    assert model.sketch_size_ > len(first)
    np.testing.assert_array_equal(matrix_of(model.sketch_, 300)[: len(first), :60], first)
    if name in ("auto", "landmarks", "rpcholesky"):
        assert not matrix_of(model.sketch_, 300)[: len(first), 60:].any()
    condition = np.linalg.cond(matrix_of(model.sketch_, 300)) if name == "fourier" else 1.0  # near frequencies, near rows
    assert_same_answers(model, sketched(sketch=model.sketch_, **options).fit(A, b), condition=condition)


@pytest.mark.parametrize("bandwidth", ["median", "gcv"])
def test_the_bandwidth_is_kept(bandwidth):
    model = sketched(bandwidth=bandwidth).fit(X[:40], y[:40])
    chosen = model.bandwidth_
    model.partial_fit(3 * X[40:], y[40:])
    assert model.bandwidth_ == chosen


def test_partial_fit_may_come_first():
    assert_same_answers(sketched().partial_fit(X, y), sketched().fit(X, y))


def test_a_single_row_can_be_appended():
    model = split_fit(sketched(sketch_size=M), X, y, list(range(N - 3, N)))
    assert_same_answers(model, sketched(sketch=model.sketch_).fit(X, y))


# precision


@pytest.mark.parametrize("name", ["gaussian", "landmarks", "rpcholesky"])
def test_single_precision_is_close_to_double(name):
    single, double = (sketched(sketch=name, sketch_size=M, dtype=dtype).fit(X, y) for dtype in ("float32", "float64"))
    assert (single.dtype_, double.dtype_) == ("float32", "float64")
    assert single.predict(X_TEST).dtype == np.float64
    assert_close(single.predict(X_TEST), double.predict(X_TEST), "float32")
    for kind in kinds(single):
        assert_close(single.variance(X_TEST, kind), double.variance(X_TEST, kind), "float32")


@pytest.mark.parametrize("kernel", ["gaussian", "matern32", "laplacian", "polynomial", "linear"])
@pytest.mark.parametrize("lam", np.geomspace(1e-1, 1e-9, 9))
def test_automatic_precision_costs_little(kernel, lam):
    """It is single only where that costs V2 less than a hundredth of sketch_tol."""
    options = {"kernel": kernel, "bandwidth": "median", "alpha": N * lam, "sketch_size": 40}
    automatic, double = (sketched(dtype=dtype, **options).fit(X, y) for dtype in ("auto", "float64"))
    assert automatic.dtype_ in ("float32", "float64")
    np.testing.assert_allclose(automatic.variance(X_TEST), double.variance(X_TEST), rtol=automatic.sketch_tol / 100)


def test_automatic_precision_follows_the_penalty():
    assert sketched(dtype="auto", alpha=N * 1e-1).fit(X, y).dtype_ == "float32"
    assert sketched(dtype="auto", alpha=N * 1e-9).fit(X, y).dtype_ == "float64"


# promises


@pytest.mark.parametrize("name", NAMES)
def test_certificate_holds(name):
    """|√V2 − √V1| ≤ relative·√V2 at every point: a theorem, so on every problem."""
    rng = np.random.default_rng([4, SEED])
    for trial in range(25):
        n, d, m = rng.integers(2, 60), rng.integers(1, 6), rng.integers(1, 40)
        A = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1)
        b = rng.standard_normal(n)
        B = np.vstack([A, rng.standard_normal((20, d)) * 3, 100 + A[:1]])
        options = {
            "kernel": ["gaussian", "laplacian", "matern32", "polynomial", "linear"][trial % 5],
            "alpha": n * 10.0 ** rng.uniform(-7, 0),
            "noise_variance": 1.0,
            "fit_intercept": False,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a sketch size above n
            model = SketchedKernelRidge(**options, sketch=name, sketch_size=int(m), random_state=trial).fit(A, b)
        sd2 = np.sqrt(model.variance(B, "v2"))
        sd1 = np.sqrt(ExactKernelRidge(**options).fit(A, b).variance(B, "v1"))
        assert model.certificate_.relative >= 0
        assert (np.abs(sd2 - sd1) <= model.certificate_.relative * sd2).all(), (trial, n, d, m, options)


def test_certificate_says_when_it_says_nothing():
    tight, loose = (sketched(sketch_size=m, alpha=a).fit(X, y).certificate_ for m, a in ((60, 8.0), (2, 1e-6)))
    assert not tight.vacuous
    assert tight.relative < 1
    assert "within" in str(tight)
    assert loose.vacuous
    assert loose.relative >= 1
    assert "vacuous" in str(loose)
    assert "return_bound=True" in str(loose)


LAMBDAS = np.geomspace(1e-1, 1e-9, 5)
EVERYWHERE = np.vstack([X, X_TEST, X + 1e-9, 1e3 * X, X[:5] + 1e6, X[:5] + 1e12])


@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("name", ["exact", "auto", *NAMES])
@pytest.mark.parametrize("dtype", ["auto", "float32"])
@intercepts
def test_std_is_never_negative_or_nan(name, dtype, lam, fit_intercept):
    if name == "exact":
        model = fixed(alpha=N * lam, fit_intercept=fit_intercept)
    else:
        model = sketched(alpha=N * lam, sketch=name, sketch_size=40, dtype=dtype, fit_intercept=fit_intercept)
    mean, std = model.fit(X, y).predict(EVERYWHERE, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std >= 0).all()
    for kind in kinds(model):
        v = model.variance(EVERYWHERE, kind)
        assert np.isfinite(v).all()
        assert (v >= 0).all()


@makers
def test_far_from_the_data_the_variance_of_the_mean_vanishes_and_the_posterior_does_not(make):
    model = make().fit(X, y)
    far = X[:5] + 1e3
    for kind in kinds(model):
        expected = 1.0 if kind in ("gp", "bias2") else 0.0
        np.testing.assert_array_equal(model.variance(far, kind), np.full(5, expected))
    np.testing.assert_array_equal(model.predict(far), np.zeros(5))


@makers
def test_far_from_the_data_the_intercept_remains(make):
    model = make(fit_intercept=True, noise_variance=1.0).fit(X, y)
    mean, std = model.predict(X[:5] + 1e3, return_std=True)
    assert_close(mean, np.full(5, mean[0]))
    assert abs(mean[0] - y.mean()) < np.ptp(y)
    assert (std >= (1 - tol()) / np.sqrt(N)).all()  # no unbiased estimate of a constant varies less than the average
