"""Rebuild silver tables, or one column of a silver table, and gold models: build them again, compare the result with
the present table and write the difference in one commit per table.

The steps of one silver table: 1. the shadow table (``operate/rebuilding/shadow.py``), 2. the comparison, and a refusal
where rows would be lost that bronze no longer covers, 3. the swap (``operate/rebuilding/swap.py``), 4. the removal of
the shadow. An interrupted rebuild resumes from the step that it had reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from replicator import failpoints, names
from replicator.errors import ConfigError, ReplicatorError, TableStopped, WouldLose
from replicator.jvm.failures import FAILURES
from replicator.operate.rebuilding import losses, shadow, swap
from replicator.operate.rebuilding.rebuild_result import FINISHED, RebuildResult, summarize, with_history
from replicator.operate.rebuilding.shadow import Rebuild
from replicator.operate.rebuilding.swap import TableComparison
from replicator.spec import Table
from replicator.stages import engine_errors, tuning
from replicator.stages.refinement import Refinement
from replicator.stages.table import history_table, missing_rows, purge_horizons
from replicator.transforms import history
from replicator.transforms.columns.layout import key_of, stored_names
from replicator.transforms.comparison import compare, rebuild_diff


@dataclass(frozen=True)
class RebuildOptions:
    """The options of a rebuild: only one ``column``; comparison without writing (``dry``); permission to delete what
    bronze no longer contains (``accept_gap``).
    """

    column: str | None = None
    dry: bool = False
    accept_gap: bool = False


def attempt(name: str, work: Callable[[], RebuildResult]) -> RebuildResult:
    """Run one rebuild and return its result, with the error if it stopped, so that others continue. Raises NO_LAKE."""
    started = time.monotonic()
    try:
        result = work()
    except (ReplicatorError, *FAILURES) as error:
        result = RebuildResult(name, error=engine_errors.of_one_table(error, name))
    return replace(result, seconds=time.monotonic() - started)


def rebuild(spark: SparkSession, at: Refinement, name: str, how: RebuildOptions) -> RebuildResult:
    """Rebuild one silver table with its history, even if the history is no longer declared. Raises TableStopped,
    WouldLose, and what :func:`shadow.begin` raises.
    """
    # rows that a snapshot removed cannot be removed from a history: such a table is rebuilt without it
    if how.column is None and not missing_rows.is_done(spark, at, name):
        at = history_table.with_existing_histories(spark, at, [name])
    begun = shadow.begin(spark, at, name, how.column)
    try:
        result = _finish(spark, begun) if shadow.is_swapped(spark, begun) else _execute(spark, begun, how)
    except ReplicatorError as error:
        if not error.retry:
            shadow.clean(spark, begun)
        raise
    failpoints.hit("rebuild.settled")
    shadow.clean(spark, begun)
    return result


def _finish(spark: SparkSession, begun: Rebuild) -> RebuildResult:
    swap.finalize(spark, begun, begun.version + 1)
    return RebuildResult(begun.table.name, verdict=FINISHED)


def _execute(spark: SparkSession, begun: Rebuild, how: RebuildOptions) -> RebuildResult:
    silver = begun.at.silver
    missing_rows.refuse_pending(spark, begun.at, begun.name)
    if not shadow.is_made(spark, begun):
        shadow.make(spark, begun)
    if missing_rows.is_done(spark, begun.at, begun.name):
        missing_rows.remove(spark, begun.shadow, begun.name)
    size = silver.size(spark, begun.table) + silver.size(spark, begun.shadow_table)
    spark = tuning.session_for(spark, size, exact_names=True)
    with _compare_table(spark, begun) as table_comparison, _compare_history(spark, begun) as history_comparison:
        losses_text = "" if how.accept_gap else losses.describe(spark, begun, (table_comparison, history_comparison))
        if losses_text and not how.dry:
            fix = "The table is unchanged. With --accept-gap it is rebuilt from what bronze has."
            raise WouldLose(losses_text, where=begun.table.name, fix=fix)
        letters = 0 if how.column is not None else swap.add_dead_letters(spark, begun, dry=how.dry)
        result = replace(
            with_history(summarize(table_comparison), history_comparison),
            skipped=_count_skipped(begun, table_comparison),
            letters=letters,
        )
        if how.dry:
            needs = (f"needs --accept-gap: {losses_text}",) if losses_text else ()
            return replace(result, columns=(*result.columns, *needs))
        swap.prepare(begun)
        failpoints.hit("rebuild.announced")
        swap.finalize(spark, begun, swap.swap(spark, begun, history_comparison, table_comparison))
    return result


@contextmanager
def _compare_table(spark: SparkSession, begun: Rebuild) -> Iterator[TableComparison]:
    """Compare the table with its shadow. Purged rows stay purged, and rows that a TRUNCATE deleted may be present or
    absent, unless the declared order has changed (Q9): positions of two orders cannot be compared.
    """
    at = begun.at
    present, rebuilt = at.silver.read(spark, begun.table), at.silver.read(spark, begun.shadow_table)
    if not swap.is_reordered(begun):
        purged = purge_horizons.load(spark, at, begun.name, begun.table)
        rebuilt = rebuilt if purged is None else rebuild_diff.without_deleted(rebuilt, purged.seq)
        present = rebuild_diff.without_deleted(present, shadow.last_truncate(begun))
    keys = key_of(rebuilt.schema)
    parts = shadow.partitions(at, begun.name, rebuilt.columns)
    other = _partition_differences(at.silver.detail(spark, begun.table).partition_by, parts)
    table = replace(begun.table, keys=keys, partition_by=parts)
    with _compare(begun, table, present, rebuilt, other, same_key=set(key_of(present.schema)) == set(keys)) as found:
        yield found


@contextmanager
def _compare_history(spark: SparkSession, begun: Rebuild) -> Iterator[TableComparison | None]:
    """Compare the table's history with its shadow; yields None where the table has no history, and for a rebuild of one
    column where the history does not exist yet. Raises TableStopped where the rebuilt column would change the bounds of
    intervals.
    """
    silver, table = begun.at.silver, begun.history
    is_new = table is not None and silver.version(spark, table) is None
    if table is None or (is_new and begun.column is not None):
        yield None
        return
    rebuilt, present = silver.read(spark, begun.shadow_history), None if is_new else silver.read(spark, table)
    keys = (*key_of(rebuilt.schema), history.KEY)
    if (
        begun.column is not None
        and present is not None
        and not rebuild_diff.changed_intervals(present, rebuilt, keys).isEmpty()
    ):
        raise TableStopped(
            f"with the column {begun.column}, some states of the history have other validity periods",
            where=table.name,
            fix="Rebuild the whole table.",
        )
    same_key = present is not None and set(key_of(present.schema)) == set(key_of(rebuilt.schema))
    with _compare(begun, replace(table, keys=keys), present, rebuilt, (), same_key=same_key) as found:
        yield found


@contextmanager
def _compare(
    begun: Rebuild, table: Table, present: DataFrame | None, rebuilt: DataFrame, other: Sequence[str], *, same_key: bool
) -> Iterator[TableComparison]:
    wanted = rebuilt
    if begun.column is not None and present is not None:
        if not same_key:
            raise TableStopped("the table has another key now", where=table.name, fix="Rebuild the whole table.")
        wanted, other = _patch_column(begun.column, table, present, rebuilt), ()
    mismatches = [] if present is None else type_differences(present, wanted)
    with swap.compare_tables(table, present, wanted, [*other, *mismatches], same_key=same_key) as found:
        yield found


def _patch_column(column: str, table: Table, present: DataFrame, rebuilt: DataFrame) -> DataFrame:
    """Return the present rows with one column taken from the rebuilt ones. Raises ConfigError for a column that does
    not exist or is in the key, and TableStopped where its type changes while some rows keep their old value.
    """
    columns = list(dict.fromkeys([*present.columns, *rebuilt.columns]))
    versions = rebuild_diff.column_versions(columns, *stored_names([column], columns))
    if not set(versions) & set(rebuilt.columns) or set(versions) & set(table.keys):
        raise ConfigError(
            f"column {column} cannot be rebuilt alone",
            where=table.name,
            fix="Name a column that bronze has and that is not part of the key, as the source spells it.",
        )
    mismatches = set(
        compare.type_mismatches(
            present.select(*_select_names(present, versions)), rebuilt.select(*_select_names(rebuilt, versions))
        )
    )
    if mismatches & set(present.columns) and not rebuild_diff.unmatched(present, rebuilt, table.keys).isEmpty():
        raise TableStopped(
            f"the type of column {column} changes, and so does the position of some rows in the source's order",
            where=table.name,
            fix="Rebuild the whole table.",
        )
    return rebuild_diff.patch_columns(present, rebuilt, table.keys, versions)


def _select_names(rows: DataFrame, columns: Sequence[str]) -> list[str]:
    return [names.quote_spark(column) for column in rows.columns if column in columns]


def _count_skipped(begun: Rebuild, comparison: TableComparison) -> int:
    """Return the number of rows that the rebuild of one column leaves unchanged, since their rebuilt row has another
    position in the source's order.
    """
    if begun.column is None or comparison.current is None:
        return 0
    rebuilt = begun.at.silver.read(comparison.current.sparkSession, begun.shadow_table)
    return rebuild_diff.unmatched(comparison.current, rebuilt, comparison.table.keys).count()


def type_differences(present: DataFrame, wanted: DataFrame) -> list[str]:
    """Describe the columns whose types differ between the two sides."""
    mismatches = compare.type_mismatches(present, wanted).items()
    return [
        f"{names.decode(column)}: {before or 'none'}, now {after or 'none'}" for column, (before, after) in mismatches
    ]


def _partition_differences(stored: Sequence[str], declared: Sequence[str]) -> list[str]:
    if tuple(stored) == tuple(declared):
        return []
    before, after = (", ".join(map(names.decode, parts)) or "none" for parts in (stored, declared))
    return [f"partitions: {before}, now {after}"]
