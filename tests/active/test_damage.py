"""A record that is damaged says so, and which points: no number is used that nobody told."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from helpers import assert_close, normal

from sketchridge import ActiveLearner, SketchedKernelRidge
from sketchridge.active import schema
from sketchridge.active.sql import SQLStore
from sketchridge.campaign.overview import overview

X = normal(20, 2)


@pytest.fixture
def kept(url):
    """A campaign with labels, one of them corrected."""
    estimator = SketchedKernelRidge("gaussian", bandwidth=1.0, alpha=0.1)
    learner = ActiveLearner(estimator, X, batch_size=5, store=url, random_state=0)
    learner.tell([3, 4, 5], [1.5, 2.5, 3.5], names=["S03", "S04", "S05"])
    learner.amend([4], [-2.5])
    return url


def change(url, statement):
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text(statement))
    engine.dispose()


LABELS = {
    "another value": "UPDATE sketchridge_labels SET y = '[1.6]' WHERE id = 3",
    "no value": "UPDATE sketchridge_labels SET y = '[null]' WHERE id = 3",
    "two values": "UPDATE sketchridge_labels SET y = '[1.5, 1.5]' WHERE id = 3",
    "a number alone": "UPDATE sketchridge_labels SET y = '1.5' WHERE id = 3",
    "text": "UPDATE sketchridge_labels SET y = '\"1.5\"' WHERE id = 3",
    "another point": "UPDATE sketchridge_labels SET id = 7 WHERE id = 3",
    "a point that is not there": "UPDATE sketchridge_labels SET id = 777 WHERE id = 3",
    "another checksum": "UPDATE sketchridge_labels SET checksum = 5 WHERE id = 3",
    "no checksum": "UPDATE sketchridge_labels SET checksum = NULL WHERE id = 3",
}


@pytest.mark.parametrize("damage", LABELS)
def test_a_label_that_is_not_as_it_was_told_is_used_by_nobody(kept, damage):
    change(kept, LABELS[damage])
    store = SQLStore.open(kept)
    one = np.array([7 if damage == "another point" else 3])
    calls = [
        store.labels,
        store.told,
        lambda: ActiveLearner.resume(kept).ask(),
        lambda: ActiveLearner.resume(kept).labels_,
        lambda: store.amend(one, np.array([[1.0]])),
        lambda: store.retract(one),
        lambda: store.tell(np.array([9]), np.array([[1.0]])),
    ]
    if damage == "a point that is not there":
        calls = calls[:4]
    for call in calls:
        with pytest.raises(ValueError, match="is damaged: the label of S03 is not as it") as error:
            call()
        assert "estore a copy" in str(error.value)
        assert "secret" not in str(error.value)
    with pytest.raises(ValueError, match="is damaged"):
        overview(store)


def test_what_is_no_json_any_more(kept):
    if kept.startswith("postgresql"):
        return  # which keeps no such thing
    change(kept, "UPDATE sketchridge_labels SET y = '[1.' WHERE id = 3")
    with pytest.raises(ValueError, match=r"is damaged.*estore a copy"):
        SQLStore.open(kept).labels()


@pytest.mark.parametrize("column", ["id = 9", "old = '[9.0]'", "new = NULL", "new = '[9.0]'"])
def test_a_correction_is_checked_too(kept, column):
    change(kept, f"UPDATE sketchridge_changes SET {column}")
    with pytest.raises(ValueError, match="is damaged: the correction of"):
        SQLStore.open(kept).changes()


@pytest.mark.parametrize("settings", ["{}", "[]", "5", '{"stop": []}'])
def test_settings_are_checked(kept, settings):
    change(kept, f"UPDATE sketchridge_campaign SET settings = '{settings}'")
    for call in (ActiveLearner.resume, lambda url: SQLStore.open(url).settings()):
        with pytest.raises(ValueError, match="is damaged: its settings are not as they were"):
            call(kept)


def test_a_kept_pool_is_checked(kept):
    change(kept, "UPDATE sketchridge_parts SET fingerprint = 'x'")
    with pytest.raises(ValueError, match="is damaged: the points that it keeps"):
        ActiveLearner.resume(kept)


def test_a_file_whose_pages_are_damaged(tmp_path):
    path = tmp_path / "campaign.db"
    learner = ActiveLearner(
        SketchedKernelRidge(), normal(300, 2), batch_size=5, store=f"sqlite:///{path}"
    )
    learner.tell(np.arange(200), np.arange(200.0), names=[f"S{i:03d}" for i in range(200)])
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    for place in rng.integers(4096, len(data), 40):
        data[place] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises((ValueError, OSError), match=r"damaged|malformed"):
        ActiveLearner.resume(f"sqlite:///{path}").labels_  # noqa: B018


def test_single_bytes_of_labels_never_pass_unnoticed(tmp_path):
    """Every byte of every label, one after the other."""
    path = tmp_path / "campaign.db"
    learner = ActiveLearner(
        SketchedKernelRidge(), X, batch_size=5, store=f"sqlite:///{path}", random_state=0
    )
    learner.tell([3, 4], [1.25, -17.5], names=["S03", "S04"])
    told, Y = learner.labeled_ids_.tolist(), learner.labels_.tolist()
    sound = path.read_bytes()
    places = [p for text in (b"[1.25]", b"[-17.5]") for p in range(len(text))]
    starts = [sound.index(text) for text in (b"[1.25]", b"[-17.5]") for _ in text]
    for place, start in zip(places, starts, strict=True):
        data = bytearray(sound)
        data[start + place] ^= 0x01
        path.write_bytes(data)
        try:
            ids, values = SQLStore.open(f"sqlite:///{path}").labels()
        except (ValueError, OSError):
            continue
        assert ids.tolist() == told
        assert values.tolist() == Y


# Files of version 2, which had no checksums

VERSION_TWO = Path(__file__).parent / "version2" / "sketched.sql"


def test_a_campaign_of_version_two_goes_on(tmp_path):
    with sqlite3.connect(tmp_path / "old.db") as database:
        database.executescript(VERSION_TWO.read_text())
    database.close()
    url = f"sqlite:///{tmp_path / 'old.db'}"
    with pytest.raises(ValueError, match=r"older sketchridge \(its tables have version 2"):
        ActiveLearner.resume(url)
    assert SQLStore.migrate(url) == 2
    assert SQLStore.migrate(url) == schema.VERSION == 3
    learner = ActiveLearner.resume(url)
    assert [row["labels"] for row in learner.history_] == [4, 8, 11]
    assert [change.id for change in learner.changes_] == [14, 3]
    assert [change.new for change in learner.changes_] == [[2.5], None]
    assert learner.pending_ids_.tolist() == [20, 12]
    assert learner.labeled_ids_.tolist() == [14, 13, 36, 24, 4, 19, 23, 39, 18, 28, 29]
    wanted = [0.6507861259181091, 1.0856086365730444, 1.768125665096406]
    assert_close(learner.estimator_.predict(learner.pool_[np.arange(3)]), wanted, "pcg")
    assert learner.ask(4).tolist() == [9, 30, 25, 40]


def test_checksums_are_made_for_what_there_is(kept):
    store = SQLStore.open(kept)
    before = store.told(), store.changes(), store.settings()
    for table in ("labels", "changes"):
        change(kept, f"ALTER TABLE sketchridge_{table} DROP COLUMN checksum")
    change(kept, "UPDATE sketchridge_schema SET version = 2")
    assert SQLStore.migrate(kept) == 2
    store = SQLStore.open(kept)
    assert (store.told(), store.changes(), store.settings()) == before
    store.tell(np.array([9]), np.array([[1.0]]))
    assert len(store.labels()[0]) == 4
