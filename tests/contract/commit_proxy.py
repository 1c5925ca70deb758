"""A TCP proxy before Postgres: slow, or losing a connection at a chosen moment (reliability.md section 5)."""

from __future__ import annotations

import math
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType


class CommitProxy:
    """Passes bytes on until armed. Fires once, on a connection on which *seen* went by before *trigger*.

    ``swallow_after``: the server gets the trigger and its answer never comes back.
    ``cut_before``: the server never gets the trigger. ``swallowed`` and ``cut`` count how often it fired.
    ``silent_from``: neither side hears anything of the other any more, nor that it is so, until the end of the block.

    Whatever passes comes ``latency`` seconds later, at most ``rate`` bytes a second each way of each connection.
    """

    def __init__(
        self, host: str, port: int, own_port: int = 0, *, latency: float = 0.0, rate: float = math.inf
    ) -> None:
        self._server = (host, port)
        self._latency, self._rate = latency, rate
        self._ends = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", own_port))
        self.port: int = self._listener.getsockname()[1]
        self._armed: tuple[str, bytes, bytes] | None = None
        self._lock = threading.Lock()
        self.swallowed = 0
        self.cut = 0
        self.silenced = 0

    def swallow_after(self, seen: bytes, trigger: bytes) -> None:
        self._armed = ("swallow", seen, trigger)

    def cut_before(self, seen: bytes, trigger: bytes) -> None:
        self._armed = ("cut", seen, trigger)

    def silent_from(self, seen: bytes, trigger: bytes) -> None:
        self._armed = ("silence", seen, trigger)

    def __enter__(self) -> CommitProxy:  # noqa: PYI034  typing.Self came with Python 3.11
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self._ends.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                silent, dead = threading.Event(), threading.Event()
                threading.Thread(target=self._forward, args=(client, server, silent, dead), daemon=True).start()
                threading.Thread(target=self._answer, args=(server, client, silent, dead), daemon=True).start()

    def _forward(
        self, client: socket.socket, server: socket.socket, silent: threading.Event, dead: threading.Event
    ) -> None:
        """Client to server, watching for the trigger."""
        history = b""
        with suppress(OSError):
            while data := client.recv(65536):
                history += data
                action = self._fires(history, data)
                if action == "cut":
                    self.cut += 1
                    break
                if action == "swallow":
                    silent.set()
                    self.swallowed += 1
                if action == "silence":
                    dead.set()
                    self.silenced += 1
                if dead.is_set():
                    self._ends.wait()
                    break
                self._take_time(data)
                server.sendall(data)
        if not silent.is_set():
            _close(client, server)

    def _answer(
        self, server: socket.socket, client: socket.socket, silent: threading.Event, dead: threading.Event
    ) -> None:
        """Server to client; once silent, the first answer is dropped and the connection with it."""
        with suppress(OSError):
            while (data := server.recv(65536)) and not silent.is_set():
                if dead.is_set():
                    self._ends.wait()
                    break
                self._take_time(data)
                client.sendall(data)
        _close(client, server)

    def _take_time(self, data: bytes) -> None:
        time.sleep(self._latency + len(data) / self._rate)

    def _fires(self, history: bytes, data: bytes) -> str | None:
        with self._lock:
            if self._armed is None:
                return None
            action, seen, trigger = self._armed
            if trigger not in data or seen not in history:
                return None
            self._armed = None
            return action


def _close(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
