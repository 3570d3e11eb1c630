"""Sketched kernel ridge regression: a factor with targets (Basis), then a penalty (Ridge).

Rows have weights w; M = diag(w)/Σw, K = M^½ G M^½, λ = α/Σw. T = F V are the features of the
training points in the eigenbasis of the sketched model, with TᵀMT = diag(E), and D = 1/(E + λ).
All variances are for unit noise variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sketchridge.backends import Tall
from sketchridge.factor import Factor, Sample, spectrum
from sketchridge.precision import EPS
from sketchridge.query import AtPoints

__all__ = ["Basis", "Intercept", "Ridge", "Shrinkage", "basis_of", "degrees_of_freedom"]

Array = np.ndarray
_DIAGONAL = 1e-6  # rounding in TᵀMT, relative to λ, below which it is taken for diag(E)
_EPS = EPS["float64"]
_FEW = 4096  # rows up to which two passes cost nothing worth saving
_SUMS = 16  # rounding of a sum over all rows, in ε and by measurement
_TRIED = 64  # points by which it is judged whether one pass over the data will do
_TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Basis:
    """Everything that does not depend on λ."""

    factor: Factor
    Y: Tall  # (n, q)
    E: Array  # (r,)
    V: Array  # (m, r)
    saved: tuple[Array, Array] | None = None  # P and rest of a model that was loaded

    @property
    def sample(self) -> Sample:
        return self.factor.sample

    @cached_property
    def T(self) -> Tall:
        """F V, formed: (n, r).

        Its columns are as small as E says, and so is the rounding in products with them: the error
        of V2 is smaller by √(E₁/λ) than with F, whose columns are all alike.
        """
        lazy = self.factor.F @ self.V
        worth = self.sample.backend.worth_holding(*lazy.shape)
        return lazy.held() if worth else lazy

    @cached_property
    def M(self) -> Array:
        """TᵀMT itself, accurate in every entry relative to its row and column: (r, r)."""
        return self.sample.gram(self.T)

    @cached_property
    def targets(self) -> Tall:
        """[Y 1]: (n, q + 1)."""
        return self.Y.beside(self.ones)

    @cached_property
    def ones(self) -> Tall:
        return self.sample.weights.map(lambda w: w * 0 + 1)

    @cached_property
    def P(self) -> Array:
        """E^(−½) TᵀM[Y 1], the targets and the constant in an orthonormal basis: (r, q + 1)."""
        if self.saved is not None:
            return self.saved[0]
        products = self.sample.gram(self.factor.F, self.targets)
        return self.V.T @ products / np.sqrt(self.E)[:, None]

    @cached_property
    def rest(self) -> Array:
        """The Gram matrix of what that basis leaves of [Y 1], from what it leaves."""
        if self.saved is not None:
            return self.saved[1]
        explained = self.factor.F @ (self.V @ (self.P / np.sqrt(self.E)[:, None]))
        left = self.targets.map(lambda y, f: y - f, explained)
        return self.sample.gram(left)

    @property
    def o(self) -> Array:
        """TᵀM1: (r,)."""
        return np.sqrt(self.E) * self.P[:, -1]

    @property
    def tau(self) -> float:
        """τ = tr K − tr K̂, not below 0."""
        return max(self.sample.scales.trace - float(self.factor.explained.sum()), 0.0)

    @property
    def largest(self) -> float:
        """E₁, or 1 where the kernel vanishes on the data."""
        return float(self.E[0]) if len(self.E) else 1.0

    def grown(self, size: int) -> Basis:
        """With a sketch of ``size`` rows, or fewer where the numerical rank runs out."""
        return basis_of(self.factor.grown(size), self.Y)


def basis_of(factor: Factor, Y: Tall) -> Basis:
    """The eigenbasis of a factor, with targets Y (n, q). O(m³)."""
    return Basis(factor, Y, *spectrum(factor.sample.backend, factor.gram))


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """(TᵀMT + λI)⁻¹ for one λ."""

    basis: Basis
    lam: float

    def __call__(self, B: Array, eps: float = 0.0) -> Array:
        """B (TᵀMT + λI)⁻¹ for rows B (t, r) that are known to ``eps``.

        It is B diag(D) but for rounding in T, of about 8√r·ε·E₁: small, or drowned by B's ``eps``.
        Where T is not formed there is no better.
        """
        E = self.basis.E
        rounding = 8 * np.sqrt(len(E)) * _EPS
        small = rounding <= max(_DIAGONAL * self.lam / self.basis.largest, eps)
        if small or self.basis.T.right is not None:
            return B / (E + self.lam)
        return self._solve(B.T).T

    @cached_property
    def _solve(self) -> Callable[[Array], Array]:
        A = self.basis.M.copy()
        A[np.diag_indices_from(A)] += self.lam
        return self.basis.sample.backend.definite(A)


@dataclass(frozen=True, eq=False)
class Intercept:
    """An unpenalised constant fitted jointly.

    With the smoother Ĥ = T D TᵀM and e = (I − Ĥ)1 = 1 − T c, the weights ℓ of a prediction become
    ℓ + (1 − 1ᵀℓ) M e/gap with gap = 1ᵀM e. Nothing is divided by an eigenvalue: T may be all but
    dependent.
    """

    basis: Basis
    lam: float
    saved: tuple[Array, float, Array] | None = None  # c, eᵀMe and offset of a loaded model

    @cached_property
    def shrink(self) -> Shrinkage:
        return Shrinkage(self.basis, self.lam)

    @cached_property
    def c(self) -> Array:
        """D TᵀM1: (r,)."""
        if self.saved is not None:
            return self.saved[0]
        return self.shrink(self.basis.o[None])[0]

    @cached_property
    def e(self) -> Tall:
        """(I − Ĥ)1: (n, 1)."""
        fitted = self.basis.factor.F @ (self.basis.V @ self.c)[:, None]
        return self.basis.ones.map(lambda one, f: one - f, fitted)

    @cached_property
    def square(self) -> float:
        """eᵀMe."""
        if self.saved is not None:
            return self.saved[1]
        return float(self.basis.sample.gram(self.e)[0, 0])

    @property
    def gap(self) -> float:
        """1ᵀMe, as a sum of terms that are not negative: the least of ‖1 − T c‖² + λ‖c‖²."""
        return max(self.square + self.lam * float(self.c @ self.c), _TINY)

    @cached_property
    def offset(self) -> Array:
        """The constant, eᵀMY/gap: (q,)."""
        if self.saved is not None:
            return self.saved[2]
        return self.basis.sample.gram(self.e, self.basis.Y)[0] / self.gap


@dataclass(frozen=True, eq=False)
class Ridge:
    """A basis with a penalty λ. ``precision`` is that of the products behind V2, which may be off
    by ``budget``, relative, because of rounding."""

    basis: Basis
    lam: float
    intercept: Intercept | None
    precision: str
    budget: float

    @property
    def sample(self) -> Sample:
        return self.basis.sample

    @property
    def D(self) -> Array:
        return 1 / (self.basis.E + self.lam)

    @property
    def rounded(self) -> float:
        """What V2 may be off by, relative, because it may be computed in one pass."""
        return self.budget if len(self.sample) > _FEW else 0.0

    @property
    def growth(self) -> float:
        """By how much an intercept magnifies rounding: 1/√gap, as the kernel can all but make the
        constant."""
        return 1.0 if self.intercept is None else max(1.0, self.intercept.gap**-0.5)

    @property
    def scale(self) -> float:
        """1/(Σw λ²), by which squared residuals are variances."""
        return 1 / self.sample.total / self.lam / self.lam

    @cached_property
    def shrink(self) -> Shrinkage:
        """(TᵀMT + λI)⁻¹."""
        return Shrinkage(self.basis, self.lam) if self.intercept is None else self.intercept.shrink

    @cached_property
    def wide(self) -> Tall:
        """[T e], or T without an intercept: (n, r + 1)."""
        if self.intercept is None:
            return self.basis.T
        return self.basis.T.beside(self.intercept.e)

    @cached_property
    def df(self) -> float:
        """Trace of the smoother."""
        lams = np.array([self.lam])
        return float(degrees_of_freedom(self.basis, lams, self.intercept is not None)[0])

    @property
    def offset(self) -> Array:
        """The intercept, or zeros: (q,)."""
        q = self.basis.Y.shape[1]
        return np.zeros(q) if self.intercept is None else self.intercept.offset

    @cached_property
    def coefficients(self) -> Array:
        """c = D TᵀM(Y − offset): (r, q)."""
        P = self.basis.P
        centred = P[:, :-1] - np.outer(P[:, -1], self.offset)
        return self.shrink((np.sqrt(self.basis.E)[:, None] * centred).T).T

    def residuals(self) -> Tall:
        """Y − fitted values at the training points: (n, q)."""
        fitted = self.basis.factor.F @ (self.basis.V @ self.coefficients)
        offset = self.offset
        return self.basis.Y.map(lambda y, f, c: y - c - f, fitted, small=(offset,))

    def leverages(self) -> Tall:
        """The smoother's diagonal, w_i/Σw (Σ_j T_ij² D_j + e_i²/gap): (n, 1)."""
        weights = self.sample.weights
        total = self.sample.total
        D = self.D[:, None]
        h = self.basis.T.map(lambda t, w, d: w * (t * t @ d) / total, weights, small=(D,))
        if self.intercept is None:
            return h
        share = total * self.intercept.gap
        return h.map(lambda h, e, w: h + w * e * e / share, self.intercept.e, weights)

    def mean(self, query: AtPoints) -> Array:
        """f̂(x) = a(x)ᵀc + offset with a(x) = Vᵀψ(x): (t, q)."""
        right = self.basis.V @ self.coefficients

        def block(some: AtPoints) -> Array:
            return self.offset + some.features(self.basis.factor, right).host()

        return query.in_blocks(self._width, block)

    def v3(self, query: AtPoints) -> Array:
        """V3(x) = Σ_j E_j a_j² D_j²/Σw, the variance of the sketched mean: (t,)."""

        def block(some: AtPoints) -> Array:
            return self.v3_from_features(self._features(some))

        return query.in_blocks(self._width, block)

    def v3_from_features(self, a: Array) -> Array:
        """The same from a(x) (t, r): with an intercept the square of T D a + (1 − 1ᵀℓ) e/gap."""
        Da = a * self.D
        square = Da**2 @ self.basis.E
        if self.intercept is not None:
            push = self._missing(a) / self.intercept.gap
            across = self.lam * (Da @ self.intercept.c)  # eᵀM T D a
            square = square + 2 * push * across + push**2 * self.intercept.square
        return np.maximum(square, 0) / self.sample.total

    def gp(self, query: AtPoints) -> Array:
        """c + λ Σ_j a_j² D_j with c = k(x,x) − aᵀa, the posterior variance of the model: (t,)."""
        return query.in_blocks(self._width, self._gp)

    def _gp(self, query: AtPoints) -> Array:
        a = self._features(query)
        gp = self._unexplained(query, a) + self.lam * (a**2 @ self.D)
        if self.intercept is not None:
            gp += self._missing(a) ** 2 * (self.lam / self.intercept.gap)
        return gp

    def bias2(self, query: AtPoints) -> Array:
        """c + λ² Σ_j a_j² D_j², the worst squared bias over the unit ball of the model: (t,)."""
        return query.in_blocks(self._width, self._bias2)

    def _bias2(self, query: AtPoints) -> Array:
        a = self._features(query)
        c = self._unexplained(query, a)
        if self.intercept is not None:
            a = a - np.outer(self._missing(a) / self.intercept.gap, self.basis.o)
        return c + (self.lam**2) * (a**2 @ self.D**2)

    def v2(self, query: AtPoints) -> Array:
        """V2(x) = (k_x − T C)ᵀM(k_x − T C)/(Σw λ²) with C = D TᵀMk_x: (t,). O(nm) a point.

        In one pass over the data where a bound on rounding allows it, in two elsewhere.
        """
        if not self.rounded:
            return self.residual_v2(query)
        v2 = np.empty(len(query))
        trial = np.arange(min(_TRIED, len(query)))
        rest = np.arange(len(trial), len(query))
        v2[trial], fine = self._checked_pass(query.some(trial))
        if 2 * fine.sum() >= len(trial):
            v2[rest], more = self._checked_pass(query.some(rest))
            again = np.concatenate([trial[~fine], rest[~more]])
        else:
            again = np.concatenate([trial[~fine], rest])
        if len(again):
            v2[again] = self.residual_v2(query.some(again))
        return v2

    def _checked_pass(self, query: AtPoints) -> tuple[Array, Array]:
        both = query.in_blocks(self._width, lambda some: np.column_stack(self.one_pass_v2(some)))
        v2, bound = both.T
        return v2, (bound <= self.budget * v2) & ~self._far(v2)

    def one_pass_v2(self, query: AtPoints) -> tuple[Array, Array]:
        """V2 from k_xᵀMk_x and TᵀMk_x, and a bound on its rounding: each (t,)."""
        precision = query.safe(self.precision)
        squares, products = query.moments(self.sample, self.wide, precision)
        B = products.host()
        b = B[:, : len(self.D)]
        sizes = np.sqrt(self.basis.E)
        total = np.zeros(len(B)) if self.intercept is None else B[:, -1]
        return self._v2_from_products(squares, b, total, sizes, precision)

    def v2_from_moments(
        self, squares: Array, b: Array, ones: Array, sizes: Array, precision: str
    ) -> tuple[Array, Array]:
        """The same from k_xᵀMk_x (t,), b = TᵀMk_x (t, r) and 1ᵀMk_x (t,).

        ``sizes`` (r,) are those of the vectors whose products with k_x are b: √E for T itself.
        """
        total = ones - b @ (self.D * self.basis.o)
        return self._v2_from_products(squares, b, total, sizes, precision)

    def _v2_from_products(
        self, squares: Array, b: Array, total: Array, sizes: Array, precision: str
    ) -> tuple[Array, Array]:
        """The squared residual s − Σ D b²(1 + λD), and with an intercept, for which ``total`` is
        eᵀMk_x = λ 1ᵀℓ, that of k_x − T C + (λ − total) e/gap."""
        C = b * self.D
        value = squares - (b * C) @ (1 + self.lam * self.D)
        size = np.sqrt((C**2) @ sizes**2)
        spread = (np.sqrt(squares) + size) ** 2
        if self.intercept is not None:
            push = (self.lam - total) / self.intercept.gap
            across = total - self.lam * (C @ self.intercept.c)  # eᵀM(k_x − T C)
            value = value + 2 * push * across + push**2 * self.intercept.square
            spread = (np.sqrt(squares) + size + abs(push)) ** 2
        bound = _SUMS * EPS[precision] * spread
        return np.maximum(value, 0) * self.scale, bound * self.scale

    def residual_v2(self, query: AtPoints) -> Array:
        """V2 as the squared norm of a residual, which loses nothing by rounding: (t,)."""
        precision = query.safe(self.precision)
        v2 = query.in_blocks(self._width, lambda some: self._two_passes(some, precision))
        far = self._far(v2)
        if far.any():
            v2[far] = query.some(np.flatnonzero(far)).in_blocks(
                self._width, lambda some: self._two_passes(some, "float64")
            )
        return v2

    def _far(self, v2: Array) -> Array:
        """Whether k_x is so small that its squares leave the range of the precision: (t,)."""
        limit = self.sample.backend.far[self.precision]
        usual = self.sample.scales.trace**2 / len(self.sample)
        return v2 < limit * usual * self.scale

    def _two_passes(self, query: AtPoints, precision: str) -> Array:
        B = query.products(self.sample, self.wide, precision).host()
        C = self.shrink(B[:, : len(self.D)], EPS[precision])
        if self.intercept is not None:
            push = (self.lam - B[:, -1]) / self.intercept.gap
            C = np.column_stack([C, -push])
        coefficients = self.sample.backend.tall(C)
        return query.residual_sqnorm(self.sample, self.wide, coefficients, precision) * self.scale

    def _features(self, query: AtPoints) -> Array:
        """a(x) = Vᵀψ(x), the features of the sketched model in its eigenbasis: (t, r)."""
        return query.features(self.basis.factor, self.basis.V).host()

    def _unexplained(self, query: AtPoints, a: Array) -> Array:
        return np.maximum(query.prior() - np.einsum("ij,ij->i", a, a), 0)

    def _missing(self, a: Array) -> Array:
        """1 − 1ᵀℓ for the weights ℓ of the sketched mean without intercept: (t,)."""
        return 1 - a @ (self.D * self.basis.o)

    @property
    def _width(self) -> int:
        return len(self.basis.V) + 1


def degrees_of_freedom(basis: Basis, lams: Array, fit_intercept: bool) -> Array:
    """Σ_j E_j/(E_j + λ) for each λ, plus 1ᵀM(I − Ĥ)²1/(1ᵀM(I − Ĥ)1) with an intercept."""
    E = basis.E
    kept = lams[:, None] / (E + lams[:, None])  # (l, r)
    df = len(E) - kept.sum(axis=1)
    if fit_intercept:
        rest = float(basis.rest[-1, -1])
        o2 = basis.P[:, -1] ** 2
        df += (rest + kept**2 @ o2) / np.maximum(rest + kept @ o2, _TINY)
    return df
