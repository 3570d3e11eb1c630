"""What is added, taken back or put right: candidates, wrong labels, points beyond measuring."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchridge.active.checks import words
from sketchridge.active.models import Models
from sketchridge.active.parts import part_of, points_of
from sketchridge.active.pool import Pool
from sketchridge.active.store import Store
from sketchridge.kernels import Kernel

__all__ = ["Correcting"]

Array = np.ndarray


class Correcting:
    """Further candidates and corrections of a learner's record, each one transaction."""

    _store: Store
    _models: Models
    _first_kernel: Kernel

    def add(self, X: Any) -> Array:
        """Add candidates to the pool.

        Parameters
        ----------
        X : (t, d) array
            The candidates.

        Returns
        -------
        ids : (t,) array of int
            Theirs, which follow those there are.
        """
        new = Pool(points_of(X, self._models.template))
        with self._store.transaction():
            pool = self._current_pool()
            first = len(pool)
            pool.check_width(new)
            new.check(self._first_kernel.check_domain)
            self._store.add(part_of(new, 0))
        pool.append(new.part(0))
        return np.arange(first, len(pool))

    def amend(self, ids: Any, y: Any, *, by: str = "", note: str = "") -> None:
        """Other labels for points that have one: all or none.

        The old labels stay on record, in `changes_`, with who corrected them, when and why. The
        model is then fitted afresh.

        Parameters
        ----------
        ids : sequence of int
            Row numbers of the pool.
        y : (t,) or (t, q) array
            What they should have been.
        by : str
            Who did it, for the record.
        note : str
            Why, for the record.
        """
        rows, Y = self._checked_labels(ids, y)
        self._store.amend(rows, Y, by=words(by), note=words(note))

    def retract(self, ids: Any, *, by: str = "", note: str = "") -> None:
        """Take labels back that are not of these points; they stay on record, in `changes_`.

        Points that had been asked for are pending again, others can be asked for.

        Parameters
        ----------
        ids : sequence of int
            Row numbers of the pool.
        by : str
            Who did it, for the record.
        note : str
            Why, for the record.
        """
        self._store.retract(self._checked_ids(ids), by=words(by), note=words(note))

    def fail(self, ids: Any, *, by: str = "", note: str = "") -> None:
        """Points that cannot be measured: they are never asked for again, unless released.

        Parameters
        ----------
        ids : sequence of int
            Row numbers of the pool.
        by : str
            Who did it, for the record.
        note : str
            Why, for the record.
        """
        self._store.fail(self._checked_ids(ids), by=words(by), note=words(note))

    def release(self, ids: Any) -> None:
        """Points that will not be measured now, or that failed: they can be asked for again.

        Parameters
        ----------
        ids : sequence of int
            Row numbers of the pool.
        """
        self._store.release(self._checked_ids(ids))

    def _current_pool(self) -> Pool:
        raise NotImplementedError

    def _checked_ids(self, ids: Any) -> Array:
        raise NotImplementedError

    def _checked_labels(self, ids: Any, y: Any) -> tuple[Array, Array]:
        raise NotImplementedError
