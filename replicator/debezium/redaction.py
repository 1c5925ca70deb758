"""Hashing and dropping of columns in a record's text before it is stored, in every shape that it may have.

Text in, text out, numbers untouched (types.md Y1). Text that cannot be parsed is replaced by REDACTED, which is not a
row, so that nothing passes because of an unexpected shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from replicator.debezium import cloudevents, mongodb
from replicator.debezium.jsontext import loads
from replicator.debezium.placeholder import Placeholder
from replicator.debezium.record_masking import PARSE_ERRORS, Digest, RecordMasker
from replicator.spec import Mask, sanitize_for_topic

_KEYS_IN_HEADERS = ("__debezium.newkey", "__debezium.oldkey")

Header = tuple[str | None, bytes | None]


@dataclass(frozen=True)
class Redaction:
    """The masks of one source by table; ``digest`` hashes a value's text."""

    source: str
    masks: Mapping[str, Mask]
    digest: Digest
    placeholder: Placeholder

    def record(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Iterable[Header] | None
    ) -> tuple[bytes | None, bytes | None, list[Header] | None]:
        """Mask the key, value and headers of a record."""
        kept = None if headers is None else list(headers)
        found = None if value is None else _parse(value)
        mask = self._mask(topic, found)
        if mask is None:
            return key, value, kept
        values = RecordMasker(mask, self.digest, self._unsent)
        keys = values.for_document_keys() if _may_be_document(found) else values
        if kept is not None:
            kept = [(name, keys.text(held) if name in _KEYS_IN_HEADERS else held) for name, held in kept]
        return keys.text(key), values.text(value), kept

    def _mask(self, topic: str, value: Any) -> Mask | None:
        """The mask by the topic's name, or by the table that an envelope names. A tombstone in a topic that is not
        named after a table gets all masks at once, as hashes: its key may be any table's.
        """
        table = topic.removeprefix(f"{self.source}.")
        parts = table.split(".")
        by_topic = self._by_topic.get(table) or self._by_topic.get(".".join(parts[-2:]))
        if by_topic is not None:
            return by_topic
        is_of_a_table = table != topic and len(parts) > 1
        return self._of_all if _is_tombstone(value) and not is_of_a_table else self.masks.get(_table(value))

    @cached_property
    def _by_topic(self) -> Mapping[str, Mask]:
        return {sanitize_for_topic(table): mask for table, mask in self.masks.items()}

    @cached_property
    def _unsent(self) -> frozenset[str]:
        return frozenset(self.placeholder.spellings())

    @cached_property
    def _of_all(self) -> Mask:
        named = dict.fromkeys(name for mask in self.masks.values() for name in (*mask.hashed, *mask.dropped))
        return Mask("", tuple(named))


def _is_tombstone(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict) and set(value) == {"schema", "payload"} and value["payload"] is None
    )


def _may_be_document(value: Any) -> bool:
    """Whether a record may be MongoDB's: it names no other connector. A flattened row and a tombstone name none."""
    return str(_source_metadata(value).get("connector") or mongodb.CONNECTOR).lower() == mongodb.CONNECTOR


def _table(value: Any) -> str:
    """``<database or schema>.<table>`` as an envelope or a cloud event names it; ``.`` if it names none."""
    found = {name: _without_union(held) for name, held in _source_metadata(value).items()}
    return f"{found.get('schema') or found.get('db') or ''}.{found.get('table') or found.get('collection') or ''}"


def _without_union(held: Any) -> Any:
    """A text that may stand under the name of its type, in JSON made from Avro (A5)."""
    return held.get("string") if isinstance(held, dict) else held


def _source_metadata(value: Any) -> dict[str, Any]:
    """The ``source`` block of an envelope, or the extension attributes of a cloud event; empty if there are none."""
    payload = value.get("payload", value) if isinstance(value, dict) else None
    if not isinstance(payload, dict):
        return {}
    source = payload.get("source")
    return source if isinstance(source, dict) else cloudevents.extensions(payload)


def _parse(text: bytes) -> Any:
    """The JSON value of a text; '' if it is not JSON."""
    try:
        return loads(text.decode("utf-8"))
    except PARSE_ERRORS:
        return ""
