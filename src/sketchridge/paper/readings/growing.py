"""Panels (c) and (d) of Figure 1: what a larger sketch brings at n = 1,000."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy import stats

from sketchridge.paper.base import Row, groups
from sketchridge.paper.readings.gap_pictures import range_of
from sketchridge.paper.readings.quotes import QUOTES
from sketchridge.paper.statistics import MEANS, Estimate, bootstrap, geometric, share
from sketchridge.paper.verdicts import FAILS, HOLDS, OPEN, Claim, all_of, below, listed

__all__ = ["growing_claims"]

Array = np.ndarray
RARE = 0.05  # of the sketches


def growing_claims(panel: str, decay: str, rows: Sequence[Row]) -> list[Claim]:
    """Of rows of one kernel and one λ in which c, and m with it, varies."""
    return [
        _more_rows(panel, rows),
        _no_gain(panel, decay, rows),
        _probability(panel, rows),
    ]


def by_size(rows: Sequence[Row]) -> dict[int, dict[int, Row]]:
    """Rows by m and seed: two values of c with the same ⌈m⌉ have the same sketches, once."""
    return {
        m: {row["seed"]: row for row in part} for (m,), part in sorted(groups(rows, "m").items())
    }


def _more_rows(panel: str, rows: Sequence[Row]) -> Claim:
    sizes = by_size(rows)
    steps = list(pairwise(sizes))
    level = 1 - 0.05 / max(len(steps), 1)
    ratios = {
        f"m = {few} to {many}": geometric(
            [
                row["gap_v2"] / sizes[few][seed]["gap_v2"]
                for seed, row in sizes[many].items()
                if seed in sizes[few]
            ],
            level,
        )
        for few, many in steps
    }
    return Claim(
        f"{panel}: a larger m, a smaller gap",
        *QUOTES["more_rows"],
        "ratio of the gap to that of the next smaller m, paired, geometric mean (holds: all below "
        "1; not registered)",
        listed(ratios) or "one m",
        all_of(below(e, 1.0) for e in ratios.values()) if ratios else OPEN,
    )


def _no_gain(panel: str, decay: str, rows: Sequence[Row]) -> Claim:
    values = sorted({row["value"] for row in rows})
    one = values.index(1.0)
    gaps = np.array(
        [
            [row["gap_v2"] for row in sorted(part, key=lambda row: row["value"])]
            for part in groups(rows, "seed").values()
        ]
    )

    def reached(line: Array) -> float:
        return float(100 * (line[0] - line[one]) / (line[0] - line[-1]))

    linear = bootstrap(gaps, lambda some: reached(some.mean(axis=0)))
    logs = bootstrap(np.log(gaps), lambda some: reached(some.mean(axis=0)))
    at_one = [row for row in rows if row["value"] == 1.0]
    relative = {
        kind: mean([row["gap_v2"] / row["sup_v1"] for row in at_one]).mean
        for kind, mean in MEANS.items()
    }
    return Claim(
        f"{panel}: no gain beyond c = 1",
        *QUOTES[f"no_gain_{decay}"],
        "percent of the fall of the mean gap that is reached at c = 1, on linear axes as in a plot "
        "with error bars (holds: 90 or more; bootstrap interval)",
        _percent(linear),
        HOLDS if linear.mean >= 90 else FAILS,
        f"Of the fall of the mean logarithm it is {_percent(logs)}: the gap falls further by "
        "factors, which no plot with error bars from 0 shows; registered was that both be 90 or "
        f"more. At c = 1 (m = {at_one[0]['m']}, s_λ = {range_of(r['s_lambda'] for r in at_one)}) "
        f"the gap is {relative['arithmetic']:.2g} (arithmetic) or {relative['geometric']:.2g} "
        "(geometric) times sup V1.",
    )


def _percent(found: Estimate) -> str:
    return f"{found.mean:.1f}% [{found.low:.1f}, {found.high:.1f}]"


def _probability(panel: str, rows: Sequence[Row]) -> Claim:
    """Failures of gap·nλ ≤ 1 by m; each sketch counts once."""
    sizes = {m: list(part.values()) for m, part in by_size(rows).items()}
    failed = {m: sum(_beyond(row) for row in part) for m, part in sizes.items()}
    few, many = min(sizes), max(sizes)
    table = [[failed[m], len(sizes[m]) - failed[m]] for m in (few, many)]
    p = float(stats.fisher_exact(table)[1])
    change = failed[many] / len(sizes[many]) - failed[few] / len(sizes[few])
    inside = [row for part in sizes.values() for row in part if row["m"] >= row["s_lambda"]]
    count = sum(_beyond(row) for row in inside)
    rare = share(count, len(inside)).high < RARE if inside else False
    outside = [m for m, part in sizes.items() if all(row["m"] < row["s_lambda"] for row in part)]
    remark = f"Fisher's exact test of the smallest m against the largest: p = {p:.2g}."
    if outside:
        sizes_said = ", ".join(map(str, outside))
        s = range_of(row["s_lambda"] for m in outside for row in sizes[m])
        remark += f" m = {sizes_said} are below s_λ = {s}: the theorem leaves them out."
    return Claim(
        f"{panel}: Theorem 1, the probability",
        *QUOTES["probability"],
        "repetitions with gap > σ²/(nλ), by m, at the optimal λ (holds: they become fewer, or for "
        f"m ≥ s_λ are surely below {RARE:.0%})",
        listed({f"m = {m}": f"{failed[m]} of {len(part)}" for m, part in sizes.items()})
        + f"; all m ≥ s_λ: {count} of {len(inside)}",
        _settled(change, p, rare),
        remark,
    )


def _settled(change: float, p: float, rare: bool) -> str:
    """The probability of a failure falls with m or is small where the theorem speaks."""
    if change > 0 and p < 0.05:
        return FAILS
    return HOLDS if rare or (change < 0 and p < 0.05) else OPEN


def _beyond(row: Row) -> bool:
    return bool(row["gap_v2"] * row["n"] * row["lambda"] > 1)
