"""Sketches S (m, n): random matrices whose entries never change when they grow."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from sketchridge.sketch_base import EntrySketch, RowSketch, Sketch, evened

__all__ = [
    "CELL",
    "SKETCHES",
    "ArraySketch",
    "EntrySketch",
    "FourierSketch",
    "GaussianSketch",
    "HadamardSketch",
    "LandmarkSketch",
    "RPCholeskySketch",
    "RademacherSketch",
    "RowSketch",
    "Sketch",
    "SparseSketch",
    "as_sketch",
]

Array = np.ndarray
CELL = 64, 1024  # rows and columns of a sketch that are drawn together
_CELL_ROWS, _CELL_COLUMNS = CELL
_GOLDEN = (np.sqrt(5) - 1) / 2
_LINE = -1  # the cell column that holds what depends on the row alone, and likewise for rows


class _CellSketch(EntrySketch):
    """Independent entries, drawn cell by cell from a counter-based generator."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Independent entries of the sketch."""

    def entries(self, rows: range, columns: range) -> Array:
        out = np.empty((len(rows), len(columns)))
        for bi in range(rows.start // _CELL_ROWS, -(-rows.stop // _CELL_ROWS)):
            i0 = max(rows.start, bi * _CELL_ROWS)
            i1 = min(rows.stop, (bi + 1) * _CELL_ROWS)
            for bj in range(columns.start // _CELL_COLUMNS, -(-columns.stop // _CELL_COLUMNS)):
                j0 = max(columns.start, bj * _CELL_COLUMNS)
                j1 = min(columns.stop, (bj + 1) * _CELL_COLUMNS)
                cell = self.draw(_generator(self.seed, bi, bj), (_CELL_ROWS, _CELL_COLUMNS))
                inside = cell[i0 - bi * _CELL_ROWS :, j0 - bj * _CELL_COLUMNS :]
                place = out[i0 - rows.start :, j0 - columns.start :]
                place[: i1 - i0, : j1 - j0] = inside[: i1 - i0, : j1 - j0]
        return out


@dataclass(frozen=True)
class GaussianSketch(_CellSketch):
    """Independent standard normal entries: the paper's choice.

    Parameters
    ----------
    size : int
        The number of rows m.
    seed : int
        Of every entry.

    Examples
    --------
    >>> S = GaussianSketch(size=2, seed=0)
    >>> S.entries(range(2), range(4)).round(2)
    array([[ 0.16, -1.77,  1.33,  1.2 ],
           [ 0.78,  0.5 ,  1.09,  0.92]])
    >>> S.grown(9).entries(range(2), range(1, 3)).round(2)  # any part, of a sketch of any size
    array([[-1.77,  1.33],
           [ 0.5 ,  1.09]])
    """

    size: int
    seed: int = 0

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        return rng.standard_normal(shape)


@dataclass(frozen=True)
class RademacherSketch(_CellSketch):
    """Independent entries ±1.

    Parameters
    ----------
    size : int
        The number of rows m.
    seed : int
        Of every entry.

    Examples
    --------
    >>> RademacherSketch(size=2, seed=0).entries(range(2), range(4))
    array([[ 1.,  1.,  1., -1.],
           [-1., -1., -1., -1.]])
    """

    size: int
    seed: int = 0
    sign_cell: ClassVar[tuple[int, int]] = CELL  # by which a device can draw the same signs

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        return 2.0 * rng.integers(0, 2, shape, dtype=np.int8) - 1.0


@dataclass(frozen=True)
class SparseSketch(_CellSketch):
    """Independent sub-Gaussian entries: ±1 with probability ``density``, else 0.

    Parameters
    ----------
    size : int
        The number of rows m.
    seed : int
        Of every entry.
    density : float
        The share of entries that are not 0.

    Examples
    --------
    >>> SparseSketch(size=2, seed=0, density=0.5).entries(range(2), range(4))
    array([[ 1.,  1.,  1.,  0.],
           [ 1.,  0., -1., -1.]])
    """

    size: int
    seed: int = 0
    density: float = 1 / 3

    def check(self, n: int) -> None:
        super().check(n)
        if not isinstance(self.density, Real) or not 0 < self.density <= 1:
            raise ValueError(f"The density must be above 0 and at most 1, got {self.density!r}.")

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        u = rng.random(shape)
        return np.where(u < self.density, np.where(u < self.density / 2, 1.0, -1.0), 0.0)


@dataclass(frozen=True)
class HadamardSketch(EntrySketch):
    """sign_j (−1)^popcount(r_i & j): rows of an endless Hadamard matrix, with random signs.

    Parameters
    ----------
    size : int
        The number of rows m.
    seed : int
        Of every entry.

    Examples
    --------
    >>> HadamardSketch(size=2, seed=0).entries(range(2), range(4))
    array([[ 1.,  1., -1., -1.],
           [ 1., -1.,  1., -1.]])
    """

    size: int
    seed: int = 0

    def entries(self, rows: range, columns: range) -> Array:
        r = np.array([_row_generator(self.seed, i).integers(2**63) for i in rows], dtype=np.uint64)
        j = np.arange(columns.start, columns.stop, dtype=np.uint64)
        parity = np.bitwise_count(r[:, None] & j) & 1
        return (1.0 - 2.0 * parity) * _column_signs(self.seed, columns)


@dataclass(frozen=True)
class FourierSketch(EntrySketch):
    """sign_j cos(2πθ_i j + ψ_i): rows of a cosine transform of endless length, with random signs.

    The frequencies θ_i are multiples of the golden ratio modulo ½ from a random start, so that no
    two of them come close: independent ones make the rows all but dependent as m nears n.

    Parameters
    ----------
    size : int
        The number of rows m.
    seed : int
        Of every entry.

    Examples
    --------
    >>> FourierSketch(size=2, seed=0).entries(range(2), range(4)).round(2)
    array([[ 0.98,  0.26, -0.95, -0.37],
           [-0.02, -0.33, -0.6 , -0.82]])
    """

    size: int
    seed: int = 0

    def entries(self, rows: range, columns: range) -> Array:
        start = _row_generator(self.seed, -1).random()
        theta = np.mod(start + _GOLDEN * np.arange(rows.start, rows.stop), 1.0) / 2
        psi = np.array([_row_generator(self.seed, i).random() for i in rows])
        turns = np.outer(theta, np.arange(columns.start, columns.stop)) + psi.reshape(-1, 1)
        return np.cos(2 * np.pi * np.mod(turns, 1.0)) * _column_signs(self.seed, columns)


@dataclass(frozen=True, eq=False)
class ArraySketch(EntrySketch):
    """A matrix (m, n) given by the user; the columns of points that come later are zero.

    Parameters
    ----------
    matrix : (m, n) array
        Its entries.

    Examples
    --------
    >>> ArraySketch(np.eye(2)).entries(range(2), range(3))
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """

    matrix: Array

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.matrix)

    def grown(self, size: int) -> ArraySketch:
        if size != self.size:
            raise ValueError(
                f"A sketch given as an array has {self.size} rows and cannot be resized to {size}: "
                "give another array."
            )
        return self

    def check(self, n: int) -> None:
        kind = getattr(self.matrix, "dtype", np.dtype(object)).kind
        if kind not in "biuf" or self.matrix.ndim != 2:
            raise ValueError(f"An ArraySketch is a real array (m, n), got {self.matrix!r}.")
        if not np.isfinite(self.matrix).all():
            raise ValueError("The sketch array contains NaN or infinity; it must be finite.")
        if self.matrix.shape[1] > n:
            raise ValueError(
                f"The sketch has {self.matrix.shape[1]} columns, but there are only {n} training "
                "rows."
            )

    def merged(self, group: Array, n: int, used: Array | None) -> ArraySketch:
        """The sketch of merged rows: G Sᵀ is the same when the columns of a group are added.

        Columns of rows that are not among those ``used`` are left out.
        """
        given = self.matrix if used is None else self.matrix[:, used]
        matrix = np.zeros((len(self.matrix), n))
        np.add.at(matrix.T, group, given.T)
        return replace(self, matrix=matrix)

    def entries(self, rows: range, columns: range) -> Array:
        known = self.matrix[rows.start : rows.stop, columns.start : columns.stop]
        return np.pad(known, ((0, 0), (0, len(columns) - known.shape[1])))


@dataclass(frozen=True, eq=False)
class LandmarkSketch(RowSketch):
    """Points chosen uniformly, without replacement; or those of the numbers ``indices``.

    Parameters
    ----------
    seed : int
        Of the choice.
    indices : (m,) array of int
        Training rows; those of a fit unless given.

    Examples
    --------
    >>> LandmarkSketch(seed=0).size  # none are chosen before a fit
    0
    >>> LandmarkSketch(indices=np.array([4, 1, 7])).size
    3
    """

    def propose(self, count: int, residual: Any) -> tuple[Array, Array]:
        open_rows = residual.count()
        places = self._rng().choice(open_rows, size=min(count, open_rows), replace=False)
        return residual.pick(places), np.zeros(len(places))


@dataclass(frozen=True, eq=False)
class RPCholeskySketch(RowSketch):
    """Points chosen in proportion to their residual: randomly pivoted Cholesky.

    Candidates are drawn in blocks with the residual at the block's start and thinned by rejection,
    which gives exactly the distribution of choosing them one by one (Epperly, Tropp and Webber,
    2024).

    Parameters
    ----------
    seed : int
        Of the choice.
    indices : (m,) array of int
        Training rows; those of a fit unless given.

    Examples
    --------
    >>> from sketchridge import SketchedKernelRidge
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = SketchedKernelRidge(sketch_size=4, alpha=0.1, random_state=0).fit(X, np.sin(X))
    >>> type(model.sketch_).__name__, model.sketch_.size
    ('RPCholeskySketch', 4)
    >>> again = SketchedKernelRidge(sketch=model.sketch_, alpha=0.1).fit(X, np.sin(X))
    >>> bool((again.sketch_.indices == model.sketch_.indices).all())
    True
    """

    def propose(self, count: int, residual: Any) -> tuple[Array, Array]:
        rng = self._rng()
        rows = residual.draw(rng.random(count))
        return rows, rng.random(count)


SKETCHES: dict[str, type[Sketch]] = {
    "gaussian": GaussianSketch,
    "rademacher": RademacherSketch,
    "sparse": SparseSketch,
    "srht": HadamardSketch,
    "fourier": FourierSketch,
    "landmarks": LandmarkSketch,
    "rpcholesky": RPCholeskySketch,
}


def as_sketch(spec: object, *, n: int, seed: int) -> Sketch:
    """The sketch meant by a name, a sketch object or an (m, n) array; empty if its size is open.

    Parameters
    ----------
    spec : str, (m, n) array or sketch object
        As `sketch` of an estimator.
    n : int
        The number of rows.
    seed : int
        Of its entries.

    Returns
    -------
    sketch : Sketch
        Without rows if its size is open.

    Examples
    --------
    >>> as_sketch("gaussian", n=100, seed=7)
    GaussianSketch(size=0, seed=7)
    >>> as_sketch(np.ones((3, 100)), n=100, seed=7).size
    3
    """
    if isinstance(spec, str) and spec in SKETCHES:
        cls = SKETCHES[spec]
        return cls(seed=seed) if issubclass(cls, RowSketch) else cls(size=0, seed=seed)  # type: ignore[call-arg]
    if isinstance(spec, Sketch):
        spec.check(n)
        return spec
    if isinstance(spec, str) or not hasattr(spec, "__array__"):
        raise ValueError(
            f"Unknown sketch {spec!r}: give 'auto', one of {', '.join(map(repr, SKETCHES))}, a "
            "sketch object or an (m, n) array."
        )
    if np.iscomplexobj(spec):
        raise ValueError("The sketch array is complex; it must be real.")
    matrix = np.asarray(spec, dtype=float)
    if matrix.ndim != 2 or matrix.shape[1] != n or len(matrix) == 0:
        raise ValueError(
            f"A sketch given as an array must have one column for each of the {n} training rows "
            f"and at least one row, got shape {matrix.shape}."
        )
    ArraySketch(matrix).check(n)
    return ArraySketch(evened(matrix))


def _generator(seed: int, row: int, column: int) -> np.random.Generator:
    """The generator of one cell: the counter's upper words are the cell's place, its lower words
    run inside it."""
    counter = np.array([0, 0, row, column], dtype=np.int64).view(np.uint64)
    return np.random.Generator(np.random.Philox(key=seed, counter=counter))


def _row_generator(seed: int, i: int) -> np.random.Generator:
    return _generator(seed, i, _LINE)


def _column_signs(seed: int, columns: range) -> Array:
    first = columns.start // _CELL_COLUMNS
    cells = range(first, -(-columns.stop // _CELL_COLUMNS))
    bits = [_generator(seed, _LINE, bj).integers(0, 2, _CELL_COLUMNS) for bj in cells]
    signs = 2.0 * np.concatenate([*bits, np.empty(0)]) - 1.0
    return signs[columns.start - first * _CELL_COLUMNS :][: len(columns)]
