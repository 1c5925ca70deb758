"""The source of T6, a process of its own: sends a workload's records to Kafka at a rate, stamped with when they go.

``python -m benchmarks.cdc_ch.producer FOLDER SERVERS RATE`` tells on stdout, as JSON, from when to when it sent
(``since``, ``until``, in ms), how many ``records``, and its ``cpu`` seconds. RATE 0 is as fast as it can, with the
times that the records have: rows that were there before.

Records were rendered before, when the workload was made: what is left is to put thirteen digits in the place of others.
A record's ``ts_ms`` becomes the time of its sending. Its ``source.ts_ms`` becomes when one with the same was first
sent, so that what is made of it tells how old it is: a transaction has one time, and what a connector sends again is
as old as it was.
"""

from __future__ import annotations

import heapq
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer

from benchmarks.cdc_ch.records import topic

_CHUNK = 4_000
_TURN_SECONDS = 0.01
_TIME = b'"ts_ms":'
_DIGITS = 13
_CLIENT = {
    "linger.ms": 20,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 1_000_000,
    "enable.idempotence": True,
}


class Ready(NamedTuple):
    """A record as Kafka gets it; ``at`` is when the source would have sent it."""

    at: int
    topic: str
    partition: int
    key: bytes
    value: bytes | None


def ready(folder: Path) -> Iterator[Ready]:
    """The records of a workload's folder: of a partition in their order, of all by their time."""
    return heapq.merge(*(_of_table(file) for file in sorted(folder.glob("*.parquet"))), key=lambda each: each.at)


def stamped(value: bytes, at: bytes, first: dict[bytes, bytes]) -> bytes:
    """The event with another ``source.ts_ms`` and ``ts_ms``: the first and the last of what is called so. ``first`` has
    what became of each time of the source, and takes note.
    """
    place = value.index(_TIME) + len(_TIME)
    changed = first.setdefault(value[place : place + _DIGITS], at)
    return value[:place] + changed + value[place + _DIGITS : -_DIGITS - 1] + at + b"}"


def sent(records: Iterator[Ready], producer: Producer, rate: int) -> int:
    """Send them, ``rate`` a second, or unstamped as fast as it goes. Returns how many."""
    count, started, first = 0, time.monotonic(), dict[bytes, bytes]()
    for record in records:
        if rate and count >= (time.monotonic() - started) * rate:
            _wait(producer, started + count / rate)
        value = record.value
        if rate and value is not None:
            value = stamped(value, b"%d" % (time.time_ns() // 1_000_000), first)
        while True:
            try:
                producer.produce(record.topic, value, record.key, record.partition)
                break
            except BufferError:
                producer.poll(0.1)
        count += 1
    return count


def _wait(producer: Producer, until: float) -> None:
    """At least a turn, so that it does not wake for each record."""
    producer.poll(0)
    time.sleep(max(_TURN_SECONDS, until - time.monotonic()))


def _of_table(file: Path) -> Iterator[Ready]:
    name = topic(file.stem)
    for batch in pq.ParquetFile(file).iter_batches(_CHUNK, columns=["timestamp", "partition", "key", "value"]):
        times = batch.column("timestamp").cast(pa.int64()).to_pylist()
        partitions = batch.column("partition").to_pylist()
        keys, values = (batch.column(column).cast(pa.binary()).to_pylist() for column in ("key", "value"))
        yield from map(Ready, times, [name] * len(times), partitions, keys, values)


def main() -> None:
    """Send, and tell."""
    folder, servers, rate = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    producer = Producer({**_CLIENT, "bootstrap.servers": servers})
    since = time.time_ns() // 1_000_000
    count = sent(ready(folder), producer, rate)
    until = time.time_ns() // 1_000_000
    if left := producer.flush(60):
        raise SystemExit(f"Kafka did not take {left} records")
    told = {"since": since, "until": until, "records": count, "cpu": time.process_time()}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
