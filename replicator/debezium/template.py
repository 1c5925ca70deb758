"""Templates: the layout that records of a topic share, built from one example so that others are matched unparsed.

A connector writes all records of a topic alike. A template is built from one plain envelope whose description is known,
and says step by step what stands where in records like it. It matches only valid JSON with the example's names in their
order, so a match needs no parser: constants are known from the example, and what places a change in the source's order
is captured (debezium.md A, Q4; performance.md A5). ``Alike.java`` runs the steps over the bytes of a record; records
that no template matches are described by :mod:`replicator.debezium.envelope`.

A step is a letter, or a letter and its argument::

    =TEXT       this text                       n  a number of JSON        k  a value of a key: no escape, no brace
    ? ... !     null, or the steps between      i  a whole BIGINT          v  a value of a column: no object, no list
    (N ... )N   what stands between, for slot N d  up to 18 digits         l  a list of such values
    oTEXT       one of these letters            p  a text without escapes  s  a text between quotes
                                                                           a  as v, and may be the placeholder
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from replicator.debezium.placeholder import escape_json
from replicator.debezium.type_inference import raw_fields

_POSITION_FIELDS = (
    "file",
    "pos",
    "row",
    "gtid",
    "lsn",
    "commit",
    "flushed",
    "commit_lsn",
    "change_lsn",
    "scn",
    "commit_scn",
)
CAPTURED_FIELDS = ("op", "ts_ms", "snapshot", "txId", *_POSITION_FIELDS)
"""What a match may capture: the operation, fields of ``source`` that differ between records, and the two numbers of
``sequence``. Their indexes here, counted from 1, are their slots.
"""

IMAGE_SLOT = len(CAPTURED_FIELDS) + 1
"""The slot of the row."""

CONSTANT_FIELDS = ("version", "connector", "name", "db", "schema", "table", "table_name")
"""Fields of ``source`` that all records of a template share."""

_NUMBERS = ("ts_ms", "pos", "row", "lsn")
_NOT_IN_SOURCE = ("op", "commit", "flushed")
"""Captured names that are not fields of ``source``: they stand outside it, or within its ``sequence``."""

_MARK_LENGTH = 8
"""Characters that distinguish a text from nearly all others, however the rest is escaped."""

_ENVELOPE = {"before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"}
_STEP, _PART = "\x1f", "\x1e"
"""Separators of steps, and of the parts of a template: neither occurs in JSON."""

Steps = tuple[str, ...]


@dataclass(frozen=True)
class Template:
    """The layout of records: the steps of key and value. ``constants`` are the fields of ``source`` that all share,
    ``captured`` those of CAPTURED_FIELDS that a match may yield. What remains of a value is its row between the two
    texts of ``image``: an envelope with nothing else, without its schema block. No value of the rows begins with one of
    ``marks``. ``drops_before_image``: the row before an update is not kept either.

    Raises ValueError for text that cannot be sent to the JVM: JSON may name half a surrogate pair.
    """

    key: Steps
    value: Steps
    constants: Mapping[str, str | None]
    captured: frozenset[str] = frozenset()
    image: tuple[str, str] = ("", "")
    marks: tuple[str, ...] = ()
    drops_before_image: bool = False

    def __post_init__(self) -> None:
        for text in (*self.key, *self.value, *self.constants.values()):
            (text or "").encode()

    @property
    def size(self) -> int:
        """Bytes of its texts and of ``to_text``."""
        texts = (*self.marks, *self.image, *self.key, *self.value, *(each or "" for each in self.constants.values()))
        return 2 * sum(map(sys.getsizeof, texts))

    @cached_property
    def to_text(self) -> str:
        """The template as the text that ``Alike.java`` reads."""
        return _PART.join((_STEP.join(self.marks), *self.image, _STEP.join(self.key), _STEP.join(self.value)))


def tombstone(key: str | None, *, key_wrapped: bool) -> Template | None:
    """The template of a key without a value; None if records like it have no known layout."""
    try:
        return None if key is None else Template(_wrapped(key, key_wrapped, _key), (), {})
    except (ValueError, RecursionError, _Unsupported):
        return None


def build(
    value: str, key: str | None, *, wrapped: bool, key_wrapped: bool, without: Sequence[str] = ()
) -> Template | None:
    """Build the template of a plain envelope; None if records like it have no known layout. Records do not match if a
    value of their rows begins with one of the texts ``without``.
    """
    marks = tuple(escape_json(text[:_MARK_LENGTH]) for text in without)
    try:
        return (
            None
            if key is None
            else _TemplateBuilder(marks).template(value, key, wrapped=wrapped, key_wrapped=key_wrapped)
        )
    except (ValueError, RecursionError, _Unsupported):
        return None


class _Unsupported(Exception):
    """The example contains something that other records may have otherwise in an unknown way."""


class _TemplateBuilder:
    """Derives the steps from an example, from the outside in."""

    def __init__(self, marks: tuple[str, ...]) -> None:
        self._marks = marks
        self._constants: dict[str, str | None] = {}
        self._captures: set[str] = set()
        self._row_is = ""

    def template(self, value: str, key: str, *, wrapped: bool, key_wrapped: bool) -> Template:
        of_key, of_value = _wrapped(key, key_wrapped, _key), _wrapped(value, wrapped, self._envelope)
        image = (f'{{"payload":{{"{self._row_is}":', "}}") if wrapped else (f'{{"{self._row_is}":', "}")
        captures, drops_before = frozenset(self._captures), self._row_is == "after"
        return Template(of_key, of_value, self._constants, captures, image, self._marks, drops_before)

    def _envelope(self, text: str) -> Steps:
        fields = raw_fields(text, ())
        if not {"source", "op", "after"} <= fields.keys() <= _ENVELOPE:
            raise _Unsupported
        self._row_is = "before" if fields["after"] == "null" else "after"
        example = fields.get(self._row_is, "null")
        return _object({name: self._field(name, raw, example) for name, raw in fields.items()})

    def _field(self, name: str, raw: str, example: str) -> Steps:
        if name == "source":
            return _object({field: self._source_field(field, text) for field, text in _members(raw).items()})
        if name == "op":
            return self._op(raw)
        if name == "before":
            before = ("=null",) if example == "null" else _null_or(*_row(example))
            return _capture(IMAGE_SLOT, before) if self._row_is == name else before
        if name == "after":
            return _capture(IMAGE_SLOT, _row(example)) if self._row_is == name else ("=null",)
        return _TRANSACTION if name == "transaction" else _null_or("n")

    def _op(self, raw: str) -> Steps:
        allowed = "cru" if self._row_is == "after" else "d"
        if re.fullmatch(f'"[{allowed}]"', raw) is None:
            raise _Unsupported
        return ('="', *self._captured("op", f"o{allowed}"), '="')

    def _source_field(self, name: str, raw: str) -> Steps:
        """The steps of one field of ``source``. A field that is not captured must not be an object: none is."""
        if name in CONSTANT_FIELDS:
            self._constants[name] = _text(raw)
            return (f"={raw}",)
        if name == "sequence":
            return self._sequence()
        if name in _NOT_IN_SOURCE:
            raise _Unsupported
        if name not in CAPTURED_FIELDS:
            return ("a",)
        is_number = name in _NUMBERS or re.match("-?[0-9]", raw) or (raw == "null" and name == "txId")
        return _null_or(*self._captured(name, "i")) if is_number else _null_or('="', *self._captured(name, "p"), '="')

    def _sequence(self) -> Steps:
        """The steps of ``sequence``: a list of two numbers, the first may be missing, as JSON within a text."""
        commit, flushed = (('=\\"', *self._captured(part, "d"), '=\\"') for part in ("commit", "flushed"))
        return _null_or('="[', *_null_or(*commit), "=,", *flushed, '=]"')

    def _captured(self, name: str, step: str) -> Steps:
        self._captures.add(name)
        return _capture(1 + CAPTURED_FIELDS.index(name), (step,))


def _text(raw: str) -> str | None:
    """A text or null; not a number, which a parser would spell in its own way."""
    value = json.loads(raw)
    if value is not None and not isinstance(value, str):
        raise _Unsupported
    return value


def _null_or(*steps: str) -> Steps:
    return ("?", *steps, "!")


def _capture(slot: int, steps: Steps) -> Steps:
    return (f"({slot}", *steps, f"){slot}")


def _members(text: str) -> dict[str, str]:
    """The members of a non-empty object, as they are written."""
    members = raw_fields(text, ())
    if not members:
        raise _Unsupported
    return members


def _wrapped(text: str, wrapped: bool, payload: Callable[[str], Steps]) -> Steps:
    if not wrapped:
        return payload(text)
    fields = raw_fields(text, ())
    if list(fields) != ["schema", "payload"]:
        raise _Unsupported
    return _object({"schema": (f"={fields['schema']}",), "payload": payload(fields["payload"])})


def _key(text: str) -> Steps:
    """The steps of a key. Its texts have no escape and no brace: a brace inside a key may be a union (A5)."""
    members = _members(text)
    if members.keys() & {"schema", "payload"}:
        raise _Unsupported
    return _object(dict.fromkeys(members, ("k",)))


def _row(text: str) -> Steps:
    """The steps of a row: each column a text, a number, a boolean, null, or a list of such."""
    return _object({name: _null_or("l") if raw.startswith("[") else ("v",) for name, raw in _members(text).items()})


def _object(members: Mapping[str, Steps]) -> Steps:
    """The steps of an object's members in order; adjacent constant texts are merged into one step."""
    steps: list[str] = []
    for before, (name, value) in zip("{" + "," * len(members), members.items(), strict=False):
        _append_steps(steps, (f"={before}{json.dumps(name, ensure_ascii=False)}:", *value))
    _append_steps(steps, ("=}",))
    return tuple(steps)


def _append_steps(steps: list[str], more: Steps) -> None:
    for step in more:
        if step.startswith("=") and steps and steps[-1].startswith("="):
            steps[-1] += step[1:]
        else:
            steps.append(step)


_TRANSACTION = _null_or(*_object({"id": ("s",), "total_order": ("n",), "data_collection_order": ("n",)}))
