"""Sessions of the databases that sources are: PostgreSQL's by psycopg2, the others' by clients that are asked for when
they are needed.
"""

from __future__ import annotations

import importlib
from typing import Any

import psycopg2

from replicator.errors import ConfigError, Unreachable
from replicator.spec import Login

_MEND = "Check `database` of the source: host, port, user, password, sslmode."
_TLS: dict[str, dict[str, Any]] = {
    "disable": {"ssl_disabled": True},
    "require": {"ssl": {"check_hostname": False}},
    "verify-full": {"ssl_verify_cert": True, "ssl_verify_identity": True},
}


def session(login: Login) -> Any:
    """A session of the DB-API that commits by itself; whoever gets it closes it. Raises Unreachable; ConfigError where
    its client is not installed.
    """
    return _OF[login.kind](login)


def tls(login: Login) -> dict[str, Any]:
    """PyMySQL's arguments for an ``sslmode``, which is said in libpq's words. Raises ConfigError."""
    if login.sslmode not in _TLS:
        raise ConfigError(f"sslmode {login.sslmode!r} is none of {login.kind}'s", mend=f"Use one of {', '.join(_TLS)}.")
    return _TLS[login.sslmode]


def client(name: str, package: str, kind: str) -> Any:
    """A client's module. Raises ConfigError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        mend = f"Install it: pip install {package}."
        raise ConfigError(f"{kind} is asked with {package}, which is not installed", mend=mend) from error


def _postgresql(login: Login) -> Any:
    where = f"{login.host}:{login.port}/{login.dbname}"
    try:
        opened = psycopg2.connect(
            host=login.host, port=login.port, dbname=login.dbname, user=login.user, password=login.password or None,
            sslmode=login.sslmode, connect_timeout=10, application_name="replicator connect",
        )  # fmt: skip
    except psycopg2.OperationalError as error:
        reason = str(error).strip().partition("\n")[0]
        raise Unreachable(f"PostgreSQL does not answer: {reason}.", where=where, mend=_MEND) from None
    opened.autocommit = True
    return opened


def _binlog(login: Login) -> Any:
    module = client("pymysql", "PyMySQL", login.kind)
    settings = {"host": login.host, "port": login.port, "user": login.user, "password": login.password}
    return _tried(module, login, **settings, charset="utf8mb4", connect_timeout=10, autocommit=True, **tls(login))


def _sqlserver(login: Login) -> Any:
    module = client("pymssql", "pymssql", "SQL Server")
    settings = {"server": login.host, "port": str(login.port), "user": login.user, "password": login.password}
    encryption = "off" if login.sslmode == "disable" else "require"
    return _tried(module, login, **settings, login_timeout=10, autocommit=True, encryption=encryption)


def _oracle(login: Login) -> Any:
    module = client("oracledb", "oracledb", "Oracle")
    protocol = "tcp" if login.sslmode == "disable" else "tcps"
    settings = {"host": login.host, "port": login.port, "service_name": login.dbname, "protocol": protocol}
    return _tried(module, login, user=login.user, password=login.password, tcp_connect_timeout=10, **settings)


def _tried(module: Any, login: Login, **settings: Any) -> Any:
    try:
        return module.connect(**settings)
    except module.Error as error:
        reason = str(error.args[-1] if error.args else error).strip().rstrip(".")
        where = f"{login.host}:{login.port}"
        raise Unreachable(f"{login.kind} does not answer: {reason}.", where=where, mend=_MEND) from None


_OF = {"mariadb": _binlog, "mysql": _binlog, "oracle": _oracle, "postgresql": _postgresql, "sqlserver": _sqlserver}
