"""Writes to a Hudi table: one commit, with our metadata (the progress included) and the writer's token in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from uuid import uuid4

from pyspark.sql import DataFrame

from replicator import failpoints
from replicator.errors import StaleWriter
from replicator.formats import hudi_instant, hudi_late_files, hudi_options, validation
from replicator.formats.hudi_timeline import METADATA_KEY, TOKEN_KEY, Commit, CommitMetadata, Timeline
from replicator.jvm.failures import FAILURES
from replicator.protocols import Fence
from replicator.spec import Progress, Table

IS_DELETED = "_hoodie_is_deleted"
"""Hudi's column that marks rows to delete."""


def write(
    rows: DataFrame,
    table: Table,
    timeline: Timeline,
    operation: str,
    progress: Progress | None,
    commits: Sequence[Commit],
    fence: Fence,
    *,
    deleted: int = 0,
) -> CommitMetadata:
    """Commit rows after the ``commits`` that the caller saw, and return the commit's metadata. Raises StaleWriter if
    another writer came between, TableStopped if the table is not ours or cannot store the rows.
    """
    spark = rows.sparkSession
    last = commits[-1].note if commits else _new_table_metadata(table)
    is_overwrite = operation == hudi_options.OVERWRITE
    note = last.following(rows.drop(IS_DELETED).schema, progress, deleted=deleted, rewritten=is_overwrite)
    timeline.commits(spark)
    if list(timeline.ours[-1:]) != list(commits[-1:]):
        raise StaleWriter("another writer has changed the table meanwhile", where=table.name)
    timeline.refuse()
    _refuse_rows(rows, note, table.name)
    if commits:
        timeline.order_by_commit(spark)
    options = hudi_options.write(table.location, note, operation) | {METADATA_KEY: note.text()}
    _commit(rows, table.location, timeline, options, fence)
    return note


def _commit(rows: DataFrame, location: str, timeline: Timeline, options: Mapping[str, str], fence: Fence) -> None:
    """Write with these options and the writer's token."""
    failpoints.hit("hudi.commit_noted")
    token = {} if fence.token is None else {TOKEN_KEY: json.dumps(asdict(fence.token))}
    fence.check()
    begun = hudi_instant.utc_now()
    try:
        rows.write.format("hudi").options(**options, **token).mode("append").save(location)
    except FAILURES:
        hudi_late_files.remove(rows.sparkSession, location, timeline, begun)
        raise
    failpoints.hit("hudi.committed")


def _new_table_metadata(table: Table) -> CommitMetadata:
    """The metadata before the first commit of a new table."""
    kind = hudi_options.MERGE_ON_READ if table.merge_on_read else hudi_options.COPY_ON_WRITE
    return CommitMetadata(str(uuid4()), kind, table.keys, table.partition_by, -1, {}, "")


def _refuse_rows(rows: DataFrame, note: CommitMetadata, table: str) -> None:
    """Raise TableStopped if a Hudi table cannot store these rows."""
    validation.refuse_hudi_columns(rows.schema, note.partition_by, table)
    validation.refuse_hudi_keys(rows, note.keys, table)
    validation.refuse_partition_keys(rows, note.keys, note.partition_by, table)
