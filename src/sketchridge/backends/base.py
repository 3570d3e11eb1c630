"""What a backend is: where points and tall matrices live, and the few things done with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, TypeVar

import numpy as np

from sketchridge.backends import memory
from sketchridge.backends.cholesky import Cholesky
from sketchridge.backends.points import Points
from sketchridge.backends.tall import Tall
from sketchridge.backends.threads import over_rows
from sketchridge.kernels import DistanceKernel, Kernel
from sketchridge.loo import Problem, criterion_at, left_out

__all__ = ["Backend"]

T = TypeVar("T")
Array = np.ndarray
_LARGEST_SKETCH = 2048, 4096
_POINTS = 1024  # predicted at a time at least, where that is to be heard of
_TALL = 4  # matrices (n, m) that a fit may hold at a time
REMEDY = "give a smaller sketch_size, or fewer rows"


class Backend(ABC):
    """Products with k(X, Z), which is never held in memory.

    `Points` and `Tall` matrices live where the backend computes, in float64. Everything else that
    goes in and out is a small NumPy array. ``precision`` names the precision of kernel values and
    of products with them, one of ``precisions``; sums over tiles and results are float64.
    ``weights`` (n, 1) are those of the rows of the second set of points; 1 unless given.
    """

    name: ClassVar[str]
    precisions: ClassVar[tuple[str, ...]]
    dense_rows: int = 0  # for which an n×n matrix is factorized in seconds
    undivided: bool = False  # whether n×n triangles are solved in one piece
    block_bytes: int = 2**26  # of the largest (t, m) matrix while t points are predicted
    slab_bytes: int = 2**28  # of a few columns or rows of a matrix with a row for each data row
    longest: int = 2**62  # of the points that are predicted at a time
    evaluations: float = 2**31  # of a kernel in some seconds, after which one hears of them
    far: ClassVar[dict[str, float]] = {"float64": 0.0}
    # Below far[precision] times the usual ‖k_x‖², kernel values leave the range of a precision.

    def place(self, kernel: Kernel, U: Array) -> Points:
        """A copy of points given by their coordinates ``kernel.coordinates(X)``."""
        largest = 0.0 if kernel.geometry == "opaque" else self.largest(U)
        if not largest < 1e150 ** (1 / kernel.growth):
            raise ValueError(
                f"X has rows {largest:.3g} away, in units of the bandwidth or of the largest "
                "training row, where squares of kernel values overflow: rescale X, or give a "
                "larger bandwidth."
            )
        placed = self.points(kernel, U)
        placed.largest = largest
        return placed

    def largest(self, U: Array) -> float:
        """The size of the largest coordinate."""
        return max([0.0, *over_rows(lambda rows: float(np.abs(U[rows]).max()), len(U))])

    @abstractmethod
    def points(self, kernel: Kernel, U: Array) -> Points:
        """Points of this backend, with a copy of the coordinates U (n, k)."""

    @abstractmethod
    def block(self, P: Points, Q: Points) -> Tall:
        """k(P, Q) in float64: (t, n), for a Q of few points or a P of few."""

    @abstractmethod
    def schur(self, P: Points, Q: Points, F: Tall, F_Q: Array, L: Array) -> Tall:
        """(k(P, Q) − F F_Qᵀ) L⁻ᵀ in float64, with L (b, b) triangular: (t, b). O(tb(r + b))."""

    @abstractmethod
    def matmul(
        self, P: Points, Q: Points, T: Tall, *, weights: Tall | None = None, precision: str
    ) -> Tall:
        """k(P, Q) diag(w) T, with T (n, q): (t, q). O(tnq) time, O(tq) memory."""

    @abstractmethod
    def residual_sqnorm(
        self, P: Points, Q: Points, T: Tall, C: Tall, *, weights: Tall, precision: str
    ) -> Array:
        """Σ_j w_j (k(p, q_j) − (C Tᵀ)_pj)², with T (n, m), C (t, m): (t,). O(tnm) time."""

    def moments(
        self, P: Points, Q: Points, T: Tall, *, weights: Tall, precision: str
    ) -> tuple[Array, Tall]:
        """Σ_j w_j k(p, q_j)² (t,) and k(P, Q) diag(w) T (t, m), in one pass where that can be."""
        none = self.tall(np.empty((len(Q), 0)))
        no_columns = self.tall(np.empty((len(P), 0)))
        squares = self.residual_sqnorm(P, Q, none, no_columns, weights=weights, precision=precision)
        return squares, self.matmul(P, Q, T, weights=weights, precision=precision)

    # Tall matrices

    def tall(self, A: Array) -> Tall:
        """A matrix (n, q) of the host, copied to where the backend computes."""
        return Tall(self, (self.array(A),))

    def generate(self, sketch: Any, rows: range, columns: range) -> Tall:
        """S[rows, columns]ᵀ of a sketch with entries everywhere: (len(columns), len(rows))."""
        return self.tall(sketch.entries(rows, columns).T)

    @abstractmethod
    def reserve(self, numbers: float, what: str, remedy: str = REMEDY) -> None:
        """Raise MemoryError where there is no room for so many float64 numbers."""

    def width_for(self, n: int) -> int:
        """That of matrices of as many points as are compared with n rows in some seconds."""
        numbers = self.block_bytes / 8
        return int(min(numbers / _POINTS, numbers * n / self.evaluations))

    def alone(self) -> AbstractContextManager[object]:
        """A context for a series of calls, in which no other threads compete with them."""
        return nullcontext()

    def side_by_side(self, jobs: Sequence[Callable[[], T]], numbers: float = 0.0) -> list[T]:
        """The results of jobs that do not depend on each other, in their order. Each takes so many
        float64 numbers for a time: no more run at once than there is memory for."""
        return [job() for job in jobs]

    # Arrays of the backend's own, for Tall

    @abstractmethod
    def array(self, A: Array) -> Any:
        """A host array where the backend computes, in float64."""

    @abstractmethod
    def host(self, A: Any) -> Array:
        """The array as NumPy's, on the host."""

    @abstractmethod
    def empty(self, n: int, q: int) -> Any:
        """A new (n, q) array, or MemoryError with the bytes needed and available."""

    @abstractmethod
    def joined(self, arrays: Sequence[Any], axis: int) -> Any:
        """The arrays one after another."""

    @abstractmethod
    def each(self, function: Callable[[slice], None], n: int, width: int) -> None:
        """Call the function for slices of n rows, so short that arrays of that width are small."""

    @abstractmethod
    def total(self, function: Callable[[slice], Any], n: int, width: int) -> Any:
        """The sum of the function's values over such slices."""

    @abstractmethod
    def picked(self, column: Any, places: Array) -> Array:
        """The row numbers of some of the entries of a column (n,) that are not 0."""

    @abstractmethod
    def drawn(self, cumulative_of: Any, u: Array) -> Array:
        """Row numbers drawn in proportion to a column (n,), one for each uniform u."""

    def square(self, block: Any) -> Any:
        """blockᵀ block, of some rows of a tall matrix."""
        return block.T @ block

    def largest_sketch(self, n: int) -> int:
        """Of an automatic size, for n rows: 4,096 where memory permits, else 2,048."""
        small, large = _LARGEST_SKETCH
        return large if 8 * _TALL * n * large <= self._free() else small

    def _free(self) -> float:
        """Bytes that tall matrices can still take."""
        return memory.available()

    def worth_holding(self, n: int, q: int) -> bool:
        """Whether a product (n, q) is better formed than left: there is memory enough for it."""
        return True

    # n×n algebra, where the backend computes

    def dense(self, P: Points, root: Tall, lam: float) -> Cholesky:
        """diag(root) k(P, P) diag(root) + λI, factorized; LinAlgError where it is not definite.

        O(n³) time, one n×n matrix.
        """
        M = self.block(P, P).whole()
        M *= root.whole()
        M *= root.whole().T
        M.reshape(-1)[:: len(P) + 1] += lam
        return Cholesky(self, M)

    @abstractmethod
    def cholesky(self, A: Any) -> Any:
        """The lower triangular factor of a small matrix of the backend's, or LinAlgError."""

    @abstractmethod
    def triangular(self, L: Any, B: Any, *, transposed: bool = False) -> Any:
        """L⁻¹B, or L⁻ᵀB, for small matrices of the backend's; above its diagonal L is not read."""

    def criterion(
        self, name: str, kernel: DistanceKernel, U: Array, alpha: float, problem: Problem
    ) -> tuple[float, Array, float] | None:
        """`loo.criterion_at`, by which kernels are learned, on a GPU where there is one."""
        return criterion_at(name, kernel, U, alpha, problem)

    def left_out(
        self, kernel: DistanceKernel, U: Array, alpha: float, problem: Problem
    ) -> Array | None:
        """`loo.left_out`, by which learned kernels are compared, likewise."""
        return left_out(kernel, U, alpha, problem)

    # m×m algebra, where the backend computes

    def frozen(self, A: Any) -> Array:
        """A small matrix, the host's or the backend's, as NumPy's that nobody can change, so that
        a device needs to be given it once."""
        found = A if isinstance(A, np.ndarray) else self.host(A)
        found.flags.writeable = False
        return found

    @abstractmethod
    def eigh(self, A: Array, cut: float | None = None) -> tuple[Array, Array]:
        """Eigenvalues in descending order and eigenvectors, a constant, of a symmetric matrix; only
        those above the largest times ``cut``, where that is given."""

    @abstractmethod
    def solve_triangular(self, L: Array, B: Array) -> Array:
        """L⁻¹B for a lower triangular L."""

    @abstractmethod
    def definite(self, A: Array) -> Callable[[Array], Array]:
        """A positive definite A, factorized: a function that gives A⁻¹B."""
