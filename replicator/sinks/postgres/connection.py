"""The address of the serving database, and the timeouts of its sessions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from replicator.databases import postgresql_connection
from replicator.errors import ConfigError
from replicator.sinks.postgres.timeouts import TimeoutSession

# libpq's names. Everything else is refused: some load files or log secrets (reliability.md section 12).
OPTIONS = (
    "application_name",
    "channel_binding",
    "connect_timeout",
    "gssencmode",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "sslcert",
    "sslkey",
    "sslrootcert",
    "target_session_attrs",
    "tcp_user_timeout",
)
# settings of the server's session that may be given as well, with their defaults
_IDLE = "idle_in_transaction_session_timeout"
LIMITS = {"lock_timeout": "10s", "statement_timeout": "1h", _IDLE: "10min"}
_PUBLISHER_IDLE = "1min"
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_HOST = re.compile(r"[A-Za-z0-9_.:-]+")
_LIMIT = re.compile(r"([0-9]{1,9})(ms|s|min|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
# this session converts texts to values and types to texts: defaults of the server or the role must not interfere
_SESSION = (
    "-c TimeZone=UTC -c DateStyle=ISO,YMD -c IntervalStyle=postgres -c search_path=pg_catalog "
    "-c extra_float_digits=3 -c quote_all_identifiers=off "
    "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
)
_BRIEF_CONNECT_TIMEOUT = "3"
# a server that vanishes silently is noticed after a minute, both while reading and while writing
_TIMEOUTS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}


@dataclass(frozen=True)
class PostgresConnection:
    """One PostgreSQL database. No text representation of this value contains the password.

    ``sslmode`` is libpq's, by default the one that verifies the server's name; ``options`` are libpq options out of
    ``OPTIONS``, and durations with a unit out of ``LIMITS``. Raises ConfigError for any other option, a duration
    without a unit, an unknown mode, and an invalid host name.
    """

    host: str
    port: int
    database: str
    user: str
    password: str = field(default="", repr=False)
    sslmode: str = "verify-full"
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _HOST.fullmatch(self.host):
            raise ConfigError(f"{self.host!r} is not a host name or address", fix="Give host and port separately.")
        if self.sslmode not in SSL_MODES:
            raise ConfigError(f"sslmode {self.sslmode!r} does not exist", fix=f"Use one of {', '.join(SSL_MODES)}.")
        unknown = sorted(set(self.options) - set(OPTIONS) - set(LIMITS))
        if unknown:
            known = ", ".join([*OPTIONS, *LIMITS])
            raise ConfigError(f"connection options not allowed: {', '.join(unknown)}", fix=f"Allowed: {known}.")
        for name in sorted(set(self.options) & set(LIMITS)):
            if not _LIMIT.fullmatch(self.options[name]):
                raise ConfigError(
                    f"{name}: {self.options[name]!r} is not a duration", fix="Write it as 500ms, 10s, 5min, 1h."
                )

    def brief(self) -> PostgresConnection:
        """Return the same database for short read-only use: the attempt to connect ends soon, unless ``options`` set a
        timeout.
        """
        return replace(self, options={"connect_timeout": _BRIEF_CONNECT_TIMEOUT, **self.options})

    @property
    def where(self) -> str:
        """``host:port/database`` for messages."""
        return f"{self.host}:{self.port}/{self.database}"

    @property
    def idle_limit(self) -> str:
        """The longest silence of a publisher, in Postgres' notation; sessions that only read may be
        silent for longer.
        """
        return self.options.get(_IDLE, _PUBLISHER_IDLE)

    @property
    def idle_seconds(self) -> float:
        """The longest silence of a publisher in seconds; 0 for no limit."""
        return _seconds(self.idle_limit)

    @property
    def timeout_seconds(self) -> float:
        """Seconds after which no answer to a statement is expected anymore: the statement timeout plus the connect
        timeout; 0 if statements have no timeout.
        """
        longest = _seconds(self.options.get("statement_timeout", LIMITS["statement_timeout"]))
        return longest and longest + float(self.options.get("connect_timeout", _TIMEOUTS["connect_timeout"]))

    def open(self) -> TimeoutSession:
        """Open a new session: UTC, ISO dates, empty search path. Unless ``options`` say otherwise, the timeouts are 10
        s for a lock and an hour for a statement, and the server ends a transaction that is idle for 10 minutes.

        Raises Unreachable, LoginRefused.
        """
        limits = {name: self.options.get(name, usual) for name, usual in LIMITS.items()}
        settings: dict[str, Any] = {
            **_TIMEOUTS,
            "application_name": "replicator",
            **{name: value for name, value in self.options.items() if name in OPTIONS},
            "host": self.host,
            "port": self.port,
            "dbname": self.database,
            "user": self.user,
            "password": self.password or None,
            "sslmode": self.sslmode,
            "client_encoding": "UTF8",
            "options": " ".join([_SESSION, *(f"-c {name}={value}" for name, value in limits.items())]),
        }
        session: TimeoutSession = postgresql_connection.connect(
            self.where, postgresql_connection.TARGET, connection_factory=TimeoutSession, **settings
        )
        session.timeout = self.timeout_seconds
        return session


def _seconds(limit: str) -> float:
    """Seconds of a duration as written in the limits."""
    found = _LIMIT.fullmatch(limit)
    return float(found.group(1)) * _UNITS[found.group(2)] if found else 0.0
