"""A line on the terminal that says how far long work has come, where rich is installed and someone
is looking."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["status"]

_PATIENCE = 2.0  # seconds before anything is shown
_inside = threading.local()


@contextmanager
def status(text: str, *, after: float = _PATIENCE) -> Iterator[Callable[[str], None]]:
    """Show ``text`` with a spinner once the work has taken ``after`` seconds.

    The function it gives replaces the text; inside another status it replaces the text of that one,
    which an empty text leaves alone.
    Silent without rich or a terminal.
    """
    outer = getattr(_inside, "say", None)
    if outer is not None:
        if text:
            outer(text)
        yield outer
        return
    line = _Line(text, after)
    _inside.say = line.update
    try:
        yield line.update
    finally:
        _inside.say = None
        line.close()


class _Line:
    """The line itself, which appears late and goes without a trace."""

    def __init__(self, text: str, after: float) -> None:
        self.text = text
        self.lock = threading.Lock()
        self.status: Any = None
        self.closed = False
        self.console = _terminal()
        self.timer = threading.Timer(after, self._show)
        self.timer.daemon = True
        if self.console is not None:
            self.timer.start()

    def _show(self) -> None:
        with self.lock:
            if not self.closed:
                self.status = self.console.status(self.text)
                self.status.start()

    def update(self, text: str) -> None:
        with self.lock:
            self.text = text
            if self.status is not None:
                self.status.update(text)

    def close(self) -> None:
        self.timer.cancel()
        with self.lock:
            self.closed = True
            if self.status is not None:
                self.status.stop()


def _terminal() -> Any:
    """The terminal, or None where nobody is looking."""
    if not sys.stderr or not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(stderr=True)
    return console if console.is_terminal else None
