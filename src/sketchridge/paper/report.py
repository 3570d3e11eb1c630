"""The reproduction on one page: figures, claims with verdicts, settings, versions and times."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from sketchridge.paper.options import Options
from sketchridge.paper.record import again_of, options_of, read_record, write_record
from sketchridge.paper.runner import Result
from sketchridge.paper.tables import write_table
from sketchridge.paper.verdicts import DEPENDS, FAILS, HOLDS, OPEN, SAME, SHOWN, Claim
from sketchridge.reporting import Section, page, picture, table

__all__ = ["claims_of", "claims_text", "counted", "write_report"]

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
        write_record(results, folder, options, command, commit)
    record = read_record(folder)
    by_result = [_claims_of(result) for result in results]
    claims = list(chain(*by_result))
    write_table([vars(claim) for claim in claims], folder / "tables" / "claims.csv")
    (folder / "claims.md").write_text(claims_text(claims), encoding="utf-8")
    sections = [
        _brief_section(claims),
        *(
            _figure_section(
                result, found, folder, options_of(record, result.experiment.name, options)
            )
            for result, found in zip(results, by_result, strict=True)
        ),
        _record_section(record),
    ]
    lead = f"{_PAPER}, run again. {counted(claims)} {false_as_printed(claims)}".rstrip()
    path = folder / "report.html"
    text = page("The paper, reproduced", lead, sections, footer=f"Made by: {record['command']}")
    path.write_text(text, encoding="utf-8")
    return path


def claims_of(results: Sequence[Result]) -> list[Claim]:
    return [claim for result in results for claim in _claims_of(result)]


def _claims_of(result: Result) -> list[Claim]:
    return result.experiment.claims(result.rows) if result.rows else []


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


def false_as_printed(claims: Sequence[Claim]) -> str:
    """Which tests fail to the letter: the counts have them among those that depend."""
    found = [claim for claim in claims if claim.line and claim.is_false_as_printed]
    if not found:
        return ""
    said = "; ".join(f"{c.name} ({c.line})" for c in found)
    return (
        f"{len(found)} of the tests that depend on the reading do not hold as the paper prints "
        f"the sentence (lines in brackets), and hold in another reading: {said}."
    )


def _tally(kinds: Sequence[str]) -> str:
    counts = {kind: kinds.count(kind) for kind in _COUNTED if kind in kinds}
    return ", ".join(f"{_COUNTED[kind]} {count}" for kind, count in counts.items())


def claims_text(claims: Sequence[Claim]) -> str:
    """The claims as a table of a text page."""
    lines = [
        f"{counted(claims)} {false_as_printed(claims)}".rstrip(),
        "",
        "| claim | line | the paper says | measured | verdict | remark |",
        "|---|---|---|---|---|---|",
    ]
    for c in claims:
        measured = f"{c.statistic}: {c.measured}"
        cells = (c.name, c.line, c.sentence, measured, f"**{c.verdict}**", c.remark)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _brief_section(claims: Sequence[Claim]) -> Section:
    """Names and verdicts; what was measured stands with the figures."""
    rows = [{"claim": c.name, "line": c.line, "verdict": c.verdict} for c in claims]
    text = (
        "What was measured of each stands below its figure. The paper's sentences are quoted word "
        "for word, with their lines in its TeX file; the statistic of each was fixed in "
        "registered.md before the seeds of the full run were drawn, but for those called not "
        "registered. Its later sections are named by what they are: “After the run” and “After an "
        "audit” list rules of verdicts that were changed with the results in view, and why; "
        "“Second registration” is of sentences that had no row. Square brackets are 95% intervals; "
        "where all of k parts must hold they are at 1 − 0.05/k. Nothing is adjusted between "
        "claims: of the decisions by a test about one in twenty may be wrong by chance. A claim "
        "without a line is this library's, not the paper's."
    )
    return Section("Claims", text, [table(rows, classes=_styles(claims))])


def _claims_table(claims: Sequence[Claim]) -> str:
    rows = [
        {
            "claim": c.name.partition(": ")[2] or c.name,
            "line": c.line,
            "the paper says": c.sentence,
            "measured": f"{c.statistic}: {c.measured}",
            "verdict": c.verdict,
            "remark": c.remark,
        }
        for c in claims
    ]
    return table(rows, classes=_styles(claims))


def _styles(claims: Sequence[Claim]) -> dict[str, str]:
    return {c.verdict: _STYLES[c.kind] for c in claims}


def _figure_section(
    result: Result, claims: Sequence[Claim], folder: Path, options: Options
) -> Section:
    experiment = result.experiment
    if not result.rows:
        return Section(experiment.title, f"Not run: {result.missing}")
    title = experiment.heading(result.rows)
    said = experiment.described(result.rows, options)
    try:
        figures = experiment.figures(result.rows)
    except ImportError as error:
        return Section(title, f"{said}\n\nNo picture: {error}", [_claims_table(claims)])
    for name, figure in figures.items():
        for suffix in ("png", "pdf"):
            path = folder / "figures" / f"{name}.{suffix}"
            undated = {"CreationDate": None} if suffix == "pdf" else {}  # the same picture again
            figure.savefig(path, dpi=110, bbox_inches="tight", metadata=undated)
    text = said + (f"\n\nIncomplete: {result.missing}" if result.missing else "")
    pictures = [picture(figure, title) for figure in figures.values()]
    return Section(title, text, [*pictures, _claims_table(claims)])


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
            "again": again_of(part),
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
