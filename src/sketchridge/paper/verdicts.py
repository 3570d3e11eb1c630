"""What can be said of a claim: it holds, does not, makes no difference, depends, or is open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from sketchridge.paper.statistics import Estimate

__all__ = [
    "AS_PRINTED",
    "DEPENDS",
    "FAILS",
    "HOLDS",
    "OPEN",
    "SAME",
    "SHOWN",
    "Claim",
    "above_zero",
    "all_of",
    "below",
    "by_reading",
    "judged",
    "listed",
    "same",
    "within",
]

HOLDS = "holds"
FAILS = "does not hold"
SAME = "no difference beyond"
DEPENDS = "depends on the reading"
OPEN = "open"
AS_PRINTED = "as printed"  # ends the name of a reading: the words to the letter
SHOWN = "described"  # beside the paper's claims, and not judged


@dataclass(frozen=True)
class Claim:
    """A sentence, what was measured of it, and the verdict."""

    name: str
    line: str  # of the paper's TeX file, or "" for what is this library's own
    sentence: str  # the paper's, word for word
    statistic: str
    measured: str
    verdict: str
    remark: str = ""

    @property
    def kind(self) -> str:
        """The verdict without its margin or its readings."""
        return next((k for k in (SAME, DEPENDS) if self.verdict.startswith(k)), self.verdict)

    @property
    def is_false_as_printed(self) -> bool:
        """Whether it depends on the reading, and fails in the one called "as printed".

        >>> verdict = f"{DEPENDS}: {FAILS} with σ as printed; {HOLDS} with σ²"
        >>> Claim("name", "1", "sentence", "statistic", "2", verdict).is_false_as_printed
        True
        """
        readings = self.verdict.removeprefix(f"{DEPENDS}: ").split("; ")
        return self.kind == DEPENDS and any(
            said.startswith(FAILS) and AS_PRINTED in said for said in readings
        )


def below(found: Estimate, limit: float) -> str:
    """Whether a value is at most a limit: its whole interval, none of it, or neither.

    >>> below(Estimate(1.0, 0.5, 1.5), 2.0), below(Estimate(1.0, 0.5, 1.5), 1.2)
    ('holds', 'open')
    """
    if found.high <= limit:
        return HOLDS
    return FAILS if found.low > limit else OPEN


def above_zero(found: Estimate) -> str:
    """Whether a value is positive."""
    if found.low > 0:
        return HOLDS
    return FAILS if found.high <= 0 else OPEN


def within(found: Estimate, low: float, high: float) -> str:
    """Whether a value is in a range."""
    if low <= found.low and found.high <= high:
        return HOLDS
    return FAILS if found.high < low or found.low > high else OPEN


def same(found: Estimate, margin: float, text: str) -> str:
    """Whether a difference is below 0; where that is not decided, whether it is within a margin.

    >>> same(Estimate(0.0, -0.1, 0.1), 0.2, "1%")
    'no difference beyond 1%'
    """
    if found.high < 0:
        return HOLDS
    if found.low > 0:
        return FAILS
    return f"{SAME} {text}" if max(-found.low, found.high) <= margin else OPEN


def all_of(verdicts: Iterable[str]) -> str:
    """Of a claim with several parts: it fails with one of them, and holds with all."""
    found = list(verdicts)
    if FAILS in found:
        return FAILS
    if all(v == HOLDS for v in found):
        return HOLDS
    same_kind = {v for v in found if v != HOLDS}
    return same_kind.pop() if len(same_kind) == 1 else OPEN


def by_reading(readings: Mapping[str, str]) -> str:
    """The verdict of all readings; where they differ, which has which.

    Parts of a reading's name after a comma are left out where they make no difference.

    >>> by_reading({"one": HOLDS, "other": HOLDS})
    'holds'
    >>> by_reading({"one, a": HOLDS, "one, b": HOLDS, "other": OPEN})
    'depends on the reading: holds with one; open with other'
    """
    found = list(dict.fromkeys(readings.values()))
    if len(found) == 1:
        return found[0]
    names = {v: [name for name in readings if readings[name] == v] for v in found}
    heads = {v: list(dict.fromkeys(n.split(", ")[0] for n in names[v])) for v in found}
    told_apart = len(set(chain(*heads.values()))) == sum(map(len, heads.values()))
    shown = heads if told_apart else names
    return f"{DEPENDS}: " + "; ".join(f"{v} with {' and '.join(shown[v])}" for v in found)


def judged(
    parts: Mapping[str, object], verdict: Callable[[Any], str] | Mapping[str, str]
) -> tuple[str, str]:
    """What was measured under each reading, with its verdict where they differ; and the verdict.

    Verdicts are given by name, or made from what was measured.
    """
    verdicts = {
        name: verdict(value) if callable(verdict) else verdict[name]
        for name, value in parts.items()
    }
    if len(set(verdicts.values())) > 1:
        parts = {name: f"{value} ({verdicts[name]})" for name, value in parts.items()}
    return listed(parts), by_reading(verdicts)


def listed(parts: Mapping[str, object]) -> str:
    """What was measured, part by part."""
    said = {name: "one repetition" if v is None else v for name, v in parts.items()}
    return "; ".join(f"{name}: {value}" for name, value in said.items())
