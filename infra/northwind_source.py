"""Northwind on a running stack: ``python -m infra.northwind_source`` fills it and registers the outbox's connector."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg2

from infra.local import Stack
from infra.local.ending import exit_code_of, tell
from infra.sample_source import delivered, described, wait_delivered
from infra.sources.northwind import load, rows
from infra.sources.northwind.load import log_in
from infra.sources.northwind.trade import ORDERS
from replicator.connect.configuration import configuration
from replicator.connect.rest import Connect
from replicator.errors import Unreachable

if TYPE_CHECKING:
    from infra.local.endpoints import Endpoints

CONNECTOR = "demo"
"""Name of the connector, of its slot, and prefix of its topic."""

_CONF = Path(__file__).parents[1] / "conf" / "northwind"


def topic(prefix: str = CONNECTOR) -> str:
    """The topic of the outbox."""
    return f"{prefix}.{load.OUTBOX}"


def connector(endpoints: Endpoints, *, prefix: str = CONNECTOR, schemas: bool = True) -> dict[str, str]:
    """The PostgreSQL connector for the outbox. Another ``prefix`` makes another one beside it, with a slot of its own;
    without ``schemas`` keys and values are bare rows.
    """
    own = described(endpoints, CONNECTOR, _CONF)
    return configuration(replace(own, prefix=prefix, slot=prefix, schemas=schemas))


def main() -> int:
    """Fill the source of the stack in ``--home`` anew and wait until its outbox is in Kafka; the exit code."""
    options = _options()
    return exit_code_of(lambda: _fill(Stack(options.home).endpoints(), options), prefix="error: ")


def _fill(endpoints: Endpoints, options: argparse.Namespace) -> None:
    told = rows.generate() if options.rows is None else load.original_rows(options.rows)
    try:
        with closing(log_in(endpoints.postgres_source)) as source:
            before = delivered(endpoints.kafka, topic())
            count = load.load(source, told, follow_deletes=options.follow_deletes, replace=True)
    except psycopg2.OperationalError as error:
        raise Unreachable(str(error).splitlines()[0], fix="Start PostgreSQL with `make stack`.") from error
    connect = Connect(endpoints.connect)
    connect.apply(CONNECTOR, connector(endpoints))
    connect.wait_running(CONNECTOR)
    wait_delivered(endpoints.kafka, topic(), before + len(ORDERS))
    tell(f"{count:,} rows in {load.SCHEMA}, {len(ORDERS)} orders in Kafka; connector {CONNECTOR} is RUNNING")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.northwind_source", description="Fill Northwind.")
    parser.add_argument("--home", type=Path, default=Path(".cache/stack"), help="folder of the running stack")
    parser.add_argument("--rows", type=Path, metavar="DIR", help="CSV files of the published rows, not invented ones")
    parser.add_argument("--follow-deletes", action="store_true", help="let the outbox follow deletes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
