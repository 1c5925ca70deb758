"""Recorded events through bronze and silver, batch by batch, in a lake of their own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from replicator import names
from replicator.formats.control import JsonControl, MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.sources.recorded import RecordedSource
from replicator.spec import SourceSpec
from replicator.stages import bronze, silver
from replicator.stages.account import Account
from replicator.stages.bronze import Ingestion
from replicator.stages.refinement import Refinement
from replicator.transforms.live import select_live

Rows = dict[str, dict[tuple[Any, ...], dict[str, Any]]]


@dataclass
class Run:
    """A lake of its own that takes records in batches."""

    spark: SparkSession
    folder: Path
    source: SourceSpec
    memory: bool = True
    batches: int = 0
    accounts: list[Account] = field(default_factory=list)
    bronze: Any = None
    """The format of bronze, where it is not that of silver."""

    def __post_init__(self) -> None:
        format_: Any = MemoryFormat() if self.memory else DeltaFormat()
        control: Any = MemoryControl() if self.memory else JsonControl(self.spark)
        self.at = Refinement(self.source, self.bronze or format_, format_, control, Lake(f"{self.folder}/lake"))

    def rebuilt(self, *, memory: bool) -> Run:
        """Another silver, made of all of this bronze at once."""
        again = Run(self.spark, self.folder, self.source, memory=memory, bronze=self.at.bronze)
        again.accounts += silver.refine(self.spark, again.at)
        return again

    def exists(self, table: str) -> bool:
        """Whether silver has the table."""
        return self.at.silver.version(self.spark, self.at.lake.silver(self.source.name, table)) is not None

    def take(self, records: Sequence[dict[str, Any]]) -> int:
        """One batch; no table may stop."""
        before = len(self.accounts)
        added = self.feed(records)
        stopped = {a.table: (a.residue, str(a.error)) for a in self.accounts[before:] if a.residue or a.error}
        assert not stopped, stopped
        return added

    def feed(self, records: Sequence[dict[str, Any]]) -> int:
        """One file into bronze, then silver; how many records were added. What became of them is in ``accounts``."""
        added = self.ingest(records)
        self.accounts += silver.refine(self.spark, self.at)
        return added

    def ingest(self, records: Sequence[dict[str, Any]]) -> int:
        """One file into bronze; how many records were added."""
        self.batches += 1
        file = self.folder / f"{self.batches}.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
        topics = sorted({record["topic"] for record in records})
        ingestion = Ingestion(self.source.name, RecordedSource([str(file)]), self.at.bronze, self.at.lake)
        return bronze.ingest_files(self.spark, ingestion, topics)

    def stored(self, tables: Iterable[str]) -> Rows:
        """Every row of silver as it is at rest, by key."""
        return {table: self._by_key(table, self.read(table)) for table in tables}

    def shown(self, table: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The live rows as users see them, by key."""
        return self._by_key(table, select_live(self.read(table)))

    def read(self, table: str) -> DataFrame:
        """A table of silver as it is at rest."""
        return self.at.silver.read(self.spark, self.at.lake.silver(self.source.name, table))

    def _by_key(self, table: str, rows: Any) -> dict[tuple[Any, ...], dict[str, Any]]:
        columns = [c for c in self.read(table).schema if "key" in c.metadata]
        keys = [c.name for c in sorted(columns, key=lambda c: c.metadata["key"])]
        found = [row.asDict() for row in rows.collect()]
        by_key = {tuple(row[names.decode(key)] for key in keys): row for row in found}
        assert len(by_key) == len(found), "a key occurs twice"
        return by_key
