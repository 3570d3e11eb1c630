"""Names and values of others' files in our sentences: short, and with nothing in them that a
terminal would obey."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

__all__ = ["listed", "named_rows", "nearest", "no_column", "shown"]

_LONGEST = 60  # characters of a value
_MOST = 10  # values in a sentence


def shown(value: Any) -> str:
    """A value, quoted and cut, with control characters made visible.

    >>> shown("x" * 1000)[:5], len(shown("x" * 1000))
    ("'xxxx", 63)
    >>> shown("a\\x1b[31mb")
    "'a\\\\x1b[31mb'"
    """
    text = str(value)
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return repr(text)


def listed(values: Iterable[Any]) -> str:
    """The first few values, and how many more there are."""
    values = list(values)
    more = f" and {len(values) - _MOST} more" if len(values) > _MOST else ""
    return ", ".join(shown(value) for value in values[:_MOST]) + more


def named_rows(places: Any) -> str:
    """Rows of a table as people count them, from 1 below the header."""
    numbers = [f"{place + 1:,}" for place in np.asarray(places).tolist()]
    more = f" and {len(numbers) - _MOST} more" if len(numbers) > _MOST else ""
    word = "row" if len(numbers) == 1 else "rows"
    return f"{word} {', '.join(numbers[:_MOST])}{more}"


def no_column(table: str, name: str, names: Sequence[str], why: str = "") -> str:
    """That a table has no such column, the columns it has, and which of them may be meant.

    >>> no_column("a.csv", "z", ["size", "y"])
    "a.csv has no column 'z'; its columns are 'size', 'y'."
    """
    known = f"its columns are {listed(names)}.{nearest(name, names)}"
    return f"{table} has no column {shown(name)}{why}; {known}"


def nearest(name: str, names: Sequence[str]) -> str:
    """A question whether another name was meant, or nothing."""
    found = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1)
    if not found:
        return ""
    meant = next(n for n in names if n.lower() == found[0])
    return f" Is it the column {shown(meant)}? Rename it to {shown(name)}."
