"""The line on the terminal: shown late and where someone looks, silent elsewhere."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import rich.console
from helpers import assert_close

from sketchridge import ExactKernelRidge, SketchedKernelRidge, progress
from sketchridge.backends import NumpyTiles
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


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said, however quick the work is; ten points at a time are answered."""
    found: list[str] = []
    begin = progress._Line.__init__
    monkeypatch.setattr(progress, "_QUICK", 0)
    monkeypatch.setattr(progress._Line, "update", lambda self, text: found.append(text))
    monkeypatch.setattr(
        progress._Line, "__init__", lambda self, text: found.append(text) or begin(self, text)
    )
    monkeypatch.setattr(NumpyTiles, "block_bytes", 8 * 60 * 10)
    monkeypatch.setattr(NumpyTiles, "width_for", lambda self, n: n)
    return found


QUESTIONS: dict[str, tuple[Callable[[Any, Any], object], list[str]]] = {
    "predict": (lambda m, X: m.predict(X), ["Predicting"]),
    "return_std": (
        lambda m, X: m.predict(X, return_std=True),
        ["Predicting", "Computing variances"],
    ),
    "predict_interval": (
        lambda m, X: m.predict_interval(X),
        ["Predicting", "Computing variances", "Leaving out every row"],
    ),
    "predictive_variance": (
        lambda m, X: m.predictive_variance(X),
        ["Predicting", "Leaving out every row", "Computing variances"],
    ),
    "log_density": (
        lambda m, X: m.log_density(X, X[:, 0]),
        ["Predicting", "Computing variances", "Leaving out every row"],
    ),
    "score": (lambda m, X: m.score(X, X[:, 0]), ["Predicting"]),
    "variance": (lambda m, X: m.variance(X), ["Computing variances"]),
    "gp": (lambda m, X: m.variance(X, "gp"), ["Computing variances"]),
    "path_": (lambda m, X: m.path_, ["Computing the λ path"]),
    "loo_error_": (lambda m, X: m.loo_error_, ["Leaving out every row"]),
    "eigenvalues_": (lambda m, X: m.eigenvalues_, ["Computing eigenvalues"]),
    "effective_dof_": (lambda m, X: m.effective_dof_, ["Counting degrees of freedom"]),
    "interval_quantiles_": (lambda m, X: m.interval_quantiles_, ["Leaving out every row"]),
    "amplitude_": (lambda m, X: m.amplitude_, ["Leaving out every row"]),
}
IN_BLOCKS = {"Predicting", "Computing variances"}
MODELS = {
    "sketched": lambda: SketchedKernelRidge(alpha=0.1, sketch_size=9, random_state=0),
    "exact mean": lambda: SketchedKernelRidge(
        alpha=0.1, sketch_size=9, solver="pcg", random_state=0
    ),
    "exact": lambda: ExactKernelRidge(alpha=0.1),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_says_how_many_points_it_has_answered(
    make: Callable[[], Any], name: str, said: list[str]
) -> None:
    """Predictions, intervals, paths and leave-one-out errors showed nothing for minutes."""
    ask, texts = QUESTIONS[name]
    X = np.linspace(0, 1, 60)[:, None]
    model = make().fit(X, np.sin(6 * X[:, 0]))
    said.clear()
    ask(model, X[:35])
    assert [text for text in said if "points" not in text] == texts
    without_mean = {"Predicting"} if name == "predictive_variance" else set()
    for text in IN_BLOCKS & set(texts) - without_mean:
        assert f"{text}: 0 of 35 points" in said
        assert f"{text}: 30 of 35 points" in said


def test_answers_in_blocks_are_those_of_all_points_at_once(said: list[str]) -> None:
    X = np.linspace(0, 1, 60)[:, None]
    model = MODELS["exact mean"]().set_params(dtype="float64").fit(X, np.sin(6 * X[:, 0]))
    mean, std = model.predict(X, return_std=True)
    each = [model.predict(X[i : i + 1], return_std=True) for i in range(60)]
    assert_close(mean, np.concatenate([m for m, _ in each]))
    assert_close(std, np.concatenate([s for _, s in each]))


def test_a_question_inside_other_work_leaves_its_text_alone(said: list[str]) -> None:
    """A command that predicts row after row knows how many there are."""
    X = np.linspace(0, 1, 60)[:, None]
    model = MODELS["sketched"]().fit(X, np.sin(6 * X[:, 0]))
    said.clear()
    with status("Working"):
        model.predict_interval(X)
    assert said == ["Working"]


def test_a_question_that_fails_ends_its_status(said: list[str]) -> None:
    X = np.linspace(0, 1, 60)[:, None]
    model = MODELS["exact"]().fit(X, np.sin(6 * X[:, 0]))
    with pytest.raises(ValueError, match="y has the shape"):
        model.log_density(X, np.zeros((60, 2)))
    said.clear()
    progress.passed(1, 2)
    with status("Working"):
        progress.passed(1, 2)
    assert said == ["Working"]


def test_few_numbers_are_no_work(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A line would take longer than the answer."""
    X = np.linspace(0, 1, 60)[:, None]
    model = MODELS["sketched"]().fit(X, np.sin(6 * X[:, 0]))
    said.clear()
    monkeypatch.setattr(progress, "_QUICK", 60 * 35 + 1)
    model.predict(X[:35], return_std=True)
    assert said == []


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
