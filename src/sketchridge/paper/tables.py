"""Tables: tidy CSV with a row for each observation, written and read again."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sketchridge.paper.base import Row

__all__ = ["read_table", "write_table"]

_DIGITS = 6  # of numbers in tables


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Write rows with the union of their columns; numbers with 6 digits."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _text(value) for name, value in row.items()} for row in rows)


def read_table(path: Path) -> list[Row]:
    """The rows again: whole numbers, numbers and words; empty cells are left out."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {name: _value(text) for name, text in row.items() if text != ""}
            for row in csv.DictReader(file)
        ]


def _text(value: Any) -> Any:
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else value


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
