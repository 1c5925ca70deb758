"""Conversion of Debezium's CloudEvents, in structured mode, to plain envelopes (debezium.md A6).

Operation and position are extension attributes, all of them text, with lower-case names: ``iodebeziumop``,
``iodebeziumlsn``, ``iodebeziumtsms``. ``data`` has ``before`` and ``after``, with or without their schema. Pure Python
over values of :mod:`replicator.debezium.jsontext`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from replicator.debezium.jsontext import Number, dumps
from replicator.debezium.source_block import SOURCE_FIELDS

_PREFIX = "iodebezium"
_FIELDS = {
    _PREFIX + name.replace("_", "").lower(): (name, kind)
    for name, kind in (part.split(" ") for part in SOURCE_FIELDS.split(", "))
}
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_OP = {"type": "string", "optional": False, "field": "op"}


def to_envelope(event: dict[str, Any]) -> dict[str, Any] | None:
    """Convert an event to the equivalent envelope; None if it is not one of Debezium's.

    What the event lacks is missing in the envelope, too, which is then classified like any other: without its operation
    it is ``unknown_op``.
    """
    if "specversion" not in event or not is_debezium(event):
        return None
    data, block = event.get("data"), None
    if isinstance(data, dict) and set(data) == {"schema", "payload"}:
        data, block = data["payload"], data["schema"]
    if not isinstance(data, dict):
        data = {}
    if "op" in data and isinstance(data.get("source"), dict):
        return data if block is None else {"schema": block, "payload": data}
    sides = {side: data[side] for side in ("before", "after") if side in data}
    payload = {**sides, "source": _source(event)}
    if sides and isinstance(event.get(f"{_PREFIX}op"), str):
        payload["op"] = event[f"{_PREFIX}op"]
    return payload if not isinstance(block, dict) else {"schema": _with_op(block), "payload": payload}


def extensions(event: Mapping[str, Any]) -> dict[str, Any]:
    """Debezium's extension attributes, by name without the prefix."""
    return {name.removeprefix(_PREFIX): held for name, held in event.items() if name.startswith(_PREFIX)}


def is_debezium(event: Mapping[str, Any]) -> bool:
    """Whether an event comes from Debezium."""
    return str(event.get("type")).startswith("io.debezium.") or any(name.startswith(_PREFIX) for name in event)


def _source(event: dict[str, Any]) -> dict[str, Any]:
    """The source block; connector and name also stand in the event's own source, ``/debezium/<connector>/<name>``."""
    path = re.fullmatch(r"/debezium/([^/]+)/(.+)", str(event.get("source", "")))
    found: dict[str, Any] = {} if path is None else {"connector": path.group(1), "name": path.group(2)}
    for attribute, (name, kind) in _FIELDS.items():
        value = event.get(attribute)
        if value is not None:
            found[name] = _typed(value, kind)
    return found


def _typed(value: Any, kind: str) -> Any:
    text = value.text if isinstance(value, Number) else value if isinstance(value, str) else dumps(value)
    return Number(text) if kind == "BIGINT" and _INTEGER.fullmatch(text) else text


def _with_op(block: dict[str, Any]) -> dict[str, Any]:
    """The schema of ``data`` as an envelope's, by adding ``op``: without it the sides would be columns of a row."""
    return {**block, "fields": [*(block.get("fields") or []), _OP]}
