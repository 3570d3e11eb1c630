"""Bad input is refused with a sentence, before any work."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from problems import classes
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, WhiteKernel

from sketchridge import SketchedKernelRidge
from sketchridge.kernels import KERNELS, Gaussian, Laplacian, PeriodicSobolev, Polynomial
from sketchridge.sketches import SKETCHES, LandmarkSketch

SEED = 0
N, D = 24, 3
rng = np.random.default_rng(SEED)
X = rng.uniform(0, 1, (N, D))
y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(N)


def with_entry(A: np.ndarray, value: object, dtype: type = float) -> np.ndarray:
    """A copy of A whose entry in the third row is another."""
    B = A.astype(dtype)
    B[2 if A.ndim == 1 else (2, 1)] = value
    return B


class NoWork:
    """A kernel that fails when it is evaluated: whoever raises another error did so before any
    work."""

    def __call__(self, A, B):
        raise AssertionError("kernel evaluated before the input was checked")


# what fit refuses, on both estimators

TEXT = "must be numeric, but could not convert string to float: "
BAD_DATA = {
    "NaN in X": (with_entry(X, np.nan), y, "Input X contains NaN"),
    "infinity in X": (with_entry(X, np.inf), y, "Input X contains infinity"),
    "minus infinity in X": (with_entry(X, -np.inf), y, "Input X contains infinity"),
    "NaN in y": (X, with_entry(y, np.nan), "Input y contains NaN"),
    "infinity in y": (X, with_entry(y, np.inf), "Input y contains infinity"),
    "None in X": (with_entry(X, None, object), y, "Input X contains NaN"),
    "no rows": (
        X[:0],
        y[:0],
        r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 2 is required",
    ),
    "no columns": (
        X[:, :0],
        y,
        r"0 feature\(s\) \(shape=\(24, 0\)\) while a minimum of 1 is required",
    ),
    "one row": (
        X[:1],
        y[:1],
        r"1 sample\(s\) \(shape=\(1, 3\)\) while a minimum of 2 is required",
    ),
    "X of one dimension": (X[:, 0], y, "Expected 2D array, got 1D array"),
    "X of three dimensions": (X[:, :, None], y, "Found array with dim 3"),
    "a number for X": (1.0, y, "Expected 2D array, got scalar array"),
    "strings in X": (with_entry(X, "red", object), y, TEXT + "'red': encode text"),
    "strings in y": (X, with_entry(y, "high", object), TEXT + "'high'"),
    "strings in a table": (
        pd.DataFrame(X, columns=["a", "b", "c"]).assign(color="blue"),
        y,
        TEXT + "'blue': encode text",
    ),
    "text as y": (X, pl.Series(["low", "high"] * 12), TEXT + ".*low.*: encode text"),
    "bytes as y": (X, np.full(N, b"low"), TEXT + ".*low.*: encode text"),
    "categories of text": (
        pd.DataFrame({"a": pd.Categorical(["low", "high"] * 12)}),
        y,
        TEXT + "'low': encode text",
    ),
    "lists in X": (
        pl.DataFrame({"a": [[1, 2]] * N}),
        y,
        "must be numeric, but .*with a sequence: give one number in each place",
    ),
    "lists in y": (X, pl.Series([[1, 2]] * N), "must be numeric, but .*give one number in each"),
    "complex X": (X + 1j, y, "Complex data not supported"),
    "complex y": (X, y + 1j, "Complex data not supported"),
    "y too short": (X, y[:-1], r"inconsistent numbers of samples: \[24, 23\]"),
    "y too long": (X[:-1], y, r"inconsistent numbers of samples: \[23, 24\]"),
    "no y": (X, None, "requires y to be passed, but the target y is None"),
    "y of three dimensions": (X, y[:, None, None], "Found array with dim 3"),
    "masked X": (np.ma.array(X, mask=X > 0.9), y, "X has masked values: fill or drop them first"),
    "masked y": (X, np.ma.array(y, mask=y > 0.9), "y has masked values: fill or drop them first"),
    "y too large": (X, 1e155 * y, r"values up to \d.*e\+15\d, whose squares .* rescale y"),
    "y too small": (X, 1e-170 * y, r"values up to \d.*e-1\d\d, whose squares .* rescale y"),
}


@classes
@pytest.mark.parametrize("value", [{"a": 1}, object(), print], ids=["dict", "object", "function"])
def test_objects_are_no_numbers(cls, value):
    """A TypeError, as scikit-learn's checks want it, with a remedy."""
    text = "must be numeric, but float.* not '.*': convert or drop what is no number first"
    for A, b in ((with_entry(X, value, object), y), (X, with_entry(y, value, object))):
        with pytest.raises(TypeError, match=text):
            cls(kernel=NoWork()).fit(A, b)
    model = cls(alpha=1.0).fit(X, y)
    with pytest.raises(TypeError, match=text):
        model.predict(with_entry(X, value, object))


HOURS = pd.date_range("2024-03-01", periods=N, freq="h")
STEPS = HOURS - HOURS[0]
MOMENTS = HOURS.to_pydatetime().tolist()
TIMES = {
    "NumPy times": HOURS.to_numpy()[:, None],
    "NumPy durations": STEPS.to_numpy()[:, None],
    "times among objects": np.array([[a, 1.0] for a in HOURS.to_numpy()], dtype=object),
    "a list of moments": [[a] for a in MOMENTS],
    "a list of NumPy times": [[a] for a in HOURS.to_numpy()],
    "pandas times": pd.DataFrame({"t": HOURS}),
    "pandas times and numbers": pd.DataFrame({"x": y, "t": HOURS}),
    "pandas times of a zone": pd.DataFrame({"t": HOURS.tz_localize("UTC")}),
    "pandas durations": pd.DataFrame({"x": y, "t": STEPS}),
    "pandas periods": pd.DataFrame({"t": HOURS.to_period("h")}),
    "pandas moments as objects": pd.DataFrame({"x": y, "t": np.array(MOMENTS, dtype=object)}),
    "polars times": pl.DataFrame({"t": MOMENTS}),
    "polars times and numbers": pl.DataFrame({"x": y, "t": MOMENTS}),
    "polars days": pl.DataFrame({"t": [a.date() for a in MOMENTS]}),
    "polars durations": pl.DataFrame({"t": [a - MOMENTS[0] for a in MOMENTS]}),
    "polars times of day": pl.DataFrame({"t": [a.time() for a in MOMENTS]}),
}
NO_TIMES = (
    r"{} has dates, times or durations \(.+\), of which no unit is known: convert them to numbers "
    r"first, for instance to hours since a date"
)


@classes
@pytest.mark.parametrize("case", TIMES)
def test_times_are_no_numbers(case, cls):
    """Taken for numbers they would be nanoseconds here and days there."""
    A = TIMES[case]
    with pytest.raises(ValueError, match=NO_TIMES.format("X")):
        cls(kernel=NoWork()).fit(A, y)
    b = A["t"] if hasattr(A, "columns") else np.array(A)[:, 0]
    with pytest.raises(ValueError, match=NO_TIMES.format("y")):
        cls(kernel=NoWork()).fit(X, b)


@classes
def test_times_are_no_numbers_later_either(cls):
    model = cls().fit(X[:, :1], y)
    for ask in (model.predict, model.variance, lambda A: model.partial_fit(A, y)):
        for A in (HOURS.to_numpy()[:, None], pl.DataFrame({"t": MOMENTS})):
            with pytest.raises(ValueError, match=NO_TIMES.format("X")):
                ask(A)


@classes
@pytest.mark.parametrize("names", [["date", "time", "duration"], ["datetime", "period", "c"]])
def test_numbers_may_be_called_times(cls, names):
    """It is what columns hold that counts."""
    for table in (pd.DataFrame, pl.DataFrame):
        cls(alpha=1.0).fit(table(dict(zip(names, X.T, strict=True))), y)


@classes
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
    re.escape(", ".join(map(repr, KERNELS)))
    + ".*sketchridge.kernels.*scikit-learn kernel.*callable"
)
ALPHA_TEXT = "alpha must be a positive finite number or 'gcv' or 'loo', got "
BANDWIDTH_TEXT = (
    "bandwidth must be a positive finite number, one such number for each of the 3 features, "
    r"a map \(3, k\), 'median', 'gcv', 'ard', 'full' or 'auto', got "
)
NOISE_TEXT = (
    "noise_variance must be 'auto', or finite and not negative, one number or one for each of the "
    "1 targets, got "
)
UNKNOWN_BANDWIDTH = (
    r"Unknown bandwidth 'silverman': give a number, one for each feature, a map \(d, k\), or one "
    "of 'median', 'gcv', 'ard', 'full', 'auto'"
)
ORDER_TEXT = "order of a periodic Sobolev kernel must be a whole number from 1 to 15 .*, got "
DEGREE_TEXT = "The degree of Polynomial.* must be a whole number from 1 up, got "
BAD_PARAMETERS = {
    "negative alpha": ({"alpha": -1.0}, ALPHA_TEXT + "-1.0"),
    "zero alpha": ({"alpha": 0}, ALPHA_TEXT + "0"),
    "NaN alpha": ({"alpha": np.nan}, ALPHA_TEXT + "nan"),
    "infinite alpha": ({"alpha": np.inf}, ALPHA_TEXT + "inf"),
    "alpha beyond floating point": ({"alpha": 10**400}, ALPHA_TEXT + r"1000.*\.\.\."),
    "no alpha": ({"alpha": None}, ALPHA_TEXT + "None"),
    "boolean alpha": ({"alpha": True}, ALPHA_TEXT + "True"),
    "complex alpha": ({"alpha": 1j}, ALPHA_TEXT + "1j"),
    "alpha for each target": ({"alpha": [1.0, 2.0]}, ALPHA_TEXT + r"\[1.0, 2.0\]"),
    "unknown alpha": (
        {"alpha": "best"},
        "Unknown alpha 'best': give a positive number, 'gcv' or 'loo'",
    ),
    "negative bandwidth": ({"bandwidth": -0.5}, BANDWIDTH_TEXT + "-0.5"),
    "zero bandwidth": ({"bandwidth": 0.0}, BANDWIDTH_TEXT + "0.0"),
    "NaN bandwidth": ({"bandwidth": np.nan}, BANDWIDTH_TEXT + "nan"),
    "infinite bandwidth": ({"bandwidth": np.inf}, BANDWIDTH_TEXT + "inf"),
    "no bandwidth": ({"bandwidth": None}, BANDWIDTH_TEXT + "None"),
    "one negative bandwidth": (
        {"bandwidth": [1.0, -1.0, 1.0]},
        BANDWIDTH_TEXT + r"\[1.0, -1.0, 1.0\]",
    ),
    "two bandwidths for three features": (
        {"bandwidth": [1.0, 1.0]},
        BANDWIDTH_TEXT + r"\[1.0, 1.0\]",
    ),
    "a map of another shape": (
        {"bandwidth": np.ones((1, 3))},
        BANDWIDTH_TEXT + r"array\(\[\[1., 1., 1.\]\]\)",
    ),
    "a map with NaN": ({"bandwidth": np.full((3, 1), np.nan)}, BANDWIDTH_TEXT),
    "a map to nowhere": ({"bandwidth": np.ones((3, 0))}, BANDWIDTH_TEXT),
    "words for bandwidths": (
        {"bandwidth": ["wide", "wide", "wide"]},
        BANDWIDTH_TEXT + r"\['wide', 'wide', 'wide'\]",
    ),
    "unknown bandwidth": ({"bandwidth": "silverman"}, UNKNOWN_BANDWIDTH),
    "unknown bandwidth of a kernel without one": (
        {"kernel": "linear", "bandwidth": "silverman"},
        UNKNOWN_BANDWIDTH,
    ),
    "a bandwidth for linear": (
        {"kernel": "linear", "bandwidth": 2.0},
        "has no bandwidth, but bandwidth=2.0 was given",
    ),
    "a bandwidth for polynomial": (
        {"kernel": Polynomial(), "bandwidth": 2.0},
        "Polynomial.*has no bandwidth, but bandwidth=2.0",
    ),
    "a bandwidth for a spline": (
        {"kernel": "cubic_spline", "bandwidth": [1, 1, 1]},
        "CubicSpline.*has no bandwidth, but bandwidth=",
    ),
    "a bandwidth for scikit-learn's": (
        {"kernel": RBF(), "bandwidth": 2.0},
        r"has no bandwidth, but bandwidth=2.0 was given",
    ),
    "a kernel object with a bad bandwidth": (
        {"kernel": Gaussian(bandwidth=-1.0)},
        BANDWIDTH_TEXT + "-1.0",
    ),
    "unknown kernel": (
        {"kernel": "gausian"},
        "Unknown kernel 'gausian': give 'auto', one of " + KNOWN_KERNELS,
    ),
    "a number for a kernel": (
        {"kernel": 3},
        "Unknown kernel 3: give 'auto', one of " + KNOWN_KERNELS,
    ),
    "a class for a kernel": (
        {"kernel": Laplacian},
        "Unknown kernel <class.*Laplacian'>: give 'auto', one of " + KNOWN_KERNELS,
    ),
    "a maker for a kernel": (
        {"kernel": Gaussian},
        "Unknown kernel <function Gaussian.*>: give 'auto', one of " + KNOWN_KERNELS,
    ),
    "no kernel": ({"kernel": None}, "Unknown kernel None: give 'auto', one of " + KNOWN_KERNELS),
    "kernel not symmetric": (
        {"kernel": not_symmetric},
        "not_symmetric.*is not positive semidefinite.*asymmetry",
    ),
    "kernel negative": (
        {"kernel": not_positive},
        "not_positive.*is not positive semidefinite.*eigenvalues from -.*Use a symmetric",
    ),
    "kernel indefinite": ({"kernel": sine}, "sine.*is not positive semidefinite: on 24 rows"),
    "scikit-learn kernel indefinite": (
        {"kernel": ExpSineSquared(0.1, 0.3)},
        "ExpSineSquared.*is not positive semidefinite",
    ),
    "kernel not finite": ({"kernel": not_finite}, "not_finite.*has NaN or infinity on the data"),
    "kernel of the wrong shape": (
        {"kernel": wrong_shape},
        r"returned an array of shape \(24, 25\).*must return one of shape \(24, 24\)",
    ),
    "noise in the kernel": (
        {"kernel": RBF() + WhiteKernel()},
        "contains a WhiteKernel.*set alpha to the noise level",
    ),
    "broken order": ({"kernel": PeriodicSobolev(order=0)}, ORDER_TEXT + "0"),
    "half order": ({"kernel": PeriodicSobolev(order=1.5)}, ORDER_TEXT + "1.5"),
    "an order of no effect": ({"kernel": PeriodicSobolev(order=130)}, ORDER_TEXT + "130"),
    "negative degree": ({"kernel": Polynomial(degree=-1)}, DEGREE_TEXT + "-1"),
    "half degree": ({"kernel": Polynomial(degree=1.5)}, DEGREE_TEXT + "1.5"),
    "a word for a degree": ({"kernel": Polynomial(degree="a")}, DEGREE_TEXT + "'a'"),
    "negative coef0": ({"kernel": Polynomial(coef0=-1.0)}, "finite coef0 >= 0, got coef0=-1.0"),
    "a word for coef0": ({"kernel": Polynomial(coef0="a")}, "finite coef0 >= 0, got coef0='a'"),
    "a word for gamma": ({"kernel": Polynomial(gamma="a")}, "must be a positive number, got 'a'"),
    "negative gamma": ({"kernel": Polynomial(gamma=-1.0)}, "must be a positive number, got -1.0"),
    "not a square matrix": (
        {"kernel": "precomputed"},
        r"fitted to the \(n, n\) kernel matrix, got shape \(24, 3\)",
    ),
    "negative noise": ({"noise_variance": -0.1}, NOISE_TEXT + "-0.1"),
    "NaN noise": ({"noise_variance": np.nan}, NOISE_TEXT + "nan"),
    "one negative noise": ({"noise_variance": [0.1, -0.1]}, NOISE_TEXT + r"\[0.1, -0.1\]"),
    "no noise": ({"noise_variance": None}, NOISE_TEXT + "None"),
    "a word for fit_intercept": (
        {"fit_intercept": "no"},
        "fit_intercept must be True or False, got 'no'",
    ),
    "unknown noise": (
        {"noise_variance": "low"},
        "Unknown noise_variance 'low': give 'auto' or a number",
    ),
    "two noises for one target": ({"noise_variance": [0.1, 0.2]}, NOISE_TEXT + r"\[0.1, 0.2\]"),
}


@classes
@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_bad_parameters_are_refused(case, cls):
    parameters, text = BAD_PARAMETERS[case]
    with pytest.raises(ValueError, match=text):
        cls(**parameters).fit(X, y)


KNOWN_SKETCHES = re.escape(
    f"'auto', one of {', '.join(map(repr, SKETCHES))}, a sketch object or an"
)
SIZE_TEXT = (
    "sketch_size must be a whole number from 1 up, 'auto' or a function of the number of rows, got "
)
TOL_TEXT = "sketch_tol must be a positive finite number, got "
COLUMNS_TEXT = "one column for each of the 24 training rows.*got shape "
GIVEN_TEXT = "does not go with a given sketch of 4 rows.*leave sketch_size='auto'"
DTYPES = "give 'auto', 'float16', 'float16x2', 'float32', 'float64'"
BAD_SKETCHES = {
    "unknown sketch": ({"sketch": "count"}, "Unknown sketch 'count': give " + KNOWN_SKETCHES),
    "a number for a sketch": ({"sketch": 5}, "Unknown sketch 5: give " + KNOWN_SKETCHES),
    "no sketch": ({"sketch": None}, "Unknown sketch None: give " + KNOWN_SKETCHES),
    "array too narrow": ({"sketch": np.ones((4, N - 1))}, COLUMNS_TEXT + r"\(4, 23\)"),
    "array too wide": ({"sketch": np.ones((4, N + 1))}, COLUMNS_TEXT + r"\(4, 25\)"),
    "array without rows": ({"sketch": np.ones((0, N))}, r"at least one row, got shape \(0, 24\)"),
    "array of one dimension": ({"sketch": np.ones(N)}, COLUMNS_TEXT + r"\(24,\)"),
    "array with NaN": (
        {"sketch": with_entry(np.ones((4, N)), np.nan)},
        "sketch array contains NaN or infinity",
    ),
    "array with infinity": (
        {"sketch": with_entry(np.ones((4, N)), np.inf)},
        "sketch array contains NaN or infinity",
    ),
    "complex array": ({"sketch": np.ones((4, N)) * 1j}, "sketch.*complex"),
    "landmarks beyond the data": (
        {"sketch": LandmarkSketch(indices=np.array([3, 99]))},
        "selects row 99, but there are only 24 training",
    ),
    "array of another size": (
        {"sketch": np.eye(N)[:4], "sketch_size": 6},
        "sketch_size=6 " + GIVEN_TEXT,
    ),
    "sketch larger than the size": (
        {"sketch": np.eye(N)[:4], "sketch_size": 2},
        "sketch_size=2 " + GIVEN_TEXT,
    ),
    "size 0": ({"sketch_size": 0}, SIZE_TEXT + "0"),
    "size -1": ({"sketch_size": -1}, SIZE_TEXT + "-1"),
    "size 1.5": ({"sketch_size": 1.5}, SIZE_TEXT + "1.5"),
    "size big": ({"sketch_size": "big"}, SIZE_TEXT + "'big'"),
    "no size": ({"sketch_size": None}, SIZE_TEXT + "None"),
    "boolean size": ({"sketch_size": True}, SIZE_TEXT + "True"),
    "an array for a size": ({"sketch_size": np.array([3, 4])}, SIZE_TEXT),
    "tolerance 0": ({"sketch_tol": 0}, TOL_TEXT + "0"),
    "negative tolerance": ({"sketch_tol": -0.1}, TOL_TEXT + "-0.1"),
    "NaN tolerance": ({"sketch_tol": np.nan}, TOL_TEXT + "nan"),
    "infinite tolerance": ({"sketch_tol": np.inf}, TOL_TEXT + "inf"),
    "a word for a tolerance": ({"sketch_tol": "tight"}, TOL_TEXT + "'tight'"),
    "unknown solver": (
        {"solver": "lbfgs"},
        "Unknown solver 'lbfgs': give 'auto', 'sketch' or 'pcg'",
    ),
    "unknown backend": ({"backend": "jax"}, "Unknown backend 'jax': give 'auto', one of 'numpy'"),
    "no backend": ({"backend": None}, "Unknown backend None: give 'auto', one of 'numpy'"),
    "unknown dtype": ({"dtype": "int8"}, "Unknown dtype 'int8': " + DTYPES),
    "half on the CPU": (
        {"dtype": "float16", "backend": "numpy"},
        "dtype='float16' needs a GPU and backend='triton', but the backend is 'numpy'",
    ),
    "no dtype": ({"dtype": None}, "Unknown dtype None: " + DTYPES),
    "a type for a dtype": ({"dtype": np.float32}, "Unknown dtype <class 'numpy.float32'>"),
    "unknown seed": ({"random_state": "lucky"}, "'lucky' cannot be used to seed"),
}


@pytest.mark.parametrize("case", BAD_SKETCHES)
def test_bad_sketches_are_refused(case):
    parameters, text = BAD_SKETCHES[case]
    with pytest.raises(ValueError, match=text):
        SketchedKernelRidge(kernel=NoWork(), **parameters).fit(X, y)


@classes
@pytest.mark.parametrize("value", [0.0, 1e8], ids=["zeros", "large numbers"])
def test_identical_rows_have_no_median_distance(cls, value):
    text = r"needs rows that differ.*identical: give a number as bandwidth"
    for bandwidth in ("median", "gcv"):
        with pytest.raises(ValueError, match=r"bandwidth='median' " + text):
            cls(bandwidth=bandwidth).fit(np.full((10, 2), value), np.arange(10.0))


@classes
@pytest.mark.parametrize("bandwidth", ["median", "gcv", 1.0])
def test_distances_that_overflow_are_named(cls, bandwidth):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match=r"overflow.*: rescale X"):
            cls(bandwidth=bandwidth).fit(1e200 * X, y)
        fitted = cls(bandwidth=1.0, alpha=1.0).fit(X, y)
        with pytest.raises(ValueError, match=r"overflow.*: rescale X"):
            fitted.predict(1e200 * X)


@classes
@pytest.mark.parametrize("kernel", ["cubic_spline", "periodic_sobolev"])
def test_points_outside_the_unit_cube_are_refused(cls, kernel):
    with pytest.raises(ValueError, match=r"\[0, ?1\]"):
        cls(kernel).fit(X + 0.5, y)
    fitted = cls(kernel, alpha=1.0).fit(X, y)
    for answer in (fitted.predict, fitted.variance, fitted.predict_interval):
        with pytest.raises(ValueError, match=r"\[0, ?1\]"):
            answer(X - 0.5)
