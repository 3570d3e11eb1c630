"""The table of the paper's experiments: one class for each figure, by the figure's name."""

from __future__ import annotations

from sketchridge.paper.base import Experiment
from sketchridge.paper.mixture import Mixture, Timing, Update
from sketchridge.paper.real import RealCampaign
from sketchridge.paper.sup_gap import SupGap
from sketchridge.paper.synthetic import SyntheticCampaign

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        SupGap("fig1a", "polynomial", "n"),
        SupGap("fig1b", "gaussian", "n"),
        SupGap("fig1c", "polynomial", "c"),
        SupGap("fig1d", "gaussian", "c"),
        SupGap("fig1e", "polynomial", "sigma"),
        SupGap("fig1f", "gaussian", "sigma"),
        Mixture(),
        SyntheticCampaign(1),
        SyntheticCampaign(2),
        RealCampaign("flights"),
        RealCampaign("weather"),
        Timing(),
        Update(),
    )
}
