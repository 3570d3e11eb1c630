"""The kernel learned from the data: its profile, one bandwidth, one for each feature or a linear
map of the features, and the penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sketchridge.backends import Backend, NumpyTiles
from sketchridge.candidates import Race, Step, fitted_model, kernel_between
from sketchridge.descent import Descent
from sketchridge.kernels import FORMS, DistanceKernel
from sketchridge.loo import Problem, best_alpha, kernel_matrix
from sketchridge.progress import Say
from sketchridge.rows import standardized
from sketchridge.tuning import median_distance

__all__ = ["Learned", "Step", "cross_fitted_factor", "learn", "relevance", "spreads"]

Array = np.ndarray
# Below it the restricted likelihood is better than leave-one-out: RMSE −9, −7, −1, 0, +1% at 200,
# 300, 450, 600 and 800 rows of six real tables
_LIKELIHOOD = 500
_LOOKED_AT = 4000  # rows: more than are learned on and held out
_FEW = 30  # rows below which one bandwidth is all that can be learned
_FULL = 500  # rows below which a full map is not tried
_FOLDS = 5
_MANY = 1000  # rows from which three of the folds tell enough, and five would take too long
_ENOUGH = 3
_TAILS = 0.05, 0.95
_ROUNDING = 1e-14
_CELLS = 2.0**20  # of a feature's spread: values are the same to so fine a grid in every unit
_OUTLIER = 100.0  # times the mean square: what one held-out row may say of the width of all
_NORMAL = 3.29  # the distance of those quantiles of a normal variable, in standard deviations


@dataclass(frozen=True, eq=False)
class Learned:
    """A kernel with its bandwidths or map, not yet centered, and how it was found."""

    kernel: DistanceKernel
    form: str  # "isotropic", "ard" or "full"
    map: Array  # (d, k): M, with distances ‖(x − z)M‖
    alpha: float | None  # noise over amplitude, for a row of mean weight; None for appended rows
    criterion: str  # "loo" or "reml"
    curve: tuple[Step, ...]  # what was tried
    descent: tuple[float, ...]  # the criterion by evaluation, of the chosen form
    rows: Array  # learned on


def learn(
    X: Array,
    Y: Array,
    w: Array,
    *,
    kernels: Sequence[DistanceKernel],
    forms: Sequence[str],
    fit_intercept: bool,
    seed: int,
    rows: int | None = None,
    say: Say = lambda text: None,
    backend: Backend | None = None,
) -> Learned:
    """Learn the kernel on a subsample of the distinct rows X (n, d), Y (n, q), weights w (n,).

    Every feature is divided by its spread first. Kernels are compared with one bandwidth for each
    feature, then forms with the best kernel: learned on up to three quarters of the rows, at most
    1,000, and scored by the leave-one-out errors of up to 3,000; a form must be better than a
    simpler one by a standard error; the chosen one is learned again on all rows. Below 30 rows, or
    with half as many features as rows, there is one bandwidth whatever was asked for.
    The ``backend`` computes that, NumPy's unless given.
    At most ``rows`` rows are learned on: 1,000 for one bandwidth, else 2,000. The rows are drawn by
    their content and the seed, so that their order changes nothing, nor do the features' units.

    Examples
    --------
    >>> from sketchridge.kernels import Matern52
    >>> X = np.random.default_rng(0).uniform(size=(100, 2)) * [1.0, 1000.0]
    >>> found = learn(X, np.sin(5 * X[:, :1]), np.ones(100), kernels=[Matern52()],
    ...     forms=["isotropic", "ard"], fit_intercept=True, seed=0)
    >>> found.form, relevance(found.map, spreads(X, np.ones(100))).round(1)
    ('ard', array([1., 0.]))
    """
    _check(kernels, forms)
    spread = spreads(X, w)
    used = np.flatnonzero(spread > 0)
    allowed = _allowed(forms, len(X), len(used))
    order = _drawn(X, spread, seed)[: max(_LOOKED_AT, 2 * (rows or 0))]
    problem = _problem(X, Y, w, spread, order, fit_intercept)
    criterion = "reml" if min(len(X), rows or len(X)) < _LIKELIHOOD else "loo"
    if not problem.Y.shape[1] or not len(used) or len(X) < 3:
        return _nothing_to_learn(kernels[0], X, spread, order)
    race = Race(problem, criterion, allowed, rows, say, backend)
    race.check_memory(kernels)
    best = race.winner(kernels)
    return _learned(best, race, spread, order)


def relevance(map: Array, spread: Array) -> Array:
    """How much each feature matters: ‖row of M‖ · spread, divided by the sum over features: (d,).

    >>> relevance(np.diag([2.0, 1.0, 0.0]), np.array([1.0, 2.0, 5.0]))
    array([0.5, 0.5, 0. ])
    """
    size = np.linalg.norm(map * spread[:, None], axis=1)
    total = size.sum()
    return size / total if total > 0 else np.full(len(size), 1 / len(size))


def spreads(X: Array, w: Array) -> Array:
    """The spread of each feature, 0 where it is constant: (d,).

    The distance of the weighted 5% and 95% quantiles, in standard deviations of a normal variable,
    or where those are the same the standard deviation.
    """
    return np.array([_spread(x, w) for x in np.asarray(X, dtype=float).T])


def cross_fitted_factor(
    X: Array,
    Y: Array,
    w: Array,
    *,
    kernel: DistanceKernel,
    form: str,
    fit_intercept: bool,
    seed: int,
    say: Say = lambda text: None,
    backend: Backend | None = None,
) -> float:
    """By how much intervals from leave-one-out scores are too narrow, at least 1.

    The kernel is learned five times, from 1,000 rows on thrice, without a fifth of the rows: rms
    held-out score over rms leave-one-out score, scores being errors over their predicted standard
    deviations.
    """
    spread = spreads(X, w)
    order = _drawn(X, spread, seed)
    problem = _problem(X, Y, w, spread, order, fit_intercept)
    if not problem.Y.shape[1] or not (spread > 0).any() or len(X) < 2 * _FOLDS:
        return 1.0
    criterion = "reml" if len(X) < _LIKELIHOOD else "loo"
    folds = _FOLDS if len(X) < _MANY else _ENOUGH

    def ratios(fold: int) -> Array:
        say(f"Learning the kernel without a fifth of the rows: {fold + 1} of {folds}")
        held = np.arange(len(X)) % _FOLDS == fold
        race = Race(problem.some(~held), criterion, [form], backend=backend)
        found = race.learned(kernel, form, race.problem)
        return _score_ratios(found, race.problem, problem.some(held))

    each = [partial(ratios, fold) for fold in range(folds)]
    pooled = np.concatenate((NumpyTiles() if backend is None else backend).side_by_side(each))
    return max(1.0, float(np.sqrt(pooled.mean())))


def _score_ratios(found: Descent, problem: Problem, held: Problem) -> Array:
    """Squared held-out scores over the mean squared leave-one-out score of a target, (t, q): at
    most 100, for one rare value that no other row foresees says little of the width of intervals.
    """
    model = fitted_model(found, problem)
    if model is None:
        return np.ones_like(held.Y)
    mean, gp = model.predict(kernel_between(found, held.X, problem.X))
    squares = (held.Y - mean) ** 2 / (found.alpha / held.w + gp)[:, None]
    inside = (model.a**2 / model.b[:, None]).mean(axis=0)
    least = np.maximum(inside, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        return np.minimum(squares / least, _OUTLIER)


def _learned(found: Descent, race: Race, spread: Array, order: Array) -> Learned:
    """In raw units, with the largest α that is as good on the rows learned on."""
    form = found.chart.form
    rows = race.size(form)
    problem = race.problem.some(slice(0, rows))
    alpha = found.alpha
    if race.criterion == "loo":
        G = kernel_matrix(found.kernel, found.coordinates(problem.X))
        alpha = best_alpha(G, problem).alpha
    M = _in_raw_units(found.map, spread)
    kernel = found.kernel.with_bandwidth(_bandwidth(M, form))
    curve = tuple(race.steps)
    return Learned(kernel, form, M, alpha, race.criterion, curve, found.values, order[:rows])


def _in_raw_units(map: Array, spread: Array) -> Array:
    """(d, k) from the map of the features that vary, divided by their spread."""
    used = spread > 0
    M = np.zeros((len(spread), map.shape[1]))
    M[used] = map / spread[used, None]
    return M


def _bandwidth(M: Array, form: str) -> Array:
    """One for each feature where that says all, otherwise the map."""
    if form == "full" or M.shape[0] != M.shape[1] or not M.diagonal().all():
        return M
    return 1 / M.diagonal()


def _nothing_to_learn(kernel: DistanceKernel, X: Array, spread: Array, order: Array) -> Learned:
    """One bandwidth, where y or all features are constant or rows are too few."""
    used = spread > 0
    Z = X[order][:, used] / spread[used]
    M = np.zeros((X.shape[1], 1))
    if used.any():
        M = _in_raw_units(np.eye(used.sum()) / (median_distance(Z[:1000], kernel) or 1.0), spread)
    scaled = kernel.with_bandwidth(_bandwidth(M, "isotropic"))
    return Learned(scaled, "isotropic", M, 1.0, "reml", (), (), order)


def _problem(
    X: Array, Y: Array, w: Array, spread: Array, order: Array, fit_intercept: bool
) -> Problem:
    """Features and targets that vary, in units of their spread and standard deviation."""
    used = spread > 0
    Z = X[order][:, used]
    Z = (Z - np.median(Z, axis=0)) / spread[used]
    scaled = standardized(Y, w, fit_intercept)
    return Problem(Z, scaled[order], w[order] / w.mean(), fit_intercept)


def _spread(x: Array, w: Array) -> float:
    center = np.median(x)
    off = x - center
    largest = np.abs(off).max()
    if not largest > _ROUNDING * np.abs(x).max():
        return 0.0
    off = off / largest
    order = np.argsort(off)
    below = np.cumsum(w[order])
    low, high = off[order][np.searchsorted(below, np.multiply(_TAILS, below[-1]))]
    if largest * (high - low) > _ROUNDING * np.abs(x).max():
        return float(largest * (high - low) / _NORMAL)
    mean = w @ off / below[-1]
    return float(largest * np.sqrt(w @ (off - mean) ** 2 / below[-1]))


def _drawn(X: Array, spread: Array, seed: int) -> Array:
    """All rows in an order that depends on their content and the seed only, whatever the units, the
    zeros and the order of the features: (n,)."""
    used = spread > 0
    with np.errstate(over="ignore"):
        cells = np.rint((X[:, used] - np.median(X[:, used], axis=0)) / spread[used] * _CELLS)
    begin = _mixed(np.array([(seed + 1) % 2**64], dtype=np.uint64))

    def summed(told_apart: bool) -> Array:
        keys = np.zeros(len(X), dtype=np.uint64)
        for column in cells.T:
            bits = _mixed(np.ascontiguousarray(column + 0.0).view(np.uint64) + begin)
            keys += _mixed(bits + bits.sum()) if told_apart else bits
        return _mixed(keys)

    keys = summed(False)
    order = np.argsort(keys, kind="stable")
    if (np.diff(keys[order]) == 0).any():  # as of (a, b) and (b, a): features are told apart
        return np.lexsort((*X.T, summed(True), keys))
    return order


def _mixed(bits: Array) -> Array:
    """The bits of each number, scattered (the last step of SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ bits >> np.uint64(shift)) * np.uint64(factor)
    return bits ^ bits >> np.uint64(31)


def _allowed(forms: Sequence[str], n: int, d: int) -> list[str]:
    """Of the forms asked for, those that so many rows can tell apart, in order of simplicity."""
    if n < _FEW or 2 * d >= n or d < 2:
        return ["isotropic"]
    allowed = [form for form in FORMS if form in forms]
    if len(allowed) > 1 and n < _FULL:
        allowed = [form for form in allowed if form != "full"]
    return allowed


def _check(kernels: Sequence[DistanceKernel], forms: Sequence[str]) -> None:
    for kernel in kernels:
        if not kernel.forms:
            raise ValueError(
                f"The bandwidths of {kernel!r} cannot be learned without the slope of its profile: "
                "give Radial(profile, slope), or a bandwidth."
            )
    unknown = sorted(set(forms) - set(FORMS))
    if unknown or not forms:
        raise ValueError(f"forms must be some of {FORMS}, got {unknown or forms!r}.")
