"""Everything a fit found, made completely before anything is assigned.

`select` turns settings and data into a `Fitted`; `extend` turns a `Fitted` and further data into
another one. Neither changes what it was given, so an interrupted fit leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sketchridge import tuning
from sketchridge.backends import Backend, NumpyTiles, Tall, as_backend
from sketchridge.certify import Certificate, trace_certificate
from sketchridge.factor import EntryFactor, Factor, RowFactor, Sample, factorize, sample_of
from sketchridge.kernels import Kernel, ScaledKernel
from sketchridge.notices import warn
from sketchridge.precision import Plan, make_plan
from sketchridge.query import AtPoints
from sketchridge.refine import exact_mean
from sketchridge.ridge import Basis, Intercept, Ridge, basis_of
from sketchridge.rows import Rows, merged
from sketchridge.sketches import ArraySketch, RowSketch, Sketch, as_sketch

__all__ = [
    "Data",
    "Fitted",
    "Settings",
    "estimated_noise",
    "extend",
    "extended_data",
    "fitted_kernel",
    "placed",
    "prepared",
    "question",
    "scaled_path",
    "select",
]

Array = np.ndarray
Say = Callable[[str], None]
_MEAN_TOL = 1e-8
_SMALLEST = 1e-145  # of λ, whose square divides


@dataclass(frozen=True)
class Settings:
    """The parameters of a `SketchedKernelRidge`, checked."""

    kernel: Kernel
    bandwidth: Any
    alpha: float | str
    sketch: Any
    sketch_size: int | None  # None where it is automatic
    sketch_tol: float
    solver: str
    noise_variance: Any  # None where it is estimated
    fit_intercept: bool
    backend: Any
    dtype: str
    seed: int
    largest_size: int | None = None  # of an automatic sketch, where it is not that of `tuning`


@dataclass(frozen=True, eq=False)
class Data:
    """Training rows with their targets in units in which they are about 1."""

    X: Array  # (n, d): distinct rows, or the kernel matrix between them
    rows: Rows
    center: Array  # (q,): taken from y, 0 without an intercept
    scale: Array  # (q,): powers of two by which y is divided
    columns: Array | None = None  # (n,): those of the distinct rows, where X is a kernel matrix
    used: Array | None = None  # given rows with a weight, where others were left out
    given: int = 0  # number of rows as they were given

    @property
    def Y(self) -> Array:
        """(n, q)."""
        return (self.rows.Y - self.center) / self.scale

    @property
    def w(self) -> Array:
        return self.rows.w


def prepared(X: Array, Y: Array, w: Array, *, fit_intercept: bool, square: bool = False) -> Data:
    """Data from rows as they are given; rows without weight are left out.

    ``square`` is for a kernel matrix in place of X, whose columns are merged too.
    """
    used = np.flatnonzero(w > 0)
    given = len(w)
    if len(used) < given:
        X, Y, w = X[used], Y[used], w[used]
        X = X[:, used] if square else X
    rows = merged(X, Y, w)
    kept = None if len(used) == given else used
    if not square:
        distinct = X if len(rows.first) == len(X) else X[rows.first]
        data = _in_units(np.array(distinct, dtype=float), rows, fit_intercept)
        return replace(data, used=kept, given=given)
    distinct = np.array(X[np.ix_(rows.first, rows.first)], dtype=float)
    data = _in_units(distinct, rows, fit_intercept)
    return replace(data, columns=used[rows.first], used=kept, given=given)


def _in_units(X: Array, rows: Rows, fit_intercept: bool) -> Data:
    q = rows.Y.shape[1]
    center = rows.w @ rows.Y / rows.w.sum() if fit_intercept else np.zeros(q)
    largest = np.abs(rows.Y - center).max(axis=0)
    scale = 2.0 ** np.round(np.log2(np.where(largest > 0, largest, 1.0)))
    return Data(X, rows, center, scale)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model: it answers questions and never changes."""

    settings: Settings
    data: Data
    kernel: Kernel
    plan: Plan
    ridge: Ridge
    noise: Array  # (q,), in units of y²
    omega: Tall | None  # (n, q): coefficients of the exact mean, where that is the solver
    offset: Array  # (q,)
    certificate: Certificate
    grown_gap: float | None  # the gap, where growing the sketch has measured it

    @property
    def backend(self) -> Backend:
        return self.ridge.sample.backend

    @property
    def sample(self) -> Sample:
        return self.ridge.sample

    @property
    def factor(self) -> Factor:
        return self.ridge.basis.factor

    @property
    def unit(self) -> float:
        """That of the kernel: what λ and eigenvalues inside are to be multiplied by."""
        return self.kernel.unit

    @property
    def ratio(self) -> float:
        """E₁/λ."""
        return self.ridge.basis.largest / self.ridge.lam

    def at(self, X: Array) -> AtPoints:
        """A question about the function's values at the rows of X."""
        return question(self.sample, self.data, X)

    def mean(self, query: AtPoints) -> Array:
        """The predicted mean, in units of y: (t, q)."""
        if self.omega is None:
            inside = self.ridge.mean(query)
        else:
            against = query.against(self.sample, self.omega, self.plan.full)
            inside = self.offset + against.host()
        return self.data.center + self.data.scale * inside

    @cached_property
    def gap(self) -> float:
        """The 95% quantile of V2/V3 over some training rows."""
        if self.grown_gap is not None:
            return self.grown_gap
        return tuning.gap(self.ridge, _probe(self.settings, len(self.sample)))

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues of K̂ in descending order."""
        return self.ridge.basis.E * self.unit

    @cached_property
    def loo_error(self) -> float:
        """Weighted mean of the squared leave-one-out errors, exact for this alpha and sketch."""
        left = np.maximum(1 - self.ridge.leverages().host(), np.finfo(float).eps)
        errors = self.data.scale * self.ridge.residuals().host() / left
        return float((self.data.w @ errors**2 / self.data.w.sum()).mean())

    @cached_property
    def path(self) -> tuning.LambdaPath:
        """λ, df, gcv and loo over the grid, in units of the kernel and of y²."""
        return scaled_path(self.ridge.basis, self.settings.fit_intercept, self.data, self.unit)

    def __deepcopy__(self, memo: Any) -> Fitted:
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What predictions need, as NumPy arrays; columns of landmarks are made again."""
        factor = self.factor
        one = self.ridge.intercept
        kept: dict[str, Array | None]
        if isinstance(factor, RowFactor):
            kept = {"pivots": factor.pivots, "L": factor.L}
        else:
            assert isinstance(factor, EntryFactor)
            sums = None if factor.sums is None else factor.sums.host()
            kept = {"sums": sums, "R": factor.R, "amplified": factor.amplified}
        return {
            "settings": self.settings,
            "data": self.data,
            "kernel": self.kernel,
            "plan": self.plan,
            "sketch": factor.sketch,
            "precision": factor.precision,
            "factor": kept,
            "spectrum": (self.ridge.basis.E, self.ridge.basis.V),
            "projections": (self.ridge.basis.P, self.ridge.basis.rest),
            "lam": self.ridge.lam,
            "intercept": None if one is None else (one.c, one.square, one.offset),
            "products": self.ridge.precision,
            "noise": self.noise,
            "omega": None if self.omega is None else self.omega.host(),
            "offset": self.offset,
            "certificate": self.certificate,
            "gap": self.gap if self.grown_gap is None else self.grown_gap,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        data, kernel = state["data"], state["kernel"]
        sample = _placed_again(state["settings"], data, kernel)
        backend = sample.backend
        kept = state["factor"]
        factor: Factor
        if "pivots" in kept:
            factor = RowFactor(sample, state["sketch"], kept["pivots"], kept["L"])
        else:
            sums = None if kept["sums"] is None else backend.tall(kept["sums"])
            made_in = _known(state["precision"], backend)
            factor = EntryFactor(
                sample, state["sketch"], made_in, sums, kept["R"], kept["amplified"]
            )
        E, V = state["spectrum"]
        basis = Basis(factor, backend.tall(data.Y), E, V, state["projections"])
        precision = _known(state["products"], backend)
        plan = replace(state["plan"], full=_known(state["plan"].full, backend))
        lam = state["lam"]
        one = state["intercept"]
        intercept = None if one is None else Intercept(basis, lam, one)
        ridge = Ridge(basis, lam, intercept, precision, plan.budget)
        values = {
            "settings": state["settings"],
            "data": data,
            "kernel": kernel,
            "plan": plan,
            "ridge": ridge,
            "noise": state["noise"],
            "omega": None if state["omega"] is None else backend.tall(state["omega"]),
            "offset": state["offset"],
            "certificate": state["certificate"],
            "grown_gap": state["gap"],
        }
        self.__dict__.update(values)


def question(sample: Sample, data: Data, X: Array) -> AtPoints:
    """A question about values at the rows of X, which are of a kernel matrix where the data are."""
    X = X if data.columns is None else X[:, data.columns]
    kernel = sample.points.kernel
    return AtPoints(sample.backend.place(kernel, kernel.coordinates(X)))


def scaled_path(basis: Basis, fit_intercept: bool, data: Data, unit: float) -> tuning.LambdaPath:
    """The λ path in units of the kernel and of y²."""
    variances = tuning.target_scales(data.rows.Y, data.w)
    scales = variances * data.scale**2
    path = tuning.lambda_path(basis, fit_intercept, scales)
    return tuning.LambdaPath(path.lam * unit, path.df, path.gcv, path.loo)


def select(settings: Settings, data: Data, say: Say) -> Fitted:
    """Choose whatever is left open, and fit."""
    opaque = settings.kernel.geometry == "opaque"  # evaluated on the host
    backend = as_backend(settings.backend, 0 if opaque else len(data.rows))
    plan = make_plan(settings.dtype, backend.precisions, backend.name, settings.sketch_tol)
    sketch = _sketch(settings, data)
    with backend.alone():
        kernel = fitted_kernel(settings, data, backend)
        sample = placed(backend, kernel, data)
        precision = _sketch_precision(settings, plan, sample, sketch)
        say(f"Fitting {len(sample):,} rows")
        factor = factorize(sample, sketch, precision)
        return _finished(settings, data, plan, factor, say)


def extend(old: Fitted, settings: Settings, X: Array, Y: Array, w: Array, say: Say) -> Fitted:
    """The fit with further rows: the kernel and the sketch drawn so far are kept."""
    data, X_new = extended_data(old.data, X, Y, w, settings.fit_intercept)
    rows = data.rows
    backend = _backend_for(settings, old, len(rows))
    plan = make_plan(settings.dtype, backend.precisions, backend.name, settings.sketch_tol)
    kernel = old.kernel
    with backend.alone():
        say(f"Appending {len(Y):,} rows to {len(old.sample):,}")
        factor = old.factor
        if backend is not old.backend:
            sample = placed(backend, kernel, data)
            factor = factorize(sample, factor.sketch, "float64")
        elif len(X_new) or not rows.keeps_weights(old.data.rows):
            new = backend.place(kernel, kernel.coordinates(X_new))
            sample = sample_of(old.sample.points.append(new), data.w)
            factor = factor.extended(sample, rows.keeps_weights(old.data.rows))
        return _finished(settings, data, plan, factor, say)


def extended_data(
    old: Data, X: Array, Y: Array, w: Array, fit_intercept: bool
) -> tuple[Data, Array]:
    """The data with further rows, and those of them that are new."""
    used = np.flatnonzero(w > 0)
    rows, fresh = old.rows.extended(old.X, X[used], Y[used], w[used])
    X_new = X[used][fresh]
    return _in_units(np.concatenate([old.X, X_new]), rows, fit_intercept), X_new


def _backend_for(settings: Settings, old: Fitted, n: int) -> Backend:
    """The one there is, or for "auto" the GPU once there are rows enough for one."""
    automatic = isinstance(settings.backend, str) and settings.backend == "auto"
    if not automatic or old.kernel.geometry == "opaque" or not isinstance(old.backend, NumpyTiles):
        return old.backend
    found = as_backend("auto", n)
    return old.backend if isinstance(found, NumpyTiles) else found


def fitted_kernel(settings: Any, data: Data, backend: Backend) -> Kernel:
    """The kernel with its bandwidth and centre fixed."""
    kernel = settings.kernel
    X = data.X
    kernel.check(X)
    kernel.check_domain(X)
    bandwidth = settings.bandwidth
    if not isinstance(kernel, ScaledKernel):
        if bandwidth is not None and not isinstance(bandwidth, str):
            raise ValueError(
                f"The kernel {kernel!r} has no bandwidth, but bandwidth={bandwidth!r} was given: "
                "leave it at its default and set the kernel's own parameters."
            )
        return kernel.fitted(X)
    if isinstance(bandwidth, str) and bandwidth == "median":
        own = kernel.bandwidth
        chosen = tuning.median_bandwidth(X, kernel) if own is None else own
    elif isinstance(bandwidth, str):
        chosen = tuning.gcv_bandwidth(backend, kernel, X, data.Y, data.w, settings.fit_intercept)
    else:
        chosen = bandwidth
    return kernel.with_bandwidth(_checked_bandwidth(chosen, X.shape[1])).fitted(X)


def _checked_bandwidth(bandwidth: Any, d: int) -> float | Array:
    try:
        values = np.array(bandwidth, dtype=float)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.ndim == 2 and len(values) == d and values.size and np.isfinite(values).all():
        return values
    positive = bool(np.isfinite(values).all()) and bool((values > 0).all())
    if values.shape not in ((), (d,)) or not positive:
        raise ValueError(
            f"bandwidth must be a positive finite number, one such number for each of the {d} "
            f"features, a map ({d}, k), 'median' or 'gcv', got {bandwidth!r}."
        )
    return values if values.ndim else float(values)


def _sketch(settings: Settings, data: Data) -> Sketch:
    spec = settings.sketch
    sketch = as_sketch(spec, n=data.given, seed=settings.seed)
    if isinstance(sketch, ArraySketch) and not isinstance(spec, Sketch):
        sketch = sketch.merged(data.rows.group, len(data.rows), data.used)
    sketch.check(len(data.rows))
    _check_size(settings, sketch)
    return sketch


def _is_given(spec: Any) -> bool:
    """Whether a sketch was given with its rows, rather than by name."""
    return not isinstance(spec, str) and not (isinstance(spec, Sketch) and not spec.size)


def _check_size(settings: Settings, sketch: Sketch) -> None:
    """A given sketch may grow by further rows, unless it is an array, and never shrink."""
    size = settings.sketch_size
    if size is None or not sketch.size:
        return
    if size < sketch.size or (isinstance(sketch, ArraySketch) and size != sketch.size):
        raise ValueError(
            f"sketch_size={size} does not go with a given sketch of {sketch.size} rows, which "
            "cannot shrink, nor grow where it is an array: leave sketch_size='auto'."
        )


def placed(backend: Backend, kernel: Kernel, data: Data) -> Sample:
    points = backend.place(kernel, kernel.training_coordinates(data.X))
    return sample_of(points, data.w)


def _placed_again(settings: Settings, data: Data, kernel: Kernel) -> Sample:
    """On the backend that was asked for, or with NumPy where the machine has no such device."""
    opaque = kernel.geometry == "opaque"
    try:
        backend = as_backend(settings.backend, 0 if opaque else len(data.rows))
        return placed(backend, kernel, data)
    except (ImportError, RuntimeError):
        return placed(NumpyTiles(), kernel, data)


def _known(precision: str, backend: Backend) -> str:
    """That precision, or full where the backend a model was loaded to does not offer it."""
    return precision if precision in backend.precisions else "float64"


def _sketch_precision(settings: Settings, plan: Plan, sample: Sample, sketch: Sketch) -> str:
    """That of a dense sketch's sums: full unless λ is known and large enough."""
    if isinstance(sketch, RowSketch):
        return "float64"
    ratio = None
    if not isinstance(settings.alpha, str):
        lam = settings.alpha / sample.total / sample.points.kernel.unit
        ratio = sample.scales.trace / max(lam, np.finfo(float).tiny)
    return plan.sketch(sample.scales, ratio, sample.backend.precisions)


def _finished(settings: Settings, data: Data, plan: Plan, factor: Factor, say: Say) -> Fitted:
    """Choose the sketch size and λ, then whatever follows from them."""
    sample = factor.sample
    basis = basis_of(factor, sample.backend.tall(data.Y))
    variances = tuning.target_scales(data.rows.Y, data.w) * data.scale**2
    automatic = settings.sketch_size is None and not _is_given(settings.sketch)

    def penalized(basis: Basis) -> Ridge:
        lam = _penalty(settings, basis, variances, guarded=automatic)
        ratio = basis.largest / lam
        precision = plan.variance(sample.scales, ratio)
        return _ridge(basis, lam, settings, precision, plan.budget)

    gap = None
    if automatic:
        ridge, gap = tuning.grow_sketch(
            basis,
            penalized,
            tol=settings.sketch_tol,
            probe=_probe(settings, len(sample)),
            largest=settings.largest_size,
            say=say,
        )
    else:
        ridge = penalized(_sized(settings, basis))
        _warn_of_a_small_sketch(settings, ridge)
    _warn_of_rounding(plan, ridge)
    omega = None
    offset = ridge.offset
    if settings.solver == "pcg":
        say("Solving for the exact mean")
        step = plan.step(sample.scales, ridge.basis.largest / ridge.lam)
        omega, offset = exact_mean(ridge, tol=_MEAN_TOL, step=step)
    certificate = trace_certificate(ridge)
    noise = _noise(settings, data, ridge)
    kernel = sample.points.kernel
    return Fitted(settings, data, kernel, plan, ridge, noise, omega, offset, certificate, gap)


def _penalty(settings: Settings, basis: Basis, variances: Array, *, guarded: bool) -> float:
    """λ given, or chosen by the data and then, for an automatic size, held where the sketch can
    follow."""
    if isinstance(settings.alpha, str):
        floor = tuning.sketch_floor(basis) if guarded else 0.0
        return tuning.choose_lambda(
            basis, settings.alpha, settings.fit_intercept, variances, floor=floor
        )
    unit = basis.sample.points.kernel.unit
    lam = settings.alpha / basis.sample.total / unit
    if not _SMALLEST < lam * min(basis.sample.total, 1.0) < 1 / _SMALLEST:
        raise ValueError(
            f"alpha = {settings.alpha:.3g} is beyond floating point beside kernel values of about "
            f"{unit * basis.sample.scales.diag:.3g}: give an alpha nearer to them, or rescale X."
        )
    return lam


def _ridge(basis: Basis, lam: float, settings: Settings, precision: str, budget: float) -> Ridge:
    intercept = Intercept(basis, lam) if settings.fit_intercept else None
    return Ridge(basis, lam, intercept, precision, budget)


def _sized(settings: Settings, basis: Basis) -> Basis:
    """The basis with the sketch size that was asked for."""
    sketch = basis.factor.sketch
    n = len(basis.sample)
    size = sketch.size if settings.sketch_size is None else settings.sketch_size
    if size > n and not isinstance(sketch, ArraySketch):
        warn(
            f"sketch_size={size} is more than the {n} distinct training rows; it is capped at {n}.",
        )
        size = n
    return basis.grown(size) if size > sketch.size else basis


def _noise(settings: Settings, data: Data, ridge: Ridge) -> Array:
    """σ², given or estimated: (q,), in units of y²."""
    if settings.noise_variance is not None:
        q = len(data.scale)
        return np.broadcast_to(np.asarray(settings.noise_variance, dtype=float), (q,)).copy()
    squares = np.diagonal(ridge.residuals().gram(weights=ridge.sample.weights))
    return estimated_noise(data, squares, len(ridge.sample) - ridge.df)


def estimated_noise(data: Data, squares: Array, left: float) -> Array:
    """σ̂² = (RSS + squares of y within distinct rows)/(n − df + replicates), in units of y²: (q,).

    ``squares`` (q,) is the weighted RSS in the data's own units, ``left`` is n − df.
    """
    if data.rows.tied:
        warn(
            "Some rows repeat both X and y of another row while y differs elsewhere at the same X. "
            "Such a repetition counts as one row of more weight, so the noise variance is too "
            "large if y merely takes few values: give noise_variance then."
        )
    within = data.rows.within / data.scale / data.scale
    dof = max(left, np.finfo(float).eps) + data.rows.replicates
    return data.scale * data.scale * ((squares + within) / dof)


def _probe(settings: Settings, n: int) -> Array:
    return tuning.probe_rows(n, np.random.default_rng(settings.seed))


def _warn_of_a_small_sketch(settings: Settings, ridge: Ridge) -> None:
    if isinstance(settings.alpha, str) and ridge.lam < tuning.sketch_floor(ridge.basis):
        warn(
            f"alpha={settings.alpha!r} chose λ = {ridge.lam:.3g}, too small for a sketch of "
            f"{ridge.basis.factor.sketch.size} rows: the sketch, not λ, regularises, and V2 is far "
            "above V1. Give a larger sketch_size or sketch_size='auto'.",
        )


def _warn_of_rounding(plan: Plan, ridge: Ridge) -> None:
    ratio = ridge.growth * ridge.basis.largest / ridge.lam
    if plan.hopeless(ridge.sample.scales, ratio):
        unit = ridge.sample.points.kernel.unit
        warn(
            f"λ = {ridge.lam * unit:.3g} is below the rounding of {plan.full} products with a "
            f"largest eigenvalue of {ridge.basis.largest * unit:.3g}: do not trust the mean or V2. "
            "Give a larger alpha, centre and rescale X, or use dtype='float64' if you did not.",
        )
