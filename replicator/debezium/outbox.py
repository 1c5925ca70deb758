"""Conversion of records from Debezium's outbox event router to rows of a table of events (debezium.md I1 to I3).

The router's record has no envelope: the key is the aggregate's id, the header ``id`` the event's, and the value is just
the payload, as a JSON string, as JSON, or as bytes. It becomes a flattened record with a schema of its own: ``id``,
``aggregate_id``, ``payload`` and ``headers``. Pure Python.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from replicator.debezium.jsontext import dumps, loads
from replicator.spec import AGGREGATE_ID, EVENT_ID, Outbox

_ID_HEADER = "id"
_OWN_HEADERS = "__debezium."


@dataclass(frozen=True)
class RouterRecord:
    """One record of the router: texts, header bytes, and the value's bytes if they are not UTF-8."""

    table: str
    key: str | None
    value: str | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    undecodable: bytes | None = None


def flatten(routed: RouterRecord, outbox: Outbox) -> tuple[str | None, str | None] | None:
    """Key and value of the flattened record; None if the record is to be classified as it is.

    That is the case for a NULL without a meaning (I3), and for bytes that are not UTF-8 if the payload is not declared
    as bytes. The key is None without a header ``id``: such an event cannot be distinguished from its repetition.
    """
    payload = _payload(routed, outbox)
    if payload is None and (routed.undecodable is not None or not outbox.null_deletes):
        return None
    row: dict[str, Any] = {
        EVENT_ID: _header(routed, _ID_HEADER),
        AGGREGATE_ID: _unquoted(routed.key),
        "payload": payload.text if payload is not None else None,
        "headers": _headers(routed),
    }
    schema, _, table = routed.table.partition(".")
    metadata = {"__op": "c", "__deleted": str(payload is None).lower(), "__schema": schema, "__table": table}
    key = row[outbox.key]
    is_binary = payload.is_binary if payload is not None else outbox.binary
    value = dumps({"schema": _block(is_binary), "payload": row | metadata})
    return None if key is None else dumps({"schema": _key_block(outbox.key), "payload": {outbox.key: key}}), value


@dataclass(frozen=True)
class _Payload:
    """An event's payload; ``text`` is base64 if it is binary."""

    text: str
    is_binary: bool


def _payload(routed: RouterRecord, outbox: Outbox) -> _Payload | None:
    """The payload; None if it is missing or unreadable."""
    if routed.undecodable is not None:
        return _Payload(base64.b64encode(routed.undecodable).decode(), True) if outbox.binary else None
    text = routed.value or ""
    found = _json(text)
    kind = None
    if isinstance(found, dict) and set(found) == {"schema", "payload"}:
        kind, found = found["schema"], found["payload"]
        text = dumps(found)
    if text.strip() in ("", "null"):
        return None
    is_binary = outbox.binary or (isinstance(kind, dict) and kind.get("type") == "bytes")
    if isinstance(found, str):
        return _Payload(found, is_binary)
    return _Payload(base64.b64encode(text.encode()).decode() if is_binary else text, is_binary)


def _json(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None


def _unquoted(text: str | None) -> str | None:
    """A text as it is, or the content of a JSON string, with or without a schema wrapper."""
    if text is None:
        return None
    found = _json(text)
    if isinstance(found, dict) and set(found) == {"schema", "payload"}:
        found, text = found["payload"], dumps(found["payload"])
    if isinstance(found, str):
        return found
    return None if text.strip() in ("", "null") else text


def _header(routed: RouterRecord, wanted: str) -> str | None:
    held = next((held for name, held in routed.headers if name == wanted and held is not None), None)
    return None if held is None else _unquoted(_text(held))


def _headers(routed: RouterRecord) -> Mapping[str, str | None]:
    """The user's headers; one that is not UTF-8 is only in bronze."""
    return {
        name: _unquoted(_text(held))
        for name, held in routed.headers
        if name != _ID_HEADER and not name.startswith(_OWN_HEADERS) and held is not None and _text(held) is not None
    }


def _text(held: bytes) -> str | None:
    try:
        return held.decode()
    except UnicodeDecodeError:
        return None


def _block(is_binary: bool) -> dict[str, Any]:
    text = {"type": "string", "optional": True}
    headers = {"type": "map", "keys": {"type": "string"}, "values": text, "optional": True, "field": "headers"}
    payload = {"type": "bytes" if is_binary else "string", "optional": True, "field": "payload"}
    ids = [{**text, "field": name} for name in (EVENT_ID, AGGREGATE_ID)]
    return {"type": "struct", "fields": [*ids, payload, headers]}


def _key_block(column: str) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"type": "string", "optional": False, "field": column}]}
