"""docs/paper/sentences.md names rows that exist, with the verdicts they have."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from sketchridge.paper.report import claims_text
from sketchridge.paper.verdicts import Claim

PAPER = Path(__file__).parents[2] / "docs" / "paper"


def claims():
    with (PAPER / "tables" / "claims.csv").open(newline="", encoding="utf-8") as file:
        return [Claim(**row) for row in csv.DictReader(file)]


def named(cell):
    """Panels and the beginning of a name, for each row that a cell of the table names."""
    panels = ""
    for part in cell.replace("\\|", "|").split("; "):
        before, colon, name = part.rpartition(": ")
        panels = before if colon else panels
        for panel in panels.split(", "):
            yield f"{panel}: {name.removesuffix(' …')}"


def verdicts(cell):
    """Of the rows in order, each kind once with the panels that have it."""
    found = {}
    for start in named(cell):
        kinds = [c.kind for c in claims() if c.name.startswith(start)]
        assert kinds, start
        for kind in kinds:
            found.setdefault(kind, []).append(start.partition(":")[0])
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{', '.join(dict.fromkeys(p))}: {kind}" for kind, p in found.items())


def test_every_sentence_has_a_row_and_its_verdict():
    lines = (PAPER / "sentences.md").read_text(encoding="utf-8").splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("| ")][1:]
    assert len(rows) > 50
    wrong = {
        row[1].strip(): verdicts(row[2].strip())
        for row in rows
        if row[3].strip() != verdicts(row[2].strip())
    }
    assert wrong == {}


def test_the_page_of_claims_is_made_of_the_table():
    assert (PAPER / "claims.md").read_text(encoding="utf-8") == claims_text(claims())


def test_the_readme_counts_as_the_table():
    text = (PAPER / "README.md").read_text(encoding="utf-8")
    kinds = [c.kind for c in claims() if c.line]
    quoted = {c.sentence for c in claims() if c.line}
    assert f"{len(kinds)} tests of {len(quoted)} quotations of the paper" in text
    false = sum(c.is_false_as_printed for c in claims())
    assert (
        f"By test: {kinds.count('holds')} hold, none fails in every reading, "
        f"{kinds.count('depends on the reading')} depend on the reading ({false} of them **do not "
        f"hold as printed**, see below), {kinds.count('open')} are open, "
        f"{kinds.count('described')} are described."
    ) in text
