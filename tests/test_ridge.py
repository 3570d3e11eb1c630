"""Sketched ridge regression against exact.py, dense bordered systems and repetition: means,
variances, weights, intercepts, leave-one-out, one pass over the data, hard cases."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from helpers import (
    ENTRY_CASES,
    KERNEL_CASES,
    LAPLACIAN,
    ROW_CASES,
    SKETCH_CASES,
    UNDERFLOW,
    KernelCase,
    SketchCase,
    assert_close,
    assert_close_each,
    at,
    basis_for,
    matrix_of,
    mixing,
    normal,
    nystrom,
    ridge_for,
    sample_for,
    squared_bias,
    targets,
    tol,
    uneven,
    values,
    variance_of,
    weights_of_y,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge as LinearRidge

from sketchridge import exact
from sketchridge import ridge as ridge_module
from sketchridge.backends import NumpyTiles
from sketchridge.basis import Basis, Intercept, basis_of
from sketchridge.factor import RowFactor, factorize
from sketchridge.kernels import Gaussian, Laplacian, Linear
from sketchridge.query import AtPoints
from sketchridge.ridge import Ridge
from sketchridge.sketches import (
    ArraySketch,
    GaussianSketch,
    LandmarkSketch,
    RPCholeskySketch,
)
from sketchridge.tuning import loo_errors

N, M, T, Q, LAM = 25, 8, 6, 2, 0.02
KINDS = ("v2", "v3", "gp", "bias2")

every_kernel = pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
every_sketch = pytest.mark.parametrize("sketch_case", SKETCH_CASES, ids=str)
pairs = pytest.mark.parametrize(  # every kernel and every sketch, though not with each other
    ("case", "sketch_case"),
    [
        *((case, sketch) for case in KERNEL_CASES for sketch in (ROW_CASES[1], ENTRY_CASES[0])),
        *((LAPLACIAN, sketch) for sketch in SKETCH_CASES),
    ],
    ids=str,
)
with_and_without_intercept = pytest.mark.parametrize(
    "fit_intercept", [False, True], ids=["plain", "intercept"]
)
with_and_without_weights = pytest.mark.parametrize(
    "weighted", [False, True], ids=["even", "weighted"]
)


def weights(weighted: bool, n: int = N) -> np.ndarray:
    return uneven(n) if weighted else np.ones(n)


def problem(case: KernelCase, sketch_case: SketchCase, n: int = N, m: int = M, w=None):
    """A basis, its S (m, n), test points, G and k(x, X) (t, n)."""
    X, X_new = case.points(n), case.points(T, seed=7)
    kernel = case.fitted(X)
    basis = basis_for(kernel, X, targets(n, Q) + 3, sketch_case.make(m, n, 3), m, w=w)
    S = matrix_of(basis.factor.sketch, n)
    return basis, S, X_new, values(kernel, X, X), values(kernel, X_new, X)


def laplacian_basis(sketch_case: SketchCase, m: int = M, w=None) -> Basis:
    return problem(LAPLACIAN, sketch_case, m=m, w=w)[0]


def dense(basis: Basis, S, X_new, G, G_x, lam: float, fit_intercept: bool, w) -> dict:
    """Everything a Ridge predicts, from n×n matrices."""
    kernel = basis.sample.points.kernel
    G_hat, G_x_hat = nystrom(G, S), nystrom(G, S, G_x)
    right = np.linalg.lstsq(S @ G @ S.T, S @ G_x.T, rcond=None)[0].T
    explained = np.einsum("ij,ij->i", G_x @ S.T, right)
    l_2, l_3 = (weights_of_y(G_hat, k, w, lam, fit_intercept) for k in (G_x, G_x_hat))
    c = np.maximum(kernel.diag(X_new) / kernel.unit - explained, 0)
    v3 = variance_of(l_3, w)
    bias2 = c + squared_bias(l_3, G_hat, G_x_hat, explained)
    return {
        "mean": l_3 @ basis.Y.host(),
        "v2": variance_of(l_2, w),
        "v3": v3,
        "bias2": bias2,
        "gp": bias2 + lam * w.sum() * v3,
    }


def assert_budget(ridge: Ridge, X_new, expected, **options) -> None:
    """All that a Ridge predicts; bias² is as accurate as gp, of which it is a part."""
    query = at(ridge, X_new)
    assert_close(ridge.mean(query), expected["mean"], **options)
    for kind in KINDS:
        scale = expected["gp" if kind == "bias2" else kind].max()
        assert_close(getattr(ridge, kind)(query), expected[kind], scale=scale, **options)


# Against the specification and dense algebra


@every_sketch
@every_kernel
def test_agrees_with_the_specification(case: KernelCase, sketch_case: SketchCase):
    basis, S, X_new, G, G_x = problem(case, sketch_case)
    ridge = ridge_for(basis, LAM)
    query = at(ridge, X_new)
    assert_close(ridge.v2(query), exact.v2(G / N, S, G_x.T, LAM))
    assert_close(ridge.v3(query), exact.v3(G / N, S, G_x.T, LAM))
    expected = exact.sketched_mean(G / N, S, G_x.T, basis.Y.host(), LAM)
    assert_close(ridge.mean(query), expected)


@with_and_without_weights
@with_and_without_intercept
@every_sketch
@every_kernel
def test_agrees_with_a_dense_bordered_system(case, sketch_case, fit_intercept, weighted):
    w = weights(weighted)
    basis, S, X_new, G, G_x = problem(case, sketch_case, w=w)
    expected = dense(basis, S, X_new, G, G_x, LAM, fit_intercept, w)
    assert_budget(ridge_for(basis, LAM, fit_intercept), X_new, expected)


@with_and_without_weights
@with_and_without_intercept
@every_sketch
def test_smoother_is_dense_algebras(sketch_case: SketchCase, fit_intercept, weighted):
    w = weights(weighted)
    basis, S, _, G, _ = problem(LAPLACIAN, sketch_case, w=w)
    ridge, Y = ridge_for(basis, LAM, fit_intercept), basis.Y.host()
    G_hat = nystrom(G, S)
    smoother = weights_of_y(G_hat, G_hat, w, LAM, fit_intercept)
    assert_close(ridge.residuals().host(), Y - smoother @ Y)
    assert_close(ridge.leverages().host()[:, 0], np.diagonal(smoother))
    assert_close(ridge.df, np.trace(smoother))
    assert_close(ridge.mean(at(ridge, LAPLACIAN.points(N))), smoother @ Y)


@with_and_without_weights
@with_and_without_intercept
@every_sketch
def test_offset_and_gap_are_those_of_generalized_least_squares(
    sketch_case: SketchCase, fit_intercept, weighted
):
    """c = 1ᵀA⁻¹y/1ᵀA⁻¹1 with A = Ĝ + α diag(1/w), and gap = λΣw·1ᵀA⁻¹1/Σw."""
    w = weights(weighted)
    basis, S, _, G, _ = problem(LAPLACIAN, sketch_case, w=w)
    ridge = ridge_for(basis, LAM, fit_intercept)
    inverse = np.linalg.inv(nystrom(G, S) + LAM * w.sum() * np.diag(1 / w))
    if not fit_intercept:
        np.testing.assert_array_equal(ridge.offset, np.zeros(Q))
        np.testing.assert_array_equal(ridge.wide.host(), basis.T.host())
        return
    assert_close(ridge.offset, (inverse.sum(axis=0) @ basis.Y.host()) / inverse.sum())
    assert_close(ridge.intercept.slack, LAM * inverse.sum())
    e = LAM * w.sum() / w * inverse.sum(axis=1)
    assert_close(ridge.intercept.e.host()[:, 0], e)
    assert_close(ridge.intercept.square, w @ e**2 / w.sum())
    assert_close(ridge.wide.host(), np.column_stack([basis.T.host(), e]))


@with_and_without_weights
@every_sketch
def test_eigenvalues_trace_and_tau(sketch_case: SketchCase, weighted):
    w = weights(weighted)
    basis, S, _, G, _ = problem(LAPLACIAN, sketch_case, w=w)
    root = np.sqrt(w / w.sum())
    K_hat = root[:, None] * nystrom(G, S) * root
    eigenvalues = np.linalg.eigvalsh(K_hat)[::-1]
    assert_close(basis.E, eigenvalues[: len(basis.E)])
    assert_close(
        np.array([basis.sample.scales.trace, basis.tau, basis.largest]),
        np.array([1, 1 - np.trace(K_hat), eigenvalues[0]]),
    )


@with_and_without_weights
@every_sketch
def test_basis_is_orthogonal_and_spans_the_factor(sketch_case: SketchCase, weighted):
    """TᵀMT = diag(E), P = E^(−½)TᵀM[Y 1], and what is left of [Y 1]."""
    w = weights(weighted)
    basis = laplacian_basis(sketch_case, w=w)
    M = np.diag(w / w.sum())
    T_host, Y1 = basis.T.host(), np.column_stack([basis.Y.host(), np.ones(N)])
    assert_close(T_host.T @ M @ T_host, np.diag(basis.E))
    assert_close(basis.M, np.diag(basis.E))
    H = T_host / np.sqrt(basis.E)
    assert_close(basis.P, H.T @ M @ Y1)
    left = Y1 - H @ (H.T @ M @ Y1)
    assert_close(basis.rest, left.T @ M @ left)
    assert_close(basis.o, T_host.T @ np.diagonal(M))


SPANNING = [case for case in SKETCH_CASES if case.id not in ("srht", "fourier")]


@with_and_without_weights
@pytest.mark.parametrize("sketch_case", SPANNING, ids=str)
@every_kernel
def test_a_full_sketch_gives_v1(case: KernelCase, sketch_case: SketchCase, weighted):
    """In any basis of the whole space: rounding is amplified by the condition number of S, at most
    1e3 here."""
    n, w = 12, weights(weighted, 12)
    m = n if sketch_case.id in ("landmarks", "rpcholesky") else 2 * n
    basis, S, X_new, G, G_x = problem(case, sketch_case, n=n, m=m, w=w)
    ridge = ridge_for(basis, LAM)
    query = at(ridge, X_new)
    condition = np.linalg.cond(S)
    assert condition < 1e3
    ell = weights_of_y(G, G_x, w, LAM, False)
    for kind in ("v2", "v3"):
        assert_close(getattr(ridge, kind)(query), variance_of(ell, w), condition=condition)
    assert_close(ridge.mean(query), ell @ basis.Y.host(), condition=condition)
    prior = query.prior()
    assert_close(ridge.gp(query), prior - (ell * G_x).sum(axis=1))
    if not weighted:
        assert_close(ridge.v2(query), exact.v1(G / n, G_x.T, LAM), condition=condition)
        expected = exact.mean(G / n, G_x.T, basis.Y.host(), LAM)
        assert_close(ridge.mean(query), expected, condition=condition)


@with_and_without_weights
@with_and_without_intercept
@pairs
def test_gp_is_bias_plus_variance(case, sketch_case, fit_intercept, weighted):
    w = weights(weighted)
    basis, _, X_new, _, _ = problem(case, sketch_case, w=w)
    ridge = ridge_for(basis, LAM, fit_intercept)
    query = at(ridge, X_new)
    assert_close(ridge.gp(query), ridge.bias2(query) + w.sum() * LAM * ridge.v3(query))


@with_and_without_weights
@with_and_without_intercept
@pytest.mark.parametrize("sketch_case", ROW_CASES, ids=str)
def test_gp_is_bias_plus_v2_for_a_full_sketch(sketch_case, fit_intercept, weighted):
    w = weights(weighted)
    basis, _, X_new, _, _ = problem(LAPLACIAN, sketch_case, m=N, w=w)
    ridge = ridge_for(basis, LAM, fit_intercept)
    query = at(ridge, X_new)
    assert_close(ridge.gp(query), ridge.bias2(query) + w.sum() * LAM * ridge.v2(query))


# Weights


@with_and_without_intercept
@every_sketch
def test_a_weight_is_a_repetition(sketch_case: SketchCase, fit_intercept):
    """With α fixed, a row of weight 3 is a row given three times, in everything but residuals."""
    times = 1 + np.arange(N) % 3
    X, Y, X_new = normal(N, 3), targets(N, Q) + 3, normal(T, 3, seed=7)
    kernel = Laplacian(1.5).fitted(X)
    weighted = basis_for(kernel, X, Y, sketch_case.make(M, N, 3), M, w=times.astype(float))
    S = matrix_of(weighted.factor.sketch, N)
    first = np.concatenate([[0], np.cumsum(times)[:-1]])
    spread = np.zeros((len(S), times.sum()))
    spread[:, first] = S  # the same points are selected, or summed
    X_all, Y_all = np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0)
    repeated = basis_for(kernel, X_all, Y_all, ArraySketch(spread))
    one, other = (ridge_for(basis, LAM, fit_intercept) for basis in (weighted, repeated))
    assert_same_predictions(one, other, X_new)
    assert_close(one.df, other.df)
    assert_close(one.residuals().host(), other.residuals().host()[first])
    assert_close(one.leverages().host(), other.leverages().host()[first] * times[:, None])


@with_and_without_intercept
@every_sketch
@pytest.mark.parametrize("c", [1e-3, 0.5, 7.0, 1e5])
def test_weights_and_alpha_times_a_constant_scale_the_variances_only(sketch_case, fit_intercept, c):
    """λ = α/Σw is then the same; V is for unit noise, and the noise of weight 1 is c times σ²."""
    w, X_new = uneven(N), normal(T, 3, seed=7)
    one, other = (laplacian_basis(sketch_case, w=f * w) for f in (1.0, c))
    assert_close(other.E, one.E)
    first, second = (ridge_for(basis, LAM, fit_intercept) for basis in (one, other))
    query = at(first, X_new)
    assert_close(second.mean(query), first.mean(query))
    assert_close(second.df, first.df)
    assert_close(second.leverages().host(), first.leverages().host())
    for kind in ("gp", "bias2"):
        assert_close(getattr(second, kind)(query), getattr(first, kind)(query))
    for kind in ("v2", "v3"):
        assert_close(c * getattr(second, kind)(query), getattr(first, kind)(query))


@with_and_without_intercept
def test_a_row_of_hardly_any_weight_is_hardly_there(fit_intercept):
    X, Y, X_new = normal(N, 3), targets(N, Q), normal(T, 3, seed=7)
    w = np.ones(N)
    w[7] = 1e-13
    kernel, rest = Laplacian(1.5).fitted(X), np.delete(np.arange(N), 7)
    sketch = RPCholeskySketch(indices=np.arange(5))
    with_it = basis_for(kernel, X, Y, sketch, w=w)
    without = basis_for(kernel, X[rest], Y[rest], sketch)
    assert_same_predictions(
        *(ridge_for(basis, LAM, fit_intercept) for basis in (with_it, without)), X_new
    )


def test_kernel_ridge_of_scikit_learn_has_the_same_weights():
    X, Y, X_new, w = normal(N, 3), targets(N, Q), normal(T, 3, seed=7), uneven(N)
    basis = basis_for(Gaussian(1.0).fitted(X), X, Y, RPCholeskySketch(), N, w=w)
    ridge = ridge_for(basis, LAM)
    reference = KernelRidge(alpha=LAM * w.sum(), kernel="rbf", gamma=0.5)
    expected = reference.fit(X, Y, sample_weight=w).predict(X_new)
    assert_close(ridge.mean(at(ridge, X_new)), expected)


# What must not matter


@with_and_without_intercept
@given(m=st.integers(1, M), condition=st.floats(1, 1e3), seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_only_the_row_space_of_the_sketch_matters(fit_intercept, m, condition, seed):
    X, X_new, S, w = normal(N, 3), normal(T, 3, seed=7), normal(m, N, seed), uneven(N)
    kernel = Laplacian(1.5).fitted(X)
    plain, mixed = (
        ridge_for(basis_for(kernel, X, targets(N), ArraySketch(rows), w=w), LAM, fit_intercept)
        for rows in (S, mixing(m, seed, condition) @ S)
    )
    query = at(plain, X_new)
    assert_close(mixed.mean(query), plain.mean(query), condition=condition)
    for kind in KINDS:
        one, other = getattr(mixed, kind)(query), getattr(plain, kind)(query)
        assert_close(one, other, condition=condition)


def assert_same_predictions(first: Ridge, second: Ridge, X_new: np.ndarray) -> None:
    one, other = at(first, X_new), at(second, X_new)
    assert_close(first.mean(one), second.mean(other))
    for kind in KINDS:
        assert_close(getattr(first, kind)(one), getattr(second, kind)(other))


@with_and_without_weights
@with_and_without_intercept
@every_sketch
@given(ends=st.lists(st.integers(1, N), max_size=4))
@settings(max_examples=6, deadline=None)
def test_batch_is_incremental(sketch_case: SketchCase, fit_intercept, weighted, ends):
    X, Y, X_new, w = normal(N, 3), targets(N, Q), normal(T, 3, seed=7), weights(weighted)
    kernel = Laplacian(1.5).fitted(X)
    stops = [*sorted({max(end, M) for end in ends}), N]
    first = stops[0]
    basis = basis_for(kernel, X[:first], Y[:first], sketch_case.make(M, first, 3), M, w=w[:first])
    factor = basis.factor
    for _, stop in pairwise(stops):
        factor = factor.extended(sample_for(kernel, X[:stop], w[:stop]), True)
    batch = factorize(sample_for(kernel, X, w), factor.sketch, "float64")
    steps, at_once = (
        ridge_for(basis_of(f, f.sample.backend.tall(Y)), LAM, fit_intercept)
        for f in (factor, batch)
    )
    assert_same_predictions(steps, at_once, X_new)


@every_sketch
def test_old_bases_are_not_changed_by_new_ones(sketch_case: SketchCase):
    """Pure: basis in, basis out."""
    basis, X = laplacian_basis(sketch_case), LAPLACIAN.points(N)
    ridge = ridge_for(basis, LAM, True)
    before = ridge.v2(at(ridge, X[:T])), basis.factor.F.host().copy(), basis.P.copy()
    if sketch_case.id != "array":
        assert basis.grown(M + 4).factor.sketch.size == M + 4
    np.testing.assert_array_equal(ridge_for(basis, LAM, True).v2(at(ridge, X[:T])), before[0])
    np.testing.assert_array_equal(basis.factor.F.host(), before[1])
    np.testing.assert_array_equal(basis.P, before[2])


@with_and_without_weights
@with_and_without_intercept
@every_sketch
def test_leave_one_out_is_really_leaving_one_out(sketch_case, fit_intercept, weighted):
    """For a fixed alpha and sketch: a linear ridge on the features without one row."""
    w = weights(weighted)
    basis = laplacian_basis(sketch_case, w=w)
    ridge, F, Y = ridge_for(basis, LAM, fit_intercept), basis.factor.F.host(), basis.Y.host()

    def left_out(i: int) -> np.ndarray:
        rest = np.delete(np.arange(N), i)
        model = LinearRidge(
            alpha=w.sum() * LAM, fit_intercept=fit_intercept, solver="svd", tol=0
        ).fit(F[rest], Y[rest], sample_weight=w[rest])
        return Y[i] - model.predict(F[[i]])[0]

    errors = np.array([left_out(i) for i in range(N)])
    assert_close(ridge.residuals().host() / (1 - ridge.leverages().host()), errors)
    found = loo_errors(basis, np.array([LAM]), fit_intercept, np.ones(Q))
    assert_close(found, np.array([(w @ errors**2).mean() / w.sum()]))


@with_and_without_weights
def test_leave_one_out_of_a_full_sketch_is_that_of_kernel_ridge_regression(weighted):
    X, Y, w = normal(N, 3), targets(N), weights(weighted)
    basis = basis_for(Gaussian(1.0).fitted(X), X, Y, RPCholeskySketch(), N, w=w)

    def left_out(i: int) -> float:
        rest = np.delete(np.arange(N), i)
        model = KernelRidge(alpha=w.sum() * LAM, kernel="rbf", gamma=0.5)
        model.fit(X[rest], Y[rest], sample_weight=w[rest])
        return (Y[i] - model.predict(X[[i]])[0]).item()

    errors = np.array([left_out(i) for i in range(N)])
    found = loo_errors(basis, np.array([LAM]), False, np.ones(1))
    assert_close(found, np.array([w @ errors**2 / w.sum()]))


@with_and_without_weights
@every_sketch
def test_an_intercept_makes_shifts_of_the_targets_harmless(sketch_case: SketchCase, weighted):
    basis = laplacian_basis(sketch_case, w=weights(weighted))
    shifted = basis_of(basis.factor, basis.Y.map(lambda y: y + 1000))
    first, second = (ridge_for(b, LAM, True) for b in (basis, shifted))
    query = at(first, normal(T, 3, seed=7))
    assert_close(second.mean(query), first.mean(query) + 1000)
    assert_close(second.residuals().host(), first.residuals().host(), scale=1000)


@with_and_without_intercept
@every_sketch
def test_targets_do_not_see_each_other(sketch_case: SketchCase, fit_intercept):
    basis = laplacian_basis(sketch_case, w=uneven(N))
    ridge = ridge_for(basis, LAM, fit_intercept)
    query = at(ridge, normal(T, 3, seed=7))
    together = ridge.mean(query)
    for j in range(Q):
        alone = ridge_for(basis_of(basis.factor, basis.Y.columns(j, j + 1)), LAM, fit_intercept)
        assert_close(alone.mean(query)[:, 0], together[:, j])


@with_and_without_intercept
@every_sketch
@pytest.mark.parametrize("points_a_block", [1, 2, 10, 11])
def test_blocks_of_points_change_nothing(sketch_case, fit_intercept, points_a_block):
    ridge = ridge_for(laplacian_basis(sketch_case), LAM, fit_intercept)
    X_new, backend = normal(11, 3, seed=7), NumpyTiles()
    backend.block_bytes = 8 * points_a_block * (M + 1)
    sample = sample_for(ridge.sample.points.kernel, LAPLACIAN.points(N), None, backend)
    factor = factorize(sample, ridge.basis.factor.sketch, "float64")
    basis = basis_of(factor, backend.tall(ridge.basis.Y.host()))
    assert_same_predictions(ridge_for(basis, LAM, fit_intercept), ridge, X_new)


@every_sketch
def test_no_points_at_all(sketch_case: SketchCase):
    ridge = ridge_for(laplacian_basis(sketch_case), LAM, True)
    query = at(ridge, np.empty((0, 3)))
    assert ridge.mean(query).shape == (0, Q)
    for kind in KINDS:
        assert getattr(ridge, kind)(query).shape == (0,)


@with_and_without_intercept
@every_sketch
@pytest.mark.parametrize("tile", [1, 7])
def test_tiles_and_workers_change_nothing(sketch_case: SketchCase, fit_intercept, tile):
    basis, X = laplacian_basis(sketch_case, w=uneven(N)), LAPLACIAN.points(N)
    other = basis_for(
        basis.sample.points.kernel,
        X,
        basis.Y.host(),
        basis.factor.sketch,
        w=uneven(N),
        backend=NumpyTiles(tile=tile, workers=2),
    )
    ridges = (ridge_for(b, LAM, fit_intercept) for b in (other, basis))
    assert_same_predictions(*ridges, normal(T, 3, seed=7))


@with_and_without_intercept
def test_a_basis_that_was_saved_predicts_the_same(fit_intercept):
    """P, rest and what is known of the constant come from the file, the columns of landmarks are
    made again."""
    basis = laplacian_basis(ROW_CASES[1], w=uneven(N))
    first = ridge_for(basis, LAM, fit_intercept)
    old = basis.factor
    factor = RowFactor(old.sample, old.sketch, old.pivots, old.L)
    again = Basis(factor, basis.Y, basis.spectrum, (basis.P, basis.rest))
    second = ridge_for(again, LAM, fit_intercept)
    if fit_intercept:
        known = first.intercept
        saved = (known.c, known.square, known.offset)
        second = replace(second, intercept=Intercept(again, LAM, saved))
    query = at(first, normal(T, 3, seed=7))
    np.testing.assert_array_equal(second.mean(query), first.mean(query))
    assert_same_predictions(first, second, normal(T, 3, seed=7))


# Precision


@with_and_without_weights
@with_and_without_intercept
@pairs
def test_single_precision_costs_rounding_times_the_condition(
    case, sketch_case, fit_intercept, weighted
):
    """Products in float32, algebra in float64: the error is that of the products times E₁/λ."""
    basis, _, X_new, _, _ = problem(case, sketch_case, w=weights(weighted))
    lam = 0.1 * basis.largest
    double, single = (
        ridge_for(basis, lam, fit_intercept, precision=name) for name in ("float64", "float32")
    )
    query = at(double, X_new)
    assert_close(single.v2(query), double.v2(query), "float32", condition=10)


def smooth_basis(sketch, w=None) -> tuple[Basis, np.ndarray, np.ndarray]:
    """300 points on a line under a wide Gaussian kernel: eigenvalues fall to rounding after a few
    dozen."""
    X = np.sort(np.random.default_rng(0).random((300, 1)), axis=0)
    kernel = Gaussian(0.2).fitted(X)
    basis = basis_for(kernel, X, np.sin(6 * X), sketch, 300, w=w)
    return basis, X, np.linspace(-0.1, 1.1, 41)[:, None]


def accurate_v1(basis: Basis, X, X_new, lam: float, w) -> np.ndarray:
    """By eigenvectors: ε·‖k_x‖/λ is 1e-6 of z at λ = 1e-8."""
    kernel, root = basis.sample.points.kernel, np.sqrt(w / w.sum())
    mu, U = np.linalg.eigh(root[:, None] * kernel(X, X) * root)
    z = (U.T @ (root[:, None] * kernel(X, X_new))) / (mu + lam)[:, None]
    return (z**2).sum(axis=0) / w.sum()


FULL_SKETCHES = [RPCholeskySketch(), LandmarkSketch(), GaussianSketch(300)]
every_full_sketch = pytest.mark.parametrize(
    "sketch", FULL_SKETCHES, ids=lambda sketch: type(sketch).__name__
)


@with_and_without_weights
@every_full_sketch
@pytest.mark.parametrize("lam", [1e-4, 1e-6, 1e-8])
def test_smooth_problem_with_a_small_penalty(sketch, lam, weighted):
    w = weights(weighted, 300)
    basis, X, X_new = smooth_basis(sketch, w)
    ridge = ridge_for(basis, lam)
    expected = accurate_v1(basis, X, X_new, lam, w)
    assert_close_each(ridge.v2(at(ridge, X_new)), expected, "percent")


@with_and_without_weights
@with_and_without_intercept
@every_full_sketch
@pytest.mark.parametrize("lam", [1e-16, 1e-12, 1e-8, 1.0, 1e8])
def test_variances_are_never_negative_and_never_nan(sketch, lam, fit_intercept, weighted):
    basis, _, X_new = smooth_basis(sketch, weights(weighted, 300))
    ridge = ridge_for(basis, lam, fit_intercept)
    query = at(ridge, np.vstack([X_new, [[1e6]]]))
    found = [getattr(ridge, kind)(query) for kind in KINDS]
    one_pass, bound = one_pass_of(ridge, query)
    for variances in (*found, one_pass, bound):
        assert np.isfinite(variances).all()
        assert (variances >= 0).all()
    assert np.isfinite(ridge.mean(query)).all()
    assert 0 <= ridge.df <= 300


# One pass over the data


def spectrum_of(ratio: float, fit_intercept: bool, weighted: bool, precision: str, smooth: bool):
    """A ridge with λ = ratio·E₁ on 300 points, smooth or rough."""
    if smooth:
        basis, _, X_new = smooth_basis(RPCholeskySketch(), weights(weighted, 300))
        X_new = np.vstack([X_new, [[5.0]]])
    else:
        X, X_new = normal(300, 3), np.vstack([normal(40, 3, seed=7), np.full((1, 3), 6.0)])
        w, Y = weights(weighted, 300), targets(300) + 3
        kernel = Laplacian(1.5).fitted(X)
        basis = basis_for(kernel, X, Y, RPCholeskySketch(), 80, w=w)
    lam = ratio * basis.largest
    ridge = ridge_for(basis, lam, fit_intercept, precision=precision)
    reference = ridge_for(basis, lam, fit_intercept)
    return ridge, reference, at(ridge, X_new)


def one_pass_of(ridge: Ridge, query: AtPoints) -> tuple[np.ndarray, np.ndarray]:
    """V2 from k_xᵀMk_x and TᵀMk_x, and the bound on its rounding."""
    first = ridge._first_pass(query, np.ones(len(query)), query.safe(ridge.precision))
    return first.value, first.bound


one_pass_problems = [
    pytest.mark.parametrize("ratio", 10.0 ** np.arange(-12, 1, 2)),
    with_and_without_intercept,
    with_and_without_weights,
    pytest.mark.parametrize("precision", ["float64", "float32"]),
    pytest.mark.parametrize("smooth", [False, True], ids=["rough", "smooth"]),
]


def in_all_problems(test):
    for mark in one_pass_problems:
        test = mark(test)
    return test


@in_all_problems
def test_one_pass_is_within_its_bound_of_the_residual(
    ratio, fit_intercept, weighted, precision, smooth
):
    """And so is the residual in the same precision, up to its own rounding."""
    ridge, reference, query = spectrum_of(ratio, fit_intercept, weighted, precision, smooth)
    value, bound = one_pass_of(ridge, query)
    expected = reference.residual_form(query, 1.0)
    assert (value >= 0).all()
    assert np.isfinite(bound).all()
    assert (np.abs(value - expected) <= bound + tol() * expected).all()


@in_all_problems
def test_v2_keeps_its_budget_whichever_way_it_is_computed(
    ratio, fit_intercept, weighted, precision, smooth, monkeypatch
):
    """From 4,096 rows on, points whose bound allows it are done in one pass, others in two."""
    monkeypatch.setattr(ridge_module, "_FEW", 100)
    ridge, _, query = spectrum_of(ratio, fit_intercept, weighted, precision, smooth)
    two_passes = ridge.residual_form(query, 1.0)
    found = ridge.v2(query)
    assert (found >= 0).all()
    assert (np.abs(found - two_passes) <= 2 * ridge.budget * two_passes).all()


@with_and_without_intercept
@pytest.mark.parametrize("kernel", [Laplacian(1.5), Gaussian(1.0)], ids=repr)
def test_far_from_the_data_one_pass_does_not_underflow(kernel, fit_intercept, monkeypatch):
    """Squares of small kernel values leave single precision: such points are done in float64."""
    monkeypatch.setattr(ridge_module, "_FEW", 100)
    X, X_new = normal(300, 3), np.linspace(3, 80, 60)[:, None] * np.ones(3)
    basis = basis_for(kernel.fitted(X), X, targets(300), RPCholeskySketch(), 80)
    single, double = (
        ridge_for(basis, 0.1 * basis.largest, fit_intercept, precision=name)
        for name in ("float32", "float64")
    )
    query = at(single, X_new)
    found, expected = single.v2(query), double.residual_form(query, 1.0)
    assert (np.abs(found - expected) <= 2 * single.budget * expected + UNDERFLOW**2).all()


def test_one_pass_is_used_where_it_will_do(monkeypatch):
    """A benign problem: no point needs a second pass."""
    ridge, _, query = spectrum_of(0.1, True, True, "float64", False)
    monkeypatch.setattr(ridge_module, "_FEW", 100)
    monkeypatch.setattr(Ridge, "_second_pass", lambda *_: pytest.fail("a second pass"))
    expected, bound = one_pass_of(ridge, query)
    assert (bound <= ridge.budget * expected).all()
    np.testing.assert_array_equal(ridge.v2(query), expected)
    assert ridge.rounded == ridge.budget


def test_few_rows_are_never_done_in_one_pass(monkeypatch):
    ridge, _, query = spectrum_of(0.1, True, True, "float64", False)
    monkeypatch.setattr(Ridge, "_first_pass", lambda *_: pytest.fail("one pass"))
    np.testing.assert_array_equal(ridge.v2(query), ridge.residual_form(query, 1.0))
    assert ridge.rounded == 0


def test_points_whose_bound_is_too_wide_are_done_again(monkeypatch):
    """Beside the data one pass will do; among them, where V2 is small, rounding decides."""
    monkeypatch.setattr(ridge_module, "_FEW", 100)
    basis, _, _ = smooth_basis(RPCholeskySketch())
    ridge = ridge_for(basis, 1e-6 * basis.largest)
    beside, among = np.linspace(1.2, 1.6, 100), np.linspace(0.2, 0.8, 20)
    query = at(ridge, np.concatenate([beside, among])[:, None])
    value, bound = one_pass_of(ridge, query)
    fine = bound <= ridge.budget * value
    np.testing.assert_array_equal(np.flatnonzero(fine), np.arange(100))
    asked = []
    whole = Ridge._second_pass

    def counted(self, some, *products):
        asked.append(len(some))
        return whole(self, some, *products)

    monkeypatch.setattr(Ridge, "_second_pass", counted)
    found = ridge.v2(query)
    assert asked == [20]
    np.testing.assert_array_equal(found[fine], value[fine])


# Hard cases


HARD = {
    "linear": (Linear(), normal(30, 2)),
    "duplicated rows": (Gaussian(1.0), np.repeat(normal(6, 3), 5, axis=0)),
    "one point": (Gaussian(1.0), np.ones((30, 2))),
    "clusters": (
        Gaussian(1.0),
        np.repeat(100 * normal(3, 2), 10, axis=0) + 1e-8 * normal(30, 2, seed=1),
    ),
    "zero": (Linear(), np.zeros((30, 2))),
    "far apart": (Gaussian(1e-3), normal(30, 2)),
}


@with_and_without_weights
@with_and_without_intercept
@every_sketch
@pytest.mark.parametrize(("kernel", "X"), HARD.values(), ids=HARD)
def test_where_the_rank_runs_out_nothing_is_nan(kernel, X, sketch_case, fit_intercept, weighted):
    sketch, w = sketch_case.make(20, 30, 3), weights(weighted, 30)
    basis = basis_for(kernel.fitted(X), X, targets(30), sketch, 20, w=w)
    ridge = ridge_for(basis, 1e-6, fit_intercept)
    query = at(ridge, np.vstack([X, X[:3] + 0.1]))
    one_pass, bound = one_pass_of(ridge, query)
    for found in (*(getattr(ridge, kind)(query) for kind in KINDS), one_pass, bound):
        assert np.isfinite(found).all()
        assert (found >= 0).all()
    assert np.isfinite(ridge.mean(query)).all()
    assert np.isfinite(ridge.leverages().host()).all()
    assert np.isfinite(ridge.residuals().host()).all()


@with_and_without_weights
@with_and_without_intercept
@pytest.mark.parametrize("n", [1, 2])
@every_sketch
def test_one_or_two_points(sketch_case: SketchCase, n, fit_intercept, weighted):
    X, X_new, w = normal(n, 3), normal(T, 3, seed=7), weights(weighted, n)
    kernel = Laplacian(1.5).fitted(X)
    basis = basis_for(kernel, X, targets(n), sketch_case.make(40, n, 3), 40, w=w)
    G, G_x = values(kernel, X, X), values(kernel, X_new, X)
    expected = dense(basis, np.eye(n), X_new, G, G_x, LAM, fit_intercept, w)
    assert_budget(ridge_for(basis, LAM, fit_intercept), X_new, expected)


def test_far_from_the_data_v2_and_v3_vanish_and_gp_does_not():
    X = normal(N, 3)
    basis = basis_for(Gaussian(1.0).fitted(X), X, targets(N), RPCholeskySketch(), N)
    ridge = ridge_for(basis, LAM)
    far = at(ridge, np.full((1, 3), 1e3))
    found = [getattr(ridge, kind)(far)[0] for kind in KINDS]
    assert_close(found, np.array([0.0, 0.0, 1.0, 1.0]))


@with_and_without_weights
def test_far_from_the_data_an_intercept_has_the_variance_of_a_weighted_mean(weighted):
    """Of generalized least squares, 1/1ᵀA⁻¹… for a kernel that is 0 there."""
    X, w = normal(N, 3), weights(weighted)
    kernel = Gaussian(1.0).fitted(X)
    basis = basis_for(kernel, X, targets(N), RPCholeskySketch(), N, w=w)
    ridge = ridge_for(basis, LAM, True)
    ell = weights_of_y(values(kernel, X, X), np.zeros((1, N)), w, LAM, True)
    far = at(ridge, np.full((1, 3), 1e3))
    assert_close(ridge.v2(far), variance_of(ell, w))
    assert_close(ridge.v3(far), variance_of(ell, w))


@pytest.mark.parametrize("sketch", [RPCholeskySketch(), GaussianSketch(0)], ids=repr)
def test_an_empty_sketch_predicts_the_intercept(sketch):
    X, Y, w = normal(N, 3), targets(N), uneven(N)
    basis = basis_for(Gaussian(1.0).fitted(X), X, Y, sketch, w=w)
    assert basis.largest == 1.0
    with_one, without = ridge_for(basis, LAM, True), ridge_for(basis, LAM)
    query = at(with_one, X[:2])
    assert_close(with_one.mean(query), np.full((2, 1), w @ Y[:, 0] / w.sum()))
    assert_close(without.mean(query), np.zeros((2, 1)))
    assert_close(with_one.df, 1.0)
