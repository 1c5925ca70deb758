"""The history of one table: what a tick adds to it, with the tick's progress in the same commit.

It is a table of its own besides the silver table and is committed first. A crash between the two is repaired by the
next tick: it reads from what the older of the two has applied, and merging changes again has no effect.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from replicator import key_spans, names
from replicator.spec import Table
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.stages.tick import routing
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import history, spans
from replicator.transforms.columns import type_versions
from replicator.transforms.columns.layout import Layout, with_column_metadata
from replicator.transforms.columns.reshape import TRAILING_COLUMNS
from replicator.transforms.history import Truncates


def merge_changes(share: TableShare, changes: DataFrame, layout: Layout, marks: Truncates, *, whole: bool) -> None:
    """Merge a tick's changes into the history. ``whole``: some of the truncates in ``marks`` are of this tick, so that
    rows of any key may have ended.
    """
    table = of(share, layout.keys)
    stored = _stored(share, table, layout)
    changed = history.states(changes, layout.keys)
    if stored is not None and not whole:
        keys = changed.select(*map(names.quote_spark, layout.keys)).distinct()
        [key_range] = key_spans.find_if_large([(keys, layout.keys)], share.at.silver.size(share.spark, table))
        near = stored.where(spans.may_match(stored, layout.keys, key_range, layout.keys))
        stored = near.join(keys, list(layout.keys), how="left_semi")
    found = history.difference(
        stored,
        changed,
        layout.keys,
        marks,
        partial=share.name in share.routes.partial,
        by_record=share.at.source.by_time(share.name),
    )
    rows = with_column_metadata(found, layout, "_op", *history.COLUMNS)
    with tuning.persist(rows) as difference:
        share.at.silver.put(difference, table, share.progress_of(table))


def with_existing_histories(spark: SparkSession, at: Refinement, tables: Collection[str]) -> Refinement:
    """Return the same with history switched on for those of the tables that have a history of this bronze, also if it
    is declared off. Changes that do not come from new bronze records reach the history now or never: once it is
    switched on again, it continues from its own progress.
    """
    bronze = at.bronze.identity(spark, at.lake.bronze(at.source.name))
    off = [t for t in tables if not (at.source.declaration(t).has_history or at.source.declaration(t).append_only)]
    places = {t: at.lake.history(at.source.name, t) for t in off if bronze is not None}
    existing = [t for t, place in places.items() if at.silver.version(spark, place) is not None]
    continued = [t for t in existing if at.silver.progress(spark, places[t], bronze or "") is not None]
    return replace(at, source=at.source.with_history(continued)) if continued else at


def commit_progress(share: TableShare) -> None:
    """Record in the history that the tick was read, although it contained nothing for the table."""
    table, silver = of(share, ()), share.at.silver
    if silver.version(share.spark, table) is not None:
        silver.append(silver.read(share.spark, table).limit(0), table, share.progress_of(table))


def of(share: TableShare, keys: tuple[str, ...]) -> Table:
    """Return the history table of the share's table, which has these keys."""
    return share.at.lake.history(share.at.source.name, share.name, (*keys, history.KEY))


def _stored(share: TableShare, table: Table, layout: Layout) -> DataFrame | None:
    """Read the history in the columns of the layout; None if it does not exist."""
    silver, spark = share.at.silver, share.spark
    if silver.version(spark, table) is None:
        return None
    routing.progress_of_history(spark, silver, table, share.routes.bronze)
    evolution = type_versions.evolution_to_layout(_types(silver.read(spark, table).schema), layout)
    if evolution:
        silver.evolve(spark, table, evolution)
    return silver.read(spark, table)


def _types(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema if field.name not in TRAILING_COLUMNS}
