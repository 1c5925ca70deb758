"""Replace the rows of a table by those of its shadow.

Effects, in this order: 1. new dead letters (keyed by Kafka offset), 2. the schema ledger and the truncates, merged so
that they hold for both the old and the new rows, 3. the history's commit, 4. the table's commit, 5. the ledger,
truncates and order of the new rows, and the version of bronze that was read. Effects 1 and 2 are idempotent; 3 and 4
happen once, by the progress that they record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import failpoints
from replicator.operate.rebuilding import shadow
from replicator.operate.rebuilding.shadow import Rebuild
from replicator.protocols import TableFormat
from replicator.spec import BY_POSITION, Applied, Progress, Table
from replicator.stages import tuning
from replicator.stages.account import Account
from replicator.stages.table import dead_letters
from replicator.stages.tick import routing, schema_ledger
from replicator.transforms.comparison import compare, rebuild_diff
from replicator.transforms.dead_letters import COORDINATES


@dataclass(frozen=True)
class TableComparison:
    """A table and its rebuilt rows (``rebuilt``). ``found`` is the result of ``compare.differences``, None where the
    keys differ or there is no table yet; ``counts`` are its rows by verdict; ``current`` is None where there is no
    table yet. ``mismatches`` describes differing columns, keys and partitions.
    """

    table: Table
    current: DataFrame | None
    rebuilt: DataFrame
    found: DataFrame | None
    counts: Mapping[str, int]
    mismatches: Sequence[str]

    @property
    def is_equal(self) -> bool:
        """Whether nothing has to be written."""
        return not self.mismatches and self.found is not None and not self.counts

    @property
    def is_replaced(self) -> bool:
        """Whether the whole table has to be replaced, since a difference of rows is not enough."""
        return bool(self.mismatches) or self.found is None

    def write(self, tables: TableFormat, progress: Progress) -> Applied:
        """Write the rebuilt rows in one commit: the difference if possible, else all rows."""
        if self.current is None or self.found is None or self.mismatches:
            return tables.replace(self.rebuilt, self.table, progress)
        rows = rebuild_diff.difference(self.current, self.rebuilt, self.found, self.table.keys)
        with tuning.persist(rows) as difference:
            return tables.put(difference, self.table, progress)


@contextmanager
def compare_tables(
    table: Table, present: DataFrame | None, wanted: DataFrame, other: Sequence[str], *, same_key: bool
) -> Iterator[TableComparison]:
    """Compare the present with the rebuilt rows; the result is persisted for the duration of the block. ``other``
    describes known differences other than rows.
    """
    if present is None or not same_key:
        yield TableComparison(table, present, wanted, None, {}, other)
        return
    with tuning.persist(compare.differences(present, wanted, table.keys)) as found:
        counts = {row[compare.VERDICT]: row["count"] for row in found.groupBy(compare.VERDICT).count().collect()}
        yield TableComparison(table, present, wanted, found, counts, other)


def add_dead_letters(spark: SparkSession, rebuild: Rebuild, *, dry: bool) -> int:
    """Effect 1: add the shadow's dead letters and return how many of them are new. With ``dry`` nothing is written.
    Raises DeadLetterShare where they are too many (R5).
    """
    at, shadow_letters = rebuild.at, rebuild.shadow.lake.dead_letters(rebuild.at.source.name)
    if at.bronze.version(spark, shadow_letters) is None:
        return 0
    rows, letters = at.bronze.read(spark, shadow_letters).drop("first_seen"), at.lake.dead_letters(at.source.name)
    new = rows
    if at.bronze.version(spark, letters) is not None:
        new = rows.join(at.bronze.read(spark, letters).select(*COORDINATES), list(COORDINATES), how="left_anti")
    count = new.count()
    if count:
        account = Account(rebuild.table.name, read=records(spark, rebuild).count(), dead_lettered=count)
        dead_letters.refuse_too_many(account, at.dead_letter_share)
    if count and not dry:
        dead_letters.write(spark, at, rows)
    return count


def records(spark: SparkSession, rebuild: Rebuild) -> DataFrame:
    """Return bronze's records of the table's topics, up to the pinned version."""
    at = rebuild.at
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), rebuild.bronze)
    bronze = at.bronze.read(spark, at.lake.bronze(at.source.name), rebuild.upto)
    return bronze.where(F.col("topic").isin(*routes.topics(rebuild.name)))


def prepare(rebuild: Rebuild) -> None:
    """Effect 2. A rebuild of one column changes neither ledger nor truncates, but marks the table as having rows that
    may lack a value.
    """
    if rebuild.column is not None:
        _mark_partial(rebuild)
        return
    at, aside, source = rebuild.at, rebuild.shadow.lake, rebuild.at.source.name
    path = at.lake.schema(source, rebuild.name)
    present = schema_ledger.load(at.control, path, rebuild.bronze)
    rebuilt = schema_ledger.load(at.control, aside.schema(source, rebuild.name), rebuild.bronze)
    merged = rebuilt.with_sightings(present.since).with_encodings(present.written)
    merged = replace(
        merged, changes={**present.changes, **rebuilt.changes}, left_out=present.left_out | rebuilt.left_out
    )
    if merged != present:
        at.control.put(path, merged.value())
    path = at.lake.truncates(source, rebuild.name)
    present_truncates = at.control.get(path) or {}
    merged_truncates = _merge_truncates(present_truncates, at.control.get(aside.truncates(source, rebuild.name)) or {})
    if merged_truncates != present_truncates:
        at.control.put(path, merged_truncates)


def swap(spark: SparkSession, rebuild: Rebuild, history: TableComparison | None, table: TableComparison) -> int:
    """Effects 3 and 4: write the differences of the history and of the table, each in one commit. Returns the version
    of the table that has its difference: a format may need a commit of its own before, for new types of columns.
    """
    if history is not None:
        _commit(spark, rebuild, history)
    failpoints.hit("rebuild.history_swapped")
    version = _commit(spark, rebuild, table)
    failpoints.hit("rebuild.table_swapped")
    return version


def _commit(spark: SparkSession, rebuild: Rebuild, comparison: TableComparison) -> int:
    if comparison.is_equal:
        return rebuild.version
    silver, name = rebuild.at.silver, shadow.swap_input(rebuild)
    before = silver.progress(spark, comparison.table, name)  # a history may be older than its table
    number = max(rebuild.version, -1 if before is None else before.version) + 1
    return comparison.write(silver, Progress(name, number)).version


def finalize(spark: SparkSession, rebuild: Rebuild, swapped: int) -> None:
    """Effect 5. Where a run has committed to the table since its version ``swapped``, the merged ledger and truncates
    stay: they hold for more than necessary, which is harmless. No run commits to a table of another transform.
    """
    at, source = rebuild.at, rebuild.at.source.name
    if rebuild.column is not None:
        return
    is_last = (at.silver.version(spark, rebuild.table) or 0) <= swapped
    for path, shadow_path in (
        (at.lake.schema(source, rebuild.name), rebuild.shadow.lake.schema(source, rebuild.name)),
        (at.lake.truncates(source, rebuild.name), rebuild.shadow.lake.truncates(source, rebuild.name)),
        (at.lake.origin(source, rebuild.name), rebuild.shadow.lake.origin(source, rebuild.name)),
    ):
        rows = at.control.get(path) or {}, at.control.get(shadow_path) or {}
        if is_last or _orders_differ(*rows) or _transforms_differ(*rows):
            _take_over(rebuild, path, shadow_path)
    failpoints.hit("rebuild.schema_settled")
    _record_order(rebuild)
    for table in filter(None, (rebuild.history, rebuild.table)):
        progress = at.silver.progress(spark, table, rebuild.bronze)
        if progress is None or progress.version < rebuild.upto:
            nothing = at.silver.read(spark, table).limit(0)
            at.silver.append(nothing, table, Progress(rebuild.bronze, rebuild.upto))


def _mark_partial(rebuild: Rebuild) -> None:
    """Record that rows of the table may have a ``_column_seq`` from now on."""
    at, path = rebuild.at, rebuild.at.lake.routes(rebuild.at.source.name)
    routes = routing.load_routes(at.control, path, rebuild.bronze)
    if rebuild.name not in routes.partial:
        at.control.put(path, routes.with_learned((), {}, {}, [rebuild.name]).value())


def _take_over(rebuild: Rebuild, path: str, shadow_path: str) -> None:
    control = rebuild.at.control
    present, rebuilt = control.get(path), control.get(shadow_path)
    if present is not None and rebuilt is None:
        control.remove(path)
    elif rebuilt is not None and rebuilt != present:
        control.put(path, rebuilt)


def _merge_truncates(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two control rows of truncates into one that holds for both. If their orders differ, the first one stays:
    the second is not used before the rows are swapped, and the first not after that.
    """
    if _orders_differ(one, other):
        return dict(one)
    if not one or not other:
        return dict(one or other)
    newest = max(filter(None, (one.get("watermark"), other.get("watermark"))), default=None)
    truncates = {**one.get("truncates", {}), **other.get("truncates", {})}
    return {**one, "watermark": newest, **({"truncates": truncates} if truncates else {})}


def _orders_differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return len({row["order"] for row in (one, other) if "order" in row}) > 1


def _transforms_differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.get("mark") != other.get("mark")


def is_reordered(rebuild: Rebuild) -> bool:
    """Whether the present rows have another order than the declared one (debezium.md Q9)."""
    at = rebuild.at
    at.state.open(at.control, at.lake.reached(at.source.name), rebuild.bronze)
    return at.state.orders.get(rebuild.name, BY_POSITION) != at.source.order(rebuild.name)


def _record_order(rebuild: Rebuild) -> None:
    """Record the order that the rows have now, and remove the purge horizon, which is a position of the old order
    (debezium.md Q9).
    """
    if not is_reordered(rebuild):
        return
    at, path = rebuild.at, rebuild.at.lake.reached(rebuild.at.source.name)
    at.control.remove(at.lake.horizon(at.source.name, rebuild.name))
    order, reached = at.source.order(rebuild.name), at.state
    others = {table: each for table, each in reached.orders.items() if table != rebuild.name}
    reached.orders = others if order == BY_POSITION else {**others, rebuild.name: order}
    reached.save(at.control, path, rebuild.upto, changed=True)
