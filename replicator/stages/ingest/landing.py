"""Objects -> bronze: every line once (promise A).

What is new is a difference: the objects that are there without those whose places bronze has. Nothing else remembers
how far a run got, so a crash anywhere before an append leaves nothing, and after it the objects are known. The append
has a number as its progress: of two drivers that saw the same objects, the second adds nothing.
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
"""An object whose last line is cut off is left alone for so long since it was last written."""

_MOST_BYTES = 64 << 20
"""Of a batch, in the store."""

_LARGEST = 256 << 20
"""An object is one row until its lines are told apart: a larger one would take the memory of all others."""


@dataclass
class KnownObjects:
    """Objects that bronze has, as far as this process knows: read from bronze (the table's id) once, and after a lost
    race again. ``appends`` is the number of the last append that they are of.
    """

    bronze: str | None = None
    appends: int = 0
    seen: dict[ObjectKey, KnownObject] = field(default_factory=dict)


@dataclass(frozen=True)
class ObjectIngestion:
    """Everything one source's bronze needs where its records lie in objects. ``most`` bounds a batch, in objects;
    ``every_seconds`` is how often a continuous run looks; ``spec`` says what it may not keep.
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
        """Records as they may be kept."""
        return records if self.spec is None else masking.mask_records(records, self.spec)

    @property
    def application(self) -> str:
        """Whose progress the appends are."""
        return f"objects/{self.source}"


@dataclass(frozen=True)
class IngestResult:
    """What one batch, or the look at a listing, came to: rows in bronze, and what somebody should know. ``long`` are
    paths of objects with too many lines, ``unread`` of those that could not be read.
    """

    rows: int = 0
    warnings: tuple[str, ...] = ()
    error: TableStopped | None = None
    long: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def ingest(spark: SparkSession, at: ObjectIngestion, *, once: bool) -> Iterator[IngestResult]:
    """All new objects into bronze, batch by batch. What is wrong with objects that are not new comes last.

    Raises Unreachable, BronzeReplaced where bronze has records from elsewhere, TopicsMissing where there is nothing to
    read ``once``; a run that goes on waits for objects.
    """
    listing = at.reader.listed(spark if once else tuning.session_for(spark, 0))
    load_known(spark, at)
    if once and not listing.objects and not at.known.seen:
        raise TopicsMissing(
            "there are no objects of the source's topics",
            where=at.source,
            mend="Check `name`, `topics` and `objects` in conf/sources, and that the sink ran.",
        )
    plan = landing_objects.plan(listing.objects, at.known.seen)
    large = [each for each in plan.new if each.size > _LARGEST]
    small = [each for each in plan.new if each.size <= _LARGEST]
    long: list[str] = []
    unread: list[str] = []
    for batch in landing_objects.batches(small, at.most, _MOST_BYTES):
        taken = _ingest_batch(at, listing, batch)
        long.extend(taken.long)
        unread.extend(taken.unread)
        yield taken
    yield IngestResult(warnings=_warnings(plan, listing), error=_refusal(plan, large, long, unread))


def count_waiting(spark: SparkSession, at: ObjectIngestion) -> int:
    """How many objects bronze lacks. Raises Unreachable."""
    load_known(spark, at)
    return len(landing_objects.plan(at.reader.listed(spark).objects, at.known.seen).new)


def load_known(spark: SparkSession, at: ObjectIngestion) -> None:
    """Know which objects bronze has. Raises BronzeReplaced where it has records that were in none."""
    known, identity = at.known, at.format.identity(spark, at.table)
    if known.bronze == identity:
        return
    progress = at.format.progress(spark, at.table, at.application)  # before the rows: what comes between is found out
    known.appends, known.seen = 0 if progress is None else progress.version, {}
    rows = [] if identity is None else object_lines.known_objects(at.format.read(spark, at.table)).collect()
    for topic, partition, offset, path, size, modified in rows:
        if path is None:
            raise BronzeReplaced(
                f"bronze has records of {topic} that were in no object: their places and those of lines have no order",
                where=at.table.location,
                mend="Read the objects into a lake with a new root.",
            )
        known.seen[topic, partition, offset] = KnownObject(path, size, modified)
    known.bronze = identity


def _ingest_batch(at: ObjectIngestion, listing: Listing, batch: Sequence[LandingObject]) -> IngestResult:
    """One batch: 1. read each object, once; 2. append the lines of those that are whole."""
    try:
        with tuning.persist(listing.read(batch)) as objects:
            judged = objects.select("path", *_object_checks()).collect()
            long, cut, blank = ([row["path"] for row in judged if row[reason]] for reason in ("long", "cut", "blank"))
            fit = {row["path"] for row in judged}.difference(long, cut)
            whole = objects.where(~F.col("path").isin(*long, *cut)) if long or cut else objects
            rows = _append(at, whole, [each for each in batch if each.path in fit])
    except FAILURES as error:
        raise engine_errors.to_table_error(error, at.table.location) from error
    told = {"are still being written: left for a later run": cut, "have no line that is not blank": blank}
    warnings = tuple(_format_paths(paths, what) for what, paths in told.items() if paths)
    unread = sorted({each.path for each in batch} - {row["path"] for row in judged})
    return IngestResult(rows, warnings, long=tuple(long), unread=tuple(unread))


def _object_checks() -> tuple[Column, ...]:
    """What keeps an object from being taken: ``long``, or ``cut`` off by a reading while somebody writes it; and
    whether it is ``blank``, so that nothing of it is.
    """
    patient_since = F.lit(int(time.time() * 1000) - _UNFINISHED_GRACE_MS)
    is_young = F.col("modified") > patient_since
    cut = object_lines.is_growing() | (object_lines.is_unfinished() & is_young)
    return object_lines.is_too_long().alias("long"), cut.alias("cut"), object_lines.is_blank().alias("blank")


def _append(at: ObjectIngestion, objects: DataFrame, whole: Sequence[LandingObject]) -> int:
    """The lines of whole objects into bronze; how many. None of them where another driver was there before."""
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
    known.seen.update((each.place, KnownObject(each.path, each.size, each.modified)) for each in whole)
    failpoints.hit("landing.objects_appended")
    return rows


def _warnings(plan: Plan, listing: Listing) -> tuple[str, ...]:
    found = {
        "have no name that a sink gives: left out": listing.strange,
        "were written again since they were read, as large as before: bronze keeps what it read": _paths(plan.touched),
        "have the place of another object, of which they may be copies: left out": _paths(plan.twins),
        "are empty": _paths(plan.empty),
    }
    return tuple(_format_paths(paths, what) for what, paths in found.items() if paths)


def _refusal(
    plan: Plan, large: Sequence[LandingObject], long: Sequence[str], unread: Sequence[str]
) -> ObjectRefused | None:
    found = {
        "were replaced after they were read, by others of another size": _paths(plan.replaced),
        "have the place of another object and not its size, so that their records are not in bronze": _paths(
            plan.clashing
        ),
        f"have more than {_LARGEST >> 20} MiB": _paths(large),
        f"have more than {landing_objects.MAX_LINES} lines": long,
        "could not be read": unread,
    }
    told = [_format_paths(paths, what) for what, paths in found.items() if paths]
    if not told:
        return None
    return ObjectRefused(
        "; ".join(told),
        mend="All others were taken. Put back what was replaced, or write what is new under a name of its own; "
        "cut what is too large. What could not be read is tried again. Where a topic was made anew its offsets began "
        "again: read it from a folder of its own, into a lake with a new root.",
    )


def _paths(objects: Sequence[LandingObject]) -> list[str]:
    return [each.path for each in objects]


def _format_paths(paths: Sequence[str], what: str) -> str:
    return f"{len(paths)} objects {what}, such as {min(paths)}"
