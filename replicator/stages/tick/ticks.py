"""What one tick of silver reads of bronze. Nothing is written here."""

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
    compaction,
    cut,
    cutting,
    epochs,
    likeness,
    pauses,
    resharding,
    rests,
    rewind,
    routing,
    shaping,
    surveying,
)
from replicator.stages.tick.arrivals import News
from replicator.stages.tick.backlog import Before
from replicator.stages.tick.cut import Standing
from replicator.stages.tick.resharding import Moved
from replicator.stages.tick.rewind import Watch
from replicator.stages.tick.routing import Routes


@dataclass(frozen=True)
class Tick:
    """Described records in a session that fits their size, with their survey: its groups and the marks of partitions.

    ``existing`` are tables of silver. ``cut``, where transactions must be whole: how it stood before the tick, and how
    it stands behind it. ``again``: a tick has read them before, and rejects go there (see Share). ``moved`` are topics
    that are read once more, since their rows go into other tables. ``newest`` is bronze's version.
    """

    watch: Watch
    records: DataFrame
    surveyed: tuple[list[Row], list[Row]]
    routes: Routes
    existing: Collection[str] = ()
    cut: tuple[Standing, Standing] | None = None
    again: list[DataFrame] | None = None
    moved: Moved = field(default_factory=dict)
    newest: int = 0


@dataclass(frozen=True)
class _Fresh:
    """What of bronze is new, up to its version ``upto``: the ``news`` of the topics of these ``routes``, of which
    ``moved`` ones are read once more; how the cut ``stood``, if there is one, and the ``progress`` of silver's tables.
    """

    upto: int
    news: News
    routes: Routes
    moved: Moved
    stood: Standing | None
    progress: Mapping[str, int]


@contextmanager
def unread(spark: SparkSession, at: Refinement, before: Before | None = None) -> Iterator[Tick | None]:
    """What is new in bronze, None if nothing is; of a long backlog the first piece behind what came ``before``, if that
    is given. Decoding happens in a session of its own, with exact names (G4).

    Raises BronzeReplaced (F-C6), also of a bronze that is gone from under silver.
    """
    fresh = _fresh(spark, at, before)
    if fresh is None:
        yield None
        return
    watch, records = _read(spark, at, fresh)
    passage = None
    if fresh.stood is not None:
        passage = fresh.stood, _drawn(watch, records, fresh, fresh.stood)
        watch, records = _unpaused(watch, cut.before(records, passage[1].cut), fresh.routes)
    with ticking(watch, records, fresh.routes) as tick:
        yield replace(tick, existing=fresh.progress, cut=passage, moved=fresh.moved, newest=fresh.upto)


def _fresh(spark: SparkSession, at: Refinement, before: Before | None) -> _Fresh | None:
    """As :func:`unread`, by what commits say; where nothing is new, that is settled."""
    bronze = at.lake.bronze(at.source.name)
    upto, identity = at.bronze.version(spark, bronze), at.bronze.identity(spark, bronze)
    if upto is None or identity is None:
        if at.silver.tables(spark, at.lake.silver_root(at.source.name)):
            raise BronzeReplaced.gone(at.source.name, bronze.location)
        return None
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), identity).within(upto)
    paused = pauses.load(at.control, at.lake, at.source.name)
    moved = resharding.moved(routes, at.source, paused)
    routes = resharding.unread(routes, moved)
    stood = cut.standing(at, identity)
    backlog.refuse_older(spark, at, upto, [] if stood is None else [stood.version])
    is_first = stood is not None and stood.version == routing.BEGINNING
    came = None if is_first or moved else backlog.came(spark, at, identity, upto)
    commits = 0 if at.reached.settled is None else upto - at.reached.settled.version
    stopped = before.stopped if before else frozenset[str]()
    left = {*paused, *rests.resting(spark, at, routes, came, commits, paused), *stopped}
    # the cut counts the records of paused tables that came since it was drawn
    seen = dict.fromkeys(left, upto if stood is None else stood.version)
    progress, news = backlog.news(spark, at, routes, upto, seen, came, stopped)
    if not news.after and (stood is None or cut.is_settled(at, stood, left)):
        at.reached.settle(identity, upto, topics_of(routes, left), progress)
        return None
    if before is not None and stood is None and not moved:
        news = backlog.piece(spark, at, news, max((before.upto, *progress.values())))
    return _Fresh(upto, news, routes, moved, stood, progress)


def _read(spark: SparkSession, at: Refinement, fresh: _Fresh) -> tuple[Watch, DataFrame]:
    """What is new and what waits, in its epochs, in a session that fits its size."""
    news, stood = fresh.news, fresh.stood
    spark = tuning.session_for_records(spark, news.size, len(news.after))
    news = news if stood is None else cut.with_waiting(news, stood)
    records = news.records(spark, at.bronze, at.lake.bronze(at.source.name))
    if stood is not None and (waiting := cut.waiting(spark, at, stood, news)) is not None:
        records = records.unionByName(waiting)
    likeness.acquaint(at, records, news.after, news.size)
    records = tuning.laid_out(records, news.size)
    watch = Watch(spark, at, news, epochs.load(at.control, at.lake.epochs(at.source.name)))
    return watch, watch.in_epochs(records, news.after)


def _drawn(watch: Watch, records: DataFrame, fresh: _Fresh, stood: Standing) -> Standing:
    """How the cut stands behind these records."""
    if stood.version == routing.BEGINNING and fresh.progress:
        return cutting.begun(watch, stood, fresh.routes)
    return cutting.drawn(watch, records, stood, fresh.routes)


def _unpaused(watch: Watch, records: DataFrame, routes: Routes) -> tuple[Watch, DataFrame]:
    """The news and the records of topics that carry some table that is not paused: of the others only the cut is to
    know, and their order is watched once they go on.
    """
    paused = {topic for topic, tables in routes.tables.items() if watch.news.paused.issuperset(tables)}
    if paused.isdisjoint(watch.news.after):
        return watch, records
    after = {topic: start for topic, start in watch.news.after.items() if topic not in paused}
    return replace(watch, news=replace(watch.news, after=after)), records.where(~F.col("topic").isin(*sorted(paused)))


def topics_of(routes: Routes, tables: Collection[str]) -> frozenset[str]:
    """Topics that have carried one of the tables."""
    return frozenset[str]().union(*(routes.topics(table) for table in tables))


@contextmanager
def ticking(watch: Watch, records: DataFrame, routes: Routes) -> Iterator[Tick]:
    """Records in their epochs, described and surveyed."""
    rewind.prepare(watch, routes.bronze, records)
    survey = partial(surveying.surveyed, watch)
    with (
        shaping.described(watch.spark, watch.at, records, watch.news, routes, survey) as (described, groups, found),
        compaction.marked(watch, described) as told,
    ):
        yield Tick(watch, tuning.gathered(told, watch.news.size), (groups, found), routes)
