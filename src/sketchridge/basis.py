"""A factor with targets in the eigenbasis of the sketched model: all that is there before λ, and
what the smoother of one λ does to vectors.

Rows have weights w; M = diag(w)/Σw, K = M^½ G M^½. T = F V are the features of the training points
in the eigenbasis, with TᵀMT = diag(E), and D = 1/(E + λ).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sketchridge.backends import Tall
from sketchridge.factor import Factor, Sample, spectrum
from sketchridge.precision import EPS, FULL
from sketchridge.rows import Repeats

__all__ = ["Basis", "Intercept", "Shrinkage", "basis_of", "degrees_of_freedom"]

Array = np.ndarray
_DIAGONAL = 1e-6  # rounding in TᵀMT, relative to λ, below which it is taken for diag(E)
_EPS = EPS[FULL]
_TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Basis:
    """Everything that does not depend on λ."""

    factor: Factor
    Y: Tall  # (n, q)
    found: tuple[Array, Array] | None = None  # E and V, where they are known
    saved: tuple[Array, Array] | None = None  # P and rest of a model that was loaded
    repeats: Repeats | None = None  # what Y does not show of rows that repeat x with another y

    @property
    def sample(self) -> Sample:
        return self.factor.sample

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """E (r,) and V (m, r). O(nm² + m³)."""
        return spectrum(self.sample.backend, self.factor.gram) if self.found is None else self.found

    @property
    def E(self) -> Array:
        """(r,), in descending order."""
        return self.spectrum[0]

    @property
    def V(self) -> Array:
        """(m, r)."""
        return self.spectrum[1]

    @cached_property
    def T(self) -> Tall:
        """F V, formed: (n, r).

        Its columns are as small as E says, and so is the rounding in products with them: the error
        of V2 is smaller by √(E₁/λ) than with F, whose columns are all alike.
        """
        worth = self.sample.backend.worth_holding(*self.product.shape)
        return self.product.held() if worth else self.product

    @cached_property
    def product(self) -> Tall:
        """F V, not formed: (n, r)."""
        return self.factor.F @ self.V

    @cached_property
    def mixed(self) -> Array:
        """√Σ_j V_ji²‖F_j‖², the sizes of what is added up in TᵀMk where T is not formed: (r,).

        About √E where columns of F fall off as the eigenvalues do, as those of a Cholesky factor.
        """
        return np.sqrt(np.einsum("j,ji,ji->i", self.factor.explained, self.V, self.V))

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

    def unexplained(self) -> Array:
        """c_i = k(x_i, x_i) − k̂(x_i, x_i) at the training rows: (n,)."""
        squares = self.factor.F.map(lambda f: (f * f).sum(axis=1)[:, None])
        left = self.sample.diag.map(lambda d, s: (d - s) * (d > s), squares)
        return left.host()[:, 0]

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
        return basis_of(self.factor.grown(size), self.Y, self.repeats)


def basis_of(factor: Factor, Y: Tall, repeats: Repeats | None = None) -> Basis:
    """The eigenbasis of a factor, with targets Y (n, q). O(m³)."""
    return Basis(factor, Y, spectrum(factor.sample.backend, factor.gram), repeats=repeats)


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
    """An unpenalized constant fitted jointly.

    With the smoother Ĥ = T D TᵀM and e = (I − Ĥ)1 = 1 − T c, the weights ℓ of a prediction become
    ℓ + (1 − 1ᵀℓ) M e/slack with slack = 1ᵀM e. Nothing is divided by an eigenvalue: T may
    be all but dependent.
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
    def slack(self) -> float:
        """1ᵀMe, as a sum of terms that are not negative: the least of ‖1 − T c‖² + λ‖c‖²."""
        return max(self.square + self.lam * float(self.c @ self.c), _TINY)

    @cached_property
    def offset(self) -> Array:
        """The constant, eᵀMY/slack: (q,)."""
        if self.saved is not None:
            return self.saved[2]
        return self.basis.sample.gram(self.e, self.basis.Y)[0] / self.slack


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
