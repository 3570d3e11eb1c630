"""The pool of a campaign and the parts of it that a store keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchridge.active.damage import damaged
from sketchridge.active.pool import Pool
from sketchridge.active.store import Part, Store
from sketchridge.dask_input import is_dask, points_there

__all__ = ["grown", "part_of", "points_of", "sql_store", "stored_pool"]

Array = np.ndarray
_KEPT = 2**24  # bytes of a part of the pool up to which a store keeps a copy


def sql_store() -> Any:
    """The class of stores in databases, which is imported for those who have one."""
    from sketchridge.active.sql import SQLStore

    return SQLStore


def points_of(given: Any, estimator: Any) -> Any:
    """Points as a pool has them: Dask's in blocks on the workers, unless they are few."""
    return points_there(given, estimator.backend) if is_dask(given) else given


def part_of(pool: Pool, number: int) -> Part:
    """A part of a pool, for the store."""
    points = pool.part(number)
    here = not hasattr(points, "gathered")  # but on a cluster
    kept = points if here and points.nbytes <= _KEPT else None
    return Part(len(points), pool.fingerprints[number], kept)


def stored_pool(store: Store, given: Any = None) -> tuple[Pool, list[Array]]:
    """The first part of the pool of a campaign, and those that were added.

    ``given`` is the whole pool again, or the parts that were too large to be kept.
    """
    parts = store.parts()
    arrays = _arrays(parts, given)
    pools = [Pool(array) for array in arrays]
    if [pool.fingerprints[0] for pool in pools] != [part.fingerprint for part in parts]:
        if given is None:
            raise damaged("the store", "the points that it keeps are not as they were written")
        raise _another(parts, given)
    return pools[0], arrays[1:]


def grown(pool: Pool, store: Store) -> Pool:
    """The pool with what other processes have added to it."""
    size = store.size()
    if size == len(pool):
        return pool
    if size < len(pool):
        raise ValueError(
            f"The store holds {size} points and this learner {len(pool)}: an older copy was put in "
            "its place. Continue it with ActiveLearner.resume."
        )
    for part in store.parts(len(pool.fingerprints)):
        if part.points is None:
            raise ValueError(
                f"{part.rows} points were added to the pool in the meantime, too many to be kept "
                "in the store: resume with the whole pool as pool=."
            )
        pool.append(part.points)
    return pool


def _arrays(parts: list[Part], given: Any) -> list[Array]:
    """The points of each part, from what was given or from the store."""
    missing = [part.rows for part in parts if part.points is None]
    if given is None:
        if missing:
            raise ValueError(
                f"The pool of this campaign, {sum(part.rows for part in parts)} rows, was too "
                "large to be kept in the store: give it again as pool=."
            )
        return [part.points for part in parts if part.points is not None]
    array = given if hasattr(given, "gathered") else np.asanyarray(given)  # on a cluster, or here
    if len(array) == parts[0].rows and len(parts) == 1:
        return [array]
    if len(array) == sum(part.rows for part in parts):
        stops = np.cumsum([part.rows for part in parts])
        return [array[stop - part.rows : stop] for part, stop in zip(parts, stops, strict=True)]
    if len(array) != sum(missing):
        raise _another(parts, given)
    found = []
    start = 0
    for part in parts:
        if part.points is None:
            found.append(array[start : start + part.rows])
            start += part.rows
        else:
            found.append(part.points)
    return found


def _another(parts: list[Part], given: Any) -> ValueError:
    shape = np.shape(given)
    rows = sum(part.rows for part in parts)
    return ValueError(
        f"This is not the pool of the campaign: it has the shape {shape}, the campaign's has "
        f"{rows} rows, or other values. Ids are row numbers, so the rows and their order must be "
        "the same."
    )
