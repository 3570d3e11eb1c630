"""A campaign in a database that SQLAlchemy reaches, shared by as many processes as there are."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sketchridge.active.store import Draw, Round, Store, checked_labels, checked_pending

try:
    import sqlalchemy as sa
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
except ImportError as error:
    raise ImportError(
        "A store needs SQLAlchemy, which is not installed: pip install 'sketchridge[store]'."
    ) from error

__all__ = ["SQLStore"]

Array = np.ndarray
_WAIT = 120  # seconds to wait for other processes that write to an SQLite file
_MANY = 1000  # values in one question to the database
_metadata = sa.MetaData()
_campaign = sa.Table(
    "sketchridge_campaign",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("pool", sa.LargeBinary),
)
_draws = sa.Table(
    "sketchridge_draws",
    _metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("id", sa.BigInteger, nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("probability", sa.Double, nullable=False),
    sa.Column("released", sa.Boolean, nullable=False, default=False),
)
sa.Index(
    "sketchridge_handed_out_once",
    _draws.c.id,
    unique=True,
    sqlite_where=_draws.c.released.is_(False),
    postgresql_where=_draws.c.released.is_(False),
)
_labels = sa.Table(
    "sketchridge_labels",
    _metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("id", sa.BigInteger, nullable=False, unique=True),
    sa.Column("y", sa.JSON, nullable=False),
)
_rounds = sa.Table(
    "sketchridge_rounds",
    _metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("labels", sa.Integer, nullable=False),
    sa.Column("metrics", sa.JSON, nullable=False),
)


class SQLStore(Store):
    """One campaign in one database.

    Every method is one transaction, unless `transaction` makes several one. Those that write take
    turns on the campaign's row.
    """

    def __init__(self, url: str, *, notes: Mapping[str, Any] | None = None) -> None:
        """``notes`` are kept with the settings of a campaign that begins here."""
        try:
            self._engine = sa.create_engine(url, poolclass=sa.pool.NullPool, **_options(url))
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise ValueError(
                f"The store {_hidden(url)} cannot be used: {error}. Give an SQLAlchemy address "
                "such as sqlite:///campaign.db or postgresql+psycopg://user@host/database."
            ) from None
        if self._engine.dialect.name == "sqlite":
            if self._engine.url.database in (None, "", ":memory:"):
                raise ValueError(
                    "An SQLite store needs a file, such as sqlite:///campaign.db; for memory only "
                    "leave store=None."
                )
            sa.event.listen(self._engine, "connect", _leave_transactions_to_us)
            sa.event.listen(self._engine, "begin", _take_turns)
        self._notes = dict(notes or {})
        self._inside = threading.local()  # the connection of a transaction of several calls

    def begin(self, settings: Mapping[str, Any], pool: Array | None) -> None:
        """Start a campaign. ValueError if the database holds one already."""
        values = {
            "id": 1,
            "settings": {**settings, "notes": self._notes},
            "pool": None if pool is None else _packed(pool),
        }
        with self._reporting(), self._engine.begin() as connection:
            _metadata.create_all(connection)
            if connection.execute(sa.select(_campaign.c.id)).first() is not None:
                raise ValueError(
                    f"{_hidden(self._engine.url)} already holds a campaign: continue it with "
                    "ActiveLearner.resume, or give another store."
                )
            connection.execute(_campaign.insert().values(values))

    @classmethod
    def open(cls, url: str) -> SQLStore:
        """A campaign that was created before. ValueError if there is none."""
        store = cls(url)
        file = store._engine.url.database if store._engine.dialect.name == "sqlite" else None
        if file and not Path(file).exists():  # SQLite would make it
            raise ValueError(f"There is no file {file}: check the address of the store.")
        with store._reporting(), store._engine.connect() as connection:
            missing = not sa.inspect(connection).has_table(_campaign.name)
            if missing or connection.execute(sa.select(_campaign.c.id)).first() is None:
                raise ValueError(
                    f"{_hidden(url)} holds no campaign: check the address, or start one with "
                    "ActiveLearner(..., store=...)."
                )
        return store

    def settings(self) -> dict[str, Any]:
        with self._reading() as connection:
            return connection.execute(sa.select(_campaign.c.settings)).scalar_one()

    def pool(self) -> Array | None:
        with self._reading() as connection:
            packed = connection.execute(sa.select(_campaign.c.pool)).scalar_one()
        return None if packed is None else np.load(io.BytesIO(packed), allow_pickle=False)

    def claim(self, ids: Array, probabilities: Array, round_number: int) -> bool:
        with self._writing() as connection:
            taken = np.concatenate([_known_ids(connection), _pending_ids(connection)])
            if np.isin(ids, taken).any():
                return False
            rows = zip(ids.tolist(), probabilities.tolist(), strict=True)
            connection.execute(
                _draws.insert(),
                [{"id": i, "round": round_number, "probability": p} for i, p in rows],
            )
            return True

    def release(self, ids: Array) -> None:
        with self._writing() as connection:
            checked_pending(ids, _pending_ids(connection))
            one = (
                _draws.update()
                .where(_draws.c.id == sa.bindparam("of"), _draws.c.released.is_(False))
                .values(released=True)
            )
            if len(ids):
                connection.execute(one, [{"of": i} for i in ids.tolist()])

    def tell(self, ids: Array, Y: Array) -> None:
        with self._writing() as connection:
            known, first = (
                _known_labels(connection, ids),
                connection.execute(sa.select(_labels.c.y).limit(1)).scalar(),
            )
            new = checked_labels(ids, Y, known, None if first is None else len(first))
            if new.any():
                rows = zip(ids[new].tolist(), Y[new].tolist(), strict=True)
                connection.execute(_labels.insert(), [{"id": i, "y": y} for i, y in rows])

    def labels(self, start: int = 0) -> tuple[Array, Array]:
        with self._reading() as connection:
            rows = connection.execute(
                sa.select(_labels.c.id, _labels.c.y).order_by(_labels.c.number).offset(start)
            ).all()
        ids = np.array([row.id for row in rows], dtype=np.int64)
        return ids, np.array([row.y for row in rows], dtype=float).reshape(
            len(rows), len(rows[0].y) if rows else 1
        )

    def draws(self) -> list[Draw]:
        with self._reading() as connection:
            rows = connection.execute(_draws.select().order_by(_draws.c.number)).all()
        return [Draw(row.id, row.round, row.probability, row.released) for row in rows]

    def pending(self) -> Array:
        with self._reading() as connection:
            return _pending_ids(connection)

    def taken(self) -> Array:
        with self._reading() as connection:
            return np.concatenate([_known_ids(connection), _pending_ids(connection)])

    def rounds(self, start: int = 0) -> list[Round]:
        query = _rounds.select().where(_rounds.c.number >= start).order_by(_rounds.c.number)
        with self._reading() as connection:
            return [Round(row.number, row.labels, row.metrics) for row in connection.execute(query)]

    def open_round(self, least: int, labels: int | None = None) -> None:
        newest = _rounds.select().order_by(_rounds.c.number.desc()).limit(1)
        with self._writing() as connection:
            told = connection.execute(sa.select(sa.func.count()).select_from(_labels)).scalar_one()
            count = told if labels is None else min(labels, told)
            last = connection.execute(newest).first()
            number, before = (last.number + 1, last.labels) if last else (0, 0)
            if count >= least and count > before:
                values: dict[str, Any] = {"number": number, "labels": count, "metrics": {}}
                connection.execute(_rounds.insert().values(values))

    def record(self, round_number: int, metrics: Mapping[str, Any]) -> None:
        one = _rounds.c.number == round_number
        with self._writing() as connection:
            old = connection.execute(sa.select(_rounds.c.metrics).where(one)).scalar_one()
            connection.execute(_rounds.update().where(one).values(metrics={**old, **metrics}))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._writing() as connection:
            self._inside.connection = connection
            try:
                yield
            finally:
                self._inside.connection = None

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        inside = getattr(self._inside, "connection", None)
        with self._reporting():
            if inside is not None:
                yield inside
                return
            with self._engine.begin() as connection:
                yield connection

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction in which no other process writes."""
        with self._reading() as connection:
            connection.execute(sa.select(_campaign.c.id).with_for_update())
            yield connection

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """The database's own errors as a sentence."""
        try:
            yield
        except SQLAlchemyError as error:
            cause = str(getattr(error, "orig", None) or error).strip()
            raise OSError(
                f"The store {_hidden(self._engine.url)} failed: {cause}. Nothing was changed."
            ) from error


def _known_labels(connection: sa.Connection, ids: Array) -> dict[int, list[float]]:
    """The labels that some of these points have already."""
    known = {}
    for start in range(0, len(ids), _MANY):
        one_of = _labels.c.id.in_(ids[start : start + _MANY].tolist())
        known.update(
            {
                row.id: row.y
                for row in connection.execute(sa.select(_labels.c.id, _labels.c.y).where(one_of))
            }
        )
    return known


def _known_ids(connection: sa.Connection) -> Array:
    return np.array(
        connection.execute(sa.select(_labels.c.id).order_by(_labels.c.number)).scalars().all(),
        dtype=np.int64,
    )


def _pending_ids(connection: sa.Connection) -> Array:
    told = sa.exists().where(_labels.c.id == _draws.c.id)
    query = (
        sa.select(_draws.c.id).where(_draws.c.released.is_(False), ~told).order_by(_draws.c.number)
    )
    return np.array(connection.execute(query).scalars().all(), dtype=np.int64)


def _options(url: str) -> dict[str, Any]:
    return {"connect_args": {"timeout": _WAIT}} if str(url).startswith("sqlite") else {}


def _leave_transactions_to_us(connection: Any, record: Any) -> None:
    connection.isolation_level = None


def _take_turns(connection: sa.Connection) -> None:
    """A transaction that begins as a writer cannot find, half-way, that another one came first."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _packed(array: Array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def _hidden(url: Any) -> str:
    """The address without its password."""
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return repr(str(url))
