"""Kernels k(x, z): what they are, in the coordinates in which they are simplest to evaluate."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import bernoulli, binom, factorial

__all__ = [
    "KERNELS",
    "CubicSpline",
    "Custom",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern32",
    "Matern52",
    "PeriodicSobolev",
    "Polynomial",
    "ScaledKernel",
    "as_kernel",
]

Array = np.ndarray


class Kernel(ABC):
    """A positive semidefinite function of two points.

    ``geometry`` says what a backend must compute before ``profile`` finishes the job in place:
    ``"distance"`` is s = −‖u − v‖², ``"dot"`` is s = u·v, with u = ``coordinates(x)``; an
    ``"opaque"`` kernel has no such form and evaluates plain blocks with ``block(u, v)``.
    """

    geometry: ClassVar[str]
    metric: ClassVar[str | None] = None  # of the bandwidth, for kernels that have one

    def coordinates(self, X: Array) -> Array:
        """Map points to the coordinates in which the kernel has no parameters left."""
        return X

    def fitted(self, X: Array) -> Kernel:
        """Fix whatever depends on the training data (centre, number of features)."""
        return self

    def check(self, X: Array) -> None:
        """Raise ValueError if the kernel's parameters are wrong or it is not positive semidefinite on X."""
        return None

    def check_domain(self, X: Array) -> None:
        """Raise ValueError if the kernel is not defined at every row of X."""
        return None

    def profile(self, s: Any, xp: Any) -> None:
        """Turn s into k, in place, with the functions of the array module xp."""
        raise NotImplementedError

    def block(self, U: Array, V: Array) -> Array:
        """k between points given by their coordinates, for an opaque kernel."""
        raise NotImplementedError

    @abstractmethod
    def __call__(self, X: Array, Z: Array) -> Array:
        """k(X, Z), dense and accurate: the specification for every backend."""

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """k(x, x) for every row of X."""


class ScaledKernel(Kernel):
    """A function of x − z divided by a bandwidth, one for all features or one for each."""

    bandwidth: float | Array | None
    center: Array | None

    def with_bandwidth(self, bandwidth: float | Array) -> ScaledKernel:
        return replace(self, bandwidth=bandwidth)  # type: ignore[type-var]

    def fitted(self, X: Array) -> ScaledKernel:
        """Centre on the bulk of the training data: squared distances by matrix product need it."""
        return replace(self, center=np.median(X[:: 1 + len(X) // 20_000], axis=0))  # type: ignore[type-var]

    def coordinates(self, X: Array) -> Array:
        if self.bandwidth is None:
            raise ValueError(
                f"{type(self).__name__} has no bandwidth yet: construct it with bandwidth=..., or let an estimator choose one."
            )
        U = X if self.center is None else X - self.center
        return U * (self.unit / np.asarray(self.bandwidth, dtype=float))

    unit: ClassVar[float] = 1.0

    def diag(self, X: Array) -> Array:
        return np.ones(len(X))


class _Radial(ScaledKernel):
    """profile(−‖u − v‖²), which is below 1e-32 from ‖u − v‖² = ``reach`` on."""

    geometry = "distance"
    metric = "euclidean"
    reach: ClassVar[float]

    def __call__(self, X: Array, Z: Array) -> Array:
        s = -cdist(self.coordinates(X), self.coordinates(Z), "sqeuclidean")
        self.profile(s, np)
        return s


@dataclass(frozen=True, eq=False)
class Gaussian(_Radial):
    """exp(−‖x−z‖²/2h²)."""

    bandwidth: float | Array | None = None
    center: Array | None = field(default=None, repr=False)
    unit = 1 / np.sqrt(2.0)
    reach = 80.0

    def profile(self, s: Any, xp: Any) -> None:
        xp.exp(s, out=s)


@dataclass(frozen=True, eq=False)
class Matern32(_Radial):
    """(1 + r) exp(−r) with r = √3‖x−z‖/h."""

    bandwidth: float | Array | None = None
    center: Array | None = field(default=None, repr=False)
    unit = np.sqrt(3.0)
    reach = 80.0**2

    def profile(self, s: Any, xp: Any) -> None:
        s *= -1
        r = xp.sqrt(s)
        xp.exp(-r, out=s)
        r += 1
        s *= r


@dataclass(frozen=True, eq=False)
class Matern52(_Radial):
    """(1 + r + r²/3) exp(−r) with r = √5‖x−z‖/h."""

    bandwidth: float | Array | None = None
    center: Array | None = field(default=None, repr=False)
    unit = np.sqrt(5.0)
    reach = 80.0**2

    def profile(self, s: Any, xp: Any) -> None:
        s *= -1
        r = xp.sqrt(s)
        s /= 3
        s += r
        s += 1
        s *= xp.exp(-r)


@dataclass(frozen=True, eq=False)
class Laplacian(ScaledKernel):
    """exp(−‖x−z‖₁/h)."""

    bandwidth: float | Array | None = None
    center: Array | None = field(default=None, repr=False)
    geometry = "opaque"
    metric = "cityblock"

    def block(self, U: Array, V: Array) -> Array:
        return np.exp(-cdist(U, V, "cityblock"))

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.block(self.coordinates(X), self.coordinates(Z))


class _Dot(Kernel):
    """profile(u·v)."""

    geometry = "dot"

    def __call__(self, X: Array, Z: Array) -> Array:
        s = self.coordinates(X) @ self.coordinates(Z).T
        self.profile(s, np)
        return s

    def diag(self, X: Array) -> Array:
        U = self.coordinates(X)
        s = np.einsum("ij,ij->i", U, U)
        self.profile(s, np)
        return s


@dataclass(frozen=True)
class Linear(_Dot):
    """x·z."""

    def profile(self, s: Any, xp: Any) -> None:
        return None


@dataclass(frozen=True)
class Polynomial(_Dot):
    """(γ x·z + c₀)^p; γ = 1/d unless given."""

    degree: int = 3
    gamma: float | None = None
    coef0: float = 1.0

    def fitted(self, X: Array) -> Polynomial:
        return self if self.gamma is not None else replace(self, gamma=1.0 / X.shape[1])

    def check(self, X: Array) -> None:
        if not isinstance(self.degree, Integral) or self.degree < 1:
            raise ValueError(f"The degree of a polynomial kernel must be a whole number from 1 up, got {self.degree!r}.")
        if not 0 <= self.coef0 < np.inf or not (self.gamma is None or 0 < self.gamma < np.inf):
            raise ValueError(
                f"A polynomial kernel is positive semidefinite only for gamma > 0 and coef0 >= 0, got gamma={self.gamma} "
                f"and coef0={self.coef0}."
            )

    def coordinates(self, X: Array) -> Array:
        return X * np.sqrt(1.0 / X.shape[1] if self.gamma is None else self.gamma)

    def profile(self, s: Any, xp: Any) -> None:
        s += self.coef0
        base = s * 1
        for _ in range(self.degree - 1):
            s *= base


class _UnitCube(Kernel):
    """A product over features of one-dimensional kernels on [0, 1]."""

    geometry = "opaque"

    def check_domain(self, X: Array) -> None:
        low, high = X.min(), X.max()
        if low < 0 or high > 1:
            raise ValueError(
                f"The {type(self).__name__} kernel lives on [0, 1], but X has values from {low:g} to {high:g}: rescale it, "
                "for example with sklearn.preprocessing.MinMaxScaler(clip=True)."
            )

    @abstractmethod
    def feature(self, u: Array, v: Array) -> Array:
        """The one-dimensional kernel at u (t, 1) and v (1, n)."""

    def block(self, U: Array, V: Array) -> Array:
        out = self.feature(U[:, :1], V[:, :1].T)
        for j in range(1, U.shape[1]):
            out *= self.feature(U[:, j : j + 1], V[:, j : j + 1].T)
        return out

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.block(X, Z)

    def diag(self, X: Array) -> Array:
        return np.prod([self.feature(x[None], x[None])[0] for x in X.T], axis=0)


@dataclass(frozen=True)
class CubicSpline(_UnitCube):
    """1 + k₁(x)k₁(z) + k₂(x)k₂(z) − k₄(|x−z|), with the Bernoulli polynomials k_r = B_r/r!."""

    def feature(self, u: Array, v: Array) -> Array:
        out = _k2(u) * _k2(v)
        out += (u - 0.5) * (v - 0.5)
        out += 1
        out -= _k4(np.abs(u - v))
        return out


def _k2(x: Array) -> Array:
    return ((x - 0.5) ** 2 - 1 / 12) / 2


def _k4(x: Array) -> Array:
    q = (x - 0.5) ** 2
    return (q * (q - 0.5) + 7 / 240) / 24


@dataclass(frozen=True)
class PeriodicSobolev(_UnitCube):
    """1 + (−1)^(α−1) B_{2α}({x−z})/(2α)!, of order α."""

    order: int = 2

    def check(self, X: Array) -> None:
        if not isinstance(self.order, Integral) or self.order < 1:
            raise ValueError(f"The order of a periodic Sobolev kernel must be a whole number from 1 up, got {self.order!r}.")

    def feature(self, u: Array, v: Array) -> Array:
        t = np.mod(u - v, 1.0)
        degree = 2 * self.order
        out = np.zeros_like(t)
        for k, number in enumerate(bernoulli(degree)):  # B_p(t) = Σ binom(p, k) B_k t^(p−k), by Horner
            out *= t
            out += binom(degree, k) * number
        out *= (-1) ** (self.order - 1) / factorial(degree)
        out += 1
        return out


@dataclass(frozen=True)
class Custom(Kernel):
    """A callable k(X, Z) -> matrix, or a kernel object of sklearn.gaussian_process."""

    function: Callable[[Array, Array], Array]
    geometry = "opaque"

    def block(self, U: Array, V: Array) -> Array:
        G = np.asarray(self.function(U, V), dtype=float)
        if G.shape != (len(U), len(V)):
            raise ValueError(
                f"The kernel {self.function!r} returned an array of shape {G.shape} for {len(U)} and {len(V)} points; "
                f"it must return one of shape ({len(U)}, {len(V)})."
            )
        return G

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.block(X, Z)

    def diag(self, X: Array) -> Array:
        if _is_scikit_learn(self.function, "Kernel"):
            return np.array(self.function.diag(X), dtype=float)  # type: ignore[attr-defined]
        chunks = np.array_split(X, max(1, len(X) // 128))
        return np.concatenate([np.diagonal(self.block(c, c)) for c in chunks])

    def check(self, X: Array) -> None:
        """Test symmetry and positive semidefiniteness on up to 200 rows of X."""
        rows = X[np.linspace(0, len(X) - 1, min(len(X), 200)).astype(int)]
        G = self.block(rows, rows)
        if not np.isfinite(G).all():
            raise ValueError(f"The kernel {self.function!r} returned NaN or infinity on the data; it must be finite.")
        low, high = np.linalg.eigvalsh((G + G.T) / 2)[[0, -1]]
        asymmetry = np.abs(G - G.T).max()
        if low < -1e-8 * max(high, -low) or asymmetry > 1e-8 * np.abs(G).max():
            raise ValueError(
                f"The kernel {self.function!r} is not positive semidefinite: on {len(rows)} rows of the data its matrix has "
                f"eigenvalues from {low:.3g} to {high:.3g} and asymmetry {asymmetry:.3g}. Use a symmetric positive "
                "semidefinite kernel."
            )


KERNELS: dict[str, type[Kernel]] = {
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "matern32": Matern32,
    "matern52": Matern52,
    "polynomial": Polynomial,
    "linear": Linear,
    "cubic_spline": CubicSpline,
    "periodic_sobolev": PeriodicSobolev,
}


def as_kernel(spec: object) -> Kernel:
    """The kernel meant by a name, a Kernel, a scikit-learn kernel object or a callable."""
    if isinstance(spec, Kernel):
        return spec
    if isinstance(spec, str) and spec in KERNELS:
        return KERNELS[spec]()
    if _is_scikit_learn(spec, "Kernel"):
        parts = [spec, *spec.get_params(deep=True).values()]  # type: ignore[attr-defined]
        if any(_is_scikit_learn(part, "WhiteKernel") for part in parts):
            raise ValueError(
                f"The kernel {spec!r} contains a WhiteKernel, but noise is not part of the kernel here: remove it and set alpha "
                "to the noise level."
            )
        return Custom(spec)  # type: ignore[arg-type]
    if callable(spec) and not isinstance(spec, type):
        return Custom(spec)
    raise ValueError(
        f"Unknown kernel {spec!r}: give one of {', '.join(map(repr, KERNELS))}, an object of sketchridge.kernels, a "
        "scikit-learn kernel object or a callable k(X, Z) -> matrix."
    )


def _is_scikit_learn(spec: object, name: str) -> bool:
    """Whether spec is of a class of sklearn.gaussian_process.kernels, which whoever made one has loaded already."""
    module = sys.modules.get("sklearn.gaussian_process.kernels")
    return module is not None and isinstance(spec, getattr(module, name))
