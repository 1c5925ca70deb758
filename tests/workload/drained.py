"""Whether a lake has taken all that Kafka holds, read from its Delta logs without Spark; and a table's live rows."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.types import TimestampType

from replicator.formats.delta import DeltaFormat
from replicator.lake import Lake
from replicator.transforms.live import select_live

Place = tuple[str, int]
"""Topic and partition."""


class Source:
    """Bronze and silver of one source in a local lake."""

    def __init__(self, lake: Lake, name: str) -> None:
        self._lake, self._name = lake, name
        self._offsets: dict[str, list[tuple[int, int]]] = {}

    def has(self, ends: Mapping[Place, int]) -> bool:
        """Whether bronze has every record below these offsets, once, and every silver table has read them."""
        bronze = Path(self._lake.bronze(self._name).location)
        identity, newest, offsets = "", dict[str, int](), defaultdict[Place, Counter[int]](Counter)
        for version, action in actions(bronze):
            if "metaData" in action:
                identity = action["metaData"]["id"]
            if "add" in action:
                topic = action["add"]["partitionValues"]["topic"]
                newest[topic] = version
                for partition, offset in self._read(bronze / unquote(action["add"]["path"])):
                    offsets[topic, partition][offset] += 1
        assert all(max(found.values()) == 1 for found in offsets.values()), "bronze has a record twice"
        complete = all(set(offsets[place]) == set(range(end)) for place, end in ends.items() if end)
        return complete and all(self._silver_is_at(topic, identity, version) for topic, version in newest.items())

    def rows(self, spark: SparkSession, table: str) -> list[dict[str, Any]]:
        """What users see of a table of silver; instants with their zone."""
        found = select_live(DeltaFormat().read(spark, self._lake.silver(self._name, table)))
        instants = [field.name for field in found.schema if isinstance(field.dataType, TimestampType)]
        rows = [row.asDict() for row in found.collect()]
        for row in rows:
            row.update({name: row[name].astimezone() for name in instants if row[name] is not None})
        return rows

    def letters(self) -> list[str]:
        """The reasons of its dead letters."""
        folder = Path(self._lake.dead_letters(self._name).location)
        files = [folder / unquote(action["add"]["path"]) for _, action in actions(folder) if "add" in action]
        return [f"{r['table']}: {r['reason']}" for file in files for r in pq.ParquetFile(file).read().to_pylist()]

    def _silver_is_at(self, topic: str, identity: str, version: int) -> bool:
        table = topic.removeprefix(f"{self._name}.")
        folder = Path(self._lake.silver(self._name, table).location)
        read = [a["txn"]["version"] for _, a in actions(folder) if a.get("txn", {}).get("appId") == identity]
        return max(read, default=-1) >= version

    def _read(self, file: Path) -> list[tuple[int, int]]:
        """(partition, offset) of each record of a file of bronze; files never change."""
        if str(file) not in self._offsets:
            columns = pq.ParquetFile(file).read(["partition", "offset"]).to_pydict()
            self._offsets[str(file)] = list(zip(columns["partition"], columns["offset"], strict=True))
        return self._offsets[str(file)]


def actions(table: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(version, action) of every commit of a young table, in order: none has left the log."""
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for line in commit.read_text(encoding="utf-8").splitlines():
            yield int(commit.stem), json.loads(line)
