"""Figure 3: active learning on synthetic data, in a basis in which nothing is large.

The Gaussian kernel of bandwidth 0.25 on points of a line has rank 20 to 30 to rounding. So
k(x, z) = l_xᵀl_z with features l from a pivoted Cholesky factorization of pool and test points,
and the n labeled points are kept as an (r, r) triangle: all of Algorithm 1 is exact to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sketchridge.kernels import Gaussian
from sketchridge.paper.options import Options
from sketchridge.paper.runs.algebra import Exact, loo_alpha, sketched_spectrum
from sketchridge.paper.runs.campaign import (
    Problem,
    Strategy,
    first_labels,
    log_size,
    simulate,
)
from sketchridge.sketches import GaussianSketch

__all__ = [
    "STRATEGIES",
    "ExactModel",
    "SketchedModel",
    "Synthetic",
    "features",
    "minority",
    "synthetic_problem",
]

Array = np.ndarray
KERNEL = Gaussian(bandwidth=0.25)
POOL, TEST, INITIAL, BATCH = 5000, 1000, 100, 30
_ROUNDING = 1e-14
STRATEGIES = {
    "KRR+V1": Strategy("exact", "weighted", "v1"),
    "KRR+rand": Strategy("exact", "uniform", "v1"),
    "rsKRR+V2": Strategy("labels", "weighted", "v2"),
    "rsKRR+rand": Strategy("labels", "uniform", "v2"),
    "rsKRR+V2, n = pool": Strategy("pool", "weighted", "v2"),
    "rsKRR+rand, n = pool": Strategy("pool", "uniform", "v2"),
    "rsKRR+V2-top": Strategy("labels", "top", "v2"),
    "rsKRR+gp": Strategy("labels", "weighted", "gp"),
}

_BESIDE = ("rsKRR+V2-top", "rsKRR+gp")  # for setting 2, where there is a small cluster
_RUN = {
    1: [name for name in STRATEGIES if name not in _BESIDE],
    2: [name for name in STRATEGIES if name != "rsKRR+rand, n = pool"],
}


def truth(X: Array) -> Array:
    """f*(x) = −1 + 2x²."""
    return -1 + 2 * X[:, 0] ** 2


def minority(n: int) -> int:
    """k = ⌈√n⌉, the points of setting 2 outside the majority; they are the first rows."""
    return int(np.ceil(np.sqrt(n)))


def synthetic_problem(setting: int, n: int, seed: int) -> Problem:
    rng = np.random.default_rng([seed, setting])

    def points(count: int) -> Array:
        if setting == 1:
            return rng.random((count, 1))
        few = minority(count)
        outside = rng.uniform(0, 0.5, few)
        inside = 1 + rng.normal(0, np.sqrt(1 / count), count - few)
        return np.concatenate([outside, inside])[:, None]

    X = points(n)
    X_test = points(TEST)
    return Problem(X, truth(X) + rng.standard_normal(n), X_test, truth(X_test))


def features(X: Array) -> Array:
    """L with L Lᵀ = k(X, X) to rounding, by pivoted Cholesky: (n, r)."""
    left = KERNEL.diag(X)
    L = np.empty((len(X), 0))
    while left.max() > _ROUNDING:
        pivot = int(np.argmax(left))
        column = KERNEL(X, X[pivot : pivot + 1])[:, 0] - L @ L[pivot]
        L = np.column_stack([L, column / np.sqrt(left[pivot])])
        left = np.maximum(left - L[:, -1] ** 2, 0)
        left[pivot] = 0
    return L


class ExactModel:
    """KRR with λ by leave-one-out, scored by V1; vectors are in the basis Q of L = Q T."""

    def __init__(self, problem: Problem, L: Array) -> None:
        self.problem = problem
        self.L, self.L_test = np.split(L, [len(problem.X)])
        self.ids = np.empty(0, dtype=int)

    def add(self, ids: Array) -> None:
        self.ids = np.concatenate([self.ids, ids])
        y = self.problem.y[self.ids]
        Q, self.T = np.linalg.qr(self.L[self.ids])
        self.y = Q.T @ y
        self.fit(Q, y)

    def fit(self, Q: Array, y: Array) -> None:
        self.exact = Exact(self.T @ self.T.T)
        self.alpha = loo_alpha(Q @ self.exact.U, self.exact.E, y)

    def predicted(self, L: Array) -> Array:
        return self.exact.mean(self.T @ L.T, self.y, self.alpha)

    def error(self) -> float:
        return float(np.mean((self.predicted(self.L_test) - self.problem.y_test) ** 2))

    def scores(self, rows: Array) -> Array:
        return self.exact.v1(self.T @ self.L[rows].T, self.alpha)


class SketchedModel(ExactModel):
    """Sketched KRR with a Gaussian sketch of ⌈log n⌉ rows, n the labels or the pool."""

    def __init__(self, problem: Problem, L: Array, *, n_is: str, score: str, seed: int) -> None:
        super().__init__(problem, L)
        self.n_is = n_is
        self.score = score
        self.sketch = GaussianSketch(1, seed)

    def fit(self, Q: Array, y: Array) -> None:
        n = len(self.ids)
        m = log_size(n if self.n_is == "labels" else len(self.problem.X))
        S = self.sketch.grown(m).entries(range(m), range(n))
        self.SL = S @ self.L[self.ids]  # S k_x = S L_labeled l_x
        self.spectrum = sketched_spectrum(self.T @ self.SL.T, self.SL @ self.SL.T)
        U = Q @ self.spectrum.H / np.sqrt(self.spectrum.E)
        self.alpha = loo_alpha(U, self.spectrum.E, y)

    def predicted(self, L: Array) -> Array:
        return self.spectrum.mean(self.SL @ L.T, self.y, self.alpha)

    def scores(self, rows: Array) -> Array:
        L = self.L[rows]
        if self.score == "gp":
            return self.spectrum.gp((L**2).sum(axis=1), self.SL @ L.T, self.alpha)
        return self.spectrum.v2(self.T @ L.T, self.alpha)


@dataclass(frozen=True)
class Synthetic:
    """The rows of a setting: MSE against f* and labeled minority points, by round."""

    setting: int
    takes = frozenset({"repetitions", "n"})
    reads = ""
    alone = False

    def cells(self, options: Options) -> list[dict]:
        count = options.count(quick=20, full=100)
        first = options.first_seed
        pool = options.one_n(POOL)
        least = INITIAL + 50 * BATCH
        if pool < least:
            raise ValueError(f"Figure 3 labels {least} points, more than the {pool} of --n.")
        return [{"seed": seed, "n": pool, "rounds": 50} for seed in range(first, first + count)]

    def run(self, cell: dict, data: Path | None) -> list[dict]:
        problem = synthetic_problem(self.setting, cell["n"], cell["seed"])
        L = features(np.concatenate([problem.X, problem.X_test]))
        first = first_labels(cell["n"], INITIAL, cell["seed"])
        few = minority(cell["n"]) if self.setting == 2 else 0
        rows = []
        for name in _RUN[self.setting]:
            strategy = STRATEGIES[name]
            errors, told = simulate(
                self.model(strategy, problem, L, cell["seed"]),
                strategy.acquisition,
                cell["n"],
                first,
                batch=BATCH,
                rounds=cell["rounds"],
                seed=cell["seed"],
            )
            outside = np.cumsum([int((ids < few).sum()) for ids in told])
            for r, (mse, count) in enumerate(zip(errors, outside, strict=True)):
                row = {"strategy": name, "seed": cell["seed"], "round": r, "mse": mse}
                rows.append({**row, "minority": int(count)} if few else row)
        return rows

    def model(self, strategy: Strategy, problem: Problem, L: Array, seed: int) -> ExactModel:
        if strategy.model == "exact":
            return ExactModel(problem, L)
        return SketchedModel(problem, L, n_is=strategy.model, score=strategy.score, seed=seed)
