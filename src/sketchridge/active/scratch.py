"""Numbers that are too many for memory, in a temporary file that is gone with its owner."""

from __future__ import annotations

import errno
import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Place", "Scratch"]

Array = np.ndarray
_PIECE = 2**20  # bytes written at a time where space cannot be had without writing
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)  # of file systems without fallocate


@dataclass(frozen=True)
class Place:
    """Where a matrix stands in a scratch file."""

    start: int
    shape: tuple[int, int]


class Scratch:
    """Space for matrices in a file without a name.

    All of it is allocated at once, and it is read and written rather than mapped into memory, so
    that a folder without room is an OSError and never a signal. The file has no name, so that a
    process that is killed leaves nothing behind.

    >>> scratch = Scratch(1 << 10)
    >>> place = scratch.put(np.array([[1.0, 2.0]]))
    >>> scratch.get(place)
    array([[1., 2.]])
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._used = 0
        folder = tempfile.gettempdir()
        try:
            self._file: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115, it is kept
            _allocate(self._file, size)
        except OSError as error:
            raise OSError(
                f"The statistics of the pool take {size:,} bytes ({size / 2**20:,.0f} MiB), which "
                f"the temporary folder {folder} cannot give ({error.strerror or error}): set "
                "TMPDIR to a folder with more room, or give a smaller sketch_size or pool."
            ) from error

    def put(self, A: Array) -> Place:
        """Write a matrix after those there are."""
        place = Place(self._used, (A.shape[0], A.shape[1]))
        left = _bytes(np.ascontiguousarray(A, dtype=float))
        if self._used + len(left) > self.size:
            raise ValueError(f"{len(left):,} bytes more than the {self.size:,} of a scratch file.")
        self._file.seek(self._used)
        self._used += len(left)
        while len(left):
            left = left[self._file.write(left) :]
        return place

    def get(self, place: Place) -> Array:
        """A matrix that was put there."""
        A = np.empty(place.shape)
        left = _bytes(A)
        self._file.seek(place.start)
        while len(left):
            read = self._file.readinto(left)
            if not read:
                raise OSError("A scratch file is shorter than what was written to it.")
            left = left[read:]
        return A


def _bytes(A: Array) -> memoryview:
    """The numbers themselves, not a copy."""
    return A.reshape(-1).view(np.uint8).data


def _allocate(file: Any, size: int) -> None:
    """Really take so many bytes of the disk."""
    if not size:
        return
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size)
            return
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
    zeros = bytes(min(size, _PIECE))
    left = size
    while left:
        left -= file.write(memoryview(zeros)[: min(left, _PIECE)])
