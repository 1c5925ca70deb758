"""Reshaping of stored rows for an evolution: columns added, widened, and moved."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.spec import Evolution
from replicator.transforms import history
from replicator.transforms.merge import SYSTEM_COLUMNS

TRAILING_COLUMNS = (*history.COLUMNS, *SYSTEM_COLUMNS)
"""The columns after the source's columns, in this order, as far as a table has them."""


def apply_evolution(rows: DataFrame, evolution: Evolution) -> DataFrame:
    """Rows of a silver or history table, one to one, with the evolution's new columns after its own.

    Idempotent: what was moved, added or widened before is left alone.
    """
    stored = dict(rows.dtypes)
    moves = {to: column for column, to, kind in evolution.moved if stored.get(to) != kind}
    own = [column for column in rows.columns if column not in TRAILING_COLUMNS]
    wanted = dict(evolution.added) | dict(evolution.widened) | {to: kind for _, to, kind in evolution.moved}
    columns = [*own, *(column for column in wanted if column not in own)]
    metadata = {field.name: field.metadata for field in rows.schema}

    def value(column: str) -> Column:
        source = moves.get(column, None if column in moves.values() else column)
        taken = F.lit(None) if source not in stored else F.col(names.quote_spark(source))
        typed = taken.cast(wanted[column]) if column in wanted else taken
        return typed.alias(column, metadata=metadata.get(column) or {"name": names.decode(column)})

    ours = [_renamed(moves).alias(c) if c == "_column_seq" else F.col(c) for c in TRAILING_COLUMNS if c in stored]
    return rows.select(*map(value, columns), *ours)


def _renamed(moves: Mapping[str, str]) -> Column:
    """``_column_seq`` under the new names of its columns."""
    if not moves:
        return F.col("_column_seq")
    pairs = [part for to, column in moves.items() for part in (F.lit(column), F.lit(to))]
    return F.transform_keys("_column_seq", lambda key, _: F.coalesce(F.create_map(*pairs)[key], key))
