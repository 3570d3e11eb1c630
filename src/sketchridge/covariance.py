"""Covariances between functionals, for unit noise: Gram matrices of the weights behind the
variances, and what is left of the kernel.

They are positive semidefinite by construction, but for rounding, and their diagonals are the
variances.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from sketchridge.backends import Tall
from sketchridge.dense import DenseRidge
from sketchridge.query import Query, Theta, share_at
from sketchridge.refine import v1
from sketchridge.ridge import Ridge

__all__ = ["dense_covariance", "half", "refined_covariance", "sketched_covariance"]

Array = np.ndarray
_MATRICES = 5  # (t, t) that are there at once


def sketched_covariance(ridge: Ridge, query: Query, kind: str) -> Array:
    """The covariance of the kind "v2", "vbar", "vtheta", "v3" or "gp": (t, t)."""
    ridge.sample.backend.reserve(_MATRICES * len(query) ** 2, _what(query))
    if kind == "v3":
        return _v3(ridge, query)
    if kind == "gp":
        return _gp(ridge, query)
    return _weighted(ridge, query, ridge.theta_of(kind))


def refined_covariance(
    ridge: Ridge, query: Query, *, theta: Theta, tol: float, first: str, step: str
) -> Array:
    """That of V1, from weights refined to a tolerance: (t, t). They are all held: (n, t)."""
    ridge.sample.backend.reserve(_MATRICES * len(query) ** 2, _what(query))
    weights: list[Tall] = []
    v1(ridge, query, theta=theta, tol=tol, first=first, step=step, keep=weights)
    return weights[0].beside(*weights[1:]).gram()


def dense_covariance(ridge: DenseRidge, query: Query, kind: str) -> Array:
    """The covariance of the kind "v1" or "gp": (t, t). O(n²t + nt²)."""
    ridge.sample.backend.reserve(_MATRICES * len(query) ** 2, _what(query))
    middle, z, missing = ridge.weights(query)
    if kind == "v1":
        return z.gram() / ridge.sample.total
    left = _clipped(query.cross() - middle.gram())
    if missing is not None:
        left += np.outer(missing, missing) * (ridge.lam / ridge.slack)
    return left


def half(C: Array) -> Array:
    """R (t, r) with R Rᵀ = C for a covariance C (t, t), by Cholesky with pivots.

    >>> half(np.ones((2, 2)))
    array([[1.],
           [1.]])
    """
    if not np.diagonal(C).max(initial=0.0) > 0:
        return np.zeros((len(C), 0))
    L, pivots, rank, _ = lapack.dpstrf(C, lower=1)
    R = np.zeros((len(C), rank))
    R[pivots - 1] = np.tril(L)[:, :rank]
    return R


def _weighted(ridge: Ridge, query: Query, theta: Theta) -> Array:
    """The Gram matrix of θ(k_x − [T e] C)/λ over blocks of training rows."""
    sample = ridge.sample
    share = np.broadcast_to(share_at(theta, query), len(query))
    right = ridge.fitting(query, share).T  # (r + 1, t)
    wide = ridge.wide
    total = np.zeros((len(query), len(query)))
    size = max(1, sample.backend.slab_bytes // (8 * len(query)))
    for start in range(0, len(sample), size):
        rows = slice(start, min(start + size, len(sample)))
        k = query.at(sample.points.take(rows))  # (rows, t)
        fitted = wide.rows(rows.start, rows.stop) @ right
        left = k.map(lambda k, f: k - f, fitted)
        total += left.gram(weights=sample.weights.rows(rows.start, rows.stop))
    total *= np.outer(share, share) * (ridge.scale / sample.total)
    return total if query.formed_once else _with_diagonal(total, ridge.mixed(query, share))


def _with_diagonal(C: Array, variance: Array) -> Array:
    """The same correlations with the variances as they are computed alone, perhaps in a lower
    precision: (t, t)."""
    before = np.diagonal(C)
    ratio = np.divide(variance, before, out=np.zeros_like(variance), where=before > 0)
    C *= np.sqrt(np.outer(ratio, ratio))
    np.fill_diagonal(C, variance)
    return C


def _v3(ridge: Ridge, query: Query) -> Array:
    """T(D a − push·c) + push·1 in an orthonormal basis of T and of what it leaves of 1."""
    basis = ridge.basis
    a = _features(ridge, query)
    root = np.sqrt(basis.E)
    if ridge.intercept is None:
        parts = a * ridge.D * root
    else:
        push = ridge.missing(a, query.constant) / ridge.intercept.slack
        inside = (a * ridge.D - np.outer(push, ridge.intercept.c)) * root
        inside += np.outer(push, basis.P[:, -1])
        outside = push * np.sqrt(max(float(basis.rest[-1, -1]), 0.0))
        parts = np.column_stack([inside, outside])
    return parts @ parts.T / ridge.sample.total


def _gp(ridge: Ridge, query: Query) -> Array:
    """k(x, z) − k̂(x, z) + λ Σ_j a_j(x) a_j(z) D_j."""
    a = _features(ridge, query)
    left = _clipped(query.cross() - a @ a.T)
    scaled = a * np.sqrt(ridge.lam * ridge.D)
    left += scaled @ scaled.T
    if ridge.intercept is not None:
        missing = ridge.missing(a, query.constant)
        left += np.outer(missing, missing) * (ridge.lam / ridge.intercept.slack)
    return left


def _clipped(left: Array) -> Array:
    """What is left of a kernel matrix, of which rounding may make a variance below 0."""
    left = (left + left.T) / 2
    below = np.diagonal(left) < 0
    left[below, :] = 0
    left[:, below] = 0
    return left


def _features(ridge: Ridge, query: Query) -> Array:
    return query.in_blocks(len(ridge.basis.V) + 1, ridge.features)


def _what(query: Query) -> str:
    return f"A covariance of {len(query):,} × {len(query):,} numbers"
