"""What a user can ask of a run: repetitions, sizes, a backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "BACKEND_HELP",
    "DATA_HELP",
    "FRESH",
    "STRATEGIES_HELP",
    "Options",
    "blocks",
    "rows_of",
]

BACKEND_HELP = "numpy, torch, triton or dask; of fig4, fig5, timing and update."
DATA_HELP = (
    "Folder with the flights and weather files. Without flights in it fig4 takes those from New "
    "York in 2013, which are not the paper's, and says so; without weather fig5 is not run."
)
STRATEGIES_HELP = (
    "Of fig4 and fig5, run again into the table that --out has of the whole figure, as V2:fixed; "
    "with the options that it was run with, but for --backend."
)
FRESH = 10_000  # the first seed of full runs; none from here on was drawn before them


@dataclass(frozen=True)
class Options:
    """How much to run.

    Parameters
    ----------
    full : the repetitions that `docs/paper/registered.md` states, with fresh seeds.
    repetitions : so many instead. n, m : sizes instead of the paper's, where a figure has them.
    backend : of the library, where a figure's products can run on another.
    strategies : these alone, where a figure runs them one by one.
    """

    full: bool = False
    repetitions: int | None = None
    n: tuple[int, ...] = ()
    m: tuple[int, ...] = ()
    backend: str = "numpy"
    strategies: tuple[str, ...] = ()

    @property
    def first_seed(self) -> int:
        return FRESH if self.full else 0

    def count(self, *, quick: int, full: int) -> int:
        """How many repetitions."""
        if self.repetitions is not None:
            return self.repetitions
        return full if self.full else quick

    def least(self, n: int, needed: int, what: str) -> int:
        """n, or a ValueError where it is too small for what is needed of it."""
        if n < needed:
            raise ValueError(f"--n must be at least {needed:,} for {what}, got {n:,}.")
        return n

    def one_n(self, usual: int) -> int:
        return _one("n", self.n, usual)

    def one_m(self, usual: int) -> int:
        return _one("m", self.m, usual)


def _one(name: str, given: Sequence[int], usual: int) -> int:
    if len(given) > 1:
        raise ValueError(
            f"One --{name} is needed here, got {', '.join(map(str, given))}: give one, or run the "
            f"figures that take several --{name} by themselves."
        )
    return given[0] if given else usual


def rows_of(what: str, sizes: Sequence[int], n: int) -> None:
    """ValueError for a sketch with more rows than there are points.

    >>> rows_of("Figure 2", (20, 30), 25)
    Traceback (most recent call last):
    ValueError: Figure 2 has 25 points: a sketch of 30 rows is more than them; give a smaller --m.
    """
    if max(sizes) > n:
        raise ValueError(
            f"{what} has {n:,} points: a sketch of {max(sizes):,} rows is more than them; give a "
            "smaller --m."
        )


def blocks(first: int, count: int, longest: int) -> list[tuple[int, int]]:
    """First seed and length of blocks of at most ``longest`` seeds.

    >>> blocks(10, 5, 2)
    [(10, 2), (12, 2), (14, 1)]
    """
    return [(first + start, min(longest, count - start)) for start in range(0, count, longest)]
