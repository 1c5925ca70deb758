"""Checks of a connector's signal table, where incremental snapshots write watermarks that they read back in the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replicator.databases.readiness.finding import FIX, Finding, is_captured
from replicator.spec import Connector

_COLUMNS = "(id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"
_SILENT = "incremental snapshots read nothing"


def is_signal_table(connector: Connector, table: str) -> bool:
    """Whether ``<database or schema>.<table>`` is the connector's signal table."""
    return bool(connector.signals) and f".{connector.signals}".casefold().endswith(f".{table}".casefold())


def is_streamed(connector: Connector, table: str) -> bool:
    """Whether the connector reads a table's changes: a captured table, or its signal table even if not captured."""
    return is_captured(connector, table) or is_signal_table(connector, table)


def check_exists(connector: Connector, present: Iterable[str], quoted: str) -> Iterator[Finding]:
    """Report a configured signal table (``quoted`` in SQL) that does not exist."""
    if connector.signals and not any(is_signal_table(connector, table) for table in present):
        fix = f"CREATE TABLE {quoted} {_COLUMNS};"
        yield Finding("signals", FIX, f"the signal table does not exist: {_SILENT}", fix, connector.signals)


def check_insert(connector: Connector, table: str, quoted: str, account: str) -> Iterator[Finding]:
    """Report that the connector's ``account`` (in SQL) may not insert into its signal table; a connector with
    ``read.only`` needs no such privilege.
    """
    if connector.config.get("read.only") != "true":
        fix = f"GRANT INSERT ON {quoted} TO {account};"
        yield Finding("signals", FIX, f"{connector.user} may not insert into it: {_SILENT}", fix, table)
