"""What the estimators share: scikit-learn's checks, prediction and intervals."""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from sketchridge import tuning
from sketchridge.kernels import Precomputed, as_kernel
from sketchridge.notices import warn
from sketchridge.query import AtPoints

__all__ = ["KernelRegressor", "check_appendable", "check_positive", "check_times"]

Array = np.ndarray
CRITERIA = ("gcv", "loo")
BANDWIDTHS = ("median", "gcv")
_LARGEST = 1e150  # of y: squares must stay within floating point
_TIMES = re.compile("date|time|duration|period", re.IGNORECASE)  # as types' names begin
_REMEDIES = {  # by what an error says that gives none
    "could not convert string": "encode text columns first, for example with OneHotEncoder",
    "must be a string or a real number": "convert or drop what is no number first",
    "with a sequence": "give one number in each place, and lists as columns of their own",
    "truth value of an array": "give one number in each place, and lists as columns of their own",
}
_SILENT = 1e-12  # share of the noise variance below which a point is far from all data


class KernelRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator, ABC):
    """A regressor with one fitted object behind it, ``_fitted``, which never changes."""

    _std_kind: str  # the variance behind predict(return_std=True)
    _kinds: tuple[str, ...]
    _fitted: Any

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = precomputed
        return tags

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the mean and, on request, its standard deviation.

        Parameters
        ----------
        X : (t, d) array or table.
        return_std : also return the standard deviation of the predicted mean. It holds neither the
            noise of a new observation (see `predict_interval`) nor the bias (see
            `variance(kind="bias2")`), and goes to zero far from the data.

        Returns
        -------
        mean : (t,), or (t, q) for several targets, in units of y.
        std : the same shape and units, if asked for.

        Examples
        --------
        >>> from sketchridge import ExactKernelRidge
        >>> X = np.linspace(0, 1, 20)[:, None]
        >>> model = ExactKernelRidge(alpha=0.1, noise_variance=0.01).fit(X, np.sin(6 * X[:, 0]))
        >>> model.predict([[0.0], [0.5]]).round(2)
        array([0.14, 0.13])
        >>> mean, std = model.predict([[0.0], [0.5]], return_std=True)
        >>> std.round(3)  # larger at the edge
        array([0.06 , 0.038])
        """
        query = self._question(X)
        mean = self._fitted.mean(query)
        mean = mean[:, 0] if self._single_target else mean
        if not return_std:
            return mean
        std = np.sqrt(self._variance(query, self._std_kind))
        self._warn_of_silence(std)
        return mean, std

    def predict_interval(
        self, X: Any, confidence_level: float = 0.95, include_noise: bool = True
    ) -> tuple[Array, Array]:
        """Normal intervals around the mean, mean ± z √(V + σ²) or, without noise, mean ± z √V.

        Parameters
        ----------
        X : (t, d) array or table.
        confidence_level : the share of intervals that are to hold, between 0 and 1.
        include_noise : for a new observation, of weight 1; otherwise for the mean itself, whose
            bias is in neither.

        Returns
        -------
        low, high : each (t,), or (t, q) for several targets, in units of y.

        Examples
        --------
        >>> from sketchridge import ExactKernelRidge
        >>> X = np.linspace(0, 1, 20)[:, None]
        >>> model = ExactKernelRidge(alpha=0.1, noise_variance=0.01).fit(X, np.sin(6 * X[:, 0]))
        >>> low, high = model.predict_interval([[0.5]])
        >>> low.round(2), high.round(2)
        (array([-0.08]), array([0.34]))
        >>> low, high = model.predict_interval([[0.5]], include_noise=False)
        >>> low.round(2), high.round(2)
        (array([0.06]), array([0.21]))
        """
        if not isinstance(confidence_level, Real) or not 0 < confidence_level < 1:
            raise ValueError(
                f"confidence_level must lie strictly between 0 and 1, got {confidence_level!r}."
            )
        mean, std = self.predict(X, return_std=True)
        width = np.sqrt(std**2 + self.noise_variance_) if include_noise else std
        half = norm.ppf((1 + confidence_level) / 2) * width
        return mean - half, mean + half

    # What a fit found

    @property
    def lambda_(self) -> float:
        """The penalty λ = α/Σw, in units of the kernel."""
        return float(self._found.ridge.lam * self._found.kernel.unit)

    @property
    def alpha_(self) -> float:
        """The penalty α, given or chosen, in units of the kernel times those of the weights."""
        given = self._found.settings.alpha
        total = self._found.sample.total
        return self.lambda_ * total if isinstance(given, str) else float(given)

    @property
    def bandwidth_(self) -> float | Array | None:
        """The bandwidth, one or one for each feature; None for kernels that have none."""
        return copy.copy(getattr(self._found.kernel, "bandwidth", None))

    @property
    def noise_variance_(self) -> float | Array:
        """σ² of a row of weight 1, in units of y²; one for each target."""
        noise = self._found.noise
        return float(noise[0]) if self._single_target else noise.copy()

    @property
    def path_(self) -> tuning.LambdaPath:
        """λ, df, gcv and loo over the grid, each (100,); computed when asked for, O(nm²).

        λ is in units of the kernel, gcv and loo are in units of y².
        """
        return self._found.path

    @property
    def loo_error_(self) -> float:
        """Mean squared leave-one-out error in units of y², weighted, exact for the fitted alpha
        (and sketch); computed when asked for."""
        return self._found.loo_error

    @property
    def eigenvalues_(self) -> Array:
        """Eigenvalues of K, or of K̂ for a sketch, in descending order and units of the kernel."""
        return self._found.eigenvalues

    @property
    def s_lambda_(self) -> int:
        """s_λ, the number of eigenvalues above λ; for a sketch a lower bound limited by m."""
        return int((self.eigenvalues_ > self.lambda_).sum())

    @property
    def effective_dof_(self) -> float:
        """Degrees of freedom, the trace of the smoother."""
        return float(self._found.ridge.df)

    @property
    def fitted_(self) -> Any:
        """What the fit found, a frozen `Fitted` or `ExactFitted`. Internal: for other rooms of this
        library, in a form that may change."""
        return self._found

    @property
    def _found(self) -> Any:
        check_is_fitted(self)
        return self._fitted

    # Checks

    def _question(self, X: Any) -> AtPoints:
        check_is_fitted(self)
        check_times("X", X)
        try:
            X = validate_data(self, X, reset=False, dtype=float)
        except (TypeError, ValueError) as error:
            raise _explained(error) from None
        self._fitted.kernel.check_domain(X)
        return self._fitted.at(X)

    def _variance(self, query: AtPoints, kind: str) -> Array:
        """A variance by name, in units of y² for v1, v2 and v3, else of the kernel."""
        unit = getattr(self._fitted.ridge, kind)(query)
        if kind in ("gp", "bias2"):
            return unit * self._fitted.kernel.unit
        return self._scaled(unit, self.noise_variance_)

    def _scaled(self, unit: Array, factor: float | Array) -> Array:
        """unit (t,) times a factor for each target: (t,) or (t, q)."""
        return unit * factor if self._single_target else np.outer(unit, factor)

    def _warn_of_silence(self, std: Array) -> None:
        """Without an intercept mean and variance are 0 far from the data: say so."""
        if self._fitted.settings.fit_intercept or not std.size:
            return
        usual = np.sqrt(np.max(self.noise_variance_))
        silent = int((std.reshape(len(std), -1).max(axis=1) < _SILENT * usual).sum())
        if silent:
            warn(
                f"{silent} of {len(std)} points are so far from the training data that the model "
                "says nothing about them: their mean and standard deviation are 0. Use "
                "fit_intercept=True, a larger bandwidth, or look at variance(X, kind='gp')."
            )

    def _check_kind(self, kind: Any) -> None:
        if kind not in self._kinds:
            raise ValueError(
                f"Unknown kind of variance {kind!r} for {type(self).__name__}: give one of "
                f"{', '.join(map(repr, self._kinds))}."
            )

    @property
    def _single_target(self) -> bool:
        return self._one_target

    def _validated(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Array, Array, Array]:
        """X (n, d), Y (n, q) and w (n,) in float64, with scikit-learn's checks.

        Called on a copy of the estimator, since it sets what scikit-learn remembers of the data.
        """
        for name, given in (("X", X), ("y", y)):
            if np.ma.is_masked(given):
                raise ValueError(f"{name} has masked values: fill or drop them first.")
            check_times(name, given)
        try:
            X, y = validate_data(
                self,
                X,
                y,
                reset=reset,
                dtype=float,
                multi_output=True,
                y_numeric=True,
                ensure_min_samples=1 + reset,
            )
            Y = y.reshape(len(y), -1).astype(float)
        except (TypeError, ValueError) as error:
            raise _explained(error) from None
        if reset:
            self._one_target = y.ndim == 1
        elif Y.shape[1] != len(self._fitted.noise):
            raise ValueError(
                f"y has {Y.shape[1]} targets, but the estimator was fitted with "
                f"{len(self._fitted.noise)}."
            )
        self._check_noise_variance(Y.shape[1])
        _check_range(Y)
        return X, Y, _weights(sample_weight, X)

    def _check_parameters(self) -> None:
        """Check every parameter that needs no data."""
        as_kernel(self.kernel)
        if isinstance(self.alpha, str):
            if self.alpha not in CRITERIA:
                raise ValueError(
                    f"Unknown alpha {self.alpha!r}: give a positive number, 'gcv' or 'loo'."
                )
        else:
            check_positive("alpha", self.alpha, "or 'gcv' or 'loo'")
        if isinstance(self.bandwidth, str) and self.bandwidth not in BANDWIDTHS:
            raise ValueError(
                f"Unknown bandwidth {self.bandwidth!r}: give a number, one for each feature, "
                "'median' or 'gcv'."
            )
        if isinstance(self.noise_variance, str) and self.noise_variance != "auto":
            raise ValueError(
                f"Unknown noise_variance {self.noise_variance!r}: give 'auto' or a number."
            )

    def _check_noise_variance(self, q: int) -> None:
        if isinstance(self.noise_variance, str):
            return
        try:
            values = np.asarray(self.noise_variance, dtype=float)
        except (TypeError, ValueError):
            values = np.array(np.nan)
        if values.shape not in ((), (q,)) or not (np.isfinite(values) & (values >= 0)).all():
            raise ValueError(
                "noise_variance must be 'auto', or finite and not negative, one number or one for "
                f"each of the {q} targets, got {self.noise_variance!r}."
            )

    def _given_noise(self) -> Any:
        return None if isinstance(self.noise_variance, str) else self.noise_variance

    @abstractmethod
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to X (n, d) and y (n,) or (n, q), with a weight for each row."""


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


def check_appendable(fitted: Any) -> None:
    """Raise ValueError where partial_fit cannot know what it needs."""
    if isinstance(fitted.kernel, Precomputed):
        raise ValueError(
            "partial_fit cannot append to a precomputed kernel matrix, which lacks the values "
            "between old and new rows: fit again with the whole matrix, or give the kernel itself."
        )


def check_times(name: str, given: Any) -> None:
    """Refuse dates, times and durations, which turn into numbers of a unit that nobody chose."""
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


def _weights(sample_weight: Any, X: Array) -> Array:
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


def _check_range(Y: Array) -> None:
    largest = np.maximum(Y.max(axis=0), -Y.min(axis=0))
    if ((largest > _LARGEST) | ((largest > 0) & (largest < 1 / _LARGEST))).any():
        raise ValueError(
            f"y has values up to {largest.max():.3g}, whose squares are beyond floating point: "
            "rescale y."
        )


def _explained(error: Exception) -> Exception:
    """scikit-learn's error, with a remedy where it has none."""
    for text, remedy in _REMEDIES.items():
        if text in str(error):
            return type(error)(f"X and y must be numeric, but {str(error).rstrip('.')}: {remedy}.")
    return error
