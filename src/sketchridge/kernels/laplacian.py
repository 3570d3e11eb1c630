"""The Laplacian kernel, of the sum of absolute differences."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.distance import cdist

from sketchridge.kernels.base import ScaledKernel, shown

__all__ = ["Laplacian"]

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Laplacian(ScaledKernel):
    """exp(−‖x−z‖₁/h). It has no derivative where features coincide.

    >>> Laplacian(bandwidth=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.368]])
    """

    bandwidth: float | Array | None = None
    center: Array | None = field(default=None)

    metric = "cityblock"

    def __repr__(self) -> str:
        return shown("Laplacian", bandwidth=self.bandwidth)

    def check_slopes(self) -> None:
        raise ValueError(
            f"{self!r} has no derivative where a feature coincides with that of a training row, so "
            "it has no gradients and no marginal effects: use 'matern32', 'matern52' or 'gaussian'."
        )

    def block(self, U: Array, V: Array) -> Array:
        return np.exp(-cdist(U, V, "cityblock"))

    def diagonal(self, U: Array) -> Array:
        return np.ones(len(U))
