"""Where data come from: their name, and a fingerprint of the files they are read from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

__all__ = ["Origin", "named_in"]


@dataclass(frozen=True)
class Origin:
    """A data set by name, and its files."""

    name: str
    files: tuple[Path, ...]

    def fingerprint(self) -> str:
        """Changes with the content of any of the files, and with their choice."""
        digest = hashlib.sha256(self.name.encode())
        for path in self.files:
            digest.update(_digest(path, path.stat().st_size, path.stat().st_mtime_ns))
        return digest.hexdigest()


def named_in(path: Path) -> str:
    """What an .npz file says its data are; `pack` writes it."""
    with np.load(path, allow_pickle=False) as file:
        known = "origin" in file.files
        return str(file["origin"]) if known else f"{path.name}, which does not say of what"


@lru_cache(maxsize=64)
def _digest(path: Path, size: int, changed: int) -> bytes:
    """Of a file as it is now."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
