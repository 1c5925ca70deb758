"""Complete transactions: which changes belong to transactions that have arrived as a whole (debezium.md H3,
debezium-measured.md Z2.2).

The connector writes the end of each transaction to ``<prefix>.transaction``, with the number of events per table, and
marks every event with its transaction. Topics arrive at their own pace, so an end may arrive before the events.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_COUNTS = "ARRAY<STRUCT<data_collection: STRING, event_count: BIGINT>>"
_BODY = f"status: STRING, id: STRING, ts_ms: BIGINT, data_collections: {_COUNTS}"
_END = f"STRUCT<{_BODY}, payload: STRUCT<{_BODY}>>"


def topic(source: str) -> str:
    """The transaction topic of a source's connector."""
    return f"{source}.transaction"


def tag_changes(described: DataFrame) -> DataFrame:
    """The described records that name a transaction: ``topic, partition, offset, table``, ``_tx`` (the transaction),
    ``_nth`` (the number of the event in it) and ``place`` (epoch and position). The records have their ``epoch``.
    """

    def member(name: str) -> Column:
        inside = [F.get_json_object("value", f"$.{wrapper}transaction.{name}") for wrapper in ("", "payload.")]
        return F.coalesce(*inside)

    changes = described.where(F.col("rule").isNull() & F.col("table").isNotNull() & ~F.col("flat"))
    place = F.concat("epoch", "position").alias("place")
    named = (_transaction(member("id")).alias("_tx"), member("total_order").alias("_nth"), place)
    return changes.select("topic", "partition", "offset", "table", *named).where("_tx IS NOT NULL")


def parse_ends(records: DataFrame, counts: Column) -> DataFrame:
    """Parse records of the transaction topic: ``topic, partition, offset, _tx, ended BIGINT`` (epoch ms), ``table`` and
    ``expected``. One row per end and table for which ``counts``, a condition on ``table``, holds; both columns are NULL
    for a transaction without any. SQL Server and Oracle name the database before schema and table.
    """
    parsed = records.select("topic", "partition", "offset", F.from_json("value", _END).alias("_told"))

    def member(name: str) -> Column:
        return F.coalesce(F.col(f"_told.{name}"), F.col(f"_told.payload.{name}"))

    each = parsed.where(member("status") == "END").select(
        "topic",
        "partition",
        "offset",
        _transaction(member("id")).alias("_tx"),
        member("ts_ms").alias("ended"),
        F.explode_outer(member("data_collections")).alias("_count"),
    )
    named = each.withColumns({"table": F.col("_count.data_collection"), "expected": F.col("_count.event_count")})
    counted = counts & (F.col("expected") > 0)
    only = {"expected": F.when(counted, F.col("expected")), "table": F.when(counted, F.col("table"))}
    return named.drop("_count").withColumns(only)


def incomplete_bound(transactions: DataFrame) -> DataFrame:
    """One row over the result of :func:`states`: the smallest ``place`` of an incomplete transaction, and the smallest
    time (``ended``) of an incomplete one of which only the end has arrived; NULL if there is none.
    """
    unseen = F.min(F.when(F.col("place").isNull(), F.col("ended")))
    return transactions.where("NOT whole").agg(F.min("place").alias("place"), unseen.alias("ended"))


def select_waiting(transactions: DataFrame, place: str | None, ended: int | None) -> DataFrame:
    """``_tx`` of the transactions that must wait: incomplete, or at or after the :func:`incomplete_bound`."""
    waits = ~F.col("whole")
    for name, least in (("place", place), ("ended", ended)):
        if least is not None:
            waits = waits | F.coalesce(F.col(name) >= least, F.lit(False))
    return transactions.where(waits).select("_tx")


def first_waiting(changes: DataFrame, told: DataFrame, waits: DataFrame) -> DataFrame:
    """``topic, partition, offset``: the first change or end of a waiting transaction, per partition that has one."""
    here, ended = (rows.select("topic", "partition", "offset", "_tx") for rows in (changes, told))
    held = here.unionByName(ended).join(waits, "_tx", "left_semi")
    return held.groupBy("topic", "partition").agg(F.min("offset").alias("offset"))


def states(changes: DataFrame, rows: DataFrame) -> DataFrame:
    """One row per transaction, from tagged changes and ends: ``_tx, whole BOOLEAN, place`` (the smallest that has
    arrived), ``ended``. It is whole once its end and all tables' events have arrived.
    """
    found = (
        _by_table(changes, rows)
        .groupBy("_tx")
        .agg(
            F.max("is_short").alias("is_short"),
            F.max("is_told").alias("is_told"),
            F.min("place").alias("place"),
            F.min("ended").alias("ended"),
        )
    )
    return found.withColumn("whole", F.col("is_told") & ~F.col("is_short"))


def missing_tables(changes: DataFrame, rows: DataFrame) -> DataFrame:
    """One row per transaction, from tagged changes and ends: ``_tx, is_told BOOLEAN`` (its end has arrived), ``tables
    ARRAY<STRING>`` (those with events still missing), ``place, ended`` as in :func:`states`.
    """
    return (
        _by_table(changes, rows)
        .groupBy("_tx")
        .agg(
            F.max("is_told").alias("is_told"),
            F.array_sort(F.collect_set(F.when(F.col("is_short"), F.col("table")))).alias("tables"),
            F.min("place").alias("place"),
            F.min("ended").alias("ended"),
        )
    )


def _by_table(changes: DataFrame, rows: DataFrame) -> DataFrame:
    """One row per transaction and last two parts of a table's name: ``_tx, table, is_short, is_told, place, ended``."""
    last_two = F.substring_index("table", ".", -2).alias("_name")
    here = changes.groupBy("_tx", last_two).agg(
        F.min("table").alias("_here"),
        # a redelivery has the event numbers of the first delivery
        F.count_distinct(F.coalesce("_nth", F.concat_ws("/", "topic", "partition", "offset"))).alias("seen"),
        F.min("place").alias("place"),
    )
    # a repeated end may have lower counts than the first: 0 after a crash
    each = rows.groupBy("_tx", "table").agg(F.max("expected").alias("expected"), F.min("ended").alias("ended"))
    expected = each.groupBy("_tx", last_two).agg(
        F.min("table").alias("_told"), F.sum("expected").alias("expected"), F.min("ended").alias("ended")
    )
    both = here.join(expected.withColumn("is_told", F.lit(True)), ["_tx", "_name"], "full")
    is_short = F.coalesce(F.col("expected"), F.lit(0)) > F.coalesce(F.col("seen"), F.lit(0))
    is_told = F.coalesce("is_told", F.lit(False))
    table = F.coalesce("_here", "_told").alias("table")
    return both.select("_tx", table, is_short.alias("is_short"), is_told.alias("is_told"), "place", "ended")


def _transaction(id_: Column) -> Column:
    """The transaction of an id. PostgreSQL's is ``txId:lsn`` with a different lsn on each row (Z2.2)."""
    return F.when(id_.rlike(r"^\d+:\d+$"), F.substring_index(id_, ":", 1)).otherwise(id_)
