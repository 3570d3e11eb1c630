"""The factor F: Ĝ = F Fᵀ, features, growth by points and by sketch rows, and what happens where the rank runs out."""

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
    matrix_of,
    normal,
    nystrom,
    tol,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchridge.backends import NumpyTiles
from sketchridge.factor import factorize, spectrum
from sketchridge.kernels import Gaussian, Laplacian, Linear, Polynomial
from sketchridge.sketches import ArraySketch, GaussianSketch, RowSketch, RPCholeskySketch, Sketch

N, M, T = 25, 8, 6
BACKEND = NumpyTiles()

every_kernel = pytest.mark.parametrize("case", KERNEL_CASES, ids=str)
every_sketch = pytest.mark.parametrize("sketch_case", SKETCH_CASES, ids=str)


def factor_of(kernel, X, sketch: Sketch, m: int):
    factor = factorize(BACKEND, kernel, X, sketch)
    return factor.grown(BACKEND, kernel, X, m) if isinstance(sketch, RowSketch) else factor


def approximation(factor) -> np.ndarray:
    return factor.F @ factor.F.T


@every_sketch
@every_kernel
def test_factor_is_that_of_the_nystrom_matrix(case: KernelCase, sketch_case: SketchCase):
    X = case.points(N)
    kernel = case.fitted(X)
    factor = factor_of(kernel, X, sketch_case.make(M, N, 3), M)
    assert_close(approximation(factor), nystrom(kernel(X, X), matrix_of(factor.sketch, N)))


@every_sketch
@every_kernel
def test_features_at_the_training_points_are_the_rows_of_the_factor(case: KernelCase, sketch_case: SketchCase):
    X = case.points(N)
    kernel = case.fitted(X)
    factor = factor_of(kernel, X, sketch_case.make(M, N, 3), M)
    assert_close(factor.features(BACKEND, kernel, X, X), factor.F)


@every_sketch
@every_kernel
def test_features_give_the_sketched_kernel_at_new_points(case: KernelCase, sketch_case: SketchCase):
    X, X_new = case.points(N), case.points(T, seed=7)
    kernel = case.fitted(X)
    factor = factor_of(kernel, X, sketch_case.make(M, N, 3), M)
    expected = nystrom(kernel(X, X), matrix_of(factor.sketch, N), kernel(X_new, X))
    assert_close(factor.features(BACKEND, kernel, X, X_new) @ factor.F.T, expected)


@pytest.mark.parametrize("sketch_case", [case for case in SKETCH_CASES if case.id not in ("srht", "fourier")], ids=str)
def test_a_full_sketch_reproduces_the_kernel_matrix(sketch_case: SketchCase):
    X = normal(N, 3)
    kernel = Laplacian(1.5).fitted(X)
    factor = factor_of(kernel, X, sketch_case.make(N, N, 3), N)
    assert factor.complete
    assert_close(approximation(factor), kernel(X, X))


@every_sketch
def test_a_small_sketch_is_not_complete(sketch_case: SketchCase):
    X = normal(N, 3)
    kernel = Laplacian(1.5).fitted(X)
    assert not factor_of(kernel, X, sketch_case.make(M, N, 3), M).complete


def test_an_array_with_dependent_rows_is_not_complete():
    """Its rank is below its number of rows without being that of G."""
    X, S = normal(N, 3), normal(4, N)
    kernel = Laplacian(1.5).fitted(X)
    factor = factorize(BACKEND, kernel, X, ArraySketch(np.vstack([S, S[:1]])))
    assert_close(approximation(factor), nystrom(kernel(X, X), S))
    assert not factor.complete


@every_sketch
@given(ends=st.lists(st.integers(1, N), max_size=4))
@settings(max_examples=20, deadline=None)
def test_points_in_any_portions_give_the_factor_of_all(sketch_case: SketchCase, ends):
    X = normal(N, 3)
    kernel = Laplacian(1.5).fitted(X)
    stops = [*sorted({max(end, M) for end in ends}), N]
    factor = factor_of(kernel, X[: stops[0]], sketch_case.make(M, stops[0], 3), M)
    for stop in stops[1:]:
        factor = factor.extended(BACKEND, kernel, X[:stop])
    at_once = factorize(BACKEND, kernel, X, factor.sketch)
    assert_close(approximation(factor), approximation(at_once))
    assert_close(approximation(factor), nystrom(kernel(X, X), matrix_of(factor.sketch, N)))


@pytest.mark.parametrize("sketch_case", [*ENTRY_CASES, *ROW_CASES], ids=str)
@given(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_rows_in_any_steps_give_the_factor_of_all(sketch_case: SketchCase, sizes):
    X = normal(N, 3)
    kernel = Laplacian(1.5).fitted(X)
    factor = factor_of(kernel, X, sketch_case.make(1, N, 3), 1)
    for size in sorted(sizes):
        factor = factor.grown(BACKEND, kernel, X, size)
    at_once = factorize(BACKEND, kernel, X, factor.sketch)
    assert factor.sketch.size == max(sizes)
    assert_close(approximation(factor), approximation(at_once))


@pytest.mark.parametrize("sketch_case", ENTRY_CASES, ids=str)
def test_entry_sketches_grown_in_steps_are_those_drawn_at_once(sketch_case: SketchCase):
    X = normal(N, 3)
    kernel = Laplacian(1.5).fitted(X)
    steps = factorize(BACKEND, kernel, X[:15], sketch_case.make(3, 15, 3)).grown(BACKEND, kernel, X[:15], 5)
    steps = steps.extended(BACKEND, kernel, X).grown(BACKEND, kernel, X, M)
    at_once = factorize(BACKEND, kernel, X, sketch_case.make(M, N, 3))
    assert_close(steps.sums, at_once.sums)
    assert_close(approximation(steps), approximation(at_once))


@pytest.mark.parametrize("sketch_case", ROW_CASES, ids=str)
def test_earlier_columns_never_change(sketch_case: SketchCase):
    X = normal(60, 3)
    kernel = Gaussian(0.8).fitted(X)
    small = factor_of(kernel, X[:40], sketch_case.make(0, 40, 3), 10)
    longer = small.extended(BACKEND, kernel, X)
    large = longer.grown(BACKEND, kernel, X, 30)
    np.testing.assert_array_equal(longer.F[:40], small.F)
    np.testing.assert_array_equal(large.F[:, :10], longer.F)
    np.testing.assert_array_equal(large.pivots[:10], small.pivots)


@pytest.mark.parametrize("sketch_case", ROW_CASES, ids=str)
def test_residual_is_the_diagonal_that_is_not_explained(sketch_case: SketchCase):
    X = normal(200, 3)
    kernel = Gaussian(0.8).fitted(X)
    factor = factor_of(kernel, X, sketch_case.make(0, 200, 3), 150)
    assert_close(factor.residual, kernel.diag(X) - (factor.F**2).sum(axis=1), scale=1.0)
    np.testing.assert_array_equal(factor.residual[factor.pivots], 0)


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


@every_sketch
@pytest.mark.parametrize(("kernel", "X", "spans"), RANK_DEFICIENT.values(), ids=RANK_DEFICIENT)
def test_where_the_rank_runs_out_the_matrix_is_reproduced(kernel, X, spans, sketch_case: SketchCase):
    kernel = kernel.fitted(X)
    factor = factor_of(kernel, X, sketch_case.make(50, 60, 3), 50)
    G, X_new = kernel(X, X), X[:3] + 0.1
    features = factor.features(BACKEND, kernel, X, X_new)
    assert np.isfinite(factor.F).all()
    assert np.isfinite(features).all()
    assert_close(approximation(factor), G)
    if spans:
        assert_close(features @ factor.F.T, kernel(X_new, X))


@every_sketch
@pytest.mark.parametrize(("kernel", "X", "spans"), RANK_DEFICIENT.values(), ids=RANK_DEFICIENT)
def test_where_the_rank_runs_out_the_factor_is_complete(kernel, X, spans, sketch_case: SketchCase):
    kernel = kernel.fitted(X)
    assert factor_of(kernel, X, sketch_case.make(50, 60, 3), 50).complete


@pytest.mark.parametrize("sketch_case", ROW_CASES, ids=str)
@pytest.mark.parametrize(("kernel", "X", "spans"), RANK_DEFICIENT.values(), ids=RANK_DEFICIENT)
def test_a_complete_landmark_factor_does_not_grow(kernel, X, spans, sketch_case: SketchCase):
    kernel = kernel.fitted(X)
    factor = factor_of(kernel, X, sketch_case.make(50, 60, 3), 50)
    assert factor.grown(BACKEND, kernel, X, 60).sketch.size == factor.sketch.size


@pytest.mark.parametrize("sketch", [GaussianSketch(0), RPCholeskySketch()], ids=repr)
def test_an_empty_sketch_has_an_empty_factor(sketch):
    X = normal(N, 3)
    kernel = Laplacian(1.5).fitted(X)
    factor = factorize(BACKEND, kernel, X, sketch)
    E, V = spectrum(BACKEND, factor.gram)
    assert (factor.F.shape, E.shape, V.shape) == ((N, 0), (0,), (0, 0))
    assert factor.features(BACKEND, kernel, X, X[:3]).shape == (3, 0)
    assert not factor.complete


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("sketch_case", SKETCH_CASES, ids=str)
def test_one_or_two_points(sketch_case: SketchCase, n):
    X = normal(n, 3)
    kernel = Gaussian(1.0).fitted(X)
    assert_close(approximation(factor_of(kernel, X, sketch_case.make(40, n, 3), 40)), kernel(X, X))


@given(r=st.integers(1, 12), seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_spectrum_is_that_of_the_gram_matrix(r, seed):
    F = normal(N, r, seed)
    E, V = spectrum(BACKEND, F.T @ F / len(F))
    assert (np.diff(E) <= 0).all()
    assert_close(E, np.linalg.svd(F, compute_uv=False) ** 2 / N)
    assert_close(V * E @ V.T, F.T @ F / N)


def test_spectrum_drops_directions_at_rounding_level():
    F = normal(N, 3) @ normal(3, 6, seed=1)
    E, V = spectrum(BACKEND, F.T @ F / len(F))
    assert (E.shape, V.shape) == ((3,), (6, 3))
    assert_close(V.T @ V, np.eye(3))


@pytest.mark.parametrize("sketch_case", [ARRAY_CASE, *ENTRY_CASES], ids=str)
def test_more_sketch_rows_than_points(sketch_case: SketchCase):
    X = normal(12, 3)
    kernel = Laplacian(1.5).fitted(X)
    factor = factorize(BACKEND, kernel, X, sketch_case.make(40, 12, 3))
    assert factor.F.shape[1] <= 40
    assert_close(approximation(factor), kernel(X, X))


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
def test_the_scale_of_the_sketch_rows_does_not_matter(scale):
    X, S = normal(N, 3), normal(M, N)
    kernel = Laplacian(1.5).fitted(X)
    scaled = factorize(BACKEND, kernel, X, ArraySketch(S * np.where(np.arange(M) < 3, scale, 1.0)[:, None]))
    assert_close(approximation(scaled), approximation(factorize(BACKEND, kernel, X, ArraySketch(S))))


def test_error_grows_no_faster_than_rounding_with_the_number_of_landmarks():
    X = normal(400, 2)
    kernel = Gaussian(1.0).fitted(X)
    G = kernel(X, X)
    factor = factor_of(kernel, X, RPCholeskySketch(seed=1), 400)
    assert factor.F.shape[1] < 400
    assert np.linalg.eigvalsh(G - approximation(factor))[[0, -1]] == pytest.approx([0, 0], abs=tol())
