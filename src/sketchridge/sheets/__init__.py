"""Tables in files: how they are read and written, and what their cells are."""

from __future__ import annotations

__all__ = ["cells", "files"]
