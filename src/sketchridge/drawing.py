"""How intervals look in every picture."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchridge.calibration import Calibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GRAY",
    "MISSING",
    "RED",
    "Limits",
    "axes_for",
    "draw_band",
    "draw_coverage",
    "draw_levels",
    "draw_pit",
    "draw_tenths",
    "few_dates",
    "new_figure",
    "new_panels",
    "plain_label",
    "predicted_intervals",
]

Array = np.ndarray
Limits = tuple[Array, Array]
BLUE = "#1f5a8a"
RED = "#c8443c"
GRAY = "#6b6b6b"
_SLANTED = 10  # names below a picture that have room on the slant
MISSING = "Plotting needs matplotlib, which is not installed: pip install 'sketchridge[plot]'."


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
    most = 14 if len(x) <= _SLANTED else 24  # letters of a name
    short = [plain_label(t if len(t) <= most else t[: most - 1] + "…") for t in map(str, x)]
    if max(map(len, short)) * len(short) <= 40:
        ax.set_xticks(spots, short)
    elif len(short) <= _SLANTED:
        ax.set_xticks(spots, short, rotation=40, ha="right", rotation_mode="anchor")
    else:
        ax.set_xticks(spots, short, rotation=90, fontsize="x-small")
    ax.margins(x=0.08)


def plain_label(name: str) -> str:
    """A name as a label, in which nothing is taken for mathematics.

    >>> plain_label("cost in $")
    'cost in \\\\$'
    """
    return name.replace("$", r"\$")


def predicted_intervals(
    estimator: Any, X: Any, confidence_level: float
) -> tuple[Array, Limits, Limits]:
    """The mean, the interval for the mean and the one for a new observation."""
    inner = estimator.predict_interval(X, confidence_level, include_noise=False)
    return estimator.predict(X), inner, estimator.predict_interval(X, confidence_level)


def few_dates(ax: Axes) -> None:
    """Dates below a picture that do not run into each other."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=8)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def draw_coverage(report: Calibration, ax: Axes) -> None:
    """Coverage found against coverage asked for."""
    p = np.linspace(0, 1, 101)
    _expected(ax, p, p, np.sqrt(p * (1 - p) / report.t))
    ax.plot(
        report.levels,
        report.coverage,
        color=BLUE,
        marker="o",
        markersize=4,
        linewidth=2,
        label="found",
        clip_on=False,
    )
    ax.set(xlabel="confidence level", ylabel="coverage", xlim=(0, 1), ylim=(0, 1))
    ax.set_title("All points", fontsize="medium")
    ax.legend(frameon=False, fontsize="small", loc="upper left")


def draw_tenths(report: Calibration, ax: Axes) -> None:
    """Coverage of the main level where intervals are narrow and where they are wide."""
    found, level = report.by_spread, report.main_level
    part = np.arange(1, len(found) + 1)
    error = np.sqrt(level * (1 - level) * len(found) / report.t)
    _expected(ax, np.array([0.5, len(found) + 0.5]), np.full(2, level), np.full(2, error))
    ax.plot(part, found, color=BLUE, marker="o", markersize=4, linewidth=2, clip_on=False)
    lowest = min(found.min(), level - 2 * error)
    ax.set(
        xlabel="parts of equal size, narrow intervals to wide ones",
        ylabel="coverage",
        xticks=part,
        xlim=(0.5, len(found) + 0.5),
        ylim=(max(0.0, np.floor(10 * lowest - 0.2) / 10), 1.0),
    )
    ax.set_title(f"Intervals of {100 * level:g}%, by their width", fontsize="medium")


def draw_pit(report: Calibration, ax: Axes) -> None:
    """The distribution of F(y): high at both ends where predictions are too narrow."""
    parts = 10
    density = parts * report.histogram(parts)
    edges = np.arange(parts) / parts
    ax.bar(edges, density, 1 / parts, align="edge", color=BLUE, alpha=0.6, edgecolor="white")
    error = np.sqrt((parts - 1) / report.t)
    _expected(ax, np.array([0.0, 1.0]), np.ones(2), np.full(2, error))
    ax.set(xlabel="F(y), F predicted and y observed", ylabel="density", xlim=(0, 1))
    ax.set_ylim(0, max(2.0, 1.1 * density.max()))
    ax.set_title("Probability integral transform", fontsize="medium")


def _expected(ax: Axes, x: Array, y: Array, error: Array) -> None:
    """What is expected, and where it lies in 95 of 100 cases."""
    ax.fill_between(x, y - 1.96 * error, y + 1.96 * error, color=GRAY, alpha=0.2, linewidth=0)
    ax.plot(x, y, color=GRAY, linewidth=1, linestyle="--", label="expected")


def new_figure(
    columns: int = 1, *, size: tuple[float, float] = (6.4, 4.2)
) -> tuple[Figure, list[Axes]]:
    """A figure of panels in a row that no window or global state knows of."""
    figure = _imported("figure").Figure(figsize=(size[0] * columns, size[1]), layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def axes_for(ax: Axes | None) -> Axes:
    """Those that are given, or those of a new figure."""
    if ax is not None:
        return ax
    made: Axes = _imported("pyplot").subplots(layout="constrained")[1]
    return made


def new_panels(columns: int) -> list[Axes]:
    """Panels in a row, of a new figure that pyplot shows."""
    size = (4.2 * columns, 3.6)
    made = _imported("pyplot").subplots(1, columns, figsize=size, layout="constrained")
    return list(made[1])


def _imported(module: str) -> Any:
    """A module of matplotlib, or what to do where there is none."""
    try:
        import matplotlib  # noqa: F401, by itself, so that its absence is seen

        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError(MISSING) from error
