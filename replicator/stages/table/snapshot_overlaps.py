"""Rows of an append-only table that a snapshot has read again (debezium.md D4), after the stream or an earlier
snapshot.

For each content the latest scan that contains it tells how many such rows there were at its place. So its rows replace
the rows with the same content from before it, in whichever order they arrive; rows that no scan has read again stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import position
from replicator.transforms import append_only, truncate
from replicator.transforms.columns.layout import Layout

_BEHIND = "g"
"""Sorts after every hexadecimal digit. Files have the minimum and maximum of their keys as statistics, so keys with a
prefix must be excluded by a range.
"""


@dataclass(frozen=True)
class OverlapResult:
    """The changes that make rows, and deletes of the stored rows that they replace (None: none)."""

    changes: DataFrame
    replaced: DataFrame | None = None


def resolve(changes: DataFrame, stored: DataFrame | None, layout: Layout) -> OverlapResult:
    """Resolve the changes of an append-only table, which are all inserts, against the table (None: it does not exist
    yet).
    """
    key = layout.keys[0]
    if not _may_overlap(changes, stored, key):
        return OverlapResult(changes)
    of_batch = _keys(changes, key)
    contents = append_only.distinct_contents(changes, key)
    near = None if stored is None else append_only.filter_by_content(stored, key, contents)
    known = of_batch if near is None else of_batch.unionByName(_keys(near, key))
    latest = append_only.latest_scans(known).localCheckpoint()
    remaining = append_only.join_later_scans(changes, key, latest, how="left_anti")
    if near is None:
        return OverlapResult(remaining)
    read_again = append_only.join_later_scans(near.where(~F.col("_deleted")), key, latest, how="left_semi")
    return OverlapResult(remaining, truncate.to_deletes(read_again, layout, position.next_seq(F.col("_seq"))))


def _may_overlap(changes: DataFrame, stored: DataFrame | None, key: str) -> bool:
    """Return whether some row may have been read by a snapshot that came after it. Keys sort in the order of places, so
    files without such rows are not read, which nearly always is all of them.
    """
    own = F.col(names.quote_spark(key))
    ends = changes.agg(F.min(own).alias("low"), F.max(own).alias("high")).first()
    if ends is None or ends["low"] is None:
        return False
    low, high = str(ends["low"]), str(ends["high"])
    if high.startswith(append_only.STREAMED):
        place = low[1 : 1 + append_only.PLACE_LENGTH]
        return stored is not None and not stored.where(own > append_only.READ + place).isEmpty()
    scan = low[: 1 + append_only.SCAN_LENGTH]
    if not high.startswith(scan):
        return True
    return stored is not None and not stored.where((own < scan) | (own > scan + _BEHIND)).isEmpty()


def _keys(rows: DataFrame, key: str) -> DataFrame:
    return rows.select(F.col(names.quote_spark(key)).alias("key"))
