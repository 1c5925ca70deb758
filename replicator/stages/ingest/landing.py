"""Objects -> bronze: every line once (promise A).

New objects are a difference: those in the listing whose places bronze does not have. Nothing else records how far a run
got, so a crash before an append leaves nothing, and after it the objects are known. Each append has a number as its
progress: if two drivers saw the same objects, the second one adds nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import failpoints, landing_objects
from replicator.errors import BronzeReplaced, ObjectRefused, TableStopped, TopicsMissing
from replicator.jvm.failures import FAILURES
from replicator.lake import Lake
from replicator.landing_objects import KnownObject, LandingObject, ObjectKey, Plan
from replicator.protocols import Landing, Listing, TableFormat
from replicator.spec import Progress, SourceSpec, Table
from replicator.stages import bronze, engine_errors, tuning
from replicator.stages.ingest import masking
from replicator.transforms import object_lines

_UNFINISHED_GRACE_MS = 600_000
"""The time since the last write during which an object with an incomplete last line is not read."""

_MOST_BYTES = 64 << 20
"""The maximum size of a batch, in bytes in the store."""

_LARGEST = 256 << 20
"""The maximum size of an object. It is one row until it is split into lines, and a larger one would take all memory."""


@dataclass
class KnownObjects:
    """Objects that bronze has, as far as this process knows: read from bronze (the table's id) once, and again after
    losing a race. ``appends`` is the number of the last append that they include.
    """

    bronze: str | None = None
    appends: int = 0
    seen: dict[ObjectKey, KnownObject] = field(default_factory=dict)


@dataclass(frozen=True)
class ObjectIngestion:
    """Everything that ingesting one source from objects needs. ``most`` is the maximum number of objects in a batch;
    ``every_seconds`` is the polling interval of a continuous run; ``spec`` says what bronze must not store.
    """

    source: str
    reader: Landing
    format: TableFormat
    lake: Lake
    most: int = 5_000
    every_seconds: float = 1.0
    known: KnownObjects = field(default_factory=KnownObjects, compare=False)
    spec: SourceSpec | None = field(default=None, compare=False)

    @property
    def table(self) -> Table:
        """The bronze table."""
        return self.lake.bronze(self.source)

    def masked(self, records: DataFrame) -> DataFrame:
        """Return records with the values masked that must not be stored."""
        return records if self.spec is None else masking.mask_records(records, self.spec)

    @property
    def application(self) -> str:
        """The app id of the progress of appends."""
        return f"objects/{self.source}"


@dataclass(frozen=True)
class IngestResult:
    """The result of one batch, or of checking a listing: rows in bronze, and warnings for the user. ``oversized`` are
    paths of objects with too many lines, ``unread`` of those that could not be read.
    """

    rows: int = 0
    warnings: tuple[str, ...] = ()
    error: TableStopped | None = None
    oversized: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def ingest(spark: SparkSession, at: ObjectIngestion, *, once: bool) -> Iterator[IngestResult]:
    """Ingest all new objects, batch by batch. Problems with objects that are not new are in the last result.

    Raises Unreachable, BronzeReplaced if bronze has records from elsewhere, TopicsMissing if there is nothing to read
    ``once``; a continuous run waits for objects.
    """
    listing = at.reader.list_objects(spark if once else tuning.session_for(spark, 0))
    load_known(spark, at)
    if once and not listing.objects and not at.known.seen:
        raise TopicsMissing(
            "no objects exist for the source's topics",
            where=at.source,
            fix="Check `name`, `topics` and `objects` in conf/sources, and that the sink ran.",
        )
    plan = landing_objects.plan(listing.objects, at.known.seen)
    large = [each for each in plan.new if each.size > _LARGEST]
    small = [each for each in plan.new if each.size <= _LARGEST]
    long: list[str] = []
    unread: list[str] = []
    for batch in landing_objects.batches(small, at.most, _MOST_BYTES):
        taken = _ingest_batch(at, listing, batch)
        long.extend(taken.oversized)
        unread.extend(taken.unread)
        yield taken
    yield IngestResult(warnings=_warnings(plan, listing), error=_refusal(plan, large, long, unread))


def count_waiting(spark: SparkSession, at: ObjectIngestion) -> int:
    """Return how many objects bronze lacks. Raises Unreachable."""
    load_known(spark, at)
    return len(landing_objects.plan(at.reader.list_objects(spark).objects, at.known.seen).new)


def load_known(spark: SparkSession, at: ObjectIngestion) -> None:
    """Load which objects bronze has. Raises BronzeReplaced if it has records that came from no object."""
    known, identity = at.known, at.format.identity(spark, at.table)
    if known.bronze == identity:
        return
    progress = at.format.progress(
        spark, at.table, at.application
    )  # before the rows, so that an append in between is noticed
    known.appends, known.seen = 0 if progress is None else progress.version, {}
    rows = [] if identity is None else object_lines.known_objects(at.format.read(spark, at.table)).collect()
    for topic, partition, offset, path, size, modified in rows:
        if path is None:
            raise BronzeReplaced(
                f"bronze has records of {topic} that did not come from objects: their offsets and those of "
                "lines have no common order",
                where=at.table.location,
                fix="Read the objects into a lake with a new root.",
            )
        known.seen[topic, partition, offset] = KnownObject(path, size, modified)
    known.bronze = identity


def _ingest_batch(at: ObjectIngestion, listing: Listing, batch: Sequence[LandingObject]) -> IngestResult:
    """Ingest one batch: 1. read each object, once; 2. append the lines of those that are complete."""
    try:
        with tuning.persist(listing.read(batch)) as objects:
            checked = objects.select("path", *_object_checks()).collect()
            long, cut, blank = ([row["path"] for row in checked if row[reason]] for reason in ("long", "cut", "blank"))
            complete_paths = {row["path"] for row in checked}.difference(long, cut)
            complete = objects.where(~F.col("path").isin(*long, *cut)) if long or cut else objects
            rows = _append(at, complete, [each for each in batch if each.path in complete_paths])
    except FAILURES as error:
        raise engine_errors.to_table_error(error, at.table.location) from error
    notes = {"are still being written: left for a later run": cut, "have only blank lines": blank}
    warnings = tuple(_format_paths(paths, note) for note, paths in notes.items() if paths)
    unread = sorted({each.path for each in batch} - {row["path"] for row in checked})
    return IngestResult(rows, warnings, oversized=tuple(long), unread=tuple(unread))


def _object_checks() -> tuple[Column, ...]:
    """Return the conditions that keep an object from being ingested: ``long`` (too many lines), or ``cut`` off because
    it was read while being written; and whether it is ``blank``, so that it has no lines to ingest.
    """
    patient_since = F.lit(int(time.time() * 1000) - _UNFINISHED_GRACE_MS)
    is_young = F.col("modified") > patient_since
    cut = object_lines.is_growing() | (object_lines.is_unfinished() & is_young)
    return object_lines.is_too_long().alias("long"), cut.alias("cut"), object_lines.is_blank().alias("blank")


def _append(at: ObjectIngestion, objects: DataFrame, complete: Sequence[LandingObject]) -> int:
    """Append the lines of complete objects to bronze and return their number; nothing if another driver did so
    first.
    """
    known, spark = at.known, objects.sparkSession
    fresh = bronze.rows(at.masked(object_lines.records(objects)), {}).sortWithinPartitions(
        "topic", "partition", "offset"
    )
    rows = 0
    failpoints.hit("landing.objects_read")
    if not fresh.isEmpty():
        rows = at.format.append(fresh, at.table, Progress(at.application, known.appends + 1)).inserted
        if not rows:
            known.bronze = None
            return 0
        known.appends, known.bronze = known.appends + 1, at.format.identity(spark, at.table)
    known.seen.update((each.place, KnownObject(each.path, each.size, each.modified)) for each in complete)
    failpoints.hit("landing.objects_appended")
    return rows


def _warnings(plan: Plan, listing: Listing) -> tuple[str, ...]:
    found = {
        "have names that no sink writes: ignored": listing.unrecognized,
        "were rewritten with the same size after they were read: bronze keeps what it read": _paths(plan.touched),
        "have the topic, partition and offset of another object and may be copies of it: ignored": _paths(plan.twins),
        "are empty": _paths(plan.empty),
    }
    return tuple(_format_paths(paths, note) for note, paths in found.items() if paths)


def _refusal(
    plan: Plan, large: Sequence[LandingObject], long: Sequence[str], unread: Sequence[str]
) -> ObjectRefused | None:
    found = {
        "were replaced by objects of another size after they were read": _paths(plan.replaced),
        "have the topic, partition and offset of another object but another size: their records are not in bronze": (
            _paths(plan.clashing)
        ),
        f"are larger than {_LARGEST >> 20} MiB": _paths(large),
        f"have more than {landing_objects.MAX_LINES} lines": long,
        "could not be read": unread,
    }
    reasons = [_format_paths(paths, note) for note, paths in found.items() if paths]
    if not reasons:
        return None
    return ObjectRefused(
        "; ".join(reasons),
        fix="All others were ingested. Restore what was replaced, or write new content under a new name; split what "
        "is too large. Unreadable objects are retried. If a topic was recreated, its offsets started over: read "
        "it from a separate folder, into a lake with a new root.",
    )


def _paths(objects: Sequence[LandingObject]) -> list[str]:
    return [each.path for each in objects]


def _format_paths(paths: Sequence[str], note: str) -> str:
    return f"{len(paths)} objects {note}, such as {min(paths)}"
