"""What every sketch is: a matrix whose entries never change when it grows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

__all__ = ["EntrySketch", "RowSketch", "Sketch", "check_number", "evened"]

Array = np.ndarray
AnySketch = TypeVar("AnySketch", bound="Sketch")
_FAR = 30  # powers of two, of which single precision holds 127 at both ends


class Sketch(ABC):
    """A matrix S with m = ``size`` rows and as many columns as there are distinct points.

    Results depend on the space that its rows span, so its scale is of no importance.
    """

    size: int

    @abstractmethod
    def check(self, n: int) -> None:
        """Raise ValueError if the sketch cannot be applied to n points."""


def check_number(sketch: Sketch, name: str, value: Any) -> None:
    """Raise ValueError unless a size or seed is a whole number from 0 up."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
        raise ValueError(
            f"The {name} of a {type(sketch).__name__} must be a whole number from 0 up, got "
            f"{value!r}."
        )


class EntrySketch(Sketch):
    """A sketch whose entry (i, j) is a function of (seed, i, j).

    More rows, more columns or other blocks of them never change what was there.
    """

    seed: int = 0

    def check(self, n: int) -> None:
        check_number(self, "size", self.size)
        check_number(self, "seed", self.seed)

    def grown(self: AnySketch, size: int) -> AnySketch:
        """With so many rows, of which the first are those there are."""
        return replace(self, size=size)  # type: ignore[type-var]

    @abstractmethod
    def entries(self, rows: range, columns: range) -> Array:
        """S[rows, columns] in float64, for ranges of row and column numbers."""


@dataclass(frozen=True, eq=False)
class RowSketch(Sketch):
    """A sketch whose rows are unit vectors: it selects training points, the ``indices``.

    A sketch without any is filled by a fit; a fitted ``sketch_`` has them, and can be given again.
    """

    seed: int = 0
    indices: Array = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.indices)

    def check(self, n: int) -> None:
        check_number(self, "seed", self.seed)
        kind = getattr(getattr(self.indices, "dtype", None), "kind", "")
        if kind not in ("i", "u") or self.indices.ndim != 1 or (self.indices < 0).any():
            raise ValueError(
                f"The indices of a {type(self).__name__} must be an array (m,) of numbers of "
                f"training rows, from 0 up, got {self.indices!r}."
            )
        if self.size and self.indices.max() >= n:
            raise ValueError(
                f"The sketch selects row {self.indices.max()}, but there are only {n} training "
                "rows."
            )

    def with_rows(self: AnySketch, indices: Array) -> AnySketch:
        return replace(self, indices=np.concatenate([self.indices, indices]))  # type: ignore[attr-defined,type-var]

    @abstractmethod
    def propose(self, count: int, residual: Any) -> tuple[Array, Array]:
        """Candidate rows and, for each, the share of its residual it must have kept.

        ``residual`` is a Tall column (n, 1): w_i (G − Ĝ)_ii, zero for the points that are chosen or
        numerically dependent. Candidates are taken in turn; one whose residual shrank below its
        share because of those taken before it is passed over.
        """

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.size])


def evened(matrix: Array) -> Array:
    """A sketch's matrix (m, n) whose rows are near 1, by powers of two, where one is not: sizes of
    rows change nothing but what overflows.

    >>> evened(np.array([[3e300, 0.0], [1.0, 2.0]])).max(axis=1).round(1)
    array([0.6, 0.5])
    """
    exponents = np.frexp(np.abs(matrix).max(axis=1, initial=0.0))[1]
    far = (np.abs(exponents) > _FAR).any()
    return np.ldexp(matrix, -exponents[:, None]) if far else matrix
