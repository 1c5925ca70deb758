"""Records and keys into Parquet files, as they come."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cdc_ch.records import Event, Sent, topic
from benchmarks.cdc_ch.tables import Kept

_CHUNK = 20_000
_PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_BYTES = pa.struct([("key", pa.binary()), ("value", pa.binary())])
BRONZE = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("key", pa.string()),
        ("value", pa.string()),
        ("headers", _PAIRS),
        ("undecodable", _BYTES),
        ("ingested_at", pa.timestamp("us", "UTC")),
    ]
)
"""Bronze's columns (architecture section 4)."""


@dataclass
class Touched:
    """Which keys some event is of, each with whether the last one deleted it, and how many events there were."""

    keys: dict[str, dict[str, bool]] = field(default_factory=lambda: defaultdict(dict))
    events: int = 0

    def seen(self, transactions: Iterable[list[Event]]) -> Iterator[list[Event]]:
        """The same transactions."""
        for events in transactions:
            self.events += len(events)
            for event in events:
                self.keys[event.table][event.key] = event.head is None  # a delete's tombstone comes behind it
            yield events

    def save(self, folder: Path, tables: Iterable[Kept]) -> None:
        """A file per table: the key's columns and ``deleted``."""
        folder.mkdir()
        for table in tables:
            known = self.keys.get(table.name, {})
            schema = pa.schema([*(table.schema.field(name) for name in table.keys), ("deleted", pa.bool_())])
            rows = [{**json.loads(key), "deleted": deleted} for key, deleted in known.items()]
            pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{table.name}.parquet")


class Writer:
    """Records into a file per table of one folder, some thousands at a time. ``counts`` and ``size`` (of the values)
    tell what was written.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._files: dict[str, pq.ParquetWriter] = {}
        self._waiting: dict[str, list[Sent]] = defaultdict(list)
        self.counts: Counter[str] = Counter()
        self.size = 0

    def take(self, sent: Sent) -> None:
        """One more."""
        waiting = self._waiting[sent.table]
        waiting.append(sent)
        if len(waiting) == _CHUNK:
            self._write(sent.table)

    def close(self) -> None:
        """All of it is on disk then."""
        for table in list(self._waiting):
            self._write(table)
        for file in self._files.values():
            file.close()

    def _write(self, table: str) -> None:
        records = self._waiting.pop(table)
        if table not in self._files:
            place = self._folder / f"{table}.parquet"
            self._files[table] = pq.ParquetWriter(place, BRONZE, compression="zstd", compression_level=3)
        self._files[table].write_table(_bronze(table, records))
        self.counts[table] += len(records)
        self.size += sum(len(record.key) + len(record.value or "") for record in records)


def saved(folder: Path, records: Iterable[Sent]) -> Writer:
    """All of them into a folder."""
    writer = Writer(folder)
    for record in records:
        writer.take(record)
    writer.close()
    return writer


def _bronze(table: str, records: Sequence[Sent]) -> pa.Table:
    count = len(records)
    times = pa.array([record.at * 1000 for record in records], pa.timestamp("us", "UTC"))
    columns = {
        "topic": pa.array([topic(table)] * count),
        "topic_id": pa.nulls(count, pa.string()),
        "partition": pa.array([record.partition for record in records], pa.int32()),
        "offset": pa.array([record.offset for record in records], pa.int64()),
        "timestamp": times,
        "key": pa.array([record.key for record in records]),
        "value": pa.array([record.value for record in records], pa.string()),
        "headers": pa.array([[]] * count, _PAIRS),
        "undecodable": pa.nulls(count, _BYTES),
        "ingested_at": times,
    }
    return pa.table(columns, BRONZE)
