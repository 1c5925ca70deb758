"""One publisher per schema at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

# in the midst of COPY a session is at work for the server, however long it waits for who sleeps there
_TERMINATE_IDLE_HOLDER = (
    "SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
    "WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND a.datid = l.database "
    "AND (l.classid::bigint << 32) | l.objid::bigint = hashtextextended(%(key)s, 0) "
    "AND a.datname = current_database() AND a.usename = current_user AND a.state = 'active' "
    "AND a.wait_event = 'ClientRead' AND a.query_start < clock_timestamp() - make_interval(secs => %(limit)s)"
)


def acquire(cursor: Cursor, schemas: Iterable[str], limit: float) -> None:
    """Keep other publishers out of these schemas until this session ends; one that says nothing for ``limit`` seconds
    (0: for ever) is ended.
    """
    for schema in schemas:
        key = f"replicator publish {schema}"
        if limit:
            cursor.execute(_TERMINATE_IDLE_HOLDER, {"key": key, "limit": limit})
        cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (key,))
