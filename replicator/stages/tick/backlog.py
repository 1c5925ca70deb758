"""How much of what is new in bronze a tick takes: of topics that got records, and of a long backlog a piece at a time
(decision 0095).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from replicator.errors import BronzeReplaced
from replicator.spec import Arrival
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.stages.tick import arrivals, routing
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.routing import Routes


@dataclass(frozen=True)
class BacklogProgress:
    """What earlier ticks of a backlog have done: ``upto`` which version of bronze, and which tables ``stopped``; the
    backlog is what there was at its first tick, up to ``newest``.
    """

    upto: int = routing.BEGINNING
    stopped: frozenset[str] = frozenset()
    newest: int | None = None


def arrivals_since_idle(spark: SparkSession, at: Refinement, identity: str, upto: int) -> list[Arrival] | None:
    """What bronze got since a tick found that there was nothing else to read; None where nobody knows."""
    known = at.reached.settled
    if known is None or known.bronze != identity or known.version > upto:
        return None
    return at.bronze.arrivals(spark, at.lake.bronze(at.source.name), known.version, upto)


def find_new(
    spark: SparkSession,
    at: Refinement,
    routes: Routes,
    upto: int,
    paused: Mapping[str, int],
    came: Sequence[Arrival] | None,
    stopped: Collection[str] = (),
) -> tuple[dict[str, int], NewRecords]:
    """What is to be read, and how far tables are that may have to: those of topics that got records since a tick found
    that there was nothing else (``came``); of every table where that is not known. Idle tables cost
    nothing. Of those that ``stopped``, which are among the paused ones, nobody asks it: their log may be what cannot be
    read.
    """
    bronze, known = at.lake.bronze(at.source.name), at.reached.settled
    ask = partial(routing.progress_of_tables, spark, at.silver, at.lake, at.source, routes.bronze, without=stopped)
    look = partial(arrivals.find_new, spark, at.bronze, bronze, routes, upto=upto, paused=paused)
    if known is None or came is None:
        progress = ask()
        refuse_older_bronze(spark, at, upto, progress.values())
        return progress, look(progress=progress)
    topics = {arrival.partition[0] for arrival in came} | known.behind
    progress = ask(only={table for topic in topics for table in routes.tables.get(topic, ())})
    refuse_older_bronze(spark, at, upto, progress.values())
    levelled = [topic for topic in topics if topic in at.reached.live or not routes.knows(topic)]
    floors = {topic: known.floor(topic, routes.tables.get(topic, ()), progress) for topic in levelled}
    return progress, look(progress=progress, floors=dict.fromkeys(topics) | floors)


def refuse_older_bronze(spark: SparkSession, at: Refinement, upto: int, read: Collection[int]) -> None:
    """A bronze that lacks versions that were read was put back: what it gets next would have their numbers, and be
    taken for read (F-C6). Where it only went on since it was looked at, another driver was at work.
    """
    newest = max(read, default=upto)
    if newest <= upto or newest <= (at.bronze.version(spark, at.lake.bronze(at.source.name)) or 0):
        return
    raise BronzeReplaced.under_silver(at.source.name, newest, upto)


def limit_size(spark: SparkSession, at: Refinement, news: NewRecords, least: int) -> NewRecords:
    """As much of the news as is taken at once, above the version ``least`` (decision 0095)."""
    if news.size <= tuning.MAX_TICK_BYTES:
        return news
    bronze = at.lake.bronze(at.source.name)
    whole = at.bronze.append_only_since(spark, bronze, min(news.after.values()), news.upto)
    return news.piece(tuning.MAX_TICK_BYTES, max(least, whole - 1))
