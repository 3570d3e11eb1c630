"""How far long work has come: a line on the terminal or in a notebook, where rich is installed, and
plain lines for commands whose output goes elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Say", "answering", "passed", "status", "written_out"]

Say = Callable[[str], None]
_PATIENCE = 2.0  # seconds before anything is shown
_QUICK = 2**14  # kernel values that are no work
_PAUSE = 10.0  # seconds between plain lines
_inside = threading.local()
_plain = threading.Event()


@contextmanager
def written_out() -> Iterator[None]:
    """Inside it, how far work has come is said where there is no terminal too, a line at a time."""
    _plain.set()
    try:
        yield
    finally:
        _plain.clear()


@contextmanager
def status(text: str, *, after: float = _PATIENCE) -> Iterator[Callable[[str], None]]:
    """Show ``text`` with a spinner once the work has taken ``after`` seconds.

    The function it gives replaces the text; inside another status it replaces the text of that one,
    which an empty text leaves alone.
    Silent without rich, and without a terminal or a notebook unless inside `written_out`.
    """
    outer = getattr(_inside, "say", None)
    if outer is not None:
        if text:
            outer(text)
        yield outer
        return
    line = _line(text, after)
    _inside.say = line.update
    try:
        yield line.update
    finally:
        _inside.say = None
        line.close()


@contextmanager
def answering(text: str, work: float = float("inf")) -> Iterator[None]:
    """The status of a question, with the points that have `passed`.

    Inside another question it replaces that one's text; inside any other status, which knows more
    of what is going on, and for few kernel values of ``work``, it says nothing.
    """
    asked = getattr(_inside, "question", None)
    elsewhere = asked is None and getattr(_inside, "say", None) is not None
    if elsewhere or asked == text or (asked is None and work < _QUICK):
        yield
        return
    with status(text):
        _inside.question = text
        try:
            yield
        finally:
            _inside.question = asked


def passed(done: int, of: int) -> None:
    """Say how many points have been answered, where that is a question's status."""
    if getattr(_inside, "question", None) is not None:
        _inside.say(f"{_inside.question}: {done:,} of {of:,} points")


def _line(text: str, after: float) -> _Line:
    console = _console()
    if console is not None:
        return _Spinner(text, after, console)
    return _Lines(text, _PAUSE) if _plain.is_set() and sys.stderr else _Line(text)


class _Line:
    """What is being done, which nobody sees."""

    def __init__(self, text: str) -> None:
        self.text = text

    def update(self, text: str) -> None:
        self.text = text

    def close(self) -> None:
        pass


class _Spinner(_Line):
    """A line that appears late, follows the text and goes without a trace."""

    def __init__(self, text: str, after: float, console: Any) -> None:
        super().__init__(text)
        self.console = console
        self.lock = threading.Lock()
        self.status: Any = None
        self.closed = False
        self.timer = _timer(after, self._show)

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


class _Lines(_Line):
    """Every now and then a line with the text and the seconds so far, for logs."""

    def __init__(self, text: str, pause: float) -> None:
        super().__init__(text)
        self.pause = pause
        self.begun = time.monotonic()
        self.lock = threading.Lock()
        self.timer = _timer(pause, self._write)

    def _write(self) -> None:
        seconds = time.monotonic() - self.begun
        with self.lock:
            if self.timer is not None:
                print(f"{self.text} ({seconds:.0f} s so far)", file=sys.stderr, flush=True)
                self.timer = _timer(self.pause, self._write)

    def close(self) -> None:
        with self.lock:
            self.timer.cancel()
            self.timer = None


def _timer(seconds: float, function: Callable[[], None]) -> Any:
    timer = threading.Timer(seconds, function)
    timer.daemon = True
    timer.start()
    return timer


def _console() -> Any:
    """Rich's console on a terminal or in a notebook; None where nobody is looking."""
    terminal = bool(sys.stderr) and sys.stderr.isatty()
    if not terminal and "IPython" not in sys.modules:
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(stderr=True)
    return console if console.is_terminal or console.is_jupyter else None
