"""Tables in files: a pool of candidates, and the labels that come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

try:
    import polars as pl
except ImportError as error:
    raise ImportError(
        "The command line needs polars, which is not installed: pip install 'sketchridge[cli]'."
    ) from error

__all__ = ["PoolTable", "read_labels", "read_table", "write_table"]

Array = np.ndarray
ID = "id"


@dataclass(frozen=True, eq=False)
class PoolTable:
    """Candidates with their ids and features.

    The target is what is measured; it may be known for some of them.
    """

    ids: pl.Series
    features: pl.DataFrame
    target: str
    known: pl.Series | None

    @classmethod
    def read(
        cls, path: Path, *, target: str, id_column: str | None, ignore: Sequence[str]
    ) -> PoolTable:
        """The pool in a file. ValueError for what cannot be used, before anything is done."""
        frame = read_table(path)
        missing = [
            name for name in (id_column, *ignore) if name is not None and name not in frame.columns
        ]
        if missing:
            raise ValueError(
                f"{path} has no column {missing[0]!r}; its columns are {_names(frame.columns)}."
            )
        id_column = id_column or (ID if ID in frame.columns else None)
        ids = frame[id_column] if id_column else pl.Series(ID, range(len(frame)))
        if ids.null_count() or ids.n_unique() < len(ids):
            raise ValueError(
                f"The column {ids.name!r} of {path} must name each row once, without gaps: give "
                "another one as --id."
            )
        features = frame.drop(
            [name for name in (id_column, target, *ignore) if name in frame.columns]
        )
        _check_features(features, path)
        return cls(ids, features, target, frame[target] if target in frame.columns else None)

    def matrix(self, *, scale: bool) -> Array:
        """The features (p, d), each with mean 0 and standard deviation 1 where they are scaled."""
        X = self.features.cast(pl.Float64).to_numpy()
        if not scale:
            return X
        spread = X.std(axis=0)
        return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)

    def rows(self, ids: pl.Series) -> Array:
        """Row numbers of these ids, −1 for one that the pool does not have."""
        place = pl.DataFrame({ID: self.ids.cast(pl.String), "row": np.arange(len(self.ids))})
        found = pl.DataFrame({ID: _as_text(ids, self.ids)}).join(
            place, on=ID, how="left", maintain_order="left"
        )
        return found["row"].fill_null(-1).to_numpy()

    def known_labels(self) -> tuple[Array, Array]:
        """Rows whose target is already in the pool, and its values."""
        if self.known is None:
            return np.empty(0, dtype=np.int64), np.empty(0)
        y = _numbers(self.known)
        rows = np.flatnonzero(~self.known.is_null().to_numpy())
        bad = rows[~np.isfinite(y[rows])]
        if len(bad):
            raise ValueError(
                f"The target {self.target!r} is not a number in {_rows(bad)} of the pool."
            )
        return rows, y[rows]

    def select(self, rows: Array, **columns: Any) -> pl.DataFrame:
        """Ids and features of some rows, with further columns."""
        return (
            self.features[rows]
            .insert_column(0, self.ids[rows].alias(self.ids.name))
            .with_columns(*(pl.Series(name, values) for name, values in columns.items()))
        )


def read_labels(path: Path, pool: PoolTable) -> tuple[Array, Array]:
    """Row numbers of the pool, and labels.

    Anything but one finite label for each id is a ValueError that names the rows.
    """
    frame = read_table(path)
    name = pool.ids.name
    for column in (name, pool.target):
        if column not in frame.columns:
            raise ValueError(
                f"{path} has no column {column!r}; it needs {name!r} and {pool.target!r}, and has "
                f"{_names(frame.columns)}."
            )
    rows = pool.rows(frame[name])
    y = _numbers(frame[pool.target])
    repeated = frame[name].is_duplicated().to_numpy() & (rows >= 0)
    blank = frame[pool.target].is_null().to_numpy()
    problems = {
        "ids that are not in the pool": rows < 0,
        "repeated ids": repeated,
        f"no {pool.target!r}": blank,
        f"a {pool.target!r} that is no finite number": ~blank & ~np.isfinite(y),
    }
    found = [
        f"{what} in {_rows(np.flatnonzero(bad))} "
        f"({_some(frame[name].filter(pl.Series(bad)).unique(maintain_order=True))})"
        for what, bad in problems.items()
        if bad.any()
    ]
    if found:
        raise ValueError(
            f"{path} was refused and nothing was changed: {'; '.join(found)}. Rows are counted "
            "from 1, below the header."
        )
    if not len(frame):
        raise ValueError(f"{path} holds no labels.")
    return rows, y


def read_table(path: Path) -> pl.DataFrame:
    """A .csv or .parquet file."""
    readers: dict[str, Any] = {".csv": pl.read_csv, ".parquet": pl.read_parquet}
    if path.suffix not in readers:
        raise ValueError(f"{path} is neither a .csv nor a .parquet file.")
    if not path.is_file():
        raise ValueError(f"There is no file {path}.")
    options: dict[str, Any] = {"infer_schema_length": None} if path.suffix == ".csv" else {}
    try:
        return readers[path.suffix](path, **options)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None


def write_table(frame: pl.DataFrame, path: Path) -> None:
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"{path} must end in .csv or .parquet.")
    (frame.write_csv if path.suffix == ".csv" else frame.write_parquet)(path)


def _check_features(features: pl.DataFrame, path: Path) -> None:
    text = [
        name
        for name, dtype in features.schema.items()
        if not (dtype.is_numeric() or dtype == pl.Boolean)
    ]
    if text:
        raise ValueError(
            f"Columns of {path} that are not numeric: {_names(text)}. Encode them first, or leave "
            "them out with --ignore."
        )
    if not features.width or not features.height:
        raise ValueError(
            f"{path} has no features: at least one numeric column and one row are needed."
        )
    X = features.cast(pl.Float64).to_numpy()
    bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(bad):
        raise ValueError(
            f"Features are missing or infinite in {_rows(bad)} of {path}: remove or fill such rows "
            "first."
        )


def _numbers(values: pl.Series) -> Array:
    """As floats, NaN where there is none."""
    if values.dtype == pl.String:
        values = values.str.strip_chars()
    return values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def _as_text(ids: pl.Series, like: pl.Series) -> pl.Series:
    """Ids as text, whole numbers without a decimal point where the pool's are whole."""
    if like.dtype.is_integer() and ids.dtype.is_float():
        whole = ids.cast(pl.Int64, strict=False)
        return pl.select(
            pl.when(whole.cast(pl.Float64) == ids)
            .then(whole.cast(pl.String))
            .otherwise(ids.cast(pl.String))
        ).to_series()
    return ids.cast(pl.String)


def _rows(places: Array) -> str:
    word = "row" if len(places) == 1 else "rows"
    return f"{word} {_some(places + 1)}"


def _some(values: Any) -> str:
    values = list(values)
    more = f" and {len(values) - 10} more" if len(values) > 10 else ""
    return ", ".join(map(str, values[:10])) + more


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
