"""What V̄ saves: against scikit-learn's GPR, against the sizes chosen before it, and in refinement.

    python benchmarks/averaged_speed.py --before ../before/src --data ../shared/data

``--before`` has the sources of a version whose automatic size and standard deviation follow V2. The
tolerance with which this version fits the flights is the largest of a few with which V̄ is as near
to V1 as V2 was before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import common
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from settings import AUTOMATIC, sketched_ridge
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel

from sketchridge import refine, system

Array = np.ndarray
ROWS = 16_000
FLIGHTS = 20_000
TOLERANCES = (0.2, 0.4)
REFINED = (0.3, 0.1, 0.01, 1e-3)  # tolerances of V1
ASKED = 64  # points at which V1 is wanted
CHILD = r"""
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from sketchridge import SketchedKernelRidge
settings, file, tol = json.loads(sys.argv[1]), np.load(sys.argv[2]), float(sys.argv[3])
X, y, Z = file["X"], file["y"], file["Z"]
SketchedKernelRidge(sketch_tol=0.5, **settings).fit(X[:2000], y[:2000])
times = []
for _ in range(3):
    start = time.perf_counter()
    model = SketchedKernelRidge(sketch_tol=tol, **settings).fit(X, y)
    times.append(time.perf_counter() - start)
std = model.predict(Z, return_std=True)[1]
found = {"seconds": min(times), "m": model.sketch_size_, "lam": model.lambda_, "gap": model.gap_}
found["bandwidth"] = float(model.bandwidth_)
print(json.dumps(found | {"variance": (std**2).tolist()}))
"""


def against_gpr() -> tuple[dict[str, Any], list[common.Claim]]:
    """n = 16,000 uniform points in 5 dimensions, h = 0.5, λ = 1e-4; 1,000 variances."""
    rng = np.random.default_rng(0)
    X, Z = rng.random((ROWS, 5)), rng.random((1000, 5))
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.standard_normal(ROWS)
    h, lam = 0.5, 1e-4
    alpha = ROWS * lam
    sketched_ridge(bandwidth=h, alpha=1.0).fit(X[:2000], y[:2000])
    times, vbar = [], np.empty(0)
    for _ in range(3):
        start = time.perf_counter()
        model = sketched_ridge(bandwidth=h, alpha=alpha, sketch_tol=0.02, noise_variance=1.0)
        vbar = model.fit(X, y).variance(Z, "vbar")
        times.append(time.perf_counter() - start)
    gpr = float(common.isolated(_gpr_seconds, X.tolist(), y.tolist(), Z.tolist(), h, alpha))
    G = rbf_kernel(X, gamma=1 / (2 * h**2))
    G[np.diag_indices_from(G)] += alpha
    z = cho_solve(cho_factor(G, lower=True, overwrite_a=True), rbf_kernel(X, Z, 1 / (2 * h**2)))
    v1 = (z**2).sum(axis=0)
    worst = float(np.abs(vbar / v1 - 1).max())
    ratio = gpr / float(np.median(times))
    row = {
        "n": ROWS,
        "m": model.sketch_size_,
        "fit and 1,000 V̄ [s]": f"{np.median(times):.2f}",
        "scikit-learn GPR [s]": f"{gpr:.1f}",
        "times faster": f"{ratio:.0f}",
        "worst error": f"{worst:.2%}",
        "median error": f"{np.median(np.abs(vbar / v1 - 1)):.2%}",
    }
    claims = [
        common.Claim("at least 80 times faster than scikit-learn's GPR", ratio >= 80),
        common.Claim("with a worst error of at most 3%", worst <= 0.03),
    ]
    return row, claims


def _gpr_seconds(X: list, y: list, Z: list, h: float, alpha: float) -> float:
    """The peer, apart: with some OpenBLAS its Cholesky ends the process at this size."""
    A, b, C = np.array(X), np.array(y), np.array(Z)
    start = time.perf_counter()
    peer = GaussianProcessRegressor(RBF(h), alpha=alpha, optimizer=None).fit(A, b)
    peer.predict(C, return_std=True)
    return time.perf_counter() - start


def flights(before: Path, data: Path, folder: Path) -> tuple[list[dict[str, Any]], common.Claim]:
    """Automatic fits of 20,000 flights with their errors against V1 at 95% of 500 new points."""
    file = np.load(data / "flights2008_jan_apr.npz")
    rows = np.random.default_rng(0).permutation(len(file["X"]))[: FLIGHTS + 500]
    X = file["X"][rows].astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = file["y"][rows] - file["y"][rows].mean()
    path = folder / "flights.npz"
    np.savez(path, X=X[:FLIGHTS], y=y[:FLIGHTS], Z=X[FLIGHTS:])
    now = Path(__file__).parent.parent / "src"
    first = _automatic(before, path, 0.1) | {"version": "before, V2", "sketch_tol": 0.1}
    table = [first | {"error": _error(first, X[:FLIGHTS], X[FLIGHTS:])}]
    for tol in TOLERANCES:
        found = _automatic(now, path, tol) | {"version": "now, V̄", "sketch_tol": tol}
        table.append(found | {"error": _error(found, X[:FLIGHTS], X[FLIGHTS:])})
    as_near = [row for row in table[1:] if row["error"] <= table[0]["error"]]
    ratio = max((table[0]["seconds"] / row["seconds"] for row in as_near), default=0.0)
    sentence = (
        "the automatic fit of 20,000 flights is at least twice as fast as before at the same "
        f"error against V1 (found {ratio:.1f} times)"
    )
    shown = [
        {
            "version": row["version"],
            "sketch_tol": row["sketch_tol"],
            "fit [s]": f"{row['seconds']:.2f}",
            "m": row["m"],
            "λ": f"{row['lam']:.2g}",
            "gap": f"{row['gap']:.3f}",
            "error at 95% of points": f"{row['error']:.2%}",
        }
        for row in table
    ]
    return shown, common.Claim(sentence, ratio >= 2)


def _automatic(sources: Path, path: Path, tol: float) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": str(sources.resolve())}
    command = [sys.executable, "-c", CHILD, json.dumps(AUTOMATIC), str(path), str(tol)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def _error(found: dict[str, Any], X: Array, Z: Array) -> float:
    gamma = 1 / (2 * found["bandwidth"] ** 2)
    G = rbf_kernel(X, gamma=gamma)
    G[np.diag_indices_from(G)] += len(X) * found["lam"]
    z = cho_solve(cho_factor(G, lower=True, overwrite_a=True), rbf_kernel(X, Z, gamma))
    v1 = (z**2).sum(axis=0)
    return float(np.quantile(np.abs(np.array(found["variance"]) / v1 - 1), 0.95))


def refinement(data: Path) -> tuple[list[dict[str, Any]], common.Claim]:
    """Products with the kernel matrix, counted by columns, until V1 is known to a tolerance at 64
    points, from V2 and from V̄: five data sets of 2,000 rows, two kernels, two λ and three m."""
    found: dict[float, list[tuple[int, int]]] = {tol: [] for tol in REFINED}
    for X in refined_sets(data):
        h = float(np.median(np.linalg.norm(X[:200] - X[200:400], axis=1)) / 2)
        for kernel, lam, m in product(("gaussian", "matern32"), (1e-3, 1e-5), (100, 300, 600)):
            rows = len(X) - ASKED
            model = sketched_ridge(
                bandwidth=h, alpha=rows * lam, sketch_size=m, noise_variance=1.0
            ).set_params(kernel=kernel)
            fitted = model.fit(X[:rows], X[:rows, 0]).fitted_
            query = fitted.at(X[rows:])
            for tol in REFINED:
                counts = [columns(fitted.ridge, query, theta, tol) for theta in (1.0, 0.5)]
                found[tol].append((counts[0], counts[1]))
    table = [
        {
            "tol": tol,
            "from V2": sum(v2 for v2, _ in pairs),
            "from V̄": sum(vbar for _, vbar in pairs),
            "fewer from V̄": f"{sum(vbar < v2 for v2, vbar in pairs)} of {len(pairs)}",
            "more": sum(vbar > v2 for v2, vbar in pairs),
        }
        for tol, pairs in found.items()
    ]
    last = table[-1]
    fewer = last["from V̄"] < last["from V2"]
    return table, common.Claim(
        f"V1 to {last['tol']} takes fewer products from V̄ than from V2 "
        f"(found {1 - last['from V̄'] / last['from V2']:.1%} fewer in all)",
        fewer,
    )


def refined_sets(data: Path) -> Iterator[Array]:
    """Uniform in 5 and in 2 dimensions, clusters, a normal in 10, and flights."""
    rng = np.random.default_rng(0)
    total = 2000 + ASKED
    yield rng.random((total, 5))
    yield rng.random((total, 2))
    clusters = rng.standard_normal((total, 6))
    clusters[:1500] *= 0.1
    clusters[1500:] += 2
    yield rng.permutation(clusters)
    yield rng.standard_normal((total, 10))
    X = np.load(data / "flights2008_jan_apr.npz")["X"]
    X = X[rng.permutation(len(X))[:total]].astype(float)
    yield (X - X.mean(axis=0)) / X.std(axis=0)


def columns(ridge: Any, query: Any, theta: float, tol: float) -> int:
    """The columns that are multiplied by the kernel matrix until V1 is known to ``tol``."""
    counted: list[int] = []
    multiply = system.System.product

    def counting(self: Any, T: Any) -> Any:
        counted.append(T.shape[1])
        return multiply(self, T)

    with patch.object(system.System, "product", counting):
        refine.v1(ridge, query, theta=theta, tol=tol, first="float64", step="float64")
    return sum(counted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, help="sources of the other version")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the flights")
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    products, fewer = refinement(options.data)
    print(products, flush=True)
    speed, claims = against_gpr()
    print(speed, *claims, flush=True)
    table, faster = flights(options.before, options.data, Path(os.environ.get("TMPDIR", "/tmp")))
    parts = [
        "Command: `python benchmarks/averaged_speed.py --before SRC --data FOLDER`.",
        common.machine(),
        "## Against scikit-learn\n\n" + common.markdown_table([speed]),
        "## Automatic fits of 20,000 flights\n\n" + common.markdown_table(table),
        "## Columns multiplied by the kernel matrix until V1 is known\n\n"
        + common.markdown_table(products),
    ]
    common.write_report(
        options.out / "averaged_speed.md", "What V̄ saves", parts, [*claims, faster, fewer]
    )


if __name__ == "__main__":
    main()
