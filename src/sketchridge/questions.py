"""Questions beyond points: covariances, plausible curves, contrasts, slopes, marginal effects."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sketchridge.answers import ContrastTest, MarginalEffects, effects_table, tested
from sketchridge.backends import by_rows
from sketchridge.checks import (
    as_random,
    check_interval,
    checked_matrix,
    checked_value,
    checked_weights,
    drawn_seed,
)
from sketchridge.covariance import half
from sketchridge.dask_input import computed
from sketchridge.kinds import Kinds
from sketchridge.progress import answering, status
from sketchridge.query import AtPoints, Contrasts, Query
from sketchridge.rows import changed, two_values
from sketchridge.slopes import AverageSlopes, slopes_at

__all__ = ["Questions"]

Array = np.ndarray
_SIMULATIONS = 10_000


class Questions(Kinds):
    """Linear functionals of a fitted estimator's function, with their variances."""

    _fitted: Any
    _one_target: bool
    n_features_in_: int

    def covariance(self, X: Any, kind: str | None = None) -> Array:
        """The covariance of the predictions at the rows of X.

        It is positive semidefinite, and its diagonal is `variance(X, kind)`.

        Parameters
        ----------
        X : (t, d) array or table
            The points. Memory and result are t×t; the data are read in blocks.
        kind : str
            As in `variance`, without "bias2": "v1", "v2", "v3", "vbar" and "vtheta", the
            covariance of the mean, in units of y²; "gp", the posterior covariance, in units of the
            kernel. That of `variance` unless given.

        Returns
        -------
        covariance : (t, t) array
            (t, t, q) for several targets and kinds in units of y².

        Examples
        --------
        >>> from sketchridge import ExactKernelRidge
        >>> X = np.linspace(0, 1, 20)[:, None]
        >>> model = ExactKernelRidge("gaussian", bandwidth=0.3, alpha=0.1, noise_variance=0.01)
        >>> C = model.fit(X, np.sin(6 * X[:, 0])).covariance([[0.3], [0.4], [0.5]])
        >>> (C / C[0, 0]).round(1)[0]  # neighbors err together
        array([1. , 0.8, 0.5])
        """
        kind = self._covariance_kind(kind)
        query = self._question(X)
        with answering("Computing covariances"):
            unit = self._covariance(query, kind)
        if kind == "gp":
            return unit * self._fitted.kernel.unit
        return self._of_targets(unit, self._fitted.noise)

    def sample(self, X: Any, size: int = 1, kind: str = "gp", *, random_state: Any = None) -> Array:
        """Plausible curves: draws from a normal distribution around the mean at the rows of X.

        Parameters
        ----------
        X : (t, d) array or table
            The points.
        size : int
            How many curves.
        kind : str
            "gp", the posterior of the function, with the amplitude `amplitude_`, which knows of
            bias and is wide far from the data; or a kind of `covariance`, the mean as it would vary
            with the noise.
        random_state : int, generator or None
            A seed, or a generator of NumPy's of either kind.

        Returns
        -------
        curves : (t, size) array
            In units of y; (t, q, size) for several targets.

        Examples
        --------
        >>> from sketchridge import ExactKernelRidge
        >>> X = np.linspace(0, 1, 20)[:, None]
        >>> model = ExactKernelRidge().fit(X, np.sin(6 * X[:, 0]))
        >>> model.sample(X, 3, random_state=0).shape
        (20, 3)
        """
        if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
            raise ValueError(f"size must be a whole number of curves from 1 up, got {size!r}.")
        kind = self._covariance_kind(kind)
        rng = as_random(random_state)
        query = self._question(X)
        fitted = self._fitted
        with answering("Drawing curves"):
            mean = fitted.mean(query)
            root = half(self._covariance(query, kind))  # (t, r)
        variances = fitted.predictive.amplitude if kind == "gp" else fitted.noise
        t, q = mean.shape
        draws = rng.standard_normal((root.shape[1], q * int(size)))
        noise = (root @ draws).reshape(t, q, int(size)) * np.sqrt(variances)[:, None]
        curves = mean[:, :, None] + noise
        return curves[:, 0] if self._one_target else curves

    def contrast(self, A: Any, X: Any, kind: str | None = None) -> tuple[Array, ...]:
        """Mean and variance of A f(X): differences, averages, areas under a curve.

        The covariance at the rows of X is not formed: one product with the kernel is enough.

        Parameters
        ----------
        A : (p, t) array or SciPy sparse matrix
            A row for each contrast; (t,) for one.
        X : (t, d) array or table
            The points.
        kind : str
            As in `variance`.

        Returns
        -------
        mean : (p,) array
            In units of y; (p, q) for several targets.
        variance : (p,) array
            The same shape, in units of y²; for "gp" and "bias2" in units of the kernel.

        Examples
        --------
        >>> from sketchridge import ExactKernelRidge
        >>> X = np.linspace(0, 1, 20)[:, None]
        >>> model = ExactKernelRidge().fit(X, 2 * X[:, 0])
        >>> mean, variance = model.contrast([[-1, 1]], [[0.2], [0.7]])  # f(0.7) − f(0.2)
        >>> mean.round(3)
        array([1.])
        """
        query, kind = self._contrasts(A, X), self._known_kind(kind)
        with answering("Computing contrasts"):
            return self._mean(query), self._plain_variance(query, kind)

    def test_contrast(
        self,
        A: Any,
        X: Any,
        value: Any = 0.0,
        *,
        kind: str | None = None,
        confidence_level: float = 0.95,
        simulations: int = _SIMULATIONS,
        random_state: Any = 0,
    ) -> ContrastTest:
        """Test whether A f(X) is ``value``, each contrast alone and all at once.

        The band that holds all at once is the largest |z| of normal draws with the contrasts' own
        correlations. Tests and bands are about the expectation of the estimate: they know of noise,
        not of bias.

        Parameters
        ----------
        A, X : as in `contrast`
            The contrasts and their points.
        value : float or (p,) array
            What each contrast is held to be, in units of y; (p, q) for several targets.
        kind : str
            The variance of the mean that is used: unless given that of the estimate itself, "v1"
            for an exact model, "v3" for a sketched mean, "vbar" for an exact mean with a sketch.
        confidence_level : float
            Of intervals and band, between 0 and 1.
        simulations : int
            How many draws make the band.
        random_state : int or generator
            A seed for them.

        Returns
        -------
        found : ContrastTest
            Estimates, p-values, intervals and the band, each (p,); printing it shows a table.

        Examples
        --------
        >>> from sketchridge import ExactKernelRidge
        >>> rng = np.random.default_rng(0)
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> model = ExactKernelRidge().fit(X, 2 * X[:, 0] + 0.1 * rng.standard_normal(100))
        >>> found = model.test_contrast([[-1, 1], [-2, 2]], [[0.2], [0.7]])
        >>> (found.p_value < 0.001).all()
        np.True_
        """
        check_interval(confidence_level, "gaussian", "both")
        kind = self._kind_of_the_mean(kind)
        if not isinstance(simulations, Integral) or simulations < 1:
            raise ValueError(f"simulations must be a whole number from 1 up, got {simulations!r}.")
        query = self._contrasts(A, X)
        q = () if self._one_target else (len(self._fitted.noise),)
        held = checked_value(value, (len(query), *q))
        with answering("Testing contrasts"):
            mean = self._mean(query)
            unit = self._covariance(query, kind)
        std = np.sqrt(self._of_targets(np.maximum(np.diagonal(unit), 0), self._fitted.noise))
        rng = np.random.default_rng(drawn_seed(random_state))
        return tested(mean, std, unit, held, float(confidence_level), int(simulations), rng)

    def gradient(self, X: Any, return_std: bool = False, *, kind: str | None = None) -> Any:
        """The derivatives of the mean by each feature at the rows of X.

        Parameters
        ----------
        X : (t, d) array or table
            The points.
        return_std : bool
            Also return their standard deviations, which know of noise, not of bias.
        kind : str
            As in `test_contrast`.

        Returns
        -------
        gradient : (t, d) array
            In units of y per unit of the feature; (t, d, q) for several targets.
        std : (t, d) array
            The same shape and units, if asked for.

        Examples
        --------
        >>> from sketchridge import ExactKernelRidge
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> model = ExactKernelRidge("gaussian").fit(X, np.sin(6 * X[:, 0]))
        >>> model.gradient([[0.5]]).round(1)  # 6 cos(3)
        array([[-5.9]])
        """
        kind = self._kind_of_the_mean(kind)
        points = self._question(X)
        query = slopes_at(self._fitted.sample, points, self.n_features_in_)
        with answering("Computing gradients"):
            shape = (len(points), self.n_features_in_, -1)
            mean = self._fitted.mean(query).reshape(shape)
            mean = mean[:, :, 0] if self._one_target else mean
            if not return_std:
                return mean
            return mean, np.sqrt(self._plain_variance(query, kind)).reshape(mean.shape)

    def marginal_effects(
        self,
        X: Any = None,
        *,
        sample_weight: Any = None,
        kind: str | None = None,
        confidence_level: float = 0.95,
    ) -> MarginalEffects:
        """The average effect of each feature over the rows of X, with standard errors.

        It is the average derivative; for a feature with two values in the training data the average
        of f at the larger less f at the smaller. Standard errors are by the delta method, exact
        since the averages are linear in y: they know of noise, not of bias, so that intervals are
        for the expectation of the estimate.

        Parameters
        ----------
        X : (t, d) array or table
            The rows over which effects are averaged; the training rows, with their weights, unless
            given.
        sample_weight : (t,) array
            Weights of the rows of X in the average; 1 unless given.
        kind : str
            As in `test_contrast`.
        confidence_level : float
            Of the intervals.

        Returns
        -------
        effects : MarginalEffects
            A table with a row for each feature: print it, take its columns, make it a data frame
            with ``to_frame()``, or a picture with `effect_plots.plot_marginal_effects`.

        Examples
        --------
        >>> from sketchridge import ExactKernelRidge
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((100, 2))
        >>> y = 3 * X[:, 0] + 0.1 * rng.standard_normal(100)
        >>> model = ExactKernelRidge("gaussian", bandwidth=2.0, alpha=0.01).fit(X, y)
        >>> effects = model.marginal_effects()
        >>> effects.effect.round(1) + 0.0, effects.p_value < 0.001
        (array([2.9, 0. ]), array([ True, False]))
        """
        check_interval(confidence_level, "gaussian", "both")
        kind = self._kind_of_the_mean(kind)
        rows, points, weights = self._averaged(X, sample_weight)
        fitted, d = self._fitted, self.n_features_in_
        levels = two_values(fitted.data.X)
        continuous = np.array([j for j in range(d) if j not in levels], dtype=int)
        if len(continuous) or fitted.data.columns is not None:
            fitted.kernel.check_slopes()
        effect, std = np.empty((2, d, len(fitted.noise)))
        with status("Averaging effects") as say:
            if len(continuous):
                query = AverageSlopes(fitted.sample, points.points, d, weights, continuous)
                effect[continuous], std[continuous] = self._estimated(query, kind)
            for j, (low, high) in levels.items():
                say(f"Averaging effects: feature {j + 1} of {d}")
                effect[j], std[j] = self._estimated(self._step(rows, weights, j, low, high), kind)
        if self._one_target:
            effect, std = effect[:, 0], std[:, 0]
        names = tuple(getattr(self, "feature_names_in_", [f"x{j}" for j in range(d)]))
        how = tuple("first difference" if j in levels else "derivative" for j in range(d))
        return effects_table(names, how, effect, std, float(confidence_level))

    # What answers are made of

    def _averaged(self, X: Any, sample_weight: Any) -> tuple[Array, AtPoints, Array]:
        """Rows (t, d), as a question, with weights of sum 1."""
        if X is None:
            check_is_fitted(self)
            if sample_weight is not None:
                raise ValueError(
                    "sample_weight goes with X, whose rows it weighs; training rows have the "
                    "weights of the fit."
                )
            fitted = self._fitted
            rows, w = fitted.plain.X, fitted.plain.w
            points = AtPoints(fitted.sample.points)
        else:
            X = computed(X)
            points = self._question(X)
            rows = np.asarray(X, dtype=float)
            w = checked_weights(sample_weight, rows)
        return rows, points, w / w.sum()

    def _step(self, rows: Array, weights: Array, j: int, low: float, high: float) -> Contrasts:
        """The average of f with feature j at its larger value less that at the smaller."""
        above, below = (
            self._fitted.at(by_rows(partial(changed, j, value), rows)).points
            for value in (high, low)
        )
        A = np.concatenate([weights, -weights])[None]
        return Contrasts(self._fitted.sample, above.append(below), A)

    def _estimated(self, query: Query, kind: str) -> tuple[Array, Array]:
        """Means and standard deviations, each (p, q)."""
        mean = self._fitted.mean(query)
        return mean, np.sqrt(self._plain_variance(query, kind)).reshape(mean.shape)

    def _contrasts(self, A: Any, X: Any) -> Contrasts:
        query = self._question(X)
        A = checked_matrix(A, len(query))
        return Contrasts(self._fitted.sample, query.points, A)

    def _mean(self, query: Query) -> Array:
        return self._shaped(self._fitted.mean(query))

    def _of_targets(self, unit: Array, factors: Array) -> Array:
        """unit times one number for each target, along a last axis where there are several."""
        return unit * factors[0] if self._one_target else unit[..., None] * factors

    @abstractmethod
    def _covariance(self, query: Query, kind: str) -> Array:
        """For unit noise, or in the kernel's own units: (t, t)."""

    @abstractmethod
    def _plain_variance(self, query: Query, kind: str) -> Array:
        """As `variance` gives it."""

    @abstractmethod
    def _question(self, X: Any) -> AtPoints: ...
