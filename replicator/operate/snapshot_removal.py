"""``replicator connect snapshot --remove-missing``: rows that a complete snapshot does not contain are to be deleted
from silver.

Effects: 1. the snapshot, between :func:`begin` and :func:`finish`, 2. a control row with the snapshot's offsets in
Kafka. Without that row, for example after a crash, nothing is deleted; silver does the rest
(``stages/table/missing_rows.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from replicator.errors import ConfigError
from replicator.formats.fencing import FencedControl
from replicator.offsets import TopicPartition
from replicator.operate import pause
from replicator.protocols import Fence, Source
from replicator.stages.refinement import Refinement
from replicator.stages.table import missing_rows, snapshots
from replicator.stages.table.snapshots import FullSnapshot
from replicator.stages.tick import routing


@dataclass(frozen=True)
class SnapshotStart:
    """The end offsets of a source's topics before a snapshot of some of its ``tables`` was requested."""

    tables: tuple[str, ...]
    ends: Mapping[TopicPartition, int]


def begin(spark: SparkSession, at: Refinement, reader: Source, tables: Sequence[str]) -> SnapshotStart:
    """Record the end offsets before the signal is sent. Raises ConfigError for a table that silver does not have, or
    for which a snapshot does not show which rows are missing, and Unreachable.
    """
    pause.find_tables(spark, [at], [f"{at.source.name}/{table}" for table in tables])
    for table in tables:
        _refuse_unsupported(at, table)
    return SnapshotStart(tuple(tables), reader.end_offsets(spark))


def finish(
    spark: SparkSession, at: Refinement, reader: Source, begun: SnapshotStart, now_ms: int, fence: Fence
) -> None:
    """Write the control row once all tables were read completely, at ``now_ms`` (ms since 1970, UTC). Raises
    Unreachable, LeaseLost.
    """
    ends = reader.end_offsets(spark)
    bronze = at.bronze.identity(spark, at.lake.bronze(at.source.name)) or ""
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), bronze)
    snapshots_by_table = {}
    for table in begun.tables:
        before, after = (_filter_topics(routes.topics(table), offsets) for offsets in (begun.ends, ends))
        snapshots_by_table[table] = FullSnapshot(now_ms, before, after)
    snapshots.add(FencedControl(at.control, fence), at.lake.snapshots(at.source.name), snapshots_by_table)


def _filter_topics(topics: frozenset[str], offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    return {partition: offset for partition, offset in offsets.items() if partition[0] in topics}


def _refuse_unsupported(at: Refinement, table: str) -> None:
    if reason := missing_rows.find_obstacle(at.source, table):
        fix = "Omit --remove-missing: the snapshot alone corrects rows that differ."
        raise ConfigError(f"missing rows cannot be determined: {reason}", where=f"{at.source.name}/{table}", fix=fix)
