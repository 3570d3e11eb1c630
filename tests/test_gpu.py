"""What only the device backends do: precisions by pieces, signs made on the device, memory, and the whole estimator on tensors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from helpers import DEVICE, OnHost, assert_close, normal, targets
from sklearn.base import clone

from sketchridge import ActiveLearner, SketchedKernelRidge
from sketchridge.backends import NumpyTiles, torch_tiles, triton_fused
from sketchridge.backends.base import Product
from sketchridge.backends.philox import signs
from sketchridge.backends.torch_tiles import TorchTiles
from sketchridge.backends.triton_fused import TritonFused
from sketchridge.kernels import Gaussian, Linear, Matern32, Matern52, Polynomial, as_kernel
from sketchridge.sketches import CELL, RademacherSketch

ERROR = {"float16": 2.0**-11, "float16x2": 2.0**-15, "float32": 2e-6, "float64": 1e-14}
KERNELS = [Gaussian(0.9), Matern32(1.2), Matern52(1.2), Polynomial(3, 0.5, 0.7)]
SHAPES = [(1, 1, 1, 1), (63, 65, 7, 3), (64, 64, 16, 1), (65, 63, 513, 2), (3, 129, 1, 100), (130, 1, 33, 5)]  # t, n, m, d


def relative(actual, desired):
    return np.linalg.norm(actual - desired) / np.linalg.norm(desired)


@pytest.fixture
def poisoned(monkeypatch):
    """Fresh device memory is full of NaN: an entry that no program writes shows."""
    empty = torch.empty

    def poison(*arguments, **options):
        out = empty(*arguments, **options)
        return out.fill_(torch.nan) if out.is_floating_point() else out

    monkeypatch.setattr(torch, "empty", poison)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("precision", ERROR)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_fused_products_of_odd_shapes(kernel, shape, precision):
    t, n, m, d = shape
    X, Z = normal(t, d) / np.sqrt(d), normal(n, d, seed=1) / np.sqrt(d)
    kernel, backend = kernel.fitted(Z), OnHost(TritonFused(precision, device=DEVICE))
    S = RademacherSketch(m, 3).entries(range(m), range(n)).T
    assert relative(backend.matmul(kernel, X, Z, S), kernel(X, Z) @ S) < 3 * ERROR[precision]
    H, C = normal(n, m, seed=2), normal(t, m, seed=3)
    wanted = ((kernel(X, Z) - C @ H.T) ** 2).sum(axis=1)
    assert relative(backend.residual_sqnorm(kernel, X, Z, H, C), wanted) < min(ERROR["float32"], ERROR[precision]) * 10
    assert relative(backend.block(kernel, X, Z), kernel(X, Z)) < ERROR["float64"]


@pytest.mark.parametrize("precision", ERROR)
@pytest.mark.parametrize(("d", "m"), [(31, 257), (100, 130), (300, 257)])
def test_many_features_fit_into_shared_memory(d, m, precision):
    X, H, C = normal(130, d) / np.sqrt(d), normal(130, m, seed=1), normal(65, m, seed=2)
    kernel, backend = Gaussian(0.9), OnHost(TritonFused(precision, device=DEVICE))
    S, k = np.sign(H), kernel(X[:65], X)
    assert relative(backend.matmul(kernel, X[:65], X, S), k @ S) < 3 * ERROR[precision]
    wanted = ((k - C @ H.T) ** 2).sum(axis=1)
    assert relative(backend.residual_sqnorm(kernel, X[:65], X, H, C), wanted) < min(ERROR["float32"], ERROR[precision]) * 10


@pytest.mark.parametrize("precision", ERROR)
def test_a_card_with_little_shared_memory_is_left_to_the_tiles(precision):
    X, V = normal(70, 2), normal(70, 3, seed=1)
    kernel, backend = Gaussian(0.9), OnHost(TritonFused(precision, device=DEVICE))
    backend._shared = 1000
    assert relative(backend.matmul(kernel, X, X, V), kernel(X, X) @ V) < min(ERROR["float32"], ERROR[precision])
    wanted = ((kernel(X, X) - V @ V.T) ** 2).sum(axis=1)
    assert relative(backend.residual_sqnorm(kernel, X, X, V, V), wanted) < min(ERROR["float32"], ERROR[precision]) * 10


@pytest.mark.parametrize("size", [1e-30, 1e-6, 1e6, 1e30])
def test_columns_of_any_size(size):
    """Float16 ends at 65504: columns are brought into its range by powers of two, each by its own."""
    X, V = normal(70, 3), normal(70, 4, seed=1) * np.array([1.0, size, 1e-3 * size, 0.0])
    kernel, backend = Gaussian(0.9), OnHost(TritonFused("float32", device=DEVICE))
    out, wanted = backend.matmul(kernel, X, X, V), kernel(X, X) @ V
    for j in range(3):
        assert relative(out[:, j], wanted[:, j]) < ERROR["float32"] * 10
    assert not out[:, 3].any()


def test_kernel_values_do_not_exceed_one_beside_an_outlier():
    X = np.concatenate([normal(40, 3), [[3e7, 0.0, 0.0]]])
    backend = OnHost(TritonFused("float64", device=DEVICE))
    for kernel in KERNELS[:3]:
        assert backend.block(kernel, X, X).max() <= 1
        assert backend.matmul(kernel, X, X, np.eye(41)).max() <= 1


def test_points_beyond_the_range_of_float16_are_left_to_the_tiles():
    X = np.concatenate([normal(20, 2), normal(20, 2, seed=1) + 1e3])
    kernel, backend = Gaussian(0.9), OnHost(TritonFused("float32", device=DEVICE))
    V = normal(40, 3, seed=2)
    assert backend._points(kernel, X, X, torch.float16) is None
    assert_close(backend.matmul(kernel, X[:20], X[:20], V[:20]), kernel(X[:20], X[:20]) @ V[:20], "float32")
    assert np.isfinite(backend.matmul(kernel, X, X, V)).all()


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_sums_over_several_chunks_and_blocks_of_rows(precision, monkeypatch):
    monkeypatch.setattr(triton_fused, "_CHUNK", 64)
    monkeypatch.setattr(triton_fused, "_POINTS", 128)
    X, V = normal(300, 2), normal(300, 3, seed=1)
    kernel, backend = Gaussian(0.9), OnHost(TritonFused(precision, device=DEVICE))
    assert relative(backend.matmul(kernel, X, X, V), kernel(X, X) @ V) < ERROR[precision] * 10
    wanted = ((kernel(X, X) - V @ V.T) ** 2).sum(axis=1)
    assert relative(backend.residual_sqnorm(kernel, X, X, V, V), wanted) < ERROR[precision] * 10
    assert relative(backend.block(kernel, X, X[:70]), kernel(X, X[:70])) < ERROR["float64"]


@pytest.mark.parametrize("m", [511, 512, 513])
def test_float64_sums_of_many_columns_are_left_to_the_tiles(m, monkeypatch):
    X, V = normal(30, 2), normal(30, m, seed=1)
    kernel, backend, seen = Gaussian(0.9), OnHost(TritonFused("float64", device=DEVICE)), []
    monkeypatch.setattr(TorchTiles, "_tiles", lambda *a, tiles=TorchTiles._tiles: seen.append(a) or tiles(*a))
    assert relative(backend.matmul(kernel, X, X, V), kernel(X, X) @ V) < ERROR["float64"]
    assert bool(seen) == (m > 512)


@pytest.mark.parametrize(
    ("rows", "columns"), [((0, 64), (0, 1024)), ((3, 200), (1000, 5000)), ((70, 71), (0, 1)), ((60, 130), (2047, 2049))]
)
@pytest.mark.parametrize("seed", [0, 5, 2**31 - 2])
def test_signs_are_those_of_the_sketch(seed, rows, columns):
    rows, columns = range(*rows), range(*columns)
    out = signs(seed, rows, columns, CELL, DEVICE).cpu().numpy()
    np.testing.assert_array_equal(out, RademacherSketch(300, seed).entries(rows, columns))


OPTIONS = [
    {},
    {"sketch": "rademacher", "sketch_size": 40, "alpha": 0.5},
    {"sketch": "landmarks", "sketch_size": 60, "fit_intercept": True, "alpha": 0.1},
    {"kernel": "laplacian", "sketch": "srht", "sketch_size": 50},
    {"kernel": "polynomial", "solver": "pcg", "alpha": 1.0},
    {"solver": "pcg", "fit_intercept": True, "alpha": "loo"},
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("lazy", [False, True], ids=["held", "in pieces"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_estimator_is_the_same_on_tensors(options, lazy, monkeypatch):
    """Fit, λ path, all variances, bounds and the exact mean, with factors held whole or made piece by piece."""
    if lazy:
        monkeypatch.setattr(torch_tiles, "_PIECE_BYTES", 2**12)
        monkeypatch.setattr(TorchTiles, "tall", lambda self, F, V: Product(F, V))
    X, X_new = normal(300, 3), normal(20, 3, seed=2)
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + targets(300, 2) / 3
    one, two = (
        SketchedKernelRidge(random_state=0, backend=backend, **options).fit(X[:250], Y[:250]).partial_fit(X[250:], Y[250:])
        for backend in (NumpyTiles(), TorchTiles(device=DEVICE))
    )
    assert isinstance(two._ridge.state.H, Product) == lazy
    assert one.sketch_size_ == two.sketch_size_
    for name in ("lambda_", "noise_variance_", "effective_dof_", "loo_error_", "gap_", "eigenvalues_"):
        assert_close(getattr(two, name), getattr(one, name), "pcg")
    assert_close(two.predict(X_new), one.predict(X_new), "pcg")
    for kind in ("v2", "v3", "gp", "bias2"):
        assert_close(two.variance(X_new, kind), one.variance(X_new, kind), "pcg")
    assert_close(two.variance(X_new, "v1", tol=1e-7), one.variance(X_new, "v1", tol=1e-7), "pcg")
    (refined, bound), (wanted, its_bound) = (model.variance(X_new, refine=1, return_bound=True) for model in (two, one))
    assert_close(refined, wanted, "pcg")
    assert_close(bound, its_bound, "per cent")
    for name in ("df", "gcv", "loo"):
        assert_close(getattr(two.path_, name), getattr(one.path_, name), "pcg")
    assert abs(two.certificate("norm").norm / one.certificate("norm").norm - 1) < 0.01


def test_the_same_points_are_asked_for_on_tensors():
    X, y = normal(300, 2), targets(300)[:, 0]
    found = []
    for backend in (NumpyTiles(), TorchTiles(device=DEVICE)):
        learner = ActiveLearner(SketchedKernelRidge(backend=backend, random_state=0), X, batch_size=40, random_state=1)
        for _ in range(3):
            ids = learner.ask()
            learner.tell(ids, y[ids])
        found.append(learner.ask())
    np.testing.assert_array_equal(*found)


def test_what_does_not_fit_is_refused_with_both_numbers(monkeypatch):
    monkeypatch.setattr(torch_tiles, "_PIECE_BYTES", 2**10)
    monkeypatch.setattr(TorchTiles, "_free", lambda self: 5000)
    with pytest.raises(MemoryError, match=r"needs 160,000 bytes of the GPU's memory, but 5,000 are free: give a smaller"):
        TorchTiles(device=DEVICE).zeros(200, 100)


@pytest.mark.parametrize("options", [{}, {"sketch": "rademacher", "sketch_size": 30}, {"solver": "pcg"}], ids=str)
def test_a_model_fitted_on_a_device_can_be_used_without_one(options):
    X, y = normal(200, 2), targets(200)[:, 0]
    model = SketchedKernelRidge(backend=TorchTiles(device=DEVICE), alpha=0.1, random_state=0, **options).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again._ridge.state.backend.name == again._ridge.backend.name == "numpy"
    for ours, theirs in zip(again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True):
        assert_close(ours, theirs, "pcg")
    again.partial_fit(X[:5], y[:5])


def test_a_dense_sketch_may_be_applied_in_less_precision_than_the_rest():
    """Training and new points then share its rounding, which the small eigenvalues of S G Sᵀ magnify."""
    X, X_new = normal(400, 3), normal(30, 3, seed=1)
    y = np.sin(X[:, 0]) + targets(400)[:, 0] / 3
    options = {"alpha": 4.0, "sketch": "rademacher", "sketch_size": 100, "random_state": 0}
    backend = TorchTiles(device=DEVICE)
    backend.sketching = TorchTiles("float32", device=DEVICE)
    one, two = (SketchedKernelRidge(backend=b, **options).fit(X, y) for b in (NumpyTiles(), backend))
    mean, std = one.predict(X_new, return_std=True)
    assert (np.abs(two.predict(X_new) - mean) < 0.02 * std).all()
    np.testing.assert_allclose(two.variance(X_new), one.variance(X_new), rtol=1e-3)
    assert_close(two.variance(X_new, "v1", tol=1e-6), one.variance(X_new, "v1", tol=1e-6), "pcg", condition=20)


def test_a_copy_stays_on_the_device():
    model = SketchedKernelRidge(backend=TorchTiles(device=DEVICE), alpha=0.1, random_state=0).fit(normal(50, 2), targets(50)[:, 0])
    assert copy.deepcopy(model).backend_ == "torch"


@pytest.mark.parametrize("solver", ["sketch", "pcg"])
def test_an_array_that_is_filled_anew_is_not_taken_for_the_old_one(solver):
    """Points on the device are known by identity, which must not be that of the caller's array."""
    X, X_new, y = np.empty((60, 2)), np.empty((9, 2)), targets(60)[:, 0]
    models = [
        SketchedKernelRidge(Linear(), solver=solver, backend=backend, alpha=0.1, random_state=0)
        for backend in (TorchTiles(device=DEVICE), NumpyTiles())
    ]
    for seed in range(4):
        X[:], X_new[:] = normal(60, 2, seed // 2), normal(9, 2, seed)
        ours, theirs = (model.fit(X, y).predict(X_new) for model in models)
        assert_close(ours, theirs, "pcg")


@pytest.mark.parametrize("make", [TorchTiles, TritonFused])
def test_a_callable_sees_its_points_in_full_precision(make):
    X = 1.7e9 + 1000 * np.random.default_rng(0).random((80, 1))
    kernel, V = as_kernel(lambda A, B: np.exp(-(((A - B.T) / 100) ** 2))), normal(80, 3)
    assert_close(OnHost(make("float32", device=DEVICE)).matmul(kernel, X, X, V), kernel(X, X) @ V, "float32")


@pytest.mark.parametrize(("make", "dtype"), [(TorchTiles, "float16"), (TritonFused, "bfloat16")])
def test_unknown_precisions_are_refused(make, dtype):
    with pytest.raises(ValueError, match=f"Unknown dtype '{dtype}' for {make.__name__}: give one of"):
        make(dtype, device=DEVICE)


def test_a_backend_can_be_cloned_and_pickled():
    model = SketchedKernelRidge(backend=TorchTiles("float32", device=DEVICE), alpha=0.1, random_state=0)
    again = pickle.loads(pickle.dumps(clone(model).backend))
    assert (again.precision, again.device) == ("float32", model.backend.device)
