"""``apply_as_deletes``: a change whose row satisfies a condition is a delete of its key, at its own ``_seq``.

The condition is over the columns as the source has them, before any step of a ``transform``: it may read what the table
hides or leaves out, and of a column that has had several types it reads the value that is there
(:mod:`~replicator.transforms.derived.versions`). It looks at one change alone, so order, repetition and batches make no
difference (debezium.md M2). NULL is no delete. A change that did not send what the condition reads (E1) is decided
neither way: it is a dead letter, since which value an older change told depends on what has come by then.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.jvm import causes
from replicator.transforms.derived import rowwise, versions
from replicator.transforms.derived.versions import Versions

ENDS = "_apply_as_deletes"
"""Of a change, BOOLEAN: whether its row satisfies the condition."""


class NoCondition(ValueError):
    """What is said cannot be asked of each row: why, as a sentence without its end."""


def read_by(condition: str, rows: DataFrame, columns: Collection[str]) -> frozenset[str]:
    """Which of the rows' columns the condition reads; ``columns`` are those of the source. ``rows`` lie there as they
    are. Raises NoCondition.
    """
    try:
        judged = versions.judged(rows, F.expr(condition), ENDS, versions.read_as_one(rows, F.expr(condition)))
        kind = judged.schema[ENDS].dataType.simpleString()
        read = rowwise.lineage(rows, judged).of[ENDS]
    except PySparkException as error:
        raise NoCondition(causes.shortened(error)) from error
    except rowwise.NotRowwise as error:
        raise NoCondition(str(error)) from error
    except versions.PartlyRead as error:
        raise NoCondition(f"its column has had several types: {error}") from error
    except versions.OtherKind as error:
        raise NoCondition(f"it gives {error}, neither true nor false: say what is meant of each type") from error
    if kind != "boolean":
        raise NoCondition(f"it gives {kind}, neither true nor false: compare it, as in `deleted = 1`")
    strange = min(read - set(columns), default=None)
    if strange is not None or not read:
        raise NoCondition(f"{strange} is no column of the source" if read else "it reads no column")
    return read


def marked(changes: DataFrame, condition: str, over: Versions) -> DataFrame:
    """The changes with ENDS, ``over`` columns of which any with a value is meant."""
    return versions.judged(changes, F.coalesce(F.expr(condition), F.lit(False)), ENDS, over)


def undecided(read: Collection[str]) -> Column:
    """The source's name of a column that the condition reads and a change did not send; NULL where it sent all."""
    lacks = [F.when(F.array_contains("_unavailable", name), F.lit(names.decode(name))) for name in sorted(read)]
    return F.when(~F.col("_deleted"), F.coalesce(*lacks))
