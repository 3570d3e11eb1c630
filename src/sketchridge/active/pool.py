"""The pool of points that may be asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from mmap import mmap
from typing import Any

import numpy as np

from sketchridge.checks import check_times
from sketchridge.progress import status

__all__ = ["Pool"]

Array = np.ndarray
_POINTS = 2**15  # scored at a time where nothing is kept of them
_BYTES = 2**26  # of the pool looked at at a time
_SCORING = "Scoring the pool"


class Pool:
    """The rows that may be asked for, in one part or several.

    An array that is mapped from a file is read where it is, a few rows at a time; rows on a Dask
    cluster stay there; any other that could still be written to is copied.

    >>> pool = Pool([[0.0], [1.0]])
    >>> pool.append([[2.0], [3.0]])
    >>> len(pool), pool[np.array([0, 3])].ravel()
    (4, array([0., 3.]))
    """

    def __init__(self, data: Any) -> None:
        part = _checked(data)
        self._parts: tuple[Any, ...] = (part,)  # arrays, or rows on a cluster
        self.fingerprints: tuple[str, ...] = (_fingerprint(part),)

    @property
    def shape(self) -> tuple[int, int]:
        """Points and features."""
        return sum(map(len, self._parts)), self._parts[0].shape[1]

    def append(self, data: Any) -> None:
        """Further rows, after those there are."""
        part = _checked(data)
        self.check_width(part)
        fingerprints = (*self.fingerprints, _fingerprint(part))
        self._parts, self.fingerprints = (*self._parts, part), fingerprints

    def check_width(self, other: Any) -> None:
        """ValueError unless an array or a pool has the same number of features."""
        if other.shape[1] != self.shape[1]:
            raise ValueError(
                f"Points with {other.shape[1]} features were given, but the pool has "
                f"{self.shape[1]}."
            )

    def part(self, number: int) -> Array:
        """The rows that came together."""
        return self._parts[number]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | int | Array) -> Array:
        if len(self._parts) == 1:
            return np.ascontiguousarray(self._parts[0][rows], dtype=float)
        n, d = self.shape
        if not isinstance(rows, slice) and np.ndim(rows) != 1:
            return self[np.ravel(rows)].reshape(*np.shape(rows), d)
        numbers = np.arange(*rows.indices(n)) if isinstance(rows, slice) else np.asarray(rows)
        if numbers.dtype == bool:
            numbers = np.flatnonzero(numbers)
        if ((numbers < -n) | (numbers >= n)).any():
            raise IndexError(f"The pool has {n} rows, 0 to {n - 1}, but others are asked for.")
        numbers = np.where(numbers < 0, numbers + n, numbers)
        out = np.empty((len(numbers), d))
        start = 0
        for part in self._parts:
            inside = (numbers >= start) & (numbers < start + len(part))
            out[inside] = part[numbers[inside] - start]
            start += len(part)
        return out

    @property
    def is_there(self) -> bool:
        """Whether some of the points are on a cluster."""
        return any(map(_is_there, self._parts))

    def goes_to(self, fitted: Any) -> Any:
        """A fit as functions of points have it: where those are on a cluster, with NumPy."""
        is_sent = self.is_there and hasattr(fitted, "with_numpy")
        return fitted.with_numpy() if is_sent else fitted

    @property
    def nbytes(self) -> int:
        """Bytes of all points together."""
        return 8 * self.shape[0] * self.shape[1]

    def check(self, function: Callable[[Array], Any]) -> None:
        """Call a function that may raise for all points, so many at a time that they are small."""
        for part in self._parts:
            if _is_there(part):
                part.gathered(partial(_called, function))
                continue
            for rows in _slices(*part.shape):
                function(np.ascontiguousarray(part[rows], dtype=float))

    def apply(self, function: Callable[[Array], Array], rows: Array) -> Array:
        """A function of points at some rows, chunk by chunk: (p,), 0 elsewhere.

        Where points are on a cluster its workers are sent the function, and give back its values.
        """
        out = np.zeros(len(self))
        if self.is_there:
            values = np.concatenate([_values(function, part) for part in self._parts])
            out[rows] = values[rows]
            return out
        parts = [rows[i : i + _POINTS] for i in range(0, len(rows), _POINTS)]
        with status(_SCORING) as say:
            for done, part in enumerate(parts):
                say(f"{_SCORING}: {done * _POINTS:,} of {len(rows):,} points")
                out[part] = function(self[part])
        return out


def _is_there(part: Any) -> bool:
    return hasattr(part, "gathered")


def _values(function: Callable[[Array], Array], part: Any) -> Array:
    """The function of all points of a part: (p,)."""
    if _is_there(part):
        return part.gathered(function)
    pieces = [slice(i, i + _POINTS) for i in range(0, len(part), _POINTS)]
    return np.concatenate([function(np.ascontiguousarray(part[i], dtype=float)) for i in pieces])


def _called(function: Callable[[Array], Any], block: Array) -> Array:
    function(block)
    return np.empty(0)


def _slices(count: int, width: int) -> list[slice]:
    step = max(1, _BYTES // (8 * width))
    return [slice(i, min(i + step, count)) for i in range(0, count, step)]


def _checked(data: Any) -> Array:
    """A table of numbers, as it is where nobody can write to it."""
    if _is_there(data):
        return data
    check_times("The pool", data)
    array = np.asanyarray(data)
    if array.ndim != 2 or not array.size:
        raise ValueError(
            "The pool must be a table of points in rows and features in columns, got shape "
            f"{array.shape}."
        )
    if array.dtype.kind not in "fiub":
        raise ValueError(f"The pool must be numeric, got {array.dtype}: encode text first.")
    if np.ma.is_masked(array):
        raise ValueError("The pool has masked values: remove or fill such rows first.")
    is_safe = _is_mapped(array) or not array.flags.writeable
    return array if is_safe else np.array(array)


def _fingerprint(array: Any) -> str:
    """A fingerprint of the shape and of every value, all of which are finite."""
    digest = hashlib.blake2b(repr(array.shape).encode(), digest_size=16)
    if _is_there(array):
        _check_finite(array.gathered(_are_finite))
        digest.update(array.gathered(_fingerprints).tobytes())
        return digest.hexdigest()
    for rows in _slices(*array.shape):
        X = np.ascontiguousarray(array[rows], dtype=float)
        _check_finite(_are_finite(X), rows.start)
        digest.update(X.data)
    return digest.hexdigest()


def _are_finite(X: Array) -> Array:
    return np.isfinite(X).all(axis=1)


def _check_finite(finite: Array, start: int = 0) -> None:
    if not finite.all():
        raise ValueError(
            f"Row {start + int(np.argmin(finite))} of the pool has a missing or infinite value: "
            "remove or fill such rows first."
        )


def _fingerprints(block: Array) -> Array:
    """That of a block on a cluster: (16,)."""
    return np.frombuffer(bytes.fromhex(_fingerprint(block)), dtype=np.uint8)


def _is_mapped(array: Any) -> bool:
    """Whether an array stands in a file rather than in memory."""
    owner = array
    while hasattr(owner, "base"):
        owner = owner.base
    return isinstance(owner, mmap)
