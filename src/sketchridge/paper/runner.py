"""Runs experiments: finished cells are not repeated, and everything is written down."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from joblib import cpu_count
from threadpoolctl import threadpool_limits

from sketchridge.paper.base import Cell, Experiment, Row

__all__ = ["Result", "environment", "run_experiments", "write_table"]

_MOST_WORKERS = 61  # of a pool of processes on Windows


@dataclass(frozen=True)
class Task:
    """A cell of an experiment, and the file that holds its rows once it is finished."""

    experiment: Experiment
    cell: Cell
    path: Path

    @property
    def finished(self) -> bool:
        return self.path.exists()

    def run(self, data: Path | None) -> None:
        """Run the cell and keep its rows, whole or not at all."""
        start = time.perf_counter()
        with threadpool_limits(None if self.experiment.alone else 1):
            rows = self.experiment.run(self.cell, data)
        entry = {"cell": self.cell, "rows": rows, "seconds": time.perf_counter() - start}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(entry), encoding="utf-8")
        part.replace(self.path)

    def entry(self) -> dict[str, Any]:
        """What was kept."""
        return json.loads(self.path.read_text(encoding="utf-8"))


class Result:
    """The rows of an experiment, in the order of its cells, with the seconds they took."""

    def __init__(
        self, experiment: Experiment, finished: Sequence[dict[str, Any]], missing: str = ""
    ) -> None:
        self.experiment = experiment
        self.missing = missing
        self.rows: list[Row] = [row for entry in finished for row in entry["rows"]]
        self.seconds = sum(entry["seconds"] for entry in finished)
        self.cells = len(finished)


def run_experiments(
    experiments: Sequence[Experiment],
    folder: Path,
    *,
    full: bool,
    data: Path | None,
    say: Callable[[str, int, int], None],
) -> list[Result]:
    """Run what is not finished.

    Cells are files under ``folder``/cells; an interrupted run goes on where it was. Experiments
    whose times are results run by themselves, after the others. One whose data are missing is left
    out, with the reason in its result.

    Parameters
    ----------
    experiments : what to run.
    folder : where results are kept.
    full : the paper's repetitions.
    data : folder with the real data, if there is one.
    say : called as a cell is finished, with the experiment's name, its cells done and in all.
    """
    tasks = {e.name: _tasks(e, folder, full) for e in experiments}
    done = {name: sum(task.finished for task in several) for name, several in tasks.items()}
    missing: dict[str, str] = {}

    def collect(task: Task, run: Callable[[], None]) -> None:
        name = task.experiment.name
        try:
            run()
        except FileNotFoundError as error:
            missing[name] = str(error)
            return
        done[name] += 1
        say(name, done[name], len(tasks[name]))

    waiting = [task for e in experiments for task in tasks[e.name] if not task.finished]
    _run_together([task for task in waiting if not task.experiment.alone], data, collect)
    for task in waiting:
        if task.experiment.alone:
            collect(task, partial(task.run, data))
    return [
        Result(
            e,
            [task.entry() for task in tasks[e.name] if task.finished],
            missing.get(e.name, ""),
        )
        for e in experiments
    ]


def _tasks(experiment: Experiment, folder: Path, full: bool) -> list[Task]:
    return [
        Task(experiment, cell, _path(folder, experiment, cell)) for cell in experiment.cells(full)
    ]


def _path(folder: Path, experiment: Experiment, cell: Cell) -> Path:
    """A name that changes with the cell and with the library's version."""
    text = json.dumps([version("sketchridge"), cell], sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:20]
    return folder / "cells" / experiment.name / f"{name}.json"


def _run_together(
    tasks: Sequence[Task],
    data: Path | None,
    collect: Callable[[Task, Callable[[], None]], None],
) -> None:
    """Run tasks in processes, one for each core."""
    if not tasks:
        return
    workers = min(cpu_count(), len(tasks), _MOST_WORKERS)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(task.run, data): task for task in tasks}
        try:
            for future in as_completed(futures):
                collect(futures[future], future.result)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Tidy CSV: a row for each observation."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def environment() -> Iterator[tuple[str, str]]:
    """Versions and machine, for the record."""
    yield "Python", platform.python_version()
    for name in ("sketchridge", "numpy", "scipy", "scikit-learn"):
        yield name, version(name)
    yield "machine", f"{platform.machine()}, {cpu_count()} cores"
