"""The questions of a kind of database, asked of a server. A question that the login may not ask has no answer."""

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
    """What is found of the source of a connector, by a login that may look. Raises Unreachable, ConfigError."""
    return _EVALUATORS[connector.kind](
        run_queries(login, queries(connector), query_parameters(login, connector)), connector
    )


def list_tables(login: Login, connector: Connector) -> list[str] | None:
    """The tables that a login sees at the source of a connector, called as in silver; None where it may not ask. Raises
    Unreachable, ConfigError.
    """
    about = {name: sql for name, sql in queries(connector).items() if name.partition(" ")[0] == "tables"}
    found = run_queries(login, about, query_parameters(login, connector)).values()
    return None if None in found else [str(row["name"]) for rows in found for row in rows or ()]


def queries(connector: Connector) -> Mapping[str, str]:
    """What is asked of the source of a connector, by name."""
    if connector.kind == "sqlserver":
        return sqlserver.queries(connector)
    asked = {"oracle": oracle.QUERIES, "postgresql": postgresql.QUERIES}
    return asked.get(connector.kind, binlog.QUERIES)


def query_parameters(login: Login, connector: Connector) -> dict[str, str]:
    """What questions are about: the connector's user, or the login's where only Kafka Connect knows that one."""
    user = login.user if references.is_reference(connector.user) else connector.user
    return {"user": user, "username": user, "publication": connector.publication}


def run_queries(login: Login, asked: Mapping[str, str], told: Mapping[str, str]) -> QueryResults:
    """The answers, by question: rows by column in small letters. Raises Unreachable where the server breaks off."""
    with closing(connections.connect(login)) as session:
        return {name: _run(session, login, sql, told) for name, sql in asked.items()}


def used_parameters(kind: str, sql: str, told: Mapping[str, str]) -> dict[str, str]:
    """What a question names of the values: Oracle's client refuses one that it does not name."""
    if kind == "oracle":
        return {name: value for name, value in told.items() if re.search(rf":{name}\b", sql)}
    return {name: value for name, value in told.items() if f"%({name})s" in sql}


def _run(session: Any, login: Login, sql: str, told: Mapping[str, str]) -> Rows | None:
    given = used_parameters(login.kind, sql, told)
    with closing(session.cursor()) as cursor:
        try:
            cursor.execute(sql, *([given] if given else []))
            columns = [column[0].lower() for column in cursor.description]
            return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        except Exception as error:  # every client has errors of its own: whether the server is there is asked
            if not _is_there(session, login):
                raise Unreachable(f"{login.kind} broke off", where=f"{login.host}:{login.port}") from error
            return None


def _is_there(session: Any, login: Login) -> bool:
    try:
        with closing(session.cursor()) as cursor:
            cursor.execute("SELECT 1 FROM dual" if login.kind == "oracle" else "SELECT 1")
    except Exception:  # noqa: BLE001 - as above
        return False
    return True
