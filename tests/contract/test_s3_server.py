"""What tests expect of the S3 server that runs beside them."""

from __future__ import annotations

import socket
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from replicator import s3 as store
from tests.contract.s3_server import S3Server


@pytest.mark.parametrize(
    "said", [b"", b"PUT /leases/k HTTP/1.1\r\n", b"PUT /leases/k HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf"]
)
def test_a_client_that_stops_amid_a_request_delays_others_by_less_than_an_attempt(s3: S3Server, said: bytes) -> None:
    """Such a client is a driver that was put to sleep while its lease was renewed."""
    at = urlsplit(s3.endpoint)
    assert at.hostname is not None
    assert at.port is not None
    with socket.create_connection((at.hostname, at.port)) as stopped:
        stopped.sendall(said)
        with closing(HTTPConnection(at.hostname, at.port, timeout=store.TIMEOUT_SECONDS)) as other:
            other.request("GET", "/")
            assert other.getresponse().status == 200
