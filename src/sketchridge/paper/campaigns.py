"""Active learning against uniform sampling: what Figures 3 to 5 have in common."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sketchridge.active import ActiveLearner
from sketchridge.active.follow import Follower
from sketchridge.paper.base import Cell, Claim, Estimate, Experiment, Row, estimate, groups, verdict
from sketchridge.paper.settings import exact_ridge, sketched_ridge
from sketchridge.plotting import new_figure, plot_estimates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Campaigns", "Problem", "Strategy", "errors"]

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

    def estimator(self, bandwidth: Any) -> Any:
        """The model of a campaign; with "log" its sketch follows the labels."""
        if self.model == "exact":
            return exact_ridge(bandwidth=bandwidth)
        if self.model == "log":
            return sketched_ridge(bandwidth=bandwidth, sketch="gaussian", sketch_size=log_size)
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
        strategy.estimator(bandwidth),
        problem.X,
        batch_size=batch,
        acquisition=strategy.acquisition,
        score=strategy.score,
        first="uniform",
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
        test = Follower(problem.X_test)
        found = [mean_squared_error(learner, problem, test)]
        for _ in range(rounds):
            ids = learner.ask()
            learner.tell(ids, problem.y[ids])
            found.append(mean_squared_error(learner, problem, test))
    return found


def mean_squared_error(learner: ActiveLearner, problem: Problem, test: Follower) -> float:
    """At the test points, of the model that all labels so far give."""
    residuals = test.mean(learner.estimator_) - problem.y_test
    return float(np.mean(residuals**2))


class Campaigns(Experiment):
    """Strategies with paired seeds; rows are errors by round."""

    strategies: ClassVar[dict[str, Strategy]]
    baseline: ClassVar[dict[str, str]]  # of each strategy, what it is compared with
    initial: int  # labels at the start
    batch: int  # labels in each round
    bandwidth: Any
    ylabel: str  # what is drawn

    @abstractmethod
    def repetitions(self, full: bool) -> tuple[int, int]:
        """The number of rounds, and how often each strategy is run."""

    @abstractmethod
    def problem(self, seed: int, data: Path | None) -> Problem:
        """The pool and the test points of a repetition."""

    @abstractmethod
    def shown(self, mse: float) -> float:
        """The error that is drawn and compared."""

    def cells(self, full: bool) -> list[Cell]:
        rounds, repetitions = self.repetitions(full)
        return [
            {"strategy": strategy, "seed": seed, "rounds": rounds}
            for seed in range(repetitions)
            for strategy in self.strategies
        ]

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

    def difference(self, rows: Sequence[Row], one: str, other: str, r: int) -> Estimate | None:
        """The mean paired difference of the errors after a round; None without two pairs."""
        first = self._by_seed(rows, one, r)
        second = self._by_seed(rows, other, r)
        seeds = sorted(set(first) & set(second))
        if len(seeds) < 2:
            return None
        return estimate([first[seed] - second[seed] for seed in seeds])

    def _by_seed(self, rows: Sequence[Row], strategy: str, r: int) -> dict[int, float]:
        return {
            row["seed"]: self.shown(row["mse"])
            for row in rows
            if row["strategy"] == strategy and row["round"] == r
        }

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Errors by round, and a panel of paired differences for each kind of model."""
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

    def compare(
        self,
        rows: Sequence[Row],
        one: str,
        other: str,
        *,
        rounds: Sequence[int],
        name: str,
        sentence: str,
    ) -> Claim:
        """Whether the first strategy's error is below the other's.

        They are compared after the last of these rounds that was run.
        """
        last = max(row["round"] for row in rows)
        seen = [r for r in rounds if r <= last] or [last]
        found = {r: self.difference(rows, one, other, r) for r in seen}
        measured = "; ".join(
            f"{one} − {other} after round {r}: {'one repetition' if d is None else d}"
            for r, d in found.items()
        )
        final = found[seen[-1]]
        decided = "cannot be decided" if final is None else verdict(final, lambda d: d < 0)
        return Claim(f"{self.name}: {name}", sentence, measured, decided)
