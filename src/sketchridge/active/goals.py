"""What a campaign is after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from sketchridge.active.acquire import ACQUISITIONS
from sketchridge.active.checks import check_one_of

__all__ = [
    "ACQUISITIONS_OF",
    "EXPLORE",
    "REACHED",
    "Goal",
    "as_goal",
    "checked_acquisition",
    "is_reached",
]

Array = np.ndarray
EXPLORE = "explore"
ACQUISITIONS_OF: dict[str, tuple[str, ...]] = {  # by goal; the first stands for "weighted"
    EXPLORE: (*ACQUISITIONS, "ivr", "mixed"),
    "maximize": ("improvement", "bound"),
    "minimize": ("improvement", "bound"),
    "target": ("improvement",),
    "boundary": ("straddle",),
}
_BEST = "ivr"  # to explore: the fewest labels over the tables of benchmarks/labels.py
_VALUED = ("target", "boundary")
REACHED = 0.05  # chance of an improvement below which a goal is taken for reached
_SURE = 0.01  # share of candidates on the wrong side of a boundary, likewise


@dataclass(frozen=True)
class Goal:
    """To explore, or to find the largest or least value, a given one, or where it is crossed.

    >>> as_goal("target 37.5")
    Goal(name='target', value=37.5)
    """

    name: str = EXPLORE
    value: float | None = None

    @property
    def explores(self) -> bool:
        return self.name == EXPLORE

    @property
    def has_best(self) -> bool:
        """Whether one label can be nearer to it than the others."""
        return self.name in ("maximize", "minimize", "target")

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name} {self.value:g}"

    def check_targets(self, count: int) -> None:
        """ValueError where labels have more targets than the goal is of."""
        if count > 1 and not self.explores:
            raise ValueError(
                f"Labels with {count} targets were given, but the goal {str(self)!r} is of one: "
                "give one label for each id, or explore."
            )

    def best(self, y: Array) -> float:
        """What labels have reached: the largest, the least, or the one nearest to the value."""
        return float(y[np.argmin(self.distance(y))])

    def distance(self, y: Array) -> Array:
        """What is to become small, in units of y."""
        if self.name in ("maximize", "minimize"):
            return -self.sign * y
        return np.abs(y - self.aim)

    def plain(self) -> dict[str, Any]:
        """As it is stored."""
        return {"name": self.name, "value": self.value}

    @property
    def sign(self) -> float:
        """1 where large values are wanted, else −1."""
        return 1.0 if self.name == "maximize" else -1.0

    @property
    def aim(self) -> float:
        """The value of goals that have one."""
        assert self.value is not None
        return self.value


def as_goal(given: Any) -> Goal:
    """The goal meant by a name, by "target 37.5", ("target", 37.5), or by what is stored."""
    if isinstance(given, Goal):
        return given
    if isinstance(given, Mapping):
        if set(given) != {"name", "value"}:
            raise ValueError(
                f"A goal is a name such as 'maximize' or a pair such as ('target', 37.5), got "
                f"{dict(given)!r}."
            )
        name, value = given["name"], given["value"]
        return as_goal(name if value is None else (name, value))
    parts = given.split() if isinstance(given, str) else list(given) if _is_pair(given) else [given]
    name = parts[0] if parts else ""
    check_one_of("goal", name, ACQUISITIONS_OF)
    if name not in _VALUED:
        if len(parts) > 1:
            raise ValueError(f"The goal {name!r} takes no value, but {parts[1]!r} was given.")
        return Goal(name)
    return Goal(name, _number(name, parts[1:]))


def _is_pair(given: Any) -> bool:
    return isinstance(given, tuple | list) and len(given) == 2


def _number(name: str, given: list[Any]) -> float:
    try:
        (value,) = (float(part) for part in given)
    except (TypeError, ValueError):
        value = inf
    if not abs(value) < inf:
        raise ValueError(
            f"The goal {name!r} needs a number, such as {name} 37.5 on the command line or "
            f"goal=({name!r}, 37.5) in Python; {' '.join(map(str, given)) or 'none'} was given."
        )
    return value


def checked_acquisition(goal: Goal, acquisition: str) -> str:
    """The acquisition of a goal; "weighted", the paper's, and "auto" stand for its own default."""
    known = ACQUISITIONS_OF[goal.name]
    if acquisition == "auto":
        return _BEST if goal.explores else known[0]
    if acquisition == "weighted":
        return known[0]
    where = "" if goal.explores else f" for the goal {goal.name!r}"
    check_one_of("acquisition", acquisition, known, where)
    return acquisition


def is_reached(goal: Goal, found: Mapping[str, Any]) -> bool:
    """Whether a `Goal.outlook` says that more labels bring little.

    >>> is_reached(Goal("maximize"), {"promise": 0.001, "chance": 0.01})
    True
    """
    if goal.name == "boundary":
        return found.get("unsure", 1.0) < _SURE
    return not goal.explores and found.get("chance", 1.0) < REACHED
