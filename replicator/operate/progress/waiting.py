"""The records of a source that bronze has and silver does not show, since their transactions are incomplete
(``stages/tick/transaction_cut.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.stages.tick import cut_calculation, epochs, routing, transaction_cut
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.tick_context import TickContext
from replicator.stages.tick.transaction_cut import Cut
from replicator.transforms import transactions


@dataclass(frozen=True)
class Waiting:
    """The number of ``records`` after the ``cut``, by topic; the number of ``transactions`` that they belong to; the
    time of the oldest, ``since_ms`` (Kafka's clock, epoch ms; None: it has none). ``held_by``: topics that lack records
    of the first incomplete transaction.
    """

    cut: Cut
    records: Mapping[str, int]
    transactions: int
    since_ms: int | None
    held_by: tuple[str, ...]

    @property
    def reason(self) -> str:
        """What the records wait for, in words."""
        return f"for records of {', '.join(self.held_by)}" if self.held_by else "for the next run of silver"


def waiting(spark: SparkSession, at: Refinement) -> Waiting | None:
    """Return the waiting records of a source; None if there are none."""
    bronze = at.lake.bronze(at.source.name)
    identity, newest = at.bronze.identity(spark, bronze), at.bronze.version(spark, bronze)
    state = None if identity is None else transaction_cut.load_or_create(at, identity)
    if state is None or newest is None or not state.cut.offsets:
        return None
    session = tuning.session_for(spark, at.bronze.size(spark, bronze), exact_names=True)
    context = TickContext(session, at, NewRecords(newest, {}), epochs.load(at.control, at.lake.epochs(at.source.name)))
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), state.bronze)
    with tuning.persist(transaction_cut.select_waiting(at.bronze.read(session, bronze, newest), state.cut)) as records:
        counts, since = _count(records, at)
        with cut_calculation.waiting_transactions(context, records, state.cut, routes) as found:
            return Waiting(
                state.cut, counts, found.count(), since, _blocking_topics(_first_incomplete(found), routes, at)
            )


def _count(records: DataFrame, at: Refinement) -> tuple[dict[str, int], int | None]:
    """Return the number of records by topic, without those of the transaction topic, and the time of the oldest."""
    rows = records.where(F.col("topic") != transactions.topic(at.source.name)).groupBy("topic")
    totals = rows.agg(F.count("*").alias("records"), F.unix_millis(F.min("timestamp")).alias("since")).collect()
    times = [row["since"] for row in totals if row["since"] is not None]
    return {row["topic"]: row["records"] for row in totals}, min(times, default=None)


def _first_incomplete(found: DataFrame) -> Row | None:
    """Return the first incomplete transaction in the source's order."""
    is_incomplete = ~F.col("is_told") | (F.size("tables") > 0)
    return found.where(is_incomplete).orderBy(F.asc_nulls_last("place"), F.asc_nulls_last("ended")).first()


def _blocking_topics(first: Row | None, routes: Routes, at: Refinement) -> tuple[str, ...]:
    """Return the topics of the transaction's incomplete tables, as far as they are known; the transaction topic where
    its end is missing.
    """
    if first is None:
        return ()
    source = at.source.name
    if not first["is_told"]:
        return (transactions.topic(source),)
    return tuple(sorted({topic for table in first["tables"] for topic in _topics(table, routes, source)}))


def _topics(table: str, routes: Routes, source: str) -> Iterable[str]:
    """Return the topics of a table as an end-of-transaction record names it: with its database, where the connector
    includes that.
    """
    return routes.topics(table) or routes.topics(".".join(table.split(".")[-2:])) or (f"{source}.{table}",)
