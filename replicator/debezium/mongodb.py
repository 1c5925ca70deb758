"""Conversion of MongoDB's records, which hold the document as Extended JSON text (debezium.md K1 to K4).

They become envelopes whose row is the document. Its identity, ``_id``, is a text: its Extended JSON, for strings and
ObjectIds without quotes unless another id has that text. Pure Python over values of
:mod:`replicator.debezium.jsontext`.
"""

from __future__ import annotations

import re
from typing import Any

from replicator.debezium.jsontext import Number, dumps, loads

CONNECTOR = "mongodb"
ID, KEY = "_id", "id"
"""The name of a document's identity in the document, and in the record's key."""

_OBJECT_ID = re.compile(r"[0-9a-fA-F]{24}")
_NUMBERS = ("$numberLong", "$numberInt", "$numberDouble", "$numberDecimal")


def to_envelope(key: Any, record: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Key and value with the document in place of its text; what cannot be parsed stays as it is."""
    wrapped = set(record) == {"schema", "payload"} and isinstance(record["payload"], dict)
    body = record["payload"] if wrapped else record
    document = _document(body.get("after"))
    after = body.get("after") if document is None else _row(document)
    source = body.get("source")
    named = source | {"table": source.get("collection")} if isinstance(source, dict) else source
    return _key(key), {**body, "before": None, "after": after, "source": named}


def _key(key: Any) -> Any:
    """``{"_id": ...}`` from ``{"id": "<Extended JSON>"}``."""
    held = key.get("payload", key) if isinstance(key, dict) else None
    if not isinstance(held, dict) or not isinstance(held.get(KEY), str):
        return key
    return {ID: key_document_id(held[KEY])}


def _row(document: dict[str, Any]) -> dict[str, Any]:
    """The document's fields: numbers in any spelling as numbers (K4), anything nested as its JSON."""
    return {name: document_id(held) if name == ID else strip_type(held) for name, held in document.items()}


def strip_type(held: Any) -> Any:
    """A value without its Extended JSON type annotation."""
    if isinstance(held, dict) and len(held) == 1:
        name, inner = next(iter(held.items()))
        if name in _NUMBERS and isinstance(inner, str):
            return Number(inner) if _is_number(inner) else inner
        if name == "$oid":
            return inner
    return held


def document_id(held: Any) -> str:
    """One text per identity: 5 and {"$numberLong": "5"} are the same (K4). The string "5" is another one and keeps its
    quotes, as does every string whose text may be an id of another type.
    """
    if isinstance(held, str):
        is_alike = _value(held) != held or _OBJECT_ID.fullmatch(held)
        return dumps(held) if is_alike else held
    plain_held = strip_type(held)
    return plain_held if isinstance(plain_held, str) else dumps(plain_held)


def key_document_id(text: str) -> str:
    """The identity of a document, from the Extended JSON text in a record's key."""
    return document_id(_value(text))


def _document(text: Any) -> dict[str, Any] | None:
    found = _value(text) if isinstance(text, str) else text
    return found if isinstance(found, dict) else None


def _value(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text


def _is_number(text: str) -> bool:
    return isinstance(_value(text), Number) and text not in ("NaN", "Infinity", "-Infinity")
