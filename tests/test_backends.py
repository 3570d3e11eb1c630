"""The contract every backend keeps: its primitives equal dense float64 algebra, whatever tiles and threads do.

A further backend is one more row of BACKENDS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from helpers import DEVICE, KERNEL_CASES, KernelCase, OnHost, assert_close, normal
from scipy.linalg import solve_triangular

from sketchridge.backends import BACKENDS as NAMES
from sketchridge.backends import NumpyTiles, as_backend, numpy_tiles
from sketchridge.backends.torch_tiles import TorchTiles
from sketchridge.backends.triton_fused import TritonFused
from sketchridge.kernels import Gaussian, Laplacian, Linear, Matern32


@dataclass(frozen=True)
class BackendCase:
    """A maker of a backend, and the tile side near which its shapes are odd."""

    id: str
    make: Callable[[], Any]
    tile: int

    def __str__(self) -> str:
        return self.id


BACKENDS = [
    BackendCase("numpy", NumpyTiles, 512),
    BackendCase("numpy-float32", lambda: NumpyTiles("float32"), 512),
    BackendCase("numpy-tile-1", lambda: NumpyTiles(tile=1), 1),
    BackendCase("numpy-tile-7", lambda: NumpyTiles(tile=7, workers=2), 7),
    BackendCase("numpy-tile-7-float32", lambda: NumpyTiles("float32", tile=7), 7),
    BackendCase("numpy-one-worker", lambda: NumpyTiles(workers=1), 512),
    BackendCase("numpy-two-workers", lambda: NumpyTiles(workers=2), 512),
    BackendCase("numpy-little-memory", lambda: NumpyTiles(memory=4096), 9),
    BackendCase("torch", lambda: OnHost(TorchTiles("float64", device=DEVICE)), 512),
    BackendCase("torch-float32", lambda: OnHost(TorchTiles("float32", device=DEVICE)), 512),
    BackendCase("triton", lambda: OnHost(TritonFused("float32", device=DEVICE)), 64),
    BackendCase("triton-float64", lambda: OnHost(TritonFused("float64", device=DEVICE)), 64),
]
SHAPES = [(1, 1, 1, 1), (1, 9, 3, 3), (9, 1, 2, 3), (10, 6, 20, 1), (6, 13, 1, 100), (14, 15, 8, 2)]  # t, n, m, d

every_backend = pytest.mark.parametrize("backend_case", BACKENDS, ids=str)
every_kernel = pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
one_kernel_of_each_geometry = pytest.mark.parametrize(
    "case", [case for case in KERNEL_CASES if case.id in ("gaussian", "polynomial", "laplacian", "cubic-spline")], ids=str
)


def check_matmul(backend, kernel, X, Z, V):
    K = kernel(X.astype(float), Z.astype(float))
    out = backend.matmul(kernel, X, Z, V)
    V = V.astype(float)
    assert out.dtype == np.float64
    assert_close(out, K @ V, backend.dtype, scale=(np.abs(K) @ np.abs(V)).max(initial=0))


def check_residual_sqnorm(backend, kernel, X, Z, H, C):
    K = kernel(X.astype(float), Z.astype(float))
    out = backend.residual_sqnorm(kernel, X, Z, H, C)
    H, C = H.astype(float), C.astype(float)
    assert out.dtype == np.float64
    assert (out >= 0).all()
    size = (np.abs(K) + np.abs(C) @ np.abs(H).T) ** 2
    assert_close(out, ((K - C @ H.T) ** 2).sum(axis=1), backend.dtype, scale=size.sum(axis=1).max(initial=0))


def check_block(backend, kernel, X, Z):
    out = backend.block(kernel, X, Z)
    assert out.dtype == np.float64
    assert_close(out, kernel(X.astype(float), Z.astype(float)))


def check_schur(backend, kernel, X, Z, F, F_Z):
    b = len(Z)
    L = np.tril(normal(b, b, seed=9)) / max(b, 1) + 2 * np.eye(b)
    K = kernel(X.astype(float), Z.astype(float))
    out = backend.schur(kernel, X, Z, F, F_Z, L)
    assert out.dtype == np.float64
    product = F.astype(float) @ F_Z.astype(float).T
    scale = np.abs(K).max(initial=1) + np.abs(product).max(initial=0)
    assert_close(out, solve_triangular(L, (K - product).T, lower=True).T, scale=scale)


def check_leverages(backend, H, D):
    out = backend.leverages(H, D)
    assert out.dtype == np.float64
    assert_close(out, H.astype(float) ** 2 @ D)


def check_all(backend, kernel, X, Z, m):
    H, C = normal(len(Z), m, seed=5), normal(len(X), m, seed=6)
    check_matmul(backend, kernel, X, Z, H)
    check_residual_sqnorm(backend, kernel, X, Z, H, C)
    check_block(backend, kernel, X, Z)
    check_schur(backend, kernel, X, Z, C, H)
    check_leverages(backend, H, normal(m, 2, seed=7) ** 2)


@every_backend
@every_kernel
def test_primitives_equal_dense_algebra(backend_case: BackendCase, case: KernelCase):
    X, Z = case.points(17), case.points(23, seed=1)
    check_all(backend_case.make(), case.fitted(Z), X, Z, 4)


@every_backend
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@one_kernel_of_each_geometry
def test_odd_shapes(backend_case: BackendCase, case: KernelCase, shape):
    t, n, m, d = shape
    X, Z = case.make(t, d, 0) / np.sqrt(d), case.make(n, d, 1) / np.sqrt(d)
    check_all(backend_case.make(), case.fitted(Z), X, Z, m)


@every_backend
@pytest.mark.parametrize("kernel", [Gaussian(0.9), Laplacian(1.5), Linear()], ids=repr)
@pytest.mark.parametrize(("more_t", "more_n"), [(-1, 1), (0, 0), (1, -1), (1, 1)])
def test_sizes_around_a_tile(backend_case: BackendCase, kernel, more_t, more_n):
    X, Z = normal(max(backend_case.tile + more_t, 1), 2), normal(max(backend_case.tile + more_n, 1), 2, seed=1)
    check_matmul(backend_case.make(), kernel, X, Z, normal(len(Z), 3))
    check_residual_sqnorm(backend_case.make(), kernel, X, Z, normal(len(Z), 3), normal(len(X), 3, seed=1))
    check_block(backend_case.make(), kernel, X, Z)


@every_backend
@pytest.mark.parametrize("kernel", [Gaussian(0.9), Laplacian(1.5)], ids=repr)
def test_enough_work_for_threads(backend_case: BackendCase, kernel):
    """260 × 260 evaluations are more than a backend does in one thread."""
    X, Z = normal(260, 2), normal(260, 2, seed=1)
    check_all(backend_case.make(), kernel.fitted(Z), X, Z, 5)


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided rows": lambda M: np.repeat(M, 2, axis=0)[::2],
    "strided columns": lambda M: np.repeat(M, 3, axis=1)[:, ::3],
    "reversed": lambda M: M[::-1].copy()[::-1],
    "read-only": lambda M: (M.setflags(write=False), M)[1],
    "float32": lambda M: M.astype("float32"),
}


@every_backend
@one_kernel_of_each_geometry
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layout_does_not_matter(backend_case: BackendCase, case: KernelCase, layout):
    backend = backend_case.make()
    X, Z = layout(case.points(9)), layout(case.points(11, seed=1))
    H, C = layout(normal(11, 4, seed=5)), layout(normal(9, 4, seed=6))
    kernel = case.fitted(Z.astype(float))
    check_matmul(backend, kernel, X, Z, H)
    check_residual_sqnorm(backend, kernel, X, Z, H, C)
    check_block(backend, kernel, X, Z)
    check_schur(backend, kernel, X, Z, C.astype(float), H.astype(float))


@every_backend
@every_kernel
def test_empty_sets(backend_case: BackendCase, case: KernelCase):
    """No points, no landmarks, no columns: arrays of the right shape."""
    backend, X = backend_case.make(), case.points(6)
    kernel, none = case.fitted(X), X[:0]
    check_matmul(backend, kernel, X, X, np.empty((6, 0)))
    check_residual_sqnorm(backend, kernel, X, X, np.empty((6, 0)), np.empty((6, 0)))
    assert backend.matmul(kernel, none, X, np.ones((6, 2))).shape == (0, 2)
    assert backend.residual_sqnorm(kernel, none, X, np.ones((6, 2)), np.ones((0, 2))).shape == (0,)
    assert backend.block(kernel, none, X).shape == (0, 6)
    assert backend.block(kernel, X, none).shape == (6, 0)
    assert backend.schur(kernel, X, none, np.empty((6, 2)), np.empty((0, 2)), np.empty((0, 0))).shape == (6, 0)
    assert backend.schur(kernel, none, X, np.empty((0, 2)), np.ones((6, 2)), np.eye(6)).shape == (0, 6)
    assert backend.gram(np.empty((6, 0))).shape == (0, 0)


@every_backend
@pytest.mark.parametrize("kernel", [Gaussian(0.9), Matern32(1.2), Laplacian(1.5)], ids=repr)
def test_an_offset_of_the_data_costs_no_accuracy(backend_case: BackendCase, kernel):
    """Years and dates: the kernel is centred when it is fitted, and cdist subtracts before it squares."""
    X, Z = normal(20, 3) + 1e4, normal(30, 3, seed=1) + 1e4
    backend, H, C = backend_case.make(), normal(30, 4, seed=2), normal(20, 4, seed=3)
    K, centred = kernel(X, Z), kernel.fitted(Z)
    assert_close(backend.block(centred, X, Z), K)
    assert_close(backend.matmul(centred, X, Z, H), K @ H, backend.dtype, scale=(np.abs(K) @ np.abs(H)).max())
    assert_close(backend.residual_sqnorm(centred, X, Z, H, C), ((K - C @ H.T) ** 2).sum(axis=1), backend.dtype)


@every_backend
@every_kernel
def test_coinciding_points_have_the_kernel_of_the_diagonal(backend_case: BackendCase, case: KernelCase):
    """Squared distances by matrix product can round above 0 and would make a square root NaN."""
    X = np.repeat(case.points(5), 2, axis=0)
    kernel, backend = case.fitted(X), backend_case.make()
    K = kernel(X, X)
    assert_close(np.diagonal(backend.block(kernel, X, X)), kernel.diag(X))
    assert np.isfinite(backend.matmul(kernel, X, X, np.eye(10))).all()
    assert_close(backend.residual_sqnorm(kernel, X, X, np.eye(10), K), np.zeros(10), backend.dtype, scale=(K**2).sum())


@every_backend
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (30, 1), (513, 7), (1300, 3)], ids=str)
def test_gram_is_float64_whatever_the_layout(backend_case: BackendCase, shape):
    F = normal(*shape)
    for layout in (np.ascontiguousarray, np.asfortranarray, lambda M: np.repeat(M, 2, axis=0)[::2]):
        out = backend_case.make().gram(layout(F))
        assert out.dtype == np.float64
        assert_close(out, F.T @ F)


@every_backend
@pytest.mark.parametrize("shape", [(1, 1, 1), (30, 1, 4), (513, 7, 3), (1300, 3, 1), (6, 0, 2), (6, 2, 0), (0, 2, 3)], ids=str)
def test_product_is_float64_whatever_the_layout(backend_case: BackendCase, shape):
    n, r, q = shape
    F, V = normal(n, r), normal(r, q, seed=1)
    for layout in (np.ascontiguousarray, np.asfortranarray, lambda M: np.repeat(M, 2, axis=0)[::2]):
        out = backend_case.make().product(layout(F), layout(V))
        assert out.dtype == np.float64
        assert_close(out, F @ V)


@every_backend
def test_inputs_are_not_changed(backend_case: BackendCase):
    arrays = X, Z, H, C = normal(9, 3), normal(11, 3, seed=1), normal(11, 4, seed=2), normal(9, 4, seed=3)
    before = [a.copy() for a in arrays]
    for case in KERNEL_CASES[:6]:
        kernel = case.kernel if case.id != "polynomial" else case.fitted(X)
        backend = backend_case.make()
        backend.matmul(kernel, X, Z, H)
        backend.residual_sqnorm(kernel, X, Z, H, C)
        backend.schur(kernel, X, Z, C, H, np.eye(11))
    for now, then in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(now, then)


@every_backend
def test_series_of_calls_can_be_nested(backend_case: BackendCase):
    backend, X = backend_case.make(), normal(8, 2)
    with backend.alone(), backend.alone():
        check_all(backend, Gaussian(1.0), X, X, 2)


@pytest.mark.parametrize("name", [*NAMES, "auto"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_as_backend_knows_every_name(name, dtype):
    if name == "triton" and DEVICE == "cpu":
        with pytest.raises(RuntimeError, match=r"A GPU was asked for .* but PyTorch .* sees none: use backend='numpy'"):
            as_backend(name, dtype)
    else:
        assert as_backend(name, dtype).dtype == np.dtype(dtype)


def test_a_gpu_is_taken_for_many_rows_only():
    assert as_backend("auto", "float64", 1000).name == "numpy"
    assert as_backend("auto", "float64", 10**6).name == ("triton" if DEVICE == "cuda" else "numpy")


@pytest.mark.parametrize("kernel", [Gaussian(0.9), Laplacian(1.5), Linear()], ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("n", [84, 85, 90])
def test_a_product_with_the_points_themselves_makes_half_of_the_tiles(n, workers, dtype, kernel, monkeypatch):
    X, V = normal(n, 2), normal(n, 3, seed=1)
    backend, made = NumpyTiles(dtype, tile=7, workers=workers), []
    filler = numpy_tiles._tile_filler

    def counting(*arguments):
        fill = filler(*arguments)
        return lambda rows, cols, out: made.append((rows.start, cols.start)) or fill(rows, cols, out)

    monkeypatch.setattr(numpy_tiles, "_tile_filler", counting)
    out = backend.matmul(kernel, X, X, V)
    blocks = -(-n // 7)
    assert len(made) == len(set(made)) == blocks * (blocks + 1) // 2
    assert_close(out, kernel(X, X) @ V, dtype)
    np.testing.assert_array_equal(out, backend.matmul(kernel, X, X, V))  # whichever thread is first
    assert_close(out, backend.matmul(kernel, X, X.copy(), V), dtype)


def test_as_backend_keeps_objects():
    backend = NumpyTiles(tile=3)
    assert as_backend(backend, "float32") is backend


ERRORS = {
    "unknown backend": (("cuda", "float64"), "Unknown backend 'cuda': give 'auto', one of 'numpy'"),
    "not a name": ((3, "float64"), "Unknown backend 3"),
    "unknown dtype": (("numpy", "int8"), "Unknown dtype 'int8': give 'auto', 'float16', 'float16x2', 'float32' or 'float64'"),
    "half on the CPU": (("numpy", "float16"), "dtype='float16' needs a GPU and backend='triton', but the backend is 'numpy'"),
}


@pytest.mark.parametrize(("arguments", "text"), ERRORS.values(), ids=ERRORS)
def test_error_is_a_sentence(arguments, text):
    with pytest.raises(ValueError, match=text):
        as_backend(*arguments)
