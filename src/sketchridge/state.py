"""The fitted state: data, sketch and factor (State), then a penalty (Ridge), then means and variances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sketchridge.backends import NumpyTiles
from sketchridge.backends.base import Array, Backend, Product
from sketchridge.factor import Factor, factorize, spectrum
from sketchridge.kernels import Kernel
from sketchridge.sketches import Sketch

__all__ = ["Ridge", "State", "build", "degrees_of_freedom", "row_blocks"]

_BLOCK_BYTES = 2**26  # of the largest temporary array while points are predicted
_DIAGONAL = 1e-6  # rounding in HᵀH, relative to λ, below which it is taken for diag(E)


def build(backend: Backend, kernel: Kernel, X: np.ndarray, Y: np.ndarray, sketch: Sketch) -> State:
    """The state of the points X (n, d) with targets Y (n, q) under a sketch as it stands. O(nm² + cost of G Sᵀ)."""
    return State.of(backend, kernel, X, backend.asarray(Y), factorize(backend, kernel, X, sketch))


@dataclass(frozen=True, eq=False)
class State:
    """Everything that does not depend on λ."""

    backend: Backend
    kernel: Kernel
    X: np.ndarray  # (n, d)
    Y: Array  # (n, q)
    factor: Factor
    E: Array  # (r,)
    V: Array  # (m, r)

    @classmethod
    def of(cls, backend: Backend, kernel: Kernel, X: np.ndarray, Y: Array, factor: Factor) -> State:
        return cls(backend, kernel, X, Y, factor, *spectrum(backend, factor.gram))

    @property
    def xp(self) -> Any:
        return self.backend.xp

    @cached_property
    def H(self) -> Array:
        """F V/√n, with HᵀH = diag(E) up to rounding: (n, r), or a Product.

        Its columns are as small as E says, and so is the rounding in products with them: the error of V2 is smaller by √(E₁/λ)
        than with F, whose columns are all alike.
        """
        return self.backend.tall(self.factor.F, self.V / np.sqrt(len(self.X)))

    @cached_property
    def M(self) -> Array:
        """HᵀH itself, accurate in every entry relative to its row and column: (r, r)."""
        return self.backend.gram(self.H)

    @cached_property
    def P(self) -> Array:
        """E^(−1/2) Hᵀ[Y 1], the targets and the constant in the orthonormal basis H E^(−1/2): (r, q + 1)."""
        return self.backend.gram(self.H, self._targets) / self.xp.sqrt(self.E)[:, None]

    @cached_property
    def rest(self) -> Array:
        """The Gram matrix of what that basis leaves of [Y 1], from what it leaves: (q + 1, q + 1)."""
        left = self._targets - self.backend.product(self.H, self.P / self.xp.sqrt(self.E)[:, None])
        return left.T @ left

    @property
    def _targets(self) -> Array:
        return self.xp.concat([self.Y, self.xp.ones_like(self.Y[:, :1])], axis=1)

    @cached_property
    def trace(self) -> float:
        """tr K."""
        return float(self.kernel.diag(self.X).mean())

    @property
    def sketch(self) -> Sketch:
        return self.factor.sketch

    @property
    def tau(self) -> float:
        """τ = tr K − tr K̂, not below 0."""
        return max(self.trace - float(self.factor.squares.sum()), 0.0)

    @cached_property
    def spread(self) -> float:
        """The largest ‖u‖² in the kernel's coordinates, by which rounding grows in squared distances; 0 for other kernels."""
        return self.backend.spread(self.kernel, self.X) if self.kernel.geometry == "distance" else 0.0

    @property
    def largest(self) -> float:
        """E₁, or 1 where the kernel vanishes on the data."""
        return float(self.E[0]) if len(self.E) else 1.0

    def extended(self, X: np.ndarray, Y: np.ndarray) -> State:
        """The state with rows appended; the kernel and the sketch's entries stay as they were."""
        X, Y = np.concatenate([self.X, X]), self.xp.concat([self.Y, self.backend.asarray(Y)])
        return State.of(self.backend, self.kernel, X, Y, self.factor.extended(self.backend, self.kernel, X))

    def grown(self, size: int) -> State:
        """The state with a sketch of ``size`` rows, or fewer where the numerical rank runs out."""
        factor = self.factor.grown(self.backend, self.kernel, self.X, size)
        return State.of(self.backend, self.kernel, self.X, self.Y, factor)

    def __deepcopy__(self, memo: dict[int, Any]) -> State:
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: NumPy arrays, whatever the device, so that a model can be used where there is none."""
        if isinstance(self.E, np.ndarray):
            return self.__dict__
        host = {name: self.backend.to_numpy(value) for name, value in vars(self.factor).items() if isinstance(value, type(self.E))}
        Y, E, V = (self.backend.to_numpy(a) for a in (self.Y, self.E, self.V))
        return State(NumpyTiles(), self.kernel, self.X, Y, replace(self.factor, **host), E, V).__dict__  # type: ignore[type-var]

    def features(self, X_new: np.ndarray) -> Array:
        """φ(x)/√n = Vᵀψ(x), the features of the sketched model in its eigenbasis: (t, r)."""
        return self.factor.features(self.backend, self.kernel, self.X, X_new) @ self.V


@dataclass(frozen=True, eq=False)
class Ridge:
    """A state with a penalty λ: its mean and, for unit noise variance, its variances.

    D is 1/(E + λ). With an intercept the weights w of a prediction become w' = w + (1 − 1ᵀw)u, with
    u = (I − Ĥ)1/(1ᵀ(I − Ĥ)1) for the smoother Ĥ = H D Hᵀ.
    """

    state: State
    lam: float
    fit_intercept: bool
    backend: Backend  # of products with k(X_new, X), which may be less precise than the state's

    def __deepcopy__(self, memo: dict[int, Any]) -> Ridge:
        return self

    def __getstate__(self) -> dict[str, Any]:
        if isinstance(self.state.E, np.ndarray):
            return self.__dict__
        return {"state": self.state, "lam": self.lam, "fit_intercept": self.fit_intercept, "backend": NumpyTiles()}

    @cached_property
    def D(self) -> Array:
        return 1 / (self.state.E + self.lam)

    @cached_property
    def _definite(self) -> Any:
        state = self.state
        return state.backend.factor_definite(state.M + state.backend.asarray(self.lam * np.eye(len(state.E))))

    def shrink(self, B: Array, eps: float = 0.0) -> Array:
        """(HᵀH + λI)⁻¹B: (r, q). It is diag(D) B but for rounding in H, of about 8√r·ε·E₁: small, or drowned by B's own ``eps``."""
        state, rounding = self.state, 8 * np.sqrt(len(B)) * np.finfo(float).eps
        if isinstance(state.H, Product) or rounding <= max(_DIAGONAL * self.lam / state.largest, eps):
            return self.D[:, None] * B
        return state.backend.solve_definite(self._definite, B)

    @cached_property
    def df(self) -> float:
        """Trace of the smoother."""
        return float(degrees_of_freedom(self.state, np.array([self.lam]), self.fit_intercept)[0])

    @cached_property
    def offset(self) -> Array:
        """The intercept uᵀY, or zeros: (q,)."""
        q = self.state.Y.shape[1]
        if not self.fit_intercept:
            return self.state.backend.zeros(q)
        P, rest = self.state.P, self.state.rest
        return ((self.lam * self.D * P[:, -1]) @ P[:, :q] + rest[-1, :q]) / self.constant_gap

    @cached_property
    def coefficients(self) -> Array:
        """c = D Hᵀ(Y − offset): (r, q)."""
        P = self.state.P
        return self.shrink(self.state.xp.sqrt(self.state.E)[:, None] * (P[:, :-1] - P[:, -1:] * self.offset))

    @cached_property
    def constant_gap(self) -> float:
        """1ᵀ(I − Ĥ)1, as a sum of terms that are not negative."""
        return float(self.state.rest[-1, -1] + self.lam * (self.D @ self.state.P[:, -1] ** 2))

    @cached_property
    def rest_of_ones(self) -> Array:
        """(I − Ĥ)1: (n,)."""
        state = self.state
        return 1 - state.backend.product(state.H, self.shrink((state.xp.sqrt(state.E) * state.P[:, -1])[:, None]))[:, 0]

    @cached_property
    def unit_weights(self) -> Array:
        """u, whose sum is 1 whatever rounding did to (I − Ĥ)1: (n,)."""
        return self.rest_of_ones / self.rest_of_ones.sum()

    def residuals(self) -> Array:
        """Y − fitted values at the training points: (n, q)."""
        return self.state.Y - self.offset - self.state.backend.product(self.state.H, self.coefficients)

    def leverages(self) -> Array:
        """The smoother's diagonal, Σ_j H_ij² D_j: (n,)."""
        h = self.state.backend.leverages(self.state.H, self.D[:, None])[:, 0]
        return h + self.constant_gap * self.unit_weights**2 if self.fit_intercept else h

    def mean(self, X_new: np.ndarray) -> np.ndarray:
        """f̂(x) = φ(x)ᵀ D Hᵀy/n: (t, q)."""
        scale = np.sqrt(len(self.state.X))
        return self._in_blocks(lambda X: self.offset + self.state.features(X) @ (self.coefficients / scale), X_new)

    def v2(self, X_new: np.ndarray) -> np.ndarray:
        """V2(x)/σ² = ‖k_x − H D Hᵀk_x‖²/(nλ)², the squared norm of a residual: (t,). O(nm) a point."""
        v2 = self._in_blocks(lambda X: self._v2(self.backend, X), X_new)
        far = v2 * self.lam**2 < self.backend.far / len(self.state.X) * self.state.trace**2
        if self.backend is not self.state.backend and far.any():
            v2[far] = self._in_blocks(lambda X: self._v2(self.state.backend, X), X_new[far])
        return v2

    def _v2(self, backend: Backend, X_new: np.ndarray) -> Array:
        state, n, H = self.state, len(self.state.X), self.state.H
        C = self.shrink(backend.matmul(state.kernel, X_new, state.X, H).T, backend.eps).T  # (t, r)
        if self.fit_intercept:
            total = backend.matmul(state.kernel, X_new, state.X, self.rest_of_ones[:, None])  # nλ 1ᵀw, as λ1ᵀ(K̂+λI)⁻¹k_x
            H, C = backend.beside(H, self.unit_weights), backend.beside(C, total[:, 0] - n * self.lam)
        return backend.residual_sqnorm(state.kernel, X_new, state.X, H, C) / (n * self.lam) ** 2

    def v3(self, X_new: np.ndarray) -> np.ndarray:
        """V3(x)/σ² = Σ_j E_j φ_j² D_j²/n², the variance of the sketched mean: (t,)."""
        return self._in_blocks(lambda X: self._v3(self.state.features(X)), X_new)

    def _v3(self, a: Array) -> Array:
        state, n = self.state, len(self.state.X)
        if not self.fit_intercept:
            return a**2 @ (state.E * self.D**2) / n
        o, missing = self._constant(a)
        along = self.lam * self.D * np.sqrt(n) * o / (state.E * self.constant_gap)
        inside = self.D * a / np.sqrt(n) + missing[:, None] * along
        return inside**2 @ state.E + missing**2 * state.rest[-1, -1] / self.constant_gap**2

    def gp(self, X_new: np.ndarray) -> np.ndarray:
        """c + λ Σ_j φ_j² D_j/n with c = k(x,x) − φᵀφ/n, the posterior variance of the sketched model: (t,)."""
        return self._in_blocks(self._gp, X_new)

    def _gp(self, X_new: np.ndarray) -> Array:
        a = self.state.features(X_new)
        gp = self._unexplained(X_new, a) + self.lam * (a**2 @ self.D)
        if self.fit_intercept:
            gp += self._constant(a)[1] ** 2 * (len(self.state.X) * self.lam / self.constant_gap)
        return gp

    def bias2(self, X_new: np.ndarray) -> np.ndarray:
        """c + λ² Σ_j φ_j² D_j²/n, the worst squared bias over the unit ball of the sketched model: (t,)."""
        return self._in_blocks(self._bias2, X_new)

    def _bias2(self, X_new: np.ndarray) -> Array:
        a = self.state.features(X_new)
        c = self._unexplained(X_new, a)
        if self.fit_intercept:
            o, missing = self._constant(a)
            a = a - missing[:, None] * (len(self.state.X) / self.constant_gap * o)
        return c + self.lam**2 * (a**2 @ self.D**2)

    def _unexplained(self, X_new: np.ndarray, a: Array) -> Array:
        xp = self.state.xp
        return xp.clip(self.state.backend.asarray(self.state.kernel.diag(X_new)) - xp.einsum("ij,ij->i", a, a), min=0)

    def _constant(self, a: Array) -> tuple[Array, Array]:
        """o = Hᵀ1/√n (r,) and 1 − 1ᵀw for the weights w of the sketched mean (t,)."""
        o = self.state.xp.sqrt(self.state.E / len(self.state.X)) * self.state.P[:, -1]
        return o, 1 - a @ (self.D * o)

    def _in_blocks(self, function: Callable[[np.ndarray], Array], X_new: np.ndarray) -> np.ndarray:
        to_numpy = self.state.backend.to_numpy
        with self.state.backend.alone():
            return np.concatenate([to_numpy(function(X_new[rows])) for rows in row_blocks(len(X_new), len(self.state.V) + 1)])


def degrees_of_freedom(state: State, lams: np.ndarray, fit_intercept: bool) -> np.ndarray:
    """Σ_j E_j/(E_j + λ) for each λ, plus 1ᵀ(I − Ĥ)²1/(1ᵀ(I − Ĥ)1) with an intercept."""
    E = state.backend.to_numpy(state.E)
    shrink = lams[:, None] / (E + lams[:, None])  # (l, r)
    df = len(E) - shrink.sum(axis=1)
    if fit_intercept:
        rest, o2 = float(state.rest[-1, -1]), state.backend.to_numpy(state.P[:, -1] ** 2)
        df += (rest + shrink**2 @ o2) / (rest + shrink @ o2)
    return df


def row_blocks(n: int, width: int) -> list[slice]:
    """Slices of n rows so short that an array of that width is small."""
    size = max(1, _BLOCK_BYTES // (8 * max(width, 1)))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]
