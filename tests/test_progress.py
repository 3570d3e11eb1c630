"""The line on the terminal: shown where someone looks, silent elsewhere."""

from __future__ import annotations

import io
import sys

import pytest
import rich.console

from sketchridge.progress import status


def test_nothing_is_written_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with status("Working") as say:
        say("Still working")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_the_latest_text(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(rich.console, "Console", lambda stderr: _RealConsole(file=screen, force_terminal=True))
    with status("Working") as say:
        say("Still working")
    assert "working" in screen.getvalue().lower()


def test_rich_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with status("Working") as say:
        say("Still working")


_RealConsole = rich.console.Console
