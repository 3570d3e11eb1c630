"""`reproduce`, whatever it is called from: what to run, running it, and the report."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sketchridge.backends import BACKENDS
from sketchridge.paper.base import Experiment
from sketchridge.paper.experiments import EXPERIMENTS
from sketchridge.paper.options import Options
from sketchridge.paper.parts import check_whole, put_together
from sketchridge.paper.report import write_report
from sketchridge.paper.runner import Result, read_results, run_experiments

__all__ = ["Request", "left_out", "reproduce"]


@dataclass(frozen=True)
class Request:
    """What was asked for.

    Parameters
    ----------
    names : of experiments, or "all". options : how much to run.
    out : folder of the report. data : folder with flights and weather.
    jobs : processes. report_only : read the tables in ``out`` again, and run nothing.
    deadline : seconds after which no cell is begun.
    command : as it was typed, for the record.
    """

    names: Sequence[str]
    out: Path
    options: Options = field(default_factory=Options)
    data: Path | None = None
    jobs: int | None = None
    report_only: bool = False
    deadline: float | None = None
    command: str = ""

    def experiments(self) -> list[Experiment]:
        """Those that are asked for; ValueError for what is not there or cannot be had."""
        every = not self.names or "all" in self.names
        wanted = list(EXPERIMENTS) if every else list(dict.fromkeys(self.names))
        unknown = [name for name in wanted if name not in EXPERIMENTS]
        if unknown and unknown[0].isdigit():
            raise ValueError(
                f"{unknown[0]} is taken for the name of an experiment: repeat the option before "
                f"each of several values, as --n 100 --n {unknown[0]}."
            )
        if unknown:
            raise ValueError(
                f"Unknown experiment {unknown[0]!r}: give 'all' or some of "
                f"{', '.join(EXPERIMENTS)}."
            )
        found = [EXPERIMENTS[name] for name in wanted]
        self._check_options(found)
        return found

    def _check_options(self, wanted: Sequence[Experiment]) -> None:
        """Before any work: folders, numbers, and options that a figure does not have."""
        if self.data is not None and not self.data.is_dir():
            raise ValueError(f"There is no folder {self.data}.")
        options = self.options
        if options.backend not in BACKENDS:
            raise ValueError(
                f"Unknown backend {options.backend!r}: give one of {', '.join(BACKENDS)}."
            )
        numbers = {
            "repetitions": () if options.repetitions is None else (options.repetitions,),
            "jobs": () if self.jobs is None else (self.jobs,),
            "n": options.n,
            "m": options.m,
        }
        for name, values in numbers.items():
            if any(value < 1 for value in values):
                raise ValueError(f"--{name} must be positive, got {min(values)}.")
        given = {name for name in ("n", "m", "strategies") if getattr(options, name)}
        given |= {"backend"} if options.backend != "numpy" else set()
        for name in sorted(given):
            without = [e.name for e in wanted if name not in e.maker.takes]
            if without:
                have = ", ".join(e.name for e in EXPERIMENTS.values() if name in e.maker.takes)
                raise ValueError(f"{without[0]} has no --{name}: those that have it are {have}.")
        for experiment in wanted:
            try:
                experiment.maker.cells(options)
            except ValueError as error:
                raise ValueError(f"{experiment.name}: {error}") from error
        if options.strategies:
            check_whole([e.name for e in wanted], self.out, options)


def reproduce(request: Request, say: Callable[[str, int, int], None]) -> tuple[list[Result], Path]:
    """Run, or read what was run, and write tables, figures and report.html.

    FileNotFoundError, and no report, where there are no rows at all.
    """
    wanted = request.experiments()
    if request.report_only:
        results = read_results(wanted, request.out)
    else:
        results = run_experiments(
            wanted,
            request.out,
            options=request.options,
            data=request.data,
            jobs=request.jobs,
            deadline=request.deadline,
            say=say,
        )
        if request.options.strategies:
            results = put_together(results, request.out)
    if not any(result.rows for result in results):
        said = "; ".join(f"{result.experiment.name}: {result.missing}" for result in results)
        what = "There is nothing to report" if request.report_only else "Nothing was run"
        raise FileNotFoundError(f"{what}. {said.removesuffix('.')}.")
    path = write_report(
        results,
        request.out,
        options=request.options,
        command=request.command,
        commit=_commit(),
        report_only=request.report_only,
    )
    return results, path


def left_out(results: Sequence[Result]) -> str:
    """A sentence on the experiments of which nothing was run, or nothing to say."""
    names = [result.experiment.name for result in results if not result.rows]
    return f"Nothing was run of {', '.join(names)}: the report is without them." if names else ""


def _commit() -> str:
    """Of the sources, where they are in a repository."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=here,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
