"""Kernels k(x, z): what they are, one file a family, and the table of their names."""

from __future__ import annotations

from collections.abc import Callable

from sketchridge.kernels.base import FORMS, DistanceKernel, Kernel
from sketchridge.kernels.cube import CubicSpline, PeriodicSobolev
from sketchridge.kernels.custom import Custom, Precomputed, custom_kernel
from sketchridge.kernels.dot import DotProduct, Linear, Polynomial
from sketchridge.kernels.laplacian import Laplacian
from sketchridge.kernels.radial import Gaussian, Matern32, Matern52, Radial

__all__ = [
    "CANDIDATES",
    "FORMS",
    "KERNELS",
    "CubicSpline",
    "Custom",
    "DistanceKernel",
    "DotProduct",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern32",
    "Matern52",
    "PeriodicSobolev",
    "Polynomial",
    "Precomputed",
    "Radial",
    "as_kernel",
    "candidates",
]

# A name and what makes its kernel when it is called without arguments.
KERNELS: dict[str, Callable[[], Kernel]] = {
    "gaussian": Gaussian,
    "rbf": Gaussian,
    "laplacian": Laplacian,
    "matern32": Matern32,
    "matern52": Matern52,
    "polynomial": Polynomial,
    "linear": Linear,
    "cubic_spline": CubicSpline,
    "periodic_sobolev": PeriodicSobolev,
    "precomputed": Precomputed,
}


CANDIDATES = ("matern32", "matern52", "gaussian", "laplacian")  # of kernel="auto"


def candidates(spec: object) -> tuple[Kernel, ...]:
    """The kernels meant by a parameter: one, or for "auto" those among which the data choose.

    Parameters
    ----------
    spec : str, kernel object or callable
        As `kernel` of an estimator.

    Returns
    -------
    kernels : tuple of Kernel
        One, or several among which the data choose.

    Examples
    --------
    >>> candidates("auto")
    (Matern32(), Matern52(), Gaussian(), Laplacian())
    """
    if isinstance(spec, str) and spec == "auto":
        return tuple(as_kernel(name) for name in CANDIDATES)
    return (as_kernel(spec),)


def as_kernel(spec: object) -> Kernel:
    """The kernel meant by a name, a Kernel, a scikit-learn kernel object or a callable.

    Parameters
    ----------
    spec : str, kernel object or callable
        As `kernel` of an estimator.

    Returns
    -------
    kernel : Kernel
        What is meant.

    Examples
    --------
    >>> as_kernel("matern32")
    Matern32()
    >>> as_kernel("rbf")
    Gaussian()
    """
    if isinstance(spec, Kernel):
        return spec
    if isinstance(spec, str) and spec in KERNELS:
        return KERNELS[spec]()
    is_maker = isinstance(spec, type) or any(spec is make for make in KERNELS.values())
    if callable(spec) and not is_maker:
        return custom_kernel(spec)
    raise ValueError(
        f"Unknown kernel {spec!r}: give 'auto', one of {', '.join(map(repr, KERNELS))}, an object "
        "of sketchridge.kernels, a scikit-learn kernel object or a callable k(X, Z) -> matrix."
    )
