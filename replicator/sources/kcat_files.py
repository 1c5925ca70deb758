"""Files of recorded events, record by record, without Spark."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from replicator.debezium import jsontext
from replicator.debezium.event_reader import KafkaRecord
from replicator.errors import BadRecording

EXPECTED = "Expected JSON lines in UTF-8 with topic, partition, offset, key and payload, as `kcat -C -J` prints them."
_GZIP, _UTF_16 = (b"\x1f\x8b",), (b"\xff\xfe", b"\xfe\xff", b"{\0", b"\0{")
"""The first bytes of files that are compressed without the suffix, or in UTF-16."""
_PATTERN = re.compile(r"[\\{}\[\]*?]")


def refuse_missing(files: Sequence[str]) -> None:
    """Raise BadRecording for local files that do not exist. Patterns and remote paths are left to Spark."""
    plain = [file for file in files if "://" not in file and not _PATTERN.search(file)]
    absent = [file for file in plain if not Path(file).exists()]
    if absent:
        raise BadRecording("a recorded file cannot be read", where=", ".join(absent), fix="Check the path.")


def refuse_unreadable_names(files: Sequence[str]) -> None:
    """Raise BadRecording for files that Spark would skip silently as a writer's unfinished ones, or cannot open,
    because of their names.
    """
    for file in files:
        if reason := _unreadable_reason(file):
            where = file.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            raise BadRecording(f"a recorded file cannot be read: {reason}", where=where, fix="Rename it.")


def _unreadable_reason(file: str) -> str | None:
    name = file.rpartition("/")[2]
    if name.startswith(("_", ".")) or name.endswith("._COPYING_"):
        return "names that begin with _ or . or end with ._COPYING_ are those of hidden files"
    if ":" in name:
        return "its name contains a colon"
    if any("\udc80" <= each <= "\udcff" for each in file):
        return "its path is not valid UTF-8"
    return None


def read_records(path: Path) -> Iterator[KafkaRecord]:
    """Yield the records of a file as ``kcat -C -J`` prints them, plain or ``.gz``. Raises BadRecording."""
    try:
        with _opener(path)(path, "rt", encoding="utf-8-sig", errors="surrogateescape") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _parse_record(line, path, number)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        fix = "Check that it is complete and that its extension (.gz) matches its content."
        raise BadRecording("a recorded file cannot be read", where=str(path), fix=fix) from error
    except OSError as error:
        message = f"a recorded file cannot be read: {error.strerror}"
        raise BadRecording(message, where=str(path), fix="Check the path.") from error


def raw_json_parts(line: str | None) -> tuple[str | None, str | None] | None:
    """Return key and payload of a line, as their original texts if they are written as JSON; None for a part that is a
    text or null, and for a line that Python cannot parse.
    """
    try:
        record = jsontext.loads(line or "")
    except (ValueError, RecursionError):
        return None
    key, payload = (record.get(part) for part in ("key", "payload"))
    return _raw_json(key), _raw_json(payload)


def _raw_json(part: Any) -> str | None:
    return None if part is None or isinstance(part, str) else jsontext.dumps(part)


def _opener(path: Path) -> Callable[..., Any]:
    return gzip.open if path.suffix == ".gz" else open


def _format_hint(path: Path) -> str:
    """The expected format, and how to convert a file that is compressed or in UTF-16, as its first bytes show."""
    with _opener(path)(path, "rb") as file:
        start = file.read(2)
    if start in _GZIP:
        return f"It is compressed: name it {path.name}.gz, or `gunzip` it. {EXPECTED}"
    if start in _UTF_16:
        return f"It is in UTF-16, as some shells write with `>`: `iconv -f UTF-16 -t UTF-8`. {EXPECTED}"
    return EXPECTED


def _parse_record(line: str, path: Path, number: int) -> KafkaRecord:
    try:
        line.encode()  # refuses bytes that are not UTF-8
        record = json.loads(line)
        key, value = (_text(record[part], line, part) for part in ("key", "payload"))
        partition, offset = _integer(record["partition"], 32), _integer(record["offset"], 64)
        ts = None if record.get("ts") is None else _integer(record["ts"], 64)
        return KafkaRecord(_name(record["topic"]), partition, offset, ts, key, value)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadRecording("a line is not a Kafka record", where=f"{path}:{number}", fix=_format_hint(path)) from error


def _name(topic: Any) -> str:
    if topic is None:
        raise TypeError("no topic")
    return str(topic)


def _integer(value: Any, bits: int) -> int:
    """A number that Spark reads as an integer of so many bits, too. Raises TypeError."""
    if type(value) is not int or value.bit_length() >= bits:
        raise TypeError(f"not an integer of {bits} bits")
    return value


def _text(value: Any, line: str, part: str) -> bytes | None:
    """A part of a record; a part written as JSON instead of a text keeps its original text, as in silver."""
    text = value if isinstance(value, str) else _raw_json(jsontext.loads(line)[part])
    return None if text is None else text.encode()
