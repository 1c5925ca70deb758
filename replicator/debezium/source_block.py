"""The ``source`` block of a record: the fields that are parsed, and its position in readable form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from replicator.debezium.jsontext import Number

SOURCE_FIELDS = (
    "version STRING, connector STRING, name STRING, ts_ms BIGINT, snapshot STRING, db STRING, schema STRING, "
    "table STRING, table_name STRING, file STRING, pos BIGINT, row BIGINT, gtid STRING, lsn BIGINT, sequence STRING, "
    "txId STRING, commit_lsn STRING, change_lsn STRING, scn STRING, commit_scn STRING"
)
"""The fields of ``source`` that ``position.py`` and the rules of sections B to D need; the rest is never parsed."""

SCHEMA_FIELDS = ("lsn", "commit_lsn", "commit_scn")
"""Fields of the connectors that name tables and topics by schema: PostgreSQL, SQL Server, Oracle."""

_FILE_NUMBER = re.compile(r"\d+$")


def format_position(source: Mapping[str, Any]) -> str:
    """The position in a ``source`` block, or in a flattened row's fields of it, as text: ``file 1, pos 364241``; '' if
    it has none.
    """
    if source.get("file") is not None:
        number = _FILE_NUMBER.search(str(source["file"]))
        parts = {"file": int(number[0]) if number else source["file"], "pos": _plain(source.get("pos"))}
        row = _plain(source.get("row"))
        return _listed(parts if row in (None, "0") else {**parts, "row": row})
    if source.get("commit_lsn") is not None:
        return _listed({"commit_lsn": source["commit_lsn"]})
    if source.get("commit_scn") is not None:
        return _listed({"commit_scn": _plain(source["commit_scn"])})
    lsn = _plain(source.get("lsn"))
    if lsn is not None and lsn.isdigit():
        number_ = int(lsn)
        return _listed({"lsn": f"{number_ >> 32:X}/{number_ & 0xFFFFFFFF:X}"})
    return ""


def schema_of(fields: Mapping[str, Any], of_topic: str | None) -> Any:
    """The schema of a flattened row's table, from the row's metadata fields and its topic; its database, if its
    connector names tables by that or nothing names the schema.
    """
    is_in_schema = any(name in fields or f"source_{name}" in fields for name in SCHEMA_FIELDS)
    return fields.get("schema") or (of_topic if is_in_schema else None) or fields.get("db") or of_topic


def _listed(parts: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in parts.items())


def _plain(value: Any) -> str | None:
    return value.text if isinstance(value, Number) else None if value is None else str(value)
