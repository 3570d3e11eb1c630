"""The estimators: kernel ridge regression with error bars, exact and sketched, as scikit-learn knows them."""

from __future__ import annotations

import warnings
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sketchridge import tuning
from sketchridge.backends import Backend, NumpyTiles, as_backend
from sketchridge.backends.base import Product
from sketchridge.certify import Certificate, norm_certificate, trace_certificate
from sketchridge.dense import DenseRidge, dense_ridge
from sketchridge.kernels import Kernel, as_kernel
from sketchridge.refine import exact_mean, refined_variance, v1
from sketchridge.regressor import Array, KernelRegressor
from sketchridge.sketches import ArraySketch, RPCholeskySketch, Sketch, as_sketch
from sketchridge.state import Ridge, State, build

__all__ = ["ExactKernelRidge", "SketchedKernelRidge"]

_MEAN_TOL = 1e-8
_STEP_ERROR = 0.1  # of a step of refinement, which is judged in full precision


class ExactKernelRidge(KernelRegressor):
    """Kernel ridge regression with the exact predictive variance V1, for as many points as an n×n matrix allows.

    Parameters
    ----------
    kernel : a name of `sketchridge.kernels.KERNELS`, a kernel object, a scikit-learn kernel object or a callable k(X, Z).
    bandwidth : a number, one for each feature, "median" (of the distances between rows) or "gcv".
    alpha : the penalty α = nλ, "gcv" or "loo".
    noise_variance : σ², one for each target, or "auto" to estimate it from the residuals.
    fit_intercept : fit an unpenalised constant jointly.

    Attributes
    ----------
    lambda_, alpha_, bandwidth_, noise_variance_, effective_dof_, s_lambda_, eigenvalues_, path_, loo_error_
    """

    _ridge: DenseRidge
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

    def fit(self, X: Any, y: Any) -> ExactKernelRidge:
        """Fit to X (n, d) and y (n,) or (n, q). O(n³) time, O(n²) memory; `sample_weight` is not supported."""
        self._check_parameters()
        X, Y = self._validated(X, y, reset=True)
        _check_memory(len(X))
        backend = NumpyTiles()
        kernel = self._fitted_kernel(backend, X, Y)
        self._shift = Y.mean(axis=0) if self.fit_intercept else np.zeros(Y.shape[1])
        Y = Y - self._shift
        self.__dict__.pop("_path_state", None)
        if isinstance(self.alpha, str):
            self._path_state = _complete_state(backend, kernel, X, Y)
            lam = tuning.choose_lambda(self._path_state, self.alpha, self.fit_intercept)
        else:
            lam = float(self.alpha) / len(X)
        self._set_ridge(dense_ridge(backend, kernel, X, Y, lam, self.fit_intercept), kernel, Y)
        return self

    def variance(self, X: Any, kind: str = "v1") -> Array:
        """The variance of the prediction at each row of X.

        Parameters
        ----------
        X : (t, d) array or table.
        kind : "v1", the variance of the mean in units of y²; "gp", the posterior variance, and "bias2", the worst squared bias over
            the unit ball, both in units of the kernel. v1 goes to zero far from the data, gp and bias2 do not.
        """
        X = self._validated_points(X)
        self._check_kind(kind)
        return self._variance(X, kind)

    @cached_property
    def _path_state(self) -> State:
        ridge = self._ridge
        return _complete_state(ridge.backend, ridge.kernel, ridge.X, ridge.Y)


class SketchedKernelRidge(KernelRegressor):
    """Kernel ridge regression with the randomly sketched predictive variance V2, for data too large for an n×n matrix.

    Parameters
    ----------
    kernel : a name of `sketchridge.kernels.KERNELS`, a kernel object, a scikit-learn kernel object or a callable k(X, Z).
    bandwidth : a number, one for each feature, "median" (of the distances between rows) or "gcv".
    alpha : the penalty α = nλ, "gcv" or "loo".
    sketch : a name of `sketchridge.sketches.SKETCHES`, "auto" (= "rpcholesky"), an (m, n) array or a sketch object.
    sketch_size : the number of rows m, or "auto" to grow it until the gap V2/V3 is at most 1 + `sketch_tol`.
    sketch_tol : how far V2 may typically be from V1, relative, where the size is automatic.
    solver : "sketch", the sketched mean, or "pcg", the exact mean by conjugate gradients, with a residual of at most 1e-8·‖y‖.
    noise_variance : σ², one for each target, or "auto" to estimate it from the residuals.
    fit_intercept : fit an unpenalised constant jointly.
    backend : where kernel products are computed: "auto", a name of `sketchridge.backends.BACKENDS` or a backend object.
    dtype : precision of kernel products: "auto", "float32", "float64" or, for signs on a GPU, "float16" or "float16x2".
    random_state : seed of the sketch and of the probe that measures the gap.

    Attributes
    ----------
    lambda_, alpha_, bandwidth_, noise_variance_, effective_dof_, s_lambda_, eigenvalues_, path_, loo_error_,
    sketch_, sketch_size_, gap_ : the gap reached, certificate_ : a uniform bound, dtype_, backend_
    """

    _ridge: Ridge
    _largest_size: int | None = None  # of an automatic sketch, where it is not to be that of `tuning`
    _std_kind = "v2"
    _kinds = ("v1", "v2", "v3", "gp", "bias2")

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        bandwidth: Any = "median",
        alpha: Any = "gcv",
        sketch: Any = "auto",
        sketch_size: Any = "auto",
        sketch_tol: float = 0.1,
        solver: str = "sketch",
        noise_variance: Any = "auto",
        fit_intercept: bool = False,
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
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.backend = backend
        self.dtype = dtype
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SketchedKernelRidge:
        """Fit to X (n, d) and y (n,) or (n, q). O(nm²) time for landmark sketches; `sample_weight` is not supported."""
        self._check_settings()
        X, Y = self._validated(X, y, reset=True)
        opaque = as_kernel(self.kernel).geometry == "opaque"  # evaluated on the host
        backend = as_backend(self.backend, "float64" if self.dtype == "auto" else self.dtype, 0 if opaque else len(X))
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        sketch = as_sketch(
            "rpcholesky" if isinstance(self.sketch, str) and self.sketch == "auto" else self.sketch, n=len(X), seed=self._seed
        )
        self._check_size(sketch)
        kernel = self._fitted_kernel(backend, X, Y)
        self._shift = Y.mean(axis=0) if self.fit_intercept else np.zeros(Y.shape[1])
        self._automatic_size = self.sketch_size == "auto" and not sketch.size
        if self.dtype == "auto" and backend.name == "triton" and not isinstance(self.alpha, str):
            backend.sketching = self._sketching(backend, kernel, X)
        self._finish(build(backend, kernel, X, Y - self._shift, sketch))
        return self

    def partial_fit(self, X: Any, y: Any) -> SketchedKernelRidge:
        """Append rows: the bandwidth and the sketch drawn so far are kept, the sketch may grow, λ is chosen anew."""
        if not hasattr(self, "_ridge"):
            return self.fit(X, y)
        self._check_settings()
        X, Y = self._validated(X, y, reset=False)
        self._kernel.check_domain(X)
        self._finish(self._ridge.state.extended(X, Y - self._shift))
        return self

    def variance(
        self, X: Any, kind: str = "v2", *, refine: int = 0, tol: float | None = None, return_bound: bool = False
    ) -> Array | tuple[Array, Array]:
        """The variance of the prediction at each row of X.

        Parameters
        ----------
        X : (t, d) array or table.
        kind : "v1", the exact variance of the exact mean, by refinement; "v2", its sketched estimate, and "v3", the variance of
            the sketched mean, all in units of y²; "gp", the posterior variance, and "bias2", the worst squared bias over the unit
            ball, both of the sketched model and in units of the kernel. v1, v2 and v3 go to zero far from the data, gp and bias2
            do not.
        refine : steps from V2 toward V1, each a product with the whole kernel matrix: O(n²) a point.
        tol : the largest relative error of "v1"; 0.01 unless given.
        return_bound : also return a rigorous bound on |√V1 − √variance|, rounding included, for "v1" and "v2".

        Returns
        -------
        variance : (t,), or (t, q) for several targets. bound : the same shape, if asked for.
        """
        X = self._validated_points(X)
        self._check_kind(kind)
        _check_refinement(kind, refine, tol, return_bound)
        if kind == "v1":
            tol = 0.01 if tol is None else tol
            first, quick = (self._affordable(self._ridge.state, self.lambda_, error) for error in (2 * tol, _STEP_ERROR))
            refined = v1(self._ridge, X, tol=tol, first=first, quick=quick)
        elif refine or return_bound:
            refined = refined_variance(self._ridge, X, steps=int(refine))
        else:
            return self._variance(X, kind)
        variance = self._scaled(refined.variance, self.noise_variance_)
        return (variance, self._scaled(refined.bound, np.sqrt(self.noise_variance_))) if return_bound else variance

    @property
    def backend_(self) -> str:
        """The name of the backend that computes the variances."""
        check_is_fitted(self)
        return self._ridge.backend.name

    @property
    def dtype_(self) -> str:
        """The precision of the kernel products behind the variances."""
        check_is_fitted(self)
        return self._ridge.backend.precision

    @property
    def gap_(self) -> float:
        """The 95% quantile of V2/V3 over some training rows: how far V2 typically is from V1."""
        check_is_fitted(self)
        return self._gap

    @cached_property
    def _gap(self) -> float:
        return tuning.gap(self._ridge, self._probe(len(self._ridge.state.X)))

    def _probe(self, n: int) -> Array:
        return tuning.probe_rows(n, np.random.default_rng(self._seed))

    def certificate(self, method: str = "trace") -> Certificate:
        """A bound on |√V2 − √V1| that holds at every point.

        Parameters
        ----------
        method : "trace" is free; "norm" is tighter, takes a few products with the whole kernel matrix, and fails with the
            probability it states.
        """
        check_is_fitted(self)
        if method == "trace":
            return trace_certificate(self._ridge)
        if method == "norm":
            return norm_certificate(self._ridge, np.random.default_rng(self._seed))
        raise ValueError(f"Unknown certificate {method!r}: give 'trace' or 'norm'.")

    def _mean(self, X: Array) -> Array:
        if self.solver == "sketch":
            return super()._mean(X)
        state, (coefficients, offset) = self._path_state, self._exact_mean
        return offset + state.backend.to_numpy(state.backend.matmul(state.kernel, X, state.X, coefficients))

    @property
    def _path_state(self) -> State:
        return self._ridge.state

    def _finish(self, state: State) -> None:
        """Choose the sketch size and λ, then set the fitted attributes."""
        with state.backend.alone():
            self._choose(state)

    def _choose(self, state: State) -> None:
        self.__dict__.pop("_gap", None)
        if self._automatic_size:
            probe = self._probe(len(state.X))
            ridge, gap = tuning.grow_sketch(state, self._penalized, tol=self.sketch_tol, probe=probe, largest=self._largest_size)
            self._gap = gap
        else:
            ridge = self._penalized(self._sized(state))
            if isinstance(self.alpha, str) and ridge.lam < tuning.sketch_floor(ridge.state):
                warnings.warn(
                    f"alpha={self.alpha!r} chose λ = {ridge.lam:.3g}, too small for a sketch of {ridge.state.sketch.size} rows: "
                    "the sketch, not λ, regularises, and V2 is far above V1. Give a larger sketch_size or sketch_size='auto'.",
                    stacklevel=4,
                )
        if ridge.backend.precision != "float64" and ridge.lam < ridge.backend.eps * ridge.state.largest:
            warnings.warn(
                f"Kernel products in {ridge.backend.precision} are too coarse for λ = {ridge.lam:.3g}, below their rounding of the "
                f"largest eigenvalue {ridge.state.largest:.3g}: do not trust V2. Use dtype='auto' or 'float64', or a larger "
                "alpha.",
                stacklevel=4,
            )
        if self.solver == "pcg":
            quick = self._affordable(ridge.state, ridge.lam, _STEP_ERROR)
            self._exact_mean = tuple(map(ridge.backend.to_numpy, exact_mean(ridge, tol=_MEAN_TOL, quick=quick)))
        self._set_ridge(ridge, ridge.state.kernel, ridge.state.Y)
        self.sketch_: Sketch = ridge.state.sketch
        self.sketch_size_ = self.sketch_.size
        self.certificate_ = trace_certificate(ridge)

    def _penalized(self, state: State) -> Ridge:
        """The state with λ given, or chosen by the data and then, for an automatic size, held where the sketch can follow.

        With dtype="auto" kernel products for variances are single where that costs V2 less than a hundredth of `sketch_tol`.
        """
        if isinstance(self.alpha, str):
            floor = tuning.sketch_floor(state) if self._automatic_size else 0.0
            lam = tuning.choose_lambda(state, self.alpha, self.fit_intercept, floor=floor)
        else:
            lam = float(self.alpha) / len(state.X)
        return Ridge(state, lam, self.fit_intercept, self._affordable(state, lam, self.sketch_tol / 100))

    def _affordable(self, state: State, lam: float, error: float) -> Backend:
        """The state's backend, or for dtype="auto" one in single precision where that costs no more than ``error``."""
        backend = state.backend
        named = self.dtype == "auto" and not isinstance(self.backend, Backend) and backend.precision == "float64"
        if named and tuning.single_precision_error(state, lam) <= error and not isinstance(state.H, Product):
            return as_backend(backend.name, "float32")  # with F instead of H errors would be larger by √(E₁/λ)
        return backend

    def _sketching(self, backend: Backend, kernel: Kernel, X: Array) -> Backend | None:
        """The fastest precision in which a given penalty lets a dense sketch be applied, from E₁ ≤ tr K; None for the full one."""
        diag = kernel.diag(X)
        spread = backend.spread(kernel, X) if kernel.geometry == "distance" else 0.0
        ratio = float(diag.mean()) * len(X) / float(self.alpha)
        for faster in (as_backend(backend.name, name) for name in ("float16x2", "float32")):
            if tuning.magnified_rounding(faster.eps, spread, diag.max(), ratio) <= self.sketch_tol / 100:
                return faster
        return None

    def _check_size(self, sketch: Sketch) -> None:
        """A given sketch may grow by further rows, unless it is an array, and never shrink."""
        if self.sketch_size == "auto" or not sketch.size:
            return
        if self.sketch_size < sketch.size or (isinstance(sketch, ArraySketch) and self.sketch_size != sketch.size):
            raise ValueError(
                f"sketch_size={self.sketch_size} does not go with a given sketch of {sketch.size} rows, which cannot shrink, nor "
                "grow where it is an array: leave sketch_size='auto'."
            )

    def _sized(self, state: State) -> State:
        """The state with the sketch size that was asked for."""
        n, size = len(state.X), state.sketch.size if self.sketch_size == "auto" else int(self.sketch_size)
        if size > n and not isinstance(state.sketch, ArraySketch):
            warnings.warn(f"sketch_size={size} is more than the {n} training rows; it is capped at {n}.", stacklevel=5)
            size = n
        return state.grown(size) if size > state.sketch.size else state

    def _check_settings(self) -> None:
        """Check every parameter that needs no data."""
        self._check_parameters()
        if self.solver not in ("sketch", "pcg"):
            raise ValueError(f"Unknown solver {self.solver!r}: give 'sketch' or 'pcg'.")
        whole = isinstance(self.sketch_size, Integral) and not isinstance(self.sketch_size, bool) and int(self.sketch_size) > 0
        if not whole and not (isinstance(self.sketch_size, str) and self.sketch_size == "auto"):
            raise ValueError(f"sketch_size must be a whole number from 1 up or 'auto', got {self.sketch_size!r}.")
        if not isinstance(self.sketch_tol, Real) or not self.sketch_tol > 0:
            raise ValueError(f"sketch_tol must be a positive number, got {self.sketch_tol!r}.")


def _check_refinement(kind: str, refine: int, tol: float | None, return_bound: bool) -> None:
    if kind not in ("v1", "v2") and (refine or return_bound):
        raise ValueError(f"refine and return_bound lead from 'v2' to 'v1'; there is nothing to refine in kind={kind!r}.")
    if not isinstance(refine, Integral) or refine < 0:
        raise ValueError(f"refine must be a whole number of steps from 0 up, got {refine!r}.")
    if kind == "v1" and refine:
        raise ValueError("kind='v1' takes as many steps as tol needs: give tol, or kind='v2' with refine.")
    if tol is not None and (kind != "v1" or not 0 < tol < np.inf):
        raise ValueError(f"tol must be a positive number and goes with kind='v1', got tol={tol!r} and kind={kind!r}.")


def _complete_state(backend: Backend, kernel: Any, X: Array, Y: Array) -> State:
    """K itself, factorised to its numerical rank."""
    return build(backend, kernel, X, Y, RPCholeskySketch()).grown(len(X))


def _check_memory(n: int) -> None:
    """Refuse what cannot fit before any work."""
    try:
        with open("/proc/meminfo") as lines:
            free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except OSError:
        return
    needed = 2 * 8 * n**2
    if needed > free:
        raise ValueError(
            f"ExactKernelRidge on {n} rows needs about {needed / 2**30:.1f} GiB, but {free / 2**30:.1f} GiB are free: use "
            "SketchedKernelRidge, or fewer rows."
        )
