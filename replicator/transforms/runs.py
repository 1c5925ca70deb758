"""Runs: watermarks of many records from the few at the ends of runs, without sorting all of them.

Kafka delivers the records of a partition in order, and bronze keeps them so: nearly all are in long *runs* of one
stream in one partition, which a task reads consecutively, each with a greater offset than the one before it. For a
record below what came before it in its run, ``Runs.java`` checks whether it is more than a redelivery. If none is, and
runs do not interleave, the marks of ``watermarks.compute`` are those of the ends of runs: of the first change that may
fall, which shows whether the whole run is above the runs before it, and of the greatest mark of each table. If that
first change is below, as in what a connector sends again, the records below are checked, too: the *stretch* from there
on with no greater place than the runs before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import and_

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from replicator.debezium import position
from replicator.jvm import gateway, java_udfs
from replicator.transforms import watermarks

MAX_RUNS = 5_000
"""With more runs than this, their ends are not used: records came one by one, or from an unusual number of tables and
partitions.
"""

Ends = set[tuple[str, int, int]]
"""Topic, partition and offset of the records at the ends of runs."""

Stretches = dict[tuple[str, int, str], tuple[int, str]]
"""The first offset and the greatest place, by topic, partition and stream."""

_END = StructType().add("topic", StringType()).add("partition", IntegerType()).add("offset", LongType())
_STRETCH = StructType().add("topic", StringType()).add("partition", IntegerType()).add("stream", StringType())
_STRETCH = _STRETCH.add("since", LongType()).add("above", StringType())


def find_runs(places: DataFrame) -> DataFrame:
    """One row per run and ``table``, from places as of ``watermarks.order_columns``: ``topic, partition, stream``;
    ``task`` and ``run``, the run's number in the task, -1 for the records in question; the offsets ``first`` and
    ``last``; the offsets of its ends, ``begins`` and ``greatest``; and ``keyed``, a bit for each number of partitions
    with which Kafka's own partitioner would have put the records there by their keys. At most MAX_RUNS + 1 rows.
    """
    spark, columns = places.sparkSession, [F.col(name) for name in ("topic", "partition", "stream", "table", "place")]
    lengths = (len(position.FIRST_EPOCH), position.EPOCH_MAJOR_DIGITS)
    run = java_udfs.create(spark, "replicator.transforms.Runs", "bigint", *lengths, pure=False)
    fitting = java_udfs.create(spark, "replicator.transforms.Keyed", "bigint", pure=False)
    told = places.select(
        *("topic", "partition", "stream", "table", "offset"),
        F.spark_partition_id().alias("task"),
        run(*columns, watermarks.negated_time(), F.col("offset"), F.col("is_snapshot"), F.col("transaction")).alias(
            "told"
        ),
        fitting(F.col("topic"), F.col("partition"), F.col("key").cast("binary")).alias("keyed"),
    )
    by_run = told.groupBy("topic", "partition", "stream", "table", "task", F.shiftright("told", 2).alias("run"))
    found = (_last(2).alias("greatest"), _last(1).alias("begins"), F.bit_and("keyed").alias("keyed"))
    return by_run.agg(F.min("offset").alias("first"), F.max("offset").alias("last"), *found).limit(MAX_RUNS + 1)


def ends(runs: Sequence[Row]) -> tuple[Ends, set[str]] | None:
    """The ends of these runs, and the topics for which they are not enough: a record is in question, or runs
    interleave. None if there are too many runs.
    """
    if len(runs) > MAX_RUNS:
        return None
    doubted = {row["topic"] for row in runs if row["run"] < 0} | _interleaving(runs)
    both = [(row["topic"], row["partition"], row[end]) for row in runs for end in ("begins", "greatest")]
    return {end for end in both if end[0] not in doubted and end[2] is not None}, doubted


def places_at(places: DataFrame, ends: Ends) -> DataFrame:
    """The places at the ends of runs."""
    sought = gateway.create_frame(places.sparkSession, ends, _END)
    return places.join(F.broadcast(sought), _END.names, "left_semi")


def doubtful_topics(marks: Iterable[Row]) -> set[str]:
    """The topics with a mark that shows a source that may have gone back, a split transaction, or repeated offsets."""
    return {mark["topic"] for mark in marks if mark["fell"] is not None or mark["split"] or mark["repeated"]}


def stretches(marks: Iterable[Row]) -> Stretches:
    """The stretches in which changes may be below earlier runs, from marks of ``watermarks.compute_at_run_ends``."""
    found = Stretches()
    for mark in marks:
        if mark["since"] is not None:
            of = mark["topic"], mark["partition"], mark["stream"]
            since, above = found.get(of, (mark["since"], mark["above"]))
            found[of] = min(since, mark["since"]), max(above, mark["above"])
    return found


def places_near(places: DataFrame, ends: Ends, stretches: Stretches) -> DataFrame:
    """The places within these stretches, and the ends of runs in their topics."""
    spark, topics = places.sparkSession, {topic for topic, _, _ in stretches}
    sought = gateway.create_frame(spark, [end for end in ends if end[0] in topics], _END).withColumn(
        "is_end", F.lit(True)
    )
    near = gateway.create_frame(spark, [(*of, *stretch) for of, stretch in stretches.items()], _STRETCH)
    both = places.join(F.broadcast(sought), _END.names, "left").join(F.broadcast(near), _STRETCH.names[:3], "left")
    is_below = (F.col("offset") >= F.col("since")) & (F.col("place") <= F.col("above"))
    return both.where(F.col("is_end") | is_below).select(places.columns)


def keyed_topics(runs: Sequence[Row]) -> set[str]:
    """Topics whose records are all in the partitions that their keys hash to for some number of partitions, so that
    each key is in one partition. Empty if there are too many runs.
    """
    bits = defaultdict[str, list[int]](list)
    for row in runs:
        bits[row["topic"]].append(row["keyed"])
    return {topic for topic, each in bits.items() if reduce(and_, each)} if len(runs) <= MAX_RUNS else set()


def _last(bit: int) -> Column:
    """The offset of the last record with this bit set."""
    return F.max(F.when(F.col("told").bitwiseAND(bit) != 0, F.col("offset")))


def _interleaving(runs: Sequence[Row]) -> set[str]:
    """Topics in which the offset ranges of runs of one stream in one partition overlap."""
    spans = _spans(runs)
    return {topic for topic, each in spans if any(later[0] <= earlier[1] for earlier, later in pairwise(sorted(each)))}


def _spans(runs: Sequence[Row]) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Per stream in a partition: its topic, and the first and last offsets of its runs over all tables."""
    of_run = defaultdict[tuple[object, ...], list[int]](list)
    for row in runs:
        of_run[row["topic"], row["partition"], row["stream"], row["task"], row["run"]] += row["first"], row["last"]
    of_stream = defaultdict[tuple[object, ...], list[tuple[int, int]]](list)
    for run, offsets in of_run.items():
        of_stream[run[:3]].append((min(offsets), max(offsets)))
    return ((str(stream[0]), spans) for stream, spans in of_stream.items())
