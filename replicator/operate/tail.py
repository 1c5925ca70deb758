"""The rows that each commit of a table changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from replicator.operate.diff import display_keys, refuse_other_key, with_key
from replicator.protocols import TableFormat
from replicator.spec import CommittedVersion, Table
from replicator.stages import tuning
from replicator.transforms.comparison import compare
from replicator.transforms.live import select_live


@contextmanager
def read_commit(
    spark: SparkSession, tables_of: TableFormat, table: Table, version: int
) -> Iterator[tuple[CommittedVersion, DataFrame]]:
    """Yield the commit of a version, and the live rows that it changed as ``compare.changes`` describes them, for the
    duration of the block. Version 0 added all of its rows.

    Raises VersionMissing where the version, or the one before, is no longer available; ConfigError for a table whose
    key is not known, or differs between the two versions.
    """
    at = tables_of.version_at(spark, table, version)
    previous = tables_of.version_at(spark, table, version - 1) if version else None
    session = tuning.session_for(spark, tables_of.size(spark, table))
    after = tables_of.read(session, table, version)
    table = with_key(after, table)
    before = tables_of.read(session, table, version - 1) if version else after.limit(0)
    if previous is not None:
        refuse_other_key(before, table, previous)
    changed = tables_of.changed_keys(session, table, version - 1, version) if version else None
    if changed is not None:
        before, after = (side.join(changed, list(table.keys), how="left_semi") for side in (before, after))
    with tuning.persist(
        compare.changes(select_live(before), select_live(after), display_keys(after, table.keys))
    ) as rows:
        yield at, rows
