"""Active learning: which points of a pool to label next, in a campaign that outlives a process."""

from sketchridge.active.learner import ActiveLearner
from sketchridge.active.stopping import Budget, NoImprovement, ScoreBelow

__all__ = ["ActiveLearner", "Budget", "NoImprovement", "ScoreBelow"]
