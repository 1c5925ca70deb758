"""The sample source on a running stack: ``python -m infra.sample_source`` fills it and registers its connector."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pymysql

from infra.local import Stack
from infra.sources.classicmodels import load, rows
from infra.sources.classicmodels.load import DATABASE
from replicator.connect.rest import Connect
from replicator.connect.template import fill
from replicator.errors import ReplicatorError, Unreachable

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


def main() -> int:
    """Fill the source of the stack in ``--home`` anew and wait until its connector runs; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m infra.sample_source", description="Fill the sample source.")
    parser.add_argument("--home", type=Path, default=Path(".cache/stack"), help="folder of the running stack")
    try:
        endpoints = Stack(parser.parse_args().home).endpoints()
        with closing(log_in(endpoints.mariadb)) as source:
            count = load.load(source, rows.generate())
        connect = Connect(endpoints.connect)
        connect.apply(CONNECTOR, connector(endpoints))
        connect.wait_running(CONNECTOR)
    except ReplicatorError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except pymysql.Error as error:
        print(f"error: MariaDB does not answer: {error.args[-1]}. Start it with `make stack`.", file=sys.stderr)
        return Unreachable.exit_code
    print(f"{count:,} rows in {DATABASE}; connector {CONNECTOR} is RUNNING", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
