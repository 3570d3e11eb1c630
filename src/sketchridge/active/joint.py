"""Batches whose points are chosen jointly: each knows that those before it are being measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchridge.active.goals import Goal
from sketchridge.active.pool import Pool
from sketchridge.active.posterior import Belief, Candidates, posterior_of
from sketchridge.active.promise import expected, outlook, score
from sketchridge.active.settings import Estimator

__all__ = ["Pursuit", "pursued", "reducing"]

Array = np.ndarray
_MOST = 2**14  # candidates whose features are held while a batch is chosen
_COPY = 0.9  # squared correlation with a point of the batch from which on one tells the other
_MOMENTS = "Summing the covariances of the pool"
_SCORES = "Scoring the pool"


def reducing(
    estimator: Estimator,
    pool: Pool,
    rows: Array,
    pending: Array,
    *,
    count: int,
    keys: Array,
    seed: int,
) -> Array:
    """Rows, one after the other, each lowering the summed posterior variance of the pool most.

    With S the posterior covariance row j lowers it by Σ_i S_ij²/(S_jj + α), and then
    S ← S − S_j S_jᵀ/(S_jj + α), in the features of `Posterior`. Two passes over the pool, O(r²) per
    point; then O(candidates·r) for each row. Candidates are all rows, or of a large pool 16,384:
    half of them those that lower it most at first, half drawn with that as probability, by ``keys``
    (p,), so that there are some everywhere.

    Parameters
    ----------
    rows : (t,), of the pool that may be chosen. pending : that are being measured.
    """
    if not len(rows) or not count:
        return rows[:0]
    posterior = posterior_of(estimator, pool, seed)
    M = np.zeros_like(posterior.L)
    for _, block in posterior.blocks(pool, np.arange(len(pool)), _MOMENTS):
        M += block.B.T @ block.B
    if len(rows) > _MOST:
        scores = np.empty(len(rows))
        start = 0
        for some, block in posterior.blocks(pool, rows, _SCORES):
            scores[start : start + len(some)] = Belief(block, M).reduction
            start += len(some)
        rows = rows[_some_of(scores, keys[rows])]
    parts = [block for _, block in posterior.blocks(pool, rows, _SCORES)]
    belief = Belief(_together(parts), M)
    if len(pending):
        belief.know(posterior.at(pool[pending]))
    chosen: list[int] = []
    for _ in range(min(count, len(rows))):
        gain = belief.reduction
        gain[chosen] = -1.0
        chosen.append(int(np.argmax(gain)))
        belief.take(chosen[-1])
    return rows[chosen]


@dataclass(frozen=True)
class Pursuit:
    """What is pursued: the goal, by which of its acquisitions, and the model that predicts."""

    goal: Goal
    acquisition: str
    estimator: Estimator

    def moments(self, pool: Pool, rows: Array) -> tuple[Array, Array]:
        """Mean, in units of y, and gp, in those of the kernel, at some rows: each (t,)."""
        fitted = pool.goes_to(self.estimator.fitted_)
        mean = pool.apply(lambda X: fitted.mean(fitted.at(X))[:, 0], rows)[rows]
        gp = pool.apply(lambda X: fitted.ridge.gp(fitted.at(X)), rows)[rows]
        return mean, gp

    def std(self, gp: Array) -> Array:
        """The standard deviation of the function in units of y, not that of a measurement.

        With the amplitude of leave-one-out errors and, where the kernel was learned from few
        labels, the factor by which those are too small. Labels that are all alike tell nothing of
        it: then that of amplitude 1.
        """
        predictive = self.estimator.fitted_.predictive
        if not predictive.amplitude[0] > 0:
            return np.sqrt(gp)
        return np.sqrt(predictive.variance(gp, include_noise=False)[:, 0])

    def reached(self, pool: Pool, labeled: Array) -> float:
        """The least distance from the goal at labeled rows, by the model's mean: noise does not
        count as success."""
        fitted = self.estimator.fitted_
        return float(self.goal.distance(fitted.mean(fitted.at(pool[labeled]))[:, 0]).min())


def pursued(
    now: Pursuit,
    pool: Pool,
    rows: Array,
    *,
    labeled: Array,
    pending: Array,
    count: int,
    seed: int,
) -> tuple[Array, dict[str, float]]:
    """Rows that promise most for a goal, one after the other, and what all rows promise.

    A point that was chosen is believed to turn out as expected, and to be known from then on: the
    others' variances fall by S_ij²/(S_jj + α), and they must improve on it. Points whose values it
    all but tells come after all others, so that those of a batch are no copies. Two passes
    over the pool, O(n_labels + m) per point.
    """
    mean, gp = now.moments(pool, rows)
    std = now.std(gp)
    reached = now.reached(pool, labeled)
    Y = now.estimator.fitted_.data.rows.Y
    found = outlook(now.goal, mean, std, reached, float(Y.std()))
    scores = score(now.goal, now.acquisition, mean, std, reached)
    if count == 1 and not len(pending):
        return rows[[int(np.argmax(scores))]], found
    best = np.argsort(-scores, kind="stable")[:_MOST]
    posterior = posterior_of(now.estimator, pool, seed)
    parts = [block for _, block in posterior.blocks(pool, rows[best], _SCORES)]
    belief = Belief(_together(parts))
    if len(pending):
        belief.know(posterior.at(pool[pending]))
        means, gp = now.moments(pool, pending)
        each = zip(means.tolist(), now.std(gp).tolist(), strict=True)
        reached = min(reached, *(expected(now.goal, *one) for one in each))
    chosen: list[int] = []
    for _ in range(min(count, len(best))):
        std = now.std(belief.variances)
        scores = score(now.goal, now.acquisition, mean[best], std, reached)
        scores[belief.told >= _COPY] -= np.ptp(scores) + 1.0  # after all others
        scores[chosen] = -np.inf
        j = int(np.argmax(scores))
        reached = min(reached, expected(now.goal, float(mean[best[j]]), float(std[j])))
        belief.take(j)
        chosen.append(j)
    return rows[best[chosen]], found


def _some_of(scores: Array, keys: Array) -> Array:
    """Places of candidates: half of them the largest scores, half drawn by the scores."""
    top = np.argsort(-scores, kind="stable")[: _MOST // 2]
    waiting = keys / np.maximum(scores, np.finfo(float).tiny)
    waiting[top] = np.inf
    return np.sort(np.concatenate([top, np.argsort(waiting)[: _MOST - len(top)]]))


def _together(parts: list[Candidates]) -> Candidates:
    return Candidates(
        np.concatenate([part.B for part in parts]),
        np.concatenate([part.variances for part in parts]),
        np.concatenate([part.noise for part in parts]),
    )
