"""Rows of a database on their way to Spark: in chunks into a Parquet file of texts, which become typed columns."""

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
"""Rows that are in memory at once."""


@dataclass(frozen=True)
class ComparedColumn:
    """A column of a database, ``database_column`` there, which is ``name`` with that type in the comparison;
    ``as_text``: a canonical text of it, or the database's own for what is no value of the type.
    """

    database_column: str
    name: str
    kind: T.DataType
    told: ColumnCodec
    as_text: bool = False

    def of(self, text: Column) -> Column:
        """What a text of the database is in the comparison."""
        value = self.told.value(text).cast(self.kind)
        return F.coalesce(self.beside(value), text) if self.as_text else value

    def beside(self, value: Column) -> Column:
        """What a value of the type, of the other side, is in the comparison."""
        return canonical.text(value, self.kind) if self.as_text else value


def with_text_fallback(columns: Iterable[ComparedColumn], keys: Collection[str]) -> tuple[ComparedColumn, ...]:
    """The same, as texts where not every value of the database has room in the type; ``keys`` keep theirs."""
    return tuple(replace(each, as_text=each.told.may_not_fit and each.name not in keys) for each in columns)


@dataclass(frozen=True)
class ExtractQuery:
    """Columns of one table; with ``keys`` only the rows whose ``key_columns`` have these values: the
    database has all of those in the order of silver. Of ``ranges`` the
    database sends what is looked at, as far as it has their column in the same order, else everything.
    """

    table: str
    columns: tuple[ComparedColumn, ...]
    key_columns: tuple[str, ...] = ()
    keys: Sequence[tuple[Any, ...]] | None = None
    ranges: Ranges = field(default_factory=Ranges)


def extract(
    spark: SparkSession, snapshot: DatabaseSnapshot, wanted: ExtractQuery, folder: Path, advance: Callable[[int], None]
) -> DataFrame:
    """The rows as of the snapshot, with the names and types of the comparison. The folder must outlive them."""
    file = folder / "rows.parquet"
    fields = [(f"c{at}", pa.string()) for at, _ in enumerate(wanted.columns)]
    with pq.ParquetWriter(file, pa.schema(fields)) as writer:
        for chunk in _chunks(snapshot, wanted):
            columns = [pa.array(values, pa.string()) for values in zip(*chunk, strict=True)]
            writer.write_table(pa.table(dict(zip((name for name, _ in fields), columns, strict=True))))
            advance(len(chunk))
    read = spark.read.schema(", ".join(f"{name} STRING" for name, _ in fields)).parquet(f"file://{file}")
    return read.select([each.of(F.col(f"c{at}")).alias(each.name) for at, each in enumerate(wanted.columns)])


def _chunks(snapshot: DatabaseSnapshot, wanted: ExtractQuery) -> Any:
    texts = [(each.database_column, each.told.sql) for each in wanted.columns]
    among = None
    if wanted.keys is not None:
        by_name = {each.name: each for each in wanted.columns}
        key = [by_name[name] for name in wanted.key_columns]
        among = [(each.database_column, each.told.ordered) for each in key], wanted.keys
    return snapshot.rows(wanted.table, texts, among, CHUNK, _range_filter(wanted))


def _range_filter(wanted: ExtractQuery) -> RangeFilter | None:
    inside = wanted.ranges.intervals
    of = next((each for each in wanted.columns if each.name == wanted.ranges.column), None)
    if inside is None or of is None or not of.told.ordered or wanted.keys is not None:
        return None
    return (of.database_column, of.told.ordered), inside
