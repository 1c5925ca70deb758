"""Sending of signals to a connector, as rows of its signal table."""

from __future__ import annotations

from contextlib import closing

from replicator.databases import connections
from replicator.errors import ConfigError
from replicator.spec import Login


def send(login: Login, table: str, row: tuple[str, str, str]) -> None:
    """Insert id, type and data. ``table`` is a quoted name; its three columns may have any names.

    Raises Unreachable; ConfigError if the database does not accept the row.
    """
    places = ":1, :2, :3" if login.kind == "oracle" else "%s, %s, %s"
    with closing(connections.connect(login)) as session, closing(session.cursor()) as cursor:
        try:
            cursor.execute(f"INSERT INTO {table} VALUES ({places})", row)  # noqa: S608 - a name, quoted
            session.commit()
        except Exception as error:  # each client has its own exceptions
            reason = str(error.args[-1] if error.args else error).strip().partition("\n")[0].rstrip(".")
            fix = f"It needs three columns (id, type, data) and INSERT granted to {login.user}: docs/databases.md."
            where = f"{login.host}:{login.port}"
            raise ConfigError(
                f"signal table {table} did not accept the signal: {reason}.", where=where, fix=fix
            ) from error
