"""Whole fits on one GPU, this version against an earlier one, in turns.

    python benchmarks/gpu_before_after.py --before ../before/src --flights flights.npz

Wall times, the best of some runs after a first that compiles, in all turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import common

SETTINGS = {
    "kernel": "gaussian",
    "sketch_tol": 0.1,
    "solver": "sketch",
    "noise_variance": "auto",
    "fit_intercept": False,
    "backend": "triton",
    "random_state": 0,
}
CHILD = r"""
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import torch
from sketchridge import SketchedKernelRidge

flights, settings = sys.argv[1], json.loads(sys.argv[2])
data = np.load(flights)
X = data["X"].astype(float)
X = (X - X.mean(axis=0)) / X.std(axis=0)
y = data["y"] - data["y"].mean()
points = X[np.random.default_rng(2).choice(len(X), 1000, replace=False)]
rng = np.random.default_rng(1)
n = 2**20
U = rng.random((n, 8))
U_new = rng.random((1000, 8))
v = np.sin(6 * U[:, 0]) + rng.standard_normal(n)
some = np.random.default_rng(3).permutation(len(X))[: 2**18 + 256]
out = {}

def best(name, function, runs):
    function()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    out[name] = min(times)
    print(name, out[name], file=sys.stderr, flush=True)
    torch.cuda.empty_cache()

def signs(dtype):
    model = SketchedKernelRidge(bandwidth=0.5, alpha=n * 1e-3, sketch="rademacher",
                                sketch_size=256, dtype=dtype, **settings)
    model.fit(U, v).variance(U_new, "v2")

def all_flights(dtype):
    model = SketchedKernelRidge(bandwidth="median", alpha="gcv", sketch="landmarks",
                                sketch_size=4096, dtype=dtype, **settings)
    model.fit(X, y).variance(points, "v2")
    model.variance(points, "v3")

def exact():
    model = SketchedKernelRidge(bandwidth=3.6, alpha=2**18 * 1e-5, sketch="rpcholesky",
                                sketch_size=4096, dtype="float64", **settings)
    model.fit(X[some[: 2**18]], y[some[: 2**18]])
    model.variance(X[some[2**18:]], "v1", tol=0.05, return_bound=True)

def ten_million():
    W = np.random.default_rng(4).random((10**7, 8))
    model = SketchedKernelRidge(bandwidth=1.0, alpha="gcv", sketch="landmarks", sketch_size=1024,
                                dtype="auto", **settings)
    start = time.perf_counter()
    model.fit(W, W[:, 0]).variance(W[:1000], "v2")
    out["ten million rows, 1,024 landmarks, GCV, V2 at 1,000 points"] = time.perf_counter() - start

for name in ("float16x2", "float16"):
    best(f"1,048,576 rows, 256 signs in {name}, V2 at 1,000 points", lambda: signs(name), 2)
for name in ("float32", "float64"):
    best(f"all flights, 4,096 landmarks, GCV, V2 and V3, {name}", lambda: all_flights(name), 1)
best("262,144 flights, 4,096 landmarks, fit and V1 at 256 points to 5%", exact, 1)
ten_million()
print(json.dumps(out))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, help="sources of the other version")
    parser.add_argument("--flights", type=Path, required=True, help="an .npz file with X and y")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    options = parser.parse_args()
    now = Path(__file__).parent.parent / "src"
    found: dict[str, dict[str, float]] = {"before": {}, "now": {}}
    for _ in range(options.turns):
        for name, sources in (("before", options.before), ("now", now)):
            for task, seconds in _measured(sources, options.flights).items():
                found[name][task] = min(seconds, found[name].get(task, seconds))
    rows = [
        {
            "seconds": task,
            "before": f"{seconds:.2f}",
            "now": f"{found['now'][task]:.2f}",
            "ratio": f"{seconds / found['now'][task]:.2f}",
        }
        for task, seconds in found["before"].items()
    ]
    slower = [str(row["seconds"]) for row in rows if float(str(row["ratio"])) < 0.95]
    claim = common.Claim("nothing is slower than before", not slower)
    text = (
        "Command: `python benchmarks/gpu_before_after.py`. One NVIDIA H200; the best of "
        f"{options.turns} turns; ratio is before/now."
    )
    path = options.out / "gpu_before_after.md"
    parts = [text, common.markdown_table(rows)]
    common.write_report(path, "The GPU, before and now", parts, [claim])


def _measured(sources: Path, flights: Path) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(sources.resolve())}
    command = [sys.executable, "-c", CHILD, str(flights.resolve()), json.dumps(SETTINGS)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
