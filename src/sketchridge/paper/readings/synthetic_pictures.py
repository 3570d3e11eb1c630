"""The pictures of Figure 3: errors, ratios of paired errors, and labels of the minority."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sketchridge.paper.base import Row
from sketchridge.paper.readings.curves import Curves
from sketchridge.paper.readings.drawing import COLORS, bands, finish, four_panels
from sketchridge.paper.statistics import Estimate, arithmetic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["curves_of", "log_ratio", "synthetic_figure"]

Array = np.ndarray
FOUR = ("KRR+V1", "KRR+rand", "rsKRR+V2", "rsKRR+rand")
POOL = {"rsKRR+V2, n = pool": 7, "rsKRR+rand, n = pool": 4}  # with their colors
TOP = "rsKRR+V2-top"
PAIRS = {  # what is judged, by panel
    1: {
        ", n = labels": [
            ("rsKRR+V2", "KRR+V1"),
            ("rsKRR+V2", "KRR+rand"),
            ("rsKRR+V2", "rsKRR+rand"),
        ],
        ", n = pool": [
            ("rsKRR+V2, n = pool", "KRR+V1"),
            ("rsKRR+V2, n = pool", "KRR+rand"),
            ("rsKRR+V2, n = pool", "rsKRR+rand, n = pool"),
        ],
    },
    2: {
        "": [
            ("rsKRR+V2", "KRR+V1"),
            ("KRR+V1", "KRR+rand"),
            ("rsKRR+V2", TOP),
            ("rsKRR+V2, n = pool", "KRR+V1"),
        ],
    },
}
SHADES = ("#7a7a7a", "#8d6a9f", "#a0743c")  # colors that no strategy has
TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 2)  # of ratios
FAR_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10)  # where they are far apart
_FAR = 5  # times
DASHED = {"KRR+rand": "--", "rsKRR+rand": "--", "rsKRR+rand, n = pool": "--", TOP: ":"}


def curves_of(rows: Sequence[Row], value: str) -> Curves:
    """A column by strategy, seed and round."""
    return Curves(rows, lambda row: row["strategy"], value)


def log_ratio(one: Array, other: Array) -> Array:
    return np.log10(one) - np.log10(other)


def synthetic_figure(title: str, setting: int, rows: Sequence[Row]) -> Figure:
    """Errors on two kinds of axes, with those of V2-top in setting 2; ratios; the minority."""
    figure, axes = four_panels()
    figure.suptitle(f"{title}; n is the labels of the round unless named", fontsize="large")
    errors = curves_of(rows, "mse")
    beside = {TOP: 5} if setting == 2 else {}
    shown = dict(zip(FOUR, range(4), strict=True)) | POOL | beside
    shown = {name: color for name, color in shown.items() if name in errors}
    _errors(axes[0], errors, shown, logarithmic=True)
    _errors(axes[1], errors, shown, logarithmic=False)
    for ax, (words, pairs) in zip(axes[2:], PAIRS[setting].items(), strict=False):
        _ratios(ax, errors, words, [p for p in pairs if all(name in errors for name in p)])
    if setting == 2:
        _minority(axes[3], rows)
    return figure


def _errors(ax: Axes, errors: Curves, shown: dict[str, int], *, logarithmic: bool) -> None:
    colors = [COLORS[color] for color in shown.values()]
    lines = {name: _power(errors.band(name, np.log10)) for name in shown}
    title = "geometric mean"
    if logarithmic:
        ax.set_yscale("log")
    else:
        top = 2 * max(e.mean for line in lines.values() for e in line.values())
        lines = {name: errors.band(name) for name in shown}
        title = "arithmetic mean, linear axes"
        far = max(e.mean for line in lines.values() for e in line.values())
        if far > top:
            lines = {name: _settled(line, top) for name, line in lines.items()}
            said = f"without earlier means, up to {far:,.0f}, which a few repetitions make"
            ax.text(0.03, 1.02, said, transform=ax.transAxes, fontsize=8)
            ax.set_ylim(0, top)
    bands(ax, lines, colors=colors, styles=DASHED)
    if not logarithmic:
        ax.set_ylim(bottom=0)
    finish(ax, title=f"{title}, 95% bands", xlabel="round", ylabel="MSE against f*")


def _settled(line: dict[float, Estimate], top: float) -> dict[float, Estimate]:
    """From the round on after which no mean is above the axes."""
    above = [r for r, e in line.items() if e.mean > top]
    return {r: e for r, e in line.items() if r > max(above, default=-1)}


def _ratios(ax: Axes, errors: Curves, words: str, pairs: Sequence[tuple[str, str]]) -> None:
    lines: dict[str, dict[float, Estimate]] = {
        f"{one} over {other}": {
            r: _factor(arithmetic(errors.differences(one, other, [r], log_ratio)))
            for r in errors.rounds(one)
            if r
        }
        for one, other in pairs
    }
    dashed = {name: "--" for name in lines if "n = pool" in name}
    bands(ax, lines, colors=SHADES, styles=dashed)
    ax.axhline(1, color="0.4", linewidth=1)
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ticks = [t for t in (FAR_TICKS if high > _FAR * low else TICKS) if low < t < high]
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    title = f"ratio of paired errors{words}, 95% bands"
    finish(ax, title=title, xlabel="round", ylabel="ratio of MSE")


def _minority(ax: Axes, rows: Sequence[Row]) -> None:
    counts = curves_of(rows, "minority")
    names = {"KRR+V1": 0, "KRR+rand": 1, "rsKRR+V2": 2, TOP: 5, "rsKRR+gp": 6}
    names = {name: color for name, color in names.items() if name in counts}
    lines = {name: counts.band(name) for name in names}
    styles = {**DASHED, "rsKRR+V2": "--"}  # on the line of KRR+V1
    bands(ax, lines, styles=styles, colors=[COLORS[k] for k in names.values()])
    title = "labeled points of the minority, 95% bands"
    finish(ax, title=title, xlabel="round", ylabel="points")


def _factor(found: Estimate) -> Estimate:
    return Estimate(10**found.mean, 10**found.low, 10**found.high)


def _power(line: dict[float, Estimate]) -> dict[float, Estimate]:
    return {r: _factor(e) for r, e in line.items()}
