"""Where a table was when something was made of it: which table, at which version, and by which commit.

A table that is copied back keeps its id and goes on with numbers that it had: the two alone would take other rows for
those that were read (reliability.md F-C5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from replicator.protocols import TableFormat
from replicator.spec import Table


class VersionRef(NamedTuple):
    """A table's identity, its version and ``TableFormat.commit_id`` of that; all None where it is not there yet."""

    identity: str | None
    version: int | None
    commit: str | None = None


def current(spark: SparkSession, format_: TableFormat, table: Table) -> VersionRef:
    """Where a table is."""
    identity, version = format_.identity(spark, table), format_.version(spark, table)
    return VersionRef(identity, version, None if version is None else format_.commit_id(spark, table, version))


def parse(
    row: Mapping[str, Sequence[Any]] | None, here: Mapping[str, VersionRef] | None
) -> dict[str, VersionRef] | None:
    """The places of a control row. Where one says no commit, as in rows of earlier checkouts, that of ``here`` is taken
    for it.
    """
    if row is None:
        return None
    then = {name: VersionRef(*place) for name, place in row.items()}
    return then | {name: place for name, place in (here or {}).items() if place._replace(commit=None) == then.get(name)}


def changed_keys(
    spark: SparkSession, format_: TableFormat, table: Table, then: VersionRef, since: VersionRef
) -> DataFrame | None:
    """What ``TableFormat.changed_keys`` tells from ``then`` to ``since``; None also where the table did not come from
    there: it is another one, or its version of then was made by another commit.
    """
    between = _between(spark, format_, table, then, since)
    return None if between is None else format_.changed_keys(spark, table, *between)


def changed_rows(
    spark: SparkSession, format_: TableFormat, table: Table, then: VersionRef, since: VersionRef
) -> DataFrame | None:
    """What ``TableFormat.changed_rows`` tells, in the same manner."""
    between = _between(spark, format_, table, then, since)
    return None if between is None else format_.changed_rows(spark, table, *between)


def _between(
    spark: SparkSession, format_: TableFormat, table: Table, then: VersionRef, since: VersionRef
) -> tuple[int, int] | None:
    if then.version is None or since.version is None or then.identity != since.identity or then.version > since.version:
        return None
    if then.commit is not None and then.commit != format_.commit_id(spark, table, then.version):
        return None
    return then.version, since.version
