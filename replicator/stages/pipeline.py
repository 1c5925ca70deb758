"""All stages in one driver, over what is there now; ``continuous`` goes on from there."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
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
    """What a run works on: sources in Kafka (``ingestions``) and in objects (``intakes``). ``sinks`` are by the name of
    their connection; ``offer`` is what others get as events.
    """

    ingestions: tuple[Ingestion, ...]
    intakes: tuple[ObjectIngestion, ...]
    refinements: tuple[Refinement, ...]
    warehouse: Warehouse
    models: tuple[Model, ...]
    sinks: Mapping[str, Sink]
    offer: FeedContext | None = None


def run_once(spark: SparkSession, pipeline: Pipeline, stages: Collection[str], report: Report) -> None:
    """Each stage over what is there now. A table or a source that stops, or a target or a feed's Kafka that is out of
    reach, is reported and the rest goes on; NO_LAKE is raised where sources or the lake are.
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
    """Silver of all sources, with their tables in another format, if it is among the stages; what is left of a long
    backlog when the run ``ends`` is the next one's.
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
    """What kept silver from telling one table of a source from the others."""
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
    """Nothing new is no news where there is nothing at all: the lake may be the wrong one."""
    bronze = refinement.lake.bronze(refinement.source.name)
    if refinement.bronze.version(spark, bronze) is not None:
        return None
    mend = "`replicator run bronze` reads it from Kafka; or name the right lake."
    return TableMissing(f"there is no bronze of {refinement.source.name} yet", where=bronze.location, mend=mend)


def run_gold(spark: SparkSession, pipeline: Pipeline, stages: Collection[str], report: Report) -> None:
    """All models, if gold is among the stages."""
    if "gold" in stages:
        for model in gold.refresh(spark, pipeline.models, pipeline.warehouse):
            report(run_report.of_gold(model))


def run_serving(spark: SparkSession, pipeline: Pipeline, stages: Collection[str], report: Report) -> None:
    """What leaves the lake: a target that is out of reach keeps nothing from the others."""
    if "publish" in stages:
        for line in publish_all(spark, pipeline):
            report(line)
    if CANONICAL in stages and pipeline.offer is not None:
        for sent in canonical.deliver(spark, pipeline.offer):
            report(run_report.of_canonical(sent))


def publish_all(spark: SparkSession, pipeline: Pipeline) -> Iterator[ReportLine]:
    """The lines of all targets."""
    for name in pipeline.sinks:
        yield from _publish_connection(spark, pipeline, name)


def _publish_connection(spark: SparkSession, pipeline: Pipeline, name: str) -> list[ReportLine]:
    """The lines of the models of one connection; its own where it is out of reach or lets nobody in, since none is
    published then.
    """
    mine = [model for model in pipeline.models if model.is_served_by(name)]
    gold, lake = pipeline.warehouse.gold, pipeline.warehouse.lake
    try:
        return [run_report.of_publish(done) for done in publish.publish(spark, mine, gold, lake, pipeline.sinks[name])]
    except SHUT as error:
        return [ReportLine("publish", name, error=error)]


def _ingest_kafka(spark: SparkSession, ingestion: Ingestion) -> tuple[int, ReplicatorError | None]:
    """Rows of one bounded stream and what stopped it. NO_LAKE is raised: nothing goes on without Kafka or the lake."""
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
    """What came of the objects that are there. NO_LAKE is raised."""
    started = time.monotonic()
    rows, warnings = 0, dict[str, None]()
    error: ReplicatorError | None = None
    try:
        for some in landing.ingest(spark, intake, once=once):
            rows += some.rows
            warnings |= dict.fromkeys(some.warnings)
            error = some.error
    except NO_LAKE:
        raise
    except ReplicatorError as stopped:
        error = stopped
    seconds = time.monotonic() - started
    return ReportLine("bronze", intake.source, rows, rows, seconds=seconds, warnings=tuple(warnings), error=error)
