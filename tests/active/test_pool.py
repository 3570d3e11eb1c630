"""The pool: read in chunks, and V2 by increments equal to V2 afresh."""

from __future__ import annotations

import errno
import tracemalloc
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import assert_close_each, normal, tol

from sketchridge import SketchedKernelRidge
from sketchridge.active import pool as pool_module
from sketchridge.active import scratch as scratch_module
from sketchridge.active import sums as sums_module
from sketchridge.active.pool import Pool
from sketchridge.active.sums import has_sums, pool_sums, scores_by_sums
from sketchridge.backends import NumpyTiles

P, D = 150, 2
DAY = date(2024, 3, 1)
OPTIONS = {
    "bandwidth": 1.0,
    "alpha": 0.1,
    "sketch_size": 12,
    "dtype": "float64",
    "random_state": 0,
}


def model_of(ids, X, **options):
    y = np.sin(X[ids]).sum(axis=1) + 0.1 * np.cos(40 * X[ids, 0])
    return SketchedKernelRidge(**{**OPTIONS, **options}).fit(X[ids], y)


def extended(model, ids, X):
    return model.partial_fit(X[ids], np.cos(X[ids, 0]))


def residual_v2(model, points, theta=1.0):
    fitted = model.fitted_
    return fitted.ridge.residual_form(fitted.at(points), theta)


def v2_by_sums(pool, sums, fitted):
    return scores_by_sums(pool, sums, fitted, 1.0)


class Counting(NumpyTiles):
    """A backend that remembers with how many labeled points each product was."""

    def __init__(self):
        super().__init__(workers=1)
        self.passes = []

    def moments(self, P, Q, T, **options):
        self.passes.append(("moments", len(Q), T.shape[1]))
        return super().moments(P, Q, T, **options)

    def matmul(self, P, Q, T, **options):
        self.passes.append(("matmul", len(Q), T.shape[1]))
        return super().matmul(P, Q, T, **options)


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize("sketch", ["rpcholesky", "landmarks"])
@pytest.mark.parametrize("memory", [2**30, 10_000, 0], ids=["memory", "file in time", "file"])
def test_scores_by_increments_are_those_of_the_residual_form(sketch, fit_intercept, memory):
    """Also when the sketch grows, when a label comes again, and for any split into rounds."""
    X = normal(P, D)
    pool = Pool(X)
    rows = np.arange(80, P)
    sums = None
    model = model_of(np.arange(30), X, sketch=sketch, fit_intercept=fit_intercept)
    more = [
        (0, 0, 12),
        (30, 31, 12),
        (31, 60, 12),
        (60, 75, 20),
        (0, 5, 20),
        (3, 4, 25),
        (50, 80, 25),
    ]
    for start, stop, size in more:
        if stop:
            model.sketch_size = size
            extended(model, np.arange(start, stop), X)
        rows = np.setdiff1d(rows, [80 + stop])
        sums = pool_sums(pool, rows, model.fitted_, sums, memory=memory)
        scores, again = v2_by_sums(pool, sums, model.fitted_)
        assert (sums.scratch is None) == (8 * len(rows) * (2 + model.sketch_size_) <= memory)
        assert not len(again)
        assert_close_each(scores[rows], residual_v2(model, X[rows]), "pcg")
        assert not np.delete(scores, rows).any()
        averaged, again = scores_by_sums(pool, sums, model.fitted_, 0.5)
        assert not len(again)
        assert_close_each(averaged[rows], residual_v2(model, X[rows], 0.5), "pcg")
        assert not np.delete(averaged, rows).any()


@pytest.mark.parametrize(
    "sketch", ["gaussian", "srht", np.eye(9, 30)], ids=["gaussian", "srht", "array"]
)
def test_dense_sketches_have_no_such_sums(sketch):
    X = normal(P, D)
    size = "auto" if isinstance(sketch, np.ndarray) else 12
    assert not has_sums(model_of(np.arange(30), X, sketch=sketch, sketch_size=size).fitted_)
    assert has_sums(model_of(np.arange(30), X).fitted_)


def test_a_round_takes_the_new_points_only():
    X = normal(P, D)
    pool = Pool(X)
    backend = Counting()
    model = model_of(np.arange(30), X, backend=backend)

    def passes(rows, start):
        backend.passes.clear()
        sums = pool_sums(pool, rows, model.fitted_, start)
        return backend.passes.copy(), sums

    found, sums = passes(np.arange(60, P), None)
    assert found == [("moments", 30, 13)]
    extended(model, np.arange(30, 40), X)
    found, sums = passes(np.arange(60, P), sums)
    assert found == [("moments", 10, 13)]
    found, sums = passes(np.arange(60, P, 2), sums)
    assert found == []
    extended(model, np.arange(2, 5), X)  # three rows whose weights grow
    found, sums = passes(np.arange(60, P, 2), sums)
    assert found == [("moments", 3, 13)]
    model.sketch_size = 17
    extended(model, np.arange(40, 41), X)
    found, sums = passes(np.arange(60, P, 2), sums)
    assert found == [("moments", 1, 13), ("matmul", 41, 5)]


@pytest.mark.parametrize(
    ("ids", "options"),
    [
        (np.arange(30, 60), {}),
        (np.arange(30), {"bandwidth": 0.5}),
        (np.arange(30), {"random_state": 9}),
        (np.arange(30), {"backend": NumpyTiles(workers=1)}),
        (np.arange(20), {}),
        (np.arange(30)[::-1], {"kernel": "cubic_spline"}),
    ],
)
def test_another_model_starts_again(ids, options):
    X = np.random.default_rng(0).random((P, D))
    pool, rows = Pool(X), np.arange(60, P)
    first = {"kernel": options["kernel"], "bandwidth": "median"} if "kernel" in options else {}
    sums = pool_sums(pool, rows, model_of(np.arange(30), X, **first).fitted_)
    model = model_of(ids, X, **{**first, **options})
    assert not sums.precede(model.fitted_)
    scores, _ = v2_by_sums(pool, pool_sums(pool, rows, model.fitted_, sums), model.fitted_)
    assert_close_each(scores[rows], residual_v2(model, X[rows]), "pcg")


def test_rows_that_were_not_there_start_again():
    X = normal(P, D)
    pool, model = Pool(X), model_of(np.arange(30), X)
    sums = pool_sums(pool, np.arange(80, P), model.fitted_)
    rows = np.arange(60, P, 3)
    scores, _ = v2_by_sums(pool, pool_sums(pool, rows, model.fitted_, sums), model.fitted_)
    assert_close_each(scores[rows], residual_v2(model, X[rows]), "pcg")
    assert (scores > 0).sum() == len(rows)


def test_rows_may_be_none():
    X = normal(P, D)
    pool, model, none = Pool(X), model_of(np.arange(30), X), np.empty(0, dtype=int)
    first = pool_sums(pool, np.arange(30, P), model.fitted_)
    for start in (None, first):
        for memory in (0, 2**30):
            sums = pool_sums(pool, none, model.fitted_, start, memory=memory)
            assert not v2_by_sums(pool, sums, model.fitted_)[0].any()


def test_a_campaign_that_moves_to_another_backend_goes_on_there():
    """As one does that started small, once there are rows enough for a GPU."""
    from sketchridge.backends.torch_tiles import TorchTiles

    X = normal(P, D)
    pool, rows = Pool(X), np.arange(60, P)
    sums = pool_sums(pool, rows, model_of(np.arange(30), X).fitted_)
    model = model_of(np.arange(30), X, backend=TorchTiles(device="cpu"))
    for start, stop in ((30, 40), (40, 41), (2, 4)):
        extended(model, np.arange(start, stop), X)
        sums = pool_sums(pool, rows, model.fitted_, sums)
        scores, _ = v2_by_sums(pool, sums, model.fitted_)
        assert sums.backend is model.fitted_.backend
        assert_close_each(scores[rows], residual_v2(model, X[rows]), "pcg")


@pytest.mark.parametrize("alpha", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["plain", "intercept"])
def test_points_whose_sums_lose_their_digits_are_computed_as_residuals(alpha, fit_intercept):
    """A smooth problem in one dimension: ‖k_x‖² and what explains it cancel as λ falls."""
    X = np.linspace(0, 1, 2000)[:, None]
    model = model_of(
        np.arange(0, 2000, 2),
        X,
        alpha=alpha,
        bandwidth=0.1,
        sketch_size=60,
        fit_intercept=fit_intercept,
    )
    pool, rows = Pool(X), np.arange(1, 2000, 2)
    scores, again = v2_by_sums(pool, pool_sums(pool, rows, model.fitted_), model.fitted_)
    wanted = residual_v2(model, X[rows])
    np.testing.assert_allclose(scores[rows], wanted, rtol=0.01)
    if len(again):
        np.testing.assert_allclose(scores[again], residual_v2(model, X[again]), rtol=tol("pcg"))
    assert {1e-2: not len(again), 1e-4: True, 1e-6: len(again) == len(rows)}[alpha]


@pytest.mark.parametrize("chunk", [1, 7, P, 10 * P])
def test_the_size_of_chunks_changes_nothing(monkeypatch, chunk):
    X = normal(P, D)
    pool, model, rows = Pool(X), model_of(np.arange(30), X), np.arange(30, P)
    expected, _ = v2_by_sums(pool, pool_sums(pool, rows, model.fitted_), model.fitted_)
    monkeypatch.setattr(sums_module, "_ROWS", chunk)
    monkeypatch.setattr(pool_module, "_POINTS", chunk)
    scores, _ = v2_by_sums(pool, pool_sums(pool, rows, model.fitted_), model.fitted_)
    assert_close_each(scores, expected)
    ridge, fitted = model.fitted_.ridge, model.fitted_
    v3 = pool.apply(lambda points: ridge.v3(fitted.at(points)), rows)
    assert_close_each(v3[rows], ridge.v3(fitted.at(X[rows])))


def test_sums_in_a_file_are_those_in_memory():
    X = normal(P, D)
    pool, model, rows = Pool(X), model_of(np.arange(30), X), np.arange(40, P)
    sums = {m: pool_sums(pool, rows, model.fitted_, memory=m) for m in (0, 2**30)}
    extended(model, np.arange(30, 40), X)
    found = []
    for memory, start in sums.items():
        more = pool_sums(pool, rows, model.fitted_, start, memory=memory)
        assert (more.scratch is not None) == (memory == 0)
        found.append(v2_by_sums(pool, more, model.fitted_)[0])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("memory", [2**30, 0], ids=["memory", "file"])
def test_an_update_that_fails_leaves_the_sums_there_were(memory, monkeypatch):
    X = normal(P, D)
    pool, model, rows = Pool(X), model_of(np.arange(30), X), np.arange(40, P)
    monkeypatch.setattr(sums_module, "_ROWS", 40)
    old = model.fitted_
    sums = pool_sums(pool, rows, old, memory=memory)
    before, _ = v2_by_sums(pool, sums, old)
    extended(model, np.arange(30, 40), X)
    wanted, _ = v2_by_sums(pool, pool_sums(pool, rows, model.fitted_), model.fitted_)
    moments = NumpyTiles.moments
    for calls in range(3):
        left = [calls]

        def fail(*arguments, left=left, **options):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return moments(*arguments, **options)

        monkeypatch.setattr(NumpyTiles, "moments", fail)
        with pytest.raises(KeyboardInterrupt):
            pool_sums(pool, rows, model.fitted_, sums, memory=memory)
        monkeypatch.setattr(NumpyTiles, "moments", moments)
        np.testing.assert_array_equal(v2_by_sums(pool, sums, old)[0], before)
        done = pool_sums(pool, rows, model.fitted_, sums, memory=memory)
        assert_close_each(v2_by_sums(pool, done, model.fitted_)[0], wanted)


def test_a_full_temporary_folder_is_a_sentence(monkeypatch):
    """Before any work, and the sums there were are still good (M1)."""
    X = normal(P, D)
    pool, model, rows = Pool(X), model_of(np.arange(30), X), np.arange(40, P)
    sums = pool_sums(pool, rows, model.fitted_, memory=0)
    before, _ = v2_by_sums(pool, sums, model.fitted_)

    def no_space(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scratch_module, "_allocate", no_space)
    backend = model.fitted_.backend
    monkeypatch.setattr(type(backend), "moments", None)  # no work is done
    with pytest.raises(
        OSError, match=r"statistics of the pool take 12,320 bytes.*No space left.*TMPDIR"
    ):
        pool_sums(pool, rows, model.fitted_, sums, memory=0)
    np.testing.assert_array_equal(v2_by_sums(pool, sums, model.fitted_)[0], before)


def test_sums_in_a_file_are_not_in_memory(monkeypatch):
    X = normal(20_000, D)
    monkeypatch.setattr(sums_module, "_ROWS", 1000)
    pool, model, rows = Pool(X), model_of(np.arange(100), X, sketch_size=60), np.arange(100, 20_000)
    size = 8 * 62 * len(rows)
    sums = pool_sums(pool, rows, model.fitted_, memory=0)
    extended(model, np.arange(100, 110), X)
    tracemalloc.start()
    try:
        sums = pool_sums(pool, rows, model.fitted_, sums, memory=0)
        v2_by_sums(pool, sums, model.fitted_)
        assert tracemalloc.get_traced_memory()[1] < size / 2
    finally:
        tracemalloc.stop()


class Watched(np.ndarray):
    """An array that remembers the most rows ever taken from it at once."""

    most = 0

    def __getitem__(self, rows):
        part = super().__getitem__(rows)
        Watched.most = max(Watched.most, len(part) if np.ndim(part) == 2 else 0)
        return part


def test_a_pool_that_nobody_writes_to_is_never_copied_whole(monkeypatch):
    monkeypatch.setattr(sums_module, "_ROWS", 10)
    monkeypatch.setattr(pool_module, "_POINTS", 10)
    monkeypatch.setattr(pool_module, "_BYTES", 8 * D * 10)
    X = normal(P, D).view(Watched)
    X.flags.writeable = False
    pool = Pool(X)
    assert pool.part(0) is X
    model = model_of(np.arange(30), normal(P, D))
    sums = pool_sums(pool, np.arange(30, P), model.fitted_, memory=0)
    scores, _ = v2_by_sums(pool, sums, model.fitted_)
    assert (scores[30:] > 0).all()
    assert 0 < Watched.most <= 10


def test_points_stay_placed_where_there_is_memory_for_them():
    X = normal(P, D)
    pool, model, rows = Pool(X), model_of(np.arange(30), X), np.arange(30, P)
    kept = pool_sums(pool, rows, model.fitted_, memory=2**30)
    assert all(block.query is not None for block in kept.blocks)
    again = pool_sums(pool, rows, model.fitted_, kept)
    assert again.blocks[0].query is kept.blocks[0].query
    left = pool_sums(pool, rows, model.fitted_, memory=pool.nbytes)
    assert all(block.query is None for block in left.blocks)


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_memory_mapped_pool_is_read_where_it_is(tmp_path, mode):
    X = normal(P, D)
    np.save(tmp_path / "pool.npy", X)
    mapped = np.load(tmp_path / "pool.npy", mmap_mode=mode)
    for array in (mapped, np.asarray(mapped), mapped[::2]):
        assert np.shares_memory(Pool(array).part(0), mapped)
    assert Pool(mapped).fingerprints[0] == Pool(X).fingerprints[0]


def test_a_pool_in_memory_is_copied():
    X = normal(P, D)
    for given in (X, X[::2], X.T.copy().T):
        assert not np.shares_memory(Pool(given).part(0), given)


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
    marks = {Pool(A).fingerprints[0] for A in (X, other, X[::-1], X.reshape(60, 2), X[:39])}
    assert len(marks) == 5
    single = X.astype(np.float32)
    assert Pool(single).fingerprints[0] == Pool(single.astype(float)).fingerprints[0]


def test_the_fingerprint_is_that_of_version_one():
    """Stored campaigns recognize their pool by it."""
    assert Pool(np.arange(6.0).reshape(3, 2)).fingerprints[0] == "39109dd5a143657a8a005684b71759e6"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.ones(3), "points in rows and features in columns"),
        (np.empty((0, 2)), "points in rows"),
        ([["a", "b"]], "must be numeric"),
        (pl.DataFrame({"t": [DAY, DAY], "x": [1.0, 2.0]}), "The pool has dates.* hours since"),
        (np.array([[DAY]], dtype="datetime64[s]"), "The pool has dates.* hours since a date"),
        (np.array([[1.0, 2], [3, np.nan]]), "Row 1 of the pool"),
        (np.array([[np.inf, 2]]), "Row 0 of the pool"),
        (np.ma.array([[1.0, 2.0]], mask=[[False, True]]), "masked values"),
    ],
)
def test_what_is_no_pool_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        Pool(data)


def test_a_pool_of_one_point():
    X = normal(31, D)
    pool, model = Pool(X), model_of(np.arange(30), X)
    sums = pool_sums(pool, np.array([30]), model.fitted_)
    scores, _ = v2_by_sums(pool, sums, model.fitted_)
    assert abs(scores[30] / residual_v2(model, X[30:])[0] - 1) < tol("pcg")


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(
    "rows",
    [
        3,
        -1,
        np.int64(5),
        [0, 6],
        np.array([-1, 0]),
        np.arange(7) > 4,
        slice(None, None, -2),
        np.empty(0, dtype=int),
        np.array([[1, 5], [6, 0]]),
    ],
    ids=str,
)
def test_points_are_taken_as_from_an_array(rows, parts):
    """Of several parts negative numbers gave memory that nobody had written."""
    X = normal(7, D)
    pool = Pool(X[:7] if parts == 1 else X[:4])
    for start in (4, 6)[: parts - 1]:
        pool.append(X[start : start + 2])
    np.testing.assert_array_equal(pool[rows], X[rows])
    for beyond in (7, [-8], np.array([0, 9])):
        with pytest.raises(IndexError):
            pool[beyond]
