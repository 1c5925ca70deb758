"""Dead letters once more, through the same decoding and the same merge as a batch of silver (debezium.md R4).

Effects, in this order: 1. the tables' merges, 2. rows that came back so go again where a snapshot has found them gone
(``stages/table/missing_rows.py``), 3. letters that could be applied, or that a rule ignores now, leave the table of
dead letters; those with another reason than before get it. Changes join at their own ``_seq``, so a crash in between is
repaired by the next retry. No silver progress is moved.
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
from replicator.stages.tick.order_checks import TickContext
from replicator.stages.tick.routing import Routes
from replicator.transforms import watermarks
from replicator.transforms.dead_letters import COLUMNS, COORDINATES


def retry(spark: SparkSession, at: Refinement, choice: LetterFilter) -> list[Account]:
    """One account per table that had letters among the chosen ones; ``dead_lettered`` counts those that stay.

    A table that stops is in the list with its error and keeps its letters. Letters whose record is no longer in bronze
    stay too.
    """
    bronze = at.lake.bronze(at.source.name)
    upto, identity = at.bronze.version(spark, bronze), at.bronze.identity(spark, bronze)
    chosen = choice.of(load_letters(spark, at)).localCheckpoint()
    topics = [row["topic"] for row in chosen.select("topic").distinct().collect()]
    if upto is None or identity is None or not topics:
        return []
    _build_missing(spark, at, chosen)
    path = at.lake.routes(at.source.name)
    routes = routing.load_routes(at.control, path, identity)
    both = history_table.with_existing_histories(
        spark, at, {table for topic in topics for table in routes.tables.get(topic, ())}
    )
    session = tuning.session_for(spark, at.bronze.size(spark, bronze), exact_names=True)
    history = at.bronze.read(session, bronze, upto).where(F.col("topic").isin(*topics))
    records = history.join(F.broadcast(chosen.select(*COORDINATES)), list(COORDINATES), how="left_semi")
    again: list[DataFrame] = []
    watch = TickContext(session, both, NewRecords(upto, {}), epochs.load(at.control, at.lake.epochs(at.source.name)))
    at.reached.open(at.control, at.lake.reached(at.source.name), identity)
    with watch.describe_any_shape(records, topics) as own, with_positions(watch, own, history) as described:
        accounts = silver.reapply(watch, described, routes, again)
        stopped = {account.table for account in accounts if account.error is not None}
        learned = routing.load_routes(at.control, path, identity)
        held = _stopped_topics(at, learned, stopped)
        found = described.select(*COORDINATES).where(~F.col("topic").isin(*held))
        joined = {account.table.removeprefix(f"{at.source.name}/") for account in accounts if account.error is None}
        accounts += missing_rows.remove_all(spark, at, joined)
        _update_letters(session, at, chosen, found, again)
    return accounts


@contextmanager
def with_positions(watch: TickContext, records: DataFrame, history: DataFrame) -> Iterator[DataFrame]:
    """Described records that stand where they stood when their topics were read whole, kept for the time of the block:
    snapshot rows above all before them (Q5), the rest of a transaction with its beginning (Q12).

    ``history`` are all bronze records of those topics.
    """
    depends = F.col("is_snapshot") | F.col("transaction").isNotNull()
    topics = [row["topic"] for row in records.where(depends).select("topic").distinct().collect()]
    if not topics:
        yield records
        return
    own, lowest = F.col("position"), F.lit(position.LOWEST)
    with watch.describe_any_shape(history.where(F.col("topic").isin(topics)), topics) as every:
        whole = watermarks.align_transactions(every, F.lit(None).cast(watermarks.WATERMARK_TYPE))
        folder = headers.folder(F.col("headers"))
        raised = position.with_running_maximum(own, F.col("is_snapshot"), lowest, folder).alias("_raised")
        joined = records.join(whole.select(*COORDINATES, raised), list(COORDINATES), how="left")
        with tuning.persist(joined.withColumn("position", F.coalesce("_raised", own)).drop("_raised")) as in_place:
            yield in_place


def _build_missing(spark: SparkSession, at: Refinement, chosen: DataFrame) -> None:
    """A table that was never written is built by a tick, from the beginning of its topics: only that knows how far it
    has read.
    """
    named = [row["table"] for row in chosen.select("table").distinct().collect() if row["table"] is not None]
    if any(at.silver.version(spark, at.lake.silver(at.source.name, table)) is None for table in named):
        at.reached.settled = None  # of what was declared since no tick has known
        silver.refine(spark, at)


def _stopped_topics(at: Refinement, routes: Routes, stopped: set[str]) -> list[str]:
    """Topics of which some table stopped: their letters stay."""
    names = {at.lake.silver(at.source.name, t).name: t for tables in routes.tables.values() for t in tables}
    return sorted({topic for name in stopped & names.keys() for topic in routes.topics(names[name])})


def _update_letters(
    spark: SparkSession, at: Refinement, chosen: DataFrame, found: DataFrame, again: list[DataFrame]
) -> None:
    """Effect 3."""
    place = list(COORDINATES)
    leaving = chosen.join(found, place, how="left_semi")
    difference = leaving.withColumn("_op", F.lit("delete"))
    if again:
        still = reduce(DataFrame.unionByName, again)
        difference = difference.join(still.select(*place), place, how="left_anti")
        was = chosen.select(*place, "first_seen", F.struct("reason", "detail").alias("_was"))
        other = still.join(was, place).where(~F.struct("reason", "detail").eqNullSafe(F.col("_was")))
        changed = other.drop("_was").withColumn("_op", F.lit("upsert"))
        difference = difference.unionByName(changed)
    difference = difference.select(*COLUMNS, "_op").localCheckpoint()
    if not difference.isEmpty():
        dead_letters.add_missing_columns(spark, at)
        write(at, difference)
