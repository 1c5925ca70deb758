"""Settings -> the objects that stages work on: the one place where implementations are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from replicator import names, registry, targets
from replicator.errors import ConfigError
from replicator.formats.fencing import FencedControl, FencedFormat
from replicator.formats.mixed import MixedFormat
from replicator.lake import Lake
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
    from replicator.protocols import Control, Fence, Landing, Source, TableFormat
    from replicator.settings import Settings
    from replicator.stages.topic_tables import TopicTables


def lease_options(settings: Settings, wait: float = 0.0) -> LeaseOptions:
    """How the lake's leases are kept; ``wait`` is how many seconds to wait for an active holder."""
    return LeaseOptions(settings.lake.lease, wait, settings.s3)


def pipeline(spark: SparkSession, settings: Settings, fence: Fence = UNFENCED) -> Pipeline:
    """Everything that the configuration names; it writes only while ``fence`` allows it."""
    lake, delta, control = Lake(settings.lake.root), _delta(fence), _control(spark, fence)
    silver = table_format(settings, fence)
    objects, bronze_keys = registry.load("source", "objects"), settings.bronze

    def intake(source: SourceSpec) -> ObjectIngestion:
        landing: Landing = objects(source.objects, source.topics)
        return ObjectIngestion(
            source.name,
            landing,
            delta,
            lake,
            bronze_keys.max_objects_per_batch,
            bronze_keys.trigger_seconds,
            spec=source,
        )

    return Pipeline(
        ingestions=tuple(
            Ingestion(
                source.name,
                kafka_source(source, bronze_keys.max_offsets_per_trigger),
                delta,
                lake,
                bronze_keys.trigger_seconds,
                source,
                bronze_keys.max_offsets_per_trigger,
            )
            for source in settings.sources
            if not source.objects
        ),
        intakes=tuple(intake(source) for source in settings.sources if source.objects),
        refinements=tuple(
            Refinement(source, delta, silver, control, lake, *_silver_batch_settings(settings))
            for source in settings.sources
        ),
        warehouse=Warehouse(silver, delta, control, lake),
        models=settings.models,
        sinks={name: targets.sink(name, target, fence) for name, target in settings.targets.items()},
        offer=feed_context(spark, settings, fence),
    )


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
    lake, delta, control = Lake(settings.lake.root), _delta(fence), _control(spark, fence)
    silver = table_format(settings, fence)
    specs = [replace(declared, name=name, topics="") for name in events.topics]
    recorded = Pipeline(
        ingestions=(),
        intakes=(),
        refinements=tuple(
            Refinement(spec, delta, silver, control, lake, *_silver_batch_settings(settings)) for spec in specs
        ),
        warehouse=Warehouse(silver, delta, control, lake),
        models=(),
        sinks={},
    )
    return recorded, {Ingestion(s.name, events.reader, delta, lake, spec=s): events.topics[s.name] for s in specs}


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
    lake, delta, control = Lake(settings.lake.root), _delta(fence), _control(spark, fence)
    configured = {source.name: source for source in settings.sources}
    present = [names.decode(folder) for folder in delta.tables(spark, lake.bronze_root())]
    others = {name: replace(declared, name=name, topics="") for name in present if name not in configured}
    silver, every = table_format(settings, fence), sorted((configured | others).items())
    return tuple(
        Refinement(source, delta, silver, control, lake, *_silver_batch_settings(settings)) for _, source in every
    )


def warehouse(spark: SparkSession, settings: Settings, fence: Fence = UNFENCED) -> Warehouse:
    """Where models and their inputs are stored."""
    return Warehouse(table_format(settings, fence), _delta(fence), _control(spark, fence), Lake(settings.lake.root))


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
        _control(spark, UNFENCED),
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
    ingestion = Ingestion(source.name, kafka, _delta(fence), Lake(settings.lake.root), spec=source)
    return StoppedSource(ingestion, kafka, table_format(settings, fence), _control(spark, fence), fence)


def lake_tables(settings: Settings, fence: Fence = UNFENCED) -> LakeTables:
    """The lake's tables, for maintenance."""
    return LakeTables(Lake(settings.lake.root), table_format(settings, fence))


def run_log(spark: SparkSession, settings: Settings, command: str) -> RunLog:
    """The log for a run that begins now."""
    return RunLog(_control(spark, UNFENCED), Lake(settings.lake.root), command)


def runs(spark: SparkSession, settings: Settings) -> Runs:
    """The recorded runs of the lake."""
    return Runs(_control(spark, UNFENCED), Lake(settings.lake.root))


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


def table_format(settings: Settings, fence: Fence = UNFENCED) -> TableFormat:
    """Tables in the configured formats."""
    formats: dict[str, TableFormat] = {name: _format(name, fence) for name in settings.formats}
    return formats["delta"] if len(formats) == 1 else MixedFormat(formats)


def _delta(fence: Fence) -> TableFormat:
    return _format("delta", fence)


def _format(name: str, fence: Fence) -> TableFormat:
    made: TableFormat = registry.load("format", name)(fence=fence)
    return FencedFormat(made, fence)


def _control(spark: SparkSession, fence: Fence) -> Control:
    made: Control = registry.load("control", "json")(spark)
    return FencedControl(made, fence)


def _silver_batch_settings(settings: Settings) -> tuple[float, int]:
    """The settings of a silver batch: the greatest share of dead letters, and how many tables are processed at once."""
    return settings.dead_letter.max_share, settings.silver.tables_at_once
