"""Which points to ask for next: the one place where a batch is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sketchridge.active.acquire import ACQUISITIONS, exponential_keys, uniform
from sketchridge.active.goals import Goal
from sketchridge.active.joint import Pursuit, pursued, reducing
from sketchridge.active.models import Model
from sketchridge.active.pool import Pool
from sketchridge.active.settings import Estimator
from sketchridge.active.spread import spread
from sketchridge.kernels import Kernel

__all__ = ["Choice", "Situation", "choose"]

Array = np.ndarray
_DRAWN = {"ivr": 0.0, "mixed": 0.25}  # share of a batch that is drawn evenly


@dataclass(frozen=True, eq=False)
class Situation:
    """What is known when points are to be chosen."""

    pool: Pool
    rows: Array  # (t,), that may be chosen
    labeled: Array  # rows
    pending: Array  # rows
    released: Array  # rows that were taken back in this round, as often as that happened
    model: Model | None  # with its scores where they are needed; None before there are labels
    kernel: Kernel  # for the first points, with its bandwidth
    goal: Goal
    aiming: Estimator | None  # the one that predicts, where there is a goal for it
    acquisition: str
    first: str  # how the first points are chosen: "spread" or "uniform"
    seed: int
    round: int


@dataclass(frozen=True, eq=False)
class Choice:
    """Rows to ask for, the probability of each, 1 where it was certain to be taken, and what was
    found of the goal on the way."""

    ids: Array
    probabilities: Array
    found: Mapping[str, float] = field(default_factory=dict)


def choose(now: Situation, count: int) -> Choice:
    """The points to ask for.

    Draws are functions of (seed, round, row), and of how often the row was taken back in this
    round, so that a point that was released is drawn anew.
    """
    keys = _keys(now)
    if now.model is None:
        return _first(now, keys, count)
    if now.aiming is not None:
        aim = Pursuit(now.goal, now.acquisition, now.aiming)
        rows = _not_released(now, count)
        known = {"labeled": now.labeled, "pending": now.pending}
        ids, found = pursued(aim, now.pool, rows, **known, count=count, seed=now.seed)
        return Choice(ids, np.ones(len(ids)), found)
    if now.acquisition in _DRAWN:
        return _reducing(now, now.model, keys, count)
    scores = np.ones(len(now.pool)) if now.model.scores is None else now.model.scores
    return Choice(*ACQUISITIONS[now.acquisition](scores, now.rows, keys, count))


def _reducing(now: Situation, model: Model, keys: Array, count: int) -> Choice:
    """Points of which a share is drawn evenly and the others, given those, lower the pool's
    variance most. Of single points every so many is drawn."""
    rows = _not_released(now, count)
    share = _DRAWN[now.acquisition]
    before = len(now.labeled) + len(now.pending)
    even, chances = uniform(
        np.empty(0), rows, keys, int(share * (before + count)) - int(share * before)
    )
    ids = reducing(
        model.estimator,
        now.pool,
        np.setdiff1d(rows, even),
        np.concatenate([now.pending, even]),
        count=count - len(even),
        keys=keys,
        seed=now.seed,
    )
    return Choice(np.concatenate([even, ids]), np.concatenate([chances, np.ones(len(ids))]))


def _first(now: Situation, keys: Array, count: int) -> Choice:
    """Points before there is a model: spread over the pool as far as they can be."""
    if now.first == "uniform" or now.acquisition == "uniform":
        return Choice(*uniform(np.empty(0), now.rows, keys, count))
    known = np.concatenate([now.labeled, now.pending])
    ids = spread(now.pool, now.kernel, now.rows, known, count, now.seed)
    rest = np.setdiff1d(now.rows, ids)
    if len(ids) == count or not len(rest):
        return Choice(ids, np.ones(len(ids)))
    more, chances = uniform(np.empty(0), rest, keys, count - len(ids))
    return Choice(np.concatenate([ids, more]), np.concatenate([np.ones(len(ids)), chances]))


def _not_released(now: Situation, count: int) -> Array:
    """Rows that may be chosen without those that were taken back in this round, as long as there
    are enough: where nothing is drawn they would come back at once."""
    rest = np.setdiff1d(now.rows, now.released)
    return rest if len(rest) >= count else now.rows


def _keys(now: Situation) -> Array:
    keys = exponential_keys(now.seed, now.round, len(now.pool))
    rows, times = np.unique(now.released, return_counts=True)
    for often in np.unique(times):
        again = exponential_keys(now.seed, now.round, len(now.pool), often=int(often))
        keys[rows[times == often]] = again[rows[times == often]]
    return keys
