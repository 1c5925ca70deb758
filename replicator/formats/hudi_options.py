"""Hudi's read, write and maintenance options for a table."""

from __future__ import annotations

from replicator.formats.hudi_timeline import RETAINED_COMMITS, CommitMetadata

COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"
INSERT, UPSERT, OVERWRITE = "insert", "upsert", "insert_overwrite_table"

_ALWAYS = {
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.datasource.write.commitmeta.key.prefix": "replicator.",
    "hoodie.table.timeline.timezone": "UTC",
    # the newest that Athena, EMR and readers of Hudi 0.x support; a writer of 1.x would upgrade the tables
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
    # with several partition columns, Hudi versions differ in writing keys as `name:value` or as `value`: always the
    # latter here
    "hoodie.write.complex.keygen.validation.enable": "false",
    "hoodie.write.complex.keygen.new.encoding": "true",
    "hoodie.embed.timeline.server": "false",
    # list folders instead: Hudi 1.2 leaks a file, on S3 a connection, with each read of its metadata table (0094)
    "hoodie.metadata.enable": "false",
    # find the files of a dead write by listing folders: its markers may be gone
    "hoodie.rollback.using.markers": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.simple.index.parallelism": "2",
    "hoodie.global.simple.index.parallelism": "2",
    "hoodie.parquet.small.file.limit": str(128 << 20),
    # a table is never clustered while it is written (`table_locks`): a pending plan was left by a process that died
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
    # a version that may still be read keeps its files and its commit on the timeline
    "hoodie.clean.commits.retained": str(RETAINED_COMMITS),
    "hoodie.keep.min.commits": str(RETAINED_COMMITS + 2),
    "hoodie.keep.max.commits": str(RETAINED_COMMITS + 12),
    # a table that ever had rows deleted has a column for it, which other writes lack
    "hoodie.write.set.null.for.missing.columns": "true",
}
_OVERWRITE_OPTIONS = {
    # Hudi would check that old rows can be read by the new columns; after an overwrite there are none
    "hoodie.internal.write.schema.canonicalize": "false",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    "hoodie.avro.schema.validate": "false",
}

READ = {"hoodie.datasource.read.file.index.listing.mode": "eager"}
"""Partition pruning by Spark: Hudi's own, the default, fails if there is a NULL partition, and on decimals."""


def maintenance() -> dict[str, str]:
    """The options of compaction, clustering and cleaning: run each whenever there is something to do."""
    return {
        **_ALWAYS,
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.clustering.async.max.commits": "1",
        "hoodie.clustering.inline.max.commits": "1",
        "hoodie.clustering.plan.strategy.small.file.limit": str(128 << 20),
        "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "false",
    }


def write(location: str, note: CommitMetadata, operation: str) -> dict[str, str]:
    """The options of one write."""
    parts = ",".join(note.partition_by)
    options = {
        **_ALWAYS,
        "hoodie.table.name": location.rstrip("/").rsplit("/", 1)[-1],
        "hoodie.datasource.write.table.type": note.kind,
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.partitionpath.field": parts,
    }
    if note.keys:
        generator = "ComplexKeyGenerator" if parts else "NonpartitionedKeyGenerator"
        options["hoodie.datasource.write.recordkey.field"] = ",".join(note.keys)
        options["hoodie.datasource.write.keygenerator.class"] = f"org.apache.hudi.keygen.{generator}"
    if set(note.partition_by) <= set(note.keys):
        options["hoodie.index.type"] = "SIMPLE"
    else:
        options["hoodie.index.type"] = "GLOBAL_SIMPLE"
        options["hoodie.simple.index.update.partition.path"] = "true"
    return {**options, **(_OVERWRITE_OPTIONS if operation == OVERWRITE else {})}
