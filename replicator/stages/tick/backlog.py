"""How much of the new records of bronze a tick takes: only topics that got records, and a long backlog in pieces
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
    """The progress of earlier ticks through a backlog: the version of bronze reached (``upto``), and which tables
    ``stopped``. The backlog ends at the ``newest`` version there was at its first tick.
    """

    upto: int = routing.BEGINNING
    stopped: frozenset[str] = frozenset()
    newest: int | None = None


def arrivals_since_idle(spark: SparkSession, at: Refinement, identity: str, upto: int) -> list[Arrival] | None:
    """Return what bronze got since a tick last found all tables caught up; None if unknown."""
    known = at.state.caught_up
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
    """Find what is to be read, and the progress of the tables that may have to read it: those of topics that got
    records since all tables were caught up (``came``), or all tables if that is unknown. Idle tables cost nothing. The
    progress of tables that ``stopped``, which are also in ``paused``, is not read, because their log may be what cannot
    be read.
    """
    bronze, known = at.lake.bronze(at.source.name), at.state.caught_up
    load_progress = partial(
        routing.progress_of_tables, spark, at.silver, at.lake, at.source, routes.bronze, without=stopped
    )
    search = partial(arrivals.find_new, spark, at.bronze, bronze, routes, upto=upto, paused=paused)
    if known is None or came is None:
        progress = load_progress()
        refuse_older_bronze(spark, at, upto, progress.values())
        return progress, search(progress=progress)
    topics = {arrival.partition[0] for arrival in came} | known.pending_topics
    progress = load_progress(only={table for topic in topics for table in routes.tables.get(topic, ())})
    refuse_older_bronze(spark, at, upto, progress.values())
    levelled = [topic for topic in topics if topic in at.state.live or not routes.has_read(topic)]
    floors = {topic: known.floor(topic, routes.tables.get(topic, ()), progress) for topic in levelled}
    return progress, search(progress=progress, floors=dict.fromkeys(topics) | floors)


def refuse_older_bronze(spark: SparkSession, at: Refinement, upto: int, read: Collection[int]) -> None:
    """Raise BronzeReplaced if bronze lacks versions that were already read: it was restored to an older state, and new
    commits would reuse those version numbers and be taken for read (F-C6). If it has advanced in the meantime, another
    driver is running, which is no error.
    """
    newest = max(read, default=upto)
    if newest <= upto or newest <= (at.bronze.version(spark, at.lake.bronze(at.source.name)) or 0):
        return
    raise BronzeReplaced.under_silver(at.source.name, newest, upto)


def limit_size(spark: SparkSession, at: Refinement, news: NewRecords, least: int) -> NewRecords:
    """Limit the new records to what one tick takes, above the version ``least`` (decision 0095)."""
    if news.size <= tuning.MAX_TICK_BYTES:
        return news
    bronze = at.lake.bronze(at.source.name)
    append_only_from = at.bronze.append_only_since(spark, bronze, min(news.after.values()), news.upto)
    return news.piece(tuning.MAX_TICK_BYTES, max(least, append_only_from - 1))
