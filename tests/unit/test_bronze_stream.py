"""Bronze of a run that goes on: how small batches are written, and when they rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from replicator.errors import ReplicatorError, Unreachable
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.protocols import StreamState
from replicator.stages.bronze import Ingestion
from replicator.stages.ingest import bronze_stream
from replicator.stages.ingest.batch_writer import BatchWriter
from replicator.stages.ingest.bronze_state import BronzeTableState
from replicator.stages.ingest.pace import Pace
from tests.unit.test_bronze_rows import KAFKA

PARTITIONS = 7


@dataclass(frozen=True)
class Folder:
    """A ``Source`` of files that come one after the other, in as many partitions as a few topics have."""

    place: Path

    def read(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.schema(KAFKA).parquet(str(self.place)).repartition(PARTITIONS)

    def topic_ids(self, _: SparkSession) -> Mapping[str, str]:
        return {}

    def end_offsets(self, _: SparkSession) -> Mapping[tuple[str, int], int]:
        return {}

    def first_offsets(self, _: SparkSession) -> Mapping[tuple[str, int], int]:
        return {}

    def resume(self, spark: SparkSession, checkpoint: str, held: StreamState) -> None: ...

    def refuse_lost(self, spark: SparkSession, checkpoint: str, held: StreamState) -> None: ...

    def arrive(self, spark: SparkSession, first: int, count: int) -> None:
        rows: list[Any] = [("t", 0, first + number, None, b"k", b"{}", []) for number in range(count)]
        spark.createDataFrame(rows, KAFKA).coalesce(1).write.mode("append").parquet(str(self.place))


def until(is_so: Callable[[], bool]) -> None:
    """Wait for it, a minute at most."""
    patience = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < patience
        time.sleep(0.05)


@pytest.mark.spark
def test_what_comes_while_silver_is_at_work_is_one_batch_in_few_files(exact: SparkSession, tmp_path: Path) -> None:
    """A small batch rests until silver is done, and the next one has all that came meanwhile; no more tasks write than
    there are cores, however many partitions Kafka has.
    """
    source, pace, delta = Folder(tmp_path / "arrivals"), Pace(), DeltaFormat()
    source.arrive(exact, 0, 40)
    at = Ingestion("s", source, delta, Lake(str(tmp_path / "lake")), trigger_seconds=0.1)
    with pace.held():
        stream = bronze_stream.ingest_stream(exact, at, once=False, pace=pace)
        try:
            until(lambda: stream.rows == 40)
            for first in (40, 50):
                source.arrive(exact, first, 10)
            time.sleep(1)
            assert (stream.rows, delta.version(exact, at.table)) == (40, 0)
        except BaseException:
            stream.query.stop()
            raise
    try:
        until(lambda: stream.rows == 60)
    finally:
        stream.query.stop()
    assert delta.version(exact, at.table) == 1
    assert stream.seconds > 0
    arrivals = delta.arrivals(exact, at.table, 0, 1)
    assert arrivals is not None
    cores = exact.sparkContext.defaultParallelism
    assert 0 < len(arrivals) <= cores < PARTITIONS
    assert len(list((tmp_path / "lake" / "bronze" / "s").glob("topic=t/*.parquet"))) <= 2 * cores


@pytest.mark.spark
def test_what_a_batch_met_is_what_the_stream_tells(exact: SparkSession, tmp_path: Path) -> None:
    """Of what Python raised, Spark passes on that it did: a full disk must not look like a fault of ours."""
    source, lake = Folder(tmp_path / "arrivals"), Lake(str(tmp_path / "lake"))
    at = Ingestion("s", source, DeltaFormat(), lake, trigger_seconds=0.1)
    (tmp_path / "lake" / "bronze").mkdir(parents=True)
    Path(at.table.location).write_text("no folder can be made here")
    source.arrive(exact, 0, 1)
    stream = bronze_stream.ingest_stream(exact, at, once=False)
    with pytest.raises(ReplicatorError, match=r"^the bronze stream of s failed: \S+Exception: .*bronze/s"):
        stream.finish()


def test_a_kafka_that_is_silent_is_told_with_its_address(tmp_path: Path) -> None:
    """What Spark tells of it has none; whoever is asked about it knows where."""

    @dataclass(frozen=True)
    class Silent(Folder):
        def refuse_lost(self, *_: object) -> None:
            raise Unreachable("Kafka does not answer", where="127.0.0.1:9092")

    class Stopped:
        def exception(self) -> StreamingQueryException:
            return StreamingQueryException("org.apache.kafka.common.errors.TimeoutException: Timed out")

    at = Ingestion("s", Silent(tmp_path), MemoryFormat(), Lake("memory"))
    stream = bronze_stream.Stream(
        at, cast("Any", Stopped()), BatchWriter(at, Pace()), BronzeTableState(cast("Any", None), at)
    )
    with pytest.raises(Unreachable) as told:
        stream.check()
    assert told.value.where == "127.0.0.1:9092"
