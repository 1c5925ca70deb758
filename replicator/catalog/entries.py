"""The catalog entries of a table of the lake: one or several, since readers have different needs.

===========================  ============================================================================== gold ``m``
``m``: the table silver ``t`` in Delta        ``t__all``: the table, including deleted rows and system columns;
                             ``t``: a view of the live rows with the source's columns, for users' queries
silver ``t`` in Hudi         the same, with Hudi's five columns before the others in ``t__all`` ... merge on read
``t__all_rt`` as it is now, ``t__all_ro`` as of the last compaction; ``t`` shows the
                             former
===========================  ==============================================================================

A history is a silver table whose view shows intervals.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from urllib.parse import unquote

from pyspark.sql import types as T

from replicator import names
from replicator.catalog import presto_view
from replicator.catalog.columns import Column, columns, one_line
from replicator.errors import CatalogRefused
from replicator.spec import TableDetail
from replicator.transforms import history
from replicator.transforms.merge import SYSTEM_COLUMNS

ALL = "__all"
"""The suffix of the entry with every row of a silver table."""

NAME_LENGTH = 255
"""The greatest length of a name in Glue, in characters."""

DESCRIPTION_LENGTH = 2048
"""The greatest length of a table's description in Glue, in characters."""

HUDI_COLUMNS = (
    "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name",
)  # fmt: skip
"""The columns that Hudi puts before a table's own; all STRING."""

_READ_BY_ATHENA = {"delta": 3, "hudi": 6}
"""The greatest protocol versions by Athena's manual: Delta's reader version 3; table version 6 of Hudi 0.15."""

_DATE, _BOOLEAN = re.compile(r"[+-]?\d{4,}-\d\d-\d\d"), re.compile(r"true|false")
_BITS: Mapping[type[T.DataType], int] = {T.ByteType: 8, T.ShortType: 16, T.IntegerType: 32}

_SYSTEM_COLUMN_COMMENTS = {
    "_seq": "Place of the row's newest change in the source's order; bigger is newer",
    "_deleted": "Whether the source has deleted the row",
    "_column_seq": "Columns whose value is older or newer than the row, with its place; almost always NULL",
    "_source_ts_ms": "When the source made the row's newest change, in milliseconds since 1970",
    "__START_AT": "_seq of the change that began the interval",
    "__END_AT": "_seq of the change that ended the interval; NULL if current",
    "__START_TIME": "When the interval began, by the source's clock",
    "__END_TIME": "When the interval ended, by the source's clock",
}


class Kind(str, Enum):
    """The kind of an entry, for display."""

    delta = "delta table"
    hudi = "hudi table"
    hudi_snapshot = "hudi table, as it is now"
    hudi_compacted = "hudi table, as compacted"
    view = "view"


@dataclass(frozen=True)
class LakeTable:
    """A table of the lake. ``name`` is its name in catalogs, in lower case; ``title`` its name in the lake
    (``silver/shop/sales.orders``, ``gold/dim_customers``); ``comments`` are those of its columns, by stored name.
    """

    name: str
    title: str
    location: str
    schema: T.StructType
    detail: TableDetail
    description: str = ""
    comments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Partition:
    """The values of a partition's columns, NULL in Hive's notation, and its location."""

    values: tuple[str, ...]
    location: str


@dataclass(frozen=True)
class Entry:
    """One table or view of a catalog. ``location`` is a URL; ``schema`` is Spark's JSON of all columns, for tables
    whose log does not contain it; ``sql`` is the query of a view.
    """

    name: str
    title: str
    kind: Kind
    columns: tuple[Column, ...]
    partition_keys: tuple[Column, ...] = ()
    location: str = ""
    partitions: tuple[Partition, ...] = ()
    schema: str = ""
    sql: str = ""
    description: str = ""


def entries(table: LakeTable, database: str) -> list[Entry]:
    """Return all entries of one table, tables before the view over them.

    Raises CatalogRefused for a table that Athena cannot read or Glue cannot hold.
    """
    is_silver = "_deleted" in table.schema.names
    kinds = _kinds(table, f"{table.name}{ALL}" if is_silver else table.name)
    for name in (*kinds, table.name):
        if len(name) > NAME_LENGTH:
            raise CatalogRefused(f"the name {name} is longer than {NAME_LENGTH} characters", where=table.title)
    tables = [_table(table, name, kind) for name, kind in kinds.items()]
    if not is_silver:
        return tables
    return [*tables, _view(table, tables[0], database)]


def unreadable_reason(table: LakeTable) -> str | None:
    """Return why Athena may not be able to read a correctly registered table; None if no reason is known."""
    if not url(table.location).startswith("s3://"):
        return "it reads S3 only"
    known = _READ_BY_ATHENA.get(table.detail.format, 0)
    if table.detail.protocol > known:
        supported = f"{table.detail.format.capitalize()} up to protocol {known}"
        return f"it supports {supported}, and this table has {table.detail.protocol}"
    return None


def url(location: str) -> str:
    """A location of the lake as a catalog writes it: S3 without Hadoop's own scheme."""
    if location.startswith("s3a://"):
        return f"s3://{location.removeprefix('s3a://')}"
    return location if ":" in location.split("/", 1)[0] else f"file://{location}"


def _kinds(table: LakeTable, name: str) -> dict[str, Kind]:
    detail = table.detail
    if detail.format == "delta":
        return {name: Kind.delta}
    if detail.format == "hudi" and detail.merge_on_read:
        return {f"{name}_rt": Kind.hudi_snapshot, f"{name}_ro": Kind.hudi_compacted}
    if detail.format == "hudi":
        return {name: Kind.hudi}
    raise CatalogRefused(f"Athena does not read tables in {detail.format}", where=table.title)


def _table(table: LakeTable, name: str, kind: Kind) -> Entry:
    """The table itself: partition columns are separate and last, as in Hive."""
    hudi = [] if kind is Kind.delta else [T.StructField(each, T.StringType()) for each in HUDI_COLUMNS]
    parts = [table.schema[each] for each in table.detail.partition_by]
    own = [each for each in table.schema if each.name not in table.detail.partition_by]
    every = columns([*hudi, *own, *parts], {**_SYSTEM_COLUMN_COMMENTS, **table.comments}, table.title)
    description = _description(table) if name != table.name else table.description
    return Entry(
        name,
        table.title,
        kind,
        every[: len(every) - len(parts)],
        every[len(every) - len(parts) :],
        url(table.location),
        tuple(_partitions(url(table.location), table.detail.folders, parts)),
        _schema([*hudi, *own, *parts]) if hudi else "",
        description=one_line(description, DESCRIPTION_LENGTH),
    )


def _description(table: LakeTable) -> str:
    return f"All rows of {table.title}, including those deleted at the source (_deleted)."


def _view(table: LakeTable, entry: Entry, database: str) -> Entry:
    """The live rows with the source's columns, in the table's order; for a history its intervals."""
    known = {each.name: each for each in (*entry.columns, *entry.partition_keys)}
    own = [known[each.lower()] for each in table.schema.names if each not in SYSTEM_COLUMNS]
    is_history = history.KEY in table.schema.names
    condition = '"__end_at" IS NULL OR "__end_at" > "__start_at"' if is_history else 'NOT "_deleted"'
    what = "Every state of the rows" if is_history else "The rows"
    return replace(
        entry,
        name=table.name,
        kind=Kind.view,
        columns=tuple(own),
        partition_keys=(),
        location="",
        partitions=(),
        schema="",
        sql=presto_view.select(own, database, entry.name, condition),
        description=f"{what} of {table.title}, as at the source.",
    )


def _partitions(location: str, folders: Iterable[str], parts: Sequence[T.StructField]) -> Iterator[Partition]:
    """The partitions of folders such as ``customer=a%2Fb/order=1``; NULL stays in Hive's notation. Folders whose values
    the column's type cannot hold date from before the type changed: they contain no rows, and readers refuse them.
    """
    for folder in folders:
        values = tuple(unquote(part.partition("=")[2]) for part in folder.split("/"))
        if all(_can_hold(part.dataType, value) for part, value in zip(parts, values, strict=True)):
            yield Partition(values, f"{location}/{folder}")


def _can_hold(kind: T.DataType, value: str) -> bool:
    """Whether the text may be a value of the type, or NULL."""
    if value == names.HIVE_NULL or not isinstance(kind, (T.NumericType, T.DateType, T.BooleanType)):
        return True
    if not isinstance(kind, T.NumericType):
        return (_DATE if isinstance(kind, T.DateType) else _BOOLEAN).fullmatch(value) is not None
    try:
        number = int(value) if isinstance(kind, T.IntegralType) else float(value)
    except ValueError:
        return False
    most = 1 << _BITS.get(type(kind), 64) - 1
    return not isinstance(kind, T.IntegralType) or -most <= number < most


def _schema(fields: list[T.StructField]) -> str:
    plain = T.StructType([T.StructField(each.name, each.dataType) for each in fields])
    return json.dumps(plain.jsonValue(), separators=(",", ":"))
