"""A campaign begins, from the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sketchridge.cli.asking import asked_about
from sketchridge.cli.options import (
    DEFAULT,
    FILE,
    Acquisition,
    Category,
    Goal,
    Range,
    Score,
    Store,
    Value,
    Yes,
    limits_of,
    who,
)
from sketchridge.cli.say import say
from sketchridge.words import counted

if TYPE_CHECKING:
    from sketchridge.campaign.operations import Campaign

__all__ = ["new"]


def new(
    pool: Annotated[Path, typer.Argument(help=f"Candidates, a row each. {FILE}.")],
    target: Annotated[
        str,
        typer.Option(
            help="The quantity to be measured; values already in the table are taken as labels."
        ),
    ],
    value: Value = None,
    goal: Goal = "explore",
    store: Store = DEFAULT,
    id_column: Annotated[
        str | None,
        typer.Option("--id", help="The column that names the rows; 'id', or their numbers."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="A column that is no feature, but goes along to the bench; repeatable."),
    ] = None,
    category: Category = None,
    unit: Annotated[str, typer.Option(help="Of the target, such as mg/L.")] = "",
    limits: Range = None,
    yes: Yes = False,
    batch_size: Annotated[int, typer.Option(help="Points to ask for at a time.")] = 30,
    acquisition: Acquisition = "auto",
    score: Score = "auto",
    kernel: Annotated[str, typer.Option(help="A kernel by name, or auto to learn it.")] = "auto",
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Exact kernel ridge regression, for up to a few thousand labels."
        ),
    ] = False,
    scale: Annotated[bool, typer.Option(help="Scale every number to standard deviation 1.")] = True,
    budget: Annotated[int | None, typer.Option(help="Labels after which to stop.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every draw.")] = 0,
) -> None:
    """Start a campaign over a table of candidates."""
    from sketchridge.active import Budget
    from sketchridge.campaign.operations import Campaign
    from sketchridge.estimator import SketchedKernelRidge
    from sketchridge.exact_estimator import ExactKernelRidge

    def begun(accept: bool) -> Campaign:
        return Campaign.create(
            store,
            pool,
            target=target,
            estimator=(ExactKernelRidge if exact else SketchedKernelRidge)(kernel),
            batch_size=batch_size,
            acquisition=acquisition,
            score=score,
            goal=goal if value is None else f"{goal} {value}",
            stop=None if budget is None else Budget(budget),
            seed=seed,
            by=who(None),
            accept=accept,
            id_column=id_column,
            ignore=ignore or [],
            category=category or [],
            scale=scale,
            unit=unit,
            limits=limits_of(limits),
        )

    _introduce(asked_about(begun, yes))


def _introduce(campaign: Campaign) -> None:
    encoding = campaign.encoding
    points = counted(len(campaign.candidates), "point")
    names = ", ".join(feature.name for feature in encoding.features)
    say(f"A campaign over {points} with {counted(len(encoding.features), 'feature')}: {names}.")
    for feature in encoding.categories:
        say(f"{feature.name} is a category: {', '.join(list(feature.values or ())[:20])}.")
    if encoding.carried:
        say(f"No features, but carried along to the bench: {', '.join(encoding.carried)}.")
    labels = len(campaign.learner.labeled_ids_)
    say(
        f"{labels:,} of them are labeled already."
        if labels
        else "None is labeled yet: the first points are spread over the table."
    )
    if not campaign.goal.explores:
        say(f"{campaign.goal}.", lead="Goal:")
    say("Next: sketchridge campaign ask -o to_label.csv")
