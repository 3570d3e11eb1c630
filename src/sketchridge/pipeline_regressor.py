"""A pipeline that ends in an estimator of this library, with its error bars."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sketchridge.through import Through

__all__ = ["PipelineRegressor", "with_intervals"]

Array = np.ndarray


class PipelineRegressor(Through, RegressorMixin, MetaEstimatorMixin, BaseEstimator):
    """A scikit-learn pipeline with the methods of the estimator that it ends in.

    Parameters
    ----------
    pipeline : Pipeline
        One that ends in an estimator of this library. One that is fitted answers at once; `fit`
        fits a copy.

    Attributes
    ----------
    pipeline_ : Pipeline
        The fitted pipeline.
    regressor_ : estimator
        The fitted estimator, with `alpha_`, `loo_error_`, `gap_` and so on.
    feature_relevance_ : dict
        How much each column matters to distances, by its name, the largest first.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sketchridge import ExactKernelRidge
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> model = PipelineRegressor(make_pipeline(StandardScaler(), ExactKernelRidge()))
    >>> low, high = model.fit(X, np.sin(6 * X[:, 0])).predict_interval(X[:3])
    >>> (low < high).all()
    np.True_
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a copy of the pipeline.

        Parameters
        ----------
        X : (n, d) array or table
            The rows, as the first step takes them.
        y : (n,) array
            The targets.
        sample_weight : (n,) array
            Precisions, for the estimator at the end.

        Returns
        -------
        self : PipelineRegressor
            Fitted.
        """
        _check(self.pipeline)
        weights = {} if sample_weight is None else {_weights_of(self.pipeline): sample_weight}
        self.pipeline_ = clone(self.pipeline).fit(X, y, **weights)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "pipeline_") or self.pipeline.__sklearn_is_fitted__()

    @property
    def _fitted_pipeline(self) -> Pipeline:
        check_is_fitted(self)
        return getattr(self, "pipeline_", self.pipeline)

    @property
    def regressor_(self) -> Any:
        """The fitted estimator at the end."""
        _check(self._fitted_pipeline)
        return self._fitted_pipeline[-1]

    def transform(self, X: Any) -> Any:
        """X after all steps but the last.

        Parameters
        ----------
        X : (t, d) array or table
            The points, as the first step takes them.

        Returns
        -------
        Z : (t, D) array
            What the estimator sees.
        """
        steps = self._fitted_pipeline[:-1]
        return steps.transform(X) if len(steps) else X

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names that the steps give; x0, x1, … where one of them gives none.

        Parameters
        ----------
        input_features : sequence of str
            Names of the first step's columns, where it does not know them.

        Returns
        -------
        names : (D,) array of str
            One for each feature that the estimator sees.
        """
        pipeline = self._fitted_pipeline
        width = pipeline[-1].n_features_in_
        try:
            steps = pipeline[:-1]
            names = steps.get_feature_names_out(input_features) if len(steps) else None
        except (AttributeError, ValueError):
            names = None
        if names is None:
            given = getattr(pipeline[-1], "feature_names_in_", input_features)
            names = [f"x{i}" for i in range(width)] if given is None else given
        return np.array(names, dtype=object)


def with_intervals(estimator: Any) -> Any:
    """An estimator as it is, or a pipeline that ends in one with its methods.

    ValueError for what has no intervals.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> with_intervals(LinearRegression())
    Traceback (most recent call last):
    ValueError: LinearRegression has no intervals: an estimator of this library is needed, or a \
pipeline that ends in one.
    """
    if hasattr(estimator, "predict_interval"):
        return estimator
    _check(estimator)
    return PipelineRegressor(estimator)


def _check(pipeline: Any) -> None:
    steps = getattr(pipeline, "steps", None)
    last = pipeline if not steps else steps[-1][1]
    if not steps or not hasattr(last, "predict_interval"):
        raise ValueError(
            f"{type(last).__name__} has no intervals: an estimator of this library is needed, or a "
            "pipeline that ends in one."
        )


def _weights_of(pipeline: Pipeline) -> str:
    return f"{pipeline.steps[-1][0]}__sample_weight"
