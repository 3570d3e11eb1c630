"""A database by its address: transactions that take turns, and errors as sentences."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sketchridge.active.damage import damaged
from sketchridge.active.schema import campaign, sa

__all__ = ["Database", "with_timeout", "without_secrets"]

_WAIT = 120  # seconds to wait for other processes that write to an SQLite file
_HIDDEN = "***"
_AFTER_A_USER = re.compile(r"([^\s:/@?]*):[^\s/]+@")  # to the last @, which a password may have
_WITH_A_SLASH = re.compile(r"(://[^\s:@*]*):[^\s]*@")
_AS_AN_OPTION = re.compile(
    r"((?:password|passwd|pwd|passphrase|secret|token)\s*(?:=|%(?:25)*3D))[^&\s'\"]*", re.I
)
_FORMS = (
    "Give an SQLAlchemy address such as sqlite:///campaign.db or "
    "postgresql+psycopg://user@host/database."
)


class Database:
    """Where a campaign is kept.

    Transactions that write take turns on the campaign's row; those that read wait for nobody.
    """

    def __init__(self, url: Any) -> None:
        if isinstance(url, Path):
            url = sa.URL.create("sqlite", database=str(url))
        if not isinstance(url, str | sa.URL):
            raise ValueError(f"A store is an address or the path of a file, got {url!r}. {_FORMS}")
        _check_host(url)
        try:
            self.engine = sa.create_engine(url, poolclass=sa.pool.NullPool, **_options(url))
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError, ValueError) as error:
            raise ValueError(
                f"The store {_shown(url)} cannot be used: {without_secrets(str(error))}. {_FORMS}"
            ) from None
        self.shown = _shown(self.engine.url)
        if self.engine.dialect.name == "sqlite":
            if self.engine.url.database in (None, "", ":memory:"):
                raise ValueError(
                    "An SQLite store needs a file, such as sqlite:///campaign.db; for memory only "
                    "leave store=None."
                )
            sa.event.listen(self.engine, "connect", _leave_transactions_to_us)
            sa.event.listen(self.engine, "begin", _begin)
        self._inside = threading.local()  # the connection of a transaction of several calls

    @property
    def path(self) -> Path | None:
        """The file of an SQLite database."""
        if self.engine.dialect.name != "sqlite":
            return None
        name = str(self.engine.url.database)
        is_address = name.startswith("file:")
        return Path(name.removeprefix("file:").partition("?")[0] if is_address else name)

    def check(self) -> None:
        """ValueError where the pages of an SQLite file do not go together."""
        if self.path is None:
            return
        with self.reading() as connection:
            found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
        if found != "ok":
            raise damaged(self.shown, f"SQLite finds that {str(found).strip()}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Calls that are kept together, or not at all."""
        if getattr(self._inside, "connection", None) is not None:
            yield
            return
        with self.writing() as connection, self._joined(connection):
            yield

    @contextmanager
    def starting(self) -> Iterator[sa.Connection]:
        """`transaction` where there is no campaign yet; a file that was made for it is gone where
        it raises."""
        path = self.path
        made = None if path is None or path.exists() else path
        try:
            with self.reporting(), self.writer() as connection, self._joined(connection):
                yield connection
        except BaseException:
            if made is not None and made.exists() and not made.stat().st_size:
                made.unlink()
            raise
        if path is not None and not path.exists():  # by another process, to whom that happened
            raise OSError(f"The file {path} was removed in the meantime: start again.")

    @contextmanager
    def _joined(self, connection: sa.Connection) -> Iterator[None]:
        """All calls of this thread in one transaction."""
        self._inside.connection = connection
        try:
            yield
        finally:
            self._inside.connection = None

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that only looks."""
        inside = getattr(self._inside, "connection", None)
        with self.reporting():
            if inside is not None:
                yield inside
                return
            with self.engine.begin() as connection:
                yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction in which no other process writes."""
        inside = getattr(self._inside, "connection", None)
        if inside is not None:
            yield inside
            return
        with self.reporting(), self.writer() as connection:
            connection.execute(sa.select(campaign.c.id).with_for_update())
            yield connection

    @contextmanager
    def writer(self) -> Iterator[sa.Connection]:
        """A transaction that writes, also where there is no campaign yet."""
        writer = self.engine.connect().execution_options(writes=True)
        with writer as connection, connection.begin():
            yield connection

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """The database's own errors as a sentence."""
        try:
            yield
        except json.JSONDecodeError:
            raise damaged(self.shown, "some of what it keeps cannot be read") from None
        except sa.exc.SQLAlchemyError as error:
            cause = without_secrets(str(getattr(error, "orig", None) or error).strip())
            raise OSError(f"The store {self.shown} failed: {cause}. Nothing was changed.") from None


def without_secrets(text: str) -> str:
    """A text with the passwords of addresses in it hidden.

    >>> without_secrets("postgresql:/bob:SECRET@h/db?sslpassword=SECRET&user=bob")
    'postgresql:/bob:***@h/db?sslpassword=***&user=bob'
    """
    text = _WITH_A_SLASH.sub(rf"\1:{_HIDDEN}@", text)
    text = _AFTER_A_USER.sub(rf"\1:{_HIDDEN}@", text)
    return _AS_AN_OPTION.sub(rf"\1{_HIDDEN}", text)


def with_timeout(address: str, seconds: int) -> str:
    """The address of an SQLite file for which a transaction waits so long on others, unless it says
    itself how long; any other address as it is.

    >>> with_timeout("sqlite:///campaign.db", 10)
    'sqlite:///campaign.db?timeout=10'
    """
    try:
        url = sa.make_url(address)
    except sa.exc.ArgumentError:
        return address  # which `Database` refuses with a sentence
    if not url.drivername.startswith("sqlite") or "timeout" in url.query:
        return address
    return url.update_query_dict({"timeout": str(seconds)}).render_as_string(hide_password=False)


def _shown(url: Any) -> str:
    """The address, without its secrets."""
    if isinstance(url, sa.URL):
        url = url.render_as_string(hide_password=True)
    return without_secrets(str(url))


def _check_host(url: str | sa.URL) -> None:
    """ValueError for a password with an @, the end of which would be taken for the host."""
    try:
        given = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        return  # which is refused later
    is_file = given.drivername.startswith("sqlite")
    if "@" in (given.host or "") or (not is_file and "@" in (given.database or "")):
        raise ValueError(
            f"The store {_shown(url)} cannot be used: its address has more than one @. Write an @ "
            "in a password as %40, a / as %2F and a : as %3A."
        )


def _options(url: Any) -> dict[str, Any]:
    given = sa.make_url(url)
    waits = given.drivername.startswith("sqlite") and "timeout" not in given.query
    return {"connect_args": {"timeout": _WAIT}} if waits else {}


def _leave_transactions_to_us(connection: Any, record: Any) -> None:
    connection.isolation_level = None


def _begin(connection: sa.Connection) -> None:
    """A transaction that begins as a writer cannot find, half-way, that another one came first; one
    that only reads takes no lock that others wait for."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
