"""The fitted state against exact.py and dense bordered systems: means, variances, intercepts, leave-one-out, hard cases."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from helpers import (
    KERNEL_CASES,
    ROW_CASES,
    SKETCH_CASES,
    KernelCase,
    SketchCase,
    assert_close,
    assert_close_each,
    matrix_of,
    mixing,
    normal,
    nystrom,
    state_of,
    targets,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge as LinearRidge

from sketchridge import exact
from sketchridge import state as state_module
from sketchridge.backends import NumpyTiles
from sketchridge.kernels import Gaussian, Laplacian, Linear
from sketchridge.sketches import ArraySketch, GaussianSketch, LandmarkSketch, RPCholeskySketch
from sketchridge.state import Ridge, State, build
from sketchridge.tuning import loo_errors

N, M, T, Q, LAM = 25, 8, 6, 2, 0.02
KINDS = ("v2", "v3", "gp", "bias2")

every_kernel = pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
every_sketch = pytest.mark.parametrize("sketch_case", SKETCH_CASES, ids=str)
with_and_without_intercept = pytest.mark.parametrize("fit_intercept", [False, True], ids=["plain", "intercept"])


def ridge_of(state: State, lam: float = LAM, fit_intercept: bool = False) -> Ridge:
    return Ridge(state, lam, fit_intercept, state.backend)


def problem(case: KernelCase, sketch_case: SketchCase, n: int = N, m: int = M):
    """A state, its S (m, n), test points, G and k(x, X) (t, n)."""
    X, X_new = case.points(n), case.points(T, seed=7)
    kernel = case.fitted(X)
    state = state_of(kernel, X, targets(n, Q) + 3, sketch_case.make(m, n, 3), m)
    return state, matrix_of(state.sketch, n), X_new, kernel(X, X), kernel(X_new, X)


def laplacian_state(sketch_case: SketchCase, m: int = M) -> State:
    return problem(KERNEL_CASES[2], sketch_case, m=m)[0]


def dense_weights(G_hat: np.ndarray, right: np.ndarray, lam: float, fit_intercept: bool) -> np.ndarray:
    """w with (Ĝ/n + λ)w = right/n or, with an intercept, the bordered system that also asks for 1ᵀw = 1: (t, n)."""
    n = len(G_hat)
    A = G_hat / n + lam * np.eye(n)
    if not fit_intercept:
        return np.linalg.solve(A, right.T / n).T
    bordered = np.block([[A, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    return np.linalg.solve(bordered, np.vstack([right.T / n, np.ones(len(right))]))[:n].T


def dense_budget(state: State, S, X_new, G, G_x, lam: float, fit_intercept: bool) -> dict[str, np.ndarray]:
    """Everything a Ridge predicts, from n×n matrices."""
    n = len(G)
    G_hat, G_x_hat = nystrom(G, S), nystrom(G, S, G_x)
    explained = np.einsum("ij,ij->i", G_x @ S.T, np.linalg.lstsq(S @ G @ S.T, S @ G_x.T, rcond=None)[0].T)
    w, w_hat = (dense_weights(G_hat, right, lam, fit_intercept) for right in (G_x, G_x_hat))
    c = np.maximum(state.kernel.diag(X_new) - explained, 0)
    v3 = (w_hat**2).sum(axis=1)
    bias2 = c + explained - 2 * (w_hat * G_x_hat).sum(axis=1) + np.einsum("ti,ij,tj->t", w_hat, G_hat, w_hat)
    return {"mean": w_hat @ state.Y, "v2": (w**2).sum(axis=1), "v3": v3, "bias2": bias2, "gp": bias2 + n * lam * v3}


@every_sketch
@every_kernel
def test_agrees_with_the_specification(case: KernelCase, sketch_case: SketchCase):
    state, S, X_new, G, G_x = problem(case, sketch_case)
    ridge = ridge_of(state)
    assert_close(ridge.v2(X_new), exact.v2(G / N, S, G_x.T, LAM))
    assert_close(ridge.v3(X_new), exact.v3(G / N, S, G_x.T, LAM))
    assert_close(ridge.mean(X_new), exact.sketched_mean(G / N, S, G_x.T, state.Y, LAM))


@with_and_without_intercept
@every_sketch
@every_kernel
def test_agrees_with_a_dense_bordered_system(case: KernelCase, sketch_case: SketchCase, fit_intercept):
    state, S, X_new, G, G_x = problem(case, sketch_case)
    ridge = ridge_of(state, LAM, fit_intercept)
    expected = dense_budget(state, S, X_new, G, G_x, LAM, fit_intercept)
    assert_close(ridge.mean(X_new), expected["mean"])
    for kind in KINDS:
        assert_close(getattr(ridge, kind)(X_new), expected[kind], scale=expected["gp"].max() if kind == "bias2" else None)


@with_and_without_intercept
@every_sketch
def test_smoother_is_dense_algebras(sketch_case: SketchCase, fit_intercept):
    state, S, _, G, _ = problem(KERNEL_CASES[2], sketch_case)
    ridge = ridge_of(state, LAM, fit_intercept)
    G_hat = nystrom(G, S)
    smoother = dense_weights(G_hat, G_hat, LAM, fit_intercept)
    assert_close(ridge.residuals(), state.Y - smoother @ state.Y)
    assert_close(ridge.leverages(), np.diagonal(smoother))
    assert_close(np.array(ridge.df), np.trace(smoother))
    assert_close(ridge.mean(state.X), smoother @ state.Y)


@every_sketch
def test_eigenvalues_trace_and_tau(sketch_case: SketchCase):
    state, S, _, G, _ = problem(KERNEL_CASES[2], sketch_case)
    K_hat = nystrom(G, S) / N
    assert_close(state.E, np.linalg.eigvalsh(K_hat)[::-1][: len(state.E)])
    assert_close(np.array([state.trace, state.tau, state.largest]), np.array([1, 1 - np.trace(K_hat), state.E[0]]))


def full_states():
    return [case for case in SKETCH_CASES if case.id not in ("srht", "fourier")]  # whose n rows need not span everything


@pytest.mark.parametrize("sketch_case", full_states(), ids=str)
@every_kernel
def test_a_full_sketch_gives_v1(case: KernelCase, sketch_case: SketchCase):
    """In any basis of the whole space: rounding is amplified by the condition number of S, at most 1e3 here."""
    state, S, X_new, G, G_x = problem(case, sketch_case, n=12, m=24 if sketch_case.id not in ("landmarks", "rpcholesky") else 12)
    ridge, v1 = ridge_of(state), exact.v1(G / 12, G_x.T, LAM)
    condition = np.linalg.cond(S)
    assert condition < 1e3
    for kind in ("v2", "v3"):
        assert_close(getattr(ridge, kind)(X_new), v1, condition=condition)
    assert_close(ridge.mean(X_new), exact.mean(G / 12, G_x.T, state.Y, LAM), condition=condition)
    assert_close(
        ridge.gp(X_new), state.kernel.diag(X_new) - (G_x * np.linalg.solve(G + 12 * LAM * np.eye(12), G_x.T).T).sum(axis=1)
    )


@with_and_without_intercept
@every_sketch
@every_kernel
def test_gp_is_bias_plus_variance(case: KernelCase, sketch_case: SketchCase, fit_intercept):
    state, _, X_new, _, _ = problem(case, sketch_case)
    ridge = ridge_of(state, LAM, fit_intercept)
    assert_close(ridge.gp(X_new), ridge.bias2(X_new) + N * LAM * ridge.v3(X_new))


@with_and_without_intercept
@pytest.mark.parametrize("sketch_case", ROW_CASES, ids=str)
def test_gp_is_bias_plus_v2_for_a_full_sketch(sketch_case: SketchCase, fit_intercept):
    state, _, X_new, _, _ = problem(KERNEL_CASES[2], sketch_case, m=N)
    ridge = ridge_of(state, LAM, fit_intercept)
    assert_close(ridge.gp(X_new), ridge.bias2(X_new) + N * LAM * ridge.v2(X_new))


@with_and_without_intercept
@given(m=st.integers(1, M), condition=st.floats(1, 1e3), seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_only_the_row_space_of_the_sketch_matters(fit_intercept, m, condition, seed):
    X, X_new, S = normal(N, 3), normal(T, 3, seed=7), normal(m, N, seed)
    states = [
        state_of(Laplacian(1.5).fitted(X), X, targets(N), ArraySketch(rows), m) for rows in (S, mixing(m, seed, condition) @ S)
    ]
    plain, mixed = (ridge_of(state, LAM, fit_intercept) for state in states)
    assert_close(mixed.mean(X_new), plain.mean(X_new), condition=condition)
    for kind in KINDS:
        assert_close(getattr(mixed, kind)(X_new), getattr(plain, kind)(X_new), condition=condition)


def assert_same_predictions(first: Ridge, second: Ridge, X_new: np.ndarray) -> None:
    assert_close(first.mean(X_new), second.mean(X_new))
    for kind in KINDS:
        assert_close(getattr(first, kind)(X_new), getattr(second, kind)(X_new))


@with_and_without_intercept
@every_sketch
@given(ends=st.lists(st.integers(1, N), max_size=4))
@settings(max_examples=10, deadline=None)
def test_batch_is_incremental(sketch_case: SketchCase, fit_intercept, ends):
    X, Y, X_new = normal(N, 3), targets(N, Q), normal(T, 3, seed=7)
    kernel = Laplacian(1.5).fitted(X)
    stops = [*sorted({max(end, M) for end in ends}), N]
    state = state_of(kernel, X[: stops[0]], Y[: stops[0]], sketch_case.make(M, stops[0], 3), M)
    for start, stop in pairwise(stops):
        state = state.extended(X[start:stop], Y[start:stop])
    batch = build(state.backend, kernel, X, Y, state.sketch)
    assert_same_predictions(ridge_of(state, LAM, fit_intercept), ridge_of(batch, LAM, fit_intercept), X_new)


@every_sketch
def test_old_states_are_not_changed_by_new_ones(sketch_case: SketchCase):
    """Pure: state in, state out."""
    state = laplacian_state(sketch_case)
    before = ridge_of(state).v2(state.X[:T]), state.factor.F.copy()
    larger = state.extended(normal(5, 3, seed=9), targets(5, Q))
    if sketch_case.id != "array":
        larger.grown(M + 4)
        state.grown(M + 4)
    np.testing.assert_array_equal(ridge_of(state).v2(state.X[:T]), before[0])
    np.testing.assert_array_equal(state.factor.F, before[1])


@with_and_without_intercept
@every_sketch
def test_leave_one_out_is_really_leaving_one_out(sketch_case: SketchCase, fit_intercept):
    """For a fixed alpha and sketch: a linear ridge on the features without one row."""
    state = laplacian_state(sketch_case)
    ridge, F = ridge_of(state, LAM, fit_intercept), state.factor.F

    def left_out(i: int) -> np.ndarray:
        model = LinearRidge(alpha=N * LAM, fit_intercept=fit_intercept, solver="svd", tol=0)
        return state.Y[i] - model.fit(np.delete(F, i, 0), np.delete(state.Y, i, 0)).predict(F[[i]])[0]

    errors = np.array([left_out(i) for i in range(N)])
    assert_close(ridge.residuals() / (1 - ridge.leverages())[:, None], errors)
    assert_close(loo_errors(state, np.array([LAM]), fit_intercept), np.array([(errors**2).mean()]))


def test_leave_one_out_of_a_full_sketch_is_that_of_kernel_ridge_regression():
    X, Y = normal(N, 3), targets(N)
    state = state_of(Gaussian(1.0).fitted(X), X, Y, RPCholeskySketch(), N)

    def left_out(i: int) -> float:
        model = KernelRidge(alpha=N * LAM, kernel="rbf", gamma=0.5).fit(np.delete(X, i, 0), np.delete(Y, i, 0))
        return (Y[i] - model.predict(X[[i]])[0]).item()

    assert_close(loo_errors(state, np.array([LAM]), False), np.array([np.mean([left_out(i) ** 2 for i in range(N)])]))


@every_sketch
def test_an_intercept_makes_shifts_of_the_targets_harmless(sketch_case: SketchCase):
    state = laplacian_state(sketch_case)
    shifted = build(state.backend, state.kernel, state.X, state.Y + 1000, state.sketch)
    first, second = (ridge_of(s, LAM, True) for s in (state, shifted))
    X_new = normal(T, 3, seed=7)
    assert_close(second.mean(X_new), first.mean(X_new) + 1000)
    assert_close(second.residuals(), first.residuals(), scale=1000)


@with_and_without_intercept
@every_sketch
def test_targets_do_not_see_each_other(sketch_case: SketchCase, fit_intercept):
    state = laplacian_state(sketch_case)
    X_new = normal(T, 3, seed=7)
    together = ridge_of(state, LAM, fit_intercept).mean(X_new)
    for j in range(Q):
        alone = build(state.backend, state.kernel, state.X, state.Y[:, [j]], state.sketch)
        assert_close(ridge_of(alone, LAM, fit_intercept).mean(X_new)[:, 0], together[:, j])


@with_and_without_intercept
@every_sketch
def test_blocks_of_points_change_nothing(sketch_case: SketchCase, fit_intercept, monkeypatch):
    ridge = ridge_of(laplacian_state(sketch_case), LAM, fit_intercept)
    X_new = normal(11, 3, seed=7)
    whole = [getattr(ridge, kind)(X_new) for kind in KINDS]
    mean, leverages = ridge.mean(X_new), ridge.leverages()
    monkeypatch.setattr(state_module, "_BLOCK_BYTES", 8 * 2 * (M + 1))
    for kind, expected in zip(KINDS, whole, strict=True):
        assert_close(getattr(ridge, kind)(X_new), expected)
    assert_close(ridge.mean(X_new), mean)
    assert_close(ridge.leverages(), leverages)


@with_and_without_intercept
@every_sketch
@pytest.mark.parametrize("tile", [1, 7])
def test_tiles_and_workers_change_nothing(sketch_case: SketchCase, fit_intercept, tile):
    state = laplacian_state(sketch_case)
    other = build(NumpyTiles(tile=tile, workers=2), state.kernel, state.X, state.Y, state.sketch)
    assert_same_predictions(ridge_of(other, LAM, fit_intercept), ridge_of(state, LAM, fit_intercept), normal(T, 3, seed=7))


@with_and_without_intercept
@every_sketch
@every_kernel
def test_single_precision_products_cost_rounding_times_the_condition(case: KernelCase, sketch_case: SketchCase, fit_intercept):
    """Products in float32, algebra in float64: the error is that of the products times E₁/λ."""
    state, _, X_new, _, _ = problem(case, sketch_case)
    lam = 0.1 * state.largest
    single = Ridge(state, lam, fit_intercept, NumpyTiles("float32"))
    assert_close(single.v2(X_new), ridge_of(state, lam, fit_intercept).v2(X_new), "float32", condition=10)


def smooth_state(sketch, lam: float) -> tuple[Ridge, np.ndarray, np.ndarray]:
    """300 points on a line under a wide Gaussian kernel: eigenvalues fall to rounding after a few dozen."""
    X, X_new = np.sort(np.random.default_rng(0).random((300, 1)), axis=0), np.linspace(-0.1, 1.1, 41)[:, None]
    kernel = Gaussian(0.2).fitted(X)
    state = state_of(kernel, X, np.sin(6 * X), sketch, 300)
    mu, U = np.linalg.eigh(kernel(X, X) / 300)
    z = (U.T @ kernel(X, X_new)) / (mu + lam)[:, None]  # ε·‖k_x‖/λ is 1e-6 of z at λ = 1e-8
    return ridge_of(state, lam), X_new, (z**2).sum(axis=0) / 300**2


FULL_SKETCHES = [RPCholeskySketch(), LandmarkSketch(), GaussianSketch(300)]


@pytest.mark.parametrize("sketch", FULL_SKETCHES, ids=lambda sketch: type(sketch).__name__)
@pytest.mark.parametrize("lam", [1e-4, 1e-6, 1e-8])
def test_smooth_problem_with_a_small_penalty(sketch, lam):
    ridge, X_new, v1 = smooth_state(sketch, lam)
    assert_close_each(ridge.v2(X_new), v1, "per cent")


@with_and_without_intercept
@pytest.mark.parametrize("sketch", FULL_SKETCHES, ids=lambda sketch: type(sketch).__name__)
@pytest.mark.parametrize("lam", [1e-16, 1e-12, 1e-8, 1.0, 1e8])
def test_variances_are_never_negative_and_never_nan(sketch, lam, fit_intercept):
    plain, X_new, _ = smooth_state(sketch, lam)
    ridge = ridge_of(plain.state, lam, fit_intercept)
    for kind in KINDS:
        values = getattr(ridge, kind)(np.vstack([X_new, [[1e6]]]))
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    assert np.isfinite(ridge.mean(X_new)).all()
    assert 0 <= ridge.df <= 300


def duplicated_rows() -> np.ndarray:
    return np.repeat(normal(6, 3), 5, axis=0)


HARD = {
    "linear": (Linear(), normal(30, 2)),
    "duplicated rows": (Gaussian(1.0), duplicated_rows()),
    "one point": (Gaussian(1.0), np.ones((30, 2))),
    "clusters": (Gaussian(1.0), np.repeat(100 * normal(3, 2), 10, axis=0) + 1e-8 * normal(30, 2, seed=1)),
    "zero": (Linear(), np.zeros((30, 2))),
    "far apart": (Gaussian(1e-3), normal(30, 2)),
}


@with_and_without_intercept
@every_sketch
@pytest.mark.parametrize(("kernel", "X"), HARD.values(), ids=HARD)
def test_where_the_rank_runs_out_nothing_is_nan(kernel, X, sketch_case: SketchCase, fit_intercept):
    state = state_of(kernel.fitted(X), X, targets(30), sketch_case.make(20, 30, 3), 20)
    ridge = ridge_of(state, 1e-6, fit_intercept)
    for kind in KINDS:
        values = getattr(ridge, kind)(np.vstack([X, X[:3] + 0.1]))
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    assert np.isfinite(ridge.mean(X)).all()
    assert np.isfinite(ridge.leverages()).all()


@with_and_without_intercept
@pytest.mark.parametrize("n", [1, 2])
@every_sketch
def test_one_or_two_points(sketch_case: SketchCase, n, fit_intercept):
    X, X_new = normal(n, 3), normal(T, 3, seed=7)
    state = state_of(Laplacian(1.5).fitted(X), X, targets(n), sketch_case.make(40, n, 3), 40)
    G, G_x = state.kernel(X, X), state.kernel(X_new, X)
    expected = dense_budget(state, np.eye(n), X_new, G, G_x, LAM, fit_intercept)
    ridge = ridge_of(state, LAM, fit_intercept)
    assert_close(ridge.mean(X_new), expected["mean"])
    assert_close(ridge.v2(X_new), expected["v2"])


def test_far_from_the_data_v2_and_v3_vanish_and_gp_does_not():
    state = state_of(Gaussian(1.0).fitted(normal(N, 3)), normal(N, 3), targets(N), RPCholeskySketch(), N)
    ridge, far = ridge_of(state), np.full((1, 3), 1e3)
    assert_close(np.r_[ridge.v2(far), ridge.v3(far), ridge.gp(far), ridge.bias2(far)], np.array([0.0, 0.0, 1.0, 1.0]))


def test_an_empty_state_predicts_the_intercept():
    X, Y = normal(N, 3), targets(N)
    state = build(NumpyTiles(), Gaussian(1.0).fitted(X), X, Y, RPCholeskySketch())
    assert state.largest == 1.0
    assert_close(ridge_of(state, LAM, True).mean(X[:2]), np.full((2, 1), Y.mean()))
    assert_close(ridge_of(state).mean(X[:2]), np.zeros((2, 1)))
