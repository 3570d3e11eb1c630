"""Files that a campaign writes: whatever can go wrong is found before points are handed out."""

from __future__ import annotations

import builtins

import pytest

from sketchridge.active.sql import SQLStore
from sketchridge.campaign.operations import Campaign
from sketchridge.sheets import files

STORE = "sqlite:///campaign.db"
PENDING = "The points are handed out: get them with `sketchridge campaign pending -o NAME`"


@pytest.fixture
def begun(home, run):
    rows = "".join(f"S{i:02d},{i / 7:.3f}\n" for i in range(20))
    (home / "p.csv").write_text("id,a\n" + rows)
    run("new", "p.csv", "--target", "y", "--batch-size", 5)
    return home


def pending():
    return len(SQLStore.open(STORE).pending())


def without(monkeypatch, module):
    """As if a module were not installed."""
    real = builtins.__import__

    def imported(name, *rest, **named):
        if name == module:
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", imported)


@pytest.mark.parametrize("command", ["ask", "pending", "predict", "export"])
def test_a_missing_module_is_found_first(begun, run, monkeypatch, command):
    without(monkeypatch, "xlsxwriter")
    out = run(command, "-o", "s.xlsx", code=1)
    assert "To write .xlsx install XlsxWriter" in out
    assert "handed out" not in out
    assert pending() == 0


def test_a_sheet_that_is_too_long_is_found_first(begun, run, monkeypatch):
    monkeypatch.setattr(files, "_WORKBOOK", 4)
    out = run("ask", "-n", 9, "-o", "s.xlsx", code=1)
    assert "A workbook holds 3 rows below its header, and here are 9" in out
    assert "A workbook holds 3 rows below its header, and here are 5" in run(
        "ask", "-o", "s.xlsx", code=1
    )
    assert pending() == 0
    assert "3 points to measure are in s.xlsx" in run("ask", "-n", 3, "-o", "s.xlsx")


@pytest.mark.parametrize("error", [ImportError("no"), ValueError("no"), OSError("no")])
def test_what_fails_later_says_that_the_points_are_pending(begun, run, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(files, "write_sheet", fail)
    assert PENDING in run("ask", "-o", "s.csv", code=1)
    assert pending() == 5


def test_names_are_there_before_points_are_handed_out(begun, run, monkeypatch):
    def lost(self, *rest):
        raise ValueError("The table is gone.")

    monkeypatch.setattr("sketchridge.campaign.candidates.Candidates.select", lost)
    assert "The table is gone" in run("ask", "-o", "s.csv", code=1)
    assert pending() == 0


def test_predictions_do_not_replace_the_points_they_are_for(begun, run):
    (begun / "l.csv").write_text("id,y\nS00,1\nS05,2\nS09,4\n")
    run("tell", "l.csv")
    (begun / "q.csv").write_text("a\n0.5\n")
    for options in ((), ("--force",)):
        out = run("predict", "q.csv", "-o", "q.csv", *options, code=1)
        assert "q.csv is in use here and is never overwritten: give another" in out
    assert (begun / "q.csv").read_text() == "a\n0.5\n"
    assert Campaign.open(STORE).goal.explores


def test_a_table_of_nothing_has_no_predictions(begun, run):
    (begun / "l.csv").write_text("id,y\nS00,1\nS05,2\nS09,4\n")
    run("tell", "l.csv")
    (begun / "q.csv").write_text("a\n")
    assert "q.csv has a header and no rows: give it one row at least" in run(
        "predict", "q.csv", code=1
    )
    (begun / "m.csv").write_text("id,a\n")
    assert "m.csv has a header and no rows: give it one row at least" in run("add", "m.csv", code=1)
