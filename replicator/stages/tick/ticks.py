"""Read the input of one tick of silver from bronze. Nothing is written here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from replicator.errors import BronzeReplaced
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.stages.tick import (
    backlog,
    cut_calculation,
    earlier_watermarks,
    epochs,
    lone_tombstones,
    normalization,
    pauses,
    resharding,
    retry_backoff,
    routing,
    surveying,
    template_reading,
    transaction_cut,
)
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.backlog import BacklogProgress
from replicator.stages.tick.resharding import MovedTopics
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.tick_context import TickContext
from replicator.stages.tick.transaction_cut import CutState


@dataclass(frozen=True)
class Tick:
    """The input of one tick: described records in a session that fits their size, with their survey (its groups and the
    marks of partitions).

    ``existing`` are the tables that silver has. ``cut`` is given if transactions must be complete, or had to be until
    now: the state of the cut before and after the tick. ``retried_rejects`` is given if an earlier tick has read the
    records already: the list to which rejects are added (see TableShare). ``moved`` are topics that are read again
    because their rows now belong to other tables. ``newest`` is the newest version of bronze.
    """

    context: TickContext
    records: DataFrame
    surveyed: tuple[list[Row], list[Row]]
    routes: Routes
    existing: Collection[str] = ()
    cut: tuple[CutState, CutState] | None = None
    retried_rejects: list[DataFrame] | None = None
    moved: MovedTopics = field(default_factory=dict)
    newest: int = 0


@dataclass(frozen=True)
class _NewInput:
    """The new part of bronze up to its version ``upto``: the ``new_records`` of the topics of these ``routes``, of
    which the ``moved`` ones are read again; the state of the cut so far (``cut_state``; None: there is no cut); and the
    ``progress`` of silver's tables.
    """

    upto: int
    new_records: NewRecords
    routes: Routes
    moved: MovedTopics
    cut_state: CutState | None
    progress: Mapping[str, int]


@contextmanager
def read_next(spark: SparkSession, at: Refinement, before: BacklogProgress | None = None) -> Iterator[Tick | None]:
    """Yield the next tick, or None if bronze has nothing new. Of a long backlog it is the first piece after ``before``,
    if that is given. Records are decoded in a session of their own, with case-sensitive names (G4).

    Raises BronzeReplaced (F-C6), also if silver has tables and bronze no longer exists.
    """
    fresh = _find_new_input(spark, at, before)
    if fresh is None:
        yield None
        return
    context, records = _read(spark, at, fresh)
    passage = None
    if fresh.cut_state is not None:
        passage = fresh.cut_state, _calculate_cut(context, records, fresh, fresh.cut_state)
        context, records = _drop_paused(context, transaction_cut.exclude_waiting(records, passage[1].cut), fresh.routes)
    with build(context, records, fresh.routes) as tick:
        yield replace(tick, existing=fresh.progress, cut=passage, moved=fresh.moved, newest=fresh.upto)


def _find_new_input(spark: SparkSession, at: Refinement, before: BacklogProgress | None) -> _NewInput | None:
    """Find the input of :func:`read_next` from commit metadata alone. If there is nothing new, record that all tables
    that are not skipped are caught up, and return None.
    """
    bronze = at.lake.bronze(at.source.name)
    upto, identity = at.bronze.version(spark, bronze), at.bronze.identity(spark, bronze)
    if upto is None or identity is None:
        if at.silver.tables(spark, at.lake.silver_root(at.source.name)):
            raise BronzeReplaced.gone(at.source.name, bronze.location)
        return None
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), identity).up_to(upto)
    paused = pauses.load(at.control, at.lake, at.source.name)
    moved = resharding.find_moved(routes, at.source, paused)
    routes = resharding.reset_topics(routes, moved)
    cut_state = transaction_cut.load_or_create(at, identity)
    backlog.refuse_older_bronze(spark, at, upto, [] if cut_state is None else [cut_state.version])
    is_first = cut_state is not None and cut_state.version == routing.BEGINNING
    arrived = None if is_first or moved else backlog.arrivals_since_idle(spark, at, identity, upto)
    commits = 0 if at.state.caught_up is None else upto - at.state.caught_up.version
    stopped = before.stopped if before else frozenset[str]()
    skipped = {*paused, *retry_backoff.tables_to_skip(spark, at, routes, arrived, commits, paused), *stopped}
    # the cut also counts the records of paused tables that arrived since it was last calculated
    seen = dict.fromkeys(skipped, upto if cut_state is None else cut_state.version)
    progress, news = backlog.find_new(spark, at, routes, upto, seen, arrived, stopped)
    if not news.after and (cut_state is None or transaction_cut.is_up_to_date(at, cut_state, skipped)):
        at.state.settle(identity, upto, topics_of(routes, skipped), progress)
        return None
    if before is not None and cut_state is None and not moved:
        news = backlog.limit_size(spark, at, news, max((before.upto, *progress.values())))
    return _NewInput(upto, news, routes, moved, cut_state, progress)


def _read(spark: SparkSession, at: Refinement, fresh: _NewInput) -> tuple[TickContext, DataFrame]:
    """Read the new records and the waiting ones, with their epochs, in a session that fits their size."""
    news, cut_state = fresh.new_records, fresh.cut_state
    spark = tuning.session_for_records(spark, news.size, len(news.after))
    news = news if cut_state is None else transaction_cut.add_waiting_topics(news, cut_state)
    records = news.records(spark, at.bronze, at.lake.bronze(at.source.name))
    if cut_state is not None and (waiting := transaction_cut.read_waiting(spark, at, cut_state, news)) is not None:
        records = records.unionByName(waiting)
    template_reading.learn_from_first(at, records, news.after, news.size)
    records = tuning.repartition_records(records, news.size)
    context = TickContext(spark, at, news, epochs.load(at.control, at.lake.epochs(at.source.name)))
    return context, context.in_epochs(records, news.after)


def _calculate_cut(context: TickContext, records: DataFrame, fresh: _NewInput, cut_state: CutState) -> CutState:
    """Return the state of the cut after these records."""
    if cut_state.version == routing.BEGINNING and fresh.progress:
        return cut_calculation.calculate_initial(context, cut_state, fresh.routes)
    return cut_calculation.calculate(context, records, cut_state, fresh.routes)


def _drop_paused(context: TickContext, records: DataFrame, routes: Routes) -> tuple[TickContext, DataFrame]:
    """Drop the topics all of whose tables are paused, from the list of new records and from the records. Only the cut
    needs those records; their order is checked once the tables are resumed.
    """
    paused = {topic for topic, tables in routes.tables.items() if context.new_records.paused.issuperset(tables)}
    if paused.isdisjoint(context.new_records.after):
        return context, records
    after = {topic: start for topic, start in context.new_records.after.items() if topic not in paused}
    return replace(context, new_records=replace(context.new_records, after=after)), records.where(
        ~F.col("topic").isin(*sorted(paused))
    )


def topics_of(routes: Routes, tables: Collection[str]) -> frozenset[str]:
    """Return the topics that have carried one of the tables."""
    return frozenset[str]().union(*(routes.topics(table) for table in tables))


@contextmanager
def build(context: TickContext, records: DataFrame, routes: Routes) -> Iterator[Tick]:
    """Yield a tick of records that have their epochs: described and surveyed."""
    earlier_watermarks.load(context, routes.bronze, records)
    survey = partial(surveying.run_survey, context)
    with (
        normalization.describe(context.spark, context.at, records, context.new_records, routes, survey) as (
            described,
            groups,
            found,
        ),
        lone_tombstones.mark_lone_tombstones(context, described) as marked,
    ):
        yield Tick(context, tuning.coalesce_records(marked, context.new_records.size), (groups, found), routes)
