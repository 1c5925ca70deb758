"""What the demo sees in the serving Postgres: the star's rows, what changed in them, and when it was committed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import psycopg2

from infra.local.endpoints import Database
from infra.truth import STAR, STAR_SCHEMA, star_of_target

Rows = Mapping[str, Mapping[tuple[Any, ...], Mapping[str, Any]]]
"""Star table -> primary key -> row."""


def connect(server: Database) -> Any:
    """A psycopg2 connection as the owner of the star."""
    return psycopg2.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        dbname=server.database,
        sslmode="disable",  # loopback only
    )


def star(connection: Any) -> Rows:
    """The star's rows now; no rows at all before the first publish."""
    try:
        found = star_of_target(connection)
    except psycopg2.errors.UndefinedTable:
        found = {table: [] for table in STAR}
    return {
        table: {tuple(row[column] for column in STAR[table].key): row for row in rows} for table, rows in found.items()
    }


def last_commit(connection: Any) -> float:
    """Epoch second of the newest ledger row; 0 before the first publish."""
    with connection, closing(connection.cursor()) as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (f"{STAR_SCHEMA}._replicator_ledger",))
        if not cursor.fetchone()[0]:
            return 0.0
        cursor.execute(
            f'SELECT coalesce(extract(epoch FROM max(published_at)), 0)::float8 FROM "{STAR_SCHEMA}"._replicator_ledger'
        )
        return float(cursor.fetchone()[0])


def changes(before: Rows, after: Rows) -> list[str]:
    """What a step did, a line a row: table, key, and the columns that changed."""
    told = []
    for table in STAR:
        old, new = before[table], after[table]
        told += [f"{table} - {_key(key)}" for key in old if key not in new]
        told += [f"{table} + {_key(key)}" for key in new if key not in old]
        for key in old:
            if key in new and old[key] != new[key]:
                differing = [f"{c}: {old[key][c]} -> {new[key][c]}" for c in old[key] if old[key][c] != new[key][c]]
                told.append(f"{table} ~ {_key(key)} {', '.join(differing)}")
    return told


def _key(key: tuple[Any, ...]) -> str:
    return "/".join(map(str, key))
