"""Which points to ask for next: the one place where a batch is chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchridge.active.acquire import ACQUISITIONS, exponential_keys, uniform
from sketchridge.active.models import Model
from sketchridge.active.pool import Pool
from sketchridge.active.spread import spread
from sketchridge.kernels import Kernel

__all__ = ["Situation", "choose"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Situation:
    """What is known when points are to be chosen."""

    pool: Pool
    rows: Array  # (t,), that may be chosen
    known: Array  # rows that are labeled or pending
    released: Array  # rows that were taken back in this round, as often as that happened
    model: Model | None  # with its scores where they are needed; None before there are labels
    kernel: Kernel  # for the first points, with its bandwidth
    acquisition: str
    first: str  # how the first points are chosen: "spread" or "uniform"
    seed: int
    round: int


def choose(now: Situation, count: int) -> tuple[Array, Array]:
    """Rows to ask for, and the probability of each, 1 where it was certain to be taken.

    Draws are functions of (seed, round, row), and of how often the row was taken back in this
    round, so that a point that was released is drawn anew.
    """
    keys = _keys(now)
    if now.model is not None or now.first == "uniform" or now.acquisition == "uniform":
        known = None if now.model is None else now.model.scores
        scores = np.ones(len(now.pool)) if known is None else known
        return ACQUISITIONS[now.acquisition](scores, now.rows, keys, count)
    ids = spread(now.pool, now.kernel, now.rows, now.known, count, now.seed)
    rest = np.setdiff1d(now.rows, ids)
    if len(ids) == count or not len(rest):
        return ids, np.ones(len(ids))
    more, chances = uniform(np.empty(0), rest, keys, count - len(ids))
    return np.concatenate([ids, more]), np.concatenate([np.ones(len(ids)), chances])


def _keys(now: Situation) -> Array:
    keys = exponential_keys(now.seed, now.round, len(now.pool))
    rows, times = np.unique(now.released, return_counts=True)
    for often in np.unique(times):
        again = exponential_keys(now.seed, now.round, len(now.pool), often=int(often))
        keys[rows[times == often]] = again[rows[times == often]]
    return keys
