"""Which columns of a silver table are compared with its table at the source."""

from __future__ import annotations

from pyspark.sql.types import StructField, StructType

from replicator import names
from replicator.database_snapshots import DatabaseSnapshot
from replicator.errors import TableStopped
from replicator.operate.verify.parquet_extract import ComparedColumn
from replicator.transforms.columns.layout import version_of
from replicator.transforms.merge import SYSTEM_COLUMNS


def match(
    schema: StructType, snapshot: DatabaseSnapshot, source_table: str, silver_table: str
) -> tuple[tuple[ComparedColumn, ...], tuple[str, ...]]:
    """Return the columns that a silver table shares with its table at the source, and descriptions of those that cannot
    be compared. Raises TableStopped where a key column is one of the latter.
    """
    source_columns = {each.name: each for each in snapshot.columns(source_table)}
    stored_fields = [field for field in schema if field.name not in SYSTEM_COLUMNS]
    names_by_lower_case = {name.casefold(): name for name in source_columns}
    versions = {version_of(field.name)[0] for field in stored_fields if version_of(field.name)[1] > 1}
    compared, unknown = [], []
    for field in stored_fields:
        name = str(field.metadata.get("name") or names.decode(field.name))
        source_column = source_columns.pop(name, None) or source_columns.pop(
            names_by_lower_case.get(name.casefold(), ""), None
        )
        codec = None if source_column is None else snapshot.codec(source_column, field.dataType)
        if version_of(field.name)[0] in versions:
            unknown.append(f"{name}: it has had several types")
        elif source_column is None:
            unknown.append(f"{name}: the source has no such column")
        elif codec is None:
            unknown.append(f"{name}: {source_column.type} has several representations")
        else:
            compared.append(ComparedColumn(source_column.name, field.name, field.dataType, codec))
    unknown += [f"{name}: silver has no such column" for name in source_columns]
    _refuse_keys(stored_fields, compared, silver_table)
    return tuple(compared), tuple(unknown)


def _refuse_keys(stored_fields: list[StructField], compared: list[ComparedColumn], table: str) -> None:
    known = {each.name for each in compared}
    missing_keys = [field.name for field in stored_fields if "key" in field.metadata and field.name not in known]
    if missing_keys:
        raise TableStopped(f"its key column {names.decode(missing_keys[0])} cannot be compared", where=table)
