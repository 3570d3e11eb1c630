"""The command line: a campaign from first file to report, and files that are refused whole."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from sketchridge.active import ActiveLearner
from sketchridge.active.sql import SQLStore
from sketchridge.cli.app import app

POINTS = 300


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "id": [f"S{i:03d}" for i in range(POINTS)],
            "temperature": rng.uniform(20, 90, POINTS),
            "ph": rng.integers(3, 10, POINTS),
            "catalyst": rng.random(POINTS) < 0.5,
        }
    )
    frame.write_csv("pool.csv")
    frame.write_parquet("pool.parquet")
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["campaign", *map(str, arguments)])
    text = result.output + (result.stderr if result.stderr_bytes else "")
    assert result.exit_code == code, text
    assert "Traceback" not in text
    return " ".join(text.split())


def label(path, **changes):
    """Fill a file of points as a laboratory would."""
    frame = pl.read_csv(path).with_columns((pl.col("temperature") / 20).sin().alias("yield"))
    frame.with_columns(**changes).write_csv(path)


def labels_kept():
    return len(SQLStore.open("sqlite:///campaign.db").labels()[0])


def started(rounds=2):
    run("new", "pool.csv", "--target", "yield", "--batch-size", 20)
    for r in range(rounds):
        run("ask", "-o", f"{r}.csv")
        label(f"{r}.csv")
        run("tell", f"{r}.csv")


@pytest.mark.parametrize("pool", ["pool.csv", "pool.parquet"])
def test_a_campaign_from_start_to_report(folder, pool):
    out = run("new", pool, "--target", "yield", "--batch-size", 20, "--budget", 60)
    assert "300 points with 3 features: temperature, ph, catalyst" in out
    assert "There is no model yet" in run("status")
    for r, n in enumerate((20, 15, 30)):
        options = () if n == 20 else ("-n", n)
        assert f"{n} points to measure are in {r}.csv" in run("ask", "-o", f"{r}.csv", *options)
        asked = pl.read_csv(f"{r}.csv")
        assert asked.columns == ["id", "temperature", "ph", "catalyst", "probability", "yield"]
        assert asked["yield"].null_count() == n
        label(f"{r}.csv")
        out = run("tell", f"{r}.csv")
    assert "30 labels kept, 65 in all; 0 points are pending" in out
    assert "Time to stop: 65 labels of a budget of 60" in out
    out = run("status")
    assert "65 labels and 0 pending of 300 points" in out
    assert "Leave-one-out error by round" in out
    assert "Largest yield: 0.99" in out
    assert "Expected gain of the next 20 points" in run("status", "--gain")
    run("report", "-o", "report.html")
    html = (folder / "report.html").read_text()
    assert html.count("data:image/png;base64,") == 4
    assert "http" not in html.replace("http-equiv", "")
    run("export", "-o", "labeled.csv")
    kept = pl.read_csv("labeled.csv")
    assert kept.shape == (65, 14)
    assert kept["predicted"].is_between(kept["low 95%"], kept["high 95%"]).all()
    assert kept["id"].n_unique() == 65
    np.testing.assert_allclose(kept["yield"], np.sin(kept["temperature"] / 20))


def snapshot():
    store = SQLStore.open("sqlite:///campaign.db")
    ids, labels = store.labels()
    return ids.tolist(), labels.tolist(), store.draws(), store.rounds()


def test_status_and_report_only_look(folder):
    """Between the labels of a batch too, where they once began rounds."""
    started(1)
    run("ask", "-n", 9, "-o", "batch.csv")
    label("batch.csv")
    batch = pl.read_csv("batch.csv")
    batch[:4].write_csv("first.csv")
    run("tell", "first.csv")
    before = snapshot()
    assert len(before[3]) == 1
    assert "24 labels and 5 pending" in run("status")
    run("report")
    run("pending")
    run("predict")
    run("export", "-o", "labeled.csv")
    assert snapshot() == before
    assert "4 labels or corrections since are learned at the next ask" in run("status")


def test_a_finished_campaign_has_a_report(folder):
    pl.read_csv("pool.csv")[:40].write_csv("small.csv")
    run("new", "small.csv", "--target", "yield", "--batch-size", 40)
    run("ask", "-o", "all.csv")
    label("all.csv")
    assert "every point of the pool is labeled" in run("tell", "all.csv")
    assert "every point of the pool is labeled" in run("status")
    assert "nothing left to ask for" in run("status", "--gain")
    run("report", "-o", "report.html")
    assert "nothing left to ask for" in (folder / "report.html").read_text()


def test_the_store_can_be_continued_from_python(folder):
    started()
    table = pl.read_csv("pool.csv")
    raw = table.select(pl.col("temperature", "ph", "catalyst").cast(pl.Float64)).to_numpy()
    learner = ActiveLearner.resume(
        "sqlite:///campaign.db", (raw - raw.mean(axis=0)) / raw.std(axis=0)
    )
    assert len(learner.labeled_ids_) == 40


def test_labels_in_the_pool_are_labels(folder):
    frame = pl.read_csv("pool.csv").with_columns(
        pl.when(pl.int_range(pl.len()) < 30)
        .then(pl.col("temperature") / 10)
        .otherwise(None)
        .alias("yield")
    )
    frame.write_csv("partly.csv")
    assert "30 of them are labeled already" in run("new", "partly.csv", "--target", "yield")
    run("ask", "-o", "next.csv")
    assert not set(pl.read_csv("next.csv")["id"]) & set(frame["id"][:30])


def test_lost_files_are_written_again_and_points_released(folder):
    started(1)
    run("ask", "-n", 5, "-o", "lost.csv")
    (folder / "lost.csv").rename("found.csv")
    run("pending", "-o", "again.csv")
    assert pl.read_csv("again.csv").equals(pl.read_csv("found.csv"))
    first = pl.read_csv("again.csv")["id"][0]
    assert "1 point released" in run("release", first)
    assert "4 points released" in run("release", "--all")
    assert "20 labels and 0 pending" in run("status")
    assert "Give ids to release" in run("release", code=1)
    assert "'nobody' is not in the pool" in run("release", "nobody", code=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,yield\nS001,1\nnobody,2\n", "ids that are not in the pool in row 2 ('nobody')"),
        ("id,yield\nS001,1\nS002,2\nS001,1\n", "repeated ids in rows 1, 3 ('S001')"),
        ("id,yield\nS001,\nS002,\n", "the column 'yield' is empty in all 2 rows"),
        (
            "id,yield\nS001,1\nS002,high\n",
            "no finite number in row 2 ('S002: high')",
        ),
        (
            "id,yield\nS001,1\nS002,inf\n",
            "no finite number in row 2 ('S002: inf')",
        ),
        ("id,yield\nS001,nan\n", "a 'yield' that is no finite number in row 1 ('S001: nan')"),
        (
            "id,yield\n{0},1\n[red],2\n",
            "not in the pool in rows 1, 2 ('{0}', '[red]')",
        ),
        ("id,yeild\nS001,1\n", "has no column 'yield'; it needs the ids and 'yield'"),
        ("name,yield\nS001,1\n", "has no column 'id'"),
        ("id,yield\n", "holds no labels"),
        ("", "is empty"),
    ],
)
def test_a_bad_file_is_refused_whole_and_changes_nothing(folder, text, message):
    started(1)
    (folder / "bad.csv").write_text(text)
    assert message in run("tell", "bad.csv", code=1)
    assert labels_kept() == 20


def test_labels_are_never_overwritten(folder):
    started(1)
    assert "0 labels kept, 20 in all" in run("tell", "0.csv")
    label("0.csv", **{"yield": pl.col("yield") + 1})
    assert "was refused and nothing was changed: Already labeled" in run("tell", "0.csv", code=1)
    assert labels_kept() == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("new", "nothing.csv", "--target", "y"), "There is no file nothing.csv"),
        (("new", "pool.txt", "--target", "y"), "is none of .csv, .tsv, .xlsx, .parquet"),
        (("new", "pool.csv", "--target", "y", "--id", "ph"), "must name each row once"),
        (("new", "pool.csv", "--target", "y", "--id", "name"), "has no column 'name'"),
        (("new", "pool.csv", "--target", "y", "--kernel", "gauss"), "gauss"),
        (("new", "pool.csv", "--target", "y", "--acquisition", "best"), "Unknown acquisition"),
        (("new", "pool.csv", "--target", "y", "--store", "nowhere"), "cannot be used"),
        (("status",), "There is no file campaign.db"),
        (("ask",), "There is no file campaign.db"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(folder, arguments, message):
    assert message in run(*arguments, code=1)
    assert not (folder / "campaign.db").exists()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pl.when(pl.col("ph") > 5).then(pl.lit("red")).alias("color"),
            "The category 'color' is missing in rows",
        ),
        (
            pl.when(pl.col("ph") > 5).then(1.5).alias("gaps"),
            "Features are missing or infinite in rows",
        ),
    ],
)
def test_features_must_be_complete_numbers(folder, column, message):
    pl.read_csv("pool.csv").with_columns(column).write_csv("bad.csv")
    assert message in run("new", "bad.csv", "--target", "yield", code=1)
    run("new", "bad.csv", "--target", "yield", "--ignore", column.meta.output_name())


def test_a_file_is_not_overwritten_and_no_point_handed_out_for_it(folder):
    started(1)
    assert "exists: give another name" in run("ask", "-o", "0.csv", code=1)
    assert "no folder" in run("ask", "-o", "none/1.csv", code=1)
    assert "must end in .csv or .tsv or .xlsx or .parquet" in run("ask", "-o", "1.xls", code=1)
    assert "20 labels and 0 pending" in run("status")
    run("ask", "-o", "0.csv", "--force")


def test_a_small_table_is_kept_in_the_store(folder):
    started(1)
    (folder / "pool.csv").unlink()
    run("ask", "-o", "next.csv")
    assert pl.read_csv("next.csv")["temperature"].null_count() == 0


def test_a_large_table_that_moved_or_changed(folder, monkeypatch):
    from sketchridge.active import parts
    from sketchridge.campaign import candidates

    monkeypatch.setattr(parts, "_KEPT", 100)
    monkeypatch.setattr(candidates, "_KEPT", 100)
    started(1)
    (folder / "pool.csv").rename("moved.csv")
    assert "is not there any more: say where it is with --pool" in run("pending", code=1)
    run("pending", "--pool", "moved.csv")
    pl.read_csv("moved.csv").reverse().write_csv("moved.csv")
    assert "not the pool of the campaign" in run("ask", "--pool", "moved.csv", code=1)


def test_ids_can_be_row_numbers(folder):
    pl.read_csv("pool.csv").drop("id").write_csv("plain.csv")
    run("new", "plain.csv", "--target", "yield")
    (folder / "labels.csv").write_text("id,yield\n3,1.5\n7.0,2\n")
    assert "2 labels kept" in run("tell", "labels.csv")
    (folder / "labels.csv").write_text("id,yield\n3.5,1.5\n")
    assert "not in the pool" in run("tell", "labels.csv", code=1)


def test_an_exact_campaign(folder):
    run(
        "new",
        "pool.csv",
        "--target",
        "yield",
        "--exact",
        "--score",
        "gp",
        "--acquisition",
        "top",
        "--no-scale",
    )
    run("ask", "-o", "a.csv")
    label("a.csv")
    run("tell", "a.csv")
    run("ask", "-o", "b.csv")
    assert "–" in run("status")


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (["maximize"], "The largest label so far is"),
        (["target", "0.5"], "The nearest label so far to 0.5 is"),
        (["boundary 0.5"], "of the candidates on the wrong side of 0.5"),
    ],
)
def test_a_campaign_with_a_goal(folder, goal, words):
    run("new", "pool.csv", "--target", "yield", "--batch-size", 6, "--kernel", "gaussian",
        "--goal", *goal)  # fmt: skip
    for r in range(2):
        run("ask", "-o", f"{r}.csv")
        assert "probability" not in pl.read_csv(f"{r}.csv").columns
        label(f"{r}.csv")
        run("tell", f"{r}.csv")
    assert f"Goal: {' '.join(goal)}" in run("status")
    assert words in run("status", "--gain")
    run("report")
    assert f"Points are chosen for a goal: {' '.join(goal)}" in (folder / "report.html").read_text()


def test_a_goal_that_is_reached_is_said(folder):
    run("new", "pool.csv", "--target", "yield", "--batch-size", 60, "--goal", "maximize")
    for r in range(3):
        run("ask", "-o", f"{r}.csv")
        label(f"{r}.csv")
        run("tell", f"{r}.csv")
    assert "The goal is reached: more labels bring little" in run("status", "--gain")
    run("ask", "-o", "more.csv")
    assert "Goal: maximize, reached by the last round" in run("status")


def test_a_bad_goal_is_refused_before_anything_is_made(folder):
    out = run("new", "pool.csv", "--target", "yield", "--goal", "target", code=1)
    assert "The goal 'target' needs a number, such as target 37.5" in out
    out = run("new", "pool.csv", "3", "--target", "yield", code=1)
    assert "The goal 'explore' takes no value, but '3' was given" in out
    assert not (folder / "campaign.db").exists()
