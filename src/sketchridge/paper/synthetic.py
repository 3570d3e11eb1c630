"""Figure 3: active learning on synthetic data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from sketchridge.paper.base import Claim, Row, verdict
from sketchridge.paper.campaigns import Campaigns, Problem, Strategy

__all__ = ["SyntheticCampaign"]

Array = np.ndarray


class SyntheticCampaign(Campaigns):
    """Settings 1 and 2: 5,000 points, 100 labels at first, 30 in each round, four strategies."""

    strategies: ClassVar[dict[str, Strategy]] = {
        "KRR+V1": Strategy("exact", "weighted", "v1"),
        "KRR+rand": Strategy("exact", "uniform", "v1"),
        "rsKRR+V2": Strategy("log", "weighted", "v2"),
        "rsKRR+rand": Strategy("log", "uniform", "v2"),
    }
    baseline: ClassVar[dict[str, str]] = {"KRR+V1": "KRR+rand", "rsKRR+V2": "rsKRR+rand"}
    initial = 100
    batch = 30
    bandwidth = 0.25
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

    def repetitions(self, full: bool) -> tuple[int, int]:
        return (50, 30) if full else (30, 8)

    def shown(self, mse: float) -> float:
        return float(np.log10(mse))

    def problem(self, seed: int, data: Path | None) -> Problem:
        rng = np.random.default_rng([seed, self.setting])
        X = self._points(5000, rng)
        X_test = self._points(1000, rng)
        y = truth(X) + rng.standard_normal(len(X))
        return Problem(X, y, X_test, truth(X_test))

    def _points(self, n: int, rng: np.random.Generator) -> Array:
        if self.setting == 1:
            return rng.random((n, 1))
        few = int(np.ceil(np.sqrt(n)))
        minority = rng.uniform(0, 0.5, few)
        majority = 1 + rng.normal(0, np.sqrt(1 / n), n - few)
        return np.concatenate([minority, majority])[:, None]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        return (
            self._claims_of_setting_1(rows)
            if self.setting == 1
            else self._claims_of_setting_2(rows)
        )

    def _claims_of_setting_1(self, rows: Sequence[Row]) -> list[Claim]:
        return [
            self.compare(
                rows,
                "rsKRR+V2",
                other,
                rounds=(30,),
                name=f"rsKRR+V2 below {other}",
                sentence="The sketched active learning algorithm has the smallest error after 30 "
                "iterations.",
            )
            for other in ("KRR+V1", "KRR+rand", "rsKRR+rand")
        ]

    def _claims_of_setting_2(self, rows: Sequence[Row]) -> list[Claim]:
        exact = self.compare(
            rows,
            "KRR+V1",
            "KRR+rand",
            rounds=(30, 50),
            name="active learning below random sampling",
            sentence="Active learning with the original KRR achieves a lower error after 50 "
            "iterations than random sampling.",
        )
        sketched = self.compare(
            rows,
            "rsKRR+V2",
            "rsKRR+rand",
            rounds=(30, 50),
            name="sketched active learning below random sampling",
            sentence="The minority with large variance tends to be selected by active learning.",
        )
        return [exact, sketched, self._similar(rows)]

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


def truth(X: Array) -> Array:
    """f*(x) = −1 + 2x², for X (n, 1): (n,)."""
    return -1 + 2 * X[:, 0] ** 2
