"""Settings -> the objects that stages work on: the one place where implementations are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from replicator import lake_stores, names, registry, targets
from replicator.errors import ConfigError
from replicator.lake import Lake
from replicator.lake_stores import LakeStores
from replicator.operate.epoch import LakeSource
from replicator.operate.lock import LeaseOptions
from replicator.operate.maintain import LakeTables
from replicator.operate.new_checkpoint import StoppedSource
from replicator.operate.runs import RunLog, Runs
from replicator.operate.status import StatusInputs
from replicator.protocols import UNFENCED
from replicator.spec import SourceSpec
from replicator.spelling import suggest
from replicator.stages.bronze import Ingestion, sources_of
from replicator.stages.canonical import FeedContext
from replicator.stages.ingest.landing import ObjectIngestion
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.pipeline import Pipeline
from replicator.stages.refinement import Refinement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replicator.database_snapshots import Database
    from replicator.operate.verify import VerifyInputs
    from replicator.operate.verify.marks import Marks
    from replicator.protocols import Fence, Landing, Source
    from replicator.settings import Settings
    from replicator.stages.topic_tables import TopicTables


def lease_options(settings: Settings, wait: float = 0.0) -> LeaseOptions:
    """How the lake's leases are kept; ``wait`` is how many seconds to wait for an active holder."""
    return LeaseOptions(settings.lake.lease, wait, settings.s3)


def pipeline(spark: SparkSession, settings: Settings, fence: Fence = UNFENCED) -> Pipeline:
    """Everything that the configuration names; it writes only while ``fence`` allows it."""
    stores = LakeStores.of(spark, settings, fence)
    return Pipeline(
        ingestions=tuple(_ingestion(stores, source) for source in settings.sources if not source.objects),
        intakes=tuple(_intake(stores, source) for source in settings.sources if source.objects),
        refinements=tuple(map(stores.refinement, settings.sources)),
        warehouse=stores.warehouse(),
        models=settings.models,
        sinks={name: targets.sink(name, target, fence) for name, target in settings.targets.items()},
        offer=feed_context(spark, settings, fence),
    )


def _ingestion(stores: LakeStores, source: SourceSpec) -> Ingestion:
    """Bronze of a source whose records are read from Kafka."""
    keys = stores.settings.bronze
    limit = keys.max_offsets_per_trigger
    reader = kafka_source(source, limit)
    return Ingestion(source.name, reader, stores.bronze, stores.lake, keys.trigger_seconds, source, limit)


def _intake(stores: LakeStores, source: SourceSpec) -> ObjectIngestion:
    """Bronze of a source whose records a sink connector has written to objects."""
    keys = stores.settings.bronze
    landing: Landing = registry.load("source", "objects")(source.objects, source.topics)
    limit = keys.max_objects_per_batch
    return ObjectIngestion(source.name, landing, stores.bronze, stores.lake, limit, keys.trigger_seconds, spec=source)


def kafka_source(source: SourceSpec, max_offsets: int | None = None) -> Source:
    """The Kafka topics of a source."""
    made: Source = _load_kafka_source(source, max_offsets)
    return made


def _load_kafka_source(source: SourceSpec, max_offsets: int | None = None) -> Any:
    """As :func:`kafka_source`, untyped: callers use more of its methods than the Source protocol has."""
    return registry.load("source", "kafka")(source.bootstrap_servers, source.topics, source.options, max_offsets)


def feed_context(spark: SparkSession, settings: Settings, fence: Fence = UNFENCED) -> FeedContext | None:
    """The configured feeds with everything they need; None if there are none."""
    if not settings.feeds:
        return None
    kafka, sources = registry.load("outlet", "kafka"), refinements(spark, settings, SourceSpec("", ""), fence)
    return FeedContext(
        settings.feeds,
        {feed.name: kafka(spark, feed.bootstrap_servers, feed.options) for feed in settings.feeds},
        {model.name: model.key for model in settings.models},
        {each.source.name: each for each in sources},
        warehouse(spark, settings, fence),
        fence,
    )


@dataclass(frozen=True)
class Recording:
    """Captured events: their reader, and which of their ``topics`` belong to each source."""

    reader: Source
    topics: Mapping[str, list[str]]


def open_recording(spark: SparkSession, files: Sequence[str]) -> Recording:
    """The events of some files, after a first pass over all of them. Raises BadRecording."""
    reader: Source = registry.load("source", "recorded")(tuple(files))
    by_source: dict[str, list[str]] = {}
    for topic, source in sorted(sources_of(reader.read(spark)).items()):
        by_source.setdefault(source, []).append(topic)
    return Recording(reader, by_source)


def recording_pipeline(
    spark: SparkSession, settings: Settings, events: Recording, declared: SourceSpec, fence: Fence = UNFENCED
) -> tuple[Pipeline, Mapping[Ingestion, list[str]]]:
    """A pipeline over captured events, without gold and targets; and which topics of the files each of its ingestions
    reads.

    ``declared`` holds the declarations for every source, whatever its name.
    """
    stores = LakeStores.of(spark, settings, fence)
    specs = [replace(declared, name=name, topics="") for name in events.topics]
    recorded = Pipeline(
        ingestions=(),
        intakes=(),
        refinements=tuple(map(stores.refinement, specs)),
        warehouse=stores.warehouse(),
        models=(),
        sinks={},
    )
    shares = {
        Ingestion(spec.name, events.reader, stores.bronze, stores.lake, spec=spec): events.topics[spec.name]
        for spec in specs
    }
    return recorded, shares


@contextmanager
def read_topic(spark: SparkSession, source: SourceSpec) -> Iterator[TopicTables]:
    """The current contents of a source's topics, as tables, valid inside of the block."""
    from replicator.stages import topic_tables as stage  # noqa: PLC0415 - only where a topic is read

    nowhere, control = registry.load("format", "memory")(), registry.load("control", "memory")()
    with stage.read_tables(
        spark, Refinement(source, nowhere, nowhere, control, Lake("memory")), _load_kafka_source(source).bounded
    ) as tables:
        yield tables


def refinements(
    spark: SparkSession, settings: Settings, declared: SourceSpec, fence: Fence = UNFENCED
) -> tuple[Refinement, ...]:
    """Silver of every source, by name: the configured ones, and those found in the lake, to which
    ``declared`` applies.
    """
    stores = LakeStores.of(spark, settings, fence)
    configured = {source.name: source for source in settings.sources}
    present = [names.decode(folder) for folder in stores.bronze.tables(spark, stores.lake.bronze_root())]
    others = {name: replace(declared, name=name, topics="") for name in present if name not in configured}
    return tuple(stores.refinement(source) for _, source in sorted((configured | others).items()))


def warehouse(spark: SparkSession, settings: Settings, fence: Fence = UNFENCED) -> Warehouse:
    """Where models and their inputs are stored."""
    return LakeStores.of(spark, settings, fence).warehouse()


def verify_inputs(spark: SparkSession, settings: Settings, declared: SourceSpec) -> VerifyInputs:
    """What ``verify`` can compare: the lake, its targets, and the sources whose databases can be queried."""
    from replicator.operate.verify import VerifyInputs  # noqa: PLC0415 - clients of databases only where they are queried

    sources = refinements(spark, settings, declared)
    logins = {each.source.name: each.source.database for each in sources}
    databases: dict[str, Database] = {
        name: registry.load("database", login.kind)(login)
        for name, login in logins.items()
        if login is not None and login.kind in registry.CLASSES["database"]
    }
    return VerifyInputs(
        sources,
        settings.formats,
        warehouse(spark, settings),
        settings.models,
        {name: targets.sink(name, target) for name, target in settings.targets.items()},
        databases,
    )


def verification_marks(spark: SparkSession, settings: Settings) -> Marks:
    """The marks of how far the lake's tables were verified."""
    from replicator.operate.verify.marks import Marks  # noqa: PLC0415 - as above

    return Marks(
        Lake(settings.lake.root),
        lake_stores.control(spark),
        lambda: datetime.now(timezone.utc).isoformat("T", "seconds"),
    )


def lake_source(spark: SparkSession, settings: Settings, source: str, fence: Fence = UNFENCED) -> LakeSource:
    """A source as ``epoch`` works on it. Raises ConfigError for a name that neither the configuration nor
    the lake has.
    """
    known = {each.source.name: each for each in refinements(spark, settings, SourceSpec("", ""), fence)}
    if source not in known:
        raise ConfigError(f"source {source!r} does not exist{suggest(source, known)}")
    refinement = known[source]
    return LakeSource(source, refinement.lake, refinement.bronze, refinement.control, refinement.silver)


def streaming_source(settings: Settings, source: str) -> SourceSpec:
    """A source that has a checkpoint. Raises ConfigError for one that is not configured, or whose records do not come
    from Kafka.
    """
    found = settings.source(source)
    if found.objects or found.has_no_origin:
        raise ConfigError(f"source {source} does not read from Kafka: it has no checkpoint")
    return found


def stopped_source(
    spark: SparkSession, settings: Settings, source: SourceSpec, fence: Fence = UNFENCED
) -> StoppedSource:
    """A source whose checkpoint is to be recreated."""
    kafka = _load_kafka_source(source)
    ingestion = Ingestion(source.name, kafka, lake_stores.delta(fence), Lake(settings.lake.root), spec=source)
    return StoppedSource(
        ingestion, kafka, lake_stores.table_format(settings, fence), lake_stores.control(spark, fence), fence
    )


def lake_tables(settings: Settings, fence: Fence = UNFENCED) -> LakeTables:
    """The lake's tables, for maintenance."""
    return LakeTables(Lake(settings.lake.root), lake_stores.table_format(settings, fence))


def run_log(spark: SparkSession, settings: Settings, command: str) -> RunLog:
    """The log for a run that begins now."""
    return RunLog(lake_stores.control(spark), Lake(settings.lake.root), command)


def runs(spark: SparkSession, settings: Settings) -> Runs:
    """The recorded runs of the lake."""
    return Runs(lake_stores.control(spark), Lake(settings.lake.root))


def status_inputs(spark: SparkSession, settings: Settings) -> StatusInputs:
    """What ``status`` reads."""
    configured = pipeline(spark, settings)
    without_kafka = {source.name for source in settings.sources if source.has_no_origin}
    readers = {each.source: each.reader for each in configured.ingestions if each.source not in without_kafka}
    models = configured.warehouse
    intakes = {intake.source: intake for intake in configured.intakes}
    sources = {each.source.name: each for each in configured.refinements}
    sinks = {name: targets.sink(name, target, brief=True) for name, target in settings.targets.items()}
    return StatusInputs(models.lake, models.silver, models.control, readers, intakes, configured.models, sinks, sources)
