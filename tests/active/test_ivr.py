"""Points that lower the pool's variance most: against the formula, written out densely."""

from __future__ import annotations

import numpy as np
import pytest

from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge
from sketchridge.active import joint, posterior
from sketchridge.active.acquire import exponential_keys
from sketchridge.active.pool import Pool
from sketchridge.active.posterior import Belief, posterior_of
from sketchridge.kernels import Gaussian

RNG = np.random.default_rng(0)
POOL = RNG.random((260, 3))
Y = np.sin(5 * POOL[:, 0]) + POOL[:, 1] + 0.05 * RNG.standard_normal(260)
PLAIN = {"bandwidth": 0.3, "alpha": 0.01}
ESTIMATORS = {
    "automatic": SketchedKernelRidge("auto", bandwidth="auto", alpha="loo", fit_intercept=True),
    "no intercept": SketchedKernelRidge(fit_intercept=False, sketch_size=12, **PLAIN),
    "dense sketch": SketchedKernelRidge(sketch="gaussian", sketch_size=12, **PLAIN),
    "exact": ExactKernelRidge("matern32", bandwidth="median", alpha="loo", fit_intercept=True),
    "varying noise": ExactKernelRidge(noise="varying", **PLAIN),
}


def labeled(estimator, **options):
    learner = ActiveLearner(
        estimator, POOL, batch_size=12, acquisition="ivr", random_state=0, **options
    )
    ids = learner.ask(30)
    learner.tell(ids, Y[ids])
    return learner


def greedy(S, noise, rows, count):
    """score_j = Σ_i S_ij²/(S_jj + α), the largest taken, S updated: the rows, and scores met."""
    chosen, met = [], []
    for _ in range(count):
        score = (S**2).sum(axis=0) / (np.diagonal(S) + noise)
        left = np.setdiff1d(rows, chosen)
        j = left[np.argmax(score[left])]
        chosen.append(j)
        met.append(score[left])
        S = S - np.outer(S[:, j], S[:, j]) / (S[j, j] + noise[j])
    return np.array(chosen), met


def noise_of(estimator):
    fitted = estimator.fitted_
    alpha = fitted.ridge.lam * fitted.sample.total
    return alpha * np.broadcast_to(fitted.noise_share(fitted.at(POOL)), len(POOL))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_batch_is_that_of_the_formula(name):
    learner = labeled(ESTIMATORS[name])
    model = learner._models.current().estimator
    S = model.covariance(POOL, kind="gp") / model.fitted_.kernel.unit
    wanted, _ = greedy(S, noise_of(model), learner.open_ids_, 12)
    np.testing.assert_array_equal(learner.preview(), wanted)
    first = learner.ask(5)  # pending points count as measured
    np.testing.assert_array_equal(first, wanted[:5])
    np.testing.assert_array_equal(learner.ask(7), wanted[5:])


def test_the_formula_from_the_kernel_alone():
    """Without a line of this library but the kernel."""
    labels = np.arange(25)
    k = Gaussian(0.4)
    G = k(POOL, POOL)
    inverse = np.linalg.inv(G[:25, :25] + 0.02 * np.eye(25))
    S = G - G[:, :25] @ inverse @ G[:25]
    wanted, _ = greedy(S, np.full(len(POOL), 0.02), np.arange(25, 260), 10)
    exact = ExactKernelRidge("gaussian", bandwidth=0.4, alpha=0.02, fit_intercept=False)
    learner = ActiveLearner(exact, POOL, batch_size=10, acquisition="ivr", random_state=0)
    learner.tell(labels, Y[labels])
    np.testing.assert_array_equal(learner.ask(), wanted)


def test_scores_follow_every_measurement():
    """The increments of Σ S² equal the sums themselves, for candidates and for points beside."""
    estimator = SketchedKernelRidge("gaussian", **PLAIN).fit(POOL[:40], Y[:40])
    found = posterior_of(estimator, Pool(POOL), 0).at(POOL)
    rows = np.arange(50, 200)
    belief = Belief(found.some(rows), found.B.T @ found.B)
    belief.know(found.some(np.arange(3)))
    S = estimator.covariance(POOL, kind="gp")
    noise = np.array(found.noise)
    for j in range(3):
        S = S - np.outer(S[:, j], S[:, j]) / (S[j, j] + noise[j])
    _, met = greedy(S, noise, rows, 6)
    left = np.arange(len(rows))
    for scores in met:
        np.testing.assert_allclose(belief.reduction[left], scores, rtol=1e-6, atol=1e-10)
        taken = left[np.argmax(scores)]
        belief.take(int(taken))
        left = np.setdiff1d(left, taken)


def test_a_cluster_that_no_label_is_near_counts():
    """Half of the pool is far from every label and every landmark of the model."""
    far = POOL + 100.0
    pool = np.concatenate([POOL, far])
    learner = ActiveLearner(
        SketchedKernelRidge("gaussian", **PLAIN), pool, batch_size=6, acquisition="ivr"
    )
    learner.tell(np.arange(60), Y[:60])
    assert (learner.ask() >= len(POOL)).all()


def test_few_features_and_many_candidates(monkeypatch):
    """A sketch of the posterior, and a pool of which only some rows are candidates, lower the
    variance nearly as much as the best batch."""
    learner = labeled(SketchedKernelRidge("gaussian", **PLAIN))
    model = learner._models.current().estimator
    S = model.covariance(POOL, kind="gp")
    noise = noise_of(model)

    def lowered(rows):
        chosen = S[np.ix_(rows, rows)] + np.diag(noise[rows])
        return np.trace(S[:, rows] @ np.linalg.solve(chosen, S[rows]))

    best = lowered(greedy(S, noise, learner.open_ids_, 12)[0])
    monkeypatch.setattr(posterior, "_FEATURES", 60)
    monkeypatch.setattr(posterior, "_SAMPLE", 150)
    monkeypatch.setattr(posterior, "_NUMBERS", 5000)
    monkeypatch.setattr(joint, "_MOST", 100)
    found = learner.preview()
    assert len(set(found)) == 12
    assert lowered(found) > 0.95 * best
    assert lowered(np.sort(RNG.choice(learner.open_ids_, 12))) < 0.9 * best


def test_every_point_is_certain_and_the_pool_can_be_exhausted():
    learner = labeled(SketchedKernelRidge("gaussian", **PLAIN))
    ids, probabilities = learner.ask(500, return_probability=True)
    assert len(set(ids)) == len(POOL) - 30
    assert (probabilities == 1).all()


def test_the_uncertainty_over_the_pool_is_on_record():
    learner = labeled(ESTIMATORS["exact"])
    learner.ask()
    variance = learner.estimator_.predictive_variance(POOL, include_noise=False)
    (row,) = learner.history_
    assert abs(row["mean_sd"] / np.sqrt(variance.mean()) - 1) < 1e-9


def test_targets_that_are_all_alike_can_be_followed():
    learner = ActiveLearner(
        SketchedKernelRidge("gaussian", **PLAIN), POOL, batch_size=5, acquisition="ivr"
    )
    learner.tell(np.arange(9), np.column_stack([np.ones(9), np.ones(9)]))
    assert len(learner.ask()) == 5


# With a share that is drawn evenly


def mixed(estimator, **options):
    learner = ActiveLearner(
        estimator, POOL, batch_size=12, acquisition="mixed", random_state=0, **options
    )
    learner.tell(np.arange(30), Y[:30])
    return learner


def test_a_quarter_is_drawn_evenly_and_the_rest_follows_the_formula():
    learner = mixed(ESTIMATORS["exact"])
    even = np.arange(30, 260)
    drawn = even[np.argsort(exponential_keys(learner.settings_["seed"], 1, len(POOL))[even])[:3]]
    ids, probabilities = learner.ask(return_probability=True)
    np.testing.assert_array_equal(ids[:3], drawn)
    np.testing.assert_allclose(probabilities, [1 / 230] * 3 + [1.0] * 9)
    model = learner._models.current().estimator
    S = model.covariance(POOL, kind="gp") / model.fitted_.kernel.unit
    noise = noise_of(model)
    for j in drawn:
        S = S - np.outer(S[:, j], S[:, j]) / (S[j, j] + noise[j])
    wanted, _ = greedy(S, noise, np.setdiff1d(even, drawn), 9)
    np.testing.assert_array_equal(ids[3:], wanted)


def test_of_single_points_every_fourth_is_drawn_evenly():
    learner = mixed(SketchedKernelRidge("gaussian", **PLAIN))
    chances = [learner.ask(1, return_probability=True)[1][0] for _ in range(12)]
    assert [chance < 1 for chance in chances] == [False, True, False, False] * 3


@pytest.mark.parametrize("left", [1, 2, 3, 6])
def test_the_last_points_of_a_pool_can_be_asked_for(left):
    learner = mixed(SketchedKernelRidge("gaussian", **PLAIN))
    learner.fail(np.arange(30 + left, 260))
    assert set(learner.ask().tolist()) == set(range(30, 30 + left))


def test_auto_is_the_choice_that_needs_the_fewest_labels():
    learner = ActiveLearner(
        SketchedKernelRidge("gaussian"), POOL, batch_size=5, acquisition="auto", random_state=0
    )
    assert learner.settings_["acquisition"] == "ivr"
    learner = ActiveLearner(
        SketchedKernelRidge("gaussian"), POOL, batch_size=5, acquisition="auto", score="gp"
    )
    assert learner.settings_["acquisition"] == "weighted"
    learner = ActiveLearner(
        SketchedKernelRidge("gaussian"), POOL, batch_size=5, acquisition="auto", goal="maximize"
    )
    assert learner.settings_["acquisition"] == "improvement"
