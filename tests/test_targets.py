"""Several targets, noise and scale of y, the intercept, and intervals."""

import numpy as np
import pytest
from helpers import assert_close, assert_close_each
from problems import (
    ALPHA,
    SEED,
    X_TEST,
    M,
    N,
    T,
    X,
    Y,
    classes,
    full_makers,
    intercepts,
    kinds,
    makers,
    names,
    points,
    sketched,
    values,
    y,
)
from scipy.stats import norm

from sketchridge import ExactKernelRidge

penalties = pytest.mark.parametrize("alpha", [ALPHA, "gcv", "loo"])


@makers
@intercepts
def test_several_targets_are_one_each(make, fit_intercept):
    model = make(fit_intercept=fit_intercept).fit(X, Y)
    mean, std = model.predict(X_TEST, return_std=True)
    low, high = model.predict_interval(X_TEST)
    assert mean.shape == std.shape == low.shape == high.shape == (T, 3)
    assert model.noise_variance_.shape == (3,)
    for j in range(3):
        single = make(fit_intercept=fit_intercept).fit(X, Y[:, j])
        single_mean, single_std = single.predict(X_TEST, return_std=True)
        assert_close(mean[:, j], single_mean)
        assert_close(std[:, j], single_std)
        assert_close(model.noise_variance_[j], single.noise_variance_)
        assert_close([low[:, j], high[:, j]], single.predict_interval(X_TEST))
        assert_close(model.variance(X_TEST, "gp"), single.variance(X_TEST, "gp"))


@classes
@pytest.mark.parametrize(
    "options",
    [
        {"alpha": "gcv", "fit_intercept": True},
        {"alpha": "gcv", "fit_intercept": False},
        {"alpha": "loo", "fit_intercept": False},
        {"alpha": "loo", "kernel": "auto", "fit_intercept": True},
        {"bandwidth": "gcv", "fit_intercept": True},
        {"alpha": "loo", "bandwidth": "auto", "kernel": "auto"},
    ],
    ids=str,
)
@pytest.mark.parametrize("other", ["constant", "tiny"])
def test_a_target_that_is_constant_or_tiny_changes_nothing_of_another(cls, options, other):
    """Weights put the mean of a constant off by rounding, which is no variation."""
    A = points(120)
    b = values(A)[:, 0]
    w = np.random.default_rng(4).uniform(0.1, 1, 120)
    unit, second = (1.0, np.full(120, 1e9 / 3)) if other == "constant" else (1e10, 1e-148 * b)
    seed = {} if cls is ExactKernelRidge else {"random_state": SEED}
    alone = cls(**options, **seed).fit(A, b, w)
    both = cls(**options, **seed).fit(A, np.column_stack([unit * b, second]), w)
    assert_close(both.alpha_, alone.alpha_, condition=1e3)
    assert_close(both.predict(X_TEST)[:, 0] / unit, alone.predict(X_TEST), condition=1e5)
    assert np.isfinite(both.path_.loo).all()


@makers
@intercepts
def test_variance_is_proportional_to_the_noise(make, fit_intercept):
    options = {"fit_intercept": fit_intercept}
    one, nine = (make(noise_variance=s, **options).fit(X, y) for s in (0.2, 9 * 0.2))
    assert nine.noise_variance_ == 9 * 0.2
    for kind in kinds(one):
        factor = 1 if kind in ("gp", "bias2") else 9
        assert_close_each(nine.variance(X_TEST, kind), factor * one.variance(X_TEST, kind))
    std = one.predict(X_TEST, return_std=True)[1]
    assert_close_each(nine.predict(X_TEST, return_std=True)[1], 3 * std)


@makers
def test_one_noise_variance_for_each_target(make):
    model = make(noise_variance=[0.1, 0.2, 0.4]).fit(X, Y)
    np.testing.assert_array_equal(model.noise_variance_, [0.1, 0.2, 0.4])
    std = model.predict(X_TEST, return_std=True)[1]
    assert_close(std[:, 1], np.sqrt(2) * std[:, 0])
    np.testing.assert_array_equal(make(noise_variance=0.1).fit(X, Y).noise_variance_, [0.1] * 3)


@makers
@intercepts
@penalties
@pytest.mark.parametrize("c", [1024.0, 2.0**-300, 2.0**300])
def test_scaling_y_scales_mean_and_std(make, fit_intercept, alpha, c):
    one, scaled = (make(alpha=alpha, fit_intercept=fit_intercept).fit(X, s * y) for s in (1, c))
    assert_close(scaled.predict(X_TEST) / c, one.predict(X_TEST))
    std = one.predict(X_TEST, return_std=True)[1]
    assert_close_each(scaled.predict(X_TEST, return_std=True)[1] / c, std)
    assert_close(scaled.lambda_, one.lambda_)


@makers
@penalties
@pytest.mark.parametrize("c", [1.0, -1e3])
def test_an_intercept_follows_a_shift_of_y(make, alpha, c):
    one, shifted = (make(alpha=alpha, fit_intercept=True).fit(X, y + s) for s in (0, c))
    assert_close(shifted.predict(X_TEST), one.predict(X_TEST) + c)
    for kind in kinds(one):
        assert_close(shifted.variance(X_TEST, kind), one.variance(X_TEST, kind))


@makers
@pytest.mark.parametrize("bandwidth", ["median", "gcv"])
def test_an_intercept_follows_a_large_shift_whatever_the_bandwidth(make, bandwidth):
    """The bandwidth is chosen for y without its constant."""
    options = {"fit_intercept": True, "alpha": "gcv", "bandwidth": bandwidth}
    one, shifted = (make(**options).fit(X, y + c) for c in (0, 2.0**23))
    assert shifted.bandwidth_ == one.bandwidth_
    assert_close(shifted.predict(X_TEST) - 2.0**23, one.predict(X_TEST), scale=2.0**23)


@pytest.mark.parametrize("c", [1.0, -1e3])
@names
def test_an_intercept_follows_a_shift_of_y_under_every_sketch(name, c):
    options = {"sketch": name, "sketch_size": M, "fit_intercept": True}
    one, shifted = (sketched(**options).fit(X, y + s) for s in (0, c))
    assert_close(shifted.predict(X_TEST), one.predict(X_TEST) + c)
    for kind in kinds(one):
        assert_close(shifted.variance(X_TEST, kind), one.variance(X_TEST, kind))


@makers
def test_noise_variance_is_estimated(make):
    """σ̂² has a standard deviation of about 0.045σ² = σ²√(2/n), and next to no bias: off by a
    quarter with probability 1e-7."""
    A = points(1000)
    model = make(alpha=0.01).fit(A, values(A)[:, 0])
    assert abs(model.noise_variance_ / 0.01 - 1) < 0.25


# intervals


@makers
def test_gaussian_intervals_are_normal_around_the_mean(make):
    model = make().fit(X, y)
    mean = model.predict(X_TEST)
    for level in (0.5, 0.95, 0.999):
        for noisy in (True, False):
            low, high = model.predict_interval(
                X_TEST, level, include_noise=noisy, method="gaussian"
            )
            std = np.sqrt(model.predictive_variance(X_TEST, include_noise=noisy))
            assert_close((low + high) / 2, mean)
            assert_close((high - low) / 2, norm.isf((1 - level) / 2) * std)
    default = model.predict_interval(X_TEST)
    np.testing.assert_array_equal(default, model.predict_interval(X_TEST, 0.95, method="loo"))


@full_makers
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_coverage_of_noise_alone(make, level):
    """Targets that are pure noise: 400 independent experiments of N rows each.

    Leave-one-out ranks hold on average over training sets; five binomial standard deviations and 2%
    for α, which is given and not that of pure noise.
    """
    q = 400
    noise = np.random.default_rng([3, SEED]).standard_normal((N + 1, q))
    model = make().fit(X, noise[:N])
    low, high = model.predict_interval(X_TEST[:1], level)
    covered = ((low < noise[N]) & (noise[N] < high)).mean()
    assert abs(covered - level) <= 5 * np.sqrt(level * (1 - level) / q) + 0.02


@classes
def test_coverage_of_new_observations_by_default(cls):
    """The binomial error and that of σ̂ add up to a standard deviation of 0.006: 0.03 is exceeded
    with probability 1e-6."""
    A = points(1000)
    B = points(5000, seed=2)
    new = values(B, seed=2)[:, 0]
    low, high = cls().fit(A, values(A)[:, 0]).predict_interval(B)
    assert abs(np.mean((low < new) & (new < high)) - 0.95) < 0.03
