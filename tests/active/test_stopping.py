"""When enough has been measured: every rule, its text, and its way into a store and back."""

from __future__ import annotations

import pytest

from sketchridge.active import Budget, NoImprovement, ScoreBelow
from sketchridge.active.stopping import as_stop_rules, stop_rules_from, to_settings


def history(errors, largest=1.0, mean=0.5):
    return [{"loo_error": error, "largest_score": largest, "mean_score": mean} for error in errors]


@pytest.mark.parametrize(
    ("rule", "labels", "rows", "stops"),
    [
        (Budget(10), 9, [], False),
        (Budget(10), 10, [], True),
        (Budget(10), 11, [], True),
        (ScoreBelow(2.0), 5, history([1]), True),
        (ScoreBelow(1.0), 5, history([1]), False),
        (ScoreBelow(0.9), 5, history([1]), False),
        (ScoreBelow(0.9, "mean"), 5, history([1]), True),
        (ScoreBelow(0.9), 5, [], False),
        (ScoreBelow(0.9), 5, [{"loo_error": 1.0}], False),
        (NoImprovement(2), 5, history([3, 2]), False),
        (NoImprovement(2), 5, history([3, 2, 1]), False),
        (NoImprovement(2), 5, history([1, 2, 3]), True),
        (NoImprovement(2), 5, history([1, 2, 0.99]), False),
        (NoImprovement(2, by=0.05), 5, history([1, 2, 0.99]), True),
        (NoImprovement(2), 5, history([1, 1, 1]), True),
        (NoImprovement(3), 5, history([5, 1, 2, 3]), False),
    ],
)
def test_rules(rule, labels, rows, stops):
    assert bool(rule.reason(labels, rows)) == stops


def test_reasons_are_sentences_with_their_figures():
    assert Budget(10).reason(12, []) == "12 labels of a budget of 10"
    assert ScoreBelow(2.0).reason(1, history([1])) == "the largest score, 1, is below 2"
    assert "has not improved on 1 over 2 rounds" in NoImprovement(2).reason(1, history([1, 2, 3]))


@pytest.mark.parametrize(
    "stop", [None, 30, Budget(30), [Budget(30), ScoreBelow(0.1, "mean"), NoImprovement(4, by=0.01)]]
)
def test_rules_survive_the_way_through_a_store(stop):
    rules = as_stop_rules(stop)
    assert stop_rules_from(to_settings(rules)) == rules


@pytest.mark.parametrize("stop", ["soon", 0, -3, True, 2.5, [Budget(3), "x"], object()])
def test_what_is_no_rule_is_refused(stop):
    with pytest.raises(ValueError, match="must be"):
        as_stop_rules(stop)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Budget(0),
        lambda: Budget(1.5),
        lambda: ScoreBelow(0),
        lambda: ScoreBelow(float("nan")),
        lambda: ScoreBelow("x"),
        lambda: NoImprovement(0),
        lambda: NoImprovement(2, by=1),
    ],
)
def test_bad_figures_are_refused(make):
    with pytest.raises(ValueError, match="must be"):
        make()


def test_an_unknown_statistic_is_refused():
    with pytest.raises(ValueError, match="give 'largest' or 'mean'"):
        ScoreBelow(1.0, "median")
