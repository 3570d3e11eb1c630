"""The first version's CPU benchmarks, this version against that one: both run them in turns.

    git worktree add ../before 3e8432e
    python benchmarks/cpu_before_after.py --before ../before/src

Each task is a benchmark of this folder in small: what it times, by calls that both versions have,
with every setting given, so that both do the same work. A process runs on two cores of its own,
and as many tasks run at a time as there are pairs of cores. Times are the least of some turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import numpy as np
from common import RESULTS, Claim, machine, markdown_table, write_csv, write_report

ROOT = Path(__file__).parent.parent
THREADS = 2
SETTINGS = {
    "kernel": "gaussian",
    "bandwidth": 0.5,
    "alpha": "gcv",
    "sketch": "rpcholesky",
    "sketch_size": 256,
    "sketch_tol": 0.1,
    "solver": "sketch",
    "noise_variance": 1.0,
    "fit_intercept": False,
    "backend": "numpy",
    "dtype": "auto",
    "random_state": 0,
}
CHILD = r"""
import inspect, json, os, sys, time, warnings
cores = json.loads(sys.argv[3])
if cores:
    os.sched_setaffinity(0, cores)
warnings.simplefilter("ignore")
import numpy as np
from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge
from sketchridge.backends import NumpyTiles
from sketchridge.kernels import Gaussian

task, settings = sys.argv[1], json.loads(sys.argv[2])
now = "noise" in inspect.signature(SketchedKernelRidge).parameters
if now:
    settings["noise"] = "constant"
out = {}

def least(name, function, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        value = function()
        times.append(time.perf_counter() - start)
    out[name] = min(times)
    return value

def sketched(**changes):
    return SketchedKernelRidge(**(settings | changes))

def exact(**changes):
    names = ("kernel", "bandwidth", "alpha", "noise_variance", "fit_intercept", "noise")
    more = {"backend": "numpy", "dtype": "auto"} if now else {}
    given = {name: settings[name] for name in names if name in settings}
    return ExactKernelRidge(**(given | more | changes))

def problem(n, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X_new, X = rng.uniform(size=(1000, d)), rng.uniform(size=(n, d))
    return X, np.sin(3 * X.sum(axis=1)) + 0.1 * rng.standard_normal(n), X_new

if task.startswith("variance_cpu"):
    sketched(sketch_size=32, alpha=1.0).fit(*problem(1000)[:2])
    n = int(task.split()[1])
    X, y, X_new = problem(n)
    for sketch in ("rpcholesky", "landmarks"):
        for alpha in (n * 1e-3, "gcv"):
            name = f"n = {n:,}, 256 {sketch}, {'GCV' if alpha == 'gcv' else 'alpha given'}"
            model = sketched(alpha=alpha, sketch=sketch)
            least(f"{name}: fit", lambda: model.fit(X, y))
        least(f"n = {n:,}, 256 {sketch}: V2 at 1,000 points", lambda: model.variance(X_new, "v2"))
elif task == "accuracy_time":
    X, y, X_new = problem(8000)
    points = X_new[:100]
    for m in (128, 512):
        model = sketched(alpha=8.0, sketch_size=m).fit(X, y)
        for kind in ("v2", "v3"):
            least(f"m = {m}: {kind} at 100 points", lambda: model.variance(points, kind), 9)
        least(f"m = {m}: V2 and 2 steps", lambda: model.variance(points, "v2", refine=2))
    model = sketched(alpha=8.0, sketch_size=768).fit(X, y)
    for tol in (1e-1, 1e-2, 1e-3):
        least(f"m = 768: V1 to {tol:g}", lambda: model.variance(points, "v1", tol=tol))
    solver = sketched(alpha=8.0, sketch_size=512, solver="pcg")
    least("exact mean", lambda: solver.fit(X, y))
elif task == "exact":
    X, y, X_new = problem(2000)
    model = exact(alpha=2.0)
    least("fit of 2,000 rows, alpha given", lambda: model.fit(X, y))
    least("V1 at 1,000 points", lambda: model.variance(X_new, "v1"), 9)
    chosen = exact()
    least("fit of 2,000 rows, GCV", lambda: chosen.fit(X, y))
elif task == "kernel_product":
    X, _, _ = problem(16000)
    S = np.random.default_rng(1).standard_normal((16000, 128))
    kernel = Gaussian(bandwidth=0.5).fitted(X)
    for dtype in ("float32", "float64"):
        if now:
            backend = NumpyTiles()
            P, Q = (backend.place(kernel, kernel.coordinates(X)) for _ in range(2))
            T = backend.tall(S)
            half = lambda: backend.matmul(P, P, T, precision=dtype)
            whole = lambda: backend.matmul(P, Q, T, precision=dtype)
        else:
            half = lambda: NumpyTiles(dtype).matmul(kernel, X, X, S)
            whole = lambda: NumpyTiles(dtype).matmul(kernel, X, X.copy(), S)
        least(f"k(X, X) S, 16,000 rows, 128 columns, {dtype}", half)
        least(f"k(X, Z) S, 16,000 rows, 128 columns, {dtype}", whole)
elif task == "precision":
    X, y, X_new = problem(2000)
    for sketch in ("rpcholesky", "gaussian"):
        for decade in (-2, -4, -6):
            given = {"alpha": 2000 * 10.0**decade, "sketch": sketch}
            double, single = (sketched(dtype=name, **given).fit(X, y)
                              for name in ("float64", "float32"))
            wanted = double.variance(X_new, "v2")
            error = np.abs(single.variance(X_new, "v2") / wanted - 1).max()
            out[f"error of float32 V2, {sketch}, lambda = 1e{decade}"] = float(error)
    single = sketched(dtype="float32", alpha=2.0).fit(X, y)
    least("V2 at 1,000 points in float32", lambda: single.variance(X_new, "v2"), 9)
elif task == "active_round":
    X = np.random.default_rng(0).uniform(size=(40_000, 8))
    y = np.sin(X.sum(axis=1)) + 0.5 * np.random.default_rng(1).standard_normal(len(X))
    learner = ActiveLearner(sketched(bandwidth="median", sketch_size=300, noise_variance="auto"),
                            X, batch_size=1000, acquisition="weighted", score="v2", stop=None,
                            store=None, random_state=0)
    learner.tell(np.arange(10_000), y[:10_000])
    learner.scores()
    def a_round():
        ids = learner.ask()
        learner.tell(ids, y[ids])
    a_round()
    least("a round of 1,000 labels, 10,000 there, a pool of 30,000", a_round, 4)
print(json.dumps(out))
"""
TASKS = (
    "variance_cpu 16000",
    "accuracy_time",
    "active_round",
    "kernel_product",
    "variance_cpu 4000",
    "exact",
    "precision",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, help="sources of the other version")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tasks", nargs="*", default=TASKS, choices=TASKS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    versions = {"before": options.before.resolve(), "now": (ROOT / "src").resolve()}
    pairs = _pairs()
    lanes: SimpleQueue[Sequence[int]] = SimpleQueue()
    for pair in pairs:
        lanes.put(pair)

    def measured(task: str) -> list[dict[str, object]]:
        pair = lanes.get()
        try:
            return _in_turns(task, versions, options.turns, pair)
        finally:
            lanes.put(pair)

    with ThreadPoolExecutor(len(pairs)) as pool:
        rows = [row for part in pool.map(measured, options.tasks) for row in part]
    _report(options.out, rows, options.turns, len(pairs))


def _pairs() -> list[Sequence[int]]:
    """Disjoint pairs of the cores this process may use; one that names none where it cannot ask."""
    if not hasattr(os, "sched_setaffinity"):
        return [()]
    cores = sorted(os.sched_getaffinity(0))
    return [cores[i : i + THREADS] for i in range(0, len(cores) - THREADS + 1, THREADS)] or [cores]


def _in_turns(
    task: str, versions: dict[str, Path], turns: int, cores: Sequence[int]
) -> list[dict[str, object]]:
    """The least value of each measurement, by version."""
    least: dict[str, dict[str, float]] = {name: {} for name in versions}
    for _ in range(turns):
        for name, sources in versions.items():
            threads = {"PYTHONPATH": str(sources), "OMP_NUM_THREADS": str(THREADS)}
            given = [task, json.dumps(SETTINGS), json.dumps(list(cores))]
            done = subprocess.run(
                [sys.executable, "-c", CHILD, *given],
                env=os.environ | threads,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            for key, value in json.loads(done.stdout).items():
                least[name][key] = min(value, least[name].get(key, np.inf))
    return [
        {
            "benchmark": task.split()[0],
            "what": key,
            "before": f"{before:.3g}",
            "now": f"{least['now'][key]:.3g}",
            "ratio": f"{before / least['now'][key]:.2f}",
        }
        for key, before in least["before"].items()
    ]


def _report(folder: Path, rows: list[dict[str, object]], turns: int, lanes: int) -> None:
    write_csv(folder / "cpu_before_after.csv", rows)
    times = [row for row in rows if not str(row["what"]).startswith("error")]
    slower = [f"{row['what']} ({row['ratio']})" for row in times if float(str(row["ratio"])) < 0.95]
    sentence = "nothing is slower than before by more than a twentieth"
    claim = Claim(sentence + (f", but: {', '.join(slower)}" if slower else ""), not slower)
    setting = (
        "Command: `python benchmarks/cpu_before_after.py --before DIR`, DIR being the sources of "
        f"3e8432e. {machine()}.\n\nSeconds, or relative errors where it says so; the least of "
        f"{turns} turns; two threads on two cores for each process, {lanes} at a time; ratio is "
        "before/now."
    )
    write_report(
        folder / "cpu_before_after.md",
        "The first version's CPU benchmarks, before and now",
        [setting, markdown_table(rows)],
        [claim],
    )


if __name__ == "__main__":
    main()
