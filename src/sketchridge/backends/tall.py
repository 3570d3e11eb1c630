"""Tall matrices: where a backend computes, the only thing, beside points, that has a row for each
row of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, reduce
from operator import iadd
from typing import Any

import numpy as np
from scipy.linalg import block_diag

__all__ = ["Room", "Tall"]

Array = np.ndarray


class Tall:
    """An immutable matrix (n, q) where a backend computes, in float64.

    Its columns are those of the ``panels`` side by side, so that columns are added without copying
    those there are, times ``right`` where that is given: a product that is not formed.
    """

    def __init__(self, backend: Any, panels: Sequence[Any], right: Any = None) -> None:
        self.backend = backend
        self.panels = tuple(panels)
        self.right = right
        width = self.panels_width if right is None else right.shape[1]
        self.shape = (len(self.panels[0]), width)

    def __len__(self) -> int:
        return self.shape[0]

    def __getstate__(self) -> Any:
        raise TypeError("A Tall matrix is where a backend computes: save host() instead.")

    def _like(self, panels: Sequence[Any], right: Any = None) -> Tall:
        return type(self)(self.backend, panels, right)

    @property
    def panels_width(self) -> int:
        """How many columns all panels have."""
        return sum(panel.shape[1] for panel in self.panels)

    @cached_property
    def ones(self) -> bool:
        """Whether all entries are 1, so that nothing needs to be multiplied by them."""
        return bool((self.whole() == 1).all())

    @cached_property
    def unmixed(self) -> Tall:
        """The panels alone, without what they are multiplied by."""
        return self._like(self.panels)

    @cached_property
    def largest(self) -> float:
        """The size of the largest number in the panels."""
        return max((float(abs(p).max()) for p in self.panels if 0 not in p.shape), default=0.0)

    def placed(self) -> Iterator[tuple[Any, slice]]:
        """Each panel, and which of all panels' columns it holds."""
        first = 0
        for panel in self.panels:
            yield panel, slice(first, first + panel.shape[1])
            first += panel.shape[1]

    def part(self, rows: slice | Array) -> Any:
        """Some rows, as the backend's array; a view where there is one panel."""
        chosen = rows if isinstance(rows, slice) else np.ascontiguousarray(rows)
        if self.right is not None:  # without putting the panels side by side
            return reduce(iadd, (p[chosen] @ self.right[place] for p, place in self.placed()))
        pieces = [panel[chosen] for panel in self.panels]
        return pieces[0] if len(pieces) == 1 else self.backend.joined(pieces, axis=1)

    def host(self) -> Array:
        """The matrix as a NumPy array: (n, q)."""
        return self.backend.host(self.whole())

    def take(self, rows: slice | Array) -> Array:
        """Some rows as a NumPy array."""
        return self.backend.host(self.part(rows))

    def whole(self) -> Any:
        """The matrix as one array of the backend's."""
        if self.right is None and len(self.panels) == 1:
            return self.panels[0]
        return self.held().panels[0]

    def held(self) -> Tall:
        """The same matrix in one panel, the product formed."""
        if self.right is None and len(self.panels) == 1:
            return self
        return self.map(lambda block: block)

    def columns(self, start: int, stop: int | None = None) -> Tall:
        """Neighboring columns, shared and not copied."""
        chosen = slice(start, self.shape[1] if stop is None else stop)
        if self.right is not None:
            return self._like(self.panels, self.right[:, chosen])
        panels = [
            panel[:, max(chosen.start - place.start, 0) : chosen.stop - place.start]
            for panel, place in self.placed()
            if chosen.start < place.stop and place.start < chosen.stop
        ]
        return self._like(panels or (self.panels[0][:, :0],))

    def rows(self, start: int, stop: int | None = None) -> Tall:
        """Neighboring rows, shared and not copied."""
        chosen = slice(start, stop)
        return self._like([panel[chosen] for panel in self.panels], self.right)

    def beside(self, *others: Tall) -> Tall:
        """These columns and then others'; products stay as they are."""
        talls = [tall for tall in (self, *others) if tall.shape[1]] or [self]
        panels = [panel for tall in talls for panel in tall.panels]
        if all(tall.right is None for tall in talls):
            return self._like(panels)
        rights = [
            np.eye(tall.shape[1]) if tall.right is None else self.backend.host(tall.right)
            for tall in talls
        ]
        return self._like(panels, self.backend.array(block_diag(*rights)))

    def compact(self, widest: int) -> Tall:
        """The same with the last panels put together two by two, as long as they are as wide.

        Products with few panels are faster; a column is copied about log₂ times as many grow.
        """
        panels = list(self.panels)
        while len(panels) > 1 and panels[-1].shape[1] == panels[-2].shape[1] <= widest // 2:
            if not self.backend.worth_holding(len(self), 2 * panels[-1].shape[1]):
                break
            last = panels.pop()
            panels.append(self.backend.joined([panels.pop(), last], axis=1))
        return self._like(panels, self.right)

    def append(self, more: Tall) -> Tall:
        """These rows and then others'."""
        ours = self.held() if self.right is not None else self
        panels = [
            self.backend.joined([panel, more.columns(place.start, place.stop).whole()], axis=0)
            for panel, place in ours.placed()
        ]
        return self._like(panels)

    def __matmul__(self, A: Array) -> Tall:
        """T A for a small A, not formed before it is needed."""
        small = self.backend.array(A)
        return self._like(self.panels, small if self.right is None else self.right @ small)

    def map(
        self,
        function: Callable[..., Any],
        *others: Tall,
        small: Sequence[Array] = (),
        zeros: Array | None = None,
    ) -> Tall:
        """function(rows of this, rows of the others …, small arrays …), put together again, and 0
        in the rows ``zeros``.

        The function sees arrays of the backend: it may use operators and sums over an ``axis``.
        """
        given = [self.backend.array(A) for A in small]
        talls = (self, *others)
        sample = function(*(tall.part(slice(0, 0)) for tall in talls), *given)
        out = self.backend.empty(len(self), sample.shape[1])

        def fill(rows: slice) -> None:
            out[rows] = function(*(tall.part(rows) for tall in talls), *given)

        self.backend.each(fill, len(self), max(tall.shape[1] for tall in (*talls, sample)))
        if zeros is not None:
            out[np.ascontiguousarray(zeros)] = 0
        return self._like((out,))

    def sum(
        self, function: Callable[..., Any], *others: Tall, small: Sequence[Array] = ()
    ) -> Array:
        """The sum over blocks of rows of what the function makes of each."""
        return self.backend.host(self._total(function, *others, small=small))

    def _total(
        self, function: Callable[..., Any], *others: Tall, small: Sequence[Array] = ()
    ) -> Any:
        given = [self.backend.array(A) for A in small]
        talls = (self, *others)

        def of(rows: slice) -> Any:
            return function(*(tall.part(rows) for tall in talls), *given)

        width = max(tall.shape[1] for tall in talls)
        return self.backend.total(of, len(self), width)

    def gram(
        self, other: Tall | None = None, weights: Tall | None = None, *, over: float = 1.0
    ) -> Array:
        """Tᵀ diag(w) T'/over, with T' = T where not given: (q, q'), a constant."""
        if self.right is not None and self.right.shape[0] <= self.right.shape[1]:
            middle = self.right.T @ self.backend.array(self.unmixed.gram(other, weights, over=over))
            return self.backend.frozen(middle @ self.right if other is None else middle)
        return self.backend.frozen(self._gram(other, weights) / over)

    def _gram(self, other: Tall | None, weights: Tall | None) -> Any:
        if other is None:
            if weights is None:
                return self._total(self.backend.square)
            return self._total(lambda block, w: self.backend.square(block * w**0.5), weights)
        if weights is None:
            return self._total(lambda block, its: block.T @ its, other)
        return self._total(lambda block, its, w: block.T @ (w * its), other, weights)

    def scaled(self, factors: Tall) -> Tall:
        """diag(factors) T, for a column (n, 1)."""
        return self.map(lambda block, f: block * f, factors)

    def mass(self) -> float:
        """The sum of the one column."""
        return float(self.sum(lambda block: block.sum()))

    def count(self) -> int:
        """How many entries of the one column are not 0."""
        return int(self.sum(lambda block: (block != 0).sum()))

    def pick(self, places: Array) -> Array:
        """The row numbers of some of those entries, counted from the first."""
        return self.backend.picked(self.whole()[:, 0], places)

    def draw(self, u: Array) -> Array:
        """Row numbers drawn in proportion to the one column, for uniform numbers u in [0, 1)."""
        return self.backend.drawn(self.whole()[:, 0], u)

    def room(self, columns: int) -> Room:
        """Room for columns to come beside these."""
        return Room(self, columns)


class Room:
    """Room for columns to come beside those of a tall matrix, which are neither moved nor joined.

    What was added never changes, so the matrices that ``add`` gives stay what they are.
    """

    def __init__(self, start: Tall, columns: int) -> None:
        self.start = start
        self.columns = columns
        self.array = start.backend.empty(len(start), columns)
        self.used = 0

    def add(self, new: Tall) -> Tall:
        """All columns so far and then new ones."""
        stop = self.used + new.shape[1]
        self.array[:, self.used : stop] = new.whole()
        self.used = stop
        return self.start.beside(Tall(new.backend, (self.array[:, :stop],)))
