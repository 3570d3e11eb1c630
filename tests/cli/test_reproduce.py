"""`sketchridge reproduce`: from names to a report."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from sketchridge.cli.app import app


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["reproduce", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return " ".join((result.output + result.stderr).split())


def test_a_figure_with_its_report_and_the_same_tables_again(tmp_path):
    text = run("fig1a", "fig2", "--out", tmp_path)
    assert "fig1a: rate 1/n" in text
    tables = {path.name: path.read_text() for path in (tmp_path / "tables").iterdir()}
    assert set(tables) == {"claims.csv", "fig1a.csv", "fig2.csv"}
    assert "The paper, reproduced" in (tmp_path / "report.html").read_text()
    other = tmp_path / "again"
    run("fig1a", "fig2", "--out", other)
    assert {path.name: path.read_text() for path in (other / "tables").iterdir()} == tables


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fig9",), "Unknown experiment 'fig9': give 'all'"),
        (("fig5", "--data", "nowhere"), "no folder nowhere"),
    ],
)
def test_what_is_not_there_is_said(arguments, message, tmp_path):
    assert message in run(*arguments, "--out", tmp_path, code=1)
