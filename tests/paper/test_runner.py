"""Experiments run once, go on after an interruption, and are written down."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from sketchridge.paper.base import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Estimate,
    Experiment,
    estimate,
    groups,
    slope,
    verdict,
)
from sketchridge.paper.report import write_report
from sketchridge.paper.runner import run_experiments
from sketchridge.plotting import new_figure


class Squares(Experiment):
    """Cells that leave a trace each time they run."""

    name = "squares"
    title = "Squares"
    choices = "none"

    def __init__(
        self, folder: Path, *, alone: bool = False, fails: int | None = None, missing: bool = False
    ) -> None:
        self.folder = folder
        self.alone = alone
        self.fails = fails
        self.missing = missing

    def cells(self, full):
        return [{"x": x} for x in range(6 if full else 3)]

    def run(self, cell, data):
        if self.missing:
            raise FileNotFoundError("no squares here")
        if cell["x"] == self.fails:
            raise KeyboardInterrupt
        with (self.folder / f"trace-{cell['x']}").open("a") as trace:
            trace.write("x")
        return [{"x": cell["x"], "square": cell["x"] ** 2, "data": str(data)}]

    def figure(self, rows: Sequence[dict]):
        figure, (ax,) = new_figure()
        ax.plot([row["x"] for row in rows], [row["square"] for row in rows])
        return figure

    def claims(self, rows):
        return [
            Claim("squares: grow", "x² grows", f"{rows[-1]['square']}", HOLDS),
            Claim("squares: fall", "x² falls", "no", FAILS),
        ]


def run(experiment, folder, full=False, data=None):
    told = []
    results = run_experiments(
        [experiment], folder, full=full, data=data, say=lambda *args: told.append(args)
    )
    return results[0], told


@pytest.mark.parametrize("alone", [False, True])
def test_cells_run_once_and_their_rows_come_in_order(tmp_path, alone):
    result, told = run(Squares(tmp_path, alone=alone), tmp_path)
    assert [row["square"] for row in result.rows] == [0, 1, 4]
    assert told == [("squares", k, 3) for k in (1, 2, 3)]
    again, told = run(Squares(tmp_path, alone=alone), tmp_path, full=True)
    assert [row["square"] for row in again.rows] == [0, 1, 4, 9, 16, 25]
    assert told == [("squares", k, 6) for k in (4, 5, 6)]
    assert all((tmp_path / f"trace-{x}").read_text() == "x" for x in range(6))


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Squares(tmp_path, alone=True, fails=2), tmp_path)
    result, told = run(Squares(tmp_path, alone=True), tmp_path)
    assert told == [("squares", 3, 3)]
    assert [row["square"] for row in result.rows] == [0, 1, 4]
    assert (tmp_path / "trace-0").read_text() == "x"
    assert not list(tmp_path.rglob("*.part"))


def test_missing_data_are_a_remark_and_not_the_end(tmp_path):
    result, told = run(Squares(tmp_path, missing=True), tmp_path)
    assert result.missing == "no squares here"
    assert result.rows == told == []
    path = write_report([result], tmp_path, full=False, command="x")
    assert "Not run: no squares here" in path.read_text()


def test_the_report_has_figures_tables_settings_and_claims(tmp_path):
    result, _ = run(Squares(tmp_path), tmp_path, data=tmp_path)
    html = write_report(
        [result], tmp_path, full=False, command="sketchridge reproduce squares"
    ).read_text()
    assert html.count("data:image/png;base64,") == 1
    assert '<td class="good">holds</td>' in html
    assert '<td class="bad">does not hold</td>' in html
    assert "of 2 claims 1 holds, 1 does not hold, 0 cannot be decided" in html
    for suffix in ("png", "pdf"):
        assert (tmp_path / "figures" / f"squares.{suffix}").stat().st_size > 1000
    with (tmp_path / "tables" / "squares.csv").open() as file:
        assert [row["square"] for row in csv.DictReader(file)] == ["0", "1", "4"]
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings["experiments"]["squares"]["cells"] == [{"x": 0}, {"x": 1}, {"x": 2}]


def test_estimates():
    assert estimate([2.0]) == Estimate(2.0, 2.0, 2.0)
    found = estimate([1.0, 2.0, 3.0])
    assert found.mean == 2
    assert abs(found.high - found.mean - 4.302652729911275 / np.sqrt(3)) < 1e-9
    power = slope([1, 10, 100], [5, 0.5, 0.05])
    assert abs(power.mean + 1) < 1e-12
    assert str(Estimate(1.23456, 1, 2)) == "1.23 [1, 2]"


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(1, 2, HOLDS), (-2, -1, FAILS), (-1, 1, OPEN)]
)
def test_verdicts(low, high, expected):
    assert verdict(Estimate((low + high) / 2, low, high), lambda x: x > 0) == expected


def test_groups_keep_their_order():
    rows = [{"a": 2, "b": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 3}]
    assert groups(rows, "a") == {(2,): [rows[0], rows[2]], (1,): [rows[1]]}
