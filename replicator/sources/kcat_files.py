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
"""How files begin that hold the right lines in a wrong way."""
_PATTERN = re.compile(r"[\\{}\[\]*?]")


def refuse_missing(files: Sequence[str]) -> None:
    """Raise BadRecording for files of this machine that are not there. What may be a pattern, or lies elsewhere, is
    Spark's to look for.
    """
    plain = [file for file in files if "://" not in file and not _PATTERN.search(file)]
    absent = [file for file in plain if not Path(file).exists()]
    if absent:
        raise BadRecording("a recorded file cannot be read", where=", ".join(absent), mend="Check the path.")


def read_records(path: Path) -> Iterator[KafkaRecord]:
    """The records of a file as ``kcat -C -J`` prints them, plain or ``.gz``. Raises BadRecording."""
    try:
        with _opener(path)(path, "rt", encoding="utf-8-sig", errors="surrogateescape") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _parse_record(line, path, number)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        mend = "Is it whole, and of the kind that its name says (.gz)?"
        raise BadRecording("a recorded file cannot be read", where=str(path), mend=mend) from error
    except OSError as error:
        told = f"a recorded file cannot be read: {error.strerror}"
        raise BadRecording(told, where=str(path), mend="Check the path.") from error


def raw_json_parts(line: str | None) -> tuple[str | None, str | None] | None:
    """Key and payload of a line, as their own texts where they stand in it as JSON; None of what is a text, or null,
    and of a line that Python cannot read.
    """
    try:
        told = jsontext.loads(line or "")
    except (ValueError, RecursionError):
        return None
    key, payload = (told.get(part) for part in ("key", "payload"))
    return _raw_json(key), _raw_json(payload)


def _raw_json(told: Any) -> str | None:
    return None if told is None or isinstance(told, str) else jsontext.dumps(told)


def _opener(path: Path) -> Callable[..., Any]:
    return gzip.open if path.suffix == ".gz" else open


def _format_hint(path: Path) -> str:
    """What a file should have been, and how to mend one that is compressed or in UTF-16, which its beginning tells."""
    with _opener(path)(path, "rb") as file:
        start = file.read(2)
    if start in _GZIP:
        return f"It is compressed: name it {path.name}.gz, or `gunzip` it. {EXPECTED}"
    if start in _UTF_16:
        return f"It is in UTF-16, as `>` of some shells writes: `iconv -f UTF-16 -t UTF-8`. {EXPECTED}"
    return EXPECTED


def _parse_record(line: str, path: Path, number: int) -> KafkaRecord:
    try:
        line.encode()  # refuses bytes that are no UTF-8
        told = json.loads(line)
        key, value = (_text(told[part], line, part) for part in ("key", "payload"))
        return KafkaRecord(str(told["topic"]), int(told["partition"]), int(told["offset"]), told.get("ts"), key, value)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadRecording("a line is no Kafka record", where=f"{path}:{number}", mend=_format_hint(path)) from error


def _text(told: Any, line: str, part: str) -> bytes | None:
    """A part of a record; one that stands in the line as JSON, and not as a text, is its own text, as silver has it."""
    text = told if isinstance(told, str) else _raw_json(jsontext.loads(line)[part])
    return None if text is None else text.encode()
