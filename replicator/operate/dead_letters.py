"""List and drop dead letters (debezium.md R4); ``operate/retry.py`` retries them.

Dropping has two effects, in this order: 1. the letters are appended, with time and filter, to the table of dropped
letters, 2. they are deleted from the table of dead letters. A crash between the two is repaired by dropping again: a
letter is audited once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from replicator.debezium import seq_format
from replicator.debezium.reasons import REASONS
from replicator.errors import ConfigError, TableMissing
from replicator.jvm import expressions
from replicator.spec import Progress
from replicator.spelling import suggest
from replicator.stages.refinement import Refinement
from replicator.stages.table import dead_letters
from replicator.transforms.dead_letters import COLUMNS, COORDINATES

DROPPED = {"dropped_at": "timestamp", "filter": "string"}
"""The columns that a dropped letter has in addition to those of a letter."""

_SAMPLE_RECORDS = 10
"""The number of records per topic that are read to find their connector: not every record names it."""


@dataclass(frozen=True)
class LetterFilter:
    """A selection of letters by table (``<database or schema>.<table>``, or its last part) and by reason; None: all."""

    table: str | None = None
    reason: str | None = None

    @property
    def is_all(self) -> bool:
        """Whether neither a table nor a reason is given."""
        return self.table is None and self.reason is None

    def select(self, letters: DataFrame) -> DataFrame:
        """Return the selected rows of ``load_letters``."""
        if self.table is not None:
            named = F.col("table") == self.table
            letters = letters.where(named if "." in self.table else named | F.col("table").endswith(f".{self.table}"))
        return letters if self.reason is None else letters.where(F.col("reason") == self.reason)

    def matches(self, table: str | None, reason: str) -> bool:
        """Whether the filter selects a letter of that table with that reason."""
        if self.table is not None:
            is_named = table == self.table or ("." not in self.table and (table or "").endswith(f".{self.table}"))
            return is_named and self.reason in (None, reason)
        return self.reason in (None, reason)

    def refuse_unknown(self, tables: Iterable[str], every: Iterable[Count]) -> None:
        """Raise ConfigError, with the nearest spelling, for a table that is not in ``tables`` (names without their
        source) and has no letters in the counts ``every``, and for a reason that no letter has or can have.
        """
        counts = list(every)
        names = {*tables, *(count.table for count in counts if count.table is not None)}
        if self.table is not None and "." not in self.table:
            names = {name.rpartition(".")[2] for name in names}
        reasons = {*REASONS, *(count.reason for count in counts)}
        for what, name, known in (("table", self.table, names), ("reason", self.reason, reasons)):
            if name is not None and name not in known:
                raise ConfigError(f"{what} {name!r} does not exist{suggest(name, known)}")

    def __str__(self) -> str:
        parts = [f"{name}={value}" for name, value in (("table", self.table), ("reason", self.reason)) if value]
        return " ".join(parts) or "all"


@dataclass(frozen=True)
class Count:
    """The number of letters of one source with the same table (None: unknown) and reason, and the first and the last
    time that one arrived (UTC).
    """

    source: str
    table: str | None
    reason: str
    letters: int
    first_seen: datetime | None
    last_seen: datetime | None


@dataclass(frozen=True)
class LetterDetails:
    """One bronze record, its dead letter and its dropped letter; None where there is none. ``position`` is that of the
    letter, in the source's own terms.
    """

    source: str
    record: Row
    letter: Row | None
    dropped: Row | None
    position: str | None = None


def load_letters(spark: SparkSession, at: Refinement, *, dropped: bool = False) -> DataFrame:
    """Return the dead letters of a source, or with ``dropped`` those that were dropped: COLUMNS, then DROPPED; may be
    empty.
    """
    table = at.lake.dropped_letters(at.source.name) if dropped else at.lake.dead_letters(at.source.name)
    columns = COLUMNS | (DROPPED if dropped else {})
    try:
        rows = at.bronze.read(spark, table)
    except TableMissing:
        return spark.range(0).select(*[F.lit(None).cast(kind).alias(name) for name, kind in columns.items()])
    missing = [F.lit(None).cast(kind).alias(name) for name, kind in columns.items() if name not in rows.columns]
    return rows.select("*", *missing).select(*columns)


def counts(spark: SparkSession, at: Refinement, choice: LetterFilter, *, dropped: bool = False) -> list[Count]:
    """Return the counts per (table, reason), largest first."""
    chosen = choice.select(load_letters(spark, at, dropped=dropped))
    grouped = chosen.groupBy("table", "reason").agg(
        F.count("*").alias("letters"), F.min("first_seen").alias("first_seen"), F.max("first_seen").alias("last_seen")
    )
    return sort_counts(Count(at.source.name, **row.asDict()) for row in grouped.collect())


def sort_counts(found: Iterable[Count]) -> list[Count]:
    """Sort counts, largest first."""
    return sorted(found, key=lambda count: (-count.letters, count.table or "", count.reason))


def positions(spark: SparkSession, at: Refinement, found: Sequence[Row]) -> list[str | None]:
    """Return the position of each letter in the source's order, in the source's own terms; None if it has none."""
    places: dict[str, list[Column]] = {}
    for row in found:
        if row["seq"] and len(places.setdefault(row["topic"], [])) < _SAMPLE_RECORDS:
            places[row["topic"]].append(_is_at(row["topic"], row["partition"], row["offset"]))
    wrote = _connectors(spark, at, [place for some in places.values() for place in some])
    return [
        seq_format.describe(row["seq"], wrote.get(row["topic"]), at.source.order(row["table"] or ""))
        if row["seq"]
        else None
        for row in found
    ]


def _connectors(spark: SparkSession, at: Refinement, places: Sequence[Column]) -> dict[str, str]:
    """Return the connector that wrote each topic, as named by the records at these places."""
    bronze = at.lake.bronze(at.source.name)
    if not places or at.bronze.version(spark, bronze) is None:
        return {}
    records = at.bronze.read(spark, bronze).where(expressions.any_of(places)).select("topic", "value").collect()
    connectors = [(row["topic"], seq_format.connector_of(row["value"])) for row in records]
    return {topic: connector for topic, connector in connectors if connector is not None}


def find(
    spark: SparkSession, sources: Iterable[Refinement], topic: str, partition: int, offset: int
) -> LetterDetails | None:
    """Find the record at a Kafka offset in the bronze table of any source; None if there is none."""
    is_record = _is_at(topic, partition, offset)
    for at in sources:
        try:
            record = at.bronze.read(spark, at.lake.bronze(at.source.name)).where(is_record).first()
        except TableMissing:
            continue
        if record is not None:
            letter = load_letters(spark, at).where(is_record).first()
            newest = F.col("dropped_at").desc()
            dropped = load_letters(spark, at, dropped=True).where(is_record).orderBy(newest).first()
            shown = letter or dropped
            position = None if shown is None else positions(spark, at, [shown])[0]
            return LetterDetails(at.source.name, record, letter, dropped, position)
    return None


def _is_at(topic: str, partition: int, offset: int) -> Column:
    return (F.col("topic") == topic) & (F.col("partition") == partition) & (F.col("offset") == offset)


def drop(spark: SparkSession, at: Refinement, choice: LetterFilter) -> int:
    """Drop letters and return their number. The audit table keeps them, with time and filter, and they are not written
    again.
    """
    chosen = choice.select(load_letters(spark, at)).localCheckpoint()
    found = chosen.count()
    if found:
        _audit(spark, at, chosen, choice)
        dead_letters.add_missing_columns(spark, at)
        write(at, chosen.withColumn("_op", F.lit("delete")))
    return found


def write(at: Refinement, difference: DataFrame) -> None:
    """Delete (``_op`` delete) or update (upsert) dead letters: COLUMNS and ``_op``, one row per COORDINATES."""
    table = at.lake.dead_letters(at.source.name)
    version = at.bronze.version(difference.sparkSession, table)
    at.bronze.put(difference, table, Progress("dead letters", 0 if version is None else version + 1))


def _audit(spark: SparkSession, at: Refinement, chosen: DataFrame, choice: LetterFilter) -> None:
    table = at.lake.dropped_letters(at.source.name)
    dropped = chosen.select("*", F.current_timestamp().alias("dropped_at"), F.lit(str(choice)).alias("filter"))
    if at.bronze.version(spark, table) is not None:
        known = at.bronze.read(spark, table).select(*COORDINATES, F.col("first_seen").alias("_seen"))
        same = [dropped[name] == known[name] for name in COORDINATES]
        same_letter = same[0] & same[1] & same[2] & dropped["first_seen"].eqNullSafe(known["_seen"])
        dropped = dropped.join(known, same_letter, how="left_anti")
    at.bronze.append(dropped, table, None)
