"""The Laplacian kernel, of the sum of absolute differences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sketchridge.kernels.base import DistanceKernel, shown

__all__ = ["Laplacian"]

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Laplacian(DistanceKernel):
    """exp(−‖x−z‖₁/h), or exp(−Σ_j |x_j − z_j|/h_j) with one bandwidth for each feature.

    It knows axes, as trees do, and no rotations: one bandwidth or one for each feature can be
    learned, but no full map. It has no derivative where features coincide.

    Parameters
    ----------
    bandwidth : float or (d,) array
        h, or one for each feature, in units of the features; None to be chosen by a fit.
    center : (d,) array
        Set by a fit.

    Examples
    --------
    >>> Laplacian(bandwidth=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.368]])
    """

    bandwidth: float | Array | None = None
    center: Array | None = field(default=None)

    metric = "cityblock"
    name = "Laplacian"

    def __repr__(self) -> str:
        return shown("Laplacian", bandwidth=self.bandwidth)

    @property
    def forms(self) -> tuple[str, ...]:
        return "isotropic", "ard"

    def check_slopes(self) -> None:
        raise ValueError(
            "The Laplacian kernel, which was given or which kernel='auto' chose, has no derivative "
            "where a feature coincides with that of a training row, so it has no gradients and no "
            "marginal effects: fit with kernel='matern32', 'matern52' or 'gaussian'."
        )

    def evaluate(self, s: Any, xp: Any) -> Any:
        s *= -1
        return xp.exp(s, out=s)

    def slope_at(self, s: Any, xp: Any) -> Any:
        return -xp.exp(-s)
