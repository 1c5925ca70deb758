"""Connections to PostgreSQL, with failures split into an unreachable server and a refused login."""

from __future__ import annotations

import ctypes
import re
import select
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2 import extensions

from replicator.errors import LoginRefused, Unreachable

# SQLSTATEs about the login, the database, and the right to connect to it; not of full or starting servers
_LOGIN_STATES = ("28", "3D000", "42501")
_STATE = re.compile(r":  ([0-9A-Z]{5})$", re.MULTILINE)
_SERVER_MESSAGE = ":  "
"""What libpq writes between the severity and the message of a server, in any language."""
_STATES_ALONE = 3  # libpq's PQERRORS_SQLSTATE, since 12
_NO_PASSWORD = "28P01"  # noqa: S105 - the SQLSTATE of a wrong one
_SECONDS = 10.0


@dataclass(frozen=True)
class SettingNames:
    """How messages name settings: ``place`` is what they belong to, ``database`` the key of the database's name."""

    place: str
    database: str


TARGET = SettingNames("the target", "database")
SOURCE = SettingNames("`database` of the source", "dbname")


def connect(where: str, settings: SettingNames, **keys: Any) -> Any:
    """Open a connection with psycopg2's arguments. Raises LoginRefused, naming the ``settings`` to correct, if the
    server refuses the login; else Unreachable.
    """
    try:
        return psycopg2.connect(**keys)
    except psycopg2.OperationalError as error:
        message = str(error).strip()
    # its lines name host and cause, never the password; the last one is of the address that answered
    lines = message.splitlines() or [message]
    first, last = lines[0], lines[-1]
    state = _refusal_sqlstate(**keys) if _SERVER_MESSAGE in message or not keys.get("password") else None
    if state is None and _SERVER_MESSAGE in message:
        fix = "The server's message gives the reason; run again once it is resolved."
        raise Unreachable(f"PostgreSQL accepts no connections now: {last}.", where=where, fix=fix)
    if state is None:
        fix = f"Check {settings.place}: host, port, user, password, {settings.database}, sslmode."
        raise Unreachable(f"PostgreSQL does not answer: {first}.", where=where, fix=fix)
    if state.startswith("28"):
        fix = f"Fix `user` and `password` of {settings.place}, or allow the login on the server (pg_hba.conf)."
    else:
        fix = f"Fix `{settings.database}` of {settings.place}: it must exist, and `user` must be allowed to connect."
    raise LoginRefused(f"PostgreSQL refused the login: {last} (SQLSTATE {state}).", where=where, fix=fix)


def _refusal_sqlstate(**keys: Any) -> str | None:
    """The SQLSTATE with which a server permanently refuses such a connection; None if it does not, or it is unknown.

    While connecting, libpq reports no SQLSTATE but a message, in the server's language. With its error verbosity set to
    the SQLSTATE the message is nothing else; that can only be set on a connection that is being opened asynchronously.
    """
    keys.pop("connection_factory", None)
    with suppress(psycopg2.Error, OSError, AttributeError), closing(psycopg2.connect(**keys, async_=True)) as session:
        libpq, place = ctypes.CDLL(psycopg2._psycopg.__file__), ctypes.c_void_p(session.pgconn_ptr)  # noqa: SLF001
        libpq.PQsetErrorVerbosity(place, _STATES_ALONE)
        try:
            _wait(session)
        except psycopg2.OperationalError as error:
            if libpq.PQconnectionNeedsPassword(place):
                return _NO_PASSWORD
            return next((state for state in _STATE.findall(str(error)) if state.startswith(_LOGIN_STATES)), None)
    return None


def _wait(session: Any) -> None:
    """Wait until the connection is open, or for some seconds: libpq's own limit does not apply to asynchronous ones."""
    until = time.monotonic() + _SECONDS
    while (state := session.poll()) != extensions.POLL_OK and (left := until - time.monotonic()) > 0:
        is_reading = state == extensions.POLL_READ
        select.select([session] if is_reading else [], [] if is_reading else [session], [], left)
