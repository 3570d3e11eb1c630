"""The paper from the terminal: `sketchridge reproduce`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["reproduce"]

console = Console(soft_wrap=True, highlight=False)


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="all, or some of fig1a to fig1f and fig2 to fig5.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="The paper's repetitions: hours instead of minutes.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Folder of the report; a run that was interrupted goes on there.")
    ] = Path("reproduction"),
    data: Annotated[
        Path | None, typer.Option(help="Folder with the flights and weather files.")
    ] = None,
) -> None:
    """Run the paper's experiments and write report.html: every figure, every claim's verdict."""
    from sketchridge.paper.experiments import EXPERIMENTS
    from sketchridge.paper.report import claims_of, write_report
    from sketchridge.paper.runner import run_experiments

    wanted = list(EXPERIMENTS) if not names or "all" in names else names
    unknown = [name for name in wanted if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(
            f"Unknown experiment {unknown[0]!r}: give 'all' or some of {', '.join(EXPERIMENTS)}."
        )
    if data is not None and not data.is_dir():
        raise ValueError(f"There is no folder {data}.")
    command = " ".join(
        ["sketchridge reproduce", *(names or ["all"]), *(["--full"] if full else [])]
    )
    start = time.perf_counter()
    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bars = {
            name: progress.add_task(name, total=len(EXPERIMENTS[name].cells(full)))
            for name in wanted
        }
        results = run_experiments(
            [EXPERIMENTS[name] for name in wanted],
            out,
            full=full,
            data=data,
            say=lambda name, done, total: progress.update(bars[name], completed=done),
        )
    path = write_report(results, out, full=full, command=command)
    for claim in claims_of(results):
        console.print(f"{claim.verdict:<18} {claim.name}: {claim.measured}", markup=False)
    for result in results:
        if result.missing:
            console.print(
                f"not run            {result.experiment.name}: {result.missing}", markup=False
            )
    console.print(f"The report is in {path} ({time.perf_counter() - start:.0f} s).")
