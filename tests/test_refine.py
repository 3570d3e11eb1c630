"""Refinement: it reaches V1 and the exact mean, ends where it is hopeless, and none of its bounds
is ever violated."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from heard import at_most
from helpers import (
    ENTRY_CASES,
    SKETCH_CASES,
    UNDERFLOW,
    Long,
    assert_close,
    at,
    basis_for,
    long_std,
    matrix_of,
    normal,
    nystrom,
    random_problem,
    ridge_for,
    targets,
    uneven,
    unit_cube,
    values,
    variance_of,
    weights_of_y,
)
from numpy.testing import assert_allclose

from sketchridge import ExactKernelRidge, SketchedKernelRidge, exact
from sketchridge.backends import NumpyTiles
from sketchridge.kernels import Gaussian, Laplacian, Polynomial
from sketchridge.refine import PrecisionError, System, exact_mean, refined_variance, v1
from sketchridge.sketches import RPCholeskySketch

Array = np.ndarray
N, M, T, LAM = 60, 12, 7, 1e-3

every_sketch = pytest.mark.parametrize("sketch_case", SKETCH_CASES, ids=str)
with_and_without_intercept = pytest.mark.parametrize(
    "fit_intercept", [False, True], ids=["plain", "intercept"]
)
with_and_without_weights = pytest.mark.parametrize(
    "weighted", [False, True], ids=["even", "weighted"]
)


def weights(weighted: bool, n: int = N) -> Array:
    return uneven(n) if weighted else np.ones(n)


def small(
    fit_intercept: bool,
    weighted: bool,
    *,
    lam: float = LAM,
    sketch_case: Any = None,
    size: int = M,
):
    """A ridge, a question, and the weights ℓ of exact predictions."""
    X, X_new, w = normal(N, 3), normal(T, 3, seed=7), weights(weighted)
    kernel = Laplacian(1.5).fitted(X)
    sketch = RPCholeskySketch() if sketch_case is None else sketch_case.make(size, N, 3)
    basis = basis_for(kernel, X, targets(N, 2) + 3, sketch, size, w=w)
    ridge = ridge_for(basis, lam, fit_intercept)
    ell = weights_of_y(values(kernel, X, X), values(kernel, X_new, X), w, lam, fit_intercept)
    return ridge, at(ridge, X_new), ell


# The system


@with_and_without_weights
@with_and_without_intercept
def test_the_system_is_that_of_the_dense_matrices(fit_intercept, weighted):
    ridge, query, _ = small(fit_intercept, weighted)
    w, X = weights(weighted), normal(N, 3)
    root = np.sqrt(w / w.sum())
    G = values(ridge.sample.points.kernel, X, X)
    K, K_hat = (
        root[:, None] * A * root for A in (G, nystrom(G, matrix_of(ridge.basis.factor.sketch, N)))
    )
    system = System(ridge, "float64")
    B = query.columns(ridge.sample).scaled(system.root)
    R = ridge.sample.backend.tall(normal(N, 4))
    Z = np.linalg.solve(K_hat + LAM * np.eye(N), R.host())
    assert_close(system.product(R).host(), (K + LAM * np.eye(N)) @ R.host())
    if not fit_intercept:
        assert_close(system.precondition(R).host(), Z)
        assert system.project(R) is R
    else:
        u = np.linalg.solve(K_hat + LAM * np.eye(N), root)
        u = u / (root @ u)
        assert_close(system.along.host()[:, 0], u)
        assert_close(system.precondition(R).host(), Z - np.outer(u, root @ Z))
        assert_close(root @ system.project(R).host(), np.zeros(4), scale=1.0)
        assert_close(root @ system.normalized(R).host(), np.ones(4))
    for theta in (1.0, 0.5, 0.2):
        start = system.start(B, ridge.features(query), theta).host()
        assert_close((start**2).sum(axis=0) / w.sum(), ridge.mixed(query, theta))


@with_and_without_intercept
def test_directions_are_conjugate(fit_intercept):
    ridge, query, _ = small(fit_intercept, True)
    system = System(ridge, "float64")
    B = query.columns(ridge.sample).scaled(system.root)
    P, Q = system.directions(system.residual(B, system.start(B, None, 1.0)), None, None)
    assert_close(P.gram(Q), np.eye(P.shape[1]))
    again, image = system.directions(B, P, Q)
    assert_close(P.gram(image), np.zeros((P.shape[1], again.shape[1])), scale=1.0)


def test_dependent_directions_are_left_out():
    ridge, query, _ = small(False, False)
    system = System(ridge, "float64")
    B = query.columns(ridge.sample)
    twice = B.beside(B, B.map(lambda b: 0 * b))
    P, Q = system.directions(twice, None, None)
    assert P.shape == Q.shape == (N, T)


def test_directions_whose_curvature_rounding_spoiled_are_left_out(monkeypatch):
    """K + λI has no curvature below λ; a product that says so is not believed."""
    ridge, query, _ = small(False, False)
    signs = ridge.sample.backend.tall(np.where(np.arange(N) < 3, 1.0, -1.0)[:, None])
    monkeypatch.setattr(System, "product", lambda self, Z: Z.scaled(signs))
    P, Q = System(ridge, "float64").directions(query.columns(ridge.sample), None, None)
    assert P.shape[1] == Q.shape[1] <= 3
    assert_close(P.gram(Q), np.eye(P.shape[1]))


# It reaches V1


@with_and_without_weights
@with_and_without_intercept
@every_sketch
def test_many_steps_reach_v1(sketch_case, fit_intercept, weighted):
    ridge, query, ell = small(fit_intercept, weighted, sketch_case=sketch_case)
    expected = variance_of(ell, weights(weighted))
    found = refined_variance(ridge, query, theta=0.5, steps=60)
    assert_close(found.variance, expected)
    assert (np.abs(np.sqrt(found.variance) - np.sqrt(expected)) <= found.bound).all()
    assert (found.bound <= 1e-8 * np.sqrt(expected)).all()


@with_and_without_weights
@with_and_without_intercept
@pytest.mark.parametrize("step", ["float64", "float32"])
@pytest.mark.parametrize("first", ["float64", "float32"])
@pytest.mark.parametrize("wanted", [1e-1, 1e-4, 1e-8])
def test_v1_keeps_its_tolerance_whatever_precision_helps(
    wanted, first, step, fit_intercept, weighted
):
    ridge, query, ell = small(fit_intercept, weighted)
    found = v1(ridge, query, theta=0.5, tol=wanted, first=first, step=step)
    std = np.sqrt(variance_of(ell, weights(weighted)))
    assert_allclose(found.variance, std**2, rtol=wanted)
    assert (np.abs(np.sqrt(found.variance) - std) <= found.bound).all()
    assert (found.bound <= (np.sqrt(1 + wanted) - 1) * np.sqrt(found.variance) * (1 + 1e-6)).all()


@with_and_without_weights
@with_and_without_intercept
@pytest.mark.parametrize("step", ["float64", "float32"])
@pytest.mark.parametrize(
    ("lam", "wanted"), [(1e-3, 1e-6), (1e-4, 1e-6), (1e-5, 1e-4), (1e-6, 1e-4)]
)
def test_a_rounded_first_residual_spoils_no_start_that_is_better(
    lam, wanted, step, fit_intercept, weighted
):
    ridge, query, ell = small(fit_intercept, weighted, lam=lam, size=N)
    found = v1(ridge, query, theta=0.5, tol=wanted, first="float32", step=step)
    std = np.sqrt(variance_of(ell, weights(weighted)))
    assert_allclose(found.variance, std**2, rtol=wanted)
    assert (np.abs(np.sqrt(found.variance) - std) <= found.bound).all()


@with_and_without_weights
@with_and_without_intercept
@every_sketch
@pytest.mark.parametrize("step", ["float64", "float32"])
def test_exact_mean_is_that_of_dense_algebra(sketch_case, step, fit_intercept, weighted):
    ridge, query, ell = small(fit_intercept, weighted, sketch_case=sketch_case)
    omega, offset = exact_mean(ridge, tol=1e-10, step=step)
    found = offset + query.against(ridge.sample, omega, "float64").host()
    assert_close(found, ell @ ridge.basis.Y.host(), "pcg")
    if not fit_intercept:
        np.testing.assert_array_equal(offset, np.zeros(2))


@pytest.mark.parametrize("c", [1e-3, 7.0])
@with_and_without_intercept
def test_weights_times_a_constant_scale_variances_and_bounds_only(fit_intercept, c):
    X, X_new, w = normal(N, 3), normal(T, 3, seed=7), uneven(N)
    kernel = Laplacian(1.5).fitted(X)
    one, other = (
        ridge_for(
            basis_for(kernel, X, targets(N), RPCholeskySketch(), M, w=f * w), LAM, fit_intercept
        )
        for f in (1.0, c)
    )
    query = at(one, X_new)
    first, second = (refined_variance(ridge, query, theta=0.5, steps=2) for ridge in (one, other))
    assert_close(c * second.variance, first.variance)
    assert_close(np.sqrt(c) * second.bound, first.bound)
    means = [exact_mean(ridge, tol=1e-10, step="float64") for ridge in (one, other)]
    assert_close(means[1][0].host(), means[0][0].host(), "pcg")


@with_and_without_intercept
def test_a_weight_is_a_repetition(fit_intercept):
    times = 1 + np.arange(N) % 3
    X, Y, X_new = normal(N, 3), targets(N), normal(T, 3, seed=7)
    kernel = Laplacian(1.5).fitted(X)
    sketch = RPCholeskySketch(indices=np.arange(M))
    first = np.concatenate([[0], np.cumsum(times)[:-1]])
    repeated = RPCholeskySketch(indices=first[:M])
    X_all, Y_all = np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0)
    one = ridge_for(basis_for(kernel, X, Y, sketch, w=times.astype(float)), LAM, fit_intercept)
    other = ridge_for(basis_for(kernel, X_all, Y_all, repeated), LAM, fit_intercept)
    for steps in (0, 1, 3):
        found = [
            refined_variance(ridge, at(ridge, X_new), theta=0.5, steps=steps)
            for ridge in (one, other)
        ]
        assert_close(found[0].variance, found[1].variance)


# Through the estimator


def problem(n: int = 400, d: int = 3, seed: int = 0) -> tuple[Array, Array, Array]:
    X = unit_cube(n, d, seed)
    noise = 0.1 * np.random.default_rng(seed + 1).standard_normal(n)
    return X, np.sin(3 * X.sum(axis=1)) + noise + 3, unit_cube(30, d, seed + 2)


def pair(
    lam: float,
    *,
    fit_intercept: bool = False,
    weighted: bool = False,
    n: int = 400,
    **options: Any,
) -> tuple[ExactKernelRidge, SketchedKernelRidge, Array]:
    X, y, X_new = problem(n)
    w = weights(weighted, n)
    common = {
        "bandwidth": 0.3,
        "alpha": w.sum() * lam,
        "fit_intercept": fit_intercept,
        "noise_variance": 1.0,
    }
    exact = ExactKernelRidge(**common).fit(X, y, w)
    sketched = SketchedKernelRidge(**common, random_state=0, **{"sketch_size": 40, **options})
    return exact, sketched.fit(X, y, w), X_new


@with_and_without_weights
@with_and_without_intercept
@pytest.mark.parametrize("lam", [1e-2, 1e-4, 1e-6])
def test_v1_is_exact_to_its_tolerance(lam: float, fit_intercept, weighted) -> None:
    exact, sketched, X_new = pair(lam, fit_intercept=fit_intercept, weighted=weighted)
    expected = exact.variance(X_new)
    for wanted in (1e-1, 1e-3, 1e-5):
        assert_allclose(sketched.variance(X_new, kind="v1", tol=wanted), expected, rtol=wanted)


@pytest.mark.parametrize("sketch", ["rpcholesky", "landmarks", "gaussian", "srht"])
def test_each_step_comes_closer(sketch: str) -> None:
    exact, sketched, X_new = pair(1e-3, sketch=sketch)
    v_1 = exact.variance(X_new)
    refined = [sketched.variance(X_new, refine=steps) for steps in (0, 1, 3, 6)]
    errors = [np.abs(v / v_1 - 1).max() for v in refined]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3 * errors[0]


@with_and_without_weights
@with_and_without_intercept
def test_no_step_is_v2(fit_intercept, weighted) -> None:
    _, sketched, X_new = pair(1e-3, fit_intercept=fit_intercept, weighted=weighted, dtype="float64")
    refined, bound = sketched.variance(X_new, return_bound=True)
    assert_close(refined, sketched.variance(X_new))
    assert (bound > 0).all()


@with_and_without_weights
@with_and_without_intercept
@pytest.mark.parametrize("lam", [1e-2, 1e-5])
def test_pcg_mean_is_the_exact_mean(lam: float, fit_intercept, weighted) -> None:
    exact, sketched, X_new = pair(lam, fit_intercept=fit_intercept, weighted=weighted, solver="pcg")
    assert_close(sketched.predict(X_new), exact.predict(X_new), "pcg")


PCG = {"bandwidth": 0.3, "alpha": 0.4, "sketch_size": 40, "solver": "pcg", "random_state": 0}


def test_pcg_mean_of_several_targets() -> None:
    X, y, X_new = problem()
    Y = np.column_stack([y, y**2, np.zeros_like(y)])
    exact = ExactKernelRidge(bandwidth=0.3, alpha=0.4).fit(X, Y)
    assert_close(SketchedKernelRidge(**PCG).fit(X, Y).predict(X_new), exact.predict(X_new), "pcg")


def test_pcg_mean_after_partial_fit() -> None:
    X, y, X_new = problem()
    sketched = SketchedKernelRidge(**PCG).fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    exact = ExactKernelRidge(bandwidth=0.3, alpha=0.4).fit(X, y)
    assert_close(sketched.predict(X_new), exact.predict(X_new), "pcg")


def test_bounds_scale_with_the_noise_of_each_target() -> None:
    X, y, X_new = problem()
    sketched = SketchedKernelRidge(
        bandwidth=0.3, alpha=0.4, sketch_size=40, noise_variance=[1.0, 4.0], random_state=0
    ).fit(X, np.column_stack([y, y]))
    variance, bound = sketched.variance(X_new, return_bound=True)
    assert variance.shape == bound.shape == (30, 2)
    assert_close(variance[:, 1], 4 * variance[:, 0])
    assert_close(bound[:, 1], 2 * bound[:, 0])


def test_far_from_the_data_variance_and_bound_are_zero() -> None:
    _, sketched, _ = pair(1e-3)
    variance, bound = sketched.variance(np.full((2, 3), 1e4), kind="v1", return_bound=True)
    assert not variance.any()
    assert not bound.any()


@pytest.mark.parametrize("sketch", [str(case) for case in ENTRY_CASES if str(case) != "array"])
def test_a_far_point_spoils_no_other(sketch: str) -> None:
    """k_x of the far ones is 1e-183 and 1e-282, where single precision would end at 1e-34."""
    X = np.linspace(0, 1, 50)[:, None]
    model = SketchedKernelRidge(
        "gaussian", bandwidth=0.1, alpha=1.0, sketch=sketch, sketch_size=10, noise_variance=1.0,
        random_state=0, solver="sketch", fit_intercept=False,
    ).fit(X, np.sin(6 * X[:, 0]))  # fmt: skip
    assert model.dtype_ == "float32"
    near, far = [[0.5]], [[1.9], [3.9], [4.6], [60.0]]
    for kind in ("v1", "vbar", "vtheta"):
        alone = model.variance(near, kind, return_bound=True)
        variance, bound = model.variance(near + far, kind, return_bound=True)
        assert_close(variance[0], alone[0][0], "percent")
        assert (variance[1:] < 1e-30).all()
        assert (bound[1:] < 1e-15).all()
        assert not variance[-1] + bound[-1]
    lam = model.lambda_
    G, k = (np.exp(-((X - A) ** 2) / 0.02) for A in (X.T, np.array([[1.9]])))
    S = matrix_of(model.sketch_, 50)
    for kind in ("v3", "vbar"):
        expected = getattr(exact, kind)(G / 50, S, k, lam)
        assert_close(model.variance([[1.9]], kind), expected, "percent")


def test_a_point_where_the_kernel_is_huge_spoils_no_other() -> None:
    """k_x is 1e40, more than steps in single precision hold."""
    X = unit_cube(40, 2)
    given = {"alpha": 1.0, "sketch_size": 8, "noise_variance": 1.0, "fit_intercept": True}
    model = SketchedKernelRidge(Polynomial(degree=5), random_state=0, **given).fit(X, X[:, 0])
    assert model.dtype_ == "float32"
    alone = model.variance(X[:2], "v1", tol=1e-3)
    variance = model.variance(np.vstack([X[:2], [[1e8, 1e8]]]), "v1", tol=1e-3)
    assert_allclose(variance[:2], alone, rtol=2e-3)
    exactly = ExactKernelRidge(
        Polynomial(degree=5), alpha=1.0, noise_variance=1.0, fit_intercept=True
    ).fit(X, X[:, 0])
    assert_allclose(variance[2:], exactly.variance([[1e8, 1e8]], "v1"), rtol=2e-3)


def test_variances_too_small_to_be_squared_have_a_bound_that_says_so() -> None:
    """√V1 is 1e-161, V1 itself subnormal: the bound covers the difference."""
    X = unit_cube(30, 2)
    ridge = ridge_for(
        basis_for(Gaussian(0.3).fitted(X), X, targets(30), RPCholeskySketch(), 8), LAM
    )
    X_new = np.array([[6.8, 6.8]])
    kernel = ridge.sample.points.kernel
    G, k_x = (kernel(X, A).astype(Long) for A in (X, X_new))
    std = long_std(G, k_x, np.ones(30), 30 * LAM, False)
    assert 0 < std[0] < 1e-154
    found = refined_variance(ridge, at(ridge, X_new), theta=0.5, steps=2)
    assert abs(np.sqrt(found.variance[0]) - std[0]) <= found.bound[0] < 1e-150


def test_a_long_block_of_points_is_refined_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    _, sketched, X_new = pair(1e-3)
    whole = sketched.variance(X_new, refine=2)
    exact = sketched.variance(X_new, kind="v1", tol=1e-6)
    monkeypatch.setattr("sketchridge.refine._BYTES", 400 * 64 * 7)
    assert_close(sketched.variance(X_new, refine=2), whole)
    assert_allclose(sketched.variance(X_new, kind="v1", tol=1e-6), exact, rtol=2e-6)


def test_no_points_at_all() -> None:
    ridge, _, _ = small(True, True)
    query = at(ridge, np.empty((0, 3)))
    for found in (
        refined_variance(ridge, query, theta=0.5, steps=2),
        v1(ridge, query, theta=0.5, tol=0.1, first="float64", step="float64"),
    ):
        assert found.variance.shape == found.bound.shape == (0,)


def test_points_are_refined_on_their_own() -> None:
    """What a point's neighbors are changes nothing but rounding."""
    ridge, query, _ = small(True, True)
    together = refined_variance(ridge, query, theta=0.5, steps=2).variance
    alone = [
        refined_variance(ridge, query.some([i]), theta=0.5, steps=2).variance[0] for i in range(T)
    ]
    assert_close(together, np.array(alone))


@pytest.mark.filterwarnings("ignore:λ = ")
@with_and_without_intercept
def test_products_in_single_precision_do_not_limit_what_is_reached(fit_intercept) -> None:
    """Whatever is judged is computed in float64, and steps too where single precision stalls."""
    exact, sketched, X_new = pair(1e-6, dtype="float32", fit_intercept=fit_intercept, solver="pcg")
    refined = sketched.variance(X_new, kind="v1", tol=1e-5)
    assert_allclose(refined, exact.variance(X_new), rtol=1e-5)


@with_and_without_intercept
def test_the_exact_mean_in_single_precision_is_as_good_as_its_products(fit_intercept) -> None:
    exact, sketched, X_new = pair(1e-2, dtype="float32", fit_intercept=fit_intercept, solver="pcg")
    assert_close(sketched.predict(X_new), exact.predict(X_new), "float32")


# What is refused


def test_a_tolerance_below_rounding_is_refused() -> None:
    _, sketched, X_new = pair(1e-9, sketch_size=400)
    text = r"tolerance 1e-08 was not reached: with λ = 1e-09 .*below .*Use a tol above that"
    with pytest.raises(PrecisionError, match=text):
        sketched.variance(X_new, kind="v1", tol=1e-8)


HOPELESS = {
    "far below rounding": {"alpha": 1e-140},
    "nearly overflowing": {"alpha": 1e-100, "sketch_size": 5},
    "a small sketch": {"alpha": 1e-12, "sketch_size": 5},
    "an intercept": {"alpha": 1e-14, "sketch_size": 5, "fit_intercept": True},
}


@pytest.mark.parametrize("alpha", [1e-200, 1e-155])
def test_penalties_whose_squares_vanish_are_refused(alpha) -> None:
    with pytest.raises(ValueError, match=r"alpha = 1e-\d+ is beyond floating point"):
        SketchedKernelRidge(alpha=alpha, random_state=0).fit(unit_cube(40, 2), targets(40)[:, 0])


@pytest.mark.filterwarnings("ignore:λ = ")
@pytest.mark.parametrize("options", HOPELESS.values(), ids=HOPELESS)
def test_hopeless_means_are_refused_quickly(options) -> None:
    """Of 40 points: defects.md, M7."""
    X, y = unit_cube(40, 2), targets(40)[:, 0]
    start = time.perf_counter()
    with pytest.raises(PrecisionError, match=r"exact mean was not reached: .*solver='sketch'"):
        SketchedKernelRidge(solver="pcg", random_state=0, **options).fit(X, y)
    assert time.perf_counter() - start < 10


@pytest.mark.filterwarnings("ignore:λ = ")
@pytest.mark.parametrize("options", HOPELESS.values(), ids=HOPELESS)
def test_hopeless_variances_are_refused_or_bounded(options) -> None:
    X, y = unit_cube(40, 2), targets(40)[:, 0]
    model = SketchedKernelRidge(random_state=0, noise_variance=1.0, **options).fit(X, y)
    with pytest.raises(PrecisionError, match=r"tolerance 0.01 was not reached|variances overflow"):
        model.variance(X, kind="v1")
    for steps in (0, 3):
        try:
            variance, bound = model.variance(X, refine=steps, return_bound=True)
        except PrecisionError as error:
            message = str(error)
            assert message.startswith("The refined variances overflow: λ = ")
        else:
            assert np.isfinite(variance).all()
            assert np.isfinite(bound).all()


def test_columns_that_are_hopeless_do_not_hold_up_the_others() -> None:
    """NaN and infinity in a column compare false with everything: it ends where it was."""
    ridge, _, _ = small(False, False)
    backend = NumpyTiles()
    basis = basis_for(
        ridge.sample.points.kernel,
        normal(N, 3),
        np.column_stack([targets(N), np.full(N, np.inf)]),
        ridge.basis.factor.sketch,
        backend=backend,
    )
    with pytest.raises(PrecisionError), np.errstate(invalid="ignore"):
        exact_mean(ridge_for(basis, LAM), tol=1e-8, step="float64")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"kind": "gp", "refine": 1}, "nothing to refine in kind='gp'"),
        ({"kind": "v3", "return_bound": True}, "nothing to refine in kind='v3'"),
        ({"refine": -1}, "whole number of steps from 0 up, got -1"),
        ({"refine": 1.5}, "whole number of steps from 0 up, got 1.5"),
        ({"refine": True}, "whole number of steps from 0 up, got True"),
        ({"kind": "v1", "refine": 2}, "give tol, or kind='vbar' with refine"),
        ({"kind": "v2", "tol": 0.1}, "goes with kind='v1', got tol=0.1"),
        ({"kind": "v1", "tol": -1.0}, "positive finite number"),
        ({"kind": "v1", "tol": "a"}, "positive finite number"),
    ],
)
def test_bad_requests_are_refused(arguments: dict, text: str) -> None:
    X, y, X_new = problem(40)
    sketched = SketchedKernelRidge(alpha=1.0, sketch_size=5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=text):
        sketched.variance(X_new, **arguments)


# Bounds against V1 in extended precision, on random problems


def violations(seed: int, steps: tuple[int, ...] = (0, 2), **options: Any) -> list[str]:
    """Which bounds a random problem violates."""
    problem = random_problem(seed, **options)
    found = []
    for count in steps:
        variance, bound = problem.model.variance(problem.X_new, refine=count, return_bound=True)
        assert np.isfinite(variance).all()
        assert np.isfinite(bound).all()
        assert (variance >= 0).all()
        if (np.abs(np.sqrt(variance) - problem.std) > bound + UNDERFLOW).any():
            found.append(f"bound after {count} steps ({problem.name})")
    return found


quietly = pytest.mark.filterwarnings("ignore:λ = ", "ignore:sketch_size")


@quietly
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_no_bound_is_violated(first: int) -> None:
    assert [v for seed in range(first, first + 50) for v in violations(seed)] == []


@quietly
def test_directions_at_rounding_level_do_not_spoil_the_intercept() -> None:
    """A linear kernel of rank 1 under a sketch of up to 20 rows: the weights of a prediction still
    sum to 1."""
    options = {"fit_intercept": True, "alpha": 1e-4}
    X = normal(25, 1)
    model = SketchedKernelRidge(
        "linear", sketch="gaussian", sketch_size=20, noise_variance=1.0, random_state=3, **options
    ).fit(X, X[:, 0])
    X_new = np.array([[0.0], [1.0], [100.0]])
    G, k_x = (X.astype(Long) @ A.T.astype(Long) for A in (X, X_new))
    std = long_std(G, k_x, np.ones(25), 1e-4, True)
    for steps in (0, 1, 2, 10):
        variance, bound = model.variance(X_new, refine=steps, return_bound=True)
        assert (np.abs(np.sqrt(variance) - std) <= bound).all()
        assert_allclose(np.sqrt(variance), std, rtol=1e-6)


def benign(seed: int) -> tuple[SketchedKernelRidge, Array, Array]:
    """With an intercept and a penalty so large that a step or two solve everything."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(10, 50)), int(rng.integers(1, 4))
    X, X_new = rng.random((n, d)), rng.random((6, d))
    w = 10 ** rng.uniform(-1, 1, n) if seed % 2 else np.ones(n)
    alpha, h = 10 ** rng.uniform(-3, 4), rng.uniform(0.2, 2)
    model = SketchedKernelRidge(
        bandwidth=h,
        alpha=alpha,
        sketch_size=int(rng.integers(1, n + 1)),
        fit_intercept=True,
        noise_variance=1.0,
        random_state=seed,
    ).fit(X, rng.standard_normal(n), w)
    U, V = (A.astype(Long) / Long(h) for A in (X, X_new))
    G, k_x = (np.exp(-((U[:, None] - A[None]) ** 2).sum(axis=2) / 2) for A in (U, V))
    return model, X_new, long_std(G, k_x, w, alpha, True)


@quietly
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_solved_problems_stay_solved(first: int) -> None:
    """With an intercept, steps beyond the solution do not leave it: defects.md, H1."""
    wrong = []
    for seed in range(first, first + 50):
        model, X_new, std = benign(seed)
        for steps in (1, 2, 3, 5, 10, 20):
            variance, bound = model.variance(X_new, refine=steps, return_bound=True)
            fine = np.abs(np.sqrt(variance) - std) <= bound  # never true of NaN
            if not fine.all():
                wrong.append((seed, steps))
    assert wrong == []


@pytest.mark.slow
@quietly
def test_no_bound_is_violated_in_2000_problems() -> None:
    steps = (0, 1, 2, 3, 5, 10, 20)
    assert [v for seed in range(2000) for v in violations(seed, steps)] == []


def test_steps_beyond_rounding_are_not_taken() -> None:
    X = unit_cube(60, 2)
    model = SketchedKernelRidge(
        "gaussian", bandwidth=0.5, alpha=0.1, sketch_size=20, noise_variance=1.0, random_state=0,
        solver="sketch", fit_intercept=False,
    ).fit(X, X[:, 0])  # fmt: skip
    with at_most(60):
        many = model.variance(X, refine=10**9)
    assert_close(many, model.variance(X, refine=100), condition=1e3)
