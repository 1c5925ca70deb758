"""Snapshots that a connector takes once more by itself: one broke off, or it lost its place (debezium.md D7).

Rows that the first one mentioned, and that were deleted before the second one looked, are in no event.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator.stages import tuning
from replicator.stages.table import missing_rows, snapshots
from replicator.stages.tick.routing import BEGINNING
from replicator.stages.tick.table_share import TableShare

_FIRST, _NEARLY = r'"snapshot"\s*:\s*"first', '"first'
"""In the first row that a snapshot has of a table, as its source block says; incremental ones have no such row. An
expression takes ten times as long to look for as a text.
"""


def find_warnings(share: TableShare) -> list[str]:
    """A word where a snapshot of the table begins that is not its first one, and no later one has told what is gone.
    Bronze is asked, whose texts are whole, with each batch that has rows of a snapshot, but for a large first load.
    """
    source, first_load = share.at.source, share.whole
    if not _may_lack_deletes(share) or (first_load and tuning.is_large(share.spark)):
        return []
    whole = snapshots.load(share.at.control, share.at.lake.snapshots(source.name)).get(share.name)
    begun = _raw_records(share).where(F.col("value").contains(_NEARLY) & F.col("value").rlike(_FIRST))
    if whole is not None:
        begun = begun.where(whole.since())
    own_first = 1 if first_load and whole is None else 0
    if begun.limit(own_first + 1).count() <= own_first:
        return []
    ways = ["`replicator verify` tells"]
    if missing_rows.find_obstacle(source, share.name) is None:
        ways.append(f"`replicator connect snapshot {source.name} {share.name} --remove-missing` takes them out")
    word = "snapshot_again: the connector began to read the whole table once more; unless that was asked of it"
    return [f"{word} (`--blocking`), rows that the source deleted before may still be here: {', '.join(ways)}"]


def _may_lack_deletes(share: TableShare) -> bool:
    declared, tables = share.declaration, share.routes.tables
    keeps_all = declared.append_only or declared.shards or declared.outbox
    alone = all(len(tables.get(topic, ())) < 2 for topic in share.routes.topics(share.name))
    return share.again is None and share.any("has_snapshot") and alone and not keeps_all


def _raw_records(share: TableShare) -> DataFrame:
    """The batch's records of the table's topics as bronze has them; none where the log does not reach back."""
    bronze, topics = share.at.lake.bronze(share.at.source.name), share.routes.topics(share.name)
    if not share.whole:
        after: dict[tuple[str, ...], int] = {(topic,): share.news.after.get(topic, BEGINNING) for topic in topics}
        found = share.at.bronze.added(share.spark, bronze, after, share.upto)
        if found is not None:
            return found
    every = share.at.bronze.read(share.spark, bronze, share.upto)
    return every.where(F.col("topic").isin(*topics) if share.whole else F.lit(False))
