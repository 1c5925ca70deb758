"""Readiness of SQL Server: the Agent, CDC of databases and tables, outdated capture instances, privileges.

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
    is_captured,
    missing_tables,
    no_permission,
    no_primary_key,
    quote_table,
)
from replicator.spec import Connector

_TABLES = """
SELECT {text} AS db, s.name + '.' + t.name AS name, t.is_tracked_by_cdc AS tracked,
       CASE WHEN EXISTS (SELECT 1 FROM {db}.sys.indexes i WHERE i.object_id = t.object_id AND i.is_primary_key = 1)
       THEN 1 ELSE 0 END AS keyed
  FROM {db}.sys.tables t JOIN {db}.sys.schemas s ON s.schema_id = t.schema_id WHERE t.is_ms_shipped = 0
"""
_INSTANCES = """
SELECT {text} AS db, s.name + '.' + t.name AS name, c.capture_instance AS instance, c.role_name AS role,
       (SELECT count(*) FROM {db}.sys.columns k WHERE k.object_id = c.source_object_id AND k.is_computed = 0
        AND NOT EXISTS (SELECT 1 FROM {db}.cdc.captured_columns x
                         WHERE x.object_id = c.object_id AND x.column_name = k.name)) AS uncaptured
  FROM {db}.cdc.change_tables c JOIN {db}.sys.tables t ON t.object_id = c.source_object_id
  JOIN {db}.sys.schemas s ON s.schema_id = t.schema_id ORDER BY c.create_date
"""
_RIGHTS = """
SELECT {text} AS db, r.name AS held FROM {db}.sys.database_role_members m
  JOIN {db}.sys.database_principals r ON r.principal_id = m.role_principal_id
  JOIN {db}.sys.database_principals u ON u.principal_id = m.member_principal_id WHERE u.name = %(user)s
UNION ALL
SELECT {text}, p.permission_name FROM {db}.sys.database_permissions p
  JOIN {db}.sys.database_principals u ON u.principal_id = p.grantee_principal_id
 WHERE u.name = %(user)s AND p.state IN ('G', 'W') AND p.class IN (0, 3)
"""
_AZURE_DATABASE = 5
_READERS = frozenset({"db_owner", "db_datareader", "SELECT", "CONTROL"})


def queries(connector: Connector) -> dict[str, str]:
    """The queries by name; those about one database have its name appended."""
    asked = {
        "server": (
            "SELECT CAST(SERVERPROPERTY('EngineEdition') AS int) AS edition, IS_SRVROLEMEMBER('sysadmin', %(user)s) AS "
            "sysadmin"
        ),
        "agent": "SELECT status_desc AS status FROM sys.dm_server_services WHERE servicename LIKE 'SQL Server Agent%%'",
        "databases": (
            "SELECT name, is_cdc_enabled AS cdc, is_read_only AS read_only, snapshot_isolation_state_desc AS isolation "
            "FROM sys.databases"
        ),
        "jobs": "SELECT DB_NAME(database_id) AS db, retention FROM msdb.dbo.cdc_jobs WHERE job_type = 'cleanup'",
    }
    for database in connector.databases:
        place = {"db": _quoted(database), "text": _text(database)}
        for name, pattern in (("tables", _TABLES), ("instances", _INSTANCES), ("rights", _RIGHTS)):
            asked[f"{name} {database}"] = pattern.format(**place)
    return asked


def evaluate(answers: QueryResults, connector: Connector) -> list[Finding]:
    """The findings of all checks, passed ones included."""
    found, present = list(_server(answers, connector)), list[str]()
    enabled = {row["name"]: row for row in answers["databases"] or ()}
    for database in connector.databases:
        found += _database(database, enabled.get(database), answers)
        tables = answers.get(f"tables {database}") or ()
        captured = [table for table in tables if is_captured(connector, table["name"])]
        found += _tables(database, captured, answers, connector)
        found += _rights(database, answers, connector)
        present += [table["name"] for table in tables]
    return [*found, *missing_tables(connector, present)]


def _server(answers: QueryResults, connector: Connector) -> Iterator[Finding]:
    server, agent = first_row(answers["server"]), answers["agent"]
    if server.get("sysadmin"):
        fix = f"ALTER SERVER ROLE sysadmin DROP MEMBER {_quoted(connector.user)};"
        yield Finding("grants", ADVICE, f"{connector.user} is sysadmin, which capture never needs", fix)
    if server.get("edition") == _AZURE_DATABASE:
        return
    if agent is None:
        yield no_permission("SQL Server Agent", "VIEW SERVER STATE")
    elif first_row(agent).get("status") != "Running":
        said = f"{first_row(agent).get('status') or 'absent'}: its capture job reads the log, so nothing is captured"
        fix = "-- start the service SQLSERVERAGENT; in a container: MSSQL_AGENT_ENABLED=true"
        yield Finding("SQL Server Agent", FIX, said, fix)
    else:
        yield Finding("SQL Server Agent", OK, "Running")


def _database(name: str, row: Mapping[str, Any] | None, answers: QueryResults) -> Iterator[Finding]:
    if row is None:
        said = f"database {name} does not exist, or this login may not see it"
        yield Finding("database", FIX, said, "Correct `databases` in the source's file.")
    elif not row["cdc"] and row["read_only"]:
        said = f"CDC of {name} is off, and it is read-only: enable it on the primary"
        yield Finding("CDC", FIX, said, _enable_database(name))
    elif not row["cdc"]:
        yield Finding("CDC", FIX, f"CDC of {name} is off", _enable_database(name))
    else:
        yield Finding("CDC", OK, f"on in {name}")
    if row is not None and row["isolation"] == "OFF":
        said = f"a snapshot of {name} holds locks on its tables while it reads them"
        fix = (
            f"ALTER DATABASE {_quoted(name)} SET ALLOW_SNAPSHOT_ISOLATION ON; -- and snapshot.isolation.mode: snapshot"
        )
        yield Finding("isolation", ADVICE, said, fix)
    kept = next((int(job["retention"]) for job in answers["jobs"] or () if job["db"] == name), None)
    if kept is not None and kept < 3 * 1440:
        said = f"changes of {name} are kept for {kept // 60} hours: a connector that is down for longer loses some"
        fix = f"USE {_quoted(name)}; EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 10080;"
        yield Finding("retention", ADVICE, said, fix)


def _tables(
    database: str, tables: list[Mapping[str, Any]], answers: QueryResults, connector: Connector
) -> Iterator[Finding]:
    instances = answers.get(f"instances {database}") or ()
    held = {row["held"] for row in answers.get(f"rights {database}") or ()}
    reads_all = "db_owner" in held or first_row(answers["server"]).get("sysadmin")
    for table in tables:
        name, own = table["name"], [row for row in instances if row["name"] == table["name"]]
        if not table["keyed"]:
            yield no_primary_key(name, _quoted_table(name))
        if not table["tracked"]:
            fix = _enable_table(database, table)
            yield Finding("CDC", FIX, "CDC of the table is off: it is not captured", fix, name)
        else:
            yield from _instances(database, table, own)
        for role in () if reads_all else sorted({row["role"] for row in own if row["role"]} - held - {"db_owner"}):
            fix = f"USE {_quoted(database)}; ALTER ROLE {_quoted(role)} ADD MEMBER {_quoted(connector.user)};"
            yield Finding("grants", FIX, f"{connector.user} is not in {role}, which may read changes", fix, name)


def _instances(database: str, table: Mapping[str, Any], own: Rows) -> Iterator[Finding]:
    """Check a table's capture instances. Of two with equally many columns the older one, which comes first, can go."""
    name = table["name"]
    old = max(own, key=lambda row: int(row["uncaptured"]), default=None)
    if old is not None and all(int(row["uncaptured"]) for row in own):
        count = min(int(row["uncaptured"]) for row in own)
        said = f"{count} of its columns, added later, are not captured"
        yield Finding("capture instance", FIX, said, _add_instance(database, table, own, old), name)
    elif old is not None and len(own) > 1:
        said = f"two capture instances; {old['instance']} can be dropped once the connector reads the other"
        yield Finding("capture instance", ADVICE, said, _disable(database, name, old), name)
    else:
        yield Finding("table", OK, ", ".join(row["instance"] for row in own) or "captured", table=name)


def _add_instance(database: str, table: Mapping[str, Any], own: Rows, old: Mapping[str, Any]) -> str:
    """The SQL for another instance under a free name; if there already are two, ``old`` is dropped first."""
    taken, base = {row["instance"] for row in own}, table["name"].replace(".", "_")
    free = next(name for number in range(2, len(taken) + 3) if (name := f"{base}_{number}") not in taken)
    enable = _enable_table(database, table, free, old["role"])
    if len(own) > 1:
        return f"{_disable(database, table['name'], old)} {enable}"
    return f"{enable} -- when the connector has switched to it, sp_cdc_disable_table for {old['instance']}"


def _disable(database: str, table: str, old: Mapping[str, Any]) -> str:
    schema, _, name = table.partition(".")
    return (
        f"USE {_quoted(database)}; EXEC sys.sp_cdc_disable_table @source_schema = {_text(schema)}, @source_name = "
        f"{_text(name)}, @capture_instance = {_text(old['instance'])};"
    )


def _rights(database: str, answers: QueryResults, connector: Connector) -> Iterator[Finding]:
    granted = answers.get(f"rights {database}")
    if granted is None:
        yield no_permission("grants", f"VIEW DEFINITION in {database}")
        return
    held = {row["held"] for row in granted}
    if not held & _READERS and not first_row(answers["server"]).get("sysadmin"):
        fix = f"USE {_quoted(database)}; ALTER ROLE db_datareader ADD MEMBER {_quoted(connector.user)};"
        yield Finding("grants", FIX, f"{connector.user} may not read {database} and its changes", fix)
    elif "db_owner" in held:
        fix = (
            f"USE {_quoted(database)}; ALTER ROLE db_datareader ADD MEMBER {_quoted(connector.user)}; "
            f"ALTER ROLE db_owner DROP MEMBER {_quoted(connector.user)};"
        )
        yield Finding("grants", ADVICE, f"{connector.user} is db_owner of {database}; db_datareader is enough", fix)
    else:
        yield Finding("grants", OK, f"{connector.user} reads {database}")


def _enable_database(database: str) -> str:
    return f"USE {_quoted(database)}; EXEC sys.sp_cdc_enable_db; -- as sysadmin"


def _enable_table(database: str, table: Mapping[str, Any], instance: str = "", role: str | None = None) -> str:
    schema, _, name = table["name"].partition(".")
    named = f", @capture_instance = {_text(instance)}" if instance else ""
    gate = _text(role) if role else "NULL"
    net = 1 if table["keyed"] else 0  # net changes need a key or a unique index
    return (
        f"USE {_quoted(database)}; EXEC sys.sp_cdc_enable_table @source_schema = {_text(schema)}, @source_name = "
        f"{_text(name)}, @role_name = {gate}, @supports_net_changes = {net}{named};"
    )


def _quoted(name: str) -> str:
    return "[" + name.replace("]", "]]") + "]"


def _quoted_table(table: str) -> str:
    return quote_table(table, _quoted)


def _text(value: str) -> str:
    return "N'" + value.replace("'", "''") + "'"
