"""The primitives every backend offers: all that is ever done with arrays as long as the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from sketchridge.kernels import Kernel

__all__ = ["Array", "Backend", "Product"]

Array = Any  # an array of the backend's own: of NumPy, or a tensor on a device


class Product:
    """[F V, beside] for an F that fills much of a device's memory: not held, but known by its parts. Its rows are those of F V."""

    def __init__(self, F: Array, V: Array, beside: Array | None = None) -> None:
        self.F, self.V, self.beside = F, V, beside  # (n, r), (r, q), (n,)
        self.shape = (len(F), V.shape[1] + (beside is not None))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        return self.F[rows] @ self.V


class Backend(ABC):
    """Products with k(X, Z), which is never held in memory.

    ``dtype`` is the precision of the kernel values and of the products, ``precision`` its name and ``eps`` the relative error it
    leaves; sums over tiles and results are float64. Where ‖k_x‖² is below ``far`` times its usual size, kernel values leave the
    range of that precision. Points are NumPy arrays; whatever else is as long as the data, or m×m, is an array of ``xp``, the
    backend's array module, and stays where the backend computes.
    """

    name: str
    precision: str
    dtype: np.dtype
    eps: float
    far: float
    xp: Any = np
    entries = 0  # of a sketch held at a time, but no fewer than 4096 columns
    sketching: Backend | None = None  # applies dense sketches, where that may be less precise than the rest

    def asarray(self, A: Any) -> Array:
        """A in float64, where the backend computes."""
        return np.asarray(A, dtype=float)

    def to_numpy(self, A: Array) -> np.ndarray:
        """The array as NumPy's, on the host."""
        return A

    def zeros(self, *shape: int) -> Array:
        """Zeros in float64, or MemoryError with the bytes needed and free."""
        return np.zeros(shape)

    def signs(self, seed: int, rows: range, columns: range, cell: tuple[int, int]) -> Array | None:
        """Entries of a sketch of signs, drawn cell by cell, where the backend can make them; None where the host has to."""
        return None

    def spread(self, kernel: Kernel, X: np.ndarray) -> float:
        """The largest ‖u‖² in the kernel's coordinates."""
        U = kernel.coordinates(X)
        return float(np.einsum("ij,ij->i", U, U).max())

    def tall(self, F: Array, V: Array) -> Any:
        """F V, with F (n, r), V (r, q), or a Product where that would take much of the memory."""
        return self.product(F, V)

    def beside(self, H: Array, column: Array) -> Array:
        """H (n, r) with one more column (n,)."""
        return self.xp.concat([H, column[:, None]], axis=1)

    def solve_triangular(self, L: Array, B: Array) -> Array:
        """L⁻¹B for a lower triangular L."""
        return solve_triangular(L, B, lower=True, check_finite=False)

    def factor_definite(self, A: Array) -> Any:
        """A factorisation of a positive definite matrix, for ``solve_definite``."""
        return cho_factor(A, lower=True)

    def solve_definite(self, factor: Any, B: Array) -> Array:
        return cho_solve(factor, B)

    def alone(self) -> AbstractContextManager[object]:
        """A context for a series of calls, in which no other threads of this process compete with the backend's."""
        return nullcontext()

    @abstractmethod
    def matmul(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray, V: Array) -> Array:
        """k(X, Z) @ V, with X (t, d), Z (n, d), V (n, q): (t, q). O(tnq) time, O(tq) memory."""

    @abstractmethod
    def residual_sqnorm(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray, H: Array, C: Array) -> Array:
        """Squared row norms of k(X, Z) − C Hᵀ, with H (n, m), C (t, m): (t,). O(tnm) time, O(t) memory."""

    @abstractmethod
    def block(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> Array:
        """k(X, Z) itself, in float64 whatever ``dtype``: landmark columns are factorised."""

    @abstractmethod
    def schur(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray, F: Array, F_Z: Array, L: Array) -> Array:
        """(k(X, Z) − F F_Zᵀ) L⁻ᵀ in float64, with Z (b, d), F (n, r), F_Z (b, r), L (b, b) triangular: (n, b). O(nb(r + b))."""

    @abstractmethod
    def gram(self, F: Array, G: Array | None = None) -> Array:
        """FᵀG in float64, with F (n, r), G (n, q): (r, q). G is F where not given."""

    @abstractmethod
    def product(self, F: Array, V: Array) -> Array:
        """F V in float64, with F (n, r), V (r, q): (n, q)."""

    @abstractmethod
    def leverages(self, H: Array, D: Array) -> Array:
        """Σ_j H_ij² D_jl, with H (n, r), D (r, l): (n, l)."""
