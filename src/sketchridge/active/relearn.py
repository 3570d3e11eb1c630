"""The kernel of a campaign, learned again whenever its labels have grown enough."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from sketchridge.active.settings import Estimator, plain_value, restored_value
from sketchridge.chosen import LEARNED
from sketchridge.kernels import DistanceKernel, as_kernel
from sketchridge.loo import Problem, best_alpha

__all__ = [
    "FIRST",
    "better_kernel",
    "clone_of",
    "is_due",
    "is_due_soon",
    "learned_kernel",
    "learns",
    "with_kernel",
    "with_penalty",
]

Array = np.ndarray
FIRST = 30  # labels with which a kernel is first learned; fewer allow for one bandwidth only
_LEARNED = 1000  # labels from which on it is learned again only where they have doubled
_MORE = 1.25  # times as many labels as before, up to there
_SOON = 8  # labels with which it is where a goal needs it
_EACH = 100  # labels up to which it then is in every round
_GROWN = 1.1  # times as many labels as before, after that
_COMPARED = 1000  # labels by which it is compared with the one before


def learns(estimator: Estimator) -> bool:
    """Whether the estimator leaves its kernel or bandwidth to be learned."""
    asked = estimator.bandwidth
    if not isinstance(asked, str) or asked not in LEARNED:
        return False
    if isinstance(estimator.kernel, str) and estimator.kernel == "auto":
        return True
    kernel = as_kernel(estimator.kernel)
    if not kernel.forms:
        return asked != "auto"  # an error that the estimator explains
    return getattr(kernel, "bandwidth", None) is None


def is_due(labels: int, before: int) -> bool:
    """Whether there are a quarter more labels than the ``before`` it was last learned with.

    From 1,000 on twice as many, since more would hardly be looked at.

    >>> [is_due(n, b) for n, b in ((29, 0), (30, 0), (37, 30), (38, 30), (1500, 1200))]
    [False, True, False, True, False]
    """
    grown = _MORE if before < _LEARNED else 2.0
    return labels >= FIRST and labels >= grown * before


def is_due_soon(labels: int, before: int) -> bool:
    """`is_due` where a goal other than exploring needs the kernel from the first labels on.

    >>> [is_due_soon(n, b) for n, b in ((7, 0), (8, 0), (9, 8), (8, 8), (120, 112), (124, 112))]
    [False, True, True, False, False, True]
    """
    return labels >= _SOON and labels > (before if labels <= _EACH else _GROWN * before)


def learned_kernel(estimator: Estimator, X: Array, y: Array) -> dict[str, Any]:
    """The kernel that an estimator learns from some labels, as plain values.

    "kernel" is its name where that was chosen too, else None; "bandwidth" a number, one for each
    feature, or a map; "alpha" the penalty it was learned with, in units of the kernel; "widths" by
    how much intervals are wider because it was learned; "criterion" what it was learned by.
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
        "criterion": None if fitted.learned is None else fitted.learned.criterion,
    }


def better_kernel(
    estimator: Estimator, X: Array, y: Array, earlier: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The kernel learned from some labels, or the earlier one if its leave-one-out error is less.

    Learning ends in local minima, the more often the fewer labels there are for each feature;
    labels that came since were no part of what the earlier kernel was fitted to.
    """
    learned = learned_kernel(estimator, X, y)
    if earlier is None:
        return learned
    errors = [_left_out_error(with_kernel(estimator, each), X, y) for each in (learned, earlier)]
    return learned if errors[0] <= errors[1] else dict(earlier)


def _left_out_error(estimator: Estimator, X: Array, y: Array) -> float:
    """The least mean squared leave-one-out error over α, of the last 1,000 labels at most."""
    X, Y = X[-_COMPARED:], y.reshape(len(y), -1)[-_COMPARED:]
    kernel = as_kernel(estimator.kernel)
    assert isinstance(kernel, DistanceKernel)
    spread = Y.std(axis=0)
    targets = Y / np.where(spread > 0, spread, 1.0)
    problem = Problem(X, targets, np.ones(len(X)), estimator.fit_intercept)
    G = kernel.with_bandwidth(estimator.bandwidth).fitted(X)(X, X)
    return float(best_alpha(G, problem).loo.min())


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


def with_penalty(estimator: Estimator, learned: Mapping[str, Any] | None) -> Estimator:
    """A copy with the kernel and, where α is open and few labels have let the likelihood decide,
    the α that it found too, as in a fit: leave-one-out knows it less well then."""
    copy = with_kernel(estimator, learned)
    likely = learned is not None and learned.get("criterion") == "reml"
    if learned is not None and likely and isinstance(copy.alpha, str):
        copy.alpha = learned["alpha"]
    return copy
