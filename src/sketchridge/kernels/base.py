"""What every kernel offers: coordinates in which it is simplest, and its values in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

__all__ = ["Kernel", "ScaledKernel", "shown"]

Array = np.ndarray


class Kernel(ABC):
    """A positive semidefinite function of two points.

    A backend never sees a point x, only u = ``coordinates(x)``. ``geometry`` says what it
    computes from two of them before ``evaluate`` finishes the job: ``"distance"`` is
    s = ‖u − v‖², ``"dot"`` is s = u·v; an ``"opaque"`` kernel has no such form and evaluates
    plain blocks with ``block(U, V)``.
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
        """Fix whatever depends on the training data (centre, scale, number of features)."""
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

    def evaluate(self, s: Any, xp: Any) -> Any:
        """k/unit from s, with the functions of the array module xp; s may be overwritten."""
        raise NotImplementedError

    def block(self, U: Array, V: Array) -> Array:
        """k/unit between points given by their coordinates."""
        raise NotImplementedError

    @abstractmethod
    def diagonal(self, U: Array) -> Array:
        """k(x, x)/unit for points given by their coordinates: (n,)."""

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(X, Z), dense and accurate: the specification for every backend."""
        return self.unit * self.block(self.coordinates(X), self.coordinates(Z))

    def diag(self, X: Array) -> Array:
        """k(x, x) for every row of X: (n,)."""
        return self.unit * self.diagonal(self.coordinates(X))


class ScaledKernel(Kernel):
    """A function of (x − z)/h, with one bandwidth h, one for each feature, or a map (d, k)."""

    bandwidth: float | Array | None
    center: Array | None

    def with_bandwidth(self, bandwidth: float | Array) -> ScaledKernel:
        """The same kernel with another bandwidth."""
        return replace(self, bandwidth=bandwidth)  # type: ignore[type-var]

    def fitted(self, X: Array) -> ScaledKernel:
        """Centre on the bulk of the data: squared distances by matrix product need it."""
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


def shown(name: str, **parameters: Any) -> str:
    """A repr with the parameters that were given; arrays as lists, with all their digits."""
    given = {key: value for key, value in parameters.items() if value is not None}
    plain = {key: getattr(value, "tolist", lambda v=value: v)() for key, value in given.items()}
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in plain.items())})"
