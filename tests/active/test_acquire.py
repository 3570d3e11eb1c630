"""From scores to points: keys from (seed, round, row) alone, and draws with the right chances."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from sketchridge.active.acquire import ACQUISITIONS, exponential_keys, top, uniform, weighted

DRAWS = 20_000


def drawn(acquisition, scores, rows, count, draws=DRAWS):
    """Rows drawn in each of many rounds: (draws, count)."""
    size = len(scores)
    return np.array(
        [acquisition(scores, rows, exponential_keys(7, r, size), count)[0] for r in range(draws)]
    )


def test_keys_are_a_function_of_seed_round_and_row():
    long = exponential_keys(3, 5, 10_000)
    np.testing.assert_array_equal(exponential_keys(3, 5, 4097), long[:4097])
    for seed, round_number in ((4, 5), (3, 6)):
        assert not np.isin(exponential_keys(seed, round_number, 1000), long).any()


def test_keys_are_exponential():
    """Fails with probability 1e-6 for a wrong seed; the seed is fixed."""
    assert stats.kstest(exponential_keys(0, 0, 50_000), "expon").pvalue > 1e-6


@pytest.mark.parametrize("name", ACQUISITIONS)
@pytest.mark.parametrize("count", [1, 3, 7, 20])
def test_every_acquisition_draws_distinct_rows_of_those_allowed(name, count):
    rows = np.array([1, 4, 5, 8, 9, 10, 12])
    ids, probabilities = ACQUISITIONS[name](
        np.arange(20.0), rows, exponential_keys(0, 0, 20), count
    )
    assert len(ids) == len(probabilities) == min(count, len(rows))
    assert len(set(ids)) == len(ids)
    assert set(ids) <= set(rows)
    assert ((probabilities > 0) & (probabilities <= 1)).all()


def test_first_draw_has_the_probability_that_is_reported():
    """χ² over 20,000 rounds; a right sampler fails with probability 1e-6."""
    scores, rows = np.array([0.0, 1, 2, 3, 4, 10]), np.arange(1, 6)
    first = drawn(weighted, scores, rows, 1)[:, 0]
    expected = scores[rows] / scores[rows].sum()
    _, reported = weighted(scores, rows, exponential_keys(0, 0, 6), 5)
    order = np.argsort(weighted(scores, rows, exponential_keys(0, 0, 6), 5)[0])
    np.testing.assert_allclose(reported[order], expected)
    assert stats.chisquare(np.bincount(first, minlength=6)[rows], DRAWS * expected).pvalue > 1e-6


def test_pairs_are_drawn_as_one_after_the_other_without_replacement():
    """P(i, then j) = p_i p_j/(1 − p_i); χ² over ordered pairs, failing with probability 1e-6."""
    scores, rows = np.array([1.0, 2, 3, 4]), np.arange(4)
    p = scores / scores.sum()
    pairs = drawn(weighted, scores, rows, 2)
    cases = list(permutations(range(4), 2))
    counts = [int(((pairs[:, 0] == i) & (pairs[:, 1] == j)).sum()) for i, j in cases]
    expected = [DRAWS * p[i] * p[j] / (1 - p[i]) for i, j in cases]
    assert stats.chisquare(counts, expected).pvalue > 1e-6


def test_uniform_draws_do_not_look_at_the_scores():
    """χ² over 20,000 rounds, failing with probability 1e-6."""
    first = drawn(uniform, np.array([0.0, 1e9, 1, 2]), np.arange(4), 1)[:, 0]
    assert stats.chisquare(np.bincount(first, minlength=4)).pvalue > 1e-6


def test_zero_scores_are_drawn_evenly_and_last():
    scores, rows = np.array([0.0, 5, 0, 1e-300, 0]), np.arange(5)
    order = drawn(weighted, scores, rows, 5, draws=4000)
    assert set(order[:, 0]) == {1}
    last = order[:, 2:]
    assert stats.chisquare(np.bincount(last[:, 0], minlength=5)[[0, 2, 4]]).pvalue > 1e-6
    np.testing.assert_allclose(weighted(np.zeros(5), rows, exponential_keys(0, 0, 5), 2)[1], 0.2)


def test_top_takes_the_largest_and_breaks_ties_at_random():
    scores, rows = np.array([3.0, 1, 3, 2, 3]), np.arange(5)
    taken = drawn(top, scores, rows, 2, draws=3000)
    assert set(taken.ravel()) == {0, 2, 4}
    assert stats.chisquare(np.bincount(taken.ravel(), minlength=5)[[0, 2, 4]]).pvalue > 1e-6


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_the_scale_of_the_scores_does_not_matter(scale):
    scores, rows, keys = np.array([1.0, 2, 3]), np.arange(3), exponential_keys(0, 0, 3)
    expected = weighted(scores, rows, keys, 3)
    for actual, wanted in zip(weighted(scale * scores, rows, keys, 3), expected, strict=True):
        np.testing.assert_allclose(actual, wanted)


def test_the_scores_and_keys_are_left_as_they_were():
    scores, keys = np.array([1.0, 2, 3]), exponential_keys(0, 0, 3)
    copies = scores.copy(), keys.copy()
    weighted(scores, np.arange(3), keys, 2)
    np.testing.assert_array_equal((scores, keys), copies)
