"""Dask's workers: who does what, results gathered, and what to say when they are gone."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import distributed
import numpy as np
from distributed.comm.core import CommClosedError

from sketchridge.backends.base import Backend
from sketchridge.backends.dask_tasks import added, aligned, freed, itself, on_block
from sketchridge.backends.elsewhere import Unreachable

__all__ = ["Cluster", "PerBlock"]

At = tuple[Sequence[int], int]
_SMALL = 2**16  # bytes that go along with every task; anything larger is sent once
_LOOK, _ALONE = 5.0, 120.0  # s after which workers are looked for, and given up
_FRESH = 1.0  # s for which who the workers are is not asked again
_BRANCHES = 4  # of the tree in which sums are added: neighbors first, which are on one worker


class Cluster:
    """The workers of a Dask client, each the home of neighboring blocks.

    A block is a future: the scheduler knows the tasks it came from and does them again, on another
    worker, where one is lost. Blocks i of every matrix are at home together, so that little moves.
    """

    def __init__(self, client: Any, inner: str | Backend) -> None:
        self._asked = client
        self.inner = inner
        self._open: weakref.WeakSet[Any] = weakref.WeakSet()  # futures, not known to be done
        self._seen: tuple[float, str, list[str]] = (-np.inf, "", [])  # when, whose, workers

    @property
    def client(self) -> Any:
        """The client that was given, or the one that was made last in this process; none for a task
        of Dask's own, which would wait for itself."""
        if self._asked is not None:
            return self._asked
        if _is_a_task():
            raise Unreachable(
                "backend='dask' was asked for inside a task of Dask's, which would wait for the "
                "worker it is on itself: give backend='numpy' there."
            )
        try:
            return distributed.Client.current()
        except ValueError:
            raise Unreachable(
                "backend='dask' needs a Dask client, and there is none, or it is closed: make one "
                "first, with dask.distributed.Client() for this machine or Client(address) for a "
                "cluster. Fit a model again whose rows were on a cluster that is gone."
            ) from None

    def each(
        self,
        function: Callable[..., Any],
        *columns: Sequence[Any],
        name: str = "rows",
        at: At | None = None,
    ) -> list[Any]:
        """Futures of function(one of each column …) for every block, in order; or for those blocks
        of so many that ``at`` says."""
        out: list[Any] = []
        for part, there in self._homes(len(columns[0]), at):
            columns_there = (column[part] for column in columns)
            key = f"sketchridge-{name}"
            out += self.client.map(function, *columns_there, pure=False, key=key, **there)
        self._open.update(out)
        return out

    def one(self, function: Callable[..., Any], *operands: Any) -> Any:
        """The future of a function."""
        future = self.client.submit(function, *operands, pure=False)
        self._open.add(future)
        return future

    def placed(self, made: list[list[Any]]) -> list[Any]:
        """Futures of [function, arguments …] for every block, in order: one message each, since
        arguments are large."""
        out = []
        for part, there in self._homes(len(made)):
            for function, *operands in made[part]:
                out.append(self.client.submit(function, *operands, pure=False, **there))
        self._open.update(out)
        return out

    def computed(self, blocks: list[Any]) -> list[Any]:
        """Futures of Dask's delayed blocks, which know where their data came from."""
        out: list[Any] = []
        for part, there in self._homes(len(blocks)):
            out += self.client.compute(blocks[part], **there)
        self._open.update(out)
        return out

    def brought(self, collection: Any) -> Any:
        """What Dask's array or frame holds: computed by these workers, or here without a client."""
        try:
            client = self.client
        except Unreachable:
            return collection.compute()
        return self.gathered([client.compute(collection)])[0]

    def work(self, task: Callable[..., Any], *operands: Any, at: At | None = None) -> list[Any]:
        """Futures of a task of the inner backend for every block; an operand is a list with one for
        each block, or the same for all."""
        count = max(len(o.each) for o in operands if isinstance(o, PerBlock))
        columns = [o.each if isinstance(o, PerBlock) else [o] * count for o in operands]
        work = partial(on_block, task, self.inner)
        return self.each(work, *columns, name=task.__name__, at=at)

    def shared(self, value: Any) -> Any:
        """Something that many tasks need, sent to the cluster once."""
        if getattr(value, "nbytes", 0) <= _SMALL:
            return value
        return self.one(itself, value)

    def total(self, parts: list[Any]) -> Any:
        """The sum of what futures hold, added as a tree that depends on their number alone."""
        while len(parts) > 1:
            groups = [parts[i : i + _BRANCHES] for i in range(0, len(parts), _BRANCHES)]
            parts = self.each(added, groups, name="sum")
        return self.gathered(parts)[0]

    def gathered(self, futures: list[Any]) -> list[Any]:
        """What futures hold. An interruption cancels whatever the workers still do."""
        with self._told(futures), self._canceling():
            alone = 0.0
            while True:
                try:
                    with self.client.as_current():
                        distributed.wait(futures, timeout=_LOOK)
                    return aligned(self.client.gather(futures))
                except TimeoutError:
                    _raise_first(futures)  # the others may wait for ever
                    alone = 0.0 if self._workers() else alone + _LOOK
                    self.client.run_on_scheduler(freed)
                if alone >= _ALONE:
                    raise Unreachable(
                        f"The Dask cluster has had no workers for {alone:.0f} s: start some, then "
                        "fit again. Nothing was changed."
                    )

    def _workers(self) -> list[str]:
        with self._told():
            if self.client.status != "running":
                raise CommClosedError(f"its client is {self.client.status}")
            return sorted(self.client.scheduler_info(n_workers=-1).get("workers", ()))

    def _usual_workers(self) -> list[str]:
        """The workers there were a moment ago; tasks for one that is gone go to others."""
        client = self.client
        when, whose, workers = self._seen
        if whose != client.id or client.status != "running" or time.monotonic() > when + _FRESH:
            workers = self._workers()
            self._seen = (time.monotonic(), client.id, workers)
        return workers

    @contextmanager
    def _told(self, futures: Sequence[Any] = ()) -> Iterator[None]:
        """Errors of the cluster in words; those of what the futures do are their own."""
        try:
            yield
        except distributed.scheduler.KilledWorker as error:
            raise MemoryError(
                f"{error.allowed_failures + 1} of Dask's workers died in one task, most often "
                "because it needs more memory than they have: give workers more, or smaller "
                "partitions, or blocks, with backend=DaskBlocks(rows=…), or a smaller sketch_size. "
                "Nothing was changed."
            ) from error
        except (CommClosedError, CancelledError, TimeoutError, OSError) as error:
            if any(future.status == "error" for future in futures):
                raise
            raise Unreachable(
                f"The Dask scheduler, or the client's connection to it, is lost ({error}): start a "
                "new cluster and Client, then fit again. Nothing was changed."
            ) from error

    @contextmanager
    def _canceling(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            pending = [future for future in self._open if future.status == "pending"]
            self._open.clear()
            self.client.cancel(pending, asynchronous=False)
            raise
        if len(self._open) > 10_000:
            self._open = weakref.WeakSet(f for f in self._open if f.status == "pending")

    def _homes(self, count: int, at: At | None = None) -> list[tuple[slice, dict[str, Any]]]:
        """Neighboring blocks, and the worker they are for; another one where it is gone."""
        workers = self._usual_workers()
        if not workers:
            return [(slice(0, count), {})]
        blocks, of = (range(count), count) if at is None else at
        homes = [k * len(workers) // of for k in blocks]
        ends = [0, *(i for i in range(1, count) if homes[i] != homes[i - 1]), count]
        return [
            (slice(a, b), {"workers": workers[homes[a]], "allow_other_workers": True})
            for a, b in pairwise(ends)
            if b > a
        ]


def _raise_first(futures: list[Any]) -> None:
    """The error of the first that failed, if any did."""
    for future in futures:
        if future.status == "error":
            future.result()


def _is_a_task() -> bool:
    try:
        return bool(distributed.get_worker())
    except ValueError:
        return False


class PerBlock:
    """An operand that is another for every block."""

    def __init__(self, each: list[Any]) -> None:
        self.each = each
