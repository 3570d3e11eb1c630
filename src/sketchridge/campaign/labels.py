"""Labels that come back from the bench in a table, checked before anything is kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from sketchridge.active.checks import checked_targets
from sketchridge.campaign.candidates import Candidates
from sketchridge.campaign.encoding import Encoding
from sketchridge.campaign.headings import headed
from sketchridge.campaign.values import label_values
from sketchridge.sheets.cells import decimal_of, numbers
from sketchridge.sheets.files import Sheet
from sketchridge.words import first_few, listed, named_rows, renaming, shown

__all__ = ["Labels", "OutOfRange", "Told", "check_range", "read_labels"]

Array = np.ndarray
_DIGITS = 6  # that a spreadsheet writes of a feature at least, as in 1.23457E-05


class OutOfRange(ValueError):
    """Labels beyond the range that the campaign expects: to be asked about."""


@dataclass(frozen=True)
class Told:
    """What became of labels that were told."""

    new: int
    total: int
    pending: int
    blank: int  # rows of the table that had no label
    stop: str  # why to stop, or nothing
    failed: Sequence[str] = ()  # points that were said to be beyond measuring, and have labels now


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of rows of the pool, and how many rows of the table had none."""

    rows: Array
    y: Array
    names: list[str]
    blank: int


def read_labels(sheet: Sheet, encoding: Encoding, candidates: Candidates, usual: str) -> Labels:
    """The labels in a table; rows without one are left out.

    Anything else that is not one finite label for each id is a ValueError that names the rows.
    ``usual`` is the mark of decimals in the campaign's first table.
    """
    frame = sheet.frame
    column = _label_column(sheet, encoding)
    name = _id_column(sheet, encoding, candidates.ids.name)
    cells, values = label_values(sheet, column, encoding, usual)
    blank = cells.is_null().to_numpy()
    if blank.all():
        raise ValueError(
            f"{sheet.name} holds no labels: the column {shown(column)} is empty in all "
            f"{len(frame):,} rows."
        )
    told = frame.filter(pl.Series(~blank))
    places = np.flatnonzero(~blank)
    ids = told[name].cast(pl.String)
    rows = candidates.rows(ids)
    y = values[~blank]
    empty = ids.is_null().to_numpy()
    unknown = (rows < 0) & ~empty
    again = pl.Series(rows).is_duplicated().to_numpy()
    found = [
        *_problem("no id", empty, None, places),
        *_problem("ids that are not in the pool", unknown, ids, places, candidates.meant),
        *_problem("repeated ids", again & (rows >= 0), ids, places),
        *_problem(
            f"a {shown(encoding.target)} that is no finite number",
            ~np.isfinite(y),
            pl.select(ids.fill_null("") + ": " + told[column].cast(pl.String)).to_series(),
            places,
            _advice,
        ),
    ]
    if found:
        raise ValueError(
            f"{sheet.name} was refused and nothing was changed: {'; '.join(found)}. Rows are "
            "counted from 1, below the header. Leave a cell empty for what is not measured yet; "
            "`sketchridge campaign fail` is for what cannot be measured."
        )
    _check_features(sheet, told, rows, places, encoding, candidates)
    checked_targets(y)
    return Labels(rows, y, candidates.names(rows), int(blank.sum()))


def check_range(labels: Labels, encoding: Encoding) -> None:
    """`OutOfRange` where labels are not between what the campaign expects."""
    low = -np.inf if encoding.low is None else encoding.low
    high = np.inf if encoding.high is None else encoding.high
    wrong = np.flatnonzero((labels.y < low) | (labels.y > high))
    if len(wrong):
        some = first_few(f"{labels.names[i]}: {labels.y[i]:g}" for i in wrong)
        many, they = f"{len(wrong)} labels are", "they are"
        if len(wrong) == 1:
            many, they = "1 label is", "it is"
        raise OutOfRange(
            f"{encoding.target} is expected from {low:g} to {high:g}{encoding.behind}, but {many} "
            f"not ({some}). If {they} right, say so with --yes; nothing was changed."
        )


def _label_column(sheet: Sheet, encoding: Encoding) -> str:
    """The column with the labels, whose heading may have the unit beside the name."""
    names = sheet.frame.columns
    column = encoding.label_column(names, sheet.name)
    if column is not None:
        return column
    raise ValueError(
        f"{sheet.name} has no column {shown(encoding.target)}; it needs the ids and "
        f"{shown(encoding.target)}, and has {headed(names)}.{renaming(encoding.target, names)}"
    )


def _id_column(sheet: Sheet, encoding: Encoding, name: str) -> str:
    """The column that names the points."""
    names = sheet.frame.columns
    found = [column for column in names if column.strip() == name.strip()]
    if found:
        return found[0]
    hint = renaming(name, names)
    if encoding.id is None:  # a column of other names would be taken for row numbers
        hint = (
            " The rows of this campaign are named by their numbers, from 0, as on the sheets that "
            "it writes: fill one of those."
        )
    raise ValueError(
        f"{sheet.name} has no column {shown(name)}, which names the points; it has "
        f"{headed(names)}.{hint}"
    )


def _problem(
    what: str, bad: Array, values: pl.Series | None, places: Array, hint: Any = None
) -> list[str]:
    if not bad.any():
        return []
    if values is None:
        return [f"{what} in {named_rows(places[bad])}"]
    some = values.filter(pl.Series(bad)).unique(maintain_order=True)
    more = hint(str(some[0])) if hint is not None else ""
    return [f"{what} in {named_rows(places[bad])} ({listed(some)}){more.rstrip('.')}"]


def _advice(cell: str) -> str:
    """What to do about a formula, or a decimal comma that could not be one."""
    if ": =" in cell:
        return ": formulas have no values before a spreadsheet has opened and saved the file"
    comma = re.search(r": [+-]?\d+,\d+$", cell)
    return ": where commas separate the columns decimals need points" if comma else ""


def _half_a_digit(x: Array) -> Array:
    """Half of the last digit that is written of each number, and a little for its own rounding."""
    size = np.floor(np.log10(np.maximum(np.abs(x), 1e-300)))
    return np.where(x == 0, 0.0, 0.5001 * 10.0 ** (size - (_DIGITS - 1)))


def _check_features(
    sheet: Sheet,
    told: pl.DataFrame,
    rows: Array,
    places: Array,
    encoding: Encoding,
    candidates: Candidates,
) -> None:
    """ValueError where a row's features are not those of its id: a table that was sorted by one
    column without the others looks like that."""
    numeric = [f.name for f in encoding.features if f.values is None and f.name in told.columns]
    decimal = decimal_of(sheet, numeric)
    for feature in encoding.features:
        if feature.name not in told.columns:
            continue
        ours = candidates.take(rows, [feature.name])[feature.name]
        if feature.values is not None:
            differs = (told[feature.name].cast(pl.String) != ours.cast(pl.String)).to_numpy()
        else:
            x, wanted = numbers(told[feature.name], decimal), ours.cast(pl.Float64).to_numpy()
            differs = np.abs(x - wanted) > _half_a_digit(wanted)
        wrong = np.flatnonzero(differs)
        if len(wrong):
            i = int(wrong[0])
            raise ValueError(
                f"{sheet.name} was refused and nothing was changed: in row {places[i] + 1:,} "
                f"{shown(candidates.name(rows[i]))} has {shown(feature.name)} = "
                f"{told[feature.name][i]}, but {ours[i]} in the pool ({len(wrong)} such rows). "
                "Was the table sorted by one column without the others? Labels would go to wrong "
                "points."
            )
