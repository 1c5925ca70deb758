"""A stand-in for Kafka Connect that has one connector, which runs, or does so for a while once it is started."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def running(
    name: str, config: Mapping[str, str | None], seconds: float = 1e9, connector: str = "RUNNING"
) -> Iterator[str]:
    """Its address for the time of the block. Once it is told to start its task runs for so many seconds. ``connector``
    is its own state.
    """
    started = [float("inf")]

    def status() -> dict[str, Any]:
        state = {"state": "RUNNING", "worker_id": "w"}
        lasts = time.monotonic() - started[0] < seconds
        task = state if lasts else {"state": "FAILED", "worker_id": "w", "trace": "x.DebeziumException: no log"}
        return {"name": name, "connector": state | {"state": connector}, "tasks": [{"id": 0, **task}]}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = {name: {"info": {"name": name, "config": dict(config)}, "status": status()}}
            asks_status = self.path.endswith("/status")
            known = not asks_status or self.path == f"/connectors/{name}/status"
            self._tell(200 if known else 404, json.dumps(status() if asks_status else found).encode())

        def do_PUT(self) -> None:
            started[0] = time.monotonic()
            self._tell(202, b"")

        do_POST = do_PUT  # noqa: N815 - the names that http.server asks for

        def _tell(self, code: int, told: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
