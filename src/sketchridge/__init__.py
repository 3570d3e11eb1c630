"""Kernel ridge regression with error bars, for data too large for an n×n matrix."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sketchridge.active import ActiveLearner
    from sketchridge.estimator import SketchedKernelRidge
    from sketchridge.exact_estimator import ExactKernelRidge

__all__ = ["ActiveLearner", "ExactKernelRidge", "SketchedKernelRidge"]
__version__ = "0.2.0"
_HOMES = {
    "ActiveLearner": "sketchridge.active",
    "ExactKernelRidge": "sketchridge.exact_estimator",
    "SketchedKernelRidge": "sketchridge.estimator",
}


_MODULES = ("active", "backends", "calibration", "exact", "kernels", "plotting", "sketches")


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
