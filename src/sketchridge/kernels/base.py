"""What every kernel offers: coordinates in which it is simplest, and its values in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist

__all__ = [
    "FORMS",
    "PROGRAMS",
    "DistanceKernel",
    "Kernel",
    "check_finite_slope",
    "shown",
    "slope_program",
]

Array = np.ndarray
FORMS = ("isotropic", "ard", "full")  # of learned bandwidths, in order of simplicity
PROGRAMS = "sketchridge.backends.triton_profiles"  # where the kernels here have their functions


class Kernel(ABC):
    """A positive semidefinite function of two points.

    A backend never sees a point x, only u = ``coordinates(x)``. ``geometry`` says what it
    computes from two of them before ``evaluate`` finishes the job: ``"distance"`` is
    s = ‖u − v‖², ``"dot"`` is s = u·v; an ``"opaque"`` kernel has no such form and evaluates
    plain blocks with ``block(U, V)``.

    Examples
    --------
    >>> from sketchridge.kernels import Gaussian
    >>> Gaussian(bandwidth=1.0).diag(np.zeros((2, 1)))
    array([1., 1.])
    """

    geometry: ClassVar[str] = "opaque"
    metric: ClassVar[str | None] = None  # of the bandwidth, for kernels that have one
    fused: Any = None  # a Triton function of s, or its import path
    growth: float = 1.0  # what rounding in s is multiplied by in k, relative

    def coordinates(self, X: Array) -> Array:
        """A copy of the points, in the coordinates in which the kernel is evaluated: (n, k)."""
        return np.array(X, dtype=float)

    def training_coordinates(self, X: Array) -> Array:
        """The same for training points, which a precomputed kernel tells from others."""
        return self.coordinates(X)

    def training_rows(self, X: Array, rows: Array) -> Array:
        """What stands for some rows of the training points in ``training_coordinates``."""
        return X[rows]

    def fitted(self, X: Array) -> Kernel:
        """Fix whatever depends on the training data (center, scale, number of features)."""
        return self

    def check(self, X: Array) -> None:
        """Raise ValueError if the parameters are wrong or k is not positive semidefinite on X."""
        return None

    def check_domain(self, X: Array) -> None:
        """Raise ValueError if the kernel is not defined at every row of X."""
        return None

    @property
    def unit(self) -> float:
        """A power of two: what is evaluated is k/unit, whose values are about 1."""
        return 1.0

    @property
    def forms(self) -> tuple[str, ...]:
        """Of `FORMS`, those in which its bandwidths can be learned."""
        return ()

    def evaluate(self, s: Any, xp: Any) -> Any:
        """k/unit from s, with the functions of the array module xp; s may be overwritten."""
        raise NotImplementedError

    def block(self, U: Array, V: Array) -> Array:
        """k/unit between points given by their coordinates."""
        raise NotImplementedError

    def check_slopes(self) -> None:
        """Raise ValueError where k has no derivative in x, or none that is known."""
        raise ValueError(
            f"The derivative of {self!r} is not known, so it has no gradients and no marginal "
            "effects: use a kernel of sketchridge.kernels such as 'matern52' or 'gaussian', or "
            "Radial(profile, slope)."
        )

    def jacobian(self, d: int) -> Array:
        """∂u/∂x, the same at every x: (d, k)."""
        return np.eye(d)

    def sloped(self) -> Kernel:
        """κ' in place of κ, of the same s, for kernels that are functions κ(s)."""
        raise NotImplementedError

    def block_slope(self, U: Array, V: Array, j: int) -> Array:
        """∂k(u, v)/∂u_j over unit, for opaque kernels: (t, n)."""
        raise NotImplementedError

    @abstractmethod
    def diagonal(self, U: Array) -> Array:
        """k(x, x)/unit for points given by their coordinates: (n,)."""

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(X, Z), dense and accurate: the specification for every backend."""
        return self.unit * self.block(self.coordinates(X), self.coordinates(Z))

    def diag(self, X: Array) -> Array:
        """k(x, x) for every row of X: (n,).

        Parameters
        ----------
        X : (n, d) array
            The points.

        Returns
        -------
        values : (n,) array
            In units of the kernel.
        """
        return self.unit * self.diagonal(self.coordinates(X))


class DistanceKernel(Kernel):
    """κ(s) with κ(0) = 1 and s = ‖u − v‖² of the coordinates, or ‖u − v‖₁, as ``metric`` says.

    The coordinates are (x − center)/h, with one bandwidth h, one for each feature, or a map (d, k).

    >>> from sketchridge.kernels import Laplacian, Radial
    >>> Radial.metric, Laplacian.metric
    ('euclidean', 'cityblock')
    """

    metric: ClassVar[str] = "euclidean"
    name: str = ""
    bandwidth: float | Array | None
    center: Array | None

    def with_bandwidth(self, bandwidth: float | Array) -> DistanceKernel:
        """The same kernel with another bandwidth."""
        return replace(self, bandwidth=bandwidth)  # type: ignore[type-var]

    def fitted(self, X: Array) -> DistanceKernel:
        """Center on the bulk of the data: squared distances by matrix product need it."""
        center = np.median(X[:: 1 + len(X) // 20_000], axis=0)
        return replace(self, center=center)  # type: ignore[type-var]

    def coordinates(self, X: Array) -> Array:
        if self.bandwidth is None:
            raise ValueError(
                f"{self!r} has no bandwidth yet: construct it with bandwidth=..., or let an "
                "estimator choose one."
            )
        U = np.subtract(X, 0.0 if self.center is None else self.center, dtype=float)
        scale = np.asarray(self.bandwidth, dtype=float)
        if scale.ndim == 2:
            return U @ scale
        U /= scale
        return U

    def jacobian(self, d: int) -> Array:
        scale = np.asarray(self.bandwidth, dtype=float)
        return scale if scale.ndim == 2 else np.diag(np.broadcast_to(1 / scale, (d,)))

    def slope_at(self, s: Any, xp: Any) -> Any:
        """κ'(s), for bandwidths that are learned; s is left alone."""
        raise NotImplementedError

    def block(self, U: Array, V: Array) -> Array:
        metric = "sqeuclidean" if self.metric == "euclidean" else self.metric
        return self.evaluate(cdist(U, V, metric), np)

    def diagonal(self, U: Array) -> Array:
        return np.ones(len(U))


def shown(name: str, **parameters: Any) -> str:
    """A repr with the parameters that were given; arrays as lists, with all their digits."""
    given = {key: value for key, value in parameters.items() if value is not None}
    plain = {key: getattr(value, "tolist", lambda v=value: v)() for key, value in given.items()}
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in plain.items())})"


def check_finite_slope(kernel: Any, at: float) -> None:
    """Raise ValueError unless the kernel's profile has a slope, which is finite at s = ``at``."""
    kind = type(kernel).__name__
    if kernel.slope is None:
        raise ValueError(
            f"The derivative of {kernel!r} is not known, since its profile was given without a "
            f"slope: give {kind}(profile, slope) for gradients and marginal effects."
        )
    with np.errstate(all="ignore"):
        slope = float(kernel.sloped().evaluate(np.array([at]), np)[0])
    if not np.isfinite(slope):
        raise ValueError(
            f"The slope of {kernel!r} is {slope} at s = {at:g}, so the functions it makes have no "
            "derivative: use a smoother kernel such as 'matern32' or 'gaussian'."
        )


def slope_program(fused: Any) -> str | None:
    """The import path of the slope's Triton function, for the functions in ``PROGRAMS``."""
    is_ours = isinstance(fused, str) and fused.startswith(PROGRAMS)
    return f"{fused}_slope" if is_ours else None
