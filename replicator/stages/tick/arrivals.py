"""What is new in bronze, and for which tables: finding work without reading rows that are done (architecture 9.4)."""

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
    """Topics with records that some table has not seen: from which bronze version (exclusive) each must be read.

    ``size`` is the bytes on disk of what will be read; ``paused`` tables take no part. ``arrived`` is what was
    appended of those topics, as far as that is known.
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

    def piece(self, most: int, least: int) -> NewRecords:
        """The first of it, up to a version above ``least``: no more than ``most`` bytes, or a single commit's."""
        sizes = Counter[int]()
        for each in self.arrived:
            sizes[each.version] += each.size
        size, upto = sum(each for version, each in sizes.items() if version <= least), least
        for version in sorted(version for version in sizes if version > least):
            if upto > least and size + sizes[version] > most:
                break
            size, upto = size + sizes[version], version
        if upto in (least, max(sizes, default=least)):
            return self
        arrived = tuple(each for each in self.arrived if each.version <= upto)
        topics = {each.partition[0] for each in arrived}
        after = {topic: start for topic, start in self.after.items() if topic in topics}
        return replace(self, upto=upto, after=after, size=size, arrived=arrived)

    def records(self, spark: SparkSession, bronze: TableFormat, table: Table) -> DataFrame:
        """The records. Where the log no longer reaches back, the whole topic is read again: the merge makes that
        harmless.
        """
        whole = [topic for topic, start in self.after.items() if start == BEGINNING]
        recent: dict[tuple[str, ...], int] = {
            (topic,): start for topic, start in self.after.items() if start != BEGINNING
        }
        fresh = bronze.added(spark, table, recent, self.upto) if recent else None
        if fresh is None:
            whole = list(self.after)
        again = bronze.read(spark, table, self.upto).where(F.col("topic").isin(*whole))
        if fresh is None:
            return again
        return again.unionByName(fresh) if whole else fresh


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
    """Which topics to read, from where: those with a commit newer than what some table of theirs has applied.

    ``paused`` tables need nothing up to these versions. With ``floors`` only these topics are looked at; up to there it
    is known of each that nothing is to be read (None: that is not known).
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
    """What the commits of (after, upto] appended, by topic; every topic that there is where that history is gone."""
    arrivals = bronze.arrivals(spark, table, after, upto)
    if arrivals is not None:
        return arrivals
    topics = [row["topic"] for row in bronze.read(spark, table, upto).select("topic").distinct().collect()]
    return [Arrival((topic,), upto, bronze.size(spark, table)) for topic in topics]


def read_as_of(
    spark: SparkSession, bronze: TableFormat, table: Table, topics: Collection[str], version: int
) -> DataFrame | None:
    """The records of some topics that bronze had at a version: of those that it has now without what came since, since
    upkeep removes the files of older versions. None where the history of its commits is gone, or the version with it.
    """
    newest = bronze.version(spark, table)
    came = None if newest is None or newest < version else bronze.arrivals(spark, table, version, newest)
    if newest is None or came is None:
        return None
    now = bronze.read(spark, table, newest).where(F.col("topic").isin(*topics))
    since = {arrival.partition: version for arrival in came if arrival.partition[0] in topics}
    if not since:
        return now
    later = bronze.added(spark, table, since, newest)
    return None if later is None else now.join(later.select(*COORDINATES), list(COORDINATES), how="left_anti")


def from_beginning(
    spark: SparkSession, bronze: TableFormat, table: Table, topics: Collection[str], upto: int
) -> NewRecords:
    """These topics from their beginning; all that bronze has where none is named."""
    if not topics:
        topics = [row["topic"] for row in bronze.read(spark, table, upto).select("topic").distinct().collect()]
    return NewRecords(upto, dict.fromkeys(topics, BEGINNING), bronze.size(spark, table))


def _applied(topic: str, routes: Routes, progress: Mapping[str, int]) -> int:
    """The version up to which every table of the topic has seen it."""
    tables = routes.tables.get(topic)
    if not tables:
        return routes.alone.get(topic, BEGINNING)
    return min(progress.get(table, BEGINNING) for table in tables)


@dataclass(frozen=True)
class _Starts:
    """After which versions topics are looked at."""

    routes: Routes
    progress: Mapping[str, int]
    floors: Mapping[str, int | None]

    def read_from(self, topic: str) -> int:
        """Where its records are read from: its beginning where it is new, or some table of it is not there yet of which
        there may be more than dead letters.
        """
        applied, floor = _applied(topic, self.routes, self.progress), self.floors.get(topic)
        return applied if floor is None or not self.routes.knows(topic) else max(applied, floor)

    def scanned_from(self, topic: str) -> int:
        """Where its first unread record may be: of a topic that was never read behind its floor."""
        floor = self.floors.get(topic)
        return self.read_from(topic) if floor is None or self.routes.knows(topic) else floor


def _lowest(routes: Routes, progress: Mapping[str, int]) -> int:
    """The oldest version that any known topic needs; the beginning when none is known."""
    lows = [_applied(topic, routes, progress) for topic in [*routes.tables, *routes.alone]]
    return min(lows, default=BEGINNING)
