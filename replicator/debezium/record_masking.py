"""Masking of one record's key and value, in every place where a masked column may be.

The members of an envelope, a converter's wrapper or a cloud event are not columns. A row may look like one of these, by
columns named ``op`` and ``before``, or ``payload`` and ``schema``. An object that is not certain to be one is therefore
treated as both: each of its members may be a column, and rows are looked for where the shape would have them. Masking
too much costs a value; masking too little leaves it stored in clear text.
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
"""Replaces a key or value of a masked table that cannot be parsed."""

PARSE_ERRORS = (ValueError, TypeError, AttributeError, RecursionError)
"""Raised for a record that is not JSON, is nested too deep, or lacks the structure of its shape."""

_SIDES = ("before", "after")
_INSIDE = ("payload", "data")
_WRAPPER = frozenset({"schema", "payload"})
_CHANGED_FIELDS = "updateDescription"
"""MongoDB's repetition of changed fields by paths into the document: dropped, since nothing reads it."""
_ENVELOPE = frozenset({*_SIDES, "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns", _CHANGED_FIELDS})
_BRANCHES = ("string", "bytes", "int", "long", "float", "double", "boolean")
_TYPES = ("Value", "Key", "Envelope")
"""The simple names of Debezium's Avro types; a namespace may precede them."""

_LONGEST = 400
"""Digits before or after the point up to which a number is written without exponent: more than any DOUBLE has."""

_TEXT_FIELD = {"type": "string", "optional": True}
_NO_ROWS = "no readable row where rows are expected"

Digest = Callable[[str], str]


@dataclass(frozen=True)
class RecordMasker:
    """Masks keys and values by a table's policy. ``digest`` hashes a value's text, ``unsent`` are the spellings of the
    placeholder, which stays as it is; ``identity`` is the member of a key with a document's identity as text.
    """

    mask: Mask
    digest: Digest
    unsent: frozenset[str]
    identity: str = ""

    def for_document_keys(self) -> RecordMasker:
        """The masker for MongoDB's keys, which have the document's ``_id`` under another name (K1)."""
        hashed, dropped = self.mask.hashed, self.mask.dropped
        if mongodb.ID in hashed:
            return replace(self, mask=replace(self.mask, hashed=(*hashed, mongodb.KEY)), identity=mongodb.KEY)
        if mongodb.ID in dropped:
            return replace(self, mask=replace(self.mask, dropped=(*dropped, mongodb.KEY)))
        return self

    def text(self, text: bytes | None) -> bytes | None:
        """Mask a key or a value."""
        if text is None:
            return None
        try:
            value = loads(text.decode("utf-8"))
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
        """Mask a row, or a document as text."""
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
        is_repetition = name == _CHANGED_FIELDS and (name in own or isinstance(held, dict))
        return is_repetition or (self.mask.drops(name) and name not in own)

    def _is_union(self, row: dict[str, Any]) -> bool:
        """Whether this is a row under the name of its Avro type (A5), and not a row of one column."""
        name, held = next(iter(row.items())) if len(row) == 1 else ("", None)
        is_named = self.mask.hashes(name) or self.mask.drops(name)
        is_type = isinstance(held, dict) and ("." in name or name in _TYPES)
        return (is_type or (name == "string" and isinstance(held, str))) and not is_named

    def _hashed(self, name: str, value: Any) -> Any:
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _BRANCHES:
            return {"string": self._hashed(name, next(iter(value.values())))}
        if value is None or text_to_hash(value) in self.unsent:
            return value
        return self.digest(self._text_of(name, value))

    def _text_of(self, name: str, value: Any) -> str:
        """The text of a value that is hashed; for fields of a document the text that silver has of them."""
        if name == self.identity and isinstance(value, str):
            return mongodb.key_document_id(value)
        return (
            mongodb.document_id(value)
            if name in (self.identity, mongodb.ID)
            else text_to_hash(mongodb.strip_type(value))
        )

    def _schema(self, schema: Any) -> Any:
        """Mask the schema block of an envelope or of a row."""
        fields = schema.get("fields") if isinstance(schema, dict) else None
        if not isinstance(fields, list):
            return schema
        structs = {field.get("field"): field if field.get("type") == "struct" else None for field in fields}
        own = _ENVELOPE if _is_envelope(structs) else ()
        kept = [
            field
            for field in fields
            if not self._is_left_out(str(field.get("field")), structs[field.get("field")], own)
        ]
        return {**schema, "fields": [self._field(field, own) for field in kept]}

    def _field(self, field: dict[str, Any], own: Collection[str]) -> Any:
        name = str(field.get("field"))
        if self.mask.hashes(name) and name not in own:
            return {**_TEXT_FIELD, "field": name}
        return self._schema(field) if name in (*_SIDES, *_INSIDE) else field


def parse_json(text: str) -> Any:
    """The JSON value of a text; '' if it is not JSON."""
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return ""


def text_to_hash(value: Any) -> str:
    """The text of a value that is hashed. A number is written without exponent and trailing zeros after the point, as
    silver does when it hashes.
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
    if abs(number.adjusted()) > _LONGEST:
        return written
    whole, _, decimals = f"{number:f}".partition(".")
    return f"{whole}.{decimals.rstrip('0')}".removesuffix(".")


def _wrapper_members(value: Mapping[str, Any]) -> Collection[str]:
    """The members that certainly are not columns."""
    if _is_envelope(value):
        return _ENVELOPE
    if value.keys() == _WRAPPER and (value["schema"] is None or isinstance(value["schema"], dict)):
        return _WRAPPER
    is_event = "specversion" in value and "data" in value and cloudevents.is_debezium(value)
    return value.keys() if is_event else ()


def _is_envelope(members: Mapping[Any, Any]) -> bool:
    return "op" in members and isinstance(members.get("source"), dict)
