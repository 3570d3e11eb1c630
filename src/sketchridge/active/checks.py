"""What people tell a learner, checked at the door."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

__all__ = [
    "check_count",
    "check_one_of",
    "checked_ids",
    "checked_names",
    "checked_targets",
    "words",
]

Array = np.ndarray
_LARGEST = 1e150  # of a label, whose square is still a number


def check_count(name: str, value: Any) -> None:
    """ValueError unless the value is a whole number from 1 up."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1 up, got {value!r}.")


def check_one_of(name: str, value: Any, known: Iterable[str], where: str = "") -> None:
    """ValueError unless the value is one of these names."""
    names = list(known)
    if value not in names:
        raise ValueError(
            f"Unknown {name} {value!r}{where}: give one of {', '.join(map(repr, names))}."
        )


def checked_ids(ids: Any, size: int) -> Array:
    """Row numbers of a pool of that size, each once: (t,)."""
    values = np.atleast_1d(np.asarray(ids))
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise ValueError(f"ids must be row numbers of the pool, got {ids!r}.")
    wrong = values[(values < 0) | (values >= size)]
    if len(wrong):
        raise ValueError(
            f"{wrong[0]} is not a row of the pool, which has the rows 0 to {size - 1}."
        )
    unique, counts = np.unique(values, return_counts=True)
    if len(unique) < len(values):
        raise ValueError(f"{unique[counts > 1][0]} is given more than once: give each id once.")
    return values.astype(np.int64)


def checked_names(names: Any, count: int) -> list[str]:
    """Names of points, one for each or none."""
    made = [] if names is None else [str(name) for name in names]
    if made and len(made) != count:
        raise ValueError(f"{count} ids came with {len(made)} names: give one for each, or none.")
    return made


def words(text: Any) -> str:
    """What is said for the record; None is nothing."""
    return "" if text is None else str(text)


def checked_targets(y: Any) -> Array:
    """Labels as numbers: (t, q)."""
    try:
        given = np.asarray(y)
        if given.dtype.kind == "c":
            raise TypeError
        Y = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"Labels must be numbers, got {y!r}.") from None
    if given.dtype.kind not in "fiubO":
        raise ValueError(f"Labels must be numbers, got {given.dtype}.")
    Y = Y.reshape(-1, 1) if Y.ndim < 2 else Y
    if Y.ndim > 2 or not Y.shape[1]:
        raise ValueError(f"Labels must have the shape (t,) or (t, q), got {Y.shape}.")
    is_missing = ~np.isfinite(Y) | np.ma.getmaskarray(y).reshape(Y.shape)
    if is_missing.any():
        bad = int(np.flatnonzero(is_missing.any(axis=1))[0])
        raise ValueError(
            f"Label number {bad} is missing or infinite: tell only points that were measured."
        )
    is_tiny = (Y != 0) & (np.abs(Y) < 1 / _LARGEST)
    if is_tiny.any():
        raise ValueError(
            f"Labels as small as {np.abs(Y[is_tiny]).min():.3g} have squares beyond floating "
            "point: rescale them, or write 0 for what is nothing."
        )
    largest = float(np.abs(Y).max(initial=0.0))
    if largest > _LARGEST:
        raise ValueError(
            f"Labels of up to {largest:.3g} have squares beyond floating point: rescale them."
        )
    return Y
