"""Apply dead letters again, by the same decoding and the same merge as a batch of silver (debezium.md R4).

Effects, in this order: 1. the tables' merges; 2. the removal of rows that came back although a snapshot had found them
missing (``stages/table/missing_rows.py``); 3. letters that were applied, or that a rule ignores now, are removed from
the table of dead letters, and those with a new reason are updated. Changes are merged at their own ``_seq``, so a crash
in between is repaired by the next retry. Silver's progress does not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.debezium import headers, position
from replicator.operate.dead_letters import LetterFilter, load_letters, write
from replicator.stages import silver, tuning
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.stages.table import dead_letters, history_table, missing_rows
from replicator.stages.tick import epochs, routing
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.tick_context import TickContext
from replicator.transforms import watermarks
from replicator.transforms.dead_letters import COLUMNS, COORDINATES


def retry(spark: SparkSession, at: Refinement, choice: LetterFilter) -> list[Account]:
    """Retry the chosen letters and return one account per table that had some; ``dead_lettered`` counts those that
    stay.

    A table that stops has an account with its error and keeps its letters. Letters whose record is no longer in bronze
    stay too.
    """
    bronze = at.lake.bronze(at.source.name)
    upto, identity = at.bronze.version(spark, bronze), at.bronze.identity(spark, bronze)
    chosen = choice.select(load_letters(spark, at)).localCheckpoint()
    topics = [row["topic"] for row in chosen.select("topic").distinct().collect()]
    if upto is None or identity is None or not topics:
        return []
    _build_missing(spark, at, chosen)
    path = at.lake.routes(at.source.name)
    routes = routing.load_routes(at.control, path, identity)
    with_histories = history_table.with_existing_histories(
        spark, at, {table for topic in topics for table in routes.tables.get(topic, ())}
    )
    session = tuning.session_for(spark, at.bronze.size(spark, bronze), exact_names=True)
    history = at.bronze.read(session, bronze, upto).where(F.col("topic").isin(*topics))
    records = history.join(F.broadcast(chosen.select(*COORDINATES)), list(COORDINATES), how="left_semi")
    rejected: list[DataFrame] = []
    context = TickContext(
        session, with_histories, NewRecords(upto, {}), epochs.load(at.control, at.lake.epochs(at.source.name))
    )
    at.state.open(at.control, at.lake.reached(at.source.name), identity)
    with context.describe_any_shape(records, topics) as own, with_positions(context, own, history) as described:
        accounts = silver.reapply(context, described, routes, rejected)
        stopped = {account.table for account in accounts if account.error is not None}
        learned = routing.load_routes(at.control, path, identity)
        stopped_topics = _stopped_topics(at, learned, stopped)
        applied = described.select(*COORDINATES).where(~F.col("topic").isin(*stopped_topics))
        joined = {account.table.removeprefix(f"{at.source.name}/") for account in accounts if account.error is None}
        accounts += missing_rows.remove_all(spark, at, joined)
        _update_letters(session, at, chosen, applied, rejected)
    return accounts


@contextmanager
def with_positions(context: TickContext, records: DataFrame, history: DataFrame) -> Iterator[DataFrame]:
    """Yield the described records at the positions that they had when their topics were read in full, persisted for the
    duration of the block. This matters for snapshot rows, which are above all records before them (Q5), and for the
    records of a transaction, which stay with its beginning (Q12).

    ``history`` are all bronze records of those topics.
    """
    depends = F.col("is_snapshot") | F.col("transaction").isNotNull()
    topics = [row["topic"] for row in records.where(depends).select("topic").distinct().collect()]
    if not topics:
        yield records
        return
    own_position, lowest = F.col("position"), F.lit(position.LOWEST)
    with context.describe_any_shape(history.where(F.col("topic").isin(topics)), topics) as all_records:
        aligned = watermarks.align_transactions(all_records, F.lit(None).cast(watermarks.WATERMARK_TYPE))
        folder = headers.folder(F.col("headers"))
        raised = position.with_running_maximum(own_position, F.col("is_snapshot"), lowest, folder).alias("_raised")
        joined = records.join(aligned.select(*COORDINATES, raised), list(COORDINATES), how="left")
        with tuning.persist(
            joined.withColumn("position", F.coalesce("_raised", own_position)).drop("_raised")
        ) as in_place:
            yield in_place


def _build_missing(spark: SparkSession, at: Refinement, chosen: DataFrame) -> None:
    """Run silver if a table of the letters was never written, which builds it from the beginning of its topics: only
    silver's own run records how far a table has read.
    """
    tables = [row["table"] for row in chosen.select("table").distinct().collect() if row["table"] is not None]
    if any(at.silver.version(spark, at.lake.silver(at.source.name, table)) is None for table in tables):
        at.state.caught_up = None  # no tick has seen what was declared since
        silver.refine(spark, at)


def _stopped_topics(at: Refinement, routes: Routes, stopped: set[str]) -> list[str]:
    """Return the topics of the tables that stopped: their letters stay."""
    names = {at.lake.silver(at.source.name, table).name: table for tables in routes.tables.values() for table in tables}
    return sorted({topic for name in stopped & names.keys() for topic in routes.topics(names[name])})


def _update_letters(
    spark: SparkSession, at: Refinement, chosen: DataFrame, applied: DataFrame, rejected: list[DataFrame]
) -> None:
    """Effect 3."""
    coordinates = list(COORDINATES)
    leaving = chosen.join(applied, coordinates, how="left_semi")
    difference = leaving.withColumn("_op", F.lit("delete"))
    if rejected:
        remaining = reduce(DataFrame.unionByName, rejected)
        difference = difference.join(remaining.select(*coordinates), coordinates, how="left_anti")
        before = chosen.select(*coordinates, "first_seen", F.struct("reason", "detail").alias("_was"))
        other = remaining.join(before, coordinates).where(~F.struct("reason", "detail").eqNullSafe(F.col("_was")))
        changed = other.drop("_was").withColumn("_op", F.lit("upsert"))
        difference = difference.unionByName(changed)
    difference = difference.select(*COLUMNS, "_op").localCheckpoint()
    if not difference.isEmpty():
        dead_letters.add_missing_columns(spark, at)
        write(at, difference)
