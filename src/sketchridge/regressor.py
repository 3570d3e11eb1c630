"""What the estimators share: scikit-learn's checks, prediction and intervals."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchridge import tuning
from sketchridge.checks import (
    check_interval,
    check_positive,
    check_range,
    check_times,
    checked_weights,
    explained,
)
from sketchridge.chosen import LEARNED
from sketchridge.kernels import Kernel, ScaledKernel, candidates
from sketchridge.learning import Step, relevance, spreads
from sketchridge.notices import warn
from sketchridge.query import AtPoints

__all__ = ["KernelRegressor"]

Array = np.ndarray
CRITERIA = ("gcv", "loo")
BANDWIDTHS = ("median", "gcv", *LEARNED)
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
        >>> y = np.sin(6 * X[:, 0])
        >>> model = ExactKernelRidge("gaussian", bandwidth=0.3, alpha=0.1, noise_variance=0.01)
        >>> model.fit(X, y).predict([[0.0], [0.5]]).round(2)
        array([0.13, 0.13])
        >>> mean, std = model.predict([[0.0], [0.5]], return_std=True)
        >>> std.round(3)  # larger at the edge
        array([0.062, 0.039])
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
        self,
        X: Any,
        confidence_level: float = 0.95,
        *,
        include_noise: bool = True,
        method: str = "loo",
        side: str = "both",
        sample_weight: Any = None,
    ) -> tuple[Array, Array]:
        """Intervals around the mean, mean ± c √(α + gp(x)), for new observations.

        Parameters
        ----------
        X : (t, d) array or table.
        confidence_level : the share of intervals that are to hold, between 0 and 1.
        include_noise : for a new observation; otherwise for the function, mean ± c √gp(x).
        method : "loo", c such that so many training rows lie within when each is predicted without
            itself, which holds whatever the distribution of the noise; or "gaussian", by the
            quantiles of a normal distribution of variance `predictive_variance`.
        side : "both", or "lower" or "upper" for a bound on one side, the other being infinite.
        sample_weight : (t,), precisions of the new observations, 1 unless given: σ²/w is their
            noise variance.

        Returns
        -------
        low, high : each (t,), or (t, q) for several targets, in units of y.

        Examples
        --------
        >>> from sketchridge import ExactKernelRidge
        >>> rng = np.random.default_rng(0)
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> y = np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(100)
        >>> model = ExactKernelRidge().fit(X, y)
        >>> low, high = model.predict_interval([[0.5]])
        >>> low.round(1), high.round(1)
        (array([0.]), array([0.4]))
        """
        check_interval(confidence_level, method, side)
        query = self._question(X)
        share = 1 / checked_weights(sample_weight, np.empty((len(query), 1)))
        mean = self._fitted.mean(query)
        found = self._fitted.predictive
        widths = found.half_widths if method == "loo" else found.gaussian_half_widths
        below, above = widths(
            self._gp(query),
            float(confidence_level),
            side=side,
            noise_share=share,
            include_noise=include_noise,
        )
        return self._shaped(mean - below), self._shaped(mean + above)

    def predictive_variance(self, X: Any, include_noise: bool = True) -> Array:
        """ŝ²(α + gp(x)), the variance of a new observation, or ŝ²gp(x), that of the function.

        ŝ² is the amplitude for which leave-one-out errors are as large as predicted. Unlike the
        variance of the mean it knows of bias and does not vanish far from the data.

        Returns
        -------
        variance : (t,), or (t, q) for several targets, in units of y².
        """
        query = self._question(X)
        found = self._fitted.predictive
        return self._shaped(found.variance(self._gp(query), 1.0, include_noise))

    def noise_at(self, X: Any) -> Array:
        """σ²(x), the noise variance of a new observation of weight 1: (t,), or (t, q), in units of
        y². It is the same everywhere."""
        query = self._question(X)
        return self._shaped(
            np.broadcast_to(self._fitted.noise, (len(query), len(self._fitted.noise)))
        )

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
    def kernel_(self) -> Kernel:
        """The kernel, given, chosen or learned, with its bandwidth."""
        return self._found.kernel

    @property
    def map_(self) -> Array | None:
        """M (d, k), with distances ‖(x − z)M‖: diag(1/h) for bandwidths h; None without any."""
        kernel = self._found.kernel
        if not isinstance(kernel, ScaledKernel):
            return None
        h = np.asarray(kernel.bandwidth, dtype=float)
        if h.ndim == 2:
            return h.copy()
        return np.diag(np.broadcast_to(1 / h, self._found.data.X.shape[1:]))

    @property
    def feature_relevance_(self) -> Array | None:
        """How much each feature matters to distances, with sum 1: (d,); None without a map."""
        M = self.map_
        data = self._found.data
        return None if M is None else relevance(M, spreads(data.X, data.w))

    @property
    def learning_curve_(self) -> tuple[Step, ...]:
        """What learning the kernel has tried; nothing where it was given."""
        learned = self._found.learned
        return () if learned is None else learned.curve

    @property
    def amplitude_(self) -> float | Array:
        """ŝ², by which gp is multiplied to be in units of y²; one for each target."""
        amplitude = self._found.predictive.amplitude / self._found.kernel.unit
        return float(amplitude[0]) if self._single_target else amplitude

    @property
    def interval_quantiles_(self) -> Array:
        """A row for each level that so many rows can give: the level, and for each target c."""
        return self._found.predictive.quantiles

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
            raise explained(error) from None
        self._fitted.kernel.check_domain(X)
        return self._fitted.at(X)

    def _variance(self, query: AtPoints, kind: str) -> Array:
        """A variance by name, in units of y² for v1, v2 and v3, else of the kernel."""
        unit = getattr(self._fitted.ridge, kind)(query)
        if kind in ("gp", "bias2"):
            return unit * self._fitted.kernel.unit
        return self._scaled(unit, self.noise_variance_)

    def _gp(self, query: AtPoints) -> Array:
        """gp(x), in units of the kernel as it is evaluated: (t,)."""
        return self._fitted.ridge.gp(query)

    def _shaped(self, values: Array) -> Array:
        """(t, q), or (t,) for one target."""
        return values[:, 0] if self._single_target else np.array(values)

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
            raise explained(error) from None
        if reset:
            self._one_target = y.ndim == 1
        elif Y.shape[1] != len(self._fitted.noise):
            raise ValueError(
                f"y has {Y.shape[1]} targets, but the estimator was fitted with "
                f"{len(self._fitted.noise)}."
            )
        self._check_noise_variance(Y.shape[1])
        check_range(Y)
        return X, Y, checked_weights(sample_weight, X)

    def _check_parameters(self) -> None:
        """Check every parameter that needs no data."""
        candidates(self.kernel)
        if isinstance(self.alpha, str):
            if self.alpha not in CRITERIA:
                raise ValueError(
                    f"Unknown alpha {self.alpha!r}: give a positive number, 'gcv' or 'loo'."
                )
        else:
            check_positive("alpha", self.alpha, "or 'gcv' or 'loo'")
        if isinstance(self.bandwidth, str) and self.bandwidth not in BANDWIDTHS:
            raise ValueError(
                f"Unknown bandwidth {self.bandwidth!r}: give a number, one for each feature, a "
                f"map (d, k), or one of {', '.join(map(repr, BANDWIDTHS))}."
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
