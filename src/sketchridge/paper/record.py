"""The record of a folder: what was run, with which options, from which code, and on what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from sketchridge.paper.code import fingerprint
from sketchridge.paper.options import Options
from sketchridge.paper.runner import Result, environment

__all__ = ["again_of", "options_of", "read_record", "write_record"]


def write_record(
    results: Sequence[Result], folder: Path, options: Options, command: str, commit: str
) -> None:
    """What was run: kept from one part of a run to the next, by experiment.

    An experiment that is run anew loses what was said of its cells; the note of the whole, written
    by hand, stays as long as there is an experiment of which it was written. Strategies that are
    run again are added to what is known of their figure.
    """
    before = read_record(folder)
    experiments = dict(before["experiments"])
    written = set()
    for r in results:
        name = r.experiment.name
        if options.strategies:
            experiments[name] = _with_part(experiments[name], r, options, command, commit)
        elif r.rows:
            experiments[name] = _whole(r, options, command, commit)
            written.add(name)
    made = before if options.strategies else {"command": command, "commit": commit}
    record = {key: made[key] for key in ("command", "commit")} | {"experiments": experiments}
    if "note" in before and set(before["experiments"]) - written:
        record["note"] = before["note"]
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (folder / "record.json").write_text(text + "\n", encoding="utf-8")


def read_record(folder: Path) -> dict:
    """What is known of earlier runs in a folder."""
    path = folder / "record.json"
    if not path.is_file():
        return {"command": "unknown", "commit": "unknown", "experiments": {}}
    return json.loads(path.read_text(encoding="utf-8"))


def options_of(record: dict, name: str, usual: Options) -> Options:
    """Those an experiment was run with, where they are known."""
    known = record["experiments"].get(name, {}).get("options")
    if known is None:
        return usual
    several = ("n", "m", "strategies")
    return Options(**{**known, **{key: tuple(known.get(key, ())) for key in several}})


def again_of(entry: dict) -> str:
    """In words, what of an experiment was run a second time."""
    return " ".join(
        f"{part['cells']} cells, commit {part['commit']}, {part['backend']}, {part['machine']}: "
        f"{part['what']}. Command: {part['command']}"
        for part in entry.get("again", [])
    )


def _whole(result: Result, options: Options, command: str, commit: str) -> dict:
    return {
        "command": command,
        "commit": commit,
        "code": _code(result),
        "options": asdict(options),
        "choices": result.experiment.described(result.rows, options),
        "cells": result.cells,
        "rows": len(result.rows),
        "seconds": round(result.seconds, 1),
        "environment": dict(environment()),
    }


def _with_part(entry: dict, result: Result, options: Options, command: str, commit: str) -> dict:
    """The whole's entry, and what of it was run again."""
    if not result.cells:
        return entry
    part = {
        "cells": result.cells,
        "seconds": round(result.seconds, 1),
        "commit": commit,
        "code": _code(result),
        "backend": options.backend,
        "machine": dict(environment())["machine"],
        "what": ", ".join(options.strategies),
        "command": command,
    }
    return {**entry, "rows": len(result.rows), "again": [*entry.get("again", []), part]}


def _code(result: Result) -> str:
    return fingerprint(type(result.experiment.maker).__module__)[:12]
