"""Words on the terminal: names of others are shown as they are, and never obeyed."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import Any

from rich.console import Console
from rich.text import Text

__all__ = ["are", "bars", "console", "percent", "say", "say_json", "visible"]

console = Console(soft_wrap=True, highlight=False)
_BARS = "▁▂▃▄▅▆▇█"


def say(sentence: str, *, lead: str = "") -> None:
    """Print a sentence, with a lead in bold."""
    console.print(Text.assemble((lead, "bold"), " " if lead else "", visible(sentence)))


def say_json(value: dict[str, Any]) -> None:
    """Print an object for programs, on one line."""
    sys.stdout.write(json.dumps(value, allow_nan=False, default=str) + "\n")


def visible(text: str) -> str:
    """A text in which control characters are spelled out, but for the ends of lines.

    >>> visible("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return "".join(
        c if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf") else repr(c)[1:-1]
        for c in text
    )


def are(number: int) -> str:
    """The verb of so many things."""
    return "is" if number == 1 else "are"


def percent(share: float) -> str:
    """A share as people write it.

    >>> percent(0.95), percent(0.995)
    ('95%', '99.5%')
    """
    return f"{100 * share:g}%"


def bars(values: list[float]) -> str:
    """Numbers as a row of bars."""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(_BARS[round(7 * (value - low) / span)] for value in values[-60:])
