"""What is given to a learner and cannot be, told at the edge and before anything is kept."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from helpers import normal

from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge

X = normal(20, 2)


@pytest.fixture(params=["memory", "sqlite"])
def learner(request, make_url):
    store = None if request.param == "memory" else make_url("sqlite")
    return ActiveLearner(SketchedKernelRidge(), X, batch_size=3, store=store, random_state=0)


@pytest.mark.parametrize("estimator", [SketchedKernelRidge(), ExactKernelRidge()])
@pytest.mark.parametrize(
    ("pool", "words"),
    [(np.ones((9, 2)), "All candidates have equal features"), (X[:1], "only one candidate")],
)
def test_candidates_that_are_all_alike(estimator, pool, words, make_url, tmp_path):
    """C4: it spoke of bandwidths."""
    with pytest.raises(ValueError, match=words) as error:
        ActiveLearner(estimator, pool, batch_size=3, store=make_url("sqlite"))
    assert "bandwidth" not in str(error.value)
    assert not list(tmp_path.glob("*.db"))
    given = type(estimator)("gaussian", bandwidth=1.0)
    ActiveLearner(given, pool, batch_size=1)


def test_candidates_that_nearly_all_are_alike():
    """It spoke of a median."""
    pool = np.zeros((20_000, 2))
    pool[-1] = 1.0
    with pytest.raises(ValueError, match="Nearly all candidates have equal features: remove"):
        ActiveLearner(SketchedKernelRidge(), pool, batch_size=3)


@pytest.mark.parametrize("y", [[1e-300, 2e-300], [1.0, -1e-200], [5e-324, 0.0]])
def test_labels_whose_squares_are_nothing(learner, y):
    """C5: they were kept, and every question after them failed."""
    with pytest.raises(ValueError, match=r"Labels as small as .* beyond floating point"):
        learner.tell([0, 1], y)
    assert not len(learner.labeled_ids_)
    learner.tell([0, 1], [1e-150, -1e-150])
    with pytest.raises(ValueError, match="Labels as small as"):
        learner.amend([0, 1], y)
    assert len(learner.ask()) == 3


def test_complex_labels_are_refused(learner):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in ([1j, 2.0], np.array([1 + 0j, 2]), [1j, "a"]):
            with pytest.raises(ValueError, match="Labels must be numbers, got"):
                learner.tell([0, 1], y)


def test_names_go_with_ids(learner):
    with pytest.raises(ValueError, match="2 ids came with 1 names: give one for each, or none"):
        learner.tell([1, 2], [1.0, 2.0], names=["a"])
    assert not len(learner.labeled_ids_)
    learner.tell([1, 2], [1.0, 2.0], names=None, by=None)
    learner.tell([3], [1.0], names=np.array(["c"]))


def test_nothing_said_for_the_record_is_nothing(learner):
    learner.tell([1, 2, 3], [1.0, 2.0, 3.0])
    learner.amend([1], [5.0], by=None, note=None)
    learner.retract([2], by=None, note=None)
    learner.fail([4], by=None, note=None)
    assert [(c.by, c.note) for c in learner.changes_] == [("", ""), ("", "")]
    assert [(f.by, f.note) for f in learner.failures_] == [("", "")]


@pytest.mark.parametrize("goal", [{"a": 1}, {"name": "maximize"}, {}])
def test_a_goal_that_is_no_goal(goal):
    with pytest.raises(ValueError, match="A goal is a name such as 'maximize'"):
        ActiveLearner(SketchedKernelRidge(), X, batch_size=3, goal=goal)


def test_a_goal_as_it_is_stored_is_checked():
    with pytest.raises(ValueError, match="Unknown goal 'best'"):
        ActiveLearner(SketchedKernelRidge(), X, batch_size=3, goal={"name": "best", "value": None})
