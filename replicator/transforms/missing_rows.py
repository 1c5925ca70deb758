"""Rows that a snapshot taken again does not mention: the source deleted them, and no event says so (debezium.md D7)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator.debezium import position
from replicator.transforms import truncate
from replicator.transforms.columns.layout import Layout


def deletes(stored: DataFrame, mentioned: DataFrame, layout: Layout) -> DataFrame:
    """A change that deletes each live row of ``stored`` whose key is not ``mentioned``: a row of a key's columns for
    every change of it since the snapshot was asked for, whatever the change was.

    It stands right behind the newest change of its row, at the same position: newer than all that is known of the row,
    whether that comes again or late, and older than whatever the source does next.
    """
    unseen = stored.where(~F.col("_deleted")).join(mentioned, list(layout.keys), how="left_anti")
    return truncate.to_deletes(unseen, layout, position.next_seq(F.col("_seq")))
