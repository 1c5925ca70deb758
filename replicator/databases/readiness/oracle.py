"""Readiness of Oracle with LogMiner: archived logs, supplemental logging per database and table, privileges.

Not run against a server in this project's tests: findings are tested over recorded query results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from replicator.databases.readiness.finding import (
    ADVICE,
    FIX,
    OK,
    Finding,
    QueryResults,
    Rows,
    first_row,
    format_bytes,
    is_captured,
    missing_tables,
    no_permission,
    no_primary_key,
    quote_table,
)
from replicator.spec import Connector

_USER_OWNED = "owner NOT IN (SELECT username FROM all_users WHERE oracle_maintained = 'Y')"
_ROLES = (
    "SELECT granted_role FROM dba_role_privs START WITH grantee = UPPER(:username) "
    "CONNECT BY NOCYCLE PRIOR granted_role = grantee"
)
"""The roles of the user, transitively."""
QUERIES: Mapping[str, str] = {
    "database": """
SELECT log_mode, supplemental_log_data_min AS minimal, supplemental_log_data_all AS whole FROM v$database
""",
    "redo": "SELECT MIN(bytes) AS smallest FROM v$log",
    "tables": f"""
SELECT t.owner || '.' || t.table_name AS name, (SELECT count(*) FROM all_constraints c WHERE c.owner = t.owner
       AND c.table_name = t.table_name AND c.constraint_type = 'P') AS key_count
  FROM all_tables t WHERE t.{_USER_OWNED}
""",  # noqa: S608 - made of constants
    "logged": """
SELECT owner || '.' || table_name AS name FROM all_log_groups WHERE log_group_type = 'ALL COLUMN LOGGING'
""",
    "columns": f"""
SELECT owner || '.' || table_name AS name, column_name AS col, data_type AS type FROM all_tab_columns
 WHERE (LENGTH(column_name) > 30 OR LENGTH(table_name) > 30 OR data_type IN ('CLOB', 'NCLOB', 'BLOB', 'XMLTYPE'))
       AND {_USER_OWNED} AND (owner, table_name) IN (SELECT owner, table_name FROM all_tables)
""",  # noqa: S608 - made of constants
    "privileges": """
SELECT privilege, 0 AS is_role FROM dba_sys_privs WHERE grantee = UPPER(:username)
UNION ALL SELECT granted_role, 1 FROM dba_role_privs WHERE grantee = UPPER(:username)
""",
    "through": f"""
SELECT privilege FROM dba_sys_privs WHERE grantee IN ({_ROLES}) UNION {_ROLES}
""",  # noqa: S608 - made of constants
}
_NEEDED = (
    "CREATE SESSION", "FLASHBACK ANY TABLE", "SELECT ANY TABLE", "SELECT_CATALOG_ROLE", "EXECUTE_CATALOG_ROLE",
    "SELECT ANY TRANSACTION", "LOGMINING", "CREATE TABLE", "LOCK ANY TABLE",
)  # fmt: skip
_HARMLESS = frozenset({*_NEEDED, "SET CONTAINER", "CREATE SEQUENCE", "ALTER ANY TABLE", "CONNECT", "RESOURCE"})
_LARGE = ("CLOB", "NCLOB", "BLOB", "XMLTYPE")
_SMALL_LOG, _LONGEST = 500 << 20, 30


def evaluate(answers: QueryResults, connector: Connector) -> list[Finding]:
    """The findings of all checks, passed ones included."""
    tables = [row for row in answers["tables"] or () if is_captured(connector, row["name"])]
    return [
        *_logs(answers, connector),
        *_rights(answers["privileges"], answers.get("through") or (), connector),
        *_tables(tables, answers),
        *_columns(answers["columns"] or (), connector),
        *missing_tables(connector, [row["name"] for row in answers["tables"] or ()]),
    ]


def _logs(answers: QueryResults, connector: Connector) -> Iterator[Finding]:
    database = first_row(answers["database"])
    if not database:
        yield no_permission("logs", "SELECT on V_$DATABASE")
        return
    if database["log_mode"] == "ARCHIVELOG":
        yield Finding("log_mode", OK, "ARCHIVELOG")
    else:
        fix = "SHUTDOWN IMMEDIATE; STARTUP MOUNT; ALTER DATABASE ARCHIVELOG; ALTER DATABASE OPEN; -- as SYSDBA"
        yield Finding("log_mode", FIX, f"{database['log_mode']}: redo is overwritten before it is read", fix)
    if database["minimal"] == "NO":
        fix = "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA; -- in the root container"
        yield Finding("supplemental logging", FIX, "minimal logging is off: rows cannot be assembled", fix)
    smallest = first_row(answers["redo"]).get("smallest")
    if smallest is not None and int(smallest) < _SMALL_LOG:
        said = f"redo logs of {format_bytes(int(smallest))} switch often, and each switch delays mining"
        yield Finding(
            "redo logs", ADVICE, said, "ALTER DATABASE ADD LOGFILE GROUP … SIZE 1G; -- then drop the small ones"
        )
    if connector.heartbeat == 0:
        said = "none: while the captured tables are idle, the offset becomes older than the archived logs"
        yield Finding("heartbeat", ADVICE, said, "Set `heartbeat_seconds: 10` in the source's file.")


def _rights(granted: Rows | None, through: Rows, connector: Connector) -> Iterator[Finding]:
    """Report privileges that are missing both directly and ``through`` roles, and unneeded ones granted directly."""
    if not granted:
        yield no_permission("grants", f"SELECT on DBA_SYS_PRIVS, or {connector.user} has none")
        return
    held = {row["privilege"] for row in granted}
    reached = held | {row["privilege"] for row in through}
    missing = [each for each in _NEEDED if each not in reached] if "DBA" not in reached else []
    roles = {row["privilege"] for row in granted if row.get("is_role")} - {"DBA"}
    surplus = sorted(held - _HARMLESS - (set() if held.issuperset(_NEEDED) else roles))  # some may be what it needs
    if missing:
        fix = f"GRANT {', '.join(missing)} TO {connector.user}; -- CONTAINER=ALL for a common user"
        yield Finding("grants", FIX, f"{connector.user} lacks {', '.join(missing)}", fix)
    if surplus:
        fix = f"REVOKE {', '.join(surplus)} FROM {connector.user};"
        yield Finding("grants", ADVICE, f"{connector.user} has {', '.join(surplus)}, which capture never needs", fix)
    if not missing and not surplus:
        yield Finding("grants", OK, connector.user)


def _tables(tables: list[Mapping[str, Any]], answers: QueryResults) -> Iterator[Finding]:
    everywhere = first_row(answers["database"]).get("whole") == "YES"
    logged = {row["name"] for row in answers["logged"] or ()}
    for table in tables:
        name = table["name"]
        if not int(table["key_count"]):
            yield no_primary_key(name, quote_table(name))
        if not everywhere and name not in logged:
            fix = f"ALTER TABLE {quote_table(name)} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;"
            yield Finding("supplemental logging", FIX, "an update has changed columns only", fix, name)
        else:
            yield Finding("table", OK, "all columns are logged", table=name)


def _columns(rows: Rows, connector: Connector) -> Iterator[Finding]:
    for row in rows:
        name, column = row["name"], row["col"]
        if not is_captured(connector, name):
            continue
        if max(len(column), len(name.partition(".")[2])) > _LONGEST:
            said = f"a name of more than {_LONGEST} characters ({column}): LogMiner skips its table"
            yield Finding("name", FIX, said, "Rename it, or read the log with another adapter.", name)
        elif row["type"] in _LARGE and connector.config.get("lob.enabled") != "true":
            said = f"{column} is {row['type']}: its changes arrive as unavailable without lob.enabled"
            yield Finding("large object", ADVICE, said, "Set `config: {lob.enabled: true}` in the connector.", name)
