"""MongoDB's records: the document is a text inside the record, in Extended JSON (debezium.md K1 to K4).

Read as envelopes whose row is the document. Its identity, ``_id``, is a text: the Extended JSON of it, a string or an
ObjectId without quotes where no other id reads so. Pure Python over :mod:`jsontext` values.
"""

from __future__ import annotations

import re
from typing import Any

from replicator.debezium.jsontext import Number, dumps, loads

CONNECTOR = "mongodb"
ID, KEY = "_id", "id"
"""What a document's identity is called in the document, and in its key."""

_OBJECT_ID = re.compile(r"[0-9a-fA-F]{24}")
_NUMBERS = ("$numberLong", "$numberInt", "$numberDouble", "$numberDecimal")


def to_envelope(key: Any, record: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Key and value with the document in them instead of its text; what cannot be read stays as it is."""
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
    """The document's fields: numbers whatever their spelling (K4), anything nested as its JSON."""
    return {name: document_id(held) if name == ID else strip_type(held) for name, held in document.items()}


def strip_type(held: Any) -> Any:
    """A value without what Extended JSON says of its type."""
    if isinstance(held, dict) and len(held) == 1:
        name, inner = next(iter(held.items()))
        if name in _NUMBERS and isinstance(inner, str):
            return Number(inner) if _is_number(inner) else inner
        if name == "$oid":
            return inner
    return held


def document_id(held: Any) -> str:
    """One text per identity: 5 and {"$numberLong": "5"} are the same (K4), the string "5" is another one and keeps its
    quotes, as every string does whose text may be an id of another type.
    """
    if isinstance(held, str):
        is_alike = _value(held) != held or _OBJECT_ID.fullmatch(held)
        return dumps(held) if is_alike else held
    plain_held = strip_type(held)
    return plain_held if isinstance(plain_held, str) else dumps(plain_held)


def key_document_id(text: str) -> str:
    """The identity that a key has as a text of Extended JSON."""
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
