"""Sketches: entries that never change, their moments, and the law by which rows are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import ARRAY_CASE, ENTRY_CASES, ROW_CASES, SketchCase, assert_close, normal, state_of, targets
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from sketchridge.kernels import Gaussian, Linear
from sketchridge.sketches import (
    SKETCHES,
    ArraySketch,
    FourierSketch,
    GaussianSketch,
    HadamardSketch,
    LandmarkSketch,
    RPCholeskySketch,
    SparseSketch,
    as_sketch,
)

ROWS, COLUMNS = 70, 2100  # more than one cell each way
VARIANCE = {"gaussian": 1, "rademacher": 1, "sparse": 1 / 3, "srht": 1, "fourier": 1 / 2}


def part(length: int) -> st.SearchStrategy[range]:
    return st.lists(st.integers(0, length), min_size=2, max_size=2).map(lambda ends: range(min(ends), max(ends)))


@pytest.mark.parametrize("case", [*ENTRY_CASES, ARRAY_CASE], ids=str)
@given(rows=part(ROWS), columns=part(COLUMNS), seed=st.integers(0, 2**31 - 2))
@settings(max_examples=20, deadline=None)
def test_any_part_has_the_entries_of_the_whole(case: SketchCase, rows, columns, seed):
    sketch = case.make(ROWS, COLUMNS, seed)
    whole = sketch.entries(range(ROWS), range(COLUMNS))
    np.testing.assert_array_equal(sketch.entries(rows, columns), whole[rows.start : rows.stop, columns.start : columns.stop])


@pytest.mark.parametrize("case", ENTRY_CASES, ids=str)
@given(small=st.integers(1, 70), more=st.integers(0, 70), seed=st.integers(0, 2**31 - 2))
@settings(max_examples=20, deadline=None)
def test_growing_keeps_the_entries(case: SketchCase, small, more, seed):
    sketch = case.make(small, 0, seed)
    grown = sketch.grown(small + more)
    assert grown.size == small + more
    np.testing.assert_array_equal(grown.entries(range(small), range(900, 1100)), sketch.entries(range(small), range(900, 1100)))


@pytest.mark.parametrize("case", ENTRY_CASES, ids=str)
def test_other_seeds_other_entries(case: SketchCase):
    first, second = (case.make(20, 0, seed).entries(range(20), range(50)) for seed in (0, 1))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("case", ENTRY_CASES, ids=str)
def test_entries_have_mean_zero_and_the_right_variance(case: SketchCase):
    """Entries, and likewise their squares, are uncorrelated: Chebyshev at 30 deviations, failure probability ≤ 2/900."""
    S = case.make(200, 0, 5).entries(range(200), range(1, 1201))
    v = VARIANCE[case.id]
    assert abs(S.mean()) <= 30 * np.sqrt(v / S.size)
    assert abs((S**2).mean() - v) <= 30 * np.sqrt(2 / S.size)


@pytest.mark.parametrize("case", ENTRY_CASES, ids=str)
def test_rows_preserve_lengths_on_average(case: SketchCase):
    """E‖Su‖² = m v‖u‖², with variance ≤ 3m v²‖u‖⁴ over independent rows: 30 deviations, failure probability ≤ 1/900."""
    u = normal(500, 1)[:, 0]
    ratio = ((case.make(4000, 0, 3).entries(range(4000), range(500)) @ u) ** 2).mean() / (VARIANCE[case.id] * u @ u)
    assert abs(ratio - 1) <= 30 * np.sqrt(3 / 4000)


@pytest.mark.parametrize("density", [0.05, 1 / 3, 0.9])
def test_sparse_entries_are_signs_with_the_given_density(density):
    """Binomial count within 6 deviations: failure probability about 2e-9."""
    S = SparseSketch(100, 7, density).entries(range(100), range(1000))
    assert set(np.unique(S)) == {-1.0, 0.0, 1.0}
    assert abs((S != 0).mean() - density) <= 6 * np.sqrt(density * (1 - density) / S.size)
    assert abs(S.mean()) <= 6 * np.sqrt(density / S.size)


def test_srht_rows_are_characters_times_common_signs():
    """S_ij S_ik S_i(j⊕k) S_i0 = sign_j sign_k sign_(j⊕k) sign_0, whatever the row; column 0 is sign_0."""
    S = HadamardSketch(50, 3).entries(range(50), range(4096))
    j, k = np.random.default_rng(0).integers(0, 4096, (2, 200))
    product = S[:, j] * S[:, k] * S[:, j ^ k] * S[:, [0]]
    np.testing.assert_array_equal(np.abs(S), 1)
    np.testing.assert_array_equal(product, np.broadcast_to(product[0], product.shape))
    assert len(np.unique(S * S[0], axis=0)) == 50


def test_srht_reaches_far_columns():
    """Bits of r_i up to the 40th matter. 64 fair signs all alike: failure probability 2⁻⁶³ a bit."""
    sketch = HadamardSketch(64, 3)
    near = sketch.entries(range(64), range(0, 1))
    for bit in range(41):
        assert np.unique(near * sketch.entries(range(64), range(2**bit, 2**bit + 1))).size == 2


def test_fourier_squares_are_a_cosine_of_one_frequency():
    """q = 2S² − 1 = cos(4πθj + 2ψ), hence (q_(j+1) + q_(j−1)) q_k = (q_(k+1) + q_(k−1)) q_j."""
    q = 2 * FourierSketch(30, 3).entries(range(30), range(1500)) ** 2 - 1
    neighbours, middle = q[:, 2:] + q[:, :-2], q[:, 1:-1]
    assert_close(neighbours[:, 1:] * middle[:, :-1], neighbours[:, :-1] * middle[:, 1:])


def test_fourier_signs_are_common_to_all_rows():
    """The product of two rows is two cosines without signs: p_(j+2) + p_(j−2) = a(p_(j+1) + p_(j−1)) + b p_j."""
    S = FourierSketch(2, 3).entries(range(2), range(300))
    p = S[0] * S[1]
    terms = np.column_stack([p[3:-1] + p[1:-3], p[2:-2]])
    fitted = terms @ np.linalg.lstsq(terms, p[4:] + p[:-4], rcond=None)[0]
    assert_close(fitted, p[4:] + p[:-4])


def test_an_array_is_extended_by_zeros():
    S = normal(4, 6)
    entries = ArraySketch(S).entries(range(1, 4), range(2, 10))
    np.testing.assert_array_equal(entries, np.hstack([S[1:, 2:], np.zeros((3, 4))]))
    np.testing.assert_array_equal(ArraySketch(S).entries(range(4), range(6, 9)), np.zeros((4, 3)))


@pytest.mark.parametrize("case", ROW_CASES, ids=str)
@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4), seed=st.integers(0, 2**31 - 2))
@settings(max_examples=20, deadline=None)
def test_growing_keeps_the_chosen_rows(case: SketchCase, sizes, seed):
    X = normal(40, 3)
    state = state_of(Gaussian(0.5).fitted(X), X, targets(40), case.make(0, 40, seed), 0)
    chosen = np.empty(0, dtype=int)
    for size in sorted(sizes):
        state = state.grown(size)
        assert state.sketch.size == size == len(set(state.sketch.indices))
        np.testing.assert_array_equal(state.sketch.indices[: len(chosen)], chosen)
        chosen = state.sketch.indices


@pytest.mark.parametrize("case", ROW_CASES, ids=str)
def test_later_points_are_chosen_only_after_they_came(case: SketchCase):
    X = normal(60, 3)
    state = state_of(Gaussian(0.5).fitted(X), X[:20], targets(20), case.make(0, 20, 0), 15)
    later = state.extended(X[20:], targets(40)).grown(50)
    np.testing.assert_array_equal(later.sketch.indices[:15], state.sketch.indices)
    assert later.sketch.indices[15:].max() >= 20


def five_small_clusters() -> np.ndarray:
    """990 points within 1e-3 of the origin, then five pairs far from everything."""
    centres = np.repeat(10.0 * np.arange(1, 6), 2)[:, None] * np.ones(2)
    return np.vstack([1e-3 * normal(990, 2), centres + 1e-3 * normal(10, 2, seed=1)])


def clusters_found(sketch, size: int) -> int:
    X = five_small_clusters()
    indices = state_of(Gaussian(1.0).fitted(X), X, targets(1000), sketch, size).sketch.indices
    return len(set((indices[indices >= 990] - 990) // 2))


@pytest.mark.parametrize("seed", range(5))
def test_rpcholesky_finds_small_clusters_that_uniform_landmarks_miss(seed):
    """Once the large cluster has a landmark its residual sums to 0.004 against 2 for a pair: five wasted draws of ten have
    probability < 1e-10. Ten uniform rows hit all five pairs with probability < 4e-7."""
    assert clusters_found(RPCholeskySketch(seed=seed), 10) == 5
    assert clusters_found(LandmarkSketch(seed=seed), 10) < 5


@pytest.mark.parametrize("size", [2, 3])
def test_first_two_pivots_follow_randomly_pivoted_cholesky(size):
    """Chi-square over the ordered pairs, failure probability 1e-6."""
    n, draws = 4, 1500
    X = normal(n, n, seed=4) * np.array([[0.7], [1.0], [1.3], [1.6]]) + 0.5
    G = X @ X.T
    law = np.zeros((n, n))
    for i in range(n):
        residual = np.diagonal(G) - G[i] ** 2 / G[i, i]
        residual[i] = 0
        law[i] = G[i, i] / np.trace(G) * residual / residual.sum()
    counts = np.zeros((n, n))
    for seed in range(draws):
        i, j = state_of(Linear(), X, targets(n), RPCholeskySketch(seed=seed), size).sketch.indices[:2]
        counts[i, j] += 1
    off = ~np.eye(n, dtype=bool)
    expected = draws * law[off]
    assert counts[~off].sum() == 0
    assert expected.min() > 5
    assert ((counts[off] - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-6, expected.size - 1)


def test_landmarks_are_uniform():
    """First landmark of 5 rows, chi-square, failure probability 1e-6."""
    counts = np.bincount([LandmarkSketch(seed=seed).propose(2, np.arange(1.0, 6.0))[0][0] for seed in range(3000)], minlength=5)
    assert ((counts - 600) ** 2 / 600).sum() < chi2.ppf(1 - 1e-6, 4)


@pytest.mark.parametrize("name", SKETCHES)
def test_as_sketch_knows_every_name(name):
    sketch = as_sketch(name, n=10, seed=4)
    assert isinstance(sketch, SKETCHES[name])
    assert (sketch.size, sketch.seed) == (0, 4)


def test_as_sketch_takes_arrays_and_sketches():
    S = normal(3, 10)
    np.testing.assert_array_equal(as_sketch(S.astype("float32"), n=10, seed=0).matrix, S.astype("float32"))
    sketch = GaussianSketch(3)
    assert as_sketch(sketch, n=10, seed=0) is sketch


LANDMARK_9 = RPCholeskySketch(indices=np.array([2, 9]))
ERRORS = {
    "unknown name": (
        lambda: as_sketch("gaus", n=5, seed=0),
        "Unknown sketch 'gaus': give 'auto', one of " + ", ".join(map(repr, SKETCHES)),
    ),
    "number": (lambda: as_sketch(7, n=5, seed=0), "Unknown sketch 7"),
    "one-dimensional": (lambda: as_sketch(np.ones(5), n=5, seed=0), r"one column for each of the 5 training rows.*shape \(5,\)"),
    "too narrow": (lambda: as_sketch(np.ones((2, 4)), n=5, seed=0), r"one column for each of the 5 training rows.*shape \(2, 4\)"),
    "no rows": (lambda: as_sketch(np.ones((0, 5)), n=5, seed=0), r"at least one row, got shape \(0, 5\)"),
    "nan": (lambda: as_sketch(np.full((2, 5), np.nan), n=5, seed=0), "contains NaN or infinity"),
    "row too far": (lambda: as_sketch(LANDMARK_9, n=5, seed=0), "selects row 9, but there are only 5 training rows"),
    "too many columns": (lambda: as_sketch(ArraySketch(np.ones((2, 9))), n=5, seed=0), "has 9 columns, but there are only 5"),
    "resized array": (lambda: ArraySketch(np.ones((2, 9))).grown(3), "has 2 rows and cannot be resized to 3"),
}


@pytest.mark.parametrize(("bad", "text"), ERRORS.values(), ids=ERRORS)
def test_error_is_a_sentence(bad, text):
    with pytest.raises(ValueError, match=text):
        bad()


@pytest.mark.parametrize("case", [*ENTRY_CASES, ARRAY_CASE], ids=str)
def test_parts_without_rows_or_columns_are_empty(case: SketchCase):
    sketch = case.make(5, 20, 0)
    assert sketch.entries(range(0), range(20)).shape == (0, 20)
    assert sketch.entries(range(3, 3), range(20)).shape == (0, 20)
    assert sketch.entries(range(5), range(7, 7)).shape == (5, 0)
