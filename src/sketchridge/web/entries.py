"""What people type into cells, understood or refused with a sentence each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from sketchridge.campaign.labels import Labels
from sketchridge.campaign.operations import Campaign
from sketchridge.campaign.values import value_of
from sketchridge.words import shown

__all__ = ["count_of", "labels_from", "typed", "understood"]

Array = np.ndarray
_MOST = 1000  # points that the page hands out at a time
_LONGEST = 80  # characters of a cell


def typed(form: Mapping[str, str], prefix: str) -> dict[int, str]:
    """Cells of a form that hold something, by rows of the pool."""
    found = {}
    for name, text in form.items():
        row = name.removeprefix(prefix)
        if name.startswith(prefix) and re.fullmatch(r"[0-9]{1,18}", row) and text.strip():
            found[int(row)] = text.strip()
    return found


def understood(
    cells: Mapping[int, str], campaign: Campaign
) -> tuple[dict[int, float], dict[int, str]]:
    """Values of cells by rows, and what is wrong with the others."""
    values, problems = {}, {}
    size = len(campaign.candidates)
    for row, text in cells.items():
        try:
            if row >= size:
                raise ValueError("This point is not in the pool any more.")
            values[row] = _value(text, campaign)
        except ValueError as error:
            problems[row] = str(error)
    return values, problems


def _value(text: str, campaign: Campaign) -> float:
    if len(text) > _LONGEST:
        raise ValueError(f"{shown(text)} is too long for a number.")
    return value_of(text, campaign.encoding, campaign.style["decimal"])


def labels_from(values: Mapping[int, float], campaign: Campaign) -> Labels:
    """Labels of rows, ready to be kept."""
    rows = np.array(list(values), dtype=np.int64)
    return Labels(rows, np.array(list(values.values())), campaign.candidates.names(rows), 0)


def count_of(text: Any) -> int:
    """How many points someone asks for.

    >>> count_of(" 5 ")
    5
    """
    bare = str(text).strip()
    if not re.fullmatch(r"[0-9]+", bare) or not 1 <= int(bare[:9]) <= _MOST or len(bare) > 9:
        raise ValueError(
            f"Ask for 1 to {_MOST:,} points at a time, not {shown(bare)}. More can be had in the "
            "terminal: sketchridge campaign ask -n."
        )
    return int(bare)
