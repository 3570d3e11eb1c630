"""The kernel of a fit: as it was given, with a bandwidth from the data, or learned; and the penalty
of the exact problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchridge import tuning
from sketchridge.backends import Backend, NumpyTiles, on_cluster
from sketchridge.data import Data
from sketchridge.dense import dense_ridge
from sketchridge.factor import Sample, sample_of
from sketchridge.kernels import DistanceKernel, Kernel
from sketchridge.learning import Learned, cross_fitted_factor, learn
from sketchridge.loo import Problem, best_alpha
from sketchridge.progress import Say
from sketchridge.rows import standardized
from sketchridge.tuning import some_rows

__all__ = [
    "LEARNED",
    "Chosen",
    "Penalty",
    "carried_over",
    "choose_kernel",
    "exact_penalty",
    "learned_penalty",
    "widening_factor",
]

Array = np.ndarray
LEARNED = {"ard": ["ard"], "full": ["full"], "auto": ["isotropic", "ard", "full"]}
_SEED = 0  # of the rows on which kernel and α are learned: random_state is the sketch's
_ROWS = 2000  # of the exact problem on which its penalty is chosen
_CHECKED = 4096  # rows on which that is compared with others
_FACTOR = 3.0  # between the penalties compared
_FALLS = 5  # of the penalty, at most
_WITHIN = 0.01  # of the least leave-one-out error, mean squares
_COMPARED = 1000  # rows on which kernels of a given bandwidth are compared
_OPAQUE = NumpyTiles.dense_rows  # up to which kernels without fast products are compared
_GATHERED = 2**16  # rows that leave a cluster, to learn a kernel from
# Rows below which learning narrows intervals that leave-one-out makes. 95% intervals held 93.5%, at
# least 90.2%, over 22 samples of 500 rows from eleven fresh tables; 95.1 and 92.5% with the factor
_FEW = 2000


@dataclass(frozen=True, eq=False)
class Chosen:
    """A kernel with its bandwidth and center fixed, and how it was learned where it was."""

    kernel: Kernel
    learned: Learned | None = None


@dataclass(frozen=True)
class Penalty:
    """α of the exact problem in units of the evaluated kernel, and the root mean squared
    leave-one-out error with it, in standard deviations of y."""

    alpha: float
    error: float


def choose_kernel(settings: Any, data: Data, backend: Backend, say: Say) -> Chosen:
    """The kernel with its bandwidth and center fixed."""
    X = data.X
    for kernel in settings.kernels:
        kernel.check(X)
        kernel.check_domain(X)
    forms = _forms(settings)
    kernels = _compared_kernels(settings.kernels, forms, data)
    if forms:
        seen = _seen(data)
        found = learn(
            X[seen],
            data.Y[seen],
            data.w[seen],
            kernels=kernels,
            forms=forms,
            fit_intercept=settings.fit_intercept,
            seed=_SEED,
            say=say,
            backend=backend,
        )
        return Chosen(found.kernel.fitted(X), found)
    fixed = [_with_bandwidth(kernel, settings, data, backend) for kernel in kernels]
    if len(fixed) == 1:
        return Chosen(fixed[0])
    return Chosen(min(fixed, key=lambda kernel: _error(kernel, settings, data)))


def _seen(data: Data) -> Array | slice:
    """The rows from which a kernel is learned: all, or of those on a cluster as many as come here
    with ease, always the same for the same n."""
    if not on_cluster(data.X):
        return slice(None)
    return some_rows(len(data.w), _GATHERED)


def _forms(settings: Any) -> list[str]:
    """The forms of a bandwidth that is to be learned; none where it is given."""
    asked = settings.bandwidth
    if not isinstance(asked, str) or asked not in LEARNED:
        return []
    first = settings.kernels[0]
    if first.forms and not set(LEARNED[asked]) & set(first.forms):
        raise ValueError(
            f"bandwidth={asked!r} is a map of the features, which is learned for kernels of the "
            f"Euclidean distance, and {first!r} is none: give bandwidth='ard', or "
            "kernel='matern32', 'matern52' or 'gaussian'."
        )
    if asked != "auto" and not first.forms:
        raise ValueError(
            f"bandwidth={asked!r} is learned by the slope of a radial kernel's profile, which "
            f"{first!r} does not have: use 'matern32', 'matern52', 'gaussian', 'laplacian' or "
            "Radial(profile, slope), or another bandwidth."
        )
    is_given = getattr(first, "bandwidth", None) is not None
    return LEARNED[asked] if first.forms and not is_given else []


def _compared_kernels(kernels: tuple[Any, ...], forms: list[str], data: Data) -> tuple[Any, ...]:
    """Those among which the data choose. A kernel without fast products is among them only where
    its bandwidths are learned, in a form it has, and an n×n matrix of it can be made."""
    if len(kernels) == 1:
        return kernels
    few = len(data.w) <= _OPAQUE and not on_cluster(data.X)
    return tuple(
        kernel
        for kernel in kernels
        if kernel.geometry != "opaque" or (few and set(forms) & set(kernel.forms))
    )


def _with_bandwidth(kernel: Kernel, settings: Any, data: Data, backend: Backend) -> Kernel:
    X = data.X
    bandwidth = settings.bandwidth
    if not isinstance(kernel, DistanceKernel):
        if bandwidth is not None and not isinstance(bandwidth, str):
            raise ValueError(
                f"The kernel {kernel!r} has no bandwidth, but bandwidth={bandwidth!r} was given: "
                "leave it at its default and set the kernel's own parameters."
            )
        return kernel.fitted(X)
    if isinstance(bandwidth, str) and bandwidth != "gcv":
        own = kernel.bandwidth
        chosen = tuning.median_bandwidth(X, kernel) if own is None else own
    elif isinstance(bandwidth, str):
        chosen = tuning.gcv_bandwidth(
            backend, kernel, X, data.Y, data.w, settings.fit_intercept, data.repeats
        )
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
            f"features, a map ({d}, k), 'median', 'gcv', 'ard', 'full' or 'auto', got "
            f"{bandwidth!r}."
        )
    return values if values.ndim else float(values)


def _error(kernel: Kernel, settings: Any, data: Data) -> float:
    """The least leave-one-out error of a kernel over α, on some rows."""
    rows = some_rows(len(data.w), _COMPARED)
    problem = _problem(data, rows, settings.fit_intercept)
    X = data.X[rows]
    return float(best_alpha(kernel(X, X), problem).loo.min())


def exact_penalty(sample: Sample, data: Data, fit_intercept: bool) -> Penalty:
    """The largest α whose leave-one-out error on up to 2,000 rows is within 1% of the least, then
    compared with α/3 and 3α on up to 4,096.

    α is noise over amplitude: it carries over to more rows, as λ does not, but what is flat on few
    rows need not be on many. O(4,096³).
    """
    rows = some_rows(len(sample), _ROWS)
    points = sample.points.take(rows)
    G = sample.backend.block(points, points).host()
    problem = _problem(data, rows, fit_intercept)
    path = best_alpha(G, problem)
    error = float(path.loo[np.argmin(np.abs(path.alphas - path.alpha))])
    if len(sample) > _ROWS and problem.Y.shape[1]:  # a target that varies
        return _compared(path.alpha, sample, data, fit_intercept)
    return Penalty(path.alpha * float(data.w.mean()), float(np.sqrt(error)))


def _compared(alpha: float, sample: Sample, data: Data, fit_intercept: bool) -> Penalty:
    """The largest of 3α, α, α/3 and, where that is best, smaller ones that is within 1% of the
    best on up to 4,096 rows."""
    rows = some_rows(len(sample), _CHECKED)
    problem = _problem(data, rows, fit_intercept)
    points = sample.points.take(rows)
    if len(points) > sample.backend.longest:  # they are on a cluster, which factorizes no matrix
        points = NumpyTiles().place(points.kernel, points.host())
    some = sample_of(points, problem.w)
    tried = [alpha * _FACTOR, alpha]
    errors = [_left_out_error(some, problem, each) for each in tried]
    for _ in range(_FALLS):
        tried.append(tried[-1] / _FACTOR)
        errors.append(_left_out_error(some, problem, tried[-1]))
        if not errors[-1] < (1 - _WITHIN) * errors[-2]:
            break
    best = next(i for i, e in enumerate(errors) if e <= (1 + _WITHIN) * min(errors))
    return Penalty(tried[best] * float(data.w.mean()), float(np.sqrt(errors[best])))


def _left_out_error(some: Sample, problem: Problem, alpha: float) -> float:
    """Mean squared leave-one-out error over rows and targets; infinite where rounding spoils it."""
    try:
        ridge = dense_ridge(some, problem.Y, alpha / some.total, problem.fit_intercept)
    except ValueError:
        return np.inf
    errors = ridge.residuals() / ridge.unfitted()[:, None]
    return float(problem.w @ (errors**2).mean(axis=1) / problem.w.sum())


def learned_penalty(learned: Learned | None, given: Data) -> float | None:
    """α that the restricted likelihood found with the kernel, for rows with the weights that were
    ``given``, whatever varying noise has made of them; None elsewhere."""
    if learned is None or learned.criterion != "reml" or learned.alpha is None:
        return None
    return learned.alpha * float(given.w.mean())


def carried_over(
    learned: Learned | None, factor: float, share: float
) -> tuple[Learned | None, float]:
    """What was learned and the factor of widths, once the rows before are but a share of all.

    α is left to be chosen anew. Leave-one-out scores of the rows before are too small by the
    factor f, those of others are not: share/f² + 1 − share is their common mean square.
    """
    if learned is None:
        return None, factor
    return replace(learned, alpha=None), (share / factor**2 + (1 - share)) ** -0.5


def widening_factor(chosen: Chosen, data: Data, settings: Any, say: Say, backend: Backend) -> float:
    """By how much intervals are to be wider because the kernel was learned on the same rows."""
    if settings.width_factor is not None:
        return settings.width_factor
    found = chosen.learned
    if found is None or len(data.w) >= _FEW:
        return 1.0
    return cross_fitted_factor(
        data.X,
        data.Y,
        data.w,
        kernel=found.kernel,
        form=found.form,
        fit_intercept=settings.fit_intercept,
        seed=_SEED,
        say=say,
        backend=backend,
    )


def _problem(data: Data, rows: Array, fit_intercept: bool) -> Problem:
    """Some rows, with targets in standard deviations and weights with mean 1."""
    w = data.w
    scaled = standardized(data.Y, w, fit_intercept)
    return Problem(data.X[rows], scaled[rows], w[rows] / w.mean(), fit_intercept)
