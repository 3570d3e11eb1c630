"""The pool: read in chunks, and V2 by increments equal to V2 afresh."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import assert_close_each, normal, tol

from sketchridge import SketchedKernelRidge
from sketchridge.active import pool as pool_module
from sketchridge.active.pool import Pool, PoolVariance

P, D = 150, 2


def model_of(ids, X, **options):
    y = np.sin(X[ids]).sum(axis=1) + 0.1 * np.cos(40 * X[ids, 0])
    return SketchedKernelRidge(
        **{
            "bandwidth": 1.0,
            "alpha": 0.1,
            "sketch_size": 12,
            "dtype": "float64",
            "random_state": 0,
            **options,
        }
    ).fit(X[ids], y)


def extended(model, ids, X):
    return model.partial_fit(X[ids], np.cos(X[ids, 0]))


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize("sketch", ["rpcholesky", "landmarks", "gaussian", "srht"])
@pytest.mark.parametrize("memory", [2**30, 0], ids=["memory", "file"])
def test_scores_by_increments_are_those_of_the_residual_form(sketch, fit_intercept, memory):
    """Also when the sketch grows, and for any split into rounds."""
    X = normal(P, D)
    variance = PoolVariance(Pool(X), memory=memory)
    model = model_of(np.arange(30), X, sketch=sketch, fit_intercept=fit_intercept)
    for stop, size in ((30, 12), (31, 12), (60, 12), (75, 20), (75, 25)):
        n = len(model._ridge.state.X)
        if stop > n or size > model.sketch_size_:
            model.sketch_size = size
            extended(model, np.arange(n, stop), X) if stop > n else extended(
                model, np.arange(0, 1), X
            )
        rows = np.arange(80, P)
        scores = variance(model._ridge, rows)
        assert variance.residual_form == (sketch in ("gaussian", "srht"))
        assert_close_each(scores[rows], model._ridge.v2(X[rows]), "pcg")
        assert not scores[:80].any()


def test_a_round_adds_to_the_sums_and_does_not_start_again(monkeypatch):
    X = normal(P, D)
    variance, passes = PoolVariance(Pool(X)), []
    original = PoolVariance._add_rows
    monkeypatch.setattr(
        PoolVariance,
        "_add_rows",
        lambda self, s, rows, n, r: passes.append((n, len(s.X))) or original(self, s, rows, n, r),
    )
    model = model_of(np.arange(30), X)
    variance(model._ridge, np.arange(30, P))
    variance(extended(model, np.arange(30, 40), X)._ridge, np.arange(40, P))
    variance(model._ridge, np.arange(40, P))
    assert passes == [(0, 30), (30, 40)]


def test_another_model_starts_again():
    X = normal(P, D)
    variance, rows = PoolVariance(Pool(X)), np.arange(60, P)
    for ids, options in (
        (np.arange(30), {}),
        (np.arange(30, 60), {}),
        (np.arange(30), {"bandwidth": 0.5}),
        (np.arange(30), {"random_state": 9}),
    ):
        model = model_of(ids, X, **options)
        assert_close_each(variance(model._ridge, rows)[rows], model._ridge.v2(X[rows]), "pcg")


def test_points_that_leave_the_pool_do_not_disturb_the_others():
    X = normal(P, D)
    variance, model = PoolVariance(Pool(X)), model_of(np.arange(30), X)
    variance(model._ridge, np.arange(30, P))
    rows = np.arange(31, P, 3)
    extended(model, np.setdiff1d(np.arange(30, 60), rows), X)
    assert_close_each(variance(model._ridge, rows)[rows], model._ridge.v2(X[rows]), "pcg")


def test_the_residual_form_takes_over_where_sums_lose_their_digits():
    """A smooth problem in one dimension with a tiny penalty: b²/E cancels against ‖k_x‖²."""
    X = np.linspace(0, 1, 2000)[:, None]
    model = model_of(np.arange(0, 2000, 2), X, alpha=1e-6, bandwidth=0.3, sketch_size=30)
    variance, rows = PoolVariance(Pool(X)), np.arange(1, 2000, 2)
    scores = variance(model._ridge, rows)
    assert variance.residual_form
    np.testing.assert_array_equal(scores[rows], model._ridge.v2(X[rows]))
    sums = variance._scores(model._ridge, rows)
    assert np.abs(sums[rows] / scores[rows] - 1).max() > pool_module._AGREEMENT


@pytest.mark.parametrize("chunk", [1, 7, P, 10 * P])
def test_the_size_of_chunks_changes_nothing(monkeypatch, chunk):
    X = normal(P, D)
    model, rows = model_of(np.arange(30), X), np.arange(30, P)
    expected = PoolVariance(Pool(X))(model._ridge, rows)
    monkeypatch.setattr(pool_module, "_SUMS", chunk)
    monkeypatch.setattr(pool_module, "_POINTS", chunk)
    assert_close_each(PoolVariance(Pool(X))(model._ridge, rows), expected)
    assert_close_each(Pool(X).apply(model._ridge.v3, rows)[rows], model._ridge.v3(X[rows]))


def test_statistics_in_a_file_are_those_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(pool_module.tempfile, "tempdir", str(tmp_path))
    X = normal(P, D)
    model, rows = model_of(np.arange(30), X), np.arange(30, P)
    in_file = PoolVariance(Pool(X), memory=0)
    scores = in_file(model._ridge, rows)
    assert len(list(tmp_path.iterdir())) == 2
    np.testing.assert_array_equal(scores, PoolVariance(Pool(X))(model._ridge, rows))
    del in_file
    assert not list(tmp_path.iterdir())


class Counting(np.ndarray):
    """An array that remembers the most rows ever taken from it at once."""

    most = 0

    def __getitem__(self, rows):
        part = super().__getitem__(rows)
        Counting.most = max(Counting.most, len(part) if np.ndim(part) == 2 else 0)
        return part


def test_the_pool_is_never_copied_whole(monkeypatch):
    monkeypatch.setattr(pool_module, "_SUMS", 10)
    monkeypatch.setattr(pool_module, "_POINTS", 10)
    monkeypatch.setattr(
        pool_module,
        "row_blocks",
        lambda n, width: [slice(i, min(i + 10, n)) for i in range(0, n, 10)],
    )
    X = normal(P, D)
    model = model_of(np.arange(30), X)
    PoolVariance(Pool(X.view(Counting)))(model._ridge, np.arange(30, P))
    assert Counting.most <= 64


def test_a_memory_mapped_pool_is_read_where_it_is(tmp_path):
    X = normal(P, D)
    np.save(tmp_path / "pool.npy", X)
    mapped = np.load(tmp_path / "pool.npy", mmap_mode="r")
    pool = Pool(mapped)
    assert isinstance(pool.array, np.memmap)
    assert pool.fingerprint == Pool(X).fingerprint


@pytest.mark.parametrize(
    "make",
    [
        np.asarray,
        np.asfortranarray,
        pd.DataFrame,
        pl.DataFrame,
        lambda X: X[::2],
        lambda X: X.tolist(),
    ],
)
def test_tables_and_strided_arrays_are_pools(make):
    pool = Pool(make(normal(10, 3)))
    assert pool[np.arange(2)].flags["C_CONTIGUOUS"]


def test_the_fingerprint_sees_every_value_and_the_shape():
    X = normal(40, 3)
    other = X.copy()
    other[39, 2] = np.nextafter(other[39, 2], 9)
    marks = {Pool(A).fingerprint for A in (X, other, X[::-1], X.reshape(60, 2), X[:39])}
    assert len(marks) == 5
    assert (
        Pool(X.astype(np.float32)).fingerprint
        == Pool(X.astype(np.float32).astype(float)).fingerprint
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.ones(3), "points in rows and features in columns"),
        (np.empty((0, 2)), "points in rows"),
        ([["a", "b"]], "must be numeric"),
        (np.array([[1.0, 2], [3, np.nan]]), "Row 1 of the pool"),
        (np.array([[np.inf, 2]]), "Row 0 of the pool"),
    ],
)
def test_what_is_no_pool_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        Pool(data)


def test_a_pool_of_one_point():
    X = normal(31, D)
    model = model_of(np.arange(30), X)
    scores = PoolVariance(Pool(X))(model._ridge, np.array([30]))
    assert abs(scores[30] / model._ridge.v2(X[30:])[0] - 1) < tol("pcg")
