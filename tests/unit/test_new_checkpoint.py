"""What a checkpoint that is made anew says, whatever has become of the old one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replicator import checkpoint
from replicator.errors import BronzeReplaced, ReplicatorError, TableMissing
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import new_checkpoint
from replicator.operate.new_checkpoint import StoppedSource
from replicator.protocols import UNFENCED, StreamState
from replicator.spec import Progress
from replicator.stages.bronze import Ingestion
from tests.builders import bronze, made, record
from tests.unit.test_older_copies import Topics

pytestmark = pytest.mark.spark

STREAM, SEED, DAMAGED = "11111111-2222-3333-4444-555555555555", 20261126, 40


@dataclass(frozen=True)
class Kafka:
    """A ``Broker`` that has ten offsets of two partitions."""

    def available_offsets(self, spark: SparkSession, held: StreamState) -> Mapping[tuple[str, int], tuple[int, int]]:  # noqa: ARG002
        return {("t", 0): (0, 10), ("t", 1): (0, 10)}


def stopped(folder: Path) -> StoppedSource:
    at = Ingestion("s", Topics(folder), MemoryFormat(), Lake(str(folder)))
    return StoppedSource(at, Kafka(), at.format, MemoryControl(), UNFENCED)


def damaged(files: Mapping[Path, bytes]) -> Iterator[tuple[Path, bytes]]:
    """Files of which a byte is another one, or that end there; one that is JSON still, and no offsets."""
    plan = next(file for file in files if file.match("offsets/3"))
    yield plan, files[plan].replace(b'"1":', b'"x":')
    every = [(file, at) for file, content in files.items() for at in range(len(content))]
    for number, (file, at) in enumerate(random.Random(SEED).sample(every, DAMAGED)):
        content = bytearray(files[file])
        content[at] ^= 1 << number % 8
        yield file, bytes(content if number % 3 else content[:at])


def test_whatever_byte_of_a_checkpoint_is_another_one_the_new_one_is_the_same(
    exact: SparkSession, tmp_path: Path
) -> None:
    """No checksum tells, as on an object store (F-C1): bronze alone decides."""
    of = stopped(tmp_path)
    records = [record("t", 4, None, "{}"), record("t", 6, None, "{}", partition=1)]
    of.at.format.append(bronze(exact, records), of.at.table, Progress(f"bronze/s/{STREAM}", 3))
    place = Path(of.at.lake.checkpoint("s"))
    checkpoint.create(exact, str(place), STREAM, 3, {"t": {"0": 5, "1": 7}})
    right = new_checkpoint.build_plan(exact, of, {})
    assert (right.stream, right.number, [each.start for each in right.starts]) == (STREAM, 3, [5, 7])
    for checksum in place.rglob(".*.crc"):
        checksum.unlink()
    files = {file: file.read_bytes() for file in sorted(place.rglob("*")) if file.is_file()}
    for file, content in damaged(files):
        file.write_bytes(content)
        assert new_checkpoint.build_plan(exact, of, {}) == right, (file, content)
        file.write_bytes(files[file])


def test_a_checkpoint_is_not_written_where_one_is(exact: SparkSession, tmp_path: Path) -> None:
    """A part of the other one would stay without a word."""
    place = str(tmp_path / "checkpoint")
    checkpoint.create(exact, place, STREAM, 3, {"t": {"0": 5}})
    with pytest.raises(ReplicatorError, match="already exists"):
        checkpoint.create(exact, place, STREAM, 3, {"t": {"0": 6}})


def test_a_checkpoint_is_made_of_a_bronze_that_a_stream_wrote(exact: SparkSession, tmp_path: Path) -> None:
    """Without one nobody knows what was read, nor as which stream."""
    of = stopped(tmp_path)
    with pytest.raises(TableMissing, match="there is no bronze of s"):
        new_checkpoint.build_plan(exact, of, {})
    of.at.format.append(bronze(exact, [record("t", 4, None, "{}")]), of.at.table, None)
    with pytest.raises(BronzeReplaced, match="none was written by a stream from Kafka"):
        new_checkpoint.build_plan(exact, of, {})


def test_a_bronze_that_lacks_what_silver_has_read_gets_no_checkpoint(exact: SparkSession, tmp_path: Path) -> None:
    """Its next records would have versions that silver takes for read (F-C6)."""
    of = stopped(tmp_path)
    of.at.format.append(bronze(exact, [record("t", 4, None, "{}")]), of.at.table, Progress(f"bronze/s/{STREAM}", 3))
    silver = of.at.lake.silver("s", "d.t", ("id",))
    bronze_id = of.at.format.identity(exact, of.at.table) or ""
    for version, is_older in ((0, False), (2, True)):
        of.silver.append(made(exact, [(1,)], "id INT"), silver, Progress(bronze_id, version))
        if is_older:
            with pytest.raises(
                BronzeReplaced, match="silver has read bronze up to version 2, but bronze is at version 0"
            ):
                new_checkpoint.build_plan(exact, of, {})
        else:
            new_checkpoint.build_plan(exact, of, {})
