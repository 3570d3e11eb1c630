"""What a campaign has asked and learnt: the interface of every store, and the one in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

__all__ = ["Draw", "MemoryStore", "Round", "Store", "checked_labels", "checked_pending"]

Array = np.ndarray


@dataclass(frozen=True)
class Draw:
    """A point handed out: when, with which probability, and what became of it."""

    id: int
    round: int
    probability: float
    released: bool = False


@dataclass(frozen=True)
class Round:
    """An update of the model to the first ``labels`` labels, and what was measured of it."""

    number: int
    labels: int
    metrics: Mapping[str, Any] = field(default_factory=dict)


class Store(ABC):
    """The record of one campaign.

    What a method was given is safe when it returns; a method that raises has changed nothing.
    """

    @abstractmethod
    def begin(self, settings: Mapping[str, Any], pool: Array | None) -> None:
        """Start a campaign with these settings and, where it is small, its pool."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What the campaign was started with."""

    @abstractmethod
    def pool(self) -> Array | None:
        """The pool, where it was small enough to be kept."""

    @abstractmethod
    def claim(self, ids: Array, probabilities: Array, round_number: int) -> bool:
        """Hand out these points, unless one of them is labeled or pending: then none, and the
        answer is False."""

    @abstractmethod
    def release(self, ids: Array) -> None:
        """Take back points that are pending. ValueError if one is not."""

    @abstractmethod
    def tell(self, ids: Array, Y: Array) -> None:
        """Keep labels Y (t, q).

        A point may be told again with the same label; with another one it is a ValueError.
        """

    @abstractmethod
    def labels(self, start: int = 0) -> tuple[Array, Array]:
        """Ids (t,) and labels (t, q) in the order told, from the ``start``-th on."""

    @abstractmethod
    def draws(self) -> list[Draw]:
        """Every point ever handed out, in order."""

    @abstractmethod
    def pending(self) -> Array:
        """Ids handed out and neither told nor released, in order."""

    @abstractmethod
    def rounds(self, start: int = 0) -> list[Round]:
        """The rounds from number ``start`` on."""

    @abstractmethod
    def open_round(self, least: int, labels: int | None = None) -> None:
        """Start a round with the first ``labels`` labels, or with all there are, if they are at
        least so many and more than in the last round."""

    @abstractmethod
    def record(self, round_number: int, metrics: Mapping[str, Any]) -> None:
        """Add to what was measured of a round."""

    def transaction(self) -> AbstractContextManager[object]:
        """A context whose calls are kept together when it ends, or not at all if it raises.

        A store that cannot do so keeps each by itself.
        """
        return nullcontext()

    def taken(self) -> Array:
        """Ids that are labeled or pending."""
        return np.concatenate([self.labels()[0], self.pending()])


def checked_pending(ids: Array, pending: Array) -> None:
    """ValueError unless all ids are pending."""
    wrong = np.setdiff1d(ids, pending)
    if len(wrong):
        raise ValueError(
            "Only points that were asked for and not told yet can be released; "
            f"{_some(wrong)} are not pending."
        )


def checked_labels(
    ids: Array, Y: Array, known: Mapping[int, Sequence[float]], width: int | None
) -> Array:
    """Which of the labels are new: (t,).

    ValueError where one contradicts a known label or has another number of targets.
    """
    if width is not None and Y.shape[1] != width:
        raise ValueError(
            f"Labels with {Y.shape[1]} targets were given, but the campaign has {width}."
        )
    told = zip(ids.tolist(), Y.tolist(), strict=True)
    wrong = [i for i, y in told if i in known and list(known[i]) != y]
    if wrong:
        raise ValueError(
            f"Already labeled, with another value: {_some(wrong)}. Labels are never overwritten."
        )
    return np.array([i not in known for i in ids.tolist()], dtype=bool)


def _some(ids: Any) -> str:
    """The first few ids, and how many more there are."""
    ids = [int(i) for i in ids]
    more = f" and {len(ids) - 10} more" if len(ids) > 10 else ""
    return ", ".join(map(str, ids[:10])) + more


class MemoryStore(Store):
    """A record that ends with the process."""

    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}
        self._pool: Array | None = None
        self._draws: list[Draw] = []
        self._labels: dict[int, list[float]] = {}
        self._rounds: list[Round] = []

    def begin(self, settings: Mapping[str, Any], pool: Array | None) -> None:
        self._settings = dict(settings)
        self._pool = pool

    def settings(self) -> dict[str, Any]:
        return dict(self._settings)

    def pool(self) -> Array | None:
        return self._pool

    @contextmanager
    def transaction(self) -> Iterator[None]:
        before = (self._draws, self._labels, self._rounds)
        try:
            yield
        except BaseException:
            self._draws, self._labels, self._rounds = before
            raise

    # Lists and dictionaries are replaced and never changed, so that `transaction` can go back.

    def claim(self, ids: Array, probabilities: Array, round_number: int) -> bool:
        if np.isin(ids, self.taken()).any():
            return False
        drawn = zip(ids.tolist(), probabilities.tolist(), strict=True)
        self._draws = self._draws + [Draw(i, round_number, p) for i, p in drawn]
        return True

    def release(self, ids: Array) -> None:
        checked_pending(ids, self.pending())
        gone = set(ids.tolist())
        self._draws = [replace(d, released=d.released or d.id in gone) for d in self._draws]

    def tell(self, ids: Array, Y: Array) -> None:
        width = len(next(iter(self._labels.values()))) if self._labels else None
        new = checked_labels(ids, Y, self._labels, width)
        told = zip(ids[new].tolist(), Y[new].tolist(), strict=True)
        self._labels = {**self._labels, **dict(told)}

    def labels(self, start: int = 0) -> tuple[Array, Array]:
        ids = list(self._labels)[start:]
        Y = list(self._labels.values())[start:]
        width = len(Y[0]) if Y else 1
        return np.array(ids, dtype=np.int64), np.array(Y, dtype=float).reshape(len(ids), width)

    def draws(self) -> list[Draw]:
        return list(self._draws)

    def pending(self) -> Array:
        open_draws = [d.id for d in self._draws if not d.released and d.id not in self._labels]
        return np.array(open_draws, dtype=np.int64)

    def rounds(self, start: int = 0) -> list[Round]:
        return self._rounds[start:]

    def open_round(self, least: int, labels: int | None = None) -> None:
        count = len(self._labels) if labels is None else min(labels, len(self._labels))
        before = self._rounds[-1].labels if self._rounds else 0
        if count >= least and count > before:
            self._rounds = [*self._rounds, Round(len(self._rounds), count)]

    def record(self, round_number: int, metrics: Mapping[str, Any]) -> None:
        old = self._rounds[round_number]
        new = replace(old, metrics={**old.metrics, **metrics})
        self._rounds = [new if r is old else r for r in self._rounds]
