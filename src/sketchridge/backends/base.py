"""The primitives every backend offers: all that is ever done with an n×n kernel matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod

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

    @abstractmethod
    def matmul(self, kernel: Kernel, X: Array, Z: Array, V: Array) -> Array:
        """k(X, Z) @ V, with X (t, d), Z (n, d), V (n, q): (t, q). O(tnq) time, O(tq) memory."""

    @abstractmethod
    def residual_sqnorm(self, kernel: Kernel, X: Array, Z: Array, H: Array, C: Array) -> Array:
        """Squared row norms of k(X, Z) − C Hᵀ, with H (n, m), C (t, m): (t,). O(tnm) time, O(t) memory."""

    @abstractmethod
    def block(self, kernel: Kernel, X: Array, Z: Array) -> Array:
        """k(X, Z) itself, in float64 whatever ``dtype``: landmark columns are factorised."""
