"""Where everything stands: rows, last position, and how far behind, per table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from replicator import names
from replicator.errors import BronzeReplaced, TableMissing, Unreachable
from replicator.lake import Lake
from replicator.protocols import Control, Sink, Source, TableFormat
from replicator.spec import Model, Table
from replicator.stages import landing
from replicator.stages.landing import Intake
from replicator.transforms import history
from replicator.transforms.live import live


@dataclass(frozen=True)
class Standing:
    """One table. ``position`` is the layer's own: bronze version, ``_seq`` of the newest row, gold version, ledger
    version.

    ``lag_events`` counts records that are in the layer before and not here (None: not known); ``lag_seconds`` is
    the age of the newest change that is here while there are such records, else 0. Before bronze, of a source whose
    records lie in objects, it counts these: nobody knows their lines.
    """

    layer: str
    table: str
    rows: int | None
    position: str
    lag_events: int | None = None
    lag_seconds: float | None = None


@dataclass(frozen=True)
class Surroundings:
    """What ``status`` looks at."""

    lake: Lake
    format: TableFormat
    control: Control
    readers: Mapping[str, Source]
    intakes: Mapping[str, Intake]
    models: tuple[Model, ...]
    sinks: Mapping[str, Sink]


def standings(spark: SparkSession, at: Surroundings) -> list[Standing]:
    """Every table of the lake and every target, in the order of the layers."""
    found: list[Standing] = []
    for source in at.format.tables(spark, at.lake.bronze_root()):
        found.append(_bronze(spark, at, names.decode(source)))
        found.extend(_silver(spark, at, names.decode(source)))
    for model in at.models:
        found.extend(_gold(spark, at, model))
    return found


def _bronze(spark: SparkSession, at: Surroundings, source: str) -> Standing:
    table = at.lake.bronze(source)
    rows = at.format.read(spark, table)
    lag = _unlanded(spark, at.intakes[source]) if source in at.intakes else _behind_kafka(spark, at, source)
    age = F.unix_millis(F.current_timestamp()) - F.unix_millis(F.max("timestamp"))
    found = rows.agg(F.count("*").alias("rows"), age.alias("age")).first()
    seconds = None if lag is None else 0.0
    if lag and found is not None:
        seconds = None if found["age"] is None else float(found["age"]) / 1000
    return Standing(
        "bronze",
        source,
        None if found is None else found["rows"],
        f"version {at.format.version(spark, table)}",
        lag,
        seconds,
    )


def _unlanded(spark: SparkSession, intake: Intake) -> int | None:
    """Objects that bronze lacks; None when nobody can say."""
    try:
        return landing.waiting(spark, intake)
    except (Unreachable, BronzeReplaced):
        return None


def _behind_kafka(spark: SparkSession, at: Surroundings, source: str) -> int | None:
    """Records in Kafka that bronze lacks; None when nobody can say."""
    reader = at.readers.get(source)
    if reader is None:
        return None
    try:
        ends = reader.end_offsets(spark)
    except Unreachable:
        return None
    reached = (
        at.format.read(spark, at.lake.bronze(source)).groupBy("topic", "partition").agg(F.max("offset").alias("o"))
    )
    have = {(row["topic"], row["partition"]): row["o"] + 1 for row in reached.collect()}
    return sum(max(0, end - int(have.get(place, 0))) for place, end in ends.items())


def _silver(spark: SparkSession, at: Surroundings, source: str) -> list[Standing]:
    bronze = at.lake.bronze(source)
    identity, newest = at.format.identity(spark, bronze), at.format.version(spark, bronze)
    found = []
    for name in map(names.decode_table, at.format.tables(spark, at.lake.silver_root(source))):
        of_name = [("silver", at.lake.silver(source, name), ~F.col("_deleted"))]
        past = at.lake.history(source, name)
        if at.format.version(spark, past) is not None:
            of_name.append(("history", past, history.holds()))
        for layer, table, is_shown in of_name:
            progress = at.format.progress(spark, table, identity or "")
            behind = None
            if progress is not None and newest is not None:
                behind = _unread(spark, at, source, name, progress.version, newest)
            found.extend(_standing(spark, at, layer, table, is_shown, behind))
    return found


def _standing(
    spark: SparkSession, at: Surroundings, layer: str, table: Table, is_shown: Column, behind: int | None
) -> list[Standing]:
    """One table of silver, or a history: its rows that users see, and how far it is behind bronze."""
    row = (
        at.format.read(spark, table)
        .agg(
            F.sum(is_shown.cast("int")).alias("rows"),
            F.max("_seq").alias("seq"),
            (F.unix_millis(F.current_timestamp()) - F.max("_source_ts_ms")).alias("age"),
        )
        .first()
    )
    if row is None:
        return []
    seconds = None if behind is None else (row["age"] or 0) / 1000 if behind else 0.0
    return [Standing(layer, table.name, row["rows"], row["seq"] or "", behind, seconds)]


def _unread(spark: SparkSession, at: Surroundings, source: str, table: str, after: int, upto: int) -> int | None:
    """Bronze rows of the table's topics that its progress does not cover."""
    if after >= upto:
        return 0
    routes = at.control.get(at.lake.routes(source))
    if routes is None:
        return None
    topics: dict[tuple[str, ...], int] = {
        (topic,): after for topic, tables in routes["tables"].items() if table in tables
    }
    added = at.format.added(spark, at.lake.bronze(source), topics, upto)
    return None if added is None else added.count()


def _gold(spark: SparkSession, at: Surroundings, model: Model) -> list[Standing]:
    table = at.lake.gold(model.name, model.key)
    try:
        rows = live(at.format.read(spark, table)).count()
    except TableMissing:
        return [Standing("gold", model.name, None, "not built yet")]
    version = at.format.version(spark, table)
    found = [Standing("gold", model.name, rows, f"version {version}")]
    if model.target is not None:
        found.append(_published(at, model, version))
    return found


def _published(at: Surroundings, model: Model, version: int | None) -> Standing:
    target = model.target
    where = "" if target is None else f"{target.schema}.{target.table}"
    try:
        ledger = None if target is None else at.sinks[target.connection].progress(model)
    except Unreachable:
        return Standing("publish", where, None, "out of reach")
    if ledger is None:
        return Standing("publish", where, None, "never published")
    versions_behind = None if version is None else version - ledger.version
    return Standing("publish", where, None, f"gold version {ledger.version}", versions_behind)
