"""The paper's future work: Hadamard and Fourier sketches against s_λ and s_λ log n."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sketchridge.paper.base import Experiment, Row, groups
from sketchridge.paper.options import Options
from sketchridge.paper.readings.drawing import bands, finish, four_panels
from sketchridge.paper.readings.quotes import QUOTES
from sketchridge.paper.runs.gaps import LARGEST as N
from sketchridge.paper.runs.other_sketches import LAMBDAS, OtherSketches
from sketchridge.paper.statistics import Estimate, geometric, share
from sketchridge.paper.verdicts import SHOWN, Claim, listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["OtherSketchesReading"]

ENOUGH = 0.1  # of sup V1
ROUNDING = 1e-9  # of V1 − V2 in double precision, in units of sup V1
LIKELY = 0.9  # of the repetitions
KERNEL_WORDS = {"cubic spline": "cubic spline", "Gaussian": "Gaussian kernel"}


DRAWN = (
    "Hadamard sketches here are rows of the Hadamard matrix of size 2^⌈log₂ n⌉, drawn with "
    "replacement and cut to their first n columns; Fourier sketches are cosines with frequencies "
    "spread evenly from a random start and with random phases. Both have random signs of the "
    "columns. So neither are rows of one orthonormal matrix of size n, which is the paper's class."
)


class OtherSketchesReading(Experiment):
    """The gap against m/s_λ for five kinds of random matrices."""

    name = "sketches"
    title = "Future work: the gap against m/s_λ for other sketches"
    maker = OtherSketches()
    choices: ClassVar[str] = (
        "n = {n} points of U[0, 1], {repetitions} repetitions; λ = 1e-6 (cubic spline) and 1e-5 "
        "(Gaussian kernel of bandwidth 0.25), so that s_λ is about 10 at n = 1,000; m = ⌈multiple "
        "· s_λ⌉; the gap in units of sup V1. Entries of the sparse sketch are ±1 with probability "
        f"1/6 each, else 0. {DRAWN}"
    )

    def sizes(self, options: Options) -> dict[str, str]:
        cells = self.maker.cells(options)
        ours = [c for c in cells if c["kernel"] == cells[0]["kernel"]]
        return {
            "n": f"{cells[0]['n']:,}",
            "repetitions": str(sum(c["count"] for c in ours)),
        }

    def figure(self, rows: Sequence[Row]) -> Figure:
        figure, axes = four_panels()
        for k, kernel in enumerate(LAMBDAS):
            part = [r for r in rows if r["kernel"] == kernel]
            s = round(float(np.mean([r["s_lambda"] for r in part])), 1)
            n_log = np.log(N)
            for ax, gaps in ((axes[2 * k], True), (axes[2 * k + 1], False)):
                bands(ax, _gaps(part) if gaps else _shares(part), marker="o")
                ax.axvline(n_log, color="0.4", linestyle="--", linewidth=1)
                ax.set_xscale("log")
                ax.set_xticks([1, 2, 3, 5, 7], ["1", "2", "3", "5", "7"])
                ax.minorticks_off()
                if gaps:
                    ax.set_yscale("log")
                    ax.axhline(ENOUGH, color="0.7", linewidth=1)
                    _rounding(ax)
                words = "sup|V1 − V2| / sup V1" if gaps else "share with A1 (i)"
                title = f"{KERNEL_WORDS[kernel]}, s_λ = {s:g}"
                finish(ax, title=title, xlabel="m/s_λ (dashed: log n)", ylabel=words, legend=k == 0)
        figure.suptitle(self.title, fontsize="large")
        return figure

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Both sentences are about Assumption A1 with unnamed constants: they are not judged."""
        by_kernel = {
            KERNEL_WORDS[kernel]: [r for r in rows if r["kernel"] == kernel] for kernel in LAMBDAS
        }
        gaps = {
            kernel: _smallest(_gaps(part), lambda e: e.mean < ENOUGH)
            for kernel, part in by_kernel.items()
        }
        shares = {
            kernel: _smallest(_shares(part), lambda e: e.low > LIKELY, shown=True)
            for kernel, part in by_kernel.items()
        }
        shown = f"A1 (i) surely in over {LIKELY:.0%}: {listed(shares)}. Gap: {listed(gaps)}"
        text = (
            f"smallest m/s_λ at which A1 (i) holds surely in over {LIKELY:.0%} of the repetitions, "
            "the lower end of the interval of the share being above it (not registered), and with "
            f"a gap below {ENOUGH:.0%} of sup V1 (geometric mean)"
        )
        return [
            Claim(
                "sketches: Hadamard needs s_λ log n",
                *QUOTES["hadamard"],
                f"{text}; log n = {np.log(N):.1f}",
                shown,
                SHOWN,
                f"The paper says so of the mean and supposes it of the variance. {DRAWN}",
            ),
            Claim(
                "sketches: subsampled orthonormal rows",
                *QUOTES["subsampled"],
                text,
                shown,
                SHOWN,
                DRAWN,
            ),
            Claim(
                "sketches: m > s_λ is enough",
                *QUOTES["only_s"],
                f"{text} (registered: the gap's at most 2 for Gaussian sketches)",
                shown,
                SHOWN,
                "The theorem needs m ≥ d·s_λ with an unnamed constant d.",
            ),
        ]


def _rounding(ax: Axes) -> None:
    """Shades what is rounding, where the axis goes down to it."""
    low = ax.get_ylim()[0]
    if low < ROUNDING:
        ax.axhspan(low, ROUNDING, color="0.93", zorder=0)
        ax.text(0.03, 0.02, "rounding", transform=ax.transAxes, fontsize=7, color="0.35")


def _smallest(
    lines: dict[str, dict[float, Estimate]],
    enough: Callable[[Estimate], bool],
    *,
    shown: bool = False,
) -> str:
    """By sketch, the first m/s_λ that is enough, with what was found there."""
    said = []
    for sketch, line in lines.items():
        x = min((x for x, e in line.items() if enough(e)), default=None)
        text = "none" if x is None else f"{x:g}"
        said.append(f"{sketch} {text}" + (f" ({line[x]})" if shown and x is not None else ""))
    return ", ".join(said)


def _gaps(rows: Sequence[Row]) -> dict[str, dict[float, Estimate]]:
    found: dict[str, dict[float, Estimate]] = {}
    for (sketch, multiple), part in groups(rows, "sketch", "multiple").items():
        gaps = [r["relative_gap"] for r in part]
        found.setdefault(sketch, {})[multiple] = geometric(gaps)
    return found


def _shares(rows: Sequence[Row]) -> dict[str, dict[float, Estimate]]:
    found: dict[str, dict[float, Estimate]] = {}
    for (sketch, multiple), part in groups(rows, "sketch", "multiple").items():
        found.setdefault(sketch, {})[multiple] = share(sum(r["a1"] for r in part), len(part))
    return found
