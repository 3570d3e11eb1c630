"""`sketchridge reproduce`: from names to a report."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from sketchridge.cli.app import app


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["reproduce", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return " ".join((result.output + result.stderr).split())


def tables(folder):
    return {path.name: path.read_text() for path in (folder / "tables").iterdir()}


def test_a_figure_with_its_report_and_the_same_tables_again(tmp_path):
    options = ("fig1b", "fig2", "--repetitions", 2, "--n", 120, "--jobs", 2, "--out")
    text = run(*options, tmp_path)
    assert "fig1b: rate 1/n" in text
    first = tables(tmp_path)
    assert set(first) == {"claims.csv", "fig1b.csv", "fig2.csv"}
    assert "The paper, reproduced" in (tmp_path / "report.html").read_text()
    other = tmp_path / "again"
    run(*options, other)
    assert tables(other) == first
    run("fig1b", "fig2", "--report", "--out", tmp_path)
    assert tables(tmp_path) == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fig9",), "Unknown experiment 'fig9': give 'all'"),
        (("fig5", "--data", "nowhere"), "no folder nowhere"),
        (("fig5",), "Nothing was run. fig5: load_weather needs a folder"),
        (("fig2", "--report"), "There is nothing to report. fig2: there is no"),
        (("fig2", "--m", "9999"), "Figure 2 has 500 points"),
        (("fig3-1", "--m", "4"), "fig3-1 has no --m: those that have it are fig2"),
    ],
)
def test_what_is_not_there_is_said(arguments, message, tmp_path):
    assert message in run(*arguments, "--out", tmp_path, code=1)
