"""The posterior covariance of a fitted model over a pool, in few features, and what becomes of it
as points are measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from sketchridge.active.pool import Pool
from sketchridge.active.settings import Estimator
from sketchridge.covariance import dense_covariance, sketched_covariance
from sketchridge.dense import DenseRidge
from sketchridge.progress import status
from sketchridge.query import AtPoints
from sketchridge.ridge import Ridge

__all__ = ["Belief", "Candidates", "Posterior", "posterior_of"]

Array = np.ndarray
_FEATURES = 512  # of the posterior covariance: as many as a sketch of a campaign has rows
_SAMPLE = 2048  # rows of the pool among which landmarks are drawn
_NUMBERS = 2**22  # in a block of features
_FLOOR = 1e-12  # of the largest variance: what rounding leaves of it


@dataclass(frozen=True, eq=False)
class Candidates:
    """Some points: S between them is B Bᵀ, and what that leaves of their variances is their own."""

    B: Array  # (t, r)
    variances: Array  # (t,), S_jj, in units of the kernel
    noise: Array  # (t,), α times the share of a measurement there

    def some(self, rows: Array) -> Candidates:
        """A part of them."""
        return Candidates(self.B[rows], self.variances[rows], self.noise[rows])


@dataclass(frozen=True, eq=False)
class Posterior:
    """S(x, z) = k(x, z) − U(x)U(z)ᵀ + u(x)u(z), the posterior covariance of a fitted model.

    U are the features of the model, √(ED) a(x) of a sketched one, and u is what its intercept adds.
    Landmarks P of the *pool* make few features of it, S(x, z) ≈ B(x)ᵀB(z) with B(x) = L⁻¹S(P, x)
    and L Lᵀ = S(P, P). So regions that no label and no landmark of the model is near count for what
    they are. O(r² + m·r) per point for m features U.
    """

    estimator: Estimator
    marks: AtPoints  # P
    U: Array  # (r, ·) at the landmarks
    u: Array  # (r,)
    L: Array  # (r, r)

    def at(self, X: Array) -> Candidates:
        """Features, variances and noise of points X (t, d)."""
        fitted = self.estimator.fitted_
        query = fitted.at(X)
        U, u = _explained(fitted.ridge, query)
        S = query.at(self.marks.points).host() - self.U @ U.T + np.outer(self.u, u)  # (r, t)
        B = solve_triangular(self.L, S, lower=True, check_finite=False).T
        squares = np.einsum("ij,ij->i", B, B)
        variances = query.prior() - np.einsum("ij,ij->i", U, U) + u * u
        alpha = fitted.ridge.lam * fitted.sample.total
        noise = np.broadcast_to(alpha * np.asarray(fitted.noise_share(query)), len(X))
        return Candidates(B, np.maximum(variances, squares), noise)

    def blocks(self, pool: Pool, rows: Array, task: str) -> Iterator[tuple[Array, Candidates]]:
        """Some rows of the pool, so few at a time that their features are small."""
        size = max(1, _NUMBERS // (self.U.shape[1] + len(self.L)))
        with status(task) as say:
            for start in range(0, len(rows), size):
                say(f"{task}: {start:,} of {len(rows):,} points")
                some = rows[start : start + size]
                yield some, self.at(pool[some])


def posterior_of(estimator: Estimator, pool: Pool, seed: int) -> Posterior:
    """With up to 512 landmarks among 2,048 rows of the pool, each drawn with a probability
    proportional to what those before it leave of the variances."""
    rng = np.random.default_rng(seed)
    count = min(len(pool), _SAMPLE)
    rows = np.sort(rng.choice(len(pool), size=count, replace=False))
    fitted = estimator.fitted_
    X = pool[rows]
    query = fitted.at(X)
    ridge = fitted.ridge
    is_dense = isinstance(ridge, DenseRidge)
    S = (
        dense_covariance(ridge, query, "gp")
        if is_dense
        else sketched_covariance(ridge, query, "gp")
    )
    places, L = _landmarks(S, rng)
    marks = query.some(places)
    return Posterior(estimator, marks, *_explained(ridge, marks), L)


def _explained(ridge: Ridge | DenseRidge, query: AtPoints) -> tuple[Array, Array]:
    """U (t, ·) and u (t,), with which S = k − UUᵀ + uuᵀ."""
    if isinstance(ridge, DenseRidge):
        half, _, missing = ridge.weights(query)
        U = half.host().T
        free = ridge.lam / ridge.slack if missing is not None else 0.0
    else:
        a = query.in_blocks(len(ridge.basis.V) + 1, ridge.features)
        U = a * np.sqrt(ridge.basis.E * ridge.D)
        missing = None if ridge.intercept is None else ridge.missing(a, query.constant)
        free = 0.0 if ridge.intercept is None else ridge.lam / ridge.intercept.slack
    u = np.zeros(len(query)) if missing is None else np.sqrt(free) * missing
    return U, u


def _landmarks(S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Places (r,) by a randomly pivoted Cholesky factorization of S (t, t), and L (r, r)."""
    left = np.maximum(np.diagonal(S), 0.0)
    floor = _FLOOR * left.max()
    F = np.zeros((len(S), min(_FEATURES, len(S))))
    places: list[int] = []
    while len(places) < F.shape[1] and left.sum() > 0:
        j = int(rng.choice(len(S), p=left / left.sum()))
        k = len(places)
        column = S[:, j] - F[:, :k] @ F[j, :k]
        F[:, k] = column / np.sqrt(max(column[j], floor))
        left = left - F[:, k] ** 2
        left[left <= floor] = 0.0
        left[j] = 0.0
        places.append(j)
    chosen = np.array(places, dtype=np.intp)
    return chosen, np.tril(F[chosen, : len(chosen)])


class Belief:
    """S at some candidates as points are measured one after the other.

    S = B C Bᵀ + diag(left), C = I at first; a measurement at z makes it S − S_z S_zᵀ/(S_zz + α).
    With ``M`` = Σ_i B_i B_iᵀ over a pool also Σ_i S_ij², for each candidate j. O(t r) each.
    """

    def __init__(self, candidates: Candidates, M: Array | None = None) -> None:
        B = candidates.B
        self.candidates = candidates
        self.variances = np.array(candidates.variances)
        self._left = np.maximum(self.variances - np.einsum("ij,ij->i", B, B), 0.0)
        self.told = np.zeros(len(B))  # the largest squared correlation with a point measured
        self._C = np.eye(B.shape[1])
        self._M = M
        self._squares = None if M is None else np.einsum("ij,ij->i", B @ M, B)

    @property
    def reduction(self) -> Array:
        """Σ_i S_ij²/(S_jj + α) over the pool, by how much a measurement at j lowers the sum of its
        variances: (t,)."""
        assert self._squares is not None
        inside = np.maximum(self.variances - self._left, 0.0)  # B_jᵀ C B_j
        sums = np.maximum(self._squares, 0.0) + self._left * (2 * inside + self._left)
        return sums / (self.variances + self.candidates.noise)

    def know(self, others: Candidates) -> None:
        """Points that are not candidates are being measured."""
        for b, variance, noise in zip(others.B, others.variances, others.noise, strict=True):
            left = max(variance - b @ b, 0.0)
            self._measure(b, b @ self._C @ b + left, noise)

    def take(self, j: int) -> None:
        """Candidate j is being measured."""
        noise = float(self.candidates.noise[j])
        variance = float(self.variances[j])
        self._measure(self.candidates.B[j], variance, noise)
        self.variances[j] = variance * noise / (variance + noise)

    def _measure(self, b: Array, variance: float, noise: float) -> None:
        total = variance + noise
        v = self._C @ b
        moved = self.candidates.B @ v
        if self._M is not None and self._squares is not None:
            Mv = self._M @ v
            back = self.candidates.B @ (self._C @ Mv)
            self._squares = self._squares + moved * (moved * (v @ Mv) / total - 2 * back) / total
        both = np.maximum(self.variances * variance, np.finfo(float).tiny)
        self.told = np.maximum(self.told, moved**2 / both)
        self.variances = np.maximum(self.variances - moved**2 / total, 0.0)
        self._C = self._C - np.outer(v, v / total)
