"""Figure 2: V1 and V2 at 50 points of a mixture, under both readings of N(5, 5)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sketchridge.exact import exponential_rule
from sketchridge.kernels import Gaussian
from sketchridge.paper.options import Options, blocks, rows_of
from sketchridge.paper.runs.gaps import Smooth
from sketchridge.sketches import GaussianSketch

__all__ = ["BANDWIDTH", "READINGS", "SIZES", "Mixture", "mixture"]

Array = np.ndarray
BANDWIDTH = 1.0
SIZES = (20, 25, 30)
READINGS = ("standard deviation", "variance")
_SHOWN = 50  # test points
_LEAST = 20  # training points


def mixture(count: int, second_is: str, rng: np.random.Generator) -> Array:
    """½N(0.5, 0.5) + ½N(5, 5), the second parameters read in one of two ways: (count, 1)."""
    first = rng.random(count) < 0.5
    a, b = (0.5, 5.0) if second_is == "standard deviation" else np.sqrt([0.5, 5.0])
    return np.where(first, rng.normal(0.5, a, count), rng.normal(5, b, count))[:, None]


class Mixture:
    """Points of the first repetition; of the others the median of |V2/V1 − 1|."""

    takes = frozenset({"repetitions", "n", "m"})
    reads = ""
    alone = False

    def cells(self, options: Options) -> list[dict]:
        count = options.count(quick=20, full=100)
        n = options.least(options.one_n(500), _LEAST, "Figure 2")
        rows_of("Figure 2", options.m or SIZES, n)
        return [
            {
                "second_is": reading,
                "n": n,
                "sizes": list(options.m or SIZES),
                "first": first,
                "count": length,
                "points": first == options.first_seed,
            }
            for reading in READINGS
            for first, length in blocks(options.first_seed, count, 25)
        ]

    def run(self, cell: dict, data: Path | None) -> list[dict]:
        rows = []
        for seed in range(cell["first"], cell["first"] + cell["count"]):
            rng = np.random.default_rng([seed, 3])
            X = mixture(cell["n"], cell["second_is"], rng)
            X_new = mixture(_SHOWN, cell["second_is"], rng)
            lam = exponential_rule(cell["n"], 2)[0]
            problem = Smooth(Gaussian(bandwidth=BANDWIDTH), X, X_new)
            v1 = problem.v1(lam)
            for m in cell["sizes"]:
                v2 = problem.variances(GaussianSketch(m, seed), lam)[0]
                error = np.abs(v2 / v1 - 1)
                row = {"second_is": cell["second_is"], "m": m, "seed": seed}
                summary = {"median": float(np.median(error)), "far": float((error > 0.1).mean())}
                rows.append({**row, "kind": "error", **summary})
                if cell["points"] and seed == cell["first"]:
                    rows += [
                        {**row, "kind": "point", "x": float(x), "v1": float(a), "v2": float(b)}
                        for x, a, b in zip(X_new[:, 0], v1, v2, strict=True)
                    ]
        return rows
