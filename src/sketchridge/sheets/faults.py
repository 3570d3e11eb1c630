"""Cells of a workbook that look filled and hold nothing: errors such as #DIV/0!, and formulas that
no spreadsheet has computed yet."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl

from sketchridge.words import listed

__all__ = ["with_faults"]

_SIGNS = re.compile(rb"""\st=["']e["']|<(\w+:)?f[\s/>]""")
_BOOK = "xl/workbook.xml"
_LINKS = "xl/_rels/workbook.xml.rels"


def with_faults(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """The first sheet of a workbook, as it was read, with the text of such cells: =A1/B1, #N/A."""
    cells = list(_cells(path))
    faults = [cell for cell in cells if cell[2]]
    if not faults:
        return frame
    top = min(row for row, _, _ in cells) + 1  # the header
    left = min(column for _, column, _ in cells)
    columns: dict[str, list[str | None]] = {}
    for row, column, text in faults:
        place = row - top
        if not (0 <= place < len(frame) and column - left < frame.width):
            raise ValueError(
                f"{path} has cells that hold errors ({listed(t for *_, t in faults)}): correct or "
                "empty them."
            )
        name = frame.columns[column - left]
        columns.setdefault(name, frame[name].to_list())[place] = text
    return frame.with_columns(pl.Series(name, v, pl.String) for name, v in columns.items())


def _cells(path: Path) -> Iterator[tuple[int, int, str]]:
    """Row, column and fault of each cell that is not empty; nothing where there is no fault."""
    with zipfile.ZipFile(path) as book:
        sheet = _first_sheet(book)
        if sheet is None or not _SIGNS.search(book.read(sheet)):
            return
        with book.open(sheet) as file:
            row = column = -1
            for event, element in ElementTree.iterparse(file, events=("start", "end")):
                tag = element.tag.rpartition("}")[2]
                if event == "start" and tag == "row":
                    row, column = int(element.get("r", row + 2)) - 1, -1
                elif event == "end" and tag == "c":
                    column = _column(element.get("r", ""), column + 1)
                    fault = _fault(element)
                    if fault or element.findtext("{*}v") or element.find("{*}is") is not None:
                        yield row, column, fault
                elif event == "end" and tag == "row":
                    element.clear()


def _first_sheet(book: zipfile.ZipFile) -> str | None:
    names = set(book.namelist())
    if not {_BOOK, _LINKS} <= names:
        return None
    sheet = ElementTree.fromstring(book.read(_BOOK)).find("{*}sheets/{*}sheet")
    key = "" if sheet is None else next((v for k, v in sheet.items() if k.endswith("}id")), "")
    for link in ElementTree.fromstring(book.read(_LINKS)):
        if link.get("Id") == key:
            target = link.get("Target", "")
            name = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
            return name if name in names else None
    return None


def _column(reference: str, otherwise: int) -> int:
    """The number of a column, from 0.

    >>> _column("AB7", 0)
    27
    """
    number = 0
    for letter in re.match("[A-Z]*", reference)[0]:  # type: ignore[index]
        number = 26 * number + ord(letter) - 64
    return number - 1 if number else otherwise


def _fault(cell: Any) -> str:
    """The error, or the formula without a value; nothing for any other cell.

    A formula whose value is an empty text is one that left its cell empty on purpose.
    """
    value, formula = cell.findtext("{*}v") or "", cell.find("{*}f")
    if cell.get("t") == "e":
        return value or "#ERROR"
    is_open = formula is not None and not value and cell.get("t") != "str"
    return "=" + (formula.text or "") if is_open else ""
