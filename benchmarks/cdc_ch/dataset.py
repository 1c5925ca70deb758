"""A workload on disk, made once for its parameters: events as bronze has them, and what must become of them.

```
<home>/<name>/meta.json               parameters and counts; written last
              snapshot/<table>.parquet    the rows that are there before, as events
              batch-0000/<table>.parquet  events in the order in which they can be read; as many folders as batches
              start/<table>.parquet       the rows before, with the tables' own types
              state/<table>.parquet       the rows behind everything: the oracle
              touched/<table>.parquet     keys that the events changed, and whether the row is ``deleted``
```
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq

from benchmarks.cdc_ch.records import Brokers, Event, Log, Wire, redelivered
from benchmarks.cdc_ch.stored import Touched, saved
from benchmarks.cdc_ch.tables import KNOWN, TPCC, WIDE, Kept
from benchmarks.cdc_ch.tpcc import Scale, Shop
from benchmarks.cdc_ch.wide import Stream

VERSION = 2
"""Of what the parameters mean: another one makes other data."""

_CHUNK = 20_000


@dataclass(frozen=True)
class Parameters:
    """What a workload is made of. ``events`` are changes and tombstones as the source sends them once; ``per_key`` asks
    for the synthetic table, with so many changes of each key; None is TPC-C of this ``scale``.

    ``duplicates`` and ``disorder`` are shares of the records that come again, or late. ``skew`` is the exponent of a
    Zipf distribution over districts and items; 0 leaves them as TPC-C has them. With ``schema_change`` customers get a
    column half way, which rows that were there before lack until they change.
    """

    events: int
    scale: Scale = field(default_factory=lambda: Scale(1, 300, 2_000))
    per_key: int | None = None
    batches: int = 1
    partitions: int = 3
    before: bool = False
    toast: bool = False
    skew: float = 0.0
    schema_change: bool = False
    duplicates: float = 0.01
    disorder: float = 0.01
    seed: int = 20261123

    @property
    def name(self) -> str:
        """Of the folder: parameters that differ have another."""
        told = json.dumps({"version": VERSION, **asdict(self)}, sort_keys=True)
        kind = "tpcc" if self.per_key is None else f"wide{self.per_key}"
        return f"{kind}-{self.events}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"

    @property
    def tables(self) -> tuple[Kept, ...]:
        """What it holds."""
        return tuple(TPCC.values()) if self.per_key is None else (WIDE,)


@dataclass(frozen=True)
class Dataset:
    """A workload that is there."""

    folder: Path
    meta: dict[str, Any]

    @property
    def tables(self) -> list[Kept]:
        """Tables that some event is of."""
        return [KNOWN[name] for name in self.meta["tables"]]

    @property
    def batches(self) -> list[Path]:
        """The folders of events, in order."""
        return sorted(self.folder.glob("batch-*"))


def made(parameters: Parameters, home: Path) -> Dataset:
    """The workload below ``home``, from there if it was made before."""
    folder = home / parameters.name
    if not (folder / "meta.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        meta = _make(parameters, folder)
        written = folder / "meta.json.new"
        written.write_text(json.dumps(meta, indent=1))
        written.rename(folder / "meta.json")
    return Dataset(folder, json.loads((folder / "meta.json").read_text()))


def lines(dataset: Dataset) -> Iterator[str]:
    """Every record, rows that were there before first, as ``kcat -C -J`` prints it."""
    for folder in (dataset.folder / "snapshot", *dataset.batches):
        for file in sorted(folder.glob("*.parquet")):
            for batch in pq.ParquetFile(file).iter_batches(
                columns=["topic", "partition", "offset", "timestamp", "key", "value"]
            ):
                for row in batch.to_pylist():
                    ts = int(row["timestamp"].timestamp() * 1000)
                    place = {"topic": row["topic"], "partition": row["partition"], "offset": row["offset"]}
                    told = {"tstype": "create", "ts": ts, "headers": [], "key": row["key"], "payload": row["value"]}
                    yield json.dumps(place | told, separators=(",", ":"))


class Play(Protocol):
    """What happens at the source."""

    @property
    def now(self) -> int:
        """The time there, in microseconds."""

    def rows(self) -> Iterator[tuple[Kept, Iterator[Sequence[Any]]]]:
        """What every table holds now."""

    def transactions(self) -> Iterator[list[Event]]:
        """Each with its events, as it happens."""


class Trade:
    """TPC-C until there are so many events."""

    def __init__(self, parameters: Parameters, log: Log) -> None:
        self._shop, self._log = Shop(parameters.scale, parameters.seed, parameters.skew), log
        self._events = parameters.events
        self._grows_at = parameters.events / 2 if parameters.schema_change else math.inf
        self.rows = self._shop.rows

    @property
    def now(self) -> int:
        """The time in the shop."""
        return self._shop.now

    def transactions(self) -> Iterator[list[Event]]:
        """Whole ones: there are a few events more than asked for."""
        told = 0
        while told < self._events:
            if told >= self._grows_at:
                self._log.grow(self._shop.grow())
                self._grows_at = math.inf
            self._shop.trade(self._told)
            events = self._log.commit()
            told += len(events)
            yield events

    def _told(self, table: Kept, op: str, row: list[Any], before: list[Any] | None) -> None:
        self._log.now = self._shop.now
        self._log.tell(table, op, row, before)


def _make(parameters: Parameters, folder: Path) -> dict[str, Any]:
    log, rng = Log(Wire(parameters.before, parameters.toast)), random.Random(parameters.seed)
    play: Play = _play(parameters, log)
    _save_rows(folder / "start", play)
    brokers, touched = Brokers(parameters.partitions, rng), Touched()
    log.now = play.now
    before = (log.snapshot(table, list(row)) for table, rows in play.rows() for row in rows)
    snapshot = saved(folder / "snapshot", brokers.deliver(before))
    stream = redelivered(touched.seen(play.transactions()), parameters.duplicates, rng)
    records = brokers.deliver(stream, parameters.disorder)
    each = math.ceil(parameters.events * (1 + parameters.duplicates) / parameters.batches)
    parts = [*[each] * (parameters.batches - 1), None]
    written = [saved(folder / f"batch-{n:04}", islice(records, part)) for n, part in enumerate(parts)]
    _save_rows(folder / "state", play)
    touched.save(folder / "touched", parameters.tables)
    sent = sum(part.counts.total() for part in written)
    return {
        "parameters": asdict(parameters),
        "tables": sorted({table for part in written for table in part.counts}),
        "batches": [part.counts.total() for part in written],
        "bytes": sum(part.size for part in written),
        "snapshot": snapshot.counts.total(),
        "records": sent,
        "keys": sum(map(len, touched.keys.values())),
        "duplicates": sent - touched.events,
        "late": brokers.late,
    }


def _play(parameters: Parameters, log: Log) -> Play:
    if parameters.per_key is None:
        return Trade(parameters, log)
    return Stream(parameters.events, parameters.per_key, parameters.seed, log)


def _save_rows(folder: Path, play: Play) -> None:
    folder.mkdir()
    for table, rows in play.rows():
        with pq.ParquetWriter(folder / f"{table.name}.parquet", table.schema, compression="zstd") as file:
            while chunk := list(islice(rows, _CHUNK)):
                file.write_table(table.batch(chunk))
