"""The steps of a ``transform``: ``as_deletes``, casts, the function, derived columns, and the filter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.spec import Transform
from replicator.transforms.columns.layout import index_by_case, stored_name, stored_names
from replicator.transforms.dead_letters import to_dead_letter
from replicator.transforms.keys.key_headers import MOVE_COLUMNS
from replicator.transforms.keys.row_keys import CAME_FROM
from replicator.transforms.table_transform import as_deletes, versions
from replicator.transforms.table_transform import casts as casts_of
from replicator.transforms.table_transform.versions import Versions

PASSES = "_passes"
"""The column of a change that says whether its row is in the table. Only with a ``where`` or ``as_deletes``."""

CHANGE_COLUMNS = (
    "_seq",
    "_deleted",
    "_source_ts_ms",
    "_unavailable",
    "_reject",
    *MOVE_COLUMNS,
    CAME_FROM,
    PASSES,
    as_deletes.IS_DELETE,
)
"""Columns of changes that are not columns of the row."""

_TWO_PARTS = "([^.]+[.][^.]+)$"

Function = Callable[[DataFrame], DataFrame]


def apply_steps(
    changes: DataFrame,
    transform: Transform,
    function: Function | None,
    keys: Sequence[str],
    table: str,
    over: Versions,
) -> DataFrame:
    """Apply the steps before the filter: ``as_deletes``, casts, the function, derived columns, and the shard column."""
    rows = cast(mark_deletes(changes, transform, over), transform, keys, table)
    own = index_by_case(known_names(transform, rows.columns))
    if function is not None:
        before = set(rows.columns)
        rows = function(rows)
        rows = rows.select(
            *[F.col(names.quote_spark(c)).alias(c if c in before else stored_name(c, own)) for c in rows.columns]
        )
    derived = {stored_name(name, own): F.expr(sql) for name, sql in transform.derive}
    given = list(dict.fromkeys([*row_columns(rows), *derived]))
    ours = [F.col(name) for name in rows.columns if name in CHANGE_COLUMNS]
    rows = rows.select(*[derived.get(name, F.col(names.quote_spark(name))).alias(name) for name in given], *ours)
    if transform.shard:
        rows = rows.select(*map(names.quote_spark, given), shard().alias(stored_name(transform.shard)), *ours)
    return rows


def with_passes(rows: DataFrame, transform: Transform, over: Versions) -> DataFrame:
    """Add PASSES to rows if some may not be in the table."""
    passes = [F.coalesce(F.expr(transform.where).cast("boolean"), F.lit(False))] if transform.where else []
    passes += [~F.col(as_deletes.IS_DELETE)] if transform.as_deletes else []
    return versions.evaluate(rows, reduce(and_, passes), PASSES, over) if passes else rows


def mark_deletes(changes: DataFrame, transform: Transform, over: Versions) -> DataFrame:
    """Add ``as_deletes.IS_DELETE`` to changes if there is such a condition; ``over`` are its columns with several
    versions.
    """
    return as_deletes.mark_deletes(changes, transform.as_deletes, over) if transform.as_deletes else changes


def cast(changes: DataFrame, transform: Transform, keys: Sequence[str], table: str) -> DataFrame:
    """Cast columns; a value that would change in its new type makes the change a dead letter."""
    if not transform.cast:
        return changes
    held, wanted = dict(changes.dtypes), casts_of.normalize_types(changes, cast_types(transform, changes.columns))
    casts = {name: casts_of.exact_cast(names.quote_spark(name), held[name], kind) for name, kind in wanted.items()}
    wrong = F.col("_reject")
    for name, value in casts.items() if "_at" in changes.columns else ():
        lost = F.col(names.quote_spark(name)).isNotNull() & value.isNull()
        reason = "key_undecodable" if name in keys else "type_mismatch"
        matters = lost if name in keys else lost & ~is_delete(transform)
        wrong = F.coalesce(wrong, F.when(matters, dead_letter(table, reason, names.decode(name))))
    casts["_reject"] = wrong
    return changes.select(*[casts.get(c, F.col(names.quote_spark(c))).alias(c) for c in changes.columns])


def cast_types(transform: Transform, there: Iterable[str]) -> dict[str, str]:
    """The types that columns are cast to, by their stored names among those ``there``."""
    own = index_by_case(there)
    return {stored_name(name, own): kind for name, kind in transform.cast}


def is_delete(transform: Transform) -> Column:
    """Whether a change is a delete, by itself or by ``as_deletes``."""
    return F.col("_deleted") | F.col(as_deletes.IS_DELETE) if transform.as_deletes else F.col("_deleted")


def shard_name(topic: str) -> str:
    """The value of the shard column for a topic: the last two parts of its name."""
    found = re.search(_TWO_PARTS, topic)
    return topic if found is None else found[1]


def shard() -> Column:
    """The source table of a change: the last two parts of its topic's name."""
    found = F.regexp_extract("_at.topic", _TWO_PARTS, 1)
    return F.when(found != "", found).otherwise(F.col("_at.topic"))


def dead_letter(table: str, reason: str, column: str | Column | None = None) -> Column:
    """The dead letter of a change, with the reason and the column."""
    detail = column if isinstance(column, Column) else F.lit(column)
    return to_dead_letter(table, F.lit(reason), detail=detail, seq=F.col("_seq"), at="_at.")


def row_columns(rows: DataFrame) -> list[str]:
    """The columns of changes that are columns of the row."""
    return [name for name in rows.columns if name not in CHANGE_COLUMNS]


def known_names(transform: Transform, there: Iterable[str]) -> list[str]:
    """The columns ``there``, and names that the table's formats do not reserve."""
    own = list(there)
    return [*own, *(name for name in transform.free if stored_name(name) not in own)]


def to_stored_names(columns: Iterable[str], there: Iterable[str]) -> frozenset[str]:
    """The stored names of columns, for a table that has those ``there``."""
    return frozenset(stored_names(columns, there))
