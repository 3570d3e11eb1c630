"""The tables of a campaign in a database, their version, and how an older one becomes this one."""

from __future__ import annotations

from typing import Any

try:
    import sqlalchemy as sa
    from sqlalchemy.schema import CreateColumn
except ImportError as error:
    raise ImportError(
        "A store needs SQLAlchemy, which is not installed: pip install 'sketchridge[store]'."
    ) from error

from sketchridge.active.damage import sum_of_change, sum_of_label

__all__ = [
    "VERSION",
    "campaign",
    "changes",
    "draws",
    "failures",
    "files",
    "labels",
    "metadata",
    "migrate",
    "parts",
    "rounds",
    "schema",
    "version_of",
]

VERSION = 3  # 2: without checksums; 1: nor a version, corrections, failures, further candidates
metadata = sa.MetaData()
schema = sa.Table(
    "sketchridge_schema",
    metadata,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
)
campaign = sa.Table(
    "sketchridge_campaign",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("settings", sa.JSON, nullable=False),
)
parts = sa.Table(
    "sketchridge_parts",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("points", sa.LargeBinary),
)
files = sa.Table(
    "sketchridge_files",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("about", sa.JSON, nullable=False),
    sa.Column("data", sa.LargeBinary),
)
draws = sa.Table(
    "sketchridge_draws",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("id", sa.BigInteger, nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("probability", sa.Double, nullable=False),
    sa.Column("released", sa.Boolean, nullable=False, default=False),
)
# Databases without partial indices would refuse to hand out a point that was released; there the
# lock on the campaign's row alone sees to it that a point is handed out once.
sa.Index(
    "sketchridge_handed_out_once",
    draws.c.id,
    unique=True,
    sqlite_where=draws.c.released.is_(False),
    postgresql_where=draws.c.released.is_(False),
).ddl_if(dialect=("sqlite", "postgresql"))  # type: ignore[arg-type]
labels = sa.Table(
    "sketchridge_labels",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("id", sa.BigInteger, nullable=False, unique=True),
    sa.Column("y", sa.JSON, nullable=False),
    sa.Column("name", sa.Text),
    sa.Column("told_by", sa.Text),
    sa.Column("told_at", sa.String(32)),
    sa.Column("checksum", sa.BigInteger),
)
changes = sa.Table(
    "sketchridge_changes",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("id", sa.BigInteger, nullable=False),
    sa.Column("old", sa.JSON, nullable=False),
    sa.Column("new", sa.JSON(none_as_null=True)),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("changed_by", sa.Text, nullable=False),
    sa.Column("changed_at", sa.String(32), nullable=False),
    sa.Column("checksum", sa.BigInteger),
)
failures = sa.Table(
    "sketchridge_failures",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("id", sa.BigInteger, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("failed_by", sa.Text, nullable=False),
    sa.Column("failed_at", sa.String(32), nullable=False),
    sa.Column("withdrawn", sa.Boolean, nullable=False, default=False),
)
rounds = sa.Table(
    "sketchridge_rounds",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("labels", sa.Integer, nullable=False),
    sa.Column("metrics", sa.JSON, nullable=False),
    sa.Column("edition", sa.Integer, nullable=False, server_default="0"),
    sa.Column("kernel", sa.JSON(none_as_null=True)),
)


def version_of(connection: sa.Connection) -> int | None:
    """The version of the tables in a database, None where there is no campaign."""
    tables = sa.inspect(connection)
    if not tables.has_table(campaign.name):
        return None
    if not tables.has_table(schema.name):
        return 1
    return connection.execute(sa.select(sa.func.max(schema.c.version))).scalar()


def migrate(connection: sa.Connection) -> None:
    """Bring tables of an older version to this one, in the connection's transaction."""
    version = version_of(connection)
    if version is None or version >= VERSION:  # another process came first
        return
    metadata.create_all(connection)
    for table in (labels, changes, rounds):
        there = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
        for column in table.columns:
            if column.name not in there:
                _add_column(connection, column)
    if version == 1:
        _keep_parts(connection)
    _keep_checksums(connection)
    connection.execute(schema.delete())
    connection.execute(schema.insert().values(version=VERSION))


def _keep_parts(connection: sa.Connection) -> None:
    """The pool in a table of its own."""
    old = sa.Table(campaign.name, sa.MetaData(), autoload_with=connection)
    settings = connection.execute(sa.select(campaign.c.settings)).scalar_one()
    pool = connection.execute(sa.select(old.c.pool)).scalar_one()
    first = {"rows": settings["shape"][0], "fingerprint": settings["fingerprint"]}
    connection.execute(parts.insert().values(number=0, points=pool, **first))
    connection.execute(old.update().values(pool=None))


def _keep_checksums(connection: sa.Connection) -> None:
    """Checksums of what was written without."""
    for table, made in (
        (labels, lambda row: sum_of_label(row.id, row.y)),
        (changes, lambda row: sum_of_change(row.id, row.old, row.new)),
    ):
        found = connection.execute(table.select()).all()
        values = [{"of": row.number, "to": made(row)} for row in found]
        one = table.update().where(table.c.number == sa.bindparam("of"))
        if values:
            connection.execute(one.values(checksum=sa.bindparam("to")), values)


def _add_column(connection: sa.Connection, column: Any) -> None:
    words = CreateColumn(column).compile(dialect=connection.dialect)
    connection.execute(sa.text(f"ALTER TABLE {column.table.name} ADD COLUMN {words}"))
