"""Sketched kernel ridge regression for one λ = α/Σw: its mean, and its variances for unit noise.

The letters are those of `basis`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from sketchridge.backends import Tall
from sketchridge.basis import Basis, Intercept, Shrinkage, degrees_of_freedom
from sketchridge.factor import Sample
from sketchridge.precision import EPS, FULL, magnified
from sketchridge.query import Query, Share, Theta, share_at
from sketchridge.shares import SUMS, shares

__all__ = ["Ridge", "magnification"]

Array = np.ndarray
_FEW = 4096  # rows up to which two passes, and F V, cost nothing worth saving
_RANGE = 1e15  # coefficients whose squares float32 may not hold


@dataclass(frozen=True, eq=False)
class Ridge:
    """A basis with a penalty λ. ``precision`` is that of the products behind V2, which may be off
    by ``budget``, relative, because of rounding."""

    basis: Basis
    lam: float
    intercept: Intercept | None
    precision: str
    budget: float
    saved: Array | None = None  # coefficients of a model that was loaded

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
        """By how much an intercept magnifies rounding."""
        return magnification(None if self.intercept is None else self.intercept.slack)

    @property
    def scale(self) -> float:
        """1/(Σw λ²), by which squared residuals are variances."""
        return 1 / self.sample.total / self.lam / self.lam

    @cached_property
    def shrink(self) -> Shrinkage:
        """(TᵀMT + λI)⁻¹."""
        return Shrinkage(self.basis, self.lam) if self.intercept is None else self.intercept.shrink

    @cached_property
    def T(self) -> Tall:
        """F V: (n, r), formed for few rows, or where products with F, then V, would round much."""
        E = self.basis.E
        worse = (self.basis.mixed * np.sqrt(E) * self.D).max(initial=0.0)
        ratio = self.growth * self.basis.largest / self.lam
        lost = magnified(self.precision, self.sample.scales, ratio)
        fine = worse * lost <= self.budget
        return self.basis.product if fine and len(self.sample) > _FEW else self.basis.T

    @cached_property
    def wide(self) -> Tall:
        """[T e], or T without an intercept: (n, r + 1)."""
        return self.T if self.intercept is None else self.T.beside(self.intercept.e)

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
        if self.saved is not None:
            return self.saved
        P = self.basis.P
        centered = P[:, :-1] - np.outer(P[:, -1], self.offset)
        return self.shrink((np.sqrt(self.basis.E)[:, None] * centered).T).T

    def residuals(self) -> Tall:
        """Y − fitted values at the training points: (n, q)."""
        fitted = self.basis.factor.F @ (self.basis.V @ self.coefficients)
        offset = self.offset
        return self.basis.Y.map(lambda y, f, c: y - c - f, fitted, small=(offset,))

    def leverages(self) -> Tall:
        """The smoother's diagonal, w_i/Σw (Σ_j T_ij² D_j + e_i²/slack): (n, 1)."""
        weights = self.sample.weights
        total = self.sample.total
        D = self.D[:, None]
        h = self.basis.T.map(lambda t, w, d: w * (t * t @ d) / total, weights, small=(D,))
        if self.intercept is None:
            return h
        share = total * self.intercept.slack
        return h.map(lambda h, e, w: h + w * e * e / share, self.intercept.e, weights)

    def mean(self, query: Query) -> Array:
        """f̂(x) = a(x)ᵀc + offset with a(x) = Vᵀψ(x): (t, q)."""
        right = self.basis.V @ self.coefficients

        def block(some: Query) -> Array:
            fitted = some.features(self.basis.factor, right).host()
            return np.outer(some.constant, self.offset) + fitted

        return query.in_blocks(self._width, block)

    def v3(self, query: Query) -> Array:
        """V3(x) = Σ_j E_j a_j² D_j²/Σw, the variance of the sketched mean: (t,)."""

        def block(some: Query) -> Array:
            return self.v3_from_features(self.features(some), some.constant)

        return query.in_blocks(self._width, block)

    def v3_from_features(self, a: Array, one: Array | float = 1.0) -> Array:
        """The same from a(x) (t, r): with an intercept the square of T D a + (1 − 1ᵀℓ) e/slack, 1
        being what the functional makes of the constant."""
        Da = a * self.D
        square = Da**2 @ self.basis.E
        if self.intercept is not None:
            push = self.missing(a, one) / self.intercept.slack
            across = self.lam * (Da @ self.intercept.c)  # eᵀM T D a
            square = square + 2 * push * across + push**2 * self.intercept.square
        return np.maximum(square, 0) / self.sample.total

    def gp(self, query: Query) -> Array:
        """c + λ Σ_j a_j² D_j with c = k(x,x) − aᵀa, the posterior variance of the model: (t,)."""
        return query.in_blocks(self._width, self._gp)

    def _gp(self, query: Query) -> Array:
        a = self.features(query)
        gp = self._unexplained(query, a) + self.lam * (a**2 @ self.D)
        if self.intercept is not None:
            gp += self.missing(a, query.constant) ** 2 * (self.lam / self.intercept.slack)
        return gp

    def bias2(self, query: Query) -> Array:
        """c + λ² Σ_j a_j² D_j², the worst squared bias over the unit ball of the model: (t,)."""
        return query.in_blocks(self._width, self._bias2)

    def _bias2(self, query: Query) -> Array:
        a = self.features(query)
        c = self._unexplained(query, a)
        if self.intercept is not None:
            push = self.missing(a, query.constant) / self.intercept.slack
            a = a - np.outer(push, self.basis.o)
        return c + (self.lam**2) * (a**2 @ self.D**2)

    def v2(self, query: Query) -> Array:
        """V2(x) = (k_x − T C)ᵀM(k_x − T C)/(Σw λ²) with C = D TᵀMk_x: (t,). O(nm) per point."""
        return self.mixed(query, 1.0)

    def vbar(self, query: Query) -> Array:
        """V̄(x), from the average of the weights behind V2 and V3: (t,). O(nm) per point."""
        return self.mixed(query, 0.5)

    def vtheta(self, query: Query) -> Array:
        """V_θ(x), from θ z₂ + (1 − θ) z₃ with the θ of `shares`: (t,). O(nm) per point."""
        return self.mixed(query, self.shares)

    def theta_of(self, kind: str) -> Theta:
        """θ of "v2", "vbar" or "vtheta"."""
        return self.shares if kind == "vtheta" else {"v2": 1.0, "vbar": 0.5}[kind]

    def shares(self, query: Query) -> Array:
        """θ(x) of V_θ, by what the sketch misses of k(x, ·): (t,). O(nm) per point."""
        precision = query.safe(self.precision)

        def block(some: Query) -> Array:
            squares, products = some.moments(self.sample, self.T, precision)
            return self._shares(some, squares, products.host(), self.features(some), precision)

        return query.in_blocks(self._width, block, formed=True)

    def _shares(self, query: Query, squares: Array, b: Array, a: Array, precision: str) -> Array:
        return shares(
            query,
            self.basis,
            self.T,
            squares,
            b,
            a,
            lam=self.lam,
            sizes=self._sizes,
            precision=precision,
            error=0.0 if query.formed_once else self.rounded,
        )

    def mixed(self, query: Query, theta: Theta) -> Array:
        """‖θ z₂ + (1 − θ) z₃‖²/Σw for the weights z₂ and z₃ behind V2 and V3, 0 < θ ≤ 1: (t,).

        ``theta`` is a number, one for each point, or a function: `shares` is made of sums that are
        computed anyway. With z₂ = M^½(k_x − T D b)/λ, b = TᵀMk_x, and z₃ = M^½ T D a it is θ²/λ²
        times the square of k_x − T D(b − ϱλa), ϱ = (1 − θ)/θ: nothing cancels that does not cancel
        in V2. In one pass over the data where a bound on rounding allows it, in two elsewhere.
        """
        return self._by_passes(query, theta, bool(self.rounded) and not query.formed_once)

    def residual_form(self, query: Query, theta: Theta) -> Array:
        """The same as the squared norm of a residual, which loses nothing by rounding: (t,)."""
        return self._by_passes(query, theta, False)

    def from_moments(
        self,
        squares: Array,
        b: Array,
        a: Array | None,
        ones: Array,
        *,
        theta: float,
        sizes: Array,
        precision: str,
    ) -> tuple[Array, Array]:
        """The same from k_xᵀMk_x (t,), b = TᵀMk_x (t, r), a(x) (t, r) and 1ᵀMk_x (t,).

        ``sizes`` (r,) are those of the vectors whose products with k_x are b: √E for T itself. V2,
        with θ = 1, needs no a.
        """
        total = ones - b @ (self.D * self.basis.o)
        return self._squared(squares, b, a, total, 1.0, theta, sizes, precision)

    def _by_passes(self, query: Query, theta: Theta, careful: bool) -> Array:
        precision = query.safe(self.precision)
        known = []  # θ, or nothing where it is found on the way
        if not callable(theta) or theta != self.shares:
            known = [np.broadcast_to(share_at(theta, query), len(query))]

        block = partial(self._mixed, precision=precision, careful=careful)
        value = query.in_blocks(self._width, block, *known, formed=True)
        far = np.flatnonzero(self._far(value, precision) | ~np.isfinite(value))
        if len(far):
            its = [share[far] for share in known]
            again = partial(self._mixed, precision=FULL, careful=False)
            value[far] = query.some(far).in_blocks(self._width, again, *its, formed=True)
        return value

    def _mixed(
        self, query: Query, theta: Array | None = None, *, precision: str, careful: bool
    ) -> Array:
        """In one pass, and a second at the points where the first may have rounded too much; or in
        two, unless ``careful``."""
        if theta is not None and not careful:
            B = query.products(self.sample, self.wide, precision).host()
            return self._second_pass(query, theta, B, self._mixed_in(query, theta), precision)
        first = self._first_pass(query, theta, precision)
        value = first.value
        poor = ~(first.bound <= self.budget * value) | self._far(value, precision)
        again = np.flatnonzero(poor | (not careful))
        if len(again):
            a = None if first.a is None else first.a[again]
            some = query.some(again)
            value[again] = self._second_pass(some, first.theta[again], first.B[again], a, precision)
        return value

    def _first_pass(self, query: Query, theta: Array | None, precision: str) -> _FirstPass:
        """Where no θ is given it is that of `shares`."""
        squares, products = query.moments(self.sample, self.wide, precision)
        B = products.host()
        b = B[:, : len(self.D)]
        a = self.features(query) if theta is None else self._mixed_in(query, theta)
        if theta is None:
            assert a is not None
            theta = self._shares(query, squares, b, a, precision)
        total = np.zeros(len(B)) if self.intercept is None else B[:, -1]
        one = query.constant
        found = self._squared(squares, b, a, total, one, theta, self._sizes, precision)
        return _FirstPass(*found, B, a, theta)

    @property
    def _sizes(self) -> Array:
        """The sizes of the vectors whose products with k_x are TᵀMk_x: (r,)."""
        return np.sqrt(self.basis.E) if self.T.right is None else self.basis.mixed

    def _squared(
        self, squares: Array, b: Array, a: Array | None, total: Array, one: Array | float,
        theta: Share, sizes: Array, precision: str,
    ) -> tuple[Array, Array]:  # fmt: skip
        """The squared residual s − Σ C(2b − EC) of C = D(b − ϱλa), and with an intercept, for which
        ``total`` is eᵀMk_x, that of k_x − T C + push·e."""
        C = (b if a is None else b - self._beside(a, theta)) * self.D
        value = squares - np.einsum("ij,ij->i", C, 2 * b - C * self.basis.E)
        spread = np.sqrt(squares) + np.sqrt((C**2) @ sizes**2)
        if self.intercept is not None:
            push = self._push(total, a, one, theta)
            across = total - self.lam * (C @ self.intercept.c)  # eᵀM(k_x − T C)
            value = value + 2 * push * across + push**2 * self.intercept.square
            spread = spread + abs(push)
        bound = SUMS * EPS[precision] * spread**2
        scale = theta**2 * self.scale
        return np.maximum(value, 0) * scale, bound * scale

    def _far(self, value: Array, precision: str) -> Array:
        """Whether k_x is so small that its squares leave the range of the precision: (t,)."""
        limit = self.sample.backend.far[precision]
        usual = self.sample.scales.trace**2 / len(self.sample)
        return value < limit * usual * self.scale

    def _second_pass(
        self, query: Query, theta: Share, B: Array, a: Array | None, precision: str
    ) -> Array:
        C = self._fitting(B, a, query.constant, theta, EPS[precision])
        safe = precision if np.abs(C).max(initial=0.0) < _RANGE else FULL
        small = self.sample.backend.tall(C)
        squares = query.residual_sqnorm(self.sample, self.wide, small, safe)
        return squares * (theta**2 * self.scale)

    def fitting(self, query: Query, theta: Theta) -> Array:
        """C with which (k_x − [T e] C)θ/λ are the weights θ z₂ + (1 − θ) z₃, but for M^½, in
        float64: (t, r + 1)."""

        def block(some: Query, share: Array) -> Array:
            B = some.products(self.sample, self.wide, FULL).host()
            return self._fitting(B, self._mixed_in(some, share), some.constant, share, 0.0)

        share = np.broadcast_to(share_at(theta, query), len(query))
        return query.in_blocks(self._width, block, share, formed=True)

    def _fitting(self, B: Array, a: Array | None, one: Array, theta: Share, eps: float) -> Array:
        C = self.shrink(B[:, : len(self.D)], eps)
        if a is not None:
            C = C - self._beside(self.shrink(a, eps), theta)
        if self.intercept is None:
            return C
        return np.column_stack([C, -self._push(B[:, -1], a, one, theta)])

    def _beside(self, a: Array, theta: Share) -> Array:
        """ϱλa: (t, r)."""
        return (a.T * (_ratio(theta) * self.lam)).T

    def _push(self, total: Array, a: Array | None, one: Array | float, theta: Share) -> Array:
        """How far along e the residual is moved, so that the weights have the sum 1, or what the
        functional makes of the constant: (t,)."""
        assert self.intercept is not None
        missing = self.lam * one - total
        if a is not None:
            missing = missing + _ratio(theta) * self.lam * self.missing(a, one)
        return missing / self.intercept.slack

    def _mixed_in(self, query: Query, theta: Share) -> Array | None:
        return self.features(query) if np.max(theta, initial=0.0) < 1 else None

    def features(self, query: Query) -> Array:
        """a(x) = Vᵀψ(x), the features of the sketched model in its eigenbasis: (t, r)."""
        return query.features(self.basis.factor, self.basis.V).host()

    def _unexplained(self, query: Query, a: Array) -> Array:
        return np.maximum(query.prior() - np.einsum("ij,ij->i", a, a), 0)

    def missing(self, a: Array, one: Array | float) -> Array:
        """1 − 1ᵀℓ for the weights ℓ of the sketched mean without intercept: (t,)."""
        return one - a @ (self.D * self.basis.o)

    @property
    def _width(self) -> int:
        return max(len(self.basis.V) + 1, self.sample.backend.width_for(len(self.sample)))


@dataclass(frozen=True, eq=False)
class _FirstPass:
    """A variance, a bound on its rounding, and what they were made of: k_xᵀM[T e], a(x), θ(x)."""

    value: Array  # (t,)
    bound: Array  # (t,)
    B: Array  # (t, r + 1)
    a: Array | None  # (t, r)
    theta: Array  # (t,)


def magnification(slack: float | None) -> float:
    """By how much an intercept magnifies rounding: 1/√slack, as the kernel can all but make the
    constant; not at all where there is none."""
    return 1.0 if slack is None else max(1.0, slack**-0.5)


def _ratio(theta: Share) -> Share:
    """ϱ = (1 − θ)/θ, the share of z₃ for one of z₂."""
    return (1 - theta) / theta
