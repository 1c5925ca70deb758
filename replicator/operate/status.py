"""Where everything stands: rows, last position, and how far behind, per table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from replicator import names
from replicator.errors import BronzeReplaced, TableMissing, Unreachable
from replicator.lake import Lake
from replicator.operate.waiting import Waiting, waiting
from replicator.protocols import Control, Sink, Source, TableFormat
from replicator.spec import Model, Table
from replicator.stages import cut, landing, pauses
from replicator.stages.landing import Intake
from replicator.stages.refinement import Refinement
from replicator.transforms import history


@dataclass(frozen=True)
class Standing:
    """One table. ``position`` is the layer's own: bronze version, ``_seq`` of the newest row, gold version, ledger
    version.

    ``lag_events`` counts records that are in the layer before and not here, for gold and publish its commits (None:
    not known); ``lag_seconds`` is the age of the newest change that is here while there are such records, else 0.
    ``deleted`` counts rows of silver that the source deleted. ``newest_ms`` is the time of the newest change that is
    here, epoch milliseconds UTC: by Kafka's clock in bronze, by the source's in silver, and in gold by the column
    ``updated_at`` where a model has one. Before bronze, of a source whose records lie in objects, ``lag_events`` counts
    these: nobody knows their lines. ``paused``: silver leaves the table as it is.

    In the layer ``waiting`` a source is told of which records wait until transactions are whole: how many (``rows``),
    what for (``position``), their transactions (``lag_events``) and how long the oldest does. They are in the
    ``lag_events`` of silver, too.
    """

    layer: str
    table: str
    rows: int | None
    position: str
    lag_events: int | None = None
    lag_seconds: float | None = None
    deleted: int | None = None
    newest_ms: int | None = None
    paused: bool = False


@dataclass(frozen=True)
class Look:
    """A table that was not looked at yet: ``take`` gives its standings, with those of what belongs to it (a history, a
    target), and raises what is wrong with it.
    """

    layer: str
    table: str
    take: Callable[[], list[Standing]]


@dataclass(frozen=True)
class _Source:
    """A source whose tables are looked at: ``upto`` is the identity and the newest version of its bronze."""

    name: str
    upto: Callable[[], tuple[str, int | None]]
    waits: Callable[[], Waiting | None]


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
    refinements: Mapping[str, Refinement] = field(default_factory=dict)


def standings(spark: SparkSession, at: Surroundings) -> list[Standing]:
    """Every table of the lake and every target, in the order of the layers."""
    return [standing for look in looks(spark, at) for standing in look.take()]


def looks(spark: SparkSession, at: Surroundings) -> Iterator[Look]:
    """What :func:`standings` looks at, table by table, for those who go on where one is broken."""
    for source in map(names.decode, at.format.tables(spark, at.lake.bronze_root())):
        yield Look("bronze", source, partial(_bronze, spark, at, source))
        of = _Source(source, cache(partial(_upto, spark, at, source)), cache(partial(_waits, spark, at, source)))
        for name in map(names.decode_table, at.format.tables(spark, at.lake.silver_root(source))):
            yield Look("silver", f"{source}/{name}", partial(_silver, spark, at, of, name))
        yield Look("waiting", source, partial(_waiting, of))
    for model in at.models:
        yield Look("gold", model.name, partial(_gold, spark, at, model))
    configured = {model.name for model in at.models}
    for name in map(names.decode, at.format.tables(spark, at.lake.gold_root())):
        if name not in configured:
            yield Look("gold", name, partial(_model, spark, at, at.lake.gold(name)))


def _bronze(spark: SparkSession, at: Surroundings, source: str) -> list[Standing]:
    table = at.lake.bronze(source)
    rows = at.format.read(spark, table)
    lag = _unlanded(spark, at.intakes[source]) if source in at.intakes else _behind_kafka(spark, at, source)
    newest = F.unix_millis(F.max("timestamp"))
    age = F.unix_millis(F.current_timestamp()) - newest
    [found] = rows.agg(F.count("*").alias("rows"), newest.alias("newest"), age.alias("age")).collect()
    seconds = None if lag is None else 0.0
    if lag:
        seconds = None if found["age"] is None else float(found["age"]) / 1000
    position = f"version {at.format.version(spark, table)}"
    return [Standing("bronze", source, found["rows"], position, lag, seconds, newest_ms=found["newest"])]


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


def _upto(spark: SparkSession, at: Surroundings, source: str) -> tuple[str, int | None]:
    """The identity and the newest version of a source's bronze."""
    bronze = at.lake.bronze(source)
    return at.format.identity(spark, bronze) or "", at.format.version(spark, bronze)


def _waits(spark: SparkSession, at: Surroundings, source: str) -> Waiting | None:
    return waiting(spark, at.refinements[source]) if source in at.refinements else None


def _waiting(of: _Source) -> list[Standing]:
    """A source of which something waits."""
    waits = of.waits()
    if waits is None:
        return []
    age = None if waits.since_ms is None else max(0.0, time.time() - waits.since_ms / 1000)
    return [Standing("waiting", of.name, sum(waits.records.values()), waits.reason, waits.transactions, age)]


def _silver(spark: SparkSession, at: Surroundings, of: _Source, name: str) -> list[Standing]:
    identity, newest = of.upto()
    source, found = of.name, []
    of_name = [("silver", at.lake.silver(source, name), ~F.col("_deleted"))]
    past = at.lake.history(source, name)
    if at.format.version(spark, past) is not None:
        of_name.append(("history", past, history.holds()))
    for layer, table, is_shown in of_name:
        progress = at.format.progress(spark, table, identity)
        behind = None
        if progress is not None and newest is not None:
            behind = _unread(spark, at, of, name, progress.version, newest)
        found.append(_standing(spark, at, layer, table, is_shown, behind))
    is_paused = name in pauses.load(at.control, at.lake, source)
    return [replace(each, paused=is_paused) for each in found]


def _standing(
    spark: SparkSession, at: Surroundings, layer: str, table: Table, is_shown: Column, behind: int | None
) -> Standing:
    """One table of silver, or a history: its rows that users see, and how far it is behind bronze."""
    newest = F.max("_source_ts_ms")
    [row] = (
        at.format.read(spark, table)
        .agg(
            F.sum(is_shown.cast("int")).alias("rows"),
            F.sum((~is_shown).cast("int")).alias("hidden"),
            F.max("_seq").alias("seq"),
            newest.alias("newest"),
            (F.unix_millis(F.current_timestamp()) - newest).alias("age"),
        )
        .collect()
    )
    seconds = None if behind is None else (row["age"] or 0) / 1000 if behind else 0.0
    deleted = row["hidden"] if layer == "silver" else None
    return Standing(layer, table.name, row["rows"], row["seq"] or "", behind, seconds, deleted, row["newest"])


def _unread(spark: SparkSession, at: Surroundings, of: _Source, table: str, after: int, upto: int) -> int | None:
    """Bronze rows of the table's topics that its progress does not cover, or that wait."""
    waits = of.waits()
    if after >= upto and waits is None:
        return 0
    routes = at.control.get(at.lake.routes(of.name))
    if routes is None:
        return None
    topics = [topic for topic, tables in routes["tables"].items() if table in tables]
    held = 0 if waits is None else sum(waits.records.get(topic, 0) for topic in topics)
    if after >= upto:
        return held
    added = at.format.added(spark, at.lake.bronze(of.name), {(topic,): after for topic in topics}, upto)
    if added is None:
        return None
    return held + (added if waits is None else cut.before(added, waits.cut)).count()


def _gold(spark: SparkSession, at: Surroundings, model: Model) -> list[Standing]:
    table = at.lake.gold(model.name, model.key)
    try:
        found = _model(spark, at, table, _unread_commits(spark, at, model))
    except TableMissing:
        return [Standing("gold", model.name, None, "not built yet")]
    if model.target is not None:
        found.append(_published(at, model, at.format.version(spark, table)))
    return found


def _model(spark: SparkSession, at: Surroundings, table: Table, behind: int | None = None) -> list[Standing]:
    rows = at.format.read(spark, table)
    newest = F.unix_millis(F.max("updated_at")) if dict(rows.dtypes).get("updated_at") == "timestamp" else F.lit(None)
    [found] = rows.agg(F.count("*").alias("rows"), newest.alias("newest")).collect()
    position = f"version {at.format.version(spark, table)}"
    return [Standing("gold", table.name, found["rows"], position, behind, newest_ms=found["newest"])]


def _unread_commits(spark: SparkSession, at: Surroundings, model: Model) -> int | None:
    """Commits of a model's inputs that its newest refresh did not read."""
    progress = at.format.progress(spark, at.lake.gold(model.name), model.name)
    kept = None if progress is None else at.control.get(at.lake.inputs(model.name, progress.version))
    if kept is None:
        return None
    unread = 0
    for placeholder, given in model.inputs.items():
        source, slash, name = given.partition("/")
        table = at.lake.source_table(source, name) if slash else at.lake.gold(given)
        identity, version = kept["inputs"].get(placeholder, (None, 0))
        newest = at.format.version(spark, table)
        if newest is None or identity != at.format.identity(spark, table):
            return None
        unread += newest - version
    return unread


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
