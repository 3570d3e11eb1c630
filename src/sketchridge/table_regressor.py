"""One estimator for a table with text, dates and gaps, with error bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted

from sketchridge.columns import cells_of, check_table, kind_of, names_of, numbers_of
from sketchridge.encoder import PLURAL, TableEncoder
from sketchridge.estimator import SketchedKernelRidge
from sketchridge.notices import warn
from sketchridge.through import Through
from sketchridge.words import listed, no_column, shown

__all__ = ["TableRegressor", "make_model", "target_values"]

Array = np.ndarray


class TableRegressor(Through, RegressorMixin, MetaEstimatorMixin, BaseEstimator):
    """Kernel ridge regression with error bars for a pandas or polars table as it is.

    Numbers, text, dates and gaps are encoded by a `TableEncoder`, which is part of the model and
    repeats at prediction. All methods of the estimator take tables: `predict`,
    `predict_interval`, `variance`, `predictive_variance`, `noise_at`, `marginal_effects`, ...

    Parameters
    ----------
    estimator : estimator
        What is fitted to the encoded table; ``SketchedKernelRidge(random_state=0)`` unless
        given.
    max_categories : int
        Values of a text column that get a feature each; rarer ones share one.
    category : sequence of str
        Columns that are categories whatever they look like, such as codes.
    ignore : sequence of str
        Columns that are not used.

    Attributes
    ----------
    encoder_ : TableEncoder
        How columns become features, and why some were left out (`encoder_.left_out_`).
    regressor_ : estimator
        The fitted estimator, with `alpha_`, `loo_error_`, `gap_` and so on.
    feature_relevance_ : dict
        How much each column matters to distances, by its name, the largest first.
    target_name_ : str or None
        The name of y, where it has one.
    feature_names_in_ : (d,) array of str
        The columns of the table.
    n_features_in_ : int
        How many they are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = {"size": rng.random(60), "color": rng.choice(["red", "blue"], 60)}
    >>> y = np.sin(6 * table["size"]) + (table["color"] == "red") + 0.1 * rng.standard_normal(60)
    >>> model = TableRegressor().fit(table, y)
    >>> low, high = model.predict_interval({"size": [0.5], "color": ["red"]})
    >>> bool(low < 1.14 < high)
    True
    >>> sorted(model.feature_relevance_)
    ['color', 'size']
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        max_categories: int = 20,
        category: Any = (),
        ignore: Any = (),
    ) -> None:
        self.estimator = estimator
        self.max_categories = max_categories
        self.category = category
        self.ignore = ignore

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to a table and a column of numbers; rows without a target are dropped.

        Parameters
        ----------
        X : table
            A pandas or polars DataFrame, or a mapping of columns; n rows.
        y : (n,) array
            Numbers; NaN or None where there is none.
        sample_weight : (n,) array
            Precisions: row i has the noise variance σ²/w_i. 1 unless given.

        Returns
        -------
        self : TableRegressor
            Fitted.
        """
        return self._fit_to(X, y, getattr(y, "name", None), sample_weight)

    def _fit_to(self, X: Any, y: Any, name: Any, sample_weight: Any) -> Self:
        check_table(X)
        y = target_values(y, name)
        check_consistent_length(cells_of(X, names_of(X)[0]), y)
        known = np.flatnonzero(~np.isnan(y))
        if len(known) < len(y):
            warn(
                f"{len(y) - len(known):,} of {len(y):,} rows have no {shown(name or 'y')}: they "
                "are not used."
            )
            if sample_weight is not None:
                check_consistent_length(y, sample_weight)
                sample_weight = np.asarray(sample_weight)[known]
            X, y = _rows(X, known), y[known]
        if len(y) < 2:
            raise ValueError(f"At least two rows with a target are needed, got {len(y)}.")
        encoder = TableEncoder(
            max_categories=self.max_categories,
            category=_names(self.category),
            ignore=_names(self.ignore),
        )
        Z = encoder.fit(X, y).transform(X)
        chosen = SketchedKernelRidge(random_state=0) if self.estimator is None else self.estimator
        if not hasattr(chosen, "predict_interval"):
            raise ValueError(
                f"{type(chosen).__name__} has no intervals: give an estimator of this library."
            )
        fitted = clone(chosen).fit(Z, y, sample_weight)
        self.encoder_ = encoder
        self._regressor = fitted
        self.target_name_ = name
        self.feature_names_in_ = encoder.feature_names_in_
        self.n_features_in_ = encoder.n_features_in_
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_regressor")

    @property
    def regressor_(self) -> Any:
        """The fitted estimator."""
        check_is_fitted(self)
        return self._regressor

    def transform(self, X: Any) -> Array:
        """The features that the estimator sees.

        Parameters
        ----------
        X : table
            With the columns of the fit, in any order.

        Returns
        -------
        Z : (t, D) array
            What the estimator sees.
        """
        check_is_fitted(self)
        check_table(X)
        target = self.target_name_
        if target in names_of(X) and target not in self.feature_names_in_:
            X = {name: X[name] for name in names_of(X) if name != target}
        return self.encoder_.transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        check_is_fitted(self)
        return self.encoder_.get_feature_names_out()

    @property
    def feature_relevance_(self) -> dict[str, float] | None:
        """How much each column matters to distances, with sum 1, the largest first."""
        relevance = self.regressor_.feature_relevance_
        if relevance is None:
            return None
        places = self.encoder_.places_.items()
        sums = {name: float(relevance[place].sum()) for name, place in places}
        return dict(sorted(sums.items(), key=lambda pair: -pair[1]))

    def influence(self, rows: int = 300, random_state: Any = 0) -> dict[str, float]:
        """By how much predictions change when the values of a column are shuffled.

        The root mean square over some training rows, in units of y, the largest first. Unlike
        `feature_relevance_`, which is about distances, it is about predictions; where two columns
        say the same, both get a part of what they say.

        Parameters
        ----------
        rows : int
            Training rows at most that are predicted.
        random_state : int or generator
            A seed of the rows and their order.

        Returns
        -------
        influence : dict
            A root mean square change in units of y for each column, by its name.

        Examples
        --------
        >>> x = np.random.default_rng(0).random((50, 2))
        >>> model = make_model({"a": x[:, 0], "b": x[:, 1], "y": 3 * x[:, 0] + x[:, 1]}, "y")
        >>> list(model.influence())
        ['a', 'b']
        """
        rng = check_random_state(random_state)
        every = self.regressor_.fitted_.data.X
        some = every[rng.permutation(len(every))[:rows]]
        plain = self.regressor_.predict(some)
        found = {}
        for name, place in self.encoder_.places_.items():
            changed = some.copy()
            changed[:, place] = every[rng.randint(len(every), size=len(some)), place]
            found[name] = float(np.sqrt(np.mean((self.regressor_.predict(changed) - plain) ** 2)))
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def make_model(
    table: Any,
    target: str,
    *,
    estimator: Any = None,
    max_categories: int = 20,
    category: Any = (),
    ignore: Any = (),
) -> TableRegressor:
    """A fitted model of one column of a table by the others.

    Parameters
    ----------
    table : table
        A pandas or polars DataFrame, or a mapping of columns.
    target : str
        The column to predict; rows without it are dropped.
    estimator : estimator
        What is fitted to the encoded table; ``SketchedKernelRidge(random_state=0)`` unless
        given.
    max_categories : int
        Values of a text column that get a feature each; rarer ones share one.
    category : sequence of str
        Columns that are categories whatever they look like, such as codes.
    ignore : sequence of str
        Columns that are not used.

    Returns
    -------
    model : TableRegressor
        Fitted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = {"size": rng.random(60), "color": rng.choice(["red", "blue"], 60)}
    >>> table["price"] = 3 * table["size"] + (table["color"] == "red")
    >>> model = make_model(table, "price")
    >>> model.predict({"size": [0.5], "color": ["red"]}).round(1)
    array([2.5])
    """
    check_table(table)
    names = names_of(table)
    if target not in names:
        raise ValueError(no_column("The table", target, names))
    others = {name: table[name] for name in names if name != target}
    model = TableRegressor(
        estimator, max_categories=max_categories, category=category, ignore=ignore
    )
    return model._fit_to(others, table[target], target, None)


def target_values(y: Any, name: Any) -> Array:
    """y as floats (n,), NaN where there is none."""
    cells = cells_of({"y": y}, "y")
    if cells.ndim != 1:
        raise ValueError(
            f"One target is needed, a column of n numbers, got the shape {cells.shape}: fit a "
            "model for each target."
        )
    called = shown(name or "y")
    kind = kind_of(cells, str(name or "y"))
    if kind == "empty":
        raise ValueError(f"The target {called} is empty: rows with a number there are needed.")
    if kind != "number":
        examples = listed([v for v in cells if v is not None][:3])
        raise ValueError(
            f"The target {called} must be numbers, but holds {PLURAL[kind]} such as {examples}."
        )
    found = numbers_of(cells)
    if np.isinf(found).any():
        raise ValueError(f"The target {called} holds infinite values: correct these cells.")
    return found


def _rows(X: Any, rows: Array) -> Any:
    if isinstance(X, Mapping):
        return {name: cells_of(X, name)[rows] for name in X}
    return _safe_indexing(X, rows)


def _names(given: Any) -> list[str]:
    """Columns as a list, one name included."""
    return [given] if isinstance(given, str) else list(given)
