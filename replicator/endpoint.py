"""Whether a service accepts connections, or answers: checked before a client with retries of its own takes minutes."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from urllib.parse import urlsplit

from replicator.errors import ConfigError, Unreachable

_SECONDS = 5.0
_PORTS = {"http": 80, "https": 443}
_WITH_PORT = re.compile(r".+:\d+")


def check_reachable(url: str, what: str, fix: str) -> None:
    """Raise Unreachable, named *what*, unless something accepts a connection at *url* within five seconds; ConfigError
    for an invalid address.
    """
    with _connect(url, what, fix):
        pass


def check_responds(url: str, what: str, fix: str) -> None:
    """As :func:`check_reachable` for an HTTP server, which must also send a first byte, whatever it is, within five
    seconds: clients wait minutes for a server that accepts connections and hangs.
    """
    with _connect(url, what, fix) as (connection, host, is_encrypted):
        try:
            _read_first_byte(connection, host, is_encrypted=is_encrypted)
        except TimeoutError as error:
            silent = f"{what} accepts connections but sends nothing for {_SECONDS:.0f} s"
            raise Unreachable(silent, where=url, fix=fix) from error
        except OSError:  # it closed the connection at once; its client reports why
            return


@contextmanager
def _connect(url: str, what: str, fix: str) -> Iterator[tuple[socket.socket, str, bool]]:
    """A connection, the host's name, and whether the connection is to be encrypted."""
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        place = (parts.hostname or "", parts.port or _PORTS[parts.scheme])
    except (ValueError, KeyError) as error:
        raise ConfigError(f"not a valid address for {what}: {error}", where=url, fix=fix) from error
    try:
        connection = socket.create_connection(place, timeout=_SECONDS)
    except (OSError, ValueError) as error:
        raise Unreachable(f"{what} does not answer: {error}", where=url, fix=fix) from error
    with connection:
        yield connection, place[0], parts.scheme == "https"


def _read_first_byte(connection: socket.socket, host: str, *, is_encrypted: bool) -> None:
    """Wait for the first byte. The certificate is not verified here; the client does that with its own
    trust settings.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(connection, server_hostname=host) if is_encrypted else nullcontext(connection) as stream:
        stream.sendall(f"HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        stream.recv(1)


def parse_addresses(addresses: str, what: str, fix: str) -> list[str]:
    """Return the comma-separated *addresses*. Raises ConfigError, named *what*, for one without a port."""
    found = [address.strip() for address in addresses.split(",") if address.strip()]
    for address in found or [addresses]:
        if not _WITH_PORT.fullmatch(address):
            raise ConfigError(f"not a valid address for {what}: {address!r} is not host:port", where=addresses, fix=fix)
    return found


def check_any_reachable(addresses: str, what: str, fix: str) -> None:
    """Raise Unreachable, named *what*, unless one of the comma-separated *addresses* accepts a connection; ConfigError
    as :func:`parse_addresses` does.
    """
    *others, last = parse_addresses(addresses, what, fix)
    for address in others:
        with suppress(Unreachable):
            return check_reachable(address, what, fix)
    try:
        return check_reachable(last, what, fix)
    except Unreachable as error:
        raise Unreachable(error.what, where=addresses, fix=fix) from error
