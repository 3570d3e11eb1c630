"""Kernel ridge regression with error bars, for data too large for an n×n matrix."""

from sketchridge.active import ActiveLearner
from sketchridge.estimator import SketchedKernelRidge
from sketchridge.exact_estimator import ExactKernelRidge

__all__ = ["ActiveLearner", "ExactKernelRidge", "SketchedKernelRidge"]
__version__ = "0.2.0"
