"""Figure 2: V1 and V2 at 50 points of a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from sketchridge.paper.base import Experiment, Row, groups
from sketchridge.paper.options import Options
from sketchridge.paper.readings.drawing import COLORS, finish
from sketchridge.paper.readings.quotes import QUOTES
from sketchridge.paper.runs.mixture import READINGS, SIZES, Mixture
from sketchridge.paper.statistics import Estimate, geometric
from sketchridge.paper.verdicts import FAILS, HOLDS, OPEN, Claim, by_reading, listed
from sketchridge.plotting import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MixtureReading"]


_SEEN = (
    "Read as a standard deviation the three panels show what the paper describes; read as a "
    "variance V2 is V1 from m = 20 on and there is nothing left to see."
)


class MixtureReading(Experiment):
    """V1 and V2 at the test points, for three projection dimensions and two readings."""

    name = "fig2"
    title = "Figure 2: V1 and V2 at 50 points of a mixture"
    maker = Mixture()
    choices: ClassVar[str] = (
        "X ~ ½N(0.5, 0.5) + ½N(5, 5), n = {n}, m = {m}, {repetitions} repetitions: the second "
        "parameter is read as a standard deviation, as R's rnorm has it (above), and as a "
        "variance (below). λ = (log n)^(1/2)/n as in Example 2; bandwidth 1; fresh data and "
        "sketch in each repetition; the points are those of the first."
    )

    def sizes(self, options: Options) -> dict[str, str]:
        cells = self.maker.cells(options)
        ours = [c for c in cells if c["second_is"] == cells[0]["second_is"]]
        return {
            "n": f"{cells[0]['n']:,}",
            "m": ", ".join(map(str, cells[0]["sizes"])),
            "repetitions": str(sum(c["count"] for c in ours)),
        }

    def figure(self, rows: Sequence[Row]) -> Figure:
        points = groups([r for r in rows if r["kind"] == "point"], "second_is", "m")
        sizes = sorted({m for _, m in points})
        figure, axes = new_figure(len(sizes), size=(4.2, 6.6))
        for ax in axes:
            ax.remove()
        grid = figure.subplots(2, len(sizes), squeeze=False, sharey="row", sharex="row")
        for row, reading in enumerate(READINGS):
            for ax, m in zip(grid[row], sizes, strict=True):
                part = points[reading, m]
                x = [r["x"] for r in part]
                look = {"facecolors": "none", "edgecolors": COLORS[1]}
                ax.scatter(x, [r["v1"] for r in part], s=46, label="V1, original", **look)
                v2 = [r["v2"] for r in part]
                ax.scatter(x, v2, s=9, color=COLORS[0], label="V2, randomly projected")
                ax.set_yscale("log")
                finish(
                    ax,
                    title=f"m = {m}, 5 is a {reading}{_error(rows, reading, m)}",
                    xlabel="x",
                    ylabel="variance" if m == sizes[0] else "",
                    legend=row == 0 and m == sizes[0],
                )
        figure.suptitle(self.title, fontsize="large")
        return figure

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """From the median of |V2/V1 − 1| over test points: its geometric mean over repetitions."""
        errors = groups([r for r in rows if r["kind"] == "error"], "second_is", "m")
        readings = {}
        parts = {}
        for reading in READINGS:
            found = {
                m: geometric([r["median"] for r in part])
                for (name, m), part in errors.items()
                if name == reading
            }
            readings[reading] = _falling(list(found.values()))
            for m, e in found.items():
                far = sum(r["far"] for r in errors[reading, m]) / len(errors[reading, m])
                parts[f"{reading}, m = {m}"] = f"{e}, {100 * far:.0f}% of points off by over 10%"
        return [
            Claim(
                "fig2: V2 approaches V1",
                *QUOTES["similar"],
                "median |V2/V1 − 1| (holds: intervals in falling order)",
                listed(parts),
                by_reading(readings),
                _SEEN if {m for _, m in errors} == set(SIZES) else "",
            )
        ]


def _error(rows: Sequence[Row], reading: str, m: int) -> str:
    """Over all repetitions; points are kept of the first alone, so they have no bands."""
    wanted = ("error", reading, m)
    found = [r["median"] for r in rows if (r["kind"], r["second_is"], r["m"]) == wanted]
    return f"\nmedian |V2/V1 − 1|: {geometric(found)}" if len(found) > 1 else ""


def _falling(found: Sequence[Estimate]) -> str:
    """In falling order; not decided where there are no two m to compare."""
    pairs = list(pairwise(found))
    if not pairs:
        return OPEN
    if all(b.high < a.low for a, b in pairs):
        return HOLDS
    return FAILS if any(b.low > a.high for a, b in pairs) else OPEN
