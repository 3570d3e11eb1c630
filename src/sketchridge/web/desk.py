"""The campaign behind a page: opened once, looked at from many requests, its models elsewhere."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sketchridge.active.database import Database, with_timeout
from sketchridge.active.schema import version_of
from sketchridge.campaign.operations import Campaign
from sketchridge.web.jobs import Job, Worker, heard

__all__ = ["Desk", "Made"]

_PATIENCE = 10  # seconds for which a request waits on others that write to an SQLite file


@dataclass(frozen=True, eq=False)
class Made:
    """Something that was computed, and of which state of the campaign."""

    mark: str
    value: Any
    notes: Sequence[str] = ()


class Desk:
    """What requests share. Those who look read the store; whoever needs a model asks the worker.

    Parameters
    ----------
    address : of the store; there need not be a campaign yet.
    pool : where the campaign's first table is now, if it is not in the store.
    """

    def __init__(self, address: str, pool: Path | None = None) -> None:
        self.address = with_timeout(address, _PATIENCE)
        self.worker = Worker()
        self._pool = pool
        self._database = Database(self.address)
        self._lock = threading.Lock()
        self._campaign: Campaign | None = None
        self._settings: Any = None
        self._made: dict[str, Made] = {}
        self._making: dict[str, Job] = {}

    def campaign(self) -> Campaign | None:
        """The campaign that is in the store now, None where none has been started.

        FileNotFoundError where its file has gone: to look would make an empty one.
        """
        path = self._database.path
        known = self._campaign
        if path is not None and not path.exists():
            if known is not None:
                raise FileNotFoundError(
                    f"The campaign's file {path} is not there any more. Put it back where it was, "
                    "and the page goes on; what you typed here is kept until then."
                )
            return None
        if known is None:
            return self._opened(None) if self._holds_one() else None
        is_same = known.store.settings() == self._settings
        return known if is_same else self._opened(known)  # another one has taken its place

    def _holds_one(self) -> bool:
        with self._database.reporting(), self._database.engine.connect() as connection:
            return version_of(connection) is not None

    def _opened(self, before: Campaign | None) -> Campaign:
        """The campaign in the store, opened by whichever request comes first."""
        with self._lock:
            if self._campaign is None or self._campaign is before:
                campaign = Campaign.open(self.address, self._pool)
                self._settings = campaign.store.settings()
                self._campaign = campaign
                self._made.clear()
            return self._campaign

    # What takes long

    def made(self, what: str, mark: str, title: str, make: Callable[[], Any]) -> Made | Job:
        """Something computed of the state ``mark``, or the job that is doing that.

        A job that failed is given once; who asks again starts a new one.
        """
        with self._lock:
            found = self._made.get(what)
            if found is not None and found.mark == mark:
                return found
            job = self._making.get(what)
            if job is not None and job.state == "failed":
                self._making.pop(what)
                return job
            if job is None or not job.is_open:
                job = self.worker.do(title, lambda: self._make(what, mark, make))
                self._making[what] = job
        job.wait(_SHORT)
        found = self._made.get(what)
        return found if found is not None and found.mark == mark else job

    def latest(self, what: str) -> Made | None:
        """What was computed last, of whichever state."""
        return self._made.get(what)

    def _make(self, what: str, mark: str, make: Callable[[], Any]) -> None:
        notes: list[str] = []
        with heard(notes):
            value = make()
        self._made[what] = Made(mark, value, notes)

    def predictions(self, campaign: Campaign) -> Made | Job:
        """Predictions for all candidates, as a table."""
        mark = model_mark(campaign)
        labels = campaign.store.count()
        title = f"Learning {labels:,} labels and predicting {len(campaign.candidates):,} points"
        return self.made("predictions", mark, title, campaign.predict)


_SHORT = 1.0  # seconds for which a page waits before it says that work goes on


def model_mark(campaign: Campaign) -> str:
    """What a model depends on: another mark, another model."""
    store = campaign.store
    return f"{store.count()}-{store.edition()}-{store.size()}"


def record_mark(campaign: Campaign) -> str:
    """Of all that is on record: a page with another mark is out of date."""
    store = campaign.store
    draws = store.draws()
    kept = (
        store.settings(),
        model_mark(campaign),
        len(draws),
        sum(draw.released for draw in draws),
        [failure.withdrawn for failure in store.failures()],
        len(store.rounds()),
    )
    return hashlib.sha256(repr(kept).encode()).hexdigest()[:16]
