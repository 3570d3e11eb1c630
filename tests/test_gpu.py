"""What only the device backends do: precisions by pieces, programs of a user's own, signs made on
the device, memory, and the whole estimator on tensors."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from helpers import DEVICE, assert_close, normal, targets
from sklearn.base import clone

import sketchridge
from sketchridge import ActiveLearner, SketchedKernelRidge
from sketchridge.backends import (
    NumpyTiles,
    Tall,
    torch_arrays,
    triton_fused,
    triton_kernels,
)
from sketchridge.backends.paths import object_at
from sketchridge.backends.philox import signs
from sketchridge.backends.torch_tiles import TorchTiles
from sketchridge.backends.triton_fused import TritonFused
from sketchridge.backends.triton_points import paired
from sketchridge.backends.triton_profiles import Folded
from sketchridge.kernels import (
    DotProduct,
    Gaussian,
    Linear,
    Matern32,
    Matern52,
    Polynomial,
    Radial,
    as_kernel,
)
from sketchridge.sketches import CELL, RademacherSketch

ERROR = {"float16": 2.0**-11, "float16x2": 2.0**-15, "float32": 2e-6, "float64": 1e-14}
KERNELS = [Gaussian(0.9), Matern32(1.2), Matern52(1.2), Polynomial(3, 0.5, 0.7), Linear()]
SHAPES = [  # t, n, m, d
    (1, 1, 1, 1),
    (63, 65, 7, 3),
    (64, 64, 16, 1),
    (65, 63, 513, 2),
    (3, 129, 1, 100),
    (130, 1, 33, 5),
]

every_precision = pytest.mark.parametrize("precision", ERROR)


def relative(actual, desired):
    return np.linalg.norm(actual - desired) / np.linalg.norm(desired)


class Fused:
    """Products of a kernel on Triton's backend, with dense arrays in and out."""

    def __init__(self, kernel, X, Z, precision):
        self.backend = TritonFused(device=DEVICE)
        self.precision = precision
        self.exact = min(ERROR["float32"], ERROR[precision])  # of products that are not for float16
        U, V = (kernel.coordinates(A) for A in (X, Z))
        self.K = kernel.block(U, V)
        self.P, self.Q = (self.backend.place(kernel, A) for A in (U, V))

    def matmul(self, T, weights=None):
        weights = None if weights is None else self.backend.tall(weights)
        T = self.backend.tall(T)
        out = self.backend.matmul(self.P, self.Q, T, weights=weights, precision=self.precision)
        return out.host()

    def residual(self, T, C, w):
        T, C, w = map(self.backend.tall, (T, C, w))
        return self.backend.residual_sqnorm(
            self.P, self.Q, T, C, weights=w, precision=self.precision
        )

    def check(self, m):
        """Products with signs, with anything, residuals, moments and the block itself."""
        K, (t, n) = self.K, self.K.shape
        S = RademacherSketch(m, 3).entries(range(m), range(n)).T
        T, C, w = normal(n, m, seed=2), normal(t, m, seed=3), 2 * np.abs(normal(n, 1, seed=4))
        assert relative(self.matmul(S), K @ S) < 3 * ERROR[self.precision]
        assert relative(self.matmul(T, w), K @ (w * T)) < 10 * self.exact
        wanted = ((K - C @ T.T) ** 2 @ w)[:, 0]
        assert relative(self.residual(T, C, w), wanted) < 10 * self.exact
        squares, _ = self.backend.moments(
            self.P,
            self.Q,
            self.backend.tall(T),
            weights=self.backend.tall(w),
            precision=self.precision,
        )
        assert relative(squares, (K**2 @ w)[:, 0]) < 10 * self.exact
        block = self.backend.block(self.P, self.Q).host()
        assert relative(block, K) < ERROR["float64"]


@pytest.fixture
def poisoned(monkeypatch):
    """Fresh device memory is full of NaN: an entry that no program writes shows."""
    empty = torch.empty

    def poison(*arguments, **options):
        out = empty(*arguments, **options)
        return out.fill_(torch.nan) if out.is_floating_point() else out

    monkeypatch.setattr(torch, "empty", poison)


# The fused programs


@pytest.mark.usefixtures("poisoned")
@every_precision
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_fused_products_of_odd_shapes(kernel, shape, precision):
    t, n, m, d = shape
    X, Z = normal(t, d) / np.sqrt(d), normal(n, d, seed=1) / np.sqrt(d)
    Fused(kernel.fitted(Z), X, Z, precision).check(m)


@every_precision
@pytest.mark.parametrize(("d", "m"), [(31, 257), (100, 130), (300, 257)])
def test_many_features_fit_into_shared_memory(d, m, precision):
    X = normal(130, d) / np.sqrt(d)
    Fused(Gaussian(0.9), X[:65], X, precision).check(m)


@every_precision
@pytest.mark.parametrize("d", [5, 301])
def test_what_is_not_for_the_programs_is_left_to_the_tiles(d, precision, monkeypatch):
    """A card with little shared memory, or points with very many features."""
    if d == 5:
        monkeypatch.setattr(TritonFused, "_shared", lambda self: 1000)
    problem = Fused(
        Gaussian(0.9), normal(70, d) / np.sqrt(d), normal(70, d) / np.sqrt(d), precision
    )
    V, w = normal(70, 3, seed=1), np.ones((70, 1))
    assert relative(problem.matmul(V), problem.K @ V) < 10 * problem.exact
    wanted = ((problem.K - V @ V.T) ** 2).sum(axis=1)
    assert relative(problem.residual(V, V, w), wanted) < 10 * problem.exact


@pytest.mark.parametrize("make", [TorchTiles, TritonFused])
@pytest.mark.parametrize("size", [1e-30, 1e-6, 1e6, 1e30, 1e60])
def test_columns_of_any_size(make, size):
    """Columns are brought into the range of float16 and float32 by powers of two, each its own."""
    X = normal(70, 3)
    V = normal(70, 4, seed=1) * np.array([1.0, size, 1e-3 * size, 0.0])
    backend = make(device=DEVICE)
    P = backend.place(Gaussian(0.9), X / 0.9)
    out = backend.matmul(P, P, backend.tall(V), precision="float32").host()
    wanted = Gaussian(0.9)(X, X) @ V
    for j in range(3):
        assert relative(out[:, j], wanted[:, j]) < ERROR["float32"] * 10
    assert not out[:, 3].any()


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=repr)
def test_kernel_values_do_not_exceed_one_beside_an_outlier(kernel):
    X = np.concatenate([normal(40, 3), [[3e7, 0.0, 0.0]]])
    problem = Fused(kernel, X, X, "float64")
    assert problem.backend.block(problem.P, problem.Q).host().max() <= 1
    assert problem.matmul(np.eye(41)).max() <= 1


def test_points_beyond_the_range_of_float16_are_left_to_the_tiles():
    X = np.concatenate([normal(20, 2), normal(20, 2, seed=1) + 1e3])
    near = Fused(Gaussian(0.9), X[:20], X[:20], "float32")
    far = Fused(Gaussian(0.9), X, X, "float32")
    assert paired(near.P, near.Q, torch.float16) is not None
    assert paired(near.P, far.Q, torch.float16) is None
    V = normal(40, 3, seed=2)
    assert_close(near.matmul(V[:20]), near.K @ V[:20], "float32")
    assert np.isfinite(far.matmul(V)).all()


@pytest.mark.parametrize("scale", [1e-40, 1e-20, 1e-3, 1e3, 1e20, 1e40])
@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_inner_products_of_any_size(scale, precision):
    """In a user's own scale: values are brought into the range of float16, or left to the tiles."""
    kernel = DotProduct(linear, fused=linear_fused, gamma=1.0)
    problem = Fused(kernel, normal(20, 3) * scale, normal(30, 3, seed=1), precision)
    S = np.sign(normal(30, 4, seed=2))
    if 1e-30 < scale < 1e30:  # beyond, kernel values leave the range of float32 itself
        assert relative(problem.matmul(S), problem.K @ S) < 3 * ERROR[precision]


def linear(s, xp):
    return s


@triton.jit
def linear_fused(s, P: tl.constexpr):
    return s


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_sums_over_several_chunks_and_blocks_of_rows(precision, monkeypatch):
    monkeypatch.setattr(triton_fused, "_CHUNK", 64)
    monkeypatch.setattr(triton_fused, "_POINTS", 128)
    Fused(Gaussian(0.9), normal(300, 2), normal(290, 2, seed=1), precision).check(3)


@pytest.mark.parametrize("m", [511, 512, 513])
def test_float64_sums_of_many_columns_are_left_to_the_tiles(m, monkeypatch):
    seen = []
    tiles = TorchTiles._tiles
    monkeypatch.setattr(TorchTiles, "_tiles", lambda *a: seen.append(a) or tiles(*a))
    problem = Fused(Gaussian(0.9), normal(30, 2), normal(30, 2, seed=1), "float64")
    V = normal(30, m, seed=1)
    assert relative(problem.matmul(V), problem.K @ V) < ERROR["float64"]
    assert bool(seen) == (m > 512)


def test_points_are_prepared_once():
    problem = Fused(Gaussian(0.9), normal(20, 2), normal(30, 2, seed=1), "float32")
    first = paired(problem.P, problem.Q, torch.float16)
    again = paired(problem.P, problem.Q, torch.float16)
    assert first.left is again.left
    assert first.right is again.right


# A user's own functions


def squared_exponential(s, xp):
    return xp.exp(-s)


@triton.jit
def squared_exponential_fused(s, P: tl.constexpr):
    return tl.exp(-s)


@triton.jit
def from_logarithm(x, P: tl.constexpr):
    return tl.exp(x)


@triton.jit
def folded_only(s, P: tl.constexpr):
    return s * 0.0


folded_only.folded = Folded(from_logarithm, -1.0, np.log)


@every_precision
@pytest.mark.parametrize("fused", [squared_exponential_fused, folded_only], ids=["plain", "folded"])
def test_a_function_may_be_folded_into_the_product(fused, precision):
    """``folded_only`` itself is wrong, so that it shows that its other form is used."""
    kernel = Radial(squared_exponential, fused=fused, bandwidth=1.3)
    Fused(kernel, normal(40, 3), normal(70, 3, seed=1), precision).check(5)


def not_decorated(s, P):
    return s


WRONG = {
    "not decorated": (not_decorated, r"fused function of .* must be decorated with @triton.jit"),
    "no module": ("no_such_module:name", "Nothing was found at 'no_such_module:name'"),
    "no name": ("math:no_such_name", "Nothing was found at 'math:no_such_name'"),
    "no path": ("math", "Nothing was found at 'math'"),
}


@pytest.mark.parametrize(("fused", "text"), WRONG.values(), ids=WRONG)
def test_a_wrong_function_is_refused(fused, text):
    kernel = Radial(squared_exponential, fused=fused, bandwidth=1.0)
    problem = Fused(kernel, normal(3, 2), normal(4, 2), "float64")
    with pytest.raises(ValueError, match=text):
        problem.matmul(normal(4, 1))


def test_an_object_is_found_where_it_is_defined():
    assert object_at("sketchridge.backends.torch_tiles:TorchTiles.block") is TorchTiles.block


@pytest.mark.parametrize("make", [TorchTiles, TritonFused])
def test_a_callable_sees_its_points_in_full_precision(make):
    X = 1.7e9 + 1000 * np.random.default_rng(0).random((80, 1))
    kernel = as_kernel(lambda A, B: np.exp(-(((A - B.T) / 100) ** 2)))
    V, backend = normal(80, 3), make(device=DEVICE)
    P = backend.place(kernel, X)
    out = backend.matmul(P, P, backend.tall(V), precision="float32").host()
    assert_close(out, kernel(X, X) @ V, "float32")


def test_an_array_that_a_callable_keeps_is_not_changed():
    K = np.exp(-np.abs(normal(20, 1) - normal(20, 1).T))
    kept = K.copy()
    kernel, backend = as_kernel(lambda A, B: K), TorchTiles(device=DEVICE)
    P, T = backend.place(kernel, normal(20, 1)), backend.tall(normal(20, 2))
    ones = backend.tall(np.ones((20, 1)))
    backend.moments(P, P, T, weights=ones, precision="float64")
    backend.residual_sqnorm(P, P, T, T, weights=ones, precision="float64")
    np.testing.assert_array_equal(K, kept)


# Signs made on the device


PARTS = [
    ((0, 64), (0, 1024)),
    ((3, 200), (1000, 5000)),
    ((70, 71), (0, 1)),
    ((60, 130), (2047, 2049)),
]


@pytest.mark.parametrize(("rows", "columns"), PARTS)
@pytest.mark.parametrize("seed", [0, 5, 2**31 - 2])
def test_signs_are_those_of_the_sketch(seed, rows, columns):
    rows, columns = range(*rows), range(*columns)
    out = signs(seed, rows, columns, CELL, DEVICE).cpu().numpy()
    np.testing.assert_array_equal(out, RademacherSketch(300, seed).entries(rows, columns))


class OnTheDevice:
    """A sketch of signs that the host is not asked for."""

    seed = 5
    sign_cell = CELL


@pytest.mark.parametrize("entries", [2**25, 2**10])
def test_a_sketch_of_signs_is_made_on_the_device(entries, monkeypatch):
    monkeypatch.setattr(torch_arrays, "_ENTRIES", entries)
    rows, columns = range(3, 80), range(1000, 5000)
    made = TorchTiles(device=DEVICE).generate(OnTheDevice(), rows, columns)
    np.testing.assert_array_equal(made.host(), RademacherSketch(80, 5).entries(rows, columns).T)


# Memory and the device


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(torch_arrays, "_UNASKED", 2**10)
    monkeypatch.setattr(TorchTiles, "_free", lambda self: 50_000.0)
    return TorchTiles(device=DEVICE)


REFUSED = {
    "a matrix": (lambda backend: backend.empty(200, 100), "A matrix of 200 × 100 numbers"),
    "an array": (lambda backend: backend.tall(np.ones((200, 100))), "An array of 20,000 numbers"),
    "points": (lambda b: b.place(Gaussian(1.0), np.ones((200, 100))), "A set of 200 points"),
    "a product": (
        lambda b: (b.tall(np.ones((100, 10))) @ np.ones((10, 200))).held(),
        "A matrix of 100 × 200 numbers",
    ),
}


@pytest.mark.parametrize(("take", "what"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused_with_both_numbers(take, what, little_memory):
    with pytest.raises(MemoryError, match=what) as raised:
        take(little_memory)
    assert "needs 160,000 bytes" in str(raised.value)
    assert "but 50,000 (0.0 GiB) are available: give a smaller sketch_size" in str(raised.value)


def test_a_product_that_fills_much_of_the_memory_is_not_worth_holding(little_memory):
    assert little_memory.worth_holding(100, 30)
    assert not little_memory.worth_holding(100, 40)


@pytest.mark.parametrize("make", [TorchTiles, TritonFused])
def test_products_in_pieces_are_the_same(make, monkeypatch):
    monkeypatch.setattr(torch_arrays, "_PIECE_BYTES", {True: 2**10, False: 2**10})
    backend = make(device=DEVICE)
    X, Z = normal(40, 2), normal(60, 2, seed=1)
    P, Q = backend.place(Gaussian(0.9), X / 0.9), backend.place(Gaussian(0.9), Z / 0.9)
    K, A, R = Gaussian(0.9)(X, Z), normal(60, 3), normal(3, 5)
    T = backend.tall(A[:, :2]).beside(backend.tall(A[:, 2:])) @ R
    out = backend.matmul(P, Q, T, precision="float64").host()
    assert_close(out, K @ A @ R)
    C, ones = backend.tall(normal(40, 5)), backend.tall(np.ones((60, 1)))
    squares = backend.residual_sqnorm(P, Q, T, C, weights=ones, precision="float64")
    assert_close(squares, ((K - normal(40, 5) @ (A @ R).T) ** 2).sum(axis=1))
    assert_close(T.gram(), (A @ R).T @ A @ R)
    assert_close(T.map(lambda block: 2 * block).host(), 2 * A @ R)


@pytest.mark.parametrize(
    ("make", "precision"), [(TorchTiles, "float16"), (TritonFused, "bfloat16")]
)
def test_unknown_precisions_are_refused(make, precision):
    backend = make(device=DEVICE)
    P, T = backend.place(Gaussian(1.0), normal(3, 2)), backend.tall(normal(3, 1))
    with pytest.raises(ValueError, match=f"Unknown precision '{precision}' for {make.__name__}"):
        backend.matmul(P, P, T, precision=precision)


@pytest.mark.parametrize("make", [TorchTiles, TritonFused])
@pytest.mark.parametrize("device", [None, "cuda", "cuda:3"])
def test_a_backend_is_made_and_unpickled_where_its_device_is_not(make, device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    backend = pickle.loads(pickle.dumps(make(device=device)))
    assert type(backend) is make
    assert repr(backend) == repr(make(device=device))
    if make is TorchTiles and device is None:
        assert backend.device.type == "cpu"
        return
    for place in (
        lambda: backend.tall(normal(2, 2)),
        lambda: backend.place(Gaussian(1.0), np.eye(2)),
    ):
        with pytest.raises(RuntimeError, match=r"A GPU was asked for .* use backend='numpy'"):
            place()


def test_a_device_that_was_chosen_is_kept():
    assert pickle.loads(pickle.dumps(TorchTiles(device="cpu"))).device.type == "cpu"


def test_triton_on_the_cpu_needs_its_interpreter(monkeypatch):
    monkeypatch.setattr(triton, "JITFunction", type(triton_kernels.matmul))
    with pytest.raises(RuntimeError, match="set TRITON_INTERPRET=1 before Triton is imported"):
        TritonFused(device="cpu").tall(normal(2, 2))


def test_a_matrix_without_eigenvalues_or_a_factor_is_numpys_error():
    backend = TorchTiles(device=DEVICE)
    with pytest.raises(np.linalg.LinAlgError):
        backend.definite(-np.eye(300))(np.ones(300))


def test_a_tall_matrix_stays_on_the_device():
    backend = TorchTiles(device=DEVICE)
    T = backend.tall(normal(5, 2))
    assert isinstance(T, Tall)
    assert all(panel.device.type == DEVICE for panel in (T @ np.eye(2)).held().panels)


# The estimator on a device


OPTIONS = [
    {},
    {"sketch": "rademacher", "sketch_size": 40, "alpha": 0.5},
    {"sketch": "landmarks", "sketch_size": 60, "fit_intercept": True, "alpha": 0.1},
    {"kernel": "laplacian", "sketch": "srht", "sketch_size": 50},
    {"kernel": "polynomial", "solver": "pcg", "alpha": 1.0},
    {"solver": "pcg", "fit_intercept": True, "alpha": "loo"},
]


def estimator(backend, **options):
    return SketchedKernelRidge(random_state=0, backend=backend, **({"dtype": "float64"} | options))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("pieces", [False, True], ids=["whole", "in pieces"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_estimator_is_the_same_on_tensors(options, pieces, monkeypatch):
    """Fit, λ path, all variances, bounds and the exact mean, in one piece or piece by piece."""
    if pieces:
        monkeypatch.setattr(torch_arrays, "_PIECE_BYTES", {True: 2**12, False: 2**12})
        monkeypatch.setattr(TorchTiles, "worth_holding", lambda self, n, q: False)
    X, X_new = normal(300, 3), normal(20, 3, seed=2)
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + targets(300, 2) / 3
    one, two = (
        estimator(backend, **options).fit(X[:250], Y[:250]).partial_fit(X[250:], Y[250:])
        for backend in (NumpyTiles(), TorchTiles(device=DEVICE))
    )
    if not one.fitted_.factor.complete:  # else rounding decides which rows are dependent
        assert one.sketch_size_ == two.sketch_size_
    for name in ("lambda_", "noise_variance_", "effective_dof_", "loo_error_", "gap_"):
        assert_close(getattr(two, name), getattr(one, name), "pcg")
    assert_close(two.predict(X_new), one.predict(X_new), "pcg")
    for kind in ("v2", "v3", "vbar", "gp", "bias2"):
        assert_close(two.variance(X_new, kind), one.variance(X_new, kind), "pcg")
    ours, theirs = (model.variance(X_new, "v1", tol=1e-7) for model in (two, one))
    assert_close(ours, theirs, "pcg")
    # of a complete sketch leverages tend to 1 as λ does to 0, and rounding in 1 − h with them
    some = slice(20 if one.fitted_.factor.complete else 0, None)
    for name in ("df", "gcv", "loo"):
        # and GCV, which counts directions at rounding as noise, differs by 5e-5 between seeds
        rough = 1e4 if name == "gcv" and one.fitted_.factor.complete else 1.0
        ours, theirs = (getattr(model.path_, name)[some] for model in (two, one))
        assert_close(ours, theirs, "pcg", condition=rough)


@pytest.mark.parametrize("options", OPTIONS[1:3], ids=str)
def test_the_estimator_on_fused_programs(options):
    X, X_new = normal(200, 3), normal(20, 3, seed=2)
    y = np.sin(X[:, 0]) + targets(200)[:, 0] / 3
    one, two = (
        estimator(backend, **options).fit(X, y)
        for backend in (NumpyTiles(), TritonFused(device=DEVICE))
    )
    for kind in ("v2", "v3", "vbar", "gp", "bias2"):
        assert_close(two.variance(X_new, kind), one.variance(X_new, kind), "pcg")
    assert_close(two.predict(X_new), one.predict(X_new), "pcg")


def test_a_dense_sketch_may_be_applied_in_less_precision_than_the_rest():
    """Training and new points then share its rounding."""
    X, X_new = normal(400, 3), normal(30, 3, seed=1)
    y = np.sin(X[:, 0]) + targets(400)[:, 0] / 3
    options = {"alpha": 4.0, "sketch": "rademacher", "sketch_size": 100, "dtype": "auto"}
    one, two = (
        estimator(backend, **options).fit(X, y)
        for backend in (NumpyTiles(), TritonFused(device=DEVICE))
    )
    mean, std = one.predict(X_new, return_std=True)
    assert (np.abs(two.predict(X_new) - mean) < 0.02 * std).all()
    np.testing.assert_allclose(two.variance(X_new), one.variance(X_new), rtol=1e-3)


@pytest.mark.parametrize("options", OPTIONS[1:], ids=str)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_model_fitted_on_a_device_can_be_used_without_one(options):
    X, y = normal(200, 3), targets(200)[:, 0]
    model = estimator(TorchTiles(device=DEVICE), **options).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    for ours, theirs in zip(
        again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True
    ):
        assert_close(ours, theirs, "pcg")
    again.partial_fit(X[:5], y[:5])


def test_a_backend_can_be_cloned():
    model = clone(estimator(TritonFused(device=DEVICE)))
    assert repr(model.backend) == f"TritonFused(device='{DEVICE}')"


@pytest.mark.parametrize("solver", ["sketch", "pcg"])
def test_an_array_that_is_filled_anew_is_not_taken_for_the_old_one(solver):
    """Points on the device are known by identity, which must not be that of the caller's array."""
    X, X_new, y = np.empty((60, 2)), np.empty((9, 2)), targets(60)[:, 0]
    models = [
        estimator(backend, kernel=Linear(), solver=solver, alpha=0.1)
        for backend in (TorchTiles(device=DEVICE), NumpyTiles())
    ]
    for seed in range(4):
        X[:], X_new[:] = normal(60, 2, seed // 2), normal(9, 2, seed)
        ours, theirs = (model.fit(X, y).predict(X_new) for model in models)
        assert_close(ours, theirs, "pcg")


def test_the_same_points_are_asked_for_on_tensors():
    X, y = normal(300, 2), targets(300)[:, 0]
    found = []
    for backend in (NumpyTiles(), TorchTiles(device=DEVICE)):
        learner = ActiveLearner(estimator(backend), X, batch_size=40, random_state=1)
        for _ in range(3):
            ids = learner.ask()
            learner.tell(ids, y[ids])
        found.append(learner.ask())
    np.testing.assert_array_equal(*found)


# Compilation


COMPILE = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from sketchridge.backends import triton_kernels, triton_profiles

def program(function, pointers, options, **constants):
    signature = {name: "i32" for name in function.arg_names}
    signature |= {name: "fp32" for name in ("scale", "gain") if name in signature}
    signature |= pointers | {name: "constexpr" for name in constants}
    signature = {name: signature[name] for name in function.arg_names}
    source = ASTSource(function, signature, constexprs=constants)
    triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)

HALF, WHOLE = ("*fp16", "*fp32"), ("*fp64", "*fp64")
MODES = [(HALF, 1, 128), (HALF, 2, 256), (HALF, 3, 128), (WHOLE, 1, 128)]
SHAPE = {"BM": 64, "BN": 32, "STEPS": 4}
for name in triton_profiles.__all__[1:]:
    function = getattr(triton_profiles, name)
    arguments = (3, 0.7) if name == "polynomial" else ()
    fixed = {"K": 32, "KB": 32, "ARGS": arguments, "DISTANCE": name not in ("linear", "polynomial")}
    forms = [{"FUSED": function, "FOLDED": False}]
    if hasattr(function, "folded"):
        forms.append({"FUSED": function.folded.function, "FOLDED": True})
    for form in forms:
        for (operand, sums), passes, width in MODES:
            pointers = dict.fromkeys(("U", "Z", "V", "V_low"), operand) | {"OUT": sums}
            its = {**fixed, **form, **SHAPE, "Q": width, "BQ": width, "PASSES": passes}
            program(triton_kernels.matmul, pointers, {"num_stages": 3}, **its)
        for (operand, sums), passes in ((HALF, 3), (WHOLE, 1)):
            pointers = dict.fromkeys(("U", "Z", "H", "H_low", "C", "C_low"), operand)
            pointers |= dict.fromkeys(("C_scale", "W", "OUT"), sums)
            for m in (0, 64):
                its = {**fixed, **form, **SHAPE, "M": m, "BL": 16, "PASSES": passes}
                program(triton_kernels.residual, pointers, {"num_stages": 3}, **its)
        pointers = dict.fromkeys(("U", "Z", "OUT"), "*fp64")
        program(triton_kernels.block, pointers, {}, **fixed, **form, BM=64, BN=32)
"""


@pytest.mark.slow
def test_programs_compile_for_a_gpu_without_one(tmp_path):
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path), "TRITON_INTERPRET": "0"}
    environment["PYTHONPATH"] = str(Path(sketchridge.__file__).parents[1])
    command = [sys.executable, "-c", COMPILE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
