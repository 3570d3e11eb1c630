"""Data that say little: noise alone, rare values, one distinct row; and what must not matter."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from sketchridge import ExactKernelRidge, SketchedKernelRidge
from sketchridge.descent import toward_noise
from sketchridge.kernels import Matern32
from sketchridge.learning import cross_fitted_factor

pytestmark = pytest.mark.usefixtures("defaults")
Array = np.ndarray
classes = pytest.mark.parametrize("cls", [ExactKernelRidge, SketchedKernelRidge])


def friedman(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.uniform(size=(n, 4))
    wave = 10 * np.sin(np.pi * X[:, 0] * X[:, 1])
    return X, wave + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + rng.standard_normal(n)


def test_noise_is_not_interpolated():
    """A kernel so narrow that it is the identity explains y as well as noise does."""
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(size=(100, 4)), rng.standard_normal(100)
        found.append(ExactKernelRidge("gaussian", bandwidth="ard").fit(X, y).noise_variance_)
    assert 0.5 < np.median(found) < 1.5  # 0.01 without the pull toward noise


def test_the_pull_toward_noise_has_its_slope():
    above, below = (toward_noise(-2.0 + e, 0.3)[0] for e in (1e-6, -1e-6))
    assert toward_noise(-2.0, 0.3)[1] == pytest.approx((above - below) / 2e-6, rel=1e-6)


def test_a_rare_value_does_not_widen_all_intervals():
    X = np.random.default_rng(0).standard_normal((60, 4))
    y = np.zeros(60)
    y[5] = 1.0
    factor = cross_fitted_factor(
        X, y[:, None], np.ones(60), kernel=Matern32(), form="ard", fit_intercept=True, seed=0
    )
    assert factor < 10  # 5e16 before one row could say at most so much
    model = ExactKernelRidge().fit(X, y)
    assert model.noise_variance_ < 1
    model.partial_fit(X[:10], y[:10])  # an error where all rows were there before
    assert np.isfinite(model.predict_interval(X)).all()


CHANGES = {
    "units": lambda X: X * [1000, 1, 1e-6, 1],
    "zeros": lambda X: X + 1e3,
    "a constant": lambda X: np.column_stack([X, np.ones(len(X))]),
    "their order": lambda X: X[:, [2, 0, 3, 1]],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("n", [40, 250])
def test_what_must_not_matter_of_features(change, n):
    rng = np.random.default_rng(1)
    X, y = friedman(rng, n)
    Z = rng.uniform(size=(20, 4))
    changed = CHANGES[change]
    one = ExactKernelRidge().fit(X, y)
    two = ExactKernelRidge().fit(changed(X), y)
    assert repr(one.kernel_).split("(")[0] == repr(two.kernel_).split("(")[0]
    np.testing.assert_allclose(two.predict(changed(Z)), one.predict(Z), atol=1e-6 * y.std())


@classes
def test_one_distinct_row_knows_the_noise_from_its_repeats(cls):
    y = 0.6 * np.random.default_rng(0).standard_normal(60)
    model = cls().fit(np.ones((60, 4)), y)
    assert model.noise_variance_ == pytest.approx(y.var(), rel=0.05)
    assert model.loo_error_ == pytest.approx(y.var(), rel=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one row cannot give 95%
        low, high = model.predict_interval(np.ones((1, 4)))
    assert 1.5 * y.std() < (high - low)[0] / 2 < 5 * y.std()


def test_the_unit_of_weights_does_not_change_intervals():
    rng = np.random.default_rng(2)
    X, y = friedman(rng, 150)
    Z = np.vstack([X[:2], X[:2] + 50])
    widths = []
    for weight in (1.0, 7.0, 100.0):
        w = np.full(len(X), weight)
        model = ExactKernelRidge("matern32").fit(X, y, sample_weight=w)
        low, high = model.predict_interval(Z, sample_weight=w[: len(Z)])
        widths.append(high - low)
    np.testing.assert_allclose(widths[1], widths[0], rtol=1e-6)
    np.testing.assert_allclose(widths[2], widths[0], rtol=1e-6)


def test_a_kernel_learned_without_comparison_has_its_step():
    X, y = friedman(np.random.default_rng(3), 60)
    (step,) = ExactKernelRidge("matern52", bandwidth="ard").fit(X, y).learning_curve_
    assert step.form == "ard"
    assert 0 < step.score < 1
    assert step.evaluations > 1


def test_intervals_of_a_precomputed_kernel_say_what_is_missing():
    X, y = friedman(np.random.default_rng(4), 30)
    K = Matern32(0.5)(X, X)
    model = ExactKernelRidge("precomputed", alpha=0.1).fit(K, y)
    with pytest.raises(ValueError, match="intervals, gp and bias2 are not known there"):
        model.predict_interval(np.abs(K[:3]) * 0.5)
