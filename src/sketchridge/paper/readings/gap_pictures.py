"""The panels of Figure 1: logarithmic axes for both readings of λ, and linear ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchridge.paper.base import Row, groups
from sketchridge.paper.readings.drawing import (
    COLORS,
    bands,
    finish,
    four_panels,
    legend_below,
    steps,
)
from sketchridge.paper.runs.gaps import FIXED_LAMBDA
from sketchridge.paper.statistics import Estimate, arithmetic, geometric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["AXES", "LAMBDAS", "gap_figure", "means_by_value", "part_of", "range_of"]

LAMBDAS = {"optimal": "λ of the optimal rate", "fixed": f"λ = {FIXED_LAMBDA:g}"}
AXES = {"n": "training points n", "c": "exponent c of m", "sigma": "noise σ"}
LETTERS = {"gap_v2": "V2", "gap_v3": "V3", "gap_vbar": "V̄ (this library)"}
TICKS = {"n": (50, 100, 200, 500, 1000), "sigma": (0.5, 1, 2, 3, 5)}


def part_of(rows: Sequence[Row], kernel: str, lambda_is: str, m_is: str = "rule") -> list[Row]:
    """The rows of a kernel under one reading of λ."""
    wanted = (kernel, lambda_is, m_is)
    return [r for r in rows if (r["kernel"], r["lambda_is"], r["m_is"]) == wanted]


def means_by_value(rows: Sequence[Row], column: str, mean: Any) -> dict[float, Estimate]:
    """A mean for each value of what varies, in ascending order."""
    ordered = sorted(rows, key=lambda row: row["value"])
    return {
        value: mean([row[column] for row in part])
        for (value,), part in groups(ordered, "value").items()
    }


def gap_figure(title: str, varies: str, kernels: Sequence[str], rows: Sequence[Row]) -> Figure:
    """Logarithmic and linear panels for both λ; the first of the kernels is the paper's."""
    figure, axes = four_panels()
    sizes = range_of(row["m"] for row in part_of(rows, kernels[0], "optimal"))
    figure.suptitle(f"{title}, m = {sizes}", fontsize="large")
    for ax, (reading, words) in zip(axes, LAMBDAS.items(), strict=False):
        part = part_of(rows, kernels[0], reading)
        curves = {name: means_by_value(part, c, geometric) for c, name in LETTERS.items()}
        curves["V2, arithmetic mean"] = means_by_value(part, "gap_v2", _on_logarithms)
        curves["sup V1, for scale"] = means_by_value(part, "sup_v1", geometric)
        for kernel in kernels[1:]:
            other = part_of(rows, kernel, reading)
            if other:
                curves[f"V2, {kernel}"] = means_by_value(other, "gap_v2", geometric)
        styles = {"V2, arithmetic mean": "--", "sup V1, for scale": ":"}
        bands(ax, curves, styles=styles, marker="o")
        ax.set_yscale("log")
        if varies in TICKS:
            ax.set_xscale("log")
            ax.set_xticks(TICKS[varies], [f"{tick:g}" for tick in TICKS[varies]])
            ax.minorticks_off()
        _finish(ax, varies, part, f"geometric means; dashed: arithmetic, {words}")
    for ax, (reading, words) in zip(axes[2:], LAMBDAS.items(), strict=True):
        _linear(ax, varies, kernels, rows, reading)
        part = part_of(rows, kernels[0], reading)
        _finish(ax, varies, part, f"linear axes, arithmetic means, {words}")
    legend_below(figure, axes[0])
    return figure


def _linear(
    ax: Axes, varies: str, kernels: Sequence[str], rows: Sequence[Row], reading: str
) -> None:
    """Arithmetic means, each in the color it has in the legend; sup V1 in words where it is far."""
    part = part_of(rows, kernels[0], reading)
    lines = {
        "V2, arithmetic mean": means_by_value(part, "gap_v2", arithmetic),
        "V3": means_by_value(part, "gap_v3", arithmetic),
        LETTERS["gap_vbar"]: means_by_value(part, "gap_vbar", arithmetic),
    }
    for kernel in kernels[1:]:
        other = part_of(rows, kernel, reading)
        if other:
            lines[f"V2, {kernel}"] = means_by_value(other, "gap_v2", arithmetic)
    top = max(e.high for line in lines.values() for e in line.values())
    scale = means_by_value(part, "sup_v1", arithmetic)
    largest = max(e.mean for e in scale.values())
    near = largest < 1.5 * top
    if near:
        lines["sup V1, for scale"] = scale
    colors = {"V2, arithmetic mean": 3, "V3": 1, LETTERS["gap_vbar"]: 2, "sup V1, for scale": 4}
    styles = {"V2, arithmetic mean": "--", "sup V1, for scale": ":"}
    shades = [COLORS[colors.get(name, 5)] for name in lines]
    bands(ax, lines, colors=shades, styles=styles, marker="o")
    ax.set_ylim(bottom=0)
    if not near:
        ends = dict.fromkeys(f"{e:.2g}" for e in (min(e.mean for e in scale.values()), largest))
        said = f"sup V1 is above these axes:\n{' to '.join(ends)}"
        grows = varies == "sigma"  # the lines take the other corner
        ax.text(
            0.03 if grows else 0.97,
            0.95,
            said,
            transform=ax.transAxes,
            ha="left" if grows else "right",
            va="top",
            fontsize=8,
        )


def _on_logarithms(values: Sequence[float]) -> Estimate:
    """The arithmetic mean, its interval symmetric on a logarithmic axis (delta method)."""
    found = arithmetic(values)
    factor = float(np.exp((found.high - found.mean) / found.mean))
    return Estimate(found.mean, found.mean / factor, found.mean * factor)


def _finish(ax: Axes, varies: str, part: Sequence[Row], title: str) -> None:
    """Steps of m, a line at c = 1, and labels."""
    if varies != "sigma":
        steps(ax, {row["value"]: row["m"] for row in sorted(part, key=lambda row: row["value"])})
    if varies == "c":
        ax.axvline(1.0, color="0.4", linewidth=1, linestyle="--", zorder=0)
    finish(ax, title=title, xlabel=AXES[varies], ylabel="sup |V1 − V|", legend=False)


def range_of(values: Iterable[int]) -> str:
    """The smallest and the largest, or the one there is."""
    found = sorted(set(values))
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"
