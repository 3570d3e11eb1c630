"""What a bench needs: corrections, failures, further candidates, and a first batch that is spread
over the space."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close, normal
from sklearn.base import clone

from sketchridge import ActiveLearner, ExactKernelRidge, SketchedKernelRidge
from sketchridge.active import parts as parts_module
from sketchridge.active import relearn
from sketchridge.active.sql import SQLStore

P = 120
X = normal(P, 2)
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]
ESTIMATORS = {
    "automatic": SketchedKernelRidge(
        "auto", bandwidth="auto", alpha="loo", solver="auto", fit_intercept=True
    ),
    "pinned": SketchedKernelRidge("gaussian", bandwidth=1.0, alpha="gcv", solver="sketch"),
    "exact": ExactKernelRidge("gaussian", bandwidth=1.0, alpha=0.1),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def new(name="pinned", pool=X, **options):
    chosen = {"batch_size": 10, "random_state": 0, **options}
    return ActiveLearner(ESTIMATORS[name], pool, **chosen)


def told(learner, ids, wrong=0.0):
    learner.tell(ids, Y[ids] + wrong)


# Corrections


@every_estimator
def test_a_model_follows_a_correction(name, url):
    learner = new(name, store=url)
    ids = learner.ask()
    learner.tell(ids, np.where(np.arange(10) == 3, 1000.0, Y[ids]))
    wrong = learner.estimator_.predict(X)
    learner.ask(2)
    learner.amend(ids[3:4], Y[ids[3:4]], by="Ada", note="a comma was missing")
    right = new(name)
    right.tell(ids, Y[ids])
    assert not np.allclose(learner.estimator_.predict(X), wrong)
    assert_close(learner.estimator_.predict(X), right.estimator_.predict(X))
    (change,) = ActiveLearner.resume(url).changes_
    assert (change.id, list(change.old), list(change.new)) == (ids[3], [1000.0], [Y[ids[3]]])
    assert (change.by, change.note) == ("Ada", "a comma was missing")
    assert change.at.startswith("20")


@every_estimator
def test_after_a_correction_every_process_has_the_same_model(name, url):
    learner = new(name, store=url)
    for _ in range(3):
        told(learner, learner.ask())
    learner.ask(1)
    learner.amend(learner.labeled_ids_[:2], [5.0, 6.0])
    ids = learner.ask(4)
    told(learner, ids)
    again = ActiveLearner.resume(url)
    assert again.preview().tolist() == learner.preview().tolist()
    assert again.history_ == learner.history_
    np.testing.assert_array_equal(again.estimator_.predict(X), learner.estimator_.predict(X))
    assert [row["labels"] for row in learner.history_] == [10, 20, 30, 30, 34]


def test_a_colleague_hears_of_a_correction(url):
    learner = new(store=url)
    told(learner, learner.ask())
    colleague = ActiveLearner.resume(url)
    before = colleague.estimator_.predict(X)
    learner.amend(learner.labeled_ids_[:1], [50.0])
    assert not np.allclose(colleague.estimator_.predict(X), before)


def test_a_label_of_another_point_can_be_taken_back(url):
    learner = new(store=url)
    ids = learner.ask()
    told(learner, ids)
    told(learner, [int(learner.open_ids_[0])])
    other = int(learner.labeled_ids_[-1])
    learner.retract([ids[0], other], note="tubes were exchanged")
    assert learner.pending_ids_.tolist() == [ids[0]]
    assert other in learner.open_ids_
    assert [change.new for change in learner.changes_] == [None, None]
    assert learner.history_[-1]["labels"] == 9
    right = new()
    told(right, ids[1:])
    assert_close(learner.estimator_.predict(X), right.estimator_.predict(X))
    told(learner, ids[:1])
    assert len(learner.labeled_ids_) == 10


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_only_labels_can_be_corrected(kind, make_url):
    learner = new(store=None if kind == "memory" else make_url(kind))
    told(learner, [1, 2])
    for call in (learner.retract, lambda ids: learner.amend(ids, np.ones(len(ids)))):
        with pytest.raises(ValueError, match=r"5, 6 have none"):
            call([1, 5, 6])
    with pytest.raises(ValueError, match="2 targets were given, but the campaign has 1"):
        learner.amend([1], [[1.0, 2.0]])
    assert learner.changes_ == []
    learner.amend([1], [Y[1]])  # the same value
    assert learner.changes_ == []
    with pytest.raises(ValueError, match=r"Already labeled, with another value: 2.*amend"):
        learner.tell([1, 2], [Y[1], 9.0])


# Failures


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
def test_what_cannot_be_measured_is_not_asked_for_again(kind, make_url):
    learner = new(store=None if kind == "memory" else make_url(kind))
    ids = learner.ask()
    never = int(learner.open_ids_[-1])
    learner.fail([ids[0], never], by="Ada", note="the vial broke")
    learner.fail(ids[:1])
    assert learner.failed_ids_.tolist() == sorted([ids[0], never])
    assert learner.pending_ids_.tolist() == ids[1:].tolist()
    told(learner, ids[1:])
    rest = learner.ask(P)
    assert len(rest) == P - 11
    assert not {ids[0], never} & set(rest.tolist())
    assert {f.note for f in learner.failures_} == {"the vial broke"}
    with pytest.raises(ValueError, match=f"{ids[1]} is labeled, and so was measured"):
        learner.fail(ids[1:2])
    told(learner, rest)
    assert learner.should_stop()
    assert learner.stop_reason_ == "every point of the pool is labeled or failed"
    learner.release(ids[:1])
    assert learner.ask(5).tolist() == ids[:1].tolist()
    told(learner, [never])  # it was measured after all
    assert learner.failed_ids_.tolist() == []


def test_a_point_that_was_released_is_drawn_anew():
    """B13: its key is another, so that it does not come back at once."""
    learner = new("exact", acquisition="uniform")
    first = learner.ask(6)
    learner.release(first)
    second = learner.ask(6)
    assert set(second.tolist()) != set(first.tolist())
    learner.release(second)
    assert set(learner.ask(6).tolist()) != set(second.tolist())


# Further candidates


@every_estimator
def test_candidates_can_be_added(name, url):
    learner = new(name, pool=X[:80], store=url)
    colleague = ActiveLearner.resume(url)
    told(learner, learner.ask())
    learner.ask(2)
    assert learner.add(X[80:100]).tolist() == list(range(80, 100))
    assert len(learner.scores()) == 100
    assert colleague.add(X[100:]).tolist() == list(range(100, 120))
    assert learner.open_ids_.max() == P - 1
    told(learner, [119])
    again = ActiveLearner.resume(url)
    assert len(again.pool_) == P
    np.testing.assert_array_equal(again.pool_[np.arange(75, 110)], X[75:110])
    ids = learner.preview(30)
    assert ids.tolist() == again.preview(30).tolist() == colleague.preview(30).tolist()
    whole = ActiveLearner.resume(url, X)
    assert whole.preview(30).tolist() == ids.tolist()
    with pytest.raises(ValueError, match="3 features were given, but the pool has 2"):
        learner.add(np.ones((4, 3)))


def test_large_parts_are_given_again(monkeypatch, url):
    monkeypatch.setattr(parts_module, "_KEPT", 16 * 50)
    learner = new(pool=X[:80], store=url)
    learner.add(X[80:100])
    with pytest.raises(ValueError, match="100 rows, was too large"):
        ActiveLearner.resume(url)
    assert len(ActiveLearner.resume(url, X[:80]).pool_) == 100
    assert len(ActiveLearner.resume(url, X[:100]).pool_) == 100
    with pytest.raises(ValueError, match="not the pool of the campaign"):
        ActiveLearner.resume(url, X[1:81])
    with pytest.raises(ValueError, match="not the pool of the campaign"):
        ActiveLearner.resume(url, X[:90])


# The first batch


def test_the_first_batch_is_spread_over_the_space():
    """No two of ten points are neighbors, where ten drawn evenly usually have some."""
    ids, chances = new(batch_size=12).ask(return_probability=True)
    np.testing.assert_array_equal(chances, 1.0)
    apart = nearest(X[ids])
    rng = np.random.default_rng(0)
    random = [nearest(X[rng.choice(P, 12, replace=False)]) for _ in range(200)]
    assert apart > np.quantile(random, 0.95)


def nearest(points):
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    return distances[np.triu_indices(len(points), 1)].min()


def test_a_spread_batch_keeps_away_from_what_is_pending():
    learner = new(batch_size=6)
    first = learner.ask()
    second = learner.ask()
    assert nearest(X[[*first, *second]]) > 0.3
    assert first.tolist() == new(batch_size=6).ask().tolist()


def test_a_large_first_batch_is_filled_up_evenly():
    pool = normal(600, 2)
    learner = ActiveLearner(ESTIMATORS["pinned"], pool, batch_size=300, random_state=0)
    ids, chances = learner.ask(return_probability=True)
    assert len(set(ids.tolist())) == 300
    assert (chances == 1).sum() == 200


# Learned kernels


def labeled_up_to(learner, count):
    ids = learner.open_ids_[: count - len(learner.labeled_ids_)]
    told(learner, ids)
    learner.ask(1)


def test_the_kernel_is_learned_again_as_labels_grow(url, monkeypatch):
    calls = []
    learned = relearn.learned_kernel

    def counted(estimator, X, y):
        calls.append(len(X))
        return learned(estimator, X, y)

    monkeypatch.setattr(relearn, "learned_kernel", counted)
    learner = new("automatic", store=url)
    for count in (20, 30, 36, 60, 74, 80):
        labeled_up_to(learner, count)
    assert calls == [30, 60, 80]
    rounds = SQLStore.open(url).rounds()
    kernels = [r.kernel for r in rounds]
    assert [kernel is not None for kernel in kernels] == [False, True, False, True, False, True]
    assert kernels[3]["kernel"] in ("gaussian", "matern32", "matern52", "laplacian")
    assert kernels[3]["alpha"] > 0
    assert kernels[3]["widths"] >= 1
    again = ActiveLearner.resume(url)
    assert again.preview(5).tolist() == learner.preview(5).tolist()
    np.testing.assert_array_equal(again.estimator_.predict(X), learner.estimator_.predict(X))
    assert calls == [30, 60, 80]  # replay never optimizes again
    model = again.estimator_
    assert model.kernel_.name.lower() == kernels[5]["kernel"]
    assert model.fitted_.factor_of_widths == kernels[5]["widths"]
    assert [row.get("learned") is None for row in again.history_][:2] == [True, False]
    learner.amend([0], [3.0])
    learner.ask(1)
    assert calls == [30, 60, 80]
    assert learner.estimator_.kernel_.name.lower() == kernels[5]["kernel"]


def test_an_earlier_kernel_stays_where_the_one_learned_since_is_worse(monkeypatch):
    """A poor minimum of what is learned makes no model worse."""
    learner = new("automatic")
    labeled_up_to(learner, 40)
    good = learner._models.current().step.kernel
    poor = {**good, "kernel": "gaussian", "bandwidth": 1e-3}
    monkeypatch.setattr(relearn, "learned_kernel", lambda *_: poor)
    labeled_up_to(learner, 60)
    assert learner._models.current().step.kernel == good
    assert relearn.better_kernel(learner._models._templates.learning, X, Y, None) == poor
    monkeypatch.setattr(relearn, "learned_kernel", lambda *_: good)
    found = relearn.better_kernel(learner._models._templates.learning, X, Y, poor)
    assert found == good


def test_a_bandwidth_by_gcv_is_kept_by_the_sketched_estimator():
    """B21: its sums go on from round to round; the exact estimator starts afresh anyway."""
    options = {"bandwidth": "gcv", "alpha": "gcv"}
    found = {}
    for cls in (SketchedKernelRidge, ExactKernelRidge):
        learner = ActiveLearner(cls("gaussian", **options), X, batch_size=10, random_state=0)
        models = []
        for count in (4, 100):
            labeled_up_to(learner, count)
            models.append(learner._models.current().estimator.bandwidth_)
        found[cls] = models
    assert found[SketchedKernelRidge][0] == found[SketchedKernelRidge][1]
    assert found[ExactKernelRidge][0] != found[ExactKernelRidge][1]


def test_what_predicts_is_not_held_back_by_the_sketch_that_chooses():
    """Points are chosen with a guarded λ; the mean has the one of the exact problem."""
    x = np.linspace(0, 1, 700)[:, None]
    y = np.sin(40 * x[:, 0])
    estimator = SketchedKernelRidge(bandwidth=0.02, alpha="loo", solver="auto", random_state=0)
    learner = ActiveLearner(estimator, x, batch_size=10, random_state=0)
    learner.tell(np.arange(0, 700, 2), y[::2])
    shown = learner.estimator_
    alone = clone(estimator).fit(x[::2], y[::2])
    assert_close(shown.predict(x), alone.predict(x))
    assert shown.alpha_ == alone.alpha_
    assert learner.history_[-1]["lambda"] >= shown.lambda_


def test_a_sketch_size_can_follow_the_labels():
    size = lambda n: int(np.ceil(np.log(n)))  # noqa: E731
    estimator = SketchedKernelRidge(
        "gaussian", bandwidth=1.0, alpha="gcv", solver="sketch", sketch="gaussian", sketch_size=size
    )
    learner = ActiveLearner(estimator, X, batch_size=30, random_state=0)
    for _ in range(3):
        told(learner, learner.ask())
    assert [row["sketch_size"] for row in learner.history_] == [size(30), size(60), size(90)]
    with pytest.raises(ValueError, match="whole number from 1 up, got 0 for 20 rows"):
        SketchedKernelRidge(sketch_size=lambda n: 0).fit(X[:20], Y[:20])


def test_a_campaign_that_grows_moves_to_the_gpu(monkeypatch):
    """The backend is chosen again in every round; PyTorch on the CPU stands in for a GPU."""
    pytest.importorskip("torch")
    from sketchridge import selection
    from sketchridge.backends import NumpyTiles
    from sketchridge.backends.torch_tiles import TorchTiles

    large = TorchTiles(device="cpu")
    small = NumpyTiles()
    monkeypatch.setattr(selection, "as_backend", lambda spec, n: large if n >= 30 else small)
    learner = new("pinned", batch_size=20)
    seen = []
    for _ in range(3):
        told(learner, learner.ask())
        seen.append(learner.estimator_.backend_)
    assert seen == ["numpy", "torch", "torch"]
    monkeypatch.undo()
    same = new("pinned", batch_size=20)
    for _ in range(3):
        told(same, same.ask())
    assert same.labeled_ids_.tolist() == learner.labeled_ids_.tolist()
    assert_close(learner.estimator_.predict(X), same.estimator_.predict(X), "float32")


def test_each_first_point_lowers_the_mean_posterior_variance_most():
    """Against all choices, each computed afresh."""
    from sketchridge.active.pool import Pool
    from sketchridge.active.spread import spread
    from sketchridge.kernels import Gaussian

    points = X[:25]
    kernel = Gaussian(bandwidth=1.0)
    G = kernel(points, points)

    def left(rows):
        """The mean posterior variance with these measured, with noise variance 0.05."""
        A = G[np.ix_(rows, rows)] + 0.05 * np.eye(len(rows))
        return np.mean(1 - np.einsum("ij,ji->i", G[:, rows], np.linalg.solve(A, G[rows])))

    known = [3]
    rows = np.setdiff1d(np.arange(25), known)
    chosen = spread(Pool(points), kernel, rows, np.array(known), 4, seed=0).tolist()
    for k in range(4):
        before = known + chosen[:k]
        free = [i for i in rows.tolist() if i not in before]
        best = min(free, key=lambda i: left([*before, i]))
        assert np.isclose(left([*before, chosen[k]]), left([*before, best]), rtol=1e-9)
