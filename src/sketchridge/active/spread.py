"""The first points of a campaign: spread over the pool, before anything is known."""

from __future__ import annotations

import numpy as np

from sketchridge.active.pool import Pool
from sketchridge.kernels import Kernel

__all__ = ["spread"]

Array = np.ndarray
_CANDIDATES = 2000  # rows of the pool among which to choose, and over which the mean is taken
_NOISE = 0.05  # of a measurement, in units of the kernel
_LARGEST = 200  # points chosen one by one: each costs a pass over candidates × candidates


def spread(pool: Pool, kernel: Kernel, rows: Array, known: Array, count: int, seed: int) -> Array:
    """Rows, one after the other, each lowering the mean posterior variance of the pool most.

    With S the posterior covariance of the candidates, row j lowers it by Σ_i S_ij²/(S_jj + α),
    and then S ← S − S_j S_jᵀ/(S_jj + α). So the points lie where the pool is, and apart from each
    other and from ``known`` ones. O(candidates²) each; at most 200 are chosen so.

    Parameters
    ----------
    kernel : with its bandwidth.
    rows : (t,), of the pool that may be chosen. known : (k,), that were chosen before.

    Returns
    -------
    rows : (count,), or fewer.
    """
    rng = np.random.default_rng([seed, len(known)])
    some = _sample(rows, _CANDIDATES, rng)
    before = known[:_LARGEST]
    X = pool[np.concatenate([some, before])]
    S = kernel.fitted(X)(X, X)
    for j in range(len(some), len(X)):
        S = _conditioned(S, j)
    S = S[: len(some), : len(some)]
    chosen: list[int] = []
    for _ in range(min(count, len(some), _LARGEST)):
        gain = np.einsum("ij,ij->j", S, S) / (np.diagonal(S) + _NOISE * _unit(S))
        gain[chosen] = -1.0
        chosen.append(int(np.argmax(gain)))
        S = _conditioned(S, chosen[-1])
    return some[chosen]


def _sample(rows: Array, count: int, rng: np.random.Generator) -> Array:
    if len(rows) <= count:
        return rows
    return np.sort(rng.choice(rows, size=count, replace=False))


def _conditioned(S: Array, j: int) -> Array:
    """The covariance once row j has been measured."""
    column = S[:, j]
    return S - np.outer(column, column / (S[j, j] + _NOISE * _unit(S)))


def _unit(S: Array) -> float:
    """That of the kernel: what a variance of 1 would be."""
    return float(max(np.diagonal(S).max(), np.finfo(float).tiny))
