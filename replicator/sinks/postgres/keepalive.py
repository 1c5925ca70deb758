"""Keeps a publisher's session alive while Spark stages: regular statements let the server distinguish a working
publisher from a hanging one, whose locks others must not wait for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

import psycopg2

from replicator.sinks.postgres.timeouts import run_with_timeout

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Session
    from psycopg2.extensions import cursor as Cursor

_USUAL_SECONDS = 20.0
_CHECK_CLIENT = (
    "SELECT set_config(name, '2s', false) FROM pg_settings "
    "WHERE name = 'client_connection_check_interval' AND version() LIKE '%linux%'"
)
"""PostgreSQL 14 and later; not every operating system supports it, and setting it elsewhere is an error."""
_NO_TRANSACTION_TIMEOUT = "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout'"
"""PostgreSQL 17 and later."""


def set_idle_timeouts(cursor: Cursor, limit: str) -> None:
    """Let the server end this session after silence of ``limit``, in a transaction or not; before PostgreSQL 14 it can
    do so only in a transaction. From 14 on the server also checks during a statement whether the client still exists:
    otherwise it would finish the statement of a killed publisher first, and hold its locks.
    """
    limits = ["idle_in_transaction_session_timeout", "idle_session_timeout"]
    cursor.execute("SELECT set_config(name, %s, false) FROM pg_settings WHERE name = ANY (%s)", (limit, limits))
    cursor.execute(_CHECK_CLIENT)
    disable_transaction_timeout(cursor)


def disable_transaction_timeout(cursor: Cursor) -> None:
    """Let a transaction of this session, including the current one, last as long as its statements may: a role's limit
    for whole transactions would end the work, again at each retry.
    """
    cursor.execute(_NO_TRANSACTION_TIMEOUT)


@contextmanager
def keep_alive(session: Session, limit: float) -> Iterator[None]:
    """Keep a session, which is in no transaction, alive inside of the block, in a transaction that holds no locks:
    every server ends sessions that are idle for its ``limit`` in seconds (0: none does). The loss of a session
    meanwhile is reported by its next statement.
    """
    over = Event()
    session.autocommit = False
    thread = Thread(target=_ping, args=(session, limit / 3 or _USUAL_SECONDS, over), name="wakeful", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(psycopg2.Error):
            session.rollback()
            session.autocommit = True


def _ping(session: Session, every: float, over: Event) -> None:
    with suppress(psycopg2.Error), session.cursor() as cursor:
        while True:
            run_with_timeout(session, _USUAL_SECONDS, lambda: cursor.execute("SELECT 1"))
            if over.wait(every):
                return
