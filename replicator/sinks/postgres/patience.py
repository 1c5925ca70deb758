"""How long a session waits for a server that says nothing: a link can die, or somebody in between fall asleep, so that
nobody ever hears of it. The server's own limits end what it works on; this ends the waiting for it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any

from psycopg2.extensions import connection, cursor


class PatientSession(connection):
    """A session whose statements are given up ``patience`` seconds after they were sent; 0: never."""

    patience: float = 0.0

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """One that is as patient."""
        return super().cursor(*args, **{"cursor_factory": PatientCursor, **kwargs})

    def commit(self) -> None:
        """Raises OperationalError where no answer comes."""
        with answered(self, self.patience):
            super().commit()

    def rollback(self) -> None:
        """Raises OperationalError where no answer comes."""
        with answered(self, self.patience):
            super().rollback()


class PatientCursor(cursor):
    """A cursor of such a session."""

    def execute(self, query: Any, vars: Any = None) -> None:  # noqa: A002 - as psycopg2 calls it
        """Raises OperationalError where no answer comes."""
        session = self.connection
        with answered(session, session.patience if isinstance(session, PatientSession) else 0.0):
            super().execute(query, vars)

    def copy_expert(self, sql: Any, file: Any, size: int = 1 << 18) -> None:
        """Raises OperationalError where no answer comes."""
        session = self.connection
        with answered(session, session.patience if isinstance(session, PatientSession) else 0.0):
            super().copy_expert(sql, file, size)


@contextmanager
def answered(session: connection, seconds: float) -> Iterator[None]:
    """Shut the way to the server unless the block ends in time: what waits there is told that it is lost."""
    if not seconds:
        yield
        return
    with socket.socket(fileno=os.dup(session.fileno())) as way:
        timer = Timer(seconds, _shut, [way])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _shut(way: socket.socket) -> None:
    with suppress(OSError):
        way.shutdown(socket.SHUT_RDWR)
