"""Tall matrices and points whose rows are on Dask's workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from sketchridge.backends import dask_tasks as tasks
from sketchridge.backends.dask_cluster import PerBlock
from sketchridge.backends.dask_panel import Panel, join_rows, panel_of, taken
from sketchridge.backends.points import FAR, Extent, Points
from sketchridge.backends.tall import Room, Tall
from sketchridge.kernels import Kernel

__all__ = ["BlockPoints", "BlockRoom", "BlockTall", "sent"]

Array = np.ndarray


class BlockTall(Tall):
    """A tall matrix whose panels are on the workers; ``right`` is the caller's."""

    panels: tuple[Panel, ...]

    def operand(self) -> PerBlock:
        """The matrix as tasks are given it, block by block."""
        cuts = [panel.cut for panel in self.panels]
        count = len(self.panels[0].blocks)
        right = self._shared
        return PerBlock(
            [["tall", [p.blocks[i] for p in self.panels], cuts, right] for i in range(count)]
        )

    @cached_property
    def _shared(self) -> Any:
        return None if self.right is None else self.backend.cluster.shared(self.right)

    def part(self, rows: slice | Array) -> Array:
        only = len(self.panels) == 1
        some = self.panels[0].take(rows) if only else taken(self.panels, rows)
        return some if self.right is None else some @ self.right

    def whole(self) -> Array:
        return self.part(slice(None)) if self.right is None else self.held().part(slice(None))

    def host(self) -> Array:
        return self.whole()

    def rows(self, start: int, stop: int | None = None) -> Tall:
        panel = self.held().panels[0]
        some = slice(start, stop)
        if len(range(*some.indices(len(self)))) <= self.backend.limit:
            return self.backend.tall(panel.take(some))
        return BlockTall(self.backend, [panel.chosen(some)])

    def append(self, more: Tall) -> Tall:
        held = self.held()
        below = more.held()
        other = (
            below.panels[0]
            if isinstance(below, BlockTall)
            else panel_of(self.backend, below.host())
        )
        return BlockTall(self.backend, [join_rows(held.panels[0], other)])

    def map(
        self,
        function: Callable[..., Any],
        *others: Tall,
        small: Sequence[Array] = (),
        zeros: Array | None = None,
    ) -> Tall:
        talls = (self, *others)
        if zeros is None and not small and all(map(_is_column, talls)):
            return Column(self.backend, function, talls)
        given = [np.asarray(A, dtype=float) for A in small]
        sample = function(*(np.empty((0, tall.shape[1])) for tall in talls), *given)
        rows = None if zeros is None else self._inside(zeros)
        blocks = self._tasks(tasks.mapped, talls, given, function, rows)
        return self.backend.blocked(blocks, len(self), sample.shape[1])

    def sum(
        self, function: Callable[..., Any], *others: Tall, small: Sequence[Array] = ()
    ) -> Array:
        given = [np.asarray(A, dtype=float) for A in small]
        parts = self._tasks(tasks.summed, (self, *others), given, function)
        return self.backend.cluster.total(parts)

    def _tasks(
        self, task: Any, talls: Sequence[Tall], given: list[Array], *before: Any
    ) -> list[Any]:
        cluster = self.backend.cluster
        first, *others = [sent(tall) for tall in talls]
        shared = [cluster.shared(A) for A in given]
        return cluster.work(task, *before, first, len(others), *others, *shared)

    def _inside(self, rows: Array) -> PerBlock:
        """For each block, which of its rows are among some rows."""
        starts = self.backend.starts(len(self))
        rows = np.sort(rows)
        cuts = np.searchsorted(rows, starts)
        return PerBlock([rows[a:b] - s for (a, b), s in zip(pairwise(cuts), starts, strict=False)])

    def gram(
        self, other: Tall | None = None, weights: Tall | None = None, *, over: float = 1.0
    ) -> Array:
        if self.right is not None and self.right.shape[0] <= self.right.shape[1]:
            middle = self.right.T @ BlockTall(self.backend, self.panels).gram(other, weights)
            return (middle @ self.right if other is None else middle) / over
        parts = self.backend.cluster.work(tasks.gram, *map(sent, (self, other, weights)))
        return self.backend.cluster.total(parts) / over

    def mass(self) -> float:
        return float(self._sums.sum())

    @cached_property
    def _sums(self) -> Array:
        return self._of_blocks(_sum)

    def pick(self, places: Array) -> Array:
        counts = self._of_blocks(_count)
        ends = np.cumsum(counts)
        return self._looked_up(tasks.picked, ends, np.asarray(places), ends - counts)

    def draw(self, u: Array) -> Array:
        ends = np.cumsum(self._sums)
        targets = u * ends[-1]
        return self._looked_up(tasks.drawn, ends, targets, ends - self._sums)

    def _of_blocks(self, function: Callable[[Array], float]) -> Array:
        parts = self._tasks(tasks.summed, (self,), [], function)
        return np.array(self.backend.cluster.gathered(parts))

    def _looked_up(self, task: Any, ends: Array, values: Array, before: Array) -> Array:
        """Row numbers found by a task in the blocks where values are below the ends."""
        last = np.flatnonzero(ends > before)[-1]
        at = np.minimum(np.searchsorted(ends, values, side="right"), last)
        operand, starts = sent(self), self.backend.starts(len(self))
        wanted = np.unique(at)
        cluster = self.backend.cluster
        futures = cluster.work(
            task,
            PerBlock([operand.each[k] for k in wanted]),
            PerBlock([values[at == k] - before[k] for k in wanted]),
            at=(wanted.tolist(), len(ends)),
        )
        out = np.empty(len(values), dtype=np.intp)
        for k, found in zip(wanted, cluster.gathered(futures), strict=True):
            out[at == k] = starts[k] + found
        return out

    def room(self, columns: int) -> BlockRoom:
        return BlockRoom(self, columns)


def _count(block: Array) -> Any:
    return (block != 0).sum()


def _sum(block: Array) -> Any:
    return block.sum()


class Column(BlockTall):
    """A column made of columns by whoever needs it, which is a task less for each block."""

    def __init__(self, backend: Any, function: Callable[..., Any], talls: Sequence[Tall]) -> None:
        self.backend = backend
        self.function = function
        self.talls = talls
        self.right = None
        self.shape = (len(talls[0]), 1)

    def _like(self, panels: Sequence[Any], right: Any = None) -> Tall:
        return BlockTall(self.backend, panels, right)

    @cached_property
    def panels(self) -> tuple[Panel, ...]:  # type: ignore[override]
        blocks = self._tasks(tasks.mapped, self.talls, [], self.function, None)
        return self.backend.blocked(blocks, *self.shape).panels

    @property
    def is_formed(self) -> bool:
        return "panels" in self.__dict__

    def operand(self) -> PerBlock:
        if self.is_formed:
            return super().operand()
        each = zip(*(sent(tall).each for tall in self.talls), strict=True)
        return PerBlock([["column", self.function, list(its)] for its in each])


def _is_column(tall: Tall) -> bool:
    """Whether a matrix is a column that is there."""
    return tall.shape[1] == 1 and (not isinstance(tall, Column) or tall.is_formed)


class BlockRoom(Room):
    """New columns are panels of their own."""

    def __init__(self, start: Tall, columns: int) -> None:
        self.current = start
        self.columns = columns
        self.used = 0

    def add(self, new: Tall) -> Tall:
        self.used += new.shape[1]
        self.current = self.current.beside(new)
        return self.current


class BlockPoints(Points):
    """Points on the workers; ``source`` are their coordinates where the caller has them too."""

    def __init__(
        self,
        backend: Any,
        kernel: Kernel,
        U: Panel | Array,
        largest: float = 0.0,
        there: Panel | None = None,
    ) -> None:
        super().__init__(backend, kernel, U, largest)
        self.source = None if isinstance(U, Panel) else U
        self._there = U if isinstance(U, Panel) else there

    @cached_property
    def panel(self) -> Panel:
        return panel_of(self.backend, self.U) if self._there is None else self._there

    def operand(self) -> PerBlock:
        kernel = self.kernel
        return PerBlock([["points", kernel, self.largest, U] for U in self.panel.blocks])

    def take(self, rows: Array | slice) -> Points:
        count = len(range(*rows.indices(len(self)))) if isinstance(rows, slice) else len(rows)
        is_few = self.source is not None or count <= self.backend.limit
        U = self.U[rows] if is_few else self.panel.chosen(rows)
        return self.backend.points_at(self.kernel, U, self.largest)

    def append(self, more: Points) -> Points:
        largest = max(self.largest, more.largest)
        if self.source is not None and not isinstance(more.U, Panel):
            U: Any = np.concatenate([self.source, more.U])
        else:
            below = more.panel if isinstance(more, BlockPoints) else panel_of(self.backend, more.U)
            U = join_rows(self.panel, below)
        return self.backend.points_at(self.kernel, U, largest)

    def of(self, kernel: Kernel) -> BlockPoints:
        return BlockPoints(self.backend, kernel, self.U, self.largest, self.panel)

    def tall(self) -> Tall:
        return BlockTall(self.backend, [self.panel])

    def host(self) -> Array:
        return np.asarray(self.U)

    def diag(self) -> Array:
        if self.source is not None or self.kernel.geometry == "distance":
            return super().diag()
        return self.panel.gathered(self.kernel.diagonal)

    def diagonal(self) -> Tall:
        if self.source is not None or self.kernel.geometry == "distance":
            return super().diagonal()
        return BlockTall(self.backend, [self.panel.by_rows(partial(_diagonal, self.kernel))])

    def extent(self, weights: Tall) -> Extent:
        if self.source is not None:
            return super().extent(weights)
        cluster = self.backend.cluster
        found = cluster.gathered(cluster.work(tasks.extent, sent(self), sent(weights)))
        diag, trace, square, fourth = zip(*found, strict=True)
        return Extent(max(diag), sum(trace), max(square), sum(fourth))

    def squares(self) -> Array:
        if self.kernel.geometry != "distance":
            return np.zeros(len(self))
        if self.source is None:
            return np.minimum(self.panel.gathered(_squares), FAR)
        return np.minimum(_squares(self.source), FAR)


def _diagonal(kernel: Kernel, U: Array) -> Array:
    return kernel.diagonal(U)[:, None]


def _squares(U: Array) -> Array:
    return (U * U).sum(axis=1)


def sent(operand: Any) -> Any:
    """Points or a matrix as tasks are given them: block by block, or the same for all."""
    if isinstance(operand, BlockTall | BlockPoints):
        return operand.operand()
    if isinstance(operand, Tall):
        shared = operand.backend.cluster.shared
        right = None if operand.right is None else shared(operand.right)
        return [
            "tall",
            [shared(p) for p in operand.panels],
            [(0, None)] * len(operand.panels),
            right,
        ]
    if isinstance(operand, Points):
        U = operand.backend.cluster.shared(operand.U)
        return ["points", operand.kernel, operand.largest, U]
    return operand
