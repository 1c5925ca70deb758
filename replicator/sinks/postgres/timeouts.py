"""How long a session waits for a silent server: a link can die, or a host in between hang, without any notification.
The server's own limits end its statements; this module ends the wait for their answer, also on Ctrl-C, since the client
library handles no signal before it has its answer.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from psycopg2.extensions import connection, cursor


class TimeoutSession(connection):
    """A session whose statements are abandoned ``timeout`` seconds after they were sent; 0: never."""

    timeout: float = 0.0

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """Return a cursor with the same timeout."""
        return super().cursor(*args, **{"cursor_factory": TimeoutCursor, **kwargs})

    def commit(self) -> None:
        """Commit. Raises OperationalError if there is no answer in time."""
        run_with_timeout(self, self.timeout, super().commit)

    def rollback(self) -> None:
        """Roll back. Raises OperationalError if there is no answer in time."""
        run_with_timeout(self, self.timeout, super().rollback)


class TimeoutCursor(cursor):
    """A cursor of such a session."""

    def execute(self, query: Any, vars: Any = None) -> None:  # noqa: A002 - as psycopg2 calls it
        """Execute a statement. Raises OperationalError if there is no answer in time."""
        run = super().execute
        self._answered(lambda: run(query, vars))

    def copy_expert(self, sql: Any, file: Any, size: int = 1 << 18) -> None:
        """Run a COPY. Raises OperationalError if there is no answer in time."""
        run = super().copy_expert
        self._answered(lambda: run(sql, file, size))

    def _answered(self, work: Callable[[], None]) -> None:
        session = self.connection
        run_with_timeout(session, session.timeout if isinstance(session, TimeoutSession) else 0.0, work)


def run_with_timeout(session: connection, seconds: float, work: Callable[[], None]) -> None:
    """Run ``work``, which waits for the server, in another thread. Unless it ends within ``seconds`` (0: no limit), or
    if this thread is interrupted (KeyboardInterrupt), the socket is shut down, so that the waiting call fails with a
    lost connection.
    """
    failed: list[BaseException] = []
    over = Event()  # not Thread.join: after a signal during the join, Python reports the thread as ended

    def done() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            failed.append(error)
        over.set()

    with socket.socket(fileno=os.dup(session.fileno())) as link:
        Thread(target=done, name="postgres", daemon=True).start()
        try:
            over.wait(seconds or None)
        finally:
            if not over.is_set():
                with suppress(OSError):
                    link.shutdown(socket.SHUT_RDWR)
            over.wait()
    if failed:
        raise failed[0]
