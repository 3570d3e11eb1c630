"""What is asked of a fitted model: right-hand sides k_x and the prior variance k(x, x) there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sketchridge.backends import Points, Tall
from sketchridge.factor import Factor, Sample

__all__ = ["AtPoints"]

Array = np.ndarray
_RANGE = 1e9  # coordinates whose powers float32 may not hold


@dataclass(frozen=True, eq=False)
class AtPoints:
    """The value of the function at some points."""

    points: Points

    def __len__(self) -> int:
        return len(self.points)

    def safe(self, precision: str) -> str:
        """The precision, or float64 where the points leave the range of any other."""
        return precision if self.points.largest < _RANGE else "float64"

    def features(self, factor: Factor, right: Array) -> Tall:
        """ψ(x)ᵀ A for a small A: (t, q)."""
        return factor.features(self.points, right)

    def moments(self, sample: Sample, T: Tall, precision: str) -> tuple[Array, Tall]:
        """k_xᵀMk_x (t,) and k_xᵀMT (t, q)."""
        backend = sample.backend
        squares, products = backend.moments(
            self.points, sample.points, T, weights=sample.weights, precision=precision
        )
        total = sample.total
        return squares / total, products.map(lambda block: block / total)

    def products(self, sample: Sample, T: Tall, precision: str) -> Tall:
        """k_xᵀMT: (t, q)."""
        sums = sample.backend.matmul(
            self.points, sample.points, T, weights=sample.weights, precision=precision
        )
        total = sample.total
        return sums.map(lambda block: block / total)

    def residual_sqnorm(self, sample: Sample, T: Tall, C: Tall, precision: str) -> Array:
        """(k_x − T c_x)ᵀM(k_x − T c_x): (t,)."""
        squares = sample.backend.residual_sqnorm(
            self.points, sample.points, T, C, weights=sample.weights, precision=precision
        )
        return squares / sample.total

    def against(self, sample: Sample, T: Tall, precision: str) -> Tall:
        """k_xᵀ T: (t, q)."""
        return sample.backend.matmul(self.points, sample.points, T, precision=precision)

    def columns(self, sample: Sample) -> Tall:
        """k_x itself, a column a point: (n, t)."""
        return sample.backend.block(sample.points, self.points)

    def prior(self) -> Array:
        """k(x, x): (t,)."""
        return self.points.diag()

    def some(self, rows: slice | Array) -> AtPoints:
        """A part of the question."""
        return AtPoints(self.points.take(rows))

    def in_blocks(self, width: int, function: Callable[[AtPoints], Array]) -> Array:
        """The function of parts so short that matrices of that width are small, put together."""
        backend = self.points.backend
        size = min(max(1, backend.block_bytes // (8 * max(width, 1))), backend.longest)
        starts = range(0, max(len(self), 1), size)
        parts = [function(self.some(slice(i, min(i + size, len(self))))) for i in starts]
        return np.concatenate(parts)
