"""Watermarks: how far each partition has got in its source's order, and which records are below that (debezium.md J4).

A *place* is epoch and position as one text; a *mark* is the greatest place of a stream in a partition, with the time
and offset of the record that holds it.
"""

from __future__ import annotations

from functools import cache

from pyspark.sql import Column, DataFrame, GroupedData, Window
from pyspark.sql import functions as F

from replicator.debezium import headers, position
from replicator.jvm import plan_cache

WATERMARK_TYPE = "STRUCT<place: STRING, minus_ts: BIGINT, offset: BIGINT, tx: STRING>"
"""The type of a mark, with the transaction of the record that holds it; of two records at one place the older one holds
it, so that no newer one is overlooked.
"""


def order_columns(records: DataFrame) -> DataFrame:
    """The columns needed to check the order, of records described by ``debezium.envelope.read``, with their ``epoch``.

    ``stream`` is '' for everything but a change with a position that could fall; ``place`` is the epoch alone if there
    is no position.
    """
    return records.select(*_OF_RECORD, *_place())


def order_columns_by_folder(records: DataFrame) -> DataFrame:
    """The same with their ``folder``: '' for records from Kafka; for lines of objects the folder, since only within one
    they are in order (``replicator/landing_objects.py``).
    """
    return records.select(*_OF_RECORD, *_place(), headers.folder(F.col("headers")).alias("folder"))


def compute(places: DataFrame, known: Column) -> DataFrame:
    """One row per (topic, partition, stream, table): ``mark``; ``fell``: the first offset of a streamed change that
    is below the mark before it although its ``source.ts_ms`` is newer (NULL: none); ``split``: whether the major
    part of some change is below that of an earlier one of its own transaction (Q12).

    ``known`` is the mark before these places, NULL where there is none.
    """
    return plan_cache.apply(places.select("*", known.alias("known")), _compute)


def compute_at_run_ends(places: DataFrame, known: Column) -> DataFrame:
    """The same for places that are ends of runs (``transforms/runs.py``), with what remains to be checked: ``since``,
    the first offset of a change below the mark before it, even if only by time, and ``above``, the greatest place of
    such marks (NULL: none is); ``repeated``: whether the offset of some change is not above that of the known mark.
    """
    return plan_cache.apply(places.select("*", known.alias("known")), _compute_at_run_ends)


def _compute(places: DataFrame) -> DataFrame:
    return _of_tables(_with_watermark(places)).agg(*_mark_aggregates())


def _compute_at_run_ends(places: DataFrame) -> DataFrame:
    return _of_tables(_with_watermark(places)).agg(*_mark_aggregates(), *_below_known_aggregates())


def _with_watermark(places: DataFrame) -> DataFrame:
    return places.select("*", _previous_mark(F.col("known")).alias("top")).select("*", _fell(), _split())


def _of_tables(places: DataFrame) -> GroupedData:
    return places.groupBy("topic", "partition", "stream", "table")


def regressions(places: DataFrame) -> DataFrame:
    """Streamed changes below the mark of their partition and folder that were not delivered before (no other record has
    the same place, operation and key): ``topic, partition, offset, table, source_ts_ms``; ``holder``, the offset of
    the record that holds the mark; and whether their time is ``newer`` than its. ``places`` are of whole topics, with
    :func:`order_columns_by_folder`, and persisted: they are read twice.
    """
    below = places.select("*", _before("folder").alias("top")).where(_is_below())
    own = ("topic", "partition", "offset", "table", "source_ts_ms")
    return drop_redeliveries(below, places).select(
        *own, F.col("top.offset").alias("holder"), _is_newer().alias("newer")
    )


def regressed_records(places: DataFrame, known: Column) -> DataFrame:
    """All places that ``fell`` in the sense of :func:`compute`, with their columns."""
    below = places.select("*", _previous_mark(known).alias("top")).where(_is_below() & _is_newer())
    return below.drop("top")


def drop_redeliveries(some: DataFrame, places: DataFrame) -> DataFrame:
    """Those of ``some`` places that are not redeliveries: none of ``places`` comes before them, or from another
    partition, with the same place, operation and key in the same table (a transaction of SQL Server has one place in
    all tables).
    """
    one, other = some.alias("one"), places.where(~F.col("is_snapshot")).alias("other")
    same = [F.col(f"one.{name}").eqNullSafe(F.col(f"other.{name}")) for name in _OF_CHANGE]
    elsewhere = (F.col("one.topic") != F.col("other.topic")) | (F.col("one.partition") != F.col("other.partition"))
    earlier = elsewhere | (F.col("other.offset") < F.col("one.offset"))
    return one.join(other, [*same, earlier], how="left_anti")


def align_transactions(records: DataFrame, known: Column) -> DataFrame:
    """Lift the ``position`` of ordered records that are below an earlier change of their own transaction to that
    change's major part (Q12): a connector that restarts in the middle of a transaction may have lost the commit before
    it. ``known`` as in :func:`compute`.
    """
    top, own = F.col("_top"), F.col("position")
    higher = F.substring(top["place"], len(position.FIRST_EPOCH) + 1, position.MAJOR_DIGITS)
    is_same = ~F.col("is_snapshot") & (top["tx"] == F.col("transaction")) & top["place"].startswith(F.col("epoch"))
    lifted = F.concat(higher, position.minor(own))
    below = is_same & (F.substring(own, 1, position.MAJOR_DIGITS) < higher)
    marked = records.withColumn("place", F.concat("epoch", "position")).withColumn("_top", _previous_mark(known))
    return marked.withColumn("position", F.when(below, lifted).otherwise(own)).drop("place", "_top")


_LEAST = -(2**63)
_OF_CHANGE = ("stream", "place", "table", "op", "key")
_OF_RECORD = ("topic", "partition", "offset", "table", "op", "key", "is_snapshot", "source_ts_ms", "transaction")


# Built once for all batches, as in `debezium.envelope`.


@cache
def _place() -> tuple[Column, ...]:
    ranks = F.col("rule").isNull() & F.col("reason").isNull() & F.col("position").isNotNull()
    place = F.concat(F.col("epoch"), F.when(ranks, F.col("position")).otherwise(F.lit("")))
    return F.coalesce(F.when(ranks, F.col("stream")), F.lit("")).alias("stream"), place.alias("place")


@cache
def negated_time() -> Column:
    """The negated time of a mark: of two records at one place the older one is greater."""
    time = F.col("source_ts_ms")
    return F.when(time > _LEAST, -time)  # the least BIGINT cannot be negated, and is no time


@cache
def _mark() -> Column:
    return F.struct("place", negated_time().alias("minus_ts"), "offset", F.col("transaction").alias("tx"))


@cache
def _before(*more: str) -> Column:
    """The mark over the lower offsets within these records."""
    places = Window.partitionBy("topic", "partition", "stream", *more).orderBy("offset")
    return F.max(_mark()).over(places.rowsBetween(Window.unboundedPreceding, -1))


def _previous_mark(known: Column) -> Column:
    """The mark before a record: of the lower offsets within these records, or the known one."""
    return F.greatest(_before(), F.when(known["offset"] < F.col("offset"), known))


@cache
def _fell() -> Column:
    return F.when(_is_below() & _is_newer(), F.col("offset")).alias("fell")


@cache
def _split() -> Column:
    place, top, epoch = F.col("place"), F.col("top.place"), len(position.FIRST_EPOCH)
    is_same = (F.col("transaction") == F.col("top.tx")) & (F.substring(place, 1, epoch) == F.substring(top, 1, epoch))
    fell = _is_below() & is_same & (position.major(place) < position.major(top))
    return F.coalesce(fell, F.lit(False)).alias("split")


@cache
def _mark_aggregates() -> tuple[Column, ...]:
    return F.max(_mark()).alias("mark"), F.min("fell").alias("fell"), F.max("split").alias("split")


@cache
def _below_known_aggregates() -> tuple[Column, ...]:
    is_less = _is_watched() & (_mark() < F.col("top"))
    since, above = F.min(F.when(is_less, F.col("offset"))), F.max(F.when(is_less, F.col("top.place")))
    repeated = F.max(F.col("known.offset") >= F.col("offset"))
    return since.alias("since"), above.alias("above"), repeated.alias("repeated")


@cache
def _is_below() -> Column:
    return _is_watched() & (F.col("place") < F.col("top.place"))


@cache
def _is_watched() -> Column:
    return (F.col("stream") != "") & ~F.col("is_snapshot")


@cache
def _is_newer() -> Column:
    """Whether a record is newer than the mark by the source's clock; false if a time is missing."""
    return F.coalesce(F.col("source_ts_ms") > -F.col("top.minus_ts"), F.lit(False))
