"""A campaign from the terminal: start it, ask what to measure, tell what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from sketchridge.active import ActiveLearner, Budget
from sketchridge.active.sql import SQLStore
from sketchridge.cli.tables import PoolTable, read_labels, write_table
from sketchridge.estimator import SketchedKernelRidge
from sketchridge.exact_estimator import ExactKernelRidge

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="Ask which points to label next, and keep what was told."
)
console = Console(soft_wrap=True, highlight=False)
Store = Annotated[
    str,
    typer.Option(
        envvar="SKETCHRIDGE_STORE", help="Where the campaign is kept, an SQLAlchemy address."
    ),
]
PoolPath = Annotated[
    Path | None, typer.Option("--pool", help="The pool's file, where it has moved.")
]
Output = Annotated[Path, typer.Option("-o", "--output", help="A .csv or .parquet file.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]
_DEFAULT = "sqlite:///campaign.db"
_SHOWN = 5000  # points of the pool in a picture
_BARS = "▁▂▃▄▅▆▇█"


@app.command()
def new(
    pool: Annotated[
        Path, typer.Argument(help="Candidates, a row each: .csv or .parquet with numeric columns.")
    ],
    target: Annotated[
        str,
        typer.Option(
            help="The quantity to be measured; values already in the pool are taken as labels."
        ),
    ],
    store: Store = _DEFAULT,
    id_column: Annotated[
        str | None,
        typer.Option("--id", help="The column that names the rows; 'id', or their numbers."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="A column that is no feature; can be given several times."),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Points to ask for at a time.")] = 30,
    acquisition: Annotated[str, typer.Option(help="weighted, top or uniform.")] = "weighted",
    score: Annotated[str, typer.Option(help="auto, v2, v3 or gp; v1 or gp with --exact.")] = "auto",
    kernel: Annotated[str, typer.Option(help="A kernel by name.")] = "gaussian",
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Exact kernel ridge regression, for up to a few thousand labels."
        ),
    ] = False,
    scale: Annotated[
        bool, typer.Option(help="Scale every feature to standard deviation 1.")
    ] = True,
    budget: Annotated[int | None, typer.Option(help="Labels after which to stop.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of every draw.")] = 0,
) -> None:
    """Start a campaign over a pool of candidates."""
    table = PoolTable.read(pool, target=target, id_column=id_column, ignore=ignore or [])
    rows, y = table.known_labels()
    estimator = (ExactKernelRidge if exact else SketchedKernelRidge)(kernel, fit_intercept=True)
    notes = {
        "path": str(pool.resolve()),
        "target": target,
        "id": id_column,
        "ignore": ignore or [],
        "scale": scale,
    }
    learner = ActiveLearner(
        estimator,
        table.matrix(scale=scale),
        batch_size=batch_size,
        acquisition=acquisition,
        score=score,
        stop=None if budget is None else Budget(budget),
        store=SQLStore(store, notes=notes),
        random_state=seed,
    )
    learner.tell(rows, y)
    console.print(
        f"A campaign over {len(table.ids):,} points with {table.features.width} features: "
        f"{', '.join(table.features.columns)}."
    )
    console.print(
        f"{len(rows):,} of them are labeled already."
        if len(rows)
        else "None is labeled yet: the first points are drawn evenly."
    )
    console.print("Next: sketchridge campaign ask -o to_label.csv")


@app.command()
def ask(
    n: Annotated[
        int | None,
        typer.Option("-n", help="How many points; the campaign's batch size unless given."),
    ] = None,
    output: Output = Path("to_label.csv"),
    force: Force = False,
    store: Store = _DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Write the points to measure next, with an empty column for the labels."""
    learner, table = _opened(store, pool)
    _check_output(output, force)
    ids, probability = learner.ask(n, return_probability=True)
    _write_points(table, ids, output, probability)
    console.print(
        f"{len(ids)} points to measure are in {output}; fill its column {table.target!r} and tell "
        "it."
    )


@app.command()
def pending(
    output: Output = Path("pending.csv"),
    force: Force = False,
    store: Store = _DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Write the points that were asked for and not told yet, in case the file was lost."""
    learner, table = _opened(store, pool)
    _check_output(output, force)
    ids = learner.pending_ids_
    chances = {draw.id: draw.probability for draw in learner.draws_}
    _write_points(table, ids, output, np.array([chances[i] for i in ids.tolist()]))
    console.print(f"{len(ids)} pending points are in {output}.")


@app.command()
def tell(
    labels: Annotated[
        Path, typer.Argument(help="A .csv or .parquet file with the ids and the labels.")
    ],
    store: Store = _DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Keep the labels in a file; one with a fault is refused whole."""
    learner, table = _opened(store, pool)
    rows, y = read_labels(labels, table)
    before = len(learner.labeled_ids_)
    try:
        learner.tell(rows, y)
    except ValueError as error:
        raise ValueError(f"{labels} was refused and nothing was changed: {error}") from None
    after = len(learner.labeled_ids_)
    console.print(
        f"{after - before} labels kept, {after} in all; {len(learner.pending_ids_)} points are "
        "pending."
    )
    if learner.should_stop():
        console.print(f"[bold]Time to stop:[/] {learner.stop_reason_}.")


@app.command()
def release(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Ids of pending points that will not be measured.")
    ] = None,
    all_pending: Annotated[bool, typer.Option("--all", help="All pending points.")] = False,
    store: Store = _DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Take back points that were asked for, so that they can be asked for again."""
    import polars as pl

    learner, table = _opened(store, pool)
    rows = (
        learner.pending_ids_ if all_pending else table.rows(pl.Series(ids or [], dtype=pl.String))
    )
    unknown = [
        name for name, row in zip(ids or [], rows, strict=False) if row < 0 and not all_pending
    ]
    if unknown or not (ids or all_pending):
        raise ValueError(
            f"{unknown[0]!r} is not in the pool." if unknown else "Give ids to release, or --all."
        )
    learner.release(rows)
    console.print(f"{len(rows)} points released.")


@app.command()
def status(store: Store = _DEFAULT, pool: PoolPath = None) -> None:
    """Labels so far, the error curve and what the next points are expected to teach."""
    learner, table = _opened(store, pool)
    stop = learner.should_stop()
    history = learner.history_
    console.print(
        f"[bold]{len(learner.labeled_ids_):,}[/] labels and {len(learner.pending_ids_)} pending of "
        f"{len(table.ids):,} points."
    )
    if history:
        console.print(_history_table(history))
        errors = [np.sqrt(row["loo_error"]) for row in history]
        console.print(
            f"Leave-one-out error by round: {_sparkline(errors)}  {errors[0]:.4g} to "
            f"{errors[-1]:.4g}"
        )
        console.print(_gain_sentence(learner))
    else:
        console.print("There is no model yet: it takes two labels.")
    if stop:
        console.print(f"[bold]Time to stop:[/] {learner.stop_reason_}.")


@app.command()
def report(
    output: Annotated[Path, typer.Option("-o", "--output", help="An .html file.")] = Path(
        "report.html"
    ),
    store: Store = _DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Write one HTML page with the error curve, the scores and where the points lie."""
    from sketchridge.cli.campaign_report import campaign_page

    learner, table = _opened(store, pool)
    if not learner.history_:
        raise ValueError("There is nothing to report yet: it takes two labels for a first model.")
    output.write_text(
        campaign_page(learner, table.target, _gain_sentence(learner), _SHOWN), encoding="utf-8"
    )
    console.print(f"The report is in {output}.")


@app.command()
def export(
    output: Output = Path("labeled.csv"),
    force: Force = False,
    store: Store = _DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Write every label with its features, and the round and probability of its draw."""
    learner, table = _opened(store, pool)
    _check_output(output, force)
    ids = learner.labeled_ids_
    drawn = {draw.id: draw for draw in learner.draws_ if not draw.released}
    columns: dict[str, Any] = {
        table.target: learner.labels_[: len(ids), 0],
        "round": [drawn[i].round if i in drawn else None for i in ids.tolist()],
        "probability": [drawn[i].probability if i in drawn else None for i in ids.tolist()],
    }
    write_table(table.select(ids, **columns), output)
    console.print(f"{len(ids)} labels are in {output}.")


def _opened(store: str, path: Path | None) -> tuple[ActiveLearner, PoolTable]:
    """The learner and its pool, from the file the campaign was started with."""
    notes = SQLStore.open(store).settings().get("notes") or {}
    if not notes:
        raise ValueError(
            "This campaign was not started from the command line: continue it in Python with "
            "ActiveLearner.resume."
        )
    file = path or Path(notes["path"])
    if not file.is_file():
        raise ValueError(
            f"The pool's file {file} is not there any more: say where it is with --pool."
        )
    table = PoolTable.read(
        file, target=notes["target"], id_column=notes["id"], ignore=notes["ignore"]
    )
    return ActiveLearner.resume(store, table.matrix(scale=notes["scale"])), table


def _check_output(path: Path, force: bool) -> None:
    """Refuse a bad path before points are handed out."""
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"{path} must end in .csv or .parquet.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent}.")
    if path.exists() and not force:
        raise ValueError(
            f"{path} exists, and may hold labels: give another name with -o, or --force to "
            "overwrite it."
        )


def _write_points(table: PoolTable, ids: Any, output: Path, probability: Any) -> None:
    frame = table.select(ids, probability=probability)
    import polars as pl

    write_table(frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(table.target)), output)


def _history_table(history: list[dict[str, Any]]) -> Table:
    rich_table = Table(box=None, header_style="dim")
    for name in ("round", "labels", "error (LOO)", "λ", "sketch", "mean score"):
        rich_table.add_column(name, justify="right")
    for row in history[-10:]:
        mean = row.get("mean_score")
        rich_table.add_row(
            str(row["round"]),
            f"{row['labels']:,}",
            f"{np.sqrt(row['loo_error']):.4g}",
            f"{row['lambda']:.2g}",
            str(row.get("sketch_size", "–")),
            "–" if mean is None else f"{mean:.3g}",
        )
    return rich_table


def _sparkline(values: list[float]) -> str:
    low = min(values)
    high = max(values)
    span = (high - low) or 1.0
    return "".join(_BARS[round(7 * (value - low) / span)] for value in values[-60:])


def _gain_sentence(learner: ActiveLearner) -> str:
    if not len(learner.open_ids_):
        return "Every point is labeled or pending: there is nothing left to ask for."
    ours, even = learner.expected_gain()
    return (
        f"Expected gain of the next {len(learner.preview())} points: the pool's mean posterior "
        f"variance falls by {ours:.1%}, against {even:.1%} with points drawn evenly."
    )
