"""Goals other than exploring: what candidates promise, by quadrature; batches without copies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge
from sketchridge.active.goals import Goal, as_goal, checked_acquisition, is_reached
from sketchridge.active.promise import expected, log_improvement, log_promise, outlook, score

RNG = np.random.default_rng(0)
POOL = RNG.random((400, 2))
Y = np.sin(5 * POOL[:, 0]) + POOL[:, 1]
LEARNED = {"kernel": "auto", "bandwidth": "auto", "alpha": "loo", "fit_intercept": True}
ESTIMATORS = {
    "sketched": SketchedKernelRidge(**LEARNED, solver="auto"),
    "fixed": SketchedKernelRidge("gaussian", bandwidth=0.3, alpha=1e-3),
    "fixed exact": ExactKernelRidge("gaussian", bandwidth=0.3, alpha=1e-3, fit_intercept=True),
}
VALUE = 0.8
GOALS = ["maximize", "minimize", ("target", VALUE), ("boundary", VALUE)]
CASES = [(0.3, 0.5, 0.2), (-1.0, 0.7, 0.4), (2.0, 0.1, 1.7), (0.5, 2.0, 0.01), (-3.0, 0.6, 0.5)]


def integral(improvement, mean, std, low, high):
    found = quad(lambda f: improvement(f) * norm.pdf(f, mean, std), low, high, epsabs=1e-14)
    return found[0]


def promised(goal, mean, std, reached):
    return float(np.exp(log_promise(goal, np.array([mean]), np.array([std]), reached))[0])


@pytest.mark.parametrize(("mean", "std", "best"), CASES)
def test_the_promise_is_the_integral_of_the_improvement(mean, std, best):
    high = max(mean, best) + 10 * std
    largest = integral(lambda f: max(f - best, 0), mean, std, best, high)
    np.testing.assert_allclose(promised(Goal("maximize"), mean, std, -best), largest, rtol=1e-6)
    least = integral(lambda f: max(-f - best, 0), -mean, std, -high, -best)
    np.testing.assert_allclose(promised(Goal("minimize"), -mean, std, -best), least, rtol=1e-6)
    closer = [
        integral(lambda f: best - abs(f - 1), mean, std, *ends)
        for ends in ((1 - best, 1), (1, 1 + best))
    ]
    found = promised(Goal("target", 1.0), mean, std, best)
    np.testing.assert_allclose(found, sum(closer), rtol=1e-5)


def test_promises_far_away_are_still_ordered():
    """Where an expected improvement underflows, its logarithm does not."""
    for goal in (Goal("maximize"), Goal("target", 0.0)):
        means = -np.array([10.0, 50.0, 100.0, 1e3, 1e6, 1e9])
        found = log_promise(goal, means, np.ones(6), 1e-9 if goal.value is not None else 0.0)
        assert np.isfinite(found).all()
        assert (np.diff(found) < 0).all()
    z = np.array([-9999.0, -10001.0])
    far = log_improvement(z, np.ones(2)) - norm.logpdf(z) + 2 * np.log(-z)
    np.testing.assert_allclose(far, 0, atol=1e-6)


def test_nothing_unknown_promises_what_is_known():
    std = np.zeros(3)
    mean = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(np.exp(log_promise(Goal("maximize"), mean, std, -2.5))[2], 0.5)
    found = outlook(Goal("maximize"), mean, std, -3.0, 1.0)
    assert found == {"promise": pytest.approx(0, abs=1e-300), "chance": 0.0}
    assert outlook(Goal("boundary", 5.0), mean, std, 0.0, 1.0) == {"unsure": 0.0}


def test_the_expected_distance_is_that_of_the_folded_normal():
    for mean, std in ((0.3, 0.5), (-2.0, 1.0), (1.0, 1e-9)):
        wanted = integral(lambda f: abs(f - 1), mean, std, mean - 12 * std, mean + 12 * std)
        np.testing.assert_allclose(expected(Goal("target", 1.0), mean, std), wanted, atol=1e-7)
    assert expected(Goal("minimize"), 2.0, 1.0) == 2.0


def test_bounds_and_straddles():
    mean = np.array([1.0, 0.0])
    std = np.array([0.1, 1.0])
    assert score(Goal("maximize"), "bound", mean, std, 0.0).argmax() == 1
    assert score(Goal("minimize"), "bound", mean, std, 0.0).argmax() == 1
    np.testing.assert_allclose(
        score(Goal("boundary", 1.0), "straddle", mean, std, 0.0), [0.196, 0.96]
    )


@pytest.mark.parametrize(
    ("given", "goal"),
    [
        ("explore", Goal()),
        ("maximize", Goal("maximize")),
        ("target 37.5", Goal("target", 37.5)),
        ("boundary -2", Goal("boundary", -2.0)),
        (("target", 3), Goal("target", 3.0)),
        (Goal("minimize"), Goal("minimize")),
        ({"name": "target", "value": 2.0}, Goal("target", 2.0)),
    ],
)
def test_goals_are_understood(given, goal):
    assert as_goal(given) == goal
    assert as_goal(goal.plain()) == goal


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("best", "Unknown goal 'best': give one of 'explore', 'maximize', 'minimize', 'target'"),
        ("target", "'target' needs a number, such as target 37.5 on the command line"),
        ("boundary high", "goal=\\('boundary', 37.5\\) in Python; high was given"),
        ("target inf", "needs a number"),
        ("maximize 3", "'maximize' takes no value, but '3' was given"),
        (3, "Unknown goal 3"),
        ("", "Unknown goal ''"),
    ],
)
def test_bad_goals_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        ActiveLearner(SketchedKernelRidge(), POOL, batch_size=5, goal=given)


def test_an_acquisition_belongs_to_its_goal():
    assert checked_acquisition(Goal("maximize"), "weighted") == "improvement"
    assert checked_acquisition(Goal("boundary", 1.0), "weighted") == "straddle"
    with pytest.raises(ValueError, match="'ivr' for the goal 'maximize': give one of 'improvement"):
        checked_acquisition(Goal("maximize"), "ivr")
    with pytest.raises(ValueError, match="Unknown acquisition 'bound': give one of 'weighted'"):
        checked_acquisition(Goal(), "bound")


def campaign(goal, estimator="fixed", rounds=5, **options):
    learner = ActiveLearner(
        ESTIMATORS[estimator], POOL, batch_size=5, goal=goal, random_state=0, **options
    )
    for _ in range(rounds):
        ids = learner.ask()
        assert len(set(ids)) == 5
        learner.tell(ids, Y[ids])
    return learner


@pytest.mark.parametrize("estimator", ["fixed", "fixed exact"])
def test_every_goal_is_reached(estimator):
    found = {str(as_goal(goal)): campaign(goal, estimator) for goal in GOALS}
    assert found["maximize"].labels_.max() == Y.max()
    assert found["minimize"].labels_.min() == Y.min()
    near = np.abs(Y - VALUE)
    asked = np.abs(found[f"target {VALUE}"].labels_ - VALUE)
    assert asked.min() <= np.sort(near)[5]
    boundary = found[f"boundary {VALUE}"]
    side = boundary.estimator_.predict(POOL) > VALUE
    assert (side != (VALUE < Y)).mean() < 0.01
    for learner in found.values():
        assert is_reached(learner.goal_, learner.outlook())
        last = learner.history_[-2]
        assert ("unsure" in last) == (learner is boundary)
        assert ("chance" in last) == (learner is not boundary)


@pytest.mark.parametrize("acquisition", ["improvement", "bound"])
def test_a_batch_is_chosen_one_after_the_other(acquisition):
    """Against a dense model to which each point is added with its mean as label: a campaign that
    believes in its predictions."""
    learner = campaign("maximize", rounds=2, acquisition=acquisition)
    fitted = learner.estimator_.fitted_
    ids = learner.labeled_ids_
    rows = learner.open_ids_
    mean = learner.estimator_.predict(POOL)
    S = learner.estimator_.covariance(POOL, kind="gp")
    alpha = fitted.ridge.lam * fitted.sample.total
    reached = -mean[ids].max()
    wanted = []
    told = np.zeros(len(POOL))
    for _ in range(5):
        std = np.sqrt(fitted.predictive.variance(np.diagonal(S), include_noise=False)[:, 0])
        scores = score(learner.goal_, acquisition, mean, std, reached)
        scores[told > 0.9] = -1e9
        left = np.setdiff1d(rows, wanted)
        j = left[np.argmax(scores[left])]
        wanted.append(j)
        reached = min(reached, -mean[j])
        told = np.maximum(told, S[:, j] ** 2 / (np.diagonal(S) * S[j, j]))
        S = S - np.outer(S[:, j], S[:, j]) / (S[j, j] + alpha)
    np.testing.assert_array_equal(learner.preview(), wanted)


def test_points_of_a_batch_are_no_copies():
    """Every point of the pool is there five times."""
    pool = np.repeat(POOL[:100], 5, axis=0)
    for goal in GOALS:
        learner = ActiveLearner(ESTIMATORS["fixed"], pool, batch_size=5, goal=goal, random_state=0)
        ids = np.arange(0, 100, 10)
        learner.tell(ids, np.repeat(Y[:100], 5)[ids])
        assert len(np.unique(learner.ask() // 5)) == 5


def test_points_that_are_pending_count_as_measured():
    learner = campaign("maximize", rounds=2)
    whole = learner.preview(5)
    first = learner.ask(2)
    np.testing.assert_array_equal(first, whole[:2])
    np.testing.assert_array_equal(learner.ask(3), whole[2:])


def test_a_stored_goal_goes_on(make_url):
    url = make_url("sqlite")
    learner = campaign(("target", VALUE), store=url)
    again = ActiveLearner.resume(url)
    assert again.goal_ == Goal("target", VALUE)
    assert again.settings_["acquisition"] == "improvement"
    np.testing.assert_array_equal(again.preview(), learner.preview())


def test_kernels_are_learned_early():
    learner = campaign("maximize", "sketched", rounds=3)
    assert ["learned" in row for row in learner.history_] == [False, True, True]


def test_what_goals_do_not_offer_is_said():
    learner = campaign("maximize", rounds=1)
    with pytest.raises(ValueError, match="'maximize' points are not drawn but chosen"):
        learner.ask(return_probability=True)
    assert not len(learner.pending_ids_)
    with pytest.raises(ValueError, match="with 2 targets were given, but the goal 'maximize'"):
        learner.tell([0], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="This campaign explores"):
        campaign("explore", rounds=1).outlook()


def test_a_released_point_does_not_come_back_at_once():
    learner = campaign("maximize", rounds=2)
    ids = learner.ask()
    learner.release(ids[:1])
    assert ids[0] not in learner.ask()


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("labels", [[0.3, 0.3], [1.0, 2.0], [0.5] * 6])
def test_few_labels_or_equal_ones_are_enough_to_go_on(goal, labels):
    learner = ActiveLearner(ESTIMATORS["fixed"], POOL, batch_size=4, goal=goal, random_state=0)
    learner.tell(np.arange(len(labels)), labels)
    ids = learner.ask()
    assert len(set(ids)) == 4
    distances = np.linalg.norm(POOL[ids][:, None] - POOL[ids], axis=2)[np.triu_indices(4, 1)]
    if len(set(labels)) == 1:  # nothing is promising yet: the points are spread
        assert distances.min() > 0.05
    assert all(np.isfinite(value) for value in learner.outlook().values())
