"""Spline kernels on the unit cube: products over features of kernels on [0, 1]."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from scipy.special import bernoulli, binom, factorial

from sketchridge.kernels.base import Kernel

__all__ = ["CubicSpline", "PeriodicSobolev"]

Array = np.ndarray
_HIGHEST = 15  # from it on k is 1 + 2 cos(2π(x−z))/(2π)^2α to rounding, which is 1


class _UnitCube(Kernel):
    """A product over features of one-dimensional kernels on [0, 1]."""

    def check_domain(self, X: Array) -> None:
        low, high = X.min(initial=0.0), X.max(initial=1.0)
        if low < 0 or high > 1:
            raise ValueError(
                f"The {type(self).__name__} kernel lives on [0, 1], but X has values from {low:g} "
                f"to {high:g}: rescale it, for example with "
                "sklearn.preprocessing.MinMaxScaler(clip=True)."
            )

    @abstractmethod
    def feature(self, u: Array, v: Array) -> Array:
        """The one-dimensional kernel at u (t, 1) and v (1, n)."""

    @abstractmethod
    def feature_slope(self, u: Array, v: Array) -> Array:
        """Its derivative in u."""

    def check_slopes(self) -> None:
        return None

    def block_slope(self, U: Array, V: Array, j: int) -> Array:
        out = self.feature_slope(U[:, j : j + 1], V[:, j : j + 1].T)
        for i in range(U.shape[1]):
            if i != j:
                out *= self.feature(U[:, i : i + 1], V[:, i : i + 1].T)
        return out

    def block(self, U: Array, V: Array) -> Array:
        out = self.feature(U[:, :1], V[:, :1].T)
        for j in range(1, U.shape[1]):
            out *= self.feature(U[:, j : j + 1], V[:, j : j + 1].T)
        return out

    def diagonal(self, U: Array) -> Array:
        return np.prod([self.feature(u[None], u[None])[0] for u in U.T], axis=0)


@dataclass(frozen=True)
class CubicSpline(_UnitCube):
    """1 + k₁(x)k₁(z) + k₂(x)k₂(z) − k₄(|x−z|), with the Bernoulli polynomials k_r = B_r/r!.

    >>> CubicSpline()(np.array([[0.0]]), np.array([[0.0], [0.5], [1.0]])).round(3)
    array([[1.258, 0.995, 0.758]])
    """

    def feature(self, u: Array, v: Array) -> Array:
        out = _k2(u) * _k2(v)
        out += (u - 0.5) * (v - 0.5)
        out += 1
        out -= _k4(np.abs(u - v))
        return out

    def feature_slope(self, u: Array, v: Array) -> Array:
        out = (u - 0.5) * _k2(v)
        out += v - 0.5
        out -= np.sign(u - v) * _k3(np.abs(u - v))
        return out


def _k2(x: Array) -> Array:
    return ((x - 0.5) ** 2 - 1 / 12) / 2


def _k3(x: Array) -> Array:
    return x * (x - 0.5) * (x - 1) / 6


def _k4(x: Array) -> Array:
    q = (x - 0.5) ** 2
    return (q * (q - 0.5) + 7 / 240) / 24


@dataclass(frozen=True)
class PeriodicSobolev(_UnitCube):
    """1 + (−1)^(α−1) B_{2α}({x−z})/(2α)!, of order α.

    Parameters
    ----------
    order : int
        The order α of the Sobolev space.

    Examples
    --------
    >>> PeriodicSobolev(order=1)(np.array([[0.0]]), np.array([[0.0], [0.5]])).round(3)
    array([[1.083, 0.958]])
    """

    order: int = 2

    def check(self, X: Array) -> None:
        whole = isinstance(self.order, Integral) and not isinstance(self.order, bool)
        if not whole or not 1 <= self.order <= _HIGHEST:
            raise ValueError(
                "The order of a periodic Sobolev kernel must be a whole number from 1 to "
                f"{_HIGHEST} (beyond it the kernel is constant to rounding), got {self.order!r}."
            )

    def check_slopes(self) -> None:
        if self.order == 1:
            raise ValueError(
                "PeriodicSobolev(order=1) has no derivative where a feature coincides with that of "
                "a training row, so it has no gradients and no marginal effects: give order=2 or "
                "more."
            )

    def feature(self, u: Array, v: Array) -> Array:
        self.check(u)
        return 1 + self._bernoulli(u - v, 2 * self.order)

    def feature_slope(self, u: Array, v: Array) -> Array:
        return self._bernoulli(u - v, 2 * self.order - 1)

    def _bernoulli(self, t: Array, degree: int) -> Array:
        """(−1)^(α−1) B_p({t})/p!, with B_p(t) = Σ_k binom(p, k) B_k t^(p−k)."""
        t = np.mod(t, 1.0)
        out = np.zeros_like(t)
        for k, number in enumerate(bernoulli(degree)):
            out *= t
            out += binom(degree, k) * number
        out *= (-1) ** (self.order - 1) / factorial(degree)
        return out
