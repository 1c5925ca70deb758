"""The rows and columns that a rebuild would delete, and whether bronze is complete enough to justify that: a rebuild
never loses data silently (promise C of reliability.md, and its exception).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from replicator import landing_objects, names
from replicator.operate.rebuilding import shadow, swap
from replicator.operate.rebuilding.shadow import Rebuild
from replicator.operate.rebuilding.swap import TableComparison
from replicator.spec import BY_POSITION
from replicator.stages.tick import routing
from replicator.transforms.comparison import compare, rebuild_diff

_SHOWN = 5
"""The number of partitions that a message names at most."""


def describe(spark: SparkSession, begun: Rebuild, comparisons: Sequence[TableComparison | None]) -> str:
    """Describe what the rebuild would delete although bronze does not cover its topics from their beginning to the
    newest row; '' if it would delete nothing, or bronze covers everything.
    """
    loss_texts = [_describe_loss(each) for each in comparisons if each is not None]
    gaps = [*_gaps(spark, begun), *_tables_ahead(spark, begun, comparisons)] if any(loss_texts) else []
    if not gaps:
        return ""
    return f"{' and '.join(filter(None, loss_texts))}, and bronze may have lost their records: {'; '.join(gaps)}"


def _describe_loss(comparison: TableComparison) -> str:
    """Describe what the rebuild would delete from one table; '' for nothing."""
    if comparison.current is None:
        return ""
    if comparison.found is None:
        return "every row gets another key"
    lost_columns = [
        column
        for column in compare.type_mismatches(comparison.current, comparison.rebuilt)
        if column not in comparison.rebuilt.columns
    ]
    rows = (
        rebuild_diff.keys_losing_data(
            comparison.current, comparison.rebuilt, comparison.found, comparison.table.keys
        ).count()
        if comparison.counts
        else 0
    )
    descriptions = [f"{rows} rows of {comparison.table.name}"] if rows else []
    descriptions += (
        [f"the columns {', '.join(map(names.decode, lost_columns))} of {comparison.table.name}"] if lost_columns else []
    )
    return f"{' and '.join(descriptions)} would be removed or lose values" if descriptions else ""


def _gaps(spark: SparkSession, begun: Rebuild) -> list[str]:
    """Describe where bronze is incomplete: partitions that do not begin with their first offset, object partitions that
    lack records before their newest one, and topics of the table that bronze does not have.
    """
    records, at = swap.records(spark, begun), begun.at
    aggregates = (F.min("offset").alias("first"), F.count("*").alias("lines"), F.max("offset").alias("newest"))
    parts = records.groupBy("topic", "partition").agg(*aggregates).orderBy("topic", "partition").collect()
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), begun.bronze)
    absent = routes.topics(begun.name) - {row["topic"] for row in parts}
    lacks = _lacks_lines if at.source.objects else _begins_late
    incomplete = [f"partition {row['partition']} of {row['topic']} {word}" for row in parts if (word := lacks(row))]
    return [f"it has no records of {topic}" for topic in sorted(absent)] + incomplete[:_SHOWN]


def _begins_late(part: Row) -> str:
    return f"begins at offset {part['first']}" if part["first"] > 0 else ""


def _lacks_lines(part: Row) -> str:
    """Describe missing lines of objects. The offset of the last record is all that is known of their number: bronze is
    complete if it has as many lines as that offset counts.
    """
    records = (part["newest"] >> landing_objects.LINE_BITS) + 1
    return "" if part["lines"] == records else f"has {part['lines']} lines of objects that end with record {records}"


def _tables_ahead(spark: SparkSession, begun: Rebuild, comparisons: Sequence[TableComparison | None]) -> list[str]:
    """Describe the tables whose newest row is above everything in bronze, dead letters and TRUNCATEs included. Returns
    nothing where the declared order has changed, since positions of two orders cannot be compared.
    """
    at = begun.at
    at.state.open(at.control, at.lake.reached(at.source.name), begun.bronze)
    if at.state.orders.get(begun.name, BY_POSITION) != at.source.order(begun.name):
        return []
    shadow_letters = begun.shadow.lake.dead_letters(at.source.name)
    rejected = (
        ""
        if at.bronze.version(spark, shadow_letters) is None
        else _newest(at.bronze.read(spark, shadow_letters), "seq")
    )
    newest_other = max(rejected, shadow.last_truncate(begun))
    ahead = [each.table.name for each in comparisons if each is not None and _is_ahead(each, newest_other)]
    return [f"it ends before the newest row of {table}" for table in ahead]


def _is_ahead(comparison: TableComparison, newest_other: str) -> bool:
    """Whether the table's newest row is above the rebuilt rows and above ``newest_other``, the newest position that
    bronze has apart from rows.
    """
    if comparison.current is None:
        return False
    return _newest(comparison.current, "_seq") > max(newest_other, _newest(comparison.rebuilt, "_seq"))


def _newest(rows: DataFrame, column: str) -> str:
    return str(rows.agg(F.coalesce(F.max(column), F.lit(""))).collect()[0][0])
