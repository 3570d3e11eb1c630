"""Labels until a maximum is nearly found: a campaign with that goal against BoTorch and Optuna.

    python benchmarks/optimize.py --jobs 16

Branin and Hartmann-6, to be maximized, without noise. All begin with the same points; then one
label at a time until the best is within 5% of (optimum − median of the first labels) of the
optimum. Ours chooses among a pool of 32,768 Sobol points, to which 1,000 candidates around the
best so far are added with each label, as a laboratory would refine its table: of a million Sobol
points in six dimensions four are near enough. The others choose anywhere: `SingleTaskGP` with
`LogExpectedImprovement` is BoTorch's default, `GPSampler` Optuna's model-based one. Peers that are
not installed are left out.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import common
import numpy as np
from joblib import Parallel, delayed
from scipy.stats import qmc
from settings import automatic_ridge

from sketchridge import ActiveLearner

Array = np.ndarray
Rows = list[dict[str, Any]]
OURS = "sketchridge"
SEEDS = 20
FIRST = 10  # labels that all begin with
MOST = 200  # labels after which a run is given up
LOG_POOL = 15  # points of the pool, as a power of two
LOCAL = (0.1, 0.03)  # standard deviations of candidates around the best
ADDED = 500  # of each
NEAR = 0.05  # of (optimum − median of the first labels)
WANTED = 1.2  # times the labels of the better peer
_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_C = np.array([1.0, 1.2, 3.0, 3.2])


def branin(U: Array) -> Array:
    """Minus Branin's function on the unit square: (t,)."""
    x, y = 15 * U[:, 0] - 5, 15 * U[:, 1]
    curved = y - 5.1 / (4 * np.pi**2) * x * x + 5 / np.pi * x - 6
    return -(curved**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)


def hartmann(U: Array) -> Array:
    """Minus Hartmann's function of six variables: (t,)."""
    squares = (_A * (U[:, None, :] - _P) ** 2).sum(axis=2)
    return np.exp(-squares) @ _C


@dataclass(frozen=True)
class Problem:
    """A function on the unit cube, with what is known of it."""

    function: Callable[[Array], Array]
    d: int
    optimum: float


PROBLEMS = {
    "branin": Problem(branin, 2, -0.39788735772973816),
    "hartmann6": Problem(hartmann, 6, 3.322368011391339),
}


@dataclass
class Run:
    """Labels as they come, until they are near enough or too many, or time is up."""

    problem: Problem
    first: Array  # (FIRST, d)
    limit: float  # seconds

    def __post_init__(self) -> None:
        self.y = self.problem.function(self.first).tolist()
        self.near = NEAR * (self.problem.optimum - float(np.median(self.y)))
        self.start = time.perf_counter()

    @property
    def goes_on(self) -> bool:
        late = time.perf_counter() - self.start > self.limit
        return not late and not self.found and len(self.y) < MOST

    @property
    def found(self) -> bool:
        return self.problem.optimum - max(self.y) <= self.near

    def measure(self, X: Array) -> Array:
        """Labels of further points (t, d)."""
        y = self.problem.function(X)
        self.y += y.tolist()
        return y


def ours(run: Run, pool: Array, seed: int) -> None:
    learner = ActiveLearner(
        automatic_ridge(random_state=seed),
        pool,
        batch_size=1,
        acquisition="improvement",
        score="v2",
        goal="maximize",
        first="uniform",
        stop=None,
        store=None,
        random_state=seed,
    )
    rng = np.random.default_rng(seed)
    learner.tell(np.arange(FIRST), run.y)
    while run.goes_on:
        best = learner.pool_[learner.labeled_ids_[[np.argmax(learner.labels_[:, 0])]]]
        for spread in LOCAL:
            near = best + spread * rng.standard_normal((ADDED, run.problem.d))
            learner.add(np.clip(near, 0, 1))
        ids = learner.ask()
        learner.tell(ids, run.measure(learner.pool_[ids]))


def botorch(run: Run, pool: Array, seed: int) -> None:
    """The model and acquisition that BoTorch recommends, with its own optimizer."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    d = run.problem.d
    X = torch.tensor(run.first)
    bounds = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    while run.goes_on:
        Y = torch.tensor(run.y).double()[:, None]
        model = SingleTaskGP(X, Y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        new, _ = optimize_acqf(
            LogExpectedImprovement(model, best_f=Y.max()),
            bounds,
            q=1,
            num_restarts=10,
            raw_samples=512,
        )
        X = torch.cat([X, new])
        run.measure(new.numpy())


def optuna(run: Run, pool: Array, seed: int) -> None:
    """GPSampler with its defaults; the first points are trials that are told."""
    import optuna
    import torch

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    names = [f"x{j}" for j in range(run.problem.d)]
    space = {name: optuna.distributions.FloatDistribution(0, 1) for name in names}
    sampler = optuna.samplers.GPSampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for x, y in zip(run.first.tolist(), run.y, strict=True):
        params = dict(zip(names, x, strict=True))
        study.add_trial(optuna.trial.create_trial(params=params, distributions=space, value=y))
    while run.goes_on:
        trial = study.ask(space)
        x = np.array([[trial.params[name] for name in names]])
        study.tell(trial, float(run.measure(x)[0]))


METHODS: dict[str, Callable[[Run, Array, int], None]] = {OURS: ours}
if find_spec("botorch"):
    METHODS["BoTorch"] = botorch
if find_spec("optuna"):
    METHODS["Optuna"] = optuna


def measured(name: str, method: str, seed: int, limit: float) -> dict[str, Any]:
    os.environ["OMP_NUM_THREADS"] = "1"
    problem = PROBLEMS[name]
    pool = qmc.Sobol(problem.d, rng=np.random.default_rng(seed)).random_base2(LOG_POOL)
    run = Run(problem, pool[:FIRST], limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        METHODS[method](run, pool, seed)
    row = {
        "function": name,
        "method": method,
        "seed": seed,
        "labels": len(run.y),
        "found": run.found,
        "regret": problem.optimum - max(run.y),
        "near": run.near,
        "seconds": time.perf_counter() - run.start,
    }
    print(row, flush=True)
    return row


def report(rows: Rows, out: Path, command: str, machine: str) -> None:
    lines = []
    claims = []
    for name in dict.fromkeys(r["function"] for r in rows):
        labels: dict[str, float] = {}
        for method in dict.fromkeys(r["method"] for r in rows):
            some = [r for r in rows if (r["function"], r["method"]) == (name, method)]
            counts = [r["labels"] for r in some]
            labels[method] = float(np.mean(counts))
            lines.append(
                {
                    "function": name,
                    "method": method,
                    "labels, mean": f"{np.mean(counts):.1f}",
                    "median": f"{np.median(counts):.0f}",
                    "10% to 90%": "{:.0f} to {:.0f}".format(*np.quantile(counts, (0.1, 0.9))),
                    "not found": sum(not r["found"] for r in some),
                    "seconds per label": f"{_pace(some):.2f}",
                }
            )
        peers = [value for method, value in labels.items() if method != OURS]
        both = bool(peers) and OURS in labels
        ratio = labels[OURS] / min(peers) if both else float("nan")
        claims.append(
            common.Claim(
                f"{name}: at most 20% more labels than the better peer, in the mean (found "
                f"{ratio:.2f} times as many)",
                ratio <= WANTED if both else None,
            )
        )
    seeds = len({r["seed"] for r in rows})
    parts = [
        f"Command: `{command}`. {machine}.",
        f"{seeds} seeds, {FIRST} first labels that all share and that are counted; a run that has "
        f"not found the optimum is given up at {MOST} labels, which are then counted.",
        common.markdown_table(lines),
    ]
    common.write_report(
        out / "optimize.md", "Labels until a maximum is nearly found", parts, claims
    )


def _pace(rows: Rows) -> float:
    return float(sum(r["seconds"] for r in rows) / max(sum(r["labels"] - FIRST for r in rows), 1))


def read(paths: list[Path]) -> Rows:
    """Rows of earlier runs, which may be parts of one, in an order of their own."""
    rows: Rows = []
    for path in paths:
        with path.open() as file:
            for row in csv.DictReader(file):
                numbers = {k: float(row[k]) for k in ("regret", "near", "seconds")}
                counts = {k: int(row[k]) for k in ("seed", "labels")}
                rows.append({**row, **numbers, **counts, "found": row["found"] == "True"})
    order = [OURS, "BoTorch", "Optuna"]
    return sorted(rows, key=lambda r: (r["function"], order.index(r["method"]), r["seed"]))


def cells(
    seeds: Iterable[int], functions: Sequence[str], methods: Sequence[str]
) -> list[tuple[str, str, int]]:
    """What there is to measure, those first that take long."""
    slow = sorted(methods, key=lambda m: m != "BoTorch")
    return [(f, m, s) for f in reversed(functions) for m in slow for s in seeds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--functions", nargs="+", default=list(PROBLEMS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one run")
    parser.add_argument("--report", nargs="+", type=Path, help=".csv files to put together")
    parser.add_argument("--machine", default=common.machine(), help="where it was measured")
    options = parser.parse_args()
    command = f"python benchmarks/optimize.py --seeds {options.seeds} --jobs {options.jobs}"
    path = options.out / "optimize.csv"
    if options.report:
        rows = read(options.report)
        common.write_csv(path, rows)
        report(rows, options.out, command, options.machine)
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    path.unlink(missing_ok=True)
    todo = cells(range(options.seeds), options.functions, options.methods)
    work = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    for row in work(delayed(measured)(*cell, options.limit) for cell in todo):
        common.append_csv(path, [row])
    report(read([path]), options.out, command, options.machine)


if __name__ == "__main__":
    main()
