"""Remove deleted rows from silver once they are older than ``purge_after`` (debezium.md M9).

Effects of one table, in this order: 1. the purge horizon, in a control row, 2. the deletion of the rows, in one commit.
A crash between the two leaves rows that already count as purged; the next purge removes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import failpoints, names
from replicator.errors import BronzeReplaced, ConfigError, ReplicatorError, TableStopped
from replicator.jvm.failures import FAILURES
from replicator.operate.row.trace import find_table
from replicator.spec import Progress
from replicator.stages import engine_errors, tuning
from replicator.stages.refinement import Refinement
from replicator.stages.table import purge_horizons
from replicator.stages.tick import arrivals, order_checks, routing
from replicator.transforms.columns.layout import key_of
from replicator.transforms.purge_horizon import Horizon


@dataclass(frozen=True)
class PurgeResult:
    """The outcome of the purge of one table, or with ``dry`` what it would be: ``purged``, the number of removed
    deleted rows; ``kept``, the number of deleted rows that stay because they are younger; ``horizon``, the ``_seq`` of
    the newest purged delete (None: nothing was ever purged). ``error``: why the table was left unchanged.
    """

    table: str
    purged: int
    kept: int
    horizon: str | None
    error: ReplicatorError | None = None


def select_tables(spark: SparkSession, sources: Sequence[Refinement], name: str | None) -> list[tuple[Refinement, str]]:
    """Return the tables with ``purge_after``, or only the named one. Raises ConfigError if the named one has none."""
    if name is not None:
        at, table = find_table(spark, sources, name)
        if at.source.declaration(table).purge_after is None:
            raise ConfigError(
                "the table keeps its deleted rows",
                where=f"{at.source.name}/{table}",
                fix="Declare `purge_after` for it, such as `30 days`: longer than Kafka keeps records.",
            )
        return [(at, table)]
    found = [
        (at, names.decode_table(folder))
        for at in sources
        for folder in at.silver.tables(spark, at.lake.silver_root(at.source.name))
    ]
    return [(at, table) for at, table in found if at.source.declaration(table).purge_after is not None]


def attempt(spark: SparkSession, at: Refinement, name: str, now_ms: int, *, dry: bool = False) -> PurgeResult:
    """Run :func:`purge` and return its result, with the error if it stopped: others continue. Raises NO_LAKE."""
    table = at.lake.silver(at.source.name, name).name
    try:
        return purge(spark, at, name, now_ms, dry=dry)
    except (ReplicatorError, *FAILURES) as error:
        return PurgeResult(table, 0, 0, None, engine_errors.of_one_table(error, table))


def purge(spark: SparkSession, at: Refinement, name: str, now_ms: int, *, dry: bool = False) -> PurgeResult:
    """Remove deleted rows of one table that are older than its ``purge_after`` at ``now_ms`` (ms since 1970, UTC); with
    ``dry``, only count them. Raises TableStopped where the rows have another order than the declared one.
    """
    table = at.lake.silver(at.source.name, name)
    _refuse_other_order(spark, at, name)
    spark = tuning.session_for(spark, at.silver.size(spark, table), exact_names=True)
    rows = at.silver.read(spark, table)
    before = purge_horizons.load(spark, at, name, table)
    newest = _newest_purgeable(rows, at.source.declaration(name).purge_after or 0, now_ms)
    seq = max(filter(None, (newest, None if before is None else before.seq)), default=None)
    purgeable = F.col("_deleted") & _upto(seq)
    found = rows.where("_deleted").agg(F.count("*").alias("all"), F.sum(purgeable.cast("int")).alias("gone")).first()
    deleted, count = (0, 0) if found is None else (found["all"], found["gone"] or 0)
    if seq is not None and count and not dry:
        _remove(spark, at, name, rows.where(purgeable), seq)
    return PurgeResult(table.name, count, deleted - count, seq)


def _refuse_other_order(spark: SparkSession, at: Refinement, name: str) -> None:
    """Raise TableStopped if the rows have another order than the declared one: a horizon is a position in the order of
    the rows (Q9).
    """
    identity = at.bronze.identity(spark, at.lake.bronze(at.source.name))
    if identity is not None:
        at.state.open(at.control, at.lake.reached(at.source.name), identity)
        for stopped in order_checks.find_reordered(at, {name: at.source.order(name)}).values():
            raise stopped


def _newest_purgeable(rows: DataFrame, seconds: int, now_ms: int) -> str | None:
    """Return the ``_seq`` of the newest delete that may be removed: no dated row up to it is younger than ``seconds``.

    A delete without a time (by a TRUNCATE) is as old as a dated row after it in the source's order. With 0 seconds
    every delete is old.
    """
    deletes = rows.where("_deleted")
    if seconds:
        is_old, seq = F.col("_source_ts_ms") <= now_ms - 1000 * seconds, F.col("_seq")
        bounds = rows.agg(F.min(F.when(~is_old, seq)).alias("young"), F.max(F.when(is_old, seq)).alias("old")).first()
        young, old = (None, None) if bounds is None else (bounds["young"], bounds["old"])
        deletes = deletes.where(F.coalesce(is_old, _upto(old)))
        deletes = deletes if young is None else deletes.where(seq < young)
    row = deletes.agg(F.max("_seq").alias("newest")).first()
    return None if row is None else row["newest"]


def _upto(seq: str | None) -> Column:
    return F.lit(False) if seq is None else F.col("_seq") <= seq


def _remove(spark: SparkSession, at: Refinement, name: str, purged_rows: DataFrame, seq: str) -> None:
    """Effects 1 and 2."""
    table = at.lake.silver(at.source.name, name, key_of(purged_rows.schema))
    identity = at.bronze.identity(spark, at.lake.bronze(at.source.name))
    if identity is None:
        raise BronzeReplaced("there is no bronze from which to determine what was read", where=table.name)
    upto = routing.progress_of(spark, at.silver, table, identity)
    read = _last_offsets(spark, at, name, identity, upto)
    with tuning.persist(purged_rows.withColumn("_op", F.lit("delete"))) as difference:
        purge_horizons.save(spark, at, name, table, Horizon(seq, read, upto))
        failpoints.hit("purge.horizon_saved")
        version = at.silver.version(spark, table)
        at.silver.put(difference, table, Progress(f"{identity}/purge", 0 if version is None else version + 1))


def _last_offsets(
    spark: SparkSession, at: Refinement, name: str, identity: str, upto: int
) -> dict[str, dict[str, int]]:
    """Return the last offset that bronze had at a version, by topic and partition. Raises TableStopped if bronze no
    longer has that version.
    """
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), identity)
    records = arrivals.read_as_of(spark, at.bronze, at.lake.bronze(at.source.name), routes.topics(name), upto)
    if records is None:
        raise TableStopped(
            f"bronze no longer has its version {upto}, up to which the table has read",
            where=f"{at.source.name}/{name}",
            fix="Run `replicator run silver`, then purge again.",
        )
    offsets: dict[str, dict[str, int]] = {}
    for row in records.groupBy("topic", "partition").agg(F.max("offset").alias("last")).collect():
        offsets.setdefault(row["topic"], {})[str(row["partition"])] = row["last"]
    return offsets
