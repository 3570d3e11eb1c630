"""Refinement: it reaches V1 and the exact mean, and neither its bounds nor the certificates are ever violated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from helpers import assert_close, unit_cube
from numpy.testing import assert_allclose

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.kernels import Polynomial
from sketchridge.refine import PrecisionError

Array = np.ndarray
Long = np.longdouble
UNDERFLOW = 1e-150  # the square of less is not a float64


def problem(n: int = 400, d: int = 3, seed: int = 0) -> tuple[Array, Array, Array]:
    X = unit_cube(n, d, seed)
    y = np.sin(3 * X.sum(axis=1)) + 0.1 * np.random.default_rng(seed + 1).standard_normal(n)
    return X, y + 3, unit_cube(30, d, seed + 2)


def pair(
    lam: float, *, fit_intercept: bool = False, n: int = 400, **options: object
) -> tuple[ExactKernelRidge, SketchedKernelRidge, Array]:
    X, y, X_new = problem(n)
    common = {"bandwidth": 0.3, "alpha": n * lam, "fit_intercept": fit_intercept, "noise_variance": 1.0}
    exact = ExactKernelRidge(**common).fit(X, y)
    sketched = SketchedKernelRidge(**common, random_state=0, **{"sketch_size": 40, **options}).fit(X, y)
    return exact, sketched, X_new


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("lam", [1e-2, 1e-4, 1e-6])
def test_v1_is_exact_to_its_tolerance(lam: float, fit_intercept: bool) -> None:
    exact, sketched, X_new = pair(lam, fit_intercept=fit_intercept)
    for wanted in (1e-1, 1e-3, 1e-5):
        assert_allclose(sketched.variance(X_new, kind="v1", tol=wanted), exact.variance(X_new), rtol=wanted)


@pytest.mark.parametrize("sketch", ["rpcholesky", "landmarks", "gaussian", "srht"])
def test_each_step_comes_closer(sketch: str) -> None:
    exact, sketched, X_new = pair(1e-3, sketch=sketch)
    errors = [np.abs(sketched.variance(X_new, refine=steps) / exact.variance(X_new) - 1).max() for steps in (0, 1, 3, 6)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3 * errors[0]


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_no_step_is_v2(fit_intercept: bool) -> None:
    _, sketched, X_new = pair(1e-3, fit_intercept=fit_intercept, dtype="float64")
    refined, bound = sketched.variance(X_new, return_bound=True)
    assert_close(refined, sketched.variance(X_new))
    assert (bound > 0).all()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("lam", [1e-2, 1e-5])
def test_pcg_mean_is_the_exact_mean(lam: float, fit_intercept: bool) -> None:
    exact, sketched, X_new = pair(lam, fit_intercept=fit_intercept, solver="pcg")
    assert_close(sketched.predict(X_new), exact.predict(X_new), "pcg")


def test_pcg_mean_of_several_targets() -> None:
    X, y, X_new = problem()
    Y = np.column_stack([y, y**2, np.zeros_like(y)])
    sketched = SketchedKernelRidge(bandwidth=0.3, alpha=0.4, sketch_size=40, solver="pcg", random_state=0).fit(X, Y)
    assert_close(sketched.predict(X_new), ExactKernelRidge(bandwidth=0.3, alpha=0.4).fit(X, Y).predict(X_new), "pcg")


def test_pcg_mean_after_partial_fit() -> None:
    X, y, X_new = problem()
    sketched = SketchedKernelRidge(bandwidth=0.3, alpha=0.4, sketch_size=40, solver="pcg", random_state=0)
    sketched.fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    assert_close(sketched.predict(X_new), ExactKernelRidge(bandwidth=0.3, alpha=0.4).fit(X, y).predict(X_new), "pcg")


def test_bounds_scale_with_the_noise_of_each_target() -> None:
    X, y, X_new = problem()
    sketched = SketchedKernelRidge(bandwidth=0.3, alpha=0.4, sketch_size=40, noise_variance=[1.0, 4.0], random_state=0)
    variance, bound = sketched.fit(X, np.column_stack([y, y])).variance(X_new, return_bound=True)
    assert variance.shape == bound.shape == (30, 2)
    assert_close(variance[:, 1], 4 * variance[:, 0])
    assert_close(bound[:, 1], 2 * bound[:, 0])


def test_far_from_the_data_variance_and_bound_are_zero() -> None:
    _, sketched, _ = pair(1e-3)
    variance, bound = sketched.variance(np.full((2, 3), 1e4), kind="v1", return_bound=True)
    assert not variance.any()
    assert not bound.any()


def test_a_long_block_of_points_is_refined_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    _, sketched, X_new = pair(1e-3)
    whole = sketched.variance(X_new, refine=2)
    monkeypatch.setattr("sketchridge.refine._BYTES", 400 * 64 * 7)
    assert_close(sketched.variance(X_new, refine=2), whole)


def test_single_precision_says_what_it_reached() -> None:
    _, sketched, X_new = pair(1e-6, dtype="float32")
    with pytest.raises(PrecisionError, match=r"tolerance 1e-06 was not reached: with float32 products .* below .*dtype='float64'"):
        sketched.variance(X_new, kind="v1", tol=1e-6)
    with pytest.raises(PrecisionError, match=r"residual stopped at .* Use dtype='float64'"):
        pair(1e-6, dtype="float32", solver="pcg")


def test_a_tolerance_below_rounding_is_refused() -> None:
    _, sketched, X_new = pair(1e-9, sketch_size=400)
    with pytest.raises(PrecisionError, match=r"tolerance 1e-08 was not reached: with float64 .*Use a tol above that"):
        sketched.variance(X_new, kind="v1", tol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"kind": "gp", "refine": 1}, "nothing to refine in kind='gp'"),
        ({"kind": "v3", "return_bound": True}, "nothing to refine in kind='v3'"),
        ({"refine": -1}, "whole number of steps from 0 up, got -1"),
        ({"refine": 1.5}, "whole number of steps from 0 up, got 1.5"),
        ({"kind": "v1", "refine": 2}, "give tol, or kind='v2' with refine"),
        ({"kind": "v2", "tol": 0.1}, "goes with kind='v1', got tol=0.1"),
        ({"kind": "v1", "tol": -1.0}, "positive number"),
    ],
)
def test_bad_requests_are_refused(arguments: dict, text: str) -> None:
    _, sketched, X_new = pair(1e-2)
    with pytest.raises(ValueError, match=text):
        sketched.variance(X_new, **arguments)


# Bounds against V1 in extended precision, on random problems.

KERNELS: dict[str, tuple[object, Callable[[Array, Array], Array]]] = {
    "gaussian": ("gaussian", lambda U, V: np.exp(-_distances(U, V, 2) / 2)),
    "matern32": ("matern32", lambda U, V: (lambda r: (1 + r) * np.exp(-r))(np.sqrt(3 * _distances(U, V, 2)))),
    "laplacian": ("laplacian", lambda U, V: np.exp(-_distances(U, V, 1))),
    "polynomial": (Polynomial(degree=2, gamma=1.0, coef0=0.5), lambda U, V: (U @ V.T + Long(0.5)) ** 2),
    "linear": ("linear", lambda U, V: U @ V.T),
}


def _distances(U: Array, V: Array, power: int) -> Array:
    return (np.abs(U[:, None] - V[None]) ** power).sum(axis=2)


def reference_v1(K: Array, k_x: Array, lam: float, fit_intercept: bool) -> Array:
    """V1 for unit noise by iterative refinement in extended precision."""
    n = len(K)
    M, k_x = K + Long(lam) * np.eye(n, dtype=Long), np.column_stack([k_x, np.ones(n)])
    inverse = np.linalg.inv(M.astype(float))
    Z = np.zeros_like(k_x)
    for _ in range(8):
        Z = Z + inverse @ (k_x - M @ Z).astype(float)
    w, u = Z[:, :-1] / n, Z[:, -1] / Z[:, -1].sum()
    if fit_intercept:
        w = w + np.outer(u, 1 - w.sum(axis=0))
    return np.sqrt((w**2).sum(axis=0).astype(float))


def violations(seed: int) -> list[str]:
    """Which bounds a random problem violates."""
    rng = np.random.default_rng(seed)
    name = rng.choice(list(KERNELS))
    kernel, formula = KERNELS[name]
    n, d, lam, fit_intercept = rng.integers(5, 60), rng.integers(1, 6), 10 ** rng.uniform(-9, -1), bool(rng.integers(2))
    X = rng.standard_normal((n, d))
    if rng.random() < 0.3:
        X[n // 2 :] = X[: n - n // 2]
    X_new = np.concatenate([rng.standard_normal((4, d)), X[:2], 10 * rng.standard_normal((2, d)), np.full((1, d), 100.0)])
    h = 10 ** rng.uniform(-0.5, 0.7) if name in ("gaussian", "matern32", "laplacian") else None
    sketch = rng.choice(["rpcholesky", "landmarks", "gaussian", "rademacher", "sparse", "srht", "fourier"])
    model = SketchedKernelRidge(
        kernel,
        bandwidth=h or "median",
        alpha=n * lam,
        sketch=str(sketch),
        sketch_size=int(rng.integers(1, n + 1)),
        noise_variance=1.0,
        fit_intercept=fit_intercept,
        random_state=int(seed),
    ).fit(X, rng.standard_normal(n))
    U, V = (A.astype(Long) / Long(h or 1) for A in (X, X_new))
    exact = reference_v1(formula(U, U) / n, formula(U, V), model.lambda_, fit_intercept)
    found = []
    std = np.sqrt(model.variance(X_new))
    for certificate in (model.certificate_, model.certificate("norm")):
        if (np.abs(std - exact) > certificate.relative * std + UNDERFLOW).any():
            found.append(f"{certificate} ({name}, {sketch}, seed {seed})")
    for steps in (0, 2):
        variance, bound = model.variance(X_new, refine=steps, return_bound=True)
        assert np.isfinite(variance).all()
        assert (variance >= 0).all()
        if (np.abs(np.sqrt(variance) - exact) > bound + UNDERFLOW).any():
            found.append(f"bound after {steps} steps ({name}, {sketch}, seed {seed})")
    return found


@pytest.mark.filterwarnings("ignore:sketch_size")
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_no_bound_is_violated(first: int) -> None:
    assert [v for seed in range(first, first + 50) for v in violations(seed)] == []


def test_directions_at_rounding_level_do_not_spoil_the_intercept() -> None:
    """A linear kernel of rank 1 under a sketch of 20 rows: the weights of a prediction still sum to 1."""
    assert violations(1724) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:sketch_size")
def test_no_bound_is_violated_in_2000_problems() -> None:
    assert [v for seed in range(2000) for v in violations(seed)] == []
