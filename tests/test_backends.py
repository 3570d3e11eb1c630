"""The contract every backend keeps: it equals dense float64 algebra, whatever tiles do.

A further backend is one more row of BACKENDS, a further kernel one more row of KERNEL_CASES.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import helpers
import numpy as np
import pytest
import triton
import triton.language as tl
from helpers import DEVICE, KernelCase, normal, unit_cube
from local_cluster import shared_client
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_info

from sketchridge.backends import BACKENDS as NAMES
from sketchridge.backends import Backend, NumpyTiles, Tall, as_backend, numpy_tiles
from sketchridge.backends.dask_blocks import DaskBlocks
from sketchridge.backends.torch_tiles import TorchTiles
from sketchridge.backends.triton_fused import TritonFused
from sketchridge.kernels import (
    DotProduct,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern32,
    Polynomial,
    Precomputed,
    Radial,
)
from sketchridge.sketches import GaussianSketch, HadamardSketch, RademacherSketch

Array = np.ndarray


def assert_close(actual: Any, desired: Any, kind: str = "float64", **options: float) -> None:
    """Equal to the tolerance of a precision, and in float64 whatever that is."""
    assert np.asarray(actual).dtype == np.float64
    helpers.assert_close(actual, desired, kind, **options)


# A user's functions for Triton, of s and the parameters of a kernel


@triton.jit
def rational_quadratic_fused(s, P: tl.constexpr):
    return tl.exp2(-P[0] * tl.log2(1.0 + s / (2.0 * P[0])))


@triton.jit
def exponential_fused(s, P: tl.constexpr):
    return tl.exp(s)


def shifted(s: Any, xp: Any, shift: float) -> Any:
    s += shift
    return s


@triton.jit
def shifted_fused(s, P: tl.constexpr):
    return s + P[0]


def rational_quadratic(fused: Any) -> Radial:
    return Radial(helpers.rational_quadratic, fused=fused, bandwidth=1.1, parameters=(1.5,))


PATH = f"{__name__}:rational_quadratic_fused"
KERNEL_CASES = [
    *helpers.KERNEL_CASES,
    KernelCase("rq-fused", rational_quadratic(rational_quadratic_fused), normal),
    KernelCase("rq-fused-by-path", rational_quadratic(PATH), normal),
    KernelCase(
        "exponential-fused", DotProduct(helpers.exponential, fused=exponential_fused), normal
    ),
    KernelCase(
        "shifted-fused",
        DotProduct(shifted, fused=shifted_fused, gamma=1e-4, parameters=(1.0,)),
        normal,
    ),
    KernelCase("polynomial-1", Polynomial(degree=1, gamma=3.0), normal),
]


@dataclass(frozen=True)
class BackendCase:
    """A maker of a backend, a precision, and the tile side near which its shapes are odd."""

    id: str
    make: Callable[[], Backend]
    precision: str = "float64"
    tile: int = 512

    def __str__(self) -> str:
        return self.id


def torch_tiles() -> TorchTiles:
    return TorchTiles(device=DEVICE)


def triton_fused() -> TritonFused:
    return TritonFused(device=DEVICE)


def dask_blocks(rows: int) -> DaskBlocks:
    return DaskBlocks(shared_client(), rows=rows)


BACKENDS = [
    BackendCase("numpy", NumpyTiles),
    BackendCase("numpy-float32", NumpyTiles, "float32"),
    BackendCase("numpy-tile-1", lambda: NumpyTiles(tile=1), tile=1),
    BackendCase("numpy-tile-7", lambda: NumpyTiles(tile=7, workers=2), tile=7),
    BackendCase("numpy-tile-7-float32", lambda: NumpyTiles(tile=7), "float32", 7),
    BackendCase("numpy-one-worker", lambda: NumpyTiles(workers=1)),
    BackendCase("numpy-two-workers", lambda: NumpyTiles(workers=2)),
    BackendCase("numpy-little-memory", lambda: NumpyTiles(memory=4096), tile=9),
    BackendCase("torch", torch_tiles),
    BackendCase("torch-float32", torch_tiles, "float32"),
    BackendCase("triton-float64", triton_fused, tile=64),
    BackendCase("triton-float32", triton_fused, "float32", 64),
    BackendCase("triton-float16x2", triton_fused, "float16x2", 64),
    BackendCase("dask", lambda: dask_blocks(9), tile=9),
]
FEW_BLOCKS = BackendCase("dask-few-blocks", lambda: dask_blocks(400))
ONE_OF_EACH = ("numpy", "numpy-tile-7", "torch", "triton-float64")
SOME_KERNELS = ("gaussian", "polynomial", "laplacian", "rq-fused")
SHAPES = [  # t, n, m, d
    (1, 1, 1, 1),
    (1, 9, 3, 3),
    (9, 1, 2, 3),
    (10, 6, 20, 1),
    (6, 13, 1, 100),
    (14, 15, 8, 2),
]

every_backend = pytest.mark.parametrize("row", BACKENDS, ids=str)
each_backend = pytest.mark.parametrize(
    "row", [*(row for row in BACKENDS if row.id in ONE_OF_EACH), FEW_BLOCKS], ids=str
)
every_kernel = pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
one_kernel_of_each_geometry = pytest.mark.parametrize(
    "case", [case for case in KERNEL_CASES if case.id in SOME_KERNELS], ids=str
)


class Problem:
    """Points, tall matrices and weights on a backend, and the same as dense arrays."""

    def __init__(
        self, row: BackendCase, kernel: Kernel, X: Array, Z: Array, m: int = 4, layout=np.asarray
    ) -> None:
        self.backend = row.make()
        self.kind = "float64" if row.precision == "float64" else "float32"
        self.precision = row.precision
        U, V = (kernel.coordinates(A) for A in (X, Z))
        self.K = kernel.block(U, V) if len(X) and len(Z) else np.zeros((len(X), len(Z)))
        self.P, self.Q = (self.backend.place(kernel, layout(A)) for A in (U, V))
        self.T, self.C = normal(len(Z), m, seed=5), normal(len(X), m, seed=6)
        self.w = unit_cube(len(Z), 1, seed=7) * 2
        self.layout = layout

    def tall(self, A: Array) -> Tall:
        return self.backend.tall(self.layout(A))

    def matmul(self, T: Tall, weights: Tall | None = None) -> Array:
        out = self.backend.matmul(self.P, self.Q, T, weights=weights, precision=self.precision)
        return out.host()

    def residual(self, T: Tall, C: Tall, weights: Tall) -> Array:
        return self.backend.residual_sqnorm(
            self.P, self.Q, T, C, weights=weights, precision=self.precision
        )

    def check(self) -> None:
        """Every product of the contract."""
        self.check_products()
        self.check_residual()
        self.check_block()
        self.check_schur()

    def check_products(self) -> None:
        K, T, w = self.K, self.T, self.w
        size = (np.abs(K) @ np.abs(T)).max(initial=0)
        assert_close(self.matmul(self.tall(T)), K @ T, self.kind, scale=size)
        weighted = self.matmul(self.tall(T), self.tall(w))
        assert_close(weighted, K @ (w * T), self.kind, scale=2 * size)

    def check_residual(self) -> None:
        K, T, C = self.K, self.T, self.C
        for w in (self.w, np.ones_like(self.w)):
            out = self.residual(self.tall(T), self.tall(C), self.tall(w))
            size = ((np.abs(K) + np.abs(C) @ np.abs(T).T) ** 2) @ w
            assert (out >= 0).all()
            wanted = ((K - C @ T.T) ** 2 @ w)[:, 0]
            assert_close(out, wanted, self.kind, scale=size.max(initial=0))

    def check_moments(self) -> None:
        """They are the residual without a fit, and the product."""
        K, T = self.K, self.T
        scale = 2 * (np.abs(K) @ np.abs(T)).max(initial=0)
        for w in (self.w, np.ones_like(self.w)):
            squares, sums = self.backend.moments(
                self.P, self.Q, self.tall(T), weights=self.tall(w), precision=self.precision
            )
            assert_close(squares, (K**2 @ w)[:, 0], self.kind)
            assert_close(sums.host(), K @ (w * T), self.kind, scale=scale)

    def check_block(self) -> None:
        assert_close(self.backend.block(self.P, self.Q).host(), self.K)

    def check_schur(self) -> None:
        K, F, F_Q = self.K, self.C, self.T
        b = K.shape[1]
        L = np.tril(normal(b, b, seed=9)) / max(b, 1) + 2 * np.eye(b)
        out = self.backend.schur(self.P, self.Q, self.tall(F), F_Q, L)
        wanted = solve_triangular(L, (K - F @ F_Q.T).T, lower=True).T
        scale = np.abs(K).max(initial=1) + np.abs(F @ F_Q.T).max(initial=0)
        assert_close(out.host(), wanted, scale=scale)


# Products


@every_backend
@every_kernel
def test_products_equal_dense_algebra(row: BackendCase, case: KernelCase):
    X, Z = case.points(17), case.points(23, seed=1)
    problem = Problem(row, case.fitted(Z), X, Z)
    problem.check()
    problem.check_moments()


@every_backend
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@one_kernel_of_each_geometry
def test_odd_shapes(row: BackendCase, case: KernelCase, shape):
    t, n, m, d = shape
    X, Z = (case.make(size, d, seed) / np.sqrt(d) for seed, size in enumerate((t, n)))
    Problem(row, case.fitted(Z), X, Z, m).check()


@every_backend
@pytest.mark.parametrize("kernel", [Gaussian(0.9), Laplacian(1.5), Linear()], ids=repr)
@pytest.mark.parametrize(("more_t", "more_n"), [(-1, 1), (0, 0), (1, -1), (1, 1)])
def test_sizes_around_a_tile(row: BackendCase, kernel, more_t, more_n):
    X, Z = normal(max(row.tile + more_t, 1), 2), normal(max(row.tile + more_n, 1), 2, seed=1)
    problem = Problem(row, kernel, X, Z, 3)
    problem.check_products()
    problem.check_residual()
    problem.check_block()


LARGE_TILES = [row for row in BACKENDS if row.tile > 1 and row.id != "dask"]


@pytest.mark.parametrize("row", LARGE_TILES, ids=str)
@pytest.mark.parametrize("kernel", [Gaussian(0.9), Laplacian(1.5)], ids=repr)
def test_enough_work_for_threads(row: BackendCase, kernel):
    """260 × 260 evaluations are more than a backend does in one thread."""
    X, Z = normal(260, 2), normal(260, 2, seed=1)
    problem = Problem(row, kernel.fitted(Z), X, Z, 5)
    problem.check()
    problem.check_moments()


@every_backend
@one_kernel_of_each_geometry
def test_products_of_points_with_themselves(row: BackendCase, case: KernelCase):
    X = case.points(60)
    problem = Problem(row, case.fitted(X), X, X)
    problem.P = problem.Q
    problem.check()


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided rows": lambda M: np.repeat(M, 2, axis=0)[::2],
    "strided columns": lambda M: np.repeat(M, 3, axis=1)[:, ::3],
    "reversed": lambda M: M[::-1].copy()[::-1],
    "read-only": lambda M: (M.setflags(write=False), M)[1],
}


@every_backend
@one_kernel_of_each_geometry
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layout_does_not_matter(row: BackendCase, case: KernelCase, layout):
    X, Z = case.points(9), case.points(11, seed=1)
    Problem(row, case.fitted(Z), X, Z, layout=layout).check()


@every_backend
@every_kernel
def test_empty_sets(row: BackendCase, case: KernelCase):
    """No points, no landmarks, no columns: arrays of the right shape, and zeros."""
    X = case.points(6)
    kernel, none = case.fitted(X), X[:0]
    columns = Problem(row, kernel, X, X, 0)
    columns.check_products()
    columns.check_residual()
    columns.check_moments()
    rows = Problem(row, kernel, none, X, 2)
    assert rows.matmul(rows.tall(rows.T)).shape == (0, 2)
    assert rows.residual(rows.tall(rows.T), rows.tall(rows.C), rows.tall(rows.w)).shape == (0,)
    rows.check_block()
    rows.check_schur()
    landmarks = Problem(row, kernel, X, none, 2)
    landmarks.check_products()
    landmarks.check_residual()
    landmarks.check_block()
    landmarks.check_schur()


@every_backend
@pytest.mark.parametrize("kernel", [Gaussian(0.9), Matern32(1.2), Laplacian(1.5)], ids=repr)
def test_an_offset_of_the_data_costs_no_accuracy(row: BackendCase, kernel):
    """Years and dates: a fitted kernel is centered, and cdist subtracts before it squares."""
    X, Z = normal(20, 3) + 1e4, normal(30, 3, seed=1) + 1e4
    problem = Problem(row, kernel.fitted(Z), X, Z)
    problem.K = kernel(X, Z)
    problem.check_products()
    problem.check_residual()
    problem.check_block()


@every_backend
@pytest.mark.parametrize("size", [1e4, 1e8])
@pytest.mark.parametrize(
    "case", [c for c in KERNEL_CASES if c.kernel.geometry == "distance"], ids=str
)
def test_points_far_away_from_the_others_are_as_near_to_each_other(row, case: KernelCase, size):
    """The data are centered on their bulk: a cluster far from it must not lose its distances."""
    X = np.concatenate([case.points(12), np.round(case.points(9, seed=1), 3) + size])
    problem = Problem(row, case.fitted(case.points(12)), X, X)
    problem.check_products()
    problem.check_residual()
    problem.check_block()
    assert problem.backend.block(problem.P, problem.Q).host().max() <= 1


@every_backend
@every_kernel
def test_coinciding_points_have_the_kernel_of_the_diagonal(row: BackendCase, case: KernelCase):
    """Squared distances by matrix product can round below 0 and would make a square root NaN."""
    X = np.repeat(case.points(5), 2, axis=0)
    problem = Problem(row, case.fitted(X), X, X)
    K, tall = problem.K, problem.tall
    assert_close(np.diagonal(problem.backend.block(problem.P, problem.Q).host()), problem.P.diag())
    assert np.isfinite(problem.matmul(tall(np.eye(10)))).all()
    residual = problem.residual(tall(np.eye(10)), tall(K), tall(np.ones((10, 1))))
    assert_close(residual, np.zeros(10), problem.kind, scale=(K**2).sum())


@every_backend
@pytest.mark.parametrize("kernel", [Gaussian(0.9), Laplacian(1.5), Linear()], ids=repr)
@pytest.mark.parametrize("size", [1e-60, 1e-43, 1e-12, 1e12, 1e60])
def test_weights_of_any_size(row: BackendCase, kernel, size):
    """Also those that single precision does not hold."""
    X, Z = normal(12, 2), normal(70, 2, seed=1)
    problem = Problem(row, kernel, X, Z)
    K, T, C, w = problem.K, problem.T, problem.C, problem.w
    w[::7] = 0
    weights = problem.tall(size * w)
    left = problem.residual(problem.tall(T), problem.tall(C), weights)
    assert_close(left / size, ((K - C @ T.T) ** 2 @ w)[:, 0], problem.kind)
    squares, sums = problem.backend.moments(
        problem.P, problem.Q, problem.tall(T), weights=weights, precision=problem.precision
    )
    assert_close(squares / size, (K**2 @ w)[:, 0], problem.kind)
    scale = (abs(K) @ (w * abs(T))).max()
    for products in (sums.host(), problem.matmul(problem.tall(T), weights)):
        assert_close(products / size, K @ (w * T), problem.kind, scale=scale)


@every_backend
def test_what_is_given_is_copied_and_not_changed(row: BackendCase):
    for case in KERNEL_CASES[:10]:
        kernel = case.fitted(case.points(11))
        problem = Problem(row, kernel, case.points(9), case.points(11, seed=1))
        U = kernel.coordinates(case.points(9))
        arrays = T, C, F_Q, L = problem.T, problem.C, normal(11, 4), 2 * np.eye(11)
        before = [A.copy() for A in (U, *arrays)]
        P, tall = problem.backend.place(kernel, U), problem.backend.tall
        first = problem.backend.block(P, problem.Q).host().copy()
        problem.matmul(tall(T), tall(problem.w))
        problem.residual(tall(T), tall(C), tall(problem.w))
        problem.backend.schur(P, problem.Q, tall(C), F_Q, L)
        for now, then in zip((U, *arrays), before, strict=True):
            np.testing.assert_array_equal(now, then)
        kept = tall(T)
        U[:], T[:] = 0.5, 0
        np.testing.assert_array_equal(problem.backend.block(P, problem.Q).host(), first)
        np.testing.assert_array_equal(kept.host(), before[1])


@every_backend
def test_every_product_takes_the_precision_it_is_given(row: BackendCase):
    """A less precise product with the same points, before and after, changes nothing."""
    problem = Problem(row, Gaussian(0.9), normal(20, 3), normal(30, 3, seed=1))
    assert set(problem.backend.far) == set(problem.backend.precisions)
    for precision in (*problem.backend.precisions, *problem.backend.precisions[::-1]):
        problem.precision = precision
        problem.kind = "float64" if precision == "float64" else "float32"
        problem.check()


@every_backend
def test_series_of_calls_can_be_nested(row: BackendCase):
    problem = Problem(row, Gaussian(1.0), normal(8, 2), normal(8, 2), 2)
    with problem.backend.alone(), problem.backend.alone():
        problem.check()


IN_ONE_THREAD = ("triton",) if DEVICE == "cpu" else ()  # as is Triton's interpreter
THREADED = [row for row in LARGE_TILES if not row.id.startswith(IN_ONE_THREAD)]


@pytest.mark.parametrize("row", THREADED, ids=str)
def test_threads_leave_each_other_and_blas_alone(row: BackendCase):
    problem = Problem(row, Gaussian(0.9), normal(100, 2), normal(260, 2, seed=1))
    problem.check()
    before = threadpool_info()

    def work(_: int) -> None:
        with problem.backend.alone():
            problem.check_products()
            problem.check_residual()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(24)))
    assert threadpool_info() == before


# Points


@each_backend
@every_kernel
def test_points_can_be_taken_and_appended(row: BackendCase, case: KernelCase):
    X = case.points(12)
    kernel = case.fitted(X)
    U = kernel.coordinates(X)
    backend = row.make()
    P = backend.place(kernel, U)
    rows = np.array([11, 7, 0, 7])[::-1]
    some = P.take(rows).append(P.take(slice(2, 5)))
    assert len(some) == 7
    np.testing.assert_array_equal(P.host(), U)
    np.testing.assert_array_equal(some.host(), np.concatenate([U[rows], U[2:5]]))
    assert_close(backend.block(some, P).host(), kernel.block(some.host(), U))
    assert_close(some.diag(), kernel.diagonal(some.host()))
    squares = (U**2).sum(axis=1) if kernel.geometry == "distance" else np.zeros(12)
    assert_close(P.squares(), squares)
    w = np.arange(12.0)
    diag = kernel.diagonal(U)
    extent = [diag.max(), w @ diag, squares.max(), w @ squares**2]
    assert_close(np.array(P.extent(backend.tall(w[:, None]))), np.array(extent))
    assert_close(P.diagonal().host(), diag[:, None])


@each_backend
def test_points_of_a_precomputed_kernel(row: BackendCase):
    K = Gaussian(0.9)(normal(30, 2), normal(30, 2))
    kernel, backend = Precomputed(), row.make()
    Q = backend.place(kernel, kernel.training_coordinates(K))
    P = backend.place(kernel, kernel.coordinates(K[:7]))
    T = normal(30, 3)
    out = backend.matmul(P, Q, backend.tall(T), precision="float64").host()
    assert_close(out, K[:7] @ T)
    assert_close(backend.block(P, Q.take(np.array([3, 20]))).host(), K[:7][:, [3, 20]])


@each_backend
def test_points_too_far_away_are_refused(row: BackendCase):
    with pytest.raises(ValueError, match=r"X has rows 1e\+200 away, in units of the bandwidth"):
        row.make().place(Gaussian(1.0), np.array([[1e200]]))


# Tall matrices


def held(backend: Backend, A: Array) -> Tall:
    return backend.tall(A)


def in_panels(backend: Backend, A: Array) -> Tall:
    return backend.tall(A[:, :1]).beside(backend.tall(A[:, 1:1]), backend.tall(A[:, 1:]))


def wide_product(backend: Backend, A: Array) -> Tall:
    """Few columns times a matrix with more."""
    left, right = A[:, :2], A[:2]
    return in_panels(backend, left) @ right


def narrow_product(backend: Backend, A: Array) -> Tall:
    """Many columns times a matrix with fewer."""
    return in_panels(backend, np.column_stack([A, A])) @ np.concatenate([np.eye(5), np.eye(5)])


TALLS = {"held": held, "panels": in_panels, "wide": wide_product, "narrow": narrow_product}
every_tall = pytest.mark.parametrize("make", TALLS.values(), ids=TALLS)


@every_backend
@every_tall
@pytest.mark.parametrize(
    "case", [case for case in KERNEL_CASES if case.id in ("gaussian", "laplacian")], ids=str
)
def test_products_with_parts_side_by_side_and_products_not_formed(row, case: KernelCase, make):
    X, Z = case.points(9), case.points(70, seed=1)
    problem = Problem(row, case.fitted(Z), X, Z, 5)
    T, C = (make(problem.backend, A) for A in (problem.T, problem.C))
    problem.T, problem.C = T.host().copy(), C.host().copy()
    known = {id(problem.T): T, id(problem.C): C}
    problem.tall = lambda A: known.get(id(A)) or held(problem.backend, A)
    problem.check_products()
    problem.check_residual()
    problem.check_moments()
    F_Q = normal(70, 5)
    out = problem.backend.schur(problem.P, problem.Q, C, F_Q, np.eye(70)).host()
    assert_close(out, problem.K - problem.C @ F_Q.T)


@each_backend
@every_tall
@pytest.mark.parametrize("n", [1, 5, 1300])
def test_a_tall_matrix_is_the_matrix(row: BackendCase, make, n):
    backend = row.make()
    T = make(backend, normal(max(n, 5), 5)).rows(0, n)
    A = T.host().copy()
    some = np.array([n - 1, 0, n // 2])
    B, w, small = normal(n, 2, seed=2), unit_cube(n, 1, seed=3), normal(5, 3, seed=4)
    other, weights = backend.tall(B), backend.tall(w)
    assert (len(T), T.shape) == (n, (n, 5))
    assert_close(backend.host(T.whole()), A)
    assert_close(T.held().host(), A)
    assert_close(T.take(some), A[some])
    assert_close(T.take(some[::-1]), A[some[::-1]])
    assert_close(T.take(slice(0, 3)), A[:3])
    assert_close(T.columns(1, 4).host(), A[:, 1:4])
    assert_close(T.columns(3).host(), A[:, 3:])
    assert_close(T.columns(2, 2).host(), A[:, 2:2])
    assert_close(T.rows(n // 2).host(), A[n // 2 :])
    assert_close(T.beside(other).host(), np.column_stack([A, B]))
    assert_close(other.beside(T, other).host(), np.column_stack([B, A, B]))
    assert_close(T.append(T.rows(0, 1)).host(), np.concatenate([A, A[:1]]))
    assert_close((T @ small).host(), A @ small)
    assert_close((T @ small @ small.T).host(), A @ small @ small.T)
    assert_close(T.scaled(weights).host(), w * A)
    left = T.map(lambda block: 2 * block, zeros=some[:1]).host()
    assert_close(left, np.where(np.arange(n)[:, None] == some[0], 0, 2 * A))
    assert_close(T.gram(), A.T @ A)
    assert_close(T.gram(None, weights), A.T @ (w * A))
    assert_close(T.gram(other), A.T @ B)
    assert_close(T.gram(other, weights), A.T @ (w * B))
    assert_close(other.gram(T), B.T @ A)
    np.testing.assert_array_equal(T.host(), A)


@each_backend
@every_tall
def test_functions_of_rows(row: BackendCase, make):
    backend = row.make()
    T = make(backend, normal(1300, 5))
    A, B, D = T.host().copy(), normal(1300, 2, seed=2), normal(5, 3, seed=4)
    other = backend.tall(B)
    squared = T.map(lambda block, D: block**2 @ D, small=[D])
    assert_close(squared.host(), A**2 @ D)
    both = T.map(lambda a, b: (a * b[:, :1]).sum(axis=1)[:, None], other)
    assert_close(both.host(), (A * B[:, :1]).sum(axis=1)[:, None])
    assert_close(T.sum(lambda a, b, D: (a @ D).T @ b, other, small=[D]), (A @ D).T @ B)
    assert_close(T.sum(lambda a: (a * a).sum(axis=0)), (A**2).sum(axis=0))


@each_backend
def test_a_tall_matrix_without_rows_or_columns(row: BackendCase):
    backend = row.make()
    for shape in ((0, 3), (3, 0), (0, 0)):
        T = backend.tall(np.empty(shape))
        assert T.shape == T.host().shape == shape
        assert_close(T.gram(), np.zeros((shape[1], shape[1])))
        assert T.map(lambda block: 2 * block).shape == shape
        assert T.beside(T).shape[0] == shape[0]
        assert (T @ np.empty((shape[1], 2))).held().shape == (shape[0], 2)


@each_backend
def test_gram_of_many_columns_is_symmetric(row: BackendCase):
    A = normal(90, 70)
    gram = row.make().tall(A).gram()
    assert_close(gram, A.T @ A)
    np.testing.assert_array_equal(gram, gram.T)


@each_backend
def test_rows_are_drawn_in_proportion(row: BackendCase):
    """The same as by the sums of all rows before; a row of weight 0 is never drawn."""
    backend = row.make()
    p = np.random.default_rng(0).integers(0, 4, 500).astype(float)
    p[[0, -1]] = 0
    u = np.append(np.random.default_rng(1).random(1000), [0, 1 - 2.0**-53, p[:40].sum() / p.sum()])
    rows = backend.tall(p[:, None]).draw(u)
    assert (p[rows] > 0).all()
    assert rows.dtype.kind == "i"
    wanted = np.searchsorted(np.cumsum(p), u * p.sum(), side="right")
    np.testing.assert_array_equal(rows, np.minimum(wanted, np.flatnonzero(p)[-1]))


@each_backend
@pytest.mark.parametrize("sketch", [GaussianSketch, RademacherSketch, HadamardSketch])
def test_columns_of_a_sketch(row: BackendCase, sketch):
    S = sketch(size=80, seed=3)
    rows, columns = range(3, 70), range(1000, 2100)
    made = row.make().generate(S, rows, columns)
    np.testing.assert_array_equal(made.host(), S.entries(rows, columns).T)
    assert row.make().generate(S, range(0), columns).shape == (1100, 0)
    assert row.make().generate(S, rows, range(0)).shape == (0, 67)


@each_backend
@pytest.mark.parametrize("m", [0, 1, 7, 300])
def test_small_algebra(row: BackendCase, m):
    backend = row.make()
    R = normal(m, m)
    A = R @ R.T / max(m, 1) + np.eye(m)
    L = np.linalg.cholesky(A)
    B = normal(m, 3, seed=1)
    values, vectors = backend.eigh(A, 0.0) if m else (np.empty(0), np.empty((0, 0)))
    assert_close(vectors * values @ vectors.T, A)
    assert (np.diff(values) <= 0).all()
    if m > 1:
        cut = values[m // 2] / values[0]
        np.testing.assert_array_equal(backend.eigh(A, cut)[0], values[: m // 2])
    assert_close(backend.solve_triangular(L, B), np.linalg.solve(L, B))
    assert_close(backend.definite(A)(B), np.linalg.solve(A, B))
    assert_close(backend.definite(A)(B[:, 0]), np.linalg.solve(A, B[:, 0]))
    if m:
        with pytest.raises(np.linalg.LinAlgError):
            backend.definite(-A)(B)


@each_backend
@pytest.mark.parametrize("m", [3, 300])
def test_a_constant_is_copied_once_and_cannot_be_changed(row: BackendCase, m):
    backend = row.make()
    A = normal(m, m)
    mine = backend.frozen(A.copy())
    its = backend.tall(mine)
    T = backend.tall(normal(10, m))
    np.testing.assert_array_equal(mine, A)
    np.testing.assert_array_equal(its.host(), A)
    assert_close((T @ mine).host(), T.host() @ A)
    assert_close((T @ mine).host(), T.host() @ A)
    with pytest.raises(ValueError, match="read-only"):
        mine[0, 0] = 1.0
    del mine  # and then another one may be at its place
    assert_close((T @ backend.frozen(2 * A)).host(), T.host() @ (2 * A))


@each_backend
@pytest.mark.parametrize(("m", "r", "t"), [(9, 9, 40), (9, 3, 5), (9, 3, 400), (9, 8, 2)])
def test_products_that_are_not_formed(row: BackendCase, m, r, t):
    """Whatever is multiplied first."""
    backend = row.make()
    kernel = Gaussian(1.0).fitted(normal(9, 3))
    P, Q = (backend.place(kernel, normal(k, 3, seed=k)) for k in (t, 700))
    F, R, w = normal(700, m, seed=2), normal(m, r, seed=3), np.linspace(0.5, 2.0, 700)
    T = backend.tall(F) @ R
    K = backend.block(P, Q).host()
    C = normal(t, r, seed=4)
    weights = backend.tall(w[:, None])
    found = backend.matmul(P, Q, T, weights=weights, precision="float64")
    assert_close(found.host(), K * w @ (F @ R))
    squares, sums = backend.moments(P, Q, T, weights=weights, precision="float64")
    assert_close(squares, K**2 @ w)
    assert_close(sums.host(), K * w @ (F @ R))
    left = backend.residual_sqnorm(P, Q, T, backend.tall(C), weights=weights, precision="float64")
    assert_close(left, (K - C @ (F @ R).T) ** 2 @ w)


@each_backend
def test_a_small_product_is_worth_forming(row: BackendCase):
    assert row.make().worth_holding(100, 10)


@each_backend
def test_what_is_on_a_device_is_not_pickled_by_accident(row: BackendCase):
    backend = row.make()
    with pytest.raises(TypeError, match="Points are where a backend computes"):
        pickle.dumps(backend.place(Gaussian(1.0), normal(3, 2)))
    with pytest.raises(TypeError, match="A Tall matrix is where a backend computes"):
        pickle.dumps(backend.tall(normal(3, 2)))


# NumPy's tiles


@pytest.mark.parametrize("kernel", [Gaussian(0.9), Laplacian(1.5), Linear()], ids=repr)
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("n", [84, 85, 90])
def test_a_product_with_the_points_themselves_makes_half_of_the_tiles(
    n, workers, precision, kernel, monkeypatch
):
    X, V = normal(n, 2), normal(n, 3, seed=1)
    backend, made = NumpyTiles(tile=7, workers=workers), []
    filler = numpy_tiles._filler

    def counting(*arguments):
        fill = filler(*arguments)

        def counted(rows, cols, out):
            made.append((rows.start, cols.start))
            return fill(rows, cols, out)

        return counted

    P, its_copy = (backend.place(kernel, kernel.coordinates(X)) for _ in range(2))
    T = backend.tall(V)
    monkeypatch.setattr(numpy_tiles, "_filler", counting)
    out = backend.matmul(P, P, T, precision=precision).host()
    blocks = -(-n // 7)
    if workers < 3 or n > 84:  # tiles enough to share
        assert len(made) == len(set(made)) == blocks * (blocks + 1) // 2
    assert_close(out, kernel(X, X) @ V, precision)
    again = backend.matmul(P, P, T, precision=precision).host()
    np.testing.assert_array_equal(out, again)  # whichever thread is first
    assert_close(out, backend.matmul(P, its_copy, T, precision=precision).host(), precision)


# Names


@pytest.mark.parametrize("name", [*NAMES, "auto"])
def test_as_backend_knows_every_name(name):
    """A backend is only a name before something is sent to its device."""
    backend = as_backend(name)
    assert backend.name == ("numpy" if name == "auto" else name)
    if name == "triton" and DEVICE == "cpu":
        with pytest.raises(
            RuntimeError, match=r"A GPU was asked for .* sees none: use backend='num"
        ):
            backend.tall(normal(2, 2))
    else:
        assert_close(backend.tall(normal(2, 2)).host(), normal(2, 2))


def test_a_gpu_is_taken_for_many_rows_only():
    assert as_backend("auto", 1000).name == "numpy"
    assert as_backend("auto", 10**6).name == ("triton" if DEVICE == "cuda" else "numpy")


def test_as_backend_keeps_objects():
    backend = NumpyTiles(tile=3)
    assert as_backend(backend) is backend


ERRORS = {
    "unknown backend": ("cuda", "Unknown backend 'cuda': give 'auto', one of 'numpy'"),
    "not a name": (3, "Unknown backend 3"),
}


@pytest.mark.parametrize(("spec", "text"), ERRORS.values(), ids=ERRORS)
def test_error_is_a_sentence(spec, text):
    with pytest.raises(ValueError, match=text):
        as_backend(spec)


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "two"])
def test_a_number_of_workers_that_is_none_is_a_sentence(workers):
    with pytest.raises(ValueError, match="workers must be a whole number from 1 up"):
        NumpyTiles(workers=workers)
