"""Events in topics of Kafka, before the clock, for systems that read them there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import duckdb
import pyarrow.parquet as pq
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.cdc_ch.contender import Case
from benchmarks.cdc_ch.records import SCHEMA, SOURCE
from benchmarks.cdc_ch.tables import TIME, WIDE, Kept

_CHUNK = 4_000
_SECONDS = 60
_BEFORE, _AFTER = '{"before":null,"after":', ',"source":{'
_UPDATE = '"op":"u"'


class Record(NamedTuple):
    """A record as a producer gives it."""

    partition: int
    key: str
    value: str | None


def create(servers: str, topic: str, partitions: int) -> None:
    """A topic that is not there. Raises KafkaException."""
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(topic, partitions)]).values():
        made.result(_SECONDS)


def send(servers: str, topic: str, records: Iterable[Record]) -> None:
    """Append them, in their order; the broker has all of them afterwards. Raises KafkaException."""
    producer = Producer(
        {"bootstrap.servers": servers, "log_level": 0, "linger.ms": 20, "queue.buffering.max.messages": 100_000}
    )
    for record in records:
        while True:
            try:
                producer.produce(topic, record.value, record.key, record.partition)
                break
            except BufferError:
                producer.poll(0.1)
    if left := producer.flush(_SECONDS):
        raise KafkaException(f"{left} records of {topic} were not taken")


def events(files: Sequence[str]) -> Iterator[Record]:
    """Stored events in the order in which they can be read. Updates are as a table with REPLICA IDENTITY FULL has them,
    with a row ``before``: the one behind it, which is enough for who only looks whether there is one.
    """
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(_CHUNK, columns=["partition", "key", "value"]):
            partitions, keys, values = (column.to_pylist() for column in batch.columns)
            yield from map(Record, partitions, keys, map(_with_before, values))


def changes(case: Case, partitions: int, *, before: bool) -> Iterator[Record]:
    """T5's prepared changes as events, of a delete its tombstone, too. ``before`` is the row before an update, else
    NULL as by default. Decimals are numbers: precise ones, which Connect writes so with ``decimal.format=NUMERIC``.
    """
    old = _row(WIDE, "t") if before else f"CASE WHEN c.op = 'd' THEN {_row(WIDE, 't')} END"
    source = f'"version":"3.7.0.Final","connector":"postgresql","name":"{SOURCE}","db":"{SOURCE}","schema":"{SCHEMA}"'
    value = (
        f"""'{{"before":' || coalesce(CASE WHEN t.id IS NOT NULL THEN {old} END, 'null') """
        f"""|| ',"after":' || CASE WHEN c.op = 'd' THEN 'null' ELSE {_row(WIDE, "c")} END """
        f"""|| ',"source":{{{source},"ts_ms":1767225600000,"table":"{WIDE.name}","lsn":' || c.lsn || '}},"op":"' """
        """|| CASE WHEN c.op = 'd' THEN 'd' WHEN t.id IS NULL THEN 'c' ELSE 'u' END || '","ts_ms":1767225600005}'"""
    )
    query = (
        f"""SELECT CAST(c.id % {partitions} AS INTEGER), '{{"id":' || c.id || '}}', {value}, c.op = 'd' """
        f"FROM '{case.input}/changes.parquet' c LEFT JOIN '{case.target}/*.parquet' t USING (id) ORDER BY c.lsn"
    )
    with duckdb.connect(config={"threads": 2}) as db:
        found = db.execute(query)
        while rows := found.fetchmany(_CHUNK):
            for partition, key, told, is_delete in rows:
                yield Record(partition, key, told)
                if is_delete:
                    yield Record(partition, key, None)


def _with_before(value: str | None) -> str | None:
    if value is None or not value.startswith(_BEFORE) or _UPDATE not in value:
        return value
    after = value[len(_BEFORE) : value.rindex(_AFTER)]
    return f'{{"before":{after},"after":{after}{value[len(_BEFORE) + len(after) :]}'


def _row(table: Kept, alias: str) -> str:
    """A row's JSON, for DuckDB."""
    parts = [f"""'"{name}":' || coalesce({_value(kind, f"{alias}.{name}")}, 'null')""" for name, kind in table.columns]
    return "('{' || " + " || ',' || ".join(parts) + " || '}')"


def _value(kind: str, column: str) -> str:
    if kind == "string":
        return f"CAST(to_json({column}) AS VARCHAR)"
    if kind == TIME:
        return f"CAST(epoch_us({column}) AS VARCHAR)"
    return f"CAST({column} AS VARCHAR)"
