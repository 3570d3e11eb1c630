"""Tables as laboratories have them: ids that are text, other separators, text and categories, and
files that a campaign never overwrites."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sketchridge.active.sql import SQLStore
from sketchridge.campaign.operations import Campaign
from sketchridge.sheets.files import read_sheet, write_sheet

STORE = "sqlite:///campaign.db"
HEADER = "id;temperature;solvent;remark\n"
ROWS = "".join(
    f"{i:03d};{20 + i / 4:.2f};{'ABC'[i % 3]};shelf {i}\n".replace(".", ",") for i in range(60)
)


def write(home, name, text):
    (home / name).write_text(text)
    return name


def labels():
    store = SQLStore.open(STORE)
    names = Campaign.open(STORE).candidates.names(store.labels()[0])
    return dict(zip(names, store.labels()[1][:, 0].tolist(), strict=True))


# Ids are text


def test_a_label_goes_to_the_id_that_was_written(home, run):
    """H5: 007 is not 7, and 1.10 is not 1.1."""
    write(home, "p.csv", "id,a\n007,0.1\n7,0.2\nA1,0.3\n1.10,0.4\n1.1,0.5\n")
    run("new", "p.csv", "--target", "y")
    run("tell", write(home, "l.csv", "id,y\n007,42\n1.10,43\n"))
    assert labels() == {"007": 42.0, "1.10": 43.0}
    run("export", "-o", "e.csv")
    kept = pl.read_csv("e.csv", infer_schema=False)
    assert kept["id"].to_list() == ["007", "1.10"]
    assert kept["a"].to_list() == ["0.1", "0.4"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".parquet"])
def test_what_ask_wrote_can_be_told(home, run, suffix):
    write(home, "p.csv", "id,a\n" + "".join(f"{i:03d},{i / 7}\n" for i in range(30)))
    run("new", "p.csv", "--target", "y", "--batch-size", 8)
    run("ask", "-o", f"sheet{suffix}")
    sheet = read_sheet(home / f"sheet{suffix}").frame
    filled = sheet.with_columns(pl.Series("y", np.arange(8.0)))
    write_sheet(filled, home / f"filled{suffix}")
    assert "8 labels kept" in run("tell", f"filled{suffix}")
    assert labels() == dict(zip(sheet["id"].to_list(), np.arange(8.0), strict=True))


# Separators, decimals, encodings


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("p.csv", lambda text: text.encode()),
        ("p.csv", lambda text: b"\xef\xbb\xbf" + text.encode()),
        ("p.csv", lambda text: ("sep=;\n" + text).replace("\n", "\r\n").encode()),
        ("p.csv", lambda text: text.encode("utf-16")),
        ("p.csv", lambda text: text.replace("remark", "Größe").encode("cp1252")),
        ("p.tsv", lambda text: text.replace(";", "\t").encode()),
        ("p.csv", lambda text: (text + ";;;\n;;;\n").encode()),
    ],
)
def test_spreadsheets_of_any_country(home, run, name, change):
    (home / name).write_bytes(change(HEADER + ROWS))
    out = run("new", name, "--target", "yield", "--batch-size", 5)
    assert "60 points with 2 features: temperature, solvent" in out
    assert "solvent is a category: A, B, C" in out
    run("ask", "-o", "sheet.csv")
    text = (home / "sheet.csv").read_text(encoding="utf-8-sig")
    assert text.startswith("id;temperature;")
    assert "," in text.splitlines()[1].split(";")[1]
    sheet = read_sheet(home / "sheet.csv").frame
    filled = sheet.with_columns(pl.Series("yield", ["1,5", "2,5", "3,5", "", ""]))
    filled.write_csv(home / "filled.csv", separator=";")
    out = run("tell", "filled.csv")
    assert "3 labels kept, 3 in all; 2 points are pending (2 rows had no label yet)" in out
    assert sorted(labels().values()) == [1.5, 2.5, 3.5]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_spreadsheets_see_that_a_sheet_is_in_utf_8(home, run, suffix):
    """Without the mark a spreadsheet on Windows shows yield [Âµg/L], and saves it so."""
    write(home, "p.csv", "id,a,place\n" + "".join(f"{i},{i / 7},Köln\n" for i in range(9)))
    run("new", "p.csv", "--target", "yield", "--unit", "µg/L", "--ignore", "place")
    run("ask", "-n", 2, "-o", f"sheet{suffix}")
    assert (home / f"sheet{suffix}").read_bytes().startswith(b"\xef\xbb\xbfid")
    assert read_sheet(home / f"sheet{suffix}").frame.columns[-1] == "yield [µg/L]"
    write_sheet(pl.DataFrame({"id": ["1", None]}), home / f"plain{suffix}")
    assert (home / f"plain{suffix}").read_bytes().startswith(b"id")


def test_decimal_commas_between_commas_are_explained(home, run):
    """As LibreOffice writes them, in quotes, where commas separate the columns."""
    write(home, "p.csv", 'id,a\nS1,"20,5"\nS2,"21,7"\nS3,"22,9"\n')
    out = run("new", "p.csv", "--target", "y", code=1)
    assert "where commas separate the columns decimals need points: save it with semicolons" in out


def test_decimal_commas_and_points_are_not_mixed(home, run):
    write(home, "p.csv", HEADER + "1;20,5;A;x\n2;20.7;A;y\n")
    assert "decimal commas ('20,5' in 'temperature') and decimal points" in run(
        "new", "p.csv", "--target", "y", code=1
    )
    write(home, "p.csv", HEADER + "1;1.020,5;A;x\n2;20,7;A;y\n")
    assert "'1.020,5', which are no numbers here" in run("new", "p.csv", "--target", "y", code=1)


# Text, categories, units


def test_text_goes_along_to_the_bench(home, run):
    write(home, "p.csv", HEADER + ROWS)
    assert "carried along to the bench: remark" in run("new", "p.csv", "--target", "y")
    run("ask", "-n", 4, "-o", "sheet.xlsx")
    sheet = read_sheet(home / "sheet.xlsx").frame
    assert sheet.columns == ["id", "temperature", "solvent", "remark", "probability", "y"]
    assert all(r == f"shelf {int(i)}" for i, r in zip(sheet["id"], sheet["remark"], strict=True))


def test_categories_are_one_hot_and_remembered(home, run):
    write(home, "p.csv", HEADER + ROWS)
    run("new", "p.csv", "--target", "y", "--ignore", "remark")
    campaign = Campaign.open(STORE)
    X = campaign.learner.pool_[np.arange(60)]
    assert X.shape == (60, 4)
    np.testing.assert_array_equal(X[:, 1:], np.eye(3)[np.arange(60) % 3])
    np.testing.assert_allclose([X[:, 0].mean(), X[:, 0].std()], [0, 1], atol=1e-12)
    write(home, "more.csv", "id,temperature,solvent\nx1,90,B\nx2,95,D\n")
    out = run("add", "more.csv", code=1)
    assert "'solvent' has values in more.csv that the campaign's table did not have: 'D'" in out
    write(home, "more.csv", "id,temperature,solvent\nx1,90,B\nx2,95,A\n")
    assert "2 candidates added" in run("add", "more.csv")
    campaign = Campaign.open(STORE)
    scale = campaign.encoding.features[0]
    new = campaign.learner.pool_[np.array([60, 61])]
    np.testing.assert_array_equal(new[:, 1:], [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_allclose(new[:, 0], (np.array([90, 95]) - scale.mean) / scale.spread)


def test_a_column_that_is_said_to_be_a_category_is_one(home, run):
    write(home, "p.csv", "id,plate,x\n" + "".join(f"{i},{i % 4},{i / 3}\n" for i in range(20)))
    out = run("new", "p.csv", "--target", "y", "--category", "plate")
    assert "plate is a category: 0, 1, 2, 3" in out


def test_units_and_ranges(home, run):
    write(home, "p.csv", "id,x\n" + "".join(f"s{i},{i / 3}\n" for i in range(20)))
    run("new", "p.csv", "--target", "yield", "--unit", "mg/L", "--range", "0:100")
    run("ask", "-n", 3, "-o", "sheet.csv")
    assert "yield [mg/L]" in (home / "sheet.csv").read_text()
    run("tell", write(home, "a.csv", "id,yield\ns0,10 mg/L\ns1,20\n"))
    out = run("tell", write(home, "b.csv", "id,yield [mg/L]\ns2,10000\n"), code=1)
    assert "expected from 0 to 100 mg/L, but 1 label is not (s2: 10000)" in out
    assert "--yes" in out
    assert "in 'g/L', but the campaign has it in mg/L" in run(
        "tell", write(home, "c.csv", "id,yield [g/L]\ns2,1\n"), code=1
    )
    assert "has labels with 'g/L' behind the number" in run(
        "tell", write(home, "d.csv", "id,yield\ns2,1 g/L\n"), code=1
    )
    assert labels() == {"s0": 10.0, "s1": 20.0}
    run("tell", "b.csv", "--yes")
    assert labels()["s2"] == 10000.0
    assert "--range needs two numbers" in run(
        "new", "p.csv", "--target", "y", "--range", "9:1", "--store", "sqlite:///b.db", code=1
    )


# Corrections, failures, further candidates


def simple(home, run, rows=20, **options):
    write(home, "p.csv", "id,x\n" + "".join(f"s{i},{i / 3}\n" for i in range(rows)))
    run("new", "p.csv", "--target", "y", "--batch-size", 5)
    text = "id,y\n" + "".join(f"s{i},{i**0.5}\n" for i in range(6))
    run("tell", write(home, "l.csv", text))


def test_a_label_is_amended(home, run):
    simple(home, run)
    out = run("amend", "s3", "7,5", "--by", "Ada", "--note", "misread")
    assert "s3 was 1.73205 and is 7.5" in out
    assert labels()["s3"] == 7.5
    out = run("tell", write(home, "again.csv", "id,y\ns3,8\n"), code=1)
    assert "Already labeled, with another value: s3" in out
    assert "amend" in out
    assert "1 label corrected" in run("amend", "again.csv")
    assert "(2 corrected)" in run("status")
    assert "s9 has none" in run("amend", "s9", "1", code=1)
    assert "'high' is no finite number" in run("amend", "s3", "high", code=1)
    run("report")
    html = (home / "report.html").read_text()
    assert "Ada" in html
    assert "misread" in html


def test_a_label_is_taken_back(home, run):
    simple(home, run)
    run("retract", "s2", "--note", "another tube")
    assert "s2" not in labels()
    assert "5 labels and 0 pending" in run("status")


def test_what_failed_is_not_asked_for(home, run):
    simple(home, run)
    assert "2 points will not be asked for again" in run("fail", "s7", "s8", "--note", "broken")
    run("ask", "-n", 20, "-o", "rest.csv")
    assert not {"s7", "s8"} & set(read_sheet(home / "rest.csv").frame["id"])
    assert "(2 failed)" in run("status")
    assert "s1 is labeled, and so was measured" in run("fail", "s1", code=1)
    assert "Give ids that cannot be measured" in run("fail", code=1)
    run("release", "s7")
    run("ask", "-o", "again.csv")
    assert read_sheet(home / "again.csv").frame["id"].to_list() == ["s7"]


def test_candidates_are_added_from_another_kind_of_file(home, run):
    simple(home, run)
    more = pl.DataFrame({"id": ["t1", "t2"], "x": [9.5, 10.5], "y": [None, 3.0], "lot": ["a", "b"]})
    write_sheet(more, home / "more.xlsx")
    assert "2 candidates added, 1 of them labeled already" in run("add", "more.xlsx")
    assert labels()["t2"] == 3.0
    assert "of 22 points" in run("status")
    assert "rows 1, 2 have ids that the pool has already" in run("add", "more.xlsx", code=1)
    run("ask", "-n", 20, "-o", "all.csv")
    sheet = read_sheet(home / "all.csv").frame
    assert sheet.filter(pl.col("id") == "t1")["lot"].to_list() == ["a"]


# Predictions


def test_notes_on_the_terminal_speak_of_its_options(home, run):
    write(home, "p.csv", "id,a,y\n" + "".join(f"S{i},{i / 7},{i % 5}\n" for i in range(9)))
    run("new", "p.csv", "--target", "y")
    out = run("predict", "-o", "out.csv")
    assert "Give more rows, or a lower --confidence." in out
    assert "method" not in out


def test_predictions_for_all_candidates_and_for_a_file(home, run):
    simple(home, run)
    assert "20 predictions with 90% intervals" in run("predict", "--confidence", 0.9)
    frame = pl.read_csv("predictions.csv")
    names = ["predicted", "low 90%", "high 90%"]
    budget = ["sd of the mean", "sd of the bias", "sd of the noise"]
    assert frame.columns == ["id", "x", *names, *budget, "y"]
    assert frame["y"].null_count() == 14
    assert (frame["low 90%"] <= frame["predicted"]).all()
    model = Campaign.open(STORE).learner.estimator_
    X = Campaign.open(STORE).learner.pool_[slice(None)]
    total = sum(frame[name] ** 2 for name in budget)
    np.testing.assert_allclose(total, model.predictive_variance(X), rtol=1e-8)
    run("predict", write(home, "where.csv", "x\n0\n1\n"), "-o", "there.xlsx")
    there = read_sheet(home / "there.xlsx").frame
    assert there.columns[:2] == ["x", "predicted"]
    assert abs(float(there["predicted"][0]) - frame["predicted"][0]) < 1e-9
    assert "has no column 'x'" in run(
        "predict", write(home, "no.csv", "z\n0\n"), "-o", "no.xlsx", code=1
    )


# Names that mean something to a terminal, a page or a spreadsheet


@pytest.mark.parametrize(
    "name",
    ["[/red]", "[bold]", "round", "probability", "self", "rows", "<script>x</script>", "=1+2"],
)
def test_any_name_of_a_target_or_a_feature_will_do(home, run, name):
    """M9."""
    rows = "".join(f"=cmd{i}(),{i / 3},{i % 3}\n" for i in range(12))
    write(home, "p.csv", f"id,{name},other\n{rows}")
    run("new", "p.csv", "--target", "y", "--store", "sqlite:///a.db")
    run("new", "p.csv", "--target", name, "--store", STORE)
    assert len(labels()) == 12
    run("ask", "-n", 3, "-o", "s.csv", "--store", "sqlite:///a.db")
    sheet = (home / "s.csv").read_text()
    assert "\n'=cmd" in sheet
    assert not any(cell.startswith("=") for line in sheet.splitlines() for cell in line.split(","))
    run("status")
    run("export", "-o", "e.csv")
    kept = read_sheet(home / "e.csv").frame
    assert [float(v) for v in kept[name]] == [i / 3 for i in range(12)]
    assert kept["id"].to_list() == [f"=cmd{i}()" for i in range(12)]
    run("report")
    html = (home / "report.html").read_text()
    assert "<script>" not in html


@pytest.mark.parametrize("name", ["probability", "round", "predicted", "[/x]", "=1+2"])
def test_the_sheet_for_a_target_of_any_name_can_be_told(home, run, name):
    write(home, "p.csv", "id,x\n" + "".join(f"A{i},{i}\n" for i in range(9)))
    run("new", "p.csv", "--target", name)
    run("ask", "-n", 3, "-o", "s.csv")
    head, *lines = (home / "s.csv").read_text().splitlines()
    write(home, "s.csv", "\n".join([head, *(f"{line}{i}.5" for i, line in enumerate(lines))]))
    run("tell", "s.csv")
    assert sorted(labels().values()) == [0.5, 1.5, 2.5]
    run("export", "-o", "e.csv")
    assert sorted(float(v) for v in read_sheet(home / "e.csv").frame[name]) == [0.5, 1.5, 2.5]


def test_what_a_terminal_would_obey_is_spelled_out(home, run):
    write(home, "p.csv", "id,x\na\x1b[31m,1\nb,2\n")
    run("new", "p.csv", "--target", "y")
    out = run("tell", write(home, "l.csv", "id,y\nc\x1b[2J,1\n"), code=1)
    assert "\x1b" not in out
    assert "c\\x1b[2J" in out


def test_a_huge_cell_is_not_shown_whole(home, run):
    write(home, "p.csv", "id,x\na,1\nb,2\n")
    run("new", "p.csv", "--target", "y")
    out = run("tell", write(home, "l.csv", f"id,y\na,{'9x' * 1_000_000}\n"), code=1)
    assert len(out) < 1000


# Files that are there already


def test_nothing_of_a_campaign_is_ever_overwritten(home, run):
    """H6: not even by force."""
    simple(home, run)
    before = labels()
    for output in ("campaign.db", "p.csv"):
        for command in ("report", "export", "predict", "ask", "pending"):
            run(command, "-o", output, code=1)
            run(command, "-o", output, "--force", code=1)
    assert labels() == before
    assert (home / "p.csv").read_text().startswith("id,x\n")
    write(home, "report.html", "mine")
    assert "exists" in run("report", code=1)
    assert (home / "report.html").read_text() == "mine"
    run("report", "--force")
    assert "Campaign" in (home / "report.html").read_text()
    assert "must end in .html" in run("report", "-o", "report.csv", code=1)


def test_a_file_is_written_whole_or_not_at_all(home, run, monkeypatch):
    simple(home, run)
    write(home, "old.csv", "precious")

    def full(self, file, **options):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    out = run("ask", "-o", "old.csv", "--force", code=1)
    assert "No space left on device" in out
    assert "campaign pending" in out
    assert (home / "old.csv").read_text() == "precious"
    monkeypatch.undo()
    assert sorted(p.name for p in home.iterdir()) == ["campaign.db", "l.csv", "old.csv", "p.csv"]


# Errors


@pytest.mark.parametrize("error", [RuntimeError("no GPU"), MemoryError(), TypeError("a fault")])
def test_any_error_is_a_sentence(home, run, monkeypatch, error):
    """B19."""
    simple(home, run)

    def broken(self, n=None):
        raise error

    monkeypatch.setattr(Campaign, "ask", broken)
    assert "Error: " in run("ask", code=1)


def test_an_interruption_is_a_sentence(home, run, monkeypatch):
    simple(home, run)

    def broken(self, n=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(Campaign, "ask", broken)
    assert "Interrupted" in run("ask", code=130)


def test_the_version_is_told():
    from typer.testing import CliRunner

    from sketchridge import __version__
    from sketchridge.cli.app import app

    assert CliRunner().invoke(app, ["--version"]).output.strip() == f"sketchridge {__version__}"


# A table that is read in pieces


def test_a_large_table_is_read_in_pieces(home, run, monkeypatch):
    from sketchridge.active import parts
    from sketchridge.campaign import candidates, sources

    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "id": [f"{i:04d}" for i in range(500)],
            "x": rng.normal(5, 2, 500),
            "kind": rng.choice(["A", "B"], 500),
            "remark": [f"shelf {i}" for i in range(500)],
            "y": [float(i) if i < 9 else None for i in range(500)],
        }
    )
    frame.write_parquet("p.parquet")
    sheets = []
    for large in (False, True):
        if large:
            monkeypatch.setattr(sources, "_LARGE", 100)
            monkeypatch.setattr(sources, "_PIECE", 64)
            monkeypatch.setattr(candidates, "_KEPT", 100)
            monkeypatch.setattr(parts, "_KEPT", 100)
        store = ("--store", f"sqlite:///{large}.db")
        out = run("new", "p.parquet", "--target", "y", "--batch-size", 7, *store)
        assert "500 points with 2 features: x, kind" in out
        assert "9 of them are labeled already" in out
        run("ask", "-o", f"{large}.csv", *store)
        sheets.append(read_sheet(home / f"{large}.csv").frame)
        campaign = Campaign.open(store[1])
        feature = campaign.encoding.features[0]
        np.testing.assert_allclose(
            [feature.mean, feature.spread], [frame["x"].mean(), frame["x"].std(ddof=0)]
        )
        X = campaign.candidates.matrix()
        assert isinstance(X, np.memmap) == large
        np.testing.assert_allclose(X[:, 0], (frame["x"] - feature.mean) / feature.spread)
        run("add", write(home, "more.csv", "id,x,kind\nz1,5,A\n"), *store)
        run("predict", "-o", f"{large}.parquet", *store)
        assert pl.read_parquet(f"{large}.parquet")["id"].to_list()[-1] == "z1"
    assert sheets[0]["id"].to_list() == sheets[1]["id"].to_list()
    assert sheets[0]["remark"].to_list() == sheets[1]["remark"].to_list()


def test_what_a_workbook_cannot_hold(home):
    from datetime import date

    frame = pl.DataFrame({"id": ["1"], "day": [date(2026, 1, 2)], "x": [float("inf")]})
    write_sheet(frame, home / "a.xlsx")
    assert read_sheet(home / "a.xlsx").frame["day"].to_list() == ["2026-01-02"]
    long = pl.DataFrame({"x": np.zeros(2**20)})
    with pytest.raises(ValueError, match=r"A workbook holds 1,048,575 rows.*ends in \.csv"):
        write_sheet(long, home / "b.xlsx")
    assert not (home / "b.xlsx").exists()


@pytest.mark.parametrize("kind", ["sketched", "landmarks", "exact"])
def test_a_label_left_out_is_predicted_by_the_others(kind):
    from sketchridge import ExactKernelRidge, SketchedKernelRidge
    from sketchridge.campaign.predictions import left_out

    rng = np.random.default_rng(0)
    X = rng.random((25, 2))
    X[20] = X[3]  # identical points are left out together
    y = np.sin(4 * X[:, 0]) + 0.1 * rng.standard_normal(25)
    fixed = {"bandwidth": 0.5, "alpha": 0.05, "fit_intercept": True}
    pivots = {"sketch": "landmarks", "sketch_size": 24, "random_state": 0}
    model = {
        "sketched": SketchedKernelRidge("gaussian", **fixed),
        "landmarks": SketchedKernelRidge("gaussian", **fixed, **pivots),
        "exact": ExactKernelRidge("gaussian", **fixed),
    }[kind]
    found = left_out(model.fit(X, y))
    for i in (0, 3, 20, 24):
        rest = ~(X[i] == X).all(axis=1)
        other = ExactKernelRidge("gaussian", **fixed).fit(X[rest], y[rest])
        np.testing.assert_allclose(found[i], other.predict(X[i : i + 1])[0], rtol=1e-6)


def test_a_campaign_that_stays_open_sees_what_others_do(home, run):
    """As a page does."""
    simple(home, run)
    page = Campaign.open(STORE)
    assert len(page.candidates) == 20
    page.learner.preview()
    run("add", write(home, "more.csv", "id,x\nnew,50\n"))
    run("tell", write(home, "m.csv", "id,y\nnew,9\n"))
    assert page.candidates.name(20) == "new"
    assert page.predict()["id"].to_list()[-1] == "new"
    assert 20 in page.learner.labeled_ids_


def test_an_addition_that_fails_leaves_nothing(home, run, monkeypatch):
    simple(home, run)
    page = Campaign.open(STORE)
    page.learner.preview()

    def fail(self, about, data):
        raise OSError("The disk is on fire.")

    monkeypatch.setattr(SQLStore, "attach", fail)
    with pytest.raises(OSError, match="on fire"):
        page.add(home / write(home, "more.csv", "id,x\nnew,50\n"))
    monkeypatch.undo()
    assert len(page.candidates) == len(page.learner.pool_) == 20
    assert page.add(home / "more.csv") == (1, 0)
    assert len(page.candidates) == len(page.learner.pool_) == 21


def test_known_labels_may_have_the_unit_in_their_heading(home, run):
    rows = "".join(
        f"s{i},{i / 3},{'true' if i % 2 else 'false'},{i if i < 4 else ''}\n" for i in range(9)
    )
    write(home, "p.csv", "id,x,stirred,yield [mg/L]\n" + rows)
    out = run("new", "p.csv", "--target", "yield", "--unit", "mg/L", "--batch-size", 2)
    assert "9 points with 2 features: x, stirred" in out
    assert "4 of them are labeled already" in out
    run("ask", "-o", "sheet.csv")
    sheet = pl.read_csv("sheet.csv", infer_schema=False)
    assert sheet.columns == ["id", "x", "stirred", "probability", "yield [mg/L]"]
    assert set(sheet["stirred"]) <= {"true", "false"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, (None, None)),
        ("0:100", (0.0, 100.0)),
        ("0:", (0.0, None)),
        (":1e3", (None, 1000.0)),
        ("-inf:5", (None, 5.0)),
        ("0:inf", (0.0, None)),
    ],
)
def test_ranges(text, wanted):
    from sketchridge.cli.options import limits_of

    assert limits_of(text) == wanted


@pytest.mark.parametrize("text", ["", "5", "a:b", "2:1", "1:1", "nan:3", "1:2:3"])
def test_what_is_no_range(text):
    from sketchridge.cli.options import limits_of

    with pytest.raises(ValueError, match="--range needs two numbers"):
        limits_of(text)


def test_labels_at_the_edge(home, run):
    write(home, "p.csv", "x\n" + "".join(f"{i / 3}\n" for i in range(9)))
    run("new", "p.csv", "--target", "E", "--unit", "eV")
    run("tell", write(home, "a.csv", "id,E\n3,1.5 eV\n4.0,2e-3eV\n"))
    assert labels() == {"3": 1.5, "4": 0.002}
    out = run("tell", write(home, "b.csv", "id,E\n5,1\n5.0,2\n"), code=1)
    assert "repeated ids in rows 1, 2" in out
    out = run("tell", write(home, "c.csv", "id,E\n5,1e300\n"), code=1)
    assert "beyond floating point: rescale" in out
    assert "beyond floating point" in run("amend", "3", "1e300", code=1)
    run("amend", "3", "2,5 eV")
    assert labels()["3"] == 2.5


@pytest.mark.parametrize(
    ("name", "data", "advice"),
    [
        ("a.csv", b"a,b\n\x81\x8d,1\n", "save it as UTF-8"),
        ("a.csv", b"a,b\n1,2,3\n", "every row must have as many cells as the header"),
        ("a.parquet", b"gone", "write it again as .parquet, or as .csv"),
        ("a.xlsx", b"gone", "save it again as .xlsx or .csv"),
    ],
)
def test_what_to_do_about_a_file_that_cannot_be_read(home, run, name, data, advice):
    (home / name).write_bytes(data)
    out = run("new", name, "--target", "y", code=1)
    assert f"{name} cannot be read (" in out
    assert advice in out


def test_a_file_that_nobody_may_read(home, run, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    write(home, "a.csv", "a\n1\n")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    out = run("new", "a.csv", "--target", "y", code=1)
    assert "Permission denied): check that you may read it" in out


def test_repeated_ids_of_a_later_table_are_no_matter_of_options(home, run):
    run("new", write(home, "p.csv", "id,a\nA,1\nB,2\n"), "--target", "y")
    out = run("add", write(home, "m.csv", "id,a\nC,1\nC,2\n"), code=1)
    assert "('C' more than once): correct these cells; nothing was changed." in out
    assert "--id" not in out


def test_a_folder_that_is_not_there(home, run):
    run("new", write(home, "p.csv", "id,a\nA,1\nB,2\n"), "--target", "y")
    out = run("ask", "-o", "none/sheet.csv", code=1)
    assert "There is no folder none: make it first, or give another." in out
