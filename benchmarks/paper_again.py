"""Are the tables of docs/paper those of the current code? Some of their cells, run again.

    python benchmarks/paper_again.py --data ../shared/data
    python benchmarks/paper_again.py --data ../shared/data --repetitions 3
    python benchmarks/paper_again.py fig4 fig5 --data ../shared/data --models learned --rounds 0

The first repetitions of every kind of cell; experiments whose rows are times are left out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common
import numpy as np
from threadpoolctl import threadpool_limits

from sketchridge.paper.experiments import EXPERIMENTS
from sketchridge.paper.options import FRESH, Options
from sketchridge.paper.tables import read_table

DOCS = Path(__file__).parents[1] / "docs" / "paper"
DIGITS = 5e-6  # of numbers in tables, which have six
RELATIVE = ("relative_gap", "median")  # in units of V1: below 1e-6 they are rounding
LEAST = 1e-6


def shortened(
    cells: list[dict], repetitions: int, models: list[str], rounds: int | None
) -> Iterator[dict]:
    """The first repetitions of cells; blocks of seeds are cut, and campaigns where asked for."""
    for cell in cells:
        if rounds is not None:
            cell = {**cell, "rounds": rounds}
        if models and cell.get("model") not in models:
            continue
        first = cell.get("seed", cell.get("first"))
        if first is None:
            yield cell
        elif "first" in cell and first == FRESH:
            yield {**cell, "count": repetitions}
        elif "seed" in cell and first < FRESH + repetitions:
            yield cell


def key(row: dict[str, Any], names: list[str]) -> tuple:
    return tuple(row.get(name) for name in names)


def label(name: str, models: list[str], rounds: int | None) -> str:
    """What was compared."""
    until = [] if rounds is None else [f"rounds 0 to {rounds}" if rounds else "round 0"]
    return ", ".join([name, *models, *until])


def compared(
    name: str, data: Path, repetitions: int, models: list[str], rounds: int | None
) -> dict[str, Any]:
    """Rows again, and how far their numbers are from those of the table."""
    table = read_table(DOCS / "tables" / f"{name}.csv")
    names = [
        n
        for n in dict.fromkeys(n for row in table for n in row)
        if all(not isinstance(row.get(n), float) for row in table) or n in ("value", "multiple")
    ]
    names = [n for n in names if not (name == "formulas" and n == "value")]
    known: dict[tuple, list[dict]] = {}
    for row in table:
        known.setdefault(key(row, names), []).append(row)
    maker = EXPERIMENTS[name].maker
    start = time.process_time()
    worst, count, far, missing = 0.0, 0, 0, 0
    for cell in shortened(maker.cells(Options(full=True)), repetitions, models, rounds):
        for row in maker.run(cell, data):
            found = known.get(key(row, names))
            if not found:
                missing += 1
                continue
            old = found.pop(0)
            for column, value in row.items():
                if column not in names and isinstance(value, float):
                    least = LEAST if column in RELATIVE else 1e-300
                    error = abs(value - old[column]) / max(abs(old[column]), least)
                    count += 1
                    far += error > DIGITS
                    worst = max(worst, error)
    return {
        "experiment": label(name, models, rounds),
        "repetitions": repetitions,
        "numbers": count,
        "beyond six digits": far,
        "largest relative difference": f"{worst:.1e}",
        "rows without a partner": missing,
        "CPU seconds": f"{time.process_time() - start:.0f}",
    }


def kept(path: Path, labels: list[str]) -> list[dict[str, str]]:
    """The rows of an earlier call that are not of these comparisons."""
    if not path.is_file():
        return []
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    head, _, *rest = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in rest if row[0] not in labels]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="experiments; all but the times unless given")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--models", nargs="*", default=[], help="of figures 4 and 5")
    parser.add_argument("--rounds", type=int, help="of campaigns with --models, after the first")
    given = parser.parse_args()
    names = given.names or [e.name for e in EXPERIMENTS.values() if not e.maker.alone]
    rows = []
    with threadpool_limits(1), np.errstate(all="ignore"):
        for name in names:
            rows.append(compared(name, given.data, given.repetitions, given.models, given.rounds))
            print(common.markdown_table(rows[-1:]), flush=True)
    path = common.RESULTS / "paper_again.md"
    text = "\n\n".join(
        [
            "# The tables of docs/paper, made again in part",
            f"`benchmarks/paper_again.py`, {common.machine()}. The first repetitions of each kind "
            "of cell; tables have six digits. Gaps in units of V1 below 1e-6 are compared to 1e-6. "
            "Rows of experiments that the last call left out are kept.",
            common.markdown_table([*kept(path, [row["experiment"] for row in rows]), *rows]),
        ]
    )
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
