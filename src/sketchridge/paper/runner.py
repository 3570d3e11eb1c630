"""Runs experiments: cells that are finished are not repeated, both cores are used, and everything is written down."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from sketchridge.paper.base import Cell, Experiment, Row

__all__ = ["Result", "environment", "run_experiments", "write_table"]


class Result:
    """The rows of an experiment, in the order of its cells, with the seconds they took."""

    def __init__(self, experiment: Experiment, finished: Sequence[dict[str, Any]], missing: str = "") -> None:
        self.experiment, self.missing = experiment, missing
        self.rows: list[Row] = [row for entry in finished for row in entry["rows"]]
        self.seconds = sum(entry["seconds"] for entry in finished)
        self.cells = len(finished)


def run_experiments(
    experiments: Sequence[Experiment], folder: Path, *, full: bool, data: Path | None, say: Callable[[str, int, int], None]
) -> list[Result]:
    """Run what is not finished. ``say`` is told the name, cells done and cells in all as they finish.

    Cells are files under ``folder``/cells; an interrupted run goes on where it was. Experiments whose times are results run
    by themselves, after the others. One whose data are missing is left out, with the reason in its result.
    """
    tasks = {
        experiment.name: [(cell, _path(folder, experiment, cell)) for cell in experiment.cells(full)] for experiment in experiments
    }
    done = {name: sum(path.exists() for _, path in cells) for name, cells in tasks.items()}
    missing: dict[str, str] = {}

    def finished(experiment: Experiment) -> None:
        done[experiment.name] += 1
        say(experiment.name, done[experiment.name], len(tasks[experiment.name]))

    together = [(e, cell, path) for e in experiments if not e.alone for cell, path in tasks[e.name] if not path.exists()]
    workers = min(len(os.sched_getaffinity(0)), len(together))
    if workers:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            futures = {pool.submit(_run_cell, e, cell, path, data): e for e, cell, path in together}
            try:
                for future in as_completed(futures):
                    _collect(future.result, futures[future], missing, finished)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    for e in experiments:
        for cell, path in tasks[e.name] if e.alone else []:
            if not path.exists():
                _collect(lambda e=e, cell=cell, path=path: _run_cell(e, cell, path, data), e, missing, finished)  # type: ignore[misc]
    return [
        Result(e, [json.loads(path.read_text()) for _, path in tasks[e.name] if path.exists()], missing.get(e.name, ""))
        for e in experiments
    ]


def _collect(
    result: Callable[[], None], experiment: Experiment, missing: dict[str, str], finished: Callable[[Experiment], None]
) -> None:
    try:
        result()
    except FileNotFoundError as error:
        missing[experiment.name] = str(error)
        return
    finished(experiment)


def _run_cell(experiment: Experiment, cell: Cell, path: Path, data: Path | None) -> None:
    """Run a cell and keep its rows, whole or not at all."""
    start = time.perf_counter()
    with threadpool_limits(None if experiment.alone else 1):
        rows = experiment.run(cell, data)
    entry = {"cell": cell, "rows": rows, "seconds": time.perf_counter() - start}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(entry))
    part.replace(path)


def _path(folder: Path, experiment: Experiment, cell: Cell) -> Path:
    """A name that changes with the cell and with the library's version."""
    text = json.dumps([version("sketchridge"), cell], sort_keys=True)
    return folder / "cells" / experiment.name / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Tidy CSV: a row an observation."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def environment() -> Iterator[tuple[str, str]]:
    """Versions and machine, for the record."""
    yield "Python", platform.python_version()
    for name in ("sketchridge", "numpy", "scipy", "scikit-learn"):
        yield name, version(name)
    yield "machine", f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores"
