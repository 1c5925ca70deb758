"""The sample source on a running stack: logging in to it, and the configuration of its connector."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pymysql

from infra.sources.classicmodels.load import DATABASE
from replicator.connect.template import fill

if TYPE_CHECKING:
    from infra.local.endpoints import Database, Endpoints

CONNECTOR = "dbserver1"
"""Name of the connector and prefix of its topics."""

_FILE = Path(__file__).parent / "connect" / f"{CONNECTOR}.json"


def log_in(server: Database) -> pymysql.Connection:
    """A connection to MariaDB without autocommit, in no database; the caller closes it."""
    return pymysql.connect(
        host=server.host, port=server.port, user=server.user, password=server.password, charset="utf8mb4"
    )


def connector(endpoints: Endpoints, *, prefix: str = CONNECTOR, database: str = DATABASE) -> dict[str, str]:
    """The MariaDB connector for one database of the stack.

    Another ``prefix`` makes another connector beside the first: own topics, schema history and server id.
    """
    config = fill(_FILE, endpoints.env())
    if prefix != CONNECTOR:
        config["database.server.id"] = str(int(config["database.server.id"]) + 1 + sum(prefix.encode()) % 10_000)
    return {
        **config,
        "topic.prefix": prefix,
        "database.include.list": database,
        "schema.history.internal.kafka.topic": f"schema-history.{prefix}",
    }
