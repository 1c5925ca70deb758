"""How a source is captured: the database, its Debezium connector, and the settings that determine how values are
written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

PLACEHOLDER = "__debezium_unavailable_value"
"""Debezium's default for a value that was not sent (debezium.md E1)."""

DECIMALS, BINARY, TIMES = "decimal.handling.mode", "binary.handling.mode", "time.precision.mode"
"""The connector's settings for how values of some types are written (types.md section 2)."""


def split_expressions(expressions: str) -> list[str]:
    """The regular expressions in one of a connector's lists, such as ``table.include.list``; one empty for none."""
    return [one.replace(r"\,", ",").strip() for one in re.split(r"(?<!\\),", expressions)]


@dataclass(frozen=True)
class Login:
    """A login to the source database: ``kind`` is ``postgresql``, ``mariadb``, ``mysql``, ``sqlserver`` or ``oracle``;
    ``sslmode`` is libpq's.

    The password is excluded from the ``repr``.
    """

    kind: str
    host: str
    port: int
    user: str
    password: str = field(default="", repr=False)
    dbname: str = ""
    sslmode: str = "verify-full"


@dataclass(frozen=True)
class Connector:
    """The Debezium connector that a source's file describes.

    ``kind`` is one of ``Login``'s; ``prefix`` is the ``topic.prefix``. ``password`` is a reference that Kafka Connect
    resolves. ``tables`` and ``except_tables`` are regular expressions of ``<database or schema>.<table>``, the column
    lists of those with ``.<column>``; none: all. ``form`` is ``envelope``, ``flattened`` (``deletes`` is how deletes
    are sent) or ``outbox``. ``schemas``: every record carries its schema. ``heartbeat``: seconds, 0 for none. ``slot``
    and ``publication`` are PostgreSQL's, ``server_id`` is MySQL's and MariaDB's. ``bootstrap_servers`` are the
    addresses of Kafka for Connect. ``signals`` is the ``signal.data.collection``; ``signal_topic`` and
    ``notifications`` are the topics that it reads signals from and writes notifications to. ``config`` has further
    keys, which take precedence.
    """

    name: str
    kind: str
    prefix: str
    host: str
    port: int
    user: str
    password: str
    databases: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    except_tables: tuple[str, ...] = ()
    column_list: tuple[str, ...] = ()
    except_column_list: tuple[str, ...] = ()
    form: str = "envelope"
    deletes: str = "rewrite-with-tombstone"
    schemas: bool = True
    snapshot: str = "initial"
    heartbeat: int = 10
    slot: str = ""
    publication: str = ""
    server_id: int | None = None
    bootstrap_servers: str = ""
    signals: str = ""
    signal_topic: str = ""
    notifications: str = ""
    placeholder: str = ""
    transactions: bool = False
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def modes(self) -> Mapping[str, str]:
        """The settings for how it writes decimals, bytes, dates and times, by key (types.md Y13): exact decimals, as
        strings where records carry no schema (debezium-measured.md Z1.1), else Debezium's defaults.
        """
        in_binlog = self.kind in ("mysql", "mariadb")
        defaults = {
            DECIMALS: "precise" if self.schemas else "string",
            BINARY: "bytes",
            TIMES: "adaptive_time_microseconds" if in_binlog else "adaptive",
        }
        return {key: self.config.get(key, default).strip().lower() for key, default in defaults.items()}
