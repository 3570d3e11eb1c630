"""A campaign of the first version, which kept the address of its table and not the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sketchridge.active.sql import SQLStore
from sketchridge.campaign.candidates import described, packed
from sketchridge.campaign.encoding import encoding_of, style_of
from sketchridge.campaign.sources import InMemory
from sketchridge.sheets.files import read_sheet

__all__ = ["migrate"]


def migrate(address: str, pool: Path | None = None) -> int:
    """Bring a campaign to this version; the version it had.

    Where it began from a table that is read again, which may have moved to ``pool``, and kept in
    the store if it is small.
    """
    from sketchridge.active.pool import Pool

    version = SQLStore.migrate(address)
    store = SQLStore.open(address)
    settings = store.settings()
    notes = settings.get("notes") or {}
    if "encoding" in notes or "path" not in notes:
        return version
    path = pool or Path(notes["path"])
    if not path.is_file():
        raise ValueError(
            f"The pool's file {path} is not there any more: say where it is with --pool."
        )
    sheet = read_sheet(path)
    asked: dict[str, Any] = {"id_column": notes["id"], "ignore": notes["ignore"]}
    asked |= {"target": notes["target"], "scale": notes["scale"], "exact_headings": True}
    encoding, frame = encoding_of(sheet, **asked)
    if Pool(encoding.matrix(frame)).fingerprints[0] != settings["fingerprint"]:
        raise ValueError(
            f"{path} is not the table that the campaign began from: it has other values, or "
            "another order of rows."
        )
    new = {**notes, "encoding": encoding.plain(), "style": style_of(sheet, encoding)}
    with store.transaction():
        store.annotate(new)
        store.attach(described(path, InMemory(frame), encoding), packed(frame))
    return version
