"""Where the rows of a campaign's tables are: in memory, or in a Parquet file that is read a piece
at a time because it is large."""

from __future__ import annotations

import hashlib
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sketchridge.campaign.encoding import (
    Encoding,
    Feature,
    check_names,
    complete,
    encoding_of,
    typed,
)
from sketchridge.sheets.files import Sheet

__all__ = [
    "InMemory",
    "OnDisk",
    "Source",
    "encoding_on_disk",
    "fingerprint",
    "is_large",
    "joint_matrix",
]

Array = np.ndarray
_LARGE = 2**26  # bytes of numbers in a Parquet file above which it is read in pieces
_PIECE = 2**17  # rows of a piece


class Source(ABC):
    """A typed table."""

    columns: list[str]

    @property
    def has_changed(self) -> bool:
        """Whether it may have other rows by now than when it was opened."""
        return False

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def schema(self) -> Mapping[str, Any]:
        """The types of the columns."""

    @abstractmethod
    def column(self, name: str) -> pl.Series:
        """A column, whole."""

    @abstractmethod
    def take(self, rows: Array, columns: Sequence[str]) -> pl.DataFrame:
        """Some columns of some rows, in that order."""

    @abstractmethod
    def pieces(self) -> Iterator[pl.DataFrame]:
        """All rows, some at a time."""


class InMemory(Source):
    """A table that is here."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self.columns = frame.columns

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def schema(self) -> Mapping[str, Any]:
        return self.frame.schema

    def column(self, name: str) -> pl.Series:
        return self.frame[name]

    def take(self, rows: Array, columns: Sequence[str]) -> pl.DataFrame:
        return self.frame.select(columns)[rows]

    def pieces(self) -> Iterator[pl.DataFrame]:
        yield self.frame


class OnDisk(Source):
    """A table in a Parquet file."""

    def __init__(self, path: Path, encoding: Encoding) -> None:
        self._path = path
        self._encoding = encoding
        self._state = _state(path)
        self._scan = pl.scan_parquet(path)
        self._schema = self._scan.collect_schema()
        self.columns = self._schema.names()
        self._rows = int(self._scan.select(pl.len()).collect().item())

    def __len__(self) -> int:
        return self._rows

    @property
    def schema(self) -> Mapping[str, Any]:
        return self._schema

    @property
    def has_changed(self) -> bool:
        return _state(self._path) != self._state

    def column(self, name: str) -> pl.Series:
        return pl.read_parquet(self._path, columns=[name])[name]

    def take(self, rows: Array, columns: Sequence[str]) -> pl.DataFrame:
        wanted, back = np.unique(rows, return_inverse=True)
        number = "__row__"
        found = (
            self._scan.select(columns)
            .with_row_index(number)
            .filter(pl.col(number).is_in(pl.Series(wanted, dtype=pl.UInt32).implode()))
            .collect()
        )
        return found.drop(number)[back]

    def pieces(self) -> Iterator[pl.DataFrame]:
        """Each checked as a small table is."""
        for piece in _pieces(self._path):
            yield self._encoding.read(piece, ids=False)


def is_large(path: Path) -> bool:
    """Whether a file is to be read in pieces."""
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return False
    scan = pl.scan_parquet(path)
    try:
        width = len(scan.collect_schema())
        return 8 * width * int(scan.select(pl.len()).collect().item()) > _LARGE
    except pl.exceptions.PolarsError:
        return False  # whoever reads it says why not


def encoding_on_disk(path: Path, *, scale: bool = True, **options: object) -> Encoding:
    """`encoding_of` for a Parquet file that is read in pieces, a column of text at a time; means
    and spreads are those of all rows."""
    first = next(_pieces(path))

    def column(name: str) -> pl.Series:
        is_text = first.frame[name].dtype in (pl.String, pl.Categorical, pl.Enum)
        return pl.read_parquet(path, columns=[name])[name] if is_text else first.frame[name]

    found, _ = encoding_of(first, scale=False, column=column, **options)  # type: ignore[arg-type]
    count = 0
    numeric = [feature.name for feature in found.features if feature.values is None]
    mean = np.zeros(len(numeric))
    squares = np.zeros(len(numeric))
    values: dict[str, set[str]] = {feature.name: set() for feature in found.categories}
    for piece in _pieces(path):
        X = typed(piece, numeric).select(pl.col(numeric).cast(pl.Float64)).to_numpy()
        new, total = X.mean(axis=0), count + len(X)
        squares += ((X - new) ** 2).sum(axis=0) + (new - mean) ** 2 * (count * len(X) / total)
        mean += (new - mean) * (len(X) / total)
        count = total
        for name, seen in values.items():
            seen |= set(complete(piece.frame[name], piece).unique().to_list())
    spread = np.sqrt(squares / max(count, 1))
    made = {name: Feature(name, values=sorted(seen)) for name, seen in values.items()}
    if scale:
        scaled = zip(numeric, mean.tolist(), spread.tolist(), strict=True)
        made |= {name: Feature(name, m, s if s > 0 else 1.0) for name, m, s in scaled}
    features = [asdict(made.get(feature.name, feature)) for feature in found.features]
    if found.id is not None:
        check_names(pl.read_parquet(path, columns=[found.id])[found.id], str(path))
    return Encoding.of({**found.plain(), "features": features})


def _pieces(path: Path) -> Iterator[Sheet]:
    scan = pl.scan_parquet(path)
    rows = int(scan.select(pl.len()).collect().item())
    for start in range(0, max(rows, 1), _PIECE):
        yield Sheet(scan.slice(start, _PIECE).collect(), str(path), first=start)


def _state(path: Path) -> tuple[int, int, int] | None:
    """What is another as soon as a file is written to or replaced; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def fingerprint(source: Source, encoding: Encoding) -> str:
    """A fingerprint of the ids and the features of all rows, in their order."""
    digests = [hashlib.blake2b(digest_size=16) for _ in range(3)]
    if encoding.id is not None:
        ids = source.column(encoding.id).cast(pl.String)
        lengths = ids.str.len_bytes().to_numpy().astype("<i8")  # so that none runs into the next
        digests[0].update(lengths.data)
        digests[1].update("".join(ids).encode())
    for piece in source.pieces():
        digests[2].update(encoding.matrix(piece).data)
    return hashlib.blake2b(b"".join(d.digest() for d in digests), digest_size=16).hexdigest()


def joint_matrix(sources: Sequence[Source], encoding: Encoding) -> Array:
    """The features of all tables: in memory, or mapped from a file without a name where a table is
    on disk."""
    if all(isinstance(source, InMemory) for source in sources):
        parts = [encoding.matrix(piece) for source in sources for piece in source.pieces()]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    rows = sum(map(len, sources))
    width = 0
    file = tempfile.TemporaryFile()  # noqa: SIM115, the mapping keeps it
    try:
        for source in sources:
            for piece in source.pieces():
                X = encoding.matrix(piece)
                width = X.shape[1]
                file.write(X.data)
        file.flush()
    except OSError as error:
        raise OSError(
            f"The features of {rows:,} points do not fit into the temporary folder "
            f"{tempfile.gettempdir()} ({error.strerror or error}): set TMPDIR to one with more "
            "room."
        ) from None
    os.fsync(file.fileno())
    return np.memmap(file, dtype=float, mode="r", shape=(rows, width))
