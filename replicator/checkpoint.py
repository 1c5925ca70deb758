"""What the checkpoint of a stream from Kafka says, and how other topics go on from it.

Spark keeps two logs of small files, one of each per batch: in ``offsets`` where each partition's batch ends, written
before it, and in ``commits`` that it was done. A topic that has left the subscription, and one that comes and does not
begin at 0, it takes for lost data; by then the batch is planned, and planned again by each later run. So before a
stream starts, a batch without records stands between what was read and the topics that are read from now on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from replicator import failpoints
from replicator.errors import CheckpointDamaged, ReplicatorError
from replicator.jvm import causes
from replicator.jvm.hadoop import file_system, read_error, read_text

EndOffsets = Mapping[str, Mapping[str, int]]
"""Topic -> partition -> the offset after the last record that was taken."""

_OFFSETS, _COMMITS, _METADATA, _BEGINNING = "offsets", "commits", "metadata", "sources"
_VERSION = re.compile(r"v\d+")
_FIRST_HEAD = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}'
_FIRST_COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


@dataclass(frozen=True)
class Batch:
    """The newest batch that is planned: ``head`` is what its file says before its ``ends``."""

    number: int
    head: str
    ends: EndOffsets
    is_done: bool

    @property
    def done(self) -> int:
        """The newest one that is done: this, or the one before it."""
        return self.number if self.is_done else self.number - 1


def read_stream_id(spark: SparkSession, checkpoint: str) -> str | None:
    """The id of the stream whose checkpoint it is; None where there is none. Raises CheckpointDamaged."""
    path = f"{checkpoint}/{_METADATA}"
    files, place, _ = file_system(spark, path)
    if not files.exists(place):
        return None
    return str(_parse_object(path, _read_text(spark, path), "id")["id"])


def read_newest_batch(spark: SparkSession, checkpoint: str) -> Batch | None:
    """None where no batch was planned yet. Raises CheckpointDamaged where a file is damaged, or a plan gone, that a
    stream begins with: those of the newest batches.
    """
    planned, taken = (
        _batch_numbers(spark, f"{checkpoint}/{_OFFSETS}"),
        _batch_numbers(spark, f"{checkpoint}/{_COMMITS}"),
    )
    if not planned:
        return None
    number = max(planned)
    if number:
        if number - 1 not in planned:
            raise _damaged(f"{checkpoint}/{_OFFSETS}/{number - 1}", "gone")
        _read_plan(spark, checkpoint, number - 1)
    if taken:
        _refuse_damaged_commit(spark, f"{checkpoint}/{_COMMITS}/{max(taken)}")
    return Batch(number, *_read_plan(spark, checkpoint, number), number in taken)


def read_committed_offsets(spark: SparkSession, checkpoint: str) -> EndOffsets:
    """Where the newest batch ends that is done; nowhere without one. Raises CheckpointDamaged, also where those are no
    offsets of partitions.
    """
    batch = read_newest_batch(spark, checkpoint)
    found = {} if batch is None else (read_end_offsets(spark, checkpoint, batch.done) or {})
    if batch is not None and not all(map(_is_partition_offsets, found.values())):
        raise _damaged(f"{checkpoint}/{_OFFSETS}/{batch.done}")
    return found


def _is_partition_offsets(told: object) -> bool:
    return isinstance(told, dict) and all(part.isdecimal() and type(end) is int for part, end in told.items())


def read_end_offsets(spark: SparkSession, checkpoint: str, number: int) -> EndOffsets | None:
    """Where a batch ends; None where its plan is not kept any more. Raises CheckpointDamaged."""
    files, place, _ = file_system(spark, f"{checkpoint}/{_OFFSETS}/{number}")
    return _read_plan(spark, checkpoint, number)[1] if files.exists(place) else None


def _read_plan(spark: SparkSession, checkpoint: str, number: int) -> tuple[str, EndOffsets]:
    """What the file of a plan says: its head and its ends."""
    path = f"{checkpoint}/{_OFFSETS}/{number}"
    head, _, ends = _read_text(spark, path).rstrip("\n").rpartition("\n")
    if _VERSION.fullmatch(head.partition("\n")[0]) is None or "\n" not in head:
        raise _damaged(path)
    return head, _parse_object(path, ends)


def _refuse_damaged_commit(spark: SparkSession, path: str) -> None:
    version, _, rest = _read_text(spark, path).partition("\n")
    if _VERSION.fullmatch(version) is None:
        raise _damaged(path)
    _parse_object(path, rest)


def _read_text(spark: SparkSession, path: str) -> str:
    """What a file holds. Raises as ``read_error``, and CheckpointDamaged where its checksum is another."""
    try:
        return read_text(spark, path)
    except Py4JJavaError as error:
        if causes.is_infrastructure(error):
            raise read_error(path, error) from error
        raise _damaged(path) from error


def _parse_object(path: str, told: str, *names: str) -> dict[str, Any]:
    """A JSON object that has these names."""
    try:
        found = json.loads(told)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found.keys() >= set(names):
        raise _damaged(path)
    return found


def _damaged(path: str, how: str = "damaged") -> CheckpointDamaged:
    what = f"a file of the stream's checkpoint is {how}"
    return CheckpointDamaged(what, where=path, mend=CheckpointDamaged.MEND)


def mark_committed(spark: SparkSession, checkpoint: str, batch: Batch) -> None:
    """Note that a planned batch is done, as Spark would have."""
    before = f"{checkpoint}/{_COMMITS}/{batch.number - 1}"
    _write(
        spark, f"{checkpoint}/{_COMMITS}/{batch.number}", read_text(spark, before) if batch.number else _FIRST_COMMIT
    )


def discard_plan(spark: SparkSession, checkpoint: str, batch: Batch) -> None:
    """Take back the plan of a batch of which nothing was written."""
    files, place, _ = file_system(spark, f"{checkpoint}/{_OFFSETS}/{batch.number}")
    files.delete(place, False)


def discard_starting_offsets(spark: SparkSession, checkpoint: str) -> None:
    """Forget where a stream that has planned nothing was to begin: Spark notes it before the first plan, and misses
    each topic of then that is not subscribed to any more.
    """
    files, place, _ = file_system(spark, f"{checkpoint}/{_BEGINNING}")
    files.delete(place, True)


def append_empty_batch(spark: SparkSession, checkpoint: str, batch: Batch, ends: EndOffsets) -> None:
    """A batch without records behind one that is done, with other ends. A death between its two files leaves a plan of
    which nothing was written.
    """
    number = batch.number + 1
    commit = read_text(spark, f"{checkpoint}/{_COMMITS}/{batch.number}")
    _write(spark, f"{checkpoint}/{_OFFSETS}/{number}", _format_plan(batch.head, ends))
    _write(spark, f"{checkpoint}/{_COMMITS}/{number}", commit)


def set_aside(spark: SparkSession, checkpoint: str, aside: str) -> bool:
    """Move what there is of a checkpoint to where nothing is; whether there was any. On an object store file by file: a
    death leaves a part of it in each place. Raises Unreachable, ReplicatorError where it cannot be moved.
    """
    files, place, jvm = file_system(spark, checkpoint)
    target = jvm.org.apache.hadoop.fs.Path(aside)
    try:
        if not files.exists(place):
            return False
        files.mkdirs(target.getParent())
        is_moved = bool(files.rename(place, target))
    except Py4JJavaError as error:
        raise read_error(checkpoint, error) from error
    if not is_moved:
        raise ReplicatorError(f"the checkpoint cannot be moved to {aside}", where=checkpoint)
    return True


def create(spark: SparkSession, checkpoint: str, stream_id: str, number: int, ends: EndOffsets) -> None:
    """A stream's checkpoint where none is: its batch of that number is done and ends there. A stream goes on from two
    plans. Until its last file, the stream's id, it is no stream's.
    """
    for each in range(max(0, number - 1), number + 1):
        _write(spark, f"{checkpoint}/{_OFFSETS}/{each}", _format_plan(_FIRST_HEAD, ends))
    _write(spark, f"{checkpoint}/{_COMMITS}/{number}", _FIRST_COMMIT)
    failpoints.hit("checkpoint.written")
    _write(spark, f"{checkpoint}/{_METADATA}", json.dumps({"id": stream_id}))


def _format_plan(head: str, ends: EndOffsets) -> str:
    return f"{head}\n{json.dumps(ends, separators=(',', ':'))}"


def _batch_numbers(spark: SparkSession, folder: str) -> set[int]:
    files, place, _ = file_system(spark, folder)
    if not files.exists(place):
        return set()
    names = (str(status.getPath().getName()) for status in files.listStatus(place))
    return {int(name) for name in names if name.isdigit()}


def _write(spark: SparkSession, path: str, content: str) -> None:
    """Whole or not at all: beside its place first, under a name that Spark does not read. Raises ReplicatorError where
    there is a file already.
    """
    folder, _, name = path.rpartition("/")
    files, place, jvm = file_system(spark, path)
    beside = jvm.org.apache.hadoop.fs.Path(f"{folder}/.{name}.new")
    stream = files.create(beside, True)
    try:
        stream.write(bytearray(content.encode()))
    finally:
        stream.close()
    if not files.rename(beside, place):
        raise ReplicatorError("a file of the stream's checkpoint was there already", where=path, mend="Run again.")
