"""Published numbers do not depend on defaults: every setting of every estimator is written out."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import sketchridge
from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge

REPOSITORY = Path(__file__).parents[1]
PAPER = Path(sketchridge.__file__).parent / "paper"
BENCHMARKS = REPOSITORY / "benchmarks"
DEMO = REPOSITORY / "examples" / "demo.py"
CLASSES = (ExactKernelRidge, SketchedKernelRidge, ActiveLearner)
GIVEN = {"estimator", "pool"}  # what a learner works with, and not settings
PINNED = {cls.__name__: set(inspect.signature(cls).parameters) - GIVEN for cls in CLASSES}
FILES = [*sorted(PAPER.rglob("*.py")), *sorted(BENCHMARKS.glob("*.py")), DEMO]


def calls(source: str) -> list[tuple[str, set[str | None]]]:
    """Each construction of an estimator or a learner: its class, and the keywords it is given.

    Keywords from an unpacked dictionary have the name None.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in PINNED:
                found.append((name, {keyword.arg for keyword in node.keywords}))
    return found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("f(1)", []),
        ("ExactKernelRidge(alpha=1)", [("ExactKernelRidge", {"alpha"})]),
        ("x.y.ExactKernelRidge('linear')", [("ExactKernelRidge", set())]),
        ("SketchedKernelRidge(dtype='auto', **more)", [("SketchedKernelRidge", {"dtype", None})]),
    ],
)
def test_the_reader_of_calls_sees_every_form(source, expected):
    assert calls(source) == expected


def test_the_settings_are_known():
    assert {"kernel", "bandwidth", "alpha", "fit_intercept"} <= PINNED["ExactKernelRidge"]
    assert {"sketch", "solver", "dtype", "random_state"} <= PINNED["SketchedKernelRidge"]
    assert {"batch_size", "acquisition", "score"} <= PINNED["ActiveLearner"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_setting_is_written_out(path):
    for name, keywords in calls(path.read_text(encoding="utf-8")):
        assert None not in keywords
        assert keywords >= PINNED[name]


@pytest.mark.parametrize("folder", [PAPER, BENCHMARKS], ids=lambda folder: folder.name)
def test_estimators_are_made_in_one_file_of_a_folder(folder):
    for path in folder.rglob("*.py"):
        made = {name for name, _ in calls(path.read_text(encoding="utf-8"))} - {"ActiveLearner"}
        assert not made or path == folder / "settings.py"


@pytest.mark.parametrize(
    ("make", "cls"),
    [("automatic_ridge", SketchedKernelRidge), ("automatic_exact_ridge", ExactKernelRidge)],
)
def test_the_settings_called_automatic_are_the_defaults(make, cls, defaults, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    settings = importlib.import_module("settings")
    options = {"random_state": None} if cls is SketchedKernelRidge else {}
    found = getattr(settings, make)(**options).get_params()
    assert found == cls().get_params()
