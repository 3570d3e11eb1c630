"""What an experiment is: cells that make rows, a picture of the rows, and claims read from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from sketchridge.paper.options import Options
from sketchridge.paper.verdicts import Claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Cell", "Experiment", "Maker", "Row", "groups"]

Row = dict[str, Any]
Cell = dict[str, Any]


class Maker(Protocol):
    """What makes rows. ``run`` is a function of its cell and the data alone.

    So cells can be repeated, skipped or spread over processes.
    """

    @property
    def takes(self) -> frozenset[str]:
        """Which options it knows: "repetitions", "n", "m", "backend"."""

    @property
    def reads(self) -> str:
        """Which data set it reads: "flights", "weather" or none."""

    @property
    def alone(self) -> bool:
        """Whether its times are results, so that nothing may run beside it."""

    def cells(self, options: Options) -> list[Cell]:
        """Plain values that say what to run, seeds included."""

    def run(self, cell: Cell, data: Path | None) -> list[Row]:
        """The rows of a cell. FileNotFoundError if it needs data that are not there."""


class Experiment(ABC):
    """One figure of the paper, or one beside them."""

    name: str
    title: str
    maker: Maker
    choices: ClassVar[str]  # what the paper leaves open and what was chosen; {names} are sizes

    @abstractmethod
    def figure(self, rows: Sequence[Row]) -> Figure:
        """The picture, with 95% intervals."""

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        """All pictures, by the names of their files."""
        return {self.name: self.figure(rows)}

    def heading(self, rows: Sequence[Row]) -> str:
        """The title of what was run; another where the data are not the usual ones."""
        return self.title

    def described(self, rows: Sequence[Row], options: Options) -> str:
        """The choices with the sizes of this run in them."""
        return self.choices.format(**self.sizes(options))

    @abstractmethod
    def sizes(self, options: Options) -> dict[str, str]:
        """In words, every size that the choices name and an option can change."""

    @abstractmethod
    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """What the paper says of it, checked."""


def groups(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of these columns, in the order they first appear."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found
