"""The report of the benchmark of prediction: means over splits, ratios to the best peer, claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import Claim
from peers import QUANTILES

__all__ = ["OURS", "TABLES", "TIMED", "VARYING", "Row", "report"]

Row = dict[str, Any]
TABLES = ("energy", "concrete", "airfoil", "skillcraft", "sml", "pumadyn32nm", "flights", "weather")
TIMED = ("keggdirected",)  # for its time only
OURS = "sketchridge"
VARYING = "sketchridge, varying noise"
PROBABILISTIC = ("GPyTorch exact", "SVGP", "scikit-learn GPR")
SHORT = (OURS, "HistGradientBoosting", "LightGBM", "GPyTorch exact", "SVGP", "xRFM")
NAN = float("nan")


class Results:
    """What was measured, asked by method and table."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.methods = list(dict.fromkeys(r["method"] for r in rows))
        self.tables = [t for t in (*TABLES, *TIMED) if any(r["table"] == t for r in rows)]
        self.scored = [t for t in self.tables if t not in TIMED]
        self.peers = [m for m in self.methods if not is_ours(m) and m != QUANTILES]

    def values(self, method: str, table: str, what: str) -> dict[int, float]:
        """By split; what failed is left out."""
        return {
            r["split"]: r[what]
            for r in self.rows
            if r["method"] == method and r["table"] == table and np.isfinite(r.get(what, NAN))
        }

    def mean(self, method: str, table: str, what: str) -> float:
        some = self.values(method, table, what)
        return float(np.mean(list(some.values()))) if some else NAN

    def ratio(self, ours: str, peer: str, table: str) -> float:
        """Our mean error over a peer's, on the splits that both have; NaN where there is none."""
        mine, theirs = (self.values(m, table, "rmse") for m in (ours, peer))
        shared = sorted(set(mine) & set(theirs))
        if not shared:
            return NAN
        return float(np.mean([mine[s] for s in shared]) / np.mean([theirs[s] for s in shared]))

    def best_ratio(self, ours: str, table: str) -> float:
        """Our mean error over the best peer's on that table."""
        found = [self.ratio(ours, peer, table) for peer in self.peers]
        return float(np.nanmax(found)) if np.isfinite(found).any() else NAN

    def overall(self, ours: str) -> float:
        """The geometric mean of that over tables."""
        return float(np.exp(np.nanmean(np.log([self.best_ratio(ours, t) for t in self.scored]))))


def is_ours(method: str) -> bool:
    return method.startswith(OURS) or method == "ExactKernelRidge"


def report(rows: Sequence[Row], path: Path, note: str = "") -> None:
    """Write the tables and the claims as Markdown."""
    found = Results(rows)
    parts = [
        " ".join(
            filter(
                None,
                ["Command: `python benchmarks/prediction.py --data FOLDER`.", _counts(found), note],
            )
        ),
        f'"{OURS}" is `SketchedKernelRidge()`: its defaults are `kernel="auto"`, '
        '`bandwidth="auto"`. Cells ran side by side, on: ' + _machines(found) + ".",
        "## In short\n\n" + common.markdown_table(_short(found)),
        "## Root mean squared error\n\n" + common.markdown_table(_errors(found)),
        "## Over the best peer\n\n" + common.markdown_table(_ratios(found)),
        "## 95% intervals\n\n" + common.markdown_table(_intervals(found)),
        "## Log density\n\n" + common.markdown_table(_all(found, "log_density", "{:.3f}")),
        "## Seconds\n\n" + common.markdown_table(_all(found, "seconds", "{:.1f}", found.tables)),
        "## What was chosen\n\n" + common.markdown_table(_choices(found)),
    ]
    failed = [r for r in rows if r.get("error")]
    if failed:
        lines = [f"- {r['method']}, {r['table']}, split {r['split']}: {r['error']}" for r in failed]
        parts.append("## Failed\n\n" + "\n".join(lines))
    common.write_report(path, "Prediction", parts, _claims(found))


def _counts(found: Results) -> str:
    """How many splits of how many tables each method has."""
    each = []
    for method in found.methods:
        per = [len(found.values(method, t, "rmse")) for t in found.scored]
        splits = f"{min(per)}" if min(per) == max(per) else f"{min(per)} to {max(per)}"
        each.append(f"{method} {splits}")
    return "Splits of a table: " + ", ".join(each) + ". Ratios are over the splits that both have."


def _machines(found: Results) -> str:
    ran = {(r["method"], r["machine"]) for r in found.rows if "machine" in r}
    places = dict.fromkeys(machine for _, machine in sorted(ran))
    return "; ".join(
        f"{machine}: " + ", ".join(m for m in found.methods if (m, machine) in ran)
        for machine in places
    )


def _short(found: Results) -> list[Row]:
    """The README's table."""
    shown = [m for m in SHORT if m in found.methods]
    lines = []
    for name in found.scored:
        one = next(r for r in found.rows if r["table"] == name and "n" in r)
        line: Row = {"table": name, "rows, features": f"{one['n']:,}, {one['d']}"}
        line |= {m: f"{found.mean(m, name, 'rmse'):.3f}" for m in shown}
        line["ours / best peer"] = f"{found.best_ratio(OURS, name):.2f}"
        lines.append(line | {"held": f"{found.mean(OURS, name, 'coverage'):.1%}"})
    return lines


def _errors(found: Results) -> list[Row]:
    shown = [m for m in found.methods if m != QUANTILES]
    return [
        {"table": t} | {m: f"{found.mean(m, t, 'rmse'):.4f}" for m in shown} for t in found.scored
    ]


def _ratios(found: Results) -> list[Row]:
    mine = [m for m in found.methods if is_ours(m)]
    lines: list[Row] = [
        {"table": t} | {m: f"{found.best_ratio(m, t):.3f}" for m in mine} for t in found.scored
    ]
    return [*lines, {"table": "geometric mean"} | {m: f"{found.overall(m):.3f}" for m in mine}]


def _intervals(found: Results) -> list[Row]:
    ranged = [m for m in found.methods if any("coverage" in r for r in _of(found, m))]
    shown = {"coverage": "held", "interval_score": "score"}
    return [
        {"table": t}
        | {
            f"{m}: {s}": f"{found.mean(m, t, what):.3f}"
            for m in ranged
            for what, s in shown.items()
        }
        | {"ours, uncertain tenth": f"{found.mean(OURS, t, 'coverage_tenth'):.3f}"}
        for t in found.scored
    ]


def _all(found: Results, what: str, form: str, tables: Sequence[str] | None = None) -> list[Row]:
    shown = [m for m in found.methods if any(what in r for r in _of(found, m))]
    names = found.scored if tables is None else tables
    return [{"table": t} | {m: form.format(found.mean(m, t, what)) for m in shown} for t in names]


def _choices(found: Results) -> list[Row]:
    """What our defaults chose, by split."""
    mine = [r for r in _of(found, OURS) if "choice" in r]
    splits = sorted({r["split"] for r in mine})
    by = {(r["table"], r["split"]): r["choice"] for r in mine}
    return [{"table": t} | {str(s): by.get((t, s), "") for s in splits} for t in found.tables]


def _of(found: Results, method: str) -> list[Row]:
    return [r for r in found.rows if r["method"] == method]


def _claims(found: Results) -> list[Claim]:
    ratios = {t: found.best_ratio(OURS, t) for t in found.scored}
    overall = found.overall(OURS)
    high = {t: r for t, r in ratios.items() if r > 1.1}
    above = ", ".join(f"{t} {r:.2f}" for t, r in high.items()) or "none"
    return [
        Claim(
            'geometric mean of RMSE over the best peer\'s at most 0.95 with kernel="auto", '
            f'bandwidth="auto", which are the defaults (found {overall:.3f})',
            overall <= 0.95,
        ),
        Claim(
            f"at most one table above 1.1, none above 1.2 (found {above})",
            len(high) <= 1 and max(ratios.values()) <= 1.2,
        ),
        _density_claim(found),
        _score_claim(found),
        *_coverage_claims(found),
    ]


def _density_claim(found: Results) -> Claim:
    peers = [p for p in PROBABILISTIC if p in found.methods]

    def wins(method: str) -> int:
        return _wins(
            found, method, peers, "log_density", lambda mine, others: mine > np.nanmax(others)
        )

    also = f", with varying noise {wins(VARYING)}" if VARYING in found.methods else ""
    return Claim(
        f"log density above that of {', '.join(peers)} on 6 of 8 tables "
        f"(found {wins(OURS)} of {len(found.scored)}{also})",
        wins(OURS) >= 6,
    )


def _score_claim(found: Results) -> Claim:
    def wins(method: str) -> int:
        return _wins(
            found, method, [QUANTILES], "interval_score", lambda mine, other: mine < other[0]
        )

    also = f", with varying noise {wins(VARYING)}" if VARYING in found.methods else ""
    return Claim(
        "interval score below conformalized quantile boosting's on 6 of 8 tables "
        f"(found {wins(OURS)} of {len(found.scored)}{also})",
        wins(OURS) >= 6,
    )


def _wins(
    found: Results, method: str, peers: Sequence[str], what: str,
    better: Callable[[float, list[float]], Any],
) -> int:  # fmt: skip
    """On how many tables a method is better than its peers, by means over the splits it has."""
    return sum(
        bool(better(found.mean(method, t, what), [found.mean(p, t, what) for p in peers]))
        for t in found.scored
        if peers
    )


def _coverage_claims(found: Results) -> list[Claim]:
    held = {t: found.mean(OURS, t, "coverage") for t in found.scored}
    off = {t: _standard_errors(found, t) for t in found.scored}
    tenth = {t: found.mean(OURS, t, "coverage_tenth") for t in found.scored}
    worst = max(off, key=lambda t: abs(off[t]))
    return [
        Claim(
            "coverage of 95% intervals between 92.5 and 97.5% on every table (found "
            f"{min(held.values()):.1%} to {max(held.values()):.1%})",
            min(held.values()) >= 0.925 and max(held.values()) <= 0.975,
        ),
        Claim(
            "coverage within three standard errors of 95% on every table, by the splits' scatter "
            f"and the test rows (furthest: {worst}, {off[worst]:+.1f} standard errors)",
            abs(off[worst]) <= 3,
        ),
        Claim(
            f"at least 85% in the most uncertain tenth (found {min(tenth.values()):.1%}, "
            f"{min(tenth, key=lambda t: tenth[t])})",
            min(tenth.values()) >= 0.85,
        ),
    ]


def _standard_errors(found: Results, table: str) -> float:
    """How many standard errors the mean coverage is from 95%.

    The error is the larger of the binomial one of all test rows, which counts nothing for the
    training set, and that of the splits' scatter.
    """
    each = np.array(list(found.values(OURS, table, "coverage").values()))
    tested = sum(_tested(r["n"]) for r in _of(found, OURS) if r["table"] == table)
    binomial = np.sqrt(0.95 * 0.05 / max(tested, 1))
    scatter = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else 0.0
    return float((each.mean() - 0.95) / max(binomial, scatter)) if len(each) else NAN


def _tested(n: int) -> float:
    """About how many rows are tested with n to learn from: a fifth of all."""
    return min(n / 4, 5000)
