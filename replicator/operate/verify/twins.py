"""Comparison of silver with its copies in other formats, as of the version that a copy has reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from replicator import names
from replicator.errors import TableMissing, TableStopped
from replicator.operate.verify import ranges
from replicator.operate.verify.equality import Pair, find_differences, to_verdict
from replicator.operate.verify.verdict import TWINS, Comparison, Verdict, VerifyOptions
from replicator.spec import Table
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.transforms.columns.layout import key_of


def comparisons(spark: SparkSession, at: Refinement, formats: Sequence[str]) -> list[Comparison]:
    """Return a comparison for every twin of a source that is declared or exists in the lake."""
    twins = {(declared.table, format_) for declared in at.source.tables for format_ in declared.twins}
    for format_ in formats:
        folders = at.silver.tables(spark, at.lake.twins_root(format_, at.source.name))
        twins |= {(names.decode_table(folder), format_) for folder in folders}
    return [_comparison(at, name, format_) for name, format_ in sorted(twins)]


def _comparison(at: Refinement, name: str, format_: str) -> Comparison:
    table, twin = at.lake.silver(at.source.name, name), at.lake.twin(at.source.name, name, format_)

    def size(spark: SparkSession) -> int:
        return 2 * at.silver.read(spark, table).count()

    return Comparison(TWINS, table.name, format_, partial(_compare, at=at, table=table, twin=twin), size)


def _compare(
    spark: SparkSession, verdict: Verdict, options: VerifyOptions, *, at: Refinement, table: Table, twin: Table
) -> Verdict:
    spark = tuning.session_for(spark, at.silver.size(spark, table), exact_names=True)
    version, newest = _copied_version(spark, at, table, twin)
    one, other = at.silver.read(spark, table, version), at.silver.read(spark, twin)
    key = key_of(one.schema)
    pair = Pair(one, other, key, ranges=ranges.build(one, key, options.share))
    verdict = replace(verdict, behind=newest - version, position=f"silver version {version}")
    return to_verdict(verdict, pair, find_differences(pair, options), options)


def _copied_version(spark: SparkSession, at: Refinement, table: Table, twin: Table) -> tuple[int, int]:
    """Return the table's version that the twin has reached, and its newest. Raises TableMissing, TableStopped."""
    identity, newest = at.silver.identity(spark, table), at.silver.version(spark, table)
    if identity is None or newest is None:
        raise TableMissing("the table does not exist", where=table.location)
    if at.silver.version(spark, twin) is None:
        raise TableMissing("the twin does not exist yet", where=twin.location, fix="`replicator run silver` builds it.")
    progress = at.silver.progress(spark, twin, identity)
    if progress is None:
        raise TableStopped(
            "the twin belongs to another table, previously at this place",
            where=twin.location,
            fix="`replicator run silver` brings it up to date.",
        )
    return progress.version, newest
