"""A model of a table from the terminal: what is read, what is refused, and what is written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import skops.io
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

from sketchridge.cli.app import app
from sketchridge.sheets.files import read_sheet, write_sheet
from sketchridge.tables.demo import houses
from sketchridge.tables.reading import read_table

N = 80


class Stranger(LinearRegression):
    """A type that no file of ours holds."""


def sales(seed: int, n: int = N) -> pl.DataFrame:
    return houses(n, seed)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a table and its model."""
    folder = tmp_path_factory.mktemp("made")
    write_sheet(sales(1), folder / "houses.csv")
    arguments = ["fit", folder / "houses.csv", "--target", "price", "-o", folder / "m.skops"]
    assert invoke(*arguments).exit_code == 0
    return folder


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    return tmp_path


def invoke(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def run(*arguments, code=0) -> str:
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


def test_a_table_is_fitted_and_described(home):
    write_sheet(sales(1), Path("houses.csv"))
    said = run("fit", "houses.csv", "--target", "price")
    assert "price: Fitted to 80 rows and 6 columns" in said
    assert "Dates: sold. Categories: district, condition. Numbers: area, built, energy." in said
    assert "'sale' is left out: its text is different in every row" in said
    assert Path("model.skops").is_file()


def test_predictions_stand_beside_the_rows(home, made):
    new = sales(2)
    write_sheet(new, Path("new.csv"))
    said = run("predict", made / "m.skops", "new.csv", "-o", "out.csv", "--confidence", "0.8")
    assert "80 predictions with 80% intervals" in said
    assert re.search(r"price is known in 80 rows that .* [\d.]+% of the intervals hold it", said)
    found = pl.read_csv("out.csv")
    assert found.columns == [*new.columns, "mean", "low", "high"]
    assert (found["low"] < found["mean"]).all()
    assert (found["mean"] < found["high"]).all()
    assert found["sale"].to_list() == new["sale"].to_list()


def test_rows_of_the_fit_test_nothing(home, made):
    both = pl.concat([sales(1), sales(2, 10)])
    write_sheet(both, Path("both.csv"))
    said = run("predict", made / "m.skops", "both.csv")
    assert "price is known in 10 rows that the model was not fitted to" in said
    assert "80 rows the model was fitted to: they test nothing" in said


def test_json_is_one_object(home, made):
    write_sheet(sales(2).drop("price"), Path("new.tsv"))
    said = json.loads(invoke("predict", made / "m.skops", "new.tsv", "--json").stdout)
    assert said["rows"] == N
    assert said["known"] == 0
    assert said["rmse"] is None


def test_the_page_holds_everything(home, made):
    said = json.loads(invoke("inspect", made / "m.skops", "-o", "page.html", "--json").stdout)
    assert said["target"] == "price"
    assert set(said["columns"].values()) == {"number", "category", "date"}
    assert said["left_out"].keys() == {"sale"}
    text = Path("page.html").read_text()
    for title in ("predicts", "matters", "columns do", "intervals hold", "penalty", "sketch"):
        assert re.search(f"<h2>[^<]*{title}", text)
    assert text.count("data:image/png") == 2 + 2 + 6 + 3 + 1
    assert "http" not in text.replace("http-equiv", "")


def test_a_model_is_summed_up_in_sentences(home, made, monkeypatch):
    monkeypatch.setattr("sketchridge.tables.page.model_page", lambda given: "<html>")
    said = run("inspect", made / "m.skops", "-o", "page.html")
    assert "degrees of freedom, noise ±" in said
    assert "The page is in page.html." in said


def test_nothing_is_overwritten_unasked(home, made):
    Path("out.csv").write_text("mine")
    write_sheet(sales(2), Path("new.csv"))
    arguments = ["predict", made / "m.skops", "new.csv", "-o", "out.csv"]
    assert "exists: give another name" in run(*arguments, code=1)
    assert Path("out.csv").read_text() == "mine"
    run(*arguments, "--force")
    assert "mean" in Path("out.csv").read_text()
    said = run("predict", made / "m.skops", "new.csv", "-o", "new.csv", "--force", code=1)
    assert "never overwritten" in said
    assert run("fit", "new.csv", "--target", "price", "-o", "m.pkl", code=1).endswith(".skops.")


def changed(**columns) -> pl.DataFrame:
    return sales(2, 8).with_columns(
        pl.lit(value).alias(name) if isinstance(value, str) else pl.Series(name, value)
        for name, value in columns.items()
    )


REFUSED = {
    "a column is missing": (sales(2, 8).rename({"area": "Area"}), "Is it the column 'Area'?"),
    "text for a number": (changed(area="large"), "or leave these cells empty"),
    "thousands": (changed(area="1,000,5"), "without separators of thousands"),
    "no date": (changed(sold="yesterday"), "is to hold dates such as '2024-01-31'"),
    "infinite": (changed(area=[np.inf] * 8), "'area' holds infinite values"),
}


@pytest.mark.parametrize(("frame", "text"), REFUSED.values(), ids=REFUSED)
def test_a_table_that_does_not_fit_is_refused_by_a_sentence(home, made, frame, text):
    write_sheet(frame, Path("new.csv"))
    assert text in run("predict", made / "m.skops", "new.csv", code=1)
    assert not Path("predictions.csv").exists()


TOLD = {
    "a new column": (changed(garden="yes"), "without the column 'garden': it is ignored"),
    "a new value": (changed(district="Moon"), "was not fitted with: 'Moon'"),
    "a new gap": (changed(area=[None, *[90.0] * 7]), "'area' is empty in 1 rows, and never was"),
}


@pytest.mark.parametrize(("frame", "text"), TOLD.values(), ids=TOLD)
def test_what_is_new_is_told(home, made, frame, text):
    write_sheet(frame, Path("new.csv"))
    assert text in run("predict", made / "m.skops", "new.csv")
    assert Path("predictions.csv").is_file()


def test_a_strange_file_is_not_loaded(home):
    write_sheet(sales(2), Path("new.csv"))
    skops.io.dump({"model": Stranger()}, "strange.skops")
    said = run("predict", "strange.skops", "new.csv", code=1)
    assert "not trusted" in said
    assert "Stranger'" in said
    skops.io.dump(LinearRegression(), "other.skops")
    assert "not the model of a table" in run("inspect", "other.skops", code=1)
    Path("text.skops").write_text("text")
    assert "is no model that was saved" in run("inspect", "text.skops", code=1)
    assert "There is no file none.skops" in run("inspect", "none.skops", code=1)


def test_every_kind_of_file_gives_the_same_model(home):
    frame = sales(3, 40)
    semicolons = frame.with_columns(pl.col("sold").dt.strftime("%d.%m.%Y"))
    write_sheet(semicolons, Path("t.csv"), separator=";", decimal=",")
    assert ",5" in Path("t.csv").read_text()
    for name in ("u.csv", "t.tsv", "t.xlsx", "t.parquet"):
        write_sheet(frame, Path(name))
    tables = [read_table(Path(n)) for n in ("t.csv", "u.csv", "t.tsv", "t.xlsx", "t.parquet")]
    first = tables[0].frame
    for other in tables[1:]:
        for name in ("area", "energy", "price"):
            assert other.frame[name].cast(float).to_list() == first[name].to_list()
        assert other.frame["sold"].cast(pl.Date).to_list() == first["sold"].cast(pl.Date).to_list()
    said = run("fit", "t.csv", "--target", "price")
    assert "Dates: sold." in said
    run("predict", "model.skops", "t.csv", "-o", "p.csv")
    sheet = read_sheet(Path("p.csv"))
    assert sheet.separator == ";"
    assert sheet.frame["mean"].str.contains(r"^\d+,\d+$").all()


def test_words_for_nothing_are_gaps_and_rows_without_a_target_are_dropped(home):
    frame = sales(4, 40).with_columns(pl.col("energy").cast(pl.String).fill_null("n/a"))
    frame = frame.with_columns(pl.Series("price", [None, None, *frame["price"][2:]]))
    write_sheet(frame, Path("t.csv"))
    said = run("fit", "t.csv", "--target", "price")
    assert "2 of 40 rows have no 'price': they are not used" in said
    assert "energy" in said.partition("Numbers:")[2]


BAD = {
    "no such target": ("price,a\n1,2\n", ["--target", "prize"], "Did you mean 'price'?"),
    "a target of text": ("y,a\nx,1\nz,2\n", ["--target", "y"], "must be numbers, but holds text"),
    "no columns": ("y,a\n1,5\n2,5\n", ["--target", "y"], "No column of the table can be used"),
    "one row": ("y,a\n1,5\n", ["--target", "y"], "At least two rows"),
    "numbers and words": (
        "y,a\n1,2\n2,3\n3,four\n",
        ["--target", "y"],
        "holds numbers, but also 'four': correct these cells, or give --category a",
    ),
    "day or month": (
        "y,a\n1,01/02/2024\n2,02/03/2024\n",
        ["--target", "y"],
        "may begin with the day or the month: give --date-format '%d/%m/%Y' or '%m/%d/%Y'",
    ),
    "an unknown kernel": ("y,a\n1,2\n2,3\n", ["--target", "y", "--kernel", "no"], "'no'"),
    "contradiction": ("y,a\n1,2\n", ["--target", "y", "--exact", "--fast"], "contradict"),
}


@pytest.mark.parametrize(("text", "options", "sentence"), BAD.values(), ids=BAD)
def test_what_cannot_be_fitted_is_told(home, text, options, sentence):
    Path("t.csv").write_text(text)
    assert sentence in run("fit", "t.csv", *options, code=1)
    assert not Path("model.skops").exists()


@pytest.mark.parametrize("first", ["parquet", "csv"])
def test_files_with_and_without_types_go_together(home, first):
    """What a .parquet file has as numbers and dates, a .csv file has as text."""
    frame = sales(3, 40).with_columns(
        sold=pl.col("sold").cast(pl.Datetime("ms")), new=pl.col("built") > 1980
    )
    second = {"parquet": "csv", "csv": "parquet"}[first]
    write_sheet(frame, Path(f"t.{first}"))
    run("fit", f"t.{first}", "--target", "price", "--exact")
    later = frame.drop("price")
    for name in (f"same.{first}", f"other.{second}"):
        write_sheet(later, Path(name))
        run("predict", "model.skops", name, "-o", f"p_{name}")
    same, other = (read_sheet(Path(f"p_{n}")).frame for n in (f"same.{first}", f"other.{second}"))
    for name in ("mean", "low", "high"):
        np.testing.assert_allclose(other[name].cast(float), same[name].cast(float), rtol=1e-9)


def test_a_workbook_with_points_is_answered_with_commas(home):
    """`id;a` with `0.5` is opened right by no spreadsheet."""
    write_sheet(sales(3, 40), Path("t.xlsx"))
    run("fit", "t.xlsx", "--target", "price", "--exact")
    run("predict", "model.skops", "t.xlsx", "-o", "p.csv")
    assert Path("p.csv").read_text().startswith("sale,sold,")
    commas = sales(3, 40).with_columns(
        pl.col("area", "energy", "price").cast(pl.String).str.replace(".", ",", literal=True)
    )
    write_sheet(commas, Path("c.xlsx"))
    run("fit", "c.xlsx", "--target", "price", "--exact", "-o", "c.skops")
    run("predict", "c.skops", "c.xlsx", "-o", "c.csv")
    assert Path("c.csv").read_text().startswith("sale;sold;")


def test_a_date_format_is_remembered(home):
    days = [f"{1 + i % 12:02d}/{1 + i % 9:02d}/2023" for i in range(30)]
    rows = "".join(f"{day},{i % 7},{i}\n" for i, day in enumerate(days))
    Path("t.csv").write_text("day,a,y\n" + rows)
    run("fit", "t.csv", "--target", "y", "--date-format", "%d/%m/%Y", "--exact")
    Path("new.csv").write_text("day,a\n03/04/2023,2\n2023-04-03,2\n")
    run("predict", "model.skops", "new.csv")
    mean = pl.read_csv("predictions.csv")["mean"]
    assert mean[0] == mean[1]


def test_models_are_compared(home):
    write_sheet(sales(5, 60), Path("t.csv"))
    arguments = ["compare", "t.csv", "--target", "price", "--folds", "2", "--rows", "50"]
    found = json.loads(invoke(*arguments, "--json").stdout)
    assert found["rows"] == 50
    models = {each["model"]: each for each in found["models"]}
    assert models.keys() == {"sketchridge", "gradient boosting", "Gaussian process"}
    for each in models.values():
        assert each["rmse"] > 0
        assert 0 <= each["coverage"] <= 1
        assert each["seconds"] > 0
    assert "folds" in run("compare", "t.csv", "--target", "price", "--folds", "1", code=1)


@pytest.mark.usefixtures("defaults")
def test_the_demo_makes_its_files(home, monkeypatch):
    monkeypatch.setattr("sketchridge.tables.demo.houses", lambda n, seed: houses(n // 8, seed))
    monkeypatch.setattr("sketchridge.tables.page.model_page", lambda given: "<html>")
    said = run("demo", "here")
    assert re.search("hold the price of .* of 50 new houses", said)
    names = {"houses.csv", "new_houses.csv", "model.skops", "predictions.csv", "model.html"}
    assert {path.name for path in Path("here").iterdir()} == names
    assert "exists" in run("demo", "here", code=1)


@pytest.mark.parametrize("command", ["fit", "predict", "inspect", "compare", "demo"])
def test_each_command_explains_itself(home, command):
    assert "--json" in run(command, "--help")
    assert "Missing" in run(command, code=2) if command != "demo" else True


def test_help_waits_for_nothing_heavy():
    code = "import sys, sketchridge.cli.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "sklearn", "polars", "pandas", "sqlalchemy", "matplotlib", "skops"}
    assert not heavy & set(done.stdout.split())


@pytest.mark.slow
def test_the_wheel_runs_in_a_bare_environment(tmp_path):
    tool = Path(__file__).parents[2] / "tools" / "wheel.py"
    done = subprocess.run(
        [sys.executable, tool, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sketchridge demo" in done.stdout
    with zipfile.ZipFile(next((tmp_path / "wheel").glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    web = Path(__file__).parents[2] / "src" / "sketchridge" / "web"
    parts = [*web.glob("templates/*"), *web.glob("static/*")]
    assert len(parts) > 15
    assert {f"sketchridge/web/{part.parent.name}/{part.name}" for part in parts} <= names
