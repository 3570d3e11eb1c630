"""How long V1 and V2 take at a new point, and an update of the sketch; on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path

import numpy as np

from sketchridge import exact
from sketchridge.estimator import SketchedKernelRidge
from sketchridge.kernels import Gaussian
from sketchridge.paper.options import Options, rows_of
from sketchridge.paper.runs.mixture import BANDWIDTH, mixture
from sketchridge.paper.settings import exact_ridge, sketched_ridge
from sketchridge.sketches import GaussianSketch

__all__ = ["Timing", "Update"]

Array = np.ndarray
QUICK = (500, 1000, 2000, 4000)
FULL = (500, 707, 1000, 1414, 2000, 2828, 4000)
SIZES = (1000, 1414, 2000, 2828, 4000, 5657, 8000, 11_314, 16_000)  # every second in quick runs
ROWS = (15, 21, 30, 42, 60, 85, 120, 170, 240)
NEW = (50, 71, 100, 141, 200, 283, 400)


class Timing:
    """From the data to one variance, by the printed formulas and by this library."""

    takes = frozenset({"repetitions", "n", "m", "backend"})
    reads = ""
    alone = True

    def cells(self, options: Options) -> list[dict]:
        sizes = options.n or (FULL if options.full else QUICK)
        rows_of("The smallest size of timing", [options.one_m(30)], min(sizes))
        return [
            {
                "n": n,
                "m": options.one_m(30),
                "repeats": options.count(quick=5, full=9),
                "backend": options.backend,
            }
            for n in sizes
        ]

    def run(self, cell: dict, data: Path | None) -> list[dict]:
        rng = np.random.default_rng(cell["n"])
        X = mixture(cell["n"], "standard deviation", rng)
        x = mixture(1, "standard deviation", rng)
        rows = []
        for name, way in _ways(X, x, cell).items():
            way()
            rows += [
                {"n": cell["n"], "m": cell["m"], "way": name, "repeat": r, "seconds": _timed(way)}
                for r in range(cell["repeats"])
            ]
        return rows


class Update:
    """Appending n_s points to a sketch of n, against starting again."""

    takes = frozenset({"repetitions", "n", "m", "backend"})
    reads = ""
    alone = True

    def cells(self, options: Options) -> list[dict]:
        usual = {
            "m": options.one_m(30),
            "new": 100,
            "repeats": options.count(quick=3, full=7),
            "backend": options.backend,
        }
        every = 1 if options.full else 2
        sizes = options.n or SIZES[::every]
        rows_of("The smallest size of update", [options.one_m(30)], min(sizes))
        cells = [{"varies": "n", "n": n, **usual} for n in sizes]
        middle = sizes[len(sizes) // 2]
        few = [m for m in ROWS[::every] if m <= middle]
        cells += [{"varies": "m", "n": middle, **usual, "m": m} for m in few]
        cells += [{"varies": "new", "n": middle, **usual, "new": k} for k in NEW[::every]]
        return cells

    def run(self, cell: dict, data: Path | None) -> list[dict]:
        n = cell["n"]
        rng = np.random.default_rng(n)
        X = rng.random((n + cell["new"], 8))
        y = np.zeros(len(X))
        start = _appendable(n, cell).fit(X[:n], y[:n])
        ways: dict[str, Callable[[], Callable[[], object]]] = {
            "update": lambda: partial(deepcopy(start).partial_fit, X[n:], y[n:]),
            "from scratch": lambda: partial(_appendable(n, cell).fit, X, y),
        }
        rows = []
        for name, prepared in ways.items():
            prepared()()
            rows += [
                {
                    "varies": cell["varies"],
                    "n": n,
                    "m": cell["m"],
                    "new": cell["new"],
                    "way": name,
                    "repeat": r,
                    "seconds": _timed(prepared()),
                }
                for r in range(cell["repeats"])
            ]
        return rows


def _appendable(n: int, cell: dict) -> SketchedKernelRidge:
    """A model whose time is that of the sketch: nothing is chosen by the data."""
    return sketched_ridge(
        bandwidth=1.0,
        alpha=exact.exponential_rule(n, 2)[0] * n,
        sketch="gaussian",
        sketch_size=cell["m"],
        noise_variance=1.0,
        backend=cell["backend"],
        dtype="float64",
    )


def _ways(X: Array, x: Array, cell: dict) -> dict[str, Callable[[], object]]:
    n = len(X)
    m = cell["m"]
    lam = exact.exponential_rule(n, 2)[0]
    y = np.zeros(n)
    kernel = Gaussian(bandwidth=BANDWIDTH)
    one = exact_ridge(bandwidth=BANDWIDTH, alpha=n * lam, noise_variance=1.0)
    other = sketched_ridge(
        bandwidth=BANDWIDTH,
        alpha=n * lam,
        sketch="gaussian",
        sketch_size=m,
        noise_variance=1.0,
        backend=cell["backend"],
    )

    def printed() -> Array:
        S = GaussianSketch(m).entries(range(m), range(n))
        return exact.v2(kernel(X, X) / n, S, kernel(X, x), lam)

    K = kernel(X, X) / n
    k_x = kernel(X, x)
    S = GaussianSketch(m).entries(range(m), range(n))
    return {
        "V1, printed formula": lambda: exact.v1(kernel(X, X) / n, kernel(X, x), lam),
        "V2, printed formula": printed,
        "V1, this library": lambda: one.fit(X, y).variance(x, kind="v1"),
        "V2, this library": lambda: other.fit(X, y).variance(x, kind="v2"),
        "V1, K given": lambda: exact.v1(K, k_x, lam),
        "V2, K and S given": lambda: exact.v2(K, S, k_x, lam),
        "S K, K and S given": lambda: S @ K,
    }


def _timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
