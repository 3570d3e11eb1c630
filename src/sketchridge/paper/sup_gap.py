"""Figure 1: sup|V1 − V2| against n, m and σ.

One kernel has eigenvalues that decay polynomially, the other exponentially.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sketchridge.exact import exponential_rule, polynomial_rule
from sketchridge.kernels import CubicSpline, Gaussian, Kernel
from sketchridge.paper.base import (
    DECIDED,
    Cell,
    Claim,
    Estimate,
    Experiment,
    Row,
    geometric,
    groups,
    slope,
    verdict,
)
from sketchridge.paper.settings import exact_ridge, sketched_ridge
from sketchridge.plotting import new_figure, plot_estimates
from sketchridge.sketches import GaussianSketch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SupGap"]

Array = np.ndarray
GRID = np.linspace(0, 1, 201)[:, None]
BLOCK = 50
SIZES = (50, 100, 200, 400, 600, 800, 1000)
SIGMAS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True)
class Decay:
    """A kernel with its λ(n) and rules for m, as in Examples 1 and 2 and under Figure 1."""

    name: str
    kernel: Kernel
    powers: Sequence[float]

    def lam(self, n: int) -> float:
        return polynomial_rule(n, 2)[0] if self.name == "polynomial" else exponential_rule(n, 2)[0]

    def size(self, n: int) -> int:
        return (
            polynomial_rule(n, 2, 1.5)[1]
            if self.name == "polynomial"
            else exponential_rule(n, 2, 2.0)[1]
        )

    def size_of_power(self, n: int, c: float) -> int:
        base = n ** (c / 5) if self.name == "polynomial" else np.log(n) ** (c / 2)
        return int(np.ceil(1.2 * base))


DECAYS = {
    "polynomial": Decay("polynomial", CubicSpline(), (0.4, 0.7, 1.0, 1.3, 1.6, 1.9)),
    "gaussian": Decay("gaussian", Gaussian(bandwidth=0.25), (0.3, 0.6, 0.8, 1.0, 1.2, 1.5, 1.8)),
}
AXES = {
    "n": "training points n",
    "c": "exponent c of the projection dimension m",
    "sigma": "noise σ",
}


@dataclass(frozen=True)
class SupGap(Experiment):
    """One panel: what varies is n, c or sigma."""

    name: str
    decay: str
    varies: str
    choices: ClassVar[str] = (
        "λ is the optimal rate of Examples 1 and 2, n^(−4/5) and (log n)^(1/2)/n; the Gaussian "
        "bandwidth is 0.25 as in the appendix; the supremum is over 201 points of [0, 1]; a "
        "Gaussian sketch and fresh data in each repetition. Means over repetitions are geometric: "
        "the gap of a few sketches is many times that of the others, and would decide the mean."
    )

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"Figure 1 ({self.name[-1]}): {self.decay} kernel, against {AXES[self.varies]}"

    def cells(self, full: bool) -> list[Cell]:
        values = {"n": SIZES, "c": DECAYS[self.decay].powers, "sigma": SIGMAS}[self.varies]
        starts = range(0, 200, BLOCK) if full else [0]
        return [
            {"value": value, "first": start, "count": BLOCK} for value in values for start in starts
        ]

    def run(self, cell: Cell, data: Path | None) -> list[Row]:
        return [
            self._repetition(cell["value"], seed)
            for seed in range(cell["first"], cell["first"] + cell["count"])
        ]

    def _repetition(self, value: float, seed: int) -> Row:
        decay = DECAYS[self.decay]
        n = int(value) if self.varies == "n" else 1000
        m = decay.size_of_power(n, value) if self.varies == "c" else decay.size(n)
        sigma = value if self.varies == "sigma" else 1.0
        lam = decay.lam(n)
        X = np.random.default_rng([seed, n]).random((n, 1))
        v1, v2, vbar = variances(decay.kernel, X, m, lam, seed)
        gap = sigma**2 * float(np.abs(v1 - v2).max())
        return {
            "value": value,
            "seed": seed,
            "n": n,
            "m": m,
            "sigma": sigma,
            "lambda": lam,
            "gap": gap,
            "gap_vbar": sigma**2 * float(np.abs(v1 - vbar).max()),
            "v1": sigma**2 * float(v1.max()),
        }

    def figure(self, rows: Sequence[Row]) -> Figure:
        figure, (ax,) = new_figure()
        curves = {"V2": self._means(rows, "gap"), "V̄": self._means(rows, "gap_vbar")}
        plot_estimates(curves, log=True, ax=ax)
        ax.set(xlabel=AXES[self.varies], ylabel="sup |V1 − V|", title=self.title)
        return figure

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        claims = {"n": self._rate, "c": self._no_gain, "sigma": self._sigma}[self.varies](rows)
        return [*claims, self._bound(rows), self._averaged(rows)]

    def _means(self, rows: Sequence[Row], name: str) -> dict[float, Estimate]:
        return {
            value: geometric([row[name] for row in part])
            for (value,), part in groups(rows, "value").items()
        }

    def _rate(self, rows: Sequence[Row]) -> list[Claim]:
        found = slope([row["value"] for row in rows], [row["gap"] for row in rows])
        return [
            Claim(
                f"{self.name}: rate 1/n",
                "The gap decreases with the rate O(1/n) as n grows.",
                f"the gap falls as n^{found}",
                verdict(found, lambda s: s <= -0.95),
                "Theorem 1 bounds the gap by σ²/(nλ), which falls as n^(−1/5) (polynomial) or "
                "(log n)^(−1/2) (Gaussian) at the optimal λ: the rate 1/n is faster than what the "
                "theorem gives.",
            )
        ]

    def _no_gain(self, rows: Sequence[Row]) -> list[Claim]:
        """Paired by seed: how much smaller the gap is at the largest m than at c = 1."""
        values = sorted({row["value"] for row in rows})
        at = {
            value: {row["seed"]: row["gap"] for row in part}
            for (value,), part in groups(rows, "value").items()
        }
        shared = sorted(set(at[1.0]) & set(at[values[-1]]))
        times = geometric([at[1.0][seed] / at[values[-1]][seed] for seed in shared])
        return [
            Claim(
                f"{self.name}: no gain beyond c = 1",
                "An increase of m leads to a smaller gap, but the improvement is no longer "
                "obvious beyond c = 1.",
                f"from c = 1 to c = {values[-1]:g} the gap falls {times} times",
                verdict(times, lambda t: t < 2),
                "An improvement is called obvious here if it halves the gap.",
            )
        ]

    def _sigma(self, rows: Sequence[Row]) -> list[Claim]:
        """Exact: the same seed has the same V1 and V2 for every σ, up to σ²."""
        ratios = [row["gap"] / row["sigma"] ** 2 for row in rows]
        spread = max(
            max(part) / min(part)
            for part in (
                [r for r, row in zip(ratios, rows, strict=True) if row["seed"] == seed]
                for seed in {row["seed"] for row in rows}
            )
        )
        return [
            Claim(
                f"{self.name}: growth with σ",
                "The gap increases with σ.",
                f"gap/σ² is the same for every σ to a factor of 1 + {spread - 1:.1e}",
                DECIDED[spread < 1 + 1e-9],
                "V1 and V2 are exactly proportional to σ², so the figure shows σ² and nothing "
                "else.",
            )
        ]

    def _averaged(self, rows: Sequence[Row]) -> Claim:
        """Not of the paper: how much nearer to V1 the averaged estimate is."""
        times = geometric([row["gap"] / row["gap_vbar"] for row in rows])
        return Claim(
            f"{self.name}: the averaged variance",
            "(Of this library, not of the paper.) V̄ is nearer to V1 than V2 is.",
            f"sup|V1 − V2| is {times} times sup|V1 − V̄|",
            verdict(times, lambda t: t > 1),
            "V̄ is from the average of the weights behind V2 and V3, and costs what V2 costs.",
        )

    def _bound(self, rows: Sequence[Row]) -> Claim:
        """The smallest c′ for which Theorem 1 would hold in every repetition."""
        constant = max(row["gap"] * row["n"] * row["lambda"] / row["sigma"] ** 2 for row in rows)
        return Claim(
            f"{self.name}: Theorem 1",
            "sup|V1 − V2| ≤ c′σ²/(nλ) with an absolute constant c′.",
            f"c′ = {constant:.3g} suffices in all {len(rows)} repetitions",
            DECIDED[True if constant <= 2 else None],
            "A constant cannot be refuted by finitely many runs; one below 2 is taken as a "
            "confirmation.",
        )


def variances(
    kernel: Kernel, X: Array, m: int, lam: float, seed: int, X_new: Array = GRID
) -> tuple[Array, Array, Array]:
    """V1, V2 and V̄ at X_new (t, 1) for unit noise, with a Gaussian sketch of m rows: each (t,)."""
    y = np.zeros(len(X))
    alpha = len(X) * lam
    exact = exact_ridge(kernel=kernel, alpha=alpha, noise_variance=1.0)
    sketched = sketched_ridge(
        kernel=kernel,
        alpha=alpha,
        sketch=GaussianSketch(m, seed),
        noise_variance=1.0,
        dtype="float64",
    )
    v1 = exact.fit(X, y).variance(X_new, kind="v1")
    sketched.fit(X, y)
    v2, vbar = (np.asarray(sketched.variance(X_new, kind=kind)) for kind in ("v2", "vbar"))
    return v1, v2, vbar
