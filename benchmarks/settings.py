"""Every setting of the estimators in the benchmarks, written out.

The estimators are made here and nowhere else in this folder, so that a later change of a default
cannot change a published number.
"""

from __future__ import annotations

from typing import Any

from sketchridge import ExactKernelRidge, SketchedKernelRidge

__all__ = ["exact_ridge", "sketched_ridge"]


def exact_ridge(
    *,
    bandwidth: Any,
    alpha: Any,
    noise_variance: Any = "auto",
) -> ExactKernelRidge:
    """The exact estimator of the benchmarks, not fitted."""
    return ExactKernelRidge(
        kernel="gaussian",
        bandwidth=bandwidth,
        alpha=alpha,
        noise_variance=noise_variance,
        fit_intercept=False,
    )


def sketched_ridge(
    *,
    bandwidth: Any = "median",
    alpha: Any = "gcv",
    sketch: Any = "auto",
    sketch_size: Any = "auto",
    sketch_tol: float = 0.1,
    noise_variance: Any = "auto",
    backend: Any = "auto",
    dtype: str = "auto",
    random_state: Any = 0,
) -> SketchedKernelRidge:
    """The sketched estimator of the benchmarks, not fitted."""
    return SketchedKernelRidge(
        kernel="gaussian",
        bandwidth=bandwidth,
        alpha=alpha,
        sketch=sketch,
        sketch_size=sketch_size,
        sketch_tol=sketch_tol,
        solver="sketch",
        noise_variance=noise_variance,
        fit_intercept=False,
        backend=backend,
        dtype=dtype,
        random_state=random_state,
    )
