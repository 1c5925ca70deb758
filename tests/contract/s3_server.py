"""An S3 server of this process that does one thing at a time, so that its conditions hold as S3's do."""

from __future__ import annotations

from threading import Thread
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from replicator import s3
from tests.contract.s3_keys import keys

BUCKET = "leases"
CARELESS = "careless"
"""A bucket whose server knows no conditions."""


class _Handler(WSGIRequestHandler):
    timeout = s3.TIMEOUT_SECONDS / 4  # one that is stopped amid its request would else hold up who waits for its lease

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        pass


class S3Server:
    """moto, in a thread, with both buckets."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, request_handler=_Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.keys = keys(self.endpoint)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.client = s3.client(self.keys)
        for bucket in (BUCKET, CARELESS):
            self.client.create_bucket(Bucket=bucket)

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"].startswith(f"/{CARELESS}/"):
            environ = {k: v for k, v in environ.items() if k not in ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")}
        return self._moto(environ, start_response)
