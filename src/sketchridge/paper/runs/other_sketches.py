"""The paper's future work: sup|V1 − V2| against m/s_λ for other random matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from sketchridge.paper.options import Options, blocks
from sketchridge.paper.runs.gaps import KERNELS, Smooth, even_points
from sketchridge.sketches import (
    EntrySketch,
    FourierSketch,
    GaussianSketch,
    HadamardSketch,
    RademacherSketch,
    SparseSketch,
)

__all__ = ["DENSITY", "LAMBDAS", "MULTIPLES", "SKETCHES", "OtherSketches"]

LAMBDAS = {"cubic spline": 1e-6, "Gaussian": 1e-5}
MULTIPLES = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0)  # of s_λ; log 1,000 = 6.9
_LEAST = 100  # training points
DENSITY = 1 / 3  # of the sparse sketch: the share of its entries that are not 0
SKETCHES: dict[str, Callable[..., EntrySketch]] = {
    "Gaussian": GaussianSketch,
    "Rademacher": RademacherSketch,
    "sparse": partial(SparseSketch, density=DENSITY),
    "Hadamard": HadamardSketch,
    "Fourier": FourierSketch,
}
VARIANCES = {"sparse": DENSITY, "Fourier": 1 / 2}  # of the entries; 1 for the others


class OtherSketches:
    """The gap in units of sup V1, and A1 (i), for sketches of m = ⌈multiple · s_λ⌉ rows."""

    takes = frozenset({"repetitions", "n"})
    reads = ""
    alone = False

    def cells(self, options: Options) -> list[dict]:
        count = options.count(quick=10, full=100)
        options.least(options.one_n(1000), _LEAST, "the sketches, which have up to 7 s_λ rows")
        return [
            {"kernel": kernel, "n": options.one_n(1000), "first": first, "count": length}
            for kernel in LAMBDAS
            for first, length in blocks(options.first_seed, count, 5)
        ]

    def run(self, cell: dict, data: Path | None) -> list[dict]:
        rows = []
        lam = LAMBDAS[cell["kernel"]]
        for seed in range(cell["first"], cell["first"] + cell["count"]):
            problem = Smooth(KERNELS[cell["kernel"]], even_points(cell["n"], seed))
            v1 = problem.v1(lam)
            s = len(problem.above(lam)[0])
            for multiple in MULTIPLES:
                m = int(np.ceil(multiple * s))
                for name, kind in SKETCHES.items():
                    sketch = kind(size=m, seed=seed)
                    v2 = problem.variances(sketch, lam)[0]
                    low, high, _ = problem.assumption(sketch, lam, VARIANCES.get(name, 1.0))
                    rows.append(
                        {
                            "kernel": cell["kernel"],
                            "sketch": name,
                            "multiple": multiple,
                            "seed": seed,
                            "m": m,
                            "s_lambda": s,
                            "relative_gap": float(np.abs(v1 - v2).max() / v1.max()),
                            "a1": int(low >= 0.5 and high <= 1.5),
                        }
                    )
        return rows
