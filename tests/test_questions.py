"""Covariances, samples, contrasts, slopes and marginal effects equal dense formulas, scikit-learn's
GaussianProcessRegressor and each other."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import assert_close, nystrom, uneven, weights_of_y
from problems import (
    ALPHA,
    X_TEST,
    D,
    H,
    N,
    T,
    X,
    Y,
    fixed,
    full_makers,
    intercepts,
    kernel_matrix,
    makers,
    sketched,
    y,
)
from scipy.sparse import csr_array, diags_array
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from test_backends import torch_tiles, triton_fused

from sketchridge import ExactKernelRidge, SketchedKernelRidge, answers
from sketchridge.backends import NumpyTiles

Array = np.ndarray
W = uneven(N)
M = 20
SOME = ("gaussian", "rpcholesky", "srht")  # sketches
A = np.random.default_rng(7).standard_normal((5, T))
KINDS = ("v1", "v2", "v3", "vbar", "gp")
G = kernel_matrix(X, X)
K_TEST = kernel_matrix(X_TEST, X)
some_sketches = pytest.mark.parametrize("sketch", SOME)
backends = pytest.mark.parametrize(
    "backend", [NumpyTiles, torch_tiles, triton_fused], ids=["numpy", "torch", "triton"]
)


def columns_of_sketch(model: SketchedKernelRidge) -> Array:
    """S (m, n)."""
    sketch = model.sketch_
    if hasattr(sketch, "indices"):
        return np.eye(N)[sketch.indices]
    return sketch.entries(range(sketch.size), range(N))


def dense_weights(
    model: SketchedKernelRidge, kind: str, right: Array, fit_intercept: bool
) -> Array:
    """ℓ (t, n) behind V2, V3 and their average, with K̂ formed."""
    Ghat = nystrom(G, columns_of_sketch(model))
    lam = ALPHA / W.sum()
    if kind == "vbar":
        return (dense_weights(model, "v2", right, fit_intercept)
                + dense_weights(model, "v3", right, fit_intercept)) / 2  # fmt: skip
    if kind == "v3":
        right = nystrom(G, columns_of_sketch(model), right)
    return weights_of_y(Ghat, right, W, lam, fit_intercept)


# Covariances


@intercepts
@some_sketches
@pytest.mark.parametrize("kind", ["v2", "v3", "vbar"])
def test_covariances_are_those_of_the_weights(kind, sketch, fit_intercept):
    model = sketched(sketch=sketch, sketch_size=M, fit_intercept=fit_intercept, noise_variance=2.0)
    model.fit(X, y, W)
    ell = dense_weights(model, kind, K_TEST, fit_intercept)
    assert_close(model.covariance(X_TEST, kind), 2 * (ell / W) @ ell.T, condition=1e3)


@intercepts
@some_sketches
def test_the_posterior_covariance_has_the_residual_kernel(sketch, fit_intercept):
    model = sketched(sketch=sketch, sketch_size=M, fit_intercept=fit_intercept).fit(X, y, W)
    S = columns_of_sketch(model)
    Khat = nystrom(G, S, K_TEST)
    cross = K_TEST @ S.T @ np.linalg.lstsq(S @ G @ S.T, S @ K_TEST.T, rcond=None)[0]
    B = np.linalg.inv(nystrom(G, S) + ALPHA * np.diag(1 / W))
    expected = kernel_matrix(X_TEST, X_TEST) - cross + cross - Khat @ B @ Khat.T
    if fit_intercept:
        missing = 1 - Khat @ B.sum(axis=1)
        expected += np.outer(missing, missing) / B.sum()
    assert_close(model.covariance(X_TEST, "gp"), expected, condition=1e3)


@intercepts
def test_exact_covariances_are_those_of_the_weights(fit_intercept):
    model = fixed(fit_intercept=fit_intercept, noise_variance=2.0).fit(X, y, W)
    ell = weights_of_y(G, K_TEST, W, ALPHA / W.sum(), fit_intercept)
    assert_close(model.covariance(X_TEST), 2 * (ell / W) @ ell.T)


@full_makers
@pytest.mark.parametrize("weighted", [False, True])
def test_the_posterior_covariance_of_scikit_learn(make, weighted):
    w = W if weighted else np.ones(N)
    gpr = GaussianProcessRegressor(RBF(H), alpha=ALPHA / w, optimizer=None).fit(X, y)
    mean, cov = gpr.predict(X_TEST, return_cov=True)
    model = make().fit(X, y, w)
    np.testing.assert_allclose(model.predict(X_TEST), mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.covariance(X_TEST, "gp"), cov, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["auto", "float64"])
@intercepts
def test_a_covariance_has_the_variances_on_its_diagonal_and_no_negative_eigenvalue(
    kind, dtype, fit_intercept
):
    model = sketched(sketch_size=M, dtype=dtype, fit_intercept=fit_intercept).fit(X, y, W)
    points = np.concatenate([X_TEST, X[:3], X_TEST[:2], np.full((1, D), 50.0)])
    C = model.covariance(points, kind)
    np.testing.assert_array_equal(C, C.T)
    assert_close(np.diagonal(C), model.variance(points, kind), condition=10)
    assert np.linalg.eigvalsh(C).min() >= -1e-13 * np.trace(C)


@backends
@intercepts
def test_every_backend_gives_the_same_covariances(backend, fit_intercept):
    options = {"sketch_size": M, "fit_intercept": fit_intercept}
    model = sketched(backend=backend(), **options).fit(X, y, W)
    reference = sketched(**options).fit(X, y, W)
    for kind in KINDS:
        found = model.covariance(X_TEST[:7], kind)
        kind_of_rounding = "pcg" if kind == "v1" else "float64"
        assert_close(found, reference.covariance(X_TEST[:7], kind), kind_of_rounding, condition=100)


@backends
@intercepts
def test_an_exact_model_on_every_backend(backend, fit_intercept):
    options = {"fit_intercept": fit_intercept, "noise_variance": 1.0}
    model = fixed(backend=backend(), **options).fit(X, y, W)
    reference = fixed(**options).fit(X, y, W)
    for kind in ("v1", "gp"):
        found, expected = (m.covariance(X_TEST, kind) for m in (model, reference))
        assert_close(found, expected, condition=100)
        found, expected = (m.contrast(A, X_TEST, kind)[1] for m in (model, reference))
        assert_close(found, expected, condition=100)
    found, expected = (m.gradient(X_TEST, return_std=True) for m in (model, reference))
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, condition=100)
    found, expected = (m.marginal_effects() for m in (model, reference))
    assert_close(found.std_error, expected.std_error, condition=100)


@makers
def test_several_targets_have_a_covariance_each(make):
    model = make().fit(X, Y)
    one = make(noise_variance=1.0).fit(X, Y[:, 0])
    C = model.covariance(X_TEST)
    assert C.shape == (T, T, 3)
    assert_close(C, one.covariance(X_TEST)[:, :, None] * model.noise_variance_)
    assert model.covariance(X_TEST, "gp").shape == (T, T)


@pytest.mark.parametrize("kind", ["v2", "vbar"])
def test_blocks_of_training_rows_change_nothing(kind, monkeypatch):
    model = sketched(sketch_size=M, fit_intercept=True).fit(X, y, W)
    before = model.covariance(X_TEST, kind)
    monkeypatch.setattr(NumpyTiles, "slab_bytes", 7 * 8 * T)
    assert_close(model.covariance(X_TEST, kind), before)


def test_the_covariance_of_many_points_is_computed_in_blocks():
    rng = np.random.default_rng(0)
    model = sketched(sketch_size=M).fit(X, y)
    points = rng.uniform(-1, 1, (2500, D))
    for kind in ("v2", "v3", "gp"):
        C = model.covariance(points, kind)
        assert_close(C[:T, -T:], model.covariance(np.r_[points[:T], points[-T:]], kind)[:T, T:])


def test_a_covariance_that_cannot_fit_is_refused_before_any_work(monkeypatch):
    model = sketched(sketch_size=M).fit(X, y)
    monkeypatch.setattr("sketchridge.backends.memory.available", lambda: 1e5)
    with pytest.raises(MemoryError, match=r"A covariance of 200 × 200 numbers"):
        model.covariance(np.repeat(X_TEST[:20], 10, axis=0))


@makers
def test_predict_with_covariance(make):
    model = make(fit_intercept=True).fit(X, Y)
    mean, std = model.predict(X_TEST, return_std=True)
    again, cov = model.predict(X_TEST, return_cov=True)
    assert_close(again, mean)
    assert cov.shape == (T, T, 3)
    assert_close(np.einsum("iiq->iq", cov), std**2)
    with pytest.raises(ValueError, match="both asked for: give one"):
        model.predict(X_TEST, return_std=True, return_cov=True)


@makers
def test_a_loaded_model_answers_as_before(make):
    model = make(fit_intercept=True).fit(X, y, W)
    loaded = pickle.loads(pickle.dumps(model))
    assert_close(loaded.covariance(X_TEST, "gp"), model.covariance(X_TEST, "gp"), condition=100)
    assert_close(loaded.contrast(A, X_TEST)[1], model.contrast(A, X_TEST)[1], condition=100)
    assert_close(loaded.gradient(X_TEST), model.gradient(X_TEST), condition=100)
    effects, before = loaded.marginal_effects(), model.marginal_effects()
    assert_close(effects.std_error, before.std_error, condition=100)


# Samples


@pytest.mark.parametrize("kind", ["gp", "v2"])
def test_curves_have_the_mean_and_the_covariance(kind):
    model = sketched(sketch_size=M, fit_intercept=True).fit(X, y)
    size = 40_000
    curves = model.sample(X_TEST, size, kind, random_state=0)
    assert curves.shape == (T, size)
    C = model.covariance(X_TEST, kind) * (model.amplitude_ if kind == "gp" else 1)
    scale = np.sqrt(np.outer(np.diag(C), np.diag(C)))
    assert np.abs(np.cov(curves) - C).max() < 6 * scale.max() / np.sqrt(size)
    difference = curves.mean(axis=1) - model.predict(X_TEST)
    assert np.abs(difference / np.sqrt(np.diag(C) / size)).max() < 6


@makers
def test_curves_of_several_targets(make):
    model = make().fit(X, Y)
    curves = model.sample(X_TEST, 4, random_state=1)
    assert curves.shape == (T, 3, 4)
    assert_close(curves, model.sample(X_TEST, 4, random_state=1))
    assert np.abs(curves - model.sample(X_TEST, 4, random_state=2)).max() > 0


def test_curves_far_from_the_data_and_at_equal_points():
    """A covariance of low rank, and one of zeros."""
    model = sketched(sketch_size=M).fit(X, y)
    curves = model.sample(np.repeat(X_TEST[:2], 3, axis=0), 5, random_state=0)
    assert_close(curves[0], curves[2], condition=1e4)
    far = model.sample(np.full((2, D), 1e3), 5, "v2", random_state=0)
    assert_close(far, np.zeros((2, 5)))


# Contrasts


@pytest.mark.parametrize("kind", KINDS)
@intercepts
def test_contrasts_are_those_of_the_covariance(kind, fit_intercept):
    model = sketched(sketch_size=M, fit_intercept=fit_intercept).fit(X, Y, W)
    mean, variance = model.contrast(A, X_TEST, kind)
    assert_close(mean, A @ model.predict(X_TEST), condition=10)
    C = model.covariance(X_TEST, kind)
    expected = np.einsum("ij,jk...,ik->i...", A, C, A)
    assert_close(variance, expected, "percent" if kind == "v1" else "float64", condition=100)


@full_makers
@intercepts
def test_exact_contrasts(make, fit_intercept):
    model = make(fit_intercept=fit_intercept, noise_variance=3.0).fit(X, y, W)
    ell = A @ weights_of_y(G, K_TEST, W, ALPHA / W.sum(), fit_intercept)
    mean, variance = model.contrast(A, X_TEST)
    assert_close(mean, ell @ y, condition=100)
    assert_close(variance, 3 * (ell**2 / W).sum(axis=1), condition=100)
    assert_close(
        model.contrast(A, X_TEST, "gp")[1],
        np.diag(A @ model.covariance(X_TEST, "gp") @ A.T),
        condition=100,
    )


@makers
def test_forms_of_the_matrix(make):
    model = make().fit(X, y)
    dense = model.contrast(A, X_TEST)
    for form in (csr_array(A), csr_array(A).tocsc(), A.tolist(), pd.DataFrame(A)):
        for one, other in zip(model.contrast(form, X_TEST), dense, strict=True):
            assert_close(one, other)
    for one, other in zip(model.contrast(A[0], X_TEST), dense, strict=True):
        assert_close(one, other[:1])


@makers
def test_identity_is_prediction(make):
    model = (
        make(fit_intercept=True, dtype="float64") if make is sketched else make(fit_intercept=True)
    )
    model.fit(X, Y)
    kind = model._kind
    mean, variance = model.contrast(np.eye(T), X_TEST)
    assert_close(mean, model.predict(X_TEST))
    assert_close(variance, model.variance(X_TEST, kind))


def test_many_sparse_contrasts_use_only_the_points_they_need(monkeypatch):
    """Differences of neighbors, in blocks of few."""
    monkeypatch.setattr(NumpyTiles, "slab_bytes", 8 * N * 4)
    model = sketched(sketch_size=M, fit_intercept=True).fit(X, y)
    differences = diags_array([-np.ones(T - 1), np.ones(T - 1)], offsets=[0, 1], shape=(T - 1, T))
    mean, variance, bound = model.contrast(differences, X_TEST, return_bound=True)
    dense = model.contrast(differences.toarray(), X_TEST, return_bound=True)
    for one, other in zip((mean, variance, bound), dense, strict=True):
        assert_close(one, other, condition=100)


@backends
def test_every_backend_gives_the_same_contrasts_and_effects(backend):
    options = {"sketch_size": M, "fit_intercept": True, "noise_variance": 1.0}
    model = sketched(backend=backend(), **options).fit(X, y, W)
    reference = sketched(**options).fit(X, y, W)
    for kind in KINDS:
        found, expected = (m.contrast(A, X_TEST, kind) for m in (model, reference))
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other, "pcg" if kind == "v1" else "float64", condition=100)
    for kind in ("v2", "v3", "vbar"):
        found, expected = (m.gradient(X_TEST[:5], True, kind=kind) for m in (model, reference))
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other, condition=100)
        found, expected = (m.marginal_effects(kind=kind) for m in (model, reference))
        assert_close(found.effect, expected.effect, condition=100)
        assert_close(found.std_error, expected.std_error, condition=100)


def test_refinement_of_contrasts():
    model = sketched(sketch_size=10, noise_variance=1.0).fit(X, y)
    exact = np.sqrt(fixed(noise_variance=1.0).fit(X, y).contrast(A, X_TEST)[1])
    for options in ({}, {"refine": 2}):
        _, variance, bound = model.contrast(A, X_TEST, "vbar", return_bound=True, **options)
        assert (np.abs(np.sqrt(variance) - exact) <= bound).all()
    _, variance, bound = model.contrast(A, X_TEST, "v1", tol=1e-6, return_bound=True)
    np.testing.assert_allclose(variance, exact**2, rtol=1e-6)
    assert (bound < 1e-6 * exact).all()


# Tests of contrasts


@makers
def test_one_contrast_is_tested_by_its_z(make):
    model = make().fit(X, y)
    found = model.test_contrast(A[:1], X_TEST, 0.3)
    mean, variance = model.contrast(A[:1], X_TEST, model._own_kind)
    z = (mean - 0.3) / np.sqrt(variance)
    assert_close(found.z, z, condition=10)
    assert_close(found.p_value, 2 * norm.sf(np.abs(z)), condition=100)
    assert_close(found.low, mean - norm.ppf(0.975) * np.sqrt(variance), condition=10)
    assert found.critical_value == pytest.approx(norm.ppf(0.975), abs=0.06)
    assert found.p_simultaneous[0] == pytest.approx(found.p_value[0], abs=0.02)


def test_a_band_does_not_follow_rounding():
    """Pivots of a factor of correlations, whose diagonal is 1, were chosen by rounding."""
    F = np.random.default_rng(0).standard_normal((9, 3))
    C = F @ F.T
    found = []
    for scale in (1 - 1e-15, 1.0, 1 + 1e-15):
        near = C * np.where(np.eye(9) > 0, np.linspace(1.0, scale, 9), 1.0)
        rng = np.random.default_rng(0)
        test = answers.tested(np.ones(9), np.sqrt(np.diag(C)), near, np.zeros(9), 0.95, 1000, rng)
        found.append(test.critical_value)
    assert found == pytest.approx([found[0]] * 3, rel=1e-6)


def test_independent_contrasts_widen_the_band():
    """Two far points, each with its own row: the largest of two independent |z|."""
    far = np.array([[-40.0, 0.0], [40.0, 0.0]])
    model = fixed(noise_variance=1.0).fit(np.concatenate([X, far]), np.append(y, [1, 2]))
    found = model.test_contrast(np.eye(2), far, simulations=200_000)
    expected = norm.ppf(0.5 + 0.95**0.5 / 2)
    assert found.critical_value == pytest.approx(expected, abs=0.02)
    again = model.test_contrast(np.ones((9, 1)), far[:1], simulations=100_000)  # the same one
    assert again.critical_value == pytest.approx(norm.ppf(0.975), abs=0.02)


def test_targets_share_a_band():
    model = fixed().fit(X, Y)
    found = model.test_contrast(A, X_TEST, np.arange(5))
    assert_close(found.z, (found.estimate - np.arange(5)[:, None]) / found.std)
    assert found.z.shape == (5, 3)
    assert_close(found.band_high - found.estimate, found.critical_value * found.std)
    assert "target" in str(found)


def test_a_contrast_that_is_nothing():
    found = fixed().fit(X, y).test_contrast(np.zeros((2, T)), X_TEST, [0.0, 1.0])
    np.testing.assert_array_equal(found.z, [0.0, -np.inf])
    np.testing.assert_array_equal(found.p_value, [1.0, 0.0])


# In simulations each target of one fit is a repetition: the expectation of the estimate is the fit
# to the function itself. The share of 1,000 that hold has the standard deviation 0.7%.


def repetitions(n: int = 300, q: int = 1000) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(5)
    points = np.column_stack([rng.uniform(-1, 1, (n, 2)), rng.integers(0, 2, n)])
    signal = np.sin(3 * points[:, 0]) * (1 + points[:, 2]) + points[:, 1] ** 2
    return points, signal, signal[:, None] + 0.3 * rng.standard_normal((n, q))


@pytest.mark.parametrize("make", [fixed, lambda **o: sketched(sketch_size=60, **o)])
def test_bands_hold_all_at_once(make):
    points, signal, noisy = repetitions()
    options: dict[str, Any] = {"bandwidth": 0.7, "alpha": 0.1, "fit_intercept": True}
    grid = np.column_stack([np.linspace(-1, 1, 50), np.zeros(50), np.zeros(50)])
    truth = make(**options).fit(points, signal).predict(grid)[:, None]
    found = make(**options).fit(points, noisy).test_contrast(np.eye(50), grid)
    all_held = ((found.band_low <= truth) & (truth <= found.band_high)).all(axis=0).mean()
    each = ((found.low <= truth) & (truth <= found.high)).mean()
    assert 0.93 <= all_held <= 0.97
    assert 0.93 <= each <= 0.97


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", [fixed, lambda **o: sketched(sketch_size=60, **o)])
def test_intervals_of_effects_hold_the_expectation(make, weighted):
    points, signal, noisy = repetitions()
    w = uneven(len(points)) if weighted else np.ones(len(points))
    noisy = signal[:, None] + (noisy - signal[:, None]) / np.sqrt(w)[:, None]
    options: dict[str, Any] = {"bandwidth": 0.7, "alpha": 0.1, "fit_intercept": True}
    truth = make(**options).fit(points, signal, w).marginal_effects().effect[:, None]
    found = make(**options).fit(points, noisy, w).marginal_effects()
    held = ((found.low <= truth) & (truth <= found.high)).mean(axis=1)
    assert found.kind == ("derivative", "derivative", "first difference")
    assert (held >= 0.93).all()
    assert (held <= 0.97).all()


# Gradients and marginal effects


def pairwise_slopes(points: Array, h: float) -> Array:
    """∂k(x_i, x_l)/∂x_ij of the Gaussian kernel: (n, n, d)."""
    difference = points[:, None] - points[None]
    return -kernel_matrix(points, points, h)[:, :, None] * difference / h**2


@full_makers
def test_marginal_effects_are_those_of_krls(make):
    """Hainmueller and Hazlett (2014): averages of derivatives Σ_l c_l ∂k(x_i, x_l)/∂x_ij, with the
    variances (1/n²) 1ᵀL V(c) Lᵀ1, V(c) = σ²(G + αI)⁻²."""
    model = make(noise_variance=0.01).fit(X, y)
    inverse = np.linalg.inv(G + ALPHA * np.eye(N))
    L = pairwise_slopes(X, H)
    average = L.mean(axis=0)  # (n, d)
    effects = model.marginal_effects()
    assert_close(effects.effect, average.T @ inverse @ y, condition=100)
    expected = 0.01 * np.einsum("lj,lm,mj->j", average, inverse @ inverse, average)
    assert_close(effects.std_error**2, expected, condition=100)


@intercepts
@pytest.mark.parametrize("kind", ["v1", "v2", "v3", "vbar"])
def test_variances_of_gradients_are_those_of_the_weights(kind, fit_intercept):
    size = N if kind == "v1" else M
    model = sketched(sketch_size=size, fit_intercept=fit_intercept, noise_variance=1.0).fit(X, y, W)
    difference = X_TEST[:, None] - X[None]
    right = -K_TEST[:, :, None] * difference / H**2
    right = right.transpose(0, 2, 1).reshape(-1, N)
    shifted = dense_weights(model, "v2" if kind == "v1" else kind, right, False)
    if fit_intercept:  # the weights of a derivative have the sum 0
        u = dense_weights(model, "v2", np.zeros((1, N)), True)
        shifted = shifted - shifted.sum(axis=1)[:, None] * u
    expected = np.sqrt((shifted**2 / W).sum(axis=1)).reshape(T, D)
    _, std = model.gradient(X_TEST, True, kind=kind)
    assert_close(std, expected, "percent" if kind == "v1" else "float64", condition=1e3)


@makers
@pytest.mark.parametrize("solver", ["sketch", "pcg"])
def test_effects_are_averages_of_gradients_and_differences(make, solver):
    points, signal, _ = repetitions(80)
    options = {"solver": solver} if make is sketched else {}
    model = make(fit_intercept=True, **options).fit(points, signal, W)
    effects = model.marginal_effects()
    gradient = model.gradient(points)
    assert_close(effects.effect[:2], np.average(gradient, axis=0, weights=W)[:2], condition=100)
    one, zero = points.copy(), points.copy()
    one[:, 2], zero[:, 2] = 1, 0
    step = np.average(model.predict(one) - model.predict(zero), weights=W)
    assert_close(effects.effect[2], step, condition=100)
    kind = model._own_kind
    matrix = np.concatenate([W, -W])[None] / W.sum()
    variance = model.contrast(matrix, np.concatenate([one, zero]), kind)[1]
    assert_close(effects.std_error[2], np.sqrt(variance[0]), condition=100)


@makers
def test_effects_over_other_rows(make):
    model = make().fit(X, Y)
    w = uneven(T)
    effects = model.marginal_effects(X_TEST, sample_weight=w)
    expected = np.average(model.gradient(X_TEST), axis=0, weights=w)
    assert effects.effect.shape == (D, 3)
    assert_close(effects.effect, expected, condition=10)
    plain = model.marginal_effects(X_TEST)
    assert_close(plain.effect, model.gradient(X_TEST).mean(axis=0), condition=10)


@makers
def test_a_row_given_twice_has_the_effects_of_weight_two(make):
    options = {"sketch_size": N} if make is sketched else {}
    twice = make(**options).fit(np.concatenate([X, X[:9]]), np.append(y, y[:9]))
    w = np.ones(N)
    w[:9] = 2
    once = make(**options).fit(X, y, w)
    assert_close(twice.marginal_effects().effect, once.marginal_effects().effect, condition=1e3)


@makers
def test_effects_average_with_the_weights_that_were_given(make):
    """Not with those that varying noise makes of them."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (300, 2))
    spread = np.exp(2 * points[:, 0])
    values = np.sin(3 * points[:, 0]) + spread * rng.standard_normal(300)
    model = make(alpha="loo", noise="varying", fit_intercept=True).fit(points, values)
    assert model.fitted_.varying is not None
    expected = model.gradient(points).mean(axis=0)
    assert_close(model.marginal_effects().effect, expected, condition=100)


def test_binary_features_alone_need_no_derivative():
    rng = np.random.default_rng(0)
    points = rng.integers(0, 2, (40, 3)).astype(float)
    model = ExactKernelRidge("laplacian", bandwidth=1.0, alpha=0.1).fit(points, points @ [1, 2, 0])
    effects = model.marginal_effects()
    assert set(effects.kind) == {"first difference"}
    assert effects.effect[1] > effects.effect[0] > effects.effect[2]


def test_the_table_of_effects():
    table = pd.DataFrame(X, columns=["age", "dose"])
    effects = fixed().fit(table, Y).marginal_effects(table)
    assert effects.feature == ("age", "dose")
    assert len(effects) == 2
    assert len(str(effects).splitlines()) == 7
    frame = effects.to_frame()
    assert list(frame["feature"]) == ["age"] * 3 + ["dose"] * 3
    assert list(frame["target"]) == [0, 1, 2] * 2
    assert_close(frame["effect"].to_numpy().reshape(2, 3), effects.effect)
    one = fixed().fit(table, y).marginal_effects().to_frame()
    assert list(one["feature"]) == ["age", "dose"]
    assert "target" not in one


# What is refused


BAD = {
    "shape": (lambda m: m.contrast(np.ones((2, 3)), X_TEST), r"A has shape \(2, 3\), but X has 30"),
    "text": (lambda m: m.contrast("no", X_TEST), "A must be a matrix of numbers"),
    "nan": (lambda m: m.contrast(np.full((1, T), np.nan), X_TEST), "A has NaN or infinity"),
    "empty": (lambda m: m.contrast(np.ones((0, T)), X_TEST), r"give a matrix \(p, 30\)"),
    "bias2": (lambda m: m.covariance(X_TEST, "bias2"), "which has no covariance"),
    "kind": (lambda m: m.covariance(X_TEST, "v9"), "Unknown kind of variance 'v9'"),
    "gp": (lambda m: m.gradient(X_TEST, kind="gp"), "which kind='gp' is not"),
    "size": (lambda m: m.sample(X_TEST, 0), "size must be a whole number of curves"),
    "level": (lambda m: m.test_contrast(A, X_TEST, confidence_level=1), "strictly between 0 and 1"),
    "value": (lambda m: m.test_contrast(A, X_TEST, [1, 2]), r"of shape \(5,\)"),
    "draws": (lambda m: m.test_contrast(A, X_TEST, simulations=0), "simulations must be"),
    "weights": (lambda m: m.marginal_effects(sample_weight=W), "sample_weight goes with X"),
    "negative": (lambda m: m.marginal_effects(X, sample_weight=-W), "negative entry"),
}


@makers
@pytest.mark.parametrize(("ask", "message"), BAD.values(), ids=BAD)
def test_bad_questions_are_refused(ask, message, make):
    model = make().fit(X, y)
    with pytest.raises(ValueError, match=message):
        ask(model)


@pytest.mark.parametrize("cls", [ExactKernelRidge, SketchedKernelRidge])
@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.covariance(X),
        lambda m: m.sample(X),
        lambda m: m.contrast(np.eye(N), X),
        lambda m: m.test_contrast(np.eye(N), X),
        lambda m: m.gradient(X),
        lambda m: m.marginal_effects(),
    ],
)
def test_questions_before_a_fit(ask, cls):
    with pytest.raises(ValueError, match="not fitted yet"):
        ask(cls())
