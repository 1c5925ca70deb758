"""The health of the pipeline: the lag of each layer behind the one before it, and the batches by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator.operate.dead_letters import Count
from replicator.operate.progress.table_status import TableStatus
from replicator.operate.runs import Run

MOST_BATCHES = 500
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_WIDTHS = tuple(
    timedelta(seconds=seconds)
    for seconds in (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 7 * 86400)
)
_HOPS = (
    ("Kafka → bronze", "bronze", "record"),
    ("bronze → silver", "silver", "record"),
    ("silver → gold", "gold", "commit"),
    ("gold → target", "publish", "commit"),
)


@dataclass(frozen=True)
class Hop:
    """One step between two layers, over all of its tables.

    ``behind``: the number of ``unit`` (record, commit) that the later layer has not read yet, None if it is not known
    for any table; ``unknown``: the number of those of ``tables`` for which it is not known. ``seconds``: the greatest
    lag among the tables, None if not known. ``newest_ms``: the time of the newest change in the later layer, in epoch
    milliseconds.
    """

    name: str
    tables: int
    behind: int | None
    unit: str
    unknown: int
    seconds: float | None
    newest_ms: int | None


@dataclass(frozen=True)
class Batch:
    """The number of records that were written to a source's bronze in one batch, at one time (UTC)."""

    source: str
    at: datetime
    records: int


@dataclass(frozen=True)
class Bucket:
    """The batches within one interval that begins at ``since`` (UTC)."""

    since: datetime
    batches: int
    records: int


@dataclass(frozen=True)
class Timeline:
    """Batches by time, without gaps: ``width`` is the length of each bucket; without batches there are no buckets."""

    width: timedelta
    buckets: tuple[Bucket, ...]


@dataclass(frozen=True)
class Health:
    """Everything about the pipeline; each part is empty where the lake has nothing of it."""

    standings: tuple[TableStatus, ...] = ()
    batches: Timeline = Timeline(_WIDTHS[0], ())
    letters: tuple[Count, ...] = ()
    runs: tuple[Run, ...] = ()

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The steps of the pipeline in their order, without those that have no table."""
        of_layer = [(hop, [each for each in self.standings if each.layer == hop[1]]) for hop in _HOPS]
        return tuple(_hop(name, unit, found) for (name, _, unit), found in of_layer if found)


def last_batches(bronze: DataFrame) -> DataFrame:
    """Return one row per batch of a source, at most MOST_BATCHES, newest first: ``ms`` (epoch milliseconds),
    ``records``.

    *bronze* has bronze's rows; all rows of a batch have the same ``ingested_at``.
    """
    batches = bronze.groupBy("ingested_at").agg(F.count("*").alias("records"))
    newest = batches.orderBy(F.col("ingested_at").desc()).limit(MOST_BATCHES)
    return newest.select(F.unix_millis("ingested_at").alias("ms"), "records")


def load_batches(source: str, bronze: DataFrame) -> list[Batch]:
    """Return the last batches of a source."""
    return [Batch(source, moment(row["ms"]), row["records"]) for row in last_batches(bronze).collect()]


def timeline(batches: Sequence[Batch], limit: int = 60) -> Timeline:
    """Return batches in at most ``limit`` buckets of a round width (weeks at the most)."""
    if not batches:
        return Timeline(_WIDTHS[0], ())
    first, last = min(each.at for each in batches), max(each.at for each in batches)
    width = next((width for width in _WIDTHS if (last - first) // width < limit - 1), _WIDTHS[-1])
    start = first - (first - _EPOCH) % width
    buckets = []
    for index in range((last - start) // width + 1):
        since = start + index * width
        inside = [each for each in batches if since <= each.at < since + width]
        buckets.append(Bucket(since, len(inside), sum(each.records for each in inside)))
    return Timeline(width, tuple(buckets))


def moment(milliseconds: int) -> datetime:
    """Return the UTC time of epoch milliseconds."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def _hop(name: str, unit: str, found: Sequence[TableStatus]) -> Hop:
    known = [each.lag_events for each in found if each.lag_events is not None]
    return Hop(
        name,
        len(found),
        sum(known) if known else None,
        unit,
        len(found) - len(known),
        max((each.lag_seconds for each in found if each.lag_seconds is not None), default=None),
        max((each.newest_ms for each in found if each.newest_ms is not None), default=None),
    )
