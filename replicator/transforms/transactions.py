"""Which changes are of transactions that have arrived whole (debezium.md H3, debezium-measured.md Z2.2).

The connector tells the end of each transaction in ``<prefix>.transaction``, with how many events each table got, and
marks every event with its transaction. Topics arrive at their own pace, so an end may be here before the events.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_COUNTS = "ARRAY<STRUCT<data_collection: STRING, event_count: BIGINT>>"
_BODY = f"status: STRING, id: STRING, ts_ms: BIGINT, data_collections: {_COUNTS}"
_END = f"STRUCT<{_BODY}, payload: STRUCT<{_BODY}>>"


def topic(source: str) -> str:
    """Where the connector of a source tells its transactions."""
    return f"{source}.transaction"


def tag_changes(described: DataFrame) -> DataFrame:
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


def parse_ends(records: DataFrame, counts: Column) -> DataFrame:
    """Records of the transaction topic -> ``topic, partition, offset, _tx, ended BIGINT`` (epoch ms), ``table`` and
    ``expected``: one row per end and table of it for which ``counts``, a condition on ``table``, holds; both are NULL
    for a transaction without any. SQL Server and Oracle name the database before schema and table.
    """
    told = records.select("topic", "partition", "offset", F.from_json("value", _END).alias("_told"))

    def said(name: str) -> Column:
        return F.coalesce(F.col(f"_told.{name}"), F.col(f"_told.payload.{name}"))

    each = told.where(said("status") == "END").select(
        "topic",
        "partition",
        "offset",
        _transaction(said("id")).alias("_tx"),
        said("ts_ms").alias("ended"),
        F.explode_outer(said("data_collections")).alias("_count"),
    )
    named = each.withColumns({"table": F.col("_count.data_collection"), "expected": F.col("_count.event_count")})
    counted = counts & (F.col("expected") > 0)
    only = {"expected": F.when(counted, F.col("expected")), "table": F.when(counted, F.col("table"))}
    return named.drop("_count").withColumns(only)


def incomplete_bound(transactions: DataFrame) -> DataFrame:
    """One row of what :func:`states` tells: the smallest ``place`` of a transaction that is not whole, and the smallest
    time (``ended``) of an end of which nothing else is here; NULL where there is none.
    """
    unseen = F.min(F.when(F.col("place").isNull(), F.col("ended")))
    return transactions.where("NOT whole").agg(F.min("place").alias("place"), unseen.alias("ended"))


def select_waiting(transactions: DataFrame, place: str | None, ended: int | None) -> DataFrame:
    """``_tx`` of those that must wait: in part here, or at or behind the :func:`incomplete_bound`."""
    waits = ~F.col("whole")
    for name, least in (("place", place), ("ended", ended)):
        if least is not None:
            waits = waits | F.coalesce(F.col(name) >= least, F.lit(False))
    return transactions.where(waits).select("_tx")


def first_waiting(changes: DataFrame, told: DataFrame, waits: DataFrame) -> DataFrame:
    """``topic, partition, offset``: the first change or end of a transaction that waits, per partition that has one."""
    here, ended = (rows.select("topic", "partition", "offset", "_tx") for rows in (changes, told))
    held = here.unionByName(ended).join(waits, "_tx", "left_semi")
    return held.groupBy("topic", "partition").agg(F.min("offset").alias("offset"))


def states(changes: DataFrame, told: DataFrame) -> DataFrame:
    """Tagged changes and ends -> one row per transaction: ``_tx, whole BOOLEAN, place`` (the smallest that is here),
    ``ended``. It is whole once its end is told and every table's events are here.
    """
    found = (
        _by_table(changes, told)
        .groupBy("_tx")
        .agg(
            F.max("is_short").alias("is_short"),
            F.max("is_told").alias("is_told"),
            F.min("place").alias("place"),
            F.min("ended").alias("ended"),
        )
    )
    return found.withColumn("whole", F.col("is_told") & ~F.col("is_short"))


def missing_tables(changes: DataFrame, told: DataFrame) -> DataFrame:
    """Tagged changes and ends -> one row per transaction: ``_tx, is_told BOOLEAN, tables ARRAY<STRING>`` (those with
    events still to come), ``place, ended`` as :func:`states` tells them.
    """
    return (
        _by_table(changes, told)
        .groupBy("_tx")
        .agg(
            F.max("is_told").alias("is_told"),
            F.array_sort(F.collect_set(F.when(F.col("is_short"), F.col("table")))).alias("tables"),
            F.min("place").alias("place"),
            F.min("ended").alias("ended"),
        )
    )


def _by_table(changes: DataFrame, told: DataFrame) -> DataFrame:
    """One row per transaction and last two parts of a table's name: ``_tx, table, is_short, is_told, place, ended``."""
    last_two = F.substring_index("table", ".", -2).alias("_name")
    here = changes.groupBy("_tx", last_two).agg(
        F.min("table").alias("_here"),
        # a repetition has the numbers of what it repeats
        F.count_distinct(F.coalesce("_nth", F.concat_ws("/", "topic", "partition", "offset"))).alias("seen"),
        F.min("place").alias("place"),
    )
    # a repeated end may tell less than the first: 0 after a crash
    each = told.groupBy("_tx", "table").agg(F.max("expected").alias("expected"), F.min("ended").alias("ended"))
    expected = each.groupBy("_tx", last_two).agg(
        F.min("table").alias("_told"), F.sum("expected").alias("expected"), F.min("ended").alias("ended")
    )
    both = here.join(expected.withColumn("is_told", F.lit(True)), ["_tx", "_name"], "full")
    is_short = F.coalesce(F.col("expected"), F.lit(0)) > F.coalesce(F.col("seen"), F.lit(0))
    is_told = F.coalesce("is_told", F.lit(False))
    table = F.coalesce("_here", "_told").alias("table")
    return both.select("_tx", table, is_short.alias("is_short"), is_told.alias("is_told"), "place", "ended")


def _transaction(said: Column) -> Column:
    """PostgreSQL's id is ``txId:lsn`` with another lsn on each row; all others name the transaction (Z2.2)."""
    return F.when(said.rlike(r"^\d+:\d+$"), F.substring_index(said, ":", 1)).otherwise(said)
