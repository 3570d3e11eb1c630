"""Some strategies of a figure, run again: their rows take the place of those in its table."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from sketchridge.paper.base import Row, groups
from sketchridge.paper.options import Options
from sketchridge.paper.record import options_of, read_record
from sketchridge.paper.runner import Result, read_results

__all__ = ["check_whole", "put_together"]

_CAMPAIGN = ("strategy", "model", "seed")
_MAY_DIFFER = ("backend", "strategies")


def check_whole(names: Sequence[str], folder: Path, options: Options) -> None:
    """ValueError unless the folder has the whole figures, run with the same options."""
    record = read_record(folder)
    for name in names:
        table = folder / "tables" / f"{name}.csv"
        if name not in record["experiments"] or not table.is_file():
            raise ValueError(
                f"--strategies runs a part of {name} again, and {folder} has no table of the "
                "whole: run it without --strategies first, or give the folder of that run as --out."
            )
        before, now = asdict(options_of(record, name, options)), asdict(options)
        other = [key for key in now if key not in _MAY_DIFFER and before[key] != now[key]]
        if other:
            raise ValueError(
                f"{name} in {folder} was run with another --{other[0]}: its table would be of two "
                "kinds. Give the options of that run, or another --out."
            )


def put_together(results: Sequence[Result], folder: Path) -> list[Result]:
    """New rows in the place of the table's of the same campaigns; the others stay."""
    tables = read_results([result.experiment for result in results], folder)
    return [
        Result(
            new.experiment,
            _replaced(old.rows, new.rows),
            cells=new.cells,
            seconds=new.seconds,
            missing=new.missing,
        )
        for new, old in zip(results, tables, strict=True)
    ]


def _replaced(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """Row by row, in the order of the table: some campaigns are told side by side."""
    fresh = {key: deque(part) for key, part in groups(new, *_CAMPAIGN).items()}
    rows: list[Row] = []
    for row in old:
        part = fresh.get(tuple(row[key] for key in _CAMPAIGN))
        if part is None:
            rows.append(row)
        elif part:
            rows.append(part.popleft())
    return rows + [row for part in fresh.values() for row in part]
