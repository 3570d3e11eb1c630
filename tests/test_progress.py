"""The line on the terminal: shown late and where someone looks, silent elsewhere."""

from __future__ import annotations

import io
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import rich.console

from sketchridge import SketchedKernelRidge, progress
from sketchridge.progress import status

_RealConsole = rich.console.Console


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A terminal on which everything is shown at once."""
    shown = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    monkeypatch.setattr(
        rich.console,
        "Console",
        lambda stderr: _RealConsole(file=shown, force_terminal=True, width=200),
    )
    return shown


def wait_for(text: str, screen: io.StringIO) -> bool:
    """Whether the text appears within five seconds: a timer shows it, and a thread draws it."""
    end = time.monotonic() + 5
    while text not in screen.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    return text in screen.getvalue()


def test_nothing_is_written_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with status("Working", after=0.0) as say:
        say("Still working")
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_the_latest_text(screen: io.StringIO) -> None:
    with status("Working", after=0.0) as say:
        assert wait_for("Working", screen)
        say("Almost done")
        assert wait_for("Almost done", screen)


def test_text_that_changed_before_it_was_shown_is_never_seen(screen: io.StringIO) -> None:
    with status("Working", after=0.1) as say:
        say("Almost done")
        assert wait_for("Almost done", screen)
    assert "Working" not in screen.getvalue()


def test_short_work_shows_nothing(screen: io.StringIO) -> None:
    with status("Working", after=60.0) as say:
        say("Still working")
    assert screen.getvalue() == ""


def test_people_wait_two_seconds_before_anything_is_shown() -> None:
    assert progress._PATIENCE == 2.0


def test_a_status_inside_another_replaces_its_text(screen: io.StringIO) -> None:
    with status("Fitting", after=0.0) as outer:
        assert wait_for("Fitting", screen)
        with status("Refining", after=60.0) as inner:
            assert wait_for("Refining", screen)
            assert inner == outer
            inner("Refining: step 3")
            assert wait_for("step 3", screen)


def test_after_an_inner_status_the_outer_one_goes_on(screen: io.StringIO) -> None:
    with status("Fitting", after=0.0) as say:
        with status("Refining"):
            pass
        say("Measuring the gap")
        assert wait_for("Measuring the gap", screen)


def failing_work(screen: io.StringIO) -> None:
    with status("Working", after=0.0):
        assert wait_for("Working", screen)
        raise KeyError


def test_an_error_takes_the_line_away(screen: io.StringIO) -> None:
    before = threading.active_count()
    with pytest.raises(KeyError):
        failing_work(screen)
    end = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == before
    with status("Another", after=0.0):  # which is not inside the first
        assert wait_for("Another", screen)


def test_threads_have_lines_of_their_own() -> None:
    """What one thread says does not reach the status of another."""
    found = []
    with status("Here") as say:
        thread = threading.Thread(target=lambda: found.append(_said_in("There")))
        thread.start()
        thread.join()
    assert found[0] != say


def _said_in(text: str) -> object:
    with status(text) as say:
        return say


def test_rich_is_not_needed(monkeypatch: pytest.MonkeyPatch, screen: io.StringIO) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with status("Working", after=0.0) as say:
        say("Still working")
        time.sleep(0.05)
    assert screen.getvalue() == ""


def test_a_command_writes_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_PAUSE", 0.02)
    with progress.written_out(), status("Working") as say:
        time.sleep(0.1)
        say("Almost done")
        time.sleep(0.1)
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert "Working (0 s so far)" in lines
    assert "Almost done (0 s so far)" in lines
    time.sleep(0.1)
    assert capsys.readouterr().err == ""
    with status("Working"):  # outside it there are none
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_a_notebook_shows_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setattr(
        rich.console,
        "Console",
        lambda stderr: _RealConsole(file=shown, force_terminal=True, force_jupyter=False),
    )
    with status("Working", after=0.0):
        assert wait_for("Working", shown)


def test_standard_error_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process without a console."""
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=None, modules={}))
    with status("Working", after=0.0) as say:
        say("Still working")


def test_a_fit_says_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(progress._Line, "update", lambda self, text: said.append(text))
    X = np.linspace(0, 1, 50)[:, None]
    model = SketchedKernelRidge(alpha=0.1, random_state=0, solver="pcg").fit(X, X[:, 0])
    assert "Fitting 50 rows" in said
    assert any(text.startswith("Growing the sketch: ") for text in said)
    assert "Solving for the exact mean" in said
    model.partial_fit(X[:3] + 0.001, X[:3, 0])
    assert "Appending 3 rows to 50" in said
