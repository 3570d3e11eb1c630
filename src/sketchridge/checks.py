"""What is refused before any work starts, in sentences."""

from __future__ import annotations

import re
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from sketchridge.chosen import LEARNED
from sketchridge.kernels import Precomputed, candidates

__all__ = [
    "as_random",
    "check_appendable",
    "check_interval",
    "check_known",
    "check_noise_variance",
    "check_parameters",
    "check_positive",
    "check_range",
    "check_refinement",
    "check_sketch_size",
    "check_times",
    "checked_matrix",
    "checked_precisions",
    "checked_value",
    "checked_weights",
    "drawn_seed",
    "explained",
]

Array = np.ndarray
_CRITERIA = ("gcv", "loo")
_BANDWIDTHS = ("median", "gcv", *LEARNED)
_LARGEST = 1e150  # of y: squares must stay within floating point
_TIMES = re.compile("date|time|duration|period", re.IGNORECASE)  # as types' names begin
_UNMADE = {("polars", "LazyFrame"): "collect()", ("dask", "Delayed"): "compute()"}
_REMEDIES = {  # by what an error says that gives none
    "could not convert string": "encode text columns first, for example with OneHotEncoder",
    "must be a string or a real number": "convert or drop what is no number first",
    "with a sequence": "give one number in each place, and lists as columns of their own",
    "truth value of an array": "give one number in each place, and lists as columns of their own",
}


def check_positive(name: str, value: Any, otherwise: str = "") -> None:
    """Raise ValueError unless the value is a positive number that floating point can hold."""
    fine = isinstance(value, Real) and not isinstance(value, bool)
    try:
        fine = fine and 0 < float(value) < np.inf
    except OverflowError:
        fine = False
    if not fine:
        text = f"{name} must be a positive finite number {otherwise}".rstrip()
        raise ValueError(f"{text}, got {_short(value)}.")


def check_sketch_size(size: Any) -> None:
    """Raise ValueError unless a size is a whole number, "auto" or a function."""
    whole = isinstance(size, Integral) and not isinstance(size, bool) and int(size) > 0
    if not whole and not callable(size) and not (isinstance(size, str) and size == "auto"):
        raise ValueError(
            "sketch_size must be a whole number from 1 up, 'auto' or a function of the number of "
            f"rows, got {size!r}."
        )


def check_appendable(fitted: Any) -> None:
    """Raise ValueError where partial_fit cannot know what it needs."""
    if isinstance(fitted.kernel, Precomputed):
        raise ValueError(
            "partial_fit cannot append to a precomputed kernel matrix, which lacks the values "
            "between old and new rows: fit again with the whole matrix, or give the kernel itself."
        )


def as_random(random_state: Any) -> Any:
    """A generator of random numbers: scikit-learn's, or NumPy's own where that is given."""
    is_generator = isinstance(random_state, np.random.Generator)
    return random_state if is_generator else check_random_state(random_state)


def drawn_seed(random_state: Any) -> int:
    """A seed, the next one of a generator, or always the same of a number."""
    rng = as_random(random_state)
    draw = rng.integers if isinstance(rng, np.random.Generator) else rng.randint
    return int(draw(2**31 - 1))


def check_times(name: str, given: Any) -> None:
    """Refuse dates, times and durations, which turn into numbers of a unit that nobody chose, and
    what has no rows yet, since polars or Dask are still to make them."""
    kind = type(given)
    remedy = _UNMADE.get((kind.__module__.partition(".")[0], kind.__name__))
    if remedy is not None:
        raise ValueError(
            f"{name} is a {kind.__name__}, whose rows are not there yet: give {name}.{remedy}."
        )
    dtypes = getattr(given, "dtypes", getattr(given, "dtype", np.dtype(object)))
    kinds = {str(dtype) for dtype in (dtypes if np.iterable(dtypes) else [dtypes])}
    if {"object", "Object"} & kinds:
        kinds |= {type(value).__name__ for value in np.asarray(given, dtype=object).flat}
    found = sorted(kind for kind in kinds if _TIMES.match(kind))
    if found:
        raise ValueError(
            f"{name} has dates, times or durations ({', '.join(found)}), of which no unit is "
            "known: convert them to numbers first, for instance to hours since a date: "
            "(x - np.datetime64('2024-01-01')) / np.timedelta64(1, 'h')."
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def checked_weights(sample_weight: Any, X: Array) -> Array:
    """Weights (n,), 1 unless given; at least one is positive."""
    if sample_weight is None:
        return np.ones(len(X))
    w = _check_sample_weight(sample_weight, X, dtype=float)
    if (w < 0).any():
        raise ValueError(
            f"sample_weight has a negative entry ({w.min():g}): weights are precisions, so they "
            "must be 0 or more."
        )
    if not w.any():
        raise ValueError("sample_weight is 0 in every row: at least one row must have a weight.")
    with np.errstate(over="ignore"):
        total = float(w.sum())
    if not 1 / _LARGEST < total < _LARGEST:
        raise ValueError(
            f"sample_weight has the sum {total:.3g}, whose square is beyond floating point: "
            "rescale the weights."
        )
    return np.array(w)


def checked_precisions(sample_weight: Any, t: int) -> Array:
    """Weights of t new observations, 1 unless given."""
    w = checked_weights(sample_weight, np.empty((t, 1)))
    if not w.all():
        raise ValueError(
            f"sample_weight is 0 for {(w == 0).sum()} of {t} new observations, whose noise would "
            "be infinite: give positive weights, or include_noise=False without weights."
        )
    return w


def check_known(Y: Array) -> None:
    """Raise ValueError where numbers of y are missing, as None among objects is."""
    if np.isnan(Y).any():
        raise ValueError(
            f"y has missing values (None or NaN) in {int(np.isnan(Y).any(axis=1).sum())} of "
            f"{len(Y)} rows: leave these rows out of X and y."
        )


def check_range(Y: Array) -> None:
    """Raise ValueError where squares of y leave floating point."""
    largest = np.maximum(Y.max(axis=0), -Y.min(axis=0))
    if ((largest > _LARGEST) | ((largest > 0) & (largest < 1 / _LARGEST))).any():
        raise ValueError(
            f"y has values up to {largest.max():.3g}, whose squares are beyond floating point: "
            "rescale y."
        )


def explained(error: Exception) -> Exception:
    """scikit-learn's error, with a remedy where it has none."""
    for text, remedy in _REMEDIES.items():
        if text in str(error):
            return type(error)(f"X and y must be numeric, but {str(error).rstrip('.')}: {remedy}.")
    return error


def check_interval(confidence_level: Any, method: Any, side: Any) -> None:
    """Raise ValueError unless these are the level, method and side of an interval."""
    if not isinstance(confidence_level, Real) or not 0 < float(confidence_level) < 1:
        raise ValueError(
            f"confidence_level must lie strictly between 0 and 1, got {confidence_level!r}: for "
            "95% give 0.95."
        )
    if method not in ("loo", "gaussian"):
        raise ValueError(f"Unknown method {method!r}: give 'loo' or 'gaussian'.")
    if side not in ("both", "lower", "upper"):
        raise ValueError(f"Unknown side {side!r}: give 'both', 'lower' or 'upper'.")


def check_parameters(estimator: Any) -> None:
    """Raise ValueError for parameters of both estimators that no data could make right."""
    alpha, bandwidth = estimator.alpha, estimator.bandwidth
    noise_variance, noise = estimator.noise_variance, estimator.noise
    candidates(estimator.kernel)
    if not isinstance(alpha, str):
        check_positive("alpha", alpha, "or 'gcv' or 'loo'")
    elif alpha not in _CRITERIA:
        raise ValueError(f"Unknown alpha {alpha!r}: give a positive number, 'gcv' or 'loo'.")
    if isinstance(bandwidth, str) and bandwidth not in _BANDWIDTHS:
        raise ValueError(
            f"Unknown bandwidth {bandwidth!r}: give a number, one for each feature, a map (d, k), "
            f"or one of {', '.join(map(repr, _BANDWIDTHS))}."
        )
    if isinstance(noise_variance, str) and noise_variance != "auto":
        raise ValueError(f"Unknown noise_variance {noise_variance!r}: give 'auto' or a number.")
    if not isinstance(estimator.fit_intercept, bool | np.bool_):
        given = _short(estimator.fit_intercept)
        raise ValueError(f"fit_intercept must be True or False, got {given}.")
    if not isinstance(noise, str) or noise not in ("constant", "varying"):
        raise ValueError(f"Unknown noise {noise!r}: give 'constant' or 'varying'.")


def check_noise_variance(given: Any, q: int) -> None:
    """Raise ValueError unless it is 'auto', or one number or one for each of q targets."""
    if isinstance(given, str):
        return
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.shape not in ((), (q,)) or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(
            "noise_variance must be 'auto', or finite and not negative, one number or one for "
            f"each of the {q} targets, got {given!r}."
        )


def checked_matrix(A: Any, t: int) -> Any:
    """A contrast's matrix (p, t), dense or sparse by rows, of finite numbers."""
    try:
        if issparse(A):
            matrix = csr_array(A, dtype=float)
            numbers = matrix.data
        else:
            matrix = numbers = np.atleast_2d(np.asarray(A, dtype=float))
    except (TypeError, ValueError):
        raise ValueError(
            f"A must be a matrix of numbers (p, {t}), a row for each contrast and a column for "
            "each row of X; it could not be made one."
        ) from None
    if matrix.ndim != 2 or matrix.shape[1] != t or not matrix.shape[0]:
        raise ValueError(
            f"A has shape {np.shape(A)}, but X has {t} rows: give a matrix (p, {t}), a row for "
            "each contrast and a column for each row of X."
        )
    if not np.isfinite(numbers).all():
        raise ValueError("A has NaN or infinity: give finite numbers.")
    return matrix


def checked_value(value: Any, shape: tuple[int, ...]) -> Array:
    """What contrasts of that shape, (p,) or (p, q), are compared with: of that shape too."""
    try:
        given = np.asarray(value, dtype=float)
        each = given[:, None] if given.ndim == 1 and len(shape) == 2 else given
        held = np.broadcast_to(each, shape)
    except (TypeError, ValueError):
        held = np.array(np.nan)
    if not np.isfinite(held).all():
        raise ValueError(
            f"value must be a finite number, or one for each contrast, of shape {shape[:1]} or "
            f"{shape}, got {_short(value)}."
        )
    return held


def check_refinement(kind: str, refine: Any, tol: Any, return_bound: bool) -> None:
    """Raise ValueError where there is nothing to refine, or steps or tolerance make no sense."""
    if kind not in ("v1", "v2", "vbar", "vtheta") and (refine or return_bound):
        raise ValueError(
            "refine and return_bound lead from 'v2', 'vbar' or 'vtheta' to 'v1'; there is nothing "
            f"to refine in kind={kind!r}."
        )
    if not isinstance(refine, Integral) or isinstance(refine, bool) or refine < 0:
        raise ValueError(f"refine must be a whole number of steps from 0 up, got {refine!r}.")
    if kind == "v1" and refine:
        raise ValueError(
            "kind='v1' takes as many steps as tol needs: give tol, or kind='vbar' with refine."
        )
    if tol is not None:
        check_positive("tol", tol, "and goes with kind='v1'")
        if kind != "v1":
            raise ValueError(f"tol goes with kind='v1', got tol={tol!r} and kind={kind!r}.")
