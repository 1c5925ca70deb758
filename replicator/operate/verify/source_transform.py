"""Rows of a source as its table's ``transform`` makes them: what silver is compared with where it has one."""

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
    """The rows by ``keys``; ``meanings`` of columns that are as they were (see ``transforms/comparison/canonical.py``);
    ``unknown`` are columns that cannot be compared, with why.
    """

    rows: DataFrame
    keys: tuple[str, ...]
    meanings: Mapping[str, str]
    unknown: tuple[str, ...]


def apply_transform(
    at: Refinement, name: str, rows: DataFrame, columns: StructType, meanings: Mapping[str, str]
) -> TransformedRows:
    """What becomes of a source's rows: ``columns`` are all that the table has there, of which the rows lack those that
    nobody can read. Raises TableStopped where the filter, ``apply_as_deletes`` or the key needs one of these.
    """
    known = set(rows.columns)
    frame = rows.select(
        *[_cell(each.name, each.dataType.simpleString(), known) for each in columns], *_change_columns()
    )
    told, table = at.source.declaration(name).transform, at.lake.silver(at.source.name, name)
    making = transforming.bind_transform(at.source, table, name, told or Transform(), frame, key_of(columns))
    lost = {each.name for each in columns} - known
    needed = making.filtered_by.union(making.deleted_by, *(making.sources[key] for key in making.keys_there)) & lost
    if needed:
        what = f"its transform, or apply_as_deletes, needs {names.decode(min(needed))}, which cannot be compared"
        raise TableStopped(what, where=table.name)
    made = execution.apply_filter(execution.transform_changes(frame, making)).where("NOT _deleted AND _reject IS NULL")
    means = {column: _meaning(column, making, meanings) for column in making.columns}
    unknown = [column for column, sources in making.sources.items() if sources & lost or means[column] is None]
    kept = [column for column in making.columns if column not in unknown]
    return TransformedRows(
        made.select(*map(names.quote_spark, kept)),
        making.keys_there,
        {column: means[column] or "" for column in kept},
        tuple(f"{names.decode(column)}: it is made of one that is written in several ways" for column in unknown),
    )


def _cell(name: str, kind: str, known: Collection[str]) -> Column:
    value = F.col(names.quote_spark(name)) if name in known else F.lit(None)
    return value.cast(kind).alias(name)


def _change_columns() -> list[Column]:
    """What a decoded change has besides, of a row that is there."""
    return [
        F.lit("").alias("_seq"),
        F.lit(False).alias("_deleted"),
        F.lit(None).cast("bigint").alias("_source_ts_ms"),
        F.lit(None).cast("array<string>").alias("_unavailable"),
        F.lit(None).cast(f"STRUCT<{_LETTER}>").alias("_reject"),
        F.lit(None).cast(f"STRUCT<{_PLACE}>").alias("_at"),
    ]


def _meaning(column: str, making: BoundTransform, meanings: Mapping[str, str]) -> str | None:
    """How the column is compared; None where it is made of a text that may be written in another way."""
    told = making.transform
    before = making.columns[column][0]
    changed = steps.to_stored_names((*told.hashed, *told.masked, *dict(told.derive), *dict(told.cast)), [before])
    if making.function is None and before not in changed:
        return meanings.get(before, "")
    return None if any(meanings.get(source) for source in making.sources[column]) else ""
