"""Where a campaign stands, on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Table

from sketchridge.campaign.overview import Overview
from sketchridge.cli.say import bars, console, say

__all__ = ["show"]

_ONE = "label or correction since is"


def show(now: Overview) -> None:
    """Print it."""
    extras = [f"{now.failed:,} failed"] if now.failed else []
    extras += [f"{now.corrected:,} corrected"] if now.corrected else []
    more = f" ({', '.join(extras)})" if extras else ""
    noun = "label" if now.labels == 1 else "labels"
    say(
        f"{noun} and {now.pending} pending of {now.size:,} points{more}.",
        lead=f"{now.labels:,}",
    )
    if now.history:
        console.print(_table(now.history))
    if now.errors:
        say(
            f"Leave-one-out error by round: {bars(now.errors)}  {now.errors[0]:.4g} to "
            f"{now.errors[-1]:.4g} (root mean square)"
        )
    if now.unlearned:
        some = "labels or corrections since are" if now.unlearned > 1 else _ONE
        say(f"{now.unlearned:,} {some} learned at the next ask.")
    if now.lowest and now.highest:
        unit = f" {now.unit}" if now.unit else ""
        (worst, low), (best, high) = now.lowest, now.highest
        say(f"Largest {now.target}: {high:g}{unit} ({best}); least: {low:g}{unit} ({worst}).")
    if now.goal:
        say(f"{now.goal}.", lead="Goal:")
    if now.labels < 2:
        say("There is no model yet: it takes two labels.")
    if now.stop:
        say(f"{now.stop}.", lead="Time to stop:")


def _table(history: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, header_style="dim")
    drawn = any("mean_score" in row for row in history)
    heading, key = ("mean score", "mean_score") if drawn else ("uncertainty", "mean_sd")
    for name in ("round", "labels", "error (LOO)", "λ", "sketch", heading):
        table.add_column(name, justify="right")
    for row in history[-10:]:
        error = row.get("loo_error")
        table.add_row(
            str(row["round"]),
            f"{row['labels']:,}",
            _short(None if error is None else np.sqrt(error)),
            _short(row.get("lambda")),
            str(row.get("sketch_size", "–")),
            _short(row.get(key)),
        )
    return table


def _short(value: Any) -> str:
    return "–" if value is None else f"{value:.4g}"
