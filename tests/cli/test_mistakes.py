"""What people do with a sheet in a spreadsheet: each is answered by a sentence that says what is
wrong and what to do, and nothing is kept of it."""

from __future__ import annotations

import pytest

from sketchridge.active.sql import SQLStore

POOL = "id,temperature,ph\n" + "".join(f"{i:03d},{20 + i},{3 + i % 5}\n" for i in range(30))
MISTAKES = {
    "zeros dropped from ids": (
        "l.csv",
        "id,yield\n7,1.5\n",
        "ids that are not in the pool in row 1 ('7') The pool has '007': spreadsheets drop zeros",
    ),
    "a point that is a comma": (
        "l.csv",
        'id,yield\n007,"1,5"\n',
        "a 'yield' that is no finite number in row 1 ('007: 1,5'): where commas separate the "
        "columns decimals need points. Rows are",
    ),
    "separators of thousands": (
        "l.csv",
        "id;yield\n007;1.234,5\n",
        "a 'yield' that is no finite number in row 1 ('007: 1.234,5')",
    ),
    "a word for a number": (
        "l.csv",
        "id,yield\n007,n/a\n008,1\n",
        "a 'yield' that is no finite number in row 1 ('007: n/a')",
    ),
    "below the limit of detection": (
        "l.csv",
        "id,yield\n007,<0.5\n",
        "a 'yield' that is no finite number in row 1 ('007: <0.5')",
    ),
    "a unit behind the number": (
        "l.csv",
        "id,yield\n007,12 mg\n",
        "has labels with 'mg' behind the number, but 'yield' is expected as plain numbers",
    ),
    "percent": (
        "l.csv",
        "id,yield\n007,12%\n",
        "has labels with '%' behind the number",
    ),
    "nothing filled in": (
        "l.csv",
        "id,yield\n007,\n008,\n",
        "holds no labels: the column 'yield' is empty in all 2 rows",
    ),
    "a misspelled heading": (
        "l.csv",
        "id,Yeild\n007,1\n",
        "has no column 'yield'; it needs the ids and 'yield', and has 'id', 'Yeild'. Is it the "
        "column 'Yeild'? Rename it to 'yield'.",
    ),
    "a title above the table": (
        "l.csv",
        "Results of Monday,\nid,yield\n007,1\n",
        "has no column 'yield'",
    ),
    "two columns of one name": (
        "l.csv",
        "id,yield,yield\n007,1,2\n",
        "has more than one column 'yield': rename one of them",
    ),
    "the same point twice": (
        "l.csv",
        "id,yield\n007,1\n008,2\n007,3\n",
        "repeated ids in rows 1, 3 ('007')",
    ),
    "a sheet of another campaign": (
        "l.csv",
        "id,yield\nB1,1\nB2,2\n",
        "ids that are not in the pool in rows 1, 2 ('B1', 'B2')",
    ),
    "sorted by one column without the others": (
        "l.csv",
        "id,temperature,yield\n007,28,1\n008,27,2\n",
        "in row 1 '007' has 'temperature' = 28, but 27 in the pool (2 such rows). Was the table "
        "sorted by one column without the others?",
    ),
    "a comma too many": (
        "l.csv",
        "id,yield\n007,150\n",
        "yield is expected from 0 to 100, but 1 label is not (007: 150)",
    ),
    "an old workbook": (
        "l.xls",
        "anything",
        "l.xls is none of .csv, .tsv, .xlsx, .parquet. Save it as .xlsx (Excel workbook).",
    ),
    "no workbook at all": ("l.xlsx", "anything", "l.xlsx cannot be read"),
    "another name of the file": ("l.csv", None, "There is no file l.csv"),
    "rows of different lengths": ("l.csv", "id,yield\n007,1,2\n", "l.csv cannot be read"),
}
TABLES = {
    "a number that is none": (
        "id,x\n1,0.5\n2,n/a\n3,0.7\n",
        "The column 'x' of p.csv holds numbers, but also 'n/a': correct these cells, or give "
        "--category x or --ignore x.",
    ),
    "an empty cell": ("id,x\n1,0.5\n2,\n3,0.7\n", "missing or infinite in row 2 of p.csv"),
    "an id twice": ("id,x\n1,0.5\n1,0.7\n", "must name each row once, without gaps ('1' more than"),
    "an id missing": ("id,x\n1,0.5\n,0.7\n", "must name each row once, without gaps"),
    "no features": ("id,y\n1,0.5\n2,\n", "has no features"),
    "a label that is none": ("id,x,y\n1,0.5,high\n2,1,\n", "'y' is not a number in row 1 of p.csv"),
}


@pytest.fixture
def campaign(home, run):
    (home / "p.csv").write_text(POOL)
    run("new", "p.csv", "--target", "yield", "--range", "0:100")
    return home


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_sheet_is_answered_by_a_sentence(campaign, run, mistake):
    name, text, sentence = MISTAKES[mistake]
    if text is not None:
        (campaign / name).write_text(text)
    out = run("tell", name, code=1)
    assert sentence in out
    assert out.rstrip().endswith(".")
    assert len(SQLStore.open("sqlite:///campaign.db").labels()[0]) == 0


@pytest.mark.parametrize("mistake", TABLES)
def test_a_mistake_in_the_table_is_answered_by_a_sentence(home, run, mistake):
    text, sentence = TABLES[mistake]
    (home / "p.csv").write_text(text)
    assert sentence in run("new", "p.csv", "--target", "y", code=1)
    assert not (home / "campaign.db").exists()
