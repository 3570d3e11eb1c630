"""Tables that stay where they are are recognized before a name becomes a row: no label, failure or
question ever goes to another point because a file has changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sketchridge.active import ActiveLearner, parts
from sketchridge.active.sql import SQLStore
from sketchridge.campaign import candidates, operations, sources
from sketchridge.campaign.operations import Campaign

STORE = "sqlite:///campaign.db"
POINTS = 40
POOL = pl.DataFrame(
    {"id": [f"S{i:02d}" for i in range(POINTS)], "a": [i / POINTS for i in range(POINTS)]}
).with_columns(lot=pl.lit("a long note") + pl.col("id"))


def put(frame, name):
    writers = {"csv": frame.write_csv, "parquet": frame.write_parquet}
    writers[name.rpartition(".")[2]](name)


def kept():
    store = SQLStore.open(STORE)
    told = [(label.id, list(label.y)) for label in store.told()]
    return told, store.draws(), store.failures(), store.changes(), store.size()


@pytest.fixture(params=["pool.csv", "pool.parquet", "kept.csv"])
def pool(request, home, run, monkeypatch):
    """A campaign whose table is too large for the store; its features may be small enough."""
    monkeypatch.setattr(candidates, "_KEPT", 0)
    if request.param != "kept.csv":
        monkeypatch.setattr(parts, "_KEPT", 0)
    monkeypatch.setattr(sources, "_LARGE", 0)
    monkeypatch.setattr(sources, "_PIECE", 16)
    put(POOL, request.param)
    run("new", request.param, "--target", "y")
    (home / "first.csv").write_text("id,y\nS01,1\nS02,2\nS09,3\n")
    run("tell", "first.csv")
    run("ask", "-n", 3, "-o", "asked.csv")
    return request.param


CHANGES = {
    "other order": POOL.reverse(),
    "shorter": POOL[:5],
    "longer": pl.concat([POOL, POOL[:1].with_columns(id=pl.lit("new"))]),
    "an id": POOL.with_columns(id=pl.col("id").replace("S20", "T20")),
    "ids that run together": POOL.with_columns(
        id=pl.col("id").replace(["S10", "S11"], ["S10S", "11"])
    ),
    "a feature": POOL.with_columns(a=pl.col("a").replace(0.5, 0.51)),
}
COMMANDS = [
    ("tell", "l.csv"),
    ("amend", "S01", "5"),
    ("amend", "m.csv"),
    ("retract", "S01"),
    ("fail", "S05"),
    ("release", "S05"),
    ("ask", "-n", "2", "-o", "x.csv"),
    ("pending", "-o", "x.csv"),
    ("predict", "-o", "x.csv"),
    ("export", "-o", "x.csv"),
    ("add", "more.csv"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_done_with_another_table(home, run, pool, change):
    (home / "l.csv").write_text("id,y\nS03,42\n")
    (home / "m.csv").write_text("id,y\nS01,42\n")
    (home / "more.csv").write_text("id,a,lot\nN1,0.3,x\n")
    before = kept()
    put(CHANGES[change], pool)
    for command in COMMANDS:
        out = run(*command, code=1)
        assert "is not the pool of the campaign" in out, command
        assert "Put the file back as it was, or say where it is with --pool" in out
        assert kept() == before
        assert not (home / "x.csv").exists()
    assert "3 labels" in run("status")
    put(POOL, pool)
    run("tell", "l.csv")
    run("export", "-o", "e.csv")
    assert dict(pl.read_csv("e.csv").select("id", "y").iter_rows())["S03"] == 42


def test_it_is_recognized_by_its_values(home, run, pool):
    """What is written otherwise, or carried along, is the same table."""
    (home / pool).unlink()
    put(POOL.with_columns(lot=pl.lit("another note")), "moved.parquet")
    assert "is not there any more: say where it is with --pool" in run("fail", "S05", code=1)
    run("fail", "S05", "--pool", "moved.parquet")
    assert SQLStore.open(STORE).failures()[0].id == 5
    (home / "folder").mkdir()
    put(POOL, f"folder/{pool}")
    run("release", "S05", "--pool", "folder")
    out = run("pending", "-o", "moved.parquet", "--pool", "moved.parquet", "--force", code=1)
    assert "never overwritten" in out


def test_a_page_sees_that_its_table_changes(home, run, pool):
    page = Campaign.open(STORE)
    page.fail(["S05"])
    put(POOL.reverse(), pool)
    if pool.endswith(".csv"):
        return  # it is in memory
    with pytest.raises(ValueError, match="is not the pool of the campaign"):
        page.pending()
    put(POOL, pool)
    assert len(page.pending()) == 3


@pytest.mark.parametrize("change", [None, "other order"])
def test_a_campaign_that_has_no_fingerprint_of_its_table_yet(home, run, pool, change):
    store = SQLStore.open(STORE)
    with store._database.writing() as connection:
        connection.exec_driver_sql(
            "UPDATE sketchridge_files SET about = json_remove(about, '$.fingerprint')"
        )
    if change is None:
        run("fail", "S05")
        return
    put(CHANGES[change], pool)
    assert "is not the pool of the campaign" in run("fail", "S05", code=1)


def test_tables_that_were_added_are_recognized_and_may_move_too(home, run, pool):
    put(POOL[:4].with_columns(id="T" + pl.col("id")), "more.csv")
    put(POOL[:4].with_columns(id="U" + pl.col("id")), "most.csv")
    run("add", "more.csv")
    run("add", "most.csv")
    shutil.move("more.csv", "elsewhere.csv")
    out = run("fail", "TS01", code=1)
    assert "more.csv is not there any more: say where it is with --pool" in out
    run("fail", "TS01", "--pool", "elsewhere.csv")
    (home / "folder").mkdir()
    shutil.move("elsewhere.csv", "folder/more.csv")
    shutil.move("most.csv", "folder/most.csv")
    run("fail", "US01", "--pool", "folder")
    assert [f.id for f in SQLStore.open(STORE).failures()] == [POINTS + 1, POINTS + 5]
    put(POOL[:4].with_columns(id="V" + pl.col("id")), "folder/more.csv")
    assert "is not the pool of the campaign" in run("fail", "US02", "--pool", "folder", code=1)


def test_a_file_that_is_no_parquet_any_more_is_a_sentence(home, run, pool):
    (home / pool).write_text("gone")
    out = run("fail", "S05", code=1)
    assert "fault" not in out
    assert pool in out or "cannot be read" in out


# Columns of a table that is read in pieces


@pytest.fixture
def pieces(home, monkeypatch):
    monkeypatch.setattr(sources, "_LARGE", 0)
    monkeypatch.setattr(sources, "_PIECE", 64)


def test_a_column_of_text_is_judged_as_a_whole(home, run, pieces):
    """B8: its first piece alone was looked at."""
    n = 200
    frame = pl.DataFrame(
        {
            "id": [f"S{i}" for i in range(n)],
            "a": [i / n for i in range(n)],
            "lot": [f"L{i % 2}" if i < 64 else f"L{i % 30}" for i in range(n)],
            "kind": [f"K{i % 2}" if i < 64 else f"K{i % 5}" for i in range(n)],
        }
    )
    frame.write_parquet("p.parquet")
    out = run("new", "p.parquet", "--target", "y")
    assert "with 2 features: a, kind" in out
    assert "carried along to the bench: lot" in out
    assert "kind is a category: K0, K1, K2, K3, K4" in out
    run("ask", "-n", 3, "-o", "x.csv")


@pytest.mark.parametrize("cell", ["0,5", "n/a"])
def test_numbers_as_text_that_are_none(home, run, pieces, cell):
    a = [f"{i / 200}" for i in range(200)]
    a[150] = cell
    pl.DataFrame({"id": [f"S{i}" for i in range(200)], "a": a}).write_parquet("p.parquet")
    out = run("new", "p.parquet", "--target", "y", code=1)
    assert "fault" not in out
    assert f"'{cell}'" in out
    assert "The column 'a' of p.parquet holds" in out


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("a", "Features are missing or infinite in row 151 of"),
        ("b", "'b' is missing in row 151 of"),
    ],
)
def test_rows_of_a_table_in_pieces_are_counted_in_the_file(home, run, pieces, column, sentence):
    whole = pl.DataFrame({"a": [i / 200 for i in range(200)], "b": ["x", "y"] * 100})
    gone = pl.int_range(200, eager=True) == 150
    frame = whole.with_columns(whole[column].set(gone, None))
    frame.write_parquet("p.parquet")
    assert sentence in run("new", "p.parquet", "--target", "y", code=1)
    whole.write_parquet("p.parquet")
    run("new", "p.parquet", "--target", "y")
    frame.write_parquet("m.parquet")
    assert sentence in run("add", "m.parquet", code=1)


# Points without a name


def test_points_that_were_added_in_python_give_no_name_to_another(home, run):
    """Ids of later tables were shifted, and labels went to wrong points."""
    put(POOL, "pool.csv")
    run("new", "pool.csv", "--target", "y")
    put(POOL.with_columns(id="T" + pl.col("id")), "more.csv")
    ActiveLearner.resume(STORE).add(np.full((3, 1), 0.2))
    for command in (("add", "more.csv"), ("fail", "S05"), ("ask",)):
        out = run(*command, code=1)
        assert "The pool has 3 points that are in none of its tables" in out
        assert "Continue the campaign in Python with ActiveLearner.resume" in out
    assert kept()[4] == POINTS + 3


def test_two_processes_that_add_the_same_table(home, run, monkeypatch):
    put(POOL, "pool.csv")
    run("new", "pool.csv", "--target", "y")
    put(POOL.with_columns(id="T" + pl.col("id")), "more.csv")
    one, other = Campaign.open(STORE), Campaign.open(STORE)
    before = operations.described

    def described(*arguments):
        """What the first looks at when the second comes between."""
        monkeypatch.setattr(operations, "described", before)
        other.add(Path("more.csv"))
        return before(*arguments)

    monkeypatch.setattr(operations, "described", described)
    with pytest.raises(ValueError, match="have ids that the pool has already"):
        one.add(Path("more.csv"))
    assert kept()[4] == 2 * POINTS


def test_names_that_are_there_twice_are_of_no_point(home, run, monkeypatch):
    put(POOL, "pool.csv")
    run("new", "pool.csv", "--target", "y")
    put(POOL, "more.csv")
    monkeypatch.setattr(Campaign, "_check_new", lambda *arguments: None)
    run("add", "more.csv")
    assert "The pool has more than one point 'S05', so that" in run("fail", "S05", code=1)


def test_a_category_that_is_missing_in_a_later_table_is_refused(home, run):
    """It became a row of zeros."""
    put(POOL.with_columns(b=pl.Series(["x", "y"] * (POINTS // 2))), "pool.csv")
    run("new", "pool.csv", "--target", "y", "--category", "b")
    later = pl.DataFrame({"id": ["T1", "T2"], "a": [0.1, 0.2], "lot": "n", "b": ["x", None]})
    put(later, "more.csv")
    out = run("add", "more.csv", code=1)
    assert "The category 'b' is missing in row 2 of more.csv: fill these cells first." in out
    (home / "l.csv").write_text("id,y\nS01,1\nS02,2\n")
    run("tell", "l.csv")
    assert "is missing in row 2 of" in run("predict", "more.csv", "-o", "p.csv", code=1)


def test_a_column_without_a_value_is_carried_along(home, run):
    put(POOL.with_columns(note=pl.lit(None, dtype=pl.String)), "pool.csv")
    out = run("new", "pool.csv", "--target", "y")
    assert "1 feature: a" in out
    assert "carried along to the bench: lot, note" in out
