"""Rows in slices of a size."""

from __future__ import annotations

__all__ = ["slices"]


def slices(n: int, size: int) -> list[slice]:
    """Of n rows, none of which is left out.

    >>> slices(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]
