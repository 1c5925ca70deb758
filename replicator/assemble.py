"""Settings -> the values that stages work on: the one place where implementations are chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from replicator import names, registry
from replicator.lake import Lake
from replicator.operate.status import Surroundings
from replicator.spec import Declaration, SourceSpec
from replicator.stages.bronze import Ingestion, sources_of
from replicator.stages.gold import Warehouse
from replicator.stages.pipeline import Pipeline
from replicator.stages.refinement import Refinement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replicator.protocols import Control, Sink, Source, TableFormat
    from replicator.settings import Settings, TargetKeys


def pipeline(spark: SparkSession, settings: Settings) -> Pipeline:
    """Everything that the configuration names."""
    lake, delta, control = Lake(settings.lake.root), _delta(), _control(spark)
    kafka = registry.load("source", "kafka")

    def reader(source: SourceSpec) -> Source:
        made: Source = kafka(
            source.bootstrap_servers, source.topics, source.options, settings.bronze.max_offsets_per_trigger
        )
        return made

    return Pipeline(
        ingestions=tuple(
            Ingestion(source.name, reader(source), delta, lake, settings.bronze.trigger_seconds)
            for source in settings.sources
        ),
        refinements=tuple(
            Refinement(source, delta, delta, control, lake, settings.dead_letter.max_share)
            for source in settings.sources
        ),
        warehouse=Warehouse(delta, delta, control, lake),
        models=settings.models,
        sinks={name: _sink(name, target) for name, target in settings.targets.items()},
    )


def recorded(
    spark: SparkSession, settings: Settings, files: Sequence[str], declared: Sequence[Declaration]
) -> tuple[Pipeline, Mapping[Ingestion, list[str]]]:
    """A pipeline over captured events, without gold and targets; and which topics of the files each source has."""
    lake, delta, control = Lake(settings.lake.root), _delta(), _control(spark)
    reader: Source = registry.load("source", "recorded")(tuple(files))
    by_source: dict[str, list[str]] = {}
    for topic, source in sorted(sources_of(reader.read(spark)).items()):
        by_source.setdefault(source, []).append(topic)
    specs = [SourceSpec(name, "", tables=tuple(declared)) for name in by_source]
    share = settings.dead_letter.max_share
    made = Pipeline(
        ingestions=(),
        refinements=tuple(Refinement(spec, delta, delta, control, lake, share) for spec in specs),
        warehouse=Warehouse(delta, delta, control, lake),
        models=(),
        sinks={},
    )
    return made, {Ingestion(name, reader, delta, lake): topics for name, topics in by_source.items()}


def refinements(
    spark: SparkSession, settings: Settings, declared: Sequence[Declaration] = ()
) -> tuple[Refinement, ...]:
    """What silver is made from: the configured sources, or where there are none all that the lake's bronze has, with
    these declarations.
    """
    lake, delta, control = Lake(settings.lake.root), _delta(), _control(spark)
    sources = settings.sources or tuple(
        SourceSpec(names.decode(folder), "", tables=tuple(declared))
        for folder in delta.tables(spark, lake.bronze_root())
    )
    return tuple(Refinement(source, delta, delta, control, lake, settings.dead_letter.max_share) for source in sources)


def surroundings(spark: SparkSession, settings: Settings) -> Surroundings:
    """What ``status`` looks at."""
    made = pipeline(spark, settings)
    readers = {ingestion.source: ingestion.reader for ingestion in made.ingestions}
    at = made.warehouse
    return Surroundings(at.lake, at.gold, at.control, readers, made.models, made.sinks)


def _delta() -> TableFormat:
    made: TableFormat = registry.load("format", "delta")()
    return made


def _control(spark: SparkSession) -> Control:
    made: Control = registry.load("control", "json")(spark)
    return made


def _sink(name: str, target: TargetKeys) -> Sink:
    from replicator import targets  # noqa: PLC0415 - psycopg2 only where a target is

    made: Sink = registry.load("sink", target.kind)(targets.connection(name, target))
    return made
