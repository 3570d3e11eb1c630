"""Derivatives are those of automatic differentiation, for every kernel that has one and on every
backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import helpers
import numpy as np
import pytest
import torch
from helpers import assert_close, normal, sample_for, uneven, unit_cube
from test_backends import torch_tiles, triton_fused

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.backends import Backend, NumpyTiles, triton_profiles
from sketchridge.backends.paths import object_at
from sketchridge.factor import Sample
from sketchridge.kernels import (
    CubicSpline,
    Custom,
    DotProduct,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    PeriodicSobolev,
    Polynomial,
    Precomputed,
    Radial,
)
from sketchridge.query import AtPoints
from sketchridge.slopes import AverageSlopes, slopes_at

Array = np.ndarray
N, D, T = 40, 3, 6
MAP = normal(D, 4, seed=11)


def distance(U: Any, V: Any) -> Any:
    return ((U[:, None] - V[None]) ** 2).sum(dim=2)


def matern(p: float, polynomial: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def formula(U: Any, V: Any) -> Any:
        r = torch.sqrt(p * distance(U, V))
        return polynomial(r) * torch.exp(-r)

    return formula


def rational(U: Any, V: Any) -> Any:
    return (1 + distance(U, V) / 3) ** -1.5


def spline(U: Any, V: Any) -> Any:
    def k(r: int, x: Any) -> Any:
        q = x - 0.5
        return {1: q, 2: (q**2 - 1 / 12) / 2, 4: (q**4 - q**2 / 2 + 7 / 240) / 24}[r]

    u, v = U[:, None], V[None]
    return (1 + k(1, u) * k(1, v) + k(2, u) * k(2, v) - k(4, abs(u - v))).prod(dim=2)


def sobolev(U: Any, V: Any) -> Any:
    x = torch.remainder(U[:, None] - V[None], 1.0)
    return (1 - (x**4 - 2 * x**3 + x**2 - 1 / 30) / 24).prod(dim=2)


def exponential_slope(s: Any, xp: Any) -> Any:
    return xp.exp(s)


# A kernel, points on which it lives, and the same as a function of PyTorch's tensors X and Z.
CASES: dict[str, tuple[Kernel, Callable[..., Array], Callable[[Any, Any], Any]]] = {
    "gaussian": (
        Gaussian(0.9),
        normal,
        lambda X, Z: torch.exp(-distance(X, Z) / 2 / 0.9**2),
    ),
    "gaussian-ard": (
        Gaussian(np.array([0.5, 1.0, 2.0])),
        normal,
        lambda X, Z: torch.exp(
            -distance(X / torch.tensor([0.5, 1, 2]), Z / torch.tensor([0.5, 1, 2])) / 2
        ),
    ),
    "gaussian-map": (
        Gaussian(MAP),
        normal,
        lambda X, Z: torch.exp(-distance(X @ torch.tensor(MAP), Z @ torch.tensor(MAP)) / 2),
    ),
    "matern32": (Matern32(1.0), normal, matern(3, lambda r: 1 + r)),
    "matern52": (Matern52(1.0), normal, matern(5, lambda r: 1 + r + r**2 / 3)),
    "matern52-map": (
        Matern52(MAP),
        normal,
        lambda X, Z: matern(5, lambda r: 1 + r + r**2 / 3)(
            X @ torch.tensor(MAP), Z @ torch.tensor(MAP)
        ),
    ),
    "rational-quadratic": (
        Radial(
            helpers.rational_quadratic,
            helpers.rational_quadratic_slope,
            bandwidth=1.0,
            parameters=(1.5,),
        ),
        normal,
        rational,
    ),
    "polynomial": (
        Polynomial(degree=3, gamma=0.5, coef0=0.7),
        normal,
        lambda X, Z: (0.5 * X @ Z.T + 0.7) ** 3,
    ),
    "polynomial-default": (Polynomial(), normal, lambda X, Z: (X @ Z.T / D + 1) ** 3),
    "linear": (Linear(), normal, lambda X, Z: X @ Z.T),
    "exponential": (
        DotProduct(helpers.exponential, exponential_slope, gamma=0.3),
        normal,
        lambda X, Z: torch.exp(0.3 * X @ Z.T),
    ),
    "cubic-spline": (CubicSpline(), unit_cube, spline),
    "periodic-sobolev": (PeriodicSobolev(order=2), unit_cube, sobolev),
}
MAKERS: dict[str, Callable[[], Backend]] = {
    "numpy": NumpyTiles,
    "numpy-tile-7": lambda: NumpyTiles(tile=7, workers=2),
    "torch": torch_tiles,
    "triton": triton_fused,
}
every_kernel = pytest.mark.parametrize("name", CASES)
every_backend = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def differentiated(formula: Callable[[Any, Any], Any], Z: Array, X: Array) -> Array:
    """∂k(z_i, x_l)/∂z_ij by automatic differentiation: (n, t, d)."""
    at = torch.tensor(Z, requires_grad=True)
    k = formula(at, torch.tensor(X))
    columns = [torch.autograd.grad(k[:, i].sum(), at, retain_graph=True)[0] for i in range(len(X))]
    return torch.stack(columns).numpy()


def problem(name: str, make: Callable[[], Backend]) -> tuple[Sample, AtPoints, Array]:
    kernel, points, formula = CASES[name]
    X, Z = points(N, D, seed=1), points(T, D, seed=2)
    kernel = kernel.fitted(X)
    sample = sample_for(kernel, X, uneven(N), make())
    query = AtPoints(sample.backend.place(kernel, kernel.coordinates(Z)))
    return sample, query, differentiated(formula, Z, X) / kernel.unit


@every_backend
@every_kernel
def test_slopes_are_those_of_automatic_differentiation(name, make):
    sample, query, expected = problem(name, make)
    slopes = slopes_at(sample, query, D)
    assert_close(slopes.at(sample.points).host(), expected.reshape(N, T * D))


@every_backend
@every_kernel
def test_sums_of_slopes_are_sums_of_their_columns(name, make):
    sample, query, expected = problem(name, make)
    right = normal(N, 2)
    slopes = slopes_at(sample, query, D)
    found = slopes.against(sample, sample.backend.tall(right), "float64").host()
    assert_close(found, np.einsum("nij,nq->ijq", expected, right).reshape(T * D, 2))


@every_backend
@every_kernel
def test_average_slopes_are_averages_of_slopes(name, make):
    sample, query, expected = problem(name, make)
    a = normal(T, 1)[:, 0]
    feature = np.array([2, 0])
    average = AverageSlopes(sample, query.points, D, a, feature)
    desired = np.einsum("nij,i->nj", expected, a)[:, feature]
    assert_close(average.at(sample.points).host(), desired)


@every_kernel
def test_some_of_the_slopes_are_those(name):
    sample, query, _ = problem(name, NumpyTiles)
    slopes = slopes_at(sample, query, D)
    every = slopes.at(sample.points).host()
    for rows in (slice(4, 9), np.array([17, 3, 3, 0]), slice(0, 0)):
        assert_close(slopes.some(rows).at(sample.points).host(), every[:, rows])


@pytest.mark.parametrize("make", [Gaussian, Matern32, Matern52, Linear, Polynomial])
def test_slopes_of_our_kernels_are_fused_for_a_gpu(make):
    kernel = make()
    assert object_at(kernel.sloped().fused) is getattr(
        triton_profiles, f"{kernel.profile.__name__}_slope"
    )
    assert Radial(plain, plain_slope, fused=plain).sloped().fused is None


# Of fitted models, whose dual coefficients are solved for from scratch


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("cls", [ExactKernelRidge, SketchedKernelRidge])
@every_kernel
def test_gradients_are_those_of_automatic_differentiation(name, cls, fit_intercept):
    kernel, points, formula = CASES[name]
    X, Z, w = points(N, D, seed=1), points(T, D, seed=2), uneven(N)
    Y = normal(N, 2, seed=3)
    options = {"sketch_size": N, "random_state": 0} if cls is SketchedKernelRidge else {}
    model = cls(kernel, bandwidth="auto", alpha=0.5, fit_intercept=fit_intercept, **options)
    model.fit(X, Y, sample_weight=w)
    G = formula(torch.tensor(X), torch.tensor(X)).numpy()
    A = G + 0.5 * np.diag(1 / w)
    ones = np.ones((N, 1))
    border = np.block([[A, ones], [ones.T, np.zeros((1, 1))]]) if fit_intercept else A
    right = np.vstack([Y, np.zeros((int(fit_intercept), 2))])
    dual = np.linalg.solve(border, right)[:N]
    expected = np.einsum("nij,nq->ijq", differentiated(formula, Z, X), dual)
    assert_close(model.gradient(Z), expected, "pcg")


def central(model: Any, X: Array, h: float = 1e-5) -> Array:
    """Differences of predictions: (t, d)."""
    steps = h * np.eye(X.shape[1])
    found = [(model.predict(X + s) - model.predict(X - s)) / (2 * h) for s in steps]
    return np.stack(found, axis=1)


@pytest.mark.parametrize("solver", ["sketch", "pcg"])
@pytest.mark.parametrize("kernel", ["gaussian", "matern32", "matern52", "polynomial"])
def test_gradients_at_training_rows_are_limits_of_differences(kernel, solver):
    """Where ‖x − z‖ = 0, of which a square root has no derivative."""
    X = normal(60, 2)
    y = np.sin(X[:, 0]) + X[:, 1]
    model = SketchedKernelRidge(kernel, alpha=0.1, sketch_size=20, solver=solver, random_state=0)
    model.fit(X, y)
    np.testing.assert_allclose(model.gradient(X), central(model, X), rtol=0, atol=1e-4)


@pytest.mark.usefixtures("defaults")
def test_gradients_of_a_learned_map():
    X = normal(80, 3)
    y = np.sin(X @ [1.0, 0.5, 0.0])
    model = ExactKernelRidge("gaussian", bandwidth="full").fit(X, y)
    assert model.map_ is not None
    np.testing.assert_allclose(model.gradient(X[:9]), central(model, X[:9]), rtol=0, atol=1e-6)


# Kernels without a derivative


def plain(s: Any, xp: Any) -> Any:
    return xp.exp(-(s**0.5))


def plain_slope(s: Any, xp: Any) -> Any:
    return -0.5 * xp.exp(-(s**0.5)) / s**0.5


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Laplacian(1.0), "no derivative where a feature coincides"),
        (PeriodicSobolev(order=1), "order=2"),
        (Radial(plain, bandwidth=1.0), r"Radial\(profile, slope\)"),
        (Radial(plain, plain_slope, bandwidth=1.0), "no derivative: use a smoother kernel"),
        (DotProduct(helpers.exponential), r"DotProduct\(profile, slope\)"),
        (Custom(helpers.cityblock), "The derivative of Custom.* is not known"),
    ],
    ids=["laplacian", "sobolev", "no slope", "rough", "dot", "callable"],
)
@pytest.mark.parametrize("cls", [ExactKernelRidge, SketchedKernelRidge])
def test_kernels_without_a_derivative_say_so(kernel, message, cls):
    X = unit_cube(20, 2)
    model = cls(kernel, alpha=0.1).fit(X, X[:, 0])
    for question in (model.marginal_effects, lambda: model.gradient(X)):
        with pytest.raises(ValueError, match=message):
            question()


def test_a_precomputed_kernel_has_no_features():
    X = normal(10, 2)
    model = ExactKernelRidge(Precomputed(), alpha=0.1).fit(X @ X.T, X[:, 0])
    with pytest.raises(ValueError, match="has no features"):
        model.gradient(X @ X.T)
    with pytest.raises(ValueError, match="has no features"):
        model.marginal_effects()
