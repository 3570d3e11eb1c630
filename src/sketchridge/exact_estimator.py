"""Exact kernel ridge regression with error bars, for scikit-learn."""

from __future__ import annotations

import copy
from typing import Any

from sketchridge.checks import check_appendable
from sketchridge.data import prepared
from sketchridge.exact_fit import ExactFitted, ExactSettings, extend_exact, select_exact
from sketchridge.kernels import Precomputed, candidates
from sketchridge.progress import status
from sketchridge.regressor import Array, KernelRegressor

__all__ = ["ExactKernelRidge"]


class ExactKernelRidge(KernelRegressor):
    """Kernel ridge regression with the exact predictive variance V1, for as many points as an n×n
    matrix allows.

    Parameters
    ----------
    kernel : a name of `sketchridge.kernels.KERNELS`, a kernel object, a scikit-learn kernel object,
        a callable k(X, Z), or "precomputed".
    bandwidth : a number, one for each feature, "median" (of the distances between rows) or "gcv".
    alpha : the penalty α = λΣw (nλ without weights), "gcv" or "loo".
    noise_variance : σ², one for each target, or "auto" to estimate it from the residuals.
    fit_intercept : fit an unpenalised constant jointly.

    Attributes
    ----------
    lambda_, alpha_, bandwidth_, noise_variance_, effective_dof_, s_lambda_, eigenvalues_, path_,
    loo_error_

    Examples
    --------
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> model = ExactKernelRidge(alpha=0.1, noise_variance=1.0).fit(X, np.sin(6 * X[:, 0]))
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> mean.round(2), std.round(2)
    (array([0.13]), array([0.38]))
    """

    _fitted: ExactFitted
    _std_kind = "v1"
    _kinds = ("v1", "gp", "bias2")

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        bandwidth: Any = "median",
        alpha: Any = "gcv",
        noise_variance: Any = "auto",
        fit_intercept: bool = False,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ExactKernelRidge:
        """Fit to X (n, d) and y (n,) or (n, q). O(n³) time, O(n²) memory.

        Parameters
        ----------
        X : (n, d) array or table, or the (n, n) kernel matrix for kernel="precomputed".
        y : (n,) or (n, q).
        sample_weight : (n,), precisions: row i has the noise variance σ²/w_i. 1 unless given.
        """
        self._check_parameters()
        done = copy.copy(self)
        X, Y, w = done._validated(X, y, sample_weight, reset=True)
        settings = self._settings()
        with status("Fitting") as say:
            square = isinstance(settings.kernel, Precomputed)
            data = prepared(X, Y, w, fit_intercept=self.fit_intercept, square=square)
            done._fitted = select_exact(settings, data, say)
        self.__dict__ = done.__dict__
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> ExactKernelRidge:
        """Append rows: the kernel with its bandwidth is kept, λ is chosen anew. O(n³)."""
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight)
        self._check_parameters()
        check_appendable(self._fitted)
        done = copy.copy(self)
        X, Y, w = done._validated(X, y, sample_weight, reset=False)
        self._fitted.kernel.check_domain(X)
        with status("Appending rows") as say:
            fitted = extend_exact(self._fitted, self._settings(), X, Y, w, say)
        self._fitted = fitted
        return self

    def variance(self, X: Any, kind: str = "v1") -> Array:
        """The variance of the prediction at each row of X.

        Parameters
        ----------
        X : (t, d) array or table.
        kind : "v1", the variance of the mean in units of y²; "gp", the posterior variance, and
            "bias2", the worst squared bias over the unit ball, both in units of the kernel. v1 goes
            to zero far from the data, gp and bias2 do not.
        """
        query = self._question(X)
        self._check_kind(kind)
        with status("Computing variances"):
            return self._variance(query, kind)

    def _settings(self) -> ExactSettings:
        return ExactSettings(
            kernels=candidates(self.kernel),
            bandwidth=copy.deepcopy(self.bandwidth),
            alpha=self.alpha if isinstance(self.alpha, str) else float(self.alpha),
            noise_variance=copy.deepcopy(self._given_noise()),
            fit_intercept=bool(self.fit_intercept),
        )
