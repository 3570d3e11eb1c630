"""What the page's tables show: points with their features, labels with their past, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import polars as pl

from sketchridge.active.store import Change, Failure, Telling
from sketchridge.campaign.operations import Campaign

__all__ = ["Label", "Leaf", "Point", "labels_of", "leaf", "number", "points_of", "released", "when"]

Array = np.ndarray
LEAF = 50  # rows of a table at a time


@dataclass(frozen=True)
class Point:
    """A candidate: its row in the pool, its name, and its other cells."""

    row: int
    name: str
    cells: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Label:
    """A label that was told, with what it was before."""

    row: int
    name: str
    value: float
    by: str
    at: str
    changes: Sequence[Change] = ()

    @property
    def exact(self) -> str:
        """Its value with all digits, as it can be typed again."""
        return repr(self.value).removesuffix(".0")


@dataclass(frozen=True)
class Leaf:
    """Some rows of a long table, and where the others are."""

    rows: Sequence[Any]
    number: int = 1
    count: int = 1
    total: int = 0


def leaf(rows: Sequence[Any], number: int, size: int = LEAF) -> Leaf:
    """The rows of a page of a table, the last one where there are not so many.

    >>> leaf(range(120), 3)
    Leaf(rows=range(100, 120), number=3, count=3, total=120)
    """
    count = max(ceil(len(rows) / size), 1)
    number = min(max(number, 1), count)
    return Leaf(rows[(number - 1) * size : number * size], number, count, len(rows))


def points_of(campaign: Campaign, rows: Sequence[int]) -> list[Point]:
    """Points with the cells that go along to the bench."""
    candidates = campaign.candidates
    chosen = np.asarray(rows, dtype=np.int64)
    if not len(chosen):
        return []
    empty = pl.Series(campaign.encoding.heading, [None] * len(chosen), dtype=pl.Float64)
    frame = candidates.select(chosen, {}, empty)
    names = frame.columns[1:-1]
    return [
        Point(row, str(cells[0]), [(n, number(c)) for n, c in zip(names, cells[1:-1], strict=True)])
        for row, cells in zip(chosen.tolist(), frame.iter_rows(), strict=True)
    ]


def labels_of(campaign: Campaign) -> list[Label]:
    """All labels, the newest first."""
    changes: dict[int, list[Change]] = {}
    for change in campaign.store.changes():
        changes.setdefault(change.id, []).append(change)
    told = campaign.store.told()
    return [_label(campaign, one, changes.get(one.id, [])) for one in reversed(told)]


def _label(campaign: Campaign, one: Telling, changes: Sequence[Change]) -> Label:
    name = one.name or campaign.candidates.name(one.id)
    return Label(one.id, name, float(one.y[0]), one.by, one.at, changes)


def released(campaign: Campaign) -> tuple[list[int], list[Failure]]:
    """Points that were given back and can be asked for again: those that were drawn, and those
    that had failed."""
    store = campaign.store
    taken = set(store.taken().tolist())
    drawn = dict.fromkeys(draw.id for draw in store.draws() if draw.released)
    failed = {one.id: one for one in store.failures() if one.withdrawn}
    return (
        [row for row in drawn if row not in taken],
        [one for row, one in failed.items() if row not in taken],
    )


def number(value: Any) -> str:
    """A cell as people read it.

    >>> number(0.1 + 0.2), number(12), number(None), number("S1")
    ('0.3', '12', '–', 'S1')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def when(moment: str) -> str:
    """A moment on record, to the minute.

    >>> when("2026-03-01T14:05:31+00:00")
    '2026-03-01 14:05 UTC'
    """
    return f"{moment[:10]} {moment[11:16]} UTC" if len(moment) >= 16 else moment


def past_of(changes: Sequence[Change]) -> list[Mapping[str, str]]:
    """Corrections of a label, the newest first."""
    return [
        {
            "was": number(float(c.old[0])),
            "became": "taken back" if c.new is None else number(float(c.new[0])),
            "by": c.by,
            "at": when(c.at),
            "note": c.note,
        }
        for c in reversed(changes)
    ]
