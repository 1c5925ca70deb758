"""What a snapshot of an append-only table has read again (debezium.md D4): rows that the stream has told, or an earlier
snapshot.

Of each content the latest scan that has it says how many rows there were at its place. So its rows take the place of
those with the same content that happened before it, whichever of them arrives first; what no scan has read again stays.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import position
from replicator.transforms import appended, truncate
from replicator.transforms.columns.layout import Layout

_BEHIND = "g"
"""Behind every digit: files say the ends of their keys, and not what these begin with."""


@dataclass(frozen=True)
class Settled:
    """The changes that make rows, and of rows at rest those that they take the place of, as deletes; None: none."""

    changes: DataFrame
    replaced: DataFrame | None = None


def settled(changes: DataFrame, stored: DataFrame | None, layout: Layout) -> Settled:
    """Changes of an append-only table, all of them inserts, against the table (None: it is not there yet)."""
    key = layout.keys[0]
    if not _may_meet(changes, stored, key):
        return Settled(changes)
    of_batch = _keys(changes, key)
    contents = appended.contents(changes, key)
    near = None if stored is None else appended.among(stored, key, contents)
    known = of_batch if near is None else of_batch.unionByName(_keys(near, key))
    latest = appended.scans(known).localCheckpoint()
    left = appended.covered(changes, key, latest, how="left_anti")
    if near is None:
        return Settled(left)
    again = appended.covered(near.where(~F.col("_deleted")), key, latest, how="left_semi")
    return Settled(left, truncate.deleted(again, layout, position.behind(F.col("_seq"))))


def _may_meet(changes: DataFrame, stored: DataFrame | None, key: str) -> bool:
    """Whether some row may have been read by a snapshot that came after it. Keys are in the order of places, so that
    files without such rows are not read: nearly always all of them.
    """
    own = F.col(names.spark(key))
    ends = changes.agg(F.min(own).alias("low"), F.max(own).alias("high")).first()
    if ends is None or ends["low"] is None:
        return False
    low, high = str(ends["low"]), str(ends["high"])
    if high.startswith(appended.STREAMED):
        place = low[1 : 1 + appended.PLACED]
        return stored is not None and not stored.where(own > appended.READ + place).isEmpty()
    scan = low[: 1 + appended.SCANNED]
    if not high.startswith(scan):
        return True
    return stored is not None and not stored.where((own < scan) | (own > scan + _BEHIND)).isEmpty()


def _keys(rows: DataFrame, key: str) -> DataFrame:
    return rows.select(F.col(names.spark(key)).alias("key"))
