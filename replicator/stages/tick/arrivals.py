"""Find what is new in bronze, and for which tables, without reading rows that are already applied (architecture
9.4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.protocols import TableFormat
from replicator.spec import Arrival, Table
from replicator.stages.tick.routing import BEGINNING, Routes
from replicator.transforms.dead_letters import COORDINATES


@dataclass(frozen=True)
class NewRecords:
    """Topics with records that some table has not applied yet, each with the bronze version (exclusive) from which it
    must be read.

    ``upto`` is the last version that is read; ``size`` the bytes on disk of what will be read; ``paused`` are tables
    that take no part. ``arrived`` is what was appended to those topics, as far as known.
    """

    upto: int
    after: Mapping[str, int]
    size: int = 0
    paused: frozenset[str] = frozenset()
    arrived: tuple[Arrival, ...] = ()

    @property
    def continued(self) -> list[str]:
        """Topics that are not read from their beginning."""
        return [topic for topic, start in self.after.items() if start != BEGINNING]

    def piece(self, limit: int, least: int) -> NewRecords:
        """Return the first part of it, up to a version above ``least``: no more than ``limit`` bytes, or a single
        commit.
        """
        sizes = Counter[int]()
        for each in self.arrived:
            sizes[each.version] += each.size
        size, upto = sum(each for version, each in sizes.items() if version <= least), least
        for version in sorted(version for version in sizes if version > least):
            if upto > least and size + sizes[version] > limit:
                break
            size, upto = size + sizes[version], version
        if upto in (least, max(sizes, default=least)):
            return self
        arrived = tuple(each for each in self.arrived if each.version <= upto)
        topics = {each.partition[0] for each in arrived}
        after = {topic: start for topic, start in self.after.items() if topic in topics}
        return replace(self, upto=upto, after=after, size=size, arrived=arrived)

    def records(self, spark: SparkSession, bronze: TableFormat, table: Table) -> DataFrame:
        """Read the records. If the log no longer reaches back, the complete topics are read again, which the merge
        makes harmless.
        """
        full_topics = [topic for topic, start in self.after.items() if start == BEGINNING]
        recent: dict[tuple[str, ...], int] = {
            (topic,): start for topic, start in self.after.items() if start != BEGINNING
        }
        fresh = bronze.added(spark, table, recent, self.upto) if recent else None
        if fresh is None:
            full_topics = list(self.after)
        complete = bronze.read(spark, table, self.upto).where(F.col("topic").isin(*full_topics))
        if fresh is None:
            return complete
        return complete.unionByName(fresh) if full_topics else fresh


def find_new(
    spark: SparkSession,
    bronze: TableFormat,
    table: Table,
    routes: Routes,
    progress: Mapping[str, int],
    upto: int,
    paused: Mapping[str, int] | None = None,
    floors: Mapping[str, int | None] | None = None,
) -> NewRecords:
    """Find which topics to read and from where: those with a commit newer than what some of their tables has applied.

    ``paused`` tables need nothing up to these versions. With ``floors`` only these topics are considered; each value is
    the version up to which nothing is known to be left to read (None: unknown).
    """
    paused = paused or {}
    progress = {**progress, **paused}
    known = _Starts(routes, progress, floors or {})
    low = _lowest(routes, progress) if floors is None else min(map(known.scanned_from, floors), default=upto)
    if low >= upto:
        return NewRecords(upto, {}, paused=frozenset(paused))
    after, found = {}, list[Arrival]()
    for arrival in list_arrivals(spark, bronze, table, low, upto):
        topic = arrival.partition[0]
        if floors is not None and topic not in floors:
            continue
        start = known.read_from(topic)
        if arrival.version > start:
            after[topic] = start
            found.append(arrival)
    return NewRecords(upto, after, sum(each.size for each in found), frozenset(paused), tuple(found))


def list_arrivals(spark: SparkSession, bronze: TableFormat, table: Table, after: int, upto: int) -> list[Arrival]:
    """Return what the commits of (after, upto] appended, by topic; all existing topics if that part of the commit
    history is gone.
    """
    arrivals = bronze.arrivals(spark, table, after, upto)
    if arrivals is not None:
        return arrivals
    topics = [row["topic"] for row in bronze.read(spark, table, upto).select("topic").distinct().collect()]
    return [Arrival((topic,), upto, bronze.size(spark, table)) for topic in topics]


def read_as_of(
    spark: SparkSession, bronze: TableFormat, table: Table, topics: Collection[str], version: int
) -> DataFrame | None:
    """Read the records of some topics that bronze had at a version: the current ones minus those added since, because
    maintenance removes the files of older versions. None if the commit history since that version is gone, or if bronze
    does not have the version.
    """
    newest = bronze.version(spark, table)
    arrived = None if newest is None or newest < version else bronze.arrivals(spark, table, version, newest)
    if newest is None or arrived is None:
        return None
    now = bronze.read(spark, table, newest).where(F.col("topic").isin(*topics))
    since = {arrival.partition: version for arrival in arrived if arrival.partition[0] in topics}
    if not since:
        return now
    later = bronze.added(spark, table, since, newest)
    return None if later is None else now.join(later.select(*COORDINATES), list(COORDINATES), how="left_anti")


def from_beginning(
    spark: SparkSession, bronze: TableFormat, table: Table, topics: Collection[str], upto: int
) -> NewRecords:
    """Return these topics from their beginning; all topics of bronze if none is named."""
    if not topics:
        topics = [row["topic"] for row in bronze.read(spark, table, upto).select("topic").distinct().collect()]
    return NewRecords(upto, dict.fromkeys(topics, BEGINNING), bronze.size(spark, table))


def _applied(topic: str, routes: Routes, progress: Mapping[str, int]) -> int:
    """Return the version up to which every table of the topic has applied it."""
    tables = routes.tables.get(topic)
    if not tables:
        return routes.alone.get(topic, BEGINNING)
    return min(progress.get(table, BEGINNING) for table in tables)


@dataclass(frozen=True)
class _Starts:
    """The versions after which topics are searched and read."""

    routes: Routes
    progress: Mapping[str, int]
    floors: Mapping[str, int | None]

    def read_from(self, topic: str) -> int:
        """Return the version from which the topic's records are read: BEGINNING if it is new, or if one of its tables
        does not exist yet and may have more than dead letters.
        """
        applied, floor = _applied(topic, self.routes, self.progress), self.floors.get(topic)
        return applied if floor is None or not self.routes.has_read(topic) else max(applied, floor)

    def scanned_from(self, topic: str) -> int:
        """Return the version after which its first unread record may be; for a topic that was never read, its floor."""
        floor = self.floors.get(topic)
        return self.read_from(topic) if floor is None or self.routes.has_read(topic) else floor


def _lowest(routes: Routes, progress: Mapping[str, int]) -> int:
    """Return the oldest version that any known topic needs; BEGINNING if none is known."""
    lows = [_applied(topic, routes, progress) for topic in [*routes.tables, *routes.alone]]
    return min(lows, default=BEGINNING)
