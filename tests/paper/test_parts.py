"""Strategies of a figure run again: their rows change places, and the record says what was done."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sketchridge.paper import __main__ as plain
from sketchridge.paper.command import Request, reproduce
from sketchridge.paper.experiments import EXPERIMENTS
from sketchridge.paper.options import Options
from sketchridge.paper.parts import put_together
from sketchridge.paper.runner import Result
from sketchridge.paper.runs import real
from sketchridge.paper.tables import read_table, write_table

DOCS = Path(__file__).parents[2] / "docs" / "paper"
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
PART = ("gp:fixed", "V2:learned")


@pytest.fixture
def weather(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 99, (2100, 5)).astype(float)
    np.savez(tmp_path / "weather.npz", X=X, y=10 * X[:, 0] + rng.standard_normal(2100))
    real._loaded.cache_clear()
    yield tmp_path
    real._loaded.cache_clear()


def asked(folder, data, strategies=(), repetitions=2):
    options = Options(repetitions=repetitions, n=(1000,), m=(20,), strategies=strategies)
    command = "reproduce " + " ".join(strategies)
    request = Request(["fig5"], folder, options, data, jobs=1, command=command)
    return reproduce(request, lambda *args: None)


def test_a_part_again_gives_the_table_of_the_whole(weather, tmp_path):
    """Byte for byte, with what is known of the whole, and with a note of the part."""
    asked(tmp_path, weather)
    table = tmp_path / "tables" / "fig5.csv"
    before = table.read_bytes()
    record = json.loads((tmp_path / "record.json").read_text())["experiments"]["fig5"]
    shutil.rmtree(tmp_path / "cells")
    asked(tmp_path, weather, PART)
    assert table.read_bytes() == before
    again = json.loads((tmp_path / "record.json").read_text())["experiments"]["fig5"]
    (part,) = again.pop("again")
    assert again == record
    assert (part["cells"], part["command"]) == (4, "reproduce gp:fixed V2:learned")
    assert "4 cells, commit" in (tmp_path / "report.html").read_text()
    with pytest.raises(ValueError, match=r"fig5 in .* was run with another --repetitions"):
        asked(tmp_path, weather, PART, repetitions=1)


def test_rows_of_a_part_take_the_place_of_those_before(tmp_path):
    def row(strategy, seed, r, rmse):
        return {"strategy": strategy, "model": "fixed", "seed": seed, "round": r, "rmse": rmse}

    told_together = [row(name, 1, r, 0.5) for r in (0, 1) for name in ("V2", "uniform")]
    write_table(told_together, tmp_path / "tables" / "fig5.csv")
    new = [row("V2", 1, r, 0.25) for r in (0, 1)] + [row("gp", 1, 0, 0.75)]
    (whole,) = put_together([Result(EXPERIMENTS["fig5"], new, cells=2)], tmp_path)
    assert [(r["strategy"], r["rmse"]) for r in whole.rows] == [
        ("V2", 0.25),
        ("uniform", 0.5),
        ("V2", 0.25),
        ("uniform", 0.5),
        ("gp", 0.75),
    ]
    assert whole.cells == 2


def commands():
    """Every command of the reproduction that its pages and its record name."""
    record = json.loads((DOCS / "record.json").read_text(encoding="utf-8"))
    texts = [entry["command"] for entry in record["experiments"].values()]
    texts += [
        part["command"] for e in record["experiments"].values() for part in e.get("again", [])
    ]
    for path in (*DOCS.glob("*.md"), *RESULTS.glob("paper_*.md")):
        text = path.read_text(encoding="utf-8")
        lines = [
            line
            for block in re.findall(r"```sh\n(.*?)```", text, re.S)
            for line in block.splitlines()
        ]
        texts += [*re.findall(r"`([^`\n]*)`", text), *lines]
    start = r"^(sketchridge reproduce|python -m sketchridge\.paper)(?= )"
    found = (text.partition("#")[0].strip() for text in texts)
    return sorted({re.sub(start, "", text).strip() for text in found if re.match(start, text)})


def test_there_are_commands():
    assert len(commands()) >= 8


@pytest.mark.parametrize("command", commands())
def test_commands_of_the_pages_can_be_given(command):
    given = plain._parser().parse_args(shlex.split(command))
    options = Options(given.full, given.repetitions, tuple(given.n), tuple(given.m), given.backend)
    Request(given.names, given.out, options, jobs=given.jobs).experiments()


def test_what_was_run_again_is_what_its_command_runs():
    """As many cells as the record has, of campaigns that the tables have."""
    record = json.loads((DOCS / "record.json").read_text(encoding="utf-8"))["experiments"]
    for name in ("fig4", "fig5"):
        (part,) = record[name]["again"]
        words = part["command"].partition(" reproduce ")[2]
        given = plain._parser().parse_args(shlex.split(words))
        options = Options(given.full, backend=given.backend, strategies=tuple(given.strategies))
        cells = EXPERIMENTS[name].maker.cells(options)
        assert len(cells) == part["cells"]
        campaigns = ("strategy", "model", "seed")
        rows = Counter(
            tuple(r[k] for k in campaigns) for r in read_table(DOCS / f"tables/{name}.csv")
        )
        assert {rows[tuple(c[k] for k in campaigns)] for c in cells} == {25}


def test_sizes_may_be_given_together_or_one_by_one():
    """As with typer, which repeats an option."""
    given = plain._parser().parse_args(["fig1a", "--n", "50", "--n", "100", "200", "--m", "4"])
    assert (given.n, given.m) == ([50, 100, 200], [4])
