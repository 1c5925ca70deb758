"""The purge horizon of a table as a control row, and its effect on a batch (debezium.md M9)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.spec import Table
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.stages.table.decoding import Decoded
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import purge_horizon
from replicator.transforms.purge_horizon import Horizon


def load(spark: SparkSession, at: Refinement, name: str, table: Table) -> Horizon | None:
    """Load the horizon of a silver table; None if nothing was purged since the table was built, or if it was restored
    to a state before the purge (RESTORE, an older copy): what it reads again has all of its rows. The horizon is in the
    order that the rows have.
    """
    row = at.control.get(at.lake.horizon(at.source.name, name))
    if row is None or row["table"] != at.silver.identity(spark, table):
        return None
    found = Horizon(row["horizon"], row["read"], row.get("version"))
    return None if _is_behind(spark, at, table, found) else found


def _is_behind(spark: SparkSession, at: Refinement, table: Table, found: Horizon) -> bool:
    """Return whether the table has read less of bronze than when it was purged."""
    identity = at.bronze.identity(spark, at.lake.bronze(at.source.name))
    done = None if identity is None else at.silver.progress(spark, table, identity)
    return done is not None and found.version is not None and done.version < found.version


def save(spark: SparkSession, at: Refinement, name: str, table: Table, found: Horizon) -> None:
    """Write the horizon for this incarnation of the table only: nothing is purged from one that is built again."""
    horizon = {"horizon": found.seq, "read": found.read, "version": found.version}
    row = {"table": at.silver.identity(spark, table), **horizon}
    at.control.put(at.lake.horizon(at.source.name, name), row)


@contextmanager
def mark_purged(share: TableShare, read: Decoded, found: Horizon | None, watermark: str | None) -> Iterator[DataFrame]:
    """Yield a batch's changes with ``_purged``; persisted while the context is open. Late changes of purged rows become
    dead letters. Changes that a truncate superseded are not checked. If no change is that old, or there is no horizon,
    nothing is read.
    """
    above = "" if watermark is None else watermark
    is_open = F.col("_reject").isNull() & (F.col("_seq") > above)
    if found is None or read.changes.where(is_open & (F.col("_seq") <= found.seq)).isEmpty():
        yield read.changes.withColumn("_purged", F.lit(False))
        return
    stored = share.at.silver.read(share.spark, share.table)
    keys, is_late = read.schema.plan.layout.keys, share.retried_rejects is not None and not share.regained
    is_news = _is_news(share, found)
    marked = purge_horizon.mark_purged(
        read.changes,
        stored,
        keys,
        found,
        share.name,
        above=above,
        is_late=is_late,
        is_news=is_news,
        is_by_topic=bool(share.declaration.shards),
    )
    with tuning.persist(marked) as changes:
        yield changes


def _is_news(share: TableShare, found: Horizon) -> bool:
    """Return whether bronze got all of a batch after the purge, for lines of objects: their offsets do not tell,
    because an object of another folder may arrive later with lower ones (``replicator/landing_objects.py``).
    """
    if not share.at.source.objects or share.retried_rejects is not None or found.version is None:
        return False
    topics = share.routes.topics(share.name)
    return all(start >= found.version for topic, start in share.new_records.after.items() if topic in topics)
