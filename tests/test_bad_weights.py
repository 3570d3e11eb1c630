"""What is no weight is refused with a sentence; odd weights work."""

import numpy as np
import pytest
from helpers import assert_close, assert_close_each
from problems import X_TEST, X, assert_same_answers, classes, kinds, makers, y

from sketchridge import ExactKernelRidge, SketchedKernelRidge

N = 40
ROWS = X[:N]

BAD_WEIGHTS = {
    "negative": (np.where(np.arange(N) == 3, -0.5, 1.0), r"negative entry \(-0\.5\): weights are"),
    "all zero": (np.zeros(N), "(?i)sample.weights?.*at least one"),
    "NaN": (np.where(np.arange(N) == 3, np.nan, 1.0), "sample_weight contains NaN"),
    "infinity": (np.where(np.arange(N) == 3, np.inf, 1.0), "sample_weight contains infinity"),
    "too short": (np.ones(N - 1), r"sample_weight.shape == \(39,\), expected \(40,\)"),
    "too long": (np.ones(N + 1), r"sample_weight.shape == \(41,\), expected \(40,\)"),
    "two dimensions": (np.ones((N, 2)), "(?i)sample.weights? must be 1D"),
    "a word": ("heavy", "(?i)could not convert string|sample.weight"),
    "complex": (np.ones(N) * 1j, "Complex data not supported"),
    "a sum that overflows": (np.full(N, 1e308), "sample_weight.* rescale"),
    "a sum that underflows": (np.full(N, 1e-320), "sample_weight.* rescale"),
}


@classes
@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_what_is_no_weight_is_refused(cls, case):
    w, text = BAD_WEIGHTS[case]
    with pytest.raises(ValueError, match=text):
        cls(alpha=1.0).fit(ROWS, y[:N], sample_weight=w)


@classes
@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_what_is_no_weight_of_a_new_observation_is_refused(cls, case):
    w, text = BAD_WEIGHTS[case]
    with pytest.raises(ValueError, match=text):
        cls(alpha=1.0).fit(ROWS, y[:N]).predict_interval(ROWS, sample_weight=w)


@classes
def test_a_new_observation_without_weight_has_no_interval(cls):
    model = cls(alpha=1.0).fit(ROWS, y[:N])
    with pytest.raises(ValueError, match=r"sample_weight is 0 for 1 of 2 new obs.*include_noise"):
        model.predict_interval(ROWS[:2], sample_weight=[0.0, 1.0])


@classes
@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_what_is_no_weight_is_refused_in_a_batch_and_changes_nothing(cls, case):
    w, text = BAD_WEIGHTS[case]
    model = cls(alpha=1.0).fit(ROWS, y[:N])
    before = model.predict(X_TEST, return_std=True)
    with pytest.raises(ValueError, match=text):
        model.partial_fit(ROWS, y[:N], sample_weight=w)
    np.testing.assert_array_equal(model.predict(X_TEST, return_std=True), before)


@classes
@pytest.mark.parametrize("w", [2, 2.0, [2] * N, (2.0,) * N, np.full(N, 2, np.int8)], ids=repr)
def test_weights_may_be_a_number_or_any_list_of_numbers(cls, w):
    options = {"alpha": 1.0} | ({"random_state": 0} if cls is SketchedKernelRidge else {})
    model = cls(**options).fit(ROWS, y[:N], sample_weight=w)
    assert_same_answers(model, cls(**options).fit(ROWS, y[:N], sample_weight=np.full(N, 2.0)))


@makers
@pytest.mark.parametrize("scale", [1e-140, 1e-20, 1e20, 1e140])
def test_huge_and_tiny_weights_work(make, scale):
    """Only their ratios and their sum beside alpha matter."""
    one = make(alpha=1.0, noise_variance=1.0).fit(ROWS, y[:N])
    other = make(alpha=scale, noise_variance=scale)
    other.fit(ROWS, y[:N], sample_weight=np.full(N, scale))
    assert_close(other.predict(X_TEST), one.predict(X_TEST))
    for kind in kinds(one):
        assert_close_each(other.variance(X_TEST, kind), one.variance(X_TEST, kind))


def test_weights_without_a_fit_of_their_own_are_documented():
    for cls in (ExactKernelRidge, SketchedKernelRidge):
        told = " ".join(cls.fit.__doc__.split())
        assert "sample_weight : (n,) array Precisions" in told


@classes
@pytest.mark.parametrize("options", [{}, {"kernel": "gaussian", "bandwidth": 0.6, "alpha": 1e99}])
def test_a_weight_that_is_none_beside_the_others_is_none(cls, options):
    """Its share of the sum was 0 in floating point, and variances were NaN."""
    w = np.where(np.arange(N) < 5, 1e-250, 1e100)
    options = options | ({} if cls is ExactKernelRidge else {"random_state": 0})
    model = cls(**options).fit(ROWS, y[:N], w)
    assert_same_answers(model, cls(**options).fit(ROWS[5:], y[5:N], w[5:]))
    assert np.isfinite(model.predict_interval(X_TEST)).all()
