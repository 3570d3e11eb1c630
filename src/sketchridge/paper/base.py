"""What an experiment is: cells to run in any order, a figure of their rows, claims as checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "DECIDED",
    "Cell",
    "Claim",
    "Estimate",
    "Experiment",
    "Row",
    "estimate",
    "geometric",
    "groups",
    "slope",
    "verdict",
]

Array = np.ndarray
Row = dict[str, Any]
Cell = dict[str, Any]
HOLDS = "holds"
FAILS = "does not hold"
OPEN = "cannot be decided"
DECIDED = {True: HOLDS, False: FAILS, None: OPEN}


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what was measured of it, and the verdict."""

    name: str
    sentence: str
    measured: str
    verdict: str
    why: str = ""


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95% interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


class Experiment(ABC):
    """One figure of the paper.

    ``run`` is a function of its cell alone: cells can be repeated, skipped or spread over
    processes.
    """

    name: str
    title: str
    choices: ClassVar[str]  # what the paper leaves open, and what was chosen
    alone = False  # whether its times are results, so that nothing may run beside it

    @abstractmethod
    def cells(self, full: bool) -> list[Cell]:
        """Plain values that say what to run, seeds included."""

    @abstractmethod
    def run(self, cell: Cell, data: Path | None) -> list[Row]:
        """The rows of a cell. FileNotFoundError if it needs data that are not there."""

    @abstractmethod
    def figure(self, rows: Sequence[Row]) -> Figure:
        """The picture, with 95% error bars."""

    @abstractmethod
    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """What the paper says of it, checked."""


def groups(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of these columns, in the order they first appear."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def estimate(values: Sequence[float] | Array) -> Estimate:
    """Mean and 95% interval by Student's t; no width for a single value."""
    values = np.asarray(values, dtype=float)
    half = (
        stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
        if len(values) > 1
        else 0.0
    )
    return Estimate(float(values.mean()), float(values.mean() - half), float(values.mean() + half))


def geometric(values: Sequence[float] | Array) -> Estimate:
    """Geometric mean and its 95% interval, for positive values of which a few are very large."""
    logs = estimate(np.log(values))
    return Estimate(*(float(np.exp(value)) for value in (logs.mean, logs.low, logs.high)))


def slope(x: Sequence[float], y: Sequence[float]) -> Estimate:
    """The least squares slope of log y on log x with its 95% interval."""
    fit = stats.linregress(np.log(x), np.log(y))
    half = stats.t.ppf(0.975, len(x) - 2) * fit.stderr if len(x) > 2 else 0.0
    return Estimate(float(fit.slope), float(fit.slope - half), float(fit.slope + half))


def verdict(estimated: Estimate, condition: Callable[[float], bool]) -> str:
    """Whether a condition holds over the whole interval, over none of it, or cannot be decided."""
    ends = {condition(estimated.low), condition(estimated.high)}
    return DECIDED[ends.pop()] if len(ends) == 1 else OPEN
