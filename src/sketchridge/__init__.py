"""Kernel ridge regression with error bars, for data too large for an n×n matrix."""

from sketchridge.active import ActiveLearner
from sketchridge.estimator import ExactKernelRidge, SketchedKernelRidge

__all__ = ["ActiveLearner", "ExactKernelRidge", "SketchedKernelRidge"]
__version__ = "0.2.0"
