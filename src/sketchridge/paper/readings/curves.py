"""Curves of campaigns: by strategy, seed and round, and paired differences of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sketchridge.paper.base import Row
from sketchridge.paper.statistics import Estimate, arithmetic

__all__ = ["Curves"]

Array = np.ndarray


class Curves:
    """A value by strategy, seed and round."""

    def __init__(self, rows: Sequence[Row], name: Callable[[Row], str], value: str) -> None:
        self._values: dict[str, dict[int, dict[int, float]]] = {}
        for row in rows:
            if value in row:
                by_seed = self._values.setdefault(name(row), {})
                by_seed.setdefault(row["seed"], {})[row["round"]] = row[value]

    def __contains__(self, strategy: str) -> bool:
        return strategy in self._values

    def seeds(self, *strategies: str) -> list[int]:
        """Those in which all of these strategies were run."""
        return sorted(set.intersection(*(set(self._values[s]) for s in strategies)))

    def rounds(self, strategy: str) -> list[int]:
        return sorted({r for line in self._values[strategy].values() for r in line})

    def of(self, strategy: str, seed: int, rounds: Sequence[int]) -> Array:
        line = self._values[strategy][seed]
        return np.array([line[r] for r in rounds if r in line])

    def band(
        self,
        strategy: str,
        shown: Callable[[Array], Array] = np.asarray,
        seeds: Sequence[int] | None = None,
    ) -> dict[float, Estimate]:
        """Mean and 95% interval in each round, over all seeds or some."""
        some = self.seeds(strategy) if seeds is None else seeds
        return {
            r: arithmetic(shown(np.concatenate([self.of(strategy, s, [r]) for s in some])))
            for r in self.rounds(strategy)
        }

    def leveled(self, strategies: Sequence[str]) -> dict[str, dict[float, Estimate]]:
        """Means and intervals of several, without what makes one repetition differ from another.

        From each repetition in which all were run its mean over them and their rounds is taken
        away, and the mean of all is added: test points and pool are common to a repetition.
        """
        seeds = self.seeds(*strategies)
        rounds = sorted(set.intersection(*(set(self.rounds(s)) for s in strategies)))
        values = np.array([[self.of(s, seed, rounds) for seed in seeds] for s in strategies])
        values += values.mean() - values.mean(axis=(0, 2), keepdims=True)
        return {
            s: {r: arithmetic(line[:, k]) for k, r in enumerate(rounds)}
            for s, line in zip(strategies, values, strict=True)
        }

    def differences(
        self,
        one: str,
        other: str,
        rounds: Sequence[int],
        between: Callable[[Array, Array], Array],
        seeds: Sequence[int] | None = None,
    ) -> Array:
        """By seed, the mean over rounds of what is between the two; for all seeds or some."""
        some = self.seeds(one, other) if seeds is None else seeds
        return np.array(
            [between(self.of(one, s, rounds), self.of(other, s, rounds)).mean() for s in some]
        )
