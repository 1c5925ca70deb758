"""A login that a database refuses is a matter of the configuration, not of reach (decision 0088)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Thread

import pytest

from replicator.databases import logins, mysql, postgresql
from replicator.errors import LoginRefused, ReplicatorError, Unreachable
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
    with database.glance():
        pass


@pytest.mark.parametrize(("state", "setting"), POSTGRES.items())
def test_what_postgresql_refuses_for_good_is_exit_code_2_in_any_language(state: str, setting: str) -> None:
    """Of a target, of `connect check` and of `verify`: the SQLSTATE decides, and the setting to mend is named."""
    with listening(postgres(state)) as port:
        source = login("postgresql", port)
        found = [
            refusal(target(port, "hush").open),
            refusal(lambda: logins.session(source)),
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
        found = [refusal(target(port, "hush").open), refusal(lambda: logins.session(login("postgresql", port)))]
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
            refusal(lambda: logins.session(login("mariadb", port))),
            refusal(lambda: looked(mysql.source(login("mysql", port)))),
        ]
    assert [type(error) for error in found] == [LoginRefused] * 2
    assert all(setting in str(error) and str(number) in str(error) for error in found)
    with listening(mariadb(1040)) as port:
        assert isinstance(refusal(lambda: logins.session(login("mariadb", port))), Unreachable)
        assert isinstance(refusal(lambda: looked(mysql.source(login("mariadb", port)))), Unreachable)
