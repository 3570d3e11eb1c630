"""Many threads at once: answers are those of one, and BLAS is left as it was found."""

import multiprocessing
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from helpers import assert_close
from problems import classes, points, values
from threadpoolctl import threadpool_info, threadpool_limits

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.backends import NumpyTiles, threads

THREADS = 8
CLOSE = 1e-12  # what an order of summation may change
A = points(400, d=3)
B = values(A, q=2)
Z = points(200, d=3, seed=1)
OPTIONS = {"alpha": 0.5, "bandwidth": 0.7, "fit_intercept": True}


def blas_threads() -> list[tuple[str, int]]:
    return [(library["filepath"], library["num_threads"]) for library in threadpool_info()]


@pytest.fixture(autouse=True)
def as_before():
    """Whatever a test does, BLAS has as many threads afterwards as it had, and more than one."""
    before = blas_threads()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that threads meet in the middle of things
    yield
    sys.setswitchinterval(interval)
    assert blas_threads() == before


def at_once(function, count=THREADS):
    """What the function gives in so many threads, which start together."""
    barrier = threading.Barrier(count)

    def job(number):
        barrier.wait()
        return function(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(job, range(count)))


def new(cls):
    more = {"random_state": 0, "dtype": "float64"} if cls is SketchedKernelRidge else {}
    return cls(**OPTIONS, **more)


def answers(model):
    kinds = ("v1", "gp", "bias2") if isinstance(model, ExactKernelRidge) else ("v2", "v3", "gp")
    return [*model.predict(Z, return_std=True), *(model.variance(Z, kind) for kind in kinds)]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=CLOSE * np.abs(other).max())


@classes
def test_questions_from_many_threads(cls):
    """Eight threads, three rounds of every question: it left BLAS at one thread for ever."""
    model = new(cls).fit(A, B)
    expected = answers(model)
    for found in at_once(lambda number: [answers(model) for _ in range(3)]):
        for each in found:
            assert_same(each, expected)


@classes
def test_the_first_questions_of_a_model_may_be_asked_at_once(cls):
    """What is computed when it is first needed must not be seen half made."""
    expected = answers(new(cls).fit(A, B))
    for _ in range(3):
        model = new(cls).fit(A, B)
        for found in at_once(lambda number, model=model: answers(model)):
            assert_same(found, expected)


@classes
def test_attributes_of_one_model_in_many_threads(cls):
    expected = new(cls).fit(A, B)
    names = ("loo_error_", "eigenvalues_", "noise_variance_", "effective_dof_")
    model = new(cls).fit(A, B)
    for found in at_once(lambda number: [getattr(model, name) for name in names]):
        for one, name in zip(found, names, strict=True):
            assert_close(one, getattr(expected, name))


@classes
def test_fits_in_many_threads(cls):
    expected = [answers(new(cls).fit(A[: 300 + 10 * i], B[: 300 + 10 * i])) for i in range(THREADS)]
    found = at_once(lambda i: answers(new(cls).fit(A[: 300 + 10 * i], B[: 300 + 10 * i])))
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)


def test_fits_that_choose_by_themselves_in_many_threads():
    def fit(number):
        model = SketchedKernelRidge(random_state=number, dtype="float64")
        return model.fit(A, B[:, 0]).predict(Z, return_std=True)

    expected = [fit(number) for number in range(THREADS)]
    for one, other in zip(at_once(fit), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def test_refined_variances_in_many_threads():
    model = new(SketchedKernelRidge).set_params(sketch_size=30).fit(A, B)
    expected = model.variance(Z, refine=3, return_bound=True)
    for found in at_once(lambda number: model.variance(Z, refine=3, return_bound=True)):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_one_backend_object_may_serve_many_models():
    backend = NumpyTiles(workers=2)
    model = new(SketchedKernelRidge).set_params(backend=backend)
    expected = answers(new(SketchedKernelRidge).fit(A, B))

    def fit(number):
        each = SketchedKernelRidge(**model.get_params())
        return answers(each.fit(A, B))

    for found in at_once(fit):
        assert_same(found, expected)


def test_a_kernel_of_the_users_is_called_from_several_threads_at_once():
    inside = []

    def slow(U, V):
        inside.append(threading.get_ident())
        return np.exp(-((U[:, None] - V[None]) ** 2).sum(axis=2))

    backend = NumpyTiles(workers=4, tile=64)
    SketchedKernelRidge(slow, alpha=1.0, backend=backend, random_state=0).fit(A, B).variance(Z)
    assert len(set(inside)) > 1


# BLAS is one for the process


def test_the_last_to_leave_restores_what_was():
    before = blas_threads()
    barrier = threading.Barrier(THREADS)

    def hold(number):
        for _ in range(20):
            with threads.one_blas_thread():
                barrier.wait()
                with threads.one_blas_thread():
                    inside = [n for path, n in blas_threads() if "blas" in path.lower()]
                assert set(inside) == {1}
                barrier.wait()

    at_once(hold)
    assert blas_threads() == before


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_inside_restores_what_was(error):
    before = blas_threads()
    with pytest.raises(error), threads.one_blas_thread():
        raise error
    assert blas_threads() == before
    with pytest.raises(error):
        threads.in_threads(2, [lambda: 1, lambda: raise_(error)])
    assert blas_threads() == before


def raise_(error):
    raise error


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_limit_of_the_callers_stays(limit):
    model = new(SketchedKernelRidge).fit(A, B)
    with threadpool_limits(limit, user_api="blas"):
        before = blas_threads()
        at_once(lambda number: model.predict(Z, return_std=True))
        assert blas_threads() == before


def test_entered_in_one_thread_and_left_in_another():
    before = blas_threads()
    context = threads.one_blas_thread()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(context.__enter__).result()
    context.__exit__(None, None, None)
    assert blas_threads() == before


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this platform does not fork"
)
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fit_works_after_a_fork(held):
    """In the child the thread that holds BLAS is gone, whether or not it is held at that moment."""
    expected = answers(new(SketchedKernelRidge).fit(A, B))
    context = multiprocessing.get_context("fork")
    with threads.one_blas_thread() if held else nullcontext():
        pool = context.Pool(1)
    with pool:
        found = pool.apply_async(fit_in_a_fork).get(timeout=60)
    assert_same(found, expected)


def fit_in_a_fork():
    return answers(new(SketchedKernelRidge).fit(A, B))


def test_results_come_in_the_order_of_the_jobs():
    jobs = [lambda i=i: i**2 for i in range(50)]
    assert threads.in_threads(4, jobs) == [i**2 for i in range(50)]
    assert threads.in_threads(1, jobs) == [i**2 for i in range(50)]
    assert threads.in_threads(4, []) == []
