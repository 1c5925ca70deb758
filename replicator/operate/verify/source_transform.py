"""Apply a table's ``transform`` to the rows of its source, for the comparison with silver."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import names
from replicator.errors import TableStopped
from replicator.spec import Transform
from replicator.stages.refinement import Refinement
from replicator.stages.table import transforming
from replicator.transforms import dead_letters
from replicator.transforms.columns.layout import key_of
from replicator.transforms.table_transform import execution, steps
from replicator.transforms.table_transform.binding import BoundTransform

_LETTER = ", ".join(f"{name}: {kind}" for name, kind in dead_letters.COLUMNS.items() if name != "first_seen")
_PLACE = ", ".join(f"{name}: {dead_letters.COLUMNS[name]}" for name in dead_letters.ADDRESS)


@dataclass(frozen=True)
class TransformedRows:
    """The transformed rows, by ``keys``; ``meanings`` of columns that are unchanged (see
    ``transforms/comparison/canonical.py``); ``unknown`` describes columns that cannot be compared.
    """

    rows: DataFrame
    keys: tuple[str, ...]
    meanings: Mapping[str, str]
    unknown: tuple[str, ...]


def apply_transform(
    at: Refinement, name: str, rows: DataFrame, columns: StructType, meanings: Mapping[str, str]
) -> TransformedRows:
    """Transform a source's rows. ``columns`` are all columns that the table has at the source; the rows lack those that
    cannot be read. Raises TableStopped where the filter, ``apply_as_deletes`` or the key needs one of these.
    """
    known = set(rows.columns)
    frame = rows.select(
        *[_cell(each.name, each.dataType.simpleString(), known) for each in columns], *_change_columns()
    )
    transform, table = at.source.declaration(name).transform, at.lake.silver(at.source.name, name)
    bound = transforming.bind_transform(at.source, table, name, transform or Transform(), frame, key_of(columns))
    unreadable = {each.name for each in columns} - known
    needed = bound.filtered_by.union(bound.deleted_by, *(bound.sources[key] for key in bound.keys_there)) & unreadable
    if needed:
        reason = f"its transform, or apply_as_deletes, needs {names.decode(min(needed))}, which cannot be compared"
        raise TableStopped(reason, where=table.name)
    transformed = execution.apply_filter(execution.transform_changes(frame, bound)).where(
        "NOT _deleted AND _reject IS NULL"
    )
    meaning_of = {column: _meaning(column, bound, meanings) for column in bound.columns}
    unknown = [
        column for column, sources in bound.sources.items() if sources & unreadable or meaning_of[column] is None
    ]
    compared = [column for column in bound.columns if column not in unknown]
    return TransformedRows(
        transformed.select(*map(names.quote_spark, compared)),
        bound.keys_there,
        {column: meaning_of[column] or "" for column in compared},
        tuple(
            f"{names.decode(column)}: it is derived from a column with several representations" for column in unknown
        ),
    )


def _cell(name: str, kind: str, known: Collection[str]) -> Column:
    value = F.col(names.quote_spark(name)) if name in known else F.lit(None)
    return value.cast(kind).alias(name)


def _change_columns() -> list[Column]:
    """Return the other columns of a decoded change, for a row that exists."""
    return [
        F.lit("").alias("_seq"),
        F.lit(False).alias("_deleted"),
        F.lit(None).cast("bigint").alias("_source_ts_ms"),
        F.lit(None).cast("array<string>").alias("_unavailable"),
        F.lit(None).cast(f"STRUCT<{_LETTER}>").alias("_reject"),
        F.lit(None).cast(f"STRUCT<{_PLACE}>").alias("_at"),
    ]


def _meaning(column: str, bound: BoundTransform, meanings: Mapping[str, str]) -> str | None:
    """Return how the column is compared; None where it is made from a text that the two sides may write in different
    ways.
    """
    transform = bound.transform
    source_name = bound.columns[column][0]
    changed = steps.to_stored_names(
        (*transform.hashed, *transform.masked, *dict(transform.derive), *dict(transform.cast)), [source_name]
    )
    if bound.function is None and source_name not in changed:
        return meanings.get(source_name, "")
    return None if any(meanings.get(source) for source in bound.sources[column]) else ""
