"""The reproduction on one page: figures, claims with verdicts, settings, versions and times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from sketchridge.paper.base import FAILS, HOLDS, OPEN, Claim
from sketchridge.paper.runner import Result, environment, write_table
from sketchridge.reporting import Section, page, picture, table

__all__ = ["claims_of", "write_report"]

_STYLES = {HOLDS: "good", FAILS: "bad", OPEN: "open"}
_PAPER = (
    "Statistically and Computationally Efficient Variance Estimator for Kernel Ridge Regression "
    "(Liu, Honorio, Cheng)"
)


def write_report(results: Sequence[Result], folder: Path, *, full: bool, command: str) -> Path:
    """Write tables, figures (PNG and PDF), settings and report.html."""
    for part in ("tables", "figures"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    claims = claims_of(results)
    sections = [_claims_section(claims)]
    for result in results:
        sections.append(_figure_section(result, folder))
    write_table([vars(claim) for claim in claims], folder / "tables" / "claims.csv")
    settings = {
        "command": command,
        "full": full,
        "environment": dict(environment()),
        "experiments": {
            r.experiment.name: {"choices": r.experiment.choices, "cells": r.experiment.cells(full)}
            for r in results
        },
    }
    text = json.dumps(settings, indent=1, ensure_ascii=False)
    (folder / "settings.json").write_text(text, encoding="utf-8")
    sections.append(_record_section(results, command))
    counts = {name: sum(claim.verdict == name for claim in claims) for name in _STYLES}
    lead = (
        f"{_PAPER}, run again: of {len(claims)} claims "
        + ", ".join(f"{count} {name}" for name, count in counts.items())
        + "."
    )
    path = folder / "report.html"
    path.write_text(
        page("The paper, reproduced", lead, sections, footer=f"Made by: {command}"),
        encoding="utf-8",
    )
    return path


def claims_of(results: Sequence[Result]) -> list[Claim]:
    return [
        claim
        for result in results
        if result.rows
        for claim in result.experiment.claims(result.rows)
    ]


def _claims_section(claims: Sequence[Claim]) -> Section:
    rows = [
        {
            "claim": c.name,
            "the paper says": c.sentence,
            "measured": c.measured,
            "verdict": c.verdict,
            "remark": c.why,
        }
        for c in claims
    ]
    text = (
        "Square brackets are 95% intervals. A claim cannot be decided where its interval holds "
        "both answers."
    )
    return Section("Claims", text, [table(rows, classes=_STYLES)])


def _figure_section(result: Result, folder: Path) -> Section:
    experiment = result.experiment
    if not result.rows:
        return Section(experiment.title, f"Not run: {result.missing}")
    figure = experiment.figure(result.rows)
    for suffix in ("png", "pdf"):
        figure.savefig(folder / "figures" / f"{experiment.name}.{suffix}", dpi=150)
    write_table(result.rows, folder / "tables" / f"{experiment.name}.csv")
    text = experiment.choices + (f"\n\nIncomplete: {result.missing}" if result.missing else "")
    return Section(experiment.title, text, [picture(figure, experiment.title)])


def _record_section(results: Sequence[Result], command: str) -> Section:
    times = [
        {
            "experiment": r.experiment.name,
            "cells": r.cells,
            "rows": len(r.rows),
            "seconds of work": round(r.seconds, 1),
        }
        for r in results
    ]
    versions = [{"what": name, "version": value} for name, value in environment()]
    text = (
        f"Command: {command}\n\nSettings and seeds of every cell are in settings.json, "
        "observations in tables/."
    )
    return Section("Record", text, [table(times), table(versions)])
