"""Fits on a Dask cluster of processes: the numbers of one machine, whatever workers and chunks."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars
import pytest
from distributed import Client
from local_cluster import new_client, shared_client, stopped
from sklearn.base import clone

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.backends import as_backend, dask_cluster
from sketchridge.backends.dask_blocks import DaskBlocks
from sketchridge.chosen import exact_penalty
from sketchridge.dask_input import points_there

Array = np.ndarray
N, T = 5000, 40
AGREEMENT = 1e-10  # for λ ≥ 1e-6·E₁
FIXED = {"kernel": "gaussian", "bandwidth": 0.5, "dtype": "float64", "random_state": 0}
FITS: dict[str, dict[str, Any]] = {
    "landmarks": {"alpha": 0.5, "sketch_size": 60},
    "intercept": {"alpha": 0.5, "sketch_size": 60, "fit_intercept": True},
    "uniform": {"alpha": 0.5, "sketch_size": 60, "sketch": "landmarks"},
    "dense": {"alpha": 0.5, "sketch_size": 40, "sketch": "gaussian"},
    "path": {"alpha": "gcv", "sketch_size": 60},
    "leave-one-out": {"alpha": "loo", "sketch_size": 60},
    "automatic": {"alpha": "gcv"},
    "polynomial": {"kernel": "polynomial", "bandwidth": "median", "alpha": 5.0, "sketch_size": 30},
}


def problem(n: int = N) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    y = np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    return X, y, rng.random((T, 3))


def blocks(rows: int = 1200, client: Client | None = None) -> DaskBlocks:
    return DaskBlocks(client or shared_client(), rows=rows)


def fitted(backend: Any, weights: Array | None = None, **settings: Any) -> SketchedKernelRidge:
    X, y, _ = problem()
    return SketchedKernelRidge(**FIXED | settings, backend=backend).fit(X, y, weights)


def answers(model: SketchedKernelRidge) -> dict[str, Any]:
    """Means, variances and intervals; V2 and V̄ as residuals, which rounding moves least."""
    X = problem()[2]
    ridge, query = model.fitted_.ridge, model.fitted_.at(X)
    return {
        "lambda": model.lambda_,
        "mean": model.predict(X),
        "v2": ridge.residual_form(query, 1.0),
        "vbar": ridge.residual_form(query, 0.5),
        "v3": model.variance(X, "v3"),
        "gp": model.variance(X, "gp"),
        "interval": np.stack(model.predict_interval(X)),
        "noise": model.noise_variance_,
    }


def assert_agree(actual: dict[str, Any], desired: dict[str, Any], tol: float = AGREEMENT) -> None:
    for name, value in desired.items():
        scale = np.abs(value).max()
        assert np.abs(actual[name] - value).max() <= tol * scale, name


@pytest.mark.parametrize("settings", FITS.values(), ids=FITS)
def test_a_cluster_gives_the_numbers_of_one_machine(settings):
    there, here = fitted(blocks(), **settings), fitted("numpy", **settings)
    assert there.backend_ == "dask"
    assert there.lambda_ >= 1e-6 * there.eigenvalues_[0]
    assert_agree(answers(there), answers(here))
    if not here.fitted_.factor.complete:  # else it is rounding alone
        bounds = [model.certificate_.relative for model in (there, here)]
        np.testing.assert_allclose(*bounds, rtol=AGREEMENT)


@pytest.mark.parametrize("sketch", ["rademacher", "sparse", "srht", "fourier", "array"])
def test_every_dense_sketch(sketch):
    """Whose entries are made where the columns are; those of an array are sent."""
    X, y, Xt = problem(1500)
    S = np.random.default_rng(1).standard_normal((30, 1500)) if sketch == "array" else sketch
    settings = FIXED | {"alpha": 0.5, "sketch": S}
    settings |= {} if sketch == "array" else {"sketch_size": 30}
    models = [SketchedKernelRidge(**settings, backend=b).fit(X, y) for b in (blocks(400), "numpy")]
    for ask in ("predict", "variance"):
        there, here = (getattr(model, ask)(Xt) for model in models)
        np.testing.assert_allclose(there, here, rtol=0, atol=1e-9 * np.abs(here).max())


TOLERANCES: dict[str, tuple[float, Callable[[Any, Array], Any]]] = {
    "v2": (1e-8, lambda model, X: model.variance(X, "v2")),
    "vbar": (1e-8, lambda model, X: model.variance(X, "vbar")),
    "vtheta": (1e-7, lambda model, X: model.variance(X, "vtheta")),
    "std": (1e-8, lambda model, X: model.predict(X, return_std=True)[1]),
    "v1": (1e-6, lambda model, X: model.variance(X[:5], "v1", tol=1e-6)),
    "bound": (1e-8, lambda model, X: model.variance(X[:5], "vbar", return_bound=True)[1]),
    "loo": (AGREEMENT, lambda model, X: model.loo_error_),
    "errors": (AGREEMENT, lambda model, X: model.fitted_.loo_errors),
    "path": (AGREEMENT, lambda model, X: model.path_.loo),
    "gap": (1e-8, lambda model, X: model.gap_),
    "sketch error": (5e-8, lambda model, X: model.sketch_error_),
}  # those of one pass over 5,000 rows as docs/scaling.md has them


@lru_cache
def there_and_here(alpha: float) -> tuple[SketchedKernelRidge, SketchedKernelRidge]:
    settings = FITS["intercept"] | {"alpha": alpha, "solver": "sketch"}
    return fitted(blocks(), **settings), fitted("numpy", **settings)


@pytest.mark.parametrize("alpha", [0.5, 3e-3])
@pytest.mark.parametrize("name", TOLERANCES)
def test_each_answer_is_that_of_one_machine(name, alpha):
    """As it is asked for, by the way that takes one pass."""
    tol, ask = TOLERANCES[name]
    X = problem()[2]
    there, here = there_and_here(alpha)
    assert there.lambda_ >= 1e-6 * there.eigenvalues_[0]
    actual, desired = ask(there, X), np.asarray(ask(here, X))
    scale = abs(desired).max() if desired.min() < 0 else 0.0  # errors pass through 0
    np.testing.assert_allclose(actual, desired, rtol=tol, atol=tol * scale)


def test_weights_and_several_targets():
    X, y, Xt = problem()
    Y, w = np.column_stack([y, y**2]), np.random.default_rng(1).integers(0, 3, N).astype(float)
    settings = FIXED | FITS["intercept"]
    models = [
        SketchedKernelRidge(**settings, backend=backend).fit(X, Y, w)
        for backend in (blocks(), "numpy")
    ]
    there, here = models
    np.testing.assert_allclose(there.predict(Xt), here.predict(Xt), rtol=AGREEMENT)
    np.testing.assert_allclose(there.variance(Xt, "v3"), here.variance(Xt, "v3"), rtol=AGREEMENT)


def test_exact_mean_refinement_and_norm_certificate():
    settings = FITS["intercept"] | {"solver": "pcg"}
    there, here = fitted(blocks(), **settings), fitted("numpy", **settings)
    X = problem()[2][:3]
    assert there.solver_ == "pcg"
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=1e-8)  # as both are solved
    for model in (there, here):
        v, bound = model.variance(X, "vbar", refine=1, return_bound=True)
        assert (bound < np.sqrt(v)).all()
    np.testing.assert_allclose(there.variance(X, "v1", tol=1e-6), here.variance(X, "v1", tol=1e-6))
    norms = [model.certificate("norm").norm for model in (there, here)]
    np.testing.assert_allclose(*norms, rtol=1e-8)


def test_rows_are_appended():
    X, y, Xt = problem()
    settings = FIXED | FITS["intercept"]
    models = [SketchedKernelRidge(**settings, backend=b) for b in (blocks(), "numpy")]
    for model in models:
        model.fit(X[:4000], y[:4000]).partial_fit(X[4000:], y[4000:])
    there, here = (model.predict(Xt) for model in models)
    np.testing.assert_allclose(there, here, rtol=AGREEMENT)


# Workers and chunks


@lru_cache
def few_workers() -> Client:
    return new_client(1)


@pytest.mark.parametrize("settings", [FITS["intercept"], FITS["leave-one-out"]], ids=str)
def test_one_worker_and_two_agree_bit_for_bit(settings):
    one, two = (answers(fitted(blocks(client=c), **settings)) for c in clients())
    for name, value in one.items():
        np.testing.assert_array_equal(two[name], value)


@pytest.mark.slow
def test_four_workers_agree_bit_for_bit_with_two():
    """Of seven blocks, so that some workers have one and some two."""
    client = new_client(4)
    try:
        for settings in (FITS["intercept"], FITS["leave-one-out"], FITS["dense"]):
            two, four = (
                answers(fitted(blocks(800, c), **settings)) for c in (shared_client(), client)
            )
            for name, value in two.items():
                np.testing.assert_array_equal(four[name], value, err_msg=name)
    finally:
        stopped(client)


def clients() -> list[Client]:
    return [few_workers(), shared_client()]


def test_chunks_do_not_matter():
    X, y, _ = problem()
    found = []
    for chunks in ((700, 3), (1700, 2), (5000, 1)):
        model = SketchedKernelRidge(**FIXED | FITS["intercept"], backend=blocks())
        found.append(answers(model.fit(da.from_array(X, chunks=chunks), y)))
    for other in found[1:]:
        for name, value in found[0].items():
            np.testing.assert_array_equal(other[name], value)


def test_blocks_depend_on_the_number_of_rows_alone():
    for n in (10_000, 20_000, 200_000, 20_000_000, 10**9):
        starts = as_backend("dask").starts(n)
        sizes = np.diff(starts)
        assert (starts[0], starts[-1]) == (0, n)
        assert sizes.max() <= 2**16
        assert (sizes > 0).all()


# Dask's arrays and data frames


def test_a_dask_array_is_fitted_where_it_lies():
    X, y, _ = problem()
    X[::50] = X[0]  # repeated rows are merged
    w = np.ones(N)
    w[:7] = 0
    settings = FIXED | FITS["intercept"]
    lazy = [da.from_array(A, chunks=900) for A in (X, y, w)]
    there = SketchedKernelRidge(**settings, backend=blocks()).fit(*lazy)
    here = SketchedKernelRidge(**settings).fit(X, y, w)
    assert there.fitted_.data.X.blocks  # futures
    assert_agree(answers(there), answers(here))


def test_a_learned_kernel_is_that_of_one_machine():
    X, y, Xt = problem()
    settings = {"kernel": "matern52", "bandwidth": "ard", "random_state": 0, "sketch_size": 50}
    there = SketchedKernelRidge(**settings, backend=blocks()).fit(da.from_array(X), y)
    here = SketchedKernelRidge(**settings).fit(X, y)
    np.testing.assert_array_equal(there.bandwidth_, here.bandwidth_)
    np.testing.assert_allclose(there.predict(Xt), here.predict(Xt), rtol=1e-8)


def test_a_data_frame_in_and_lazy_answers_out():
    X, y, Xt = problem()
    frame = pd.DataFrame(X, columns=list("abc"))
    lazy = dd.from_pandas(frame, npartitions=4)
    there = SketchedKernelRidge(**FIXED | FITS["intercept"], backend=blocks())
    there.fit(lazy, dd.from_pandas(pd.Series(y), npartitions=3))
    here = SketchedKernelRidge(**FIXED | FITS["intercept"]).fit(frame, y)
    assert list(there.feature_names_in_) == list("abc")
    some = dd.from_pandas(pd.DataFrame(Xt, columns=list("abc")), npartitions=2)
    mean, std = there.predict(some, return_std=True)
    low, high = there.predict_interval(some, 0.8)
    variance = there.variance(some, "v3")
    assert {type(A) for A in (mean, std, low, high, variance)} == {da.Array}
    wanted = pd.DataFrame(Xt, columns=list("abc"))
    for A, B in zip(
        (mean, std, low, high, variance),
        (
            *here.predict(wanted, return_std=True),
            *here.predict_interval(wanted, 0.8),
            here.variance(wanted, "v3"),
        ),
        strict=True,
    ):
        np.testing.assert_allclose(shared_client().compute(A).result(), B, rtol=1e-8)


def test_the_penalty_of_the_exact_problem_is_that_of_one_machine():
    """It is compared on more rows than blocks have here, which were not factorized then."""
    models = [fitted(backend, **FITS["intercept"]).fitted_ for backend in (blocks(), "numpy")]
    there, here = (exact_penalty(one.sample, one.data, True) for one in models)
    assert there.alpha == pytest.approx(here.alpha, rel=1e-8)
    assert there.error == pytest.approx(here.error, rel=1e-8)


FRAMES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "flags": lambda frame: frame.assign(flag=frame.a > 0.5),
    "nullable": lambda frame: frame.assign(flag=frame.a > 0.5).convert_dtypes(),
    "categories": lambda frame: frame.assign(flag=pd.Categorical((frame.a > 0.5).astype(int))),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_a_dask_frame_holds_what_a_pandas_frame_does(make):
    X, y, Xt = problem(3000)
    frame, few = (make(pd.DataFrame(A, columns=list("abc"))) for A in (X, Xt))
    settings = FIXED | FITS["landmarks"]
    here = SketchedKernelRidge(**settings).fit(frame, y)
    there = SketchedKernelRidge(**settings, backend=blocks())
    there.fit(dd.from_pandas(frame, npartitions=3), y)
    assert there.backend_ == "dask"
    np.testing.assert_allclose(there.predict(few), here.predict(few), rtol=AGREEMENT)
    lazy = there.predict(dd.from_pandas(few, npartitions=2))
    np.testing.assert_allclose(lazy.compute(), here.predict(few), rtol=AGREEMENT)


def test_columns_that_are_no_numbers_are_named():
    X, y, _ = problem(3000)
    frame = pd.DataFrame(X, columns=list("abc")).assign(when=pd.Timestamp(0), what="x")
    model = SketchedKernelRidge(**FIXED, backend=blocks())
    with pytest.raises(ValueError, match=r"no numbers \('when' of type datetime.*, 'what' of type"):
        model.fit(dd.from_pandas(frame, npartitions=3), y)


@pytest.mark.parametrize("chunked", [False, True], ids=["numpy", "dask"])
def test_a_kernel_matrix_on_a_cluster(chunked):
    X, y, _ = problem(400)
    K = X @ X.T
    settings = {"kernel": "precomputed", "alpha": 1.0, "dtype": "float64", "random_state": 0}
    given = da.from_array(K, chunks=(100, 400)) if chunked else K
    there = SketchedKernelRidge(**settings, backend=blocks(100)).fit(given, y)
    here = SketchedKernelRidge(**settings).fit(K, y)
    np.testing.assert_allclose(there.predict(K[:5]), here.predict(K[:5]), rtol=AGREEMENT)
    lazy = there.predict(da.from_array(K[:5], chunks=(2, 400)))
    np.testing.assert_allclose(lazy.compute(), here.predict(K[:5]), rtol=AGREEMENT)


def test_scores_of_dask_are_numbers():
    X, y, _ = problem(3000)
    model = SketchedKernelRidge(**FIXED | FITS["landmarks"], backend=blocks())
    array, target = da.from_array(X, chunks=(700, 3)), da.from_array(y, chunks=900)
    wanted = model.fit(array, target).score(X, y)
    assert isinstance(wanted, float)
    some = array[:, 0] > 0.5
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    for rows, of in ((array, target), (frame, dd.from_pandas(pd.Series(y), npartitions=2))):
        assert model.score(rows, of) == pytest.approx(wanted, rel=1e-12)
    inside = X[:, 0] > 0.5
    unknown = model.score(array[some], target.rechunk(700)[some])
    assert unknown == pytest.approx(model.score(X[inside], y[inside]), rel=1e-12)
    w = np.linspace(0, 1, 3000)
    weighted = model.score(array, target, da.from_array(w, chunks=1000))
    assert weighted == pytest.approx(model.score(X, y, w), rel=1e-12)


def test_lazy_answers_of_any_model():
    X, y, Xt = problem(300)
    lazy = da.from_array(Xt, chunks=(15, 2))
    model = SketchedKernelRidge(**FIXED | FITS["landmarks"]).fit(X, np.column_stack([y, -y]))
    mean, v2 = model.predict(lazy), model.variance(lazy)
    assert (mean.shape, mean.chunks[0], v2.shape) == ((T, 2), (15, 15, 10), (T, 2))
    np.testing.assert_allclose(mean.compute(), model.predict(Xt), rtol=1e-12)
    np.testing.assert_allclose(v2.compute(), model.variance(Xt), rtol=1e-9)
    none = lazy[lazy[:, 0] > 2]  # chunks of unknown length, all empty
    assert model.predict(none).compute().shape == (0, 2)
    exact = ExactKernelRidge(alpha=1.0).fit(da.from_array(X), da.from_array(y))
    assert isinstance(exact.predict(lazy), np.ndarray)


def test_a_model_of_a_cluster_is_saved_and_copied():
    there = fitted(blocks(), **FITS["intercept"])
    X = problem()[2]
    saved = pickle.dumps(there)
    with pytest.warns(UserWarning, match="computes with NumPy here.*needs a Dask client"):
        copied = pickle.loads(saved)  # there is no client of the process
    assert copied.backend_ == "numpy"
    np.testing.assert_allclose(copied.predict(X), there.predict(X), rtol=AGREEMENT)
    assert clone(there).backend.rows == 1200


# Errors


def lazy_with(value: float) -> da.Array:
    X = problem()[0]
    X[N // 2, 1] = value
    return da.from_array(X, chunks=1000)


ERRORS = {
    "NaN": (lazy_with(np.nan), "Input X contains NaN or infinity: fill or drop such rows"),
    "infinity": (lazy_with(np.inf), "Input X contains NaN or infinity"),
    "one dimension": (da.zeros(N), "X must be a table of rows and columns, got 1 dim"),
    "text": (da.from_array(np.full((N, 2), "a")), "X has columns that are no numbers"),
    "lengths": (da.zeros((N + 1, 3)), "inconsistent numbers of samples"),
}


@pytest.mark.parametrize(("X", "text"), ERRORS.values(), ids=ERRORS)
def test_error_is_a_sentence(X, text):
    model = SketchedKernelRidge(**FIXED, backend=blocks())
    with pytest.raises(ValueError, match=text):
        model.fit(X, problem()[1])
    assert not hasattr(model, "n_features_in_")


def delayed_rows() -> Any:
    return dask.delayed(np.ones)((5, 3))


@pytest.mark.parametrize("make", [delayed_rows, lambda: polars.LazyFrame({"a": [1.0, 2.0]})])
def test_what_is_not_computed_is_told(make):
    """Before polars resolves a schema, with a warning."""
    X, y, _ = problem(50)
    model = SketchedKernelRidge(**FIXED).fit(X, y)
    told = r"X is a (Delayed|LazyFrame), whose rows are not there yet: give X\.(compute|collect)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in (model.predict, model.variance, lambda given: clone(model).fit(given, y)):
            with pytest.raises(ValueError, match=told):
                ask(make())
        with pytest.raises(ValueError, match="y is a Delayed"):
            model.fit(X, dask.delayed(list)(y))


def test_a_client_is_needed():
    X, y, _ = problem(9000)
    with pytest.raises(RuntimeError, match="needs a Dask client, and there is none"):
        SketchedKernelRidge(**FIXED, alpha=1.0, backend="dask").fit(X, y)


def fit_inside() -> None:
    X, y, _ = problem(9000)
    SketchedKernelRidge(**FIXED, alpha=1.0, backend="dask").fit(X, y)


def test_a_cluster_inside_a_task_is_refused():
    """As in the folds of dask_ml's GridSearchCV."""
    with pytest.raises(RuntimeError, match=r"inside a task of Dask's.*: give backend='numpy'"):
        shared_client().submit(fit_inside).result()


def test_the_exact_problem_is_not_distributed():
    X, y, _ = problem(3000)
    with pytest.raises(ValueError, match=r"3,000 × 3,000 kernel matrix, which is not distributed"):
        ExactKernelRidge("gaussian", bandwidth=0.5, alpha=1.0, backend=blocks()).fit(X, y)


# Faults


def kill_a_worker(client: Client) -> None:
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)


def test_tasks_for_a_worker_that_is_gone_go_to_another(monkeypatch):
    """Sent while there was none, and the next has another address."""
    monkeypatch.setattr(dask_cluster, "_LOOK", 0.5)
    client = new_client(1)
    cluster = blocks(client=client).cluster
    assert cluster.gathered(cluster.each(abs, [-1])) == [1]  # its worker is remembered
    client.cluster.scale(0)
    while client.scheduler_info()["workers"]:
        time.sleep(0.01)
    monkeypatch.setattr(dask_cluster, "_FRESH", 60.0)
    futures = cluster.each(abs, [-2, -3])
    time.sleep(0.2)
    client.cluster.scale(1)
    assert cluster.gathered(futures) == [2, 3]
    stopped(client)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["fit", "scoring", "refinement"])
def test_a_killed_worker_does_not_change_the_result(what):
    """Bit for bit: blocks, and the order in which sums are added, are the same."""
    client = new_client(2)
    try:
        model = fitted(blocks(500, client), **FITS["intercept"])
        work = {
            "fit": lambda: answers(fitted(blocks(500, client), **FITS["intercept"])),
            "scoring": lambda: {"v2": model.variance(problem()[0][:2000])},
            "refinement": lambda: {"v1": model.variance(problem()[2], "v1", tol=1e-3)},
        }[what]
        start = time.monotonic()
        wanted = work()
        killer = threading.Timer((time.monotonic() - start) / 3, kill_a_worker, [client])
        killer.start()
        found = work()
        killer.join()
        for name, value in wanted.items():
            np.testing.assert_array_equal(found[name], value)
    finally:
        stopped(client)


def test_a_task_that_failed_is_told_while_others_wait(monkeypatch):
    monkeypatch.setattr(dask_cluster, "_LOOK", 0.2)
    client = shared_client()
    failed = client.submit(divmod, 1, 0)
    nowhere = client.submit(abs, -1, workers=["tcp://127.0.0.1:1"])
    with pytest.raises(ZeroDivisionError):
        blocks().cluster.gathered([nowhere, failed])


def test_a_worker_short_of_memory_spills():
    """To disk what is beyond a hundredth of its limit; the result is the same."""
    with dask.config.set({"distributed.worker.memory.target": 0.01}):
        client = new_client(1, memory_limit="1GB")
    try:
        found = answers(fitted(blocks(500, client), **FITS["intercept"] | {"sketch_size": 400}))
        spilled = client.run(lambda dask_worker: dask_worker.data.spilled_total.disk)
    finally:
        stopped(client)
    assert min(spilled.values()) > 0
    wanted = answers(fitted(blocks(500), **FITS["intercept"] | {"sketch_size": 400}))
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.slow
def test_a_block_that_is_too_large_for_a_worker_is_told():
    """Its nanny ends a worker that is near its limit, here at the first block of F."""
    idle = shared_client().run(lambda dask_worker: dask_worker.monitor.get_process_memory())
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        client = new_client(1, memory_limit=max(idle.values()) + 2**27)
    try:
        X, y, _ = problem(60_000)
        backend = blocks(30_000, client)
        model = SketchedKernelRidge(**FIXED, alpha=0.5, sketch_size=800, backend=backend)
        with pytest.raises(MemoryError, match=r"more memory than they have: give workers more"):
            model.fit(X, y)
        assert not hasattr(model, "n_features_in_")
    finally:
        stopped(client)


@pytest.mark.slow
def test_a_lost_scheduler_is_told():
    client = new_client(1)
    model = fitted(blocks(500, client), **FITS["intercept"])
    before = model.predict(problem()[2])
    client.cluster.close()
    X, y, Xt = problem()
    with pytest.raises(RuntimeError, match=r"is lost .*: start a new cluster and Client"):
        model.fit(X, y)
    np.testing.assert_array_equal(model.predict(Xt), before)  # of landmarks, which are here
    stopped(client)


@pytest.mark.slow
def test_an_interruption_cancels_the_work():
    client = new_client(1)
    threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        fitted(blocks(50, client), **FITS["leave-one-out"])
    time.sleep(1.0)
    assert not any(client.processing().values())
    stopped(client)


def unreadable(block: Array) -> Array:
    raise FileNotFoundError("No such file: rows-0.npy")


def test_a_file_that_workers_do_not_see_is_told():
    """It is no lost scheduler, although errors of connections are OSErrors too."""
    X, y, _ = problem(3000)
    lazy = da.from_array(X, chunks=(700, 3)).map_blocks(unreadable, dtype=float, meta=X[:0])
    with pytest.raises(FileNotFoundError, match="No such file: rows-0"):
        SketchedKernelRidge(**FIXED, backend=blocks()).fit(lazy, y)


def fatal(frame: pd.DataFrame) -> pd.DataFrame:
    os._exit(1)


@pytest.mark.slow
def test_a_partition_that_is_too_large_for_a_worker_is_told():
    """Where its rows are counted, before anything else."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        client = new_client(1)
    try:
        X, y, _ = problem(3000)
        frame = pd.DataFrame(X, columns=list("abc"))
        lazy = dd.from_pandas(frame, npartitions=2).map_partitions(fatal, meta=frame)
        with pytest.raises(MemoryError, match=r"give workers more, or smaller partitions"):
            SketchedKernelRidge(**FIXED, backend=blocks(client=client)).fit(lazy, y)
    finally:
        stopped(client)


def made(part: int, columns: list[str] | None = None, folder: Any = None) -> pd.DataFrame:
    """A part of a frame, which notes the columns that it was asked for."""
    frame = pd.DataFrame(problem(3000)[0], columns=list("abc"))[part::3]
    frame = frame if columns is None else frame[columns]
    (folder / f"{part}-{''.join(frame)}").touch()
    return frame


def test_rows_of_a_frame_are_counted_by_one_column(tmp_path):
    meta = pd.DataFrame(np.empty((0, 3)), columns=list("abc"))
    lazy = dd.from_map(made, range(3), folder=tmp_path, meta=meta)
    rows = points_there(lazy, blocks())
    assert {"0-a", "1-a", "2-a"} <= {path.name for path in tmp_path.iterdir()}
    np.testing.assert_array_equal(rows.take(slice(0, 1000)), problem(3000)[0][::3])
