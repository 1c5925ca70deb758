"""Fill columns that were withheld from a frozen table from bronze, once the table may have them.

Stored rows do not know the values of such a column: first that is recorded in their ``_column_seq``, and then all of
bronze is merged once more, which changes only values that are unknown (debezium.md M2, E7). What bronze no longer has
stays flagged as unknown. Each step can be repeated, so a crash at any point is repaired by the next run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.spec import Progress, Table
from replicator.stages.table import history_table, schema_change
from replicator.stages.tick import arrivals, routing, transaction_cut
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import changes, skip_rules
from replicator.transforms.columns.layout import Layout, version_of
from replicator.transforms.columns.policy import Policy


def find_columns(share: TableShare) -> frozenset[str]:
    """Return the columns that were withheld from the table and are allowed now, by the name of their first version."""
    reached = share.at.state
    if share.name in reached.complete_tables:
        return frozenset()
    ledger = schema_change.load(share)
    if not ledger.left_out:
        reached.complete_tables.add(share.name)
    if not ledger.left_out or share.at.silver.version(share.spark, share.table) is None:
        return frozenset()
    return Policy(share.declaration.schema_changes, ledger.approved).allows_new(ledger.left_out)


@contextmanager
def read_all(share: TableShare, wanted: frozenset[str]) -> Iterator[tuple[TableShare, DataFrame]]:
    """Yield all that the table has read of bronze: a share that does not change the progress, and its records."""
    at, spark = share.at, share.spark
    read = routing.progress_of(spark, at.silver, share.table, share.routes.bronze)
    table, topics = at.lake.bronze(at.source.name), share.routes.topics(share.name)
    bronze = arrivals.read_as_of(spark, at.bronze, table, topics, read)
    if bronze is None:  # then the tick applies all of them once more
        bronze = at.bronze.read(spark, table, share.upto).where(F.col("topic").isin(*topics))
    cut_state = transaction_cut.load_or_create(at, share.routes.bronze)
    bronze = bronze if cut_state is None else transaction_cut.exclude_waiting(bronze, cut_state.cut)
    routes = _save_routes(share)
    with share.described(bronze) as described:
        records = skip_rules.apply_declared(share.routed(described), at.source).where(F.col("table") == share.name)
        groups = tuple(changes.survey(records).collect())
        yield replace(share, routes=routes, groups=groups, retried_rejects=[], regained=wanted), records


def mark_done(share: TableShare, filled: frozenset[str]) -> None:
    """Record that the table has these columns completely."""
    schema_change.save(share, schema_change.load(share).without_columns(filled))


def flag_unknown(share: TableShare, layout: Layout) -> None:
    """Flag the share's ``regained`` columns, in all their versions, as unknown in every stored row that is not deleted;
    also those that bronze no longer has, as the batch that brings them adds them.
    """
    flagged = sorted(share.regained | {column for column in layout.types if version_of(column)[0] in share.regained})
    tables = [share.declared_table(layout)]
    if share.declaration.has_history:
        tables.append(history_table.of(share, layout.keys))
    for table in tables:
        if share.at.silver.version(share.spark, table) is not None:
            _flag_unknown(share, table, flagged)


def _save_routes(share: TableShare) -> Routes:
    """Record in the routes that the table has unknown columns, and return them; changes that other tables of the tick
    made to the row are kept.
    """
    at, path = share.at, share.at.lake.routes(share.at.source.name)
    with at.turn:
        routes = routing.load_routes(at.control, path, share.routes.bronze).with_learned((), {}, {}, [share.name])
        at.control.put(path, routes.value())
    return routes


def _flag_unknown(share: TableShare, table: Table, flagged: Sequence[str]) -> None:
    silver, spark = share.at.silver, share.spark
    rows = silver.read(spark, table)
    known = F.map_filter(F.coalesce("_column_seq", F.create_map()), lambda column, _: ~column.isin(*flagged))
    unknown = F.create_map(*[F.lit(text) for column in flagged for text in (column, "")])
    values = {column: F.lit(None).cast(kind).alias(column) for column, kind in rows.dtypes if column in flagged}
    values["_column_seq"] = F.map_concat(known, unknown).alias("_column_seq")
    live = rows.where(~F.col("_deleted"))
    changed = live.select(*[values.get(column, F.col(names.quote_spark(column))) for column in rows.columns])
    version = silver.version(spark, table)
    progress = Progress(f"{share.routes.bronze}/regained", 0 if version is None else version + 1)
    silver.put(changed.withColumn("_op", F.lit("upsert")), table, progress)
