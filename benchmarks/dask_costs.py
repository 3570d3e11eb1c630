"""What each step of a fit on a Dask cluster costs, fitted to the times of its tasks.

Writes results/dask_costs.md: the terms of docs/scaling.md, and what 10⁹ rows would take by them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
from dask_scaling import TESTED, D, cluster, problem, ridge, sent
from distributed import Client, get_task_stream

from sketchridge.backends import as_backend
from sketchridge.kernels import Gaussian

Array = np.ndarray
Row = dict[str, Any]
LAMBDAS = 100  # of the path by which alpha is chosen
EMPTY = 2000  # tasks that do nothing
ROWS = 2**16  # of a block, at 10⁹ rows


def seconds_of_tasks(client: Client, work: Callable[[], Any]) -> tuple[Any, Row]:
    """What the work gives; seconds that workers computed by name of task, the number of tasks,
    seconds by the clock, bytes that left the workers."""
    before = sent(client)
    start = time.perf_counter()
    with get_task_stream(client) as stream:
        found = work()
        clock = time.perf_counter() - start
    seconds: dict[str, float] = {}
    for task in stream.data:
        name = str(task["key"]).removeprefix("sketchridge-").split("-")[0]
        spent = sum(s["stop"] - s["start"] for s in task["startstops"] if s["action"] == "compute")
        seconds[name] = seconds.get(name, 0.0) + spent
    measured = {"clock": clock, "tasks": len(stream.data), "bytes": sent(client) - before}
    return found, measured | {"seconds": seconds}


def fits(client: Client, sizes: list[tuple[int, int]]) -> list[Row]:
    """Fits, 1,000 questions and leave-one-out of several sizes on one worker."""
    return [timed_fit(client, n, m) for n, m in sizes]


def timed_fit(client: Client, n: int, m: int) -> Row:
    X, y, Z = problem(n)
    model, fit = seconds_of_tasks(client, lambda: ridge("dask", m).fit(X, y))
    _, v2 = seconds_of_tasks(client, lambda: model.variance(Z))
    _, here = seconds_of_tasks(client, lambda: (model.variance(Z, "v3"), model.predict(Z)))
    by_loo = ridge("dask", m, alpha="loo", noise_variance="auto")
    _, loo = seconds_of_tasks(client, lambda: by_loo.fit(X, y))
    row = {"n": n, "m": m, "fit": fit, "v2": v2, "here": here, "loo": loo}
    print(row, flush=True)
    return row


def products(client: Client, n: int, widths: list[int]) -> list[Row]:
    """Products with K of so many columns."""
    X, _, _ = problem(n)
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
        print(rows[-1], flush=True)
    return rows


def _sum(block: Array) -> Array:
    return block.sum(axis=0)


def empty_tasks(client: Client) -> float:
    """Seconds that the scheduler takes for a task that does nothing."""
    client.gather(client.map(abs, range(EMPTY), pure=False))
    start = time.perf_counter()
    client.gather(client.map(abs, range(EMPTY), pure=False))
    return (time.perf_counter() - start) / EMPTY


# Terms


class Term(NamedTuple):
    """Seconds for one operation of a step, and how far it is off in any of the runs."""

    step: str
    formula: str
    each: float
    off: float


def term(step: str, formula: str, counts: list[float], seconds: list[float]) -> Term:
    """By least squares of relative errors."""
    ratios = np.array(seconds) / np.array(counts)
    each = float((1 / ratios).sum() / (1 / ratios**2).sum())
    return Term(step, formula, each, float(np.abs(each / ratios - 1).max()))


def of(found: Row, *names: str) -> float:
    return float(sum(found["seconds"].get(name, 0.0) for name in names))


def terms(rows: list[Row], squares: list[Row]) -> dict[str, Term]:
    def by(count: Callable[[Row], float], spent: Callable[[Row], float], *names: str) -> Term:
        return term(*names, [count(r) for r in rows], [spent(r) for r in rows])

    first = of(squares[0]["product"], "product")
    return {
        "columns": by(
            lambda r: r["n"] * r["m"] ** 2,
            lambda r: of(r["fit"], "schur", "gram"),
            "landmarks: F and its Gram matrix",
            "n m²",
        ),
        "rounds": by(
            lambda r: r["n"] * r["m"],
            lambda r: sum(r["fit"]["seconds"].values()) - of(r["fit"], "schur", "gram"),
            "landmarks: what is left, draws, sums of columns",
            "n m",
        ),
        "v2": by(
            lambda r: TESTED * r["n"] * r["m"],
            lambda r: sum(r["v2"]["seconds"].values()),
            "V2 of t points",
            "t n m",
        ),
        "loo": by(
            lambda r: LAMBDAS * r["n"] * r["m"],
            lambda r: max(
                sum(r["loo"]["seconds"].values()) - sum(r["fit"]["seconds"].values()), 1e-9
            ),
            f"α by leave-one-out, {LAMBDAS} of them",
            f"{LAMBDAS} n m",
        ),
        "here": by(
            lambda r: TESTED * r["m"],
            lambda r: r["here"]["clock"],
            "V3 and means of t points, at the caller",
            "t m",
        ),
        "product": term(
            "product with K of one column",
            "n²",
            [r["n"] ** 2 for r in squares[:1]],
            [of(r["product"], "product") for r in squares[:1]],
        ),
        "columns of products": term(
            "product with K, for each column more",
            "n² q",
            [r["n"] ** 2 * (r["q"] - 1) for r in squares[1:]],
            [of(r["product"], "product") - first for r in squares[1:]],
        ),
    }


def tasks_of_a_fit(rows: list[Row]) -> Array:
    """[p, q] with p m + q tasks for each block of a fit."""
    blocks = np.array([len(as_backend("dask").starts(r["n"])) - 1 for r in rows])
    each = np.array([r["fit"]["tasks"] for r in rows]) / blocks
    A = np.column_stack([[r["m"] for r in rows], np.ones(len(rows))])
    return np.linalg.lstsq(A, each, rcond=None)[0]


def forecast(found: Mapping[str, Term], a_task: float, tasks: Array, workers: int) -> str:
    """10⁹ rows of 8 numbers, m = 1,024, by these terms."""
    n, m, t = 10**9, 1024, TESTED
    blocks = -(-n // ROWS)
    core = found["columns"].each * n * m**2 + found["rounds"].each * n * m
    count = blocks * (tasks[0] * m + tasks[1])
    v2 = found["v2"].each * t * n * m
    network = 8 * m**2 * (1 + workers) + 8 * 3 * m**2
    return (
        f"By these terms, not tried: n = 10⁹, d = {D}, m = {m:,}, {workers} workers of one thread "
        f"in {blocks:,} blocks of {ROWS:,} rows. The fit takes {core:.2g} s of a core, "
        f"{core / workers / 3600:.2f} h on the workers, and {count:.2g} tasks, "
        f"{count * a_task / 3600:.2f} h of the scheduler; {t:,} V2 take {v2:.2g} s of a core, "
        f"{v2 / workers / 3600:.2f} h. X has {8e-9 * n * D:.0f} GB, F "
        f"{8e-12 * n * m:.1f} TB, {8e-9 * n * m / workers:.0f} GB a worker, on its disk. A fit "
        f"moves about {network / 1e6:.0f} MB, the V2 {8e-6 * t * (m + 2) * workers:.0f} MB."
    )


def table(found: Mapping[str, Term]) -> str:
    return common.markdown_table(
        [
            {
                "step": its.step,
                "operations": its.formula,
                "s each": f"{its.each:.2e}",
                "off by at most": f"{its.off:.0%}",
            }
            for its in found.values()
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--landmarks", type=int, default=256)
    parser.add_argument("--workers", type=int, default=100, help="of the forecast")
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    options = parser.parse_args()
    n, m = options.rows, options.landmarks
    with cluster(1) as client:
        fits(client, [(n // 4, m // 4)])  # imports
        a_task = empty_tasks(client)
        rows = fits(client, [(n, m), (2 * n, m), (n, 2 * m), (2 * n, 2 * m)])
        squares = products(client, n // 5, [1, 65, 129, 257])
    found, tasks = terms(rows, squares), tasks_of_a_fit(rows)
    text = (
        f"One worker of one thread, {n:,} and {2 * n:,} rows of {D} numbers, {m} and {2 * m} "
        f"landmarks, float64; seconds that tasks computed, by Dask's own record of them, divided "
        f"by the number of operations.\n\n{table(found)}\n\nA task that does nothing "
        f"takes {1e3 * a_task:.2f} ms, one after the other; a fit has "
        f"{tasks[0]:.3f} m + {tasks[1]:.0f} tasks for each block."
    )
    parts = [common.machine(), text, forecast(found, a_task, tasks, options.workers)]
    common.write_report(options.out / "dask_costs.md", "Costs on a Dask cluster", parts, [])


if __name__ == "__main__":
    main()
