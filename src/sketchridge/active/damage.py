"""Whether a record is as it was written: checksums, and a sentence where one is another."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from sketchridge.words import first_few

__all__ = [
    "check_rows",
    "check_settings",
    "damaged",
    "sum_of_change",
    "sum_of_label",
]

_NEEDED = ("seed", "shape", "stop")  # settings that every campaign has


def sum_of_label(id: int, y: Sequence[float]) -> int:
    """The checksum of a label and its point: another number, or another point, has another.

    >>> sum_of_label(3, [1.5]) == sum_of_label(3, [1.6])
    False
    """
    return zlib.crc32(struct.pack("<q", id) + _packed(y))


def sum_of_change(id: int, old: Sequence[float], new: Sequence[float] | None) -> int:
    """That of a correction; ``new`` is None where a label was taken back."""
    return zlib.crc32(struct.pack("<q", id) + _packed(old) + _packed([] if new is None else new))


def _packed(y: Sequence[float]) -> bytes:
    if not isinstance(y, list | tuple):
        raise TypeError
    return struct.pack(f"<q{len(y)}d", len(y), *y)


def check_rows(rows: Sequence[Any], store: str) -> None:
    """ValueError where labels, or corrections, of a store are not as they were written."""
    wrong = [row for row in rows if not _is_right(row)]
    if not wrong:
        return
    names = [getattr(row, "name", None) or f"row {row.id}" for row in wrong]
    kind = "correction" if hasattr(wrong[0], "old") else "label"
    kinds, are = (kind, "is") if len(names) == 1 else (f"{kind}s", "are")
    told = "it was" if len(names) == 1 else "they were"
    raise damaged(store, f"the {kinds} of {first_few(names)} {are} not as {told} written")


def _is_right(row: Any) -> bool:
    try:
        if hasattr(row, "old"):
            return row.checksum == sum_of_change(row.id, row.old, row.new)
        return row.checksum == sum_of_label(row.id, row.y)
    except (TypeError, struct.error):  # what is no list of numbers
        return False


def check_settings(settings: Any, store: str) -> None:
    """ValueError where settings of a campaign are missing."""
    if not isinstance(settings, Mapping) or any(name not in settings for name in _NEEDED):
        raise damaged(store, "its settings are not as they were written")


def damaged(store: str, what: str) -> ValueError:
    """That a record must not be relied on."""
    return ValueError(
        f"The record in {store} is damaged: {what}. Nothing was changed. Do not go on with it: "
        "restore a copy from before, and tell what came later again."
    )
