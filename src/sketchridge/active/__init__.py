"""Active learning: which points of a pool to label next, in a campaign that outlives a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sketchridge.active.stopping import Budget, NoImprovement, ScoreBelow

if TYPE_CHECKING:
    from sketchridge.active.learner import ActiveLearner

__all__ = ["ActiveLearner", "Budget", "NoImprovement", "ScoreBelow"]


def __getattr__(name: str) -> Any:
    """Import the learner, and scikit-learn with it, when it is asked for."""
    if name != "ActiveLearner":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sketchridge.active.learner import ActiveLearner

    return ActiveLearner
