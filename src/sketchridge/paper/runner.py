"""Runs experiments: finished cells are not repeated, and everything is written down."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import numpy
import scipy
import sklearn
from joblib import cpu_count
from threadpoolctl import threadpool_limits

from sketchridge.paper.base import Cell, Experiment, Row
from sketchridge.paper.code import fingerprint
from sketchridge.paper.datasets import origin_of
from sketchridge.paper.options import Options
from sketchridge.paper.tables import read_table

__all__ = ["Result", "environment", "read_results", "run_experiments"]

_MOST_WORKERS = 61  # of a pool of processes on Windows


@dataclass(frozen=True)
class Task:
    """A cell of an experiment, and the file that holds its rows once it is finished."""

    name: str
    maker: Any
    cell: Cell
    path: Path

    @property
    def finished(self) -> bool:
        return self.path.exists()

    def run(self, data: Path | None) -> None:
        """Run the cell on one thread and keep its rows, whole or not at all."""
        start = time.process_time()
        with threadpool_limits(1):
            rows = self.maker.run(self.cell, data)
        entry = {"cell": self.cell, "rows": rows, "seconds": time.process_time() - start}
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
        self,
        experiment: Experiment,
        rows: list[Row],
        *,
        cells: int = 0,
        seconds: float = 0.0,
        missing: str = "",
    ) -> None:
        self.experiment = experiment
        self.rows = rows
        self.cells = cells
        self.seconds = seconds
        self.missing = missing


def run_experiments(
    experiments: Sequence[Experiment],
    folder: Path,
    *,
    options: Options,
    data: Path | None,
    jobs: int | None = None,
    deadline: float | None = None,
    say: Callable[[str, int, int], None],
) -> list[Result]:
    """Run what is not finished.

    Cells are files under ``folder``/cells, named by what they are, by the code that makes them and
    by the data they read: an interrupted run goes on where it was, and a change of the code or of
    the data starts again. Experiments
    whose times are results run by themselves, after the others. One whose data are missing is left
    out, with the reason in its result.

    Parameters
    ----------
    experiments : what to run, the most important first.
    folder : where results are kept.
    options : how much to run.
    data : folder with the real data, if there is one.
    jobs : how many processes; one for each core unless given.
    deadline : seconds after which no cell is begun.
    say : called as a cell is finished, with the experiment's name, its cells done and in all.
    """
    stop = None if deadline is None else time.time() + deadline
    tasks = {e.name: _tasks(e, folder, options, data) for e in experiments}
    done = {name: sum(task.finished for task in several) for name, several in tasks.items()}
    missing: dict[str, str] = {}

    def collect(task: Task, run: Callable[[], bool]) -> None:
        try:
            if not run():
                return
        except FileNotFoundError as error:
            missing[task.name] = str(error)
            return
        done[task.name] += 1
        say(task.name, done[task.name], len(tasks[task.name]))

    waiting = [task for e in experiments for task in tasks[e.name] if not task.finished]
    together = [task for task in waiting if not task.maker.alone]
    _run_together(together, data, jobs or cpu_count(), stop, collect)
    for task in waiting:
        if task.maker.alone:
            collect(task, partial(_in_time, task, data, stop))
    return [_result(e, tasks[e.name], missing.get(e.name, "")) for e in experiments]


def read_results(experiments: Sequence[Experiment], folder: Path) -> list[Result]:
    """Of the tables that an earlier run wrote, without running anything."""
    results = []
    for experiment in experiments:
        path = folder / "tables" / f"{experiment.name}.csv"
        found = path.is_file()
        missing = "" if found else f"there is no {path}"
        results.append(Result(experiment, read_table(path) if found else [], missing=missing))
    return results


def _result(experiment: Experiment, tasks: Sequence[Task], missing: str) -> Result:
    finished = [task.entry() for task in tasks if task.finished]
    left = len(tasks) - len(finished)
    if left and not missing:
        missing = f"{left} of {len(tasks)} cells were not run"
    return Result(
        experiment,
        [row for entry in finished for row in entry["rows"]],
        cells=len(finished),
        seconds=sum(entry["seconds"] for entry in finished),
        missing=missing,
    )


def _tasks(experiment: Experiment, folder: Path, options: Options, data: Path | None) -> list[Task]:
    maker = experiment.maker
    code = fingerprint(type(maker).__module__)
    read = _data_fingerprint(maker.reads, data)
    return [
        Task(experiment.name, maker, cell, _path(folder, experiment.name, code, read, cell))
        for cell in maker.cells(options)
    ]


def _data_fingerprint(name: str, data: Path | None) -> str:
    """Of the files that would be read; what is missing is said by the cells that need it."""
    try:
        return origin_of(name, data).fingerprint()
    except FileNotFoundError:
        return "missing"


def _path(folder: Path, name: str, code: str, read: str, cell: Cell) -> Path:
    """A name that changes with the cell, the code that makes its rows and the data it reads."""
    text = json.dumps([code, read, cell], sort_keys=True)
    return folder / "cells" / name / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"


def _run_together(
    tasks: Sequence[Task],
    data: Path | None,
    jobs: int,
    stop: float | None,
    collect: Callable[[Task, Callable[[], bool]], None],
) -> None:
    """Run tasks in processes; where the run is interrupted, those that work are ended.

    What they were at is not kept, since a cell is written whole; without that the run would go on
    until they were done with it and with the cells they had been given beyond it.
    """
    if not tasks:
        return
    workers = min(jobs, len(tasks), _MOST_WORKERS)
    others = set(active_children())
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        futures = {pool.submit(_in_time, task, data, stop): task for task in tasks}
        for future in as_completed(futures):
            collect(futures[future], future.result)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(active_children()) - others:
            process.terminate()
        raise
    pool.shutdown()


def _in_time(task: Task, data: Path | None, stop: float | None) -> bool:
    """Run a task unless it is too late to begin."""
    if stop is not None and time.time() >= stop:
        return False
    task.run(data)
    return True


def environment() -> Iterator[tuple[str, str]]:
    """Versions and machine, for the record."""
    yield "Python", platform.python_version()
    for module in (numpy, scipy, sklearn):
        yield module.__name__, module.__version__
    yield "machine", f"{platform.machine()}, {cpu_count()} cores"
