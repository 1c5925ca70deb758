"""One record's text without what a policy keeps out, in every place where a column may stand.

Members that a shape has for itself are no columns: those of an envelope, of a converter's wrapper, of a cloud event.
A row may look like one of them, by columns called ``op`` and ``before``, or ``payload`` and ``schema``. What is not
sure to be one is therefore both: each of its members may be a column, and rows are looked for where a shape has them.
What is hidden in vain costs a value, what is not hidden rests in clear.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from replicator.debezium import cloudevents, mongodb
from replicator.debezium.jsontext import Number, dumps, loads
from replicator.spec import Mask

REDACTED = '"not JSON, and not kept: mask_before_bronze"'
"""The value in the place of one of a masked table that cannot be read."""

PARSE_ERRORS = (ValueError, TypeError, AttributeError, RecursionError)
"""What a record raises that is no JSON, is nested too deep, or is not made of what its shape is made of."""

_SIDES = ("before", "after")
_INSIDE = ("payload", "data")
_WRAPPER = frozenset({"schema", "payload"})
_CHANGED_FIELDS = "updateDescription"
"""MongoDB's second telling of what ``after`` holds, by paths into the document: left out, no part of it is read."""
_ENVELOPE = frozenset({*_SIDES, "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns", _CHANGED_FIELDS})
_BRANCHES = ("string", "bytes", "int", "long", "float", "double", "boolean")
_TYPES = ("Value", "Key", "Envelope")
"""How the names of Avro types end, which begin with a namespace where there is one."""

_LONGEST = 400
"""Digits before or behind the point that a number is written out with: more than any DOUBLE has."""

_TEXT_FIELD = {"type": "string", "optional": True}
_NO_ROWS = "nothing that can be read stands where rows do"

Digest = Callable[[str], str]


@dataclass(frozen=True)
class RecordMasker:
    """A table's policy, how a value's text is hashed, and the texts of values that were not sent; ``identity`` is the
    member that holds a document's identity as text, of keys.
    """

    mask: Mask
    digest: Digest
    unsent: frozenset[str]
    identity: str = ""

    def for_document_keys(self) -> RecordMasker:
        """For the keys of MongoDB, which have the document's ``_id`` under another name (K1)."""
        hashed, dropped = self.mask.hashed, self.mask.dropped
        if mongodb.ID in hashed:
            return replace(self, mask=replace(self.mask, hashed=(*hashed, mongodb.KEY)), identity=mongodb.KEY)
        if mongodb.ID in dropped:
            return replace(self, mask=replace(self.mask, dropped=(*dropped, mongodb.KEY)))
        return self

    def text(self, told: bytes | None) -> bytes | None:
        """A key or a value as it may be kept."""
        if told is None:
            return None
        try:
            value = loads(told.decode("utf-8"))
            is_readable = value is None or isinstance(value, dict)
            return (dumps(self._record(value)) if is_readable else REDACTED).encode("utf-8")
        except PARSE_ERRORS:
            return REDACTED.encode("utf-8")

    def _record(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if self._is_union(value):
            return {name: self._record(held) for name, held in value.items()}
        own = _wrapper_members(value)
        kept = {name: held for name, held in value.items() if not self._is_left_out(name, held, own)}
        return {name: self._member(name, held, own) for name, held in kept.items()}

    def _member(self, name: str, held: Any, own: Collection[str]) -> Any:
        if self.mask.hashes(name) and name not in own:
            return self._hashed(name, held)
        if name in _SIDES:
            return self._side(held, is_sure=name in own)
        if name in _INSIDE:
            if name in own and held is not None and not isinstance(held, dict):
                raise ValueError(_NO_ROWS)
            return self._record(held)
        return self._schema(held) if name == "schema" and name in own else held

    def _side(self, held: Any, *, is_sure: bool) -> Any:
        """A row, or a document as text."""
        row = parse_json(held) if isinstance(held, str) else held
        if isinstance(row, dict):
            kept = self._row(row)
            return kept if row is held else dumps(kept) if kept != row else held
        if is_sure and row is not None:
            raise ValueError(_NO_ROWS)
        return held

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        if self._is_union(row):
            return {name: self._side(held, is_sure=False) for name, held in row.items()}
        return {
            name: self._hashed(name, held) if self.mask.hashes(name) else held
            for name, held in row.items()
            if not self.mask.drops(name)
        }

    def _is_left_out(self, name: str, held: Any, own: Collection[str]) -> bool:
        is_told_twice = name == _CHANGED_FIELDS and (name in own or isinstance(held, dict))
        return is_told_twice or (self.mask.drops(name) and name not in own)

    def _is_union(self, row: dict[str, Any]) -> bool:
        """Whether this is a row under the name of its Avro type (A5), and no row of one column."""
        name, held = next(iter(row.items())) if len(row) == 1 else ("", None)
        is_named = self.mask.hashes(name) or self.mask.drops(name)
        is_type = isinstance(held, dict) and ("." in name or name in _TYPES)
        return (is_type or (name == "string" and isinstance(held, str))) and not is_named

    def _hashed(self, name: str, value: Any) -> Any:
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _BRANCHES:
            return {"string": self._hashed(name, next(iter(value.values())))}
        if value is None or text_to_hash(value) in self.unsent:
            return value
        return self.digest(self._told(name, value))

    def _told(self, name: str, value: Any) -> str:
        """What of a value is hashed: of a document's parts what silver has of them."""
        if name == self.identity and isinstance(value, str):
            return mongodb.key_document_id(value)
        return (
            mongodb.document_id(value)
            if name in (self.identity, mongodb.ID)
            else text_to_hash(mongodb.strip_type(value))
        )

    def _schema(self, schema: Any) -> Any:
        """The block that describes a record, of an envelope or of a row."""
        fields = schema.get("fields") if isinstance(schema, dict) else None
        if not isinstance(fields, list):
            return schema
        told = {field.get("field"): field if field.get("type") == "struct" else None for field in fields}
        own = _ENVELOPE if _is_envelope(told) else ()
        kept = [
            field for field in fields if not self._is_left_out(str(field.get("field")), told[field.get("field")], own)
        ]
        return {**schema, "fields": [self._field(field, own) for field in kept]}

    def _field(self, field: dict[str, Any], own: Collection[str]) -> Any:
        name = str(field.get("field"))
        if self.mask.hashes(name) and name not in own:
            return {**_TEXT_FIELD, "field": name}
        return self._schema(field) if name in (*_SIDES, *_INSIDE) else field


def parse_json(text: str) -> Any:
    """The JSON value; a text where it is none."""
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return ""


def text_to_hash(value: Any) -> str:
    """The text of a value that is hashed: of a number its digits without an exponent and without zeros at the end of
    its decimals, as ``transforms.hashed`` makes it.
    """
    if isinstance(value, Number):
        return _canonical_number(value.text)
    return value if isinstance(value, str) else dumps(value)


def _canonical_number(written: str) -> str:
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


def _wrapper_members(value: Mapping[str, Any]) -> Collection[str]:
    """The members that are no columns, where that is sure."""
    if _is_envelope(value):
        return _ENVELOPE
    if value.keys() == _WRAPPER and (value["schema"] is None or isinstance(value["schema"], dict)):
        return _WRAPPER
    is_event = "specversion" in value and "data" in value and cloudevents.is_debezium(value)
    return value.keys() if is_event else ()


def _is_envelope(members: Mapping[Any, Any]) -> bool:
    return "op" in members and isinstance(members.get("source"), dict)
