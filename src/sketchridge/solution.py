"""The exact mean of a fit, where it is affordable, and rows that are left out exactly."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from sketchridge.backends import NumpyTiles, Tall
from sketchridge.basis import Intercept
from sketchridge.chosen import Penalty
from sketchridge.data import Data
from sketchridge.dense import check_memory, dense_ridge
from sketchridge.fitted import Probed, Settings, SketchTask
from sketchridge.forecast import Forecast, foreseen, most_steps
from sketchridge.notices import warn
from sketchridge.progress import Say
from sketchridge.refine import PrecisionError, exact_mean, inverse_diagonal
from sketchridge.ridge import Ridge

__all__ = ["Exactly", "exactly"]

Array = np.ndarray
_MEAN_TOL = 1e-8
_SHARE = 0.005  # of the leave-one-out error on a subsample, by which the mean may be off: that on
# all rows is smaller, and 1% of it is what may be lost
_SECONDS = 120.0  # that an automatic solver spends on the exact mean, by the forecast
_LATE = 2.0  # of these, after which it gives up where the forecast was wrong
_PROBED = 200  # rows that are left out exactly, and again as many while that is little work
_MOST = 600  # of these: beyond, what they tell is known to 6%
_VALUE = 100.0  # multiplications that take as long as a value of the kernel
_GROWING = 2.0  # multiplications by nm² that a sketch takes
_WORK = 5e11  # multiplications that may go into these rows in any case: ten seconds of two cores
_OF_THE_FIT = 0.5  # and of those in sketch and mean
_ROUGHLY = 0.05  # residual of the solutions for that, whose square is what counts
_LITTLE = 0.01  # of a row's variance: what need not be looked at more closely
_EXACT_MEAN = 32_768  # rows up to which the exact mean is worth its time without a GPU
_LARGE = 4096  # rows from which solutions are rough
_FEW_STEPS = 20  # a forecast costs as much as about three


@dataclass(frozen=True, eq=False)
class Exactly:
    """The exact mean k_xᵀω + offset, or ω = None where the sketched one is taken, and what is known
    of rows left out."""

    omega: Tall | None  # (n, q)
    offset: Array  # (q,)
    probed: Probed = Probed()  # noqa: RUF009, a tuple


def exactly(task: SketchTask, ridge: Ridge, penalty: Penalty | None) -> Exactly:
    """The exact mean, where it is asked for or affordable and another than the sketched one.

    ``solver="auto"`` factorizes the n×n matrix where that takes seconds, and knows every row left
    out; otherwise conjugate gradients give the mean and some rows left out, as many as their steps
    allow: what is counted is the same on every machine, as seconds are not.
    """
    settings, say = task.settings, task.say
    automatic = settings.solver == "auto"
    if settings.solver == "sketch" or (automatic and not _is_affordable(ridge)):
        return Exactly(None, ridge.offset)
    say("Solving for the exact mean")
    found = _factorized(ridge) if automatic else None
    if found is not None:
        return found
    step = task.plan.step(ridge.sample.scales, ridge.basis.largest / ridge.lam)
    with ridge.sample.backend.alone():
        tol = _tolerance(settings, penalty)
        forecast = _forecast(ridge, tol, step, settings.seed)
        if automatic and forecast is not None and forecast.seconds > _SECONDS:
            _warn_of_the_time(ridge, forecast)
            return Exactly(None, ridge.offset)
        solver = _preconditioned(ridge, forecast, say)
        tell = _Steps("Solving for the exact mean", say, forecast)
        omega, offset = _iterated(task, solver, tol, step, tell)
        if omega is None:
            return Exactly(None, ridge.offset)
        size = ridge.basis.factor.sketch.size
        growing = _GROWING * len(ridge.sample) * size**2
        work = growing + _work(solver, tell.count, omega.shape[1])
        probed = _left_out(task, ridge, solver, omega, step, work)
    return Exactly(omega, offset, probed)


def _factorized(ridge: Ridge) -> Exactly | None:
    """By a dense Cholesky factor; None where that takes too long, no room or rounding forbids it.

    O(n³) time, one n×n matrix.
    """
    sample = ridge.sample
    if len(sample) > sample.backend.dense_rows:
        return None
    intercept = ridge.intercept is not None
    try:
        check_memory(sample.backend, len(sample), with_path=False)
        dense = dense_ridge(sample, ridge.basis.Y.host(), ridge.lam, intercept)
    except (MemoryError, ValueError):
        return None
    omega = sample.backend.tall(dense.coefficients)
    return Exactly(omega, dense.offset, Probed(unfitted=dense.unfitted()))


def _tolerance(settings: Settings, penalty: Penalty | None) -> float:
    """Of the residual: as far as predictions need it, where the solver is automatic. An error of
    more than y's own spread, or an infinite one where rounding spoils it, allows no more."""
    if settings.solver != "auto":
        return _MEAN_TOL
    error = 1.0 if penalty is None else min(penalty.error, 1.0)
    return max(_MEAN_TOL, _SHARE * error)


def _forecast(ridge: Ridge, tol: float, step: str, seed: int) -> Forecast | None:
    """How long conjugate gradients will take, and with which preconditioner; None where rows or
    steps, of which τ = tr K − tr K̂ bounds the number, are so few that it does not matter."""
    n = len(ridge.sample)
    if n <= _LARGE or most_steps(ridge.basis.tau, ridge.lam, tol) <= _FEW_STEPS:
        return None
    factor = ridge.basis.factor
    largest = ridge.sample.backend.largest_sketch(n) if factor.nested else factor.sketch.size
    columns = ridge.basis.Y.shape[1]
    return foreseen(ridge, tol=tol, columns=columns, step=step, largest=largest, seed=seed)


def _warn_of_the_time(ridge: Ridge, forecast: Forecast) -> None:
    warn(
        f"The exact mean of {len(ridge.sample):,} rows would take about "
        f"{forecast.seconds / 60:.0f} minutes ({forecast.steps:.0f} products with the kernel "
        "matrix), so the sketched mean is taken. Give solver='pcg' to wait for it, a larger alpha, "
        "or solver='sketch' to be silent."
    )


def _preconditioned(ridge: Ridge, forecast: Forecast | None, say: Say) -> Ridge:
    """With the larger sketch that pays for itself, where there is one."""
    if forecast is None or forecast.size <= ridge.basis.factor.sketch.size:
        return ridge
    say(f"Growing the preconditioner to {forecast.size:,} rows")
    try:
        basis = ridge.basis.grown(forecast.size)
    except MemoryError:
        return ridge
    intercept = None if ridge.intercept is None else Intercept(basis, ridge.lam)
    return Ridge(basis, ridge.lam, intercept, ridge.precision, ridge.budget)


def _iterated(
    task: SketchTask, ridge: Ridge, tol: float, step: str, tell: _Steps
) -> tuple[Tall | None, Array]:
    """By conjugate gradients; None where they take too long after all."""
    if task.settings.solver != "auto":
        return exact_mean(ridge, tol=tol, step=step, tell=tell)
    limit = _LATE * _SECONDS
    try:
        return exact_mean(ridge, tol=tol, step=step, seconds=limit, tell=tell)
    except PrecisionError as error:
        warn(
            f"The exact mean was given up after {limit:.0f} s or for rounding, and the sketched "
            f"mean is taken ({error}) Give solver='pcg' to wait for it, a larger alpha, or "
            "solver='sketch' to be silent."
        )
        return None, ridge.offset


class _Steps:
    """Counts steps of conjugate gradients, and says which one it is, of about how many, and how
    long the others will take."""

    def __init__(self, text: str, say: Say, forecast: Forecast | None = None) -> None:
        self.text = text
        self.say = say
        self.forecast = forecast
        self.begun = time.monotonic()
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        if self.forecast is None:
            self.say(f"{self.text}: step {self.count}")
            return
        steps = self.forecast.steps
        left = max(steps - self.count, 0) * (time.monotonic() - self.begun) / self.count
        about = f"step {self.count} of about {max(steps, self.count):.0f}"
        self.say(f"{self.text}: {about}, {left:.0f} s left")


def _work(ridge: Ridge, steps: int, columns: int) -> float:
    """Multiplications in so many steps with so many columns, and values of the kernel."""
    n, m = len(ridge.sample), ridge.basis.factor.sketch.size
    return steps * float(n) * (n * (_VALUE + columns) + 2 * m * columns)


def _left_out(
    task: SketchTask, ridge: Ridge, solver: Ridge, omega: Tall, step: str, work: float
) -> Probed:
    """What some rows, for which the exact 1/B_ii is computed, tell of the others: the share κ, from
    0 to 1, with which 1/B̂_ii + κc_i is nearest to it, and what is then missing in the squared
    leave-one-out error. Where it would take too long κ is 1, with wider intervals.

    There are 200 such rows, and as many more as are little beside the ``work`` of the fit.
    """
    data = task.data
    order = np.random.default_rng(task.settings.seed).permutation(len(ridge.sample))
    c_all = ridge.basis.unexplained()
    leverages = ridge.leverages()
    rows, inverse = np.empty(0, dtype=int), np.empty(0)
    tol = _ROUGHLY if len(ridge.sample) > _LARGE else _MEAN_TOL
    allowed = _WORK + _OF_THE_FIT * work
    tell = _Steps("", task.say)
    while len(rows) < min(len(order), _MOST):
        some = order[len(rows) : len(rows) + _PROBED]
        known = _known_of(ridge, data, leverages, some)
        if not len(rows) and (c_all[some] <= _LITTLE * known).all():
            return Probed()
        tell.text = f"Leaving out {len(rows) + len(some)} rows exactly"
        try:
            found = inverse_diagonal(
                solver, some, tol=tol, step=step, seconds=_SECONDS / 3, tell=tell
            )
        except PrecisionError:
            break
        rows, inverse = np.append(rows, some), np.append(inverse, found)
        if _work(solver, tell.count, len(some)) * (1 + _PROBED / len(rows)) > allowed:
            break
    if not len(rows):
        return Probed()
    return _told(ridge, data, omega, leverages, rows, inverse, c_all[rows])


def _known_of(ridge: Ridge, data: Data, leverages: Tall, rows: Array) -> Array:
    """1/B̂_ii of the sketched model."""
    unfitted = np.maximum(1 - leverages.take(rows)[:, 0], np.finfo(float).eps)
    return ridge.lam * ridge.sample.total / data.w[rows] / unfitted


def _told(
    ridge: Ridge, data: Data, omega: Tall, leverages: Tall, rows: Array, inverse: Array, c: Array
) -> Probed:
    known = _known_of(ridge, data, leverages, rows)
    whole = 1 / np.maximum(inverse, np.finfo(float).tiny)
    weight = 1 / whole**2
    found = (weight * c) @ (whole - known) / ((weight * c) @ c)
    share = float(np.clip(found, 0, 1))
    squares = data.w[rows] * (omega.take(rows) ** 2).sum(axis=1)
    near = squares @ (known + share * c) ** 2
    return Probed(share, float(squares @ whole**2 / near) if near > 0 else 1.0)


def _is_affordable(ridge: Ridge) -> bool:
    """Whether the exact mean is another than the sketched one, and few rows or a GPU make it."""
    few = len(ridge.sample) <= _EXACT_MEAN or not isinstance(ridge.sample.backend, NumpyTiles)
    return few and not ridge.basis.factor.complete
