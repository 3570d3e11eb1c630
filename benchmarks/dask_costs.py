"""What each step of a fit on a Dask cluster costs, fitted to the times of its tasks.

Writes results/dask_costs.md: the runs, the terms of docs/scaling.md, and what 10⁹ rows would take
by them.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
from dask_scaling import TESTED, cluster, ridge, sent, target
from distributed import Client, get_task_stream
from scipy.optimize import nnls

from sketchridge.backends import as_backend
from sketchridge.kernels import Gaussian

Array = np.ndarray
Row = dict[str, Any]
LAMBDAS = 100  # of the path by which alpha is chosen
EMPTY = 2000  # tasks that do nothing
ROWS = 2**16  # of a block, at 10⁹ rows
DISK = 1e9  # bytes/s that a worker reads or writes, assumed
F_STEPS = "schur", "gram"


def problem(n: int, d: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.random((n, d))
    return X, target(X, rng), rng.random((TESTED, d))


def seconds_of_tasks(client: Client, work: Callable[[], Any]) -> tuple[Any, Row]:
    """What the work gives; seconds that workers computed and tasks by name, seconds by the clock,
    bytes that left the workers."""
    before = sent(client)
    start = time.perf_counter()
    with get_task_stream(client) as stream:
        found = work()
        clock = time.perf_counter() - start
    seconds: dict[str, float] = {}
    tasks: dict[str, int] = {}
    for task in stream.data:
        name = str(task["key"]).removeprefix("sketchridge-").split("-")[0]
        spent = sum(s["stop"] - s["start"] for s in task["startstops"] if s["action"] == "compute")
        seconds[name] = seconds.get(name, 0.0) + spent
        tasks[name] = tasks.get(name, 0) + 1
    measured = {"clock": clock, "bytes": sent(client) - before}
    return found, measured | {"seconds": seconds, "tasks": tasks}


def timed_fit(client: Client, workers: int, n: int, m: int, d: int) -> Row:
    """A fit, 1,000 questions, and a fit by leave-one-out."""
    X, y, Z = problem(n, d)
    settings = {"bandwidth": float(np.sqrt(d / 8))}
    model, fit = seconds_of_tasks(client, lambda: ridge("dask", m, **settings).fit(X, y))
    _, v2 = seconds_of_tasks(client, lambda: model.variance(Z))
    _, here = seconds_of_tasks(client, lambda: (model.variance(Z, "v3"), model.predict(Z)))
    by_loo = ridge("dask", m, alpha="loo", noise_variance="auto", **settings)
    _, loo = seconds_of_tasks(client, lambda: by_loo.fit(X, y))
    size = {"workers": workers, "n": n, "m": m, "d": d}
    row = size | {"fit": fit, "v2": v2, "here": here, "loo": loo}
    print(line(row), flush=True)
    return row


def products(client: Client, n: int, widths: list[int]) -> list[Row]:
    """Products with K of so many columns."""
    X, _, _ = problem(n, 8)
    backend, kernel = as_backend("dask"), Gaussian(1.0)
    points = backend.place(kernel, kernel.coordinates(X))
    rows = []
    for q in widths:
        T = backend.tall(np.random.default_rng(q).standard_normal((n, q)))
        weights = backend.tall(np.ones((n, 1)))
        options = {"weights": weights, "precision": "float64"}
        work = partial(backend.matmul, points, points, T, **options)
        _, found = seconds_of_tasks(client, lambda work=work: work().sum(_sum))
        rows.append({"n": n, "q": q, "product": found})
    return rows


def _sum(block: Array) -> Array:
    return block.sum(axis=0)


def empty_tasks(client: Client) -> float:
    """Seconds that the scheduler takes for a task that does nothing."""
    client.gather(client.map(abs, range(EMPTY), pure=False))
    start = time.perf_counter()
    client.gather(client.map(abs, range(EMPTY), pure=False))
    return (time.perf_counter() - start) / EMPTY


def of(found: Row, *names: str) -> float:
    """Seconds of some tasks, or of all."""
    return float(sum(found["seconds"].get(name, 0.0) for name in names or found["seconds"]))


def others(found: Row) -> float:
    return of(found) - of(found, *F_STEPS)


def line(row: Row) -> Row:
    loo = others(row["loo"]) - others(row["fit"])
    return {
        "workers": row["workers"],
        "n": f"{row['n']:,}",
        "m": row["m"],
        "d": row["d"],
        "F and Gram, s": f"{of(row['fit'], *F_STEPS):.2f}",
        "rest of a fit": f"{others(row['fit']):.2f}",
        "V2, first pass": f"{of(row['v2'], 'moments'):.2f}",
        "second pass": f"{of(row['v2'], 'residual'):.2f}",
        "α by leave-one-out": f"{loo:.2f}",
        "fit, by the clock": f"{row['fit']['clock']:.2f}",
        "V2, by the clock": f"{row['v2']['clock']:.2f}",
        "bytes of a fit": f"{row['fit']['bytes']:,}",
    }


# Terms


class Term(NamedTuple):
    """Seconds of a step: a sum of operations, each times its seconds; how far it is off in any of
    the runs; and the power of m by which the seconds grow."""

    step: str
    operations: list[str]
    each: Array
    off: float
    power: float

    def at(self, *counts: float) -> float:
        return float(self.each @ counts)


def term(
    step: str,
    rows: list[Row],
    seconds: Callable[[Row], float],
    counts: dict[str, Callable[[Row], float]],
) -> Term:
    """By least squares of relative errors; no operation takes less than nothing."""
    spent = np.array([seconds(row) for row in rows])
    A = np.array([[count(row) for count in counts.values()] for row in rows]) / spent[:, None]
    size = A.max(axis=0)
    each = nnls(A / size, np.ones(len(rows)))[0] / size
    off = float(np.abs(A @ each - 1).max())
    return Term(step, list(counts), each, off, _power(rows, spent))


def _power(rows: list[Row], spent: Array) -> float:
    """Of m, with n, d and workers held: the mean slope of log s on log m over such runs."""
    slopes = []
    sizes = [(row.get("workers"), row["n"], row.get("d")) for row in rows]
    for size in set(sizes):
        same = [i for i, its in enumerate(sizes) if its == size]
        if len(same) >= 3 and "m" in rows[0]:
            logs = np.log([rows[i]["m"] for i in same])
            slopes.append(np.polyfit(logs, np.log(spent[same]), 1)[0])
    return float(np.mean(slopes)) if slopes else float("nan")


def terms(rows: list[Row], squares: list[Row]) -> dict[str, Term]:
    return {
        "columns": term(
            "landmarks: F and its Gram matrix",
            rows,
            lambda r: of(r["fit"], *F_STEPS),
            {
                "n m²": lambda r: r["n"] * r["m"] ** 2,
                "n m": lambda r: r["n"] * r["m"],
                "n m d": lambda r: r["n"] * r["m"] * r["d"],
            },
        ),
        "rounds": term(
            "landmarks: what is left, draws, sums of columns",
            rows,
            lambda r: others(r["fit"]),
            {"n m": lambda r: r["n"] * r["m"], "n": lambda r: r["n"]},
        ),
        "v2": term(
            "V2 of t points, a pass",
            rows,
            lambda r: of(r["v2"], "moments"),
            {
                "t n m": lambda r: TESTED * r["n"] * r["m"],
                "t n": lambda r: TESTED * r["n"],
                "t n d": lambda r: TESTED * r["n"] * r["d"],
            },
        ),
        "loo": term(
            f"α by leave-one-out, {LAMBDAS} of them",
            rows,
            lambda r: max(others(r["loo"]) - others(r["fit"]), 1e-9),
            {
                f"{LAMBDAS} n m": lambda r: LAMBDAS * r["n"] * r["m"],
                f"{LAMBDAS} n": lambda r: LAMBDAS * r["n"],
            },
        ),
        "product": term(
            "product of K with q columns",
            squares,
            lambda r: of(r["product"], "product"),
            {"n²": lambda r: r["n"] ** 2, "n² q": lambda r: r["n"] ** 2 * r["q"]},
        ),
    }


def by_block(rows: list[Row], *names: str) -> Array:
    """[p, q] with p m + q tasks for each block of a fit: all, or those of some names."""
    blocks = np.array([len(as_backend("dask").starts(r["n"])) - 1 for r in rows])
    counts = [
        sum(c for name, c in r["fit"]["tasks"].items() if not names or name in names) for r in rows
    ]
    A = np.column_stack([[r["m"] for r in rows], np.ones(len(rows))])
    return np.linalg.lstsq(A, np.array(counts) / blocks, rcond=None)[0]


def moved(rows: list[Row]) -> float:
    """Bytes that leave two workers in a fit, for each m²."""
    return max(r["fit"]["bytes"] / r["m"] ** 2 for r in rows if r["workers"] == 2)


def forecast(
    found: dict[str, Term], a_task: float, tasks: Array, reads: Array, bytes_each: float, W: int
) -> str:
    """10⁹ rows of 8 numbers, m = 1,024, by these terms."""
    n, m, d, t = 10**9, 1024, 8, TESTED
    blocks = -(-n // ROWS)
    core = found["columns"].at(n * m**2, n * m, n * m * d) + found["rounds"].at(n * m, n)
    v2 = found["v2"].at(t * n * m, t * n, t * n * d)
    loo = core + found["loo"].at(LAMBDAS * n * m, LAMBDAS * n)
    count = blocks * (tasks[0] * m + tasks[1])
    held = 8 * n * m / W
    rounds = reads[0] * m + reads[1]
    disk = held * (1 + rounds / 2 + 1) / DISK
    sums = bytes_each * m**2 * (W - 1)

    def hours(seconds: float) -> str:
        return f"{seconds / 3600:.2f} h"

    return (
        f"## 10⁹ rows, by these terms\n\nNot tried. n = 10⁹, d = {d}, m = {m:,}, Dask's X, one "
        f"target, a sketched mean, {W} workers of one thread in {blocks:,} blocks of {ROWS:,} "
        f"rows; none of F fits in memory, and a worker's disk reads and writes "
        f"{DISK / 1e9:.0f} GB/s, which is assumed.\n\n"
        f"- A fit with α given: {core:.2g} s of a core, {hours(core / W)} on the workers.\n"
        f"- α by leave-one-out: {loo:.2g} s of a core instead, {hours(loo / W)}.\n"
        f"- {count:.2g} tasks of a fit: {hours(count * a_task)} of the scheduler.\n"
        f"- Disk: X has {8e-9 * n * d:.0f} GB, F {8e-12 * n * m:.1f} TB, {held / 1e9:.0f} GB a "
        f"worker. F is written once and, in {rounds:.0f} rounds of landmarks, half of it read in "
        f"each, then once for its Gram matrix: {hours(disk)}. Leave-one-out reads it twice more: "
        f"{hours(2 * held / DISK)}.\n"
        f"- {t:,} V2 in two passes: {2 * v2:.2g} s of a core, {hours(2 * v2 / W)}, and F read "
        f"twice, {hours(2 * held / DISK)}.\n"
        f"- Network: keys of rows {8e-9 * n:.0f} GB and y {8e-9 * n:.0f} GB to the caller, sums "
        f"and landmarks up to {sums / 1e9:.1f} GB; with leave-one-out {24e-9 * n:.0f} GB more."
    )


def table(found: dict[str, Term]) -> str:
    return common.markdown_table(
        [
            {
                "step": its.step,
                "seconds": " + ".join(
                    f"{each:.2e} {what}"
                    for each, what in zip(its.each, its.operations, strict=True)
                    if each > 0
                ),
                "off by at most": f"{its.off:.0%}",
                "power of m": "" if np.isnan(its.power) else f"{its.power:.2f}",
            }
            for its in found.values()
        ]
    )


def sizes(n: int, m: int) -> dict[int, list[tuple[int, int, int]]]:
    """(n, m, d) of the runs, by the number of workers."""
    squares = [(rows, size, 8) for rows in (n, 2 * n) for size in (m, 2 * m, 4 * m)]
    return {
        1: [*squares, (n, 2 * m, 16), (n, 2 * m, 32)],
        2: [(2 * n, size, 8) for size in (m, 2 * m, 4 * m)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--landmarks", type=int, default=128)
    parser.add_argument("--workers", type=int, default=100, help="of the forecast")
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    options = parser.parse_args()
    n, m = options.rows, options.landmarks
    rows, squares = [], []
    for workers, runs in sizes(n, m).items():
        with cluster(workers) as client:
            timed_fit(client, workers, n // 4, m // 2, 8)  # imports
            if workers == 1:
                a_task = empty_tasks(client)
                squares = products(client, n // 4, [1, 65, 257])
            rows += [timed_fit(client, workers, *size) for size in runs]
    found = terms([r for r in rows if r["workers"] == 1], squares)
    tasks, reads = by_block(rows), by_block(rows, "schur")
    command = shlex.join(["python", "benchmarks/dask_costs.py", *sys.argv[1:]])
    head = f"{time.strftime('%Y-%m-%d')}. {common.machine()}\n\nCommand: `{command}`."
    text = (
        "Seconds that tasks computed, by Dask's own record of them, on workers of one thread; α is "
        f"1, or chosen among {LAMBDAS}; {TESTED:,} points, of which those take a second pass that "
        "rounding asks it for. The terms are fitted to the runs with one worker.\n\n"
        f"{common.markdown_table([line(row) for row in rows])}\n\n## Terms\n\n{table(found)}\n\n"
        f"A task that does nothing takes {1e3 * a_task:.2f} ms, one after the other; a fit has "
        f"{tasks[0]:.3f} m + {tasks[1]:.0f} tasks for each block, {reads[0]:.4f} m + "
        f"{reads[1]:.1f} of which read all columns of F so far. Two workers send each other and "
        f"the caller up to {moved(rows):.0f} m² bytes in a fit."
    )
    parts = [head, text, forecast(found, a_task, tasks, reads, moved(rows), options.workers)]
    common.write_report(options.out / "dask_costs.md", "Costs on a Dask cluster", parts, [])


if __name__ == "__main__":
    main()
