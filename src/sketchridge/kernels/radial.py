"""Kernels of the distance: k(x, z) = κ(s) with s = ‖x − z‖²/h²."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from sketchridge.kernels.base import (
    FORMS,
    PROGRAMS,
    DistanceKernel,
    check_finite_slope,
    shown,
    slope_program,
)

__all__ = ["Gaussian", "Matern32", "Matern52", "Radial"]

Array = np.ndarray
_LEAST = 1e-34  # kernel values below it leave the normal numbers of float32 when multiplied


@dataclass(frozen=True, eq=False, repr=False)
class Radial(DistanceKernel):
    """κ(s) with s = ‖(x − z)/h‖²: one object that works on every backend.

    Parameters
    ----------
    profile : callable
        ``profile(s, xp, *parameters)`` gives κ(s) for an array s ≥ 0 with the functions of the
        array module xp (NumPy or PyTorch). It may overwrite s. κ(0) must be 1.
    slope : callable
        ``slope(s, xp, *parameters)`` gives κ'(s), for learned bandwidths and derivatives.
    fused : function or str
        A ``@triton.jit`` function ``fused(s, P)`` of s and the parameters, or its import path
        "module:name", for Triton; without it Triton leaves the kernel to PyTorch.
    bandwidth : float, (d,) array or (d, k) array
        h, one for each feature, or a map M with distances ‖(x − z)M‖, in units of the features;
        None to be chosen by a fit.
    parameters : tuple of float
        Further numbers of the profile.
    name : str
        How it is shown; the profile's name unless given.
    center : (d,) array
        Set by a fit.
    labels : str
        What ``name``, as the function that makes the kernel, calls the parameters.

    Examples
    --------
    >>> def rational_quadratic(s, xp, shape):
    ...     return (1 + s / (2 * shape)) ** -shape
    >>> kernel = Radial(rational_quadratic, bandwidth=2.0, parameters=(1.0,))
    >>> kernel
    rational_quadratic(bandwidth=2.0, parameters=(1.0,))
    >>> kernel(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.667]])
    """

    profile: Callable[..., Any]
    slope: Callable[..., Any] | None = None
    fused: Any = None
    bandwidth: float | Array | None = None
    parameters: tuple[float, ...] = ()
    name: str = ""
    center: Array | None = field(default=None)
    labels: str | None = None

    geometry = "distance"

    def __repr__(self) -> str:
        name = self.name or self.profile.__name__
        if self.labels is None:
            return shown(name, bandwidth=self.bandwidth, parameters=self.parameters or None)
        given = zip(self.labels.split(), self.parameters, strict=True)
        return shown(name, bandwidth=self.bandwidth, **dict(given))

    def check(self, X: Array) -> None:
        at_zero = float(self.evaluate(np.zeros(1), np)[0])
        if not abs(at_zero - 1) <= 1e-12:
            raise ValueError(
                f"The profile of {self!r} is {at_zero:g} at s = 0, but a radial kernel is 1 there: "
                "divide it by that value; alpha takes care of the scale."
            )

    def evaluate(self, s: Any, xp: Any) -> Any:
        return self.profile(s, xp, *self.parameters)

    @property
    def forms(self) -> tuple[str, ...]:
        return () if self.slope is None else FORMS

    def slope_at(self, s: Any, xp: Any) -> Any:
        assert self.slope is not None
        return self.slope(s, xp, *self.parameters)

    def check_slopes(self) -> None:
        check_finite_slope(self, 0.0)

    def sloped(self) -> Radial:
        assert self.slope is not None
        return replace(self, profile=self.slope, slope=None, fused=slope_program(self.fused))

    @cached_property
    def reach(self) -> float:
        """The s beyond which k is below 1e-34, as far as powers of √2 tell, or infinity."""
        grid = 2.0 ** np.arange(0, 60, 0.5)
        with np.errstate(under="ignore"):
            small = np.abs(self.evaluate(grid.copy(), np)) < _LEAST
        return float(grid[max(int(np.argmax(small)) - 1, 0)]) if small.any() else np.inf


def gaussian(s: Any, xp: Any) -> Any:
    """exp(−s/2)."""
    s *= -0.5
    return xp.exp(s, out=s)


def gaussian_slope(s: Any, xp: Any) -> Any:
    """−exp(−s/2)/2."""
    return -0.5 * xp.exp(-0.5 * s)


def matern32(s: Any, xp: Any) -> Any:
    """(1 + r) exp(−r) with r = √(3s)."""
    s *= 3.0
    r = xp.sqrt(s)
    xp.exp(-r, out=s)
    r += 1
    s *= r
    return s


def matern32_slope(s: Any, xp: Any) -> Any:
    """−(3/2) exp(−r) with r = √(3s)."""
    return -1.5 * xp.exp(-xp.sqrt(3 * s))


def matern52(s: Any, xp: Any) -> Any:
    """(1 + r + r²/3) exp(−r) with r = √(5s)."""
    s *= 5.0
    r = xp.sqrt(s)
    s /= 3
    s += r
    s += 1
    s *= xp.exp(-r)
    return s


def matern52_slope(s: Any, xp: Any) -> Any:
    """−(5/6)(1 + r) exp(−r) with r = √(5s)."""
    r = xp.sqrt(5 * s)
    return -5 / 6 * (1 + r) * xp.exp(-r)


def Gaussian(bandwidth: float | Array | None = None) -> Radial:
    """exp(−‖x−z‖²/2h²).

    Parameters
    ----------
    bandwidth : float, (d,) array or (d, k) array
        h, one for each feature, or a map M with distances ‖(x − z)M‖, in units of the features;
        None to be chosen by a fit.

    Returns
    -------
    kernel : Radial
        A kernel, to be called or given to an estimator.

    Examples
    --------
    >>> Gaussian(bandwidth=0.5)
    Gaussian(bandwidth=0.5)
    >>> Gaussian(bandwidth=0.5)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.135]])
    >>> each = Gaussian(bandwidth=[0.5, 2.0])  # one for each feature
    >>> each(np.zeros((1, 2)), np.array([[0.5, 0.0], [0.0, 2.0]])).round(3)
    array([[0.607, 0.607]])
    """
    program = f"{PROGRAMS}:gaussian"
    return Radial(gaussian, gaussian_slope, program, bandwidth, name="Gaussian")


def Matern32(bandwidth: float | Array | None = None) -> Radial:
    """(1 + r) exp(−r) with r = √3‖x−z‖/h: for functions with one derivative.

    Parameters
    ----------
    bandwidth : float, (d,) array or (d, k) array
        h, one for each feature, or a map M with distances ‖(x − z)M‖, in units of the features;
        None to be chosen by a fit.

    Returns
    -------
    kernel : Radial
        A kernel, to be called or given to an estimator.

    Examples
    --------
    >>> Matern32(bandwidth=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.483]])
    """
    program = f"{PROGRAMS}:matern32"
    return Radial(matern32, matern32_slope, program, bandwidth, name="Matern32")


def Matern52(bandwidth: float | Array | None = None) -> Radial:
    """(1 + r + r²/3) exp(−r) with r = √5‖x−z‖/h: for functions with two derivatives.

    Parameters
    ----------
    bandwidth : float, (d,) array or (d, k) array
        h, one for each feature, or a map M with distances ‖(x − z)M‖, in units of the features;
        None to be chosen by a fit.

    Returns
    -------
    kernel : Radial
        A kernel, to be called or given to an estimator.

    Examples
    --------
    >>> Matern52(bandwidth=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.524]])
    """
    program = f"{PROGRAMS}:matern52"
    return Radial(matern52, matern52_slope, program, bandwidth, name="Matern52")
