"""Execution of readiness queries on a server. A query that the login may not run has no result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from replicator.databases import connections
from replicator.databases.readiness import binlog, oracle, postgresql, sqlserver
from replicator.databases.readiness.finding import Finding, QueryResults, Rows
from replicator.errors import Unreachable
from replicator.spec import Connector, Login, references

_EVALUATORS = {
    "mariadb": binlog.evaluate,
    "mysql": binlog.evaluate,
    "oracle": oracle.evaluate,
    "postgresql": postgresql.evaluate,
    "sqlserver": sqlserver.evaluate,
}


def check(login: Login, connector: Connector) -> list[Finding]:
    """Check the source of a connector, as the given login. Raises Unreachable, ConfigError."""
    return _EVALUATORS[connector.kind](
        run_queries(login, queries(connector), query_parameters(login, connector)), connector
    )


def list_tables(login: Login, connector: Connector) -> list[str] | None:
    """The tables that a login sees at the source of a connector, named as in silver; None if it may not query them.
    Raises Unreachable, ConfigError.
    """
    found = _run_group(login, connector, "tables")
    return None if None in found else [str(row["name"]) for rows in found for row in rows or ()]


def snapshot_obstacles(login: Login, connector: Connector) -> dict[str, str]:
    """Tables that an incremental snapshot does not read as they are, named as in silver, with the reason; empty if the
    login may not ask. Raises Unreachable, ConfigError.
    """
    found = _run_group(login, connector, "altered")
    return {str(row["name"]): binlog.snapshot_obstacle(row) for rows in found for row in rows or ()}


def queries(connector: Connector) -> Mapping[str, str]:
    """The readiness queries for the source of a connector, by name."""
    if connector.kind == "sqlserver":
        return sqlserver.queries(connector)
    by_kind = {"oracle": oracle.QUERIES, "postgresql": postgresql.QUERIES}
    return by_kind.get(connector.kind, binlog.QUERIES)


def query_parameters(login: Login, connector: Connector) -> dict[str, str]:
    """The queries' parameters. The user is the connector's, or the login's if only Kafka Connect knows the former."""
    user = login.user if references.is_reference(connector.user) else connector.user
    return {"user": user, "username": user, "publication": connector.publication}


def run_queries(login: Login, statements: Mapping[str, str], parameters: Mapping[str, str]) -> QueryResults:
    """Run queries and return their rows by query, with column names in lower case. Raises Unreachable if the connection
    is lost.
    """
    with closing(connections.connect(login)) as session:
        return {name: _run(session, login, sql, parameters) for name, sql in statements.items()}


def used_parameters(kind: str, sql: str, parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters that a query names: Oracle's client refuses any others."""
    if kind == "oracle":
        return {name: value for name, value in parameters.items() if re.search(rf":{name}\b", sql)}
    return {name: value for name, value in parameters.items() if f"%({name})s" in sql}


def _run_group(login: Login, connector: Connector, group: str) -> list[Rows | None]:
    """Run the queries whose names begin with this word; without connecting if the kind of database has none."""
    statements = {name: sql for name, sql in queries(connector).items() if name.partition(" ")[0] == group}
    return [*run_queries(login, statements, query_parameters(login, connector)).values()] if statements else []


def _run(session: Any, login: Login, sql: str, parameters: Mapping[str, str]) -> Rows | None:
    given = used_parameters(login.kind, sql, parameters)
    with closing(session.cursor()) as cursor:
        try:
            cursor.execute(sql, *([given] if given else []))
            columns = [column[0].lower() for column in cursor.description]
            return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        except Exception as error:  # each client has its own exceptions: a probe shows whether the server is up
            if not _is_there(session, login):
                raise Unreachable(f"{login.kind} closed the connection", where=f"{login.host}:{login.port}") from error
            return None


def _is_there(session: Any, login: Login) -> bool:
    try:
        with closing(session.cursor()) as cursor:
            cursor.execute("SELECT 1 FROM dual" if login.kind == "oracle" else "SELECT 1")
    except Exception:  # noqa: BLE001 - as above
        return False
    return True
