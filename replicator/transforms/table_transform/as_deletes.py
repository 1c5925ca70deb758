"""``apply_as_deletes``: a change whose row satisfies a condition is a delete of its key, at its own ``_seq``.

The condition is over the columns as the source has them, before any step of a ``transform``: it may read columns that
the table hides or leaves out, and for a column that has had several types it reads the one that has a value
(:mod:`~replicator.transforms.table_transform.versions`). It is evaluated on one change alone, so order, redelivery and
batching make no difference (debezium.md M2). NULL is no delete. A change that did not send a column that the condition
reads (E1) becomes a dead letter: the older value would depend on what has arrived by then.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.jvm import causes
from replicator.transforms.table_transform import rowwise, versions
from replicator.transforms.table_transform.versions import Versions

IS_DELETE = "_apply_as_deletes"
"""The BOOLEAN column of a change: whether its row satisfies the condition."""


class InvalidCondition(ValueError):
    """The condition cannot be evaluated on each row; the message is a sentence without its end."""


def columns_read(condition: str, rows: DataFrame, columns: Collection[str]) -> frozenset[str]:
    """The columns of the rows that the condition reads; ``columns`` are those of the source. ``rows`` must be a plain
    relation. Raises InvalidCondition.
    """
    try:
        judged = versions.evaluate(
            rows, F.expr(condition), IS_DELETE, versions.implicit_versions(rows, F.expr(condition))
        )
        kind = judged.schema[IS_DELETE].dataType.simpleString()
        read = rowwise.lineage(rows, judged).of[IS_DELETE]
    except PySparkException as error:
        raise InvalidCondition(causes.summarize(error)) from error
    except rowwise.NotRowwise as error:
        raise InvalidCondition(str(error)) from error
    except versions.IncompleteVersions as error:
        raise InvalidCondition(f"its column has had several types: {error}") from error
    except versions.TypeConflict as error:
        raise InvalidCondition(f"it returns {error}, not a boolean: handle each type explicitly") from error
    if kind != "boolean":
        raise InvalidCondition(f"it returns {kind}, not a boolean: compare it, as in `deleted = 1`")
    strange = min(read - set(columns), default=None)
    if strange is not None or not read:
        raise InvalidCondition(f"{strange} is not a column of the source" if read else "it reads no column")
    return read


def mark_deletes(changes: DataFrame, condition: str, over: Versions) -> DataFrame:
    """The changes with IS_DELETE; of each of the columns ``over`` the version that has a value is read."""
    return versions.evaluate(changes, F.coalesce(F.expr(condition), F.lit(False)), IS_DELETE, over)


def undecided_column(read: Collection[str]) -> Column:
    """The source's name of a column that the condition reads and a change did not send; NULL if it sent all."""
    lacks = [F.when(F.array_contains("_unavailable", name), F.lit(names.decode(name))) for name in sorted(read)]
    return F.when(~F.col("_deleted"), F.coalesce(*lacks))
