"""Columns that are hashed or left out of a record's text before it is kept, in every shape that it may have.

Text in, text out, numbers untouched (types.md Y1). What cannot be read is not kept either: such a record stays as
REDACTED, which is no row, so that nothing passes because it looks odd.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

from replicator import names
from replicator.debezium.jsontext import Number, dumps, loads
from replicator.debezium.unavailable import Placeholder
from replicator.spec import Mask

REDACTED = '"not JSON, and not kept: mask_before_bronze"'
"""The value in the place of one of a masked table that cannot be read."""

_IMAGES = ("before", "after")
_CHANGED_FIELDS = "updateDescription"
"""MongoDB's second telling of what ``after`` holds, by paths into the document: left out, no part of it is read."""
_KEYS_IN_HEADERS = ("__debezium.newkey", "__debezium.oldkey")
_BRANCHES = ("string", "bytes", "int", "long", "float", "double", "boolean")
_TYPES = ("Value", "Key", "Envelope")
"""How the names of Avro types end, which begin with a namespace where there is one."""

_LONGEST = 400
"""Digits before or behind the point that a number is written out with: more than any DOUBLE has."""

_ODD = (ValueError, TypeError, AttributeError, RecursionError)
"""What a record raises that is no JSON, is nested too deep, or is not made of what its shape is made of."""

_TEXT_FIELD = {"type": "string", "optional": True}

Digest = Callable[[str], str]
Header = tuple[str | None, bytes | None]


@dataclass(frozen=True)
class Redaction:
    """The policies of one source by table, and how a value's text is hashed."""

    source: str
    masks: Mapping[str, Mask]
    digest: Digest
    placeholder: Placeholder

    def record(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Iterable[Header] | None
    ) -> tuple[bytes | None, bytes | None, list[Header] | None]:
        """Key, value and headers as they may be kept."""
        kept = None if headers is None else list(headers)
        found = None if value is None else _read(value)
        mask = self._mask(topic, found)
        if mask is None:
            return key, value, kept
        one = _Masking(mask, self.digest, frozenset(self.placeholder.spellings()))
        if kept is not None:
            kept = [(name, one.text(told) if name in _KEYS_IN_HEADERS else told) for name, told in kept]
        return one.text(key), one.text(value), kept

    def _mask(self, topic: str, value: Any) -> Mask | None:
        """By the topic's name, or by the table that an envelope names; of a tombstone in a topic that is named after no
        table all masks at once, as hashes: whose key it has nobody can say.
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
        return {names.in_topic(table): mask for table, mask in self.masks.items()}

    @cached_property
    def _of_all(self) -> Mask:
        named = dict.fromkeys(name for mask in self.masks.values() for name in (*mask.hashed, *mask.dropped))
        return Mask("", tuple(named))


@dataclass(frozen=True)
class _Masking:
    mask: Mask
    digest: Digest
    unsent: frozenset[str]

    def text(self, told: bytes | None) -> bytes | None:
        """A key or a value."""
        if told is None:
            return None
        try:
            value = loads(told.decode("utf-8"))
            is_readable = value is None or isinstance(value, dict)
            return (dumps(self._record(value)) if is_readable else REDACTED).encode("utf-8")
        except _ODD:
            return REDACTED.encode("utf-8")

    def _record(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "payload" in value and "schema" in value:
            return {**value, "schema": self._schema(value["schema"]), "payload": self._record(value["payload"])}
        if "specversion" in value and "data" in value:
            return {**value, "data": self._record(value["data"])}
        if _is_envelope(value):
            told = {name: held for name, held in value.items() if name != _CHANGED_FIELDS}
            return {name: self._row(held) if name in _IMAGES else held for name, held in told.items()}
        return self._row(value)

    def _row(self, row: Any) -> Any:
        if isinstance(row, str):  # a document as text
            inner = _read(row.encode("utf-8", "surrogatepass"))
            return dumps(self._row(inner)) if isinstance(inner, dict) else row
        if not isinstance(row, dict):
            return row
        if self._is_union(row):
            return {name: self._row(held) for name, held in row.items()}
        return {
            name: self._hashed(held) if name in self.mask.hashed else held
            for name, held in row.items()
            if name not in self.mask.dropped
        }

    def _is_union(self, row: dict[str, Any]) -> bool:
        """Whether this is a row under the name of its Avro type (A5), and no row of one column."""
        name, held = next(iter(row.items())) if len(row) == 1 else ("", None)
        is_named = name in (*self.mask.hashed, *self.mask.dropped)
        return isinstance(held, dict) and ("." in name or name in _TYPES) and not is_named

    def _hashed(self, value: Any) -> Any:
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _BRANCHES:
            return {"string": self._hashed(next(iter(value.values())))}
        if value is None or text_of(value) in self.unsent:
            return value
        return self.digest(text_of(value))

    def _schema(self, schema: Any) -> Any:
        """The block that describes a record, of an envelope or of a row."""
        fields = schema.get("fields") if isinstance(schema, dict) else None
        if not isinstance(fields, list):
            return schema
        if _is_envelope({field.get("field") for field in fields if isinstance(field, dict)}):
            told = [field for field in fields if field.get("field") != _CHANGED_FIELDS]
            return {**schema, "fields": [self._schema(f) if f.get("field") in _IMAGES else f for f in told]}
        kept = [field for field in fields if field.get("field") not in self.mask.dropped]
        return {**schema, "fields": [self._field(field) for field in kept]}

    def _field(self, field: dict[str, Any]) -> dict[str, Any]:
        is_hashed = field.get("field") in self.mask.hashed
        return {**_TEXT_FIELD, "field": field["field"]} if is_hashed else field


def text_of(value: Any) -> str:
    """The text of a value that is hashed: of a number its digits without an exponent and without zeros at the end of
    its decimals, as ``transforms.hashed`` makes it.
    """
    if isinstance(value, Number):
        return _digits(value.text)
    return value if isinstance(value, str) else dumps(value)


def _digits(written: str) -> str:
    try:
        number = Decimal(written)
    except InvalidOperation:  # an exponent that nothing can hold
        return written
    if not number:
        return "0"
    if not number.is_finite() or abs(number.adjusted()) > _LONGEST:
        return written
    whole, _, decimals = f"{number:f}".partition(".")
    return f"{whole}.{decimals.rstrip('0')}".removesuffix(".")


def _is_envelope(members: Collection[object]) -> bool:
    return "op" in members and any(name in members for name in (*_IMAGES, _CHANGED_FIELDS))


def _payload(value: Any) -> Any:
    return value.get("payload", value) if isinstance(value, dict) else value


def _is_tombstone(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict) and set(value) == {"schema", "payload"} and value["payload"] is None
    )


def _table(value: Any) -> str:
    """``<database or schema>.<table>`` as an envelope names it; '' where it does not."""
    payload = _payload(value)
    source = payload.get("source") if isinstance(payload, dict) else None
    if not isinstance(source, dict):
        return ""
    return f"{source.get('schema') or source.get('db') or ''}.{source.get('table') or source.get('collection') or ''}"


def _read(told: bytes) -> Any:
    """The JSON value; a text where it is none."""
    try:
        return loads(told.decode("utf-8"))
    except _ODD:
        return ""
