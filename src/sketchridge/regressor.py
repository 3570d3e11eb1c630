"""What the estimators share: scikit-learn's checks, prediction and intervals."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchridge.backends import on_cluster
from sketchridge.checks import (
    check_appendable,
    check_interval,
    check_known,
    check_parameters,
    check_times,
    checked_precisions,
    explained,
)
from sketchridge.dask_input import Lazily, computed, rows_fitted
from sketchridge.data import prepared, warn_of_silence
from sketchridge.found import Found
from sketchridge.inputs import validated
from sketchridge.kernels import Precomputed, candidates
from sketchridge.progress import answering, status
from sketchridge.query import AtPoints, Query
from sketchridge.questions import Questions

__all__ = ["KernelRegressor"]

Array = np.ndarray


class KernelRegressor(
    Found, Questions, Lazily, MultiOutputMixin, RegressorMixin, BaseEstimator, ABC
):
    """A regressor with one fitted object behind it, ``_fitted``, which never changes."""

    width_factor: float | None = None  # of intervals, for campaigns: their kernel is learned apart
    _one_target: bool
    _select: Callable[..., Any]  # (settings, data, say): a fit, complete
    _extend: Callable[..., Any]  # (old, settings, X, Y, w, say): the one with further rows

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        named = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = named or isinstance(self.kernel, Precomputed)
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to X (n, d) and y (n,) or (n, q).

        Parameters
        ----------
        X : (n, d) array or table
            The rows, or the (n, n) kernel matrix for kernel="precomputed".
        y : (n,) or (n, q) array
            The targets.
        sample_weight : (n,) array
            Precisions: row i has the noise variance σ²/w_i. 1 unless given.

        Returns
        -------
        self : the estimator
            Fitted.
        """
        self._check_parameters()
        done = copy.copy(self)
        X = rows_fitted(done, X)
        given = (X, computed(y), computed(sample_weight))
        X, Y, w, done._one_target = validated(done, *given, targets=None)
        settings = self._settings(None)
        if on_cluster(X):  # rows on a cluster stay there
            settings = replace(settings, backend=X.backend)
        with status("Fitting") as say:
            square = isinstance(settings.kernel, Precomputed)
            data = prepared(X, Y, w, fit_intercept=self.fit_intercept, square=square)
            done._fitted = self._select(settings, data, say)
        self.__dict__ = done.__dict__
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Append rows: the kernel with its bandwidths is kept, and the sketch drawn so far, which
        may grow; λ is chosen anew.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
            The further rows; a first call is a fit.

        Returns
        -------
        self : the estimator
            Fitted to all rows.

        Examples
        --------
        >>> from sketchridge import ExactKernelRidge
        >>> X = np.linspace(0, 1, 20)[:, None]
        >>> y = np.sin(6 * X[:, 0])
        >>> model = ExactKernelRidge("gaussian", bandwidth=0.3, alpha=0.1)
        >>> parts = model.fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
        >>> np.allclose(parts.predict(X), model.fit(X, y).predict(X))
        True
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight)
        self._check_parameters()
        check_appendable(self._fitted)
        done = copy.copy(self)
        given = (computed(each) for each in (X, y, sample_weight))
        X, Y, w, _ = validated(done, *given, targets=len(self._fitted.noise))
        self._fitted.kernel.check_domain(X)
        with status("Appending rows") as say:
            fitted = self._extend(self._fitted, self._settings(self._fitted), X, Y, w, say)
        self._fitted = fitted
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict the mean and, on request, its standard deviation or covariance.

        Parameters
        ----------
        X : (t, d) array or table
            The points.
        return_std : bool
            Also return the standard deviation of the predicted mean. It holds neither the noise of
            a new observation (see `predict_interval`) nor the bias (see `variance(kind="bias2")`),
            and goes to zero far from the data.
        return_cov : bool
            Return the covariance of the predicted mean instead, whose diagonal is the square of
            that. A posterior's is `covariance(X, kind="gp")`.

        Returns
        -------
        mean : (t,) array
            In units of y; (t, q) for several targets.
        std : (t,) array
            The same shape and units, if asked for.
        cov : (t, t) array
            In units of y², if asked for; (t, t, q) for several targets.

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
        if return_std and return_cov:
            raise ValueError(
                "return_std and return_cov were both asked for: give one; the standard deviation "
                "is the square root of the covariance's diagonal."
            )
        if self._is_asked_lazily(X):
            if return_cov:
                raise ValueError(
                    "A covariance is not lazy: give X.compute(), or ask for it in parts."
                )
            needs = ["mean", *(["vbar"] if return_std else [])]
            options = {"return_std": return_std}
            return self._lazily("predict", X, needs, options, outputs=1 + return_std)
        query = self._question(X)
        with self._answering(query):
            mean = self._fitted.mean(query)
            mean = mean[:, 0] if self._one_target else mean
            if return_cov:
                return mean, self.covariance(X, self._std_kind)
            if not return_std:
                return mean
            std = np.sqrt(self._variance(query, self._std_kind))
        self._warn_about(std)
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
        X : (t, d) array or table
            The points.
        confidence_level : float
            The share of intervals that are to hold, between 0 and 1.
        include_noise : bool
            For a new observation; otherwise for the function, mean ± c √gp(x).
        method : str
            "loo", c such that so many training rows lie within when each is predicted without
            itself, which holds whatever the distribution of the noise; or "gaussian", by the
            quantiles of a normal distribution of variance `predictive_variance`.
        side : str
            "both", or "lower" or "upper" for a bound on one side, the other being infinite.
        sample_weight : (t,) array
            Precisions of the new observations, 1 unless given: σ²/w is their noise variance.

        Returns
        -------
        low, high : (t,) arrays
            In units of y; (t, q) for several targets.

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
        if self._is_asked_lazily(X) and sample_weight is None:
            options = {
                "confidence_level": confidence_level,
                "include_noise": include_noise,
                "method": method,
                "side": side,
            }
            needs = ["mean", "gp", "predictive"]
            return self._lazily("predict_interval", X, needs, options, outputs=2)
        query = self._question(X)
        weights = checked_precisions(sample_weight, len(query))
        with self._answering(query):
            share = self._fitted.noise_share(query) / weights
            mean = self._fitted.mean(query)
            gp, found = self._gp(query), self._predictive
        widths = found.half_widths if method == "loo" else found.gaussian_half_widths
        below, above = widths(
            gp,
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

        Parameters
        ----------
        X : (t, d) array or table
            The points.
        include_noise : bool
            For a new observation; otherwise for the function.

        Returns
        -------
        variance : (t,) array
            In units of y²; (t, q) for several targets.
        """
        if self._is_asked_lazily(X):
            options = {"include_noise": include_noise}
            return self._lazily("predictive_variance", X, ["gp", "predictive"], options)
        query = self._question(X)
        with self._answering(query):
            found = self._predictive
            share = self._fitted.noise_share(query)
            return self._shaped(found.variance(self._gp(query), share, include_noise))

    def log_density(self, X: Any, y: Any) -> Array:
        """log p(y) of observations, by a Student t that is fitted to the leave-one-out scores.

        Parameters
        ----------
        X : (t, d) array or table
            The points.
        y : (t,) or (t, q) array
            What was observed there.

        Returns
        -------
        density : (t,) array
            The natural logarithm of a density per unit of y; (t, q) for several targets.
        """
        query = self._question(X)
        given = np.asarray(computed(y), dtype=float)
        Y = given[:, None] if given.ndim == 1 else given
        with self._answering(query):
            mean = self._fitted.mean(query)
            gp, found = self._gp(query), self._predictive
        if Y.shape != mean.shape:
            raise ValueError(
                f"y has the shape {given.shape}, but predictions have {self._shaped(mean).shape}: "
                "give a row for each row of X, with a number for each target."
            )
        check_known(Y)
        share = self._fitted.noise_share(query)
        return self._shaped(found.log_density(Y, mean, gp, share))

    def noise_at(self, X: Any) -> Array:
        """σ²(x), the noise variance of a new observation of weight 1.

        It is the same everywhere unless noise="varying" has found otherwise.

        Parameters
        ----------
        X : (t, d) array or table
            The points.

        Returns
        -------
        variance : (t,) array
            In units of y²; (t, q) for several targets.
        """
        if self._is_asked_lazily(X):
            return self._lazily("noise_at", X, ["predictive"], {})
        query = self._question(X)
        share = np.broadcast_to(self._fitted.noise_share(query), len(query))
        return self._shaped(np.outer(share, self._fitted.noise))

    # Checks

    def _question(self, X: Any) -> AtPoints:
        check_is_fitted(self)
        X = computed(X)
        check_times("X", X)
        try:
            X = validate_data(self, X, reset=False, dtype=float)
        except (TypeError, ValueError) as error:
            raise explained(error) from None
        self._fitted.kernel.check_domain(X)
        return self._fitted.at(X)

    def _answering(self, query: Query, text: str = "Predicting") -> AbstractContextManager[None]:
        return answering(text, len(query) * len(self._fitted.sample))

    def _variance(self, query: Query, kind: str) -> Array:
        """A variance by name, in units of y² for v1, v2 and v3, else of the kernel."""
        with self._answering(query, "Computing variances"):
            unit = getattr(self._fitted.ridge, kind)(query)
        if kind in ("gp", "bias2"):
            return unit * self._fitted.kernel.unit
        return self._scaled(unit, self.noise_variance_)

    def _gp(self, query: AtPoints) -> Array:
        """gp(x), in units of the kernel as it is evaluated: (t,)."""
        with self._answering(query, "Computing variances"):
            return self._fitted.gp(query)

    def _warn_about(self, std: Array) -> None:
        """Without an intercept mean and variance are 0 far from the data: say so."""
        if not self._fitted.settings.fit_intercept and std.size:
            warn_of_silence(std, np.max(self.noise_variance_))

    def _check_parameters(self) -> None:
        """Check every parameter that needs no data."""
        check_parameters(self)

    def _shared_settings(self) -> dict[str, Any]:
        """The settings that both estimators have, copied."""
        given = None if isinstance(self.noise_variance, str) else self.noise_variance
        return {
            "kernels": candidates(self.kernel),
            "bandwidth": copy.deepcopy(self.bandwidth),
            "alpha": self.alpha if isinstance(self.alpha, str) else float(self.alpha),
            "noise_variance": copy.deepcopy(given),
            "fit_intercept": bool(self.fit_intercept),
            "noise": self.noise,
            "width_factor": self.width_factor,
        }

    @abstractmethod
    def _settings(self, old: Any) -> Any:
        """The parameters, checked, for a fit or for one that goes on from ``old``."""
