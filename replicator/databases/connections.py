"""Connections to source databases: PostgreSQL by psycopg2, the others by clients that are imported on demand."""

from __future__ import annotations

import importlib
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from replicator.databases import postgresql_connection
from replicator.errors import ConfigError, LoginRefused, Unreachable
from replicator.spec import Login

_FIX = "Check `database` of the source: host, port, user, password, sslmode."
BINLOG_LOGIN_ERRORS = frozenset({1045, 1130, 1698})
"""Error numbers of MariaDB and MySQL for a refused user, password or host."""
_TLS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "disable": lambda: {"ssl_disabled": True},
    "require": lambda: {"ssl": {"check_hostname": False}},
    "verify-full": lambda: {"ssl": ssl.create_default_context()},  # without a file of CAs PyMySQL checks no host name
}


def connect(login: Login) -> Any:
    """Open a DB-API connection in autocommit mode; the caller closes it. Raises Unreachable, LoginRefused; ConfigError
    if the client is not installed.
    """
    return _CONNECT_BY_KIND[login.kind](login)


def tls_arguments(login: Login) -> dict[str, Any]:
    """PyMySQL's arguments for an ``sslmode``, given as libpq's. Raises ConfigError for an unsupported one."""
    if login.sslmode not in _TLS:
        raise ConfigError(
            f"sslmode {login.sslmode!r} is not supported for {login.kind}", fix=f"Use one of {', '.join(_TLS)}."
        )
    return _TLS[login.sslmode]()


def import_client(name: str, package: str, kind: str) -> Any:
    """Import a client's module. Raises ConfigError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        fix = f"Install it: pip install {package}."
        raise ConfigError(f"{kind} is read with {package}, which is not installed", fix=fix) from error


def _postgresql(login: Login) -> Any:
    where = f"{login.host}:{login.port}/{login.dbname}"
    keys = {"host": login.host, "port": login.port, "dbname": login.dbname, "user": login.user}
    keys |= {"sslmode": login.sslmode, "connect_timeout": 10, "application_name": "replicator connect"}
    found = postgresql_connection.connect(where, postgresql_connection.SOURCE, password=login.password or None, **keys)
    found.autocommit = True
    return found


def _binlog(login: Login) -> Any:
    module = import_client("pymysql", "PyMySQL", login.kind)
    settings = {"host": login.host, "port": login.port, "user": login.user, "password": login.password}
    return _connect(
        module, login, **settings, charset="utf8mb4", connect_timeout=10, autocommit=True, **tls_arguments(login)
    )


def _sqlserver(login: Login) -> Any:
    module = import_client("pymssql", "pymssql", "SQL Server")
    settings = {"server": login.host, "port": str(login.port), "user": login.user, "password": login.password}
    encryption = "off" if login.sslmode == "disable" else "require"
    return _connect(module, login, **settings, login_timeout=10, autocommit=True, encryption=encryption)


def _oracle(login: Login) -> Any:
    module = import_client("oracledb", "oracledb", "Oracle")
    protocol = "tcp" if login.sslmode == "disable" else "tcps"
    settings = {"host": login.host, "port": login.port, "service_name": login.dbname, "protocol": protocol}
    return _connect(module, login, user=login.user, password=login.password, tcp_connect_timeout=10, **settings)


def _connect(module: Any, login: Login, **settings: Any) -> Any:
    try:
        return module.connect(**settings)
    except module.Error as error:
        refused = BINLOG_LOGIN_ERRORS if login.kind in ("mariadb", "mysql") else frozenset[int]()
        raise connect_error(login.kind, error, f"{login.host}:{login.port}", refused) from None
    except RuntimeError as error:
        raise missing_client_error(error, f"{login.host}:{login.port}") from error


def missing_client_error(error: RuntimeError, where: str) -> ConfigError:
    """The error for a package that PyMySQL lacks to log in by MySQL 8's own method over an unencrypted connection."""
    fix = "Install it: pip install cryptography, or encrypt the session (`sslmode: require`)."
    return ConfigError(f"PyMySQL cannot log in: {error}", where=where, fix=fix)


def connect_error(who: str, error: Exception, where: str, refused: frozenset[int]) -> Unreachable | LoginRefused:
    """The error for a failed connection to a database other than PostgreSQL, with its client's message, which names
    host and user, never the password. Error numbers in ``refused`` concern the login.
    """
    reason = str(error.args[-1] if error.args else error).strip().rstrip(".")
    number = error.args[0] if error.args else None
    if number in refused:
        fix = "Fix `user` and `password` in `database` of the source, or allow the login on the server."
        return LoginRefused(f"{who} refused the login: {reason} (error {number}).", where=where, fix=fix)
    return Unreachable(f"{who} does not answer: {reason}.", where=where, fix=_FIX)


_CONNECT_BY_KIND = {
    "mariadb": _binlog,
    "mysql": _binlog,
    "oracle": _oracle,
    "postgresql": _postgresql,
    "sqlserver": _sqlserver,
}
