"""A matrix in blocks of rows on Dask's workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from sketchridge.backends import memory
from sketchridge.backends.dask_tasks import (
    collected,
    filled,
    function_of_rows,
    itself,
    rows_beside,
)

__all__ = ["EVERY", "Panel", "join_columns", "join_rows", "panel_of", "taken"]

Array = np.ndarray
EVERY = (0, None)
_NARROW = 4  # columns of a matrix that is kept where it came from, for rows that are asked for


class Panel:
    """A matrix (n, q) whose blocks of rows are futures, cut at fixed rows.

    It is an array as far as the library needs one: rows and columns that are asked for come to the
    caller as NumPy arrays, functions of rows go to the blocks.
    """

    def __init__(
        self,
        backend: Any,
        blocks: Sequence[Any],
        starts: Array,
        shape: tuple[int, int],
        cut: tuple[int, int | None] = EVERY,
        source: Array | None = None,
    ) -> None:
        self.backend = backend
        self.blocks = list(blocks)
        self.starts = starts  # (b + 1,): first row of each block, and n
        self.shape = shape
        self.cut = cut  # columns of the blocks that belong to the matrix
        self.source = source  # the matrix of a few columns that was sent
        self.ndim = 2
        self.dtype = np.dtype(float)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Some rows, or one column, as a NumPy array; neighboring columns [:, a:b] stay there."""
        if not isinstance(key, tuple):
            return self.take(key)
        rows, columns = key
        start, stop, _ = (
            slice(columns, columns + 1).indices(self.shape[1])
            if isinstance(columns, int)
            else columns.indices(self.shape[1])
        )
        first = self.cut[0]
        shape = (len(self), max(stop - start, 0))
        cut = (first + start, first + max(stop, start))
        part = Panel(self.backend, self.blocks, self.starts, shape, cut)
        if isinstance(columns, int):
            return part.take(rows)[:, 0]
        return part

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        size = 8.0 * self.shape[0] * self.shape[1]
        memory.check(size, f"Gathering {len(self):,} rows", "ask for fewer rows at a time")
        return self.take(slice(None)).astype(float if dtype is None else dtype, copy=False)

    def __reduce__(self) -> Any:
        return np.array, (np.asarray(self),)

    def take(self, rows: Any) -> Array:
        """Some rows as a NumPy array."""
        return taken([self], rows) if self.source is None else self.source[rows].copy()

    def chosen(self, rows: Any) -> Panel:
        """Some rows, in blocks of their own."""
        rows = np.arange(len(self))[rows]
        starts = self.backend.starts(len(rows))
        blocks = []
        for start, stop in pairwise(starts.tolist()):
            sources, places, inside = self.found(rows[start:stop])
            if len(sources) == 1 and self._is_whole(sources[0], inside[0]):
                blocks.append(self.blocks[sources[0]])
                continue
            some = map(_short, inside)
            pieces = [[self.blocks[k], its] for k, its in zip(sources, some, strict=True)]
            order = _short(np.argsort(np.concatenate(places)))
            blocks.append(self.backend.cluster.one(collected, self.cut, pieces, order))
        return Panel(self.backend, blocks, starts, (len(rows), self.shape[1]))

    def by_rows(self, function: Callable[[Array], Array]) -> Panel:
        """The function of each row, a row of as many numbers each."""
        width = np.asarray(function(self.take(slice(0, 1)))).shape[1]
        blocks = self._blockwise(function)
        return Panel(self.backend, blocks, self.starts, (len(self), width))

    def gathered(self, function: Callable[[Array], Array]) -> Array:
        """The same as a NumPy array, one number for each row or more."""
        return np.concatenate(self.backend.cluster.gathered(self._blockwise(function)))

    def min(self, initial: float = np.inf) -> float:
        return min([initial, *self._extremes(np.min)])

    def max(self, initial: float = -np.inf) -> float:
        return max([initial, *self._extremes(np.max)])

    def _extremes(self, function: Callable[..., float]) -> list[float]:
        return self.backend.cluster.gathered(self._blockwise(function))

    def _blockwise(self, function: Callable[[Array], Any]) -> list[Any]:
        whole = self if self.cut == EVERY else self.chosen(slice(None))
        return self.backend.cluster.each(partial(function_of_rows, function), whole.blocks)

    def found(self, rows: Array) -> tuple[list[int], list[Array], list[Array]]:
        """The blocks of some rows; which of the rows each has, and where."""
        at = np.searchsorted(self.starts, rows, side="right") - 1
        order = np.argsort(at, kind="stable")
        blocks, first = np.unique(at[order], return_index=True)
        places = np.split(order, first[1:])
        inside = [rows[p] - self.starts[k] for k, p in zip(blocks, places, strict=True)]
        return blocks.tolist(), places, inside

    def _is_whole(self, block: int, rows: Array) -> bool:
        size = self.starts[block + 1] - self.starts[block]
        return self.cut == EVERY and np.array_equal(rows, np.arange(size))


def taken(panels: Sequence[Panel], rows: Any) -> Array:
    """Some rows of panels side by side, as a NumPy array."""
    first = panels[0]
    cluster = first.backend.cluster
    rows = np.arange(len(first))[rows]
    out = np.empty((len(rows), sum(panel.shape[1] for panel in panels)))
    if not out.size:
        return out
    blocks, places, inside = first.found(rows)
    pieces = [[panel.blocks[k] for panel in panels] for k in blocks]
    work = partial(rows_beside, [panel.cut for panel in panels])
    some = list(map(_short, inside))
    futures = cluster.each(work, pieces, some, at=(blocks, len(first.blocks)))
    for place, found in zip(places, cluster.gathered(futures), strict=True):
        out[place] = found
    return out


def _short(rows: Array) -> Array | slice:
    """Row numbers as they are sent: neighbors as a slice, since there may be millions."""
    if len(rows) and (np.diff(rows) == 1).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def panel_of(backend: Any, A: Array) -> Panel:
    """A matrix of the caller's: sent with the tasks that make its blocks, so that they can be made
    again; a matrix of one number alone is made from that."""
    starts = backend.starts(len(A))
    first = float(A.flat[0]) if A.size else 0.0
    if np.equal(A, first).all():
        work = partial(filled, A.shape[1], first)
        futures = backend.cluster.each(work, np.diff(starts).tolist())
    else:
        pairs = pairwise(starts.tolist())
        blocks = [[itself, np.array(A[start:stop], dtype=float)] for start, stop in pairs]
        futures = backend.cluster.placed(blocks)
    source = A if A.shape[1] <= _NARROW else None
    return Panel(backend, futures, starts, (A.shape[0], A.shape[1]), source=source)


def join_columns(panels: Sequence[Panel]) -> Panel:
    """The panels side by side, in one."""
    first = panels[0]
    cuts = [panel.cut for panel in panels]
    rows = [[panel.blocks[i] for panel in panels] for i in range(len(first.blocks))]
    every = [slice(None)] * len(rows)
    blocks = first.backend.cluster.each(partial(rows_beside, cuts), rows, every)
    width = sum(panel.shape[1] for panel in panels)
    return Panel(first.backend, blocks, first.starts, (len(first), width))


def join_rows(above: Panel, below: Panel) -> Panel:
    """The rows of one panel and then those of another, in blocks of their number."""
    panels = [p if p.cut == EVERY else p.chosen(slice(None)) for p in (above, below)]
    starts = np.concatenate([above.starts[:-1], len(above) + below.starts])
    shape = (len(above) + len(below), above.shape[1])
    every = Panel(above.backend, panels[0].blocks + panels[1].blocks, starts, shape)
    return every.chosen(slice(None))
