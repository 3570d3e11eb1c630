"""Leave-one-out scores are what refitting without a row gives."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from helpers import assert_close, normal, targets, uneven
from small_ridge import SmallRidge, friedman, gaussian
from threadpoolctl import threadpool_limits

from sketchridge import scores as module
from sketchridge.predictive import predictive_of
from sketchridge.rows import merged
from sketchridge.scores import (
    Scores,
    each_observation,
    scores_of,
    spread_of,
)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small matrices, of which threads make slow ones."""
    with threadpool_limits(1):
        yield


def leverage_residuals(residuals, leverages, weights, alpha):
    """r_i = e_i/(1 − h_i), 1/B_ii = α/(w_i(1 − h_i)) and α/w_i, the arguments of `scores_of`."""
    left = 1 - leverages
    noise = alpha / weights
    return residuals / left[:, None], noise / left, noise


intercepts = pytest.mark.parametrize("fit_intercept", [False, True])


def ridge(n: int = 25, q: int = 2, fit_intercept: bool = True) -> SmallRidge:
    return SmallRidge(normal(n, 3), targets(n, q), uneven(n), 0.3, 1.1, fit_intercept)


def without(model: SmallRidge, rows: list[int]) -> SmallRidge:
    X, Y, w = (np.delete(part, rows, axis=0) for part in (model.X, model.Y, model.w))
    return replace(model, X=X, Y=Y, w=w)


def test_examples():
    assert doctest.testmod(module).failed == 0


@intercepts
def test_residuals_and_variances_are_those_of_fits_without_a_row(fit_intercept):
    model = ridge(fit_intercept=fit_intercept)
    r, variances, noise = model.left_out()
    for i in range(len(r)):
        mean, gp = without(model, [i]).mean_gp(model.X[[i]])
        assert_close(r[i], model.Y[i] - mean[0], condition=10)
        assert_close(variances[i], gp[0] + noise[i])


@intercepts
def test_leverages_give_the_same(fit_intercept):
    model = ridge(fit_intercept=fit_intercept)
    residuals = model.alpha * (model.B @ model.Y) / model.w[:, None]
    leverages = 1 - model.alpha * np.diag(model.B) / model.w
    found = leverage_residuals(residuals, leverages, model.w, model.alpha)
    for actual, desired in zip(found, model.left_out(), strict=True):
        assert_close(actual, desired, condition=100)


def test_scores_and_amplitude_follow_the_units_of_y_and_of_the_kernel():
    r, variances, noise = ridge().left_out()
    one, other = scores_of(r, variances, noise), scores_of(3 * r, 4 * variances, 4 * noise)
    assert_close(other.values, 1.5 * one.values)
    assert_close(other.amplitude, 2.25 * one.amplitude)


def test_landmarks_are_left_out_while_enough_rows_remain():
    r, v = targets(100), np.ones(100)
    c = np.linspace(0, 1, 100)
    found = scores_of(r, v, v, unexplained=c, landmarks=np.arange(60))
    np.testing.assert_array_equal(found.at, np.arange(60, 100))
    assert_close(found.values, (r / np.sqrt(1 + c)[:, None])[60:])
    assert len(scores_of(r, v, v, unexplained=c, landmarks=np.arange(61)).at) == 100
    little = scores_of(r, v, v, unexplained=c / 101, landmarks=np.arange(60))
    assert len(little.at) == 100  # landmarks are like the others then


# Rows that are repeated


def merged_scores(X: np.ndarray, Y: np.ndarray, w: np.ndarray) -> Scores:
    rows = merged(X, Y, w)
    model = SmallRidge(X[rows.first], rows.Y, rows.w, 0.3, 1.1)
    return each_observation(scores_of(*model.left_out()), rows, 0.3)


def repeated(n: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first three rows have three observations, all others one."""
    rows = np.concatenate([np.arange(n), [0, 1, 2, 0, 1, 2]])
    return normal(n, 2)[rows], targets(len(rows), 2), uneven(len(rows))


def test_a_row_given_twice_is_a_row_of_weight_2():
    X, Y = normal(12, 2), targets(12, 2)
    twice = merged_scores(np.concatenate([X, X[:4]]), np.concatenate([Y, Y[:4]]), np.ones(16))
    weighted = merged_scores(X, Y, np.where(np.arange(12) < 4, 2.0, 1.0))
    for name in ("values", "masses", "noise", "amplitude"):
        assert_close(getattr(twice, name), getattr(weighted, name))


def test_observations_of_a_row_are_scored_as_new_ones_without_any_of_them():
    X, Y, w = repeated()
    found = merged_scores(X, Y, w)
    assert len(found.at) == len(X)
    assert found.masses.sum() == pytest.approx(12)
    model = SmallRidge(X, Y, w, 0.3, 1.1)
    mean, gp = without(model, [0, 12, 15]).mean_gp(X[[0]])
    mine = found.at == 0
    np.testing.assert_allclose(found.masses[mine], 1 / 3)
    order = np.argsort(Y[[0, 12, 15], 0])  # in which different y come
    y, weights = Y[[0, 12, 15]][order], w[[0, 12, 15]][order]
    assert_close(found.residuals[mine], y - mean, condition=10)
    assert_close(found.variances[mine], gp + 0.3 / weights, condition=10)


def test_their_average_is_the_residual_of_a_row_of_their_weight():
    X, Y, w = repeated()
    rows = merged(X, Y, w)
    average = SmallRidge(X[rows.first], rows.Y, rows.w, 0.3, 1.1).left_out()[0]
    found = merged_scores(X, Y, w)
    weights = 0.3 / found.noise
    for row in range(3):
        mine = found.at == row
        mean = weights[mine] @ found.residuals[mine] / weights[mine].sum()
        assert_close(mean, average[row], condition=10)


def test_repeated_rows_of_which_only_some_are_scored():
    X, Y, w = repeated()
    rows = merged(X, Y, w)
    r, v, noise = SmallRidge(X[rows.first], rows.Y, rows.w, 0.3, 1.1).left_out()
    some = np.array([1, 5])
    whole = scores_of(r, v, noise)
    part = each_observation(whole.some(np.isin(whole.at, some)), rows, 0.3)
    every = merged_scores(X, Y, w)
    keep = np.isin(every.at, some)
    assert_close(part.values, every.values[keep])
    assert_close(part.masses, every.masses[keep])


# Other numbers


def test_spread_is_about_the_mean_only_with_an_intercept():
    Y, w = np.array([[1.0], [3.0]]), np.array([1.0, 1.0])
    assert spread_of(Y, w, True) == pytest.approx(1.0)
    assert spread_of(Y, w, False) == pytest.approx(np.sqrt(5))
    assert spread_of(Y, np.array([3.0, 1.0]), True) == pytest.approx(np.sqrt(0.75))


@pytest.mark.parametrize("exact_mean", [False, True])
def test_sketched_intervals_hold(exact_mean):
    """Nyström with 60 landmarks of 300 rows, 6 fits. Over 40 fits 94.7% and 95.2% are covered, with
    a standard deviation of 0.019: the mean of 6 is beyond with probability below 1e-4."""
    rng = np.random.default_rng(0)
    shares = [sketched_coverage(rng, exact_mean) for _ in range(6)]
    assert 0.91 <= np.mean(shares) <= 0.99


def sketched_coverage(rng: np.random.Generator, exact_mean: bool) -> float:
    n, h, alpha = 300, 0.9, 0.01
    X, Z = rng.random((n, 5)), rng.random((400, 5))
    Y = (friedman(X) + rng.standard_normal(n))[:, None]
    y = friedman(Z) + rng.standard_normal(400)
    Y, y = Y - Y.mean(), y - Y.mean()
    p = rng.permutation(n)[:60]
    root = np.linalg.cholesky(gaussian(X[p], X[p], h) + 1e-10 * np.eye(60))
    F, F_new = (np.linalg.solve(root, gaussian(X[p], A, h)).T for A in (X, Z))
    inverse = np.linalg.inv(F.T @ F + alpha * np.eye(60))
    leverages = ((F @ inverse) * F).sum(1)
    theta = inverse @ F.T @ Y
    r, v, noise = leverage_residuals(Y - F @ theta, leverages, np.ones(n), alpha)
    mean = F_new @ theta
    if exact_mean:
        exact = SmallRidge(X, Y, np.ones(n), alpha, h, False)
        r = exact.left_out()[0]
        mean = exact.mean_gp(Z)[0]
    c, c_new = (np.maximum(1 - (A**2).sum(1), 0) for A in (F, F_new))
    scores = scores_of(r, v, noise, unexplained=c, landmarks=p)
    gp = c_new + alpha * ((F_new @ inverse) * F_new).sum(1)
    half = predictive_of(scores, alpha).half_widths(gp, 0.95)[1]
    return float((np.abs(y - mean[:, 0]) <= half[:, 0]).mean())
