"""The exact mean of a fit, where it is affordable, and rows that are left out exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sketchridge.backends import NumpyTiles, Tall
from sketchridge.chosen import Penalty
from sketchridge.data import Data
from sketchridge.factor import RowFactor
from sketchridge.fitted import Probed, Settings
from sketchridge.notices import warn
from sketchridge.precision import Plan
from sketchridge.refine import PrecisionError, exact_mean, inverse_diagonal
from sketchridge.ridge import Ridge

__all__ = ["left_out_exactly", "mean_of"]

Array = np.ndarray
Say = Callable[[str], None]
_MEAN_TOL = 1e-8
_SHARE = 0.005  # of the leave-one-out error on a subsample, by which the mean may be off: that on
# all rows is smaller, and 1% of it is what may be lost
_SECONDS = 120.0  # after which an automatic solver gives the exact mean up
_PROBED = 200  # rows that are left out exactly
_ROUGHLY = 0.05  # residual of the solutions for that, whose square is what counts
_LITTLE = 0.01  # of a row's variance: what need not be looked at more closely
_EXACT_MEAN = 32_768  # rows up to which the exact mean is worth its time without a GPU
_LARGE = 4096  # rows from which solutions are rough


def mean_of(
    settings: Settings, plan: Plan, ridge: Ridge, penalty: Penalty | None, say: Say
) -> tuple[Tall | None, Array]:
    """Coefficients of the exact mean and its constant, or None where the sketched mean is taken."""
    automatic = settings.solver == "auto"
    if settings.solver == "sketch" or (automatic and not _is_affordable(ridge)):
        return None, ridge.offset
    say("Solving for the exact mean")
    step = plan.step(ridge.sample.scales, ridge.basis.largest / ridge.lam)
    if not automatic:
        return exact_mean(ridge, tol=_MEAN_TOL, step=step)
    tol = max(_MEAN_TOL, _SHARE * (1.0 if penalty is None else penalty.error))
    try:
        return exact_mean(ridge, tol=tol, step=step, seconds=_SECONDS)
    except PrecisionError as error:
        warn(
            f"The exact mean was given up after {_SECONDS:.0f} s or for rounding, and the sketched "
            f"mean is taken ({error}) Give solver='pcg' to wait for it, a larger alpha, or "
            "solver='sketch' to be silent."
        )
        return None, ridge.offset


def left_out_exactly(
    settings: Settings, plan: Plan, ridge: Ridge, data: Data, omega: Tall, say: Say
) -> Probed:
    """What some rows, for which the exact 1/B_ii is computed, tell of the others: the share κ, from
    0 to 1, with which 1/B̂_ii + κc_i is nearest to it, and what is then missing in the squared
    leave-one-out error. Where it would take too long κ is 1, with wider intervals."""
    rows = settings.probe(len(ridge.sample))
    if isinstance(ridge.basis.factor, RowFactor):
        rows = rows[~np.isin(rows, ridge.basis.factor.pivots)]
    rows = rows[:_PROBED]
    c = ridge.basis.unexplained()[rows]
    left = np.maximum(1 - ridge.leverages().take(rows)[:, 0], np.finfo(float).eps)
    known = ridge.lam * ridge.sample.total / data.w[rows] / left
    if not len(rows) or (c <= _LITTLE * known).all():
        return Probed()
    say(f"Leaving out {len(rows)} rows exactly")
    step = plan.step(ridge.sample.scales, ridge.basis.largest / ridge.lam)
    try:
        tol = _ROUGHLY if len(ridge.sample) > _LARGE else _MEAN_TOL
        inverse = inverse_diagonal(ridge, rows, tol=tol, step=step, seconds=_SECONDS / 3)
    except PrecisionError:
        return Probed()
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
