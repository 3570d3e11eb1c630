"""What begins, is added or is asked for is there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from sketchridge.active.sql import SQLStore
from sketchridge.campaign.operations import Campaign

STORE = "sqlite:///campaign.db"
POOL = "id,a,lot,y\nA,1,L1,5\nB,2,L2,6\nC,3,L3,\nD,4,L4,\n"


@pytest.fixture
def full_disk(monkeypatch):
    """A function after which a method of stores fails."""

    def fill(name):
        def fail(self, *arguments, **options):
            raise OSError("The disk is full.")

        monkeypatch.setattr(SQLStore, name, fail)

    yield fill
    monkeypatch.undo()


def test_a_campaign_begins_with_its_labels_or_not_at_all(home, run, full_disk, monkeypatch):
    (home / "pool.csv").write_text(POOL)
    full_disk("tell")
    assert "The disk is full" in run("new", "pool.csv", "--target", "y", code=1)
    assert not (home / "campaign.db").exists()
    monkeypatch.undo()
    monkeypatch.chdir(home)
    assert "2 of them are labeled already" in run("new", "pool.csv", "--target", "y")
    told = SQLStore.open(STORE).told()
    assert [(label.id, list(label.y), label.name) for label in told] == [
        (0, [5.0], "A"),
        (1, [6.0], "B"),
    ]
    assert all(label.by and label.at for label in told)


def test_what_was_there_before_is_left_alone(home, run, full_disk, monkeypatch):
    (home / "pool.csv").write_text(POOL)
    (home / "campaign.db").touch()
    full_disk("tell")
    run("new", "pool.csv", "--target", "y", code=1)
    assert (home / "campaign.db").exists()
    monkeypatch.undo()
    monkeypatch.chdir(home)
    run("new", "pool.csv", "--target", "y")
    before = (home / "campaign.db").read_bytes()
    out = run("new", "pool.csv", "--target", "y", code=1)
    assert "already holds a campaign: go on with it (ask, tell; in Python ActiveLearner." in out
    assert (home / "campaign.db").read_bytes() == before


LOTS = {
    "a list": [[1], [2]],
    "a record": [{"a": 1}, {"a": 2}],
    "bytes": [b"1", b"2"],
}


@pytest.mark.parametrize("lot", LOTS)
@pytest.mark.parametrize("first", [True, False])
def test_cells_that_no_sheet_can_hold_are_refused(home, run, lot, first):
    """B4: they were carried along, and no sheet could be made any more."""
    frame = pl.DataFrame({"id": ["T1", "T2"], "a": [0.3, 0.4], "lot": LOTS[lot]})
    frame.write_parquet("more.parquet")
    words = "The column 'lot' of more.parquet holds"
    if first:
        assert words in run("new", "more.parquet", "--target", "y", code=1)
        assert not (home / "campaign.db").exists()
        frame.drop("lot").write_parquet("more.parquet")
        run("new", "more.parquet", "--target", "y")
        return
    (home / "pool.csv").write_text(POOL)
    run("new", "pool.csv", "--target", "y")
    out = run("add", "more.parquet", code=1)
    assert words in out
    assert "nothing was changed" in out
    assert len(Campaign.open(STORE).candidates) == 4
    run("ask", "-n", 2, "-o", "x.csv")


@pytest.mark.parametrize("lot", [[1, 2], [True, False], [0.5, None], ["x", "y"]])
def test_a_carried_column_of_another_type_is_carried_as_text(home, run, lot):
    (home / "pool.csv").write_text(POOL)
    run("new", "pool.csv", "--target", "y")
    pl.DataFrame({"id": ["T1", "T2"], "a": [0.3, 0.4], "lot": lot}).write_parquet("more.parquet")
    run("add", "more.parquet")
    run("ask", "-n", 4, "-o", "x.csv")
    run("pending", "-o", "y.csv")
    run("predict", "-o", "p.csv")
    found = dict(pl.read_csv("x.csv", infer_schema=False).select("id", "lot").iter_rows())
    assert found["C"] == "L3"
    wanted = pl.Series(lot).cast(pl.String).to_list()
    assert [found["T1"], found["T2"]] == wanted


def test_no_point_is_handed_out_where_its_sheet_cannot_be_made(home, run, monkeypatch):
    (home / "pool.csv").write_text(POOL)
    run("new", "pool.csv", "--target", "y")

    def fail(*arguments):
        raise ValueError("There is no sheet today.")

    page = Campaign.open(STORE)
    monkeypatch.setattr(page, "_sheet", fail)
    with pytest.raises(ValueError, match="no sheet today"):
        page.ask(2)
    assert not len(page.store.pending())
    assert not page.store.rounds()


def test_labels_that_are_all_equal_show_no_best(home, run):
    """C2: a chance of 50% was told, however many there were."""
    (home / "p.csv").write_text("id,a\n" + "".join(f"S{i:02d},{i}\n" for i in range(40)))
    run("new", "p.csv", "--target", "y", "--unit", "mg", "--goal", "maximize")
    (home / "l.csv").write_text("id,y\n" + "".join(f"S{i:02d},0\n" for i in range(8)))
    run("tell", "l.csv")
    out = run("status", "--gain")
    assert "All 8 labels are 0 mg: they show no candidate that is better than another" in out
    assert "chance" not in out
    run("amend", "S01", "1")
    assert "The largest label so far is 1 mg" in run("status", "--gain")


@pytest.mark.parametrize("rows", ["A,1\n", "A,1\nB,1\nC,1\n"])
def test_a_table_without_differences_is_a_sentence(home, run, rows):
    (home / "p.csv").write_text("id,a\n" + rows)
    out = run("new", "p.csv", "--target", "y", code=1)
    assert "candidate" in out
    assert "bandwidth" not in out
    assert not (home / "campaign.db").exists()


@pytest.mark.parametrize(
    ("method", "arguments", "answer"),
    [
        ("amend", ("A", "7"), (5.0, 7.0)),
        ("amend_table", (Path("l.csv"),), 1),
        ("fail", (["C"],), []),
        ("release", (None,), 1),
    ],
)
def test_what_is_said_of_a_change_is_of_it(home, run, monkeypatch, method, arguments, answer):
    """What others do at the same time waits until it is made."""
    (home / "pool.csv").write_text(POOL)
    (home / "l.csv").write_text("id,y\nA,8\n")
    run("new", "pool.csv", "--target", "y")
    run("ask", "-n", 1)
    campaign = Campaign.open(STORE)
    inside = []
    for name in ("amend", "fail", "release"):
        real = getattr(SQLStore, name)

        def watched(self, *given, real=real, **options):
            inside.append(getattr(self._database._inside, "connection", None) is not None)
            return real(self, *given, **options)

        monkeypatch.setattr(SQLStore, name, watched)
    assert getattr(campaign, method)(*arguments) == answer
    assert inside == [True]
