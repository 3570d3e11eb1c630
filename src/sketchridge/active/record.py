"""What a campaign has on record, for whoever looks: nothing here writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchridge.active.pool import Pool
from sketchridge.active.store import Change, Draw, Failure, Store

__all__ = ["Record"]

Array = np.ndarray


class Record:
    """Reads the store of a learner, ``_store``."""

    _store: Store
    _settings: dict[str, Any]

    def _current_pool(self) -> Pool:
        """The pool with all that was added, by whichever process."""
        raise NotImplementedError

    @property
    def labeled_ids_(self) -> Array:
        """Ids in the order told."""
        return self._store.labels()[0]

    @property
    def labels_(self) -> Array:
        """Labels (t, q) in the order told."""
        return self._store.labels()[1]

    @property
    def pending_ids_(self) -> Array:
        """Ids asked for and neither told, released nor failed, in the order asked for."""
        return self._store.pending()

    @property
    def failed_ids_(self) -> Array:
        """Ids that cannot be measured."""
        return self._store.failed()

    @property
    def open_ids_(self) -> Array:
        """Ids that can be asked for: neither labeled, pending nor failed."""
        is_open = np.ones(len(self._current_pool()), dtype=bool)
        is_open[self._store.taken()] = False
        return np.flatnonzero(is_open)

    @property
    def draws_(self) -> list[Draw]:
        """Every point ever handed out, in order, with its round and probability."""
        return self._store.draws()

    @property
    def changes_(self) -> list[Change]:
        """Labels that were corrected or taken back, with what they were, who did it and when."""
        return self._store.changes()

    @property
    def failures_(self) -> list[Failure]:
        """Points that were said to be beyond measuring, with notes, who said so and when."""
        return self._store.failures()

    @property
    def pool_(self) -> Pool:
        """The pool; ``pool_[ids]`` are points."""
        return self._current_pool()

    @property
    def settings_(self) -> dict[str, Any]:
        """What the campaign was started with, as plain values."""
        return dict(self._settings)
