"""Experiments run once, go on after an interruption, and are written down."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Sequence
from itertools import combinations
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest

from sketchridge.backends import BACKENDS
from sketchridge.paper import __main__ as plain
from sketchridge.paper import code, runner
from sketchridge.paper.base import Experiment, groups
from sketchridge.paper.command import Request, left_out, reproduce
from sketchridge.paper.experiments import EXPERIMENTS
from sketchridge.paper.options import BACKEND_HELP, FRESH, Options
from sketchridge.paper.report import write_report
from sketchridge.paper.runner import read_results, run_experiments
from sketchridge.paper.runs import real
from sketchridge.paper.tables import read_table, write_table
from sketchridge.paper.verdicts import FAILS, HOLDS, SAME, Claim
from sketchridge.plotting import new_figure


class SquareRows:
    """Cells that leave a trace each time they run."""

    takes = frozenset({"repetitions"})
    reads = ""

    def __init__(
        self,
        folder: Path,
        *,
        alone: bool = False,
        fails: int | None = None,
        missing: bool = False,
        seconds: float = 0.0,
    ) -> None:
        self.folder = folder
        self.seconds = seconds
        self.alone = alone
        self.fails = fails
        self.missing = missing

    def cells(self, options):
        return [{"x": x} for x in range(options.count(quick=3, full=6))]

    def run(self, cell, data):
        if self.missing:
            raise FileNotFoundError("no squares here")
        if cell["x"] == self.fails:
            raise KeyboardInterrupt
        time.sleep(self.seconds)
        with (self.folder / f"trace-{cell['x']}").open("a") as trace:
            trace.write("x")
        return [{"x": cell["x"], "square": cell["x"] ** 2, "data": str(data)}]


class Squares(Experiment):
    name = "squares"
    title = "Squares"
    choices = "none"

    def __init__(self, folder: Path, **options) -> None:
        self.maker = SquareRows(folder, **options)

    def sizes(self, options):
        return {}

    def figure(self, rows: Sequence[dict]):
        figure, (ax,) = new_figure()
        ax.plot([row["x"] for row in rows], [row["square"] for row in rows])
        return figure

    def claims(self, rows):
        return [
            Claim("squares: grow", "1", "x² grows", "x²", f"{rows[-1]['square']}", HOLDS),
            Claim("squares: fall", "2", "x² falls", "x²", "no", FAILS),
            Claim("squares: tie", "3", "x² = x", "x²", "no", f"{SAME} 1%"),
            Claim("squares: ours", "", "x² = y", "x²", "no", HOLDS),
        ]


def run(experiment, folder, data=None, **options):
    told = []
    results = run_experiments(
        [experiment],
        folder,
        options=Options(**options),
        data=data,
        say=lambda *args: told.append(args),
    )
    return results[0], told


@pytest.mark.parametrize("alone", [False, True])
def test_cells_run_once_and_their_rows_come_in_order(tmp_path, alone):
    result, told = run(Squares(tmp_path, alone=alone), tmp_path)
    assert [row["square"] for row in result.rows] == [0, 1, 4]
    assert told == [("squares", k, 3) for k in (1, 2, 3)]
    again, told = run(Squares(tmp_path, alone=alone), tmp_path, full=True)
    assert [row["square"] for row in again.rows] == [0, 1, 4, 9, 16, 25]
    assert told == [("squares", k, 6) for k in (4, 5, 6)]
    assert all((tmp_path / f"trace-{x}").read_text() == "x" for x in range(6))


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Squares(tmp_path, alone=True, fails=2), tmp_path)
    result, told = run(Squares(tmp_path, alone=True), tmp_path)
    assert told == [("squares", 3, 3)]
    assert [row["square"] for row in result.rows] == [0, 1, 4]
    assert (tmp_path / "trace-0").read_text() == "x"
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interruption_stops_a_run_of_many_cells(tmp_path, jobs):
    """The signal reaches the main process alone; 40 cells of half a second would take 20 s."""

    def interrupted(name, done, total):
        if done == 3:
            raise KeyboardInterrupt

    others = set(active_children())  # of a cluster that other tests use
    with pytest.raises(KeyboardInterrupt):
        run_experiments(
            [Squares(tmp_path, seconds=0.5)],
            tmp_path,
            options=Options(repetitions=40),
            data=None,
            jobs=jobs,
            say=interrupted,
        )
    kept = len(list(tmp_path.glob("cells/squares/*.json")))
    time.sleep(2.0)
    assert 3 <= kept <= 2 + 2 * jobs
    assert len(list(tmp_path.glob("cells/squares/*.json"))) == kept
    assert set(active_children()) <= others


def test_a_change_of_the_code_starts_again_and_one_of_a_reading_does_not(tmp_path, monkeypatch):
    run(Squares(tmp_path, alone=True), tmp_path)
    monkeypatch.setattr(runner, "fingerprint", lambda module: "another")
    run(Squares(tmp_path, alone=True), tmp_path)
    assert (tmp_path / "trace-0").read_text() == "xx"
    for experiment in EXPERIMENTS.values():
        files = code.sources(type(experiment.maker).__module__)
        assert not any("readings" in path.parts or path.name == "report.py" for path in files)
        assert any(path.name in ("sketches.py", "algebra.py") for path in files)


def test_other_data_start_again(tmp_path):
    """Cells of the flights from New York are not those of a folder with other flights."""
    folder, other = tmp_path / "2008", tmp_path / "other"
    for where, seed in ((folder, 0), (other, 1)):
        where.mkdir()
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 99, (9000, 8)).astype(float)
        np.savez(where / "flights.npz", X=X, y=X[:, 0] + rng.standard_normal(9000))
    experiment = EXPERIMENTS["fig4"]
    options = Options(repetitions=1, n=(6000,), m=(8,))
    paths = [
        {task.path for task in runner._tasks(experiment, tmp_path, options, data)}
        for data in (None, folder, other, folder)
    ]
    assert paths[1] == paths[3]
    assert all(not one & two for one, two in combinations(paths[:3], 2))
    np.savez(folder / "flights.npz", X=X + 1, y=X[:, 0])
    changed = {task.path for task in runner._tasks(experiment, tmp_path, options, folder)}
    assert not changed & paths[1]


def test_the_fingerprint_follows_every_import(tmp_path, monkeypatch):
    house = tmp_path / "sketchridge"
    (house / "inner").mkdir(parents=True)
    (house / "__init__.py").write_text("")
    (house / "one.py").write_text("from sketchridge.inner import two\nimport numpy\n")
    (house / "inner" / "__init__.py").write_text("")
    (house / "inner" / "two.py").write_text("def f():\n    import sketchridge.three\n")
    (house / "three.py").write_text("x = 1\n")
    (house / "four.py").write_text("x = 1\n")
    monkeypatch.setattr(code, "_ROOT", house)
    names = {str(path.relative_to(house)) for path in code.sources("sketchridge.one")}
    assert names == {"one.py", "inner/__init__.py", "inner/two.py", "three.py"}
    code.fingerprint.cache_clear()
    first = code.fingerprint("sketchridge.one")
    (house / "three.py").write_text("x = 2\n")
    code.fingerprint.cache_clear()
    assert code.fingerprint("sketchridge.one") != first
    code.fingerprint.cache_clear()


def test_the_fingerprint_knows_backends_that_are_imported_by_name():
    """A campaign by `--backend triton` starts again where a kernel was changed."""
    files = code.sources("sketchridge.paper.runs.real")
    names = {path.name for path in files if path.parent.name == "backends"}
    assert {"triton_kernels.py", "triton_fused.py", "torch_tiles.py", "dask_blocks.py"} <= names
    assert "triton_kernels.py" not in {path.name for path in code.sources("sketchridge.kernels")}


def test_nothing_begins_after_the_deadline(tmp_path):
    results = run_experiments(
        [Squares(tmp_path)],
        tmp_path,
        options=Options(),
        data=None,
        deadline=0.0,
        say=lambda *args: None,
    )
    assert results[0].rows == []
    assert results[0].missing == "3 of 3 cells were not run"


def test_missing_data_are_a_remark_and_not_the_end(tmp_path):
    result, told = run(Squares(tmp_path, missing=True), tmp_path)
    assert result.missing == "no squares here"
    assert result.rows == told == []
    path = write_report([result], tmp_path, options=Options(), command="x", commit="y")
    assert left_out([result]) == "Nothing was run of squares: the report is without them."
    assert "Not run: no squares here" in path.read_text()


def test_the_report_has_figures_tables_record_and_claims(tmp_path):
    experiment = Squares(tmp_path)
    result, _ = run(experiment, tmp_path, data=tmp_path)
    html = write_report(
        [result], tmp_path, options=Options(), command="reproduce squares", commit="abc"
    ).read_text()
    assert html.count("data:image/png;base64,") == 1
    brief, measured = html.split("data:image/png;base64,")
    assert "x²: no" not in brief
    assert "x²: no" in measured  # below the figure
    assert '<td class="good">holds</td>' in html
    assert '<td class="bad">does not hold</td>' in html
    assert '<td class="open">no difference beyond 1%</td>' in html
    assert "3 tests of 3 quotations of the paper. Tests: hold 1, do not hold 1, no" in html
    for suffix in ("png", "pdf"):
        assert (tmp_path / "figures" / f"squares.{suffix}").stat().st_size > 1000
    with (tmp_path / "tables" / "squares.csv").open() as file:
        assert [row["square"] for row in csv.DictReader(file)] == ["0", "1", "4"]
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["experiments"]["squares"]["commit"] == "abc"
    assert (
        "| squares: fall | 2 | x² falls | x²: no | **does not hold** |"
        in (tmp_path / "claims.md").read_text()
    )
    again = read_results([experiment], tmp_path)[0]
    assert again.rows == result.rows
    new = write_report(
        [again], tmp_path, options=Options(), command="other", commit="z", report_only=True
    )
    assert "reproduce squares" in new.read_text()


def test_what_was_noted_of_other_experiments_stays(tmp_path):
    """What is said of an experiment goes with its rows, and the note with the last of them."""
    result, _ = run(Squares(tmp_path), tmp_path)
    part = {"cells": 2, "commit": "new", "backend": "triton", "machine": "a card"}
    again = [part | {"what": "two squares", "command": "unknown"}]

    def written(**options):
        write_report([result], tmp_path, options=Options(), command="x", commit="y", **options)
        return json.loads((tmp_path / "record.json").read_text())

    record = written()
    assert "note" not in record
    record["note"] = "cubes were run elsewhere"
    for name in ("squares", "cubes"):
        record["experiments"][name] = {**record["experiments"]["squares"], "again": again}
    (tmp_path / "record.json").write_text(json.dumps(record))
    kept = written()
    assert kept["note"] == record["note"]
    assert kept["experiments"]["cubes"] == record["experiments"]["cubes"]
    assert "again" not in kept["experiments"]["squares"]
    html = (tmp_path / "report.html").read_text()
    assert "<p>cubes were run elsewhere</p>" in html
    assert "2 cells, commit new, triton, a card: two squares. Command: unknown" in html
    del kept["experiments"]["cubes"]
    (tmp_path / "record.json").write_text(json.dumps(kept))
    assert "note" not in written()


def test_tables_are_read_as_they_were_written(tmp_path):
    rows = [{"a": 1, "b": 0.5, "c": "m = ⌈log n⌉"}, {"a": 2, "b": 1e-9, "d": -3}]
    write_table(rows, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv") == rows


TINY = {
    "fig1d": Options(repetitions=2, n=(100,)),
    "fig2": Options(repetitions=2, n=(100,), m=(5,)),
    "fig3-2": Options(repetitions=1, n=(1700,)),
    "fig5": Options(repetitions=1, n=(1000,), m=(20,)),
    "sketches": Options(repetitions=1, n=(100,)),
    "formulas": Options(repetitions=2, n=(60,)),
}


@pytest.mark.parametrize("name", TINY)
def test_two_runs_give_the_same_tables_in_whatever_order_cells_are_run(name, tmp_path):
    """Byte for byte; the other experiments run the same code, or measure time.

    Cells of n = 0 are eigenvalues of 2,000 points, into which no seed enters.
    """
    rng = np.random.default_rng(0)
    X = rng.integers(0, 99, (2100, 5)).astype(float)
    np.savez(tmp_path / "weather.npz", X=X, y=10 * X[:, 0] + rng.standard_normal(2100))
    real._loaded.cache_clear()
    maker = EXPERIMENTS[name].maker
    cells = [cell for cell in maker.cells(TINY[name]) if cell["n" if "n" in cell else "pool"]]
    texts = []
    for order in (1, -1):
        rows = {k: maker.run(cells[k], tmp_path) for k in range(len(cells))[::order]}
        path = tmp_path / f"{order}.csv"
        write_table([row for k in range(len(cells)) for row in rows[k]], path)
        texts.append(path.read_bytes())
    assert texts[0] == texts[1]
    assert texts[0].count(b"\n") > len(cells)


def test_groups_keep_their_order():
    rows = [{"a": 2, "b": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 3}]
    assert groups(rows, "a") == {(2,): [rows[0], rows[2]], (1,): [rows[1]]}


# The command, from wherever


def test_every_figure_of_the_paper_is_there():
    figures = [f"fig1{c}" for c in "abcdef"] + ["fig2", "fig3-1", "fig3-2", "fig4", "fig5"]
    assert list(EXPERIMENTS) == [*figures, "sketches", "formulas", "timing", "update"]
    for experiment in EXPERIMENTS.values():
        assert experiment.choices
        for full in (False, True):
            cells = [json.dumps(c, sort_keys=True) for c in experiment.maker.cells(Options(full))]
            assert len(set(cells)) == len(cells) > 0


def test_full_runs_draw_fresh_seeds():
    for experiment in EXPERIMENTS.values():
        for full in (False, True):
            for cell in experiment.maker.cells(Options(full)):
                first = cell.get("seed", cell.get("first"))
                assert first is None or (first >= FRESH) == full


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["fig9"]}, "Unknown experiment 'fig9'"),
        ({"names": ["fig1a", "200"]}, "200 is taken for the name of an experiment: repeat the op"),
        ({"names": ["fig5"], "data": Path("nowhere")}, "no folder nowhere"),
        ({"names": ["fig1a"], "options": Options(m=(3,))}, "fig1a has no --m"),
        ({"names": ["fig1a"], "options": Options(backend="torch")}, "fig1a has no --backend"),
        ({"names": ["fig4"], "options": Options(backend="abacus")}, "Unknown backend 'abacus'"),
        ({"names": ["fig2"], "options": Options(repetitions=0)}, "--repetitions must be positive"),
        ({"names": ["fig2"], "jobs": 0}, "--jobs must be positive"),
        ({"names": ["fig2"], "options": Options(n=(5, 6))}, "fig2: One --n is needed here, got 5,"),
        (
            {"names": ["fig1a", "fig2"], "options": Options(n=(50, 100))},
            "^fig2: One --n is needed here, got 50, 100: give one, or run the figures that take",
        ),
        ({"names": ["fig2"], "options": Options(strategies=("gp:fixed",))}, "no --strategies: th"),
        (
            {"names": ["fig4"], "options": Options(strategies=("V3",))},
            "'V3': give some of V2:fixed",
        ),
        (
            {"names": ["fig4"], "options": Options(strategies=("gp:fixed",))},
            "runs a part of fig4 again, and .* has no table of the whole: run it without",
        ),
        (
            {"names": ["fig2"], "options": Options(m=(9999,))},
            "Figure 2 has 500 points: a",
        ),
        ({"names": ["timing"], "options": Options(n=(10,), m=(5000,))}, "has 10 points: a sketch"),
        ({"names": ["update"], "options": Options(n=(20,))}, "has 20 points: a sketch of 30 rows"),
        ({"names": ["fig4"], "options": Options(n=(20,))}, "A pool of 20 is less than four"),
        ({"names": ["fig4"], "options": Options(n=(6000,), m=(5000,))}, "has 3,000 points: a"),
        ({"names": ["fig3-1"], "options": Options(n=(50,))}, "Figure 3 labels 1600 points"),
        ({"names": ["fig1a"], "options": Options(n=(3, 50))}, "--n must be at least 20"),
    ],
)
def test_what_cannot_be_had_is_said_before_any_work(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        reproduce(Request(out=tmp_path, **options), lambda *args: None)
    assert not list(tmp_path.rglob("*.html"))
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["fig1a", "fig2"], "report_only": True}, "There is nothing to report. fig1a: "),
        ({"names": ["fig5"]}, "Nothing was run. fig5: load_weather needs a folder"),
    ],
)
def test_there_is_no_report_of_nothing(options, message, tmp_path):
    with pytest.raises(FileNotFoundError, match=message):
        reproduce(Request(out=tmp_path, **options), lambda *args: None)
    assert not list(tmp_path.rglob("*.html"))


SIZES = {
    "fig1a": (Options(repetitions=3, n=(60, 90)), ("n = 60 to 90,", "3 repetitions")),
    "fig1c": (Options(n=(300,)), ("n = 300,", "40 repetitions")),
    "fig2": (Options(repetitions=3, n=(60,), m=(5,)), ("n = 60, m = 5, 3 repetitions",)),
    "fig3-2": (Options(repetitions=3, n=(1700,)), ("pool of 1,700", "42 minority", "(m = 8)")),
    "fig4": (
        Options(repetitions=1, n=(6000,), m=(8,)),
        ("pool of 6,000", "each of 2 rounds", "50% of the pool", "m = 8,", "1 with the paper's"),
    ),
    "fig5": (Options(full=True), ("pool of 10,000", "24 rounds", "m = 256", "10 with learned")),
    "sketches": (Options(repetitions=3, n=(300,)), ("n = 300 points", "3 repetitions")),
    "formulas": (Options(repetitions=3, n=(60,)), ("n = 60,", "3 repetitions")),
    "timing": (Options(n=(100,), m=(7,)), ("n = 100, m = 7", "5 repetitions")),
    "update": (Options(n=(100,), m=(7,)), ("n = 100 varies at m = 7", "at n = 100;")),
}


@pytest.mark.parametrize("name", SIZES)
def test_the_choices_follow_the_options(name):
    options, expected = SIZES[name]
    text = EXPERIMENTS[name].described([], options)
    assert [words for words in expected if words not in text] == []
    assert "{" not in text


def test_the_help_names_backends_and_figures():
    takers = [e.name for e in EXPERIMENTS.values() if "backend" in e.maker.takes]
    assert [word for word in (*BACKENDS, *takers) if word not in BACKEND_HELP] == []


def test_without_the_packages_of_the_command_line(tmp_path, capsys, monkeypatch):
    for name in ("typer", "rich", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    words = ["fig2", "--repetitions", "2", "--m", "5", "20", "--out", str(tmp_path), "--jobs", "1"]
    plain.main(words)
    text = capsys.readouterr().out
    assert "fig2: V2 approaches V1" in text
    assert "The report is in" in text
    before = (tmp_path / "tables" / "fig2.csv").read_text()
    plain.main(["fig2", "--out", str(tmp_path), "--report"])
    assert "fig2: V2 approaches V1" in capsys.readouterr().out
    assert (tmp_path / "tables" / "fig2.csv").read_text() == before
