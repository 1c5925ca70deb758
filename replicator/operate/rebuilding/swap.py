"""How a table takes over the rows of its shadow.

Effects, in this order: 1. dead letters that are new (keyed by Kafka place), 2. the schema's ledger and the truncates as
they hold for the old rows and the new, 3. the history's commit, 4. the table's commit, 5. ledger, truncates and order
as the new rows have them, and how far bronze is read. Repeating 1 and 2 changes nothing; 3 and 4 are done once, by the
progress that they record.
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
    """A table and the rows that it is to have. ``found`` is what ``compare.differences`` says, None where the two have
    not the same key; ``present`` is None where there is no table yet. ``other`` tells of columns, key and partitions
    that are not the same.
    """

    table: Table
    present: DataFrame | None
    wanted: DataFrame
    found: DataFrame | None
    counts: Mapping[str, int]
    other: Sequence[str]

    @property
    def is_equal(self) -> bool:
        """Whether nothing is to be done."""
        return not self.other and self.found is not None and not self.counts

    @property
    def is_replaced(self) -> bool:
        """Whether a difference of rows is not enough."""
        return bool(self.other) or self.found is None

    def write(self, tables: TableFormat, progress: Progress) -> Applied:
        """One commit."""
        if self.present is None or self.found is None or self.other:
            return tables.replace(self.wanted, self.table, progress)
        rows = rebuild_diff.difference(self.present, self.wanted, self.found, self.table.keys)
        with tuning.persist(rows) as difference:
            return tables.put(difference, self.table, progress)


@contextmanager
def compare_tables(
    table: Table, present: DataFrame | None, wanted: DataFrame, other: Sequence[str], *, same_key: bool
) -> Iterator[TableComparison]:
    """The comparison, kept for the time of the block; ``other`` tells what is known to differ beside rows."""
    if present is None or not same_key:
        yield TableComparison(table, present, wanted, None, {}, other)
        return
    with tuning.persist(compare.differences(present, wanted, table.keys)) as found:
        counts = {row["verdict"]: row["count"] for row in found.groupBy("verdict").count().collect()}
        yield TableComparison(table, present, wanted, found, counts, other)


def add_dead_letters(spark: SparkSession, rebuild: Rebuild, *, dry: bool) -> int:
    """Effect 1: how many dead letters are new. Raises DeadLetterShare where they are too many (R5)."""
    at, made = rebuild.at, rebuild.aside.lake.dead_letters(rebuild.at.source.name)
    if at.bronze.version(spark, made) is None:
        return 0
    rows, known = at.bronze.read(spark, made).drop("first_seen"), at.lake.dead_letters(at.source.name)
    new = rows
    if at.bronze.version(spark, known) is not None:
        new = rows.join(at.bronze.read(spark, known).select(*COORDINATES), list(COORDINATES), how="left_anti")
    count = new.count()
    if count:
        account = Account(rebuild.table.name, read=records(spark, rebuild).count(), dead_lettered=count)
        dead_letters.refuse_too_many(account, at.dead_letter_share)
    if count and not dry:
        dead_letters.write(spark, at, rows)
    return count


def records(spark: SparkSession, rebuild: Rebuild) -> DataFrame:
    """What bronze has of the table's topics, up to the pinned version."""
    at = rebuild.at
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), rebuild.bronze)
    bronze = at.bronze.read(spark, at.lake.bronze(at.source.name), rebuild.upto)
    return bronze.where(F.col("topic").isin(*routes.topics(rebuild.name)))


def prepare(rebuild: Rebuild) -> None:
    """Effect 2. Of one column nothing more is known; but rows may not know it now."""
    if rebuild.column is not None:
        _mark_partial(rebuild)
        return
    at, aside, source = rebuild.at, rebuild.aside.lake, rebuild.at.source.name
    path = at.lake.schema(source, rebuild.name)
    now = schema_ledger.load(at.control, path, rebuild.bronze)
    then = schema_ledger.load(at.control, aside.schema(source, rebuild.name), rebuild.bronze)
    both = then.seen(now.since).noting(now.written)
    both = replace(both, changes={**now.changes, **then.changes}, left_out=now.left_out | then.left_out)
    if both != now:
        at.control.put(path, both.value())
    path = at.lake.truncates(source, rebuild.name)
    was = at.control.get(path) or {}
    known = _merge_truncates(was, at.control.get(aside.truncates(source, rebuild.name)) or {})
    if known != was:
        at.control.put(path, known)


def swap(spark: SparkSession, rebuild: Rebuild, history: TableComparison | None, table: TableComparison) -> None:
    """Effects 3 and 4: what differs, each in one commit."""
    if history is not None:
        _commit(spark, rebuild, history)
    failpoints.hit("rebuild.history_swapped")
    _commit(spark, rebuild, table)
    failpoints.hit("rebuild.table_swapped")


def _commit(spark: SparkSession, rebuild: Rebuild, each: TableComparison) -> None:
    if each.is_equal:
        return
    silver, name = rebuild.at.silver, shadow.swap_input(rebuild)
    before = silver.progress(spark, each.table, name)  # a history may be older than its table
    number = max(rebuild.version, -1 if before is None else before.version) + 1
    each.write(silver, Progress(name, number))


def finalize(spark: SparkSession, rebuild: Rebuild) -> None:
    """Effect 5. Where a run has moved the table on since, the ledger and the truncates hold for more than they need."""
    at, source = rebuild.at, rebuild.at.source.name
    if rebuild.column is not None:
        return
    is_last = (at.silver.version(spark, rebuild.table) or 0) <= rebuild.version + 1
    for mine, made in (
        (at.lake.schema(source, rebuild.name), rebuild.aside.lake.schema(source, rebuild.name)),
        (at.lake.truncates(source, rebuild.name), rebuild.aside.lake.truncates(source, rebuild.name)),
        (at.lake.origin(source, rebuild.name), rebuild.aside.lake.origin(source, rebuild.name)),
    ):
        if is_last or _orders_differ(at.control.get(mine) or {}, at.control.get(made) or {}):
            _take_over(rebuild, mine, made)
    failpoints.hit("rebuild.schema_settled")
    _record_order(rebuild)
    for table in filter(None, (rebuild.history, rebuild.table)):
        done = at.silver.progress(spark, table, rebuild.bronze)
        if done is None or done.version < rebuild.upto:
            nothing = at.silver.read(spark, table).limit(0)
            at.silver.append(nothing, table, Progress(rebuild.bronze, rebuild.upto))


def _mark_partial(rebuild: Rebuild) -> None:
    """Some row of the table may have a ``_column_seq`` from now on."""
    at, path = rebuild.at, rebuild.at.lake.routes(rebuild.at.source.name)
    routes = routing.load_routes(at.control, path, rebuild.bronze)
    if rebuild.name not in routes.partial:
        at.control.put(path, routes.learned((), {}, {}, [rebuild.name]).value())


def _take_over(rebuild: Rebuild, path: str, made: str) -> None:
    control = rebuild.at.control
    now, then = control.get(path), control.get(made)
    if now is not None and then is None:
        control.remove(path)
    elif then is not None and then != now:
        control.put(path, then)


def _merge_truncates(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A control row of truncates that holds for both; of another order the first: until the rows are swapped nobody
    goes on by the other, and behind that nobody by the first.
    """
    if _orders_differ(one, other):
        return dict(one)
    if not one or not other:
        return dict(one or other)
    newest = max(filter(None, (one.get("watermark"), other.get("watermark"))), default=None)
    every = {**one.get("truncates", {}), **other.get("truncates", {})}
    return {**one, "watermark": newest, **({"truncates": every} if every else {})}


def _orders_differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return len({row["order"] for row in (one, other) if "order" in row}) > 1


def is_reordered(rebuild: Rebuild) -> bool:
    """Whether the table's rows have another order than they are to have (debezium.md Q9)."""
    at = rebuild.at
    at.reached.open(at.control, at.lake.reached(at.source.name), rebuild.bronze)
    return at.reached.orders.get(rebuild.name, BY_POSITION) != at.source.order(rebuild.name)


def _record_order(rebuild: Rebuild) -> None:
    """Take note of what orders the rows now (debezium.md Q9). What was purged was so in the other order."""
    if not is_reordered(rebuild):
        return
    at, path = rebuild.at, rebuild.at.lake.reached(rebuild.at.source.name)
    at.control.remove(at.lake.horizon(at.source.name, rebuild.name))
    order, reached = at.source.order(rebuild.name), at.reached
    others = {table: each for table, each in reached.orders.items() if table != rebuild.name}
    reached.orders = others if order == BY_POSITION else {**others, rebuild.name: order}
    reached.save(at.control, path, rebuild.upto, changed=True)
