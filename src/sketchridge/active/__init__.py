"""Active learning: which points of a pool to label next, and a record of the campaign that outlives the process."""

from sketchridge.active.learner import ActiveLearner
from sketchridge.active.stopping import Budget, NoImprovement, ScoreBelow

__all__ = ["ActiveLearner", "Budget", "NoImprovement", "ScoreBelow"]
