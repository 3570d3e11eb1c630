"""What an estimator answers about rows that go through transformers first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from sketchridge.answers import ContrastTest, MarginalEffects

__all__ = ["Through"]

Array = np.ndarray


class Through(ABC):
    """The methods of a fitted estimator, for X as it is before it is transformed.

    Answers are those of `SketchedKernelRidge` or `ExactKernelRidge`, whose docstrings explain
    their options, at the transformed rows. Derivatives and marginal effects are by the features
    that the estimator sees, named by `get_feature_names_out`.
    """

    @property
    @abstractmethod
    def regressor_(self) -> Any:
        """The fitted estimator behind the transformers."""

    @abstractmethod
    def transform(self, X: Any) -> Array:
        """X as that estimator sees it: (t, D).

        Parameters
        ----------
        X : (t, d) array or table
            The points, as they are before they are transformed.

        Returns
        -------
        Z : (t, D) array
            The features that the estimator sees.
        """

    @abstractmethod
    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the features that it sees: (D,).

        Parameters
        ----------
        input_features : sequence of str
            Not needed: names are those of the fit.

        Returns
        -------
        names : (D,) array of str
            Such as 'size', 'color=red' or 'size is missing'.
        """

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The mean and, on request, its standard deviation or covariance.

        Parameters
        ----------
        X : (t, d) array or table
            The points, as they are before they are transformed.
        return_std : bool
            Also return the standard deviation of the mean.
        return_cov : bool
            Return the covariance of the mean too, instead of that.

        Returns
        -------
        mean : (t,) array
            In units of y; with `return_std` or `return_cov` as the estimator gives them.
        """
        return self.regressor_.predict(
            self.transform(X), return_std=return_std, return_cov=return_cov
        )

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
        """Intervals for new observations.

        Parameters
        ----------
        X : (t, d) array or table
            The points, as they are before they are transformed.
        confidence_level : float
            The share of intervals that are to hold.
        include_noise : bool
            For a new observation; otherwise for the function.
        method : str
            "loo" or "gaussian".
        side : str
            "both", "lower" or "upper".
        sample_weight : (t,) array
            Precisions of the new observations.

        Returns
        -------
        low, high : (t,) arrays
            In units of y.
        """
        return self.regressor_.predict_interval(
            self.transform(X),
            confidence_level,
            include_noise=include_noise,
            method=method,
            side=side,
            sample_weight=sample_weight,
        )

    def variance(self, X: Any, kind: str | None = None, **options: Any) -> Any:
        """The variance of the mean, by the kinds and options that the estimator has.

        Parameters
        ----------
        X : (t, d) array or table
            The points, as they are before they are transformed.
        kind : str
            As in the estimator's `variance`.

        Returns
        -------
        variance : (t,) array
            In units of y² or of the kernel, by its kind.
        """
        kinds = {} if kind is None else {"kind": kind}
        return self.regressor_.variance(self.transform(X), **kinds, **options)

    def predictive_variance(self, X: Any, include_noise: bool = True) -> Array:
        """The variance of a new observation, or of the function.

        Parameters
        ----------
        X : (t, d) array or table
            The points, as they are before they are transformed.
        include_noise : bool
            For a new observation; otherwise for the function.

        Returns
        -------
        variance : (t,) array
            In units of y².
        """
        return self.regressor_.predictive_variance(self.transform(X), include_noise)

    def noise_at(self, X: Any) -> Array:
        """σ²(x), the noise variance of a new observation.

        Parameters
        ----------
        X : (t, d) array or table
            The points, as they are before they are transformed.

        Returns
        -------
        variance : (t,) array
            In units of y².
        """
        return self.regressor_.noise_at(self.transform(X))

    def log_density(self, X: Any, y: Any) -> Array:
        """log p(y) of observations y at the rows of X.

        Parameters
        ----------
        X : (t, d) array or table
            The points, as they are before they are transformed.
        y : (t,) array
            What was observed there.

        Returns
        -------
        density : (t,) array
            The natural logarithm of a density per unit of y.
        """
        return self.regressor_.log_density(self.transform(X), y)

    def covariance(self, X: Any, kind: str | None = None) -> Array:
        """The covariance of the predictions at the rows of X.

        Parameters
        ----------
        X : (t, d) array or table
            The points, as they are before they are transformed.
        kind : str
            As in the estimator's `variance`.

        Returns
        -------
        covariance : (t, t) array
            In units of y² or of the kernel, by its kind.
        """
        return self.regressor_.covariance(self.transform(X), kind)

    def sample(self, X: Any, size: int = 1, kind: str = "gp", *, random_state: Any = None) -> Array:
        """Plausible curves at the rows of X.

        Parameters
        ----------
        X : (t, d) array or table
            The points, as they are before they are transformed.
        size : int
            How many curves.
        kind : str
            As in the estimator's `variance`.
        random_state : int or generator
            A seed.

        Returns
        -------
        curves : (t, size) array
            In units of y.
        """
        return self.regressor_.sample(self.transform(X), size, kind, random_state=random_state)

    def contrast(self, A: Any, X: Any, kind: str | None = None) -> tuple[Array, ...]:
        """Mean and variance of A f(X).

        Parameters
        ----------
        A : (p, t) array or SciPy sparse matrix
            A row for each contrast.
        X : (t, d) array or table
            The points, as they are before they are transformed.
        kind : str
            As in the estimator's `variance`.

        Returns
        -------
        mean : (p,) array
            In units of y.
        variance : (p,) array
            In units of y² or of the kernel.
        """
        return self.regressor_.contrast(A, self.transform(X), kind)

    def test_contrast(self, A: Any, X: Any, value: Any = 0.0, **options: Any) -> ContrastTest:
        """Test whether A f(X) is ``value``, each contrast alone and all at once.

        Parameters
        ----------
        A : (p, t) array or SciPy sparse matrix
            A row for each contrast.
        X : (t, d) array or table
            The points, as they are before they are transformed.
        value : float or (p,) array
            What each contrast is held to be, in units of y.

        Returns
        -------
        found : ContrastTest
            Estimates, p-values, intervals and a band.
        """
        return self.regressor_.test_contrast(A, self.transform(X), value, **options)

    def gradient(self, X: Any, return_std: bool = False, *, kind: str | None = None) -> Any:
        """The derivatives of the mean by each feature that the estimator sees.

        Parameters
        ----------
        X : (t, d) array or table
            The points, as they are before they are transformed.
        return_std : bool
            Also return standard deviations.
        kind : str
            As in the estimator's `variance`.

        Returns
        -------
        gradient : (t, D) array
            In units of y per unit of the feature.
        """
        return self.regressor_.gradient(self.transform(X), return_std, kind=kind)

    def marginal_effects(self, X: Any = None, **options: Any) -> MarginalEffects:
        """The average effect of each feature that the estimator sees, by its name.

        Parameters
        ----------
        X : (t, d) array or table
            The rows over which effects are averaged; the training rows unless given.

        Returns
        -------
        effects : MarginalEffects
            A row for each feature.
        """
        points = None if X is None else self.transform(X)
        found = self.regressor_.marginal_effects(points, **options)
        return replace(found, feature=tuple(map(str, self.get_feature_names_out())))

    @property
    def feature_relevance_(self) -> dict[str, float] | None:
        """How much each feature matters to distances, by its name, the largest first."""
        relevance = self.regressor_.feature_relevance_
        if relevance is None:
            return None
        names = self.get_feature_names_out()
        order = np.argsort(-relevance, kind="stable")
        return {str(names[i]): float(relevance[i]) for i in order}
