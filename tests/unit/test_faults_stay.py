"""What is wrong with one record, table or source keeps nothing from the others."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.errors import BronzeReplaced, ConfigError, TableStopped, TopicDeleted, TopicRecreated
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.protocols import StreamState
from replicator.spec import Declaration, SourceSpec
from replicator.stages import continuous, pipeline
from replicator.stages.bronze import Ingestion
from replicator.stages.ingest import bronze_stream
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.pipeline import Pipeline
from replicator.stages.refinement import Refinement
from replicator.stages.run_report import ReportLine
from tests.builders import Record, bronze, envelope, record
from tests.unit.test_bronze_stream import Folder

pytestmark = pytest.mark.spark


class Sources:
    """Two sources, ``a`` and ``b``, in one lake in memory: those that records were put into."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self.tables, self.control, self.lake = spark, MemoryFormat(), MemoryControl(), Lake("memory")
        self.names: set[str] = set()

    def put(self, source: str, *records: Record) -> None:
        self.names.add(source)
        self.tables.append(bronze(self.spark, records), self.lake.bronze(source), None)

    def run(self, *declared: Declaration) -> dict[str, tuple[int, type]]:
        """What a run of silver applied, and the kind of error, by the name that a line has."""
        specs = [SourceSpec(name, "", tables=declared if name == "a" else ()) for name in sorted(self.names)]
        refinements = tuple(Refinement(each, self.tables, self.tables, self.control, self.lake, 1.0) for each in specs)
        at = Warehouse(self.tables, self.tables, self.control, self.lake)
        lines: list[ReportLine] = []
        pipeline.run_once(self.spark, Pipeline((), (), refinements, at, (), {}), ("silver",), lines.append)
        return {line.table: (line.applied, type(line.error)) for line in lines}


def event(source: str, table: str, number: int, **more: Any) -> Record:
    told = envelope("c", {"id": number}, pos=10 * number, table=table, name=source, **more)
    return record(f"{source}.{table}", number, {"id": number}, told)


def test_a_time_that_is_none_stops_nobody(exact: SparkSession) -> None:
    """The least and the greatest number there are, where Debezium has milliseconds."""
    sources = Sources(exact)
    sources.put("a", event("a", "shop.x", 1, ts_ms=-(2**63)), event("a", "shop.x", 2, ts_ms=2**63 - 1))
    sources.put("a", event("a", "shop.y", 1))
    assert sources.run() == {"a/shop.x": (2, type(None)), "a/shop.y": (1, type(None))}


@pytest.mark.parametrize(
    "schema",
    ["[" * 985 + "]" * 985, '{"type":"struct","fields":[{"type":"int32"}]}', '{"type":"struct","fields":[7]}'],
    ids=["nested too deep", "a field without a name", "a field that is none"],
)
def test_a_schema_block_that_is_none_stops_its_table_alone(exact: SparkSession, schema: str) -> None:
    """Whoever wrote it: no other table waits for it."""
    sources = Sources(exact)
    told = envelope("c", {"id": 1}, pos=10, table="shop.x", name="a")
    odd = f'{{"schema":{schema},"payload":{json.dumps(told)}}}'
    sources.put("a", record("a.shop.x", 1, {"id": 1}, odd), event("a", "shop.y", 1))
    assert sources.run() == {"a/shop.x": (0, TableStopped), "a/shop.y": (1, type(None))}


def test_deletes_that_are_declared_otherwise_stop_their_table_alone(exact: SparkSession) -> None:
    """Rows by offset and rows by position have no common order (Q7): the table stays as it is, others go on."""
    sources = Sources(exact)
    for number in (1, 2):
        sources.put("a", record("a.shop.x", number, {"id": number}, {"id": number}), event("a", "shop.y", number))
        sources.put("b", event("b", "shop.z", number))
        told = sources.run(*([Declaration("shop.x", deletes="rewrite")] if number == 2 else []))
    assert told == {"a/shop.x": (0, ConfigError), "a/shop.y": (1, type(None)), "b/shop.z": (1, type(None))}
    assert sources.run()["a/shop.x"] == (1, type(None))


def test_a_source_whose_bronze_is_another_one_keeps_nothing_from_the_next(exact: SparkSession) -> None:
    """Its tables stay as they are, and its error is told under its name (F-C6)."""
    sources = Sources(exact)
    sources.put("a", event("a", "shop.x", 1))
    sources.run()
    sources.tables.drop(exact, sources.lake.bronze("a"))
    sources.put("a", event("a", "shop.x", 1))
    sources.put("b", event("b", "shop.z", 1))
    assert sources.run() == {"a": (0, BronzeReplaced), "b/shop.z": (1, type(None))}


@dataclass(frozen=True)
class Gone(Folder):
    """A source of which a topic was deleted."""

    def resume(self, spark: SparkSession, checkpoint: str, held: StreamState) -> None:  # noqa: ARG002
        raise TopicDeleted("topic t was deleted", where=checkpoint)


@dataclass(frozen=True)
class Recreated(Folder):
    """One of which a topic turns out to be another one, while the run goes on: Kafka says another id each time."""

    asked: Any = field(default_factory=count)

    def topic_ids(self, _: SparkSession) -> dict[str, str]:
        return {"t": str(next(self.asked))}


@pytest.mark.parametrize(("kind", "error"), [(Gone, TopicDeleted), (Recreated, TopicRecreated)])
def test_a_source_that_must_not_go_on_ends_no_run_that_has_others(
    exact: SparkSession, tmp_path: Path, kind: type[Folder], error: type[TableStopped]
) -> None:
    """It is told, once; where it is the only one, the run ends with its error."""
    delta, stop, lines = DeltaFormat(), Event(), list[ReportLine]()
    lake = Lake(str(tmp_path / "lake"))
    at = Warehouse(delta, delta, MemoryControl(), lake)
    well, ill = Folder(tmp_path / "well"), kind(tmp_path / "ill")
    both = [Ingestion(name, reader, delta, lake, 0.1) for name, reader in (("ill", ill), ("well", well))]
    for folder in (well, ill):
        folder.arrive(exact, 0, 3)
    if kind is Recreated:  # another run has had the topic as it was
        bronze_stream.ingest_stream(exact, both[0], once=True).finish()
        ill.arrive(exact, 3, 3)
    made = Pipeline(tuple(both), (), (), at, (), {})

    def report(line: ReportLine) -> None:
        lines.append(line)
        if {each.table for each in lines} == {"ill", "well"}:
            stop.set()

    continuous.run_continuously(exact, made, ("bronze",), report, stop)
    assert sorted((line.table, line.applied, type(line.error)) for line in lines) == [
        ("ill", 0, error),
        ("well", 3, type(None)),
    ]
    with pytest.raises(error):
        continuous.run_continuously(exact, replace(made, ingestions=(both[0],)), ("bronze",), report, Event())
