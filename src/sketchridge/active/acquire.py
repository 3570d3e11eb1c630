"""From scores to points: which rows of the pool to ask for next."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["ACQUISITIONS", "Acquisition", "exponential_keys", "top", "uniform", "weighted"]

Array = np.ndarray
Acquisition = Callable[[Array, Array, Array, int], tuple[Array, Array]]
_CELL = 4096  # consecutive rows whose keys are drawn together


def exponential_keys(seed: int, round_number: int, size: int, *, often: int = 0) -> Array:
    """Independent standard exponentials, each a function of (seed, round, row): (size,).

    Others for rows that have been drawn and taken back so ``often``.
    """
    keys = np.empty(size)
    for start in range(0, size, _CELL):
        bits = np.random.Philox(key=[seed, round_number], counter=[0, 0, often, start // _CELL])
        stop = min(start + _CELL, size)
        keys[start:stop] = -np.log1p(-np.random.Generator(bits).random(_CELL)[: stop - start])
    return keys


def weighted(scores: Array, rows: Array, keys: Array, count: int) -> tuple[Array, Array]:
    """The paper's choice: without replacement, with probability proportional to the score.

    The smallest of independent exponential keys divided by the scores is row i with probability
    score_i/Σ score, the next smallest is drawn likewise from the others, and so on. Where all
    scores are zero every row is as likely.

    Parameters
    ----------
    scores, keys : (p,), of the whole pool.
    rows : (t,), of the pool that may be drawn.
    count : how many to draw, at most t.

    Returns
    -------
    rows : (count,), in the order drawn.
    probabilities : (count,), score/Σ score over the rows that could be drawn.
    """
    weights = scores[rows]
    largest = weights.max()
    if not largest > 0:
        return uniform(scores, rows, keys, count)
    weights = weights / largest
    positive = weights > np.finfo(float).tiny
    waiting = keys[rows]
    waiting[positive] /= weights[positive]
    drawn = np.lexsort((waiting, ~positive))[:count]
    return rows[drawn], (weights / weights.sum())[drawn]


def top(scores: Array, rows: Array, keys: Array, count: int) -> tuple[Array, Array]:
    """The rows with the largest scores, ties broken at random; each is certain to be taken."""
    chosen = np.lexsort((keys[rows], -scores[rows]))[:count]
    return rows[chosen], np.ones(len(chosen))


def uniform(scores: Array, rows: Array, keys: Array, count: int) -> tuple[Array, Array]:
    """Every row with the same probability, whatever its score."""
    drawn = np.argsort(keys[rows])[:count]
    return rows[drawn], np.full(len(drawn), 1 / len(rows))


ACQUISITIONS: dict[str, Acquisition] = {"weighted": weighted, "top": top, "uniform": uniform}
