"""Exact kernel ridge regression with error bars, for scikit-learn."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from sketchridge.covariance import dense_covariance
from sketchridge.exact_fit import ExactFitted, extend_exact, select_exact
from sketchridge.model import Choices
from sketchridge.precision import FULL, check_full
from sketchridge.query import Query
from sketchridge.regressor import Array, KernelRegressor

__all__ = ["ExactKernelRidge"]


class ExactKernelRidge(KernelRegressor):
    """Kernel ridge regression with the exact predictive variance V1, for as many points as an n×n
    matrix allows: O(n³) time, O(n²) memory.

    Parameters
    ----------
    kernel : str, kernel object or callable
        "auto" (the best of "matern32", "matern52", "gaussian" and "laplacian" by leave-one-out), a
        name of `sketchridge.kernels.KERNELS`, a kernel object, a scikit-learn kernel object, a
        callable k(X, Z), or "precomputed".
    bandwidth : str, float, (d,) array or (d, k) array
        A number, one for each feature, or a map M with distances ‖(x − z)M‖, in units of the
        features; learned: "ard" (one for each feature), "full" (a map) or "auto" (the simplest of
        one for all, "ard" and "full" that predicts as well); "median" (of the distances between
        rows) or "gcv". Learning needs no scaling of the features. A kernel whose profile has no
        slope takes the median for "auto", and one with a bandwidth of its own keeps it unless
        numbers or "gcv" are given.
    alpha : float or str
        The penalty α = λΣw (nλ without weights), in units of the kernel; "loo", the largest whose
        leave-one-out error is within 1% of the least; or "gcv".
    noise : str
        "constant", or "varying": the noise variance σ²(x) is learned from leave-one-out errors,
        rows are weighted by its inverse and intervals follow it, where they gain by that.
    noise_variance : float, (q,) array or "auto"
        σ² in units of y², one for each target; "auto": from leave-one-out errors with alpha="loo",
        otherwise from the residuals.
    fit_intercept : bool
        Fit an unpenalized constant jointly.
    backend : str or backend object
        "auto" (a GPU, if there is one, from 2,048 rows on), "numpy", "torch" or "triton".
    dtype : str
        "auto" or "float64", which are the same: a Cholesky factor of n rows needs all digits.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(100)
    >>> model = ExactKernelRidge().fit(X, y)
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> mean.round(1), std.round(1)
    (array([0.2]), array([0.]))
    """

    _fitted: ExactFitted
    _kinds = ("v1", "gp", "bias2")
    _kind = "v1"
    _select = staticmethod(select_exact)
    _extend = staticmethod(extend_exact)

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        bandwidth: Any = "auto",
        alpha: Any = "loo",
        noise: str = "constant",
        noise_variance: Any = "auto",
        fit_intercept: bool = True,
        backend: Any = "auto",
        dtype: str = "auto",
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.noise = noise
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.backend = backend
        self.dtype = dtype

    def variance(self, X: Any, kind: str = "v1") -> Array:
        """The variance of the prediction at each row of X.

        Parameters
        ----------
        X : (t, d) array or table
            The points.
        kind : str
            "v1", the variance of the mean in units of y²; "gp", the posterior variance, and
            "bias2", the worst squared bias over the unit ball, both in units of the kernel. v1 goes
            to zero far from the data, gp and bias2 do not.

        Returns
        -------
        variance : (t,) array
            (t, q) for several targets and kind "v1".

        Examples
        --------
        >>> import numpy as np
        >>> X = np.linspace(0, 1, 20)[:, None]
        >>> model = ExactKernelRidge("gaussian", bandwidth=0.3, alpha=0.1, noise_variance=0.01)
        >>> model = model.fit(X, np.sin(6 * X[:, 0]))
        >>> model.variance([[0.5], [9.0]], kind="gp").round(3)  # among the data, and far away
        array([0.018, 1.463])
        """
        query = self._question(X)
        self._check_kind(kind)
        return self._variance(query, kind)

    @property
    def _std_kind(self) -> str:
        return "v1"

    @property
    def _own_kind(self) -> str:
        return "v1"

    def _plain_variance(self, query: Query, kind: str) -> Array:
        return self._variance(query, kind)

    def _covariance(self, query: Query, kind: str) -> Array:
        return dense_covariance(self._fitted.ridge, query, kind)

    @property
    def backend_(self) -> str:
        """str : the name of the backend that holds the n×n matrix."""
        return self.fitted_.sample.backend.name

    @property
    def dtype_(self) -> str:
        """str : the precision of the kernel matrix and its factor, always "float64"."""
        check_is_fitted(self)
        return FULL

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_full(self.dtype, type(self).__name__)

    def _settings(self, old: Any) -> Choices:
        return Choices(**self._shared_settings(), backend=self.backend)
