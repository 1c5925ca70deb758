"""What a rebuild would take away, and whether bronze proves that it may: it never goes back silently (promise C of
reliability.md, and its exception).
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
"""So many partitions are named."""


def describe(spark: SparkSession, begun: Rebuild, every: Sequence[TableComparison | None]) -> str:
    """What would go without bronze reaching from the beginning of its topics to the newest row, in words; '' for
    nothing. Then nothing says that what goes is wrong.
    """
    lost = [_describe_loss(each) for each in every if each is not None]
    gaps = [*_gaps(spark, begun), *_tables_ahead(spark, begun, every)] if any(lost) else []
    if not gaps:
        return ""
    return f"{' and '.join(filter(None, lost))}, and bronze may have lost what told of it: {'; '.join(gaps)}"


def _describe_loss(each: TableComparison) -> str:
    """What would go, in words; '' for nothing."""
    if each.present is None:
        return ""
    if each.found is None:
        return "every row gets another key"
    gone = [
        column for column in compare.type_mismatches(each.present, each.wanted) if column not in each.wanted.columns
    ]
    rows = (
        rebuild_diff.keys_losing_data(each.present, each.wanted, each.found, each.table.keys).count()
        if each.counts
        else 0
    )
    told = [f"{rows} rows of {each.table.name}"] if rows else []
    told += [f"the columns {', '.join(map(names.decode, gone))} of {each.table.name}"] if gone else []
    return f"{' and '.join(told)} would go or know less" if told else ""


def _gaps(spark: SparkSession, begun: Rebuild) -> list[str]:
    """Where bronze does not begin with a partition's first offset, or the objects of one do not hold all records up to
    the newest of them; and topics of the table that it does not have.
    """
    records, at = swap.records(spark, begun), begun.at
    told = (F.min("offset").alias("first"), F.count("*").alias("lines"), F.max("offset").alias("newest"))
    parts = records.groupBy("topic", "partition").agg(*told).orderBy("topic", "partition").collect()
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), begun.bronze)
    absent = routes.topics(begun.name) - {row["topic"] for row in parts}
    lacks = _lacks_lines if at.source.objects else _begins_late
    late = [f"partition {row['partition']} of {row['topic']} {word}" for row in parts if (word := lacks(row))]
    return [f"it has nothing of {topic}" for topic in sorted(absent)] + late[:_SHOWN]


def _begins_late(part: Row) -> str:
    return f"begins at offset {part['first']}" if part["first"] > 0 else ""


def _lacks_lines(part: Row) -> str:
    """Of objects, which tell the offset of their last record alone: as many lines as that counts are all there were."""
    records = (part["newest"] >> landing_objects.LINE_BITS) + 1
    return "" if part["lines"] == records else f"has {part['lines']} lines of objects that end with record {records}"


def _tables_ahead(spark: SparkSession, begun: Rebuild, every: Sequence[TableComparison | None]) -> list[str]:
    """A table whose newest row stands above all that bronze tells of it, also in records that are dead letters and by
    a TRUNCATE; of an order that changed nobody can say.
    """
    at = begun.at
    at.reached.open(at.control, at.lake.reached(at.source.name), begun.bronze)
    if at.reached.orders.get(begun.name, BY_POSITION) != at.source.order(begun.name):
        return []
    made = begun.aside.lake.dead_letters(at.source.name)
    rejected = "" if at.bronze.version(spark, made) is None else _newest(at.bronze.read(spark, made), "seq")
    beside = max(rejected, shadow.last_truncate(begun))
    ahead = [each.table.name for each in every if each is not None and _is_ahead(each, beside)]
    return [f"it ends before the newest row of {table}" for table in ahead]


def _is_ahead(each: TableComparison, beside: str) -> bool:
    """Whether it is above the rows that it is to have, and above what bronze tells beside these."""
    if each.present is None:
        return False
    return _newest(each.present, "_seq") > max(beside, _newest(each.wanted, "_seq"))


def _newest(rows: DataFrame, column: str) -> str:
    return str(rows.agg(F.coalesce(F.max(column), F.lit(""))).collect()[0][0])
