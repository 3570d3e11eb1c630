"""Sketches: entries that never change, their moments, and the law by which rows are proposed."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import (
    ARRAY_CASE,
    ENTRY_CASES,
    ROW_CASES,
    SketchCase,
    assert_close,
    matrix_of,
    normal,
    uneven,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from sketchridge.backends import NumpyTiles
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
    ends = st.lists(st.integers(0, length), min_size=2, max_size=2)
    return ends.map(lambda two: range(min(two), max(two)))


@pytest.mark.parametrize("case", [*ENTRY_CASES, ARRAY_CASE], ids=str)
@given(rows=part(ROWS), columns=part(COLUMNS), seed=st.integers(0, 2**31 - 2))
@settings(max_examples=20, deadline=None)
def test_any_part_has_the_entries_of_the_whole(case: SketchCase, rows, columns, seed):
    sketch = case.make(ROWS, COLUMNS, seed)
    whole = sketch.entries(range(ROWS), range(COLUMNS))
    expected = whole[rows.start : rows.stop, columns.start : columns.stop]
    np.testing.assert_array_equal(sketch.entries(rows, columns), expected)


@pytest.mark.parametrize("case", ENTRY_CASES, ids=str)
@given(small=st.integers(1, 70), more=st.integers(0, 70), seed=st.integers(0, 2**31 - 2))
@settings(max_examples=20, deadline=None)
def test_growing_keeps_the_entries(case: SketchCase, small, more, seed):
    sketch = case.make(small, 0, seed)
    grown = sketch.grown(small + more)
    assert grown.size == small + more
    there, place = range(small), range(900, 1100)
    np.testing.assert_array_equal(grown.entries(there, place), sketch.entries(there, place))


@pytest.mark.parametrize("case", ENTRY_CASES, ids=str)
def test_other_seeds_other_entries(case: SketchCase):
    first, second = (case.make(20, 0, seed).entries(range(20), range(50)) for seed in (0, 1))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("case", ENTRY_CASES, ids=str)
def test_entries_have_mean_zero_and_the_right_variance(case: SketchCase):
    """Entries, and likewise their squares, are uncorrelated: Chebyshev at 30 deviations, failure
    probability ≤ 2/900."""
    S = case.make(200, 0, 5).entries(range(200), range(1, 1201))
    v = VARIANCE[case.id]
    assert abs(S.mean()) <= 30 * np.sqrt(v / S.size)
    assert abs((S**2).mean() - v) <= 30 * np.sqrt(2 / S.size)


@pytest.mark.parametrize("case", ENTRY_CASES, ids=str)
def test_rows_preserve_lengths_on_average(case: SketchCase):
    """E‖Su‖² = m v‖u‖², with variance ≤ 3m v²‖u‖⁴ over independent rows: 30 deviations, failure
    probability ≤ 1/900."""
    u = normal(500, 1)[:, 0]
    S = case.make(4000, 0, 3).entries(range(4000), range(500))
    ratio = ((S @ u) ** 2).mean() / (VARIANCE[case.id] * u @ u)
    assert abs(ratio - 1) <= 30 * np.sqrt(3 / 4000)


@pytest.mark.parametrize("density", [0.05, 1 / 3, 0.9])
def test_sparse_entries_are_signs_with_the_given_density(density):
    """Binomial count within 6 deviations: failure probability about 2e-9."""
    S = SparseSketch(100, 7, density).entries(range(100), range(1000))
    assert set(np.unique(S)) == {-1.0, 0.0, 1.0}
    assert abs((S != 0).mean() - density) <= 6 * np.sqrt(density * (1 - density) / S.size)
    assert abs(S.mean()) <= 6 * np.sqrt(density / S.size)


def test_srht_rows_are_characters_times_common_signs():
    """S_ij S_ik S_i(j⊕k) S_i0 = sign_j sign_k sign_(j⊕k) sign_0, whatever the row."""
    S = HadamardSketch(50, 3).entries(range(50), range(4096))
    j, k = np.random.default_rng(0).integers(0, 4096, (2, 200))
    product = S[:, j] * S[:, k] * S[:, j ^ k] * S[:, [0]]
    np.testing.assert_array_equal(np.abs(S), 1)
    np.testing.assert_array_equal(product, np.broadcast_to(product[0], product.shape))
    assert len(np.unique(S * S[0], axis=0)) == 50


def test_srht_reaches_far_columns():
    """Bits of r_i up to the 40th matter. 64 fair signs all alike: probability 2⁻⁶³ a bit."""
    sketch = HadamardSketch(64, 3)
    near = sketch.entries(range(64), range(0, 1))
    for bit in range(41):
        assert np.unique(near * sketch.entries(range(64), range(2**bit, 2**bit + 1))).size == 2


def test_fourier_squares_are_a_cosine_of_one_frequency():
    """q = 2S² − 1 = cos(4πθj + 2ψ), hence (q_(j+1) + q_(j−1)) q_k = (q_(k+1) + q_(k−1)) q_j."""
    q = 2 * FourierSketch(30, 3).entries(range(30), range(1500)) ** 2 - 1
    neighbors, middle = q[:, 2:] + q[:, :-2], q[:, 1:-1]
    assert_close(neighbors[:, 1:] * middle[:, :-1], neighbors[:, :-1] * middle[:, 1:])


def test_fourier_signs_are_common_to_all_rows():
    """The product of two rows is two cosines without signs:
    p_(j+2) + p_(j−2) = a(p_(j+1) + p_(j−1)) + b p_j."""
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


@pytest.mark.parametrize(("m", "n"), [(20, 40), (39, 40), (40, 40), (60, 60)])
def test_fourier_rows_are_as_independent_as_gaussian_ones(m, n):
    """Frequencies keep apart: independent ones gave condition numbers from 1e6 to 1e10."""
    found = [
        [np.linalg.cond(cls(m, seed).entries(range(m), range(n))) for seed in range(30)]
        for cls in (FourierSketch, GaussianSketch)
    ]
    assert np.median(found[0]) < 2 * np.median(found[1])
    assert np.max(found[0]) < 1e5


def test_columns_of_merged_rows_are_added():
    """G Sᵀ over all given rows is that of the distinct rows with S merged."""
    S, X = normal(3, 7), normal(4, 2)
    group = np.array([0, 1, 0, 2, 3, 1, 0])
    merged = ArraySketch(S).merged(group, 4, None)
    assert merged.matrix.shape == (3, 4)
    G = X @ X.T
    assert_close(G @ matrix_of(merged, 4).T, G[:, group] @ S.T)


def test_columns_of_rows_without_weight_are_left_out():
    S, used = normal(3, 7), np.array([0, 2, 5, 6])
    merged = ArraySketch(S).merged(np.array([0, 1, 0, 2]), 3, used)
    expected = np.column_stack([S[:, 0] + S[:, 5], S[:, 2], S[:, 6]])
    np.testing.assert_array_equal(merged.matrix, expected)


def column(values):
    return NumpyTiles().tall(np.asarray(values, dtype=float)[:, None])


@pytest.mark.parametrize("case", ROW_CASES, ids=str)
@pytest.mark.parametrize("count", [1, 3, 50])
def test_only_rows_with_a_residual_are_proposed(case: SketchCase, count):
    residual = np.where(np.arange(60) % 3 == 1, uneven(60), 0.0)
    rows, shares = case.make(0, 60, 2).propose(count, column(residual))
    assert len(rows) == len(shares) <= count
    assert (residual[rows] > 0).all()
    assert ((shares >= 0) & (shares < 1)).all()


def test_rpcholesky_proposes_in_proportion_to_the_residual():
    """Chi-square over 6,000 independent draws, failure probability 1e-6."""
    residual = np.array([1.0, 0.0, 2.0, 3.0, 0.0, 4.0])
    draws = [RPCholeskySketch(seed=s).propose(60, column(residual))[0] for s in range(100)]
    counts = np.bincount(np.concatenate(draws), minlength=6)
    expected = 6000 * residual / residual.sum()
    some = residual > 0
    assert counts[~some].sum() == 0
    statistic = ((counts - expected)[some] ** 2 / expected[some]).sum()
    assert statistic < chi2.ppf(1 - 1e-6, some.sum() - 1)


def test_landmarks_are_uniform():
    """First landmark of 5 rows, chi-square, failure probability 1e-6."""
    residual = column(np.arange(1.0, 6.0))
    first = [LandmarkSketch(seed=seed).propose(2, residual)[0][0] for seed in range(3000)]
    counts = np.bincount(first, minlength=5)
    assert ((counts - 600) ** 2 / 600).sum() < chi2.ppf(1 - 1e-6, 4)


@pytest.mark.parametrize("name", SKETCHES)
def test_as_sketch_knows_every_name(name):
    sketch = as_sketch(name, n=10, seed=4)
    assert isinstance(sketch, SKETCHES[name])
    assert (sketch.size, sketch.seed) == (0, 4)


def test_as_sketch_takes_arrays_and_sketches():
    S = normal(3, 10)
    single = S.astype("float32")
    np.testing.assert_array_equal(as_sketch(single, n=10, seed=0).matrix, single)
    sketch = GaussianSketch(3)
    assert as_sketch(sketch, n=10, seed=0) is sketch


LANDMARK_9 = RPCholeskySketch(indices=np.array([2, 9]))
COLUMNS_5 = "one column for each of the 5 training rows"
ERRORS = {
    "unknown name": (
        lambda: as_sketch("gaus", n=5, seed=0),
        "Unknown sketch 'gaus': give 'auto', one of " + ", ".join(map(repr, SKETCHES)),
    ),
    "number": (lambda: as_sketch(7, n=5, seed=0), "Unknown sketch 7"),
    "one-dimensional": (
        lambda: as_sketch(np.ones(5), n=5, seed=0),
        COLUMNS_5 + r".*shape \(5,\)",
    ),
    "too narrow": (
        lambda: as_sketch(np.ones((2, 4)), n=5, seed=0),
        COLUMNS_5 + r".*shape \(2, 4\)",
    ),
    "no rows": (
        lambda: as_sketch(np.ones((0, 5)), n=5, seed=0),
        r"at least one row, got shape \(0, 5\)",
    ),
    "nan": (
        lambda: as_sketch(np.full((2, 5), np.nan), n=5, seed=0),
        "contains NaN or infinity",
    ),
    "complex": (
        lambda: as_sketch(np.full((2, 5), 1j), n=5, seed=0),
        "sketch array is complex; it must be real",
    ),
    "row too far": (
        lambda: as_sketch(LANDMARK_9, n=5, seed=0),
        "selects row 9, but there are only 5 training rows",
    ),
    "too many columns": (
        lambda: as_sketch(ArraySketch(np.ones((2, 9))), n=5, seed=0),
        "has 9 columns, but there are only 5",
    ),
    "negative row": (
        lambda: as_sketch(LandmarkSketch(indices=np.array([-1])), n=5, seed=0),
        r"indices of a LandmarkSketch must be an array \(m,\).*got array\(\[-1\]\)",
    ),
    "rows in a list": (
        lambda: as_sketch(RPCholeskySketch(indices=[1, 2]), n=5, seed=0),
        r"indices of a RPCholeskySketch must be an array \(m,\).*got \[1, 2\]",
    ),
    "fractions of rows": (
        lambda: as_sketch(LandmarkSketch(indices=np.array([0.5])), n=5, seed=0),
        "indices of a LandmarkSketch must be an array",
    ),
    "negative size": (
        lambda: as_sketch(GaussianSketch(size=-1), n=5, seed=0),
        "size of a GaussianSketch must be a whole number from 0 up, got -1",
    ),
    "negative seed": (
        lambda: as_sketch(LandmarkSketch(seed=-1), n=5, seed=0),
        "seed of a LandmarkSketch must be a whole number from 0 up, got -1",
    ),
    "density above 1": (
        lambda: as_sketch(SparseSketch(3, density=2), n=5, seed=0),
        "density must be above 0 and at most 1, got 2",
    ),
    "a sketch of NaN": (
        lambda: as_sketch(ArraySketch(np.full((2, 5), np.nan)), n=5, seed=0),
        "contains NaN or infinity",
    ),
    "a sketch of a list": (
        lambda: as_sketch(ArraySketch([[1.0, 2.0]]), n=5, seed=0),
        r"An ArraySketch is a real array \(m, n\), got \[\[1.0, 2.0\]\]",
    ),
    "resized array": (
        lambda: ArraySketch(np.ones((2, 9))).grown(3),
        "has 2 rows and cannot be resized to 3",
    ),
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
