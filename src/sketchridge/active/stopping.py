"""When enough has been measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from numbers import Integral, Real
from typing import Any

from sketchridge.active.checks import check_count

__all__ = [
    "STOPS",
    "Budget",
    "NoImprovement",
    "ScoreBelow",
    "StopRule",
    "as_stop_rules",
    "reasons_to_stop",
    "stop_rules_from",
    "to_settings",
]

History = Sequence[Mapping[str, Any]]


class StopRule(ABC):
    """A rule that looks at a campaign's history, by rounds, and says why to stop, or nothing."""

    needs_scores = False
    needs_rounds = True

    @abstractmethod
    def reason(self, labels: int, history: History) -> str:
        """Why to stop with so many labels, or an empty string.

        Parameters
        ----------
        labels : int
            How many there are.
        history : list of dict
            `history_` of the learner.

        Returns
        -------
        reason : str
            Empty where there is none.
        """


@dataclass(frozen=True)
class Budget(StopRule):
    """So many labels and no more.

    Parameters
    ----------
    labels : int
        How many.

    Examples
    --------
    >>> Budget(60).reason(labels=59, history=[])
    ''
    >>> Budget(60).reason(labels=60, history=[])
    '60 labels of a budget of 60'
    """

    labels: int
    needs_rounds = False

    def __post_init__(self) -> None:
        check_count("The budget of labels", self.labels)

    def reason(self, labels: int, history: History) -> str:
        return f"{labels} labels of a budget of {self.labels}" if labels >= self.labels else ""


@dataclass(frozen=True)
class ScoreBelow(StopRule):
    """The largest (or mean) score of the points that could be asked for is below a threshold.

    It is in the units of the history, which are those of the learner's score.

    Parameters
    ----------
    threshold : float
        In the units of the learner's score.
    statistic : str
        "largest" or "mean".

    Examples
    --------
    >>> rounds = [{"largest_score": 0.5}, {"largest_score": 0.01}]
    >>> ScoreBelow(0.02).reason(labels=40, history=rounds)
    'the largest score, 0.01, is below 0.02'
    """

    threshold: float
    statistic: str = "largest"
    needs_scores = True

    def __post_init__(self) -> None:
        if not isinstance(self.threshold, Real) or not self.threshold > 0:
            raise ValueError(
                f"The threshold of the score must be a positive number, got {self.threshold!r}."
            )
        if self.statistic not in ("largest", "mean"):
            raise ValueError(
                f"Unknown statistic {self.statistic!r} of the score: give 'largest' or 'mean'."
            )

    def reason(self, labels: int, history: History) -> str:
        score = history[-1].get(f"{self.statistic}_score") if history else None
        below = score is not None and score < self.threshold
        return (
            f"the {self.statistic} score, {score:.3g}, is below {self.threshold:.3g}"
            if below
            else ""
        )


@dataclass(frozen=True)
class NoImprovement(StopRule):
    """The leave-one-out error of the last ``rounds`` is not below the best before them.

    Parameters
    ----------
    rounds : int
        How many without improvement.
    by : float
        The share by which an error must be below the best to count.

    Examples
    --------
    >>> rounds = [{"loo_error": error} for error in (0.5, 0.2, 0.3, 0.21)]
    >>> NoImprovement(rounds=2).reason(labels=40, history=rounds)
    'the leave-one-out error has not improved on 0.2 over 2 rounds'
    """

    rounds: int = 5
    by: float = 0.0

    def __post_init__(self) -> None:
        check_count("The number of rounds without improvement", self.rounds)
        if not isinstance(self.by, Real) or not 0 <= self.by < 1:
            raise ValueError(
                f"The relative improvement must be a number from 0 to 1, got {self.by!r}."
            )

    def reason(self, labels: int, history: History) -> str:
        errors = [row["loo_error"] for row in history if "loo_error" in row]
        if len(errors) <= self.rounds:
            return ""
        best = min(errors[: -self.rounds])
        if min(errors[-self.rounds :]) < (1 - self.by) * best:
            return ""
        return f"the leave-one-out error has not improved on {best:.3g} over {self.rounds} rounds"


STOPS: dict[str, type[StopRule]] = {
    cls.__name__: cls for cls in (Budget, ScoreBelow, NoImprovement)
}


def as_stop_rules(stop: Any) -> list[StopRule]:
    """The rules meant by None, a number of labels, a rule or several of them."""
    if stop is None:
        return []
    if isinstance(stop, Integral) and not isinstance(stop, bool):
        return [Budget(int(stop))]
    given: Any = [stop] if isinstance(stop, StopRule) else stop
    rules: list[Any] = list(given) if isinstance(given, Iterable) else [None]
    if isinstance(stop, str) or not all(isinstance(rule, StopRule) for rule in rules):
        raise ValueError(
            f"stop must be a number of labels, a rule such as {', '.join(STOPS)}, or a list of "
            f"rules, got {stop!r}."
        )
    if any(isinstance(rule, ScoreBelow) and rule.threshold == inf for rule in rules):
        raise ValueError("The threshold of ScoreBelow must be finite; every score is below inf.")
    return rules


def reasons_to_stop(
    rules: Iterable[StopRule], labels: int, failed: int, size: int, history: History
) -> list[str]:
    """Why to stop with so many points of a pool labeled or failed."""
    every = f"every point of the pool is labeled{' or failed' if failed else ''}"
    found = [rule.reason(labels, history) for rule in rules]
    return [reason for reason in [every if labels + failed == size else "", *found] if reason]


def to_settings(rules: Iterable[StopRule]) -> list[dict[str, Any]]:
    """The rules as plain values."""
    return [{"rule": type(rule).__name__, **asdict(rule)} for rule in rules]  # type: ignore[call-overload]


def stop_rules_from(settings: Iterable[Mapping[str, Any]]) -> list[StopRule]:
    """The rules that were described by `to_settings`."""
    settings = list(settings)
    unknown = [values["rule"] for values in settings if values["rule"] not in STOPS]
    if unknown:
        raise ValueError(
            f"The campaign stops by {unknown[0]}, a rule that this sketchridge does not know: "
            "upgrade it to continue the campaign."
        )
    return [
        STOPS[values["rule"]](**{k: v for k, v in values.items() if k != "rule"})
        for values in settings
    ]
