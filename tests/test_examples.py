"""The examples run and do what they say."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))


def run(name: str) -> str:
    command = [sys.executable, EXAMPLES / name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_laboratory_learns_more_from_chosen_points():
    lines = run("laboratory.py").splitlines()
    errors = {line.split()[0]: float(line.split("recipes ")[1].split()[0]) for line in lines}
    assert errors["weighted"] < 0.5 * errors["uniform"]


def test_the_laboratory_is_short():
    assert len((EXAMPLES / "laboratory.py").read_text().splitlines()) < 40


def test_our_estimator_in_a_loop_of_scikit_activeml():
    error, std = runpy.run_path(str(EXAMPLES / "scikit_activeml.py"))["main"]()
    assert error < 0.3
    assert (std > 0).all()


@pytest.mark.usefixtures("defaults")
def test_only_the_interval_holds_new_observations(tmp_path):
    main = runpy.run_path(str(EXAMPLES / "variances.py"))["main"]
    interval, *others = main(str(tmp_path / "picture.png")).values()
    assert 0.9 < interval < 0.99
    assert max(others) < 0.6
    assert (tmp_path / "picture.png").stat().st_size > 10_000


@pytest.mark.usefixtures("defaults")
def test_the_questions_are_answered(tmp_path):
    main = runpy.run_path(str(EXAMPLES / "questions.py"))["main"]
    _, sure = main(str(tmp_path / "picture.png"))
    assert sure.min() < 2.5
    assert 5.5 < sure.max() < 8
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_botorch_finds_the_higher_hill(tmp_path):
    pytest.importorskip("botorch")
    main = runpy.run_path(str(EXAMPLES / "botorch_million.py"))["main"]
    found, _, _ = main(5_000, str(tmp_path / "picture.png"))
    assert np.abs(found - [0.85, 0.35]).max() < 0.15  # beyond all rows, where the best is
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_a_cluster_predicts_within_the_noise():
    lines = run("dask_cluster.py").splitlines()
    assert lines[0].startswith("backend dask")
    error, inside = (float(part.split()[-1].strip("%")) for part in lines[1].split(", "))
    assert error < 0.05
    assert 93 < inside < 97


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_example_says_what_it_shows_and_can_be_imported(path):
    """Importing it does no work: all of that is behind `if __name__ == "__main__"`."""
    source = path.read_text()
    assert ast.get_docstring(ast.parse(source))
    assert max(map(len, source.splitlines())) <= 100
    runpy.run_path(str(path), run_name="imported")
