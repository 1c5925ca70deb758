"""Of many records the few that tell how far partitions have got, without an order of all of them.

Kafka gives the records of a partition in their order, and bronze keeps them so: nearly all stand in long *runs* of one
stream in one partition, which a task reads one after the other, each with a greater offset than the one before it. Of a
record that stands below what came before it in its run ``Runs.java`` sees whether it is more than a redelivery. Where
none is, and runs do not interleave, the marks of ``watermarks.compute`` are those of the ends of runs: of the first
change that may fall, which tells whether all of them stand above the runs before, and of the greatest mark of each
table. Where it stands below these, as in what a connector sends again, those that do are looked at, too: the *stretch*
from there on with no greater place than the runs before.
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
"""Of more runs nobody looks at the ends: records came one by one, or from more tables and partitions than one has."""

Ends = set[tuple[str, int, int]]
"""Topic, partition and offset of the records that are ends."""

Stretches = dict[tuple[str, int, str], tuple[int, str]]
"""By topic, partition and stream: of the first offset, and of the greatest place."""

_END = StructType().add("topic", StringType()).add("partition", IntegerType()).add("offset", LongType())
_STRETCH = StructType().add("topic", StringType()).add("partition", IntegerType()).add("stream", StringType())
_STRETCH = _STRETCH.add("since", LongType()).add("above", StringType())


def find_runs(places: DataFrame) -> DataFrame:
    """One row per run and ``table`` of places as ``watermarks.order_columns`` has them: its ``topic, partition,
    stream``; ``task`` and ``run``, its number there, -1 for the records that are in question; their offsets, from
    ``first`` to ``last``; those of its ends, ``begins`` and ``greatest``; and ``keyed``: a bit for each number
    of partitions with which Kafka's own producer would have put its records there by their keys. Of too many runs no
    more than tell it.
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
    """The ends of these runs, and the topics of which they do not tell: a record is in question, or runs interleave.
    None where there are too many.
    """
    if len(runs) > MAX_RUNS:
        return None
    doubted = {row["topic"] for row in runs if row["run"] < 0} | _interleaving(runs)
    both = [(row["topic"], row["partition"], row[end]) for row in runs for end in ("begins", "greatest")]
    return {end for end in both if end[0] not in doubted and end[2] is not None}, doubted


def places_at(places: DataFrame, ends: Ends) -> DataFrame:
    """The places that are ends."""
    sought = gateway.create_frame(places.sparkSession, ends, _END)
    return places.join(F.broadcast(sought), _END.names, "left_semi")


def doubtful_topics(marks: Iterable[Row]) -> set[str]:
    """The topics of marks that tell of a source that may have gone back, or of a mark that is known for another one."""
    return {mark["topic"] for mark in marks if mark["fell"] is not None or mark["split"] or mark["repeated"]}


def stretches(marks: Iterable[Row]) -> Stretches:
    """Where some change may stand below the runs before its own, by marks of ``watermarks.compute_at_run_ends``."""
    found = Stretches()
    for mark in marks:
        if mark["since"] is not None:
            of = mark["topic"], mark["partition"], mark["stream"]
            since, above = found.get(of, (mark["since"], mark["above"]))
            found[of] = min(since, mark["since"]), max(above, mark["above"])
    return found


def places_near(places: DataFrame, ends: Ends, stretches: Stretches) -> DataFrame:
    """The places of these stretches, and the ends in their topics."""
    spark, topics = places.sparkSession, {topic for topic, _, _ in stretches}
    sought = gateway.create_frame(spark, [end for end in ends if end[0] in topics], _END).withColumn(
        "is_end", F.lit(True)
    )
    told = gateway.create_frame(spark, [(*of, *stretch) for of, stretch in stretches.items()], _STRETCH)
    both = places.join(F.broadcast(sought), _END.names, "left").join(F.broadcast(told), _STRETCH.names[:3], "left")
    is_below = (F.col("offset") >= F.col("since")) & (F.col("place") <= F.col("above"))
    return both.where(F.col("is_end") | is_below).select(places.columns)


def keyed_topics(runs: Sequence[Row]) -> set[str]:
    """Topics whose records are where one number of partitions would have them all by their keys, so that each key is in
    one partition. Of too many runs nothing is told.
    """
    bits = defaultdict[str, list[int]](list)
    for row in runs:
        bits[row["topic"]].append(row["keyed"])
    return {topic for topic, each in bits.items() if reduce(and_, each)} if len(runs) <= MAX_RUNS else set()


def _last(bit: int) -> Column:
    """The offset of the last record that has a bit."""
    return F.max(F.when(F.col("told").bitwiseAND(bit) != 0, F.col("offset")))


def _interleaving(runs: Sequence[Row]) -> set[str]:
    """Topics of which some stream in a partition has runs with offsets between each other's."""
    spans = _spans(runs)
    return {topic for topic, each in spans if any(later[0] <= earlier[1] for earlier, later in pairwise(sorted(each)))}


def _spans(runs: Sequence[Row]) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Of each stream in a partition its topic, and the first and the last offset of its runs, whatever their tables."""
    of_run = defaultdict[tuple[object, ...], list[int]](list)
    for row in runs:
        of_run[row["topic"], row["partition"], row["stream"], row["task"], row["run"]] += row["first"], row["last"]
    of_stream = defaultdict[tuple[object, ...], list[tuple[int, int]]](list)
    for run, offsets in of_run.items():
        of_stream[run[:3]].append((min(offsets), max(offsets)))
    return ((str(stream[0]), spans) for stream, spans in of_stream.items())
