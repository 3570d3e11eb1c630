"""Files that come from a browser and go to one."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from werkzeug.datastructures import FileStorage

from sketchridge.sheets.files import write_sheet

__all__ = ["drop", "dropped", "received", "sheet_bytes", "stored"]

_PREFIX = "sketchridge-"  # of temporary folders, which no sentence mentions


def sheet_bytes(frame: pl.DataFrame, kind: str, style: Mapping[str, str]) -> bytes:
    """A table as the contents of a file."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        path = Path(folder) / f"sheet.{kind}"
        write_sheet(frame, path, separator=style["separator"], decimal=style["decimal"])
        return path.read_bytes()


@contextmanager
def received(file: FileStorage | None) -> Iterator[Path]:
    """A file that came with a form, as long as it is needed."""
    with dropped(stored(file)) as path:
        yield path


@contextmanager
def dropped(path: Path) -> Iterator[Path]:
    """A stored file that goes afterwards, with its folder."""
    try:
        yield path
    finally:
        drop(path)


def drop(path: Path) -> None:
    """Remove a stored file with the folder that was made for it, and no other."""
    if path.parent.name.startswith(_PREFIX):
        shutil.rmtree(path.parent, ignore_errors=True)


def stored(file: FileStorage | None) -> Path:
    """A file that came with a form, in a folder of its own."""
    if file is None or not file.filename:
        raise ValueError("Choose a file first: .csv, .tsv or .xlsx.")
    path = Path(tempfile.mkdtemp(prefix=_PREFIX)) / plain_name(file.filename)
    try:
        file.save(path)
    except OSError as error:
        drop(path)
        raise OSError(f"The file could not be received: {error.strerror or error}.") from None
    return path


def plain_name(name: str) -> str:
    """The name of a file without its folder, and with nothing that leads elsewhere.

    >>> plain_name("../../etc/passwd"), plain_name("Messung Ä.csv")
    ('passwd', 'Messung Ä.csv')
    """
    name = re.split(r"[/\\:]", name)[-1]  # D:evil.csv is in another folder too
    name = "".join(c if c.isprintable() else "_" for c in name).lstrip(".").strip()
    stem, dot, suffix = name.rpartition(".")
    return f"{stem[:80]}{dot}{suffix[:10]}" if dot else (name[:80] or "table")
