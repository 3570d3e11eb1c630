"""What the estimators share: validation, prediction and intervals on top of a fitted ridge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchridge import tuning
from sketchridge.backends import Backend
from sketchridge.dense import DenseRidge
from sketchridge.kernels import Kernel, ScaledKernel, as_kernel
from sketchridge.state import Ridge, State

__all__ = ["KernelRegressor"]

Array = np.ndarray
CRITERIA = ("gcv", "loo")
BANDWIDTHS = ("median", "gcv")


class KernelRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator, ABC):
    """A regressor whose fit ends in a ridge: a mean and variances for unit noise."""

    _std_kind: str  # the variance behind predict(return_std=True)
    _kinds: tuple[str, ...]
    _ridge: DenseRidge | Ridge

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the mean and, on request, its standard deviation.

        Parameters
        ----------
        X : (t, d) array or table.
        return_std : also return the standard deviation of the predicted mean. It holds neither the noise of a new
            observation (see `predict_interval`) nor the bias (see `variance(kind="bias2")`), and goes to zero far from the data.

        Returns
        -------
        mean : (t,), or (t, q) for several targets. std : the same shape, if asked for.
        """
        X = self._validated_points(X)
        mean = self._shift + self._mean(X)
        mean = mean[:, 0] if self._single_target else mean
        return (mean, np.sqrt(self._variance(X, self._std_kind))) if return_std else mean

    def predict_interval(self, X: Any, confidence_level: float = 0.95, include_noise: bool = True) -> tuple[Array, Array]:
        """Normal intervals (low, high) around the mean, for a new observation or, without noise, for the mean itself."""
        if not isinstance(confidence_level, Real) or not 0 < confidence_level < 1:
            raise ValueError(f"confidence_level must lie strictly between 0 and 1, got {confidence_level!r}.")
        mean, std = self.predict(X, return_std=True)
        width = np.sqrt(std**2 + self.noise_variance_) if include_noise else std
        half = norm.ppf((1 + confidence_level) / 2) * width
        return mean - half, mean + half

    @property
    def path_(self) -> tuning.LambdaPath:
        """λ, df, gcv and loo over the grid; computed when asked for, O(nm²)."""
        check_is_fitted(self)
        return tuning.lambda_path(self._path_state, self.fit_intercept)

    @property
    def loo_error_(self) -> float:
        """Mean squared leave-one-out error, exact for the fitted alpha (and sketch); computed when asked for."""
        check_is_fitted(self)
        residuals, leverages = self._ridge.residuals(), self._ridge.leverages()
        left = self._ridge.backend.xp.clip(1 - leverages, min=np.finfo(float).eps)
        return float(((residuals / left[:, None]) ** 2).mean())

    @property
    def eigenvalues_(self) -> Array:
        """Eigenvalues of K, or of K̂ for a sketch, in descending order."""
        check_is_fitted(self)
        return self._path_state.backend.to_numpy(self._path_state.E)

    @property
    def s_lambda_(self) -> int:
        """s_λ, the number of eigenvalues above λ; for a sketch a lower bound, which its size limits."""
        return int((self.eigenvalues_ > self.lambda_).sum())

    @property
    def effective_dof_(self) -> float:
        """Degrees of freedom, the trace of the smoother."""
        check_is_fitted(self)
        return float(self._ridge.df)

    @property
    @abstractmethod
    def _path_state(self) -> State:
        """The state whose eigenvalues and λ path are those of the fit."""

    def _variance(self, X: Array, kind: str) -> Array:
        """A variance by name, in units of y² for v1, v2 and v3, for one target or several."""
        unit = getattr(self._ridge, kind)(X)
        if kind in ("gp", "bias2"):
            return unit
        return self._scaled(unit, self.noise_variance_)

    def _scaled(self, unit: Array, factor: float | Array) -> Array:
        """unit (t,) times a factor for each target: (t,) or (t, q)."""
        return unit * factor if self._single_target else np.outer(unit, factor)

    def _mean(self, X: Array) -> Array:
        return self._ridge.mean(X)

    def _check_kind(self, kind: str) -> None:
        if kind not in self._kinds:
            raise ValueError(
                f"Unknown kind of variance {kind!r} for {type(self).__name__}: give one of {', '.join(map(repr, self._kinds))}."
            )

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Array, Array]:
        """X (n, d) and Y (n, q) in float64, with scikit-learn's checks."""
        try:
            X, y = validate_data(
                self, X, y, reset=reset, dtype=float, multi_output=True, y_numeric=True, ensure_min_samples=1 + reset
            )
        except ValueError as error:
            raise _explained(error) from None
        if reset:
            self._single_target = y.ndim == 1
        Y = y.reshape(len(y), -1).astype(float)
        self._check_noise_variance(Y.shape[1])
        if (self._single_target and Y.shape[1] != 1) or (not reset and Y.shape[1] != self._shift.size):
            raise ValueError(f"y has {Y.shape[1]} targets, but the estimator was fitted with {self._shift.size}.")
        return X[:], Y  # an object of our own: backends know points by identity

    def _validated_points(self, X: Any) -> Array:
        check_is_fitted(self)
        try:
            X = validate_data(self, X, reset=False, dtype=float)
        except ValueError as error:
            raise _explained(error) from None
        self._kernel.check_domain(X)
        return X[:]

    def _check_parameters(self) -> None:
        if isinstance(self.alpha, str):
            if self.alpha not in CRITERIA:
                raise ValueError(f"Unknown alpha {self.alpha!r}: give a positive number, 'gcv' or 'loo'.")
        elif not _is_positive(self.alpha):
            raise ValueError(f"alpha must be a positive finite number, 'gcv' or 'loo', got {self.alpha!r}.")
        if isinstance(self.bandwidth, str) and self.bandwidth not in BANDWIDTHS:
            raise ValueError(f"Unknown bandwidth {self.bandwidth!r}: give a number, one for each feature, 'median' or 'gcv'.")
        if isinstance(self.noise_variance, str) and self.noise_variance != "auto":
            raise ValueError(f"Unknown noise_variance {self.noise_variance!r}: give 'auto' or a number.")

    def _check_noise_variance(self, q: int) -> None:
        if isinstance(self.noise_variance, str):
            return
        values = _numbers(self.noise_variance)
        if values.shape not in ((), (q,)) or not (np.isfinite(values) & (values >= 0)).all():
            raise ValueError(
                f"noise_variance must be 'auto', or finite and not negative, one number or one for each of the {q} targets, got "
                f"{self.noise_variance!r}."
            )

    def _fitted_kernel(self, backend: Backend, X: Array, Y: Array) -> Kernel:
        """The kernel with its bandwidth and centre fixed."""
        kernel = as_kernel(self.kernel)
        kernel.check(X)
        kernel.check_domain(X)
        if not isinstance(kernel, ScaledKernel):
            if self.bandwidth is not None and not isinstance(self.bandwidth, str):
                raise ValueError(
                    f"The kernel {kernel!r} has no bandwidth, but bandwidth={self.bandwidth!r} was given: leave it at its default "
                    "and set the kernel's own parameters."
                )
            return kernel.fitted(X)
        if kernel.bandwidth is not None and isinstance(self.bandwidth, str) and self.bandwidth == "median":
            bandwidth = kernel.bandwidth
        elif isinstance(self.bandwidth, str):
            bandwidth = self._chosen_bandwidth(backend, kernel, X, Y)
        else:
            bandwidth = self.bandwidth
        return kernel.with_bandwidth(_checked_bandwidth(bandwidth, X.shape[1])).fitted(X)

    def _chosen_bandwidth(self, backend: Backend, kernel: ScaledKernel, X: Array, Y: Array) -> float:
        if self.bandwidth == "median":
            return tuning.median_bandwidth(X, kernel)
        return tuning.gcv_bandwidth(backend, kernel, X, Y, self.fit_intercept)

    def _set_ridge(self, ridge: DenseRidge | Ridge, kernel: Kernel, Y: Array) -> None:
        """Keep the fitted ridge and the attributes that follow from it."""
        self._ridge, self._kernel = ridge, kernel
        self.lambda_ = float(ridge.lam)
        self.alpha_ = len(Y) * self.lambda_
        self.bandwidth_ = getattr(kernel, "bandwidth", None)
        if isinstance(self.noise_variance, str):
            variance = ridge.backend.to_numpy(tuning.noise_variance(ridge.residuals(), ridge.df))
        else:
            variance = np.broadcast_to(np.asarray(self.noise_variance, dtype=float), (Y.shape[1],)).copy()
        self.noise_variance_ = float(variance[0]) if self._single_target else variance


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf


def _numbers(value: Any) -> Array:
    """The value as an array of numbers, NaN where it is none."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return np.array(np.nan)


def _checked_bandwidth(bandwidth: Any, d: int) -> float | Array:
    values = _numbers(bandwidth)
    if values.shape not in ((), (d,)) or not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(
            f"bandwidth must be a positive finite number, one such number for each of the {d} features, 'median' or 'gcv', got "
            f"{bandwidth!r}."
        )
    return values if values.ndim else float(values)


def _explained(error: ValueError) -> ValueError:
    """scikit-learn's error, with a remedy where it has none."""
    if "could not convert string" in str(error):
        return ValueError(f"X and y must be numeric, but {error}: encode text columns first, for example with OneHotEncoder.")
    return error
