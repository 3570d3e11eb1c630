"""What a store asks its tables, and how rows stand in them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from sketchridge.active.damage import check_rows, damaged
from sketchridge.active.schema import draws, failures, labels, sa
from sketchridge.active.store import Part

__all__ = [
    "count_of",
    "failed_ids",
    "for_each",
    "give_back",
    "known_labels",
    "part_row",
    "pending_ids",
    "taken_ids",
    "unpacked",
    "width_of",
]

Array = np.ndarray
_MANY = 1000  # values in one question to the database


def known_labels(connection: sa.Connection, ids: Array, store: str) -> dict[int, list[float]]:
    """The labels that some of these points have already."""
    known = {}
    for start in range(0, len(ids), _MANY):
        one_of = labels.c.id.in_(ids[start : start + _MANY].tolist())
        found = connection.execute(labels.select().where(one_of)).all()
        check_rows(found, store)
        known.update({row.id: row.y for row in found})
    return known


def width_of(connection: sa.Connection, store: str) -> int | None:
    """The number of targets, if there are labels."""
    first = connection.execute(labels.select().order_by(labels.c.number).limit(1)).all()
    check_rows(first, store)
    return len(first[0].y) if first else None


def count_of(connection: sa.Connection, table: Any) -> int:
    """The number of rows of a table."""
    return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def taken_ids(connection: sa.Connection) -> Array:
    """Those labeled, pending or failed."""
    labeled = _ids(connection, sa.select(labels.c.id).order_by(labels.c.number))
    return np.concatenate([labeled, pending_ids(connection), failed_ids(connection)])


def pending_ids(connection: sa.Connection) -> Array:
    """Those handed out and neither told nor released."""
    told = sa.exists().where(labels.c.id == draws.c.id)
    open_draws = sa.select(draws.c.id).where(draws.c.released.is_(False), ~told)
    return _ids(connection, open_draws.order_by(draws.c.number))


def failed_ids(connection: sa.Connection) -> Array:
    """Those that failed and have no label after all."""
    told = sa.exists().where(labels.c.id == failures.c.id)
    failed = sa.select(failures.c.id).where(failures.c.withdrawn.is_(False), ~told)
    return _ids(connection, failed.order_by(failures.c.number))


def _ids(connection: sa.Connection, query: Any) -> Array:
    return np.array(connection.execute(query).scalars().all(), dtype=np.int64)


def give_back(connection: sa.Connection, ids: Array) -> None:
    """Let points be handed out again."""
    one = draws.update().where(draws.c.id == sa.bindparam("of"), draws.c.released.is_(False))
    for_each(connection, one.values(released=True), ids)


def for_each(connection: sa.Connection, statement: Any, ids: Array) -> None:
    """A statement for each of these ids, which it calls ``of``."""
    if len(ids):
        connection.execute(statement, [{"of": i} for i in ids.tolist()])


def part_row(number: int, part: Part) -> dict[str, Any]:
    """A part of the pool as it is kept."""
    points = None if part.points is None else _packed(part.points)
    kept = {"rows": part.rows, "fingerprint": part.fingerprint, "points": points}
    return {"number": number, **kept}


def _packed(array: Array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def unpacked(packed: bytes | None, store: str) -> Array | None:
    """Points that were kept."""
    try:
        return None if packed is None else np.load(io.BytesIO(packed), allow_pickle=False)
    except (ValueError, EOFError, SyntaxError):
        raise damaged(store, "the points that it keeps cannot be read") from None
