"""The reproduction on one page: figures, claims with verdicts, settings, versions and times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from sketchridge.paper.code import fingerprint
from sketchridge.paper.options import Options
from sketchridge.paper.runner import Result, environment
from sketchridge.paper.tables import write_table
from sketchridge.paper.verdicts import DEPENDS, FAILS, HOLDS, OPEN, SAME, SHOWN, Claim
from sketchridge.reporting import Section, page, picture, table

__all__ = ["claims_of", "write_report"]

_STYLES = {HOLDS: "good", FAILS: "bad", SAME: "open", DEPENDS: "open", OPEN: "open", SHOWN: ""}
_MIXED = "mixed"  # a sentence whose tests have different verdicts
_COUNTED = {
    HOLDS: "hold",
    FAILS: "do not hold",
    SAME: "no difference",
    DEPENDS: "depend on the reading",
    OPEN: "are open",
    SHOWN: "are described",
    _MIXED: "differ from panel to panel",
}
_PAPER = (
    "Statistically and Computationally Efficient Variance Estimator for Kernel Ridge Regression "
    "(Liu, Honorio, Cheng)"
)


def write_report(
    results: Sequence[Result],
    folder: Path,
    *,
    options: Options,
    command: str,
    commit: str,
    report_only: bool = False,
) -> Path:
    """Write tables, figures (PNG and PDF), settings and report.html.

    Where only tables were read, the record of the run that made them stays.
    """
    for part in ("tables", "figures"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    if not report_only:
        for result in results:
            if result.rows:
                write_table(result.rows, folder / "tables" / f"{result.experiment.name}.csv")
        _write_record(results, folder, options, command, commit)
    record = _read_record(folder)
    claims = claims_of(results)
    write_table([vars(claim) for claim in claims], folder / "tables" / "claims.csv")
    (folder / "claims.md").write_text(_claims_text(claims), encoding="utf-8")
    sections = [
        _claims_section(claims),
        *(
            _figure_section(result, folder, _options_of(record, result.experiment.name, options))
            for result in results
        ),
        _record_section(record),
    ]
    lead = f"{_PAPER}, run again. {counted(claims)}"
    path = folder / "report.html"
    text = page("The paper, reproduced", lead, sections, footer=f"Made by: {record['command']}")
    path.write_text(text, encoding="utf-8")
    return path


def claims_of(results: Sequence[Result]) -> list[Claim]:
    return [
        claim
        for result in results
        if result.rows
        for claim in result.experiment.claims(result.rows)
    ]


def counted(claims: Sequence[Claim]) -> str:
    """How many tests, and how many of the sentences they quote, have which verdict."""
    ours = [claim for claim in claims if claim.line]
    tests = [claim.kind for claim in ours]
    by_sentence: dict[str, set[str]] = {}
    for claim in ours:
        by_sentence.setdefault(claim.sentence, set()).add(claim.kind)
    sentences = [kinds.pop() if len(kinds) == 1 else _MIXED for kinds in by_sentence.values()]
    return (
        f"{len(tests)} tests of {len(sentences)} quotations of the paper. Tests: {_tally(tests)}. "
        f"Quotations: {_tally(sentences)}."
    )


def _tally(kinds: Sequence[str]) -> str:
    counts = {kind: kinds.count(kind) for kind in _COUNTED if kind in kinds}
    return ", ".join(f"{_COUNTED[kind]} {count}" for kind, count in counts.items())


def _claims_text(claims: Sequence[Claim]) -> str:
    """The claims as a table of a text page."""
    lines = [
        f"{counted(claims)}",
        "",
        "| claim | line | the paper says | measured | verdict | remark |",
        "|---|---|---|---|---|---|",
    ]
    for c in claims:
        measured = f"{c.statistic}: {c.measured}"
        cells = (c.name, c.line, c.sentence, measured, f"**{c.verdict}**", c.remark)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _claims_section(claims: Sequence[Claim]) -> Section:
    rows = [
        {
            "claim": c.name,
            "line": c.line,
            "the paper says": c.sentence,
            "measured": f"{c.statistic}: {c.measured}",
            "verdict": c.verdict,
            "remark": c.remark,
        }
        for c in claims
    ]
    styles = {c.verdict: _STYLES[c.kind] for c in claims}
    text = (
        "The paper's sentences are quoted word for word, with their lines in its TeX file; the "
        "statistic of each was fixed in registered.md before the seeds of the full run were drawn, "
        "but for those called not registered; its section “After the run” lists the rules of "
        "verdicts that were changed afterwards, and why; the last section is a second "
        "registration. "
        "Square brackets are 95% intervals; where all of k parts must hold they are at 1 − 0.05/k. "
        "Nothing is adjusted between claims: of the decisions by a test about one in twenty may "
        "be wrong by chance. A claim without a line is this library's, not the paper's."
    )
    return Section("Claims", text, [table(rows, classes=styles)])


def _figure_section(result: Result, folder: Path, options: Options) -> Section:
    experiment = result.experiment
    if not result.rows:
        return Section(experiment.title, f"Not run: {result.missing}")
    title = experiment.heading(result.rows)
    said = experiment.described(result.rows, options)
    try:
        figures = experiment.figures(result.rows)
    except ImportError as error:
        return Section(title, f"{said}\n\nNo picture: {error}")
    for name, figure in figures.items():
        for suffix in ("png", "pdf"):
            path = folder / "figures" / f"{name}.{suffix}"
            undated = {"CreationDate": None} if suffix == "pdf" else {}  # the same picture again
            figure.savefig(path, dpi=110, bbox_inches="tight", metadata=undated)
    text = said + (f"\n\nIncomplete: {result.missing}" if result.missing else "")
    return Section(title, text, [picture(figure, title) for figure in figures.values()])


def _write_record(
    results: Sequence[Result], folder: Path, options: Options, command: str, commit: str
) -> None:
    """What was run: kept from one part of a run to the next, by experiment.

    An experiment that is run anew loses what was said of its cells; the note of the whole, written
    by hand, stays as long as there is an experiment of which it was written.
    """
    before = _read_record(folder)
    experiments = dict(before["experiments"])
    written = {r.experiment.name for r in results if r.rows}
    for r in results:
        if r.rows:
            experiments[r.experiment.name] = {
                "command": command,
                "commit": commit,
                "code": fingerprint(type(r.experiment.maker).__module__)[:12],
                "options": asdict(options),
                "choices": r.experiment.described(r.rows, options),
                "cells": r.cells,
                "rows": len(r.rows),
                "seconds": round(r.seconds, 1),
                "environment": dict(environment()),
            }
    record = {"command": command, "commit": commit, "experiments": experiments}
    if "note" in before and set(before["experiments"]) - written:
        record["note"] = before["note"]
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (folder / "record.json").write_text(text + "\n", encoding="utf-8")


def _read_record(folder: Path) -> dict:
    """What is known of earlier runs in a folder."""
    path = folder / "record.json"
    if not path.is_file():
        return {"command": "unknown", "commit": "unknown", "experiments": {}}
    return json.loads(path.read_text(encoding="utf-8"))


def _options_of(record: dict, name: str, usual: Options) -> Options:
    """Those an experiment was run with, where they are known."""
    known = record["experiments"].get(name, {}).get("options")
    if known is None:
        return usual
    return Options(**{**known, "n": tuple(known["n"]), "m": tuple(known["m"])})


def _record_section(record: dict) -> Section:
    rows = [
        {
            "experiment": name,
            "commit": part["commit"],
            "code": part["code"],
            "cells": part["cells"],
            "rows": part["rows"],
            "seconds of work": part["seconds"],
            "machine": part["environment"]["machine"],
            "command": part["command"],
            "again": _again(part.get("again")),
        }
        for name, part in record["experiments"].items()
    ]
    text = (
        "Seeds are in the tables, settings in record.json and in the text above each figure. "
        "“Again” is what was run anew later, with its commit, backend and machine: those rows took "
        "the place of the first run's, which the other columns are of."
    )
    if "note" in record:
        text += f"\n\n{record['note']}"
    return Section("Record", text, [table(rows)])


def _again(part: dict | None) -> str:
    """In words, what of an experiment was run a second time."""
    if part is None:
        return ""
    said = f"{part['cells']} cells, commit {part['commit']}, {part['backend']}, {part['machine']}"
    return f"{said}: {part['what']}. Command: {part['command']}"
