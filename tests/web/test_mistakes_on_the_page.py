"""What people do with a sheet in a spreadsheet, through the page: each is answered by a sentence
in words of the page, and nothing is kept of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from webpage import Browser, start

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from test_mistakes import MISTAKES, POOL, TABLES

SENT = {name: case for name, case in MISTAKES.items() if case[1] is not None}


@pytest.fixture
def campaign(app, address, tmp_path) -> Browser:
    start(address, tmp_path, POOL, unit="")
    return Browser(app).enter()


@pytest.mark.parametrize("mistake", SENT)
def test_a_mistake_in_a_sheet_is_answered_by_a_sentence(campaign, mistake):
    name, text, sentence = SENT[mistake]
    said = campaign.upload("/upload", name, text)
    assert sentence in said
    assert "--" not in said
    assert "/tmp" not in said
    assert not campaign.store.told()


@pytest.mark.parametrize("mistake", TABLES)
def test_a_mistake_in_the_table_is_answered_by_a_sentence(empty, mistake):
    text, sentence = TABLES[mistake]
    empty.upload("/start", "p.csv", text)
    key = next(iter(empty.app.extensions["tables"]._kept))
    said = empty.send(f"/start/{key}", {"new_target": "y", "batch": "5"})
    assert sentence.partition(", or give --")[0] in said
    assert "--" not in said
    assert empty.desk.campaign() is None


def test_no_file_was_chosen(campaign):
    assert "Choose a file first" in campaign.send("/upload", {})
    assert "Choose a file first" in campaign.send("/add", {})
