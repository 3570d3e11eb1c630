"""What Dask's workers are asked to do with a block of rows, by an inner backend."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from sketchridge.backends.base import Backend
from sketchridge.backends.numpy_tiles import NumpyTiles
from sketchridge.backends.points import Points
from sketchridge.backends.tall import Tall
from sketchridge.backends.threads import one_blas_thread

__all__ = [
    "added",
    "aligned",
    "collected",
    "filled",
    "freed",
    "function_of_rows",
    "itself",
    "on_block",
    "rows_beside",
]

Array = np.ndarray


def engine(inner: str | Backend) -> Backend:
    """The inner backend, itself or by its name."""
    return inner if isinstance(inner, Backend) else _named(inner)


@lru_cache
def _named(name: str) -> Backend:
    """NumPy's in one thread, since a worker runs several tasks at a time and sums must not depend
    on how many."""
    if name == "numpy":
        return NumpyTiles(workers=1)
    from sketchridge.backends import as_backend

    return as_backend(name)


def on_block(work: Callable[..., Any], inner: str | Backend, *operands: Any) -> Any:
    """The work of an inner backend with what was sent to it."""
    with one_blas_thread():
        backend = engine(inner)
        return work(backend, *(_opened(backend, operand) for operand in operands))


def aligned(value: Any) -> Any:
    """The same, where a message has put numbers at odd bytes: NumPy's copies of those have another
    order of memory, and products with them another rounding."""
    if isinstance(value, list | tuple):
        return type(value)(map(aligned, value))
    return np.require(value, requirements="A") if isinstance(value, np.ndarray) else value


def _opened(backend: Backend, operand: Any) -> Any:
    """A matrix or points from ["tall", panels, cuts, right], ["column", function, matrices] or
    ["points", kernel, largest, U]."""
    operand = aligned(operand)
    kind = operand[0] if isinstance(operand, list) and operand else None
    if kind == "tall":
        _, panels, cuts, right = operand
        cut = [panel[:, slice(*its)] for panel, its in zip(panels, cuts, strict=True)]
        arrays = [backend.array(panel) for panel in cut] if backend.name != "numpy" else cut
        return Tall(backend, arrays, None if right is None else backend.array(right))
    if kind == "column":
        _, function, matrices = operand
        first, *others = (_opened(backend, its) for its in matrices)
        return first.map(function, *others)
    if kind == "points":
        _, kernel, largest, U = operand
        placed = backend.points(kernel, U)
        placed.largest = largest
        return placed
    return operand


def freed(dask_scheduler: Any) -> None:
    """Let tasks for a worker that is gone go to any.

    Dask does so itself, but not for tasks that came while there was no worker at all: where one
    comes back at another address, they would wait for ever.
    """
    waiting = [ts.key for ts in dask_scheduler.unrunnable if ts.loose_restrictions]
    if not waiting or not dask_scheduler.running:
        return
    dask_scheduler.set_restrictions(dict.fromkeys(waiting))
    worker = next(iter(dask_scheduler.running))
    ready = dask_scheduler.bulk_schedule_unrunnable_after_adding_worker(worker)
    dask_scheduler.transitions(ready, stimulus_id="sketchridge-freed")


# With whole blocks


def itself(value: Any) -> Any:
    return value


def filled(columns: int, value: float, rows: int) -> Array:
    return np.full((rows, columns), value)


def added(parts: list[Any]) -> Any:
    """Arrays, or tuples of arrays, added in their order."""
    if isinstance(parts[0], tuple):
        return tuple(reduce(np.add, each) for each in zip(*parts, strict=True))
    return reduce(np.add, parts)


def collected(
    cut: tuple[int, int | None], pieces: list[Any], order: Array | slice = slice(None)
) -> Array:
    """Rows of several blocks, given as [block, row numbers], in a new order."""
    found = [block[:, slice(*cut)][rows] for block, rows in pieces]
    return np.concatenate(found)[order]


def rows_beside(
    cuts: list[tuple[int, int | None]], blocks: list[Array], rows: Array | slice
) -> Array:
    """Some rows of blocks side by side."""
    pairs = zip(blocks, cuts, strict=True)
    return np.concatenate([block[:, slice(*cut)][rows] for block, cut in pairs], axis=1)


def function_of_rows(function: Callable[[Array], Any], block: Array) -> Any:
    with one_blas_thread():
        return function(aligned(block))


# With matrices and points of the inner backend; what goes on is a NumPy array


def mapped(
    backend: Backend,
    function: Callable[..., Any],
    zeros: Array | None,
    first: Tall,
    others: int,
    *rest: Any,
) -> Array:
    talls, small = rest[:others], rest[others:]
    return first.map(function, *talls, small=small, zeros=zeros).host()


def summed(
    backend: Backend, function: Callable[..., Any], first: Tall, others: int, *rest: Any
) -> Array:
    talls, small = rest[:others], rest[others:]
    return first.sum(function, *talls, small=small)


def gram(backend: Backend, T: Tall, other: Tall | None, weights: Tall | None) -> Array:
    return T.gram(other, weights)


def picked(backend: Backend, T: Tall, places: Array) -> Array:
    return T.pick(places)


def drawn(backend: Backend, T: Tall, targets: Array) -> Array:
    """Rows at which the cumulative sum of a column passes the targets."""
    column = T.host()[:, 0]
    found = np.searchsorted(np.cumsum(column), targets, side="right")
    return np.minimum(found, np.flatnonzero(column)[-1])


def generated(backend: Backend, sketch: Any, rows: range, columns: range) -> Array:
    return backend.generate(sketch, rows, columns).host()


def extent(backend: Backend, P: Points, weights: Tall) -> tuple[float, ...]:
    return tuple(P.extent(weights))


def block(backend: Backend, P: Points, Q: Points) -> Array:
    return backend.block(P, Q).host()


def schur(backend: Backend, P: Points, Q: Points, F: Tall, F_Q: Array, L: Array) -> Array:
    return backend.schur(P, Q, F, F_Q, L).host()


def product(
    backend: Backend,
    before: Array | None,
    P: Points,
    Q: Points,
    T: Tall,
    weights: Tall | None,
    precision: str,
) -> Array:
    """k(P, Q) diag(w) T, added to what came before."""
    found = backend.matmul(P, Q, T, weights=weights, precision=precision).host()
    return found if before is None else before + found


def moments(
    backend: Backend, P: Points, Q: Points, T: Tall, weights: Tall, precision: str
) -> tuple[Array, Array]:
    squares, sums = backend.moments(P, Q, T, weights=weights, precision=precision)
    return squares, sums.host()


def residual(
    backend: Backend, P: Points, Q: Points, T: Tall, C: Tall, weights: Tall, precision: str
) -> Array:
    return backend.residual_sqnorm(P, Q, T, C, weights=weights, precision=precision)
