"""Noise that varies with x, for a fit: rows weighted by its inverse, and σ²(x) where it is asked.

A fit with constant noise tells by its leave-one-out errors how much larger the noise is at x than
on average, g(x); the second fit has the weights w/g.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sketchridge.backends import Points
from sketchridge.data import Data
from sketchridge.factor import Sample
from sketchridge.noise import NoiseModel, fit_varying, landmark_map
from sketchridge.scores import Scores

__all__ = ["Varying", "varying_noise"]

Array = np.ndarray
_LANDMARKS = 200  # rows that log g is a combination of kernel values with
_ROWS = 50  # below which noise is not told from its variation


@dataclass(frozen=True, eq=False)
class Varying:
    """g(x), the noise at x over that of a row of weight 1, and the data with weights as given."""

    model: NoiseModel
    rows: Array  # (p,): training rows that are landmarks
    map: Array  # (p, r), from kernel values with them to features
    plain: Data
    U: Array | None = None  # (p, k): these rows in the kernel's coordinates; None in old files

    def at(self, points: Points, sample: Sample) -> Array:
        """g at points: (t,), positive."""
        return self.model(sample.backend.block(points, self._chosen(sample)).host() @ self.map)

    def _chosen(self, sample: Sample) -> Points:
        if self.U is None:
            return sample.points.take(self.rows)
        return sample.backend.place(sample.points.kernel, self.U)

    def without_rows(self) -> Varying:
        """What is left of it where the training rows are not."""
        none = np.empty(0, dtype=int)
        model = replace(self.model, at=none, left_out=none)
        return replace(self, model=model, plain=self.plain.without_rows())

    def ratio(self, sample: Sample) -> Array:
        """g without a row over g, at the training rows: (n,)."""
        g = self.at(sample.points, sample)
        out = np.ones(len(g))
        out[self.model.at] = self.model.left_out / g[self.model.at]
        return out

    def weighted(self, sample: Sample) -> Data:
        """The data with the weights w/g."""
        g = self.at(sample.points, sample)
        rows = self.plain.rows
        return replace(self.plain, rows=replace(rows, w_given=rows.w_given / g[rows.group]))


def varying_noise(
    data: Data, sample: Sample, scores: Scores, landmarks: Array | None, seed: int
) -> Varying | None:
    """Fit g to the scores of a fit with constant noise, or None where intervals do not gain."""
    if len(scores.at) < _ROWS or not (scores.amplitude > 0).all():
        return None
    rows = np.random.default_rng(seed).permutation(len(sample)) if landmarks is None else landmarks
    rows = rows[:_LANDMARKS]
    chosen = sample.points.take(rows)
    R = landmark_map(sample.backend.block(chosen, chosen).host())
    found = fit_varying(sample.backend.block(sample.points, chosen).host() @ R, scores)
    return Varying(found, rows, R, data, chosen.host()) if found.kept else None
