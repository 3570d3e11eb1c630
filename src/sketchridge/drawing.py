"""How intervals look in every picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BLUE", "GREY", "RED", "Limits", "draw_band", "draw_levels", "few_dates"]

Array = np.ndarray
Limits = tuple[Array, Array]
BLUE = "#1f5a8a"
RED = "#c8443c"
GREY = "#6b6b6b"


def draw_band(ax: Axes, x: Array, inner: Limits, outer: Limits, confidence_level: float) -> None:
    """Draw intervals for the mean and for a new observation, limits (t,) along x."""
    level = f"{100 * confidence_level:g}%"
    look: Any = {"color": BLUE, "linewidth": 0}
    ax.fill_between(x, *outer, alpha=0.13, label=f"{level} for a new observation", **look)
    ax.fill_between(x, *inner, alpha=0.38, label=f"{level} for the mean", **look)


def draw_levels(
    ax: Axes, x: Array, mean: Array, inner: Limits, outer: Limits, confidence_level: float
) -> None:
    """Draw means (t,) with both intervals for the values of a category, side by side."""
    level = f"{100 * confidence_level:g}%"
    spots = np.arange(len(x))
    ax.vlines(
        spots, *outer, color=BLUE, alpha=0.25, linewidth=5, label=f"{level} for a new observation"
    )
    ax.vlines(spots, *inner, color=BLUE, alpha=0.7, linewidth=5, label=f"{level} for the mean")
    ax.plot(spots, mean, "o", color="white", markeredgecolor=BLUE, markersize=6, label="mean")
    short = [text if len(text) <= 14 else text[:13] + "…" for text in map(str, x)]
    turned = max(map(len, short)) * len(short) > 40
    ax.set_xticks(spots, short, rotation=40 * turned, ha="right" if turned else "center")
    ax.margins(x=0.08)


def few_dates(ax: Axes) -> None:
    """Dates below a picture that do not run into each other."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=8)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
