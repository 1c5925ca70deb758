"""Readiness of MariaDB and MySQL: the binlog, the tables, and the privileges of the connector's account."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from replicator import names
from replicator.databases.readiness import signal_table
from replicator.databases.readiness.finding import (
    ADVICE,
    FIX,
    OK,
    Finding,
    QueryResults,
    Rows,
    is_captured,
    matches,
    missing_tables,
    no_permission,
    no_primary_key,
    quote_table,
    unsigned_bigint,
)
from replicator.spec import Connector

_VARIABLES = (
    "log_bin", "binlog_format", "binlog_row_image", "binlog_row_value_options", "server_id", "gtid_mode", "version",
    "binlog_expire_logs_seconds", "expire_logs_days", "log_bin_compress",
)  # fmt: skip
_USERS_TABLES = "table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')"
_OF_TABLES = f"""{_USERS_TABLES} AND (table_schema, table_name) NOT IN
       (SELECT table_schema, table_name FROM information_schema.tables WHERE table_type LIKE '%VIEW')"""  # noqa: S608
"""Columns of the users' tables: those of views are in no log."""
_OF_USER = "left(grantee, char_length(%(user)s) + 3) = concat('''', %(user)s, '''@')"
"""The accounts of the user on any host. LIKE would take an underscore in its name for any character."""
QUERIES: Mapping[str, str] = {
    "variables": f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({', '.join(map(repr, _VARIABLES))})",
    "tables": f"""
SELECT concat(t.table_schema, '.', t.table_name) AS name, t.engine AS engine,
       (SELECT count(*) FROM information_schema.table_constraints k WHERE k.table_schema = t.table_schema
        AND k.table_name = t.table_name AND k.constraint_type = 'PRIMARY KEY') AS key_count,
       (SELECT coalesce(min(i.nullable <> 'YES'), 0) FROM information_schema.statistics i
        WHERE i.table_schema = t.table_schema AND i.table_name = t.table_name AND i.non_unique = 0) AS is_unique
  FROM information_schema.tables t WHERE t.table_type = 'BASE TABLE' AND t.{_USERS_TABLES}
""",  # noqa: S608 - made of constants
    "unknown_types": f"""
SELECT concat(table_schema, '.', table_name) AS name, column_name AS col, data_type AS type
  FROM information_schema.columns WHERE data_type IN ('inet4', 'inet6') AND {_OF_TABLES}
""",  # noqa: S608 - made of constants
    "unknown_tables": f"""
SELECT concat(table_schema, '.', table_name) AS name, table_type AS type
  FROM information_schema.tables WHERE table_type IN ('SYSTEM VERSIONED', 'SEQUENCE') AND {_USERS_TABLES}
""",  # noqa: S608 - made of constants
    "unsigned": f"""
SELECT concat(table_schema, '.', table_name) AS name, column_name AS col
  FROM information_schema.columns
 WHERE data_type = 'bigint' AND lower(column_type) LIKE '%unsigned%' AND {_OF_TABLES}
""",  # noqa: S608 - made of constants
    "altered": f"""
SELECT concat(table_schema, '.', table_name) AS name, column_name AS col, data_type AS type, extra AS extra,
       numeric_precision AS digits
  FROM information_schema.columns
 WHERE (column_key = 'PRI' AND data_type IN ('bit', 'enum', 'set', 'time') OR extra LIKE '%INVISIBLE%')
   AND {_OF_TABLES}
""",  # noqa: S608 - made of constants
    "cascades": """
SELECT concat(constraint_schema, '.', table_name) AS name, referenced_table_name AS parent
  FROM information_schema.referential_constraints
 WHERE delete_rule IN ('CASCADE', 'SET NULL') OR update_rule IN ('CASCADE', 'SET NULL')
""",
    "privileges": f"""
SELECT grantee, privilege_type AS privilege, '*' AS scope FROM information_schema.user_privileges
 WHERE {_OF_USER}
UNION ALL
SELECT grantee, privilege_type, table_schema FROM information_schema.schema_privileges
 WHERE {_OF_USER}
UNION ALL
SELECT grantee, privilege_type, concat(table_schema, '.', table_name) FROM information_schema.table_privileges
 WHERE {_OF_USER}
""",  # noqa: S608 - made of constants
}
_NEEDED = ("SELECT", "RELOAD", "SHOW DATABASES", "REPLICATION SLAVE", "REPLICATION CLIENT")
_PRIVILEGE_ALIASES = {"BINLOG MONITOR": "REPLICATION CLIENT", "FLUSH_TABLES": "RELOAD", "FLUSH TABLES": "RELOAD"}
_HARMLESS = frozenset({*_NEEDED, "LOCK TABLES", "USAGE", "SHOW VIEW", "SLAVE MONITOR", "PROCESS"})
_SHORTEST = 3 * 86_400
_BYTE = 8
_SOURCE_TYPE_SETTINGS = ("column.propagate.source.type", "datatype.propagate.source.type")
"""Connector settings under which the schema block of a column says that it is unsigned."""


def evaluate(answers: QueryResults, connector: Connector) -> list[Finding]:
    """The findings of all checks, passed ones included."""

    def captured_rows(query: str) -> list[Mapping[str, Any]]:
        return [row for row in answers[query] or () if _is_captured(connector, row["name"])]

    every = [row["name"] for row in answers["tables"] or ()]
    tables = captured_rows("tables")
    captured = [row["name"] for row in tables]
    return [
        *_binlog({row["variable_name"].lower(): row["value"] for row in answers["variables"] or ()}, connector),
        *_privileges(answers["privileges"], connector, sorted({name.split(".")[0] for name in captured})),
        *_tables(tables),
        *_types(captured_rows("unknown_types")),
        *_unknown_tables(captured_rows("unknown_tables")),
        *_unsigned(captured_rows("unsigned"), connector),
        *_altered(captured_rows("altered"), connector),
        *_cascades(answers["cascades"] or (), captured),
        *missing_tables(connector, every),
        *_signals(answers["privileges"] or (), connector, every),
    ]


def _is_captured(connector: Connector, table: str) -> bool:
    database = table.partition(".")[0]
    return is_captured(connector, table) and (
        not connector.databases or any(matches(pattern, database) for pattern in connector.databases)
    )


def _binlog(variables: Mapping[str, str], connector: Connector) -> Iterator[Finding]:
    if variables["log_bin"] != "ON":
        fix = "-- my.cnf, then restart the server: log_bin = binlog, server_id = 1, binlog_format = ROW"
        yield Finding("log_bin", FIX, "OFF: the server writes no binlog", fix)
    for name, right in (("binlog_format", "ROW"), ("binlog_row_image", "FULL")):
        if variables[name] == right:
            yield Finding(name, OK, right)
        else:
            fix = f"SET GLOBAL {name} = '{right}'; -- and in my.cnf; open sessions keep theirs"
            yield Finding(name, FIX, f"{variables[name]}: changes are missing or incomplete", fix)
    if variables.get("binlog_row_value_options"):
        said = f"{variables['binlog_row_value_options']}: documents arrive in parts"
        yield Finding("binlog_row_value_options", FIX, said, "SET GLOBAL binlog_row_value_options = '';")
    if variables.get("log_bin_compress") == "ON":
        said = "ON: the connector silently skips compressed changes and DDL"
        yield Finding("log_bin_compress", FIX, said, "SET GLOBAL log_bin_compress = OFF; -- and in my.cnf")
    if str(connector.server_id) == variables["server_id"]:
        said = f"the connector's server_id {connector.server_id} is the server's own"
        yield Finding("server_id", FIX, said, "Set another `server_id` for the connector in the source's file.")
    if variables.get("gtid_mode") == "OFF":
        fix = "-- step by step: OFF_PERMISSIVE, ON_PERMISSIVE, ON, with enforce_gtid_consistency = ON"
        yield Finding("gtid_mode", ADVICE, "OFF: the connector cannot follow a failover", fix)
    yield from _retention(variables)


def _retention(variables: Mapping[str, str]) -> Iterator[Finding]:
    """Check how long the binlog is kept; 0 means forever."""
    by_days = float(variables.get("expire_logs_days") or 0) * 86_400
    seconds = float(variables.get("binlog_expire_logs_seconds") or 0) or by_days
    if 0 < seconds < _SHORTEST:
        said = f"the binlog is kept for {seconds / 3600:.0f} hours: a connector that is down for longer must start over"
        by_seconds = "binlog_expire_logs_seconds" in variables  # MySQL before 8 and MariaDB before 10.6 have days only
        fix = f"binlog_expire_logs_seconds = {7 * 86_400}" if by_seconds else "expire_logs_days = 7"
        yield Finding("retention", ADVICE, said, f"SET GLOBAL {fix};")


def _privileges(grants: Rows | None, connector: Connector, databases: list[str]) -> Iterator[Finding]:
    if not grants:
        yield no_permission("grants", f"SELECT on mysql.*, or there is no account {connector.user}")
        return
    for grantee in sorted({row["grantee"] for row in grants}):
        own = {
            (_canonical_privilege(row["privilege"]), str(row["scope"])) for row in grants if row["grantee"] == grantee
        }
        everywhere = {privilege for privilege, scope in own if scope == "*"}
        read = [scope for privilege, scope in own if privilege == "SELECT"]
        reads_all = bool(databases) and all(any(_covers(scope, each) for scope in read) for each in databases)
        missing = [each for each in _NEEDED if each not in everywhere and not (each == "SELECT" and reads_all)]
        surplus = sorted(everywhere - _HARMLESS)
        if missing:
            fix = f"GRANT {', '.join(missing)} ON *.* TO {grantee};"
            yield Finding("grants", FIX, f"{grantee} lacks {', '.join(missing)}", fix)
        if surplus:
            fix = f"REVOKE {', '.join(surplus)} ON *.* FROM {grantee};"
            yield Finding(
                "grants", ADVICE, f"{grantee} has {names.shorten_list(surplus, 4)}, which capture never needs", fix
            )
        if not missing and not surplus:
            yield Finding("grants", OK, grantee)


def _signals(grants: Rows, connector: Connector, every: list[str]) -> Iterator[Finding]:
    """Check that each account of the connector's user may insert into the signal table."""
    yield from signal_table.check_exists(connector, every, _quoted_table(connector.signals))
    for table in (each for each in every if signal_table.is_signal_table(connector, each)):
        database, own = table.partition(".")[0], ("*", table)
        rows = [row for row in grants if row["privilege"] == "INSERT"]
        able = {row["grantee"] for row in rows if row["scope"] in own or _covers(str(row["scope"]), database)}
        for grantee in sorted({row["grantee"] for row in grants} - able):
            yield from signal_table.check_insert(connector, table, _quoted_table(table), grantee)


def _covers(scope: str, database: str) -> bool:
    """Whether a database privilege, whose scope is a LIKE pattern, covers the database."""
    pieces = re.findall(r"\\.|.", scope, re.DOTALL)
    pattern = "".join({"%": ".*", "_": "."}.get(each) or re.escape(each[-1]) for each in pieces)
    return re.fullmatch(pattern, database, re.DOTALL) is not None


def _canonical_privilege(privilege: str) -> str:
    """A privilege by its name in the connector's documentation; servers and their versions use others."""
    return _PRIVILEGE_ALIASES.get(privilege, privilege)


def _tables(tables: list[Mapping[str, Any]]) -> Iterator[Finding]:
    for table in tables:
        name = table["name"]
        if int(table["key_count"]):
            yield Finding("table", OK, "it has a key", table=name)
        elif int(table["is_unique"]):
            said = "no primary key: its records have a unique index's key, and rows collapse if that index is dropped"
            yield no_primary_key(name, _quoted_table(name), said, ADVICE)
        else:
            said = "neither a primary key nor a unique index of NOT NULL columns: rows cannot be identified"
            yield no_primary_key(name, _quoted_table(name), said)
        if table["engine"] not in (None, "InnoDB"):
            fix = f"ALTER TABLE {_quoted_table(name)} ENGINE = InnoDB;"
            said = f"{table['engine']} has no transactions: a snapshot of it is not consistent"
            yield Finding("engine", ADVICE, said, fix, name)


def _types(rows: Rows) -> Iterator[Finding]:
    """Report types whose DDL or values Debezium's parser does not support (stack.md 2.5)."""
    for row in rows:
        said = f"{row['col']} is {row['type'].upper()}, which makes the connector fail"
        column = names.quote_spark(row["col"])
        fix = f"ALTER TABLE {_quoted_table(row['name'])} MODIFY {column} VARCHAR(45); -- or except_tables"
        yield Finding("type", FIX, said, fix, row["name"])


def _unknown_tables(rows: Rows) -> Iterator[Finding]:
    """Report kinds of tables whose rows in the binlog the connector cannot read."""
    for row in rows:
        said = f"its type is {row['type']}, which makes the connector fail"
        fix = f"except_tables: ['{row['name']}'] -- in the connector's block, or list the tables that it captures"
        yield Finding("table", FIX, said, fix, row["name"])


def _unsigned(rows: Rows, connector: Connector) -> Iterator[Finding]:
    """Report unsigned numbers that the connector sends as signed by default (types.md section 5)."""
    config = connector.config
    if config.get("bigint.unsigned.handling.mode") == "precise" or any(key in config for key in _SOURCE_TYPE_SETTINGS):
        return
    for row in rows:
        yield unsigned_bigint(row["name"], row["col"])


def _altered(rows: Rows, connector: Connector) -> Iterator[Finding]:
    """Report columns that a snapshot alters, and those for which it skips rows (docs/databases.md)."""
    for row in rows:
        said = f"{snapshot_obstacle(row)}: use `connect snapshot --blocking`"
        yield Finding("snapshot", ADVICE, said, table=row["name"])
        if row["type"] == "bit" and row["digits"] > _BYTE and connector.kind == "mariadb":
            said = f"{row['col']} is a key of more than 8 bits, whose bytes come in reverse order from a snapshot"
            fix = f"ALTER TABLE {_quoted_table(row['name'])} MODIFY {names.quote_spark(row['col'])} BIGINT UNSIGNED;"
            yield Finding("type", ADVICE, said, fix, row["name"])


def snapshot_obstacle(row: Mapping[str, Any]) -> str:
    """Why an incremental snapshot of the table of an ``altered`` row is not like the table."""
    if "INVISIBLE" in row["extra"]:
        return f"an incremental snapshot sends NULL for {row['col']}, which is INVISIBLE"
    return f"an incremental snapshot skips rows, since {row['col']} in the key is {row['type'].upper()}"


def _cascades(rows: Rows, captured: list[str]) -> Iterator[Finding]:
    for row in rows:
        if row["name"] in captured:
            said = (
                f"its foreign key to {row['parent']} cascades: the resulting changes to its rows are not in the binlog"
            )
            fix = "Let the application change these rows itself, and declare the foreign key without CASCADE."
            yield Finding("cascade", ADVICE, said, fix, row["name"])


def _quoted_table(table: str) -> str:
    return quote_table(table, names.quote_spark)  # backquotes, as in Spark
