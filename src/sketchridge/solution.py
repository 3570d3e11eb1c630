"""The exact mean of a fit, where it is affordable, and rows that are left out exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sketchridge.backends import NumpyTiles, Tall
from sketchridge.chosen import Penalty
from sketchridge.data import Data
from sketchridge.dense import check_memory, dense_ridge
from sketchridge.fitted import Probed, Settings
from sketchridge.notices import warn
from sketchridge.precision import Plan
from sketchridge.refine import PrecisionError, exact_mean, inverse_diagonal
from sketchridge.ridge import Ridge

__all__ = ["Exactly", "exactly"]

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


@dataclass(frozen=True, eq=False)
class Exactly:
    """The exact mean k_xᵀω + offset, or ω = None where the sketched one is taken, and what is known
    of rows left out."""

    omega: Tall | None  # (n, q)
    offset: Array  # (q,)
    probed: Probed = Probed()  # noqa: RUF009, a tuple


def exactly(
    settings: Settings,
    plan: Plan,
    ridge: Ridge,
    data: Data,
    penalty: Penalty | None,
    say: Say,
) -> Exactly:
    """The exact mean, where it is asked for or affordable and another than the sketched one.

    ``solver="auto"`` factorises the n×n matrix where that takes seconds, and knows every row left
    out; otherwise conjugate gradients give the mean and some rows left out.
    """
    automatic = settings.solver == "auto"
    if settings.solver == "sketch" or (automatic and not _is_affordable(ridge)):
        return Exactly(None, ridge.offset)
    say("Solving for the exact mean")
    found = _factorized(ridge) if automatic else None
    if found is not None:
        return found
    with ridge.sample.backend.alone():
        omega, offset = _iterated(settings, plan, ridge, penalty)
        if omega is None:
            return Exactly(None, offset)
        probed = _left_out(settings, plan, ridge, data, omega, say)
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
    return Exactly(omega, dense.offset, Probed(left=dense.left()))


def _iterated(
    settings: Settings, plan: Plan, ridge: Ridge, penalty: Penalty | None
) -> tuple[Tall | None, Array]:
    """By conjugate gradients, as far as predictions need it; None where they take too long."""
    step = plan.step(ridge.sample.scales, ridge.basis.largest / ridge.lam)
    if settings.solver != "auto":
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


def _left_out(
    settings: Settings, plan: Plan, ridge: Ridge, data: Data, omega: Tall, say: Say
) -> Probed:
    """What some rows, for which the exact 1/B_ii is computed, tell of the others: the share κ, from
    0 to 1, with which 1/B̂_ii + κc_i is nearest to it, and what is then missing in the squared
    leave-one-out error. Where it would take too long κ is 1, with wider intervals."""
    rows = settings.probe(len(ridge.sample))[:_PROBED]
    c = ridge.basis.unexplained()[rows]
    left = np.maximum(1 - ridge.leverages().take(rows)[:, 0], np.finfo(float).eps)
    known = ridge.lam * ridge.sample.total / data.w[rows] / left
    if (c <= _LITTLE * known).all():
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
