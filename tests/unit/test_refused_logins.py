"""A login that a database refuses is a matter of the configuration, not of reach (decision 0088)."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from replicator.databases import connections, mysql, postgresql
from replicator.errors import ConfigError, LoginRefused, ReplicatorError, Unreachable
from replicator.sinks.postgres import PostgresConnection
from replicator.spec import Login

Server = Callable[[socket.socket], None]

POSTGRES = {
    "28P01": "`user` and `password`",
    "28000": "`user` and `password`",
    "3D000": "database",
    "42501": "database",
}
MARIADB = {1045: "`user` and `password`", 1698: "`user` and `password`", 1130: "`user` and `password`"}


def postgres(state: str) -> Server:
    """One that answers each start of a session with this SQLSTATE, in a language that is not English."""
    fields = {"S": "ПОМИЛКА", "V": "FATAL", "C": state, "M": "ні"}
    body = b"".join(f"{name}{value}".encode() + b"\0" for name, value in fields.items()) + b"\0"

    def answer(link: socket.socket) -> None:
        link.recv(4096)
        link.sendall(b"E" + struct.pack(">i", len(body) + 4) + body)

    return answer


def asking(link: socket.socket) -> None:
    """A PostgreSQL that wants a password."""
    link.recv(4096)
    link.sendall(b"R" + struct.pack(">ii", 8, 3))
    link.recv(4096)


def mariadb(number: int) -> Server:
    """One that refuses before anybody has said who it is."""
    body = b"\xff" + struct.pack("<H", number) + b"#28000no"

    def answer(link: socket.socket) -> None:
        link.sendall(struct.pack("<i", len(body)) + body)

    return answer


def mysql_8(link: socket.socket) -> None:
    """One whose users log in by its own default, and that offers its key to a session that is not encrypted."""

    def sent(number: int, body: bytes) -> None:
        link.sendall(struct.pack("<i", len(body))[:3] + bytes([number]) + body)

    tail = struct.pack("<HBHHB", 0x8201, 45, 2, 0x0008, 21) + bytes(10) + b"s" * 12 + b"\0caching_sha2_password\0"
    sent(0, b"\x0a8.0.36\0" + struct.pack("<i", 1) + b"s" * 8 + b"\0" + tail)
    link.recv(4096)
    sent(2, b"\x01\x04")  # it has not seen this password yet
    link.recv(4096)
    sent(4, b"\x01-----BEGIN PUBLIC KEY-----\n")
    link.recv(4096)


@contextmanager
def listening(answer: Server) -> Iterator[int]:
    """The port where it answers so."""
    with closing(socket.create_server(("127.0.0.1", 0))) as door:

        def serve() -> None:
            while True:
                try:
                    link, _ = door.accept()
                except OSError:
                    return
                with closing(link):
                    answer(link)

        Thread(target=serve, daemon=True).start()
        yield door.getsockname()[1]
        door.shutdown(socket.SHUT_RDWR)


def login(kind: str, port: int) -> Login:
    return Login(kind, "127.0.0.1", port, "ann", "hush", "shop", "disable")


def target(port: int, password: str) -> PostgresConnection:
    return PostgresConnection("127.0.0.1", port, "shop", "ann", password, "disable")


def refusal(opened: Callable[[], object]) -> ReplicatorError:
    with pytest.raises(ReplicatorError) as raised:
        opened()
    assert "hush" not in str(raised.value)
    return raised.value


def looked(database: postgresql.PostgresDatabase | mysql.MysqlDatabase) -> None:
    with database.read_snapshot():
        pass


@pytest.mark.parametrize(("state", "setting"), POSTGRES.items())
def test_what_postgresql_refuses_for_good_is_exit_code_2_in_any_language(state: str, setting: str) -> None:
    """Of a target, of `connect check` and of `verify`: the SQLSTATE decides, and the setting to fix is named."""
    with listening(postgres(state)) as port:
        source = login("postgresql", port)
        found = [
            refusal(target(port, "hush").open),
            refusal(lambda: connections.connect(source)),
            refusal(lambda: looked(postgresql.source(source))),
        ]
    assert [(type(error), error.exit_code) for error in found] == [(LoginRefused, 2)] * 3
    assert all(setting in str(error) and state in str(error) for error in found)
    assert [f"127.0.0.1:{port}/shop" == error.where for error in found] == [True] * 3
    assert ["target" in str(error) for error in found] == [True, False, False]


@pytest.mark.parametrize("state", ["53300", "57P03", "08P01"])
def test_what_postgresql_may_take_later_is_worth_another_try(state: str) -> None:
    """Too many sessions, a server that starts: exit code 3, and no word of a setting of ours that would be wrong."""
    with listening(postgres(state)) as port:
        found = [refusal(target(port, "hush").open), refusal(lambda: connections.connect(login("postgresql", port)))]
    assert [type(error) for error in found] == [Unreachable] * 2
    assert all("ПОМИЛКА:  ні" in str(error) and "password" not in str(error) for error in found)


def test_a_password_that_is_wanted_and_not_there_is_a_refused_login() -> None:
    """The server has said nothing of it yet."""
    with listening(asking) as port:
        found = refusal(target(port, "").open)
    assert isinstance(found, LoginRefused)
    assert "`user` and `password`" in str(found)


@pytest.mark.parametrize(("number", "setting"), MARIADB.items())
def test_what_mariadb_refuses_for_good_is_exit_code_2(number: int, setting: str) -> None:
    """As PostgreSQL's; a server that is full, or goes down, is not."""
    with listening(mariadb(number)) as port:
        found = [
            refusal(lambda: connections.connect(login("mariadb", port))),
            refusal(lambda: looked(mysql.source(login("mysql", port)))),
        ]
    assert [type(error) for error in found] == [LoginRefused] * 2
    assert all(setting in str(error) and str(number) in str(error) for error in found)
    with listening(mariadb(1040)) as port:
        assert isinstance(refusal(lambda: connections.connect(login("mariadb", port))), Unreachable)
        assert isinstance(refusal(lambda: looked(mysql.source(login("mariadb", port)))), Unreachable)


def test_what_a_login_of_mysql_8_lacks_on_this_side_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyMySQL without `cryptography` meets its default only where a session is not encrypted: no fault of ours, nor of
    the server's.
    """
    monkeypatch.setattr("pymysql._auth._have_cryptography", False)
    with listening(mysql_8) as port:
        found = [
            refusal(lambda: connections.connect(login("mysql", port))),
            refusal(lambda: looked(mysql.source(login("mysql", port)))),
        ]
    assert [(type(error), error.exit_code, error.where) for error in found] == [
        (ConfigError, 2, f"127.0.0.1:{port}")
    ] * 2
    assert all("pip install cryptography" in str(error) for error in found)


def mysql_encrypted(certificate: Path) -> Server:
    """One that encrypts the session with this certificate, and refuses the login that follows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def answer(link: socket.socket) -> None:
        tail = struct.pack("<HBHHB", 0x8A01, 45, 2, 0x0008, 21) + bytes(10) + b"s" * 12 + b"\0mysql_native_password\0"
        hello = b"\x0a8.0.36\0" + struct.pack("<i", 1) + b"s" * 8 + b"\0" + tail
        link.sendall(struct.pack("<i", len(hello)) + hello)
        link.recv(36)  # the request to encrypt
        with suppress(OSError), context.wrap_socket(link, server_side=True) as encrypted:
            encrypted.recv(4096)
            refused = b"\xff" + struct.pack("<H", 1045) + b"#28000no"
            encrypted.sendall(struct.pack("<i", len(refused))[:3] + b"\x03" + refused)

    return answer


@pytest.mark.parametrize(("name", "kind"), [("IP:127.0.0.1", LoginRefused), ("DNS:other.example", Unreachable)])
def test_verify_full_gives_the_password_only_to_the_server_that_the_certificate_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: type[ReplicatorError]
) -> None:
    """A trusted certificate of another name is not enough, in MariaDB and MySQL as in PostgreSQL."""
    certificate, key = tmp_path / "server.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=database"]
    command += ["-addext", f"subjectAltName={name}", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    certificate.write_text(certificate.read_text() + key.read_text())
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with listening(mysql_encrypted(certificate)) as port:
        strict = replace(login("mysql", port), sslmode="verify-full")
        found = [refusal(lambda: connections.connect(strict)), refusal(lambda: looked(mysql.source(strict)))]
    assert [type(error) for error in found] == [kind] * 2
