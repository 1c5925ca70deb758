"""Kafka Connect behind a login and behind TLS, as a server of the tests asks for them."""

from __future__ import annotations

import base64
import http.server
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replicator import settings
from replicator.cli import probes
from replicator.connect.rest import Connect
from replicator.errors import ConfigError
from tests.cli import said

USER, PASSWORD = "jörg", "p:ß and more"
EXPECTED = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
LOGIN = f"connect: {{{{url: '{{url}}', user: '{USER}', password: '${{{{CONNECT_PASSWORD}}}}'}}}}\n"


class _Guarded(http.server.BaseHTTPRequestHandler):
    """Connectors for whoever logs in, 401 for others; ``/away`` leads to a page where people do."""

    def _answer(self) -> None:
        known = self.headers.get("authorization") == EXPECTED
        code, body = (200, b'["shop"]') if known else (401, b'{"message": "no"}')
        self.send_response(302 if self.path.startswith("/away") else code)
        self.send_header("location", "/login")
        self.send_header("www-authenticate", "Basic")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = _answer  # noqa: N815 - their names are the library's

    def log_message(self, *told: object) -> None:
        """Nothing on stderr."""


@contextmanager
def guarded(context: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of such a server."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Guarded) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http{'' if context is None else 's'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that nobody signed, its key in the same file."""
    file, key = (tmp_path_factory.mktemp("tls") / name for name in ("server.pem", "key.pem"))
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=connect"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(file), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    file.write_text(file.read_text() + key.read_text())
    return file


def conf(folder: Path, url: str) -> tuple[str, ...]:
    """Flags that name a configuration with the login."""
    (folder / "base.yaml").write_text("", encoding="utf-8")
    (folder / "dev.yaml").write_text(LOGIN.format(url=url), encoding="utf-8")
    return ("--conf", str(folder), "--env", "dev")


def test_verbs_log_in_and_nothing_prints_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It comes from the environment and goes to the server, in the encoding of RFC 7617."""
    monkeypatch.setenv("CONNECT_PASSWORD", PASSWORD)
    with guarded() as url:
        flags = conf(tmp_path, url)
        found = settings.load(tmp_path, "dev").connect
        assert probes.connect(url, found.login) == "connectors: shop"
        told = said("config", "show", *flags) + repr(found)
        assert USER in told
        monkeypatch.setenv("CONNECT_PASSWORD", f"not {PASSWORD}")
        with pytest.raises(ConfigError, match=r"returned 401 .*Set connect\.user") as refused:
            said("connect", "pause", "shop", *flags, code=2)
    assert PASSWORD not in told + str(refused.value) + "".join(capfd.readouterr())


def test_without_a_login_or_on_the_way_to_a_page_nothing_is_done() -> None:
    """No verb takes a redirection for success."""
    with guarded() as url:
        with pytest.raises(ConfigError, match="login refused"):
            Connect(url).list()
        with pytest.raises(ConfigError, match="returned 302 for PUT"):
            Connect(f"{url}/away").pause("shop")


def test_a_certificate_is_trusted_by_the_file_that_the_environment_names(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``SSL_CERT_FILE``, as OpenSSL reads it; without it the connection is refused before the login is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with guarded(context) as url:
        with pytest.raises(ConfigError, match=r"not trusted: self-signed .*SSL_CERT_FILE"):
            Connect(url, login=(USER, PASSWORD)).list()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert Connect(url, login=(USER, PASSWORD)).list() == ("shop",)


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ("url: 'http://joe:secret@connect:8083'", "give user and password as keys of their own"),
        ("url: 'http://connect:8083', user: joe", "must be given together"),
        ("url: 'http://connect:8083', password: secret", "must be given together"),
    ],
)
def test_half_a_login_or_one_in_the_address_is_refused(tmp_path: Path, told: str, sentence: str) -> None:
    """An address is told to everyone."""
    conf(tmp_path, "")
    (tmp_path / "dev.yaml").write_text(f"connect: {{{told}}}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=sentence) as refused:
        settings.load(tmp_path, "dev", {})
    assert "secret" not in str(refused.value)
