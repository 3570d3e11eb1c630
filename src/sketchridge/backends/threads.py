"""Threads of our own, and BLAS held to one thread meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

__all__ = ["default_workers", "in_threads", "one_blas_thread"]

T = TypeVar("T")


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


class _Limit:
    """BLAS's number of threads is one for the whole process, so whoever is last restores it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.limiter: Any = None
        self.controller: ThreadpoolController | None = None

    def enter(self) -> None:
        with self.lock:
            if not self.inside:
                self.controller = self.controller or ThreadpoolController()
                self.limiter = self.controller.limit(limits=1, user_api="blas")
                self.limiter.__enter__()
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limiter.__exit__(None, None, None)


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS in one thread: its idle threads spin for a while, on the cores that tiles need.

    It may be entered by several threads and several times; the last to leave restores what was.
    """
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()
