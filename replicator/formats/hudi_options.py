"""How Hudi is told to write a table: its options, from what the table is."""

from __future__ import annotations

from replicator.formats.hudi_timeline import RETAINED_COMMITS, CommitMetadata

COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"
INSERT, UPSERT, OVERWRITE = "insert", "upsert", "insert_overwrite_table"

_ALWAYS = {
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.datasource.write.commitmeta.key.prefix": "replicator.",
    "hoodie.table.timeline.timezone": "UTC",
    # the newest that Athena, EMR and readers of Hudi 0.x know; a writer of 1.x would make the tables its own
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
    # below several partition columns versions of Hudi wrote keys as `name:value`, or as `value`: here always the latter
    "hoodie.write.complex.keygen.validation.enable": "false",
    "hoodie.write.complex.keygen.new.encoding": "true",
    "hoodie.embed.timeline.server": "false",
    # folders are listed: Hudi 1.2 leaves a file open, on S3 a connection, with each look into its metadata table (0094)
    "hoodie.metadata.enable": "false",
    # what a dead write left is looked for in the folders: no list of files leaves it out, where its markers are gone
    "hoodie.rollback.using.markers": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.simple.index.parallelism": "2",
    "hoodie.global.simple.index.parallelism": "2",
    "hoodie.parquet.small.file.limit": str(128 << 20),
    # nobody clusters a table while it is written, see `turns`: a plan that is there was left by a process that died
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
    # a version that may still be read keeps its files, and its place on the timeline
    "hoodie.clean.commits.retained": str(RETAINED_COMMITS),
    "hoodie.keep.min.commits": str(RETAINED_COMMITS + 2),
    "hoodie.keep.max.commits": str(RETAINED_COMMITS + 12),
    # a table that once had rows deleted has a column for it, which no other write brings
    "hoodie.write.set.null.for.missing.columns": "true",
}
_OVERWRITE_OPTIONS = {
    # Hudi would read old rows by the new columns, and refuses types that do not let it: here none are left to read
    "hoodie.internal.write.schema.canonicalize": "false",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    "hoodie.avro.schema.validate": "false",
}

READ = {"hoodie.datasource.read.file.index.listing.mode": "eager"}
"""Spark finds the partitions that a query needs: Hudi, which else does, fails beside one of NULL, and by decimals."""


def maintenance() -> dict[str, str]:
    """The options of compaction, clustering and cleaning: each whenever there is something to do."""
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
