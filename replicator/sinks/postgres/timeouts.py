"""How long a session waits for a server that says nothing: a link can die, or somebody in between fall asleep, so that
nobody ever hears of it. The server's own limits end what it works on; this ends the waiting for it. So does Ctrl-C: the
client itself hears of no signal before it has its answer.
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
    """A session whose statements are given up ``patience`` seconds after they were sent; 0: never."""

    patience: float = 0.0

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """One that is as patient."""
        return super().cursor(*args, **{"cursor_factory": TimeoutCursor, **kwargs})

    def commit(self) -> None:
        """Raises OperationalError where no answer comes."""
        run_with_timeout(self, self.patience, super().commit)

    def rollback(self) -> None:
        """Raises OperationalError where no answer comes."""
        run_with_timeout(self, self.patience, super().rollback)


class TimeoutCursor(cursor):
    """A cursor of such a session."""

    def execute(self, query: Any, vars: Any = None) -> None:  # noqa: A002 - as psycopg2 calls it
        """Raises OperationalError where no answer comes."""
        run = super().execute
        self._answered(lambda: run(query, vars))

    def copy_expert(self, sql: Any, file: Any, size: int = 1 << 18) -> None:
        """Raises OperationalError where no answer comes."""
        run = super().copy_expert
        self._answered(lambda: run(sql, file, size))

    def _answered(self, work: Callable[[], None]) -> None:
        session = self.connection
        run_with_timeout(session, session.patience if isinstance(session, TimeoutSession) else 0.0, work)


def run_with_timeout(session: connection, seconds: float, work: Callable[[], None]) -> None:
    """Have the work done, which waits for the server, in a thread beside this one. Unless it ends in time (0: no matter
    when), or when this thread is told to end (KeyboardInterrupt), the way to the server is shut: what waits there is
    told that it is lost.
    """
    failed: list[BaseException] = []
    over = Event()  # of a thread that was being joined when a signal came Python says that it has ended

    def done() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            failed.append(error)
        over.set()

    with socket.socket(fileno=os.dup(session.fileno())) as way:
        Thread(target=done, name="postgres", daemon=True).start()
        try:
            over.wait(seconds or None)
        finally:
            if not over.is_set():
                with suppress(OSError):
                    way.shutdown(socket.SHUT_RDWR)
            over.wait()
    if failed:
        raise failed[0]
