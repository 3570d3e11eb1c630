"""What the tests share: the one place tolerances come from, tiny data, and the tables of kernels and sketches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sketchridge import kernels, sketches
from sketchridge.backends import Backend, NumpyTiles
from sketchridge.state import State, build

Array = np.ndarray
TOLERANCE = {"float64": 1e-10, "float32": 5e-5, "pcg": 1e-7, "per cent": 0.03}


def tol(kind: str | np.dtype = "float64") -> float:
    """The relative error allowed: by dtype, or a few per cent where the problem itself is ill-conditioned."""
    return TOLERANCE[str(kind)]


def assert_close(
    actual: Array, desired: Array, kind: str | np.dtype = "float64", *, scale: float | None = None, condition: float = 1.0
) -> None:
    """|actual − desired| ≤ tol · scale · condition; scale is the largest desired entry, condition the factor that multiplies
    rounding where the inputs were deliberately made ill-conditioned."""
    actual, desired = np.asarray(actual), np.asarray(desired)
    assert actual.shape == desired.shape
    if desired.size:
        scale = np.abs(desired).max() if scale is None else scale
        np.testing.assert_allclose(actual, desired, rtol=0, atol=tol(kind) * scale * condition)


def assert_close_each(actual: Array, desired: Array, kind: str | np.dtype = "float64") -> None:
    """|actual − desired| ≤ tol · |desired|, entry by entry."""
    np.testing.assert_allclose(actual, desired, rtol=tol(kind), atol=0, strict=True)


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class OnHost:
    """A backend whose primitives return NumPy arrays, wherever it computes."""

    primitives = ("matmul", "residual_sqnorm", "block", "schur", "gram", "product", "leverages")

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __getattr__(self, name: str) -> object:
        value = getattr(self.backend, name)
        if name not in self.primitives:
            return value
        return lambda *arguments: self.backend.to_numpy(value(*arguments))


def normal(n: int, d: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((n, d))


def unit_cube(n: int, d: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((n, d))


def targets(n: int, q: int = 1, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal((n, q))


@dataclass(frozen=True)
class KernelCase:
    """A kernel, a maker of points (n, d, seed) it is defined on, and a d for which its matrices are well conditioned."""

    id: str
    kernel: kernels.Kernel
    make: Callable[..., Array]
    d: int = 3

    def __str__(self) -> str:
        return self.id

    def points(self, n: int, seed: int = 0) -> Array:
        return self.make(n, self.d, seed)

    def fitted(self, X: Array) -> kernels.Kernel:
        return self.kernel.fitted(X)


KERNEL_CASES = [
    KernelCase("gaussian", kernels.Gaussian(bandwidth=0.9), normal),
    KernelCase("gaussian-ard", kernels.Gaussian(bandwidth=np.array([0.5, 1.0, 2.0])), normal),
    KernelCase("laplacian", kernels.Laplacian(bandwidth=1.5), normal),
    KernelCase("matern32", kernels.Matern32(bandwidth=1.2), normal),
    KernelCase("matern52", kernels.Matern52(bandwidth=1.2), normal),
    KernelCase("polynomial", kernels.Polynomial(degree=3, gamma=0.5, coef0=0.7), normal, d=5),
    KernelCase("polynomial-default", kernels.Polynomial(), normal, d=5),
    KernelCase("linear", kernels.Linear(), normal, d=40),
    KernelCase("cubic-spline", kernels.CubicSpline(), unit_cube),
    KernelCase("periodic-sobolev-1", kernels.PeriodicSobolev(order=1), unit_cube),
    KernelCase("periodic-sobolev-2", kernels.PeriodicSobolev(order=2), unit_cube),
    KernelCase("callable", kernels.as_kernel(lambda X, Z: np.exp(-np.abs(X[:, None] - Z[None]).sum(axis=2))), normal),
    KernelCase("scikit-learn", kernels.as_kernel(ConstantKernel(2.0) * RBF(0.9)), normal),
]


@dataclass(frozen=True)
class SketchCase:
    """A maker (m, n, seed) of a sketch with m rows, or with none yet where the data choose them."""

    id: str
    make: Callable[[int, int, int], sketches.Sketch]

    def __str__(self) -> str:
        return self.id


def _entry(cls: type[sketches.EntrySketch]) -> Callable[[int, int, int], sketches.Sketch]:
    return lambda m, n, seed: cls(size=m, seed=seed)  # type: ignore[call-arg]


def _row(cls: type[sketches.RowSketch]) -> Callable[[int, int, int], sketches.Sketch]:
    return lambda m, n, seed: cls(seed=seed)


ENTRY_CASES = [SketchCase(name, _entry(cls)) for name, cls in sketches.SKETCHES.items() if issubclass(cls, sketches.EntrySketch)]
ROW_CASES = [SketchCase(name, _row(cls)) for name, cls in sketches.SKETCHES.items() if issubclass(cls, sketches.RowSketch)]
ARRAY_CASE = SketchCase("array", lambda m, n, seed: sketches.ArraySketch(normal(m, n, seed)))
SKETCH_CASES = [*ENTRY_CASES, *ROW_CASES, ARRAY_CASE]


def matrix_of(sketch: sketches.Sketch, n: int) -> Array:
    """S itself: (m, n)."""
    if isinstance(sketch, sketches.RowSketch):
        return np.eye(n)[sketch.indices]
    assert isinstance(sketch, sketches.EntrySketch)
    return sketch.entries(range(sketch.size), range(n))


def state_of(kernel: kernels.Kernel, X: Array, Y: Array, sketch: sketches.Sketch, m: int) -> State:
    """The state with m sketch rows, in float64."""
    state = build(NumpyTiles(), kernel, X, Y, sketch)
    return state.grown(m) if isinstance(sketch, sketches.RowSketch) else state


def mixing(m: int, seed: int, condition: float = 1e3) -> Array:
    """A random Q (m, m) of the given condition number."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((m, m)))[0] for _ in range(2))
    return U * np.geomspace(1, condition, m) @ V


def nystrom(G: Array, S: Array, G_x: Array | None = None) -> Array:
    """Ĝ = G Sᵀ(S G Sᵀ)⁺S G, or its rows k̂(x, X) where G_x = k(x, X) (t, n) is given."""
    left = G if G_x is None else G_x
    return left @ S.T @ np.linalg.lstsq(S @ G @ S.T, S @ G, rcond=None)[0]
