"""The table that a campaign begins from, and those that are added to it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sketchridge.active.checks import checked_targets
from sketchridge.campaign.candidates import packed
from sketchridge.campaign.encoding import Encoding, encoding_of, style_of
from sketchridge.campaign.headings import split_target, telling_names
from sketchridge.campaign.labels import Labels
from sketchridge.campaign.sources import (
    InMemory,
    OnDisk,
    Source,
    encoding_on_disk,
    is_large,
    joint_matrix,
)
from sketchridge.campaign.values import label_values
from sketchridge.sheets.files import Sheet, read_sheet
from sketchridge.words import named_rows, shown

__all__ = ["Given", "check_kept", "first_table", "later_table"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Given:
    """A table with its encoding, and the labels that it holds already."""

    source: Source
    encoding: Encoding
    style: dict[str, str]
    rows: Array  # that are labeled
    y: Array  # their labels
    data: bytes | None  # the table, where the store can keep it

    def matrix(self) -> Array:
        """The features."""
        return joint_matrix([self.source], self.encoding)

    def labels(self, first: int = 0) -> Labels:
        """Those there are; ``first`` is the number of the table's first row in the pool."""
        if self.encoding.id is None:
            names = [str(first + row) for row in self.rows]
        else:
            names = self.source.column(self.encoding.id).cast(pl.String)[self.rows].to_list()
        return Labels(first + self.rows, self.y, names, len(self.source) - len(self.rows))


def first_table(path: Path, target: str, options: Mapping[str, Any]) -> Given:
    """What a campaign begins from; ``options`` are those of `encoding_of`."""
    target, unit = split_target(target, options.get("unit", ""))
    if not target:
        raise ValueError("Give the name of what is measured, such as yield.")
    options = {**options, "unit": unit}
    if is_large(path):
        encoding = encoding_on_disk(path, target=target, **options)
        return _given(OnDisk(path, encoding), encoding, Sheet(pl.DataFrame(), str(path)))
    sheet = read_sheet(path)
    encoding, frame = encoding_of(sheet, target=target, **options)
    if encoding.id is None:
        _mention_names(frame, encoding)
    return _given(InMemory(frame), encoding, sheet)


def _mention_names(frame: pl.DataFrame, encoding: Encoding) -> None:
    """A warning where a column may have been meant to name the rows."""
    column = telling_names(frame.select(n for n in frame.columns if not encoding.is_label(n)))
    if column is not None:
        warnings.warn(
            f"The rows are named by their numbers, from 0. The column {shown(column)} has another "
            f"value in each row: to name them by it, start the campaign anew with --id {column}.",
            stacklevel=2,
        )


def check_kept(table: Given, path: Path) -> None:
    """ValueError where a table is too large to be kept in the store."""
    if table.data is None:
        raise ValueError(
            f"{path} is too large to be kept with the campaign: use it from the terminal, where "
            "the file can stay where it is (sketchridge campaign new, or add)."
        )


def later_table(path: Path, encoding: Encoding, usual: str) -> Given:
    """Further candidates, with the columns of the first; ``usual`` is its mark of decimals."""
    if is_large(path):
        return _given(OnDisk(path, encoding), encoding, Sheet(pl.DataFrame(), str(path)))
    sheet = read_sheet(path)
    return _given(InMemory(encoding.read(sheet)), encoding, sheet, usual)


def _given(source: Source, encoding: Encoding, sheet: Sheet, usual: str | None = None) -> Given:
    _check_cells(source, sheet.name)
    in_memory = isinstance(source, InMemory)
    style = style_of(sheet, encoding) if in_memory else {"separator": ",", "decimal": "."}
    rows, y = _known_labels(source, encoding, sheet, usual or style["decimal"])
    data = packed(source.frame) if isinstance(source, InMemory) else None
    return Given(source, encoding, style, rows, y, data)


def _check_cells(source: Source, file: str) -> None:
    """ValueError for a column that no sheet could carry along."""
    kinds = (pl.List, pl.Array, pl.Struct, pl.Binary, pl.Object)
    wrong = [name for name, kind in source.schema.items() if kind in kinds]
    if wrong:
        raise ValueError(
            f"The column {shown(wrong[0])} of {file} holds {source.schema[wrong[0]]}, which no "
            "cell of a sheet can hold: write it as text or numbers, or leave it out of the file; "
            "nothing was changed."
        )


def _known_labels(
    source: Source, encoding: Encoding, sheet: Sheet, usual: str
) -> tuple[Array, Array]:
    """Rows of a table whose target is there already, and its values."""
    column = encoding.label_column(source.columns, sheet.name)
    if column is None:
        return np.empty(0, dtype=np.int64), np.empty(0)
    if not isinstance(source, InMemory):
        sheet = replace(sheet, frame=source.column(column).to_frame(), has_points=True)
    cells, y = label_values(sheet, column, encoding, usual)
    rows = np.flatnonzero(~cells.is_null().to_numpy())
    bad = rows[~np.isfinite(y[rows])]
    if len(bad):
        raise ValueError(
            f"The target {shown(encoding.target)} is not a number in {named_rows(bad)} of "
            f"{sheet.name}."
        )
    checked_targets(y[rows])
    return rows, y[rows]
