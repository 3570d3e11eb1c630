"""Warnings that name the line of whoever called, not one inside this library or scikit-learn."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn"]

_INSIDE = ("sketchridge", "sklearn", "joblib")


def warn(message: str) -> None:
    """Issue a UserWarning at the first frame outside sketchridge and scikit-learn."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        level += 1
    warnings.warn(message, UserWarning, stacklevel=level)


def _is_inside(module: str) -> bool:
    return module.partition(".")[0] in _INSIDE
