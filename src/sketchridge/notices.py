"""Warnings that name the line of whoever called, not one inside this library or scikit-learn, and
errors as sentences."""

from __future__ import annotations

import sys
import warnings

__all__ = ["TRACE", "complaint", "warn"]

TRACE = "SKETCHRIDGE_TRACEBACK"  # a variable with which those who mend the library see where
_EXPECTED = (ValueError, OSError, ImportError, RuntimeError, MemoryError)

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


def complaint(error: BaseException) -> str:
    """What an error says to users: its own sentence, if it is one of ours.

    >>> complaint(ValueError("Give an id."))
    'Give an id.'
    """
    if isinstance(error, MemoryError):
        text = str(error) or "take fewer points or a smaller sketch"
        return f"There is not enough memory: {text.rstrip('.')}."
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed: pip install 'sketchridge[cli,web]'."
    if isinstance(error, _EXPECTED):
        return str(error) or type(error).__name__
    return (
        f"This is a fault of sketchridge ({type(error).__name__}: {error}). Please report it; "
        f"with {TRACE}=1 set it is shown where."
    )
