"""Work with a table from the terminal: fit, predict, inspect, compare, as functions."""

from __future__ import annotations

__all__ = ["compare", "demo", "page", "reading", "work"]
