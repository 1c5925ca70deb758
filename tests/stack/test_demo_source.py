"""``replicator demo-source load`` against real servers, on a terminal and without one (scenario 5)."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pymysql
import pytest
from psycopg2 import sql

from infra.local.endpoints import Database, Endpoints
from infra.sources.classicmodels import load as classicmodels
from infra.sources.classicmodels.rows import generate
from infra.sources.classicmodels.shapes import SHAPES as MODELS
from infra.sources.northwind import load as northwind
from infra.sources.northwind.shapes import SHAPES
from infra.sources.northwind.trade import ORDERS
from replicator.errors import ConfigError

pytestmark = pytest.mark.stack

ROOT = Path(__file__).resolve().parents[2]


def command(server: Database, *more: str) -> list[str]:
    """Our program as a user calls it, but for the password."""
    at = ["-h", server.host, "-p", str(server.port), "-d", server.database, "-u", server.user]
    return [sys.executable, "-c", "from replicator.cli import main; main()", "demo-source", "load", *at, *more]


def ended(server: Database, *more: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a call that asks nothing."""
    done = subprocess.run(command(server, *more), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def typed(server: Database, answers: dict[str, str]) -> tuple[int, str]:
    """The exit code of a call on a terminal, and all that is seen there; each answer is typed where its question is."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(server), cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as program:
        os.close(theirs)
        seen, open_ = "", dict(answers)
        with suppress(OSError):  # the terminal is gone with the program
            while part := os.read(ours, 4096):
                seen += part.decode(errors="replace")
                for question in [each for each in open_ if each in seen]:
                    os.write(ours, f"{open_.pop(question)}\n".encode())
        os.close(ours)
        return program.wait(60), seen


@pytest.fixture
def trader(endpoints: Endpoints) -> Iterator[Database]:
    """A new database of PostgreSQL that the source's login owns."""
    name = f"trader_{uuid4().hex[:8]}"
    with closing(northwind.log_in(endpoints.postgres_admin)) as admin, admin.cursor() as cursor:
        admin.autocommit = True
        owned = sql.SQL("CREATE DATABASE {} OWNER {}")
        cursor.execute(owned.format(sql.Identifier(name), sql.Identifier(endpoints.postgres_source.user)))
        yield replace(endpoints.postgres_source, database=name)
        cursor.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def models(endpoints: Endpoints) -> Iterator[Database]:
    """The name of a database that MariaDB does not have yet."""
    server = replace(endpoints.mariadb, database=f"models_{uuid4().hex[:8]}")
    yield server
    with closing(classicmodels.log_in(server)) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {server.database}")


def counts(cursor: Any, tables: Any, database: str | None = None) -> dict[str, int]:
    """How many rows each table has."""
    found = {}
    for table in tables:
        cursor.execute(f"SELECT count(*) FROM {f'{database}.{table}' if database else table}")
        found[table] = cursor.fetchone()[0]
    return found


def test_northwind_is_loaded_from_a_terminal_and_never_twice(trader: Database) -> None:
    """The password is asked for and not shown, the question answered, the rows told by a bar; the search path of new
    sessions finds 2,152 lines and 829 orders in the outbox. A refusal, the server's words and its exit code 1 leave
    what is there.
    """
    declined, _ = typed(trader, {"Password: ": trader.password, "[y/N]: ": "n"})
    refused, out, told = ended(trader, "--password", "wrong", "--create")
    assert (declined, refused, out) == (0, 1, "")
    assert "password authentication failed" in told
    code, seen = typed(trader, {"Password: ": trader.password, "[y/N]: ": "y"})
    assert code == 0, seen
    assert trader.password not in seen
    assert "Database connection created" in seen
    assert "of 3,307 rows" in seen
    assert "Northwind SQL scripts executed" in seen
    code, out, told = ended(trader, "--password", trader.password, "--create")
    assert (code, out) == (1, "")
    assert "the schema datalake is there already" in told
    assert "Traceback" not in told
    with closing(northwind.log_in(trader)) as connection, connection.cursor() as cursor:
        held = counts(cursor, [*SHAPES, "cdc_events"])
        cursor.execute("SELECT current_schema()")
        assert cursor.fetchone() == (northwind.SCHEMA,)
    assert (held["cdc_events"], held["orders"], held["order_details"]) == (len(ORDERS), len(ORDERS), 2152)
    assert sum(held.values()) - len(ORDERS) == 3307


def test_classic_models_is_loaded_into_a_database_of_its_own(models: Database) -> None:
    """3,864 rows; a database that is there is left as it is, and a login that the server refuses is told so."""
    code, out, told = ended(models, "classicmodels", "--password", models.password, "--create")
    assert (code, out) == (0, "")
    assert told.splitlines() == ["Database connection created", "Classic Models SQL scripts executed: 3,864 rows"]
    with closing(classicmodels.log_in(models)) as connection, connection.cursor() as cursor:
        held = counts(cursor, MODELS, models.database)
        assert sum(held.values()) == 3864
        cursor.execute(f"DELETE FROM {models.database}.payments")
        connection.commit()
        code, _, told = ended(models, "classicmodels", "--password", models.password, "--create")
        assert code == 1
        assert f"the database {models.database} is there already" in told
        assert counts(cursor, MODELS, models.database) == held | {"payments": 0}
    code, _, told = ended(models, "classicmodels", "--password", "wrong", "--create")
    assert code == 1
    assert "Access denied for user" in told


def test_a_load_that_mariadb_refuses_leaves_no_database(models: Database) -> None:
    """Its DDL cannot be taken back with the rows: what was made is dropped."""
    broken = dict(generate()) | {"orderdetails": ((1, "none", 1, 1, 1),)}
    with closing(classicmodels.log_in(models)) as connection, connection.cursor() as cursor:
        with pytest.raises(pymysql.err.IntegrityError):
            classicmodels.load(connection, broken, models.database, replace=False)
        cursor.execute("SELECT count(*) FROM information_schema.schemata WHERE schema_name = %s", [models.database])
        assert cursor.fetchone() == (0,)
        classicmodels.load(connection, generate(), models.database, replace=False)
        with pytest.raises(ConfigError, match="is there already"):
            classicmodels.load(connection, broken, models.database, replace=False)
