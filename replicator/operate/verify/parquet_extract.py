"""Transfer rows of a database to Spark: chunks of texts in a Parquet file, which are then cast to typed columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator.database_snapshots import ColumnCodec, DatabaseSnapshot, RangeFilter
from replicator.operate.verify.ranges import Ranges
from replicator.transforms.comparison import canonical

CHUNK = 20_000
"""The number of rows that are in memory at a time."""


@dataclass(frozen=True)
class ComparedColumn:
    """A column ``database_column`` of a database, compared under ``name`` with the type ``kind``. ``codec`` converts
    its texts. ``as_text``: compare canonical texts, or the database's own text for values that do not fit the type.
    """

    database_column: str
    name: str
    kind: T.DataType
    codec: ColumnCodec
    as_text: bool = False

    def from_text(self, text: Column) -> Column:
        """Convert a text of the database to the compared value."""
        value = self.codec.value(text).cast(self.kind)
        return F.coalesce(self.from_value(value), text) if self.as_text else value

    def from_value(self, value: Column) -> Column:
        """Convert a value of the other side, which has the type, to the compared value."""
        return canonical.text(value, self.kind) if self.as_text else value


def with_text_fallback(columns: Iterable[ComparedColumn], keys: Collection[str]) -> tuple[ComparedColumn, ...]:
    """Return the columns, compared as texts where the database may have values that do not fit the type; ``keys`` keep
    their type.
    """
    return tuple(replace(each, as_text=each.codec.may_not_fit and each.name not in keys) for each in columns)


@dataclass(frozen=True)
class ExtractQuery:
    """The columns of one table to extract. With ``keys``, only rows whose ``key_columns`` have these values; the
    database must order those columns as silver does. Of ``ranges``, the database sends only the compared intervals if
    it orders their column in the same way, else everything.
    """

    table: str
    columns: tuple[ComparedColumn, ...]
    key_columns: tuple[str, ...] = ()
    keys: Sequence[tuple[Any, ...]] | None = None
    ranges: Ranges = field(default_factory=Ranges)


def extract(
    spark: SparkSession, snapshot: DatabaseSnapshot, query: ExtractQuery, folder: Path, advance: Callable[[int], None]
) -> DataFrame:
    """Return the rows as of the snapshot, with the names and types of the comparison. The folder must outlive them."""
    file = folder / "rows.parquet"
    fields = [(f"c{index}", pa.string()) for index, _ in enumerate(query.columns)]
    with pq.ParquetWriter(file, pa.schema(fields)) as writer:
        for chunk in _chunks(snapshot, query):
            columns = [pa.array(values, pa.string()) for values in zip(*chunk, strict=True)]
            writer.write_table(pa.table(dict(zip((name for name, _ in fields), columns, strict=True))))
            advance(len(chunk))
    read = spark.read.schema(", ".join(f"{name} STRING" for name, _ in fields)).parquet(f"file://{file}")
    return read.select(
        [each.from_text(F.col(f"c{index}")).alias(each.name) for index, each in enumerate(query.columns)]
    )


def _chunks(snapshot: DatabaseSnapshot, query: ExtractQuery) -> Any:
    texts = [(each.database_column, each.codec.sql) for each in query.columns]
    among = None
    if query.keys is not None:
        by_name = {each.name: each for each in query.columns}
        key = [by_name[name] for name in query.key_columns]
        among = [(each.database_column, each.codec.ordered) for each in key], query.keys
    return snapshot.rows(query.table, texts, among, CHUNK, _range_filter(query))


def _range_filter(query: ExtractQuery) -> RangeFilter | None:
    inside = query.ranges.intervals
    column = next((each for each in query.columns if each.name == query.ranges.column), None)
    if inside is None or column is None or not column.codec.ordered or query.keys is not None:
        return None
    return (column.database_column, column.codec.ordered), inside
