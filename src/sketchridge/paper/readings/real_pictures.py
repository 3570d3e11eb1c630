"""The pictures of figures 4 and 5: curves, paired differences, and the sketch that was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sketchridge.paper.base import Row
from sketchridge.paper.readings.curves import Curves
from sketchridge.paper.readings.drawing import (
    COLORS,
    bands,
    finish,
    four_panels,
    three_panels,
)
from sketchridge.paper.runs.real import MODELS, WHOLE, Source
from sketchridge.paper.statistics import Estimate, arithmetic
from sketchridge.plotting import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["RealPictures", "curves_of", "relative"]

Array = np.ndarray
BANDS = "each without its level"
MOST = 512  # rows of the automatic sketch
PAIRS = (COLORS[4], "#a0742c", COLORS[5])  # no color of a strategy


def curves_of(rows: Sequence[Row], value: str) -> Curves:
    """A column by strategy and model, seed and round."""
    return Curves(rows, _name, value)


def relative(one: Array, other: Array) -> Array:
    """In percent of the other."""
    return 100 * (one / other - 1)


@dataclass(frozen=True)
class RealPictures:
    """Of one data set."""

    source: Source
    title: str

    def main(self, rows: Sequence[Row]) -> Figure:
        """The paper's two curves in both readings of m, m fixed, and paired differences."""
        curves = curves_of(rows, "rmse")
        figure, axes = four_panels()
        figure.suptitle(f"{self.title}, 95% bands", fontsize="large")
        for ax, model in zip(axes, ("labels", "pool"), strict=False):
            title = f"the paper's two curves, {MODELS[model]}"
            self._lines(ax, curves, model, ("V2", "uniform"), title)
        fixed = [row["m"] for row in rows if row["model"] == "fixed"]
        title = f"m = {max(fixed, default=0)}, not the paper's"
        self._lines(axes[2], curves, "fixed", ("V2", "uniform", "V2-top", "gp"), title)
        self._differences(axes[3], curves, ("labels", "pool", "fixed"))
        return figure

    def _lines(
        self, ax: Axes, curves: Curves, model: str, names: Sequence[str], title: str
    ) -> None:
        known = {f"rsKRR+{name}": f"{name}, {MODELS[model]}" for name in names}
        known = {shown: name for shown, name in known.items() if name in curves}
        seeds = curves.seeds(*known.values())  # all strategies on the same data
        bands_of = curves.leveled(list(known.values()))
        lines = {shown: bands_of[name] for shown, name in known.items()}
        bands(ax, lines, styles={"rsKRR+uniform": "--"})
        whole = f"{WHOLE}, {MODELS[model]}"
        if whole in curves:
            level = _leveled(curves, whole, list(known.values()), seeds)
            ax.axhline(level.mean, color="0.35", linestyle=":", label="fitted to the whole pool")
            if np.isfinite(level.low):
                ax.axhspan(level.low, level.high, color="0.35", alpha=0.12, linewidth=0)
        label = f"RMSE in {self.source.unit}"
        shown = f"{title}\n{len(seeds)} repetitions, {BANDS}"
        finish(ax, title=shown, xlabel=self._rounds, ylabel=label)

    @property
    def _rounds(self) -> str:
        return f"round (of {self.source.batch:,} labels)"

    def _differences(
        self,
        ax: Axes,
        curves: Curves,
        models: Sequence[str],
        seeds: Sequence[int] | None = None,
    ) -> None:
        """On these seeds; else each line on all it has, which its label then says."""
        lines: dict[str, dict[float, Estimate]] = {}
        for model in models:
            one, other = f"V2, {MODELS[model]}", f"uniform, {MODELS[model]}"
            if one in curves and other in curves:
                some = curves.seeds(one, other) if seeds is None else seeds
                lines[f"{MODELS[model]}, {len(some)} repetitions"] = {
                    r: arithmetic(curves.differences(one, other, [r], relative, some))
                    for r in curves.rounds(one)[1:]
                }
        bands(ax, lines, colors=PAIRS)
        ax.axhline(0, color="0.4", linewidth=1)
        finish(
            ax,
            title="V2 against uniform, paired",
            xlabel=self._rounds,
            ylabel="difference of RMSE in %",
        )

    def learned(self, curves: Curves) -> Figure:
        """Learned bandwidths beside one bandwidth, at the same m."""
        figure, axes = new_figure(2, size=(4.7, 4.0))
        figure.suptitle(f"{self.title}, with learned bandwidths, 95% bands", fontsize="large")
        names = {
            f"{name}, {words}": f"{name}, {MODELS[model]}"
            for model, words in (("learned", "learned bandwidths"), ("fixed", "one bandwidth"))
            for name in ("V2", "uniform")
        }
        seeds = curves.seeds(*names.values())
        bands_of = curves.leveled(list(names.values()))
        lines = {shown: bands_of[name] for shown, name in names.items()}
        dashed = {shown: "--" for shown in lines if shown.startswith("uniform")}
        bands(axes[0], lines, styles=dashed)
        label = f"RMSE in {self.source.unit}"
        title = f"m fixed\n{len(seeds)} repetitions, {BANDS}"
        finish(axes[0], title=title, xlabel=self._rounds, ylabel=label)
        self._differences(axes[1], curves, ("learned", "fixed"), seeds)
        return figure

    def automatic(self, rows: Sequence[Row], curves: Curves) -> Figure:
        """The sketch that grows as it sees fit, with its m."""
        figure, axes = three_panels()
        figure.suptitle(f"{self.title}, with the automatic sketch, 95% bands", fontsize="large")
        self._lines(axes[0], curves, "auto", ("V2", "uniform"), "m automatic")
        sizes = curves_of(rows, "m")
        lines = {
            f"rsKRR+{name}": _possible(sizes.band(f"{name}, {MODELS['auto']}"))
            for name in ("V2", "uniform")
        }
        bands(axes[1], lines, styles={"rsKRR+uniform": "--"})
        title = f"the sketch that was chosen\nmeans, at most {MOST} rows"
        finish(axes[1], title=title, xlabel=self._rounds, ylabel="m")
        self._differences(axes[2], curves, ("auto",))
        return figure


def _possible(line: dict[float, Estimate]) -> dict[float, Estimate]:
    """Without what of an interval no sketch can have."""
    return {r: Estimate(e.mean, max(e.low, 1.0), min(e.high, MOST)) for r, e in line.items()}


def _leveled(
    curves: Curves, line: str, strategies: Sequence[str], seeds: Sequence[int]
) -> Estimate:
    """A value of each seed, without the level of the seed, as `Curves.leveled` shows the others."""
    some = [s for s in curves.seeds(line) if s in seeds]
    rounds = sorted(set.intersection(*(set(curves.rounds(s)) for s in strategies)))
    levels = np.array([np.mean([curves.of(n, s, rounds) for n in strategies]) for s in some])
    values = np.array([curves.of(line, s, curves.rounds(line)).mean() for s in some])
    return arithmetic(values - levels + levels.mean())


def _name(row: Row) -> str:
    return f"{row['strategy']}, {MODELS[row['model']]}"
