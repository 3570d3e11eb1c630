"""Readers never write: looking at a campaign opens no round, records nothing, changes no draw."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import normal

from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge
from sketchridge.active import Budget, NoImprovement, ScoreBelow
from sketchridge.active.memory import MemoryStore
from sketchridge.active.sql import SQLStore

P = 120
X = normal(P, 2)
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * np.cos(37.0 * np.arange(P))
RULES = [Budget(1000), ScoreBelow(1e-9), NoImprovement(3)]
READERS = {
    "should_stop": lambda learner: learner.should_stop(),
    "scores": lambda learner: learner.scores(),
    "estimator_": lambda learner: learner.estimator_.predict(X),
    "preview": lambda learner: learner.preview(),
    "expected_gain": lambda learner: learner.expected_gain(),
    "history_": lambda learner: learner.history_,
    "labeled_ids_": lambda learner: learner.labeled_ids_,
    "labels_": lambda learner: learner.labels_,
    "pending_ids_": lambda learner: learner.pending_ids_,
    "open_ids_": lambda learner: learner.open_ids_,
    "draws_": lambda learner: learner.draws_,
    "pool_": lambda learner: learner.pool_[np.arange(3)],
    "settings_": lambda learner: learner.settings_,
}
ESTIMATORS = {
    "sketched": SketchedKernelRidge(fit_intercept=True),
    "dense": SketchedKernelRidge(sketch="gaussian", sketch_size=8, alpha=0.1),
    "exact": ExactKernelRidge(),
}


def new(name="sketched", **options):
    chosen = {"batch_size": 10, "random_state": 0, "stop": RULES, **options}
    return ActiveLearner(ESTIMATORS[name], X, **chosen)


def told(learner, ids):
    learner.tell(ids, Y[ids])


def snapshot(store):
    ids, labels = store.labels()
    return ids.tolist(), labels.tolist(), store.draws(), store.pending().tolist(), store.rounds()


class Watched(MemoryStore):
    """A store that refuses to be written to while it is only looked at."""

    looking = False

    def _write(self):
        assert not self.looking, "a reader wrote to the store"

    def claim(self, *arguments):
        self._write()
        return super().claim(*arguments)

    def open_round(self, *arguments):
        self._write()
        super().open_round(*arguments)

    def record(self, *arguments):
        self._write()
        super().record(*arguments)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_readers_never_write(name, reader):
    """With labels in no round, with points pending, and after a round was begun."""
    store = Watched()
    learner = new(name, store=store)
    for step in range(3):
        ids = learner.ask()
        for part in (ids[:4], ids[4:8]):
            told(learner, part)
            before = snapshot(store)
            store.looking = True
            READERS[reader](learner)
            store.looking = False
            assert snapshot(store) == before
        assert len(store.rounds()) == step


@pytest.mark.parametrize("name", ESTIMATORS)
def test_looking_between_labels_changes_nothing(name):
    """Who asks between the labels of a batch how it goes changes no draw and no history (B7)."""
    asked, histories = [], []
    for looks in (False, True):
        learner = new(name)
        ids_by_round = []
        for _ in range(4):
            ids = learner.ask()
            ids_by_round.append(ids.tolist())
            for part in np.array_split(ids, 4):
                told(learner, part)
                for reader in READERS.values() if looks else ():
                    reader(learner)
        asked.append(ids_by_round)
        histories.append(learner.history_)
    assert asked[0] == asked[1]
    assert histories[0] == histories[1]


def test_colleagues_who_look_change_nothing_either(url):
    alone = new()
    shared = new(store=url)
    colleague = ActiveLearner.resume(url)
    for _ in range(3):
        ids, same = alone.ask(), shared.ask()
        assert ids.tolist() == same.tolist()
        for part in np.array_split(ids, 3):
            told(alone, part)
            told(shared, part)
            if len(alone.labeled_ids_) >= 2:
                colleague.should_stop()
                colleague.preview()
                ActiveLearner.resume(url).expected_gain()
    assert SQLStore.open(url).rounds() == alone._store.rounds()
    assert colleague.history_ == alone.history_ == shared.history_


def test_labels_in_no_round_are_the_last_row_of_the_history():
    learner = new()
    for k in range(3):
        told(learner, np.arange(10 * k, 10 * k + 10))
        learner.ask(5)
    told(learner, np.arange(40, 47))
    assert [row["labels"] for row in learner.history_] == [10, 20, 30, 37]
    assert [row["round"] for row in learner.history_] == [1, 2, 3, 4]
    assert all(row["loo_error"] > 0 and row["sketch_size"] > 0 for row in learner.history_)
    assert learner.history_[-1]["loo_error"] == learner.estimator_.loo_error_
    told(learner, np.arange(47, 50))
    assert [row["labels"] for row in learner.history_] == [10, 20, 30, 40]
    learner.ask(5)
    assert [row["labels"] for row in learner.history_] == [10, 20, 30, 40]


def test_what_a_reader_computed_is_what_ask_then_uses(monkeypatch):
    """A model that was looked at is not fitted again."""
    learner = new()
    told(learner, np.arange(20))
    wanted = learner.preview().tolist()
    monkeypatch.setattr(SketchedKernelRidge, "partial_fit", None)
    assert learner.ask().tolist() == wanted


def test_rounds_are_opened_with_their_metrics_by_ask():
    learner = new()
    told(learner, np.arange(20))
    assert learner._store.rounds() == []
    learner.ask()
    (kept,) = learner._store.rounds()
    assert kept.labels == 20
    wanted = {"lambda", "loo_error", "sketch_size", "largest_score", "mean_score"}
    assert set(kept.metrics) == wanted
    learner.ask()
    assert learner._store.rounds() == [kept]


@pytest.mark.parametrize("acquisition", ["weighted", "uniform"])
def test_scores_are_computed_for_a_rule_that_needs_them(acquisition):
    learner = new(stop=ScoreBelow(1e9, "mean"), acquisition=acquisition)
    told(learner, np.arange(20))
    assert learner.should_stop()
    learner.ask()
    assert learner.should_stop()
    recorded = "mean_score" in learner._store.rounds()[0].metrics
    assert recorded == (acquisition == "weighted")


# A store that fails


@pytest.mark.parametrize("method", ["open_round", "record", "claim"])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
def test_a_store_that_fails_once_leaves_no_half_written_history(
    kind, method, make_url, monkeypatch
):
    """M3: the round, its metrics and the points are kept together or not at all."""
    url = None if kind == "memory" else make_url(kind)
    learner, same = new(store=url), new()
    for k in range(2):
        for one in (learner, same):
            told(one, np.arange(10 * k, 10 * k + 10))
            if k == 0:
                one.ask(5)
    before = snapshot(learner._store)
    original = getattr(type(learner._store), method)

    def fail(store, *arguments):
        original(store, *arguments)  # what was done is undone
        raise OSError("The disk is on fire.")

    monkeypatch.setattr(type(learner._store), method, fail)
    with pytest.raises(OSError, match="on fire"):
        learner.ask()
    monkeypatch.undo()
    assert snapshot(learner._store) == before
    assert learner.ask().tolist() == same.ask().tolist()
    assert not learner.should_stop()
    assert learner.history_ == same.history_
    assert snapshot(learner._store) == snapshot(same._store)
    if url is not None:
        assert not ActiveLearner.resume(url).should_stop()


@pytest.mark.parametrize("name", ["sketched", "exact"])
def test_rounds_without_metrics_are_computed_when_they_are_looked_at(name, url):
    """As version 1 left them after a failure: nothing is missing in history, status and rules."""
    learner, whole = new(name, store=url), new(name)
    for k in range(4):
        for one in (learner, whole):
            told(one, np.arange(10 * k, 10 * k + 10))
            one.ask(1)
    store = learner._store
    import sqlalchemy as sa

    with store._database.engine.begin() as connection:
        connection.execute(sa.text("UPDATE sketchridge_rounds SET metrics = '{}' WHERE number = 1"))
        only_scores = '{"mean_score": 1.0}'
        update = sa.text("UPDATE sketchridge_rounds SET metrics = :m WHERE number = 3")
        connection.execute(update, {"m": only_scores})
    again = ActiveLearner.resume(url)
    before = snapshot(again._store)
    assert again.should_stop() == whole.should_stop()
    assert again.stop_reason_ == whole.stop_reason_
    for row, wanted in zip(again.history_, whole.history_, strict=True):
        for key in ("labels", "lambda", "loo_error"):
            assert row[key] == wanted[key]
    assert snapshot(again._store) == before


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_metrics_that_are_no_numbers_are_not_recorded(value, url, monkeypatch):
    """PostgreSQL refuses infinity: it is computed again by whoever looks."""
    monkeypatch.setattr(SketchedKernelRidge, "loo_error_", value)
    learner = new(store=url, stop=None)
    told(learner, np.arange(20))
    learner.ask()
    assert "loo_error" not in learner._store.rounds()[0].metrics
    again = ActiveLearner.resume(url)
    np.testing.assert_equal(again.history_[0]["loo_error"], value)


def test_an_infinite_threshold_is_refused():
    with pytest.raises(ValueError, match="threshold of ScoreBelow must be finite"):
        new(stop=ScoreBelow(float("inf")))
