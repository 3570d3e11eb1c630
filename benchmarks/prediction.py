"""How well tables are predicted, with which intervals: this library against its peers.

    python benchmarks/prediction.py --data ../shared/data --lanes 6 --gpu-lanes 4

Every table of the folder, 20,000 flights and the weather, over some splits: 80% of the rows (20,000
at most) to learn from, the others (5,000 at most) to test; X and y standardized by the former.
Peers that are not installed are left out; keggdirected, which repeats most of its test rows, is
there for its time only. Errors are in standard deviations of y; the interval score is that of 95%
intervals, the log density natural and per observation.

Cells (a method on a table and a split) run side by side, each lane a process with cores of its own;
a cell is written to NAME.csv as soon as it is done, and what is there already is not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import common
import numpy as np
from joblib import cpu_count
from peers import ON_CPU, ON_GPU, Found, scored
from prediction_report import OURS, TABLES, TIMED, VARYING, Row, report
from settings import automatic_exact_ridge, automatic_ridge

Array = np.ndarray
Cell = tuple[str, str, int]  # method, table, split
SPLITS = 5
LARGEST = 20_000
TESTED = 5_000
# About how long a cell takes beside others: the long ones come first
LONG = {"flights": 8, "keggdirected": 8, "sml": 6, "weather": 6, "skillcraft": 4, "pumadyn32nm": 4}
COSTLY = {"scikit-learn GPR": 3, VARYING: 2, "SVGP": 3, "xRFM": 2}


def table(name: str, folder: Path) -> tuple[Array, Array]:
    """X and y of a table, in their own units."""
    if name == "weather" and (folder / "weather.npz").exists():  # where polars is not
        data = np.load(folder / "weather.npz")
        return data["X"], data["y"]
    if name == "weather":
        import polars as pl

        frame = pl.read_parquet(folder / "cru_cl2_5x5_climatology.parquet").drop_nulls()
        values = frame.to_numpy().astype(float)
        values = values[np.isfinite(values).all(axis=1)]
        at = frame.columns.index("tmp")
        return np.delete(values, at, axis=1), values[:, at]
    file = "flights2008_jan_apr" if name == "flights" else f"tables/{name}"
    data = np.load(folder / f"{file}.npz")
    rows = np.random.default_rng(0).permutation(len(data["y"]))[: LARGEST + TESTED]
    return data["X"][rows].astype(float), np.ravel(data["y"])[rows].astype(float)


def split(X: Array, y: Array, seed: int) -> tuple[Array, Array, Array, Array]:
    """Training and test rows, standardized by the former."""
    order = np.random.default_rng(seed).permutation(len(X))
    n = min(4 * len(X) // 5, LARGEST)
    train, test = order[:n], order[n : n + TESTED]
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    y = (y - y[train].mean()) / y[train].std()
    return X[train], y[train], X[test], y[test]


def fitted(model: Any, X: Array, y: Array, Z: Array, z: Array) -> Found:
    """What one of our estimators predicts, and what it chose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
        mean = model.predict(Z)
        low, high = model.predict_interval(Z)
        variance = model.predictive_variance(Z)
    found = scored(z, mean, low, high, model.log_density(Z, z), variance)
    learned = model.fitted_.learned
    form = "" if learned is None else learned.form
    found |= {"loo": float(np.sqrt(model.loo_error_)), "alpha": model.alpha_}
    found["choice"] = f"{model.kernel_.name} {form}".strip()
    return found | {"m": getattr(model, "sketch_size_", len(X))}


# Our estimators, unfitted, by the seed. The first has the defaults: tests/test_pinned.py compares
# them with SketchedKernelRidge()
SETTINGS: dict[str, Callable[[int], Any]] = {
    OURS: lambda seed: automatic_ridge(random_state=seed),
    VARYING: lambda seed: automatic_ridge(random_state=seed, noise="varying"),
    f"{OURS}, ard": lambda seed: automatic_ridge(random_state=seed).set_params(bandwidth="ard"),
    f"{OURS}, full": lambda seed: automatic_ridge(random_state=seed).set_params(bandwidth="full"),
    "ExactKernelRidge": lambda seed: automatic_exact_ridge(),
}
METHODS = [*SETTINGS, *ON_CPU, *ON_GPU]


def measured(cell: Cell, folder: Path, machine: str, backend: str) -> Row:
    """One cell; a method that fails is shown as failing."""
    method, name, seed = cell
    X, y, Z, z = split(*table(name, folder), seed)
    start = time.perf_counter()
    try:
        if method in SETTINGS:
            found = fitted(SETTINGS[method](seed).set_params(backend=backend), X, y, Z, z)
        else:
            found = {**ON_CPU, **ON_GPU}[method](X, y, Z, z, seed)
    except Exception as error:
        found = {"rmse": float("nan"), "error": f"{type(error).__name__}: {error}"[:200]}
    seconds = time.perf_counter() - start
    row: Row = {"table": name, "split": seed, "method": method, "n": len(X), "d": X.shape[1]}
    return row | {"machine": machine, "seconds": seconds} | found


def pinned(cores: Sequence[int], gpu: bool) -> None:
    """Give this process some cores and as many threads, and hide the GPU unless it is to use it."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    if not gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


class Lane(threading.Thread):
    """A process with cores of its own that takes cells from a list until none is left."""

    def __init__(
        self,
        cells: list[Cell],
        cores: Sequence[int],
        gpu: bool,
        options: argparse.Namespace,
        kept: Kept,
    ) -> None:
        super().__init__()
        self.cells = cells
        self.cores = cores
        self.gpu = gpu
        self.folder = options.data
        self.backend = options.backend
        self.kept = kept
        used = f"{len(cores)} of {cpu_count()} cores" if cores else f"{cpu_count()} cores"
        self.machine = f"{used} and a GPU" if gpu else used

    def run(self) -> None:
        process = self._process()
        while self.cells:
            try:
                cell = self.cells.pop(0)
            except IndexError:  # another lane took the last
                break
            try:
                row = process.submit(
                    measured, cell, self.folder, self.machine, self.backend
                ).result()
            except BrokenProcessPool as error:
                method, name, seed = cell
                row = {"table": name, "split": seed, "method": method, "error": str(error)[:100]}
                process = self._process()
            self.kept.add(row)
        process.shutdown()

    def _process(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            1, get_context("spawn"), initializer=pinned, initargs=(self.cores, self.gpu)
        )


class Kept:
    """Rows that were measured, in a file from the moment they are known."""

    FIELDS = (
        "table", "split", "method", "n", "d", "machine", "seconds", "rmse", "coverage",
        "interval_score", "coverage_tenth", "log_density", "loo", "alpha", "choice", "m", "error",
    )  # fmt: skip

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.rows = read(path) if path.exists() else []

    def add(self, row: Row) -> None:
        with self.lock:
            self.rows.append(row)
            print(row, flush=True)
            new = not self.path.exists()
            with self.path.open("a", newline="") as file:
                writer = csv.DictWriter(file, self.FIELDS, restval="")
                if new:
                    writer.writeheader()
                writer.writerow(row)


def read(path: Path) -> list[Row]:
    """The rows of an earlier run; what a method does not give is left out."""
    words = ("table", "method", "machine", "choice", "error")
    numbers = ("n", "d", "split", "m")

    def value(key: str, text: str) -> Any:
        if key in words:
            return text
        return int(float(text)) if key in numbers else float(text)

    with path.open() as file:
        return [{k: value(k, t) for k, t in row.items() if t} for row in csv.DictReader(file)]


def ordered(cells: list[Cell], turns: Sequence[str]) -> list[Cell]:
    """By the turn of the method, then the split, then long cells first."""

    def key(cell: Cell) -> tuple[int, int, int]:
        method, name, seed = cell
        turn = turns.index(method) if method in turns else -1
        return turn, seed, -LONG.get(name, 1) * COSTLY.get(method, 1)

    return sorted(cells, key=key)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="tables/, flights and weather")
    parser.add_argument("--report", action="store_true", help="read what was measured")
    parser.add_argument("--note", default="", help="a sentence for the report")
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--lanes", type=int, default=1, help="processes on the CPU")
    parser.add_argument("--gpu-lanes", type=int, default=1, help="processes that use the GPU")
    parser.add_argument("--threads", type=int, default=2, help="cores of a lane on the CPU")
    parser.add_argument("--first-core", type=int, default=0, help="of those of the lanes")
    parser.add_argument("--backend", default="auto", help="ours; torch and triton use GPU lanes")
    parser.add_argument("--tables", nargs="+", default=[*TABLES, *TIMED])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--last", nargs="*", default=(), help="methods that come after the others")
    parser.add_argument("--name", default="prediction", help="of the files that are written")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kept = Kept(options.out / f"{options.name}.csv")
    if options.report:
        report(kept.rows, options.out / f"{options.name}.md", options.note)
        return
    if options.data is None:
        parser.error("--data is needed to measure: the folder with tables/, flights and weather")
    run(options, kept)
    report(kept.rows, options.out / f"{options.name}.md", options.note)


def run(options: argparse.Namespace, kept: Kept) -> None:
    """Measure every cell that is not known yet."""
    threads = str(options.threads)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = threads  # of the processes that are started from here on
    known = {(r["method"], r["table"], r["split"]) for r in kept.rows}
    cells = [
        (method, name, seed)
        for method in options.methods
        for name in options.tables
        for seed in range(1 if name in TIMED else options.splits)
        if (method, name, seed) not in known
    ]
    gpu_methods = {*ON_GPU, *(SETTINGS if options.backend in ("torch", "triton") else ())}
    on_cpu = ordered([cell for cell in cells if cell[0] not in gpu_methods], options.last)
    on_gpu = ordered([cell for cell in cells if cell[0] in gpu_methods], options.last)
    some = on_cpu, options.lanes, options.threads, False
    others = on_gpu, options.gpu_lanes, 1, True
    lanes = []
    first = options.first_core
    for these, count, each, gpu in (some, others):
        for _ in range(count):
            enough = first + each <= cpu_count()
            cores = range(first, first + each) if enough else ()
            lanes.append(Lane(these, list(cores), gpu, options, kept))
            first += each
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()


if __name__ == "__main__":
    main()
