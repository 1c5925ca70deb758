"""The two databases that cases are recorded from: how a script runs there, and how Debezium is told to watch it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any, Protocol

import psycopg2
from pymysql.constants import FIELD_TYPE

from infra.local import Endpoints
from infra.sample_source import connector
from infra.sources.classicmodels.load import log_in

SCHEMA = "shop"
"""Database (MariaDB) or schema (PostgreSQL) of every case."""


class Server(Protocol):
    """A connection that commits each statement unless the script begins a transaction.

    ``fresh``: the database or schema is made anew.
    """

    def run(self, statements: Iterable[str]) -> None:
        """Execute the statements one after the other."""

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """What a SELECT returns, with Python's exact types."""

    def connector(self, name: str) -> dict[str, str]:
        """Settings of a connector with this name that watches SCHEMA."""

    def close(self) -> None:
        """Log out."""


def _execute(connection: Any, statements: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


class MariaDB:
    """Read in UTC: a TIMESTAMP is an instant, a DATETIME is not; a BIT(1) is a boolean, a longer one a number."""

    def __init__(self, endpoints: Endpoints, schema: str = SCHEMA, *, fresh: bool = True) -> None:
        self._endpoints = endpoints
        self._schema = schema
        self._connection = log_in(endpoints.mariadb)
        self._connection.autocommit(True)
        self.run(["SET time_zone = '+00:00'"])
        if fresh:
            self.run([f"DROP DATABASE IF EXISTS {schema}", f"CREATE DATABASE {schema}"])
        self._connection.select_db(schema)

    def run(self, statements: Iterable[str]) -> None:
        _execute(self._connection, statements)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            columns = cursor.description
            return [
                {column[0]: _value(column, value) for column, value in zip(columns, row, strict=True)}
                for row in cursor.fetchall()
            ]

    def connector(self, name: str) -> dict[str, str]:
        return connector(self._endpoints, prefix=name, database=self._schema)

    def close(self) -> None:
        self._connection.close()


def _value(column: Any, value: Any) -> Any:
    """A value by its column: name, type, two empty ones, length."""
    if value is None:
        return None
    if column[1] == FIELD_TYPE.TIMESTAMP:
        return value.replace(tzinfo=dt.timezone.utc)
    if column[1] == FIELD_TYPE.BIT:
        number = int.from_bytes(value, "big")
        return bool(number) if column[3] == 1 else number
    return value


class PostgreSQL:
    """Slot and publication are the connector's own; they end with the stack."""

    def __init__(self, endpoints: Endpoints, schema: str = SCHEMA, *, fresh: bool = True) -> None:
        self._schema = schema
        self._login = login = endpoints.postgres_admin
        self._connection = psycopg2.connect(
            host=login.host, port=login.port, user=login.user, password=login.password, dbname=login.database
        )
        self._connection.autocommit = True
        if fresh:
            self.run([f"DROP SCHEMA IF EXISTS {schema} CASCADE", f"CREATE SCHEMA {schema}"])
        self.run([f"SET search_path = {schema}"])

    def run(self, statements: Iterable[str]) -> None:
        _execute(self._connection, statements)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def connector(self, name: str) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "topic.prefix": name,
            "database.hostname": self._login.host,
            "database.port": str(self._login.port),
            "database.user": self._login.user,
            "database.password": self._login.password,
            "database.dbname": self._login.database,
            "plugin.name": "pgoutput",
            "slot.name": name,
            "publication.name": name,
            "publication.autocreate.mode": "filtered",
            "schema.include.list": self._schema,
            "skipped.operations": "none",
            "poll.interval.ms": "50",
        }

    def close(self) -> None:
        self._connection.close()


SERVERS: dict[str, type[MariaDB | PostgreSQL]] = {"mariadb": MariaDB, "postgres": PostgreSQL}
