"""Whether a service listens at a URL: asked before a client with retries of its own is left to find out."""

from __future__ import annotations

import socket
from contextlib import suppress
from urllib.parse import urlsplit

from replicator.errors import ConfigError, Unreachable

_SECONDS = 5.0
_PORTS = {"http": 80, "https": 443}


def must_answer(url: str, what: str, mend: str) -> None:
    """Raise Unreachable, named *what*, unless something accepts a connection at *url* within five seconds; ConfigError
    where nothing ever could.
    """
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        place = (parts.hostname or "", parts.port or _PORTS[parts.scheme])
    except (ValueError, KeyError) as error:
        raise ConfigError(f"this is no address of {what}: {error}", where=url, mend=mend) from error
    try:
        with socket.create_connection(place, timeout=_SECONDS):
            pass
    except (OSError, ValueError) as error:
        raise Unreachable(f"{what} does not answer: {error}", where=url, mend=mend) from error


def one_must_answer(addresses: str, what: str, mend: str) -> None:
    """Raise Unreachable, named *what*, unless one of the comma-separated *addresses* accepts a connection."""
    *others, last = addresses.split(",")
    for address in others:
        with suppress(Unreachable):
            return must_answer(address.strip(), what, mend)
    try:
        return must_answer(last.strip(), what, mend)
    except Unreachable as error:
        raise Unreachable(error.what, where=addresses, mend=mend) from error
