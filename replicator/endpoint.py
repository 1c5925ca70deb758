"""Whether a service listens at a URL: asked before a client with retries of its own is left to find out."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from urllib.parse import urlsplit

from replicator.errors import ConfigError, Unreachable

_SECONDS = 5.0
_PORTS = {"http": 80, "https": 443}
_WITH_PORT = re.compile(r".+:\d+")


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


def ports(addresses: str, what: str, mend: str) -> list[str]:
    """The comma-separated *addresses*. Raises ConfigError, named *what*, for one without a port."""
    found = [address.strip() for address in addresses.split(",") if address.strip()]
    for address in found or [addresses]:
        if not _WITH_PORT.fullmatch(address):
            raise ConfigError(f"this is no address of {what}: {address!r} is not host:port", where=addresses, mend=mend)
    return found


def one_must_answer(addresses: str, what: str, mend: str) -> None:
    """Raise Unreachable, named *what*, unless one of the comma-separated *addresses* accepts a connection; ConfigError
    as :func:`ports` does.
    """
    *others, last = ports(addresses, what, mend)
    for address in others:
        with suppress(Unreachable):
            return must_answer(address, what, mend)
    try:
        return must_answer(last, what, mend)
    except Unreachable as error:
        raise Unreachable(error.what, where=addresses, mend=mend) from error
