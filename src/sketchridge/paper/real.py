"""Figures 4 and 5: active learning on flights and on the weather."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from sketchridge.paper.base import Claim, Row
from sketchridge.paper.campaigns import Campaigns, Problem, Strategy
from sketchridge.paper.datasets import load_flights, load_weather

__all__ = ["RealCampaign"]


class RealCampaign(Campaigns):
    """Flights and weather: drawn by V2, the top of V2, drawn by gp, or drawn evenly.

    Each with m = ⌈log n⌉ and with the automatic sketch.
    """

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
        self.batch = {"flights": 1000, "weather": 200}[source]
        self.initial = self.batch

    def repetitions(self, full: bool) -> tuple[int, int]:
        if not full:
            return 8, 4
        return (49, 3) if self.source == "flights" else (49, 8)

    def problem(self, seed: int, data: Path | None) -> Problem:
        train = 50_000 if self.source == "flights" else 10_000
        test = 10_000
        X, y = load_flights(data) if self.source == "flights" else load_weather(data)
        order = np.random.default_rng(seed).permutation(len(y))[: train + test]
        X = X[order].astype(float)
        y = y[order].astype(float)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        y = y - y[:train].mean()
        return Problem(X[:train], y[:train], X[train:], y[train:])

    def shown(self, mse: float) -> float:
        return float(np.sqrt(mse))

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        return [
            claim
            for m in ("m = ⌈log n⌉", "m automatic")
            for claim in (self._faster(rows, m), self._less_biased(rows, m))
        ]

    def _faster(self, rows: Sequence[Row], m: str) -> Claim:
        last = max(row["round"] for row in rows)
        return self.compare(
            rows,
            f"V2, {m}",
            f"uniform, {m}",
            rounds=(last // 2, last),
            name=f"V2 below uniform, {m}",
            sentence="The active learning algorithm reaches the error of the full data faster than "
            "uniform sampling.",
        )

    def _less_biased(self, rows: Sequence[Row], m: str) -> Claim:
        last = max(row["round"] for row in rows)
        return self.compare(
            rows,
            f"V2, {m}",
            f"V2-top, {m}",
            rounds=(1, last // 2, last),
            name=f"weighted below deterministic, {m}",
            sentence="Weighted random sampling avoids the bias of taking the points with the "
            "largest scores.",
        )
