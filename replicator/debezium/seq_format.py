"""Formatting of ``_seq`` in the source's own terms: binlog file and position, LSN, SCN (debezium.md L2).

The inverse of ``position.py``, for display only; nothing is ever ordered by it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from replicator.errors import ReplicatorError
from replicator.spec import BY_GTID, BY_POSITION, BY_TIME

_SEQ = re.compile(r"([0-9a-f]{4})([0-9a-f]{20})([0-9a-f]{16})([0-9a-f]{16})[+]?(-?)")
CONNECTOR_BY_FIELD = {"file": "mysql", "lsn": "postgresql", "commit_lsn": "sqlserver", "commit_scn": "oracle"}
"""The connector that a metadata field of a flattened row implies."""


@dataclass(frozen=True)
class SeqParts:
    """The parts of a ``_seq``, the wide ones as hex texts. ``cleared``: it is of a column that a delete emptied."""

    epoch: int
    major: str
    minor: str
    offset: int
    cleared: bool = False

    @property
    def is_positioned(self) -> bool:
        """False in offset mode, and for snapshot rows that stand below every position."""
        return int(self.major + self.minor, 16) > 0

    def of(self, connector: str | None, order: str = BY_POSITION) -> dict[str, int | str]:
        """Names and values as in the connector's ``source`` block; ``offset`` always, ``epoch`` unless 0. ``order`` is
        the table's order (``SourceSpec.order``).
        """
        found: dict[str, int | str] = {} if self.epoch == 0 else {"epoch": self.epoch}
        if self.is_positioned:
            reader = _READERS_BY_ORDER.get(order) or _READERS.get(connector or "", _unknown)
            found |= reader(self.major, self.minor)
        return found | {"offset": self.offset}


def parse(seq: str) -> SeqParts:
    """Parse a ``_seq``, or a column's, which may end in ``-`` (Q1, M2). A ``+`` from :func:`next_seq` is ignored.
    Raises ReplicatorError for any other text.
    """
    match = _SEQ.fullmatch(seq)
    if match is None:
        raise ReplicatorError(f"{seq!r} is not a _seq", fix="It has 56 hex digits: epoch, major, minor, offset.")
    epoch, major, minor, offset, cleared = match.groups()
    return SeqParts(int(epoch, 16), major, minor, int(offset, 16), bool(cleared))


def next_seq(seq: str) -> str:
    """The ``_seq`` right after the given one, as ``position.next_seq`` builds it."""
    place, offset = seq[:-16], int(seq[-16:], 16)
    return f"{place}{offset + 1:016x}" if int(place[4:], 16) else f"{seq}+"


def describe(seq: str, connector: str | None, order: str = BY_POSITION) -> str:
    """Format a ``_seq`` as one line: ``file 3, pos 1819, offset 41``; '' (a value never seen) as ``never``."""
    if not seq:
        return "never"
    terms = parse(seq)
    line = ", ".join(f"{name} {value}" for name, value in terms.of(connector, order).items())
    return f"deleted at {line}" if terms.cleared else line


def connector_of(value: str | None) -> str | None:
    """The connector that wrote a record, by the ``source`` of an envelope or the metadata fields of a flattened row."""
    try:
        body: Any = json.loads(value or "")
    except (ValueError, RecursionError):
        return None
    if isinstance(body, dict) and isinstance(body.get("payload"), dict) and "op" not in body:
        body = body["payload"]
    if not isinstance(body, dict):
        return None
    source = body.get("source")
    if isinstance(source, dict):
        return str(source["connector"]).lower() if source.get("connector") else None
    field = {name: body.get(f"__source_{name}", body.get(f"__{name}")) for name in ("connector", *CONNECTOR_BY_FIELD)}
    if field["connector"]:
        return str(field["connector"]).lower()
    return next((connector for name, connector in CONNECTOR_BY_FIELD.items() if field[name] is not None), None)


def _binlog(major: str, minor: str) -> dict[str, int | str]:
    row: dict[str, int | str] = {"row": int(minor, 16)} if int(minor, 16) else {}
    return {"file": int(major[:8], 16), "pos": int(major[8:], 16)} | row


def _gtid(major: str, minor: str) -> dict[str, int | str]:  # noqa: ARG001 - it has no minor part
    return {"gtid sequence": int(major, 16)}


def _time(major: str, minor: str) -> dict[str, int | str]:  # noqa: ARG001 - it has no minor part
    return {"ts_ms": int(major, 16)}


def _postgres(major: str, minor: str) -> dict[str, int | str]:
    return {"commit_lsn": _lsn(major), "lsn": _lsn(minor)}


def _lsn(digits: str) -> str:
    number = int(digits, 16)
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


def _sqlserver(major: str, minor: str) -> dict[str, int | str]:  # noqa: ARG001 - it has no minor part
    return {"commit_lsn": f"{major[:8]}:{major[8:16]}:{major[16:]}"}


def _oracle(major: str, minor: str) -> dict[str, int | str]:  # noqa: ARG001 - it has no minor part
    return {"commit_scn": int(major, 16)}


def _unknown(major: str, minor: str) -> dict[str, int | str]:
    return {"major": major, "minor": minor}


_READERS_BY_ORDER = {BY_GTID: _gtid, BY_TIME: _time}
_READERS = {
    "mysql": _binlog,
    "mariadb": _binlog,
    "postgresql": _postgres,
    "sqlserver": _sqlserver,
    "oracle": _oracle,
}
