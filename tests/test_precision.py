"""The plan of precisions: what the model of rounding says, and that it bounds what products do."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import (
    KERNEL_CASES,
    KernelCase,
    assert_close,
    at,
    basis_for,
    normal,
    ridge_for,
    sample_for,
    targets,
    tol,
    uneven,
    values,
)
from numpy.testing import assert_allclose

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.kernels import Gaussian, Polynomial
from sketchridge.precision import EPS, Plan, Scales, magnified, make_plan, rounding
from sketchridge.sketches import RPCholeskySketch

NUMPY = ("float32", "float64")
TRITON = ("float16", "float16x2", "float32", "float64")
EVEN = Scales(largest=4.0, typical=3.0, diag=1.0, trace=1.0, growth=1.0, rows=100)


def scales(**changes) -> Scales:
    return Scales(**{**EVEN.__dict__, **changes})


# The model


def test_machine_precisions_are_the_devices():
    assert EPS["float64"] == np.finfo(float).eps
    assert EPS["float32"] == np.finfo(np.float32).eps
    assert EPS["float16"] == np.finfo(np.float16).eps / 2
    assert EPS["float16"] > EPS["float16x2"] > EPS["float32"] > EPS["float64"]


@pytest.mark.parametrize("precision", EPS)
def test_magnified_is_its_formula(precision):
    expected = EPS[precision] * 3.0 * 7.0 * 50.0
    assert_close(magnified(precision, scales(growth=3.0, largest=7.0), 50.0), expected)
    assert_close(magnified(precision, scales(growth=3.0, largest=0.0), 50.0), expected * 4 / 7)


@pytest.mark.parametrize("precision", EPS)
@pytest.mark.parametrize("diag", [1e-7, 1e7])
def test_squares_of_kernel_values_must_not_leave_single_precision(precision, diag):
    error = magnified(precision, scales(diag=diag), 1.0)
    assert np.isfinite(error) == (precision == "float64")


@pytest.mark.parametrize("precision", EPS)
def test_rounding_is_its_formula(precision):
    expected = 8 * np.sqrt(100) * EPS[precision] * 2.0 * 3.0
    assert_close(rounding(precision, scales(growth=2.0)), expected)
    assert_close(rounding(precision, scales(growth=2.0, trace=6.0)), 2 * expected)


def test_one_outlier_does_not_make_rounding_large():
    """`typical` is a mean over rows, of which an outlier is one."""
    X = normal(1000, 2)
    far = X.copy()
    far[0] = 1e3
    sample, spoiled = (sample_for(Gaussian(1.0), A) for A in (X, far))
    ratio = rounding("float64", spoiled.scales) / rounding("float64", sample.scales)
    assert ratio < spoiled.scales.largest / sample.scales.largest


@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
def test_rounding_bounds_what_products_do_to_the_kernel_matrix(case: KernelCase, weighted):
    """‖K − K'‖ for K' in single precision; products with the identity are K' itself."""
    n = 120
    X = case.points(n)
    kernel = case.fitted(X)
    w = uneven(n) if weighted else np.ones(n)
    sample = sample_for(kernel, X, w)
    root = np.sqrt(w / w.sum())
    backend = sample.backend
    products = backend.matmul(
        sample.points, sample.points, backend.tall(np.eye(n)), precision="float32"
    )
    lost = root[:, None] * (products.host() - values(kernel, X, X)) * root
    assert np.linalg.norm(lost, 2) <= rounding("float32", sample.scales)


@pytest.mark.parametrize("offset", [0.0, 30.0, 300.0])
def test_rounding_covers_points_far_from_the_center(offset):
    """Two clusters: squared distances by matrix product lose ε‖u‖²."""
    X = normal(100, 2)
    X[::2] += offset
    sample = sample_for(Gaussian(1.0).fitted(X), X)
    backend = sample.backend
    products = backend.matmul(
        sample.points, sample.points, backend.tall(np.eye(100)), precision="float32"
    )
    lost = (products.host() - values(sample.points.kernel, X, X)) / 100
    assert np.linalg.norm(lost, 2) <= rounding("float32", sample.scales)


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("lam_over_largest", [1.0, 1e-1, 1e-2, 1e-3])
def test_magnified_bounds_what_single_precision_does_to_v2(
    lam_over_largest, weighted, fit_intercept
):
    X, X_new = normal(200, 3), normal(20, 3, seed=7)
    w = uneven(200) if weighted else None
    basis = basis_for(Gaussian(1.0).fitted(X), X, targets(200), RPCholeskySketch(), 60, w=w)
    lam = lam_over_largest * basis.largest
    exact, single = (
        ridge_for(basis, lam, fit_intercept, precision=name) for name in ("float64", "float32")
    )
    query = at(exact, X_new)
    error = np.abs(single.residual_form(query, 1.0) / exact.residual_form(query, 1.0) - 1).max()
    assert error <= magnified("float32", basis.sample.scales, basis.largest / lam)


def test_magnified_is_inverse_to_the_penalty():
    assert_close(magnified("float32", EVEN, 20.0), 2 * magnified("float32", EVEN, 10.0))


# The plan


def test_auto_may_be_less_precise_where_that_costs_little():
    assert make_plan("auto", NUMPY, "numpy", 0.1) == Plan("float64", 0.001, ("float32",))
    assert make_plan("auto", TRITON, "triton", 0.1) == Plan("float64", 0.001, ("float32",))
    assert make_plan("auto", ("float64",), "odd", 0.1) == Plan("float64", 0.001, ())


@pytest.mark.parametrize("dtype", TRITON)
def test_a_precision_that_was_asked_for_is_obeyed(dtype):
    plan = make_plan(dtype, TRITON, "triton", 0.1)
    for ratio in (1.0, 1e6, 1e12):
        steps = (
            plan.variance(EVEN, ratio),
            plan.first(EVEN, ratio, 0.01),
            plan.step(EVEN, ratio),
            plan.sketch(EVEN, ratio, TRITON),
            plan.sketch(EVEN, None, TRITON),
        )
        assert set(steps) == {dtype}


def ratio_for(precision: str, error: float) -> float:
    """The E₁/λ at which a precision may put V2 off by that much."""
    return error / magnified(precision, EVEN, 1.0)


STEPS = {
    "variance": (lambda plan, ratio: plan.variance(EVEN, ratio), 0.001),
    "first residual": (lambda plan, ratio: plan.first(EVEN, ratio, 0.01), 0.02),
    "steps": (lambda plan, ratio: plan.step(EVEN, ratio), 0.1),
    "sketch": (lambda plan, ratio: plan.sketch(EVEN, ratio, NUMPY), 0.001),
}


@pytest.mark.parametrize(("choose", "allowed"), STEPS.values(), ids=STEPS)
def test_the_cheapest_precision_within_the_error_allowed_is_chosen(choose, allowed):
    plan = make_plan("auto", NUMPY, "numpy", 0.1)
    edge = ratio_for("float32", allowed)
    assert choose(plan, 0.99 * edge) == "float32"
    assert choose(plan, 1.01 * edge) == "float64"


def test_kernel_values_out_of_range_are_not_put_into_single_precision():
    plan = make_plan("auto", NUMPY, "numpy", 0.1)
    for step in (plan.variance, plan.step):
        assert step(scales(diag=1e8), 1.0) == "float64"
    assert plan.sketch(scales(diag=1e8), 1.0, NUMPY) == "float64"


def test_signs_are_applied_in_half_precision_where_the_budget_allows():
    plan = make_plan("auto", TRITON, "triton", 0.1)
    edge = ratio_for("float16x2", 0.001)
    assert plan.sketch(EVEN, 0.99 * edge, TRITON) == "float16x2"
    assert plan.sketch(EVEN, 1.01 * edge, TRITON) == "float32"
    assert plan.sketch(EVEN, 0.99 * edge, NUMPY) == "float32"


def test_an_open_penalty_needs_a_sketch_in_full_precision():
    assert make_plan("auto", TRITON, "triton", 0.1).sketch(EVEN, None, TRITON) == "float64"


def test_the_tolerance_of_the_sketch_sets_the_budget():
    loose, tight = (make_plan("auto", NUMPY, "numpy", tol) for tol in (1.0, 0.01))
    assert (loose.budget, tight.budget) == (0.01, 0.0001)
    ratio = ratio_for("float32", 0.001)
    assert (loose.variance(EVEN, ratio), tight.variance(EVEN, ratio)) == ("float32", "float64")


@pytest.mark.parametrize("dtype", ["auto", "float64"])
def test_where_full_precision_is_too_coarse_it_is_hopeless(dtype):
    plan = make_plan(dtype, NUMPY, "numpy", 0.1)
    edge = ratio_for("float64", 0.1)
    assert not plan.hopeless(EVEN, 0.99 * edge)
    assert plan.hopeless(EVEN, 1.01 * edge)


def test_a_coarse_precision_is_hopeless_sooner():
    plan = make_plan("float32", NUMPY, "numpy", 0.1)
    edge = ratio_for("float32", 0.1)
    assert not plan.hopeless(EVEN, 0.99 * edge)
    assert plan.hopeless(EVEN, 1.01 * edge)


# The estimator follows it


@pytest.mark.parametrize(("alpha", "expected"), [(50.0, "float32"), (1e-4, "float64")])
def test_a_fit_uses_single_precision_where_the_plan_says_so(alpha, expected):
    X, y = normal(100, 2), targets(100)[:, 0]
    model = SketchedKernelRidge(alpha=alpha, bandwidth=1.0, random_state=0).fit(X, y)
    assert model.dtype_ == expected


@pytest.mark.filterwarnings("ignore:λ = ")
@pytest.mark.parametrize("alpha", [50.0, 1e-4])
@pytest.mark.parametrize("dtype", NUMPY)
def test_a_fit_obeys_the_dtype_that_was_asked_for(dtype, alpha):
    X, y = normal(100, 2), targets(100)[:, 0]
    model = SketchedKernelRidge(alpha=alpha, bandwidth=1.0, dtype=dtype, random_state=0).fit(X, y)
    assert model.dtype_ == dtype


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("sketch", ["rpcholesky", "gaussian"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("distance", [1e5, 1e7, 1e8])
def test_powers_of_far_coordinates_stay_in_range(distance, fit_intercept, sketch):
    X = np.random.default_rng(0).random((40, 2))
    X_new = np.vstack([X[:2], [[distance, distance]]])

    def model(dtype: str) -> SketchedKernelRidge:
        given = {"alpha": 1.0, "sketch": sketch, "sketch_size": 4, "noise_variance": 1.0}
        given |= {"fit_intercept": fit_intercept, "solver": "sketch", "random_state": 0}
        return SketchedKernelRidge(Polynomial(degree=5), dtype=dtype, **given).fit(X, X[:, 0])

    found, full = model("auto"), model("float64")
    assert found.dtype_ == "float32"
    assert_allclose(found.predict(X_new), full.predict(X_new), rtol=tol("percent"))
    for kind in ("v2", "v3", "vbar", "vtheta", "gp", "bias2"):
        expected = full.variance(X_new, kind)
        assert_allclose(found.variance(X_new, kind), expected, rtol=tol("percent"))


def test_a_penalty_below_rounding_is_warned_of():
    """Years as a feature of a polynomial kernel: defects.md, H3."""
    years = np.arange(1960, 2020.0)[:, None]
    y = np.sin((years[:, 0] - 1960) / 8)
    model = SketchedKernelRidge(Polynomial(), alpha=1.0, random_state=0)
    with pytest.warns(
        UserWarning, match=r"λ = .* below the rounding of float64.*center and rescale"
    ):
        model.fit(years, y)


def noise_free(n: int = 80, seed: int = 0):
    X = np.random.default_rng(seed).random((n, 3))
    return X, np.sin(5 * X[:, 0])


@pytest.mark.usefixtures("defaults")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"bandwidth": "full"},
        {"kernel": "gaussian", "bandwidth": "median", "solver": "sketch"},
        {"kernel": Polynomial(degree=2), "bandwidth": "median", "fit_intercept": False},
    ],
    ids=["default", "full", "sketch", "polynomial"],
)
def test_the_data_choose_no_penalty_below_rounding(given, seed):
    X, y = noise_free(seed=seed)
    model = SketchedKernelRidge(**given).fit(X, y)
    ridge = model.fitted_.ridge
    ratio = ridge.growth * ridge.basis.largest / ridge.lam
    assert not Plan("float64", 1e-3).hopeless(ridge.sample.scales, ratio)


@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize("seed", range(3))
def test_a_penalty_raised_above_rounding_predicts_as_well(seed):
    """Against the dense algebra of the exact problem, which needs no such penalty."""
    X, y = noise_free(seed=seed)
    X_new, y_new = noise_free(500, seed=seed + 10)
    found, exact = (cls().fit(X, y) for cls in (SketchedKernelRidge, ExactKernelRidge))
    assert exact.alpha_ <= found.alpha_ < 3 * exact.alpha_
    errors = [abs(model.predict(X_new) - y_new).max() for model in (found, exact)]
    assert errors[0] < 1.5 * errors[1] < 1e-3 * y.std()


@pytest.mark.usefixtures("defaults")
def test_the_least_penalty_above_rounding_is_taken():
    X, y = noise_free()
    model = SketchedKernelRidge().fit(X, y)
    given = {"kernel": model.kernel_, "bandwidth": model.map_}
    with pytest.warns(UserWarning, match="below the rounding of float64"):
        SketchedKernelRidge(alpha=0.9 * model.alpha_, **given).fit(X, y)


@pytest.mark.parametrize(
    ("dtype", "named"), [("auto", False), ("float64", False), ("float32", True)]
)
def test_another_dtype_is_a_remedy_only_where_it_is_another(dtype, named):
    X, y = noise_free()
    given = {"bandwidth": 0.5, "alpha": 1e-13, "dtype": dtype}
    with pytest.warns(UserWarning, match="below the rounding") as caught:
        SketchedKernelRidge("gaussian", **given).fit(X, y)
    text = next(str(one.message) for one in caught if "below the rounding" in str(one.message))
    assert ("dtype='float64'" in text) == named


ERRORS = {
    "unknown": (
        lambda: make_plan("float8", NUMPY, "numpy", 0.1),
        "Unknown dtype 'float8': give 'auto', 'float16', 'float16x2', 'float32', 'float64'",
    ),
    "a type": (lambda: make_plan(np.float32, NUMPY, "numpy", 0.1), "Unknown dtype .*float32"),
    "none": (lambda: make_plan(None, NUMPY, "numpy", 0.1), "Unknown dtype None"),
    "not here": (
        lambda: make_plan("float16", NUMPY, "numpy", 0.1),
        "dtype='float16' needs a GPU and backend='triton', but the backend is 'numpy': give "
        "'float32' or 'float64'",
    ),
    "an array": (lambda: make_plan(np.ones(2), NUMPY, "numpy", 0.1), "Unknown dtype array"),
}


@pytest.mark.parametrize(("bad", "text"), ERRORS.values(), ids=ERRORS)
def test_error_is_a_sentence(bad, text):
    with pytest.raises(ValueError, match=text):
        bad()


def test_a_complete_sketch_of_few_rows_is_certified():
    """In single precision its certificate would bound nothing but rounding."""
    X, y = normal(600, 2), targets(600)[:, 0]
    model = SketchedKernelRidge("gaussian", bandwidth="median", alpha="loo", random_state=0)
    model.fit(X, y)
    assert model.fitted_.factor.complete
    assert model.dtype_ == "float64"
    assert model.certificate_.relative < 0.01
