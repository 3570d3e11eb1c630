"""The appendix's times, and the orders of growth of the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sketchridge.paper.base import Experiment, Row, groups
from sketchridge.paper.options import Options
from sketchridge.paper.readings.drawing import bands, finish, three_panels
from sketchridge.paper.readings.gap_pictures import range_of
from sketchridge.paper.readings.quotes import QUOTES
from sketchridge.paper.runs.times import Timing, Update
from sketchridge.paper.statistics import Estimate, geometric, rate
from sketchridge.paper.verdicts import FAILS, HOLDS, OPEN, SHOWN, Claim, all_of, below, listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TimingReading", "UpdateReading"]

PAPER = 4.654 / 0.251
_QUIET = 1.5  # times the fastest repetition
_FEW = 10_000  # the range of an axis below which powers of ten are few ticks


class TimingReading(Experiment):
    """The time of V1 and V2 at one new point."""

    name = "timing"
    title = "Appendix: the time of V1 and of V2 at a new point"
    maker = Timing()
    choices: ClassVar[str] = (
        "The paper states neither the machine nor what is timed. Here everything from the data to "
        "one variance is, on one thread: kernel matrix, the draw of S, factorization or sketch, "
        "and the variance; n = {n}, m = {m}, λ = (log n)^(1/2)/n; {repetitions} repetitions. "
        "Nothing else was run on purpose beside it, but the spread of the repetitions shows how "
        "quiet the machine was."
    )

    def sizes(self, options: Options) -> dict[str, str]:
        cells = self.maker.cells(options)
        return {
            "n": range_of(c["n"] for c in cells),
            "m": str(cells[0]["m"]),
            "repetitions": str(cells[0]["repeats"]),
        }

    def figure(self, rows: Sequence[Row]) -> Figure:
        whole = [r for r in rows if "given" not in r["way"]]
        given = [r for r in rows if "given" in r["way"]]
        panels = {"from the data": whole, "K and S given": given, "from the data, linear": whole}
        figure, axes = three_panels()
        for ax, (title, some) in zip(axes, panels.items(), strict=True):
            bands(ax, _means(some, "n"), marker="o")
            if "linear" not in title:
                _logarithmic(ax, rows, "n")
            finish(
                ax,
                title=f"{title}\ngeometric means, 95% bands",
                xlabel="training points n",
                ylabel="seconds",
            )
        figure.suptitle(self.title, fontsize="large")
        return figure

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        ratios = {}
        for (n,), part in groups(rows, "n").items():
            times = {
                way: np.array([r["seconds"] for r in one])
                for (way,), one in groups(part, "way").items()
            }
            ratios[n] = geometric(times["V1, printed formula"] / times["V2, printed formula"])
        first = ratios[min(ratios)]
        growth = _growth(rows, "n")
        printed = {way: e for way, e in growth.items() if "printed" in way}
        return [
            Claim(
                "timing: practical advantage",
                *QUOTES["advantage"],
                f"time of V1 over time of V2, printed formulas (judged at n = {min(ratios)}: above "
                "1)",
                listed({f"n = {n}": e for n, e in ratios.items()}),
                below(first * -1, -1.0),
                _spread(rows),
            ),
            Claim(
                "timing: 4.654 s to 0.251 s",
                *QUOTES["times"],
                f"the same ratio against {PAPER:.1f}, the paper's, at n = {min(ratios)}",
                f"{first}{_with_kernel(rows, growth)}",
                SHOWN,
                "A time on an unnamed machine with unnamed software cannot be refuted on another, "
                "so it is not judged. From the data both formulas need the n×n "
                "kernel matrix, and the factorization that V2 saves takes milliseconds at n = 500.",
            ),
            *_given(rows, growth),
            Claim(
                "timing: order of growth",
                *QUOTES["cost"],
                "exponent of n of the median time, V2 by the printed formula (holds: below 2.3)",
                listed(printed),
                below(growth["V2, printed formula"], 2.3),
                "O(mn²) is an upper bound for large n: fixed costs hide part of the growth here.",
            ),
        ]


def _given(rows: Sequence[Row], growth: dict[str, Estimate]) -> list[Claim]:
    """What is said of times where the kernel matrix is there; none where it was not timed."""
    n = max(r["n"] for r in rows)
    v1, v2, product = "V1, K given", "V2, K and S given", "S K, K and S given"
    if v1 not in growth:
        return []
    share = _paired(rows, product, v2, n) * 100
    gain = _paired(rows, v1, v2, n)
    return [
        Claim(
            "timing: O(n³) and O(n²)",
            *QUOTES["cubic"],
            "exponent of n of the median time of V1 with K given (holds: below 3.3); K has n² "
            "numbers",
            str(growth[v1]),
            below(growth[v1], 3.3),
        ),
        Claim(
            "timing: the main cost is S K",
            *QUOTES["main_cost"],
            f"percent of the time of V2 with K and S given, at n = {n} (holds: above 50), and "
            "exponent of n of the time of S K (holds: below 2.3)",
            f"{share}; {growth[product]}",
            all_of([below(share * -1, -50.0), below(growth[product], 2.3)]),
            "V2 at one point: S K once, and the (m, m) matrices made of it.",
        ),
        Claim(
            "timing: computationally more efficient",
            *QUOTES["efficient"],
            f"time of V1 over time of V2, K and S given, at n = {n} (holds: above 1)",
            str(gain),
            below(gain * -1, -1.0),
        ),
    ]


def _with_kernel(rows: Sequence[Row], growth: dict[str, Estimate]) -> str:
    """The ratio where K and S are there, if that was timed."""
    if "V1, K given" not in growth:
        return ""
    sizes = sorted({r["n"] for r in rows})
    found = {
        f"n = {n}": _paired(rows, "V1, K given", "V2, K and S given", n)
        for n in (sizes[0], sizes[-1])
    }
    return f"; with K and S given {listed(found)}"


def _significant(rows: Sequence[Row]) -> Claim:
    """Of the update against starting again, at the ends of the range of n."""
    some = [r for r in rows if r["varies"] == "n"]
    sizes = sorted({r["n"] for r in some})
    gains = {n: _paired(some, "from scratch", "update", n) for n in (sizes[0], sizes[-1])}
    first, last = gains.values() if len(sizes) > 1 else [gains[sizes[0]]] * 2
    more = HOLDS if last.low > first.high else FAILS if last.high < first.low else OPEN
    return Claim(
        "update: significant for large training sets",
        *QUOTES["significant"],
        "time from scratch over time of an update (holds: above 1 at the largest n, and above that "
        "at the smallest; younger than the first table)",
        listed({f"n = {n}": e for n, e in gains.items()}),
        all_of([below(last * -1, -1.0), more]),
    )


def _paired(rows: Sequence[Row], one: str, other: str, n: int) -> Estimate:
    """The ratio of two times at one n, geometric mean over repetitions."""
    times = {
        way: np.array([r["seconds"] for r in rows if (r["way"], r["n"]) == (way, n)])
        for way in (one, other)
    }
    return geometric(times[one] / times[other])


class UpdateReading(Experiment):
    """The block update of the sketched kernel matrix against computing it again."""

    name = "update"
    title = "Appendix: appending n_s points to a sketch of n"
    maker = Update()
    choices: ClassVar[str] = (
        "A Gaussian sketch, Gaussian kernel in 8 dimensions, one thread; the whole model is "
        "updated, not S K alone. n = {n} varies at m = {m} and n_s = 100; m and n_s vary at n = "
        "{middle}; {repetitions} repetitions."
    )

    def sizes(self, options: Options) -> dict[str, str]:
        cells = self.maker.cells(options)
        return {
            "n": range_of(c["n"] for c in cells if c["varies"] == "n"),
            "m": str(cells[0]["m"]),
            "middle": f"{cells[-1]['n']:,}",
            "repetitions": str(cells[0]["repeats"]),
        }

    def figure(self, rows: Sequence[Row]) -> Figure:
        figure, axes = three_panels()
        words = {"n": "points n", "m": "rows m of the sketch", "new": "appended points n_s"}
        for ax, (varies, label) in zip(axes, words.items(), strict=True):
            some = [r for r in rows if r["varies"] == varies]
            bands(ax, _means(some, varies), marker="o")
            _logarithmic(ax, some, varies)
            finish(
                ax,
                title=f"against {label}\ngeometric means, 95% bands",
                xlabel=label,
                ylabel="seconds",
            )
        figure.suptitle(self.title, fontsize="large")
        return figure

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        growth = {
            varies: _growth([r for r in rows if r["varies"] == varies], varies)
            for varies in ("n", "m", "new")
        }
        found = {f"in {varies}": e["update"] for varies, e in growth.items()}
        whole = growth["n"]["from scratch"]
        return [
            Claim(
                "update: O(m n n_s)",
                *QUOTES["update"],
                "exponents of the time of an update (holds: below 1.2 in n, m and n_s; "
                "not registered)",
                listed(found),
                all_of(below(e, 1.2) for e in found.values()),
                "O(·) is an upper bound: fixed costs hide part of the growth. From scratch the "
                f"exponent of n is {whole}. It holds while m stays the same: "
                "further rows of a dense sketch cost Δm·n² more.",
            ),
            _significant(rows),
            Claim(
                "update: O(n³) to O(mn)",
                *QUOTES["mn"],
                "exponent of n of the time of an update with n_s and m fixed (holds: below 1.2; "
                "not registered)",
                str(growth["n"]["update"]),
                below(growth["n"]["update"], 1.2),
                "For a round of active learning, by the update; scoring a pool of p points costs "
                "O(mnp) more, and a first fit O(mn²).",
            ),
            Claim(
                "update: attains O(mn) time",
                *QUOTES["attains"],
                "the same exponent, and that of m (holds: both below 1.2; not registered)",
                listed({"in n": growth["n"]["update"], "in m": growth["m"]["update"]}),
                all_of(below(growth[x]["update"], 1.2) for x in ("n", "m")),
                "Of a round, as above.",
            ),
        ]


def _logarithmic(ax: Any, rows: Sequence[Row], key: str) -> None:
    """Both axes logarithmic, with a tick at every second value that was measured.

    Seconds have ticks at 1, 2 and 5 where the powers of ten alone would be few.
    """
    values = sorted({r[key] for r in rows})
    values = values[:: 2 if len(values) > 5 else 1]
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(values, [f"{value:g}" for value in values])
    low, high = ax.get_ylim()
    if high < _FEW * low:
        ticks = [d * 10.0**k for k in range(-9, 9) for d in (1, 2, 5) if low < d * 10.0**k < high]
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def _growth(rows: Sequence[Row], x: str) -> dict[str, Estimate]:
    """The exponent of the median times, by way."""
    found = {}
    for way, line in _ranges(rows, x).items():
        found[way] = rate(list(line), [e.mean for e in line.values()])
    return found


def _spread(rows: Sequence[Row]) -> str:
    """How far the repetitions of V1 are apart where they are farthest: other work shows there."""
    ratios = {}
    for (n,), part in groups([r for r in rows if r["way"] == "V1, printed formula"], "n").items():
        times = [r["seconds"] for r in part]
        ratios[max(times) / min(times)] = (n, min(times), max(times))
    n, low, high = ratios[max(ratios)]
    return (
        f"The repetitions differ most at n = {n}, where V1 takes {low:.2g} to {high:.2g} s: the "
        "machine was not quiet."
        if max(ratios) > _QUIET
        else ""
    )


def _means(rows: Sequence[Row], x: str) -> dict[str, dict[float, Estimate]]:
    """Geometric means over repetitions with their 95% intervals."""
    series: dict[str, dict[float, Estimate]] = {}
    for (way, value), part in groups(rows, "way", x).items():
        found = geometric([r["seconds"] for r in part])
        alone = len(part) < 2
        shown = Estimate(found.mean, found.mean, found.mean) if alone else found
        series.setdefault(way, {})[value] = shown
    return series


def _ranges(rows: Sequence[Row], x: str) -> dict[str, dict[float, Estimate]]:
    """Medians with the fastest and the slowest repetition."""
    series: dict[str, dict[float, Estimate]] = {}
    for (way, value), part in groups(rows, "way", x).items():
        times = sorted(r["seconds"] for r in part)
        series.setdefault(way, {})[value] = Estimate(float(np.median(times)), times[0], times[-1])
    return series
