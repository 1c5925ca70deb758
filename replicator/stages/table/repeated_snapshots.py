"""Detect snapshots that a connector repeats by itself, because one broke off or it lost its offsets (debezium.md D7).

Rows that were in the first snapshot and were deleted before the second one are in no event.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator.stages import tuning
from replicator.stages.table import missing_rows, snapshots
from replicator.stages.tick.routing import BEGINNING
from replicator.stages.tick.table_share import TableShare

_FIRST, _NEARLY = r'"snapshot"\s*:\s*"first', '"first'
"""The marker of a snapshot's first row of a table in the source block; incremental snapshots have no such row. A
regular expression takes ten times as long to search for as a plain text, so the text is searched first.
"""


def find_warnings(share: TableShare) -> list[str]:
    """Return a warning if a snapshot of the table begins that is not its first one, and no later full snapshot told
    which rows are missing. Bronze is searched, which has the complete texts, for each batch with rows of a snapshot,
    except for a large first load.
    """
    source, first_load = share.at.source, share.is_from_start
    if not _may_lack_deletes(share) or (first_load and tuning.is_large(share.spark)):
        return []
    snapshot = snapshots.load(share.at.control, share.at.lake.snapshots(source.name)).get(share.name)
    begun = _raw_records(share).where(F.col("value").contains(_NEARLY) & F.col("value").rlike(_FIRST))
    if snapshot is not None:
        begun = begun.where(snapshot.is_after_start())
    own_first = 1 if first_load and snapshot is None else 0
    if begun.limit(own_first + 1).count() <= own_first:
        return []
    ways = ["`replicator verify` finds them"]
    if missing_rows.find_obstacle(source, share.name) is None:
        ways.append(f"`replicator connect snapshot {source.name} {share.name} --remove-missing` removes them")
    warning = "snapshot_again: the connector started another snapshot of the whole table; unless that was requested"
    return [f"{warning} (`--blocking`), rows deleted at the source before may still be here: {', '.join(ways)}"]


def _may_lack_deletes(share: TableShare) -> bool:
    declared, tables = share.declaration, share.routes.tables
    keeps_all = declared.append_only or declared.shards or declared.outbox
    are_exclusive = all(len(tables.get(topic, ())) < 2 for topic in share.routes.topics(share.name))
    return share.retried_rejects is None and share.any("has_snapshot") and are_exclusive and not keeps_all


def _raw_records(share: TableShare) -> DataFrame:
    """Return the batch's records of the table's topics as bronze has them; none if the log does not reach back."""
    bronze, topics = share.at.lake.bronze(share.at.source.name), share.routes.topics(share.name)
    if not share.is_from_start:
        after: dict[tuple[str, ...], int] = {
            (topic,): share.new_records.after.get(topic, BEGINNING) for topic in topics
        }
        found = share.at.bronze.added(share.spark, bronze, after, share.upto)
        if found is not None:
            return found
    every = share.at.bronze.read(share.spark, bronze, share.upto)
    return every.where(F.col("topic").isin(*topics) if share.is_from_start else F.lit(False))
