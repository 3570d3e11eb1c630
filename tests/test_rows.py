"""Identical rows are one row with their weight: merging, squares within, rows that come later."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from helpers import assert_close, normal, targets, uneven
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchridge import rows as rows_module
from sketchridge.rows import Rows, merged, positions

SMALL = st.integers(-2, 2).map(float)


def by_a_dictionary(X, Y, w):
    """What merging means, row by row."""
    groups: dict[tuple[float, ...], list[int]] = {}
    for i, row in enumerate(X):
        groups.setdefault(tuple(row + 0.0), []).append(i)
    members = list(groups.values())
    first = [rows[0] for rows in members]
    weight = np.array([w[rows].sum() for rows in members])
    mean = np.array([w[rows] @ Y[rows] / w[rows].sum() for rows in members])
    within = sum(w[rows] @ (Y[rows] - m) ** 2 for rows, m in zip(members, mean, strict=True))
    return first, members, weight, mean, within


@pytest.fixture(params=["keys", "colliding keys", "one key"])
def hashing(request, monkeypatch):
    """Keys as they are, and keys by which rows that differ are taken for equal at first."""
    keys = rows_module._keys
    if request.param == "colliding keys":
        monkeypatch.setattr(rows_module, "_keys", lambda X: keys(X) % np.uint64(3))
    elif request.param == "one key":
        monkeypatch.setattr(rows_module, "_keys", lambda X: np.zeros(len(X), dtype=np.uint64))
    return request.param


@pytest.mark.usefixtures("hashing")
@given(
    X=st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=12).map(np.array),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_merging_is_grouping_in_order_of_first_appearance(X, seed):
    Y, w = targets(len(X), 2, seed), uneven(len(X), seed)
    first, members, weight, mean, within = by_a_dictionary(X, Y, w)
    rows = merged(X, Y, w)
    assert len(rows) == len(members)
    np.testing.assert_array_equal(rows.first, first)
    for j, group in enumerate(members):
        np.testing.assert_array_equal(np.flatnonzero(rows.group == j), group)
    assert_close(rows.w, weight)
    assert_close(rows.Y, mean)
    assert_close(rows.within, within, scale=w @ Y**2 @ np.ones(2))


def test_rows_that_all_differ_are_left_as_they_are():
    X, Y, w = normal(50, 3), targets(50, 2), uneven(50)
    rows = merged(X, Y, w)
    np.testing.assert_array_equal(rows.first, np.arange(50))
    np.testing.assert_array_equal(rows.group, np.arange(50))
    np.testing.assert_array_equal(rows.Y, Y)
    np.testing.assert_array_equal(rows.w, w)
    np.testing.assert_array_equal(rows.within, np.zeros(2))
    assert rows.replicates == 0


@pytest.mark.usefixtures("hashing")
def test_minus_zero_is_zero():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0]])
    rows = merged(X, targets(3), np.ones(3))
    np.testing.assert_array_equal(rows.group, [0, 0, 1])


@pytest.mark.usefixtures("hashing")
def test_neighboring_numbers_are_different_rows():
    X = np.array([[1.0], [np.nextafter(1.0, 2.0)], [1.0], [5e-324], [0.0]])
    np.testing.assert_array_equal(merged(X, targets(5), np.ones(5)).group, [0, 1, 0, 2, 3])


@pytest.mark.usefixtures("hashing")
def test_rows_with_the_same_numbers_in_another_order_differ():
    X = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])
    np.testing.assert_array_equal(merged(X, targets(3), np.ones(3)).group, [0, 1, 0])


@pytest.mark.parametrize("make", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2]])
def test_memory_order_does_not_matter(make):
    X = np.repeat(normal(6, 3), 2, axis=0)
    rows = merged(make(X), targets(12), np.ones(12))
    np.testing.assert_array_equal(rows.group, np.repeat(np.arange(6), 2))


def test_many_rows_that_differ_have_keys_that_differ():
    """Small whole numbers, whose bits are alike: 250,000 rows on a grid."""
    side = np.arange(500.0)
    X = np.column_stack([np.repeat(side, 500), np.tile(side, 500)])
    assert len(np.unique(rows_module._keys(X))) == len(X)


def test_keys_depend_on_every_column():
    X = normal(4, 5)
    for j in range(5):
        other = X.copy()
        other[:, j] += 1
        assert (rows_module._keys(other) != rows_module._keys(X)).all()


def test_equal_values_have_exactly_their_value_as_mean():
    """So that noise-free repetitions leave no squares behind."""
    X, Y = np.zeros((3, 1)), np.full((3, 1), 0.1)
    rows = merged(X, Y, np.array([0.3, 0.1, 0.7]))
    np.testing.assert_array_equal(rows.Y, [[0.1]])
    np.testing.assert_array_equal(rows.within, [0.0])


def test_an_identical_row_is_a_weight():
    """In everything that is seen from outside: a row given three times and one of weight 3."""
    X, Y = normal(5, 2), targets(5, 2)
    times = np.array([1, 3, 1, 2, 1])
    repeated = merged(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0), np.ones(8))
    weighted = merged(X, Y, times.astype(float))
    np.testing.assert_array_equal(repeated.w, weighted.w)
    np.testing.assert_array_equal(repeated.Y, weighted.Y)
    np.testing.assert_array_equal(repeated.within, weighted.within)
    assert repeated.replicates == weighted.replicates == 0


A = np.array([[1.0], [1.0], [1.0], [2.0], [2.0], [3.0]])
REPLICATES = {  # y, weights, different y less one, whether some repeat y where others differ
    "each y once": ([1, 2, 3, 4, 5, 6], [1] * 6, 3, False),
    "all alike": ([1, 1, 1, 4, 4, 6], [1] * 6, 0, False),
    "one of three differs": ([1, 1, 3, 4, 4, 6], [1] * 6, 1, True),
    "some differ": ([1, 2, 2, 4, 5, 6], [1, 2, 1, 3, 1, 5], 2, True),
    "fractions": ([1, 2, 3, 4, 5, 6], [0.5, 2.5, 1, 3, 1.5, 5], 3, False),
}


@pytest.mark.parametrize(("y", "w", "expected", "tied"), REPLICATES.values(), ids=REPLICATES)
def test_replicates_are_the_degrees_of_freedom_within(y, w, expected, tied):
    rows = merged(A, np.array(y, dtype=float)[:, None], np.array(w, dtype=float))
    assert rows.replicates == expected
    assert rows.tied is tied


@given(
    times=st.lists(st.integers(1, 4), min_size=6, max_size=6),
    y=st.lists(SMALL, min_size=6, max_size=6),
)
@settings(max_examples=40, deadline=None)
def test_repeated_rows_have_the_replicates_of_weighted_ones(times, y):
    """A row that repeats X and y of another is a row of more weight, and nothing else."""
    times, Y = np.array(times), np.array(y)[:, None]
    repeated = merged(
        np.repeat(A, times, axis=0), np.repeat(Y, times, axis=0), np.ones(times.sum())
    )
    weighted = merged(A, Y, times.astype(float))
    assert repeated.replicates == weighted.replicates
    assert_close(repeated.within, weighted.within, scale=1 + weighted.within.max())


@pytest.mark.parametrize("c", [3.0, 0.5, 0.1])
def test_replicates_do_not_depend_on_the_scale_of_the_weights(c):
    Y = np.array([[1.0], [1.0], [3.0], [4.0], [5.0], [6.0]])
    assert merged(A, Y, np.full(6, c)).replicates == merged(A, Y, np.ones(6)).replicates


def test_replicates_count_rows_that_differ_in_any_target():
    Y = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 1.0], [4.0, 4.0], [4.0, 4.0], [6.0, 6.0]])
    assert merged(A, Y, np.ones(6)).replicates == 1


# Rows that come later


@pytest.mark.usefixtures("hashing")
@given(
    X=st.lists(st.tuples(SMALL, SMALL), min_size=2, max_size=14).map(np.array),
    stops=st.lists(st.integers(1, 13), max_size=3),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_extended_is_merged_at_once(X, stops, seed):
    n = len(X)
    Y, w = targets(n, 2, seed), uneven(n, seed)
    ends = [*sorted({min(stop, n - 1) for stop in stops} or {1}), n]
    rows = merged(X[: ends[0]], Y[: ends[0]], w[: ends[0]])
    distinct = X[: ends[0]][rows.first]
    for start, stop in pairwise(ends):
        new = slice(start, stop)
        rows, fresh = rows.extended(distinct, X[new], Y[new], w[new])
        distinct = np.concatenate([distinct, X[new][fresh]])
    whole = merged(X, Y, w)
    np.testing.assert_array_equal(rows.first, whole.first)
    np.testing.assert_array_equal(rows.group, whole.group)
    np.testing.assert_array_equal(distinct, X[whole.first])
    for name in ("w", "Y", "within", "replicates"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(whole, name))


def test_extending_changes_nothing_that_was_there():
    X, Y, w = A[:4], targets(4), np.ones(4)
    rows = merged(X, Y, w)
    before = [getattr(rows, name).copy() for name in ("first", "group", "Y", "w")]
    rows.extended(X[rows.first], A[3:], targets(3), np.ones(3))
    for name, old in zip(("first", "group", "Y", "w"), before, strict=True):
        np.testing.assert_array_equal(getattr(rows, name), old)


def test_whether_old_rows_keep_their_weights():
    rows = merged(A[:4], targets(4), np.ones(4))
    distinct = A[:4][rows.first]
    other, fresh = rows.extended(distinct, A[5:], targets(1), np.ones(1))
    np.testing.assert_array_equal(fresh, [0])
    assert other.keeps_weights(rows)
    again, fresh = rows.extended(distinct, A[3:4], targets(1), np.ones(1))
    assert len(fresh) == 0
    assert not again.keeps_weights(rows)


def test_nothing_can_be_appended():
    rows = merged(A, targets(6), np.ones(6))
    same, fresh = rows.extended(A[rows.first], A[:0], targets(0), np.ones(0))
    assert len(fresh) == 0
    np.testing.assert_array_equal(same.Y, rows.Y)
    assert same.keeps_weights(rows)


@pytest.mark.usefixtures("hashing")
@given(X_new=st.lists(st.tuples(SMALL, SMALL), max_size=9))
@settings(max_examples=30, deadline=None)
def test_positions_are_where_a_row_is_found(X_new):
    X = np.array([[0.0, 1.0], [1.0, 0.0], [-2.0, -2.0], [2.0, -1.0]])
    places = {tuple(row): i for i, row in enumerate(X)}
    found = positions(X, np.array(X_new).reshape(-1, 2))
    np.testing.assert_array_equal(found, [places.get(row, -1) for row in X_new])


def test_rows_are_frozen():
    rows = merged(A, targets(6), np.ones(6))
    assert isinstance(rows, Rows)
    with pytest.raises(AttributeError):
        rows.first = np.arange(3)
