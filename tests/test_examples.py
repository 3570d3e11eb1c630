"""The examples run and do what they say."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name):
    return subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, text=True, check=True
    ).stdout


def test_the_laboratory_learns_more_from_chosen_points():
    errors = [
        float(line.split("recipes ")[1].split()[0]) for line in run("laboratory.py").splitlines()
    ]
    assert errors[0] < 0.5 * errors[1]


def test_the_laboratory_is_short():
    assert len((EXAMPLES / "laboratory.py").read_text().splitlines()) < 40


def test_our_estimator_in_a_loop_of_scikit_activeml():
    error, std = runpy.run_path(str(EXAMPLES / "scikit_activeml.py"))["main"]()
    assert error < 0.3
    assert (std > 0).all()
