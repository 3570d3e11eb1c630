"""The primitives every backend offers: all that is ever done with arrays as long as the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from sketchridge.kernels import Kernel

__all__ = ["Backend"]

Array = np.ndarray


class Backend(ABC):
    """Products with k(X, Z), which is never held in memory.

    ``dtype`` is the precision of the kernel values and of the products; sums over tiles and results are float64.
    """

    name: str
    dtype: np.dtype

    def alone(self) -> AbstractContextManager[object]:
        """A context for a series of calls, in which no other threads of this process compete with the backend's."""
        return nullcontext()

    @abstractmethod
    def matmul(self, kernel: Kernel, X: Array, Z: Array, V: Array) -> Array:
        """k(X, Z) @ V, with X (t, d), Z (n, d), V (n, q): (t, q). O(tnq) time, O(tq) memory."""

    @abstractmethod
    def residual_sqnorm(self, kernel: Kernel, X: Array, Z: Array, H: Array, C: Array) -> Array:
        """Squared row norms of k(X, Z) − C Hᵀ, with H (n, m), C (t, m): (t,). O(tnm) time, O(t) memory."""

    @abstractmethod
    def block(self, kernel: Kernel, X: Array, Z: Array) -> Array:
        """k(X, Z) itself, in float64 whatever ``dtype``: landmark columns are factorised."""

    @abstractmethod
    def schur(self, kernel: Kernel, X: Array, Z: Array, F: Array, F_Z: Array, L: Array) -> Array:
        """(k(X, Z) − F F_Zᵀ) L⁻ᵀ in float64, with Z (b, d), F (n, r), F_Z (b, r), L (b, b) triangular: (n, b). O(nb(r + b))."""

    @abstractmethod
    def gram(self, F: Array, G: Array | None = None) -> Array:
        """FᵀG in float64, with F (n, r), G (n, q): (r, q). G is F where not given."""

    @abstractmethod
    def product(self, F: Array, V: Array) -> Array:
        """F V in float64, with F (n, r), V (r, q): (n, q)."""
