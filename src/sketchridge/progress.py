"""A line on the terminal that says how far long work has come, where rich is installed and someone is looking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["status"]


@contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """Show ``text`` with a spinner; the function it gives replaces the text. Silent without rich or a terminal."""
    try:
        from rich.console import Console
    except ImportError:
        yield lambda text: None
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: None
        return
    with console.status(text) as line:
        yield line.update
