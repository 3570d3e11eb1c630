"""Derivatives as functionals: at points, and averaged over many.

With u = x J + c, k = κ(s) and κ' its slope, ∂k(x, z)/∂x_j is 2κ'(‖u − v‖²)(g_j(u) − g_j(v)) for a
kernel of the distance and κ'(u·v) g_j(v) for one of the inner product, g = u Jᵀ. So sums over many
points are products with κ' in place of k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchridge.backends import Points, Tall
from sketchridge.factor import Sample
from sketchridge.precision import FULL, canceled
from sketchridge.query import AtPoints, Functionals

__all__ = ["AverageSlopes", "Slopes", "sloped", "slopes_at"]

Array = np.ndarray


def slopes_at(sample: Sample, query: AtPoints, d: int) -> Slopes:
    """Every derivative at some points: those in x_1 … x_d of the first, then of the second …"""
    sample.points.kernel.check_slopes()
    t = len(query)
    place, feature = np.repeat(np.arange(t), d), np.tile(np.arange(d), t)
    return Slopes(sample, query.points, d, place, feature)


class _Derivatives(Functionals):
    """What derivatives share: they are those of ``points``, with respect to d features."""

    points: Points
    d: int

    @property
    def constant(self) -> Array:
        return np.zeros(len(self))

    @property
    def geometry(self) -> str:
        return self.points.kernel.geometry

    @property
    def J(self) -> Array:
        """∂u/∂x: (d, k)."""
        return self.points.kernel.jacobian(self.d)

    def along(self, points: Points) -> Tall:
        """g = u Jᵀ: (n', d)."""
        return (points.tall() @ self.J.T).held()

    def prior(self) -> Array:
        raise ValueError(
            "gp and bias2 are known of values and contrasts, not of derivatives: ask for the "
            "variance of the mean, 'v1', 'v2', 'v3' or 'vbar'."
        )

    cross = prior

    def rounding(self) -> Array:
        """From |g(u) − g(v)| ≤ ‖J_j‖(‖u‖ + ‖v‖) and the slope where it is largest, at s = 0 or, of
        an inner product, at the largest ‖u‖²."""
        scales = self.sample.scales
        if self.geometry == "opaque":
            return canceled(scales, 1.0, self.terms, self.sizes())
        largest = max(self.points.largest, self.sample.points.largest)
        farthest = max(1.0, self.J.shape[1] * largest**2)  # no less than any ‖u‖²
        steepest = np.array([0.0 if self.geometry == "distance" else farthest])
        slope = abs(float(self.points.kernel.sloped().evaluate(steepest, np)[0]))
        size = 4 * slope * np.sqrt(farthest) * self.sizes()
        return canceled(scales, farthest, self.terms, size)

    @property
    def terms(self) -> int:
        """Of the sum that each of them is."""
        return 1

    def sizes(self) -> Array:
        """The sum of ‖∂u/∂x_j‖ over the points of each: (p,)."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Slopes(_Derivatives):
    """∂f/∂x_j at x, for pairs of a point and a feature."""

    sample: Sample
    points: Points
    d: int
    place: Array  # (p,): the point of each
    feature: Array  # (p,): the feature of each

    def __len__(self) -> int:
        return len(self.place)

    def at(self, points: Points) -> Tall:
        place, feature = self.place, self.feature
        if self.geometry == "opaque":
            return self.backend.tall(self._opaque(points))
        slope = self.backend.block(sloped(points), sloped(self.points))  # (n', t)
        its = self.along(points)
        if self.geometry == "dot":
            return slope.map(lambda s, v: s[:, place] * v[:, feature], its)
        own = self.along(self.points).host()[place, feature]
        return slope.map(lambda s, v, u: 2 * s[:, place] * (u - v[:, feature]), its, small=(own,))

    def against(self, sample: Sample, T: Tall, precision: str) -> Tall:
        """κ'(U, V)[T, g_1 T, …]: no derivative of k is formed."""
        if self.geometry == "opaque":
            return super().against(sample, T, precision)
        along = self.along(sample.points)
        scaled = [T.map(lambda t, g, j=j: t * g[:, j : j + 1], along) for j in range(self.d)]
        products = self.backend.matmul(
            sloped(self.points), sloped(sample.points), T.beside(*scaled), precision=FULL
        )
        sums = products.host().reshape(-1, self.d + 1, T.shape[1])
        moved = sums[self.place, 1 + self.feature]
        if self.geometry == "dot":
            return self.backend.tall(moved)
        own = self.along(self.points).host()[self.place, self.feature]
        return self.backend.tall(2 * (own[:, None] * sums[self.place, 0] - moved))

    def _opaque(self, points: Points) -> Array:
        out = np.empty((len(points), len(self)))
        for j in np.unique(self.feature):
            at = np.flatnonzero(self.feature == j)
            own = self.points.host()[self.place[at]]
            out[:, at] = self.points.kernel.block_slope(own, points.host(), int(j)).T
        return out

    def sizes(self) -> Array:
        return np.sqrt((self.J**2).sum(axis=1))[self.feature]

    def some(self, rows: slice | Array) -> Slopes:
        used, place = np.unique(self.place[rows], return_inverse=True)
        points = self.points.take(used)
        return Slopes(self.sample, points, self.d, place, self.feature[rows])


@dataclass(frozen=True, eq=False)
class AverageSlopes(_Derivatives):
    """Σ_i a_i ∂f/∂x_j(x_i), for some features j."""

    sample: Sample
    points: Points
    d: int
    weights: Array  # (t,): a
    feature: Array  # (p,): j

    def __len__(self) -> int:
        return len(self.feature)

    def at(self, points: Points) -> Tall:
        feature = self.feature
        if self.geometry == "opaque":
            return self.backend.tall(self._opaque(points))
        its = self.along(points)
        weights = self.backend.tall(self.weights[:, None])
        right = weights
        if self.geometry == "distance":
            own = self.along(self.points).map(lambda g, a: g[:, feature] * a, weights)
            right = weights.beside(own)
        theirs = sloped(points)
        ours = theirs if points is self.points else sloped(self.points)  # half the work
        sums = self.backend.matmul(theirs, ours, right, precision=FULL)  # (n', 1 + p)
        if self.geometry == "dot":
            return sums.map(lambda s, g: s * g[:, feature], its)
        return sums.map(lambda s, g: 2 * (s[:, 1:] - s[:, :1] * g[:, feature]), its)

    def _opaque(self, points: Points) -> Array:
        out = np.zeros((len(points), len(self)))
        size = max(1, self.backend.block_bytes // (8 * len(points)))
        for start in range(0, len(self.points), size):
            rows = slice(start, start + size)
            own = self.points.host()[rows]
            for i, j in enumerate(self.feature):
                slope = self.points.kernel.block_slope(own, points.host(), int(j))
                out[:, i] += self.weights[rows] @ slope
        return out

    def sizes(self) -> Array:
        return np.abs(self.weights).sum() * np.sqrt((self.J**2).sum(axis=1))[self.feature]

    @property
    def terms(self) -> int:
        return len(self.weights)

    def some(self, rows: slice | Array) -> AverageSlopes:
        return AverageSlopes(self.sample, self.points, self.d, self.weights, self.feature[rows])


def sloped(points: Points) -> Points:
    """The same points, of the kernel's slope."""
    return points.of(points.kernel.sloped())
