"""Work that takes long, done one piece after the other beside the page, which goes on answering."""

from __future__ import annotations

import itertools
import queue
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sketchridge.campaign.labels import OutOfRange
from sketchridge.web.sentences import for_a_page, in_its_words

__all__ = ["Job", "Worker", "heard"]

_KEPT = 100  # jobs that are remembered


@contextmanager
def heard(notes: list[str]) -> Iterator[None]:
    """Warnings of the library as notes, each once."""
    with warnings.catch_warnings(record=True) as found:
        yield
    said = (
        in_its_words(str(one.message)) for one in found if issubclass(one.category, UserWarning)
    )
    notes += dict.fromkeys(said)


@dataclass(eq=False)
class Job:
    """A piece of work and what became of it."""

    number: int
    title: str  # what is being done, as "Choosing 5 points"
    work: Callable[[], Any]
    since: float = field(default_factory=time.monotonic)
    state: str = "waiting"  # "running", "done" or "failed"
    result: Any = None
    problem: str = ""  # a sentence
    outside: bool = False  # because labels are beyond the range, which can be accepted
    notes: list[str] = field(default_factory=list)  # warnings on the way
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def is_open(self) -> bool:
        return self.state in ("waiting", "running")

    @property
    def seconds(self) -> int:
        """Since it was asked for."""
        return int(time.monotonic() - self.since)

    def wait(self, seconds: float) -> bool:
        """Whether it ends within so many seconds."""
        return self.ended.wait(seconds)

    def run(self) -> None:
        self.state = "running"
        try:
            with heard(self.notes):
                self.result = self.work()
            self.state = "done"
        except Exception as error:  # whatever it is, the worker goes on
            self.problem = for_a_page(error)
            self.outside = isinstance(error, OutOfRange)
            self.state = "failed"
        finally:
            self.ended.set()


class Worker:
    """One thread, in which models are fitted and points are chosen.

    A fit uses all processors already, and a learner is not made for several threads.

    >>> worker = Worker()
    >>> job = worker.do("Adding", lambda: 1 + 1)
    >>> job.wait(10), job.result, job.state
    (True, 2, 'done')
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._queue: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._jobs: OrderedDict[int, Job] = OrderedDict()
        self._lock = threading.Lock()
        threading.Thread(target=self._run, daemon=True, name="campaign").start()

    def do(self, title: str, work: Callable[[], Any]) -> Job:
        """Have something done."""
        with self._lock:
            job = Job(next(self._numbers), title, work)
            self._jobs[job.number] = job
            old = [n for n, kept in self._jobs.items() if not kept.is_open]
            for number in old[: max(len(self._jobs) - _KEPT, 0)]:
                self._jobs.pop(number)
        self._queue.put(job)
        return job

    def job(self, number: int) -> Job | None:
        """A job by its number, if it is remembered."""
        with self._lock:
            return self._jobs.get(number)

    def open_jobs(self) -> list[Job]:
        """What is being done and what waits."""
        with self._lock:
            return [job for job in self._jobs.values() if job.is_open]

    def _run(self) -> None:
        while True:
            self._queue.get().run()
