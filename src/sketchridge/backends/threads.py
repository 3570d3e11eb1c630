"""Threads of our own, and BLAS held to one thread meanwhile."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from sketchridge.backends.slices import slices

__all__ = ["by_rows", "default_workers", "in_threads", "on_cluster", "one_blas_thread", "over_rows"]

T = TypeVar("T")
Array = np.ndarray
_ROWS = 2**16  # of an array that one thread is given at a time


def default_workers() -> int:
    """Cores this process may use: joblib's count, and OMP_NUM_THREADS where it is lower."""
    allowed = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    cores = joblib.cpu_count()
    return max(1, min(cores, int(allowed))) if allowed.isdigit() else cores


def in_threads(workers: int, jobs: Sequence[Callable[[], T]]) -> list[T]:
    """The results of all jobs, in their order."""
    with one_blas_thread():
        if workers == 1 or len(jobs) < 2:
            return [job() for job in jobs]
        with ThreadPoolExecutor(min(workers, len(jobs))) as pool:
            return list(pool.map(lambda job: job(), jobs))


def over_rows(function: Callable[[slice], T], n: int) -> list[T]:
    """The function of slices of n rows, by several threads where there are many."""
    parts = slices(n, _ROWS)
    if len(parts) < 2:
        return [function(part) for part in parts]
    return in_threads(default_workers(), [partial(function, part) for part in parts])


def on_cluster(A: Any) -> bool:
    """Whether an array's rows are in blocks on the workers of a cluster."""
    return hasattr(A, "by_rows")


def by_rows(function: Callable[[Array], Array], A: Any) -> Array:
    """function(A) in a new array, for a function that takes each row on its own.

    Rows that live elsewhere stay there.
    """
    if on_cluster(A):
        return A.by_rows(function)
    out = np.empty((len(A), *function(A[:1]).shape[1:]))

    def fill(rows: slice) -> None:
        out[rows] = function(A[rows])

    over_rows(fill, len(A))
    return out


class _Token:
    """Whoever wants BLAS in one thread, for as long as it lives."""


class _Limit:
    """BLAS's number of threads is one for the whole process, so whoever is last restores it.

    Only the thread that limited BLAS may restore it, as threadpoolctl has it, so both are done by
    one thread of our own. Holders are known by weak references: one that an exception swept away
    between two lines does not count any longer.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holders: weakref.WeakSet[_Token] = weakref.WeakSet()
        self.keeper = ThreadPoolExecutor(1, thread_name_prefix="sketchridge-blas")
        self.controller: ThreadpoolController | None = None
        self.limiter: Any = None

    def enter(self, token: _Token) -> None:
        with self.lock:
            self.holders.add(token)
            if self.limiter is None:
                self.keeper.submit(self._limit).result()

    def leave(self, token: _Token) -> None:
        with self.lock:
            self.holders.discard(token)
            if not self.holders and self.limiter is not None:
                self.keeper.submit(self._restore).result()

    # An exception while the keeper is waited for leaves its work to be done, so each looks again.

    def _limit(self) -> None:
        if self.limiter is None:
            self.controller = self.controller or ThreadpoolController()
            limiter = self.controller.limit(limits=1, user_api="blas")
            limiter.__enter__()
            self.limiter = limiter

    def _restore(self) -> None:
        if self.limiter is not None and not self.holders:
            limiter, self.limiter = self.limiter, None
            limiter.__exit__(None, None, None)


_limit = _Limit()


def _start_afresh() -> None:
    """In a forked process, where the thread of the parent is gone."""
    global _limit
    _limit = _Limit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS in one thread: its idle threads spin for a while, on the cores that tiles need.

    It may be entered by several threads and several times; the last to leave restores what was.
    """
    token = _Token()
    limit = _limit
    try:
        limit.enter(token)
        yield
    finally:
        limit.leave(token)
