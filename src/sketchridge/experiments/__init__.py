"""The paper's experiments, one class a figure, with its claims as checks."""

from __future__ import annotations

from sketchridge.experiments.base import Experiment
from sketchridge.experiments.campaigns import RealCampaign, SyntheticCampaign
from sketchridge.experiments.mixture import Mixture, Timing, Update
from sketchridge.experiments.sup_gap import SupGap

__all__ = ["EXPERIMENTS", "Experiment"]

_PANELS = zip("abcdef", ["n", "n", "c", "c", "sigma", "sigma"], strict=True)
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        *(SupGap(f"fig1{letter}", ("polynomial", "gaussian")[k % 2], varies) for k, (letter, varies) in enumerate(_PANELS)),
        Mixture(),
        SyntheticCampaign(1),
        SyntheticCampaign(2),
        RealCampaign("flights"),
        RealCampaign("weather"),
        Timing(),
        Update(),
    )
}
