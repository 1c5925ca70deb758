"""Rows missing from a repeated snapshot: the source deleted them, and no event says so (debezium.md D7)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator.debezium import position
from replicator.transforms import truncate
from replicator.transforms.columns.layout import Layout


def deletes(stored: DataFrame, mentioned: DataFrame, layout: Layout) -> DataFrame:
    """Deletes for each live row of ``stored`` whose key is not in ``mentioned``, the keys of all changes of any kind
    since the snapshot was requested.

    A delete is ordered right after the newest change of its row, at the same position: newer than everything known of
    the row, redelivered or late, and older than whatever the source does next.
    """
    unseen = stored.where(~F.col("_deleted")).join(mentioned, list(layout.keys), how="left_anti")
    return truncate.to_deletes(unseen, layout, position.next_seq(F.col("_seq")))
