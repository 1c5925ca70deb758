"""Rows of every layer made by hand: small, synthetic, and never recorded from a database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from replicator.debezium import template_matching
from replicator.debezium.placeholder import Placeholder
from replicator.debezium.template_matching import KnownTemplate
from replicator.formats.memory import MemoryFormat
from replicator.jvm import gateway
from replicator.spec import Arrival, Table
from replicator.transforms import fold, merge

UNSENT = Placeholder().configured
"""What a column holds that Debezium left out."""

BRONZE = (
    "topic STRING, topic_id STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key STRING, value STRING, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, undecodable STRUCT<key: BINARY, value: BINARY>, "
    "ingested_at TIMESTAMP"
)
CHANGES = "k INT, a INT, b STRING, _seq STRING, _deleted BOOLEAN, _source_ts_ms BIGINT, _unavailable ARRAY<STRING>"
SILVER = f"k INT, a INT, b STRING, {merge.SYSTEM_DDL}"


def in_files_of(session: SparkSession, count: int) -> SparkSession:
    """The session, whose tables are made in files of so many rows from now on, in their order."""
    session.conf.set("spark.sql.files.maxRecordsPerFile", str(count))
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return session


def exact_session(spark: SparkSession) -> SparkSession:
    """A session beside the shared one, as silver uses it: exact names, and as little ado with small plans."""
    session = spark.newSession()
    for key, value in {
        "spark.sql.caseSensitive": "true",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.constraintPropagation.enabled": "false",
        "spark.sql.ui.explainMode": "simple",
    }.items():
        session.conf.set(key, value)
    return session


def made(spark: SparkSession, rows: Iterable[Sequence[Any]], columns: str | StructType) -> DataFrame:
    """Rows of these columns, in one partition, without a Python worker in the jobs that read them."""
    return gateway.create_frame(spark, rows, columns if isinstance(columns, StructType) else _schema(spark, columns))


@lru_cache
def _schema(spark: SparkSession, ddl: str) -> StructType:
    return spark.createDataFrame([], ddl).schema


@dataclass(frozen=True)
class Record:
    """One bronze row. ``bad_value`` stands for bytes that are not UTF-8; ``second`` is Kafka's time, since 1970."""

    topic: str
    offset: int
    key: str | None
    value: str | None
    partition: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()
    bad_value: bytes | None = None
    second: int | None = None

    def row(self) -> tuple[Any, ...]:
        """As BRONZE lists its columns."""
        undecodable = None if self.bad_value is None else (None, bytearray(self.bad_value))
        headers = [(name, bytearray(value)) for name, value in self.headers]
        time = None if self.second is None else datetime.fromtimestamp(self.second, timezone.utc)
        place = (self.topic, None, self.partition, self.offset, time)
        return (*place, self.key, self.value, headers, undecodable, None)


def record(topic: str, offset: int, key: Any, value: Any, **more: Any) -> Record:
    """A record whose key and value are texts as they are, or anything else as JSON; None is Kafka's null."""
    return Record(topic, offset, _text(key), _text(value), **more)


def bronze(spark: SparkSession, records: Iterable[Record]) -> DataFrame:
    """Bronze rows."""
    return made(spark, [each.row() for each in records], BRONZE)


def folded(changed: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Decoded changes, one per key, as silver has them folded."""
    return fold.fold(changed, keys, changed.agg(fold.unknown_columns()).collect()[0][0])


def said_alike(records: DataFrame, templates: Sequence[KnownTemplate], binlog: str) -> DataFrame:
    """What templates say of records."""
    return template_matching.describe(template_matching.match_records(records, templates, binlog), templates)


def envelope(
    op: str,
    after: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] | None = None,
    pos: int | str = 4,
    table: str = "shop.orders",
    **source: Any,
) -> dict[str, Any]:
    """A change as the MariaDB connector writes it, at ``pos`` of the first binlog file."""
    database, name = table.split(".", 1)
    told = {"connector": "mariadb", "name": "s", "ts_ms": 1700000000000, "snapshot": "false", "db": database}
    told |= {"table": name, "file": "binlog.000001", "pos": pos, "row": 0, "gtid": None}
    return {"before": before, "after": after, "source": told | source, "op": op, "ts_ms": 1700000000001}


def wrapped(payload: Any, schema: Any = None) -> dict[str, Any]:
    """A JSON converter's wrapper; without a schema its ``schema`` is null (A3)."""
    return {"schema": schema, "payload": payload}


class Sized(MemoryFormat):
    """Every topic's news are of one size on disk."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:
        found = super().arrivals(spark, table, after, upto)
        return None if found is None else [Arrival(each.partition, each.version, self._size) for each in found]


@dataclass(frozen=True)
class Change:
    """A decoded change of the table (k, a, b) at a shortened position. ``unsent`` names columns it does not know."""

    seq: str
    a: int | None = None
    b: str | None = None
    deleted: bool = False
    unsent: tuple[str, ...] = field(default=())

    def row(self, key: int) -> tuple[Any, ...]:
        """As CHANGES lists its columns."""
        return (key, self.a, self.b, self.seq, self.deleted, int(self.seq[:2]), list(self.unsent))


def upsert(seq: str, a: int | None = None, b: str | None = None) -> Change:
    """An insert or update; a value equal to UNSENT is a column that was not sent."""
    return Change(seq, a, None if b == UNSENT else b, unsent=("b",) if b == UNSENT else ())


def delete(seq: str) -> Change:
    """A delete."""
    return Change(seq, deleted=True)


def changes(spark: SparkSession, keyed: Iterable[tuple[int, Change]]) -> DataFrame:
    """Decoded changes, each of a key."""
    return made(spark, [change.row(key) for key, change in keyed], CHANGES)


def state(a: int | None, b: str | None, seq: str, column_seq: Mapping[str, str] | None = None) -> tuple[Any, ...]:
    """What silver holds of a live row: (a, b, _seq, _deleted, _column_seq)."""
    return (a, b, seq, False, None if column_seq is None else dict(column_seq))


def gone(seq: str) -> tuple[Any, ...]:
    """What silver holds of a deleted row."""
    return (None, None, seq, True, None)


def states(rows: Iterable[Row]) -> dict[int, tuple[Any, ...]]:
    """Silver rows of the table (k, a, b) as states by key; a key that occurs twice fails."""
    found: dict[int, tuple[Any, ...]] = {}
    for row in rows:
        assert row["k"] not in found, f"key {row['k']} occurs twice"
        found[row["k"]] = (row["a"], row["b"], row["_seq"], row["_deleted"], row["_column_seq"])
    return found


def table(location: object, *keys: str) -> Table:
    """A table at a location."""
    return Table("test", str(location), keys or ("k",))


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, separators=(",", ":"))
