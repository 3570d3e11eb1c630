"""Which column names the rows and which holds the labels, however their headings are written."""

from __future__ import annotations

import polars as pl
import pytest

from sketchridge.active.sql import SQLStore
from sketchridge.campaign.operations import Campaign

STORE = "sqlite:///campaign.db"
ROWS = "".join(f"{i + 1},{i / 7:.3f}\n" for i in range(12))
LABELED = "".join(f"S{i},{i / 7:.3f},{i}\n" for i in range(12))


def write(home, name, text):
    (home / name).write_text(text, encoding="utf-8")
    return name


def labels():
    store = SQLStore.open(STORE)
    names = Campaign.open(STORE).candidates.names(store.labels()[0])
    return dict(zip(names, store.labels()[1][:, 0].tolist(), strict=True))


# Names of rows


@pytest.mark.parametrize("name", ["ID", "Id", "iD", " Id "])
def test_the_column_of_ids_may_be_written_in_capitals(home, run, name):
    write(home, "p.csv", f"{name},a\n{ROWS}")
    assert "12 points with 1 feature: a." in run("new", "p.csv", "--target", "y")
    bare = name.strip()
    run("ask", "-n", 2, "-o", "s.csv")
    assert pl.read_csv("s.csv").columns[0] == bare
    out = run("tell", write(home, "l.csv", "row,y\n3,300\n"), code=1)
    assert f"has no column '{bare}', which names the points" in out
    run("tell", write(home, "l.csv", f"{bare},y\n3,300\n"))
    assert labels() == {"3": 300.0}
    assert Campaign.open(STORE).store.labels()[0].tolist() == [2]


def test_a_parquet_table_may_have_blanks_in_its_heading(home, run):
    pl.DataFrame({" ID ": ["u", "v", "w"], "a": [1.0, 2.5, 4.0]}).write_parquet("p.parquet")
    assert "3 points with 1 feature: a." in run("new", "p.parquet", "--target", "y")


def test_two_columns_of_ids_are_asked_about(home, run):
    write(home, "p.csv", "ID,Id,a\n1,u,0.5\n2,v,0.7\n")
    out = run("new", "p.csv", "--target", "y", code=1)
    assert "p.csv has the columns 'ID', 'Id', and each may name the rows: choose one" in out
    assert "1 feature: a" in run("new", "p.csv", "--target", "y", "--id", "ID", "--ignore", "Id")


@pytest.mark.parametrize("header", ["ID", "Id", "row", "number"])
def test_nobody_is_told_to_rename_a_column_to_that_of_row_numbers(home, run, header):
    write(home, "p.csv", "a\n" + "".join(f"{i / 7:.3f}\n" for i in range(12)))
    run("new", "p.csv", "--target", "y")
    out = run("tell", write(home, "l.csv", f"{header},y\n3,300\n"), code=1)
    assert "has no column 'id'" in out
    assert "Rename" not in out
    assert "rows of this campaign are named by their numbers, from 0" in out
    assert labels() == {}


@pytest.mark.parametrize("table", ["id,a\nu,1\nv,2.5\n", "a\n1\n2.5\n", "ID,a\nu,1\nv,2\n"])
def test_what_names_the_rows_is_not_measured(home, run, table):
    write(home, "p.csv", table)
    target = "ID" if "ID" in table else "id"
    out = run("new", "p.csv", "--target", target, code=1)
    assert f"The target cannot be '{target}', which names the rows: give it another name" in out
    assert not (home / "campaign.db").exists()


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("Sample,a\n" + "".join(f"T{i * 7},{i / 7}\n" for i in range(12)), "Sample"),
        ("No,a\n" + "".join(f"{i + 1},{i / 7}\n" for i in range(12)), "No"),
        ("No,a\n" + "".join(f"{11 - i},{i / 7}\n" for i in range(12)), "No"),
    ],
)
def test_a_column_that_may_name_the_rows_is_mentioned(home, run, table, column):
    write(home, "p.csv", table)
    out = run("new", "p.csv", "--target", "y")
    assert "Note: The rows are named by their numbers, from 0" in out
    assert f"The column '{column}' has another value in each row: to name them by it" in out
    assert f"--id {column}" in out
    again = run("new", "p.csv", "--target", "y", "--id", column, "--store", "sqlite:///b.db")
    assert "Note" not in again


@pytest.mark.parametrize(
    "table",
    [
        "n,a\n" + "".join(f"{i},{i / 7}\n" for i in range(12)),
        "kind,a\n" + "".join(f"{'uv'[i % 2]},{i / 7}\n" for i in range(12)),
        "b,a\n" + "".join(f"{i * i},{i / 7}\n" for i in range(12)),
    ],
)
def test_other_columns_are_not(home, run, table):
    write(home, "p.csv", table)
    assert "Note" not in run("new", "p.csv", "--target", "y")


# Labels


@pytest.mark.parametrize(
    "heading", ["y", "y [mg/L]", "y (mg/L)", "y [ mg/L ]", "y[mg/L]", "y  (mg/L)"]
)
def test_the_unit_may_stand_in_any_brackets(home, run, heading):
    write(home, "p.csv", f"id,a,{heading}\n{LABELED}")
    out = run("new", "p.csv", "--target", "y", "--unit", "mg/L")
    assert "1 feature: a" in out
    assert "12 of them are labeled already" in out
    out = run("add", write(home, "more.csv", f"id,a,{heading}\nT1,0.5,7\nT2,0.7,\n"))
    assert "2 candidates added, 1 of them labeled already" in out
    run("ask", "-n", 1, "-o", "s.csv")
    assert pl.read_csv("s.csv").columns == ["id", "a", "probability", "y [mg/L]"]
    run("tell", write(home, "l.csv", f"id,{heading}\nT2,8\n"))
    assert labels()["T2"] == 8.0


@pytest.mark.parametrize(
    ("heading", "unit", "sentence"),
    [
        ("y [g/L]", "mg/L", "gives 'y' in 'g/L', but the campaign has it in mg/L"),
        ("y (g/L)", "mg/L", "gives 'y' in 'g/L', but the campaign has it in mg/L"),
        ("y (mg/L)", "", "gives 'y' in 'mg/L', but the campaign has it without a unit"),
        ("Y", "mg/L", "has no column 'y', but 'Y'"),
        ("Y [mg/L]", "mg/L", "has no column 'y', but 'Y [mg/L]'"),
    ],
)
def test_a_target_under_another_heading_is_asked_about(home, run, heading, unit, sentence):
    options = ("--target", "y", "--unit", unit)
    write(home, "p.csv", f"id,a,{heading}\n{LABELED}")
    assert sentence in run("new", "p.csv", *options, code=1)
    assert not (home / "campaign.db").exists()
    assert "1 feature: a" in run("new", "p.csv", *options, "--ignore", heading)
    (home / "campaign.db").unlink()
    write(home, "p.csv", f"id,a,y\n{LABELED}")
    run("new", "p.csv", *options)
    assert sentence in run("add", write(home, "m.csv", f"id,a,{heading}\nT1,0.5,7\n"), code=1)
    out = run("tell", write(home, "l.csv", f"id,{heading}\nS3,8\n"), code=1)
    assert sentence.partition(", but 'Y")[0] in out


def test_a_target_in_capitals_is_no_feature(home, run):
    """But where the target is there too, it is another column."""
    write(home, "p.csv", "id,T,t\n" + LABELED)
    assert "1 feature: T" in run("new", "p.csv", "--target", "t")
    assert len(labels()) == 12
    assert "1 candidate added" in run("add", write(home, "m.csv", "id,T\nT1,0.5\n"))


def test_two_columns_of_labels_are_refused(home, run):
    write(home, "p.csv", "id,a,y,y [mg/L]\n" + "".join(f"S{i},{i / 7},1,2\n" for i in range(9)))
    options = ("--target", "y", "--unit", "mg/L")
    sentence = "has more than one column of labels, 'y', 'y [mg/L]': remove one"
    assert sentence in run("new", "p.csv", *options, code=1)
    write(home, "p2.csv", "id,a\n" + "".join(f"S{i},{i / 7}\n" for i in range(9)))
    run("new", "p2.csv", *options)
    text = "id,y,y [mg/L]\nS1,1,2\n"
    assert sentence in run("tell", write(home, "l.csv", text), code=1)
    text = "id,a,y,y [mg/L]\nT1,0.5,1,2\n"
    assert sentence in run("add", write(home, "m.csv", text), code=1)
    assert labels() == {}


def test_a_target_with_its_unit_in_brackets(home, run):
    write(home, "p.csv", f"id,a,y (g/L)\n{LABELED}")
    out = run("new", "p.csv", "--target", "y (g/L)", "--unit", "mg/L", code=1)
    assert "The target 'y (g/L)' has a unit already, 'g/L', and mg/L was given" in out
    run("new", "p.csv", "--target", "y (g/L)", "--unit", "g/L")
    encoding = Campaign.open(STORE).encoding
    assert (encoding.target, encoding.heading) == ("y", "y [g/L]")
    assert len(labels()) == 12


def test_a_feature_that_an_earlier_version_took_for_one_stays_one(home, run):
    """Campaigns on record go on."""
    write(home, "p.csv", "id,a,z [g/L]\n" + LABELED)
    run("new", "p.csv", "--target", "y")
    campaign = Campaign.open(STORE)
    plain = campaign.encoding.plain() | {"target": "z", "unit": "mg/L"}
    from sketchridge.campaign.encoding import Encoding

    old = Encoding.of(plain)
    assert old.label_column(["id", "a", "z [g/L]"], "p.csv") is None
    assert old.label_column(["id", "a", "z [g/L]", "z"], "p.csv") == "z"
