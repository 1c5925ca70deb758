"""Which changes are of transactions that have arrived whole (debezium.md H3, debezium-measured.md Z2.2).

The connector tells the end of each transaction in ``<prefix>.transaction``, with how many events each table got, and
marks every event with its transaction. Topics arrive at their own pace, so an end may be here before the events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_COUNTS = "ARRAY<STRUCT<data_collection: STRING, event_count: BIGINT>>"
_BODY = f"status: STRING, id: STRING, ts_ms: BIGINT, data_collections: {_COUNTS}"
_END = f"STRUCT<{_BODY}, payload: STRUCT<{_BODY}>>"

Place = tuple[str, int]
"""A topic and its partition."""


@dataclass(frozen=True)
class Cut:
    """Where what is whole ends: ``offsets`` has the first offset that must wait, of partitions where one must.

    ``place`` is the greatest place of a change that need not wait; None if there was none. Transactions come in the
    source's order: whatever stands at or below it need not wait either. Transactions that are ``excused`` never wait.
    ``is_blind``: something waits for a transaction of which nothing but the end is here.
    """

    offsets: Mapping[Place, int] = field(default_factory=dict)
    place: str | None = None
    excused: frozenset[str] = frozenset()
    is_blind: bool = False


def tagged(described: DataFrame) -> DataFrame:
    """Described records in their epochs -> ``topic, partition, offset, table``, ``_tx`` (its transaction), ``_nth``
    (the number of the event in it) and ``place`` (epoch and position), of those that say a transaction.
    """

    def said(name: str) -> Column:
        inside = [F.get_json_object("value", f"$.{wrapper}transaction.{name}") for wrapper in ("", "payload.")]
        return F.coalesce(*inside)

    changes = described.where(F.col("rule").isNull() & F.col("table").isNotNull() & ~F.col("flat"))
    place = F.concat("epoch", "position").alias("place")
    named = (_transaction(said("id")).alias("_tx"), said("total_order").alias("_nth"), place)
    return changes.select("topic", "partition", "offset", "table", *named).where("_tx IS NOT NULL")


def ends(records: DataFrame, is_read: Column) -> DataFrame:
    """Records of the transaction topic -> ``topic, partition, offset, _tx, ended BIGINT`` (epoch ms), ``table`` and
    ``expected``: one row per end and table of it for which ``is_read``, a condition on ``table``, holds; both are NULL
    for a transaction without any.
    """
    told = records.select("topic", "partition", "offset", F.from_json("value", _END).alias("_told"))

    def said(name: str) -> Column:
        return F.coalesce(F.col(f"_told.{name}"), F.col(f"_told.payload.{name}"))

    counts = told.where(said("status") == "END").select(
        "topic",
        "partition",
        "offset",
        _transaction(said("id")).alias("_tx"),
        said("ts_ms").alias("ended"),
        F.explode_outer(said("data_collections")).alias("_count"),
    )
    named = counts.withColumns({"table": F.col("_count.data_collection"), "expected": F.col("_count.event_count")})
    counted = is_read & (F.col("expected") > 0)
    only = {"expected": F.when(counted, F.col("expected")), "table": F.when(counted, F.col("table"))}
    return named.drop("_count").withColumns(only)


def cut(changes: DataFrame, told: DataFrame, before: Cut) -> Cut:
    """The cut behind tagged changes and ends that all waited at the cut ``before``, or are new.

    A transaction is whole once its end is told and every table's events are here. It waits while one before it is not:
    by their places, and by the times of their ends for one of which nothing but the end is here. What stands at or
    below ``before.place`` was let through; when it comes again, its counts start anew (H3).
    """
    new = changes if before.place is None else changes.where(F.col("place") > before.place)
    new, told = (rows.where(~F.col("_tx").isin(*before.excused)) for rows in (new, told))
    states = _states(new, told)
    unseen = F.min(F.when(F.col("place").isNull(), F.col("ended")))
    bound = states.where("NOT whole").agg(F.min("place").alias("place"), unseen.alias("ended")).collect()[0]
    waits = ~F.col("whole")
    for name in ("place", "ended"):
        if bound[name] is not None:
            waits = waits | F.coalesce(F.col(name) >= bound[name], F.lit(False))
    waiting = states.where(waits).select("_tx")
    places = [rows.select("topic", "partition", "offset", "_tx") for rows in (new, told)]
    held = places[0].unionByName(places[1]).join(waiting, "_tx", "left_semi")
    first = held.groupBy("topic", "partition").agg(F.min("offset").alias("offset")).collect()
    passed = new.join(waiting, "_tx", "left_anti").agg(F.max("place").alias("place")).collect()[0]["place"]
    return Cut(
        {(row["topic"], row["partition"]): row["offset"] for row in first},
        max(filter(None, (passed, before.place)), default=None),
        before.excused,
        bound["ended"] is not None,
    )


def in_part(changes: DataFrame, told: DataFrame) -> frozenset[str]:
    """Transactions of which something is here, and not all."""
    states = _states(changes, told).where("NOT whole AND place IS NOT NULL")
    return frozenset(row["_tx"] for row in states.select("_tx").collect())


def _states(changes: DataFrame, told: DataFrame) -> DataFrame:
    """One row per transaction: ``_tx, whole BOOLEAN, place`` (its smallest position that is here), ``ended``."""
    here = changes.groupBy("_tx", "table").agg(
        # a repetition has the numbers of what it repeats
        F.count_distinct(F.coalesce("_nth", F.concat_ws("/", "topic", "partition", "offset"))).alias("seen"),
        F.min("place").alias("place"),
    )
    # a repeated end may tell less than the first: 0 after a crash
    expected = told.groupBy("_tx", "table").agg(F.max("expected").alias("expected"), F.min("ended").alias("ended"))
    both = here.join(expected.withColumn("is_told", F.lit(True)), ["_tx", "table"], "full")
    is_short = F.coalesce(F.col("expected"), F.lit(0)) > F.coalesce(F.col("seen"), F.lit(0))
    found = both.groupBy("_tx").agg(
        F.max(is_short).alias("is_short"),
        F.max(F.coalesce("is_told", F.lit(False))).alias("is_told"),
        F.min("place").alias("place"),
        F.min("ended").alias("ended"),
    )
    return found.withColumn("whole", F.col("is_told") & ~F.col("is_short"))


def _transaction(said: Column) -> Column:
    """PostgreSQL's id is ``txId:lsn`` with another lsn on each row; all others name the transaction (Z2.2)."""
    return F.when(said.rlike(r"^\d+:\d+$"), F.substring_index(said, ":", 1)).otherwise(said)
