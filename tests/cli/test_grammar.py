"""One of something and several, empty cells, titles and line ends, in sentences people can use."""

from __future__ import annotations

import pytest

from sketchridge.active.sql import SQLStore

STORE = "sqlite:///campaign.db"


@pytest.fixture
def begun(home, run):
    rows = "".join(f"S{i:02d},{i / 7:.3f}\n" for i in range(20))
    (home / "p.csv").write_text("id,a\n" + rows)
    run("new", "p.csv", "--target", "y", "--batch-size", 5)
    return home


def tell(home, run, text, code=0, name="l.csv"):
    (home / name).write_bytes(text.encode())
    return run("tell", name, code=code)


def test_one_point_has_a_verb_of_its_own(begun, run):
    assert "1 point to measure is in s.csv" in run("ask", "-n", 1, "-o", "s.csv")
    assert "1 pending point is in t.csv" in run("pending", "-o", "t.csv")
    assert "S19 has none" in run("amend", "S19", "5", code=1)
    tell(begun, run, "id,y\nS01,1\n")
    assert "1 label and 1 pending of 20 points" in run("status")
    tell(begun, run, "id,y\nS02,2\n")
    assert "S01 is labeled, and so was measured" in run("fail", "S01", code=1)
    assert "S01, S02 are labeled, and so were measured" in run("fail", "S01", "S02", code=1)
    run("ask", "-n", 2, "-o", "u.csv")
    tell(begun, run, "id,y\nS03,3\n", name="m.csv")
    assert "1 label or correction since is learned at the next ask" in run("status")


def test_fewer_points_than_asked_for(begun, run):
    out = run("ask", "-n", 1000000, "-o", "s.csv")
    assert "20 points to measure are in s.csv" in out
    assert "No more than 20 could be asked for" in out


def test_ids_and_all_are_not_given_together(begun, run):
    run("ask", "-n", 3, "-o", "s.csv")
    out = run("release", "S01", "--all", code=1)
    assert "Give ids to release, or --all, and not both" in out
    assert len(SQLStore.open(STORE).pending()) == 3


def test_a_point_that_is_given_twice_is_one(begun, run):
    assert "1 point will not be asked for again" in run("fail", "S01", "S01")
    assert "1 point released" in run("release", "S01", "S01")


def test_a_second_failure_says_that_the_first_note_stays(begun, run):
    run("fail", "S01", "--note", "broke")
    out = run("fail", "S01", "S02", "--note", "lost")
    assert "1 point will not be asked for again" in out
    assert "S01 failed before: what was noted then stays; to note something else, release" in out
    assert [one.note for one in SQLStore.open(STORE).failures()] == ["broke", "lost"]


def test_a_label_of_a_point_that_failed_is_mentioned(begun, run):
    run("fail", "S01", "S02")
    out = tell(begun, run, "id,y\nS00,1\nS01,2\n")
    assert "2 labels kept" in out
    assert "S01 was said to be beyond measuring, and has a label now" in out
    assert "beyond measuring" not in tell(begun, run, "id,y\nS03,1\n")


def test_empty_ids_are_named(begun, run):
    out = tell(begun, run, "id,y\n,3\nS04,4\n", code=1)
    assert "no id in row 1" in out
    assert "None" not in out
    assert "no id in rows 1, 2" in tell(begun, run, "id,y\n,high\n,5\nS04,4\n", code=1)


@pytest.mark.parametrize("name", ["l.csv", "l.xlsx"])
def test_a_title_above_the_header_is_recognized(begun, run, name):
    if name == "l.csv":
        out = tell(begun, run, "Batch 3,,\nid,a,y\nS01,0.143,3\n", code=1)
    else:
        import xlsxwriter

        with xlsxwriter.Workbook("l.xlsx") as book:
            page = book.add_worksheet()
            page.write(0, 0, "Batch 3")
            page.write_row(1, 0, ["id", "a", "y"])
            page.write_row(2, 0, ["S01", 0.143, 3])
        out = run("tell", "l.xlsx", code=1)
    assert "has no column 'y'; it needs the ids and 'y', and has 'Batch 3'" in out
    assert "Columns without a heading are filled: is there a title above the header?" in out
    assert "__" not in out
    assert "_duplicated" not in out


def test_line_ends_of_an_old_mac(begun, run):
    assert "2 labels kept" in tell(begun, run, "id,y\rS04,4\rS05,6\r")


def test_a_seed_below_zero(home, run):
    (home / "p.csv").write_text("id,a\nu,1\nv,2\n")
    out = run("new", "p.csv", "--target", "y", "--seed", "-1", code=2)
    assert "should be greater than or equal to 0" in out
