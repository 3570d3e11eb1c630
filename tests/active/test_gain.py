"""What further points would teach: known before they are measured, and fair to the unknown."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import normal

from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge
from sketchridge.active.gain import mean_posterior_variance, with_points

P = 200
X = normal(P, 2)
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * np.cos(37.0 * np.arange(P))
ESTIMATORS = {
    "fixed size": SketchedKernelRidge(alpha=0.1, sketch_size=10),
    "intercept": SketchedKernelRidge(alpha=0.1, sketch_size=10, fit_intercept=True),
    "dense": SketchedKernelRidge(alpha=0.1, sketch="gaussian", sketch_size=10),
    "automatic": SketchedKernelRidge(alpha=0.1),
    "exact": ExactKernelRidge(alpha=0.1, fit_intercept=True),
}


def learner_of(estimator):
    learner = ActiveLearner(estimator, X, batch_size=10, random_state=0)
    for _ in range(5):
        ids = learner.ask()
        learner.tell(ids, Y[ids])
    return learner


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_gain_is_what_the_labels_bring(name):
    """Compared with the posterior variance after the labels are told, at the same alpha."""
    learner = learner_of(ESTIMATORS[name])
    before = mean_posterior_variance(learner.estimator_, X)
    gain, even = learner.expected_gain(sample=P)
    ids = learner.ask()
    learner.tell(ids, Y[ids])
    found = 1 - mean_posterior_variance(learner.estimator_, X) / before
    assert abs(found - gain) < 1e-6
    assert 0 < gain < 1
    assert 0 < even < 1


@pytest.mark.parametrize("targets", [1, 3])
def test_the_estimator_is_left_as_it_was(targets):
    model = SketchedKernelRidge(random_state=0, noise_variance="auto")
    y = np.column_stack([Y[:50]] * targets)
    model.fit(X[:50], y[:, 0] if targets == 1 else y)
    before = model.predict(X), model.alpha_, model.get_params()
    more = with_points(model, X[50:60])
    np.testing.assert_array_equal(model.predict(X), before[0])
    assert (model.alpha_, model.get_params()) == before[1:]
    assert more.alpha_ == model.alpha_
    assert len(more.fitted_.sample) == 60


def test_points_far_from_all_landmarks_bring_what_they_are_worth():
    """Half of the pool is a second cluster without a label (B14): under the landmarks there were,
    points in it would explain nothing; an automatic sketch grows there."""
    rng = np.random.default_rng(0)
    near = rng.standard_normal((100, 2))
    far = 50 + rng.standard_normal((100, 2))
    pool = np.concatenate([near, far])
    model = SketchedKernelRidge(bandwidth=2.0, alpha=0.1, random_state=0).fit(near[:60], Y[:60])
    exact = ExactKernelRidge(bandwidth=2.0, alpha=0.1).fit(near[:60], Y[:60])
    for new in (far[:10], near[60:70]):
        sketched = 1 - mean_posterior_variance(with_points(model, new), pool) / (
            mean_posterior_variance(model, pool)
        )
        right = 1 - mean_posterior_variance(with_points(exact, new), pool) / (
            mean_posterior_variance(exact, pool)
        )
        assert abs(sketched - right) < 0.02
    assert (
        1
        - mean_posterior_variance(with_points(model, far[:10]), pool)
        / (mean_posterior_variance(model, pool))
        > 0.2
    )


@pytest.mark.parametrize("n", [0, 2.5])
def test_a_bad_number_is_refused(n):
    with pytest.raises(ValueError, match="n must be a whole number"):
        learner_of(ESTIMATORS["fixed size"]).expected_gain(n)


def test_without_a_model_there_is_no_gain():
    learner = ActiveLearner(SketchedKernelRidge(), X, batch_size=10, random_state=0)
    with pytest.raises(ValueError, match="no model before 2 labels"):
        learner.expected_gain()


def test_the_sizes_of_the_sketch_are_told():
    """Of the sketch that would be used: an automatic one grows with the points."""
    found = learner_of(ESTIMATORS["automatic"]).expected(20)
    assert found.size_now <= found.size_then
    found = learner_of(ESTIMATORS["fixed size"]).expected(20)
    assert (found.size_now, found.size_then) == (10, 10)
    assert learner_of(ESTIMATORS["exact"]).expected(20).size_now is None
