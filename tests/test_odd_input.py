"""Odd input works, and input is never modified."""

import warnings

import numpy as np
import pytest
from helpers import assert_close
from problems import KERNEL_NAMES, assert_same_answers, classes, intercepts, kinds
from sklearn.base import clone

from sketchridge import ExactKernelRidge, SketchedKernelRidge, chosen, exact_fit, selection
from sketchridge.sketches import SKETCHES

SEED = 0
N, D = 24, 3
rng = np.random.default_rng(SEED)
X = rng.uniform(0, 1, (N, D))
y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(N)


def with_entry(A: np.ndarray, value: float) -> np.ndarray:
    """A copy of A whose entry in the third row is another."""
    B = A.copy()
    B[2 if A.ndim == 1 else (2, 1)] = value
    return B


ODD_DATA = {
    "duplicated rows": (np.vstack([X, X, X]), np.concatenate([y, y + 0.1, y - 0.1])),
    "two distinct rows, many times": (np.tile(X[:2], (20, 1)), np.tile(y[:2], 20)),
    "a constant feature": (np.column_stack([X, np.full(N, 7.0)]), y),
    "a constant feature of large numbers": (np.column_stack([X, np.full(N, 1e9)]), y),
    "constant y": (X, np.full(N, 3.0)),
    "zero y": (X, np.zeros(N)),
    "two rows": (X[:2], y[:2]),
    "three rows": (X[:3], y[:3]),
    "a thousand features": (rng.standard_normal((30, 1000)), rng.standard_normal(30)),
    "features of different scale": (X * [1e-6, 1, 1e6], y),
    "one feature": (X[:, :1], y),
    "one feature, on a grid": (np.linspace(0, 1, 100)[:, None], np.linspace(0, 1, 100) ** 2),
    "far from the origin": (X + 1e6, y),
    "tiny numbers": (1e-12 * X, y),
    "large numbers": (1e12 * X, y),
    "integers": (np.arange(60).reshape(20, 3), np.arange(20)),
    "small integers": (
        rng.integers(0, 255, (30, 3)).astype(np.uint8),
        rng.integers(0, 9, 30).astype(np.int8),
    ),
    "float16": (X.astype(np.float16), y.astype(np.float16)),
    "float32": (X.astype(np.float32), y.astype(np.float32)),
    "booleans": (X > 0.5, y > 0.5),
    "Fortran order": (np.asfortranarray(X), y),
    "every other row and column": (
        np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
        np.repeat(y, 2)[::2],
    ),
    "backwards": (X[::-1, ::-1], y[::-1]),
    "lists": (X.tolist(), y.tolist()),
    "big-endian": (X.astype(">f8"), y.astype(">f8")),
    "huge y": (X, 1e12 * y),
    "tiny y": (X, 1e-12 * y),
    "the largest y": (X, 1e149 * y),
    "the smallest y": (X, 1e-149 * y),
    "huge offset in y": (X, 1e9 + y),
    "an outlier in X": (with_entry(X, 1e6), y),
    "an outlier in y": (X, with_entry(y, 1e6)),
    "huge and tiny targets": (X, np.column_stack([1e12 * y, 1e-12 * y])),
    "one column of targets": (X, y[:, None]),
    "a target that is constant": (X, np.column_stack([y, np.full(N, 3.0)])),
    "hundred targets": (X, rng.standard_normal((N, 100))),
}
CONFIGURATIONS = {
    "default": {},
    "loo, intercept": {"alpha": "loo", "kernel": "matern32", "fit_intercept": True},
    "gcv bandwidth": {"bandwidth": "gcv"},
    "laplacian": {"kernel": "laplacian", "alpha": 1e-3},
    "linear": {"kernel": "linear"},
    "polynomial, intercept": {"kernel": "polynomial", "fit_intercept": True},
}


def assert_sane(model, A):
    """Finite means, finite and non-negative variances of every kind, ordered intervals."""
    mean, std = model.predict(A, return_std=True)
    assert mean.shape == std.shape
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std >= 0).all()
    for kind in kinds(model):
        v = model.variance(A, kind)
        assert np.isfinite(v).all()
        assert (v >= 0).all()
    low, high = model.predict_interval(A)
    assert (low <= high).all()
    assert np.isfinite(model.lambda_)
    assert model.lambda_ > 0
    noise = np.asarray(model.noise_variance_)
    assert np.all(np.isfinite(noise) & (noise >= 0))
    assert np.isfinite(model.loo_error_)
    assert model.effective_dof_ >= 0


@classes
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("case", ODD_DATA)
def test_odd_data_works(case, configuration, cls):
    A, b = ODD_DATA[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)  # of rounding, or of points far away
        assert_sane(cls(**CONFIGURATIONS[configuration]).fit(A, b), A)


SAME_AS_X = {
    "Fortran order": ODD_DATA["Fortran order"],
    "every other row and column": ODD_DATA["every other row and column"],
    "a view that runs backwards": (X[::-1].copy()[::-1], y[::-1].copy()[::-1]),
    "lists": ODD_DATA["lists"],
    "big-endian": ODD_DATA["big-endian"],
    "objects": (X.astype(object), y.astype(object)),
    "a row of targets transposed": (X.T.copy().T, np.array([y]).T[:, 0]),
}


@classes
@pytest.mark.parametrize("case", SAME_AS_X)
def test_how_an_array_is_stored_does_not_matter(case, cls):
    A, b = SAME_AS_X[case]
    options = {"alpha": 0.1} | ({"random_state": 0} if cls is SketchedKernelRidge else {})
    plain = cls(**options).fit(X, y)
    assert_same_answers(cls(**options).fit(A, b), plain, at=X)
    assert_close(plain.predict(A), plain.predict(X))


@pytest.mark.parametrize(
    "case",
    [
        "duplicated rows",
        "two distinct rows, many times",
        "two rows",
        "three rows",
        "constant y",
    ],
)
@pytest.mark.parametrize("size", [1, 3, 50, "auto"])
@pytest.mark.parametrize("sketch", ["auto", *SKETCHES])
@pytest.mark.filterwarnings("ignore::UserWarning")  # of a size above n, or too small for alpha
def test_every_sketch_of_odd_data_works(sketch, size, case):
    A, b = ODD_DATA[case]
    for alpha in ("gcv", 1e-8):
        model = SketchedKernelRidge(
            sketch=sketch,
            sketch_size=size,
            alpha=alpha,
            fit_intercept=size == 3,
            random_state=SEED,
        )
        assert_sane(model.fit(A, b), A)


@classes
@intercepts
@pytest.mark.parametrize("alpha", ["gcv", "loo", 1.0])
@pytest.mark.filterwarnings("ignore:.*far from the training data")
def test_linear_kernel_on_zeros(cls, alpha, fit_intercept):
    """The kernel vanishes: the mean is 0, or the average with an intercept, and so is every
    variance without one."""
    model = cls("linear", alpha=alpha, fit_intercept=fit_intercept)
    model.fit(np.zeros((10, 2)), np.arange(10.0))
    assert_sane(model, np.zeros((10, 2)))
    np.testing.assert_allclose(model.predict(np.ones((3, 2))), 4.5 if fit_intercept else 0.0)
    if not fit_intercept:
        np.testing.assert_array_equal(model.predict(np.ones((3, 2)), return_std=True)[1], 0.0)


@classes
def test_identical_rows_with_a_given_bandwidth(cls):
    """Of one point seen ten times the mean is the average, shrunk by 10/(10 + alpha)."""
    model = cls(bandwidth=1.0, alpha=1.0).fit(np.ones((10, 2)), np.arange(10.0))
    np.testing.assert_allclose(model.predict(np.ones((1, 2))), 4.5 * 10 / 11)
    assert_sane(model, np.ones((10, 2)))


@classes
@pytest.mark.filterwarnings("ignore:.*below the rounding")
def test_constant_y_is_found_by_the_intercept(cls):
    model = cls(fit_intercept=True).fit(X, np.full(N, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0)
    np.testing.assert_allclose(model.predict(X + 100), 3.0)


@classes
@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize("value", [0.0, 5.3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bandwidth": 0.5},
        {"bandwidth": "median"},
        {"bandwidth": "gcv"},
        {"kernel": "gaussian", "bandwidth": 0.5},
        {"kernel": "laplacian"},
        {"kernel": "linear"},
    ],
    ids=str,
)
@intercepts
@pytest.mark.filterwarnings("ignore:.*below the rounding")
def test_constant_y_is_found_whatever_is_chosen(cls, options, value, fit_intercept, monkeypatch):
    """Also without an intercept, and where α is chosen for an exact problem too large to see."""
    if not fit_intercept and options.get("kernel") == "linear":
        pytest.skip("a linear function is no constant")
    monkeypatch.setattr(selection, "_COMPLETE", 20)
    monkeypatch.setattr(exact_fit, "_WHOLE", 20)
    monkeypatch.setattr(chosen, "_ROWS", 20)
    seed = {} if cls is ExactKernelRidge else {"random_state": SEED}
    model = cls(**options, **seed, fit_intercept=fit_intercept).fit(X, np.full(N, value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-9 if fit_intercept else 1e-2)
    low, high = model.predict_interval(X, 0.9)
    assert np.isfinite(low).all()
    assert (low <= high).all()


@classes
def test_sketches_and_penalties_of_numpy_types(cls):
    model = cls(alpha=np.float64(0.5), bandwidth=np.float32(0.5), noise_variance=np.int64(2))
    if cls is SketchedKernelRidge:
        model.set_params(sketch_size=np.int32(5), sketch_tol=np.float32(0.1))
    assert_sane(model.fit(X, y), X)


EXTREMES = {
    "linear, 1e78": ("linear", 1e78),
    "linear, 1e-78": ("linear", 1e-78),
    "linear, 1e140": ("linear", 1e140),
    "linear, 1e-140": ("linear", 1e-140),
    "polynomial, 1e30": ("polynomial", 1e30),
    "polynomial, 1e-30": ("polynomial", 1e-30),
    "gaussian, 1e140": ("gaussian", 1e140),
    "gaussian, 1e-140": ("gaussian", 1e-140),
}


@classes
@intercepts
@pytest.mark.parametrize("case", EXTREMES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scales_that_overflow_when_squared_work(cls, case, fit_intercept):
    """They did not: OverflowError, zeros or NaN."""
    kernel, scale = EXTREMES[case]
    model = cls(kernel, fit_intercept=fit_intercept).fit(scale * X, y)
    mean, std = model.predict(scale * X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std > 0).all()


@classes
@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
@pytest.mark.parametrize("power", [200, -200])
def test_powers_of_two_in_x_change_nothing(cls, kernel, power):
    """A homogeneous kernel takes the scale out; a bandwidth that follows the data does too."""
    options = {"random_state": 0} if cls is SketchedKernelRidge else {}
    one = cls(kernel, **options).fit(X, y)
    other = cls(kernel, **options).fit(np.ldexp(X, power), y)
    assert_close(other.predict(np.ldexp(X, power)), one.predict(X))
    for kind in ("v1",) if cls is ExactKernelRidge else ("v2", "v3"):
        assert_close(other.variance(np.ldexp(X, power), kind), one.variance(X, kind))


# input is never modified


@classes
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_input_is_never_modified(order, kernel, cls):
    """Arrays that may not be written to work, and arrays that may be are as they were."""
    w = np.arange(1.0, N + 1)
    for writeable in (True, False):
        given = [np.array(a, order=order) for a in (X, X / 2, y, X / 3, w)]
        copies = [a.copy() for a in given]
        for a in given:
            a.flags.writeable = writeable
        A, B, b, Z, weights = given
        model = cls(kernel, fit_intercept=True).fit(A, b, weights).partial_fit(B, b, weights)
        assert_sane(model, Z)
        for a, copy in zip(given, copies, strict=True):
            np.testing.assert_array_equal(a, copy)


def test_a_sketch_array_is_never_modified():
    S = rng.standard_normal((5, N))
    copy = S.copy()
    S.flags.writeable = False
    model = SketchedKernelRidge(alpha=1.0, sketch=S).fit(X, y).partial_fit(X, y)
    model.predict(X, return_std=True)
    np.testing.assert_array_equal(S, copy)


@classes
def test_parameters_are_not_changed_by_fit(cls):
    bandwidth = np.array([0.5, 1.0, 2.0])
    model = cls(bandwidth=bandwidth, noise_variance=[0.1])
    parameters = model.get_params()
    model.fit(X, y)
    assert all(model.get_params()[name] is value for name, value in parameters.items())
    np.testing.assert_array_equal(bandwidth, [0.5, 1.0, 2.0])
    clone(model)
