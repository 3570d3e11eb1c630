"""The kernel of a campaign, learned again whenever its labels have doubled."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from sketchridge.active.settings import Estimator, plain_value, restored_value
from sketchridge.chosen import LEARNED
from sketchridge.kernels import Radial, as_kernel

__all__ = ["FIRST", "clone_of", "is_due", "learned_kernel", "learns", "with_kernel"]

Array = np.ndarray
FIRST = 50  # labels with which a kernel is first learned


def learns(estimator: Estimator) -> bool:
    """Whether the estimator leaves its kernel or bandwidth to be learned."""
    asked = estimator.bandwidth
    if not isinstance(asked, str) or asked not in LEARNED:
        return False
    if isinstance(estimator.kernel, str) and estimator.kernel == "auto":
        return True
    kernel = as_kernel(estimator.kernel)
    if not isinstance(kernel, Radial) or kernel.slope is None:
        return asked != "auto"  # an error that the estimator explains
    return kernel.bandwidth is None


def is_due(labels: int, before: int) -> bool:
    """Whether labels have doubled since there were ``before``: at 50, 100, 200, ...

    >>> [is_due(n, b) for n, b in ((49, 0), (50, 0), (99, 50), (100, 50), (450, 110), (390, 200))]
    [False, True, False, True, True, False]
    """
    return labels >= FIRST and _doublings(labels) > _doublings(before)


def _doublings(labels: int) -> int:
    return (labels // FIRST).bit_length()


def learned_kernel(estimator: Estimator, X: Array, y: Array) -> dict[str, Any]:
    """The kernel that an estimator learns from some labels, as plain values.

    "kernel" is its name where that was chosen too, else None; "bandwidth" a number, one for each
    feature, or a map; "alpha" the penalty it was learned with, in units of the kernel; "widths" by
    how much intervals are wider because it was learned.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about the sketch, which is another's
        fitted = clone_of(estimator).fit(X, y).fitted_
    kernel = fitted.kernel
    is_open = isinstance(estimator.kernel, str) and estimator.kernel == "auto"
    return {
        "kernel": kernel.name.lower() if is_open else None,
        "bandwidth": plain_value("bandwidth", kernel.bandwidth),
        "alpha": None if fitted.learned is None else float(fitted.learned.alpha),
        "widths": float(fitted.factor_of_widths),
    }


def clone_of(estimator: Estimator) -> Estimator:
    """An unfitted copy, with what campaigns set beside its parameters."""
    copy = clone(estimator)
    for name in ("sketch_limit", "width_factor"):
        if hasattr(estimator, name):
            setattr(copy, name, getattr(estimator, name))
    return copy


def with_kernel(estimator: Estimator, learned: Mapping[str, Any] | None) -> Estimator:
    """A copy whose kernel is the one that was learned."""
    copy = clone_of(estimator)
    if learned is None:
        return copy
    if learned["kernel"] is not None:
        copy.kernel = learned["kernel"]
    copy.bandwidth = restored_value(learned["bandwidth"])
    copy.width_factor = learned["widths"]
    return copy
