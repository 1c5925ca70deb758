"""One publisher per schema at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

# within a COPY the server regards a session as active, however long it waits for a hanging client
_TERMINATE_IDLE_HOLDER = (
    "SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
    "WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND a.datid = l.database "
    "AND (l.classid::bigint << 32) | l.objid::bigint = hashtextextended(%(key)s, 0) "
    "AND a.datname = current_database() AND a.usename = current_user AND a.state = 'active' "
    "AND a.wait_event = 'ClientRead' AND a.query_start < clock_timestamp() - make_interval(secs => %(limit)s)"
)


def acquire(cursor: Cursor, schemas: Iterable[str], limit: float) -> None:
    """Lock these schemas against other publishers until this session ends; a holder that is silent for ``limit``
    seconds (0: no limit) is terminated.
    """
    for schema in schemas:
        key = f"replicator publish {schema}"
        if limit:
            cursor.execute(_TERMINATE_IDLE_HOLDER, {"key": key, "limit": limit})
        cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (key,))
