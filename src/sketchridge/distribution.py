"""The predictive distribution of a fit, from its leave-one-out errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sketchridge.data import Data
from sketchridge.kernels import Kernel, Radial
from sketchridge.predictive import Predictive, predictive_of
from sketchridge.scores import each_observation, scores_of, spread_of

__all__ = ["distribution"]

Array = np.ndarray
_EPS = np.finfo(float).eps


def distribution(
    data: Data,
    kernel: Kernel,
    alpha: float,
    left: Array,
    *,
    residuals: Array | None = None,
    dual: Array | None = None,
    unexplained: Array | float = 0.0,
    share: float = 1.0,
    landmarks: Array | None = None,
    factor: float = 1.0,
    noise_variance: Array | None = None,
    fit_intercept: bool,
) -> Predictive:
    """From ``left``, 1 − the smoother's diagonal (n,), and either the fit's residuals (n, q) or the
    exact model's dual coefficients a (n, q), both in the data's own units.

    1/B_ii = α/(w_i·left_i); with residuals e the leave-one-out error is e_i/left_i. Dual
    coefficients are divided by the exact diagonal, of which the sketched model knows all but a
    ``share`` of c_i, what it leaves unexplained: the error is a_i(1/B_ii + share·c_i). A
    ``noise_variance`` (q,) that is given stands for the amplitude found, ŝ² = σ²/α.
    """
    noise = alpha / data.w
    left = np.maximum(left, _EPS)
    variances = noise / left
    if dual is None:
        assert residuals is not None
        errors = residuals / left[:, None]
    else:
        errors = dual * (variances + share * unexplained)[:, None]
    scores = scores_of(
        errors * data.scale,
        variances,
        noise,
        unexplained=unexplained,
        landmarks=landmarks,
    )
    found = predictive_of(
        each_observation(scores, data.rows, alpha),
        alpha,
        factor=factor,
        spread=spread_of(data.rows.Y, data.w, fit_intercept),
        prior=1.0 if isinstance(kernel, Radial) else None,
    )
    return found if noise_variance is None else replace(found, amplitude=noise_variance / alpha)
