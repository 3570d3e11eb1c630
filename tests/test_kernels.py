"""Kernels against independent formulas and scikit-learn, and the sentences they refuse bad input with."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import KERNEL_CASES, KernelCase, assert_close, normal, tol, unit_cube
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel

from sketchridge.kernels import (
    KERNELS,
    CubicSpline,
    Custom,
    Gaussian,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    PeriodicSobolev,
    Polynomial,
    as_kernel,
)

H = 0.7
H_EACH = np.array([0.5, 1.0, 3.0])

AGAINST_SCIKIT_LEARN = {
    "gaussian": (Gaussian(H), lambda X, Z: rbf_kernel(X, Z, gamma=1 / (2 * H**2))),
    "laplacian": (Laplacian(H), lambda X, Z: laplacian_kernel(X, Z, gamma=1 / H)),
    "matern32": (Matern32(H), Matern(length_scale=H, nu=1.5)),
    "matern52": (Matern52(H), Matern(length_scale=H, nu=2.5)),
    "gaussian-each": (Gaussian(H_EACH), RBF(length_scale=H_EACH)),
    "matern32-each": (Matern32(H_EACH), Matern(length_scale=H_EACH, nu=1.5)),
    "matern52-each": (Matern52(H_EACH), Matern(length_scale=H_EACH, nu=2.5)),
    "laplacian-each": (Laplacian(H_EACH), lambda X, Z: laplacian_kernel(X / H_EACH, Z / H_EACH, gamma=1)),
    "linear": (Linear(), linear_kernel),
    "polynomial": (Polynomial(4, 0.3, 0.5), lambda X, Z: polynomial_kernel(X, Z, degree=4, gamma=0.3, coef0=0.5)),
    "polynomial-default": (Polynomial(), polynomial_kernel),
    "polynomial-degree-1": (Polynomial(1, 2.0, 0.0), lambda X, Z: 2 * X @ Z.T),
}


@pytest.mark.parametrize(("kernel", "reference"), AGAINST_SCIKIT_LEARN.values(), ids=AGAINST_SCIKIT_LEARN)
def test_agrees_with_scikit_learn(kernel, reference):
    X, Z = normal(12, 3), normal(7, 3, seed=1)
    assert_close(kernel(X, Z), reference(X, Z))


@pytest.mark.parametrize(("kernel", "reference"), AGAINST_SCIKIT_LEARN.values(), ids=AGAINST_SCIKIT_LEARN)
def test_fitting_to_the_data_does_not_change_the_values(kernel, reference):
    X, Z = normal(12, 3) + 1, normal(7, 3, seed=1)
    assert_close(kernel.fitted(X)(X, Z), reference(X, Z))


@pytest.mark.parametrize("order", [2, 3])
def test_periodic_sobolev_is_its_cosine_series(order):
    """1 + Σ_k 2cos(2πkt)/(2πk)^(2α); the terms left out after 3,000 add up to less than 1e-13."""
    X, Z = unit_cube(6, 1), unit_cube(5, 1, seed=1)
    t, k = X - Z.T, np.arange(1, 3001)
    series = 1 + (2 * np.cos(2 * np.pi * k * t[..., None]) / (2 * np.pi * k) ** (2 * order)).sum(axis=-1)
    assert_close(PeriodicSobolev(order)(X, Z), series)


def test_periodic_sobolev_of_order_one_is_a_parabola():
    X, Z = unit_cube(6, 1), unit_cube(5, 1, seed=1)
    assert_close(PeriodicSobolev(1)(X, Z), 1 + ((np.abs(X - Z.T) - 0.5) ** 2 - 1 / 12) / 2)


def test_cubic_spline_is_the_reproducing_kernel_of_its_green_function():
    """1 + (s−½)(t−½) + ∫ g_s g_t, with g_s(u) solving f'' = δ_u, ∫f = ∫f' = 0: the norm (∫f)² + (∫f')² + ∫f''²."""

    def green(s, u):
        return np.maximum(s - u, 0) - (1 - u) ** 2 / 2 - (s - 0.5) * (1 - u)

    def reference(s, t):
        nodes, weights = np.polynomial.legendre.leggauss(4)  # exact: g_s g_t is of degree 4 between the kinks
        knots = np.sort([0, s, t, 1])
        half = np.diff(knots)[:, None] / 2
        u = knots[:-1, None] + half * (1 + nodes)
        return 1 + (s - 0.5) * (t - 0.5) + (half * weights * green(s, u) * green(t, u)).sum()

    X, Z = np.r_[0, unit_cube(6, 1)[:, 0], 1], unit_cube(5, 1, seed=1)[:, 0]
    assert_close(CubicSpline()(X[:, None], Z[:, None]), np.array([[reference(s, t) for t in Z] for s in X]))


@pytest.mark.parametrize("kernel", [CubicSpline(), PeriodicSobolev(1), PeriodicSobolev(3)], ids=repr)
def test_on_the_cube_kernels_are_products_over_features(kernel):
    X, Z = unit_cube(6, 3), unit_cube(5, 3, seed=1)
    assert_close(kernel(X, Z), np.prod([kernel(X[:, [j]], Z[:, [j]]) for j in range(3)], axis=0))


@pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
def test_diag_is_the_diagonal(case: KernelCase):
    X = case.points(300)
    kernel = case.fitted(X)
    assert_close(kernel.diag(X), np.diagonal(kernel(X, X)))


@pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
def test_matrix_is_symmetric_and_positive_semidefinite(case: KernelCase):
    X = case.points(60)
    G = case.fitted(X)(X, X)
    eigenvalues = np.linalg.eigvalsh(G)
    assert_close(G, G.T)
    assert eigenvalues[0] >= -tol() * eigenvalues[-1]


@pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
def test_good_kernels_pass_their_own_check(case: KernelCase):
    X = case.points(30)
    case.kernel.check(X)
    case.kernel.check_domain(X)


@pytest.mark.parametrize("name", KERNELS)
def test_as_kernel_knows_every_name(name):
    assert isinstance(as_kernel(name), KERNELS[name])


def test_as_kernel_keeps_kernel_objects():
    kernel = Gaussian(2.0)
    assert as_kernel(kernel) is kernel


@pytest.mark.parametrize("spec", [RBF(0.8), ConstantKernel(2) * Matern(nu=2.5) + DotProduct(), rbf_kernel], ids=repr)
def test_as_kernel_wraps_scikit_learn_objects_and_callables(spec):
    X, Z = normal(6, 2), normal(4, 2, seed=1)
    assert_close(as_kernel(spec)(X, Z), spec(X, Z))


def test_a_bandwidth_can_be_given_later():
    X = normal(5, 2)
    assert_close(Gaussian().with_bandwidth(1.5)(X, X), Gaussian(1.5)(X, X))


X3 = normal(8, 3)
ERRORS = {
    "unknown name lists the known ones": (
        lambda: as_kernel("gausian"),
        r"Unknown kernel 'gausian': give one of " + ", ".join(map(repr, KERNELS)),
    ),
    "a class is not a kernel": (lambda: as_kernel(Gaussian), "Unknown kernel"),
    "a number is not a kernel": (lambda: as_kernel(3), "Unknown kernel 3"),
    "white": (lambda: as_kernel(WhiteKernel()), "contains a WhiteKernel.*set alpha"),
    "white in a sum": (lambda: as_kernel(RBF() + WhiteKernel()), "contains a WhiteKernel.*set alpha"),
    "white nested": (lambda: as_kernel(ConstantKernel() * (RBF() + WhiteKernel()) ** 2), "contains a WhiteKernel.*set alpha"),
    "negative definite": (lambda: Custom(lambda X, Z: -X @ Z.T).check(X3), "is not positive semidefinite: on 8 rows.*eigenvalues"),
    "asymmetric": (lambda: Custom(lambda X, Z: X @ np.triu(np.ones((3, 3))) @ Z.T).check(X3), "is not positive semidefinite"),
    "wrong shape": (
        lambda: Custom(lambda X, Z: np.ones(len(X))).check(X3),
        r"returned an array of shape \(8,\) for 8 and 8 points; it must return one of shape \(8, 8\)",
    ),
    "transposed": (lambda: Custom(lambda X, Z: Z @ X.T)(X3, X3[:2]), r"shape \(2, 8\) for 8 and 2 points"),
    "nan": (lambda: Custom(lambda X, Z: np.full((len(X), len(Z)), np.nan)).check(X3), "returned NaN or infinity.*must be finite"),
    "no bandwidth": (lambda: Gaussian()(X3, X3), "Gaussian has no bandwidth yet"),
    "cubic spline outside": (lambda: CubicSpline().check_domain(X3), r"lives on \[0, 1\], but X has values from .*MinMaxScaler"),
    "sobolev outside": (lambda: PeriodicSobolev().check_domain(X3), r"lives on \[0, 1\], but X has values from"),
}
DEGREE = "degree of a polynomial kernel must be a whole number from 1 up"
ORDER = "order of a periodic Sobolev kernel must be a whole number from 1 up"
POSITIVE = "positive semidefinite only for gamma > 0 and coef0 >= 0"
ERRORS |= {f"degree {p}": (lambda p=p: Polynomial(degree=p).check(X3), DEGREE) for p in (0, -2, 2.5, np.nan)}
ERRORS |= {f"order {p}": (lambda p=p: PeriodicSobolev(order=p).check(X3), ORDER) for p in (0, -1, 1.5, np.nan)}
ERRORS |= {f"coef0 {c}": (lambda c=c: Polynomial(coef0=c).check(X3), POSITIVE) for c in (-0.1, np.nan)}
ERRORS |= {f"gamma {g}": (lambda g=g: Polynomial(gamma=g).check(X3), POSITIVE) for g in (0, -1.0, np.nan)}


@pytest.mark.parametrize(("bad", "text"), ERRORS.values(), ids=ERRORS)
def test_error_is_a_sentence(bad, text):
    with pytest.raises(ValueError, match=text):
        bad()
