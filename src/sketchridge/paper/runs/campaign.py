"""Simulated campaigns: a model, a way to choose points, and the error after each round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sketchridge.active.acquire import ACQUISITIONS, exponential_keys

__all__ = ["Model", "Problem", "Strategy", "first_labels", "log_size", "simulate"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Problem:
    """A pool (p, d) with its labels, and points at which the error is measured."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


@dataclass(frozen=True)
class Strategy:
    """A model and a way to choose points: one line of the paper's figures."""

    model: str
    acquisition: str  # "weighted", "top" or "uniform"
    score: str  # "v1", "v2" or "gp"


class Model(Protocol):
    """What a campaign needs of a model; sizes and products are its own affair."""

    def add(self, ids: Array) -> None:
        """Labels of rows of the pool are there; the model is fitted to all there are."""

    def error(self) -> float:
        """The mean squared error at the test points."""

    def scores(self, rows: Array) -> Array:
        """At these rows of the pool: (t,)."""


def log_size(n: int) -> int:
    """The paper's projection dimension in its campaigns, ⌈log n⌉."""
    return int(np.ceil(np.log(n)))


def first_labels(pool: int, count: int, seed: int) -> Array:
    """Rows labeled at the start: a function of the seed alone, so that strategies are paired."""
    return np.random.default_rng([seed, 1]).choice(pool, count, replace=False)


def simulate(
    model: Model, acquisition: str, pool: int, first: Array, *, batch: int, rounds: int, seed: int
) -> tuple[list[float], list[Array]]:
    """Algorithm 1: errors after rounds 0, 1, …, and the rows labeled in each."""
    model.add(first)
    errors = [model.error()]
    told = [first]
    is_open = np.ones(pool, dtype=bool)
    is_open[first] = False
    for r in range(1, rounds + 1):
        rows = np.flatnonzero(is_open)
        scores = np.ones(pool)
        if acquisition != "uniform":
            scores[rows] = model.scores(rows)
        ids, _ = ACQUISITIONS[acquisition](scores, rows, exponential_keys(seed, r, pool), batch)
        is_open[ids] = False
        model.add(ids)
        errors.append(model.error())
        told.append(ids)
    return errors, told
