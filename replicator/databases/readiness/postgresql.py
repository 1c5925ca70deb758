"""Readiness of PostgreSQL, 13 or newer: WAL, slots, the publication, and the role's privileges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from replicator.databases.readiness import postgresql_tables as per_table
from replicator.databases.readiness import signal_table
from replicator.databases.readiness.finding import (
    ADVICE,
    FIX,
    OK,
    Finding,
    QueryResults,
    Rows,
    first_row,
    format_bytes,
    missing_tables,
    quote_table,
)
from replicator.names import quote_postgres
from replicator.spec import Connector

QUERIES: Mapping[str, str] = {
    "settings": """
SELECT name, setting FROM pg_settings
 WHERE name IN ('wal_level', 'max_replication_slots', 'max_slot_wal_keep_size')
""",
    "role": """
SELECT rolsuper, rolreplication, rolcanlogin, rolbypassrls, rolcreaterole, rolcreatedb,
       has_database_privilege(oid, current_database(), 'CONNECT') AS connects,
       (SELECT pg_has_role(r.oid, g.oid, 'MEMBER') FROM pg_roles g WHERE g.rolname = 'rds_replication') AS cloud
  FROM pg_roles r WHERE rolname = %(user)s
""",
    "slots": """
SELECT slot_name, plugin, database, active, wal_status, CASE WHEN NOT pg_is_in_recovery()
       THEN pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint END AS retained
  FROM pg_replication_slots
""",
    "publication": """
SELECT puballtables, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot
  FROM pg_publication WHERE pubname = %(publication)s
""",
    "published": """
SELECT schemaname || '.' || tablename AS name FROM pg_publication_tables WHERE pubname = %(publication)s
 UNION SELECT n.nspname || '.' || c.relname
  FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid JOIN pg_class c ON c.oid = r.prrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = %(publication)s
""",
    "tables": per_table.QUERY,
}
_OPERATIONS = {"pubinsert": "insert", "pubupdate": "update", "pubdelete": "delete", "pubtruncate": "truncate"}
_LARGE_BACKLOG = 1 << 30


def evaluate(answers: QueryResults, connector: Connector) -> list[Finding]:
    """The findings of all checks, passed ones included."""
    every = [row["name"] for row in answers["tables"] or ()]
    tables = [row for row in answers["tables"] or () if signal_table.is_streamed(connector, row["name"])]
    return [
        *_log(answers, connector),
        *_slots(answers["slots"] or (), connector),
        *_role(first_row(answers["role"]), connector),
        *chain.from_iterable(per_table.evaluate(row, first_row(answers["role"]), connector) for row in tables),
        *_publication(answers, connector, tables),
        *missing_tables(connector, every),
        *signal_table.check_exists(connector, every, quote_table(connector.signals)),
    ]


def _log(answers: QueryResults, connector: Connector) -> Iterator[Finding]:
    settings = {row["name"]: str(row["setting"]) for row in answers["settings"] or ()}
    level, slots = settings["wal_level"], answers["slots"] or ()
    if level == "logical":
        yield Finding("wal_level", OK, "logical")
    else:
        fix = "ALTER SYSTEM SET wal_level = 'logical'; -- then restart the server; on RDS: rds.logical_replication = 1"
        yield Finding("wal_level", FIX, f"{level}: changes are not decoded", fix)
    missing = connector.slot not in {slot["slot_name"] for slot in slots}
    if missing and len(slots) >= int(settings["max_replication_slots"]):
        fix = f"ALTER SYSTEM SET max_replication_slots = {len(slots) + 5}; -- then restart the server"
        yield Finding("max_replication_slots", FIX, f"all {len(slots)} slots are in use", fix)
    if settings["max_slot_wal_keep_size"] == "-1":
        fix = "ALTER SYSTEM SET max_slot_wal_keep_size = '50GB'; SELECT pg_reload_conf();"
        said = "no limit: a connector that is down for long fills the server's disk"
        yield Finding("max_slot_wal_keep_size", ADVICE, said, fix)
    if connector.heartbeat == 0:
        said = "none: while the captured tables are idle, the slot retains the log of all others"
        yield Finding("heartbeat", ADVICE, said, "Set `heartbeat_seconds: 10` in the source's file.")


def _slots(slots: Rows, connector: Connector) -> Iterator[Finding]:
    own = next((slot for slot in slots if slot["slot_name"] == connector.slot), None)
    if own is None:
        yield Finding("slot", OK, f"{connector.slot} does not exist yet: the connector creates it")
    else:
        yield _own_slot(own, connector)
    for slot in slots:
        if slot is not own and slot["plugin"] is not None and not slot["active"]:
            said = f"{slot['slot_name']} is not being read and retains {format_bytes(slot['retained'] or 0)} of log"
            yield Finding("other slot", ADVICE, said, _drop(slot["slot_name"]))


def _own_slot(slot: Mapping[str, Any], connector: Connector) -> Finding:
    name, retained = slot["slot_name"], int(slot["retained"] or 0)
    if slot["plugin"] != "pgoutput" or slot["database"] != connector.databases[0]:
        said = (
            f"{name} belongs to {slot['database']} and {slot['plugin']}, not to {connector.databases[0]} and pgoutput"
        )
        return Finding("slot", FIX, said, "Set another `slot` for the connector in the source's file.")
    if slot["wal_status"] == "lost":
        fix = f"{_drop(name)} -- then take a new snapshot"
        return Finding("slot", FIX, f"{name} has lost unread log: changes are missing", fix)
    said = f"{name} retains {format_bytes(retained)} of log"
    if slot["wal_status"] == "unreserved":
        return Finding("slot", FIX, f"{said}, and is about to lose it", "Start the connector, or raise the limit.")
    if slot["active"]:
        return Finding("slot", OK, said)
    fix = f"Start the connector, or drop the slot: {_drop(name)}"
    return Finding("slot", FIX if retained > _LARGE_BACKLOG else ADVICE, f"{said}, and no connector reads it", fix)


def _publication(answers: QueryResults, connector: Connector, tables: Rows) -> Iterator[Finding]:
    publication, name = first_row(answers["publication"]), quote_postgres(connector.publication)
    if not publication:
        listed = ", ".join(quote_table(row["name"]) for row in tables if not row["unlogged"]) or "<tables>"
        fix = f"CREATE PUBLICATION {name} FOR TABLE {listed};"
        yield Finding("publication", FIX, f"publication {connector.publication} does not exist", fix)
        return
    left_out = [word for column, word in _OPERATIONS.items() if not publication[column]]
    if left_out:
        fix = f"ALTER PUBLICATION {name} SET (publish = '{', '.join(_OPERATIONS.values())}');"
        yield Finding("publication", FIX, f"{connector.publication} leaves out {', '.join(left_out)}", fix)
    if publication["puballtables"]:
        said = f"{connector.publication} is for all tables: an UPDATE fails in every table that has no key"
        yield Finding("publication", ADVICE, said, "Create one for the captured tables, and drop this one.")
    unsent = list(_unpublished(answers, connector, tables))
    yield from unsent
    if not left_out and not any(each.level == FIX for each in unsent):
        yield Finding("publication", OK, connector.publication)


def _unpublished(answers: QueryResults, connector: Connector, tables: Rows) -> Iterator[Finding]:
    """Report captured tables whose changes are not published, or published under names that are not captured."""
    publication, name = first_row(answers["publication"]), quote_postgres(connector.publication)
    every = answers["tables"] if publication["puballtables"] else answers["published"]
    published = {row["name"] for row in every or ()}
    for row in (each for each in tables if not each["unlogged"]):
        names = per_table.published_names(row, published, by_root=publication["pubviaroot"])
        lost = [each for each in names if not signal_table.is_streamed(connector, each)]
        if not names:
            said = f"{connector.publication} does not include it: no changes are sent"
            fix = f"ALTER PUBLICATION {name} ADD TABLE {quote_table(row['name'])};"
            yield Finding("publication", FIX, said, fix, row["name"])
        elif lost:
            said = f"its changes are sent as those of {', '.join(lost)}, which the connector does not capture"
            root = f"ALTER PUBLICATION {name} SET (publish_via_partition_root = true);"
            fix = f"Capture {lost[0]}, in the source's file." if publication["pubviaroot"] else root
            yield Finding("publication", FIX if lost == names else ADVICE, said, fix, row["name"])
        elif row["name"] not in names:
            said = (
                f"its changes are sent as those of {', '.join(names)}: rows that a snapshot read from it are not "
                "updated"
            )
            yield Finding("publication", FIX, said, per_table.exclusion_fix(row["name"]), row["name"])


def _role(role: Mapping[str, Any], connector: Connector) -> Iterator[Finding]:
    name = quote_postgres(connector.user)
    if not role:
        fix = f"CREATE ROLE {name} LOGIN REPLICATION PASSWORD '…';"
        yield Finding("role", FIX, f"role {connector.user} does not exist", fix)
        return
    lacking = [] if role["rolcanlogin"] else ["LOGIN"]
    if not (role["rolreplication"] or role["rolsuper"] or role["cloud"]):
        lacking.append("REPLICATION")
    if lacking:
        yield Finding("role", FIX, f"{connector.user} lacks {' and '.join(lacking)}", _grant_fix(name, lacking, role))
    if not role["connects"]:
        fix = f"GRANT CONNECT ON DATABASE {quote_postgres(connector.databases[0])} TO {name};"
        yield Finding("role", FIX, f"{connector.user} may not connect to the database", fix)
    flags = {"rolsuper": "SUPERUSER", "rolcreaterole": "CREATEROLE", "rolcreatedb": "CREATEDB"}
    too_many = [word for column, word in flags.items() if role[column]]
    if too_many:
        fix = f"ALTER ROLE {name} {' '.join(f'NO{word}' for word in too_many)};"
        yield Finding("role", ADVICE, f"{connector.user} has {', '.join(too_many)}, which capture never needs", fix)
    elif not lacking and role["connects"]:
        yield Finding("role", OK, connector.user)


def _grant_fix(name: str, lacking: list[str], role: Mapping[str, Any]) -> str:
    """The SQL to grant what is lacking. In a managed service without superusers (``cloud`` is not NULL), REPLICATION
    is granted as a role.
    """
    if role["cloud"] is None or "REPLICATION" not in lacking:
        return f"ALTER ROLE {name} {' '.join(lacking)};"
    login = f"ALTER ROLE {name} LOGIN; " if "LOGIN" in lacking else ""
    return f"{login}GRANT rds_replication TO {name};"


def _drop(slot: str) -> str:
    return f"SELECT pg_drop_replication_slot('{slot}');"
