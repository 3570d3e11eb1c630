"""A campaign in a database that SQLAlchemy reaches, shared by as many processes as there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from sketchridge.active import schema
from sketchridge.active.damage import (
    check_rows,
    check_settings,
    sum_of_change,
    sum_of_label,
)
from sketchridge.active.database import Database
from sketchridge.active.queries import (
    count_of,
    failed_ids,
    for_each,
    give_back,
    known_labels,
    part_row,
    pending_ids,
    taken_ids,
    unpacked,
    width_of,
)
from sketchridge.active.schema import campaign, changes, draws, failures, labels, parts, rounds, sa
from sketchridge.active.schema import files as kept_files
from sketchridge.active.store import (
    Change,
    Draw,
    Failure,
    Known,
    Part,
    Round,
    Store,
    Telling,
    check_free_to_release,
    check_labeled,
    check_unlabeled,
    check_width,
    new_labels,
    now,
)

__all__ = ["SQLStore"]

Array = np.ndarray


class SQLStore(Store):
    """One campaign in one database.

    Every method is one transaction, unless `transaction` makes several one. Those that write take
    turns on the campaign's row; those that read wait for nobody.
    """

    def __init__(
        self,
        url: str,
        *,
        notes: Mapping[str, Any] | None = None,
        file: tuple[Mapping[str, Any], bytes | None] | None = None,
        known: Known | None = None,
    ) -> None:
        """``notes`` are kept with the settings of a campaign that begins here, and so are what it
        began from, a description and the contents of a file, and the labels known by then."""
        self._database = Database(url)
        self._notes = dict(notes or {})
        self._file = file
        self._known = known

    # Starting and opening

    def begin(self, settings: Mapping[str, Any], part: Part) -> None:
        """Start a campaign. ValueError if the database holds one already."""
        with self._database.starting() as connection:
            if schema.version_of(connection) is not None:
                raise ValueError(
                    f"{self._database.shown} already holds a campaign: go on with it (ask, "
                    "tell; in Python ActiveLearner.resume), or give another store."
                )
            schema.metadata.create_all(connection)
            connection.execute(schema.schema.insert().values(version=schema.VERSION))
            kept = {**settings, "notes": self._notes}
            connection.execute(campaign.insert().values({"id": 1, "settings": kept}))
            connection.execute(parts.insert().values(part_row(0, part)))
            if self._file is not None:
                about, data = self._file
                values = {"number": 0, "about": dict(about), "data": data}
                connection.execute(kept_files.insert().values(values))
            if self._known is not None and len(self._known.ids):
                known = self._known
                self.tell(known.ids, known.Y, names=known.names, by=known.by)

    @classmethod
    def open(cls, url: str) -> SQLStore:
        """A campaign that was created before. ValueError if there is none, or none that this
        version can read."""
        store = cls(url)
        version = store._version()
        where = store._database.shown
        if version > schema.VERSION:
            raise ValueError(
                f"{where} was written by a newer sketchridge (its tables have version {version}, "
                f"this one knows up to {schema.VERSION}): upgrade sketchridge to open it."
            )
        if version < schema.VERSION:
            raise ValueError(
                f"{where} was written by an older sketchridge (its tables have version {version}, "
                f"this one needs {schema.VERSION}): bring it over once with `sketchridge campaign "
                "migrate` or SQLStore.migrate, which keeps all it holds."
            )
        store._database.check()
        return store

    @classmethod
    def migrate(cls, url: str) -> int:
        """Bring a campaign of an older version to this one, whole or not at all; the version it
        had."""
        store = cls(url)
        version = store._version()
        if version < schema.VERSION:
            with store._database.reporting(), store._database.writer() as connection:
                schema.migrate(connection)
        return version

    def _version(self) -> int:
        file = self.path
        if file is not None and not file.exists():  # SQLite would make it
            raise ValueError(f"There is no file {file}: check the address of the store.")
        with self._database.reporting(), self._database.engine.connect() as connection:
            version = schema.version_of(connection)
            if version is None or connection.execute(sa.select(campaign.c.id)).first() is None:
                raise ValueError(
                    f"{self._database.shown} holds no campaign: check the address, or start "
                    "one with ActiveLearner(..., store=...)."
                )
        return version

    @property
    def path(self) -> Path | None:
        """The file of an SQLite database."""
        return self._database.path

    # What the campaign is about

    def settings(self) -> dict[str, Any]:
        with self._database.reading() as connection:
            settings = connection.execute(sa.select(campaign.c.settings)).scalar_one()
        check_settings(settings, self._database.shown)
        return settings

    def parts(self, start: int = 0) -> list[Part]:
        query = parts.select().where(parts.c.number >= start).order_by(parts.c.number)
        found = self._all(query)
        where = self._database.shown
        return [Part(row.rows, row.fingerprint, unpacked(row.points, where)) for row in found]

    def add(self, part: Part) -> None:
        with self._database.writing() as connection:
            values = part_row(count_of(connection, parts), part)
            connection.execute(parts.insert().values(values))

    def size(self) -> int:
        with self._database.reading() as connection:
            return int(connection.execute(sa.select(sa.func.sum(parts.c.rows))).scalar_one())

    def annotate(self, notes: Mapping[str, Any]) -> None:
        """Put other notes in the place of those there are."""
        with self._database.writing() as connection:
            new = {**self.settings(), "notes": dict(notes)}
            connection.execute(campaign.update().values(settings=new))

    def attach(self, about: Mapping[str, Any], data: bytes | None) -> None:
        """Keep what the newest part of the pool came from."""
        with self._database.writing() as connection:
            newest = connection.execute(sa.select(sa.func.max(parts.c.number))).scalar_one()
            values = {"number": newest, "about": dict(about), "data": data}
            connection.execute(kept_files.insert().values(values))

    def files(self) -> list[tuple[dict[str, Any], bytes | None]]:
        """What the parts of the pool came from, in order."""
        found = self._all(kept_files.select().order_by(kept_files.c.number))
        return [(row.about, row.data) for row in found]

    # Points and labels

    def claim(self, ids: Array, probabilities: Array, round_number: int) -> bool:
        with self._database.writing() as connection:
            if np.isin(ids, taken_ids(connection)).any():
                return False
            rows = zip(ids.tolist(), probabilities.tolist(), strict=True)
            connection.execute(
                draws.insert(),
                [{"id": i, "round": round_number, "probability": p} for i, p in rows],
            )
            return True

    def release(self, ids: Array) -> None:
        with self._database.writing() as connection:
            check_free_to_release(ids, pending_ids(connection), failed_ids(connection))
            give_back(connection, ids)
            one = failures.update().where(failures.c.id == sa.bindparam("of"))
            for_each(connection, one.values(withdrawn=True), ids)

    def tell(self, ids: Array, Y: Array, *, names: Sequence[str] = (), by: str = "") -> int:
        with self._database.writing() as connection:
            known = known_labels(connection, ids, self._database.shown)
            new = new_labels(ids, Y, known, width_of(connection, self._database.shown))
            named: list[Any] = list(names) or [None] * len(ids)
            rows = zip(ids.tolist(), Y.tolist(), named, new.tolist(), strict=True)
            values = [
                {
                    "id": i,
                    "y": y,
                    "name": name,
                    "told_by": by,
                    "told_at": now(),
                    "checksum": sum_of_label(i, y),
                }
                for i, y, name, is_new in rows
                if is_new
            ]
            if values:
                connection.execute(labels.insert(), values)
            return len(values)

    def amend(self, ids: Array, Y: Array, *, by: str = "", note: str = "") -> None:
        new = dict(zip(ids.tolist(), Y.tolist(), strict=True))
        with self._database.writing() as connection:
            check_width(Y, width_of(connection, self._database.shown))
            self._change(connection, new, "amended", by, note)
            one = labels.update().where(labels.c.id == sa.bindparam("of"))
            one = one.values(y=sa.bindparam("to", type_=sa.JSON), checksum=sa.bindparam("by_sum"))
            values = [{"of": i, "to": y, "by_sum": sum_of_label(i, y)} for i, y in new.items()]
            if values:
                connection.execute(one, values)

    def retract(self, ids: Array, *, by: str = "", note: str = "") -> None:
        with self._database.writing() as connection:
            self._change(connection, dict.fromkeys(ids.tolist()), "taken back", by, note)
            for_each(connection, labels.delete().where(labels.c.id == sa.bindparam("of")), ids)

    def _change(
        self, connection: sa.Connection, new: Mapping[int, Any], what: str, by: str, note: str
    ) -> None:
        """Put on record that labels change."""
        ids = np.array(list(new), dtype=np.int64)
        known = known_labels(connection, ids, self._database.shown)
        check_labeled(ids, known, what)
        made = {"note": note, "changed_by": by, "changed_at": now()}
        values = [
            {
                "id": i,
                "old": known[i],
                "new": y,
                **made,
                "checksum": sum_of_change(i, known[i], y),
            }
            for i, y in new.items()
            if y != known[i]
        ]
        if values:
            connection.execute(changes.insert(), values)

    def fail(self, ids: Array, *, by: str = "", note: str = "") -> None:
        with self._database.writing() as connection:
            check_unlabeled(ids, known_labels(connection, ids, self._database.shown))
            give_back(connection, ids)
            made = {"note": note, "failed_by": by, "failed_at": now()}
            new = np.setdiff1d(ids, failed_ids(connection)).tolist()
            if new:
                connection.execute(failures.insert(), [{"id": i, **made} for i in new])

    def labels(self, start: int = 0) -> tuple[Array, Array]:
        found = self._checked(labels.select().order_by(labels.c.number).offset(start))
        ids = np.array([row.id for row in found], dtype=np.int64)
        width = len(found[0].y) if found else 1
        return ids, np.array([row.y for row in found], dtype=float).reshape(len(found), width)

    def told(self) -> list[Telling]:
        """Labels in the order told, with the names of their points, who told them and when."""
        found = self._checked(labels.select().order_by(labels.c.number))
        return [
            Telling(row.id, row.y, row.name or "", row.told_by or "", row.told_at or "")
            for row in found
        ]

    def count(self) -> int:
        with self._database.reading() as connection:
            return count_of(connection, labels)

    def edition(self) -> int:
        with self._database.reading() as connection:
            return count_of(connection, changes)

    def changes(self) -> list[Change]:
        found = self._checked(changes.select().order_by(changes.c.number))
        return [
            Change(row.id, row.old, row.new, row.note, row.changed_by, row.changed_at)
            for row in found
        ]

    def failures(self) -> list[Failure]:
        found = self._all(failures.select().order_by(failures.c.number))
        return [
            Failure(row.id, row.note, row.failed_by, row.failed_at, row.withdrawn) for row in found
        ]

    def draws(self) -> list[Draw]:
        found = self._all(draws.select().order_by(draws.c.number))
        return [Draw(row.id, row.round, row.probability, row.released) for row in found]

    def pending(self) -> Array:
        return self._read(pending_ids)

    def failed(self) -> Array:
        return self._read(failed_ids)

    def taken(self) -> Array:
        return self._read(taken_ids)

    def _all(self, query: Any) -> Sequence[Any]:
        with self._database.reading() as connection:
            return connection.execute(query).all()

    def _checked(self, query: Any) -> Sequence[Any]:
        """Labels or corrections, as they were written."""
        found = self._all(query)
        check_rows(found, self._database.shown)
        return found

    def _read(self, query: Callable[[sa.Connection], Array]) -> Array:
        with self._database.reading() as connection:
            return query(connection)

    # Rounds

    def rounds(self, start: int = 0) -> list[Round]:
        query = rounds.select().where(rounds.c.number >= start).order_by(rounds.c.number)
        found = self._all(query)
        return [
            Round(row.number, row.labels, row.metrics, row.edition, row.kernel) for row in found
        ]

    def open_round(
        self, least: int, labels: int | None = None, kernel: Mapping[str, Any] | None = None
    ) -> None:
        newest = rounds.select().order_by(rounds.c.number.desc()).limit(1)
        with self._database.writing() as connection:
            told = count_of(connection, schema.labels)
            edition = count_of(connection, changes)
            count = told if labels is None else min(labels, told)
            found = connection.execute(newest).first()
            last = Round(-1, 0) if found is None else Round(*found[:4])
            if count >= least and (count > last.labels or edition > last.edition):
                values: dict[str, Any] = {"labels": count, "metrics": {}, "edition": edition}
                values |= {"number": last.number + 1, "kernel": kernel and dict(kernel)}
                connection.execute(rounds.insert().values(values))

    def record(self, round_number: int, metrics: Mapping[str, Any]) -> None:
        one = rounds.c.number == round_number
        with self._database.writing() as connection:
            old = connection.execute(sa.select(rounds.c.metrics).where(one)).scalar_one()
            connection.execute(rounds.update().where(one).values(metrics={**old, **metrics}))

    def transaction(self) -> AbstractContextManager[None]:
        return self._database.transaction()
