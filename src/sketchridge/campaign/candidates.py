"""The tables of a campaign's pool: what each row is called, and what the bench is told of it."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sketchridge.active.damage import damaged
from sketchridge.active.sql import SQLStore
from sketchridge.campaign.encoding import Encoding
from sketchridge.campaign.headings import ID
from sketchridge.campaign.sources import (
    InMemory,
    OnDisk,
    Source,
    fingerprint,
    is_large,
    joint_matrix,
)
from sketchridge.sheets.files import read_sheet
from sketchridge.words import listed, shown

__all__ = ["Candidates", "described", "free_name", "packed"]

Array = np.ndarray
_KEPT = 2**24  # bytes of a packed table up to which the store keeps it


class Candidates:
    """The rows of the pool by their ids, which are text."""

    def __init__(self, encoding: Encoding, store: SQLStore, moved: Path | None = None) -> None:
        self._encoding = encoding
        self._store = store
        self._moved = moved  # where tables that are not in the store are now: a file, or a folder
        self._sources: list[Source] | None = None

    @property
    def sources(self) -> list[Source]:
        """The tables, in order. ValueError where one is not that of the campaign, and where points
        of the pool are in none."""
        if self._sources is None or any(source.has_changed for source in self._sources):
            size = self._store.size()  # first: whoever adds a table now adds points with it
            files = enumerate(self._store.files())
            found = [self._table(number, *file) for number, file in files]
            nameless = size - sum(map(len, found))
            if nameless > 0:
                raise ValueError(
                    f"The pool has {nameless:,} points that are in none of its tables and so have "
                    "no names: they were added in Python with ActiveLearner.add. Continue the "
                    "campaign in Python with ActiveLearner.resume."
                )
            self._sources = found
        return self._sources

    def _table(self, number: int, about: Mapping[str, Any], data: bytes | None) -> Source:
        if data is not None:
            return self._kept(about, data)
        recorded = Path(about["path"])
        problem = ValueError(
            f"The pool's file {recorded} is not there any more: say where it is with --pool."
        )
        for path in (recorded, *_places(self._moved, recorded.name)):
            if not path.is_file():
                continue
            try:
                source = self._read(path)
                if self._is_table(source, number, about):
                    return source
            except ValueError as error:  # what is no such table at all
                problem = error
                continue
            problem = _another(path, recorded)
        raise problem

    def _kept(self, about: Mapping[str, Any], data: bytes) -> Source:
        """A table in the store."""
        try:
            source = InMemory(pl.read_parquet(io.BytesIO(data)))
            sound = about.get("fingerprint") in (None, fingerprint(source, self._encoding))
        except (pl.exceptions.PolarsError, OSError):
            sound = False
        if not sound:
            what = f"the table {Path(about['path']).name} that it keeps is not as it was written"
            raise damaged("the store", what)
        return source

    def _read(self, path: Path) -> Source:
        if is_large(path):
            return OnDisk(path, self._encoding)
        return InMemory(self._encoding.read(read_sheet(path)))

    def _is_table(self, source: Source, number: int, about: Mapping[str, Any]) -> bool:
        """Whether a table has the ids and features of this one of the campaign; the features alone
        where the record has no more."""
        if "fingerprint" in about:
            return fingerprint(source, self._encoding) == about["fingerprint"]
        from sketchridge.active.pool import Pool

        features = Pool(joint_matrix([source], self._encoding)).fingerprints[0]
        return features == self._store.parts(number)[0].fingerprint

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    @cached_property
    def ids(self) -> pl.Series:
        """The names of all rows."""
        name = self._encoding.id
        if name is not None:
            return pl.concat([source.column(name).cast(pl.String) for source in self.sources])
        return pl.Series(ID, np.arange(len(self))).cast(pl.String)

    def matrix(self) -> Array:
        """The features of all rows."""
        return joint_matrix(self.sources, self._encoding)

    def take(self, rows: Array, columns: Sequence[str]) -> pl.DataFrame:
        """Some columns of some rows; those that a later table lacks are empty there."""
        if len(self.sources) == 1:
            return self.sources[0].take(rows, columns)
        parts = []
        order = []
        start = 0
        for source in self.sources:
            places = np.flatnonzero((rows >= start) & (rows < start + len(source)))
            there = [name for name in columns if name in source.columns]
            parts.append(source.take(rows[places] - start, there))
            order.append(places)
            start += len(source)
        joined = pl.concat(_alike(parts), how="diagonal_relaxed")
        return joined[np.argsort(np.concatenate(order))].select(columns)

    def name(self, row: int) -> str:
        return self.ids[int(row)]

    def names(self, rows: Array) -> list[str]:
        return self.ids[rows].to_list() if len(rows) else []

    def rows(self, ids: pl.Series) -> Array:
        """Row numbers of these ids, −1 for one that the pool does not have.

        Where rows are named by their numbers, 7.0 is 7; otherwise ids are the same or not.
        """
        text = ids.cast(pl.String).str.strip_chars()
        if self._encoding.id is None:
            text = text.str.replace(r"^(\d+)\.0*$", "$1")
        place = pl.DataFrame({ID: self.ids, "row": np.arange(len(self.ids))})
        found = pl.DataFrame({ID: text}).join(place, on=ID, how="left", maintain_order="left")
        if len(found) > len(text):
            twice = self.ids.filter(self.ids.is_duplicated() & self.ids.is_in(text.implode()))
            raise ValueError(
                f"The pool has more than one point {listed(twice.unique(maintain_order=True))}, so "
                "that nobody knows which is meant: start a new campaign from tables without "
                "repeated ids."
            )
        return found["row"].fill_null(-1).to_numpy()

    def known_rows(self, ids: Sequence[str]) -> Array:
        """Row numbers of ids, all of which must be there."""
        rows = self.rows(pl.Series(list(ids), dtype=pl.String))
        unknown = [name for name, row in zip(ids, rows, strict=True) if row < 0]
        if unknown:
            raise ValueError(f"{shown(unknown[0])} is not in the pool.{self.meant(unknown[0])}")
        return rows

    def meant(self, name: str) -> str:
        """What may have become of an id in a spreadsheet, or nothing."""
        bare = name.strip().lstrip("0")
        close = self.ids.filter(
            (self.ids.str.strip_chars_start("0") == bare)
            | (self.ids.str.to_lowercase() == name.strip().lower())
            | (self.ids.cast(pl.Float64, strict=False) == _number(name)).fill_null(False)
        )
        if not len(close):
            return ""
        return (
            f" The pool has {listed(close)}: spreadsheets drop zeros and change what looks like a "
            "number; format the column of ids as text."
        )

    def select(self, rows: Array, columns: Mapping[str, Any], labels: pl.Series) -> pl.DataFrame:
        """Ids, features and columns that are carried along of some rows, then the labels and
        further columns, which give way where a name is taken."""
        encoding = self._encoding
        every = dict.fromkeys(name for source in self.sources for name in source.columns)
        own = [name for name in every if name == encoding.id or encoding.is_label(name)]
        out = self.take(np.asarray(rows), [name for name in every if name not in own])
        out = out.insert_column(0, self.ids[rows].alias(self.ids.name))
        taken = {*out.columns, encoding.heading}
        made = [pl.Series(free_name(name, taken), values) for name, values in columns.items()]
        return out.with_columns([*made, labels.alias(encoding.heading)])


def _alike(frames: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Tables whose columns have types that go together: numbers, or else text."""
    kinds: dict[str, set[Any]] = {}
    for frame in frames:
        for name, kind in frame.schema.items():
            kinds.setdefault(name, set()).add(kind)
    text = [
        name
        for name, found in kinds.items()
        if len(found) > 1 and not all(kind.is_numeric() or kind == pl.Boolean for kind in found)
    ]
    return [frame.cast({n: pl.String for n in text if n in frame.columns}) for frame in frames]


def free_name(name: str, taken: set[str]) -> str:
    """The name, or one with an ending, that no column has.

    >>> free_name("round", {"round"})
    'round of the campaign'
    """
    while name in taken:
        name = f"{name} of the campaign"  # in brackets it would be taken for a unit
    return name


def packed(frame: pl.DataFrame) -> bytes | None:
    """A table as bytes, or None where it is too large for the store."""
    if frame.estimated_size() > 8 * _KEPT:
        return None
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    data = buffer.getvalue()
    return data if len(data) <= _KEPT else None


def described(path: Path, source: Source, encoding: Encoding) -> dict[str, Any]:
    """Where a table came from, and by what it is recognized."""
    return {"path": str(path.resolve()), "fingerprint": fingerprint(source, encoding)}


def _places(moved: Path | None, name: str) -> list[Path]:
    """Where a table of this name may be now."""
    if moved is None:
        return []
    return [moved / name] if moved.is_dir() else [moved]


def _another(path: Path, recorded: Path) -> ValueError:
    return ValueError(
        f"{path} is not the pool of the campaign: {recorded.name} had other ids or features, or "
        "its rows in another order, and labels would go to wrong points. Nothing was changed. "
        "Put the file back as it was, or say where it is with --pool (a folder, if there are "
        "several)."
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
