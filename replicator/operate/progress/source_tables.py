"""The tables that a source has, and declarations of tables that it does not have."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from replicator import names
from replicator.operate.progress.survey import Survey
from replicator.operate.status import SparkSurvey, StatusInputs
from replicator.spec import SourceSpec
from replicator.spelling import suggest
from replicator.stages.refinement import Refinement
from replicator.stages.tick import routing


def spark_survey(spark: SparkSession, at: Refinement) -> Survey:
    """Return the survey of a source's silver, by Spark."""
    return SparkSurvey(spark, StatusInputs(at.lake, at.silver, at.control, {}, {}, (), {}))


def list_known(survey: Survey, source: SourceSpec) -> set[str]:
    """Return the tables that silver has, and those that some topic has carried."""
    present = survey.tables(survey.lake.silver_root(source.name))
    identity = survey.identity(survey.lake.bronze(source.name)) or ""
    routes = routing.load_routes(survey.facts, survey.lake.routes(source.name), identity)
    return {*map(names.decode_table, present), *(table for found in routes.tables.values() for table in found)}


def without_records(spark: SparkSession, sources: Sequence[Refinement]) -> dict[str, str]:
    """Return the tables that are declared or named but that none of these sources has, mostly misspelled ones, with the
    nearest spelling; nothing where no table is known at all.
    """
    is_named = any(at.source.named for at in sources)
    known = {table for at in sources if is_named for table in list_known(spark_survey(spark, at), at.source)}
    return {table: suggest(table, known) for at in sources if known for table in at.source.missing(known)}
