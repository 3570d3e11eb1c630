"""A campaign from the terminal: start it, ask what to measure, tell what was measured.

Each command reads its options, calls `sketchridge.campaign` and prints; what is heavy is imported
by the command that needs it, so that the others answer at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sketchridge.cli.asking import asked_about
from sketchridge.cli.begin import new
from sketchridge.cli.negatives import Negatives
from sketchridge.cli.options import (
    DEFAULT,
    FILE,
    By,
    Confidence,
    Force,
    Ids,
    Note,
    Output,
    PoolPath,
    Store,
    Yes,
    who,
)
from sketchridge.cli.say import are, say
from sketchridge.words import counted, first_few

if TYPE_CHECKING:
    from sketchridge.campaign.operations import Campaign

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Ask which points to label next, and keep what was told. Points are chosen to learn the "
    "whole function, unless another --goal is given.",
)


app.command(cls=Negatives)(new)


@app.command()
def ask(
    n: Annotated[
        int | None,
        typer.Option("-n", help="How many points; the campaign's batch size unless given."),
    ] = None,
    output: Output = Path("to_label.csv"),
    force: Force = False,
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Write the points to measure next, with an empty column for the labels."""
    from sketchridge.sheets.files import check_kind

    campaign = _opened(store, pool, output, force)
    record = campaign.store
    wanted = record.settings()["batch_size"] if n is None else n
    check_kind(output, min(wanted, record.size() - len(record.taken())))
    frame = campaign.ask(n)
    try:
        _write(campaign, frame, output, force)
    except (ImportError, ValueError, OSError) as error:
        raise ValueError(
            f"{str(error).rstrip('.')}. The points are handed out: get them with `sketchridge "
            "campaign pending -o NAME`, where NAME can be written."
        ) from None
    few = "" if len(frame) >= wanted else f" No more than {len(frame):,} could be asked for."
    say(
        f"{counted(len(frame), 'point')} to measure {are(len(frame))} in {output}; fill its column "
        f"{campaign.encoding.heading!r} and tell it.{few}"
    )


@app.command()
def pending(
    output: Output = Path("pending.csv"),
    force: Force = False,
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Write the points that were asked for and not told yet, in case the file was lost."""
    campaign = _opened(store, pool, output, force)
    frame = campaign.pending()
    _write(campaign, frame, output, force)
    say(f"{counted(len(frame), 'pending point')} {are(len(frame))} in {output}.")


@app.command()
def tell(
    labels: Annotated[Path, typer.Argument(help=f"The ids and the labels. {FILE}.")],
    yes: Yes = False,
    by: By = None,
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Keep the labels in a file; rows without one stay pending, a fault refuses the file whole."""
    campaign = _opened(store, pool)
    told = asked_about(lambda accept: campaign.tell(labels, accept=accept, by=who(by)), yes)
    blank = f" ({counted(told.blank, 'row')} had no label yet)" if told.blank else ""
    say(
        f"{counted(told.new, 'label')} kept, {told.total:,} in all; "
        f"{counted(told.pending, 'point')} {are(told.pending)} pending{blank}."
    )
    if told.failed:
        was, has = ("was", "has") if len(told.failed) == 1 else ("were", "have")
        say(f"{first_few(told.failed)} {was} said to be beyond measuring, and {has} a label now.")
    if told.stop:
        say(f"{told.stop}.", lead="Time to stop:")


@app.command(cls=Negatives)
def amend(
    label: Annotated[
        list[str],
        typer.Argument(
            help="An id and its right label, or a file with several.", metavar="ID VALUE"
        ),
    ],
    yes: Yes = False,
    by: By = None,
    note: Note = "",
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Correct a label; what it was stays on record, and the model follows."""
    campaign = _opened(store, pool)
    record: dict[str, Any] = {"by": who(by), "note": note}
    if len(label) == 2:
        name, value = label
        was, now = asked_about(
            lambda accept: campaign.amend(name, value, accept=accept, **record), yes
        )
        say(f"{name} was {was:g} and is {now:g}.")
    elif len(label) == 1:
        path = Path(label[0])
        count = asked_about(lambda a: campaign.amend_table(path, accept=a, **record), yes)
        say(f"{counted(count, 'label')} corrected.")
    else:
        raise ValueError("Give an id and its right label, or a file with several.")


@app.command(cls=Negatives)
def retract(
    ids: Ids = None,
    by: By = None,
    note: Note = "",
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Take labels back that are not of these points; they stay on record."""
    names = _given(ids, "whose labels to take back")
    _opened(store, pool).retract(names, by=who(by), note=note)
    say(f"{counted(len(names), 'label')} taken back.")


@app.command(cls=Negatives)
def fail(
    ids: Ids = None,
    by: By = None,
    note: Note = "",
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Say that points cannot be measured: they are never asked for again."""
    names = _given(ids, "that cannot be measured")
    before = _opened(store, pool).fail(names, by=who(by), note=note)
    say(f"{counted(len(names) - len(before), 'point')} will not be asked for again.")
    if before:
        say(
            f"{first_few(before)} failed before: what was noted then stays; to note something "
            "else, release and fail again."
        )


@app.command(cls=Negatives)
def release(
    ids: Ids = None,
    all_pending: Annotated[bool, typer.Option("--all", help="All pending points.")] = False,
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Let pending or failed points be asked for again."""
    if ids and all_pending:
        raise ValueError("Give ids to release, or --all, and not both.")
    names = None if all_pending else _given(ids, "to release, or --all")
    count = _opened(store, pool).release(names)
    say(f"{counted(count, 'point')} released.")


@app.command()
def add(
    candidates: Annotated[Path, typer.Argument(help=f"Further candidates. {FILE}.")],
    yes: Yes = False,
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Add candidates from another table with the same columns."""
    campaign = _opened(store, pool)
    count, labeled = asked_about(
        lambda accept: campaign.add(candidates, accept=accept, by=who(None)), yes
    )
    known = f", {labeled:,} of them labeled already" if labeled else ""
    say(f"{counted(count, 'candidate')} added{known}.")


@app.command()
def status(
    gain: Annotated[
        bool, typer.Option("--gain", help="Also what the next points would teach: takes a fit.")
    ] = False,
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Labels so far, the error curve and the labels that stand out, from the record alone."""
    from sketchridge.active.sql import SQLStore
    from sketchridge.campaign.overview import overview
    from sketchridge.cli.status import show

    show(overview(SQLStore.open(store)))
    if gain:
        say(_opened(store, pool).gain())


@app.command()
def predict(
    table: Annotated[
        Path | None,
        typer.Argument(help=f"Points; all candidates unless given. {FILE}."),
    ] = None,
    output: Output = Path("predictions.csv"),
    confidence: Confidence = 0.95,
    force: Force = False,
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Write predictions with intervals, and how much of their uncertainty is noise, a lack of
    labels nearby (bias), or the noise of those there are."""
    campaign = _opened(store, pool, output, force, never=[] if table is None else [table])
    frame = campaign.predict(table, confidence=confidence)
    _write(campaign, frame, output, force)
    many = counted(len(frame), "prediction")
    say(f"{many} with {confidence:.0%} intervals {are(len(frame))} in {output}.")


@app.command()
def report(
    output: Annotated[Path, typer.Option("-o", "--output", help="An .html file.")] = Path(
        "report.html"
    ),
    force: Force = False,
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Write one HTML page: predicted against observed, the error curve, where the points lie."""
    from sketchridge.writing import write_text

    campaign = _opened(store, pool, output, force, (".html",))
    write_text(campaign.report(), output, force=force)
    say(f"The report is in {output}.")


@app.command()
def export(
    output: Output = Path("labeled.csv"),
    confidence: Confidence = 0.95,
    force: Force = False,
    store: Store = DEFAULT,
    pool: PoolPath = None,
) -> None:
    """Write every label with its features, its draw, and what the model predicts there."""
    campaign = _opened(store, pool, output, force)
    frame = campaign.export(confidence=confidence)
    _write(campaign, frame, output, force)
    say(f"{counted(len(frame), 'label')} {are(len(frame))} in {output}.")


@app.command()
def migrate(store: Store = DEFAULT, pool: PoolPath = None) -> None:
    """Bring a campaign of an older version to this one, once, with all it holds."""
    from sketchridge.campaign.migrate import migrate as bring_over

    version = bring_over(store, pool)
    say(f"The campaign had tables of version {version} and can be continued.")


def _opened(
    store: str,
    pool: Path | None,
    output: Path | None = None,
    force: bool = False,
    suffixes: tuple[str, ...] | None = None,
    never: Iterable[Path] = (),
) -> Campaign:
    """The campaign; an output that cannot be is refused before anything is done."""
    from sketchridge.campaign.operations import Campaign
    from sketchridge.sheets.files import SUFFIXES, check_kind
    from sketchridge.writing import check_output

    campaign = Campaign.open(store, pool)
    if output is not None:
        kept = [*campaign.paths, *never]
        check_output(output, force, suffixes=suffixes or SUFFIXES, never=kept)
        check_kind(output)
    return campaign


def _write(campaign: Campaign, frame: Any, output: Path, force: bool) -> None:
    from sketchridge.sheets.files import write_sheet

    write_sheet(frame, output, **campaign.style, force=force)


def _given(ids: list[str] | None, what: str) -> list[str]:
    if not ids:
        raise ValueError(f"Give ids {what}.")
    return list(dict.fromkeys(ids))
