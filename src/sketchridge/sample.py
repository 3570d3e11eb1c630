"""Training points with their weights, and what is known of them where they are not."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sketchridge.backends import Backend, Elsewhere, Points, Tall
from sketchridge.kernels import Kernel
from sketchridge.precision import Scales

__all__ = ["Sample", "Sizes", "sample_elsewhere", "sample_of"]

Array = np.ndarray


class Sizes(NamedTuple):
    """A sample without its rows."""

    width: int  # of the kernel's coordinates
    total: float
    scales: tuple[Any, ...]
    uniform: bool


@dataclass(frozen=True, eq=False)
class Sample:
    """Points with the weights w of their rows; K = M^½ G M^½ with M = diag(w)/Σw."""

    points: Points
    weights: Tall  # (n, 1): w
    total: float  # Σw
    diag: Tall  # (n, 1): k(x, x)
    scales: Scales
    uniform: bool  # whether all weights are the same

    @property
    def backend(self) -> Backend:
        return self.points.backend

    @property
    def sizes(self) -> Sizes:
        """What is known of it without its rows."""
        width = self.points.U.shape[1]
        return Sizes(width, self.total, astuple(self.scales), self.uniform)

    @cached_property
    def root(self) -> Tall:
        """q = M^½ 1, a unit vector: (n, 1)."""
        total = self.total
        return self.weights.map(lambda w: (w / total) ** 0.5)

    def __len__(self) -> int:
        return len(self.points)

    def gram(self, T: Tall, other: Tall | None = None) -> Array:
        """TᵀMT', with T' = T where not given: (q, q')."""
        if self.uniform:
            return T.gram(other, over=len(self))
        return T.gram(other, self.weights, over=self.total)


def sample_of(points: Points, w: Array) -> Sample:
    """The sample of points with the weights w (n,)."""
    backend = points.backend
    weights = backend.tall(w[:, None])
    total = float(w.sum())
    found = points.extent(weights)
    scales = Scales(
        largest=found.square,
        typical=float(np.sqrt(found.fourth / total)),
        diag=found.diag,
        trace=found.trace / total,
        growth=points.kernel.growth,
        rows=len(points),
    )
    uniform = bool((w == w[0]).all())
    return Sample(points, weights, total, points.diagonal(), scales, uniform)


def sample_elsewhere(backend: Backend, kernel: Kernel, sizes: Sizes) -> Sample:
    """The sample of points that are not here, for what needs no more than its sizes."""
    n, total = sizes.scales[-1], sizes.total
    points = Points(backend, kernel, Elsewhere(n, sizes.width))
    column = Tall(backend, (Elsewhere(n, 1),))
    return Sample(points, column, total, column, Scales(*sizes.scales), sizes.uniform)
