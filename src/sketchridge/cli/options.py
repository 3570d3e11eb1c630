"""Options that several commands have, and how they are understood."""

from __future__ import annotations

import getpass
from math import inf, nan
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "DEFAULT",
    "FILE",
    "Acquisition",
    "By",
    "Category",
    "Confidence",
    "Force",
    "Goal",
    "Ids",
    "Note",
    "Output",
    "PoolPath",
    "Range",
    "Score",
    "Store",
    "Value",
    "Yes",
    "limits_of",
    "who",
]

Store = Annotated[
    str,
    typer.Option(
        envvar="SKETCHRIDGE_STORE", help="Where the campaign is kept, an SQLAlchemy address."
    ),
]
PoolPath = Annotated[
    Path | None,
    typer.Option("--pool", help="Where a table of candidates is now, or a folder with several."),
]
Output = Annotated[
    Path, typer.Option("-o", "--output", help="A .csv, .tsv, .xlsx or .parquet file.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]
By = Annotated[str | None, typer.Option(help="Who did it, for the record.")]
Note = Annotated[str, typer.Option(help="Why, for the record.")]
Yes = Annotated[bool, typer.Option("--yes", help="Keep labels beyond the range too.")]
Confidence = Annotated[float, typer.Option(help="Share of measurements in the intervals.")]
Ids = Annotated[list[str] | None, typer.Argument(help="Ids of points.")]
Goal = Annotated[
    str, typer.Option(help="explore, maximize, minimize, target VALUE or boundary VALUE.")
]
Value = Annotated[
    str | None, typer.Argument(help="Of --goal target and --goal boundary.", show_default=False)
]
Acquisition = Annotated[
    str,
    typer.Option(
        help="ivr, mixed, weighted, top or uniform; to maximize or minimize improvement or bound. "
        "auto is ivr or improvement."
    ),
]
Score = Annotated[str, typer.Option(help="auto, v2, vbar, v3 or gp; v1 or gp with --exact.")]
Range = Annotated[
    str | None,
    typer.Option("--range", help="Where labels lie, such as 0:100; others are asked about."),
]
Category = Annotated[
    list[str] | None, typer.Option(help="A column whose values are names of kinds; repeatable.")
]
DEFAULT = "sqlite:///campaign.db"
FILE = "A .csv, .tsv, .xlsx or .parquet file"


def limits_of(text: str | None) -> tuple[float | None, float | None]:
    """A range such as 0:100, 0: or :100."""
    if text is None:
        return None, None
    low, colon, high = text.partition(":")
    try:
        lowest = float(low) if low.strip() else -inf
        highest = float(high) if high.strip() else inf
    except ValueError:
        lowest = highest = nan
    if not colon or not lowest < highest:
        raise ValueError(f"--range needs two numbers such as 0:100, got {text!r}.")
    return (lowest if lowest > -inf else None), (highest if highest < inf else None)


def who(by: str | None) -> str:
    """Who is at the terminal, where that can be known."""
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
