"""Ask and tell: Algorithm 1 with every estimator, and campaigns that go on as if never stopped."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close, assert_close_each, normal

from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge
from sketchridge.active import Budget, NoImprovement, ScoreBelow, models
from sketchridge.active import parts as parts_module
from sketchridge.kernels import Matern32
from sketchridge.tuning import median_bandwidth

P = 200
X = normal(P, 2)
TRUTH = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]
STRATEGIES = {
    "KRR+V1": (ExactKernelRidge(), "weighted"),
    "KRR+rand": (ExactKernelRidge(), "uniform"),
    "rsKRR+V2": (SketchedKernelRidge(sketch="gaussian", sketch_size=8, alpha=0.1), "weighted"),
    "rsKRR+rand": (SketchedKernelRidge(sketch="gaussian", sketch_size=8, alpha=0.1), "uniform"),
    "automatic": (SketchedKernelRidge(fit_intercept=True), "weighted"),
    "top": (SketchedKernelRidge(), "top"),
}
every_strategy = pytest.mark.parametrize("name", STRATEGIES)


def measured(ids):
    return TRUTH[ids] + 0.05 * np.cos(37.0 * np.arange(P))[ids]


def new(name="automatic", **options):
    estimator, acquisition = STRATEGIES[name]
    return ActiveLearner(
        estimator, X, **{"batch_size": 10, "acquisition": acquisition, "random_state": 0, **options}
    )


def run(learner, rounds):
    """Ids asked for, round by round."""
    asked = []
    for _ in range(rounds):
        ids = learner.ask()
        learner.tell(ids, measured(ids))
        asked.append(ids.tolist())
    return asked


@every_strategy
def test_the_strategies_of_the_paper_learn(name):
    learner = new(name)
    asked = run(learner, 6)
    assert len({i for ids in asked for i in ids}) == 60
    assert learner.labeled_ids_.tolist() == [i for ids in asked for i in ids]
    model = learner.estimator_
    assert np.sqrt(np.mean((model.predict(X) - TRUTH) ** 2)) < 0.75 * TRUTH.std()
    assert [row["labels"] for row in learner.history_] == [10, 20, 30, 40, 50, 60]
    assert all(row["lambda"] > 0 and row["loo_error"] > 0 for row in learner.history_)


@every_strategy
def test_the_same_seed_asks_for_the_same_points(name):
    assert run(new(name), 4) == run(new(name), 4)
    if name != "top":  # which knows no chance in a pool of this size
        assert run(new(name), 4) != run(new(name, random_state=1), 4)


def unit_variance(model, kind, points):
    """For noise variance 1; gp in units of the kernel."""
    return getattr(model.fitted_.ridge, kind)(model.fitted_.at(points))


@pytest.mark.parametrize(
    ("score", "kind"), [("auto", "v2"), ("v2", "v2"), ("v3", "v3"), ("gp", "gp")]
)
@pytest.mark.parametrize("name", ["automatic", "rsKRR+V2"])
def test_scores_are_those_of_the_estimator_for_unit_noise(name, score, kind):
    learner = new(name, score=score)
    run(learner, 3)
    rows = np.setdiff1d(np.arange(P), learner.labeled_ids_)
    scores = learner.scores()
    assert_close_each(scores[rows], unit_variance(learner.estimator_, kind, X[rows]), "float32")
    assert not scores[learner.labeled_ids_].any()


@pytest.mark.parametrize("score", ["auto", "v1", "gp"])
def test_scores_of_the_exact_estimator(score):
    learner = new("KRR+V1", score=score)
    run(learner, 2)
    rows = np.setdiff1d(np.arange(P), learner.labeled_ids_)
    kind = "v1" if score == "auto" else score
    assert_close_each(learner.scores()[rows], unit_variance(learner.estimator_, kind, X[rows]))


def test_gp_scores_are_in_units_of_the_kernel():
    learner = ActiveLearner(
        SketchedKernelRidge("polynomial"), 100 * X, batch_size=20, score="gp", random_state=0
    )
    run(learner, 1)
    rows = np.setdiff1d(np.arange(P), learner.labeled_ids_)
    model = learner.estimator_
    assert model.fitted_.kernel.unit > 1e6
    assert_close_each(learner.scores()[rows], model.variance(100 * X[rows], "gp"))


def test_changing_what_was_returned_changes_nothing():
    learner, same = new(), new()
    run(learner, 2)
    run(same, 2)
    learner.scores()[:] = 0
    learner.estimator_.partial_fit(X[:50], np.zeros(50))
    learner.history_.clear()
    assert learner.ask().tolist() == same.ask().tolist()


@pytest.mark.parametrize("name", ["rsKRR+V2", "KRR+V1"])
def test_parameters_set_on_the_estimator_hold_from_the_next_fit_on(name):
    learner = new(name)
    run(learner, 2)
    alpha = learner.estimator_.alpha_
    learner.estimator_.set_params(alpha=12.5)
    assert learner.estimator_.alpha_ == alpha
    run(learner, 1)
    assert learner.estimator_.alpha_ == 12.5
    learner.ask()
    assert learner.history_[-1]["lambda"] == learner.estimator_.lambda_


def test_the_pool_is_not_that_of_the_caller():
    """A buffer that is used again after the call (H7)."""
    buffer = X.copy()
    estimator, acquisition = STRATEGIES["automatic"]
    learner = ActiveLearner(
        estimator, buffer, batch_size=10, acquisition=acquisition, random_state=0
    )
    asked = run(learner, 1)
    buffer[:] = 0
    assert asked + run(learner, 2) == run(new(), 3)


def test_probabilities_are_the_share_of_the_score_among_points_that_could_be_drawn():
    learner = new()
    run(learner, 2)
    pending = learner.ask(3)
    ids, probability = learner.ask(5, return_probability=True)
    left = np.setdiff1d(np.arange(P), np.concatenate([learner.labeled_ids_, pending]))
    scores = learner.scores()
    assert_close_each(probability, scores[ids] / scores[left].sum())


def test_the_first_points_can_be_drawn_evenly():
    ids, probability = new(first="uniform").ask(7, return_probability=True)
    assert len(set(ids.tolist())) == 7
    np.testing.assert_array_equal(probability, np.full(7, 1 / P))


def test_one_label_is_not_enough_for_a_model():
    learner = new()
    learner.tell([3], [1.0])
    assert 3 not in learner.ask(P)
    with pytest.raises(ValueError, match="no model before 2 labels are told; there are 1"):
        _ = learner.estimator_
    assert learner.history_ == []


def test_a_model_by_rounds_is_the_one_by_partial_fits():
    learner = new()
    asked = run(learner, 3)
    bandwidth = median_bandwidth(X, Matern32())
    model = SketchedKernelRidge(
        fit_intercept=True, bandwidth=bandwidth, random_state=learner._settings["seed"]
    )
    for ids in asked:
        model.partial_fit(X[ids], measured(np.array(ids)))
    assert_close(learner.estimator_.predict(X), model.predict(X))
    assert learner.estimator_.bandwidth_ == bandwidth


def test_lambda_is_chosen_anew_and_the_sketch_grows_up_to_its_cap(monkeypatch):
    monkeypatch.setattr(models, "_LARGEST_SKETCH", 96)
    learner = ActiveLearner(
        SketchedKernelRidge(bandwidth=0.15, alpha=1e-6, sketch_tol=1e-3),
        X,
        batch_size=60,
        random_state=0,
    )
    run(learner, 3)
    sizes = [row["sketch_size"] for row in learner.history_]
    assert len(sizes) == 3
    assert sizes == sorted(sizes)
    assert learner.estimator_.sketch_size_ == 96
    other = new()
    run(other, 5)
    assert len({row["lambda"] for row in other.history_}) > 1


def test_pending_points_are_not_asked_for_twice_and_can_be_released():
    learner = new()
    first = learner.ask(150)
    second = learner.ask(60)
    assert len(second) == 50
    assert not set(first) & set(second)
    with pytest.raises(
        ValueError, match=r"All 200 points of the pool are labeled, pending \(200 are\) or failed"
    ):
        learner.ask()
    learner.release(first[:20])
    assert learner.pending_ids_.tolist() == [*first[20:], *second]
    assert set(learner.ask(30)) == set(first[:20])


def test_the_whole_pool_can_be_labeled():
    learner = new()
    while not learner.should_stop():
        ids = learner.ask(90)
        learner.tell(ids, measured(ids))
    assert learner.stop_reason_ == "every point of the pool is labeled"
    assert sorted(learner.labeled_ids_.tolist()) == list(range(P))
    assert not learner.scores().any()  # M10
    assert not len(learner.open_ids_)


def test_labels_that_were_not_asked_for_are_welcome():
    learner = new()
    learner.tell(np.arange(20), measured(np.arange(20)))
    assert not set(learner.ask(100)) & set(range(20))
    assert learner.history_[0]["labels"] == 20


def test_several_targets():
    learner = new("rsKRR+V2")
    ids = learner.ask(30)
    learner.tell(ids, np.column_stack([measured(ids), -measured(ids)]))
    learner.ask()
    assert learner.estimator_.predict(X).shape == (P, 2)


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (25, "30 labels of a budget of 25"),
        (Budget(30), "30 labels of a budget of 30"),
        (ScoreBelow(1e9), "the largest score"),
        ([Budget(1000), ScoreBelow(1e9, "mean")], "the mean score"),
        (NoImprovement(1, by=0.999), "has not improved"),
    ],
)
def test_stopping(stop, reason):
    learner = new(stop=stop)
    for _ in range(5):
        if learner.should_stop():
            break
        ids = learner.ask()
        learner.tell(ids, measured(ids))
    assert reason in learner.stop_reason_


def test_without_a_rule_there_is_no_end():
    learner = new()
    run(learner, 3)
    assert not learner.should_stop()
    assert learner.stop_reason_ == ""


# --- stored campaigns


@every_strategy
def test_a_campaign_that_was_interrupted_asks_for_the_same_points(name, url):
    asked = run(new(name), 6)
    learner = new(name, store=url)
    resumed = run(learner, 2)
    for _ in range(4):
        resumed += run(ActiveLearner.resume(url), 1)
    assert resumed == asked


def test_an_interruption_between_ask_and_tell_loses_nothing(url):
    asked = run(new(), 3)
    learner = new(store=url)
    run(learner, 2)
    learner.ask()
    again = ActiveLearner.resume(url)
    assert again.pending_ids_.tolist() == asked[2]
    again.tell(again.pending_ids_, measured(again.pending_ids_))
    full = new()
    run(full, 3)
    assert ActiveLearner.resume(url).ask().tolist() == full.ask().tolist()


def test_history_and_settings_come_back(url):
    learner = new(store=url, stop=[Budget(40), NoImprovement(3)], score="gp", acquisition="top")
    run(learner, 3)
    again = ActiveLearner.resume(url)
    assert again.history_ == learner.history_
    assert again._settings == {**learner._settings, "notes": {}}
    assert again._stop == learner._stop


def test_two_learners_on_one_store_share_their_labels_and_their_model(url):
    one = new(store=url)
    other = ActiveLearner.resume(url)
    for turn in (one, other, one, other):
        ids = turn.ask()
        turn.tell(ids, measured(ids))
    assert_close(one.estimator_.predict(X), other.estimator_.predict(X))
    assert one.labeled_ids_.tolist() == other.labeled_ids_.tolist()
    assert not set(one.ask().tolist()) & set(other.ask().tolist())


def test_a_large_pool_is_recognized_and_not_copied(monkeypatch, url):
    monkeypatch.setattr(parts_module, "_KEPT", 100)
    asked = run(new(), 3)
    resumed = run(new(store=url), 2)
    with pytest.raises(ValueError, match="200 rows, was too large to be kept"):
        ActiveLearner.resume(url)
    for wrong in (X[:-1], X + 1e-9, X[::-1]):
        with pytest.raises(ValueError, match="not the pool of the campaign"):
            ActiveLearner.resume(url, wrong)
    assert resumed + run(ActiveLearner.resume(url, X), 1) == asked


# --- bad input changes nothing


@pytest.mark.parametrize(
    ("ids", "y", "message"),
    [
        ([1, 2], [1.0], "2 ids came with 1 labels"),
        ([1, 1], [1.0, 2.0], "1 is given more than once"),
        ([-1], [1.0], "-1 is not a row of the pool"),
        ([P], [1.0], "200 is not a row of the pool, which has the rows 0 to 199"),
        ([1.5], [1.0], "ids must be row numbers"),
        (["a"], [1.0], "ids must be row numbers"),
        ([[1]], [1.0], "ids must be row numbers"),
        ([1, 2], [1.0, np.nan], "Label number 1 is missing or infinite"),
        ([1, 2], [np.inf, 1], "Label number 0 is missing"),
        ([1], ["x"], "Labels must be numbers"),
        (
            [1],
            np.array(["2020-01-01"], dtype="datetime64[ns]"),
            "Labels must be numbers, got datetime",
        ),
        ([1, 2], np.ma.array([1.0, 2.0], mask=[False, True]), "Label number 1 is missing"),
        ([1], [1e200], "squares beyond floating point: rescale"),
        ([1], np.ones((1, 1, 1)), "shape"),
        ([0], [5.0], "Already labeled, with another value: 0"),
    ],
)
def test_bad_labels_are_refused_and_change_nothing(ids, y, message, tmp_path):
    learner = new(store=f"sqlite:///{tmp_path / 'x.db'}")
    learner.tell([0, 3], [1.0, 2.0])
    with pytest.raises(ValueError, match=message):
        learner.tell(ids, y)
    assert learner.labeled_ids_.tolist() == [0, 3]


def test_telling_nothing_is_fine():
    learner = new()
    learner.tell([], [])
    assert len(learner.labeled_ids_) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number"),
        ({"batch_size": 2.5}, "batch_size must be a whole number"),
        (
            {"acquisition": "best"},
            "Unknown acquisition 'best': give one of 'weighted', 'top', 'uniform'",
        ),
        ({"score": "v1"}, "Unknown score 'v1' for SketchedKernelRidge"),
        ({"stop": "now"}, "stop must be a number of labels"),
        ({"store": "nonsense"}, "cannot be used"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        new(**options)


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
@pytest.mark.parametrize("call", ["ask", "preview"])
def test_a_bad_number_of_points_is_refused(call, n):
    with pytest.raises(ValueError, match="n must be a whole number from 1 up"):
        getattr(new(), call)(n)


def test_other_estimators_are_refused():
    from sklearn.linear_model import Ridge

    with pytest.raises(TypeError, match="needs one of ExactKernelRidge, SketchedKernelRidge"):
        ActiveLearner(Ridge(), X, batch_size=5)


def test_a_fit_that_fails_does_not_lose_labels(tmp_path):
    """alpha too small for a dense factorization: labels are kept, and both can be repeated."""
    url = f"sqlite:///{tmp_path / 'x.db'}"
    learner = ActiveLearner(
        ExactKernelRidge("linear", alpha=1e-30), X, batch_size=5, store=url, random_state=0
    )
    learner.tell(np.arange(30), measured(np.arange(30)))
    for _ in range(2):
        with pytest.raises(ValueError, match="alpha"):
            learner.ask()
    assert len(ActiveLearner.resume(url).labeled_ids_) == 30
