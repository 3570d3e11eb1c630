"""From settings and data to a `Fitted`: whatever was left open is chosen here.

Neither `select` nor `extend` changes what it was given, so an interrupted fit leaves no trace.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sketchridge import tuning
from sketchridge.backends import Backend, NumpyTiles, as_backend
from sketchridge.basis import Basis, Intercept, basis_of
from sketchridge.chosen import (
    Penalty,
    carried_over,
    choose_kernel,
    exact_penalty,
    widening_factor,
)
from sketchridge.data import Data, extended_data, placed, warn_of_rounding
from sketchridge.distribution import LeftOut
from sketchridge.factor import Factor, RowFactor, Sample, factorize, sample_of
from sketchridge.fitted import Fitted, Settings, SketchTask, rows_left_out
from sketchridge.model import found_noise, with_varying_noise
from sketchridge.notices import warn
from sketchridge.precision import EPS, FULL, Plan, excess, make_plan
from sketchridge.progress import Say
from sketchridge.ridge import Ridge, magnification
from sketchridge.sketches import ArraySketch, RowSketch, Sketch, as_sketch
from sketchridge.solution import exactly
from sketchridge.varying import Varying

__all__ = ["extend", "select"]

Array = np.ndarray
_COMPLETE = 4096  # rows up to which the kernel matrix is taken as a whole
_RAISE = 1.01  # of λ at least, where rounding does not allow it
_SMALLEST = 1e-145  # of λ, whose square divides


def select(settings: Settings, data: Data, say: Say) -> Fitted:
    """Choose whatever is left open, and fit."""
    settings = settings.sized(len(data.rows.group))
    opaque = settings.kernel.geometry == "opaque"  # evaluated on the host
    backend = as_backend(settings.backend, 0 if opaque else len(data.rows))
    plan = make_plan(settings.dtype, backend.precisions, backend.name, settings.sketch_tol)
    sketch = _sketch(settings, data)
    with backend.alone():
        chosen = choose_kernel(settings, data, backend, say)
        widths = widening_factor(chosen, data, settings, say, backend)
        sample = placed(backend, chosen.kernel, data)
        precision = _sketch_precision(settings, plan, sample, sketch)
        say(f"Fitting {len(sample):,} rows")
        factor = factorize(sample, sketch, precision)
    task = SketchTask(
        settings=settings,
        data=data,
        learned=chosen.learned,
        widths=widths,
        say=say,
        plan=plan,
    )
    return _with_varying_noise(task, _finished(task, factor))


def extend(old: Fitted, settings: Settings, X: Array, Y: Array, w: Array, say: Say) -> Fitted:
    """The fit with further rows: the kernel and the sketch drawn so far are kept."""
    data, X_new = extended_data(old.plain, X, Y, w, settings.fit_intercept)
    settings = settings.sized(len(data.rows.group))
    rows = data.rows
    backend = _backend_for(settings, old, len(rows))
    plan = make_plan(settings.dtype, backend.precisions, backend.name, settings.sketch_tol)
    kernel = old.kernel
    with backend.alone():
        say(f"Appending {len(Y):,} rows to {len(old.sample):,}")
        factor = old.factor
        if backend is not old.backend:
            sample = placed(backend, kernel, data)
            factor = factorize(sample, factor.sketch, FULL)
        elif len(X_new) or not rows.keeps_weights(old.data.rows):
            new = backend.place(kernel, kernel.coordinates(X_new))
            sample = sample_of(old.sample.points.append(new), data.w)
            factor = factor.extended(sample, rows.keeps_weights(old.data.rows))
        factor = _fine_enough(settings, plan, factor)
    share = len(old.data.rows) / len(rows)
    learned, widths = carried_over(old.learned, old.factor_of_widths, share)
    task = SketchTask(
        settings=settings,
        data=data,
        learned=learned,
        widths=widths,
        say=say,
        plan=plan,
    )
    return _with_varying_noise(task, _finished(task, factor))


def _with_varying_noise(task: SketchTask, fitted: Fitted) -> Fitted:
    """The fit again with rows weighted by the inverse of their noise, where intervals gain."""
    landmarks = fitted.factor.pivots if isinstance(fitted.factor, RowFactor) else None

    def refit(sample: Sample, data: Data, varying: Varying) -> Fitted:
        task.say("Fitting with noise that varies")
        factor = fitted.factor.extended(sample, False)
        return _finished(replace(task, data=data, varying=varying), factor)

    return with_varying_noise(fitted, landmarks, task.settings.seed, refit)


def _backend_for(settings: Settings, old: Fitted, n: int) -> Backend:
    """The one there is, or for "auto" the GPU once there are rows enough for one."""
    automatic = isinstance(settings.backend, str) and settings.backend == "auto"
    if not automatic or old.kernel.geometry == "opaque" or not isinstance(old.backend, NumpyTiles):
        return old.backend
    found = as_backend("auto", n)
    return old.backend if isinstance(found, NumpyTiles) else found


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


def _sketch_precision(settings: Settings, plan: Plan, sample: Sample, sketch: Sketch) -> str:
    """That of a dense sketch's sums: full unless λ is known and large enough."""
    if isinstance(sketch, RowSketch):
        return FULL
    ratio = None
    if not isinstance(settings.alpha, str):
        lam = settings.alpha / sample.total / sample.points.kernel.unit
        ratio = sample.scales.trace / max(lam, np.finfo(float).tiny)
    return plan.sketch(sample.scales, ratio, sample.backend.precisions)


def _fine_enough(settings: Settings, plan: Plan, factor: Factor) -> Factor:
    """The factor, or for a dense sketch that of finer sums where λ, fallen since there are more
    rows, no longer lets them be as coarse as they are."""
    wanted = _sketch_precision(settings, plan, factor.sample, factor.sketch)
    if EPS[wanted] >= EPS[factor.precision]:
        return factor
    return factorize(factor.sample, factor.sketch, wanted)


def _finished(task: SketchTask, factor: Factor) -> Fitted:
    """Choose the sketch size and λ, then whatever follows from them."""
    settings, data, sample = task.settings, task.data, factor.sample
    basis = basis_of(factor, sample.backend.tall(data.Y), data.repeats)
    automatic = settings.sketch_size is None and not _is_given(settings.sketch)
    complete = automatic and _is_to_be_complete(settings, factor)
    whole = complete or factor.complete or (settings.sketch_size or 0) >= len(sample)
    penalty = _exact_penalty(task, sample, whole)
    with sample.backend.alone():
        ridge, gap = _sketched(task, basis, penalty, automatic, complete)
    _warn_of_rounding(task.plan, ridge)
    exact = exactly(task, ridge, penalty)
    n = len(sample)

    def left_out() -> LeftOut:
        return rows_left_out(ridge, data, exact.omega, exact.probed, task.varying)

    with sample.backend.alone():
        noise, predictive = found_noise(
            task,
            sample.points.kernel,
            left_out if _scored(settings) else None,
            lambda: (np.diagonal(ridge.residuals().gram(weights=sample.weights)), n - ridge.df),
        )
    return Fitted(
        settings=settings,
        data=data,
        kernel=sample.points.kernel,
        plan=task.plan,
        ridge=ridge,
        noise=noise,
        omega=exact.omega,
        offset=exact.offset,
        grown_gap=gap,
        learned=task.learned,
        factor_of_widths=task.widths,
        probed=exact.probed,
        varying=task.varying,
        saved_predictive=predictive,
    )


def _sketched(
    task: SketchTask, basis: Basis, penalty: Penalty | None, automatic: bool, complete: bool
) -> tuple[Ridge, float | None]:
    """The sketch of the size asked for or found, its λ, and the gap where growing measured it."""
    settings, plan, sample = task.settings, task.plan, basis.sample
    variances = tuning.target_scales(task.data.Y, task.data.w)

    def penalized(basis: Basis) -> Ridge:
        guarded = automatic and penalty is None
        lam = _penalty(settings, basis, variances, penalty, guarded=guarded)
        if isinstance(settings.alpha, str):
            lam = _above_rounding(settings, basis, lam)
        precision = plan.variance(sample.scales, basis.largest / lam)
        if basis.factor.complete and len(sample) <= _COMPLETE:
            precision = plan.full  # V2 is V1, and its certificate would speak of rounding only
        return Ridge(basis, lam, _intercept(settings, basis, lam), precision, plan.budget)

    if complete:
        task.say(f"Factorizing the kernel matrix of {len(sample):,} rows")
        return penalized(basis.grown(len(sample))), None
    if automatic:
        return tuning.grow_sketch(
            basis,
            penalized,
            tol=settings.sketch_tol,
            probe=settings.probe(len(sample)),
            largest=settings.largest_size or sample.backend.largest_sketch(len(sample)),
            say=task.say,
        )
    ridge = penalized(_sized(settings, basis))
    if penalty is None:
        _warn_of_a_small_sketch(settings, ridge)
    return ridge, None


def _is_to_be_complete(settings: Settings, factor: Factor) -> bool:
    """Whether the exact problem is small enough to be solved as a whole. Campaigns, whose sketch
    has a limit, and criteria other than leave-one-out keep to the sketch."""
    exact = settings.alpha == "loo" and settings.largest_size is None
    return exact and isinstance(factor.sketch, RowSketch) and len(factor.sample) <= _COMPLETE


def _exact_penalty(task: SketchTask, sample: Sample, whole: bool) -> Penalty | None:
    """The penalty of the exact problem, where the mean is its mean and too large to see whole, or
    the one learned with the kernel; None where λ is given or chosen from the sketch, or from a
    complete one."""
    settings = task.settings
    if settings.alpha != "loo" or settings.largest_size is not None:
        return None
    if task.learned_alpha is not None:
        return Penalty(task.learned_alpha, 1.0)
    if whole or settings.solver == "sketch":
        return None
    task.say("Choosing the penalty of the exact mean on some of the rows")
    return exact_penalty(sample, task.data, settings.fit_intercept)


def _penalty(
    settings: Settings,
    basis: Basis,
    variances: Array,
    penalty: Penalty | None,
    *,
    guarded: bool,
) -> float:
    """λ given, that of the exact problem, or chosen by the data and then, for an automatic size,
    held where the sketch can follow."""
    if penalty is not None:
        return penalty.alpha / basis.sample.total
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


def _above_rounding(settings: Settings, basis: Basis, lam: float) -> float:
    """λ, or the least λ above it that rounding of float64 products allows, whatever the dtype.

    Rounding falls as λ⁻¹, or as λ^(−3/2) where the kernel all but makes the constant.
    """
    power = 2 / 3 if settings.fit_intercept else 1.0
    while True:
        one = _intercept(settings, basis, lam)
        growth = magnification(None if one is None else one.slack)
        over = excess(FULL, basis.sample.scales, growth * basis.largest / lam)
        if not over > 1:
            return lam
        lam *= max(over**power, _RAISE)


def _intercept(settings: Settings, basis: Basis, lam: float) -> Intercept | None:
    return Intercept(basis, lam) if settings.fit_intercept else None


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


def _scored(settings: Settings) -> bool:
    """Whether λ and the noise follow from rows left out."""
    return settings.alpha == "loo" and settings.largest_size is None


def _warn_of_a_small_sketch(settings: Settings, ridge: Ridge) -> None:
    if isinstance(settings.alpha, str) and ridge.lam < tuning.sketch_floor(ridge.basis):
        warn(
            f"alpha={settings.alpha!r} chose λ = {ridge.lam:.3g}, too small for a sketch of "
            f"{ridge.basis.factor.sketch.size} rows: the sketch, not λ, regularizes, and V2 is far "
            "above V1. Give a larger sketch_size or sketch_size='auto'.",
        )


def _warn_of_rounding(plan: Plan, ridge: Ridge) -> None:
    ratio = ridge.growth * ridge.basis.largest / ridge.lam
    if plan.hopeless(ridge.sample.scales, ratio):
        unit = ridge.sample.points.kernel.unit
        warn_of_rounding(ridge.lam * unit, ridge.basis.largest * unit, plan.full)
