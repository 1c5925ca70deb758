"""The checkpoint of a stream from Kafka: how it is read, and how it is changed when the set of topics changes.

Spark keeps two logs of small files, one file per batch in each: in ``offsets``, written before the batch, where each
partition's batch ends; in ``commits`` that the batch is done. Spark reports lost data for a topic that has left the
subscription, and for a new one that does not begin at offset 0; by then the batch is planned, and every later run plans
it again. So before a stream starts, a batch without records is inserted between what was read and the topics that are
read from now on.
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
"""Topic -> partition -> the offset after the last record that was read."""

_OFFSETS, _COMMITS, _METADATA, _BEGINNING = "offsets", "commits", "metadata", "sources"
_VERSION = re.compile(r"v\d+")
_FIRST_HEAD = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}'
_FIRST_COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


@dataclass(frozen=True)
class Batch:
    """The newest planned batch: ``head`` is the content of its file before its ``ends``."""

    number: int
    head: str
    ends: EndOffsets
    is_done: bool

    @property
    def done(self) -> int:
        """The number of the newest batch that is done: this one, or the one before it."""
        return self.number if self.is_done else self.number - 1


def read_stream_id(spark: SparkSession, checkpoint: str) -> str | None:
    """Return the id of the stream that owns the checkpoint; None if there is no checkpoint. Raises
    CheckpointDamaged.
    """
    path = f"{checkpoint}/{_METADATA}"
    files, place, _ = file_system(spark, path)
    if not files.exists(place):
        return None
    return str(_parse_object(path, _read_text(spark, path), "id")["id"])


def read_newest_batch(spark: SparkSession, checkpoint: str) -> Batch | None:
    """Return the newest planned batch; None if none was planned yet. Raises CheckpointDamaged if a file that a stream
    starts from is damaged, or a plan among them is missing: those of the newest batches.
    """
    planned, committed = (
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
    if committed:
        _refuse_damaged_commit(spark, f"{checkpoint}/{_COMMITS}/{max(committed)}")
    return Batch(number, *_read_plan(spark, checkpoint, number), number in committed)


def read_committed_offsets(spark: SparkSession, checkpoint: str) -> EndOffsets:
    """Return where the newest batch that is done ends; empty if there is none. Raises CheckpointDamaged, also if its
    offsets are not those of partitions.
    """
    batch = read_newest_batch(spark, checkpoint)
    found = {} if batch is None else (read_end_offsets(spark, checkpoint, batch.done) or {})
    if batch is not None and not all(map(_is_partition_offsets, found.values())):
        raise _damaged(f"{checkpoint}/{_OFFSETS}/{batch.done}")
    return found


def _is_partition_offsets(offsets: object) -> bool:
    return isinstance(offsets, dict) and all(part.isdecimal() and type(end) is int for part, end in offsets.items())


def read_end_offsets(spark: SparkSession, checkpoint: str, number: int) -> EndOffsets | None:
    """Return where a batch ends; None if its plan is no longer retained. Raises CheckpointDamaged."""
    files, place, _ = file_system(spark, f"{checkpoint}/{_OFFSETS}/{number}")
    return _read_plan(spark, checkpoint, number)[1] if files.exists(place) else None


def _read_plan(spark: SparkSession, checkpoint: str, number: int) -> tuple[str, EndOffsets]:
    """The content of a plan's file: its head and its end offsets."""
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
    """The content of a file. Raises as ``read_error`` does, and CheckpointDamaged if the checksum differs."""
    try:
        return read_text(spark, path)
    except Py4JJavaError as error:
        if causes.is_infrastructure(error):
            raise read_error(path, error) from error
        raise _damaged(path) from error


def _parse_object(path: str, text: str, *names: str) -> dict[str, Any]:
    """A JSON object that has at least these names."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found.keys() >= set(names):
        raise _damaged(path)
    return found


def _damaged(path: str, how: str = "damaged") -> CheckpointDamaged:
    what = f"a file of the stream's checkpoint is {how}"
    return CheckpointDamaged(what, where=path, fix=CheckpointDamaged.FIX)


def changes_topics(spark: SparkSession, checkpoint: str, batch: Batch) -> bool:
    """Return whether a batch is planned over other topics than the one before it. Raises CheckpointDamaged."""
    before = read_end_offsets(spark, checkpoint, batch.number - 1)
    return before is not None and before.keys() != batch.ends.keys()


def mark_committed(spark: SparkSession, checkpoint: str, batch: Batch) -> None:
    """Record that a planned batch is done, as Spark would have."""
    before = f"{checkpoint}/{_COMMITS}/{batch.number - 1}"
    _write(
        spark, f"{checkpoint}/{_COMMITS}/{batch.number}", read_text(spark, before) if batch.number else _FIRST_COMMIT
    )


def discard_plan(spark: SparkSession, checkpoint: str, batch: Batch) -> None:
    """Delete the plan of a batch of which nothing was written."""
    files, path, _ = file_system(spark, f"{checkpoint}/{_OFFSETS}/{batch.number}")
    files.delete(path, False)


def discard_starting_offsets(spark: SparkSession, checkpoint: str) -> None:
    """Delete the starting offsets of a stream that has planned nothing: Spark records them before the first plan, and
    fails for each topic among them that is no longer subscribed to.
    """
    files, path, _ = file_system(spark, f"{checkpoint}/{_BEGINNING}")
    files.delete(path, True)


def append_empty_batch(spark: SparkSession, checkpoint: str, batch: Batch, ends: EndOffsets) -> None:
    """Append a batch without records, with other end offsets, after one that is done. A crash between its two files
    leaves a plan of which nothing was written.
    """
    number = batch.number + 1
    commit = read_text(spark, f"{checkpoint}/{_COMMITS}/{batch.number}")
    _write(spark, f"{checkpoint}/{_OFFSETS}/{number}", _format_plan(batch.head, ends))
    _write(spark, f"{checkpoint}/{_COMMITS}/{number}", commit)


def set_aside(spark: SparkSession, checkpoint: str, aside: str) -> bool:
    """Move an existing checkpoint to ``aside``, where nothing may exist; return whether there was one. On an object
    store this moves file by file: a crash leaves a part in each place. Raises Unreachable, or ReplicatorError if it
    cannot be moved.
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
    """Create a stream's checkpoint where none exists: its batch ``number`` is done and ends at ``ends``. A stream
    resumes from two plans. Until its last file, the stream's id, is written, the checkpoint belongs to no stream.
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
    """Write a file atomically: first beside its place, under a name that Spark does not read. Raises ReplicatorError if
    the file already exists.
    """
    folder, _, name = path.rpartition("/")
    files, place, jvm = file_system(spark, path)
    temporary = jvm.org.apache.hadoop.fs.Path(f"{folder}/.{name}.new")
    stream = files.create(temporary, True)
    try:
        stream.write(bytearray(content.encode()))
    finally:
        stream.close()
    if not files.rename(temporary, place):
        raise ReplicatorError("a file of the stream's checkpoint already exists", where=path, fix="Run again.")
