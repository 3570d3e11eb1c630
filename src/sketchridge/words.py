"""Names and values of others' files in our sentences: short, and with nothing in them that a
terminal would obey."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [
    "among",
    "closest",
    "counted",
    "first_few",
    "listed",
    "meaning",
    "named_rows",
    "no_column",
    "renaming",
    "shown",
]

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


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "point"), counted(2000, "point")
    ('1 point', '2,000 points')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def first_few(texts: Iterable[str], most: int = _MOST) -> str:
    """The first few, and how many more there are.

    >>> first_few(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    texts = list(texts)
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def listed(values: Iterable[Any]) -> str:
    """The first few values, quoted, and how many more there are."""
    return first_few(map(shown, values))


def named_rows(places: Iterable[int]) -> str:
    """Rows of a table as people count them, from 1 below the header."""
    numbers = [f"{place + 1:,}" for place in places]
    return f"{'row' if len(numbers) == 1 else 'rows'} {first_few(numbers)}"


def no_column(table: str, name: str, names: Sequence[str]) -> str:
    """That a table has no such column, the columns it has, and which of them may be meant.

    >>> no_column("a.csv", "z", ["size", "y"])
    "a.csv has no column 'z'; its columns are 'size', 'y'."
    """
    return f"{table} has no column {shown(name)}{among(names)}{meaning(name, names)}"


def among(names: Sequence[str]) -> str:
    """The end of a sentence about a column that is not there."""
    return f"; its columns are {listed(names)}."


def meaning(name: str, names: Sequence[str]) -> str:
    """A question whether another name was meant, or nothing."""
    meant = closest(name, names)
    return "" if meant is None else f" Did you mean {shown(meant)}?"


def renaming(name: str, names: Sequence[str]) -> str:
    """A question whether a file has a column that it needs under another name, or nothing."""
    meant = closest(name, names)
    if meant is None:
        return ""
    return f" Is it the column {shown(meant)}? Rename it to {shown(name)}."


def closest(name: str, names: Sequence[str]) -> str | None:
    """The name that is most like another, whatever its capitals; None where none is like it."""
    found = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1)
    return next((n for n in names if n.lower() in found), None)
