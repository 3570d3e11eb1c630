"""Kernels of the inner product: k(x, z) = κ(x·z)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from sketchridge.kernels.base import PROGRAMS, Kernel, check_finite_slope, shown, slope_program

__all__ = ["DotProduct", "Linear", "Polynomial"]

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class DotProduct(Kernel):
    """κ(γ x·z) with a power of two taken out, so that large and small data are alike.

    Parameters
    ----------
    profile : callable
        ``profile(s, xp, *parameters)`` gives κ for an array s with the functions of the array
        module xp (NumPy or PyTorch). It may overwrite s.
    slope : callable
        ``slope(s, xp, *parameters)`` gives κ'(s).
    fused : function or str
        A ``@triton.jit`` function ``fused(s, P)`` of s and the parameters, or its import path
        "module:name", for Triton; without it Triton leaves the kernel to PyTorch.
    gamma : float
        γ; 1/d unless given.
    parameters : tuple of float
        Further numbers of the profile.
    degree : int
        p where κ(c·s; p, c·coef0) = c^p κ(s; p, coef0) for the parameters (p, coef0), or κ(c·s)
        = c^p κ(s) without any, so that scales can be taken out; None where there is no such p.
    name : str
        How it is shown; the profile's name unless given.

    Examples
    --------
    >>> def exponential(s, xp):
    ...     return xp.exp(s)
    >>> kernel = DotProduct(exponential, gamma=0.5)
    >>> kernel(np.array([[1.0, 1.0]]), np.array([[1.0, -1.0], [2.0, 0.0]])).round(3)
    array([[1.   , 2.718]])
    """

    profile: Callable[..., Any]
    slope: Callable[..., Any] | None = None
    fused: Any = None
    gamma: float | None = None
    parameters: tuple[float, ...] = ()
    degree: int | None = None
    name: str = ""
    scale: float = 1.0  # a power of two by which coordinates are divided
    labels: str | None = None  # what ``name`` calls γ and the parameters where it makes the kernel

    geometry = "dot"

    def __repr__(self) -> str:
        name = self.name or self.profile.__name__
        if self.labels is None:
            return shown(name, gamma=self.gamma, parameters=self.parameters or None)
        given = zip(self.labels.split(), (self.gamma, *self.parameters), strict=False)
        return shown(name, **dict(given))

    def check(self, X: Array) -> None:
        gamma = self.gamma
        if gamma is not None and not (isinstance(gamma, Real) and 0 < gamma < np.inf):
            raise ValueError(f"The gamma of {self!r} must be a positive number, got {gamma!r}.")
        if self.degree is not None:
            _check_degree(self, self.degree)
        if self.degree is not None and len(self.parameters) > 1:
            _check_shift(self, self.parameters[1])

    def fitted(self, X: Array) -> DotProduct:
        """Fix γ, and the power of two that brings the largest ‖u‖² to about 1."""
        gamma = 1.0 / X.shape[1] if self.gamma is None else float(self.gamma)
        if self.degree is None:
            return replace(self, gamma=gamma)
        largest = float(max(X.max(initial=0.0), -X.min(initial=0.0))) * np.sqrt(gamma * X.shape[1])
        shift = float(self.parameters[1]) ** 0.5 if len(self.parameters) > 1 else 0.0
        size = max(largest, shift)
        if not 0 < size < np.inf:
            return replace(self, gamma=gamma)
        scale = 2.0 ** np.round(np.log2(size))
        fitted = replace(self, gamma=gamma, scale=float(scale))
        if not 0 < fitted.unit < np.inf:
            raise ValueError(
                f"The values of {self!r} between rows of X are beyond floating point (X has "
                f"entries up to {np.abs(X).max():.3g}): rescale X, for example with StandardScaler."
            )
        return fitted

    @property
    def unit(self) -> float:
        if self.degree is None:
            return 1.0
        with np.errstate(over="ignore", under="ignore"):
            return float(np.float64(self.scale) ** (2 * self.degree))

    @property
    def growth(self) -> float:  # type: ignore[override]
        return float(self.degree or 1)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The parameters that go with scaled coordinates."""
        if len(self.parameters) < 2 or self.degree is None:
            return self.parameters
        degree, coef0, *rest = self.parameters
        return (degree, coef0 / self.scale**2, *rest)

    def coordinates(self, X: Array) -> Array:
        gamma = 1.0 / X.shape[1] if self.gamma is None else self.gamma
        return np.array(X, dtype=float) / self.scale * np.sqrt(gamma)

    def jacobian(self, d: int) -> Array:
        gamma = 1.0 / d if self.gamma is None else self.gamma
        return np.eye(d) * (np.sqrt(gamma) / self.scale)

    def check_slopes(self) -> None:
        check_finite_slope(self, 1.0)

    def sloped(self) -> DotProduct:
        assert self.slope is not None
        return replace(self, profile=self.slope, slope=None, fused=slope_program(self.fused))

    def evaluate(self, s: Any, xp: Any) -> Any:
        return self.profile(s, xp, *self.numbers)

    def block(self, U: Array, V: Array) -> Array:
        return self.evaluate(U @ V.T, np)

    def diagonal(self, U: Array) -> Array:
        return self.evaluate(np.einsum("ij,ij->i", U, U), np)


def linear(s: Any, xp: Any) -> Any:
    """s itself."""
    return s


def linear_slope(s: Any, xp: Any) -> Any:
    """1."""
    return xp.ones_like(s)


def polynomial(s: Any, xp: Any, degree: int, coef0: float) -> Any:
    """(s + c₀)^p."""
    s += coef0
    base = s * 1
    for _ in range(degree - 1):
        s *= base
    return s


def polynomial_slope(s: Any, xp: Any, degree: int, coef0: float) -> Any:
    """p (s + c₀)^(p−1)."""
    return degree * (s + coef0) ** (degree - 1)


def Linear() -> DotProduct:
    """x·z.

    Returns
    -------
    kernel : DotProduct
        A kernel, to be called or given to an estimator.

    Examples
    --------
    >>> Linear()
    Linear()
    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """
    program = f"{PROGRAMS}:linear"
    return DotProduct(linear, linear_slope, program, 1.0, degree=1, name="Linear", labels="")


def Polynomial(degree: int = 3, gamma: float | None = None, coef0: float = 1.0) -> DotProduct:
    """(γ x·z + c₀)^p; γ = 1/d unless given.

    Parameters
    ----------
    degree : int
        p.
    gamma : float
        γ, per unit of x·z; 1/d unless given.
    coef0 : float
        c₀.

    Returns
    -------
    kernel : DotProduct
        A kernel, to be called or given to an estimator.

    Examples
    --------
    >>> Polynomial(degree=2)
    Polynomial(degree=2, coef0=1.0)
    >>> Polynomial(degree=2, gamma=1.0)(np.array([[1.0]]), np.array([[2.0]]))
    array([[9.]])
    """
    program = f"{PROGRAMS}:polynomial"
    parameters = (degree, coef0)
    made = DotProduct(polynomial, polynomial_slope, program, gamma, parameters, degree)
    return replace(made, name="Polynomial", labels="gamma degree coef0")


def _check_degree(kernel: DotProduct, degree: Any) -> None:
    if not isinstance(degree, Integral) or isinstance(degree, bool) or degree < 1:
        raise ValueError(
            f"The degree of {kernel!r} must be a whole number from 1 up, got {degree!r}."
        )


def _check_shift(kernel: DotProduct, coef0: Any) -> None:
    if not isinstance(coef0, Real) or not 0 <= float(coef0) < np.inf:
        raise ValueError(
            f"{kernel!r} is positive semidefinite only for a finite coef0 >= 0, got "
            f"coef0={coef0!r}."
        )
