"""Choosing landmarks: rows that never change, the law of their choice, and where the rank ends."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import (
    ROW_CASES,
    SketchCase,
    assert_close,
    factor_for,
    normal,
    sample_for,
    tol,
    uneven,
    values,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from sketchridge import rpcholesky
from sketchridge.factor import sample_of
from sketchridge.kernels import Gaussian, Laplacian, Linear
from sketchridge.rpcholesky import grow, no_landmarks, with_rows
from sketchridge.sketches import LandmarkSketch, RPCholeskySketch

every_row_sketch = pytest.mark.parametrize("case", ROW_CASES, ids=str)


def start_of(sample):
    return no_landmarks(sample.backend, sample.diag.host()[:, 0])


def grown(sample, sketch, size, start=None):
    start = start_of(sample) if start is None else start
    return grow(start, sample.points, sample.weights, sample.diag, sketch, size)


def laplacian_sample(n: int = 60, w=None):
    X = normal(n, 3)
    return sample_for(Laplacian(1.5).fitted(X), X, w), X


def test_nothing_is_explained_at_the_start():
    sample, _ = laplacian_sample(9)
    start = start_of(sample)
    assert (start.pivots.shape, start.L.shape, start.F.shape) == ((0,), (0, 0), (9, 0))
    np.testing.assert_array_equal(start.residual.host()[:, 0], np.ones(9))


@every_row_sketch
@pytest.mark.parametrize("size", [1, 2, 17, 60])
def test_landmarks_are_a_cholesky_factor_of_their_own_matrix(case: SketchCase, size):
    sample, X = laplacian_sample()
    found, sketch = grown(sample, case.make(0, 60, 3), size)
    G = values(sample.points.kernel, X, X)
    p = found.pivots
    assert sketch.size == len(p) == len(set(p)) == size
    np.testing.assert_array_equal(sketch.indices, p)
    assert (np.tril(found.L) == found.L).all()
    assert_close(found.L @ found.L.T, G[np.ix_(p, p)])
    assert_close(found.F.host() @ found.L.T, G[:, p])
    assert_close(found.F.take(p), found.L)
    unexplained = np.diagonal(G) - (found.F.host() ** 2).sum(axis=1)
    assert_close(found.residual.host()[:, 0], np.where(np.isin(range(60), p), 0, unexplained))


@every_row_sketch
@pytest.mark.parametrize("block", [1, 5, 128])
def test_blocks_of_landmarks_give_a_factor_of_the_same_matrix(case, block, monkeypatch):
    monkeypatch.setattr(rpcholesky, "_BLOCK", block)
    sample, X = laplacian_sample()
    found, _ = grown(sample, case.make(0, 60, 3), 23)
    G = values(sample.points.kernel, X, X)
    F = found.F.host()
    expected = G[:, found.pivots] @ np.linalg.solve(
        G[np.ix_(found.pivots, found.pivots)], G[found.pivots]
    )
    assert_close(F @ F.T, expected)


@pytest.mark.parametrize("block", [1, 7, 128])
def test_given_rows_are_taken_in_their_order(block, monkeypatch):
    monkeypatch.setattr(rpcholesky, "_BLOCK", block)
    sample, X = laplacian_sample()
    rows = np.random.default_rng(0).permutation(60)[:25]
    found = with_rows(start_of(sample), sample.points, sample.diag, rows)
    np.testing.assert_array_equal(found.pivots, rows)
    G = values(sample.points.kernel, X, X)
    assert_close(found.L, np.linalg.cholesky(G[np.ix_(rows, rows)]))


def test_given_rows_that_depend_on_others_are_passed_over():
    X = np.repeat(normal(5, 3), 3, axis=0)
    sample = sample_for(Laplacian(1.5).fitted(X), X)
    found = with_rows(start_of(sample), sample.points, sample.diag, np.array([0, 1, 3, 2, 14]))
    np.testing.assert_array_equal(found.pivots, [0, 3, 14])


@every_row_sketch
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    seed=st.integers(0, 2**31 - 2),
)
@settings(max_examples=20, deadline=None)
def test_growing_keeps_the_chosen_rows_and_columns(case: SketchCase, sizes, seed):
    X = normal(40, 3)
    sample = sample_for(Gaussian(0.5).fitted(X), X)
    found, sketch = start_of(sample), case.make(0, 40, seed)
    for size in sorted(sizes):
        larger, sketch = grown(sample, sketch, size, found)
        assert sketch.size == size == len(set(sketch.indices))
        r = len(found.pivots)
        np.testing.assert_array_equal(larger.pivots[:r], found.pivots)
        np.testing.assert_array_equal(larger.L[:r, :r], found.L)
        np.testing.assert_array_equal(larger.F.host()[:, :r], found.F.host())
        found = larger


@every_row_sketch
def test_later_points_are_chosen_only_after_they_came(case: SketchCase):
    X = normal(60, 3)
    kernel = Gaussian(0.5).fitted(X)
    factor = factor_for(sample_for(kernel, X[:20]), case.make(0, 20, 0), 15)
    later = factor.extended(sample_for(kernel, X), True).grown(50)
    np.testing.assert_array_equal(later.sketch.indices[:15], factor.sketch.indices)
    assert later.sketch.indices[15:].max() >= 20


def five_small_clusters() -> np.ndarray:
    """990 points within 1e-3 of the origin, then five pairs far from everything."""
    centers = np.repeat(10.0 * np.arange(1, 6), 2)[:, None] * np.ones(2)
    return np.vstack([1e-3 * normal(990, 2), centers + 1e-3 * normal(10, 2, seed=1)])


def clusters_found(sketch, size: int) -> int:
    X = five_small_clusters()
    sample = sample_for(Gaussian(1.0).fitted(X), X)
    indices = grown(sample, sketch, size)[1].indices
    return len(set((indices[indices >= 990] - 990) // 2))


@pytest.mark.parametrize("seed", range(5))
def test_rpcholesky_finds_small_clusters_that_uniform_landmarks_miss(seed):
    """Once the large cluster has a landmark its residual sums to 0.004 against 2 for a pair: five
    wasted draws of ten have probability < 1e-10. Ten uniform rows hit all five pairs with
    probability < 4e-7."""
    assert clusters_found(RPCholeskySketch(seed=seed), 10) == 5
    assert clusters_found(LandmarkSketch(seed=seed), 10) < 5


def law_of_pairs(K: np.ndarray) -> np.ndarray:
    """The probability of first i, then j, by randomly pivoted Cholesky on K."""
    n = len(K)
    law = np.zeros((n, n))
    for i in range(n):
        residual = np.diagonal(K) - K[i] ** 2 / K[i, i]
        residual[i] = 0
        law[i] = K[i, i] / np.trace(K) * residual / residual.sum()
    return law


@pytest.mark.parametrize(
    "w", [np.ones(4), np.array([2.0, 0.7, 1.0, 0.8])], ids=["even", "weighted"]
)
@pytest.mark.parametrize("size", [2, 3])
def test_first_two_pivots_follow_randomly_pivoted_cholesky(size, w):
    """Of M^½ G M^½, that is: chi-square over the ordered pairs, failure probability 1e-6."""
    n, draws = 4, 1500
    X = normal(n, n, seed=4) * np.array([[0.7], [1.0], [1.3], [1.6]]) + 0.5
    law = law_of_pairs(np.sqrt(np.outer(w, w)) * (X @ X.T))
    sample = sample_for(Linear(), X, w)
    start = start_of(sample)
    counts = np.zeros((n, n))
    with sample.backend.alone():
        for seed in range(draws):
            _, sketch = grown(sample, RPCholeskySketch(seed=seed), size, start)
            counts[tuple(sketch.indices[:2])] += 1
    off = ~np.eye(n, dtype=bool)
    expected = draws * law[off]
    assert counts[~off].sum() == 0
    assert expected.min() > 5
    statistic = ((counts[off] - expected) ** 2 / expected).sum()
    assert statistic < chi2.ppf(1 - 1e-6, expected.size - 1)


def test_weights_that_are_all_alike_change_no_choice():
    sample, _ = laplacian_sample()
    heavier = sample_of(sample.points, np.full(60, 4.0))
    for sketch in (RPCholeskySketch(seed=5), LandmarkSketch(seed=5)):
        one, other = (grown(s, sketch, 20)[1].indices for s in (sample, heavier))
        np.testing.assert_array_equal(one, other)


def test_a_heavy_row_is_chosen_first():
    """With 1e12 of the weight, another row is first with probability 6e-11."""
    w = np.ones(60)
    w[17] = 1e12
    sample, _ = laplacian_sample(w=w)
    assert grown(sample, RPCholeskySketch(seed=5), 3)[1].indices[0] == 17


@every_row_sketch
@pytest.mark.parametrize("d", [1, 4])
def test_growth_ends_with_the_rank(case: SketchCase, d):
    X = normal(50, d)
    sample = sample_for(Linear().fitted(X), X, uneven(50))
    found, sketch = grown(sample, case.make(0, 50, 3), 50)
    assert sketch.size == len(found.pivots) == d
    assert not found.residual.host().any()
    assert grown(sample, sketch, 50, found)[1].size == d


@every_row_sketch
def test_a_kernel_that_vanishes_has_no_landmarks(case: SketchCase):
    X = np.zeros((20, 2))
    found, sketch = grown(sample_for(Linear().fitted(X), X), case.make(0, 20, 3), 5)
    assert (sketch.size, found.F.shape) == (0, (20, 0))


@every_row_sketch
def test_residuals_never_fall_below_zero(case: SketchCase):
    X = np.linspace(0, 1, 200)[:, None]
    sample = sample_for(Gaussian(0.5).fitted(X), X)
    found, sketch = grown(sample, case.make(0, 200, 3), 200)
    assert sketch.size < 60
    assert (found.residual.host() >= 0).all()
    G = values(sample.points.kernel, X, X)
    assert np.abs(G - found.F.host() @ found.F.host().T).max() < tol()
