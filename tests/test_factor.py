"""The factor F: Ĝ = F Fᵀ, features, weights, growth by points and by sketch rows, and what happens
where the rank runs out."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import (
    ARRAY_CASE,
    ENTRY_CASES,
    KERNEL_CASES,
    ROW_CASES,
    SKETCH_CASES,
    KernelCase,
    SketchCase,
    assert_close,
    at,
    factor_for,
    matrix_of,
    normal,
    nystrom,
    sample_for,
    tol,
    uneven,
    values,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchridge.backends import NumpyTiles, as_backend
from sketchridge.factor import RowFactor, factorize, sample_of, spectrum
from sketchridge.kernels import Gaussian, Laplacian, Linear, Polynomial
from sketchridge.precision import EPS
from sketchridge.sketches import (
    ArraySketch,
    GaussianSketch,
    RademacherSketch,
    RPCholeskySketch,
    Sketch,
)

N, M, T = 25, 8, 6

every_kernel = pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
every_sketch = pytest.mark.parametrize("sketch_case", SKETCH_CASES, ids=str)
every_row_sketch = pytest.mark.parametrize("sketch_case", ROW_CASES, ids=str)
with_and_without_weights = pytest.mark.parametrize(
    "weighted", [False, True], ids=["even", "weighted"]
)


def weights(weighted: bool, n: int = N) -> np.ndarray:
    return uneven(n) if weighted else np.ones(n)


def factor_of(kernel, X, sketch: Sketch, m: int, w=None):
    return factor_for(sample_for(kernel, X, w), sketch, m)


def approximation(factor) -> np.ndarray:
    F = factor.F.host()
    return F @ F.T


def features(factor, X) -> np.ndarray:
    query = at(factor, X)
    return query.features(factor, np.eye(factor.F.shape[1])).host()


def laplacian(X):
    return Laplacian(1.5).fitted(X)


# A sample


@every_kernel
@with_and_without_weights
def test_a_sample_knows_its_scales(case: KernelCase, weighted):
    X = case.points(N)
    kernel, w = case.fitted(X), weights(weighted)
    sample = sample_for(kernel, X, w)
    G, scales = values(kernel, X, X), sample.scales
    assert_close(sample.total, w.sum())
    assert_close(scales.trace, w @ np.diagonal(G) / w.sum())
    assert_close(scales.diag, np.diagonal(G).max())
    assert (scales.rows, scales.growth) == (N, kernel.growth)
    if kernel.geometry == "distance":
        squares = (kernel.coordinates(X) ** 2).sum(axis=1)
        assert_close(scales.largest, squares.max())
        assert_close(scales.typical, np.sqrt(w @ squares**2 / w.sum()))
    else:
        assert scales.largest == scales.typical == 0


# Ĝ


@with_and_without_weights
@every_sketch
@every_kernel
def test_factor_is_that_of_the_nystrom_matrix(case: KernelCase, sketch_case, weighted):
    """Weights do not enter Ĝ, only the choice of landmarks and the Gram matrix."""
    X = case.points(N)
    kernel, w = case.fitted(X), weights(weighted)
    factor = factor_of(kernel, X, sketch_case.make(M, N, 3), M, w)
    G_hat = nystrom(values(kernel, X, X), matrix_of(factor.sketch, N))
    assert_close(approximation(factor), G_hat)
    assert_close(factor.gram, factor.F.host().T @ (w[:, None] * factor.F.host()) / w.sum())
    assert_close(factor.explained.sum(), w @ np.diagonal(G_hat) / w.sum())


@every_sketch
@every_kernel
def test_features_at_the_training_points_are_the_rows_of_the_factor(case: KernelCase, sketch_case):
    X = case.points(N)
    factor = factor_of(case.fitted(X), X, sketch_case.make(M, N, 3), M)
    assert_close(features(factor, X), factor.F.host())


@every_sketch
@every_kernel
def test_features_give_the_sketched_kernel_at_new_points(case: KernelCase, sketch_case):
    X, X_new = case.points(N), case.points(T, seed=7)
    kernel = case.fitted(X)
    factor = factor_of(kernel, X, sketch_case.make(M, N, 3), M)
    S = matrix_of(factor.sketch, N)
    expected = nystrom(values(kernel, X, X), S, values(kernel, X_new, X))
    assert_close(features(factor, X_new) @ factor.F.host().T, expected)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("sketch_case", ENTRY_CASES, ids=str)
def test_features_of_far_points_are_not_what_single_precision_makes_of_them(sketch_case, backend):
    """From 1e-12 of the usual on they are full products, down to the end of float64."""
    if backend == "torch":
        pytest.importorskip("torch")
    X = np.linspace(0, 1, N)[:, None]
    X_new = np.array([[0.5], [1.5], [1.7], [2.2], [3.9], [4.6], [9.0]])
    kernel = Gaussian(0.1).fitted(X)
    points = as_backend(backend).place(kernel, kernel.coordinates(X))
    start = factorize(sample_of(points, np.ones(N)), sketch_case.make(M, N, 1), "float32")
    factor = start.grown(M) if start.sketch.size < M else start
    expected = values(kernel, X_new, X) @ factor.St.host() @ factor.R
    placed = points.backend.place(kernel, kernel.coordinates(X_new))
    found = factor.features(placed, np.eye(factor.F.shape[1])).host()
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, "float32", condition=20)  # of sums that cancel


@every_sketch
@pytest.mark.parametrize("q", [0, 1, M + 3])
def test_features_times_a_matrix(sketch_case: SketchCase, q):
    X, X_new = normal(N, 3), normal(T, 3, seed=7)
    factor = factor_of(laplacian(X), X, sketch_case.make(M, N, 3), M)
    A = normal(factor.F.shape[1], q)
    assert_close(at(factor, X_new).features(factor, A).host(), features(factor, X_new) @ A)


SPANNING = [case for case in SKETCH_CASES if case.id not in ("srht", "fourier")]


@with_and_without_weights
@pytest.mark.parametrize("sketch_case", SPANNING, ids=str)
def test_a_full_sketch_reproduces_the_kernel_matrix(sketch_case: SketchCase, weighted):
    X = normal(N, 3)
    kernel = laplacian(X)
    factor = factor_of(kernel, X, sketch_case.make(N, N, 3), N, weights(weighted))
    assert factor.complete
    assert_close(approximation(factor), values(kernel, X, X))


@with_and_without_weights
@every_sketch
def test_a_small_sketch_is_not_complete(sketch_case: SketchCase, weighted):
    X = normal(N, 3)
    w = weights(weighted)
    assert not factor_of(laplacian(X), X, sketch_case.make(M, N, 3), M, w).complete


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_rounding_in_the_sums_does_not_make_a_small_sketch_complete(precision):
    """Near-dependent rows magnify rounding, which must not be taken for everything there is."""
    X, S = normal(N, 3), normal(M, N)
    rows = np.vstack([S, S + 1e-7 * normal(M, N, seed=1)])
    factor = factorize(sample_for(laplacian(X), X), ArraySketch(rows), precision)
    assert not factor.complete


def test_an_array_with_dependent_rows_is_not_complete():
    """Its rank is below its number of rows without being that of G."""
    X, S = normal(N, 3), normal(4, N)
    kernel = laplacian(X)
    factor = factor_of(kernel, X, ArraySketch(np.vstack([S, S[:1]])), 5)
    assert_close(approximation(factor), nystrom(values(kernel, X, X), S))
    assert not factor.complete


# Growth


@with_and_without_weights
@every_sketch
@given(ends=st.lists(st.integers(1, N), max_size=4))
@settings(max_examples=10, deadline=None)
def test_points_in_any_portions_give_the_factor_of_all(sketch_case: SketchCase, weighted, ends):
    X, w = normal(N, 3), weights(weighted)
    kernel = laplacian(X)
    stops = [*sorted({max(end, M) for end in ends}), N]
    first = stops[0]
    factor = factor_of(kernel, X[:first], sketch_case.make(M, first, 3), M, w[:first])
    for stop in stops[1:]:
        factor = factor.extended(sample_for(kernel, X[:stop], w[:stop]), True)
    at_once = factorize(sample_for(kernel, X, w), factor.sketch, "float64")
    assert_close(approximation(factor), approximation(at_once))
    expected = nystrom(values(kernel, X, X), matrix_of(factor.sketch, N))
    assert_close(approximation(factor), expected)
    F = factor.F.host()
    assert_close(factor.gram, F.T @ (w[:, None] * F) / w.sum())


@every_sketch
def test_new_weights_of_old_rows_enter_the_gram_matrix(sketch_case: SketchCase):
    X, w = normal(N, 3), uneven(N)
    kernel = laplacian(X)
    factor = factor_of(kernel, X[:15], sketch_case.make(M, 15, 3), M, np.ones(15))
    assert len(factor.gram) == factor.F.shape[1]  # known for the old weights by now
    extended = factor.extended(sample_for(kernel, X, w), False)
    F = extended.F.host()
    assert_close(extended.gram, F.T @ (w[:, None] * F) / w.sum())


@every_sketch
def test_weights_can_change_without_new_rows(sketch_case: SketchCase):
    X, w = normal(N, 3), uneven(N)
    factor = factor_of(laplacian(X), X, sketch_case.make(M, N, 3), M)
    again = factor.extended(sample_of(factor.sample.points, w), False)
    assert_close(approximation(again), approximation(factor))
    F = again.F.host()
    assert_close(again.gram, F.T @ (w[:, None] * F) / w.sum())


@pytest.mark.parametrize("sketch_case", [*ENTRY_CASES, *ROW_CASES], ids=str)
@given(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4))
@settings(max_examples=15, deadline=None)
def test_rows_in_any_steps_give_the_factor_of_all(sketch_case: SketchCase, sizes):
    X, w = normal(N, 3), uneven(N)
    sample = sample_for(laplacian(X), X, w)
    factor = factor_for(sample, sketch_case.make(1, N, 3), 1)
    for size in sorted(sizes):
        factor = factor.grown(size)
    at_once = factorize(sample, factor.sketch, "float64")
    assert factor.sketch.size == max(sizes)
    assert_close(approximation(factor), approximation(at_once))
    F = factor.F.host()
    assert_close(factor.gram, F.T @ (w[:, None] * F) / w.sum())


@pytest.mark.parametrize("sketch_case", ENTRY_CASES, ids=str)
def test_entry_sketches_grown_in_steps_are_those_drawn_at_once(sketch_case: SketchCase):
    X = normal(N, 3)
    kernel = laplacian(X)
    steps = factorize(sample_for(kernel, X[:15]), sketch_case.make(3, 15, 3), "float64").grown(5)
    steps = steps.extended(sample_for(kernel, X), True).grown(M)
    at_once = factorize(sample_for(kernel, X), sketch_case.make(M, N, 3), "float64")
    assert_close(steps.sums.host(), at_once.sums.host())
    assert_close(approximation(steps), approximation(at_once))


@every_row_sketch
def test_earlier_columns_never_change(sketch_case: SketchCase):
    X = normal(60, 3)
    kernel = Gaussian(0.8).fitted(X)
    small = factor_of(kernel, X[:40], sketch_case.make(0, 40, 3), 10)
    longer = small.extended(sample_for(kernel, X), True)
    large = longer.grown(30)
    np.testing.assert_array_equal(longer.F.host()[:40], small.F.host())
    np.testing.assert_array_equal(large.F.host()[:, :10], longer.F.host())
    np.testing.assert_array_equal(large.pivots[:10], small.pivots)


@every_sketch
def test_old_factors_are_not_changed_by_new_ones(sketch_case: SketchCase):
    """Factor in, factor out."""
    X = normal(N, 3)
    kernel = laplacian(X)
    factor = factor_of(kernel, X[:20], sketch_case.make(M, 20, 3), M)
    before = factor.F.host().copy(), factor.gram.copy()
    larger = factor.extended(sample_for(kernel, X), True)
    if sketch_case.id != "array":
        larger.grown(M + 4)
        factor.grown(M + 4)
    np.testing.assert_array_equal(factor.F.host(), before[0])
    np.testing.assert_array_equal(factor.gram, before[1])
    assert (len(factor.sample), factor.sketch.size) == (20, M)


@every_row_sketch
def test_residual_is_the_diagonal_that_is_not_explained(sketch_case: SketchCase):
    X = normal(200, 3)
    kernel = Gaussian(0.8).fitted(X)
    factor = factor_of(kernel, X, sketch_case.make(0, 200, 3), 150)
    residual = factor.landmarks.residual.host()[:, 0]
    assert_close(residual, kernel.diag(X) - (factor.F.host() ** 2).sum(axis=1), scale=1.0)
    np.testing.assert_array_equal(residual[factor.pivots], 0)


@every_row_sketch
def test_columns_of_landmarks_are_made_again_where_they_are_missing(sketch_case: SketchCase):
    """As for a model that was loaded from a file."""
    X = normal(60, 3)
    factor = factor_of(Gaussian(0.8).fitted(X), X, sketch_case.make(0, 60, 3), 20, uneven(60))
    again = RowFactor(factor.sample, factor.sketch, factor.pivots, factor.L)
    assert_close(again.F.host(), factor.F.host())
    assert_close(again.landmarks.residual.host(), factor.landmarks.residual.host(), scale=1.0)
    assert again.complete == factor.complete
    assert_close(approximation(again.grown(30)), approximation(factor.grown(30)))


# Where the rank runs out


def duplicated() -> np.ndarray:
    return np.repeat(normal(10, 3), 6, axis=0)


def clusters() -> np.ndarray:
    return np.repeat(10 * normal(6, 3), 10, axis=0) + 1e-9 * normal(60, 3, seed=1)


def line() -> np.ndarray:
    return np.linspace(0, 1, 60)[:, None]


# a kernel, points, and whether their span holds every other point too
RANK_DEFICIENT = {
    "linear": (Linear(), normal(60, 4), True),
    "quadratic": (Polynomial(degree=2), normal(60, 2), True),
    "duplicated rows": (Gaussian(1.0), duplicated(), False),
    "one point": (Gaussian(1.0), np.ones((60, 2)), False),
    "clusters": (Gaussian(1.0), clusters(), False),
    "smooth": (Gaussian(1.0), line(), False),
    "zero": (Linear(), np.zeros((60, 2)), False),
}
where_the_rank_runs_out = pytest.mark.parametrize(
    ("kernel", "X", "spans"), RANK_DEFICIENT.values(), ids=RANK_DEFICIENT
)


@with_and_without_weights
@every_sketch
@where_the_rank_runs_out
def test_where_the_rank_runs_out_the_matrix_is_reproduced(kernel, X, spans, sketch_case, weighted):
    kernel = kernel.fitted(X)
    factor = factor_of(kernel, X, sketch_case.make(50, 60, 3), 50, weights(weighted, 60))
    X_new = X[:3] + 0.1
    there = features(factor, X_new)
    assert np.isfinite(factor.F.host()).all()
    assert np.isfinite(there).all()
    assert_close(approximation(factor), values(kernel, X, X))
    if spans:
        assert_close(there @ factor.F.host().T, values(kernel, X_new, X))


@with_and_without_weights
@every_sketch
@where_the_rank_runs_out
def test_where_the_rank_runs_out_the_factor_is_complete(kernel, X, spans, sketch_case, weighted):
    w = weights(weighted, 60)
    assert factor_of(kernel.fitted(X), X, sketch_case.make(50, 60, 3), 50, w).complete


@every_row_sketch
@where_the_rank_runs_out
def test_a_complete_landmark_factor_does_not_grow(kernel, X, spans, sketch_case: SketchCase):
    factor = factor_of(kernel.fitted(X), X, sketch_case.make(50, 60, 3), 50)
    assert factor.grown(60).sketch.size == factor.sketch.size


@pytest.mark.parametrize("sketch", [GaussianSketch(0), RPCholeskySketch()], ids=repr)
def test_an_empty_sketch_has_an_empty_factor(sketch):
    X = normal(N, 3)
    factor = factorize(sample_for(laplacian(X), X), sketch, "float64")
    E, V = spectrum(NumpyTiles(), factor.gram)
    assert (factor.F.shape, E.shape, V.shape) == ((N, 0), (0,), (0, 0))
    assert features(factor, X[:3]).shape == (3, 0)
    assert not factor.complete
    assert factor.noise() == 0


@pytest.mark.parametrize("n", [1, 2])
@every_sketch
def test_one_or_two_points(sketch_case: SketchCase, n):
    X = normal(n, 3)
    kernel = Gaussian(1.0).fitted(X)
    factor = factor_of(kernel, X, sketch_case.make(40, n, 3), 40)
    assert_close(approximation(factor), values(kernel, X, X))


@pytest.mark.parametrize("sketch_case", [ARRAY_CASE, *ENTRY_CASES], ids=str)
def test_more_sketch_rows_than_points(sketch_case: SketchCase):
    X = normal(12, 3)
    kernel = laplacian(X)
    factor = factor_of(kernel, X, sketch_case.make(40, 12, 3), 40)
    assert factor.F.shape[1] <= 40
    assert_close(approximation(factor), values(kernel, X, X))


@pytest.mark.parametrize("m", [255, 256, 257, 300])
def test_a_dense_sketch_of_more_rows_than_are_applied_at_a_time(m):
    X = normal(N, 3)
    kernel = laplacian(X)
    factor = factor_of(kernel, X, GaussianSketch(m, 3), m)
    assert factor.sums.shape == (N, m)
    S = matrix_of(factor.sketch, N)
    assert_close(factor.sums.host(), values(kernel, X, X) @ S.T)


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
def test_the_scale_of_the_sketch_rows_does_not_matter(scale):
    X, S = normal(N, 3), normal(M, N)
    kernel = laplacian(X)
    sizes = np.where(np.arange(M) < 3, scale, 1.0)[:, None]
    scaled = factor_of(kernel, X, ArraySketch(S * sizes), M)
    plain = factor_of(kernel, X, ArraySketch(S), M)
    assert_close(approximation(scaled), approximation(plain))


def test_error_grows_no_faster_than_rounding_with_the_number_of_landmarks():
    X = normal(400, 2)
    kernel = Gaussian(1.0).fitted(X)
    factor = factor_of(kernel, X, RPCholeskySketch(seed=1), 400)
    assert factor.F.shape[1] < 400
    left = np.linalg.eigvalsh(kernel(X, X) - approximation(factor))
    assert left[[0, -1]] == pytest.approx([0, 0], abs=tol())


# The spectrum


@given(r=st.integers(1, 12), seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_spectrum_is_that_of_the_gram_matrix(r, seed):
    F = normal(N, r, seed)
    E, V = spectrum(NumpyTiles(), F.T @ F / len(F))
    assert (np.diff(E) <= 0).all()
    assert_close(E, np.linalg.svd(F, compute_uv=False) ** 2 / N)
    assert_close(V * E @ V.T, F.T @ F / N)


def test_spectrum_drops_directions_at_rounding_level():
    F = normal(N, 3) @ normal(3, 6, seed=1)
    E, V = spectrum(NumpyTiles(), F.T @ F / len(F))
    assert (E.shape, V.shape) == ((3,), (6, 3))
    assert_close(V.T @ V, np.eye(3))


# What rounding costs


def offset_problem(seed: int, offset: float = 1e7):
    """20 numbers far from 0, to which signs that nearly cancel are put: defects.md, H4."""
    X = offset + np.random.default_rng(0).random((20, 1))
    kernel = Linear().fitted(X)
    return kernel, X, RademacherSketch(5, seed)


@pytest.mark.parametrize("seed", range(30))
def test_noise_bounds_what_rounding_did_to_the_factor(seed):
    """‖K̂ − K‖ is at most τ and, where rounding decides, what `noise` says."""
    kernel, X, sketch = offset_problem(seed)
    factor = factor_of(kernel, X, sketch, 5)
    K, K_hat = values(kernel, X, X) / 20, approximation(factor) / 20
    exact = nystrom(K, matrix_of(sketch, 20))
    lost = np.linalg.norm(K_hat - exact, 2)
    assert lost <= 8 * factor.noise() + 8 * np.sqrt(20) * EPS["float64"] * np.trace(K)


@pytest.mark.parametrize("sketch_case", [*ENTRY_CASES, ARRAY_CASE], ids=str)
@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
def test_noise_of_single_precision_sums_bounds_their_error(sketch_case: SketchCase, weighted):
    X, w = normal(N, 3), weights(weighted)
    kernel = Gaussian(0.9).fitted(X)
    sample = sample_for(kernel, X, w)
    double, single = (
        factorize(sample, sketch_case.make(M, N, 3), name) for name in ("float64", "float32")
    )
    root = np.sqrt(w / w.sum())
    K_double, K_single = (root[:, None] * approximation(f) * root for f in (double, single))
    assert np.linalg.norm(K_single - K_double, 2) <= 8 * single.noise()
    assert double.noise() < 1e-6 * single.noise()
    assert single.precision == "float32"


def test_landmarks_are_exact_whatever_the_precision_asked_for():
    X = normal(N, 3)
    sample = sample_for(laplacian(X), X)
    sketch = factor_for(sample, RPCholeskySketch(), M).sketch
    assert factorize(sample, sketch, "float32").precision == "float64"


def test_an_unknown_sketch_is_a_type_error():
    class Odd(Sketch):
        size = 1

        def check(self, n: int) -> None: ...

    X = normal(5, 3)
    with pytest.raises(TypeError, match="No factor for a sketch of type Odd"):
        factorize(sample_for(laplacian(X), X), Odd(), "float64")


@pytest.mark.parametrize("scale", [1.0, 1e-40, 1e40])
def test_a_row_of_the_sketch_whose_sums_cancel_spoils_nothing(scale):
    """Far from the origin G is all but 1e8·11ᵀ. A row of signs that add to 0 knows it to eight
    digits at best; the first row has them all, so K̂ = K whatever the others add."""
    X = 1e4 + normal(6, 1)
    S = np.array([[1.0] * 6, [1, -1, 1, -1, 1, -1], [1, 1, 1, -1, -1, -1], [1, 1, -1, -1, -1, 1]])
    S[1:] *= scale
    kernel = Linear().fitted(X)
    factor = factor_for(sample_for(kernel, X), ArraySketch(S))
    np.testing.assert_allclose(factor.explained.sum(), (X**2).mean() / kernel.unit, rtol=1e-14)
