"""Values as people write them: commas, minus signs, units, ranges; understood or asked about."""

from __future__ import annotations

import datetime

import polars as pl
import pytest

from sketchridge.active.sql import SQLStore
from sketchridge.campaign import sources
from sketchridge.campaign.operations import Campaign

STORE = "sqlite:///campaign.db"
POINTS = "id,a\n" + "".join(f"S{i:02d},{i / 7:.3f}\n" for i in range(20))
COMMAS = POINTS.replace(",", ";").replace(".", ",")


def write(home, name, text):
    (home / name).write_text(text, encoding="utf-8")
    return name


def labels():
    store = SQLStore.open(STORE)
    names = Campaign.open(STORE).candidates.names(store.labels()[0])
    return dict(zip(names, store.labels()[1][:, 0].tolist(), strict=True))


@pytest.fixture
def begun(home, run):
    run("new", write(home, "p.csv", POINTS), "--target", "y", "--range", "-5000:5000")
    return home


# Ranges


def test_a_range_holds_for_the_labels_of_the_first_table(home, run):
    write(home, "p.csv", "id,a,y\n" + "".join(f"S{i},{i / 7},{10**i}\n" for i in range(6)))
    options = ("new", "p.csv", "--target", "y", "--range", "0:1000")
    out = run(*options, code=1)
    assert "y is expected from 0 to 1000, but 2 labels are not (S4: 10000, S5: 100000)" in out
    assert "say so with --yes" in out
    assert not (home / "campaign.db").exists()
    assert "6 of them are labeled already" in run(*options, "--yes")


def test_a_range_holds_for_labels_of_further_candidates(home, run, begun):
    text = "id,a,y\nT1,0.5,77777\nT2,0.7,\n"
    out = run("add", write(home, "m.csv", text), code=1)
    assert "but 1 label is not (T1: 77777). If it is right, say so with --yes" in out
    assert "of 20 points" in run("status")
    assert "1 of them labeled already" in run("add", "m.csv", "--yes")
    assert labels() == {"T1": 77777.0}


def test_labels_of_unnamed_rows_are_named_by_their_numbers(home, run):
    write(home, "p.csv", "a\n0.1\n0.5\n0.7\n")
    run("new", "p.csv", "--target", "y", "--range", "0:9")
    out = run("add", write(home, "m.csv", "a,y\n0.2,\n0.3,10\n"), code=1)
    assert "(4: 10)" in out


def test_known_labels_may_have_their_unit_in_the_cell(home, run):
    write(home, "p.csv", "id,a,y\nS1,0.1,5 mg/L\nS2,0.2,6mg/L\nS3,0.3,\n")
    run("new", "p.csv", "--target", "y", "--unit", "mg/L")
    assert labels() == {"S1": 5.0, "S2": 6.0}
    out = run("add", write(home, "m.csv", "id,a,y\nT1,0.5,7 g/L\n"), code=1)
    assert "has labels with 'g/L' behind the number" in out


@pytest.mark.parametrize("cell", ["5 mm", "5mm", "5 m m"])
def test_a_unit_that_ends_like_ours_is_another(home, run, cell):
    """5 mm was stored as 5 m."""
    run("new", write(home, "p.csv", POINTS), "--target", "y", "--unit", "m")
    unit = cell.removeprefix("5").strip()
    out = run("tell", write(home, "l.csv", f"id,y\nS00,{cell}\n"), code=1)
    assert f"has labels with '{unit}' behind the number, but 'y' is expected in m" in out
    run("tell", write(home, "l.csv", "id,y\nS00,7 m\n"))
    out = run("amend", "S00", cell, code=1)
    assert f"is no finite number in m: convert it, and leave '{unit}' out" in out
    assert labels() == {"S00": 7.0}


# Commas and points


@pytest.mark.parametrize(("name", "mark"), [("l.csv", ";"), ("l.tsv", "\t")])
def test_a_comma_that_may_be_one_of_thousands_is_asked_about(home, run, begun, name, mark):
    out = run("tell", write(home, name, f"id{mark}y\nS00{mark}1,500\n"), code=1)
    assert "'1,500' may be 1500 or 1.500: write it without the comma" in out
    assert labels() == {}
    write(home, name, f"id{mark}y\nS00{mark}1,500\nS01{mark}2,25\nS02{mark}3\n")
    run("tell", name)
    assert labels() == {"S00": 1.5, "S01": 2.25, "S02": 3.0}


def test_features_with_decimal_commas_say_what_a_comma_is(home, run, begun):
    """As a spreadsheet of another country saves a sheet."""
    run("tell", write(home, "l.csv", "id;a;y\nS07;1,000;1,500\nS04;0,571;2\n"))
    assert labels() == {"S07": 1.5, "S04": 2.0}


def test_a_point_that_may_be_one_of_thousands_is_asked_about(home, run):
    run("new", write(home, "p.csv", COMMAS), "--target", "y")
    out = run("tell", write(home, "l.csv", "id;y\nS00;1.500\n"), code=1)
    assert "'1.500' may be 1500 or 1,500: write it without the point" in out
    run("tell", write(home, "l.csv", "id,y\nS00,1.500\n"))
    pl.DataFrame({"id": ["S01"], "y": [1.125]}).write_excel("l.xlsx")
    run("tell", "l.xlsx")
    pl.DataFrame({"id": ["S02"], "y": ["1.375"]}).write_parquet("l.parquet")
    run("tell", "l.parquet")
    assert labels() == {"S00": 1.5, "S01": 1.125, "S02": 1.375}


def test_known_labels_have_the_decimal_mark_of_the_features(home, run):
    write(home, "p.csv", "id;a;y\nS1;0,5;1.234\nS2;0,7;\n")
    out = run("new", "p.csv", "--target", "y", code=1)
    assert "decimal commas ('0,5' in 'a') and decimal points ('1.234' in 'y')" in out
    write(home, "p.csv", "id;a;y\nS1;5;1,234\nS2;7;\n")
    assert "may be 1234 or 1.234" in run("new", "p.csv", "--target", "y", code=1)
    write(home, "p.csv", "id;a;y\nS1;0,5;1,234\nS2;0,7;\n")
    run("new", "p.csv", "--target", "y")
    assert labels() == {"S1": 1.234}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1,250", "'1,250' may be 1250 or 1.250: type it without the comma"),
        ("1_5", "'1_5' is no finite number"),
        ("0x10", "'0x10' is no finite number"),
        ("1.250,5", "'1.250,5' is no finite number"),
        ("5 mg/l", "'5 mg/l' is no finite number: convert it, and leave 'mg/l' out"),
        ("true", "'true' is no finite number"),
        ("", "'' is no finite number"),
    ],
)
def test_a_typed_value_that_is_unclear_is_refused(home, run, begun, text, sentence):
    run("tell", write(home, "l.csv", "id,y\nS04,1\n"))
    assert sentence in run("amend", "S04", text, code=1)
    assert labels() == {"S04": 1.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [("-5", -5.0), ("−5", -5.0), ("-1e-3", -0.001), ("-.5", -0.5), ("-2,5", -2.5)],
)
def test_a_value_below_zero_is_no_option(home, run, begun, text, value):
    run("tell", write(home, "l.csv", f"id;y\nS00;1\nS01;{text}\n"))
    assert labels()["S01"] == value
    run("amend", "S00", text)
    assert labels()["S00"] == value
    run("amend", "S00", "1", "--note", "-7")
    run("amend", "--", "S00", text)
    assert labels()["S00"] == value
    assert "No such option: --nothing" in run("amend", "S00", text, "--nothing", code=2)


def test_a_unit_in_other_capitals_is_named(home, run):
    run("new", write(home, "p.csv", POINTS), "--target", "y", "--unit", "mg/L")
    out = run("tell", write(home, "l.csv", "id,y\nS00,5 mg/l\n"), code=1)
    assert "has labels with 'mg/l' behind the number, but 'y' is expected in mg/L" in out
    run("tell", write(home, "l.csv", "id,y\nS00,-5 mg/L\n"))
    out = run("amend", "S00", "5 mg/l", code=1)
    assert "'5 mg/l' is no finite number in mg/L: convert it, and leave 'mg/l' out" in out
    run("amend", "S00", "-7 mg/L")
    assert labels() == {"S00": -7.0}


def test_a_name_below_zero_is_no_option(home, run):
    write(home, "p.csv", "id,a\n" + "".join(f"{i - 5},{i / 7}\n" for i in range(10)))
    run("new", "p.csv", "--target", "y")
    run("ask", "-n", 10)
    assert "1 point will not be asked for again" in run("fail", "-1")
    assert "2 points released" in run("release", "-2", "-1")
    run("tell", write(home, "l.csv", "id,y\n-3,1\n"))
    assert "1 label taken back" in run("retract", "-3", "--note", "-3 it was")
    assert "No such option: --al" in run("release", "--al", code=2)


def test_a_goal_below_zero_is_no_option(home, run):
    run("new", write(home, "p.csv", POINTS), "--target", "y", "--goal", "target", "-3")
    assert "Goal: target -3" in run("status")


def test_a_typed_point_that_may_be_one_of_thousands_is_asked_about(home, run):
    """As on a sheet of the same campaign."""
    run("new", write(home, "p.csv", COMMAS), "--target", "y")
    run("tell", write(home, "l.csv", "id;y\nS04;1\n"))
    out = run("amend", "S04", "1.500", code=1)
    assert "'1.500' may be 1500 or 1,500: type it without the point" in out
    run("amend", "S04", "1,500")
    assert labels() == {"S04": 1.5}


# What else stands in a Parquet file


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([datetime.date(2024, 1, 31), None], "The column 'y' of l.parquet holds Date, which is no"),
        ([datetime.timedelta(hours=1), None], "holds Duration(time_unit='us'), which is no label"),
        ([b"5", None], "holds Binary, which is no label: write numbers."),
        ([[1.0], None], "holds List(Float64), which is no label"),
        (pl.Series(["high", None], dtype=pl.Categorical), "in row 1 ('S00: high')"),
    ],
)
def test_what_is_no_number_is_no_label(home, run, begun, values, sentence):
    """Dates were stored as days since 1970."""
    pl.DataFrame({"id": ["S00", "S01"], "y": values}).write_parquet("l.parquet")
    assert sentence in run("tell", "l.parquet", code=1)
    assert labels() == {}


def test_labels_of_a_large_table_are_read_as_those_of_a_small_one(home, run, monkeypatch):
    monkeypatch.setattr(sources, "_LARGE", 0)
    table = pl.DataFrame({"id": ["S0", "S1"], "a": [0.1, 0.5]})

    def new(*labels):
        table.with_columns(pl.Series("y", labels)).write_parquet("p.parquet")
        return run("new", "p.parquet", "--target", "y", "--unit", "m", code=1)

    assert "has labels with 'mm' behind the number" in new("5 mm", None)
    assert "The target 'y' is not a number in row 1" in new(True, None)
    assert "holds Date, which is no label" in new(datetime.date(2024, 1, 31), None)
    table.with_columns(y=pl.Series(["5 m", None])).write_parquet("p.parquet")
    run("new", "p.parquet", "--target", "y", "--unit", "m")
    assert labels() == {"S0": 5.0}


# True and false


def test_true_and_false_are_no_labels(home, run, begun):
    for text in ("TRUE", "false"):
        out = run("tell", write(home, "l.csv", f"id,y\nS00,{text}\n"), code=1)
        assert f"no finite number in row 1 ('S00: {text}')" in out
    pl.DataFrame({"id": ["S00"], "y": [True]}).write_excel("l.xlsx")
    assert "no finite number in row 1 ('S00: true')" in run("tell", "l.xlsx", code=1)
    pl.DataFrame({"id": ["S00"], "y": [True]}).write_parquet("l.parquet")
    assert "no finite number in row 1 ('S00: true')" in run("tell", "l.parquet", code=1)
    out = run("add", write(home, "m.csv", "id,a,y\nT1,0.5,true\n"), code=1)
    assert "The target 'y' is not a number in row 1 of m.csv" in out
    assert labels() == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0x10", "no finite number in row 1 ('S00: 0x10')"),
        ("1_0", "no finite number in row 1 ('S00: 1_0')"),
        ("1 500", "no finite number in row 1 ('S00: 1 500')"),
    ],
)
def test_what_is_no_label(home, run, begun, text, sentence):
    assert sentence in run("tell", write(home, "l.csv", f"id,y\nS00,{text}\n"), code=1)


def test_a_feature_may_have_a_true_minus(home, run):
    write(home, "p.csv", "id,a\nS0,−5\nS1,−2.5\nS2,0\n")
    assert "1 feature: a" in run("new", "p.csv", "--target", "y")
    out = run("ask", "-n", 1, "-o", "s.csv")
    assert "1 point" in out


# Workbooks


def test_sheets_of_a_workbook_with_points_have_commas(home, run):
    """`id;a` with `0.5` is opened right by no spreadsheet."""
    pl.DataFrame({"id": ["S1", "S2"], "a": [0.5, 1.25]}).write_excel("p.xlsx")
    run("new", "p.xlsx", "--target", "y")
    run("ask", "-n", 2, "-o", "s.csv")
    assert (home / "s.csv").read_text().startswith("id,a,")


def workbook(path, rows):
    """Cells that are pairs are formulas with the values that a spreadsheet has kept."""
    import xlsxwriter

    with xlsxwriter.Workbook(path) as book:
        page = book.add_worksheet()
        for i, row in enumerate(rows, start=2):
            for j, cell in enumerate(row, start=1):
                if isinstance(cell, tuple):
                    page.write_formula(i, j, cell[0], None, cell[1])
                else:
                    page.write(i, j, cell)


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        (("=1/0", "#DIV/0!"), "no finite number in row 2 ('S01: #DIV/0!')"),
        (("=NA()", "#N/A"), "no finite number in row 2 ('S01: #N/A')"),
        (("=1+1", ""), "no finite number in row 2 ('S01: =1+1'): formulas have no values before a"),
    ],
)
def test_errors_and_open_formulas_in_a_workbook_are_named(home, run, begun, cell, sentence):
    workbook("l.xlsx", [["id", "y"], ["S00", 5], ["S01", cell], ["S02", None], ["S03", 6]])
    assert sentence in run("tell", "l.xlsx", code=1)
    assert labels() == {}
    workbook("more.xlsx", [["id", "a", "y"], ["T1", cell, None], ["T2", 0.5, 1]])
    assert run("add", "more.xlsx", code=1).count("Error: ") == 1
    assert "of 20 points" in run("status")


def test_formulas_with_values_are_labels(home, run, begun):
    empty = ('=IF(1,"",2)', " ")  # a text of nothing, once stripped
    workbook("l.xlsx", [["id", "y"], ["S00", ("=1+1", 2)], ["S01", empty], ["S02", 7.25]])
    assert "(1 row had no label yet)" in run("tell", "l.xlsx")
    assert labels() == {"S00": 2.0, "S02": 7.25}


@pytest.mark.parametrize("unit", ["%", ""])
@pytest.mark.parametrize("shown", ["0%", "0.00%", "[Red]0.0 %"])
def test_percent_in_a_workbook_is_asked_about(home, run, shown, unit):
    """12.5% was kept as 0.125 %: a workbook holds the share, and shows it as percent."""
    run("new", write(home, "p.csv", POINTS), "--target", "y", "--unit", unit)
    percents(" y ", shown)
    out = run("tell", "l.xlsx", code=1)
    assert "l.xlsx shows cells of 'y' in percent, and holds 0.125 for 12.5%" in out
    assert "format them as plain numbers, and correct those" in out
    assert labels() == {}
    percents("a", shown)
    out = run("new", "l.xlsx", "--target", "a", "--store", "sqlite:///2.db", code=1)
    assert "shows cells of 'a' in percent" in out


@pytest.mark.parametrize("shown", ['0.0"%"', "0.0\\%", "0.00", "General"])
def test_a_sign_of_percent_that_changes_no_number(home, run, begun, shown):
    percents("y", shown)
    run("tell", "l.xlsx")
    assert labels() == {"S00": 0.125, "S01": 7.0}


@pytest.mark.parametrize("value", [2.5e-10, -3.2e-12, 1 / 3, 1.25e-7, 123456.123456789, 1e21, 7.0])
def test_numbers_of_a_workbook_keep_their_digits(home, run, value):
    """They were rounded to nine decimals, so that a label of 2.5e-10 was kept as 0."""
    names = ["007", "1.10", "1.3"]
    workbook("p.xlsx", [["id", "a"], *([name, value * (i + 1)] for i, name in enumerate(names))])
    run("new", "p.xlsx", "--target", "y")
    assert Campaign.open(STORE).candidates.ids.to_list() == names
    run("ask", "-o", "s.csv")
    features = pl.read_csv("s.csv", schema_overrides={"id": pl.String}).sort("id")["a"]
    assert features.to_list() == pytest.approx([value, 2 * value, 3 * value], rel=1e-14)
    workbook("l.xlsx", [["id", "y"], ["007", value], ["1.10", None], [1.3000000000000003, -value]])
    run("tell", "l.xlsx")
    assert labels() == pytest.approx({"007": value, "1.3": -value}, rel=1e-14)


def test_features_may_be_in_percent(home, run, begun):
    percents("y", "0%", column=3)
    run("tell", "l.xlsx")
    assert labels() == {"S00": 0.125, "S01": 7.0}


def percents(target, shown, column=1):
    """A workbook with one cell that is shown in a format."""
    import xlsxwriter

    with xlsxwriter.Workbook("l.xlsx") as book:
        page = book.add_worksheet()
        style = book.add_format({"num_format": shown})
        for i, row in enumerate([["id", target, "", "share"], ["S00"], ["S01", 7]]):
            page.write_row(i, 0, row)
        page.write(1, 1, 0.125)
        page.write_column(1, 3, [0.5, 0.75])
        page.write(1, column, 0.125, style)


# Digits


@pytest.mark.parametrize(
    ("value", "written", "is_the_same"),
    [
        ("1.2345678e-05", "1.23457E-05", True),
        ("0.000123456789", "0.000123457", True),
        ("9.9999996e-05", "1E-04", True),
        ("0", "0", True),
        ("1.2345678e-05", "1.23456E-05", False),
        ("123456.7", "123456", False),
        ("0", "1e-300", False),
    ],
)
def test_features_come_back_with_six_digits(home, run, value, written, is_the_same):
    run("new", write(home, "p.csv", f"id,a\nS1,{value}\nS2,0.5\nS3,0.7\n"), "--target", "y")
    write(home, "l.csv", f"id,a,y\nS1,{written},1\n")
    out = run("tell", "l.csv", code=0 if is_the_same else 1)
    assert ("sorted by one column" in out) != is_the_same
