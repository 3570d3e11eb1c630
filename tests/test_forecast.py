"""How long the exact mean takes is known before, and the preconditioner is the one that pays."""

from __future__ import annotations

import itertools
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import assert_close, normal

from sketchridge import SketchedKernelRidge, forecast, refine, regressor, selection, solution
from sketchridge.backends import NumpyTiles
from sketchridge.backends import base as backends_base
from sketchridge.forecast import foreseen

X = np.random.default_rng(0).uniform(-1, 1, (900, 3))
y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.05 * normal(900, 1)[:, 0]
GIVEN = {"fit_intercept": True, "random_state": 0, "sketch_size": 60}


def fitted(kernel="matern32", bandwidth=1.0, alpha=1e-2, solver="sketch", **options):
    model = SketchedKernelRidge(kernel, bandwidth=bandwidth, alpha=alpha, solver=solver)
    return model.set_params(**{**GIVEN, **options}).fit(X, y)


@pytest.fixture
def large(monkeypatch):
    """As for rows so many that the matrix is not factorized and the time is foreseen."""
    monkeypatch.setattr(selection, "_COMPLETE", 100)
    monkeypatch.setattr(NumpyTiles, "dense_rows", 0)
    monkeypatch.setattr(solution, "_LARGE", 100)


@pytest.fixture
def products(monkeypatch):
    """How many products with the kernel matrix there were."""
    counted = []
    product = refine.System.product

    def counting(system, Z):
        counted.append(Z.shape[1])
        return product(system, Z)

    monkeypatch.setattr(refine.System, "product", counting)
    return counted


@pytest.mark.parametrize("kernel", ["matern32", "matern52", "gaussian"])
@pytest.mark.parametrize("alpha", [1e-3, 1e-1])
def test_steps_are_as_many_as_foreseen(kernel, alpha, products):
    ridge = fitted(kernel, alpha=alpha).fitted_.ridge
    found = foreseen(ridge, tol=1e-3, columns=1, step="float64", largest=60, seed=0)
    assert found.size == 60
    refine.exact_mean(ridge, tol=1e-3, step="float64")
    assert len(products) / 2 - 3 <= found.steps <= 2 * len(products) + 3


def test_a_larger_sketch_is_foreseen_to_save_steps():
    ridge = fitted(alpha=1e-3).fitted_.ridge
    sizes = [
        foreseen(ridge, tol=1e-3, columns=1, step="float64", largest=m, seed=0) for m in (60, 400)
    ]
    assert sizes[1].size > 60
    assert sizes[1].steps < sizes[0].steps
    assert sizes[1].seconds <= sizes[0].seconds * 1.5  # seconds are measured anew


def test_the_preconditioner_that_pays_changes_steps_and_not_the_mean(large, products, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(forecast, "_FACTORS", (1.0,))
        plain = fitted(alpha=1e-3, solver="pcg")
        steps = len(products)
    monkeypatch.setattr(forecast, "_PASSES", 0.0)  # as if a larger sketch cost nothing
    monkeypatch.setattr(forecast, "_EIGH", 0.0)
    products.clear()
    model = fitted(alpha=1e-3, solver="pcg")
    assert len(products) < steps
    assert model.sketch_size_ == plain.sketch_size_ == 60
    assert_close(model.predict(X), plain.predict(X), "pcg")


def test_a_mean_that_takes_minutes_is_not_begun(large, monkeypatch):
    def begun(*arguments, **options):
        raise AssertionError("the exact mean was begun")

    monkeypatch.setattr(solution, "_SECONDS", 0.0)
    monkeypatch.setattr(solution, "exact_mean", begun)
    with pytest.warns(UserWarning, match=r"would take about \d+ minutes .*solver='pcg' to wait"):
        model = fitted(alpha="loo", solver="auto")
    assert model.solver_ == "sketch"
    assert np.isfinite(model.loo_error_)


def test_steps_and_seconds_left_are_shown(large, monkeypatch):
    said = []
    status = regressor.status

    class Recorded:
        def __init__(self, text):
            self.inner = status(text)

        def __enter__(self):
            self.inner.__enter__()
            return said.append

        def __exit__(self, *error):
            return self.inner.__exit__(*error)

    monkeypatch.setattr(regressor, "status", Recorded)
    fitted(alpha=1e-3, solver="auto")
    steps = [text for text in said if re.search(r"step \d+ of about \d+, \d+ s left", text)]
    assert len(steps) > 3


@pytest.mark.parametrize(("share", "rows"), [(0.0, 200), (1e9, 600)])
def test_as_many_rows_are_left_out_as_work_allows(large, monkeypatch, share, rows):
    asked = []
    diagonal = solution.inverse_diagonal

    def counting(ridge, some, **options):
        asked.append(some)
        return diagonal(ridge, some, **options)

    monkeypatch.setattr(solution, "inverse_diagonal", counting)
    monkeypatch.setattr(solution, "_OF_THE_FIT", share)
    monkeypatch.setattr(solution, "_WORK", 0.0)
    monkeypatch.setattr(solution, "_MOST", 600)
    model = fitted(alpha=1e-2, solver="pcg")
    assert len(np.unique(np.concatenate(asked))) == rows
    exact = fitted(alpha=1e-2, sketch_size=900).loo_error_
    assert model.loo_error_ == pytest.approx(exact, rel=0.2)


@pytest.mark.parametrize("seconds", [1e-9, 1e3])
def test_leave_one_out_errors_do_not_depend_on_the_clock(large, monkeypatch, seconds):
    """They came from more rows on a faster machine, and so did the noise and intervals."""
    monkeypatch.setattr(solution, "_WORK", 1e8)  # which some of the 600 rows take
    monkeypatch.setattr(forecast, "_FACTORS", (1.0,))  # the preconditioner is chosen by times
    expected = fitted(alpha=1e-2, solver="pcg")
    ticks = itertools.count(0.0, seconds)
    monkeypatch.setattr(solution, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    model = fitted(alpha=1e-2, solver="pcg")
    assert model.loo_error_ == expected.loo_error_
    assert_close(model.predict_interval(X), expected.predict_interval(X))


@pytest.mark.parametrize(("free", "size"), [(1e12, 4096), (1e8, 2048)])
def test_automatic_sketches_grow_as_far_as_memory_permits(monkeypatch, free, size):
    monkeypatch.setattr(backends_base.memory, "available", lambda: free)
    assert NumpyTiles().largest_sketch(20_000) == size


def test_nothing_is_foreseen_for_few_rows(monkeypatch):
    monkeypatch.setattr(solution, "foreseen", None)  # not called
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted(solver="pcg").solver_ == "pcg"
