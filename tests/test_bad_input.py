"""Bad input is refused with a sentence before any work; odd input works."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, WhiteKernel

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.kernels import Gaussian, PeriodicSobolev, Polynomial
from sketchridge.sketches import SKETCHES, LandmarkSketch

SEED = 0
N, D = 24, 3
rng = np.random.default_rng(SEED)
X = rng.uniform(0, 1, (N, D))
y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(N)

both = pytest.mark.parametrize("cls", [ExactKernelRidge, SketchedKernelRidge])


def with_entry(A: np.ndarray, value: object, dtype: type = float) -> np.ndarray:
    """A copy of A whose entry in the third row is another."""
    B = A.astype(dtype)
    B[2 if A.ndim == 1 else (2, 1)] = value
    return B


class NoWork:
    """A kernel that fails when it is evaluated: whoever raises another error did so before any work."""

    def __call__(self, A, B):
        raise AssertionError("kernel evaluated before the input was checked")


# what fit refuses, on both estimators

BAD_DATA = {
    "NaN in X": (with_entry(X, np.nan), y, "Input X contains NaN"),
    "infinity in X": (with_entry(X, np.inf), y, "Input X contains infinity"),
    "minus infinity in X": (with_entry(X, -np.inf), y, "Input X contains infinity"),
    "NaN in y": (X, with_entry(y, np.nan), "Input y contains NaN"),
    "infinity in y": (X, with_entry(y, np.inf), "Input y contains infinity"),
    "None in X": (with_entry(X, None, object), y, "Input X contains NaN"),
    "no rows": (X[:0], y[:0], r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 2 is required"),
    "no columns": (X[:, :0], y, r"0 feature\(s\) \(shape=\(24, 0\)\) while a minimum of 1 is required"),
    "one row": (X[:1], y[:1], r"1 sample\(s\) \(shape=\(1, 3\)\) while a minimum of 2 is required"),
    "X of one dimension": (X[:, 0], y, "Expected 2D array, got 1D array"),
    "X of three dimensions": (X[:, :, None], y, "Found array with dim 3"),
    "a number for X": (1.0, y, "Expected 2D array, got scalar array"),
    "strings in X": (with_entry(X, "red", object), y, "must be numeric, but could not convert string to float: 'red': encode text"),
    "strings in y": (X, with_entry(y, "high", object), "must be numeric, but could not convert string to float: 'high'"),
    "strings in a table": (
        pd.DataFrame(X, columns=["a", "b", "c"]).assign(colour="blue"),
        y,
        "must be numeric, but could not convert string to float: 'blue': encode text",
    ),
    "complex X": (X + 1j, y, "Complex data not supported"),
    "complex y": (X, y + 1j, "Complex data not supported"),
    "y too short": (X, y[:-1], r"inconsistent numbers of samples: \[24, 23\]"),
    "y too long": (X[:-1], y, r"inconsistent numbers of samples: \[23, 24\]"),
    "no y": (X, None, "requires y to be passed, but the target y is None"),
    "y of three dimensions": (X, y[:, None, None], "Found array with dim 3"),
}


@both
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_is_refused(case, cls):
    A, b, text = BAD_DATA[case]
    with pytest.raises(ValueError, match=text):
        cls(kernel=NoWork()).fit(A, b)


def not_symmetric(A, B):
    return np.exp(-np.abs(A[:, None, 0] - 2 * B[None, :, 0]))


def not_positive(A, B):
    return -np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))


def sine(A, B):
    return np.sin(10 * np.abs(A[:, None, 0] - B[None, :, 0]))


def not_finite(A, B):
    with np.errstate(divide="ignore"):
        return 1 / np.abs(A[:, None, 0] - B[None, :, 0])


def wrong_shape(A, B):
    return np.ones((len(A), len(B) + 1))


KNOWN_KERNELS = (
    "'gaussian', 'laplacian', 'matern32', 'matern52', 'polynomial', 'linear', 'cubic_spline', 'periodic_sobolev'.*"
    "sketchridge.kernels.*scikit-learn kernel.*callable"
)
ALPHA_TEXT = "alpha must be a positive finite number, 'gcv' or 'loo', got "
BANDWIDTH_TEXT = "bandwidth must be a positive finite number, one such number for each of the 3 features, 'median' or 'gcv', got "
NOISE_TEXT = "noise_variance must be 'auto', or finite and not negative, one number or one for each of the 1 targets, got "
BAD_PARAMETERS = {
    "negative alpha": ({"alpha": -1.0}, ALPHA_TEXT + "-1.0"),
    "zero alpha": ({"alpha": 0}, ALPHA_TEXT + "0"),
    "NaN alpha": ({"alpha": np.nan}, ALPHA_TEXT + "nan"),
    "infinite alpha": ({"alpha": np.inf}, ALPHA_TEXT + "inf"),
    "no alpha": ({"alpha": None}, ALPHA_TEXT + "None"),
    "boolean alpha": ({"alpha": True}, ALPHA_TEXT + "True"),
    "complex alpha": ({"alpha": 1j}, ALPHA_TEXT + "1j"),
    "alpha for each target": ({"alpha": [1.0, 2.0]}, ALPHA_TEXT + r"\[1.0, 2.0\]"),
    "unknown alpha": ({"alpha": "best"}, "Unknown alpha 'best': give a positive number, 'gcv' or 'loo'"),
    "negative bandwidth": ({"bandwidth": -0.5}, BANDWIDTH_TEXT + "-0.5"),
    "zero bandwidth": ({"bandwidth": 0.0}, BANDWIDTH_TEXT + "0.0"),
    "NaN bandwidth": ({"bandwidth": np.nan}, BANDWIDTH_TEXT + "nan"),
    "infinite bandwidth": ({"bandwidth": np.inf}, BANDWIDTH_TEXT + "inf"),
    "no bandwidth": ({"bandwidth": None}, BANDWIDTH_TEXT + "None"),
    "one negative bandwidth": ({"bandwidth": [1.0, -1.0, 1.0]}, BANDWIDTH_TEXT + r"\[1.0, -1.0, 1.0\]"),
    "two bandwidths for three features": ({"bandwidth": [1.0, 1.0]}, BANDWIDTH_TEXT + r"\[1.0, 1.0\]"),
    "a matrix of bandwidths": ({"bandwidth": np.ones((1, 3))}, BANDWIDTH_TEXT + r"array\(\[\[1., 1., 1.\]\]\)"),
    "words for bandwidths": ({"bandwidth": ["wide", "wide", "wide"]}, BANDWIDTH_TEXT + r"\['wide', 'wide', 'wide'\]"),
    "unknown bandwidth": (
        {"bandwidth": "silverman"},
        "Unknown bandwidth 'silverman': give a number, one for each feature, 'median' or 'gcv'",
    ),
    "unknown bandwidth of a kernel without one": (
        {"kernel": "linear", "bandwidth": "silverman"},
        "Unknown bandwidth 'silverman': give a number, one for each feature, 'median' or 'gcv'",
    ),
    "a bandwidth for linear": ({"kernel": "linear", "bandwidth": 2.0}, "has no bandwidth, but bandwidth=2.0 was given"),
    "a bandwidth for polynomial": ({"kernel": Polynomial(), "bandwidth": 2.0}, "Polynomial.*has no bandwidth, but bandwidth=2.0"),
    "a bandwidth for a spline": (
        {"kernel": "cubic_spline", "bandwidth": [1, 1, 1]},
        "CubicSpline.*has no bandwidth, but bandwidth=",
    ),
    "a bandwidth for scikit-learn's": ({"kernel": RBF(), "bandwidth": 2.0}, r"has no bandwidth, but bandwidth=2.0 was given"),
    "a kernel object with a bad bandwidth": ({"kernel": Gaussian(bandwidth=-1.0)}, BANDWIDTH_TEXT + "-1.0"),
    "unknown kernel": ({"kernel": "rbf"}, "Unknown kernel 'rbf': give one of " + KNOWN_KERNELS),
    "a number for a kernel": ({"kernel": 3}, "Unknown kernel 3: give one of " + KNOWN_KERNELS),
    "a class for a kernel": ({"kernel": Gaussian}, "Unknown kernel <class.*Gaussian'>: give one of " + KNOWN_KERNELS),
    "no kernel": ({"kernel": None}, "Unknown kernel None: give one of " + KNOWN_KERNELS),
    "kernel not symmetric": ({"kernel": not_symmetric}, "not_symmetric.*is not positive semidefinite.*asymmetry"),
    "kernel negative": (
        {"kernel": not_positive},
        "not_positive.*is not positive semidefinite.*eigenvalues from -.*Use a symmetric",
    ),
    "kernel indefinite": ({"kernel": sine}, "sine.*is not positive semidefinite: on 24 rows"),
    "scikit-learn kernel indefinite": ({"kernel": ExpSineSquared(0.1, 0.3)}, "ExpSineSquared.*is not positive semidefinite"),
    "kernel not finite": ({"kernel": not_finite}, "not_finite.*returned NaN or infinity"),
    "kernel of the wrong shape": (
        {"kernel": wrong_shape},
        r"returned an array of shape \(24, 25\).*must return one of shape \(24, 24\)",
    ),
    "noise in the kernel": ({"kernel": RBF() + WhiteKernel()}, "contains a WhiteKernel.*set alpha to the noise level"),
    "broken order": (
        {"kernel": PeriodicSobolev(order=0)},
        "order of a periodic Sobolev kernel must be a whole number from 1 up, got 0",
    ),
    "half order": ({"kernel": PeriodicSobolev(order=1.5)}, "must be a whole number from 1 up, got 1.5"),
    "negative degree": ({"kernel": Polynomial(degree=-1)}, "degree.*-1"),
    "negative noise": ({"noise_variance": -0.1}, NOISE_TEXT + "-0.1"),
    "NaN noise": ({"noise_variance": np.nan}, NOISE_TEXT + "nan"),
    "one negative noise": ({"noise_variance": [0.1, -0.1]}, NOISE_TEXT + r"\[0.1, -0.1\]"),
    "no noise": ({"noise_variance": None}, NOISE_TEXT + "None"),
    "unknown noise": ({"noise_variance": "low"}, "Unknown noise_variance 'low': give 'auto' or a number"),
    "two noises for one target": ({"noise_variance": [0.1, 0.2]}, NOISE_TEXT + r"\[0.1, 0.2\]"),
}


@both
@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_bad_parameters_are_refused(case, cls):
    parameters, text = BAD_PARAMETERS[case]
    with pytest.raises(ValueError, match=text):
        cls(**parameters).fit(X, y)


KNOWN_SKETCHES = (
    "'auto', one of 'gaussian', 'rademacher', 'sparse', 'srht', 'fourier', 'landmarks', 'rpcholesky', a sketch object or an"
)
SIZE_TEXT = "sketch_size must be a whole number from 1 up or 'auto', got "
BAD_SKETCHES = {
    "unknown sketch": ({"sketch": "count"}, "Unknown sketch 'count': give " + KNOWN_SKETCHES),
    "a number for a sketch": ({"sketch": 5}, "Unknown sketch 5: give " + KNOWN_SKETCHES),
    "no sketch": ({"sketch": None}, "Unknown sketch None: give " + KNOWN_SKETCHES),
    "array too narrow": ({"sketch": np.ones((4, N - 1))}, r"one column for each of the 24 training rows.*got shape \(4, 23\)"),
    "array too wide": ({"sketch": np.ones((4, N + 1))}, r"one column for each of the 24 training rows.*got shape \(4, 25\)"),
    "array without rows": ({"sketch": np.ones((0, N))}, r"at least one row, got shape \(0, 24\)"),
    "array of one dimension": ({"sketch": np.ones(N)}, r"one column for each of the 24 training rows.*got shape \(24,\)"),
    "array with NaN": ({"sketch": with_entry(np.ones((4, N)), np.nan)}, "sketch array contains NaN or infinity"),
    "array with infinity": ({"sketch": with_entry(np.ones((4, N)), np.inf)}, "sketch array contains NaN or infinity"),
    "complex array": ({"sketch": np.ones((4, N)) * 1j}, "sketch.*complex"),
    "landmarks beyond the data": (
        {"sketch": LandmarkSketch(indices=np.array([3, 99]))},
        "selects row 99, but there are only 24 training",
    ),
    "array of another size": (
        {"sketch": np.eye(N)[:4], "sketch_size": 6},
        "sketch_size=6 does not go with a given sketch of 4 rows.*leave sketch_size='auto'",
    ),
    "sketch larger than the size": (
        {"sketch": np.eye(N)[:4], "sketch_size": 2},
        "sketch_size=2 does not go with a given sketch of 4 rows.*leave sketch_size='auto'",
    ),
    "size 0": ({"sketch_size": 0}, SIZE_TEXT + "0"),
    "size -1": ({"sketch_size": -1}, SIZE_TEXT + "-1"),
    "size 1.5": ({"sketch_size": 1.5}, SIZE_TEXT + "1.5"),
    "size big": ({"sketch_size": "big"}, SIZE_TEXT + "'big'"),
    "no size": ({"sketch_size": None}, SIZE_TEXT + "None"),
    "boolean size": ({"sketch_size": True}, SIZE_TEXT + "True"),
    "an array for a size": ({"sketch_size": np.array([3, 4])}, SIZE_TEXT),
    "tolerance 0": ({"sketch_tol": 0}, "sketch_tol must be a positive number, got 0"),
    "negative tolerance": ({"sketch_tol": -0.1}, "sketch_tol must be a positive number, got -0.1"),
    "NaN tolerance": ({"sketch_tol": np.nan}, "sketch_tol must be a positive number, got nan"),
    "a word for a tolerance": ({"sketch_tol": "tight"}, "sketch_tol must be a positive number, got 'tight'"),
    "unknown solver": ({"solver": "lbfgs"}, "Unknown solver 'lbfgs': give 'sketch'"),
    "unknown backend": ({"backend": "jax"}, "Unknown backend 'jax': give 'auto', one of 'numpy'"),
    "no backend": ({"backend": None}, "Unknown backend None: give 'auto', one of 'numpy'"),
    "unknown dtype": ({"dtype": "int8"}, "Unknown dtype 'int8': give 'auto', 'float16', 'float16x2', 'float32' or 'float64'"),
    "half on the CPU": ({"dtype": "float16"}, "dtype='float16' needs a GPU and backend='triton', but the backend is 'numpy'"),
    "no dtype": ({"dtype": None}, "Unknown dtype None: give 'auto', 'float16', 'float16x2', 'float32' or 'float64'"),
    "unknown seed": ({"random_state": "lucky"}, "'lucky' cannot be used to seed"),
}


@pytest.mark.parametrize("case", BAD_SKETCHES)
def test_bad_sketches_are_refused(case):
    parameters, text = BAD_SKETCHES[case]
    with pytest.raises(ValueError, match=text):
        SketchedKernelRidge(kernel=NoWork(), **parameters).fit(X, y)


@both
@pytest.mark.parametrize("value", [0.0, 1e8], ids=["zeros", "large numbers"])
def test_identical_rows_have_no_median_distance(cls, value):
    with pytest.raises(ValueError, match=r"bandwidth='median' needs rows that differ.*identical: give a number as bandwidth"):
        cls().fit(np.full((10, 2), value), np.arange(10.0))
    with pytest.raises(ValueError, match=r"needs rows that differ.*identical: give a number as bandwidth"):
        cls(bandwidth="gcv").fit(np.full((10, 2), value), np.arange(10.0))


@both
def test_distances_that_overflow_are_named(cls):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match="overflow: rescale X, for example with StandardScaler"):
            cls().fit(1e200 * X, y)


@both
@pytest.mark.parametrize("kernel", ["cubic_spline", "periodic_sobolev"])
def test_points_outside_the_unit_cube_are_refused(cls, kernel):
    with pytest.raises(ValueError, match=r"\[0, ?1\]"):
        cls(kernel).fit(X + 0.5, y)
    fitted = cls(kernel, alpha=1.0).fit(X, y)
    with pytest.raises(ValueError, match=r"\[0, ?1\]"):
        fitted.predict(X - 0.5)


@both
def test_sample_weight_is_refused(cls):
    with pytest.raises(TypeError, match="sample_weight"):
        cls().fit(X, y, sample_weight=np.ones(N))
    assert "`sample_weight` is not supported" in cls.fit.__doc__


# what comes after fit

QUESTIONS = {
    "predict": lambda model, A: model.predict(A),
    "std": lambda model, A: model.predict(A, return_std=True),
    "variance": lambda model, A: model.variance(A),
    "gp": lambda model, A: model.variance(A, kind="gp"),
    "interval": lambda model, A: model.predict_interval(A),
}
BAD_POINTS = {
    "too narrow": (X[:, :2], "X has 2 features, but .*KernelRidge is expecting 3 features"),
    "too wide": (np.hstack([X, X]), "X has 6 features, but .*KernelRidge is expecting 3 features"),
    "NaN": (with_entry(X, np.nan), "Input X contains NaN"),
    "infinity": (with_entry(X, np.inf), "Input X contains infinity"),
    "empty": (X[:0], r"0 sample\(s\)"),
    "one dimension": (X[0], "Expected 2D array, got 1D array"),
    "strings": (with_entry(X, "red", object), "must be numeric, but could not convert string to float: 'red'"),
    "complex": (X + 1j, "Complex data not supported"),
}


@both
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("case", BAD_POINTS)
def test_bad_points_are_refused(case, question, cls):
    A, text = BAD_POINTS[case]
    with pytest.raises(ValueError, match=text):
        QUESTIONS[question](cls(alpha=1.0).fit(X, y), A)


@both
@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_before_fit(question, cls):
    with pytest.raises(NotFittedError, match=f"This {cls.__name__} instance is not fitted yet"):
        QUESTIONS[question](cls(), X)


@both
@pytest.mark.parametrize("name", ["path_", "loo_error_", "eigenvalues_", "s_lambda_", "effective_dof_"])
def test_attributes_before_fit(name, cls):
    with pytest.raises((NotFittedError, AttributeError)):
        getattr(cls(), name)
    assert not hasattr(cls(), name)


def test_certificate_before_fit():
    with pytest.raises(NotFittedError, match="This SketchedKernelRidge instance is not fitted yet"):
        SketchedKernelRidge().certificate()


@pytest.mark.parametrize(
    ("cls", "kind", "known"),
    [
        (ExactKernelRidge, "v2", "'v1', 'gp', 'bias2'"),
        (ExactKernelRidge, "V1", "'v1', 'gp', 'bias2'"),
        (SketchedKernelRidge, "v4", "'v2', 'v3', 'gp', 'bias2'"),
        (SketchedKernelRidge, None, "'v2', 'v3', 'gp', 'bias2'"),
    ],
)
def test_unknown_kinds_of_variance(cls, kind, known):
    with pytest.raises(ValueError, match=f"Unknown kind of variance {kind!r} for {cls.__name__}: give one of .*{known}"):
        cls(alpha=1.0).fit(X, y).variance(X, kind)


def test_unknown_certificate():
    with pytest.raises(ValueError, match="Unknown certificate 'luck': give 'trace'"):
        SketchedKernelRidge(alpha=1.0).fit(X, y).certificate("luck")


@both
@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, 95, np.nan, "high", None])
def test_confidence_level_out_of_range(level, cls):
    with pytest.raises(ValueError, match=f"confidence_level must lie strictly between 0 and 1, got {level!r}"):
        cls(alpha=1.0).fit(X, y).predict_interval(X, confidence_level=level)


BAD_BATCHES = {
    "too narrow": (X[:, :2], y, "X has 2 features, but SketchedKernelRidge is expecting 3 features"),
    "NaN": (with_entry(X, np.nan), y, "Input X contains NaN"),
    "empty": (X[:0], y[:0], r"0 sample\(s\)"),
    "y too short": (X, y[:-1], r"inconsistent numbers of samples: \[24, 23\]"),
    "two targets": (X, np.column_stack([y, y]), "y has 2 targets, but the estimator was fitted with 1"),
}


@pytest.mark.parametrize("case", BAD_BATCHES)
def test_bad_batches_are_refused_and_change_nothing(case):
    A, b, text = BAD_BATCHES[case]
    model = SketchedKernelRidge(random_state=SEED).fit(X, y)
    before = model.predict(X, return_std=True)
    with pytest.raises(ValueError, match=text):
        model.partial_fit(A, b)
    np.testing.assert_array_equal(model.predict(X, return_std=True), before)


def test_one_target_after_two_is_refused():
    model = SketchedKernelRidge(random_state=SEED).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=r"y has 1 targets?, but the estimator was fitted with 2"):
        model.partial_fit(X, y)


def test_points_outside_the_domain_cannot_be_appended():
    model = SketchedKernelRidge("cubic_spline", alpha=1.0).fit(X, y)
    with pytest.raises(ValueError, match=r"\[0, ?1\]"):
        model.partial_fit(X + 0.5, y)


@both
def test_a_failed_fit_leaves_the_estimator_unfitted(cls):
    model = cls(alpha=-1.0)
    with pytest.raises(ValueError, match="alpha"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_problem_too_large_for_a_dense_matrix_is_refused_before_any_work():
    A = np.zeros((3_000_000, 1))
    with pytest.raises(ValueError, match=r"ExactKernelRidge on 3000000 rows needs about .* GiB.*use SketchedKernelRidge"):
        ExactKernelRidge(kernel=NoWork(), alpha=1.0).fit(A, A[:, 0])


# odd input that must work

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
    "small integers": (rng.integers(0, 255, (30, 3)).astype(np.uint8), rng.integers(0, 9, 30).astype(np.int8)),
    "float16": (X.astype(np.float16), y.astype(np.float16)),
    "float32": (X.astype(np.float32), y.astype(np.float32)),
    "booleans": (X > 0.5, y > 0.5),
    "Fortran order": (np.asfortranarray(X), y),
    "every other row and column": (np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2], np.repeat(y, 2)[::2]),
    "backwards": (X[::-1, ::-1], y[::-1]),
    "lists": (X.tolist(), y.tolist()),
    "big-endian": (X.astype(">f8"), y.astype(">f8")),
    "huge y": (X, 1e12 * y),
    "tiny y": (X, 1e-12 * y),
    "huge offset in y": (X, 1e9 + y),
    "an outlier in X": (with_entry(X, 1e6), y),
    "an outlier in y": (X, with_entry(y, 1e6)),
    "huge and tiny targets": (X, np.column_stack([1e12 * y, 1e-12 * y])),
    "one column of targets": (X, y[:, None]),
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
    for kind in ["v1", "gp", "bias2"] if isinstance(model, ExactKernelRidge) else ["v2", "v3", "gp", "bias2"]:
        v = model.variance(A, kind)
        assert np.isfinite(v).all()
        assert (v >= 0).all()
    low, high = model.predict_interval(A)
    assert (low <= high).all()
    assert np.isfinite(model.lambda_)
    assert model.lambda_ > 0
    assert np.all(np.isfinite(model.noise_variance_) & (np.asarray(model.noise_variance_) >= 0))
    assert np.isfinite(model.loo_error_)
    assert model.effective_dof_ >= 0


@both
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("case", ODD_DATA)
def test_odd_data_works(case, configuration, cls):
    A, b = ODD_DATA[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert_sane(cls(**CONFIGURATIONS[configuration]).fit(A, b), A)


@pytest.mark.parametrize("case", ["duplicated rows", "two distinct rows, many times", "two rows", "three rows", "constant y"])
@pytest.mark.parametrize("size", [1, 3, 50, "auto"])
@pytest.mark.parametrize("sketch", ["auto", *SKETCHES])
@pytest.mark.filterwarnings("ignore::UserWarning")  # of a size above n, or too small for alpha
def test_every_sketch_of_odd_data_works(sketch, size, case):
    A, b = ODD_DATA[case]
    for alpha in ("gcv", 1e-8):
        model = SketchedKernelRidge(sketch=sketch, sketch_size=size, alpha=alpha, fit_intercept=size == 3, random_state=SEED)
        assert_sane(model.fit(A, b), A)


@both
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", ["gcv", "loo", 1.0])
def test_linear_kernel_on_zeros(cls, alpha, fit_intercept):
    """The kernel vanishes: the mean is 0, or the average with an intercept, and so is every variance without one."""
    model = cls("linear", alpha=alpha, fit_intercept=fit_intercept).fit(np.zeros((10, 2)), np.arange(10.0))
    assert_sane(model, np.zeros((10, 2)))
    np.testing.assert_allclose(model.predict(np.ones((3, 2))), 4.5 if fit_intercept else 0.0)
    if not fit_intercept:
        np.testing.assert_array_equal(model.predict(np.ones((3, 2)), return_std=True)[1], 0.0)


@both
def test_identical_rows_with_a_given_bandwidth(cls):
    """Of one point seen ten times the mean is the average, shrunk by 10/(10 + alpha)."""
    model = cls(bandwidth=1.0, alpha=1.0).fit(np.ones((10, 2)), np.arange(10.0))
    np.testing.assert_allclose(model.predict(np.ones((1, 2))), 4.5 * 10 / 11)
    assert_sane(model, np.ones((10, 2)))


@both
def test_constant_y_is_found_by_the_intercept(cls):
    model = cls(fit_intercept=True).fit(X, np.full(N, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0)
    np.testing.assert_allclose(model.predict(X + 100), 3.0)


@both
def test_sketches_and_penalties_of_numpy_types(cls):
    model = cls(alpha=np.float64(0.5), bandwidth=np.float32(0.5), noise_variance=np.int64(2))
    if cls is SketchedKernelRidge:
        model.set_params(sketch_size=np.int32(5), sketch_tol=np.float32(0.1))
    assert_sane(model.fit(X, y), X)


# input is never modified


@both
@pytest.mark.parametrize(
    "kernel", ["gaussian", "laplacian", "matern52", "polynomial", "linear", "cubic_spline", "periodic_sobolev"]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_input_is_never_modified(order, kernel, cls):
    """Arrays that may not be written to work, and arrays that may be are as they were."""
    for writeable in (True, False):
        A, B, b, Z = (np.array(a, order=order) for a in (X, X / 2, y, X / 3))
        copies = [a.copy() for a in (A, B, b, Z)]
        for a in (A, B, b, Z):
            a.flags.writeable = writeable
        model = cls(kernel, fit_intercept=True).fit(A, b)
        if cls is SketchedKernelRidge:
            model.partial_fit(B, b)
        assert_sane(model, Z)
        for a, copy in zip((A, B, b, Z), copies, strict=True):
            np.testing.assert_array_equal(a, copy)


def test_a_sketch_array_is_never_modified():
    S = rng.standard_normal((5, N))
    copy = S.copy()
    S.flags.writeable = False
    model = SketchedKernelRidge(alpha=1.0, sketch=S).fit(X, y).partial_fit(X, y)
    model.predict(X, return_std=True)
    np.testing.assert_array_equal(S, copy)


@both
def test_parameters_are_not_changed_by_fit(cls):
    bandwidth = np.array([0.5, 1.0, 2.0])
    model = cls(bandwidth=bandwidth, noise_variance=[0.1])
    parameters = model.get_params()
    model.fit(X, y)
    assert all(model.get_params()[name] is value for name, value in parameters.items())
    np.testing.assert_array_equal(bandwidth, [0.5, 1.0, 2.0])
    clone(model)
