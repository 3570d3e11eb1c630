"""A store that people trust: its version, its secrets, readers that wait for nobody, and disks that
are full or cannot be written to."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from helpers import normal

from sketchridge import ActiveLearner, SketchedKernelRidge
from sketchridge.active import schema
from sketchridge.active.database import without_secrets
from sketchridge.active.sql import SQLStore

X = normal(40, 2)
VERSION_ONE = {  # the tables as the first version made them
    "sketchridge_campaign": "id INTEGER PRIMARY KEY, settings JSON NOT NULL, pool {blob}",
    "sketchridge_draws": "number {serial}, id BIGINT NOT NULL, round INTEGER NOT NULL, "
    "probability DOUBLE PRECISION NOT NULL, released BOOLEAN NOT NULL",
    "sketchridge_labels": "number {serial}, id BIGINT NOT NULL UNIQUE, y JSON NOT NULL",
    "sketchridge_rounds": "number INTEGER PRIMARY KEY, labels INTEGER NOT NULL, "
    "metrics JSON NOT NULL",
}


def new(url, **options):
    estimator = SketchedKernelRidge("gaussian", bandwidth=1.0, alpha=0.1, sketch_size=6)
    chosen = {"batch_size": 5, "random_state": 0, "store": url, **options}
    return ActiveLearner(estimator, X, **chosen)


# Versions


def old_store(url):
    """A campaign of version 1 with labels, as its code left it."""
    script = Path(__file__).parent / "version1" / "sketched.sql"
    with sqlite3.connect(":memory:") as memory:
        memory.executescript(script.read_text())
        tables = {name: memory.execute(f"SELECT * FROM {name}").fetchall() for name in VERSION_ONE}
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
    postgres = engine.dialect.name == "postgresql"
    kinds = {
        "blob": "BYTEA" if postgres else "BLOB",
        "serial": "SERIAL PRIMARY KEY" if postgres else "INTEGER PRIMARY KEY",
    }
    with engine.begin() as connection:
        for name, columns in VERSION_ONE.items():
            connection.execute(sa.text(f"CREATE TABLE {name} ({columns.format(**kinds)})"))
            for row in tables[name]:
                marks = ", ".join(f":c{i}" for i in range(len(row)))
                values = {f"c{i}": value for i, value in enumerate(row)}
                if name == "sketchridge_draws":
                    values["c4"] = bool(values["c4"])
                connection.execute(sa.text(f"INSERT INTO {name} VALUES ({marks})"), values)
            if postgres and "serial" in columns:
                sequence = f"pg_get_serial_sequence('{name}', 'number')"
                connection.execute(sa.text(f"SELECT setval({sequence}, 1000)"))
    engine.dispose()
    return tables


def test_a_store_of_version_one_is_brought_over(url):
    tables = old_store(url)
    with pytest.raises(ValueError, match=r"older sketchridge .*sketchridge campaign migrate"):
        SQLStore.open(url)
    assert SQLStore.migrate(url) == 1
    store = SQLStore.open(url)
    ids, Y = store.labels()
    assert [[int(i), [y]] for i, y in zip(ids, Y[:, 0], strict=True)] == [
        [row[1], json.loads(row[2])] for row in tables["sketchridge_labels"]
    ]
    assert len(store.draws()) == len(tables["sketchridge_draws"])
    assert [r.labels for r in store.rounds()] == [r[1] for r in tables["sketchridge_rounds"]]
    learner = ActiveLearner.resume(url)
    assert len(learner.pool_) == 40
    learner.amend(ids[:1], [2.5])
    learner.fail(learner.open_ids_[:1])
    learner.add(X[:3])
    assert len(learner.ask()) == 5
    assert SQLStore.migrate(url) == schema.VERSION


def test_a_migration_that_fails_changes_nothing(url, monkeypatch):
    old_store(url)

    def fail(connection, column):
        raise OSError("The disk is on fire.")

    monkeypatch.setattr(schema, "_add_column", fail)
    with pytest.raises(OSError, match="on fire"):
        SQLStore.migrate(url)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="older sketchridge"):
        SQLStore.open(url)
    assert SQLStore.migrate(url) == 1


def test_a_newer_store_says_so(url):
    store = new(url)._store
    with store._database.writer() as connection:
        connection.execute(sa.text("UPDATE sketchridge_schema SET version = 9"))
    for call in (SQLStore.open, ActiveLearner.resume):
        with pytest.raises(ValueError, match=r"newer sketchridge .*version 9.* upgrade"):
            call(url)


# Secrets


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://127.0.0.1:1/db?user=bob&password=SECRET",
        "postgresql+psycopg://127.0.0.1:1/db?user=bob&sslpassword=SECRET",
        "postgresql+psycopg://bob:SECRET@127.0.0.1:1/db",
        "postgresql:/bob:SECRET@h/db",
        "nosuch://bob:SECRET@h/db",
        "bob:SECRET@h/db",
        "postgresql+psycopg://bob:SEC/RET@127.0.0.1:1/db",
        "postgresql+psycopg://bob:XX@SECRET@127.0.0.1:1/db",
        "postgresql+psycopg://bob:SE@C/SECRET@127.0.0.1:1/db",
        "postgresql+psycopg://127.0.0.1:1/db?options=-c%20password%3DSECRET",
        "postgresql+psycopg://127.0.0.1:1/db?options=-c%20sslpassword%253DSECRET",
    ],
)
def test_no_message_holds_a_password(address):
    """M5."""
    for call in (ActiveLearner.resume, SQLStore.migrate, new):
        with pytest.raises((ValueError, OSError)) as caught:
            call(address)
        assert "SEC" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_what_is_hidden():
    assert without_secrets("no secrets: see a@b and 12:30") == "no secrets: see a@b and 12:30"
    assert without_secrets("x://u:p@h/d?token=abc&a=1") == "x://u:***@h/d?token=***&a=1"
    assert without_secrets("x://u:p@q@h/d") == "x://u:***@h/d"


def test_an_at_in_a_password_is_written_otherwise():
    with pytest.raises(ValueError, match=r"more than one @. Write an @ in a password as %40"):
        SQLStore("postgresql+psycopg://bob:XX@SECRET@127.0.0.1:1/db")


def test_an_address_that_cannot_be_used_is_a_sentence(tmp_path):
    for address in (5, b"sqlite:///x.db", ["x"]):
        with pytest.raises(ValueError, match="A store is an address or the path of a file"):
            SQLStore(address)
    with pytest.raises(ValueError, match=r"cannot be used: .*'abc'.* Give an SQLAlchemy address"):
        SQLStore(f"sqlite:///{tmp_path}/c.db?timeout=abc")


def test_a_path_is_an_sqlite_file(tmp_path):
    path = tmp_path / "a folder" / "c.db"
    path.parent.mkdir()
    new(path).tell([3], [1.0])
    assert ActiveLearner.resume(path).labeled_ids_.tolist() == [3]
    assert SQLStore.open(f"sqlite:///{path}").labels()[0].tolist() == [3]


# Readers, and disks


def test_readers_wait_for_nobody(tmp_path):
    url = f"sqlite:///{tmp_path / 'c.db'}"
    learner = new(url)
    learner.tell([1, 2, 3], [1.0, 2.0, 3.0])
    done = threading.Event()

    def look():
        other = SQLStore.open(url)
        assert len(other.labels()[0]) == 3
        other.rounds()
        done.set()

    with learner._store.transaction():
        learner._store.tell(np.array([5]), np.array([[1.0]]))
        threading.Thread(target=look, daemon=True).start()
        assert done.wait(10)


def test_a_store_that_cannot_be_written_to_can_be_looked_at(tmp_path):
    new(f"sqlite:///{tmp_path / 'c.db'}").tell([1, 2, 3], [1.0, 2.0, 3.0])
    url = f"sqlite:///file:{tmp_path / 'c.db'}?mode=ro&uri=true"
    learner = ActiveLearner.resume(url)
    assert len(learner.scores()) == 40
    assert learner.history_[-1]["labels"] == 3
    for call in (learner.ask, lambda: learner.tell([4], [1.0]), lambda: learner.fail([7])):
        with pytest.raises(OSError, match=r"readonly.*Nothing was changed"):
            call()
    assert len(learner.labeled_ids_) == 3


def test_a_full_disk_is_an_error_and_changes_nothing(tmp_path):
    url = f"sqlite:///{tmp_path / 'c.db'}"
    learner = new(url)
    engine = learner._store._database.engine

    @sa.event.listens_for(engine, "connect")
    def no_room(connection, record):
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")

    def fill():
        for start in range(40):
            learner.tell([start], [float(start)], names=["x" * 5000])

    with pytest.raises(OSError, match=r"full.*Nothing was changed"):
        fill()
    told = ActiveLearner.resume(url).labeled_ids_
    assert told.tolist() == list(range(len(told)))


# A store in whose place an older copy is put


def copied(source, target):
    with sqlite3.connect(source) as one, sqlite3.connect(target) as other:
        one.backup(other)


@pytest.mark.parametrize("rounds", [0, 1, 2])
@pytest.mark.parametrize("looked", [False, True])
def test_a_learner_goes_on_from_an_older_copy(tmp_path, rounds, looked):
    """`ask` never returned."""
    now, before = tmp_path / "c.db", tmp_path / "before.db"
    learner = new(now)

    def work(count):
        for _ in range(count):
            ids = learner.ask()
            learner.tell(ids, np.sin(ids))

    work(rounds)
    copied(now, before)
    work(2)
    if looked:
        assert len(learner.history_) == rounds + 2
    copied(before, now)
    fresh = ActiveLearner.resume(before)
    assert learner.ask().tolist() == fresh.ask().tolist()
    assert learner.history_ == fresh.history_


def test_an_older_copy_with_fewer_points_is_a_sentence(tmp_path):
    now, before = tmp_path / "c.db", tmp_path / "before.db"
    learner = new(now)
    copied(now, before)
    learner.add(normal(3, 2))
    copied(before, now)
    with pytest.raises(ValueError, match=r"holds 40 points and this learner 43.*resume"):
        learner.ask()


def test_a_draw_that_the_store_refuses_for_no_reason_is_a_sentence(tmp_path, monkeypatch):
    learner = new(tmp_path / "c.db")
    monkeypatch.setattr(SQLStore, "claim", lambda *arguments: False)
    with pytest.raises(ValueError, match="though nothing in it has changed"):
        learner.ask()


# Speed


def test_status_loads_nothing_heavy(tmp_path):
    """It answers from the record, in well under a second of computing."""
    url = f"sqlite:///{tmp_path / 'c.db'}"
    new(url).tell(np.arange(30), np.arange(30.0))
    code = (
        "import sys, time; sys.argv = ['sketchridge', 'campaign', 'status', '--store', "
        f"{url!r}]\n"
        "from sketchridge.cli import main\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code\n"
        "heavy = {'sklearn', 'scipy', 'polars', 'matplotlib', 'pandas'} & set(sys.modules)\n"
        "print(sorted(heavy), time.process_time())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *_, last = done.stdout.splitlines()
    assert last.startswith("[] ")
    assert float(last.split()[1]) < 1.0


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("estimator", "QuantumRidge", "QuantumRidge .* newer"),
        ("parameters", {"kernel": "gaussian", "qubits": 9}, "qubits, which .* newer"),
        ("score", "v9", "Unknown score 'v9'"),
        ("acquisition", "best", "Unknown acquisition 'best'"),
        ("stop", [{"rule": "Bored"}], "Bored, a rule that .* upgrade"),
    ],
)
def test_settings_of_another_version_are_a_sentence(url, key, value, message):
    store = new(url)._store
    settings = {**store.settings(), key: value}
    with store._database.writer() as connection:
        connection.execute(schema.campaign.update().values(settings=settings))
    with pytest.raises(ValueError, match=message):
        ActiveLearner.resume(url)


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "mysql"])
def test_only_partial_indices_forbid_to_hand_out_a_point_twice(dialect):
    """B12: elsewhere a point that was released could never be asked for again."""
    made = []
    engine = sa.create_mock_engine(f"{dialect}://", lambda ddl, *_, **__: made.append(str(ddl)))
    schema.metadata.create_all(engine, checkfirst=False)
    has_index = any("sketchridge_handed_out_once" in statement for statement in made)
    assert has_index == (dialect != "mysql")
