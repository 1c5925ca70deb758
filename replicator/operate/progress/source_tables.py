"""Which tables a source has, whoever looks, and what was declared of tables that it has not."""

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
    """Silver of a source, as Spark sees it."""
    return SparkSurvey(spark, StatusInputs(at.lake, at.silver, at.control, {}, {}, (), {}))


def list_known(of: Survey, source: SourceSpec) -> set[str]:
    """Those that silver has, and those that some topic has carried."""
    present = of.tables(of.lake.silver_root(source.name))
    identity = of.identity(of.lake.bronze(source.name)) or ""
    routes = routing.load_routes(of.facts, of.lake.routes(source.name), identity)
    return {*map(names.decode_table, present), *(table for found in routes.tables.values() for table in found)}


def without_records(spark: SparkSession, sources: Sequence[Refinement]) -> dict[str, str]:
    """Tables that something is said of, and that none of these sources has: misspelled, mostly. With the nearest
    spelling; nothing where no table is known at all.
    """
    is_asked = any(at.source.named for at in sources)
    known = {table for at in sources if is_asked for table in list_known(spark_survey(spark, at), at.source)}
    return {table: suggest(table, known) for at in sources if known for table in at.source.missing(known)}
