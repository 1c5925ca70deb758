"""Copies of silver tables in a second format: each follows its table's commits, as publish follows gold's.

A copy stores its progress in its own commits: the table's id and version. So every change of the table is followed in
the same way (a batch, a retry, a purge, moved columns), and a crash between the two is repaired by the next run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import failpoints, names
from replicator.errors import ReplicatorError
from replicator.jvm.failures import FAILURES
from replicator.spec import Declaration, Progress, Table
from replicator.stages import engine_errors, tuning
from replicator.stages.refinement import Refinement
from replicator.transforms.columns import type_versions
from replicator.transforms.columns.layout import Layout, key_of, stored_names
from replicator.transforms.columns.reshape import TRAILING_COLUMNS


@dataclass(frozen=True)
class TwinResult:
    """The result for one copy: ``rows`` whose key had changed, and how many of them were written or removed. ``error``
    says why it stopped. ``seconds`` is wall time.
    """

    table: str
    rows: int = 0
    written: int = 0
    seconds: float = 0.0
    error: ReplicatorError | None = None


def follow(spark: SparkSession, at: Refinement) -> Iterator[TwinResult]:
    """Make every declared twin of the source equal to its table. Yields one result per twin that was behind; a twin
    that stops has its error in its result, and the others continue.
    """
    for declared in at.source.tables:
        for format_ in declared.twins:
            started = time.monotonic()
            found = _follow_twin(spark, at, declared, at.lake.twin(at.source.name, declared.table, format_))
            if found is not None:
                yield replace(found, seconds=time.monotonic() - started)


def _follow_twin(spark: SparkSession, at: Refinement, declared: Declaration, twin: Table) -> TwinResult | None:
    try:
        return _copy_changes(spark, at, declared, twin)
    except ReplicatorError as error:
        return TwinResult(twin.name, error=error)
    except FAILURES as error:
        return TwinResult(twin.name, error=engine_errors.to_table_error(error, twin.name))


def _copy_changes(spark: SparkSession, at: Refinement, declared: Declaration, twin: Table) -> TwinResult | None:
    silver, table = at.silver, at.lake.silver(at.source.name, declared.table)
    identity, upto = silver.identity(spark, table), silver.version(spark, table)
    if identity is None or upto is None:
        return None
    reached = silver.progress(spark, twin, identity)
    if reached is not None and reached.version >= upto:
        return None
    spark = tuning.session_for(spark, silver.size(spark, table), exact_names=True)
    rows = silver.read(spark, table, upto)
    keys = key_of(rows.schema)
    twin = _twin_table(declared, twin, keys, rows.columns)
    _evolve(spark, at, twin, rows.schema)
    changed = None if reached is None else silver.changed_keys(spark, replace(table, keys=keys), reached.version, upto)
    if changed is None and _has_other_columns(spark, at, twin, rows.schema):
        applied = silver.replace(rows, twin, Progress(identity, upto))
        return TwinResult(twin.name, applied.inserted, applied.written)
    with ExitStack() as stack:
        if changed is None:
            difference = stack.enter_context(tuning.persist(_all_rows(spark, at, twin, rows)))
        else:
            difference = stack.enter_context(tuning.persist(_changed_rows(changed, rows, keys)))
        count = difference.count()
        failpoints.hit("twins.compared")
        applied = silver.put(difference, twin, Progress(identity, upto))
        failpoints.hit("twins.followed")
    return TwinResult(twin.name, count, applied.written)


def _twin_table(declared: Declaration, twin: Table, keys: tuple[str, ...], columns: Iterable[str]) -> Table:
    parts = stored_names(declared.partition_by, columns)
    return replace(twin, keys=keys, partition_by=parts, merge_on_read=declared.merge_on_read)


def _evolve(spark: SparkSession, at: Refinement, twin: Table, wanted: StructType) -> None:
    """Give the twin the columns of its table, unless the table was rebuilt without some of the twin's."""
    if at.silver.version(spark, twin) is None:
        return
    layout, own = Layout(_types(wanted), twin.keys), _types(at.silver.read(spark, twin).schema)
    evolution = type_versions.evolution_to_layout(own, layout) if type_versions.can_follow(layout, own) else None
    if evolution:
        at.silver.evolve(spark, twin, evolution)


def _has_other_columns(spark: SparkSession, at: Refinement, twin: Table, wanted: StructType) -> bool:
    """Return whether the twin has columns, types or a key that its table no longer has, because the table was
    replaced.
    """
    if at.silver.version(spark, twin) is None:
        return False
    present = at.silver.read(spark, twin).schema
    return _types(present) != _types(wanted) or set(key_of(present)) != set(twin.keys)


def _types(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema if field.name not in TRAILING_COLUMNS}


def _changed_rows(changed: DataFrame, rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Return the rows of changed keys, and deletes of the keys that the table no longer has."""
    upserts = rows.withColumn("_op", F.lit("upsert"))
    joined = changed.join(upserts, list(keys), how="left")
    operation = F.coalesce("_op", F.lit("delete")).alias("_op")
    return joined.select(*_columns(rows), operation)


def _all_rows(spark: SparkSession, at: Refinement, twin: Table, rows: DataFrame) -> DataFrame:
    """Return all rows, and deletes of the keys that only the twin has, for when the table's commits do not tell what
    changed.
    """
    upserts = rows.withColumn("_op", F.lit("upsert"))
    if at.silver.version(spark, twin) is None:
        return upserts
    gone = at.silver.read(spark, twin).join(rows, list(twin.keys), how="left_anti")
    return upserts.unionByName(gone.withColumn("_op", F.lit("delete")).select(*_columns(rows), "_op"))


def _columns(rows: DataFrame) -> list[str]:
    return [names.quote_spark(column) for column in rows.columns]
