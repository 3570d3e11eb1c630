"""Exact kernel ridge regression by a dense Cholesky factorization of K + λI, K = M^½ G M^½."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sketchridge.backends import Backend, Cholesky, Tall
from sketchridge.backends.cholesky import COLUMNS
from sketchridge.factor import Sample
from sketchridge.precision import FULL
from sketchridge.query import Query
from sketchridge.ridge import magnification

__all__ = ["DenseRidge", "check_memory", "dense_ridge"]

Array = np.ndarray
_BLOCKS = 4  # of columns, beside the n×n matrix, that a factorization takes
_EPS = np.finfo(float).eps
_PATH = 6  # those that the λ path takes besides
_REMEDY = "use SketchedKernelRidge, or fewer rows"


def check_memory(backend: Backend, n: int, *, with_path: bool) -> None:
    """Refuse what cannot fit, before any work."""
    numbers = (1 + with_path * _PATH) * float(n) ** 2 + _BLOCKS * n * min(n, COLUMNS)
    backend.reserve(numbers, f"ExactKernelRidge on {n:,} rows", _REMEDY)


def dense_ridge(sample: Sample, Y: Array, lam: float, fit_intercept: bool) -> DenseRidge:
    """Factorize K + λI = L Lᵀ now. O(n³) time, one n×n matrix."""
    ridge = DenseRidge(sample, Y, lam, fit_intercept)
    ridge.coefficients  # noqa: B018, computed once and kept
    return ridge


@dataclass(frozen=True, eq=False)
class DenseRidge:
    """Mean and, for unit noise variance, variances of exact kernel ridge regression."""

    sample: Sample
    Y: Array  # (n, q)
    lam: float
    fit_intercept: bool
    saved: tuple[Array, Array] | None = None  # coefficients and offset of a model that was loaded

    @cached_property
    def root(self) -> Array:
        """√(w/Σw): (n,)."""
        return self.sample.root.host()[:, 0]

    @cached_property
    def factor(self) -> Cholesky:
        """L Lᵀ = K + λI."""
        try:
            return self._backend.dense(self.sample.points, self.sample.root, self.lam)
        except np.linalg.LinAlgError:
            alpha = self.sample.total * self.lam * self.sample.points.kernel.unit
            raise ValueError(
                f"alpha = {alpha:.3g} is too small: rounding makes the kernel matrix plus alpha "
                "indefinite. Give a larger alpha, center or rescale X, or look for outliers in it."
            ) from None

    def solve(self, B: Array) -> Array:
        """(K + λI)⁻¹ B, for B (n,) or (n, t)."""
        columns = self._backend.tall(B.reshape(len(B), -1))
        return self.factor.solve(columns).host().reshape(B.shape)

    @cached_property
    def inverse_diagonal(self) -> Array:
        """The diagonal of (K + λI)⁻¹: (n,). O(n³)."""
        return self.factor.inverse_diagonal()

    @cached_property
    def constant(self) -> Array:
        """(K+λI)⁻¹M^½1: (n,)."""
        return self.solve(self.root)

    @cached_property
    def slack(self) -> float:
        """1ᵀM(I − Ĥ)1 = λ 1ᵀM^½(K+λI)⁻¹M^½1."""
        return float(self.lam * (self.root @ self.constant))

    @property
    def growth(self) -> float:
        """By how much an intercept magnifies rounding."""
        return magnification(self.slack if self.fit_intercept else None)

    @cached_property
    def offset(self) -> Array:
        if self.saved is not None:
            return self.saved[1]
        if not self.fit_intercept:
            return np.zeros(self.Y.shape[1])
        return self.lam / self.slack * (self.constant * self.root) @ self.Y

    @cached_property
    def coefficients(self) -> Array:
        """ω = M^½(K+λI)⁻¹M^½(Y − offset), with f(x) = k_xᵀω + offset: (n, q)."""
        if self.saved is not None:
            return self.saved[0]
        centered = self.root[:, None] * (self.Y - self.offset)
        return self.root[:, None] * self.solve(centered)

    def residuals(self) -> Array:
        """Y − fitted values = λω/μ: (n, q)."""
        return self.lam * self.coefficients / self.root[:, None] ** 2

    def unfitted(self) -> Array:
        """1 − the smoother's diagonal, λ(K+λI)⁻¹_ii: (n,).

        As leverages tend to 1 it keeps its digits, which a difference from 1 would not.
        """
        alone = self.lam * self.inverse_diagonal
        if not self.fit_intercept:
            return alone
        return np.maximum(alone - (self.lam * self.constant) ** 2 / self.slack, _EPS * alone)

    @cached_property
    def df(self) -> float:
        """Trace of the smoother."""
        return float((1 - self.unfitted()).sum())

    def mean(self, query: Query) -> Array:
        """k_xᵀω + offset: (t, q)."""
        omega = self._backend.tall(self.coefficients)
        sums = query.against(self.sample, omega, FULL).host()
        return np.outer(query.constant, self.offset) + sums

    def v1(self, query: Query) -> Array:
        """V1(x) = ‖(K+λI)⁻¹M^½k_x‖²/Σw: (t,). O(n²) per point."""
        total = self.sample.total
        return query.in_blocks(
            len(self.factor), lambda some: _squares(self.weights(some)[1]) / total
        )

    def gp(self, query: Query) -> Array:
        """k(x,x) − k_xᵀM^½(K+λI)⁻¹M^½k_x: (t,)."""
        return query.in_blocks(len(self.factor), lambda some: self._budget(some)[1])

    def bias2(self, query: Query) -> Array:
        """gp − α V1, the worst squared bias over the unit ball: (t,).

        It is accurate to ε k(x,x), and at training rows to ε of itself.
        """
        alpha = self.sample.total * self.lam

        def block(some: Query) -> Array:
            v1, gp = self._budget(some)
            bias2 = np.maximum(gp - alpha * v1, 0)
            at = some.known_rows(self.sample)
            known = np.flatnonzero(at >= 0)
            inside, size = self._bias2_at(at[known])
            better = size < gp[known]  # what either form is the difference from
            bias2[known[better]] = inside[better]
            return bias2

        return query.in_blocks(len(self.factor), block)

    def _bias2_at(self, rows: Array) -> tuple[Array, Array]:
        """vᵀKv with v = M^(−½)e_i − z, the weights of what is left of k_x at row i, and
        vᵀ(K + λI)v, from which it is a difference: each (t,)."""
        unit = np.zeros((len(self.factor), len(rows)))
        unit[rows, np.arange(len(rows))] = 1 / self.root[rows]
        t = self.solve(unit)
        v = self.lam * t
        right = self.lam * unit  # (K + λI)v
        if self.fit_intercept:
            missing = self.lam * (self.root @ t)
            push = self.lam / self.slack * missing
            v -= np.outer(self.constant, push)
            right -= np.outer(self.root, push)
        size = (v * right).sum(axis=0)
        return np.maximum(size - self.lam * (v * v).sum(axis=0), 0), size

    def _budget(self, query: Query) -> tuple[Array, Array]:
        """V1 and gp."""
        half, z, missing = self.weights(query)
        gp = np.maximum(query.prior() - _squares(half), 0)
        if missing is not None:
            gp += missing**2 * self.lam / self.slack
        return _squares(z) / self.sample.total, gp

    def weights(self, query: Query) -> tuple[Tall, Tall, Array | None]:
        """L⁻¹M^½k_x, the weights z = (K+λI)⁻¹M^½k_x, moved to the sum that they must have, each
        (n, t), and 1 − 1ᵀℓ (t,) before that, where there is an intercept."""
        half = self.factor.half(query.columns(self.sample).scaled(self.sample.root))
        z = self.factor.finish(half)
        if not self.fit_intercept:
            return half, z, None
        missing = query.constant - self.sample.root.gram(z)[0]
        push = self.lam / self.slack * missing
        constant = self._backend.tall(self.constant[:, None])
        return half, z.map(lambda z, c, a: z + c * a, constant, small=(push,)), missing

    @property
    def _backend(self) -> Backend:
        return self.sample.backend


def _squares(T: Tall) -> Array:
    """The squared lengths of the columns: (t,)."""
    return T.sum(lambda t: (t * t).sum(axis=0))
