"""One suite for every store: what was given is kept, what is wrong changes nothing."""

from __future__ import annotations

from itertools import pairwise
from multiprocessing import get_context

import numpy as np
import pytest

from sketchridge.active.memory import MemoryStore
from sketchridge.active.sql import SQLStore
from sketchridge.active.store import Draw, Part, Round, Store

SETTINGS = {"seed": 3, "stop": [{"rule": "Budget", "labels": 5}], "shape": [20, 2], "name": "Größe"}
POOL = np.random.default_rng(0).random((20, 2))
PART = Part(20, "abc", POOL)
LARGE = Part(20, "abc")


def ids(*values):
    return np.array(values, dtype=np.int64)


def Y(*values):
    return np.array(values, dtype=float).reshape(len(values), -1)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request, make_url):
    made = MemoryStore() if request.param == "memory" else SQLStore(make_url(request.param))
    made.begin(SETTINGS, PART)
    return made


def snapshot(store):
    told, values = store.labels()
    return told.tolist(), values.tolist(), store.draws(), store.pending().tolist(), store.rounds()


def test_settings_and_pool_come_back(store):
    assert {k: v for k, v in store.settings().items() if k != "notes"} == SETTINGS
    np.testing.assert_array_equal(store.parts()[0].points, POOL)


def test_a_fresh_campaign_is_empty(store):
    assert snapshot(store) == ([], [], [], [], [])
    assert store.labels()[1].shape == (0, 1)
    assert len(store.taken()) == 0


def test_points_are_claimed_told_and_taken(store):
    assert store.claim(ids(4, 2, 9), np.array([0.1, 0.2, 0.3]), 0)
    assert store.pending().tolist() == [4, 2, 9]
    store.tell(ids(2), Y(1.5))
    assert store.pending().tolist() == [4, 9]
    assert sorted(store.taken().tolist()) == [2, 4, 9]
    assert store.draws() == [Draw(4, 0, 0.1), Draw(2, 0, 0.2), Draw(9, 0, 0.3)]


@pytest.mark.parametrize("wanted", [(4,), (7, 4), (2,), (8, 2)])
def test_a_point_is_handed_out_once_and_never_after_its_label(store, wanted):
    store.claim(ids(4), np.array([1.0]), 0)
    store.tell(ids(2), Y(0.0))
    before = snapshot(store)
    assert not store.claim(ids(*wanted), np.ones(len(wanted)), 1)
    assert snapshot(store) == before


def test_released_points_can_be_claimed_again_and_stay_on_record(store):
    store.claim(ids(4, 5), np.array([0.25, 0.5]), 0)
    store.release(ids(4))
    assert store.pending().tolist() == [5]
    assert store.claim(ids(4), np.array([0.75]), 1)
    assert store.draws() == [Draw(4, 0, 0.25, True), Draw(5, 0, 0.5), Draw(4, 1, 0.75)]


@pytest.mark.parametrize("wrong", [(6,), (4, 6), (2,)])
def test_only_pending_points_are_released(store, wrong):
    store.claim(ids(4, 2), np.array([0.5, 0.5]), 0)
    store.tell(ids(2), Y(1.0))
    before = snapshot(store)
    with pytest.raises(ValueError, match=f"{wrong[-1]} is not pending"):
        store.release(ids(*wrong))
    assert snapshot(store) == before


def test_labels_keep_their_order_and_every_digit(store):
    values = [np.pi, -1e-300, 1e300, 0.1 + 0.2, 5e-324]
    store.tell(ids(9, 1), Y(*values[:2]))
    store.tell(ids(0, 7, 3), Y(*values[2:]))
    told, kept = store.labels()
    assert told.tolist() == [9, 1, 0, 7, 3]
    assert kept[:, 0].tolist() == values
    assert store.labels(3)[0].tolist() == [7, 3]
    assert store.labels(5)[0].tolist() == []


def test_several_targets(store):
    store.tell(ids(1, 2), np.array([[1.0, 2], [3, 4]]))
    np.testing.assert_array_equal(store.labels()[1], [[1, 2], [3, 4]])
    with pytest.raises(
        ValueError, match="Labels with 1 targets were given, but the campaign has 2"
    ):
        store.tell(ids(3), Y(1.0))


def test_telling_again_is_harmless_with_the_same_label_and_refused_with_another(store):
    store.tell(ids(1, 2), Y(1.0, 2.0))
    store.tell(ids(2, 3), Y(2.0, 3.0))
    before = snapshot(store)
    assert before[0] == [1, 2, 3]
    with pytest.raises(ValueError, match="with another value: 2"):
        store.tell(ids(5, 2), Y(5.0, 9.0))
    assert snapshot(store) == before


def test_rounds_cover_the_labels_there_are_and_open_only_when_there_are_more(store):
    store.tell(ids(1), Y(1.0))
    store.open_round(2)
    assert store.rounds() == []
    store.tell(ids(2, 3), Y(1.0, 2.0))
    for _ in range(2):
        store.open_round(2)
    store.tell(ids(4), Y(1.0))
    store.open_round(2)
    assert store.rounds() == [Round(0, 3), Round(1, 4)]
    assert store.rounds(1) == [Round(1, 4)]


def test_a_round_may_begin_with_fewer_labels_than_there_are(store):
    store.tell(ids(1, 2, 3, 4, 5), Y(1.0, 2.0, 3.0, 4.0, 5.0))
    store.open_round(2, 1)
    assert store.rounds() == []
    store.open_round(2, 3)
    store.open_round(2, 3)
    store.open_round(2, 2)
    store.open_round(2, 9)
    assert store.rounds() == [Round(0, 3), Round(1, 5)]


def several(store, error=None):
    """Calls that are one transaction, and what is seen of them inside it."""
    with store.transaction():
        store.tell(ids(7), Y(3.0))
        store.open_round(1)
        store.record(store.rounds()[-1].number, {"lambda": 0.5})
        store.claim(ids(8), np.array([0.5]), 1)
        assert store.rounds()[-1].metrics == {"lambda": 0.5}
        assert 8 in store.pending()
        if error is not None:
            raise error
        store.release(ids(8))


def test_a_transaction_keeps_everything_or_nothing(store):
    store.claim(ids(4), np.array([1.0]), 0)
    store.tell(ids(1, 2), Y(1.0, 2.0))
    store.open_round(1)
    before = snapshot(store)
    for error in (OSError, KeyboardInterrupt):
        with pytest.raises(error):
            several(store, error)
        assert snapshot(store) == before
    several(store)
    told, _, _, pending, rounds = snapshot(store)
    assert told == [1, 2, 7]
    assert pending == [4]
    assert rounds == [Round(0, 2), Round(1, 3, {"lambda": 0.5})]


def test_a_store_without_transactions_keeps_each_call():
    class Plain(MemoryStore):
        transaction = Store.transaction

    store = Plain()
    store.begin(SETTINGS, PART)
    with pytest.raises(OSError):  # noqa: PT011, of this test's own
        several(store, OSError)
    assert store.labels()[0].tolist() == [7]


def test_metrics_are_added_to_a_round(store):
    store.tell(ids(1, 2), Y(1.0, 2.0))
    store.open_round(2)
    store.record(0, {"lambda": 1e-5})
    store.record(0, {"mean_score": 0.1 + 0.2})
    assert store.rounds() == [Round(0, 2, {"lambda": 1e-5, "mean_score": 0.1 + 0.2})]


def test_a_database_is_opened_again_as_it_was_left(url):
    store = SQLStore(url, notes={"path": "pool.csv"})
    store.begin(SETTINGS, PART)
    store.claim(ids(4, 5), np.array([0.25, 0.5]), 0)
    store.tell(ids(5), Y(2.5))
    store.open_round(1)
    again = SQLStore.open(url)
    assert snapshot(again) == snapshot(store)
    assert again.settings() == {**SETTINGS, "notes": {"path": "pool.csv"}}
    np.testing.assert_array_equal(again.parts()[0].points, POOL)


def test_a_database_holds_one_campaign(url):
    store = SQLStore(url)
    store.begin(SETTINGS, LARGE)
    store.tell(ids(1), Y(1.0))
    with pytest.raises(ValueError, match="already holds a campaign"):
        SQLStore(url).begin(SETTINGS, LARGE)
    assert store.labels()[0].tolist() == [1]
    assert SQLStore.open(url).parts()[0].points is None


def test_an_empty_database_holds_none(url):
    if url.startswith("sqlite"):
        open(url.removeprefix("sqlite:///"), "w").close()
    with pytest.raises(ValueError, match="holds no campaign"):
        SQLStore.open(url)


def test_the_name_of_a_file_may_have_any_sign(tmp_path):
    path = tmp_path / "a?b.db"
    SQLStore(path).begin(SETTINGS, PART)
    assert SQLStore.open(path).path == path
    assert path.exists()


def test_labels_are_counted(store):
    assert store.count() == 0
    assert store.tell(ids(2, 5), Y(1.5, 2.0)) == 2
    assert store.tell(ids(2, 7), Y(1.5, 2.0)) == 1
    assert store.count() == 3
    store.retract(ids(2))
    assert store.count() == 2


def test_a_missing_file_is_not_made(tmp_path):
    path = tmp_path / "nothing.db"
    with pytest.raises(ValueError, match="There is no file"):
        SQLStore.open(f"sqlite:///{path}")
    assert not path.exists()


@pytest.mark.parametrize(
    "address", ["campaign.db", "nosuch://x", "sqlite://", "sqlite:///:memory:"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ValueError, match=r"sqlite:///campaign\.db"):
        SQLStore(address)


def test_a_database_that_does_not_answer_is_an_error_without_the_password(tmp_path):
    folder = tmp_path / "folder.db"
    folder.mkdir()
    with pytest.raises(OSError, match="Nothing was changed"):
        SQLStore(f"sqlite:///{folder}").begin(SETTINGS, LARGE)
    with pytest.raises(OSError, match="failed") as error:
        SQLStore("postgresql+psycopg://me:secret@127.0.0.1:1/none").begin(SETTINGS, LARGE)
    assert "secret" not in str(error.value)


def claim_and_tell(url, worker, tries):
    store, rng = SQLStore.open(url), np.random.default_rng(worker)
    won = []
    for _ in range(tries):
        wanted = np.sort(rng.choice(400, size=5, replace=False))
        if store.claim(wanted, np.full(5, 0.2), 0):
            won += wanted.tolist()
            store.tell(wanted, wanted[:, None] + 0.5)
            store.open_round(1)
    return won


def test_processes_that_claim_at_once_never_get_the_same_point(url):
    SQLStore(url).begin(SETTINGS, LARGE)
    with get_context("fork").Pool(4) as pool:
        won = pool.starmap(claim_and_tell, [(url, worker, 25) for worker in range(4)])
    together = [i for part in won for i in part]
    assert len(set(together)) == len(together) > 50
    store = SQLStore.open(url)
    told, values = store.labels()
    assert sorted(told.tolist()) == sorted(together)
    np.testing.assert_array_equal(values[:, 0], told + 0.5)
    rounds = store.rounds()
    assert [r.number for r in rounds] == list(range(len(rounds)))
    assert all(a.labels < b.labels for a, b in pairwise(rounds))
