"""Stores to test against: an SQLite file, and a PostgreSQL server that the tests start and stop."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server's default database.

    Its files are not in pytest's folder: for root the server runs as another user, whom another
    session of pytest would lock out of there.
    """
    import pgserver

    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as folder:
        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
        finally:
            server.cleanup()


@pytest.fixture
def make_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """A function that gives the address of a fresh database of a kind."""
    made = []

    def make(kind: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{tmp_path / 'campaign.db'}"
        server, name = request.getfixturevalue("postgres"), f"test_{uuid.uuid4().hex}"
        _execute(server, f'CREATE DATABASE "{name}"')
        made.append((server, name))
        return sa.make_url(server).set(database=name).render_as_string(hide_password=False)

    yield make
    for server, name in made:
        _execute(server, f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, make_url: Callable[[str], str]) -> str:
    """A fresh database of each kind."""
    return make_url(request.param)


def _execute(server: str, statement: str) -> None:
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(statement))
