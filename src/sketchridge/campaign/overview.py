"""Where a campaign stands, from its record alone: no model is fitted, and nothing large imported,
so that the answer comes at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchridge.active.goals import EXPLORE, as_goal, is_reached
from sketchridge.active.sql import SQLStore
from sketchridge.active.stopping import reasons_to_stop, stop_rules_from
from sketchridge.active.store import Telling

__all__ = ["Overview", "overview"]


@dataclass(frozen=True)
class Overview:
    """Numbers of points and labels, rounds, and the labels that stand out."""

    target: str
    unit: str
    size: int
    labels: int
    pending: int
    failed: int
    corrected: int
    unlearned: int  # labels, or corrections, since the last round
    history: Sequence[Mapping[str, Any]]
    lowest: tuple[str, float] | None
    highest: tuple[str, float] | None
    stop: str  # why to stop, or nothing
    goal: str  # where it stands by the last round, or nothing where the campaign explores
    settings: Mapping[str, Any]

    @property
    def errors(self) -> list[float]:
        """Root mean squared leave-one-out errors by round, in units of y."""
        return [float(np.sqrt(row["loo_error"])) for row in self.history if "loo_error" in row]


def overview(store: SQLStore) -> Overview:
    """The record of a campaign, in short."""
    settings = store.settings()
    notes = settings.get("notes") or {}
    encoding = notes.get("encoding") or {}
    told = store.told()
    size = store.size()
    failed = len(store.failed())
    rounds = store.rounds()
    history = [{"round": r.number + 1, "labels": r.labels, **r.metrics} for r in rounds]
    edition = store.edition()
    last = (rounds[-1].labels, rounds[-1].edition) if rounds else (0, 0)
    rules = stop_rules_from(settings["stop"])
    return Overview(
        target=encoding.get("target", "y"),
        unit=encoding.get("unit", ""),
        size=size,
        labels=len(told),
        pending=len(store.pending()),
        failed=failed,
        corrected=edition,
        unlearned=max(len(told) - last[0], 0) + edition - last[1],
        history=history,
        lowest=_named(store, min(told, key=lambda label: label.y[0], default=None)),
        highest=_named(store, max(told, key=lambda label: label.y[0], default=None)),
        stop="; ".join(reasons_to_stop(rules, len(told), failed, size, history)),
        goal=_goal(settings, history),
        settings={**settings, "seed": notes.get("seed", settings["seed"])},
    )


def _named(store: SQLStore, label: Telling | None) -> tuple[str, float] | None:
    """A label with its point, by the table where it was told without a name: in Python, or to the
    first version."""
    if label is None:
        return None
    name = label.name or str(label.id)
    encoding = (store.settings().get("notes") or {}).get("encoding") or {}
    if encoding.get("id") is not None and not label.name:
        from sketchridge.campaign.candidates import Candidates
        from sketchridge.campaign.encoding import Encoding

        with suppress(ValueError):  # the table may not be here
            name = Candidates(Encoding.of(encoding), store).name(label.id)
    return name, float(label.y[0])


def _goal(settings: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> str:
    """The goal, and whether it was reached when points were last asked for."""
    goal = as_goal(settings.get("goal", EXPLORE))
    if goal.explores:
        return ""
    last = history[-1] if history else {}
    reached = (
        ", reached by the last round: more labels bring little" if is_reached(goal, last) else ""
    )
    return f"{goal}{reached}"
