"""Cells of a workbook that are not what they look like: errors such as #DIV/0!, formulas that no
spreadsheet has computed yet, and numbers in percent."""

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
_STYLES = "xl/styles.xml"
_PERCENT = {"9": "0%", "10": "0.00%"}  # formats that a workbook need not write out
_AS_TEXT = r'"[^"]*"|[\\_*].'  # of a format


def with_faults(frame: pl.DataFrame, path: Path) -> tuple[pl.DataFrame, set[str]]:
    """The first sheet of a workbook, as it was read, with the text of errors and open formulas:
    =A1/B1, #N/A. And the columns in which a number is shown in percent."""
    cells = list(_cells(path))
    if not cells:
        return frame, set()
    top = min(row for row, *_ in cells) + 1  # the header
    left = min(column for _, column, *_ in cells)
    names = dict(enumerate(frame.columns, start=left))
    percents = {names.get(column, "") for _, column, _, is_percent in cells if is_percent}
    faults = [(row, column, fault) for row, column, fault, _ in cells if fault]
    columns: dict[str, list[str | None]] = {}
    for row, column, text in faults:
        place = row - top
        if not (0 <= place < len(frame) and column in names):
            raise ValueError(
                f"{path} has cells that hold errors ({listed(t for *_, t in faults)}): correct or "
                "empty them."
            )
        name = names[column]
        columns.setdefault(name, frame[name].to_list())[place] = text
    texts = [pl.Series(name, values, pl.String) for name, values in columns.items()]
    return frame.with_columns(texts), percents


def _cells(path: Path) -> Iterator[tuple[int, int, str, bool]]:
    """Row, column, fault, and whether it is in percent, of each cell that is not empty; nothing
    where no cell can have either."""
    with zipfile.ZipFile(path) as book:
        sheet = _first_sheet(book)
        styles = _percent_styles(book)
        if sheet is None or not (styles or _SIGNS.search(book.read(sheet))):
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
                    value = element.findtext("{*}v")
                    if fault or value or element.find("{*}is") is not None:
                        is_number = element.get("t", "n") == "n"
                        yield row, column, fault, is_number and element.get("s") in styles
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


def _percent_styles(book: zipfile.ZipFile) -> set[str]:
    """Numbers of the styles that show 0.125 as 12.5%."""
    if _STYLES not in book.namelist():
        return set()
    root = ElementTree.fromstring(book.read(_STYLES))
    written = root.iterfind("{*}numFmts/{*}numFmt")
    formats = _PERCENT | {f.get("numFmtId", ""): f.get("formatCode", "") for f in written}
    found = [formats.get(style.get("numFmtId", ""), "") for style in root.find("{*}cellXfs") or ()]
    return {str(i) for i, code in enumerate(found) if "%" in re.sub(_AS_TEXT, "", code)}


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
