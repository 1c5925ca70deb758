"""Files of recorded events, record by record, without Spark."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from replicator.debezium.spoken import Record
from replicator.errors import BadRecording


def of_file(path: Path) -> Iterator[Record]:
    """The records of a file as ``kcat -C -J`` prints them, plain or ``.gz``. Raises BadRecording."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _recorded(line, f"{path}:{number}")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRecording("a recorded file cannot be read", where=str(path), mend="Check the path.") from error


def _recorded(line: str, where: str) -> Record:
    try:
        told = json.loads(line)
        key, value = (None if told[part] is None else str(told[part]).encode() for part in ("key", "payload"))
        return Record(str(told["topic"]), int(told["partition"]), int(told["offset"]), told.get("ts"), key, value)
    except (ValueError, TypeError, KeyError) as error:
        mend = "Expected JSON lines with topic, partition, offset, key and payload, as `kcat -C -J` prints them."
        raise BadRecording("a line is no Kafka record", where=where, mend=mend) from error
