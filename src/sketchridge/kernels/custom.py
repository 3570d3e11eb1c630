"""Kernels that come from outside: callables, scikit-learn's objects, matrices."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchridge.kernels.base import Kernel

__all__ = ["Custom", "Precomputed", "custom_kernel"]

Array = np.ndarray
_ROWS = 200  # looked at to see whether a kernel is positive semidefinite


@dataclass(frozen=True)
class Custom(Kernel):
    """A callable k(X, Z) -> matrix, or a kernel object of sklearn.gaussian_process.

    It is called from several threads at once, each time with some rows of X and of Z. A fit keeps a
    copy, where it can be copied, so that an object that is changed later changes no model.

    Parameters
    ----------
    function : callable
        k(X, Z), (t, d) and (n, d) arrays to a (t, n) array, or a scikit-learn kernel object.

    Examples
    --------
    >>> Custom(lambda X, Z: X @ Z.T)(np.array([[2.0]]), np.array([[3.0]]))
    array([[6.]])
    """

    function: Callable[[Array, Array], Array]

    def fitted(self, X: Array) -> Custom:
        return Custom(_copied(self.function))

    def block(self, U: Array, V: Array) -> Array:
        G = np.asarray(self.function(U, V), dtype=float)
        if G.shape != (len(U), len(V)):
            raise ValueError(
                f"The kernel {self.function!r} returned an array of shape {G.shape} for {len(U)} "
                f"and {len(V)} points; it must return one of shape ({len(U)}, {len(V)})."
            )
        _check_finite(G, f"The kernel {self.function!r}")
        return G

    def diagonal(self, U: Array) -> Array:
        if _is_scikit_learn(self.function, "Kernel"):
            return np.array(self.function.diag(U), dtype=float)  # type: ignore[attr-defined]
        chunks = np.array_split(U, max(1, len(U) // 128))
        return np.concatenate([np.diagonal(self.block(c, c)) for c in chunks])

    def check(self, X: Array) -> None:
        """Test symmetry and positive semidefiniteness on up to 200 rows of X."""
        rows = X[_some(len(X))]
        _check_semidefinite(self.block(rows, rows), f"The kernel {self.function!r}")


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A kernel matrix in place of points: (n, n) for a fit, k(X_new, X) (t, n) for new points.

    The coordinates of a training point are its row number and its row, of any other point −1 and
    its row, so that k(u, v) is an entry of u's row wherever v is a training point, and of v's
    wherever u is.

    >>> from sketchridge import ExactKernelRidge
    >>> X, X_new = np.array([[0.0], [1.0], [3.0]]), np.array([[2.0]])
    >>> model = ExactKernelRidge("precomputed", alpha=0.5, noise_variance=1.0)
    >>> model.fit(X @ X.T, [0.0, 1.0, 3.0]).predict(X_new @ X.T).round(2)
    array([1.94])
    """

    def training_coordinates(self, X: Array) -> Array:
        return np.column_stack([np.arange(len(X)), X])

    def training_rows(self, X: Array, rows: Array) -> Array:
        return X[np.ix_(rows, rows)]

    def coordinates(self, X: Array) -> Array:
        return np.column_stack([np.full(len(X), -1.0), X])

    def block(self, U: Array, V: Array) -> Array:
        if (V[:, 0] >= 0).all():
            return U[:, 1:][:, V[:, 0].astype(int)]
        if (U[:, 0] < 0).any():
            raise ValueError("k between new points is not in a precomputed kernel matrix.")
        return self.block(V, U).T

    def check_slopes(self) -> None:
        raise ValueError(
            "A precomputed kernel matrix has no features, so it has no gradients and no marginal "
            "effects: give the kernel itself."
        )

    def diagonal(self, U: Array) -> Array:
        if (U[:, 0] < 0).any():
            raise ValueError(
                "k(x, x) of new points is not in a precomputed kernel matrix k(X_new, X), so "
                "intervals, gp and bias2 are not known there: give the kernel itself, or ask for "
                "predict(X, return_std=True), the standard deviation of the mean."
            )
        return U[np.arange(len(U)), 1 + U[:, 0].astype(int)]

    def __call__(self, X: Array, Z: Array) -> Array:
        raise ValueError("A precomputed kernel has no points: k(X_new, X) is what is given as X.")

    def check(self, X: Array) -> None:
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"kernel='precomputed' is fitted to the (n, n) kernel matrix, got shape {X.shape}."
            )
        rows = _some(len(X))
        _check_semidefinite(X[np.ix_(rows, rows)], "The precomputed kernel matrix")


def custom_kernel(spec: Any) -> Custom:
    """A callable as a kernel; a WhiteKernel inside scikit-learn's is refused."""
    if _is_scikit_learn(spec, "Kernel"):
        parts = [spec, *spec.get_params(deep=True).values()]
        if any(_is_scikit_learn(part, "WhiteKernel") for part in parts):
            raise ValueError(
                f"The kernel {spec!r} contains a WhiteKernel, but noise is not part of the kernel "
                "here: remove it and set alpha to the noise level."
            )
    return Custom(spec)


def _copied(function: Any) -> Any:
    """A copy; the object itself where it lets none be made, such as one that holds a lock."""
    try:
        return copy.deepcopy(function)
    except Exception:  # whatever its own methods raise
        return function


def _some(n: int) -> Array:
    return np.unique(np.linspace(0, n - 1, min(n, _ROWS)).astype(int))


def _check_finite(G: Array, what: str) -> None:
    if not np.isfinite(G).all():
        raise ValueError(f"{what} has NaN or infinity on the data; it must be finite.")


def _check_semidefinite(G: Array, what: str) -> None:
    _check_finite(G, what)
    low, high = np.linalg.eigvalsh((G + G.T) / 2)[[0, -1]]
    asymmetry = np.abs(G - G.T).max()
    if low < -1e-8 * max(high, -low) or asymmetry > 1e-8 * np.abs(G).max():
        raise ValueError(
            f"{what} is not positive semidefinite: on {len(G)} rows of the data its matrix has "
            f"eigenvalues from {low:.3g} to {high:.3g} and asymmetry {asymmetry:.3g}. Use a "
            "symmetric positive semidefinite kernel."
        )


def _is_scikit_learn(spec: object, name: str) -> bool:
    """Whether spec is of a class of scikit-learn's kernels, which its maker has loaded already."""
    module = sys.modules.get("sklearn.gaussian_process.kernels")
    return module is not None and isinstance(spec, getattr(module, name))
