"""Run all stages once in one driver, over the data that is there; ``continuous`` runs them repeatedly."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from replicator.errors import NO_LAKE, SHUT, AtWork, ReplicatorError, TableMissing
from replicator.jvm.failures import FAILURES
from replicator.protocols import Sink
from replicator.spec import Model
from replicator.stages import canonical, engine_errors, gold, publish, run_report, silver, twins
from replicator.stages.bronze import Ingestion
from replicator.stages.canonical import FeedContext
from replicator.stages.ingest import bronze_stream, landing
from replicator.stages.ingest.bronze_stream import Stream
from replicator.stages.ingest.landing import ObjectIngestion
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement
from replicator.stages.run_report import CANONICAL, Report, ReportLine


@dataclass(frozen=True)
class Pipeline:
    """The objects that a run works on: sources in Kafka (``ingestions``) and in objects (``intakes``); ``sinks`` by the
    name of their connection; and ``offer``, the feeds of events for other consumers.
    """

    ingestions: tuple[Ingestion, ...]
    intakes: tuple[ObjectIngestion, ...]
    refinements: tuple[Refinement, ...]
    warehouse: Warehouse
    models: tuple[Model, ...]
    sinks: Mapping[str, Sink]
    offer: FeedContext | None = None


def run_once(spark: SparkSession, pipeline: Pipeline, stages: Collection[str], report: Report) -> None:
    """Run each stage over the data that is there. A table or a source that stops, or a target or a feed's Kafka that is
    unreachable, is reported and the rest continues; NO_LAKE is raised if a source's Kafka or the lake is unreachable.
    """
    if "bronze" in stages:
        for ingestion in pipeline.ingestions:
            started = time.monotonic()
            rows, error = _ingest_kafka(spark, ingestion)
            report(ReportLine("bronze", ingestion.source, rows, rows, seconds=time.monotonic() - started, error=error))
        for intake in pipeline.intakes:
            report(ingest_objects(spark, intake, once=True))
    run_silver(spark, pipeline, stages, report)
    run_gold(spark, pipeline, stages, report)
    run_serving(spark, pipeline, stages, report)


def run_silver(
    spark: SparkSession,
    pipeline: Pipeline,
    stages: Collection[str],
    report: Report,
    ends: Callable[[], bool] = lambda: False,
) -> None:
    """Run silver and the twins of all sources, if silver is among the stages. If the run ``ends``, the rest of a long
    backlog is left to the next run.
    """
    if "silver" in stages:
        for refinement in pipeline.refinements:
            error = _refine_source(spark, refinement, report, ends)
            if error is None and "bronze" not in stages:
                error = _missing_bronze(spark, refinement)
            if error is not None:
                report(ReportLine("silver", refinement.source.name, error=error))


def _refine_source(
    spark: SparkSession, refinement: Refinement, report: Report, ends: Callable[[], bool]
) -> ReplicatorError | None:
    """Run silver and the twins of one source. Return the error that stopped the whole source."""
    try:
        for account in silver.refine_pieces(spark, refinement, ends):
            report(run_report.of_silver(account))
        for followed in twins.follow(spark, refinement):
            report(run_report.of_twin(followed))
    except (*NO_LAKE, AtWork):
        raise
    except ReplicatorError as error:
        return error
    except FAILURES as error:
        return engine_errors.to_table_error(error, refinement.source.name)
    return None


def _missing_bronze(spark: SparkSession, refinement: Refinement) -> ReplicatorError | None:
    """Return an error if the source has no bronze at all: then "nothing new" would be misleading, as the lake may be
    the wrong one.
    """
    bronze = refinement.lake.bronze(refinement.source.name)
    if refinement.bronze.version(spark, bronze) is not None:
        return None
    fix = "`replicator run bronze` reads it from Kafka; or specify the right lake."
    return TableMissing(f"bronze of {refinement.source.name} does not exist yet", where=bronze.location, fix=fix)


def run_gold(spark: SparkSession, pipeline: Pipeline, stages: Collection[str], report: Report) -> None:
    """Refresh all models, if gold is among the stages."""
    if "gold" in stages:
        for model in gold.refresh(spark, pipeline.models, pipeline.warehouse):
            report(run_report.of_gold(model))


def run_serving(spark: SparkSession, pipeline: Pipeline, stages: Collection[str], report: Report) -> None:
    """Run the stages that write outside the lake; an unreachable target does not stop the others."""
    if "publish" in stages:
        for line in publish_all(spark, pipeline):
            report(line)
    if CANONICAL in stages and pipeline.offer is not None:
        for sent in canonical.deliver(spark, pipeline.offer):
            report(run_report.of_canonical(sent))


def republish(spark: SparkSession, pipeline: Pipeline, models: Sequence[Model]) -> Iterator[ReportLine]:
    """As :func:`publish_all`, but these models, which have targets, are sent in full. Raises Unreachable, LoginRefused,
    TargetRefused if a target cannot be told so; models told before are sent in full by the next run.
    """
    for model in models:
        if model.target is not None:
            pipeline.sinks[model.target.connection].invalidate(model)
    yield from publish_all(spark, pipeline)


def publish_all(spark: SparkSession, pipeline: Pipeline) -> Iterator[ReportLine]:
    """Yield the report lines of all targets."""
    for name in pipeline.sinks:
        yield from _publish_connection(spark, pipeline, name)


def _publish_connection(spark: SparkSession, pipeline: Pipeline, name: str) -> list[ReportLine]:
    """Return the report lines of the models of one connection; a single line for the connection if it is unreachable or
    refuses the login, because none is published then.
    """
    mine = [model for model in pipeline.models if model.is_served_by(name)]
    gold, lake = pipeline.warehouse.gold, pipeline.warehouse.lake
    try:
        return [run_report.of_publish(done) for done in publish.publish(spark, mine, gold, lake, pipeline.sinks[name])]
    except SHUT as error:
        return [ReportLine("publish", name, error=error)]


def _ingest_kafka(spark: SparkSession, ingestion: Ingestion) -> tuple[int, ReplicatorError | None]:
    """Ingest one bounded stream. Return the number of rows and the error that stopped it. NO_LAKE is raised: nothing
    can continue without Kafka or the lake.
    """
    stream: Stream | None = None
    try:
        stream = bronze_stream.ingest_stream(spark, ingestion, once=True)
        stream.finish()
    except NO_LAKE:
        raise
    except ReplicatorError as error:
        return 0 if stream is None else stream.rows, error
    return stream.rows, None


def ingest_objects(spark: SparkSession, intake: ObjectIngestion, *, once: bool) -> ReportLine:
    """Ingest the objects that are there and return the report line. NO_LAKE is raised."""
    started = time.monotonic()
    rows, warnings = 0, dict[str, None]()
    error: ReplicatorError | None = None
    try:
        for batch in landing.ingest(spark, intake, once=once):
            rows += batch.rows
            warnings |= dict.fromkeys(batch.warnings)
            error = batch.error
    except NO_LAKE:
        raise
    except ReplicatorError as stopped:
        error = stopped
    seconds = time.monotonic() - started
    return ReportLine("bronze", intake.source, rows, rows, seconds=seconds, warnings=tuple(warnings), error=error)
