"""Which columns of a table name its rows and hold its labels, however they are headed."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

import polars as pl

from sketchridge.sheets.files import NAMELESS
from sketchridge.words import listed, shown

__all__ = [
    "ID",
    "headed",
    "id_column_of",
    "is_target",
    "label_column",
    "split_target",
    "telling_names",
    "unit_of",
]

ID = "id"
_RENAME = "If they are the labels, rename it to {target!r}; if it is something else, to another."
_CONVERT = "convert the values and correct the heading."


def unit_of(heading: str) -> tuple[str, str]:
    """A heading as a name and, in brackets, its unit.

    >>> unit_of("yield [mg/L]")
    ('yield', 'mg/L')
    """
    match = re.fullmatch(r"(.*?)\s*[\[(]([^\[\]()]*)[\])]", heading.strip())
    return (match[1], match[2].strip()) if match and match[1] else (heading.strip(), "")


def split_target(target: str, unit: str) -> tuple[str, str]:
    """The target without the unit that its name may have, where a unit is given.

    >>> split_target("yield (mg/L)", "mg/L")
    ('yield', 'mg/L')
    """
    target, unit = target.strip(), unit.strip()
    name, own = unit_of(target)
    if not unit or name == target:
        return target, unit
    if own != unit:
        raise ValueError(
            f"The target {shown(target)} has a unit already, {shown(own)}, and {unit} was given: "
            "give one of them."
        )
    return name, unit


def id_column_of(names: Sequence[str], ignore: Container[str], file: str) -> str | None:
    """The column that names the rows where nobody chose one: `id`, in capitals or not."""
    if ID in names:
        return ID
    found = [n for n in names if n.strip().casefold() == ID and n not in ignore]
    if len(found) > 1:
        raise ValueError(
            f"{file} has the columns {listed(found)}, and each may name the rows: choose one with "
            "--id."
        )
    return found[0] if found else None


def is_target(column: str, target: str) -> bool:
    """Whether a column is headed by the target, with or without a unit."""
    return target in (column.strip(), unit_of(column)[0])


def label_column(
    names: Sequence[str],
    target: str,
    unit: str,
    file: str,
    *,
    others: Container[str] = (),
    rename: str = _RENAME,
    convert: str = _CONVERT,
) -> str | None:
    """The column with the labels, whose unit may stand in brackets; None where there is none.

    ValueError where the unit is another, where two columns may be meant, or one in other capitals.
    Columns in ``others`` are known to be something else; ``rename`` and ``convert`` say what to do.
    """
    free = [name for name in names if name not in others]
    found = [name for name in free if is_target(name, target)]
    if len(found) > 1:
        raise ValueError(
            f"{file} has more than one column of labels, {listed(found)}: remove one, or rename it "
            "if it is something else."
        )
    given = "" if not found or found[0].strip() == target else unit_of(found[0])[1]
    if given not in ("", unit):
        wanted = f"in {unit}" if unit else "without a unit"
        raise ValueError(
            f"{file} gives {shown(target)} in {shown(given)}, but the campaign has it {wanted}: "
            + convert.format(column=shown(found[0]), unit=given)
        )
    if found:
        return found[0]
    close = [name for name in free if unit_of(name)[0].casefold() == target.casefold()]
    if close:
        raise ValueError(
            f"{file} has no column {shown(target)}, but {shown(close[0])}. "
            + rename.format(column=shown(close[0]), target=target)
        )
    return None


def headed(names: Sequence[str]) -> str:
    """The columns of a table in a sentence, and whether some have no heading."""
    own = [name for name in names if name and not name.startswith(NAMELESS)]
    if len(own) == len(names):
        return listed(own)
    return (
        f"{listed(own)}. Columns without a heading are filled: is there a title above the header? "
        "Remove it"
    )


def telling_names(frame: pl.DataFrame) -> str | None:
    """A column that may have been meant to name the rows: text that is another in each, or whole
    numbers that count up by one, but are not the numbers of the rows."""
    for column in frame.iter_columns():
        if len(column) < 2 or column.null_count() or column.n_unique() < len(column):
            continue
        if column.dtype == pl.String or (column.dtype.is_integer() and _counts(column)):
            return column.name
    return None


def _counts(column: pl.Series) -> bool:
    in_order = pl.int_range(len(column), eager=True)
    return bool((column.sort() - column.min() == in_order).all() and (column != in_order).any())
