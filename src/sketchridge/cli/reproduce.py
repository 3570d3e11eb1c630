"""The paper from the terminal: `sketchridge reproduce`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sketchridge.cli.say import console
from sketchridge.paper.options import BACKEND_HELP, DATA_HELP, STRATEGIES_HELP

__all__ = ["reproduce"]


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="all, or some of fig1a to fig1f, fig2, fig3-1, fig3-2, fig4, fig5, sketches, "
            "formulas, timing, update."
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Registered repetitions and fresh seeds: hours on 2 cores."),
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Folder of the report; a run that was interrupted goes on there.")
    ] = Path("reproduction"),
    data: Annotated[Path | None, typer.Option(help=DATA_HELP)] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes; one for each core unless given.")
    ] = None,
    repetitions: Annotated[int | None, typer.Option(help="So many instead.")] = None,
    n: Annotated[
        list[int] | None, typer.Option(help="Training points or pool, where a figure has them.")
    ] = None,
    m: Annotated[
        list[int] | None, typer.Option(help="Rows of the sketch, where a figure has them.")
    ] = None,
    backend: Annotated[str, typer.Option(help=BACKEND_HELP)] = "numpy",
    strategies: Annotated[list[str] | None, typer.Option(help=STRATEGIES_HELP)] = None,
    report: Annotated[
        bool, typer.Option("--report", help="From the tables of an earlier run; run nothing.")
    ] = False,
) -> None:
    """Run the paper's experiments and write report.html: every figure, every claim's verdict."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    from sketchridge.paper.command import Request, left_out
    from sketchridge.paper.command import reproduce as run
    from sketchridge.paper.options import Options
    from sketchridge.paper.report import claims_of

    options = Options(
        full, repetitions, tuple(n or ()), tuple(m or ()), backend, tuple(strategies or ())
    )
    request = Request(
        names or ["all"],
        out,
        options,
        data,
        jobs,
        report,
        command=" ".join(["sketchridge", *sys.argv[1:]]),
    )
    start = time.perf_counter()
    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    wanted = request.experiments()
    with Progress(*columns, console=Console(stderr=True), disable=report) as progress:
        bars = {
            e.name: progress.add_task(e.name, total=len(e.maker.cells(options))) for e in wanted
        }
        results, path = run(
            request, lambda name, done, total: progress.update(bars[name], completed=done)
        )
    for claim in claims_of(results):
        console.print(f"{claim.verdict:<26} {claim.name}: {claim.measured}", markup=False)
    for result in results:
        if result.missing:
            said = f"{'not complete':<26} {result.experiment.name}: {result.missing}"
            console.print(said, markup=False)
    console.print(f"The report is in {path} ({time.perf_counter() - start:.0f} s).")
    if left_out(results):
        raise FileNotFoundError(left_out(results))
