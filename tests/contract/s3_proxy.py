"""An HTTP proxy before an S3 server: a busy store and a bad network (reliability.md F-O1, F-O2)."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

FAULTS = ("slow_down", "dropped", "late", "cut", "lost", "error")
"""``slow_down``: 503 and nothing done. ``error``: 500, nothing done. ``dropped``: the connection ends before the server
heard of it. ``lost``: it was done, and the answer does not come back. ``cut``: half of an object, then the connection
ends. ``late``: the answer comes ``LATE_SECONDS`` later. Beside these, once: ``stalled``, no answer for as long as the
client waits, and ``refused``: 403, to all.
"""
_OF_READS = ("cut", "stalled")
"""What objects are read by is few requests: the first of them have these, whatever is drawn."""
LATE_SECONDS = 0.5
_ERRORS = {
    "slow_down": (503, "SlowDown", "Please reduce your request rate."),
    "error": (500, "InternalError", "Oops."),
    "refused": (403, "AccessDenied", "Access Denied"),
}
_NO_CONTENT, _OF_AN_OBJECT = 204, (200, 206)
_OF_THE_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


@dataclass(frozen=True)
class Asked:
    """A request, as faults see it."""

    method: str
    path: str

    @property
    def is_read(self) -> bool:
        """Whether it asks for an object of a table."""
        return self.method == "GET" and "?" not in self.path and "/_replicator/" not in self.path

    def suits(self, fault: str) -> bool:
        """A half answer is one of an object. An upload is completed once: asked again, imitations of S3 forget that it
        was.
        """
        completes = self.method == "POST" and "uploadId=" in self.path
        whole = {"cut": self.method == "GET" and "?" not in self.path, "lost": not completes}
        return whole.get(fault, True)


@dataclass
class S3Proxy:
    """Passes requests on to ``server`` (a URL); to a ``share`` of them a fault happens instead, the rarest so far.

    ``requests`` counts them all, ``faults`` what happened to some, ``retries`` those that were asked again after that;
    ``uploads`` the uploads in parts that were completed, with how many parts each.
    """

    server: str
    share: float = 0.0
    seed: int = 1
    requests: int = 0
    retries: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    uploads: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random, self._drawn_of = random.Random(self.seed), Counter[str]()
        self._lock, self._over = threading.Lock(), threading.Event()
        self._failed: Counter[Asked] = Counter()
        self._parts: dict[str, set[str]] = {}
        self._closes_at: tuple[str, ...] | None = None
        self._closed, self._shut = False, "slow_down"
        self._http = _Server(self)
        self.endpoint = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> S3Proxy:  # noqa: PYI034  typing.Self came with Python 3.11
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._http.shutdown()
        self._http.server_close()

    def close_at(self, *words: str, by: str = "slow_down") -> None:
        """From the first PUT whose path has all these words on, answer 503 to everything, until :meth:`open`; 403 where
        it is closed ``by`` refusing.
        """
        self._closes_at, self._shut = words, by

    def open(self) -> None:
        """Answer again."""
        self._closes_at, self._closed = None, False

    @property
    def is_closed(self) -> bool:
        """Whether it came to such a PUT."""
        return self._closed

    def fault(self, asked: Asked) -> str | None:
        """What happens to a request in place of an answer."""
        with self._lock:
            self.requests += 1
            if self._failed[asked]:
                self._failed[asked] -= 1
                self.retries += 1
            found = self._drawn(asked)
            if found is not None:
                self.faults[found] += 1
                self._failed[asked] += found != "late"
            return found

    def _drawn(self, asked: Asked) -> str | None:
        if self._closes_at is not None and asked.method == "PUT":
            self._closed = self._closed or all(word in asked.path for word in self._closes_at)
        if self._closed:
            return self._shut
        if self.share and asked.is_read and (left := [fault for fault in _OF_READS if not self.faults[fault]]):
            found = left[0]
        elif self._random.random() >= self.share:
            return None
        else:
            found = min((fault for fault in FAULTS if asked.suits(fault)), key=self._drawn_of.__getitem__)
        self._drawn_of[found] += 1
        return found

    def passed(self, asked: Asked, status: int) -> None:
        """Take note of what the server did."""
        query = parse_qs(urlsplit(asked.path).query)
        if "uploadId" not in query or status != 200:
            return
        [upload] = query["uploadId"]
        with self._lock:
            if asked.method == "PUT":
                self._parts.setdefault(upload, set()).update(query["partNumber"])
            elif asked.method == "POST":
                self.uploads.append(len(self._parts.pop(upload)))

    def spared(self, asked: Asked, fault: str) -> None:
        """There was nothing to do that to."""
        with self._lock:
            self._failed[asked] -= 1
            for counted in (self.faults, self._drawn_of):
                counted[fault] -= 1

    def silence(self, fault: str) -> None:
        """Of a stalled request until all is over, or nobody can be listening any more."""
        if fault == "stalled":
            self._over.wait(60)


class _Server(ThreadingHTTPServer):
    """``proxy`` says what happens to a request."""

    daemon_threads = True

    def __init__(self, proxy: S3Proxy) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _answer(self) -> None:
        with suppress(ConnectionError):  # the client has given up
            self._answered()

    def _answered(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = Asked(self.command, self.path)
        fault = self.server.proxy.fault(asked)
        if fault in _ERRORS:
            self._refuse(*_ERRORS[fault])
        elif fault in {"dropped", "stalled"}:
            self.server.proxy.silence(fault)
            self.close_connection = True
        else:
            answer, content = self._passed_on(asked, body)
            if fault == "cut" and answer.status not in _OF_AN_OBJECT:
                self.server.proxy.spared(asked, fault)
                fault = None
            time.sleep(LATE_SECONDS if fault == "late" else 0)
            self.close_connection = fault in {"lost", "cut"}
            if fault != "lost":
                self._tell(answer, content[: len(content) // 2] if fault == "cut" else content, len(content))

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - the names that http.server asks for

    def _passed_on(self, asked: Asked, body: bytes) -> tuple[HTTPResponse, bytes]:
        at = urlsplit(self.server.proxy.server)
        upstream = HTTPConnection(at.hostname or "", at.port or 80, timeout=60)
        # the Host header stays: what was signed has it
        headers = {name: value for name, value in self.headers.items() if name.lower() not in {"expect", "connection"}}
        try:
            upstream.request(asked.method, asked.path, body=body or None, headers=headers)
            answer = upstream.getresponse()
            content = answer.read()
        finally:
            upstream.close()
        self.server.proxy.passed(asked, answer.status)
        return answer, content

    def _tell(self, answer: HTTPResponse, content: bytes, length: int) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _OF_THE_CONNECTION:
                self.send_header(name, value)
        if self.command == "HEAD":
            self.send_header("Content-Length", answer.headers.get("Content-Length") or "0")
        elif answer.status != _NO_CONTENT:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self, status: int, code: str, message: str) -> None:
        told = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else told)

    def log_message(self, *_: Any) -> None:
        pass
