"""What the checkpoint of a stream from Kafka says, and how other topics go on from it.

Spark keeps two logs of small files, one of each per batch: in ``offsets`` where each partition's batch ends, written
before it, and in ``commits`` that it was done. A topic that has left the subscription, and one that comes and does not
begin at 0, it takes for lost data; by then the batch is planned, and planned again by each later run. So before a
stream starts, a batch without records stands between what was read and the topics that are read from now on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from replicator.hadoop import file_system, text

Ends = Mapping[str, Mapping[str, int]]
"""Topic -> partition -> the offset after the last record that was taken."""

_OFFSETS, _COMMITS = "offsets", "commits"
_FIRST_COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


@dataclass(frozen=True)
class Batch:
    """The newest batch that is planned: ``head`` is what its file says before its ``ends``."""

    number: int
    head: str
    ends: Ends
    is_done: bool


def newest(spark: SparkSession, checkpoint: str) -> Batch | None:
    """None where no batch was planned yet."""
    planned = _numbers(spark, f"{checkpoint}/{_OFFSETS}")
    if not planned:
        return None
    number = max(planned)
    head, _, ends = text(spark, f"{checkpoint}/{_OFFSETS}/{number}").rstrip("\n").rpartition("\n")
    return Batch(number, head, json.loads(ends), number in _numbers(spark, f"{checkpoint}/{_COMMITS}"))


def done(spark: SparkSession, checkpoint: str, batch: Batch) -> None:
    """Note that a planned batch is done, as Spark would have."""
    before = f"{checkpoint}/{_COMMITS}/{batch.number - 1}"
    _write(spark, f"{checkpoint}/{_COMMITS}/{batch.number}", text(spark, before) if batch.number else _FIRST_COMMIT)


def undone(spark: SparkSession, checkpoint: str, batch: Batch) -> None:
    """Take back the plan of a batch of which nothing was written."""
    files, place, _ = file_system(spark, f"{checkpoint}/{_OFFSETS}/{batch.number}")
    files.delete(place, False)


def go_on(spark: SparkSession, checkpoint: str, batch: Batch, ends: Ends) -> None:
    """A batch without records behind one that is done, with other ends. A death between its two files leaves a plan of
    which nothing was written.
    """
    number = batch.number + 1
    commit = text(spark, f"{checkpoint}/{_COMMITS}/{batch.number}")
    _write(spark, f"{checkpoint}/{_OFFSETS}/{number}", f"{batch.head}\n{json.dumps(ends, separators=(',', ':'))}")
    _write(spark, f"{checkpoint}/{_COMMITS}/{number}", commit)


def _numbers(spark: SparkSession, folder: str) -> set[int]:
    files, place, _ = file_system(spark, folder)
    if not files.exists(place):
        return set()
    names = (str(status.getPath().getName()) for status in files.listStatus(place))
    return {int(name) for name in names if name.isdigit()}


def _write(spark: SparkSession, path: str, content: str) -> None:
    """Whole or not at all: beside its place first, under a name that Spark does not read."""
    folder, _, name = path.rpartition("/")
    files, place, jvm = file_system(spark, path)
    beside = jvm.org.apache.hadoop.fs.Path(f"{folder}/.{name}.new")
    stream = files.create(beside, True)
    try:
        stream.write(bytearray(content.encode()))
    finally:
        stream.close()
    files.rename(beside, place)
