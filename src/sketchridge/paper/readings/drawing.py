"""How the paper's pictures are drawn: lines with bands, steps of m, one look for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchridge.paper.statistics import Estimate
from sketchridge.plotting import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLORS", "bands", "finish", "four_panels", "legend_below", "steps", "three_panels"]

COLORS = ("#1f5a8a", "#c8443c", "#3a8f5c", "#e08e45", "#8d6a9f", "#2e4057", "#7a7a7a", "#4f9dc4")
NARROW = 0.08  # of the width of the axes: what a label of m takes
PAGE = 9.4  # inches of the report's text: what is drawn wider is shown smaller there


def three_panels(height: float = 3.7) -> tuple[Figure, list[Axes]]:
    """A row of three, a fifth wider than the page."""
    return new_figure(3, size=(1.2 * PAGE / 3, height))


def four_panels(height: float = 3.5) -> tuple[Figure, list[Axes]]:
    """Two rows of two, whose words have their full size on the page."""
    figure, (ax,) = new_figure(size=(PAGE, 2 * height))
    ax.remove()
    return figure, list(figure.subplots(2, 2).flat)


def bands(
    ax: Axes,
    curves: Mapping[str, Mapping[float, Estimate]],
    *,
    colors: Sequence[str] = COLORS,
    styles: Mapping[str, str] | None = None,
    marker: str = "",
) -> None:
    """A line for each name with its interval as a band."""
    for k, (name, line) in enumerate(curves.items()):
        x = list(line)
        look: dict[str, Any] = {"color": colors[k % len(colors)]}
        ax.plot(
            x,
            [e.mean for e in line.values()],
            linewidth=1.6,
            linestyle=(styles or {}).get(name, "-"),
            marker=marker,
            markersize=3.5,
            label=name,
            **look,
        )
        low = [e.low for e in line.values()]
        high = [e.high for e in line.values()]
        ax.fill_between(x, low, high, alpha=0.18, linewidth=0, **look)


def steps(ax: Axes, sizes: Mapping[float, int]) -> None:
    """m above the axes, where it changes, with a thin line; higher where there is no room."""
    low, high = ax.get_xlim()
    place = ax.get_xaxis().get_transform().transform
    width = float(place(high) - place(low))
    last = None
    before, raised = -np.inf, False
    for x, m in sizes.items():
        if m != last:
            here = float(place(x))
            raised = here - before < NARROW * width and not raised
            before = here
            ax.axvline(x, color="0.85", linewidth=0.8, zorder=0)
            ax.annotate(
                f"m={m}",
                (x, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(1, 9 if raised else 2),
                textcoords="offset points",
                fontsize=7,
                color="0.35",
            )
        last = m


def legend_below(figure: Figure, ax: Axes) -> None:
    """One legend for all panels, under them."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8
    )


def finish(ax: Axes, *, title: str, xlabel: str, ylabel: str, legend: bool = True) -> None:
    """Labels, a light grid and a small legend; the title leaves room for `steps`."""
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_title(title, fontsize="medium", pad=18)
    ax.grid(color="0.94")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        ax.legend(frameon=False, fontsize="x-small")
