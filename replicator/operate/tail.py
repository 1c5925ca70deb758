"""What each commit of a table did to its rows, one commit after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from replicator.operate.diff import keyed, refuse_other_key, shown_keys
from replicator.protocols import TableFormat
from replicator.spec import Moment, Table
from replicator.stages import tuning
from replicator.transforms.equality import compare
from replicator.transforms.live import live


@contextmanager
def commit(
    spark: SparkSession, tables_of: TableFormat, table: Table, version: int
) -> Iterator[tuple[Moment, DataFrame]]:
    """When a version was committed, and the live rows that it changed as ``compare.changes`` describes them, for the
    time of the block. The first one made all of its rows.

    Raises VersionMissing where the version, or the one before, is not kept any more; ConfigError for a table whose key
    is not known.
    """
    at = tables_of.moment(spark, table, version)
    was = tables_of.moment(spark, table, version - 1) if version else None
    session = tuning.session_for(spark, tables_of.size(spark, table))
    after = tables_of.read(session, table, version)
    table = keyed(after, table)
    before = tables_of.read(session, table, version - 1) if version else after.limit(0)
    if was is not None:
        refuse_other_key(before, table, was)
    changed = tables_of.changed_keys(session, table, version - 1, version) if version else None
    if changed is not None:
        before, after = (side.join(changed, list(table.keys), how="left_semi") for side in (before, after))
    with tuning.kept(compare.changes(live(before), live(after), shown_keys(after, table.keys))) as rows:
        yield at, rows
