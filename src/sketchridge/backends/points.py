"""Points in a kernel's coordinates: a copy, made once, that never changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sketchridge.backends.tall import Tall
from sketchridge.kernels import Kernel

__all__ = ["FAR", "Extent", "Points"]

Array = np.ndarray
FAR = 2.0**20  # ‖u‖² from which distances between two such points are not left to a product


class Extent(NamedTuple):
    """How large points with weights w are."""

    diag: float  # the largest k(x, x)/unit
    trace: float  # Σ w k(x, x)/unit
    square: float  # the largest ‖u‖², or FAR
    fourth: float  # Σ w ‖u‖⁴


class Points:
    """The points of one kernel on one backend; rows of U are their coordinates.

    A backend may keep other forms of the same points beside them (`kept`): they are derived from U
    and live as long as it does. ``largest`` is no less than any of their coordinates.
    """

    def __init__(self, backend: Any, kernel: Kernel, U: Any, largest: float = 0.0) -> None:
        self.backend = backend
        self.kernel = kernel
        self.largest = largest
        self.U = U  # (n, k), where the backend computes; on the host for an opaque kernel
        self._forms: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.U)

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """Something that is derived from them, made by the first who asks."""
        if key not in self._forms:
            self._forms[key] = make()
        return self._forms[key]

    def take(self, rows: Array | slice) -> Points:
        """Some of the points."""
        chosen = rows if isinstance(rows, slice) else np.ascontiguousarray(rows)
        return Points(self.backend, self.kernel, self.U[chosen], self.largest)

    def append(self, more: Points) -> Points:
        """These points and then others."""
        largest = max(self.largest, more.largest)
        if self.kernel.geometry == "opaque":
            U = np.concatenate([self.U, more.U])
        else:
            U = self.backend.joined([self.U, more.U], axis=0)
        return Points(self.backend, self.kernel, U, largest)

    def of(self, kernel: Kernel) -> Points:
        """The same points for another kernel with the same coordinates; nothing is copied."""
        return Points(self.backend, kernel, self.U, self.largest)

    def tall(self) -> Tall:
        """Their coordinates as a tall matrix, shared: (n, k)."""
        return Tall(self.backend, (self.U,))

    def host(self) -> Array:
        """Their coordinates as a NumPy array: (n, k)."""
        return self.U if self.kernel.geometry == "opaque" else self.backend.host(self.U)

    def diag(self) -> Array:
        """k(x, x)/unit: (n,)."""
        if self.kernel.geometry == "distance":  # the same at every point
            return np.repeat(self.kernel.diagonal(self.take(slice(0, 1)).host()), len(self))
        return self.kernel.diagonal(self.host())

    def diagonal(self) -> Tall:
        """The same where the backend computes: (n, 1)."""
        return self.backend.tall(self.diag()[:, None])

    def squares(self) -> Array:
        """‖u‖² or FAR if that is less, by which rounding grows in squared distances; 0 for other
        kernels: (n,)."""
        if self.kernel.geometry != "distance":
            return np.zeros(len(self))
        return np.minimum(self.backend.host((self.U * self.U).sum(axis=1)), FAR)

    def extent(self, weights: Tall) -> Extent:
        """How large the points with these weights (n, 1) are."""
        w = weights.host()[:, 0]
        diag = self.diag()
        squares = self.squares()
        return Extent(
            diag=float(diag.max(initial=0.0)),
            trace=float(w @ diag),
            square=float(squares.max(initial=0.0)),
            fourth=float(w @ (squares * squares)),
        )

    def far(self) -> Array:
        """Which points are so far out that distances among them need differences: (n,)."""
        if self.kernel.geometry != "distance":
            return np.zeros(len(self), dtype=bool)
        if self.largest**2 * self.U.shape[1] < FAR:
            return np.zeros(len(self), dtype=bool)
        return self.kept("far", lambda: self.squares() >= FAR)

    def __getstate__(self) -> Any:
        raise TypeError("Points are where a backend computes: save their coordinates instead.")
