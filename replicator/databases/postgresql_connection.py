"""Sessions of PostgreSQL, and what kept one from being opened: nobody answers, or lets no such login in."""

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

# the login, the database, and the right to connect to it; full servers and those that start are others
_LOGIN_STATES = ("28", "3D000", "42501")
_STATE = re.compile(r":  ([0-9A-Z]{5})$", re.MULTILINE)
_SERVER_MESSAGE = ":  "
"""What libpq writes between the severity and the words of a server, whatever the language."""
_STATES_ALONE = 3  # libpq's PQERRORS_SQLSTATE, since 12
_NO_PASSWORD = "28P01"  # noqa: S105 - what a server says of a wrong one
_SECONDS = 10.0


@dataclass(frozen=True)
class SettingNames:
    """How settings are called where they are written: ``place`` is whose they are, ``database`` the key of its name."""

    place: str
    database: str


TARGET = SettingNames("the target", "database")
SOURCE = SettingNames("`database` of the source", "dbname")


def connect(where: str, settings: SettingNames, **keys: Any) -> Any:
    """A session by psycopg2's arguments. Raises LoginRefused, naming what is to be mended of the ``settings``, where
    the server lets no such login in; else Unreachable.
    """
    try:
        return psycopg2.connect(**keys)
    except psycopg2.OperationalError as error:
        told = str(error).strip()
    # its lines name host and cause, never the password; the last one is of the address that answered
    lines = told.splitlines() or [told]
    first, last = lines[0], lines[-1]
    state = _refusal_sqlstate(**keys) if _SERVER_MESSAGE in told or not keys.get("password") else None
    if state is None and _SERVER_MESSAGE in told:
        mend = "Its own words say what is in the way; run again once it is not."
        raise Unreachable(f"PostgreSQL takes no session now: {last}.", where=where, mend=mend)
    if state is None:
        mend = f"Check {settings.place}: host, port, user, password, {settings.database}, sslmode."
        raise Unreachable(f"PostgreSQL does not answer: {first}.", where=where, mend=mend)
    if state.startswith("28"):
        mend = f"Mend `user` and `password` of {settings.place}, or let it in at the server (pg_hba.conf)."
    else:
        mend = f"Mend `{settings.database}` of {settings.place}: it must be there, and let `user` connect."
    raise LoginRefused(f"PostgreSQL lets nobody in: {last} (SQLSTATE {state}).", where=where, mend=mend)


def _refusal_sqlstate(**keys: Any) -> str | None:
    """The SQLSTATE with which a server refuses such a session for good; None where it does not, or nobody can say.

    While a session is opened libpq tells none, but in words, which are in the server's language; asked to be brief it
    tells nothing else. That can be asked only of one that is being opened.
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
    """Until it is open, or for some seconds: libpq's own limit is not for a session that somebody else waits for."""
    until = time.monotonic() + _SECONDS
    while (state := session.poll()) != extensions.POLL_OK and (left := until - time.monotonic()) > 0:
        reads = state == extensions.POLL_READ
        select.select([session] if reads else [], [] if reads else [session], [], left)
