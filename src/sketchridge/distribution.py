"""Leave-one-out errors of a fit, and the predictive distribution that they make."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sketchridge.data import Data
from sketchridge.kernels import DistanceKernel, Kernel
from sketchridge.predictive import Predictive, predictive_of
from sketchridge.scores import Scores, each_observation, scores_of, spread_of

__all__ = ["LeftOut", "distribution"]

Array = np.ndarray
_EPS = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Every distinct row predicted without itself, in the data's own units.

    ``unfitted`` is u = 1 − the smoother's diagonal: 1/B_ii = α/(w_i·u_i) for the model that it is
    of. Either ``residuals`` e of that model are given, whose error is e_i/u_i, or dual coefficients
    a of the exact mean. Those are divided by the exact diagonal, if it is known. Otherwise a
    sketched model knows all of it but a ``share`` of c_i, what it leaves unexplained, and a factor
    ``ratio`` of squared errors: the error is √ratio·a_i(1/B_ii + share·c_i).
    """

    data: Data
    alpha: float
    unfitted: Array  # (n,)
    residuals: Array | None = None  # (n, q)
    dual: Array | None = None  # (n, q)
    unexplained: Array | float = 0.0  # (n,): c
    share: float = 1.0
    ratio: float = 1.0
    exactly_unfitted: Array | None = None  # (n,): that of the exact model
    landmarks: Array | None = None  # rows that are not counted where others are enough
    noise_ratio: Array | float = 1.0  # (n,): g without the row over g, where noise varies

    @property
    def unforeseen(self) -> Array:
        """Rows of which nothing is known without them, as where there is no other row: (n,). What
        their repeats say of the noise remains."""
        return self.unfitted <= _EPS

    @property
    def variances(self) -> Array:
        """1/B_ii, and α/w_i where the others know nothing of a row: (n,).

        At landmarks that of the exact model, where it is known: a sketched one takes what others
        tell of them for more than it is.
        """
        unfitted = np.where(self.unforeseen, 1.0, self.unfitted)
        if self.landmarks is not None and self.exactly_unfitted is not None:
            unfitted[self.landmarks] = self.exactly_unfitted[self.landmarks]
        return self._inverse(unfitted)

    def _inverse(self, unfitted: Array) -> Array:
        return self.alpha / self.data.w / np.maximum(unfitted, _EPS)

    @property
    def errors(self) -> Array:
        """In units of y: (n, q)."""
        if self.dual is None:
            assert self.residuals is not None
            found = self.residuals / np.maximum(self.unfitted, _EPS)[:, None]
        elif self.exactly_unfitted is not None:
            found = self.dual * self._inverse(self.exactly_unfitted)[:, None]
        else:
            near = self.variances + self.share * self.unexplained
            found = np.sqrt(self.ratio) * self.dual * near[:, None]
        return np.where(self.unforeseen[:, None], 0.0, found) * self.data.scale

    def mean_square(self, w: Array) -> float:
        """Mean of the squared errors with weights w (n,), over targets too, in units of y². Of one
        row alone it is that of its repeats."""
        if self.unforeseen.all():
            scores = self.scores
            return float((scores.masses @ scores.residuals**2 / scores.masses.sum()).mean())
        return float((w @ self.errors**2 / w.sum()).mean())

    @property
    def scores(self) -> Scores:
        """Of all observations as they were given."""
        found = scores_of(
            self.errors,
            self.variances,
            self.alpha / self.data.w,
            unexplained=self.unexplained,
            landmarks=self.landmarks,
        )
        every = each_observation(found, self.data.rows, self.alpha)
        ratio = np.broadcast_to(self.noise_ratio, len(self.data.w))
        return every.with_noise(every.noise * ratio[every.at])


def distribution(
    left_out: LeftOut,
    kernel: Kernel,
    *,
    factor: float = 1.0,
    noise_variance: Array | None = None,
    fit_intercept: bool,
) -> Predictive:
    """The distribution of new observations.

    A ``noise_variance`` (q,) that is given stands for the amplitude found, ŝ² = σ²/α.
    """
    data = left_out.data
    found = predictive_of(
        left_out.scores,
        left_out.alpha,
        factor=factor,
        spread=spread_of(data.rows.Y, data.w, fit_intercept),
        prior=1.0 if isinstance(kernel, DistanceKernel) else None,
    )
    if noise_variance is None:
        return found
    return replace(found, amplitude=noise_variance / left_out.alpha)
