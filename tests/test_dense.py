"""Exact kernel ridge regression against the specification, bordered systems, repetition and
scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from helpers import (
    DEVICE,
    KERNEL_CASES,
    KernelCase,
    assert_close,
    assert_close_each,
    at,
    normal,
    sample_for,
    squared_bias,
    targets,
    uneven,
    values,
    variance_of,
    weights_of_y,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge

from sketchridge import ExactKernelRidge, exact, exact_fit
from sketchridge import dense as dense_module
from sketchridge.backends import NumpyTiles, cholesky, memory
from sketchridge.backends.torch_tiles import TorchTiles
from sketchridge.backends.triton_fused import TritonFused
from sketchridge.dense import DenseRidge, check_memory, dense_ridge
from sketchridge.kernels import Gaussian, Linear

N, T, Q, LAM = 25, 6, 2, 0.02

every_kernel = pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
with_and_without_intercept = pytest.mark.parametrize(
    "fit_intercept", [False, True], ids=["plain", "intercept"]
)
with_and_without_weights = pytest.mark.parametrize(
    "weighted", [False, True], ids=["even", "weighted"]
)


def weights(weighted: bool, n: int = N) -> np.ndarray:
    return uneven(n) if weighted else np.ones(n)


def problem(case: KernelCase, fit_intercept: bool = False, w=None, lam: float = LAM):
    """A ridge, test points, Y, G and k(x, X)."""
    X, X_new, Y = case.points(N), case.points(T, seed=7), targets(N, Q) + 3
    kernel = case.fitted(X)
    ridge = dense_ridge(sample_for(kernel, X, w), Y, lam, fit_intercept)
    return ridge, X_new, Y, values(kernel, X, X), values(kernel, X_new, X)


@every_kernel
def test_agrees_with_the_specification(case: KernelCase):
    ridge, X_new, Y, G, G_x = problem(case)
    query = at(ridge, X_new)
    assert_close(ridge.mean(query), exact.mean(G / N, G_x.T, Y, LAM))
    assert_close(ridge.v1(query), exact.v1(G / N, G_x.T, LAM))


@with_and_without_weights
@with_and_without_intercept
@every_kernel
def test_agrees_with_a_dense_bordered_system(case: KernelCase, fit_intercept, weighted):
    w = weights(weighted)
    ridge, X_new, Y, G, G_x = problem(case, fit_intercept, w)
    query = at(ridge, X_new)
    ell = weights_of_y(G, G_x, w, LAM, fit_intercept)
    v1, bias2 = variance_of(ell, w), squared_bias(ell, G, G_x, query.prior())
    gp = bias2 + LAM * w.sum() * v1
    assert_close(ridge.mean(query), ell @ Y)
    assert_close(ridge.v1(query), v1)
    assert_close(ridge.gp(query), gp)
    assert_close(ridge.bias2(query), bias2, scale=gp.max())


@with_and_without_weights
@with_and_without_intercept
@every_kernel
def test_smoother_is_dense_algebras(case: KernelCase, fit_intercept, weighted):
    w = weights(weighted)
    ridge, _, Y, G, _ = problem(case, fit_intercept, w)
    smoother = weights_of_y(G, G, w, LAM, fit_intercept)
    assert_close(ridge.residuals(), Y - smoother @ Y)
    assert_close(1 - ridge.unfitted(), np.diagonal(smoother), scale=1.0)
    assert_close(ridge.df, np.trace(smoother))


@with_and_without_weights
@with_and_without_intercept
def test_leave_one_out_is_really_leaving_one_out(fit_intercept, weighted):
    w = weights(weighted)
    case = KERNEL_CASES[0]
    ridge, _, Y, _, _ = problem(case, fit_intercept, w)
    X = case.points(N)

    def left_out(i: int) -> np.ndarray:
        rest = np.delete(np.arange(N), i)
        sample = sample_for(ridge.sample.points.kernel, X[rest], w[rest])
        lam = LAM * w.sum() / w[rest].sum()  # alpha stays
        other = dense_ridge(sample, Y[rest], lam, fit_intercept)
        return Y[i] - other.mean(at(other, X[[i]]))[0]

    errors = np.array([left_out(i) for i in range(N)])
    assert_close(ridge.residuals() / ridge.unfitted()[:, None], errors)


@with_and_without_intercept
def test_a_weight_is_a_repetition(fit_intercept):
    times = 1 + np.arange(N) % 3
    case = KERNEL_CASES[0]
    ridge, X_new, Y, _, _ = problem(case, fit_intercept, times.astype(float))
    X_all = np.repeat(case.points(N), times, axis=0)
    sample = sample_for(ridge.sample.points.kernel, X_all)
    other = dense_ridge(sample, np.repeat(Y, times, axis=0), LAM, fit_intercept)
    first = np.concatenate([[0], np.cumsum(times)[:-1]])
    query = at(ridge, X_new)
    for kind in ("mean", "v1", "gp", "bias2"):
        assert_close(getattr(ridge, kind)(query), getattr(other, kind)(query))
    assert_close(ridge.df, other.df)
    assert_close(ridge.residuals(), other.residuals()[first])


@with_and_without_intercept
@pytest.mark.parametrize("c", [1e-3, 0.5, 7.0, 1e5])
def test_weights_and_alpha_times_a_constant_scale_the_variances_only(fit_intercept, c):
    w = uneven(N)
    ridge, X_new, _, _, _ = problem(KERNEL_CASES[0], fit_intercept, w)
    scaled = problem(KERNEL_CASES[0], fit_intercept, c * w)[0]
    query = at(ridge, X_new)
    for kind, factor in (("mean", 1.0), ("v1", c), ("gp", 1.0), ("bias2", 1.0)):
        assert_close(factor * getattr(scaled, kind)(query), getattr(ridge, kind)(query))
    assert_close(scaled.df, ridge.df)


@with_and_without_weights
def test_the_mean_is_scikit_learns(weighted):
    X, X_new, Y, w = normal(N, 3), normal(T, 3, seed=7), targets(N, Q), weights(weighted)
    ridge = dense_ridge(sample_for(Gaussian(1.0).fitted(X), X, w), Y, LAM, False)
    model = KernelRidge(alpha=LAM * w.sum(), kernel="rbf", gamma=0.5)
    expected = model.fit(X, Y, sample_weight=w).predict(X_new)
    assert_close(ridge.mean(at(ridge, X_new)), expected)


@with_and_without_weights
def test_gp_is_the_posterior_variance_of_a_gaussian_process(weighted):
    """With noise α/w in each row, in scikit-learn."""
    X, X_new, w = normal(N, 3), normal(T, 3, seed=7), weights(weighted)
    ridge = dense_ridge(sample_for(Gaussian(1.0).fitted(X), X, w), targets(N), LAM, False)
    model = GaussianProcessRegressor(RBF(1.0), alpha=LAM * w.sum() / w, optimizer=None)
    std = model.fit(X, targets(N)[:, 0]).predict(X_new, return_std=True)[1]
    assert_close(ridge.gp(at(ridge, X_new)), std**2)


@with_and_without_intercept
@pytest.mark.parametrize("undivided", [True, False])
@pytest.mark.parametrize("columns", [1, 7, 24, 25, 26])
def test_blocks_of_the_factorization_change_nothing(columns, undivided, fit_intercept, monkeypatch):
    ridge, X_new, _, _, _ = problem(KERNEL_CASES[0], fit_intercept, uneven(N))
    monkeypatch.setattr(cholesky, "COLUMNS", columns)
    monkeypatch.setattr(NumpyTiles, "undivided", undivided)
    other = problem(KERNEL_CASES[0], fit_intercept, uneven(N))[0]
    query = at(ridge, X_new)
    assert_close(other.mean(query), ridge.mean(query))
    assert_close(other.v1(query), ridge.v1(query))
    assert_close(other.inverse_diagonal, ridge.inverse_diagonal)
    assert_close(np.tril(other.factor.L), np.tril(ridge.factor.L))


def test_the_factor_is_a_cholesky_factor():
    ridge, _, _, G, _ = problem(KERNEL_CASES[0], w=uneven(N))
    root = np.sqrt(uneven(N) / uneven(N).sum())
    K = root[:, None] * G * root + LAM * np.eye(N)
    assert_close(np.tril(ridge.factor.L), np.linalg.cholesky(K))
    assert_close(ridge.solve(np.eye(N)), np.linalg.inv(K))
    assert_close(ridge.inverse_diagonal, np.diagonal(np.linalg.inv(K)))


@with_and_without_intercept
def test_a_solution_that_was_saved_predicts_without_factorizing(fit_intercept, monkeypatch):
    ridge, X_new, Y, _, _ = problem(KERNEL_CASES[0], fit_intercept, uneven(N))
    saved = (ridge.coefficients, ridge.offset)
    again = DenseRidge(ridge.sample, Y, LAM, fit_intercept, saved)
    query = at(ridge, X_new)
    with monkeypatch.context() as patch:
        patch.setattr(NumpyTiles, "dense", lambda *_: pytest.fail("factorized"))
        np.testing.assert_array_equal(again.mean(query), ridge.mean(query))
    np.testing.assert_array_equal(again.v1(query), ridge.v1(query))


@every_kernel
@with_and_without_intercept
def test_pytorch_answers_as_numpy_does(case: KernelCase, fit_intercept, monkeypatch):
    monkeypatch.setattr(cholesky, "COLUMNS", 7)
    w = uneven(N)
    ridge, X_new, Y, _, _ = problem(case, fit_intercept, w)
    X, kernel = case.points(N), ridge.sample.points.kernel
    there = sample_for(kernel, X, w, TorchTiles(device=DEVICE))
    other = dense_ridge(there, Y, LAM, fit_intercept)
    ours, theirs = at(ridge, X_new), at(other, X_new)
    for kind in ("mean", "v1", "gp", "bias2"):
        assert_close(getattr(other, kind)(theirs), getattr(ridge, kind)(ours))
    assert_close(other.unfitted(), ridge.unfitted())
    assert_close(other.residuals(), ridge.residuals())


@pytest.mark.parametrize("cls", [TorchTiles, TritonFused])
def test_the_estimator_on_another_backend(cls):
    X, Y, X_new = normal(60, 3), targets(60, Q), normal(9, 3, seed=7)
    ours = ExactKernelRidge("matern52", backend="numpy").fit(X, Y)
    theirs = ExactKernelRidge("matern52", backend=cls(device=DEVICE)).fit(X, Y)
    assert (ours.backend_, theirs.backend_) == ("numpy", cls.name)
    assert_close(theirs.alpha_, ours.alpha_)
    for mine, other in zip(
        ours.predict_interval(X_new), theirs.predict_interval(X_new), strict=True
    ):
        assert_close(other, mine)
    again = pickle.loads(pickle.dumps(theirs))
    assert_close(again.variance(X_new), ours.variance(X_new))
    assert_close(
        theirs.partial_fit(X_new, Y[:9]).predict(X), ours.partial_fit(X_new, Y[:9]).predict(X)
    )


def test_other_precisions_are_refused():
    with pytest.raises(ValueError, match=r"float64 only, got dtype='float32': give 'auto' or"):
        ExactKernelRidge(dtype="float32").fit(normal(9, 2), targets(9))


def test_the_penalty_of_many_rows_is_chosen_on_some(monkeypatch):
    X, Y = normal(200, 2), np.sin(normal(200, 2)[:, :1]) + 0.1 * targets(200)
    whole = ExactKernelRidge("gaussian", bandwidth=1.0, alpha="loo").fit(X, Y)
    monkeypatch.setattr(exact_fit, "_WHOLE", 150)
    some = ExactKernelRidge("gaussian", bandwidth=1.0, alpha="loo").fit(X, Y)
    assert whole.alpha_ / 1.5 < some.alpha_ < 1.5 * whole.alpha_


@with_and_without_intercept
@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_points(n, fit_intercept):
    X, X_new, w = normal(n, 3), normal(T, 3, seed=7), uneven(n)
    kernel = Gaussian(1.0).fitted(X)
    ridge = dense_ridge(sample_for(kernel, X, w), targets(n), LAM, fit_intercept)
    ell = weights_of_y(values(kernel, X, X), values(kernel, X_new, X), w, LAM, fit_intercept)
    query = at(ridge, X_new)
    assert_close(ridge.mean(query), ell @ targets(n))
    assert_close(ridge.v1(query), variance_of(ell, w))


def test_no_points_at_all():
    ridge = problem(KERNEL_CASES[0], True)[0]
    query = at(ridge, np.empty((0, 3)))
    assert ridge.mean(query).shape == (0, Q)
    for kind in ("v1", "gp", "bias2"):
        assert getattr(ridge, kind)(query).shape == (0,)


def test_a_penalty_below_rounding_is_refused():
    X = np.repeat(normal(10, 2), 3, axis=0)
    with pytest.raises(
        ValueError, match=r"alpha = 3e-17 is too small: rounding makes.*larger alpha"
    ):
        dense_ridge(sample_for(Gaussian(1.0).fitted(X), X), targets(30), 1e-18, False)


def test_the_error_names_alpha_in_units_of_the_kernel():
    X = 1e20 * normal(30, 1)
    kernel = Linear().fitted(X)
    lam = 1e-20
    text = f"{30 * lam * kernel.unit:.3g}".replace("+", r"\+")
    with pytest.raises(ValueError, match=f"alpha = {text} is too small"):
        dense_ridge(sample_for(kernel, X), targets(30), lam, False)


@pytest.mark.parametrize("with_path", [False, True])
def test_what_cannot_fit_is_refused_before_any_work(with_path, monkeypatch):
    n = 10_000
    matrices = 1 + with_path * dense_module._PATH
    needed = 8.0 * (matrices * n**2 + dense_module._BLOCKS * n * cholesky.COLUMNS)
    monkeypatch.setattr(memory, "available", lambda: needed - 1)
    with pytest.raises(MemoryError, match=r"ExactKernelRidge on 10,000 rows needs .* use Sketched"):
        check_memory(NumpyTiles(), n, with_path=with_path)
    monkeypatch.setattr(memory, "available", lambda: needed)
    check_memory(NumpyTiles(), n, with_path=with_path)


def test_training_rows_are_known_whatever_their_coordinates_round_to():
    """Of a map of the features: products of one row and of many round differently."""
    X = normal(100, 9)
    M = 0.3 * normal(9, 9, 1)
    model = ExactKernelRidge("gaussian", bandwidth=M, alpha=1e-5, noise_variance=1.0)
    model.fit(X, X[:, 0])
    each = np.concatenate([model.variance(x[None], "bias2") for x in X])
    assert_close_each(model.variance(X, "bias2"), each)
    assert (each > 0).all()
