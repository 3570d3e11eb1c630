"""What can be done with a campaign that began from a table: one method for each command.

The command line and a page call these; they ask for nothing and print nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

from sketchridge.active.goals import EXPLORE, Goal, as_goal
from sketchridge.active.sql import SQLStore
from sketchridge.active.store import Known, Refused, check_each
from sketchridge.campaign.candidates import Candidates, described, free_name
from sketchridge.campaign.encoding import Encoding
from sketchridge.campaign.gain import gain_sentence, goal_sentence, same_sentence
from sketchridge.campaign.labels import Labels, Told, check_range, read_labels
from sketchridge.campaign.tables import Given, check_kept, first_table, later_table
from sketchridge.campaign.values import value_of
from sketchridge.sheets.files import read_sheet
from sketchridge.words import listed, named_rows

if TYPE_CHECKING:
    from sketchridge.active import ActiveLearner

__all__ = ["Campaign", "Told"]

Array = np.ndarray
T = TypeVar("T")


class Campaign:
    """A campaign in a store, by the names in its table.

    Each method is one transaction; what is refused changes nothing.
    """

    def __init__(self, store: SQLStore, encoding: Encoding, pool: Path | None = None) -> None:
        self._store = store
        self._pool = pool
        self.encoding = encoding
        self._candidates: tuple[int, Candidates] | None = None
        self._learner: ActiveLearner | None = None

    @classmethod
    def create(
        cls,
        address: str,
        path: Path,
        *,
        target: str,
        estimator: Any,
        batch_size: int = 30,
        acquisition: str = "auto",
        score: str = "auto",
        goal: Any = "explore",
        stop: Any = None,
        seed: int = 0,
        by: str = "",
        keep: bool = False,
        accept: bool = False,
        **columns: Any,
    ) -> Campaign:
        """Start a campaign over the rows of a table; labels that it holds already are told.

        ``columns`` are those of `encoding_of`; ``keep`` refuses a table that is too large to be
        kept in the store, where the file will not stay; ``accept`` takes labels beyond the range.
        """
        from sketchridge.active import ActiveLearner

        table = first_table(path, target, columns)
        if keep:
            check_kept(table, path)
        labels = table.labels()
        if not accept:
            check_range(labels, table.encoding)
        notes = {"encoding": table.encoding.plain(), "style": table.style, "seed": seed}
        about = described(path, table.source, table.encoding)
        known = Known(labels.rows, labels.y[:, None], labels.names, by)
        store = SQLStore(address, notes=notes, file=(about, table.data), known=known)
        campaign = cls(store, table.encoding, path)
        campaign._learner = ActiveLearner(
            estimator,
            table.matrix(),
            batch_size=batch_size,
            acquisition=acquisition,
            score=score,
            goal=goal,
            stop=stop,
            store=store,
            random_state=seed,
        )
        return campaign

    @classmethod
    def open(cls, address: str, pool: Path | None = None) -> Campaign:
        """A campaign that was started from a table; ``pool`` says where that is now."""
        store = SQLStore.open(address)
        notes = store.settings().get("notes") or {}
        if "encoding" not in notes:
            raise ValueError(
                "This campaign was not started from the command line: continue it in Python with "
                "ActiveLearner.resume."
            )
        return cls(store, Encoding.of(notes["encoding"]), pool)

    @property
    def store(self) -> SQLStore:
        """Its record, to look at."""
        return self._store

    @property
    def style(self) -> dict[str, str]:
        """How the campaign's first table is written, and sheets for the bench with it."""
        return self._store.settings()["notes"]["style"]

    @property
    def goal(self) -> Goal:
        """What the campaign is after."""
        return as_goal(self._store.settings().get("goal", EXPLORE))

    @property
    def paths(self) -> list[Path]:
        """Files that belong to the campaign and are never overwritten."""
        tables = [Path(about["path"]) for about, _ in self._store.files()]
        if self._pool is not None:
            tables += [self._pool, *(self._pool / table.name for table in tables)]
        return tables if self._store.path is None else [self._store.path, *tables]

    @property
    def candidates(self) -> Candidates:
        """The rows of the pool by name, with what others have added in the meantime."""
        size = self._store.size()
        if self._candidates is None or self._candidates[0] != size:
            self._candidates = size, Candidates(self.encoding, self._store, self._pool)
        return self._candidates[1]

    @property
    def learner(self) -> ActiveLearner:
        """The learner, which knows rows by their numbers."""
        from sketchridge.active import ActiveLearner

        if self._learner is None:
            kept = all(part.points is not None for part in self._store.parts())
            points = None if kept else self.candidates.matrix()
            self._learner = ActiveLearner.resume(self._store, points)
        return self._learner

    # Asking and telling

    def ask(self, n: int | None = None) -> pl.DataFrame:
        """The points to measure next, with an empty column for the labels."""
        explores = self.learner.goal_.explores
        return self.learner.ask_with(
            lambda ids, chances: self._sheet(ids, {"probability": chances} if explores else {}), n
        )

    def pending(self) -> pl.DataFrame:
        """The points that were asked for and are neither told, released nor failed."""
        ids = self._store.pending()
        if not self.goal.explores:
            return self._sheet(ids, {})
        chances = {draw.id: draw.probability for draw in self._store.draws()}
        return self._sheet(ids, {"probability": [chances[i] for i in ids.tolist()]})

    def _sheet(self, rows: Array, columns: Mapping[str, Any]) -> pl.DataFrame:
        empty = pl.Series(self.encoding.heading, [None] * len(rows), dtype=pl.Float64)
        return self.candidates.select(rows, columns, empty)

    def tell(self, path: Path, *, accept: bool = False, by: str = "") -> Told:
        """Keep the labels in a table; rows without one stay as they are.

        ``accept`` keeps labels beyond the campaign's range too.
        """
        with self._store.transaction():
            failed = self._store.failed()
            new, blank = self.keep(path, accept=accept, by=by)
            revived = self.candidates.names(np.setdiff1d(failed, self._store.failed()))
            total = self._store.count()
            pending = len(self._store.pending())
        stop = self.learner.stop_reason_ if self.learner.should_stop() else ""
        return Told(new, total, pending, blank, stop, revived)

    def keep(self, path: Path, *, accept: bool = False, by: str = "") -> tuple[int, int]:
        """`tell` without a look at the model: how many labels are new, and how many rows of the
        table had none."""
        labels = self._read(path)
        try:
            return self.put(labels, accept=accept, by=by), labels.blank
        except Refused as error:
            raise ValueError(f"{path} was refused and nothing was changed: {error}") from None

    def _read(self, path: Path) -> Labels:
        usual = self.style["decimal"]
        return read_labels(read_sheet(path), self.encoding, self.candidates, usual)

    def put(self, labels: Labels, *, accept: bool = False, by: str = "") -> int:
        """Keep labels that were checked: how many are new."""
        if not accept:
            check_range(labels, self.encoding)
        Y, names = labels.y[:, None], labels.names
        return self._on_rows(lambda: self._store.tell(labels.rows, Y, names=names, by=by))

    def amend(
        self, name: str, value: str, *, accept: bool = False, by: str = "", note: str = ""
    ) -> tuple[float, float]:
        """Correct a label: what it was, and what it is."""
        rows = self.candidates.known_rows([name])
        new = value_of(value, self.encoding, self.style["decimal"])
        if not accept:
            check_range(Labels(rows, np.array([new]), [name], 0), self.encoding)
        with self._store.transaction():
            known, Y = self._store.labels()
            self._on_rows(lambda: self._store.amend(rows, np.array([[new]]), by=by, note=note))
        return float(Y[known == rows[0]][0, 0]), new

    def replace(
        self, labels: Labels, old: Array, *, accept: bool = False, by: str = "", note: str = ""
    ) -> None:
        """Correct labels that are still what someone saw, ``old``; all or none."""
        if not accept:
            check_range(labels, self.encoding)
        with self._store.transaction():
            known, Y = self._store.labels()
            now = dict(zip(known.tolist(), Y[:, 0].tolist(), strict=True))
            seen = zip(labels.rows.tolist(), old.tolist(), strict=True)
            others = [row for row, value in seen if row in now and now[row] != value]
            if others:
                raise Refused(
                    others,
                    "Somebody else has corrected {ids} in the meantime: look at the value that is "
                    "there now, and correct it again if it is wrong. Nothing was changed.",
                ).by_name(self.candidates.name)
            Y = labels.y[:, None]
            self._on_rows(lambda: self._store.amend(labels.rows, Y, by=by, note=note))

    def amend_table(self, path: Path, *, accept: bool = False, by: str = "", note: str = "") -> int:
        """Correct the labels that a table has otherwise: how many those are."""
        labels = self._read(path)
        if not accept:
            check_range(labels, self.encoding)
        Y = labels.y[:, None]
        with self._store.transaction():
            before = self._store.edition()
            self._on_rows(lambda: self._store.amend(labels.rows, Y, by=by, note=note))
            return self._store.edition() - before

    def retract(self, names: Sequence[str], *, by: str = "", note: str = "") -> None:
        """Take labels back that are not of these points."""
        rows = self.candidates.known_rows(names)
        self._on_rows(lambda: self._store.retract(rows, by=by, note=note))

    def fail(self, names: Sequence[str], *, by: str = "", note: str = "") -> list[str]:
        """Points that cannot be measured: they are never asked for again. Those that had failed
        before, whose record stays."""
        rows = self.candidates.known_rows(names)
        with self._store.transaction():
            before = np.intersect1d(rows, self._store.failed())
            self._on_rows(lambda: self._store.fail(rows, by=by, note=note))
        return self.candidates.names(before)

    def release(self, names: Sequence[str] | None) -> int:
        """Let points be asked for again; None is for all that are pending. How many they are."""
        with self._store.transaction():
            rows = self._store.pending() if names is None else self.candidates.known_rows(names)
            self._on_rows(lambda: self._store.release(rows))
        return len(rows)

    def hand_out_again(self, names: Sequence[str]) -> None:
        """Undo a release: points are pending as they were, drawn in the same round with the same
        probability."""
        rows = self.candidates.known_rows(names)
        with self._store.transaction():
            drawn = {draw.id: draw for draw in self._store.draws() if draw.released}
            known = np.array(list(drawn), dtype=np.int64)
            self._on_rows(
                lambda: check_each(rows, known, "{ids} were never released: ask for points anew.")
            )
            taken = self._store.taken()
            self._on_rows(
                lambda: check_each(
                    np.intersect1d(rows, taken),
                    np.setdiff1d(rows, taken),
                    "{ids} are labeled, pending or failed by now: there is nothing to undo.",
                )
            )
            for row in rows.tolist():
                one = drawn[row]
                self._store.claim(np.array([row]), np.array([one.probability]), one.round)

    def add(
        self, path: Path, *, by: str = "", keep: bool = False, accept: bool = False
    ) -> tuple[int, int]:
        """Further candidates from a table with the same columns: how many, and how many of them
        are labeled already. ``keep`` and ``accept`` as in `create`."""
        table = later_table(path, self.encoding, self.style["decimal"])
        if keep:
            check_kept(table, path)
        about = described(path, table.source, self.encoding)
        X = table.matrix()
        learner = self.learner
        with self._store.transaction():
            self._check_new(table, path)
            if not accept:
                check_range(table.labels(len(self.candidates)), self.encoding)
            self._learner = None  # until all is kept: it would know rows that the store does not
            new = learner.add(X)
            self._store.attach(about, table.data)
            if len(table.rows):
                labels = table.labels(int(new[0]))
                self._store.tell(labels.rows, labels.y[:, None], names=labels.names, by=by)
        self._learner = learner
        return len(table.source), len(table.rows)

    def _check_new(self, table: Given, path: Path) -> None:
        """ValueError where the pool has an id of a table already."""
        if self.encoding.id is None:
            return
        ids = table.source.column(self.encoding.id).cast(pl.String)
        known = self.candidates.rows(ids) >= 0
        if known.any():
            raise ValueError(
                f"{path} was refused and nothing was changed: its "
                f"{named_rows(np.flatnonzero(known))} have ids that the pool has already "
                f"({listed(ids.filter(pl.Series(known)))})."
            )

    def _on_rows(self, work: Callable[[], T]) -> T:
        """Do something, and speak of points by their names where it cannot be done."""
        try:
            return work()
        except Refused as error:
            raise error.by_name(self.candidates.name) from None

    # Looking

    def predict(self, path: Path | None = None, *, confidence: float = 0.95) -> pl.DataFrame:
        """Predictions for all candidates, or for the rows of a table: `prediction_columns`."""
        from sketchridge.campaign.predictions import prediction_columns

        estimator = self.learner.estimator_
        if path is None:
            X = self.learner.pool_[slice(None)]
            labels = self._labels_by_row(len(X))
            columns = prediction_columns(estimator, X, confidence)
            return self.candidates.select(np.arange(len(X)), columns, labels)
        sheet = read_sheet(path)
        frame = self.encoding.read(sheet, ids=self.encoding.id in sheet.frame.columns)
        made = prediction_columns(estimator, self.encoding.matrix(frame), confidence)
        taken = set(frame.columns)
        return frame.with_columns([pl.Series(free_name(n, taken), v) for n, v in made.items()])

    def export(self, *, confidence: float = 0.95) -> pl.DataFrame:
        """Every label with its features, its draw, and what is predicted there."""
        from sketchridge.campaign.predictions import prediction_columns

        ids, Y = self._store.labels()
        drawn = {draw.id: draw for draw in self._store.draws() if not draw.released}
        found = [drawn.get(i) for i in ids.tolist()]
        columns: dict[str, Any] = {
            "round": [None if draw is None else draw.round for draw in found],
            "probability": [None if draw is None else draw.probability for draw in found],
            "corrected": np.isin(ids, [change.id for change in self._store.changes()]),
        }
        if len(ids) > 1:
            X = self.learner.pool_[ids]
            columns |= prediction_columns(self.learner.estimator_, X, confidence)
        return self.candidates.select(ids, columns, pl.Series(Y[: len(ids), 0]))

    def _labels_by_row(self, size: int) -> pl.Series:
        ids, Y = self._store.labels()
        known = dict(zip(ids.tolist(), Y[:, 0].tolist(), strict=True))
        values = [known.get(row) for row in range(size)]
        return pl.Series(self.encoding.heading, values, dtype=pl.Float64)

    def gain(self) -> str:
        """What the next points are expected to teach, in a sentence."""
        learner = self.learner
        if not len(learner.open_ids_):
            return "Every point is labeled, pending or failed: there is nothing left to ask for."
        y = learner.labels_[:, 0]
        if learner.goal_.has_best and len(y) > 1 and (y == y[0]).all():
            return same_sentence(len(y), float(y[0]), self.encoding)
        if not learner.goal_.explores:
            return goal_sentence(learner.goal_, learner.outlook(), self.encoding)
        return gain_sentence(learner.expected(), len(learner.preview()))

    def report(self) -> str:
        """One HTML page about the campaign."""
        from sketchridge.campaign.report import campaign_page

        if self._store.count() < 2:
            raise ValueError(
                "There is nothing to report yet: it takes two labels for a first model."
            )
        return campaign_page(self)
