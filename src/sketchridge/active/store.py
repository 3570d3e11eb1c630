"""What a campaign has asked and learned: the interface of every store."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from sketchridge.words import first_few

__all__ = [
    "Change",
    "Draw",
    "Failure",
    "Known",
    "Part",
    "Refused",
    "Round",
    "Store",
    "Telling",
    "check_each",
    "check_free_to_release",
    "check_labeled",
    "check_unlabeled",
    "check_width",
    "new_labels",
    "now",
]

Array = np.ndarray
_ONE = {"are": "{ids} is", "were": "{ids} was", "have": "{ids} has"}


@dataclass(frozen=True)
class Draw:
    """A point handed out: when, with which probability, and what became of it."""

    id: int
    round: int
    probability: float
    released: bool = False


@dataclass(frozen=True)
class Round:
    """An update of the model to the first ``labels`` labels, and what was measured of it.

    ``edition`` is the number of corrections that labels had seen by then; ``kernel`` the kernel
    that was learned in this round, as plain values, if one was.
    """

    number: int
    labels: int
    metrics: Mapping[str, Any] = field(default_factory=dict)
    edition: int = 0
    kernel: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Telling:
    """A label as it is now, and who told it first and when."""

    id: int
    y: Sequence[float]
    name: str  # of the point, or nothing
    by: str = ""
    at: str = ""


@dataclass(frozen=True, eq=False)
class Known:
    """Labels that a campaign begins with, the names of their points, and who knew them."""

    ids: Array
    Y: Array
    names: Sequence[str] = ()
    by: str = ""


@dataclass(frozen=True)
class Change:
    """A label that was corrected or, where ``new`` is None, taken back."""

    id: int
    old: Sequence[float]
    new: Sequence[float] | None
    note: str = ""
    by: str = ""
    at: str = ""


@dataclass(frozen=True)
class Failure:
    """A point that cannot be measured."""

    id: int
    note: str = ""
    by: str = ""
    at: str = ""
    withdrawn: bool = False  # it may be asked for again after all


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of the pool that came together; ``points`` where they are few enough to be kept."""

    rows: int
    fingerprint: str
    points: Array | None = None


class Refused(ValueError):
    """Something that cannot be done with some points, which are named in the sentence.

    >>> error = Refused([3, 4], "{ids} are not pending.")
    >>> str(error)
    '3, 4 are not pending.'
    >>> error.named(lambda row: f"S{row}")
    'S3, S4 are not pending.'
    """

    def __init__(self, ids: Sequence[int], sentence: str) -> None:
        self.ids = [int(i) for i in ids]
        self.sentence = sentence
        super().__init__(self.named(str))

    def named(self, name: Callable[[int], str]) -> str:
        """The sentence, with a name for each row of the pool, and its verbs for one or several."""
        text = self.sentence
        if len(self.ids) == 1:
            text = re.sub(r"\{ids\} (are|were|have)\b", lambda found: _ONE[found[1]], text)
            text = text.replace("and so were", "and so was")
        return text.replace("{ids}", first_few(map(name, self.ids)))

    def by_name(self, name: Callable[[int], str]) -> Refused:
        """The same error, which speaks of points by their names."""
        return Refused(self.ids, self.named(name))


class Store(ABC):
    """The record of one campaign.

    What a method was given is safe when it returns; a method that raises has changed nothing.
    """

    @abstractmethod
    def begin(self, settings: Mapping[str, Any], part: Part) -> None:
        """Start a campaign with these settings and the first part of its pool."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What the campaign was started with."""

    @abstractmethod
    def parts(self, start: int = 0) -> list[Part]:
        """The parts of the pool in order, from number ``start`` on."""

    @abstractmethod
    def add(self, part: Part) -> None:
        """Append rows to the pool."""

    @abstractmethod
    def size(self) -> int:
        """The number of rows of the pool."""

    @abstractmethod
    def claim(self, ids: Array, probabilities: Array, round_number: int) -> bool:
        """Hand out these points, unless one of them is taken: then none, and the answer is
        False."""

    @abstractmethod
    def release(self, ids: Array) -> None:
        """Let points that are pending or failed be asked for again. ValueError if one is not."""

    @abstractmethod
    def tell(self, ids: Array, Y: Array, *, names: Sequence[str] = (), by: str = "") -> int:
        """Keep labels Y (t, q) and, for those who read the record, the points' names; how many are
        new.

        A point may be told again with the same label; with another one it is a ValueError.
        """

    @abstractmethod
    def amend(self, ids: Array, Y: Array, *, by: str = "", note: str = "") -> None:
        """Put other labels in the place of those there are, which stay on record."""

    @abstractmethod
    def retract(self, ids: Array, *, by: str = "", note: str = "") -> None:
        """Take labels back; they stay on record, and their points are as before they were told."""

    @abstractmethod
    def fail(self, ids: Array, *, by: str = "", note: str = "") -> None:
        """Points that cannot be measured: they are not asked for any more."""

    @abstractmethod
    def labels(self, start: int = 0) -> tuple[Array, Array]:
        """Ids (t,) and labels (t, q) in the order told, from the ``start``-th on."""

    def count(self) -> int:
        """How many labels there are."""
        return len(self.labels()[0])

    @abstractmethod
    def edition(self) -> int:
        """How many labels have been corrected or taken back."""

    @abstractmethod
    def changes(self) -> list[Change]:
        """Labels that were corrected or taken back, in order."""

    @abstractmethod
    def failures(self) -> list[Failure]:
        """Points that were said to be beyond measuring, in order."""

    @abstractmethod
    def draws(self) -> list[Draw]:
        """Every point ever handed out, in order."""

    @abstractmethod
    def pending(self) -> Array:
        """Ids handed out and neither told, released nor failed, in order."""

    @abstractmethod
    def failed(self) -> Array:
        """Ids that failed and are not labeled after all."""

    @abstractmethod
    def rounds(self, start: int = 0) -> list[Round]:
        """The rounds from number ``start`` on."""

    @abstractmethod
    def open_round(
        self, least: int, labels: int | None = None, kernel: Mapping[str, Any] | None = None
    ) -> None:
        """Start a round with the first ``labels`` labels, or with all there are, if they are at
        least so many, and more or others than in the last round."""

    @abstractmethod
    def record(self, round_number: int, metrics: Mapping[str, Any]) -> None:
        """Add to what was measured of a round."""

    def transaction(self) -> AbstractContextManager[object]:
        """A context whose calls are kept together when it ends, or not at all if it raises.

        A store that cannot do so keeps each by itself.
        """
        return nullcontext()

    def taken(self) -> Array:
        """Ids that are labeled, pending or failed."""
        return np.concatenate([self.labels()[0], self.pending(), self.failed()])


def check_each(ids: Array, allowed: Array, sentence: str) -> None:
    """`Refused` with this sentence unless all ids are allowed."""
    wrong = np.setdiff1d(ids, allowed)
    if len(wrong):
        raise Refused(wrong.tolist(), sentence)


def check_free_to_release(ids: Array, pending: Array, failed: Array) -> None:
    """`Refused` where points are neither pending nor failed."""
    check_each(
        ids,
        np.concatenate([pending, failed]),
        "Only points that were asked for and not told yet, or that failed, can be released; "
        "{ids} are not pending.",
    )


def check_labeled(ids: Array, labeled: Iterable[int], what: str) -> None:
    """`Refused` where points have no label that could be ``what``."""
    known = np.array(list(labeled), dtype=np.int64)
    check_each(ids, known, f"Only labels that were told can be {what}; {{ids}} have none.")


def check_unlabeled(ids: Array, labeled: Iterable[int]) -> None:
    """`Refused` where points have a label, and so cannot have failed."""
    check_each(
        ids,
        np.setdiff1d(ids, np.array(list(labeled), dtype=np.int64)),
        "{ids} are labeled, and so were measured: amend such a label or take it back.",
    )


def check_width(Y: Array, width: int | None) -> None:
    """ValueError where labels have another number of targets than those there are."""
    if width is not None and Y.shape[1] != width:
        raise ValueError(
            f"Labels with {Y.shape[1]} targets were given, but the campaign has {width}."
        )


def new_labels(
    ids: Array, Y: Array, known: Mapping[int, Sequence[float]], width: int | None
) -> Array:
    """Which of the labels are new: (t,).

    ValueError where one contradicts a known label or has another number of targets.
    """
    check_width(Y, width)
    told = zip(ids.tolist(), Y.tolist(), strict=True)
    wrong = [i for i, y in told if i in known and list(known[i]) != y]
    if wrong:
        raise Refused(
            wrong,
            "Already labeled, with another value: {ids}. Labels are never overwritten by telling: "
            "amend them, which keeps the old value on record.",
        )
    return np.array([i not in known for i in ids.tolist()], dtype=bool)


def now() -> str:
    """The time, to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
