"""Fits on a Dask cluster of this machine: workers, bytes, faults, and rows beyond their memory.

Each section is written to a file of its own, results/dask_<section>.md, with its command.
``--parquet N --features D`` fits N × D rows from files.
"""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import common
import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from settings import sketched_ridge

from sketchridge.backends import NumpyTiles
from sketchridge.backends.dask_blocks import DaskBlocks

Array = np.ndarray
D = 8
TESTED = 1000
SETTINGS = {"bandwidth": 1.0, "alpha": 1.0, "noise_variance": 0.01, "dtype": "float64"}
_ENVIRONMENT = "distributed.nanny.pre-spawn-environ.MALLOC_"
_AWAY = "distributed.deploy.lost-worker-timeout"  # after which LocalCluster ends it for good


@contextmanager
def cluster(workers: int, memory: str | float = 0, *, steal: bool = False) -> Iterator[Client]:
    """A client of processes of one thread each; 0 is no limit of their memory, which they then
    keep for later instead of giving it back at once."""
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    keep = {"TRIM_THRESHOLD_": 2**28, "MMAP_THRESHOLD_": 2**26} if not memory else {}
    config = {"distributed.scheduler.work-stealing": steal, _AWAY: "1h"}
    config |= {_ENVIRONMENT + name: value for name, value in keep.items()}
    with (
        suppress(TimeoutError),  # of workers that are slow to end
        dask.config.set(config),
        LocalCluster(**options, memory_limit=memory, silence_logs=logging.CRITICAL) as made,
        Client(made) as client,
    ):
        yield client


def problem(n: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.random((n, D))
    return X, target(X, rng), rng.random((TESTED, D))


def target(X: Array, rng: np.random.Generator) -> Array:
    return np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(len(X))


def ridge(backend: Any, m: int, **other: Any) -> Any:
    settings = {"sketch": "rpcholesky", "sketch_size": m, "random_state": 0} | SETTINGS | other
    return sketched_ridge(backend=backend, **settings)


def sent(client: Client) -> int:
    """Bytes that left the workers so far, by their own counters."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def measured(backend: Any, n: int, m: int, client: Client | None = None) -> dict[str, Any]:
    """Seconds of a fit and of 1,000 questions, bytes that left the workers, and the answers."""
    X, y, Z = problem(n)
    before = sent(client) if client else 0
    start = time.perf_counter()
    model = ridge(backend, m).fit(X, y)
    fitted = time.perf_counter()
    after = sent(client) if client else 0
    v2, v3, mean = model.variance(Z), model.variance(Z, "v3"), model.predict(Z)
    asked = time.perf_counter()
    moved = sent(client) - after if client else 0
    ridge_, query = model.fitted_.ridge, model.fitted_.at(Z[:50])
    return {
        "fit": fitted - start,
        "ask": asked - fitted,
        "bytes": after - before,
        "asked bytes": moved,
        "ratio": model.lambda_ / model.eigenvalues_[0],
        "answers": [mean, v3, v2],
        "residual": ridge_.residual_form(query, 1.0),
    }


def apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest relative difference of means, V3 and V2 as a residual."""
    pairs = zip([*one["answers"][:2], one["residual"]], [*other["answers"][:2], other["residual"]],
                strict=True)  # fmt: skip
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs)


def in_one_pass(one: dict[str, Any], other: dict[str, Any]) -> float:
    a, b = one["answers"][2], other["answers"][2]
    return float(np.abs(a - b).max() / a.max())


def equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(map(np.array_equal, one["answers"], other["answers"]))


def quickest(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run with the least of each time; all runs gave the same."""
    best = runs[0] | {name: min(run[name] for run in runs) for name in ("fit", "ask")}
    return best | {"alike": all(equal(runs[0], run) for run in runs)}


def workers_table(
    n: int, m: int, counts: list[int], repeats: int
) -> tuple[str, list[common.Claim]]:
    alone = NumpyTiles(workers=1)
    here = quickest([measured(alone, n, m) for _ in range(repeats)])
    lines = [line("this process, one thread", here, here)]
    print(lines[-1], flush=True)
    found = {}
    for count in counts:
        with cluster(count) as client:
            measured("dask", 20_000, 64, client)  # imports
            found[count] = quickest([measured("dask", n, m, client) for _ in range(repeats)])
        lines.append(line(f"{count} workers", found[count], here))
        print(lines[-1], flush=True)
    one, two = found[1], found[2]
    faster = (one["fit"] + one["ask"]) / (two["fit"] + two["ask"])
    claims = [
        common.Claim(
            f"n = {n:,}, m = {m}: two workers are at least 1.7 times as fast as one with a fit and "
            f"{TESTED:,} questions (found {faster:.2f}; fit alone {one['fit'] / two['fit']:.2f}, "
            f"questions {one['ask'] / two['ask']:.2f})",
            faster >= 1.7,
        ),
        common.Claim(
            f"{', '.join(map(str, counts))} workers agree bit for bit",
            all(equal(one, other) and other["alike"] for other in found.values()),
        ),
        common.Claim(
            f"one machine is within 1e-10 at λ = {one['ratio']:.1e} E₁ "
            f"(found {apart(here, one):.1e}; V2 in one pass {in_one_pass(here, one):.1e})",
            apart(here, one) <= 1e-10,
        ),
    ]
    text = f"The quickest of {repeats} runs each.\n\n{common.markdown_table(lines)}"
    return f"## n = {n:,}, m = {m}\n\n{text}", claims


def line(name: str, found: dict[str, Any], here: dict[str, Any]) -> dict[str, str]:
    return {
        "where": name,
        "fit, s": f"{found['fit']:.2f}",
        f"{TESTED:,} V2, V3 and means, s": f"{found['ask']:.2f}",
        "bytes from workers, fit": f"{found['bytes']:,}",
        "questions": f"{found['asked bytes']:,}",
        "from one machine": f"{apart(here, found):.1e}",
    }


CASES = {"given": {"alpha": 1.0}, "leave-one-out": {"alpha": "loo", "noise_variance": "auto"}}


def bytes_table(m: int, sizes: list[int]) -> tuple[str, list[common.Claim]]:
    """Bytes that leave two workers in a fit, of rows that are NumPy's or Dask's, with α given or
    chosen; and in 1,000 questions."""
    lines, claims = [], []
    for steal in (False, True):
        with cluster(2, steal=steal) as client:
            for kind in ("NumPy", "Dask"):
                for alpha, settings in CASES.items():
                    found = [moved(client, kind, n, m, settings) for n in sizes]
                    # about 20,000 rows tell the center in the last two
                    each = (found[-1][0] - found[-2][0]) / (sizes[-1] - sizes[-2])
                    lines.append(
                        {
                            "work stealing": "on" if steal else "off",
                            "X": kind,
                            "α": alpha,
                            **{
                                f"fit, n = {n:,}": f"{its[0]:,}"
                                for n, its in zip(sizes, found, strict=True)
                            },
                            "for each row more": f"{each:.1f}",
                            **{
                                f"questions, n = {n:,}": f"{its[1]:,}"
                                for n, its in zip(sizes, found, strict=True)
                            },
                        }
                    )
                    print(lines[-1], flush=True)
                    if steal:
                        continue
                    wanted = (8.0 if kind == "Dask" else 0.0) + (24.0 if alpha != "given" else 0.0)
                    asked = [its[1] for its in found]
                    claims.append(
                        common.Claim(
                            f"{kind}'s X, α {alpha}: a fit moves {wanted:.0f} bytes for each row "
                            f"more, to within 1 (found {each:.1f}); questions move at most twice "
                            f"as many for {sizes[-1] / sizes[0]:.0f} times the rows (found "
                            f"{max(asked) / min(asked):.2f} times)",
                            abs(each - wanted) <= 1 and max(asked) <= 2 * min(asked),
                        )
                    )
    text = (
        "Landmarks, a sketched mean, one target, y here. A Dask X is made on the workers in chunks "
        f"of 10,000 rows. Questions are {TESTED:,} V2, V3 and means.\n\n"
    )
    return (
        f"## Bytes that left two workers, m = {m}\n\n{text}{common.markdown_table(lines)}",
        claims,
    )


def moved(client: Client, kind: str, n: int, m: int, settings: dict[str, Any]) -> tuple[int, int]:
    """Bytes that left the workers in a fit, and in 1,000 questions."""
    X, y, Z = problem(n)
    rows: Any = X
    if kind == "Dask":
        rows = da.random.default_rng(0).random((n, D), chunks=(10_000, D))
        y = target(rows.compute(), np.random.default_rng(0))
    before = sent(client)
    model = ridge("dask", m, **settings).fit(rows, y)
    fitted = sent(client)
    model.variance(Z), model.variance(Z, "v3"), model.predict(Z)
    return fitted - before, sent(client) - fitted


def kills(count: int, n: int, m: int) -> tuple[str, list[common.Claim]]:
    """A worker is killed at another moment of each fit; whoever does not come back is replaced."""
    wanted: dict[str, Any] | None = None
    same, near, lost = 0, 0.0, 0
    while lost < count:
        with cluster(2) as client:
            measured("dask", n, m, client)
            undisturbed = measured("dask", n, m, client)
            wanted = wanted or undisturbed
            seconds = undisturbed["fit"] + undisturbed["ask"]
            while lost < count and len(client.scheduler_info()["workers"]) == 2:
                timer = threading.Timer(seconds * (lost + 0.5) / count, kill, [client, lost])
                timer.start()
                found = measured("dask", n, m)  # workers that are killed tell no counts
                timer.join()
                same += equal(wanted, found)
                near = max(near, apart(wanted, found))
                lost += 1
                print(f"kill {lost}: equal {equal(wanted, found)}", flush=True)
                with suppress(TimeoutError):
                    client.wait_for_workers(2, timeout=15)
    text = (
        f"## Faults\n\n{lost} fits and questions with n = {n:,}, m = {m}, in each of which one of "
        f"two workers was killed (SIGKILL): {same} gave the same bits, the largest relative "
        f"difference of the others is {near:.1e}."
    )
    claim = common.Claim(
        f"{lost} kills leave results equal ({same} bit for bit, all within {near:.1e})",
        same == lost,
    )
    return text, [claim]


def kill(client: Client, k: int) -> None:
    process = client.cluster.workers[k % 2].process
    if process is not None and process.pid:
        os.kill(process.pid, signal.SIGKILL)


def overhead(m: int, repeats: int) -> str:
    n = 20_000
    here = quickest([measured(NumpyTiles(workers=1), n, m) for _ in range(repeats + 1)])
    with cluster(2) as client:
        there = quickest([measured("dask", n, m, client) for _ in range(repeats + 1)])
    return (
        f"## Overhead at n = {n:,}, m = {m}\n\nA fit takes {there['fit']:.2f} s with two workers "
        f"and {here['fit']:.2f} s here in one thread; {TESTED:,} questions {there['ask']:.2f} s "
        f"and {here['ask']:.2f} s: the quickest of {repeats + 1}."
    )


def on_a_gpu(n: int, m: int, repeats: int) -> str:
    """One worker whose blocks are handled by PyTorch or Triton, on the GPU of this machine."""
    here = quickest([measured(NumpyTiles(workers=1), n, m) for _ in range(repeats)])
    lines = [line("this process, one thread, NumPy", here, here)]
    for inner in ("torch", "triton"):
        with cluster(1) as client:
            backend = DaskBlocks(inner=inner)
            found = quickest([measured(backend, n, m, client) for _ in range(repeats + 1)])
        lines.append(line(f"a worker with {inner}", found, here))
        print(lines[-1], flush=True)
    return f"## A worker with a GPU, n = {n:,}, m = {m}\n\n{common.markdown_table(lines)}"


def from_parquet(rows: int, d: int, m: int, memory: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return fitted_from(Path(folder), rows, d, m, memory)


def fitted_from(folder: Path, rows: int, d: int, m: int, memory: str) -> str:
    """Fit rows × d numbers from files, with two workers of so much memory each.

    Features beyond the eighth vary little, so that rows are no farther apart than with eight.
    """
    import dask.dataframe as dd
    import pandas as pd

    names = [f"x{j}" for j in range(d)]
    spread = np.where(np.arange(d) < D, 1.0, 0.05)
    size = 2_000_000 // d
    for part in range(-(-rows // size)):
        rng = np.random.default_rng(part)
        X = rng.random((min(size, rows - part * size), d)) * spread
        frame = pd.DataFrame(X, columns=names).assign(y=target(X, rng))
        frame.to_parquet(folder / f"part-{part:04}.parquet")
    disk = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    with cluster(2, memory) as client:
        table = dd.read_parquet(folder)
        start = time.perf_counter()
        model = ridge("dask", m).fit(table[names], table["y"])
        fitted = time.perf_counter()
        print(f"fitted {rows:,} rows in {fitted - start:.0f} s", flush=True)
        Z = np.random.default_rng(1).random((100, d)) * spread
        error = float(
            np.sqrt(np.mean((model.predict(Z) - np.sin(4 * Z[:, 0]) - Z[:, 1] ** 2) ** 2))
        )
        v2 = model.variance(Z)
        asked = time.perf_counter()
        print(f"{len(Z)} means and V2 in {asked - fitted:.0f} s; error {error:.4f}", flush=True)
        spilled = sum(client.run(lambda dask_worker: dask_worker.data.spilled_total.disk).values())
    return (
        f"## {rows:,} × {d} rows from Parquet\n\n{disk / 1e9:.2f} GB of files; X has "
        f"{8e-9 * rows * d:.2f} GB, F with m = {m} {8e-9 * rows * m:.2f} GB; "
        f"two workers of {memory}. "
        f"The fit took {fitted - start:.0f} s, {len(Z)} means and V2 {asked - fitted:.0f} s; "
        f"{spilled / 1e9:.2f} GB lay on disk at the end. Error of the mean {error:.4f}, "
        f"√V2 {np.sqrt(v2).min():.2e} to {np.sqrt(v2).max():.2e}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--landmarks", type=int, default=512)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--killed-rows", type=int, default=50_000)
    parser.add_argument("--parquet", type=int, default=20_000_000)
    parser.add_argument("--features", type=int, default=D, help="of the rows from Parquet")
    parser.add_argument("--memory", default="2GB", help="of a worker that reads Parquet")
    parser.add_argument("--only", nargs="+", help="some of the sections")
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    options = parser.parse_args()
    n = options.rows

    def stored(m: int) -> str:
        return from_parquet(options.parquet, options.features, m, options.memory)

    sections: dict[str, Callable[[], tuple[str, list[common.Claim]]]] = {
        "workers": lambda: workers_table(n, options.landmarks, options.workers, options.repeats),
        "overhead": lambda: (overhead(256, options.repeats), []),
        "bytes": lambda: bytes_table(64, [n // 8, n // 2, n, 2 * n]),
        "kills": lambda: kills(options.kills, options.killed_rows, 64),
        "gpu": lambda: (on_a_gpu(n, options.landmarks, options.repeats), []),
        "parquet": lambda: (stored(64), []),
    }
    command = f"Command: `{shlex.join(['python', 'benchmarks/dask_scaling.py', *sys.argv[1:]])}`."
    usual = [name for name in sections if name != "gpu"]
    for name in options.only or usual:
        text, claims = sections[name]()
        head = f"{time.strftime('%Y-%m-%d')}. {common.machine()}"
        path = options.out / f"dask_{name}.md"
        common.write_report(path, "A Dask cluster", [f"{head}\n\n{command}", text], claims)


if __name__ == "__main__":
    main()
