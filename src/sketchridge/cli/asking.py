"""Labels beyond the range: someone at the terminal is asked whether they are right."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

import typer

from sketchridge.cli.say import say

__all__ = ["asked_about"]

T = TypeVar("T")


def asked_about(work: Callable[[bool], T], yes: bool) -> T:
    """Do something with labels; where they are out of range ask someone, if anyone is there."""
    from sketchridge.campaign.labels import OutOfRange

    try:
        return work(yes)
    except OutOfRange as error:
        if not sys.stdin.isatty():
            raise
        say(str(error))
        if not typer.confirm("Keep them?"):
            raise typer.Exit(1) from None
    return work(True)
