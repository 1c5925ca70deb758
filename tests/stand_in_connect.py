"""A stand-in for Kafka Connect that has one connector, which runs: for verbs that only ask for it."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def running(name: str, config: Mapping[str, str]) -> Iterator[str]:
    """Its address for the time of the block."""
    state = {"state": "RUNNING", "worker_id": "w"}
    status = {"name": name, "connector": state, "tasks": [{"id": 0, **state}]}
    told = json.dumps({name: {"info": {"name": name, "config": dict(config)}, "status": status}}).encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
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
