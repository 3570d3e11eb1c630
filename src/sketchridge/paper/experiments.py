"""The table of the experiments, by the figure's name, the most important first."""

from __future__ import annotations

from sketchridge.paper.base import Experiment
from sketchridge.paper.readings.formulas import FormulasReading
from sketchridge.paper.readings.gaps import SupGap
from sketchridge.paper.readings.mixture import MixtureReading
from sketchridge.paper.readings.other_sketches import OtherSketchesReading
from sketchridge.paper.readings.real import RealReading
from sketchridge.paper.readings.synthetic import SyntheticReading
from sketchridge.paper.readings.times import TimingReading, UpdateReading

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
        MixtureReading(),
        SyntheticReading(1),
        SyntheticReading(2),
        RealReading("flights"),
        RealReading("weather"),
        OtherSketchesReading(),
        FormulasReading(),
        TimingReading(),
        UpdateReading(),
    )
}
