"""A record of a campaign that ends with the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from threading import RLock
from typing import Any

import numpy as np

from sketchridge.active.store import (
    Change,
    Draw,
    Failure,
    Part,
    Round,
    Store,
    check_free_to_release,
    check_labeled,
    check_unlabeled,
    check_width,
    new_labels,
    now,
)

__all__ = ["MemoryStore"]

Array = np.ndarray


def _one_at_a_time(change: Callable[..., Any]) -> Callable[..., Any]:
    """A change that waits for those of other threads."""

    @wraps(change)
    def changed(self: MemoryStore, *arguments: Any, **options: Any) -> Any:
        with self._lock:
            return change(self, *arguments, **options)

    return changed


class MemoryStore(Store):
    """Lists and dictionaries, which are replaced and never changed, so that `transaction` can go
    back."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._settings: dict[str, Any] = {}
        self._parts: list[Part] = []
        self._draws: list[Draw] = []
        self._labels: dict[int, list[float]] = {}
        self._changes: list[Change] = []
        self._failures: list[Failure] = []
        self._rounds: list[Round] = []

    def begin(self, settings: Mapping[str, Any], part: Part) -> None:
        self._settings = dict(settings)
        self._parts = [part]

    def settings(self) -> dict[str, Any]:
        return dict(self._settings)

    def parts(self, start: int = 0) -> list[Part]:
        return self._parts[start:]

    @_one_at_a_time
    def add(self, part: Part) -> None:
        self._parts = [*self._parts, part]

    def size(self) -> int:
        return sum(part.rows for part in self._parts)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._lock:
            before = dict(self.__dict__)
            try:
                yield
            except BaseException:
                self.__dict__.update(before)
                raise

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = RLock()

    @_one_at_a_time
    def claim(self, ids: Array, probabilities: Array, round_number: int) -> bool:
        if np.isin(ids, self.taken()).any():
            return False
        drawn = zip(ids.tolist(), probabilities.tolist(), strict=True)
        self._draws = self._draws + [Draw(i, round_number, p) for i, p in drawn]
        return True

    @_one_at_a_time
    def release(self, ids: Array) -> None:
        check_free_to_release(ids, self.pending(), self.failed())
        self._give_back(ids)
        gone = set(ids.tolist())
        self._failures = [replace(f, withdrawn=f.withdrawn or f.id in gone) for f in self._failures]

    def _give_back(self, ids: Array) -> None:
        gone = set(ids.tolist())
        self._draws = [replace(d, released=d.released or d.id in gone) for d in self._draws]

    @_one_at_a_time
    def tell(self, ids: Array, Y: Array, *, names: Sequence[str] = (), by: str = "") -> int:
        new = new_labels(ids, Y, self._labels, self._width())
        told = zip(ids[new].tolist(), Y[new].tolist(), strict=True)
        self._labels = {**self._labels, **dict(told)}
        return int(new.sum())

    @_one_at_a_time
    def amend(self, ids: Array, Y: Array, *, by: str = "", note: str = "") -> None:
        check_labeled(ids, self._labels, "amended")
        check_width(Y, self._width())
        self._change(dict(zip(ids.tolist(), Y.tolist(), strict=True)), by, note)

    @_one_at_a_time
    def retract(self, ids: Array, *, by: str = "", note: str = "") -> None:
        check_labeled(ids, self._labels, "taken back")
        self._change(dict.fromkeys(ids.tolist()), by, note)

    def _change(self, new: dict[int, list[float] | None], by: str, note: str) -> None:
        at = now()
        changes = [
            Change(i, self._labels[i], y, note, by, at)
            for i, y in new.items()
            if y != self._labels[i]
        ]
        labels: dict[int, list[float] | None] = {**self._labels, **new}
        self._changes = self._changes + changes
        self._labels = {i: y for i, y in labels.items() if y is not None}

    @_one_at_a_time
    def fail(self, ids: Array, *, by: str = "", note: str = "") -> None:
        check_unlabeled(ids, self._labels)
        self._give_back(ids)
        new = np.setdiff1d(ids, self.failed()).tolist()
        self._failures = self._failures + [Failure(i, note, by, now()) for i in new]

    def _width(self) -> int | None:
        return len(next(iter(self._labels.values()))) if self._labels else None

    def labels(self, start: int = 0) -> tuple[Array, Array]:
        ids = list(self._labels)[start:]
        Y = list(self._labels.values())[start:]
        width = len(Y[0]) if Y else 1
        return np.array(ids, dtype=np.int64), np.array(Y, dtype=float).reshape(len(ids), width)

    def edition(self) -> int:
        return len(self._changes)

    def changes(self) -> list[Change]:
        return list(self._changes)

    def failures(self) -> list[Failure]:
        return list(self._failures)

    def draws(self) -> list[Draw]:
        return list(self._draws)

    def pending(self) -> Array:
        open_draws = [d.id for d in self._draws if not d.released and d.id not in self._labels]
        return np.array(open_draws, dtype=np.int64)

    def failed(self) -> Array:
        failed = [f.id for f in self._failures if not f.withdrawn and f.id not in self._labels]
        return np.array(failed, dtype=np.int64)

    def rounds(self, start: int = 0) -> list[Round]:
        return self._rounds[start:]

    @_one_at_a_time
    def open_round(
        self, least: int, labels: int | None = None, kernel: Mapping[str, Any] | None = None
    ) -> None:
        count = len(self._labels) if labels is None else min(labels, len(self._labels))
        last = self._rounds[-1] if self._rounds else Round(-1, 0)
        edition = self.edition()
        if count >= least and (count > last.labels or edition > last.edition):
            new = Round(len(self._rounds), count, edition=edition, kernel=kernel)
            self._rounds = [*self._rounds, new]

    @_one_at_a_time
    def record(self, round_number: int, metrics: Mapping[str, Any]) -> None:
        old = self._rounds[round_number]
        new = replace(old, metrics={**old.metrics, **metrics})
        self._rounds = [new if r is old else r for r in self._rounds]
