"""Kernels against independent formulas and scikit-learn, users' own kernels, scales, and the
sentences they refuse bad input with."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from helpers import (
    KERNEL_CASES,
    KernelCase,
    assert_close,
    exponential,
    normal,
    rational_quadratic,
    rational_quadratic_slope,
    tol,
    unit_cube,
    values,
)
from sklearn.gaussian_process import kernels as theirs
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel

from sketchridge import ExactKernelRidge, SketchedKernelRidge, kernels
from sketchridge.kernels import (
    KERNELS,
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
    as_kernel,
)

H = 0.7
H_EACH = np.array([0.5, 1.0, 3.0])
MAP = normal(3, 2, seed=11)

AGAINST_SCIKIT_LEARN = {
    "gaussian": (Gaussian(H), lambda X, Z: rbf_kernel(X, Z, gamma=1 / (2 * H**2))),
    "laplacian": (Laplacian(H), lambda X, Z: laplacian_kernel(X, Z, gamma=1 / H)),
    "matern32": (Matern32(H), Matern(length_scale=H, nu=1.5)),
    "matern52": (Matern52(H), Matern(length_scale=H, nu=2.5)),
    "gaussian-each": (Gaussian(H_EACH), RBF(length_scale=H_EACH)),
    "matern32-each": (Matern32(H_EACH), Matern(length_scale=H_EACH, nu=1.5)),
    "matern52-each": (Matern52(H_EACH), Matern(length_scale=H_EACH, nu=2.5)),
    "laplacian-each": (
        Laplacian(H_EACH),
        lambda X, Z: laplacian_kernel(X / H_EACH, Z / H_EACH, gamma=1),
    ),
    "gaussian-map": (Gaussian(MAP), lambda X, Z: rbf_kernel(X @ MAP, Z @ MAP, gamma=0.5)),
    "matern52-map": (Matern52(MAP), lambda X, Z: Matern(nu=2.5)(X @ MAP, Z @ MAP)),
    "rational-quadratic": (
        Radial(rational_quadratic, bandwidth=H, parameters=(1.5,)),
        theirs.RationalQuadratic(length_scale=H, alpha=1.5),
    ),
    "exponential": (DotProduct(exponential, gamma=0.3), lambda X, Z: np.exp(0.3 * X @ Z.T)),
    "linear": (Linear(), linear_kernel),
    "polynomial": (
        Polynomial(4, 0.3, 0.5),
        lambda X, Z: polynomial_kernel(X, Z, degree=4, gamma=0.3, coef0=0.5),
    ),
    "polynomial-default": (Polynomial(), polynomial_kernel),
    "polynomial-degree-1": (Polynomial(1, 2.0, 0.0), lambda X, Z: 2 * X @ Z.T),
}


against_scikit_learn = pytest.mark.parametrize(
    ("kernel", "reference"), AGAINST_SCIKIT_LEARN.values(), ids=AGAINST_SCIKIT_LEARN
)


@against_scikit_learn
def test_agrees_with_scikit_learn(kernel, reference):
    X, Z = normal(12, 3), normal(7, 3, seed=1)
    assert_close(kernel(X, Z), reference(X, Z))


@against_scikit_learn
def test_fitting_to_the_data_does_not_change_the_values(kernel, reference):
    X, Z = normal(12, 3) + 1, normal(7, 3, seed=1)
    assert_close(kernel.fitted(X)(X, Z), reference(X, Z))


@pytest.mark.parametrize("order", [2, 3])
def test_periodic_sobolev_is_its_cosine_series(order):
    """1 + Σ_k 2cos(2πkt)/(2πk)^(2α); the terms left out after 3,000 add up to less than 1e-13."""
    X, Z = unit_cube(6, 1), unit_cube(5, 1, seed=1)
    t, k = X - Z.T, np.arange(1, 3001)
    terms = 2 * np.cos(2 * np.pi * k * t[..., None]) / (2 * np.pi * k) ** (2 * order)
    assert_close(PeriodicSobolev(order)(X, Z), 1 + terms.sum(axis=-1))


def test_periodic_sobolev_of_order_one_is_a_parabola():
    X, Z = unit_cube(6, 1), unit_cube(5, 1, seed=1)
    assert_close(PeriodicSobolev(1)(X, Z), 1 + ((np.abs(X - Z.T) - 0.5) ** 2 - 1 / 12) / 2)


def test_cubic_spline_is_the_reproducing_kernel_of_its_green_function():
    """1 + (s−½)(t−½) + ∫ g_s g_t, with g_s(u) solving f'' = δ_u, ∫f = ∫f' = 0.

    The norm is (∫f)² + (∫f')² + ∫f''².
    """

    def green(s, u):
        return np.maximum(s - u, 0) - (1 - u) ** 2 / 2 - (s - 0.5) * (1 - u)

    def reference(s, t):
        nodes, weights = np.polynomial.legendre.leggauss(4)  # exact: of degree 4 between the kinks
        knots = np.sort([0, s, t, 1])
        half = np.diff(knots)[:, None] / 2
        u = knots[:-1, None] + half * (1 + nodes)
        return 1 + (s - 0.5) * (t - 0.5) + (half * weights * green(s, u) * green(t, u)).sum()

    X, Z = np.r_[0, unit_cube(6, 1)[:, 0], 1], unit_cube(5, 1, seed=1)[:, 0]
    expected = np.array([[reference(s, t) for t in Z] for s in X])
    assert_close(CubicSpline()(X[:, None], Z[:, None]), expected)


@pytest.mark.parametrize(
    "kernel", [CubicSpline(), PeriodicSobolev(1), PeriodicSobolev(3)], ids=repr
)
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
    made, table = as_kernel(name), KERNELS[name]()
    assert isinstance(made, Kernel)
    assert (type(made), repr(made)) == (type(table), repr(table))


def test_as_kernel_keeps_kernel_objects():
    kernel = Gaussian(2.0)
    assert as_kernel(kernel) is kernel


SPECS = [RBF(0.8), ConstantKernel(2) * Matern(nu=2.5) + theirs.DotProduct(), rbf_kernel]


@pytest.mark.parametrize("spec", SPECS, ids=["rbf", "sum", "function"])
def test_as_kernel_wraps_scikit_learn_objects_and_callables(spec):
    X, Z = normal(6, 2), normal(4, 2, seed=1)
    assert_close(as_kernel(spec)(X, Z), spec(X, Z))


@pytest.mark.parametrize("make", [Gaussian, Matern32, Matern52, Laplacian])
def test_a_bandwidth_can_be_given_later(make):
    X = normal(5, 2)
    assert_close(make().with_bandwidth(1.5)(X, X), make(1.5)(X, X))


@pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
def test_fitting_and_bandwidths_make_new_kernels(case: KernelCase):
    X = case.points(20) + (0.0 if case.make is unit_cube else 5.0)
    before = case.kernel(X, X)
    case.kernel.fitted(X)
    if hasattr(case.kernel, "with_bandwidth"):
        case.kernel.with_bandwidth(7.0)
    np.testing.assert_array_equal(case.kernel(X, X), before)


@pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
def test_coordinates_are_a_copy(case: KernelCase):
    """Whatever is done to the caller's array afterwards does not reach the points."""
    X = case.points(10)
    kernel = case.fitted(X)
    U = kernel.coordinates(X)
    before = U.copy()
    X[:] = 0.5
    np.testing.assert_array_equal(U, before)


@pytest.mark.parametrize("case", [c for c in KERNEL_CASES if c.id != "callable"], ids=str)
def test_kernels_are_pickled(case: KernelCase):
    X = case.points(10)
    kernel = case.fitted(X)
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again(X, X), kernel(X, X))
    assert repr(again) == repr(kernel)


BUILT_IN = [
    *(make() for make in KERNELS.values()),
    Gaussian(0.1 + 0.2),
    Gaussian(np.float64(1 / 3)),
    Gaussian(np.array([1 / 3, 2.0])),
    Matern32(np.array([[1 / 3, 0.1], [0.0, 2.0]])),
    Matern52(2),
    Laplacian(np.array([1 / 3, 2.0])),
    Polynomial(2),
    Polynomial(degree=4, gamma=1 / 3, coef0=0.0),
    PeriodicSobolev(order=3),
]


@pytest.mark.parametrize("kernel", BUILT_IN, ids=repr)
def test_the_repr_of_a_built_in_kernel_makes_it_again(kernel):
    again = eval(repr(kernel), vars(kernels))
    assert repr(again) == repr(kernel)
    if not isinstance(kernel, Precomputed):
        fitted = [k.with_bandwidth(0.7) if no_bandwidth(k) else k for k in (kernel, again)]
        A = unit_cube(4, 2)
        np.testing.assert_array_equal(fitted[0](A, A), fitted[1](A, A))


def no_bandwidth(kernel) -> bool:
    return getattr(kernel, "bandwidth", 1.0) is None


SHOWN = {
    "Gaussian()": Gaussian(),
    "Gaussian(bandwidth=0.5)": Gaussian(0.5),
    "Laplacian(bandwidth=2.0)": Laplacian(2.0),
    "Linear()": Linear(),
    "Polynomial(gamma=0.5, degree=2, coef0=1.0)": Polynomial(2, 0.5),
    "rational_quadratic(bandwidth=2.0, parameters=(1.5,))": Radial(
        rational_quadratic, bandwidth=2.0, parameters=(1.5,)
    ),
    "exponential(gamma=0.5)": DotProduct(exponential, gamma=0.5),
    "heavy(bandwidth=1.0)": Radial(lambda s, xp: 1 / (1 + s), bandwidth=1.0, name="heavy"),
}


@pytest.mark.parametrize(("text", "kernel"), SHOWN.items(), ids=SHOWN)
def test_a_kernel_shows_what_was_given(text, kernel):
    assert repr(kernel) == text


# A user's own kernel


OF_SCALARS = {
    "gaussian": Gaussian(),
    "matern32": Matern32(),
    "matern52": Matern52(),
    "rational quadratic": Radial(rational_quadratic, rational_quadratic_slope, parameters=(1.5,)),
    "linear": Linear(),
    "polynomial": Polynomial(4, 1.0, 0.5),
    "polynomial of degree 1": Polynomial(1, 1.0, 0.0),
}


@pytest.mark.parametrize("kernel", OF_SCALARS.values(), ids=OF_SCALARS)
def test_slope_is_the_derivative_of_the_profile(kernel):
    """Central differences of step h, extrapolated: the error is of order h⁴."""
    s = np.array([0.05, 0.3, 1.0, 2.5, 9.0])
    numbers = kernel.parameters

    def difference(h):
        above, below = (kernel.profile(s + step, np, *numbers) for step in (h, -h))
        return (above - below) / (2 * h)

    numerical = (4 * difference(1e-3) - difference(2e-3)) / 3
    slope = kernel.slope(s.copy(), np, *numbers)
    np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kernel", OF_SCALARS.values(), ids=OF_SCALARS)
def test_slope_leaves_its_argument_alone(kernel):
    s = np.array([0.0, 0.3, 9.0])
    slope = kernel.slope(s, np, *kernel.parameters)
    np.testing.assert_array_equal(s, [0.0, 0.3, 9.0])
    assert np.isfinite(slope).all()
    assert slope.shape == s.shape


class CountedExponential:
    """A profile that remembers whether its argument was changed: a pure one never does."""

    __name__ = "counted"

    def __call__(self, s, xp):
        before = s.copy()
        k = xp.exp(-s)
        np.testing.assert_array_equal(s, before)
        return k


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_pure_profile_works_in_tiles(precision):
    """Its result is a new array, which must find its way into the tile."""
    X, X_new, y = normal(40, 3), normal(9, 3, seed=7), normal(40, 1, seed=1)[:, 0]
    kernel = Radial(CountedExponential(), bandwidth=1.3)
    ours, named = (
        SketchedKernelRidge(
            k, bandwidth=h, alpha=0.5, sketch_size=20, dtype=precision, random_state=0
        ).fit(X, y)
        for k, h in ((kernel, 1.3), ("gaussian", 1.3 / np.sqrt(2)))
    )
    assert_close(ours.predict(X_new), named.predict(X_new), precision)
    assert_close(ours.variance(X_new), named.variance(X_new), precision)


def test_a_users_kernel_learns_its_bandwidth_like_any_other():
    X, y = normal(60, 2), normal(60, 1, seed=1)[:, 0]
    kernel = Radial(rational_quadratic, parameters=(1.5,))
    model = ExactKernelRidge(kernel, alpha=0.5).fit(X, y)
    assert model.bandwidth_ == ExactKernelRidge("gaussian", alpha=0.5).fit(X, y).bandwidth_
    theirs_at = theirs.RationalQuadratic(length_scale=model.bandwidth_, alpha=1.5)
    reference = KernelRidge(kernel="precomputed", alpha=0.5).fit(theirs_at(X), y)
    assert_close(model.predict(X), reference.predict(theirs_at(X)))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_a_map_is_the_kernel_of_mapped_points(k):
    X, Z, M = normal(12, 3) + 4, normal(5, 3, seed=1), normal(3, k, seed=2)
    for make in (Gaussian, Matern32, Matern52):
        assert_close(make(M).fitted(X)(X, Z), make(1.0)(X @ M, Z @ M))


def test_a_diagonal_map_is_a_bandwidth_for_each_feature():
    X, y = normal(30, 3), normal(30, 1, seed=1)[:, 0]
    models = [
        ExactKernelRidge(bandwidth=h, alpha=0.3).fit(X, y) for h in (H_EACH, np.diag(1 / H_EACH))
    ]
    assert_close(models[1].predict(X), models[0].predict(X))
    assert_close(models[1].variance(X), models[0].variance(X))


@pytest.mark.parametrize("make", [Gaussian, Matern32, Matern52])
def test_reach_is_where_the_kernel_leaves_single_precision(make):
    kernel = make(1.0)
    assert kernel.evaluate(np.array([kernel.reach]), np)[0] >= 1e-34
    assert kernel.evaluate(np.array([2 * kernel.reach]), np)[0] < 1e-34


def test_heavy_tails_reach_everywhere():
    assert Radial(rational_quadratic, bandwidth=1.0, parameters=(0.2,)).reach == np.inf


# Scales: powers of two are taken out of kernels of the inner product


@pytest.mark.parametrize("scale", [1e-60, 1e-20, 1.0, 1e20, 1e60])
@pytest.mark.parametrize(
    "kernel", [Linear(), Polynomial(1, 0.7, 0.0), Polynomial(2, 0.5, 0.0)], ids=repr
)
def test_evaluated_values_are_about_one_whatever_the_scale(kernel, scale):
    X = scale * normal(30, 4)
    fitted = kernel.fitted(X)
    assert 0.01 < np.abs(values(fitted, X, X)).max() < 100
    assert np.log2(fitted.unit) == round(np.log2(fitted.unit))
    gamma = kernel.gamma
    power = kernel.degree
    assert_close(
        fitted(X, X) / scale ** (2 * power), (gamma * (X / scale) @ (X / scale).T) ** power
    )


def test_the_power_of_two_changes_no_bit():
    X = normal(30, 4)
    fitted = Linear().fitted(X)
    np.testing.assert_array_equal(fitted(X, X), Linear()(X, X))
    assert fitted.scale != 1


SCALED = {
    "linear": (Linear, 1),
    "linear in float32": (Linear, 1),
    "polynomial of degree 1": (lambda: Polynomial(1, 0.5, 0.0), 1),
    "polynomial of degree 2": (lambda: Polynomial(2, 0.5, 0.0), 2),
}
EXTREMES = [
    (name, scale)
    for name, (_, degree) in SCALED.items()
    for scale in (1e-60, 1e60, *((1e-150, 1e150) if degree == 1 else ()))
]


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize(("name", "scale"), EXTREMES)
def test_data_times_a_constant_give_the_same_fit_with_alpha_scaled(name, scale, fit_intercept):
    """k is homogeneous of degree 2p, so α scaled by c^2p gives the same mean and variance of it."""
    make, degree = SCALED[name]
    X, y, X_new = normal(50, 5), normal(50, 1, seed=1)[:, 0], normal(6, 5, seed=7)
    dtype = "float32" if "float32" in name else "float64"
    options = {"fit_intercept": fit_intercept}
    sketched = {"sketch_size": 4, "dtype": dtype, "random_state": 0}
    alpha = 0.3
    grown = alpha * scale ** (2 * degree)
    for cls, more in ((ExactKernelRidge, {}), (SketchedKernelRidge, sketched)):
        plain = cls(make(), alpha=alpha, **options, **more).fit(X, y)
        scaled = cls(make(), alpha=grown, **options, **more).fit(scale * X, y)
        kind = "float64" if cls is ExactKernelRidge else dtype
        assert_close(scaled.predict(scale * X_new), plain.predict(X_new))
        assert_close(scaled.variance(scale * X_new), plain.variance(X_new), kind)
        assert_close(scaled.noise_variance_, plain.noise_variance_)
        assert_close(scaled.effective_dof_, plain.effective_dof_)


@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1e8, 1e30])
def test_a_polynomial_with_a_constant_sees_data_and_gamma_only_together(scale):
    """(γ x·z + c₀)^p is the same for cX and γ/c²."""
    X, y, X_new = normal(50, 3), normal(50, 1, seed=1)[:, 0], normal(6, 3, seed=7)
    plain = ExactKernelRidge(Polynomial(3, 0.5, 1.0), alpha=0.3).fit(X, y)
    scaled = ExactKernelRidge(Polynomial(3, 0.5 / scale**2, 1.0), alpha=0.3).fit(scale * X, y)
    assert_close(scaled.predict(scale * X_new), plain.predict(X_new))
    assert_close(scaled.variance(scale * X_new), plain.variance(X_new))


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_eigenvalues_and_penalty_are_in_units_of_the_kernel(scale):
    X, y = normal(40, 3), normal(40, 1, seed=1)[:, 0]
    plain, scaled = (ExactKernelRidge("linear", alpha="gcv").fit(c * X, y) for c in (1.0, scale))
    assert_close(scaled.lambda_ / scale**2, plain.lambda_)
    assert_close(scaled.alpha_ / scale**2, plain.alpha_)
    assert_close(scaled.eigenvalues_ / scale**2, plain.eigenvalues_)
    assert_close(scaled.path_.lam / scale**2, plain.path_.lam)
    assert_close(scaled.variance(scale * X, kind="gp") / scale**2, plain.variance(X, kind="gp"))


# A matrix in place of points


def precomputed_pair(cls, n=40, w=None, repeat=False, **options):
    X, y, X_new = normal(n, 3), normal(n, 1, seed=1)[:, 0], normal(6, 3, seed=7)
    if repeat:
        X[n // 2 : n // 2 + 8] = X[:8]
    kernel = Gaussian(1.1)
    common = {"alpha": 0.4, **options}
    plain = cls(kernel, **common).fit(X, y, w)
    given = cls("precomputed", **common).fit(kernel(X, X), y, w)
    return plain, given, X_new, kernel(X_new, X)


SKETCHED = {"sketch": "landmarks", "sketch_size": 12, "random_state": 0, "dtype": "float64"}


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("repeat", [False, True], ids=["distinct", "repeated"])
def test_a_precomputed_matrix_is_the_kernel_it_came_from(repeat, weighted, fit_intercept):
    w = np.where(np.arange(40) % 7 == 3, 0.0, 1.0 + np.arange(40) % 3) if weighted else None
    for cls, more in ((ExactKernelRidge, {}), (SketchedKernelRidge, SKETCHED)):
        plain, given, X_new, G_new = precomputed_pair(
            cls, w=w, repeat=repeat, fit_intercept=fit_intercept, **more
        )
        assert_close(given.predict(G_new), plain.predict(X_new))
        assert_close(given.variance(G_new), plain.variance(X_new))
        assert_close(given.noise_variance_, plain.noise_variance_)
        assert_close(given.loo_error_, plain.loo_error_)


def test_a_precomputed_matrix_refines_to_v1():
    plain, given, X_new, G_new = precomputed_pair(
        SketchedKernelRidge, noise_variance=1.0, **SKETCHED
    )
    exact, _, _, _ = precomputed_pair(ExactKernelRidge, noise_variance=1.0)
    refined = given.variance(G_new, kind="v1", tol=1e-6)
    np.testing.assert_allclose(refined, exact.variance(X_new), rtol=1e-6)
    for values_, bound in (
        m.variance(x, return_bound=True) for m, x in ((given, G_new), (plain, X_new))
    ):
        assert (np.abs(np.sqrt(values_) - np.sqrt(exact.variance(X_new))) <= bound).all()


def test_a_precomputed_matrix_knows_both_orders_of_training_and_new_points():
    G, G_new = np.cov(normal(5, 9)), normal(2, 5)
    kernel = Precomputed()
    U, V = kernel.training_coordinates(G), kernel.coordinates(G_new)
    np.testing.assert_array_equal(kernel.block(U, U), G)
    np.testing.assert_array_equal(kernel.block(V, U[[3, 1]]), G_new[:, [3, 1]])
    np.testing.assert_array_equal(kernel.block(U[[3, 1]], V), G_new[:, [3, 1]].T)
    with pytest.raises(ValueError, match="between new points is not in a precomputed"):
        kernel.block(V, V)


def test_a_precomputed_matrix_is_copied():
    G, y = Gaussian(1.1)(normal(30, 3), normal(30, 3)), normal(30, 1, seed=1)[:, 0]
    G_new = G[:5].copy()
    model = ExactKernelRidge("precomputed", alpha=0.4).fit(G, y)
    before = model.predict(G_new)
    G[:] = 0
    np.testing.assert_array_equal(model.predict(G_new), before)


def test_k_at_new_points_is_not_in_a_precomputed_matrix():
    _, given, _, G_new = precomputed_pair(ExactKernelRidge)
    with pytest.raises(ValueError, match=r"k\(x, x\) of new points is not in a precomputed"):
        given.variance(G_new, kind="gp")


X3 = normal(8, 3)
ERRORS = {
    "unknown name lists the known ones": (
        lambda: as_kernel("gausian"),
        r"Unknown kernel 'gausian': give 'auto', one of " + ", ".join(map(repr, KERNELS)),
    ),
    "a class is not a kernel": (lambda: as_kernel(Custom), "Unknown kernel"),
    "what makes a kernel is none": (lambda: as_kernel(Gaussian), "Unknown kernel"),
    "a number is not a kernel": (lambda: as_kernel(3), "Unknown kernel 3"),
    "white": (lambda: as_kernel(WhiteKernel()), "contains a WhiteKernel.*set alpha"),
    "white in a sum": (
        lambda: as_kernel(RBF() + WhiteKernel()),
        "contains a WhiteKernel.*set alpha",
    ),
    "white nested": (
        lambda: as_kernel(ConstantKernel() * (RBF() + WhiteKernel()) ** 2),
        "contains a WhiteKernel.*set alpha",
    ),
    "negative definite": (
        lambda: Custom(lambda X, Z: -X @ Z.T).check(X3),
        "is not positive semidefinite: on 8 rows.*eigenvalues",
    ),
    "asymmetric": (
        lambda: Custom(lambda X, Z: X @ np.triu(np.ones((3, 3))) @ Z.T).check(X3),
        "is not positive semidefinite",
    ),
    "wrong shape": (
        lambda: Custom(lambda X, Z: np.ones(len(X))).check(X3),
        r"array of shape \(8,\) for 8 and 8 points; it must return one of shape \(8, 8\)",
    ),
    "transposed": (
        lambda: Custom(lambda X, Z: Z @ X.T)(X3, X3[:2]),
        r"shape \(2, 8\) for 8 and 2 points",
    ),
    "nan": (
        lambda: Custom(lambda X, Z: np.full((len(X), len(Z)), np.nan)).check(X3),
        "has NaN or infinity on the data; it must be finite",
    ),
    "no bandwidth": (lambda: Gaussian()(X3, X3), r"Gaussian\(\) has no bandwidth yet"),
    "cubic spline outside": (
        lambda: CubicSpline().check_domain(X3),
        r"lives on \[0, 1\], but X has values from .*MinMaxScaler",
    ),
    "sobolev outside": (
        lambda: PeriodicSobolev().check_domain(X3),
        r"lives on \[0, 1\], but X has values from",
    ),
    "a profile that is not 1 at 0": (
        lambda: Radial(lambda s, xp: 2 * xp.exp(-s), name="twice", bandwidth=1.0).check(X3),
        r"profile of twice\(bandwidth=1.0\) is 2 at s = 0, but a radial kernel is 1 there: divide",
    ),
    "a profile that is not a number at 0": (
        lambda: Radial(lambda s, xp: s * np.nan, name="none", bandwidth=1.0).check(X3),
        "is nan at s = 0, but a radial kernel is 1 there",
    ),
    "precomputed not square": (
        lambda: Precomputed().check(np.ones((3, 2))),
        r"fitted to the \(n, n\) kernel matrix, got shape \(3, 2\)",
    ),
    "precomputed not semidefinite": (
        lambda: Precomputed().check(-np.eye(3)),
        "The precomputed kernel matrix is not positive semidefinite",
    ),
    "precomputed called": (lambda: Precomputed()(X3, X3), "A precomputed kernel has no points"),
    "values beyond floating point": (
        lambda: Polynomial(4).fitted(1e100 * X3),
        r"values of Polynomial\(.*\) between rows of X are beyond floating point.*rescale X",
    ),
}
DEGREE = "degree of Polynomial.* must be a whole number from 1 up"
ORDER = "order of a periodic Sobolev kernel must be a whole number from 1 to 15"
COEF0 = "positive semidefinite only for a finite coef0 >= 0"
GAMMA = "gamma of .* must be a positive number"
ERRORS |= {
    f"degree {p}": (lambda p=p: Polynomial(degree=p).check(X3), DEGREE)
    for p in (0, -2, 2.5, np.nan, "2", True)
}
ERRORS |= {
    f"order {p}": (lambda p=p: PeriodicSobolev(order=p).check(X3), ORDER)
    for p in (0, -1, 1.5, np.nan, 16, 130, True)
}
ERRORS |= {
    f"coef0 {c}": (lambda c=c: Polynomial(coef0=c).check(X3), COEF0)
    for c in (-0.1, np.nan, np.inf, "a")
}
ERRORS |= {
    f"gamma {g}": (lambda g=g: Polynomial(gamma=g).check(X3), GAMMA)
    for g in (0, -1.0, np.nan, np.inf, "a")
}


@pytest.mark.parametrize(("bad", "text"), ERRORS.values(), ids=ERRORS)
def test_error_is_a_sentence(bad, text):
    with pytest.raises(ValueError, match=text):
        bad()


@pytest.mark.parametrize("cls", [ExactKernelRidge, SketchedKernelRidge])
def test_the_estimator_refuses_a_profile_that_is_not_1_at_0(cls):
    kernel = Radial(lambda s, xp: 2 * xp.exp(-s), name="twice")
    with pytest.raises(ValueError, match="is 2 at s = 0, but a radial kernel is 1 there"):
        cls(kernel, alpha=1.0).fit(X3, X3[:, 0])
