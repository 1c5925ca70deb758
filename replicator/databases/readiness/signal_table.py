"""The signal table of a connector: incremental snapshots write their watermarks there, and read them in the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replicator.databases.readiness.finding import MEND, Finding, is_captured
from replicator.spec import Connector

_COLUMNS = "(id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"
_SILENT = "incremental snapshots read nothing"


def is_signal_table(connector: Connector, table: str) -> bool:
    """Whether ``<database or schema>.<table>`` is the connector's signal table."""
    return bool(connector.signals) and f".{connector.signals}".casefold().endswith(f".{table}".casefold())


def is_streamed(connector: Connector, table: str) -> bool:
    """Whether the connector reads a table's changes: one that it captures, or its signal table, which it need not."""
    return is_captured(connector, table) or is_signal_table(connector, table)


def check_exists(connector: Connector, present: Iterable[str], quoted: str) -> Iterator[Finding]:
    """Said where a signal table is named, here ``quoted``, and is not among the tables that are there."""
    if connector.signals and not any(is_signal_table(connector, table) for table in present):
        fix = f"CREATE TABLE {quoted} {_COLUMNS};"
        yield Finding("signals", MEND, f"there is no signal table: {_SILENT}", fix, connector.signals)


def check_insert(connector: Connector, table: str, quoted: str, account: str) -> Iterator[Finding]:
    """Said where the connector's ``account``, as SQL has it, may not insert into its signal table: a connector that is
    told to write nothing needs no right.
    """
    if connector.config.get("read.only") != "true":
        fix = f"GRANT INSERT ON {quoted} TO {account};"
        yield Finding("signals", MEND, f"{connector.user} may not insert into it: {_SILENT}", fix, table)
