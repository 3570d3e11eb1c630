"""Kernel ridge regression with error bars, for data too large for an n×n matrix."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sketchridge.active import ActiveLearner
    from sketchridge.estimator import SketchedKernelRidge
    from sketchridge.exact_estimator import ExactKernelRidge
    from sketchridge.pipeline_regressor import PipelineRegressor
    from sketchridge.table_regressor import TableRegressor, make_model

__all__ = [
    "ActiveLearner",
    "ExactKernelRidge",
    "PipelineRegressor",
    "SketchedKernelRidge",
    "TableRegressor",
    "make_model",
]
__version__ = "0.2.0"
_HOMES = {
    "ActiveLearner": "sketchridge.active",
    "ExactKernelRidge": "sketchridge.exact_estimator",
    "PipelineRegressor": "sketchridge.pipeline_regressor",
    "SketchedKernelRidge": "sketchridge.estimator",
    "TableRegressor": "sketchridge.table_regressor",
    "make_model": "sketchridge.table_regressor",
}
_MODULES = (
    "active",
    "backends",
    "calibration",
    "exact",
    "kernels",
    "plotting",
    "saving",
    "sketches",
)


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for, so that `sketchridge campaign status` answers
    before scikit-learn is loaded."""
    if name in _MODULES:
        return import_module(f"sketchridge.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_MODULES])
