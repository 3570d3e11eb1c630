"""Every setting of the estimators in the experiments, written out.

The estimators are made here and nowhere else in this folder, so that a later change of a default
cannot change a published number.
"""

from __future__ import annotations

from typing import Any

from sketchridge.estimator import SketchedKernelRidge
from sketchridge.exact_estimator import ExactKernelRidge

__all__ = ["exact_ridge", "sketched_ridge"]


def exact_ridge(
    *,
    kernel: Any = "gaussian",
    bandwidth: Any = "median",
    alpha: Any = "gcv",
    noise_variance: Any = "auto",
) -> ExactKernelRidge:
    """The exact estimator of the experiments, not fitted."""
    return ExactKernelRidge(
        kernel=kernel,
        bandwidth=bandwidth,
        alpha=alpha,
        noise="constant",
        noise_variance=noise_variance,
        fit_intercept=False,
        backend="numpy",
        dtype="auto",
    )


def sketched_ridge(
    *,
    kernel: Any = "gaussian",
    bandwidth: Any = "median",
    alpha: Any = "gcv",
    sketch: Any = "auto",
    sketch_size: Any = "auto",
    noise_variance: Any = "auto",
    backend: Any = "numpy",
    dtype: str = "auto",
) -> SketchedKernelRidge:
    """The sketched estimator of the experiments, not fitted."""
    return SketchedKernelRidge(
        kernel=kernel,
        bandwidth=bandwidth,
        alpha=alpha,
        sketch=sketch,
        sketch_size=sketch_size,
        sketch_tol=0.1,
        solver="sketch",
        noise="constant",
        noise_variance=noise_variance,
        fit_intercept=False,
        backend=backend,
        dtype=dtype,
        random_state=None,
    )
