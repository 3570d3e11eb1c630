"""Figures 4 and 5: active learning on flights and on the weather."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sketchridge.paper.base import Experiment, Row
from sketchridge.paper.readings.curves import Curves
from sketchridge.paper.readings.drawing import COLORS, bands, finish
from sketchridge.paper.readings.quotes import QUOTES
from sketchridge.paper.runs.real import MODELS, SOURCES, WHOLE, Real
from sketchridge.paper.statistics import Estimate, arithmetic
from sketchridge.paper.verdicts import OPEN, SHOWN, Claim, below, judged, listed, same
from sketchridge.plotting import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["RealReading"]

Array = np.ndarray
MARGIN = 0.5  # percent
TARGET = 1.01  # times the error of the whole pool
PAPERS = ("labels", "pool")


class RealReading(Experiment):
    """V2 against uniform sampling, at equal m, up to half of the pool."""

    choices: ClassVar[str] = (
        "Features scaled to standard deviation 1 in the pool, the bandwidth its median distance, λ "
        "by leave-one-out in every round, y centered by the mean of the first labels; no test row "
        "enters. A Gaussian sketch; m = ⌈log n⌉ with n the labels of the round, with n the pool, "
        "and m = 256, which is not the paper's. Scores come from sums in single precision for the "
        "paper's m and in double precision for m = 256. Every strategy of a repetition has the "
        "same pool, test points, first labels and keys of the draw. Half of the pool is labeled "
        "in the end: where all of it is, strategies no longer differ. The automatic sketch "
        "(randomly pivoted Cholesky, GCV with a guard, at most 512 rows) is apart, since its m "
        "differs between strategies."
    )

    def __init__(self, source: str) -> None:
        self.source = SOURCES[source]
        self.name = {"flights": "fig4", "weather": "fig5"}[source]
        words = {
            "flights": "Figure 4: flight delays, 10,000 test points",
            "weather": "Figure 5: weather of North America, 9,500 test points",
        }
        self.title = words[source]
        self.maker = Real(source)

    # Pictures

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        found = {self.name: self.figure(rows)}
        curves = _curves(rows)
        if f"V2, {MODELS['learned']}" in curves:
            found[f"{self.name}-learned"] = self._learned_figure(curves)
        if f"V2, {MODELS['auto']}" in curves:
            found[f"{self.name}-automatic"] = self._automatic_figure(rows, curves)
        return found

    def figure(self, rows: Sequence[Row]) -> Figure:
        curves = _curves(rows)
        figure, axes = new_figure(3, size=(5.0, 4.2))
        figure.suptitle(self.title, fontsize="large")
        self._lines(axes[0], curves, "labels", ("V2", "uniform"), "the paper's two curves")
        fixed = [row["m"] for row in rows if row["model"] == "fixed"]
        title = f"m = {max(fixed, default=0)}, not the paper's"
        self._lines(axes[1], curves, "fixed", ("V2", "uniform", "V2-top", "gp"), title)
        self._differences(axes[2], curves, ("labels", "pool", "fixed"))
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
            level = arithmetic(
                np.concatenate(
                    [
                        curves.of(whole, s, curves.rounds(whole))
                        for s in curves.seeds(whole)
                        if s in seeds
                    ]
                )
            )
            ax.axhline(level.mean, color="0.35", linestyle=":", label="fitted to the whole pool")
        label = f"RMSE in {self.source.unit}"
        shown = f"{title}, {MODELS[model]}" if model == "labels" else title
        shown += f"\n{len(seeds)} repetitions, 95% bands without their levels"
        finish(ax, title=shown, xlabel=self._rounds, ylabel=label)

    @property
    def _rounds(self) -> str:
        return f"round (of {self.source.batch:,} labels)"

    def _differences(self, ax: Axes, curves: Curves, models: Sequence[str]) -> None:
        lines: dict[str, dict[float, Estimate]] = {}
        for model in models:
            one, other = f"V2, {MODELS[model]}", f"uniform, {MODELS[model]}"
            if one in curves and other in curves:
                lines[MODELS[model]] = {
                    r: arithmetic(curves.differences(one, other, [r], _relative))
                    for r in curves.rounds(one)[1:]
                }
        bands(ax, lines, colors=COLORS[4:])
        ax.axhline(0, color="0.4", linewidth=1)
        finish(
            ax,
            title="V2 against uniform, paired, 95% bands",
            xlabel=self._rounds,
            ylabel="difference of RMSE in %",
        )

    def _learned_figure(self, curves: Curves) -> Figure:
        figure, axes = new_figure(2, size=(5.2, 4.2))
        figure.suptitle(f"{self.title}, with learned bandwidths", fontsize="large")
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
        title = f"m fixed\n{len(seeds)} repetitions, 95% bands without their levels"
        finish(axes[0], title=title, xlabel=self._rounds, ylabel=label)
        self._differences(axes[1], curves, ("learned", "fixed"))
        return figure

    def _automatic_figure(self, rows: Sequence[Row], curves: Curves) -> Figure:
        figure, axes = new_figure(3, size=(4.8, 4.2))
        figure.suptitle(f"{self.title}, with the automatic sketch", fontsize="large")
        self._lines(axes[0], curves, "auto", ("V2", "uniform"), "m automatic")
        sizes = Curves(rows, _name, "m")
        lines = {
            f"rsKRR+{name}": sizes.band(f"{name}, {MODELS['auto']}") for name in ("V2", "uniform")
        }
        bands(axes[1], lines, styles={"rsKRR+uniform": "--"})
        finish(axes[1], title="the sketch that was chosen", xlabel=self._rounds, ylabel="m")
        self._differences(axes[2], curves, ("auto",))
        return figure

    # Claims

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        curves = _curves(rows)
        return [
            self._faster(curves),
            *([self._reached(curves), self._memory()] if self.source.name == "flights" else []),
            self._few_iterations(curves),
            self._beside(curves, "fixed", "m fixed"),
            self._beside(curves, "auto", "the automatic sketch"),
            self._learned(curves),
        ]

    @property
    def _quote(self) -> tuple[str, str]:
        return QUOTES[self.source.name]

    def _area(
        self,
        curves: Curves,
        model: str,
        *,
        one: str = "V2",
        other: str = "uniform",
        first: int = 1,
        last: int | None = None,
    ) -> Estimate | None:
        """Mean over rounds of the relative difference in percent; None without two pairs."""
        names = f"{one}, {MODELS[model]}", f"{other}, {MODELS[model]}"
        if not all(name in curves for name in names) or len(curves.seeds(*names)) < 2:
            return None
        rounds = [r for r in curves.rounds(names[0]) if r >= first and (last is None or r <= last)]
        return arithmetic(curves.differences(*names, rounds, _relative))

    def _faster(self, curves: Curves) -> Claim:
        found = {MODELS[model]: self._area(curves, model) for model in PAPERS}
        measured, verdict = judged(found, _judged)
        ends = {
            MODELS[model]: self._area(curves, model, first=self._last(curves, model))
            for model in PAPERS
        }
        return Claim(
            f"{self.name}: V2 below uniform, the paper's m",
            *self._quote,
            "difference of RMSE in % of uniform's (negative: V2 lower), mean over the rounds "
            f"before half of the pool (margin {MARGIN:g}%)",
            f"{self._data}{measured}. In the last round: {listed(ends)}",
            verdict,
            f"{_all_within(found.values())}{self._levels(curves)}{self._larger(curves)}",
        )

    @property
    def _data(self) -> str:
        """What is said of data that are not the paper's."""
        return "North America, not the paper's data. " if self.source.name == "weather" else ""

    def _last(self, curves: Curves, model: str) -> int:
        return curves.rounds(f"V2, {MODELS[model]}")[-1]

    def _levels(self, curves: Curves) -> str:
        """Where the curves are, for scale."""
        said = {}
        for model in ("labels", "fixed"):
            name = f"uniform, {MODELS[model]}"
            line = list(curves.band(name).values())
            said[name] = f"{line[0].mean:.3g} at first, {line[-1].mean:.3g} in the end"
        return f"RMSE in {self.source.unit}: {listed(said)}."

    def _larger(self, curves: Curves) -> str:
        """What the same comparison gives with the larger sketch, which speaks for the method."""
        found = self._area(curves, "fixed")
        return f" With m fixed, not the paper's: {found}%." if found else ""

    def _reached(self, curves: Curves) -> Claim:
        """Rounds that uniform sampling needs beyond V2's to be near the error of all labels.

        Not decided where half of the campaigns begin there: the target is too easy.
        """
        found = {}
        verdicts = {}
        said = []
        for model in PAPERS:
            rounds = {
                name: self._rounds_to_target(curves, name, model) for name in ("V2", "uniform")
            }
            seeds = sorted(set(rounds["V2"]) & set(rounds["uniform"]))
            saved = [rounds["uniform"][s] - rounds["V2"][s] for s in seeds]
            words = MODELS[model]
            e = found[words] = arithmetic(saved) if len(saved) > 1 else None
            at_once = sum(rounds["V2"][s] == 0 for s in seeds)
            hard = 2 * at_once < len(seeds)
            verdicts[words] = same(e * -1, 1.0, "one round") if e and hard else OPEN
            said.append(
                f"{words}: {at_once} of {len(seeds)} campaigns are there at round 0; the mean "
                f"curves reach the line itself in {self._means_reach(curves, model)}"
            )
        return Claim(
            f"{self.name}: rounds to the error of the full data",
            *self._quote,
            "rounds until the RMSE is within 1% of that of the whole pool: uniform − V2 (holds: "
            "above 0; margin 1 round; open where half of the campaigns begin there)",
            *judged(found, verdicts),
            f"{'. '.join(said)}.",
        )

    def _memory(self) -> Claim:
        """Arithmetic: of the kernel matrix of all rows, and of those labeled in the end."""
        sizes = (self.source.pool, self.source.pool // 2)
        return Claim(
            f"{self.name}: memory of the original KRR",
            *QUOTES["memory"],
            "gigabytes of an n×n matrix in double precision",
            listed({f"n = {n:,}": f"{8 * n**2 / 1e9:.0f}" for n in sizes}),
            SHOWN,
            "Too large for what machine is not said. It has to be solved in every round.",
        )

    def _means_reach(self, curves: Curves, model: str) -> str:
        """When the mean over campaigns is at the mean error of the whole pool."""
        whole = f"{WHOLE}, {MODELS[model]}"
        if whole not in curves:
            return "no known round"
        line = next(iter(curves.band(whole).values())).mean
        said = {}
        for name in ("V2", "uniform"):
            means = curves.band(f"{name}, {MODELS[model]}")
            near = [r for r, e in means.items() if e.mean <= line]
            said[name] = f"round {near[0]}" if near else f"none of {max(means)}"
        return f"{said['V2']} (V2) and {said['uniform']} (uniform)"

    def _rounds_to_target(self, curves: Curves, name: str, model: str) -> dict[int, int]:
        line, whole = f"{name}, {MODELS[model]}", f"{WHOLE}, {MODELS[model]}"
        if line not in curves or whole not in curves:
            return {}
        rounds = curves.rounds(line)
        found = {}
        for seed in curves.seeds(line, whole):
            target = TARGET * curves.of(whole, seed, curves.rounds(whole))[0]
            near = np.flatnonzero(curves.of(line, seed, rounds) <= target)
            found[seed] = rounds[near[0]] if len(near) else rounds[-1] + 1
        return found

    def _few_iterations(self, curves: Curves) -> Claim:
        found = {
            MODELS[model]: self._area(curves, model, other="V2-top", last=5)
            for model in ("labels", "fixed")
        }
        return Claim(
            f"{self.name}: weighted against deterministic, first rounds",
            *QUOTES["extra_bias"],
            "difference of RMSE in %, V2 by weights against the largest V2, mean over rounds 1–5 "
            f"(registered: margin {MARGIN:g}%)",
            self._data + listed({name: _said(e) for name, e in found.items()}),
            SHOWN,
            "Not judged: that the points of the largest V2 are a cluster outside of the majority, "
            "which the sentence supposes, is not shown of these data.",
        )

    def _beside(self, curves: Curves, model: str, words: str) -> Claim:
        found = {name: self._area(curves, model, one=name) for name in ("V2", "gp", "V2-top")}
        known = {name: e for name, e in found.items() if e is not None}
        return Claim(
            f"{self.name}: against uniform, {words}",
            "",
            f"(Not the paper's.) Sampling by scores is better than uniform sampling with {words}.",
            "difference of RMSE in % of uniform's, mean over rounds (judged: V2)",
            self._data + listed({name: _said(e) for name, e in known.items()}),
            _judged(found["V2"]),
        )

    def _learned(self, curves: Curves) -> Claim:
        """Whether the gain by V2 is larger with a better model."""
        names = [
            f"{name}, {MODELS[model]}"
            for model in ("learned", "fixed")
            for name in ("V2", "uniform")
        ]
        measured = "one repetition"
        verdict = OPEN
        if all(n in curves for n in names) and len(curves.seeds(*names)) > 1:
            rounds = [r for r in curves.rounds(names[0]) if r]
            gains = []
            better = []
            for seed in curves.seeds(*names):
                a, b, c, d = (curves.of(n, seed, rounds) for n in names)
                gains.append(_relative(a, b).mean() - _relative(c, d).mean())
                better.append(_relative(b, d).mean())
            found = arithmetic(gains)
            verdict = below(found, 0.0)
            measured = (
                f"change of the difference to uniform {found} percentage points; learned "
                f"bandwidths alone change uniform's RMSE by {arithmetic(better)}%"
            )
        return Claim(
            f"{self.name}: V2 gains more with learned bandwidths",
            "",
            "(Not the paper's.) With a better model sampling by V2 gains more.",
            "difference to uniform in %, with learned bandwidths minus without",
            self._data + measured,
            verdict,
        )


def _name(row: Row) -> str:
    return f"{row['strategy']}, {MODELS[row['model']]}"


def _curves(rows: Sequence[Row]) -> Curves:
    return Curves(rows, _name, "rmse")


def _relative(one: Array, other: Array) -> Array:
    """In percent of the other."""
    return 100 * (one / other - 1)


def _said(found: Estimate | None) -> str:
    return "one repetition" if found is None else f"{found}%"


def _judged(found: Estimate | None) -> str:
    return OPEN if found is None else same(found, MARGIN, f"{MARGIN:g}%")


def _all_within(found: Iterable[Estimate | None]) -> str:
    """A sentence where every interval is within the margin, whatever its verdict."""
    inside = all(e and max(-e.low, e.high) <= MARGIN for e in found)
    return f"All intervals are within {MARGIN:g}%. " if inside else ""
