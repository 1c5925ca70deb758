"""The version of a table that something was made from: which table, which version, and which commit.

A table that was copied back keeps its id and reuses version numbers: with those two alone, other rows would be taken
for those that were read (reliability.md F-C5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from replicator.protocols import TableFormat
from replicator.spec import Table


class VersionRef(NamedTuple):
    """A table's identity, its version, and the ``TableFormat.commit_id`` of that version; all None if it does not
    exist.
    """

    identity: str | None
    version: int | None
    commit: str | None = None


def current(spark: SparkSession, format_: TableFormat, table: Table) -> VersionRef:
    """Return the current version of a table."""
    identity, version = format_.identity(spark, table), format_.version(spark, table)
    return VersionRef(identity, version, None if version is None else format_.commit_id(spark, table, version))


def parse(
    row: Mapping[str, Sequence[Any]] | None, here: Mapping[str, VersionRef] | None
) -> dict[str, VersionRef] | None:
    """Parse the versions of a control row. If one has no commit, as in rows of earlier releases, that of ``here`` is
    assumed for the same version.
    """
    if row is None:
        return None
    then = {name: VersionRef(*place) for name, place in row.items()}
    return then | {name: place for name, place in (here or {}).items() if place._replace(commit=None) == then.get(name)}


def changed_keys(
    spark: SparkSession, format_: TableFormat, table: Table, then: VersionRef, since: VersionRef
) -> DataFrame | None:
    """Return ``TableFormat.changed_keys`` from ``then`` to ``since``; None also if the table does not descend from
    ``then``: it is another table, or that version was made by another commit.
    """
    between = _between(spark, format_, table, then, since)
    return None if between is None else format_.changed_keys(spark, table, *between)


def changed_rows(
    spark: SparkSession, format_: TableFormat, table: Table, then: VersionRef, since: VersionRef
) -> DataFrame | None:
    """Return ``TableFormat.changed_rows`` in the same way."""
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
