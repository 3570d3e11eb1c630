"""A campaign that the first version started from the terminal."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sketchridge.active.sql import SQLStore

SCRIPT = Path(__file__).parents[1] / "active" / "version1" / "sketched.sql"


@pytest.fixture
def old(home):
    """Its pool is that of a table beside it, scaled as the first version did."""
    ids = [f"{i:03d}" for i in range(40)]
    return begun(home, {"id": ids}, ["a", "b"])


def begun(home, ids, names):
    """A campaign whose features have these names."""
    rng = np.random.default_rng(0)
    a, b = names
    frame = pl.DataFrame({**ids, a: rng.random(40), b: rng.integers(0, 9, 40)})
    frame.write_csv("pool.csv")
    raw = frame.select(pl.col(a, b).cast(pl.Float64)).to_numpy()
    X = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    from sketchridge.active.pool import Pool

    with sqlite3.connect(home / "campaign.db") as database:
        database.executescript(SCRIPT.read_text())
        (text,) = database.execute("SELECT settings FROM sketchridge_campaign").fetchone()
        settings = json.loads(text)
        settings["fingerprint"] = Pool(X).fingerprints[0]
        path = str(home / "pool.csv")
        settings["notes"] = {"path": path, "target": "y", "id": None, "ignore": [], "scale": True}
        update = "UPDATE sketchridge_campaign SET settings = ?, pool = NULL"
        database.execute(update, [json.dumps(settings)])
    database.close()
    return home


def test_it_is_brought_over_and_goes_on(old, run):
    assert "campaign migrate" in run("status", code=1)
    labels = 15
    assert "tables of version 1 and can be continued" in run("migrate")
    assert f"{labels} labels and 2 pending of 40 points" in run("status")
    run("ask", "-n", 4, "-o", "next.csv")
    sheet = pl.read_csv("next.csv", infer_schema=False)
    assert sheet.columns == ["id", "a", "b", "probability", "y"]
    run("migrate")


def test_labels_without_a_name_are_shown_by_the_ids_of_the_table(old, run):
    """`status` named points of the first version, and those told in Python, by their rows."""
    run("migrate")
    store = SQLStore.open("sqlite:///campaign.db")
    ids, Y = store.labels()
    best, worst = ids[Y[:, 0].argmax()], ids[Y[:, 0].argmin()]
    shown = run("status")
    assert f"({best:03d}); least: " in shown
    assert f"({worst:03d})." in shown


def test_it_waits_for_its_table(old, run):
    (old / "pool.csv").rename(old / "moved.csv")
    assert "say where it is with --pool" in run("migrate", code=1)
    pl.read_csv("moved.csv").reverse().write_csv("other.csv")
    assert "not the table that the campaign began from" in run(
        "migrate", "--pool", "other.csv", code=1
    )
    run("migrate", "--pool", "moved.csv")
    assert len(SQLStore.open("sqlite:///campaign.db").labels()[0]) == 15


@pytest.mark.parametrize("names", [["ID", "b"], ["a", "Y"], ["y [g/L]", "b"]])
def test_what_the_first_version_took_for_a_feature_stays_one(home, run, names):
    begun(home, {}, names)
    run("migrate")
    run("ask", "-n", 4, "-o", "next.csv")
    sheet = pl.read_csv("next.csv", infer_schema=False)
    assert sheet.columns == ["id", *names, "probability", "y"]
    filled = sheet.with_columns(y=pl.lit("1.5"))
    filled.write_csv("filled.csv")
    assert "4 labels kept" in run("tell", "filled.csv")
