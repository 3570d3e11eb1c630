"""Every setting of the estimators in the benchmarks, written out.

The estimators are made here and nowhere else in this folder, so that a later change of a default
cannot change a published number.
"""

from __future__ import annotations

from typing import Any

from sketchridge import ExactKernelRidge, SketchedKernelRidge

__all__ = [
    "AUTOMATIC",
    "automatic_exact_ridge",
    "automatic_ridge",
    "exact_ridge",
    "sketched_ridge",
]

# of fits in which the sketch size and λ follow from the data
AUTOMATIC = {
    "kernel": "gaussian",
    "bandwidth": "median",
    "alpha": "gcv",
    "sketch": "auto",
    "sketch_size": "auto",
    "solver": "sketch",
    "noise_variance": 1.0,
    "fit_intercept": False,
    "backend": "numpy",
    "dtype": "auto",
    "random_state": 0,
}


def automatic_ridge(*, random_state: Any, noise: str = "constant") -> SketchedKernelRidge:
    """Whatever there is to choose is chosen by the data: the defaults of version 0.2."""
    return SketchedKernelRidge(
        kernel="auto",
        bandwidth="auto",
        alpha="loo",
        sketch="auto",
        sketch_size="auto",
        sketch_tol=0.1,
        solver="auto",
        noise=noise,
        noise_variance="auto",
        fit_intercept=True,
        backend="auto",
        dtype="auto",
        random_state=random_state,
    )


def automatic_exact_ridge() -> ExactKernelRidge:
    """The same, exactly."""
    return ExactKernelRidge(
        kernel="auto",
        bandwidth="auto",
        alpha="loo",
        noise="constant",
        noise_variance="auto",
        fit_intercept=True,
        backend="auto",
        dtype="auto",
    )


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
        noise="constant",
        noise_variance=noise_variance,
        fit_intercept=False,
        backend="numpy",
        dtype="auto",
    )


def sketched_ridge(
    *,
    bandwidth: Any = "median",
    alpha: Any = "gcv",
    sketch: Any = "auto",
    sketch_size: Any = "auto",
    sketch_tol: float = 0.1,
    solver: str = "sketch",
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
        solver=solver,
        noise="constant",
        noise_variance=noise_variance,
        fit_intercept=False,
        backend=backend,
        dtype=dtype,
        random_state=random_state,
    )
