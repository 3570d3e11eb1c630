"""Figures 3 to 5: active learning against uniform sampling, on synthetic and on real data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sketchridge.active import ActiveLearner
from sketchridge.paper.base import Cell, Claim, Estimate, Experiment, Row, estimate, groups, verdict
from sketchridge.paper.datasets import load_flights, load_weather
from sketchridge.paper.settings import exact_ridge, sketched_ridge
from sketchridge.plotting import new_figure, plot_estimates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RealCampaign", "SyntheticCampaign"]

Array = np.ndarray


@dataclass(frozen=True)
class Problem:
    """A pool with its labels, and points at which the error is measured."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


@dataclass(frozen=True)
class Strategy:
    """A model and a way to choose points: one line of the paper's figures."""

    model: str  # "exact", "log" (m = ⌈log n⌉ Gaussian) or "auto"
    acquisition: str
    score: str

    def estimator(self, labels: int, bandwidth: Any) -> Any:
        """The model of a campaign that starts with so many labels."""
        if self.model == "exact":
            return exact_ridge(bandwidth=bandwidth)
        if self.model == "log":
            size = log_size(labels)
            return sketched_ridge(bandwidth=bandwidth, sketch="gaussian", sketch_size=size)
        return sketched_ridge(bandwidth=bandwidth)


def log_size(labels: int) -> int:
    """The paper's projection dimension for real data, ⌈log n⌉."""
    return int(np.ceil(np.log(labels)))


def errors(
    strategy: Strategy,
    problem: Problem,
    *,
    initial: int,
    batch: int,
    rounds: int,
    seed: int,
    bandwidth: Any,
) -> list[float]:
    """Mean squared error at the test points after each round.

    The first points depend on the seed alone, so that strategies can be compared in pairs.
    """
    learner = ActiveLearner(
        strategy.estimator(initial, bandwidth),
        problem.X,
        batch_size=batch,
        acquisition=strategy.acquisition,
        score=strategy.score,
        stop=None,
        store=None,
        random_state=seed,
    )
    ids: Any = np.random.default_rng(seed).choice(len(problem.X), initial, replace=False)
    learner.tell(ids, problem.y[ids])
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # m = ⌈log n⌉ is far too small: see the figures
        found = [mean_squared_error(learner, problem)]
        for r in range(1, rounds + 1):
            ids = learner.ask()
            if strategy.model == "log":  # the sketch grows with the labels of the next fit
                learner.estimator_.set_params(sketch_size=log_size(initial + r * batch))
            learner.tell(ids, problem.y[ids])
            found.append(mean_squared_error(learner, problem))
    return found


def mean_squared_error(learner: ActiveLearner, problem: Problem) -> float:
    """At the test points, of the model that all labels so far give."""
    residuals = learner.estimator_.predict(problem.X_test) - problem.y_test
    return float(np.mean(residuals**2))


class Campaigns(Experiment):
    """Strategies with paired seeds; rows are errors by round."""

    strategies: ClassVar[dict[str, Strategy]]
    baseline: ClassVar[dict[str, str]]  # of each strategy, what it is compared with
    initial: int
    batch: int
    bandwidth: Any

    def problem(self, seed: int, data: Path | None) -> Problem:
        raise NotImplementedError

    def run(self, cell: Cell, data: Path | None) -> list[Row]:
        found = errors(
            self.strategies[cell["strategy"]],
            self.problem(cell["seed"], data),
            initial=self.initial,
            batch=self.batch,
            rounds=cell["rounds"],
            seed=cell["seed"],
            bandwidth=self.bandwidth,
        )
        return [
            {"strategy": cell["strategy"], "seed": cell["seed"], "round": r, "mse": mse}
            for r, mse in enumerate(found)
        ]

    def curves(self, rows: Sequence[Row]) -> dict[str, dict[float, Estimate]]:
        """The mean over repetitions of the error that is drawn, by strategy and round."""
        out: dict[str, dict[float, Estimate]] = {}
        for (strategy, r), part in groups(rows, "strategy", "round").items():
            out.setdefault(strategy, {})[r] = estimate([self.shown(row["mse"]) for row in part])
        return out

    def shown(self, mse: float) -> float:
        return mse

    def difference(self, rows: Sequence[Row], one: str, other: str, r: int) -> Estimate | None:
        """The mean paired difference of the errors after a round, with its interval; None without pairs."""
        at = {
            s: {
                row["seed"]: self.shown(row["mse"])
                for row in rows
                if row["strategy"] == s and row["round"] == r
            }
            for s in (one, other)
        }
        seeds = sorted(set(at[one]) & set(at[other]))
        return (
            estimate([at[one][seed] - at[other][seed] for seed in seeds])
            if len(seeds) > 1
            else None
        )

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Errors by round, and the paired differences to uniform sampling, a panel for each kind of model."""
        kinds = sorted(set(self.baseline.values()))
        figure, (left, *others) = new_figure(1 + len(kinds), size=(5.6, 4.4))
        for name, line in self.curves(rows).items():
            left.plot(
                list(line),
                [e.mean for e in line.values()],
                label=name,
                linewidth=1.6,
                linestyle="--" if name in kinds else "-",
            )
        left.set(xlabel="round", ylabel=self.ylabel, title=self.title)
        left.legend(frameon=False, fontsize="x-small")
        left.grid(color="0.93")
        left.spines[["top", "right"]].set_visible(False)
        for ax, other in zip(others, kinds, strict=True):
            plot_estimates(
                {
                    one: self._differences(rows, one, other)
                    for one, base in self.baseline.items()
                    if base == other
                },
                ax=ax,
            )
            ax.axhline(0, color="0.5", linewidth=1)
            ax.legend(frameon=False, fontsize="x-small")
            ax.set(xlabel="round", ylabel=f"{self.ylabel}, difference", title=f"minus {other}")
        return figure

    def _differences(self, rows: Sequence[Row], one: str, other: str) -> dict[float, Estimate]:
        last = max(row["round"] for row in rows)
        found = {
            r: self.difference(rows, one, other, r) for r in range(1, last + 1, max(1, last // 8))
        }
        return {r: difference for r, difference in found.items() if difference is not None}

    ylabel = "mean squared error"

    def compare(
        self,
        rows: Sequence[Row],
        one: str,
        other: str,
        rounds: Sequence[int],
        name: str,
        sentence: str,
        why: str = "",
    ) -> Claim:
        """Whether the first strategy's error is below the other's after the last of these rounds that was run."""
        last = max(row["round"] for row in rows)
        seen = [r for r in rounds if r <= last] or [last]
        found = {r: self.difference(rows, one, other, r) for r in seen}
        measured = "; ".join(
            f"{one} − {other} after round {r}: {'one repetition' if d is None else d}"
            for r, d in found.items()
        )
        final = found[seen[-1]]
        decided = "cannot be decided" if final is None else verdict(final, lambda d: d < 0)
        return Claim(name, sentence, measured, decided, why)


class SyntheticCampaign(Campaigns):
    """Settings 1 and 2: 5,000 points, 100 labels at first, 30 a round, the four strategies."""

    strategies: ClassVar[dict[str, Strategy]] = {
        "KRR+V1": Strategy("exact", "weighted", "v1"),
        "KRR+rand": Strategy("exact", "uniform", "v1"),
        "rsKRR+V2": Strategy("log", "weighted", "v2"),
        "rsKRR+rand": Strategy("log", "uniform", "v2"),
    }
    baseline: ClassVar[dict[str, str]] = {"KRR+V1": "KRR+rand", "rsKRR+V2": "rsKRR+rand"}
    initial, batch, bandwidth = 100, 30, 0.25
    ylabel = "log₁₀ of the mean squared error"
    choices = (
        "λ by GCV in every round; errors are against the noiseless f* at 1,000 test points drawn "
        "like the training points; m = ⌈log n⌉ for the n labels of the round. Errors are compared "
        "by their logarithms: where a region has no label yet, a few repetitions extrapolate with "
        "errors a thousand times the others'."
    )

    def __init__(self, setting: int) -> None:
        self.setting = setting
        self.name = f"fig3-{setting}"
        self.title = f"Active learning, setting {setting}"

    def cells(self, full: bool) -> list[Cell]:
        rounds, repetitions = (50, 30) if full else (30, 8)
        return [
            {"strategy": s, "seed": seed, "rounds": rounds}
            for seed in range(repetitions)
            for s in self.strategies
        ]

    def shown(self, mse: float) -> float:
        return float(np.log10(mse))

    def problem(self, seed: int, data: Path | None) -> Problem:
        rng = np.random.default_rng([seed, self.setting])
        X, X_test = self._points(5000, rng), self._points(1000, rng)
        truth, truth_test = -1 + 2 * X[:, 0] ** 2, -1 + 2 * X_test[:, 0] ** 2
        return Problem(X, truth + rng.standard_normal(len(X)), X_test, truth_test)

    def _points(self, n: int, rng: np.random.Generator) -> Array:
        if self.setting == 1:
            return rng.random((n, 1))
        few = int(np.ceil(np.sqrt(n)))
        return np.concatenate(
            [rng.uniform(0, 0.5, few), 1 + rng.normal(0, np.sqrt(1 / n), n - few)]
        )[:, None]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        if self.setting == 1:
            return [
                self.compare(
                    rows, "rsKRR+V2", other, (30,), f"{self.name}: rsKRR+V2 below {other}",
                    "The sketched active learning algorithm has the smallest error after 30 "
                    "iterations.",
                )
                for other in ("KRR+V1", "KRR+rand", "rsKRR+rand")
            ]  # fmt: skip
        return [
            self.compare(
                rows, "KRR+V1", "KRR+rand", (30, 50), f"{self.name}: active learning below random sampling",
                "Active learning with the original KRR achieves a lower error after 50 iterations "
                "than random sampling.",
            ),
            self.compare(
                rows, "rsKRR+V2", "rsKRR+rand", (30, 50), f"{self.name}: sketched active learning below random sampling",
                "The minority with large variance tends to be selected by active learning.",
            ),
            self._similar(rows),
        ]  # fmt: skip

    def _similar(self, rows: Sequence[Row]) -> Claim:
        last = max(row["round"] for row in rows)
        ratio = self.difference(rows, "rsKRR+V2", "KRR+V1", last)
        return Claim(
            f"{self.name}: rsKRR+V2 comparable with KRR+V1",
            "Sketched active learning is comparable with the original after 30 iterations and "
            "converges to a similar error.",
            f"log₁₀ of the ratio of the errors after round {last}: {ratio}",
            "cannot be decided" if ratio is None else verdict(ratio, lambda d: d < np.log10(1.25)),
            "Comparable means here: not more than a quarter above.",
        )


class RealCampaign(Campaigns):
    """Flights and weather: V2, the top of V2, gp and uniform, with m = ⌈log n⌉ and with the automatic sketch."""

    strategies: ClassVar[dict[str, Strategy]] = {
        f"{name}, m {label}": Strategy(model, acquisition, score)
        for model, label in (("log", "= ⌈log n⌉"), ("auto", "automatic"))
        for name, acquisition, score in (
            ("V2", "weighted", "v2"),
            ("V2-top", "top", "v2"),
            ("gp", "weighted", "gp"),
            ("uniform", "uniform", "v2"),
        )
    }
    baseline: ClassVar[dict[str, str]] = {
        s: f"uniform,{s.split(',')[1]}" for s in strategies if not s.startswith("uniform")
    }
    bandwidth = "median"
    ylabel = "root mean squared error"
    choices = (
        "Features scaled to standard deviation 1; the bandwidth is the median distance of the "
        "pool; λ by GCV in every round. Paired: every strategy of a repetition has the same pool, "
        "test points and first labels. By default 4 repetitions of 8 rounds; with --full 49 "
        "rounds, 3 repetitions for flights and 8 for weather, about what an hour allows (the "
        "paper: 30)."
    )

    def __init__(self, source: str) -> None:
        self.source = source
        self.name = {"flights": "fig4", "weather": "fig5"}[source]
        self.title = {"flights": "Flight delay", "weather": "Weather"}[source]
        self.initial = self.batch = {"flights": 1000, "weather": 200}[source]

    def cells(self, full: bool) -> list[Cell]:
        rounds, repetitions = {("flights", True): (49, 3), ("weather", True): (49, 8)}.get(
            (self.source, full), (8, 4)
        )
        return [
            {"strategy": s, "seed": seed, "rounds": rounds}
            for seed in range(repetitions)
            for s in self.strategies
        ]

    def problem(self, seed: int, data: Path | None) -> Problem:
        train, test = (50_000, 10_000) if self.source == "flights" else (10_000, 10_000)
        X, y = (load_flights if self.source == "flights" else load_weather)(data)
        order = np.random.default_rng(seed).permutation(len(y))[: train + test]
        X, y = X[order].astype(float), y[order].astype(float)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        y = y - y[:train].mean()
        return Problem(X[:train], y[:train], X[train:], y[train:])

    def shown(self, mse: float) -> float:
        return float(np.sqrt(mse))

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        last = max(row["round"] for row in rows)
        claims = []
        for m in ("m = ⌈log n⌉", "m automatic"):
            claims += [
                self.compare(
                    rows, f"V2, {m}", f"uniform, {m}", (last // 2, last), f"{self.name}: V2 below uniform, {m}",
                    "The active learning algorithm reaches the error of the full data faster than "
                    "uniform sampling.",
                ),
                self.compare(
                    rows, f"V2, {m}", f"V2-top, {m}", (1, last // 2, last), f"{self.name}: weighted below deterministic, {m}",
                    "Weighted random sampling avoids the bias of taking the points with the "
                    "largest scores.",
                ),
            ]  # fmt: skip
        return claims
