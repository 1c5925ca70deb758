"""Databases that `verify` reads, where they end what it asks (reliability.md P9)."""

from __future__ import annotations

import os
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.sources.classicmodels.load import log_in
from replicator.databases import mysql, postgresql
from replicator.errors import TableStopped, Unreachable
from replicator.spec import Login
from tests.contract.serving import execute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local import Stack
    from tests.contract.serving import Served

AS_TEXT = "CAST({} AS CHAR)"
"""Of MariaDB's values."""

pytestmark = pytest.mark.stack


@contextmanager
def reader(postgres: Served, admin: Served, *settings: str) -> Iterator[postgresql.PostgresDatabase]:
    """A source with a table ``things`` of a thousand rows, and a user that may read it, whose sessions begin so."""
    name, at = f"reader_{postgres.schema}", postgres.connection
    execute(postgres, "CREATE SCHEMA $; CREATE TABLE $.things AS SELECT generate_series(1, 1000) AS id")
    execute(admin, f"CREATE ROLE {name} LOGIN PASSWORD 'read'; GRANT USAGE ON SCHEMA $ TO {name}")
    execute(postgres, f"GRANT SELECT ON $.things TO {name}")
    for setting in settings:
        execute(admin, f"ALTER ROLE {name} SET {setting}")
    try:
        yield postgresql.source(Login("postgresql", at.host, at.port, name, "read", at.database, "disable"))
    finally:
        execute(admin, f"DROP OWNED BY {name}; DROP ROLE {name}")


def read(snapshot: Any, table: str, text: str = "{}::text", pause: float = 0.0) -> list[Any]:
    time.sleep(pause)
    return [row for chunk in snapshot.rows(table, [("id", text)], None, 100) for row in chunk]


def test_a_limit_of_the_user_for_statements_is_named_with_how_to_fix_it(postgres: Served, admin: Served) -> None:
    """Another try comes to the same end, so it is one table's error (exit 1), and says which limit it was."""
    table, slowly = f"{postgres.schema}.things", "pg_sleep(0.01)::text || {}::text"
    with (
        reader(postgres, admin, "statement_timeout = '200ms'") as database,
        pytest.raises(TableStopped, match=r"SQLSTATE 57014") as told,
        database.read_snapshot() as snapshot,
    ):
        read(snapshot, table, slowly)
    assert "ALTER ROLE ... SET statement_timeout = " in str(told.value.fix)


def test_what_the_user_is_told_to_do_otherwise_takes_no_part(postgres: Served, admin: Served) -> None:
    """Spark works between two statements, for however long; and types are called as in any session."""
    table = f"{postgres.schema}.things"
    settings = ("idle_in_transaction_session_timeout = '200ms'", "quote_all_identifiers = on")
    with reader(postgres, admin, *settings) as database:
        execute(postgres, "CREATE TABLE $.texts (t text)")
        with database.read_snapshot() as snapshot:
            assert len(read(snapshot, table, pause=0.6)) == 1000
            assert [held.type for held in snapshot.columns(f"{postgres.schema}.texts")] == ["text"]


def test_a_session_that_the_server_ended_is_worth_another_try_with_a_word_on_limits(
    postgres: Served, admin: Served
) -> None:
    """Of one that it ended between two statements nothing is left but that."""
    table = f"{postgres.schema}.things"
    with (
        reader(postgres, admin, "transaction_timeout = '200ms'") as database,
        pytest.raises(Unreachable, match=r"interrupted the read of .*Run again; .*`transaction_timeout`"),
        database.read_snapshot() as snapshot,
    ):
        read(snapshot, table, pause=0.6)


def test_a_table_that_is_locked_may_be_read_in_a_moment(postgres: Served, admin: Served) -> None:
    """Exit 3, and what is in the way by its code."""
    table = f"{postgres.schema}.things"
    with reader(postgres, admin, "lock_timeout = '200ms'") as database, postgres.connection.open() as rival:
        rival.cursor().execute(f'LOCK TABLE "{postgres.schema}".things IN ACCESS EXCLUSIVE MODE')
        with pytest.raises(Unreachable, match="SQLSTATE 55P03") as told, database.read_snapshot() as snapshot:
            read(snapshot, table)
        assert told.value.exit_code == 3


def test_a_table_that_the_user_may_not_read_is_said_with_what_to_grant(postgres: Served, admin: Served) -> None:
    """In PostgreSQL's own words, which hold names alone."""
    with reader(postgres, admin) as database:
        execute(postgres, "CREATE TABLE $.others (id integer)")
        with pytest.raises(TableStopped, match="permission denied") as told, database.read_snapshot() as snapshot:
            read(snapshot, f"{postgres.schema}.others")
    assert "Grant" in str(told.value.fix)


def test_what_mariadb_lets_nobody_read_is_said_with_its_fix(stack: Stack) -> None:
    """A table that was not granted, and a limit of the server's for statements: neither goes well with another try."""
    server = stack.up(("mariadb",), owner=os.getpid()).mariadb
    root = Login("mariadb", server.host, server.port, server.user, server.password, "", "disable")
    with closing(log_in(server)) as session, session.cursor() as cursor:
        for statement in (
            "CREATE OR REPLACE DATABASE glances",
            "CREATE TABLE glances.things (id int PRIMARY KEY)",
            "INSERT INTO glances.things SELECT seq FROM glances.seq_1_to_1000",
            "CREATE OR REPLACE USER reader IDENTIFIED BY 'read'",
            "GRANT CREATE ON glances.* TO reader",
        ):
            cursor.execute(statement)
        reading = mysql.source(replace(root, user="reader", password="read"))
        with (
            pytest.raises(TableStopped, match=r"\(error 1142\): SELECT command denied") as told,
            reading.read_snapshot() as snapshot,
        ):
            read(snapshot, "glances.things", AS_TEXT)
        assert "Grant" in str(told.value.fix)
        cursor.execute("GRANT SELECT ON glances.* TO reader WITH MAX_STATEMENT_TIME 0.2")
        with pytest.raises(TableStopped, match=r"\(error 1969\)") as told, reading.read_snapshot() as snapshot:
            read(snapshot, "glances.things", "CONCAT(SLEEP(0.01), {})")
        assert "max_statement_time" in str(told.value.fix)
        cursor.execute("DROP USER reader")
        cursor.execute("DROP DATABASE glances")
