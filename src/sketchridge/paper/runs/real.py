"""Figures 4 and 5: active learning on flights and on the weather, up to half of the pool."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sketchridge.active import ActiveLearner
from sketchridge.kernels import Gaussian
from sketchridge.learning import learn
from sketchridge.paper.datasets import load_flights, load_weather, origin_of
from sketchridge.paper.options import Options, rows_of
from sketchridge.paper.runs.algebra import loo_alpha, sketched_spectrum
from sketchridge.paper.runs.campaign import Problem, first_labels, log_size, simulate
from sketchridge.paper.runs.products import (
    Held,
    Labeled,
    PoolProducts,
    Streamed,
    median_distance,
)
from sketchridge.paper.settings import sketched_ridge

__all__ = ["MODELS", "SOURCES", "WHOLE", "Real", "RealModel", "Source"]

Array = np.ndarray
FIXED = 256  # m of the reading that is not the paper's
WHOLE = "whole pool"
_LEAST_TEST = 1000  # rows
MODELS = {
    "labels": "m = ⌈log n⌉",
    "pool": "m = ⌈log pool⌉",
    "fixed": "m fixed",
    "learned": "m fixed, learned bandwidths",
    "auto": "m automatic",
}
_ACQUISITIONS = {
    "V2": ("weighted", "v2"),
    "V2-top": ("top", "v2"),
    "gp": ("weighted", "gp"),
    "uniform": ("uniform", "v2"),
}


@dataclass(frozen=True)
class Source:
    """A data set: how much of it is pool, how many labels in a round, and its unit."""

    name: str
    pool: int
    quick: int  # the pool of quick runs
    test: int
    batch: int
    unit: str
    scale: float  # of y, to that unit

    @property
    def rounds(self) -> int:
        """Until half of the pool is labeled, the first labels being one batch."""
        return self.pool // (2 * self.batch) - 1


SOURCES = {
    "flights": Source("flights", 50_000, 20_000, 10_000, 1000, "minutes", 1.0),
    "weather": Source("weather", 10_000, 10_000, 10_000, 200, "°C", 0.1),
}


@lru_cache(maxsize=2)
def _loaded(source: str, folder: Path | None) -> tuple[Array, Array]:
    return load_flights(folder) if source == "flights" else load_weather(folder)


def real_problem(source: Source, pool: int, seed: int, folder: Path | None) -> Problem:
    """Rows drawn by the seed; features scaled by the pool, y in the source's unit."""
    X, y = _loaded(source.name, folder)
    if len(y) < pool + _LEAST_TEST:
        raise ValueError(f"The {source.name} have {len(y)} rows, too few for a pool of {pool}.")
    order = np.random.default_rng(seed).permutation(len(y))[: pool + source.test]
    X = X[order].astype(float)
    y = source.scale * y[order].astype(float)
    X = (X - X[:pool].mean(axis=0)) / X[:pool].std(axis=0)
    return Problem(X[:pool], y[:pool], X[pool:], y[pool:])


class RealModel:
    """Sketched KRR with a Gaussian sketch, λ by leave-one-out, y centered by the first labels.

    Points are in units of the bandwidth. Products accumulate over rounds.
    """

    def __init__(
        self, problem: Problem, labeled: Labeled, size: Any, score: str, pool: PoolProducts | None
    ) -> None:
        self.problem = problem
        self.labeled = labeled
        self.size = size  # m, a function of the number of labels
        self.score = score
        self.pool = pool
        self.is_open = np.ones(len(problem.X), dtype=bool)

    def add(self, ids: Array) -> None:
        self.extend(ids)
        self.m = int(self.size(len(self.labeled.ids)))
        self.spectrum, self.y, self.alpha = self.fitted(self.m)

    def extend(self, ids: Array) -> None:
        """New labels, before the model is fitted to them."""
        if not len(self.labeled.ids):
            self.center = float(self.problem.y[ids].mean())
        self.is_open[ids] = False
        S_new = self.labeled.add(ids)
        if self.pool is not None:
            self.pool.add(ids, S_new, np.flatnonzero(self.is_open))

    def fitted(self, m: int) -> tuple[Any, Array, float]:
        """With the first m rows of the sketch."""
        R = self.labeled.R[:, :m]
        spectrum = sketched_spectrum(R, self.labeled.S[:m] @ R)
        y = self.problem.y[self.labeled.ids] - self.center
        return spectrum, y, loo_alpha(spectrum.H / np.sqrt(spectrum.E), spectrum.E, y)

    def error(self) -> float:
        return self.error_of(self.m, self.spectrum, self.y, self.alpha)

    def error_of(self, m: int, spectrum: Any, y: Array, alpha: float) -> float:
        mean = self.center + spectrum.mean(self.labeled.t_test[:m], y, alpha)
        return float(np.mean((mean - self.problem.y_test) ** 2))

    def scores(self, rows: Array) -> Array:
        assert self.pool is not None
        if self.score == "gp":
            t = self.pool.sketched(rows)[: self.m]
            return self.spectrum.gp(np.ones(len(rows)), t, self.alpha)
        squares, b = self.pool.moments(self.spectrum.H, rows)
        return self.spectrum.v2_from_sums(squares, b, self.alpha)


@dataclass(frozen=True)
class Real:
    """The rows of a data set: RMSE by strategy, size of the sketch and round."""

    source: str
    takes = frozenset({"repetitions", "n", "m", "backend", "strategies"})
    alone = False

    @property
    def reads(self) -> str:
        return self.source

    def cells(self, options: Options) -> list[dict]:
        source = SOURCES[self.source]
        pool = options.one_n(source.pool if options.full else source.quick)
        rounds = pool // (2 * source.batch) - 1
        if rounds < 1:
            raise ValueError(f"A pool of {pool} is less than four rounds of {source.batch}.")
        rounds = rounds if options.full else min(rounds, 8)
        labels = (rounds + 1) * source.batch
        rows_of("The last round of this figure", [options.one_m(FIXED)], labels)
        common = {
            "pool": pool,
            "rounds": rounds,
            "m": options.one_m(FIXED),
            "backend": options.backend,
        }
        first = options.first_seed
        many = options.count(quick=4, full=30)  # the paper's two curves
        large = self.source == "flights"
        some = min(many, options.count(quick=2, full=12 if large else 30))  # m fixed
        few = min(some, options.count(quick=2, full=6 if large else 10))
        automatic = options.count(quick=2, full=4 if large else 30)
        plan = [  # the longest first
            ("V2", "fixed", 0, some),
            ("V2-top", "fixed", 0, few),
            ("V2", "learned", 0, few),
            ("uniform", "all", 0, some),
            ("V2", "auto", 0, automatic),
            ("gp", "fixed", 0, few),
            ("uniform", "papers", some, many),
            ("V2", "labels", 0, many),
            ("V2", "pool", 0, many),
            ("uniform", "learned", 0, few),
            ("V2-top", "labels", 0, min(many, 10)),
            ("gp", "labels", 0, min(many, 10)),
            ("uniform", "auto", 0, automatic),
        ]
        return [
            {"strategy": strategy, "model": model, "seed": first + seed, **common}
            for strategy, model, start, stop in _wanted(plan, options.strategies)
            for seed in range(start, stop)
        ]

    def run(self, cell: dict, data: Path | None) -> list[dict]:
        """Rows that name the data they are of."""
        name = origin_of(self.source, data).name
        return [{**row, "data": name} for row in self._rows(cell, data)]

    def _rows(self, cell: dict, data: Path | None) -> list[dict]:
        source = SOURCES[self.source]
        problem = real_problem(source, cell["pool"], cell["seed"], data)
        first = first_labels(cell["pool"], source.batch, cell["seed"])
        if cell["model"] == "auto":
            return _automatic(cell, problem, first, source.batch)
        problem = _in_bandwidths(problem, first, cell)
        acquisition, score = _ACQUISITIONS[cell["strategy"]]
        model = _model(cell, problem, score)
        seen: list[dict] = []
        watched = cell["model"] in ("all", "papers")
        if watched:
            model = _Watched(model, _sizes(cell), seen)
        errors, told = simulate(
            model,
            acquisition,
            cell["pool"],
            first,
            batch=source.batch,
            rounds=cell["rounds"],
            seed=cell["seed"],
        )
        if not watched:
            return [
                _row(cell, cell["model"], r, mse, _size(cell)((r + 1) * source.batch))
                for r, mse in enumerate(errors)
            ]
        rest = np.setdiff1d(np.arange(cell["pool"]), np.concatenate(told))
        for start in range(0, len(rest), source.batch):
            model.inner.extend(rest[start : start + source.batch])
        model.look()
        rows = []
        for r, errors_of in enumerate(seen):
            name = cell if r <= cell["rounds"] else {**cell, "strategy": WHOLE}
            n = cell["pool"] if r > cell["rounds"] else (r + 1) * source.batch
            rows += [
                _row(name, kind, r, mse, _sizes(cell)[kind](n)) for kind, mse in errors_of.items()
            ]
        return rows


def _wanted(plan: list[tuple], names: Sequence[str]) -> list[tuple]:
    """All parts of a plan, or those of these names."""
    known = {f"{strategy}:{model}": part for part in plan for strategy, model in [part[:2]]}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"Unknown strategy {unknown[0]!r}: give some of {', '.join(known)}.")
    return [part for name, part in known.items() if not names or name in names]


class _Watched:
    """Models of several m that share their products, none of which draws by its scores."""

    def __init__(self, inner: RealModel, sizes: dict, seen: list[dict]) -> None:
        self.inner = inner
        self.sizes = sizes
        self.seen = seen

    def add(self, ids: Array) -> None:
        self.inner.extend(ids)
        self.look()

    def look(self) -> None:
        n = len(self.inner.labeled.ids)
        found = {}
        for kind, size in self.sizes.items():
            m = size(n)
            found[kind] = self.inner.error_of(m, *self.inner.fitted(m))
        self.seen.append(found)

    def error(self) -> float:
        return self.seen[-1]["labels"]

    def scores(self, rows: Array) -> Array:
        return self.inner.scores(rows)


def _sizes(cell: dict) -> dict:
    """m as a function of the labels, for each reading that is run."""
    papers = {"labels": log_size, "pool": lambda n: log_size(cell["pool"])}
    return papers if cell["model"] == "papers" else {**papers, "fixed": lambda n: cell["m"]}


def _size(cell: dict) -> Any:
    kind = {"labels": "labels", "pool": "pool", "papers": "pool"}.get(cell["model"], "fixed")
    return _sizes(cell)[kind]


def _model(cell: dict, problem: Problem, score: str) -> Any:
    size = _size(cell)
    largest = size(cell["pool"])
    labeled = Labeled(problem.X, problem.X_test, largest, cell["seed"])
    products = None
    if cell["strategy"] != "uniform":
        products = _pool_products(cell, problem.X, largest, score)
    return RealModel(problem, labeled, size, score, products)


def _pool_products(cell: dict, X: Array, largest: int, score: str) -> PoolProducts:
    """In single precision for the paper's m only.

    There V2·α² is about 1e-3 of ‖k_x‖²; with m = 256 it is 1e-5 to 1e-9, below what single
    precision leaves of the sums.
    """
    single = cell["model"] in ("labels", "pool")
    if cell["backend"] != "numpy" or (score == "v2" and not single):
        return Streamed(X, largest, cell["backend"])
    return Held(X, largest, keep=score == "v2", dtype=np.float32 if single else np.float64)


def _in_bandwidths(problem: Problem, first: Array, cell: dict) -> Problem:
    """Points in units of one bandwidth, the median distance, or of those learned."""
    if cell["model"] == "learned":
        found = learn(
            problem.X[first],
            problem.y[first, None],
            np.ones(len(first)),
            kernels=[Gaussian()],
            forms=["ard"],
            fit_intercept=True,
            seed=cell["seed"],
            rows=1000,
        )
        return Problem(problem.X @ found.map, problem.y, problem.X_test @ found.map, problem.y_test)
    h = median_distance(problem.X, cell["seed"])
    return Problem(problem.X / h, problem.y, problem.X_test / h, problem.y_test)


def _automatic(cell: dict, problem: Problem, first: Array, batch: int) -> list[dict]:
    """The library's own learner, whose sketch grows as it sees fit."""
    acquisition, score = _ACQUISITIONS[cell["strategy"]]
    learner = ActiveLearner(
        sketched_ridge(
            kernel=Gaussian(bandwidth=median_distance(problem.X, cell["seed"])),
            backend=cell["backend"],
        ),
        problem.X,
        batch_size=batch,
        acquisition=acquisition,
        score=score,
        goal="explore",
        first="uniform",
        stop=None,
        store=None,
        random_state=cell["seed"],
    )
    center = float(problem.y[first].mean())
    learner.tell(first, problem.y[first] - center)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of sketches at their largest size
        for r in range(cell["rounds"] + 1):
            if r:
                ids: Any = learner.ask()
                learner.tell(ids, problem.y[ids] - center)
            model: Any = learner.estimator_
            mse = float(np.mean((center + model.predict(problem.X_test) - problem.y_test) ** 2))
            rows.append(_row(cell, "auto", r, mse, model.sketch_size_))
    return rows


def _row(cell: dict, model: str, r: int, mse: float, m: int) -> dict:
    return {
        "strategy": cell["strategy"],
        "model": model,
        "seed": cell["seed"],
        "round": r,
        "m": int(m),
        "rmse": float(np.sqrt(mse)),
    }
