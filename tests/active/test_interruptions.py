"""Ctrl-C or an error at any moment of an update: all is as it was, or fully updated."""

from __future__ import annotations

import _thread
import signal
import threading

import numpy as np
import pytest
from helpers import assert_close, normal

from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge
from sketchridge.active import sums as pool_module
from sketchridge.backends import NumpyTiles

P = 120
X = np.concatenate([normal(P - 8, 2), normal(8, 2)])  # the last eight are the first again
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * np.cos(37.0 * np.arange(P))
PRIMITIVES = (
    "points", "block", "schur", "matmul", "moments", "residual_sqnorm", "tall", "array", "host",
    "empty", "joined", "each", "total", "drawn", "eigh", "solve_triangular", "definite",
)  # fmt: skip
ESTIMATORS = {
    "automatic": SketchedKernelRidge(bandwidth=0.7, fit_intercept=True),
    "growing": SketchedKernelRidge(bandwidth=0.1, alpha=1e-3),
    "pcg": SketchedKernelRidge(alpha=0.1, sketch_size=8, solver="pcg"),
    "dense": SketchedKernelRidge(alpha=0.1, sketch="rademacher", sketch_size=8),
    "exact": ExactKernelRidge(fit_intercept=True),
}


class Fuse:
    """Counts calls of the backend's primitives, and interrupts at one of them."""

    def __init__(self, monkeypatch):
        self.calls = 0
        self.at = None
        for name in PRIMITIVES:
            self._wire(monkeypatch, name, getattr(NumpyTiles, name))

    def _wire(self, monkeypatch, name, original):
        def wired(*arguments, **options):
            self.calls += 1
            if self.calls == self.at:
                raise KeyboardInterrupt
            return original(*arguments, **options)

        monkeypatch.setattr(NumpyTiles, name, wired)

    def set(self, at):
        self.calls = 0
        self.at = at


def new(name, store=None):
    estimator = ESTIMATORS[name]
    return ActiveLearner(estimator, X, batch_size=12, store=store, random_state=0)


def told(learner, ids):
    learner.tell(ids, Y[ids])


def snapshot(learner):
    store = learner._store
    ids, labels = store.labels()
    return ids.tolist(), labels.tolist(), store.draws(), store.pending().tolist(), store.rounds()


def is_whole(learner):
    """The model knows each label once."""
    rows = learner.estimator_.fitted_.data.rows
    assert len(rows.group) == len(learner.labeled_ids_)


@pytest.mark.parametrize("memory", [2**30, 0], ids=["memory", "file"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_interruption_at_every_tenth_call_leaves_no_trace(name, memory, monkeypatch):
    """In the second and third rounds of a campaign; H8 and B6."""
    monkeypatch.setattr(pool_module, "_MEMORY", memory)
    monkeypatch.setattr(pool_module, "_ROWS", 50)
    fuse = Fuse(monkeypatch)
    learner, same = new(name), new(name)
    for one in (learner, same):
        told(one, np.arange(30))
        one.ask()
    for first in (30, 60):
        for one in (learner, same):
            told(one, np.arange(first, first + 30))
        fuse.set(None)
        wanted = same.ask().tolist()
        calls = fuse.calls
        assert calls > 10
        before = snapshot(learner)
        for at in range(1, calls + 1, 10):
            fuse.set(at)
            with pytest.raises(KeyboardInterrupt):
                learner.ask()
            assert snapshot(learner) == before
            learner._models._ahead = None  # what was done so far does not help the next attempt
        fuse.set(None)
        assert learner.ask().tolist() == wanted
        assert snapshot(learner) == snapshot(same)
        is_whole(learner)
        assert_close(learner.estimator_.predict(X), same.estimator_.predict(X))
        assert_close(learner.scores(), same.scores())
        assert learner.history_ == same.history_


@pytest.mark.parametrize(
    "reader", ["should_stop", "scores", "preview", "expected_gain", "history_"]
)
def test_a_reader_that_is_interrupted_can_be_asked_again(reader, monkeypatch):
    fuse = Fuse(monkeypatch)
    learner, same = new("automatic"), new("automatic")
    for one in (learner, same):
        told(one, np.arange(30))
        one.ask()
        told(one, np.arange(30, 60))

    def look(one):
        found = getattr(one, reader)
        return found() if callable(found) else found

    fuse.set(None)
    wanted = look(same)
    for at in range(1, fuse.calls + 1, 10):
        fuse.set(at)
        try:
            look(learner)  # what is known already is not computed again
        except KeyboardInterrupt:
            fuse.set(None)
            is_whole(learner)
    fuse.set(None)
    np.testing.assert_equal(look(learner), wanted)
    assert learner.ask().tolist() == same.ask().tolist()


@pytest.mark.parametrize("where", ["found_noise", "basis_of"])
def test_an_error_after_the_factor_is_made_counts_no_label_twice(where, monkeypatch):
    """The reproducer of H8: 80 labels, 100 rows in the model."""
    from sketchridge import selection

    learner = new("automatic")
    told(learner, np.arange(30))
    learner.ask()
    told(learner, np.arange(30, 50))

    def fail(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(selection, where, fail)
        for call in (learner.scores, learner.ask):
            with pytest.raises(KeyboardInterrupt):
                call()
    is_whole(learner)
    assert len(learner.estimator_.fitted_.sample) == len(np.unique(X[:50], axis=0))


def test_real_signals_at_many_moments(request):
    """Ctrl-C from another thread while rounds go on; every label is known once at the end."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    learner = new("growing")
    told(learner, np.arange(20))
    interrupted = 0
    for k in range(20, 80, 3):
        told(learner, np.arange(k, k + 3))
        timer = threading.Timer(0.002 * (1 + k % 17), _thread.interrupt_main)
        try:
            timer.start()  # on a busy machine the signal comes before this returns
            learner.should_stop()
            learner.scores()
            timer.join()
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            try:
                timer.join()
            except KeyboardInterrupt:
                interrupted += 1
        is_whole(learner)
    assert interrupted
    fresh = new("growing")
    told(fresh, learner.labeled_ids_)
    assert learner.ask().tolist() == fresh.ask().tolist()
