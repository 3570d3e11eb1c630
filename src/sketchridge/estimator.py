"""Sketched kernel ridge regression with error bars, for scikit-learn."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sketchridge.certify import Certificate, norm_certificate
from sketchridge.checks import check_positive, check_refinement, check_sketch_size, drawn_seed
from sketchridge.covariance import refined_covariance, sketched_covariance
from sketchridge.fitted import Fitted, Settings
from sketchridge.found import FoundSketch
from sketchridge.notices import warn
from sketchridge.progress import status
from sketchridge.query import Query
from sketchridge.refine import refined_variance, v1
from sketchridge.regressor import Array, KernelRegressor
from sketchridge.selection import extend, select
from sketchridge.tuning import predicted_error

__all__ = ["SketchedKernelRidge"]

_LARGE_GAP = 2.0  # V2/V3 above which a standard deviation is not returned without a word
_TOL = 0.01  # of "v1", unless given


class SketchedKernelRidge(FoundSketch, KernelRegressor):
    """Kernel ridge regression with the randomly sketched predictive variance V2, for data too large
    for an n×n matrix.

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
    sketch : str, (m, n) array or sketch object
        A name of `sketchridge.sketches.SKETCHES`, or "auto" (= "rpcholesky").
    sketch_size : int, callable or "auto"
        The number of rows m, a function of n that gives it, or "auto" to grow it until standard
        deviations are within `sketch_tol`.
    sketch_tol : float
        How far the variance V̄ behind standard deviations may be from V1, relative, where the size
        is automatic: kept at 95% of points in 90% of problems, as predicted from the gap V2/V3
        (docs/averaged-variance.md).
    solver : str
        "sketch", the sketched mean; "pcg", the exact mean by conjugate gradients, with a residual
        of at most 1e-8·‖y‖; or "auto", the exact mean to what predictions need for up to 32,768
        rows or on a GPU, the sketched one above. With alpha="loo" and up to 4,096 rows an
        automatic sketch is complete, and its mean exact.
    noise : str
        "constant", or "varying": the noise variance σ²(x) is learned from leave-one-out errors,
        rows are weighted by its inverse and intervals follow it, where they gain by that.
    noise_variance : float, (q,) array or "auto"
        σ² in units of y², one for each target; "auto": from leave-one-out errors with alpha="loo",
        otherwise from the residuals.
    fit_intercept : bool
        Fit an unpenalized constant jointly.
    backend : str or backend object
        Where kernel products are computed: "auto" or a name of `sketchridge.backends.BACKENDS`.
    dtype : str
        Precision of kernel products: "auto", "float32", "float64" or, for signs on a GPU,
        "float16" or "float16x2".
    random_state : int, generator or None
        Seed of the sketch and of the probe that measures the gap. Rows on which the kernel is
        learned do not depend on it.

    Notes
    -----
    Above 12,288 rows, or on a GPU above those that it factorizes, solver="auto" decides by seconds:
    a slower machine may take the sketched mean where another takes the exact one. With
    solver="pcg" or "sketch" and a number as sketch_size, the same data and random_state give the
    same results up to rounding everywhere.

    Examples
    --------
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(200)
    >>> model = SketchedKernelRidge(random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> mean.round(1), std.round(1)
    (array([0.1]), array([0.]))
    >>> low, high = model.predict_interval([[0.5]])
    >>> low.round(1), high.round(1)
    (array([-0.1]), array([0.3]))
    """

    _fitted: Fitted
    sketch_limit: int | None = None  # rows of an automatic sketch, for campaigns; the backend says
    _kinds = ("v1", "v2", "v3", "vbar", "vtheta", "gp", "bias2")
    _kind = "v2"
    _select = staticmethod(select)
    _extend = staticmethod(extend)
    _is_lazy = True

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        bandwidth: Any = "auto",
        alpha: Any = "loo",
        sketch: Any = "auto",
        sketch_size: Any = "auto",
        sketch_tol: float = 0.1,
        solver: str = "auto",
        noise: str = "constant",
        noise_variance: Any = "auto",
        fit_intercept: bool = True,
        backend: Any = "auto",
        dtype: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.sketch_tol = sketch_tol
        self.solver = solver
        self.noise = noise
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.backend = backend
        self.dtype = dtype
        self.random_state = random_state

    def variance(
        self,
        X: Any,
        kind: str = "v2",
        *,
        refine: int = 0,
        tol: float | None = None,
        return_bound: bool = False,
    ) -> Array | tuple[Array, Array]:
        """The variance of the prediction at each row of X.

        Parameters
        ----------
        X : (t, d) array or table
            The points.
        kind : str
            "v1", the exact variance of the exact mean, by refinement; "v2", its sketched estimate
            in the paper; "v3", the variance of the sketched mean; "vbar", from the average of the
            weights behind v2 and v3 and far nearer to v1 than either; "vtheta", the same with a
            smaller share of v2 where the sketch misses more, for sketches that are too small for
            vbar; all in units of y². "gp", the posterior variance, and "bias2", the worst squared
            bias over the unit ball, are of the sketched model and in units of the kernel. The
            first five go to zero far from the data, gp and bias2 do not.
        refine : int
            Steps from "v2", "vbar" or "vtheta" toward V1, each a product with the whole kernel
            matrix: O(n²) per point.
        tol : float
            The largest relative error of "v1"; 0.01 unless given.
        return_bound : bool
            Also return a rigorous bound on |√V1 − √variance|, rounding included, for "v1", "v2",
            "vbar" and "vtheta".

        Returns
        -------
        variance : (t,) array
            (t, q) for several targets.
        bound : (t,) array
            The same shape, in units of y, if asked for.
        """
        check_is_fitted(self)
        self._check_kind(kind)
        check_refinement(kind, refine, tol, return_bound)
        if self._is_asked_lazily(X):
            options = {"kind": kind, "refine": refine, "tol": tol, "return_bound": return_bound}
            return self._lazily("variance", X, [kind], options, outputs=1 + return_bound)
        query = self._question(X)
        with self._answering(query, "Computing variances"):
            variance, bound = self._judged(query, kind, refine, tol, return_bound)
        return variance if bound is None else (variance, bound)

    def contrast(
        self,
        A: Any,
        X: Any,
        kind: str | None = None,
        *,
        refine: int = 0,
        tol: float | None = None,
        return_bound: bool = False,
    ) -> tuple[Array, ...]:
        """Mean and variance of A f(X): differences, averages, areas under a curve.

        The covariance at the rows of X is not formed: one product with the kernel is enough.

        Parameters
        ----------
        A : (p, t) array or SciPy sparse matrix
            A row for each contrast; (t,) for one.
        X : (t, d) array or table
            The points.
        kind, refine, tol, return_bound : as in `variance`
            The bound holds rounding in sums that cancel too, as in differences of all but equal
            points; tol does not.

        Returns
        -------
        mean : (p,) array
            In units of y; (p, q) for several targets.
        variance : (p,) array
            The same shape, in units of y²; for "gp" and "bias2" in units of the kernel.
        bound : (p,) array
            The same shape, in units of y, if asked for.

        Examples
        --------
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> model = SketchedKernelRidge("linear", alpha=1e-3, sketch_size=9, random_state=0)
        >>> model = model.fit(X, 2 * X[:, 0])
        >>> mean, variance, bound = model.contrast([[-1, 1]], [[0.2], [0.7]], return_bound=True)
        >>> mean.round(3)
        array([1.])
        """
        query, kind = self._contrasts(A, X), self._known_kind(kind)
        check_refinement(kind, refine, tol, return_bound)
        with self._answering(query, "Computing contrasts"):
            mean = self._mean(query)
            variance, bound = self._judged(query, kind, refine, tol, return_bound)
        return (mean, variance) if bound is None else (mean, variance, bound)

    def _judged(
        self, query: Query, kind: str, refine: int, tol: float | None, return_bound: bool
    ) -> tuple[Array, Array | None]:
        """A variance and, where it is asked for, a bound."""
        fitted = self._fitted
        if kind == "v1":
            tol = _TOL if tol is None else float(tol)
            first, step = self._ways(tol)
            refined = v1(fitted.ridge, query, theta=0.5, tol=tol, first=first, step=step)
        elif refine or return_bound:
            theta = fitted.ridge.theta_of(kind)
            refined = refined_variance(fitted.ridge, query, theta=theta, steps=int(refine))
        else:
            return self._variance(query, kind), None
        variance = self._scaled(refined.variance, self.noise_variance_)
        bound = self._scaled(refined.bound, np.sqrt(self.noise_variance_))
        return variance, bound if return_bound else None

    def _ways(self, tol: float) -> tuple[str, str]:
        """The precisions of the first residual and of the steps toward V1."""
        fitted = self._fitted
        scales, ratio = fitted.sample.scales, fitted.ratio
        return fitted.plan.first(scales, ratio, tol), fitted.plan.step(scales, ratio)

    @property
    def _std_kind(self) -> str:
        return "vbar" if self.gap_ <= _LARGE_GAP else "vtheta"

    @property
    def _own_kind(self) -> str:
        return "v3" if self._fitted.omega is None else "vbar"

    def _plain_variance(self, query: Query, kind: str) -> Array:
        return self._judged(query, kind, 0, None, False)[0]

    def _covariance(self, query: Query, kind: str) -> Array:
        fitted = self._fitted
        if kind == "v1":
            first, step = self._ways(_TOL)
            return refined_covariance(
                fitted.ridge, query, theta=0.5, tol=_TOL, first=first, step=step
            )
        with fitted.backend.alone():
            return sketched_covariance(fitted.ridge, query, kind)

    @property
    def backend_(self) -> str:
        """str : the name of the backend that computes the variances."""
        return self.fitted_.backend.name

    def certificate(self, method: str = "trace") -> Certificate:
        """A bound on |√V2 − √V1| that holds at every point. There is none for V̄: ask for one at
        each point with variance(X, "vbar", return_bound=True).

        Parameters
        ----------
        method : str
            "trace" is free; "norm" is tighter, takes a few products with the whole kernel matrix,
            and fails with the probability it states.

        Returns
        -------
        certificate : Certificate
            Printing it says what it promises, or what to do where it promises nothing.
        """
        found = self.fitted_
        if method == "trace":
            return found.certificate
        if method == "norm":
            with status("Bounding the norm of K − K̂"):
                return norm_certificate(found.ridge, np.random.default_rng(found.settings.seed))
        raise ValueError(f"Unknown certificate {method!r}: give 'trace' or 'norm'.")

    def _variance(self, query: Query, kind: str) -> Array:
        with self._fitted.backend.alone():
            return super()._variance(query, kind)

    def _warn_about(self, std: Array) -> None:
        super()._warn_about(std)
        if self.gap_ > _LARGE_GAP:
            warn(
                f"The sketch of {self.sketch_size_} rows is small for this alpha: V2 and V3 are "
                f"apart by a factor of {self.gap_:.3g}, and standard deviations may be off by a "
                f"factor of {1 + predicted_error(self.gap_):.2g}. Give a larger sketch_size, or "
                "ask for variance(X, kind='v1'), which is exact. Means and intervals do not depend "
                "on it."
            )

    def _settings(self, old: Fitted | None) -> Settings:
        """The seed is drawn at a fit and kept by those that go on from it."""
        size = self.sketch_size
        automatic = isinstance(size, str)
        named_auto = isinstance(self.sketch, str) and self.sketch == "auto"
        seed = drawn_seed(self.random_state) if old is None else old.settings.seed
        return Settings(
            **self._shared_settings(),
            sketch="rpcholesky" if named_auto else copy.deepcopy(self.sketch),
            sketch_size=None if automatic else size if callable(size) else int(size),
            sketch_tol=float(self.sketch_tol),
            solver=self.solver,
            backend=self.backend,
            dtype=self.dtype,
            seed=seed,
            largest_size=self.sketch_limit,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.solver not in ("auto", "sketch", "pcg"):
            raise ValueError(f"Unknown solver {self.solver!r}: give 'auto', 'sketch' or 'pcg'.")
        check_sketch_size(self.sketch_size)
        check_positive("sketch_tol", self.sketch_tol)
