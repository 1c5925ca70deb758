"""A connector writes all records of a topic alike: what one of them says, others that are written like it say too.

A template is a regular expression (Java's) made of one plain envelope, whose description is known. It matches valid
JSON only, with the names of the example in their order, so that a match needs no parser: what is constant is known from
the example, and what places a change in the source's order is captured (debezium.md A, Q4; performance.md A5). What no
template matches is described by :mod:`replicator.debezium.envelope`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from replicator.debezium.infer import slices
from replicator.debezium.unavailable import in_json

_PLACES = ("file", "pos", "row", "gtid", "lsn", "commit", "flushed", "commit_lsn", "change_lsn", "scn", "commit_scn")
CAPTURED = ("op", "ts_ms", "snapshot", "txId", *_PLACES)
"""What a match may tell: the operation, and fields of ``source`` that differ from record to record; of ``sequence`` its
two numbers.
"""

CONSTANT = ("version", "connector", "name", "db", "schema", "table", "table_name")
"""Fields of ``source`` that records of one template share."""

SEPARATOR, BETWEEN, MATCHED = "\x1f", "\x1e", "\x02"
"""Between what was captured; before the key and before the value; before what was captured. None stands in JSON."""

_NUMBERS = ("ts_ms", "pos", "row", "lsn")
_ELSEWHERE = ("op", "before", "after", "commit", "flushed")
"""Names of what is captured outside of ``source``, or inside of its ``sequence``: no connector has such a field."""

_ENOUGH = 8
"""So many characters of a text tell it from nearly all others: Spark compares the expression for each record."""

_MEMBERS = 500
"""So many members an object has at most: each takes a place on the stack of the thread that matches."""

_ENVELOPE = {"before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"}

# Possessive: nothing is ever tried again, and no text is too long for the stack.
# no surrogate: a half of a pair is no text
_ESCAPE = r'\\(?:["\\/bfnrt]|u(?:[0-9a-ce-fA-CE-F][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2})'
_STRING = r'"[^"\\\x00-\x1f]*+(?:' + _ESCAPE + r'[^"\\\x00-\x1f]*+)*+"'
_NUMBER = r"-?+(?:0|[1-9][0-9]{0,99}+)(?:\.[0-9]{1,99}+)?+(?:[eE][+-]?+[0-9]{1,9}+)?+"
_SCALAR = f"(?:{_STRING}|{_NUMBER}|null|true|false)"
# no escapes and no brace: a brace inside a key may be a union (A5)
_KEY_SCALAR = rf'(?:"[^"\\\x00-\x1f{{]*+"|{_NUMBER}|true|false)'
_BIGINT = "(?:0|-?+[1-9][0-9]{0,17}+)"
_PLAIN = r'[^"\\\x00-\x1f]++'
_LSN = r'\\"([0-9]{1,18}+)\\"'
_TRANSACTION = rf'(?:null|\{{"id":{_STRING},"total_order":{_NUMBER},"data_collection_order":{_NUMBER}\}})'


@dataclass(frozen=True)
class Template:
    """How records are written: a regular expression (Java's) of BETWEEN, key, BETWEEN and value. ``groups`` are the
    numbers of its groups by the name of what each captures, ``constants`` the fields of ``source`` that all share.
    ``image`` is what is left of a value once the rest is captured: an envelope with nothing but the row, or, of a
    delete, with the row before, without its schema block. '' where there is no such row, and where there is no value.
    Raises ValueError for what cannot be sent to the JVM: JSON may name half a surrogate pair.
    """

    pattern: str
    groups: Mapping[str, int]
    constants: Mapping[str, str | None]
    image: str = ""

    def __post_init__(self) -> None:
        for text in (self.pattern, *self.constants.values()):
            (text or "").encode()

    def captured(self, names: Iterable[str]) -> str:
        """What takes the place of a text that matches: each of some of CAPTURED, empty where it is NULL; then the
        ``image``.
        """
        told = (f"${self.groups[name]}" if name in self.groups else "" for name in names)
        return SEPARATOR.join((*told, self.image))


def tombstone(key: str | None, *, key_wrapped: bool) -> Template | None:
    """The template of a key without a value."""
    try:
        return None if key is None else Template(_pattern(_wrapped(key, key_wrapped, _key), ""), {}, {})
    except (ValueError, RecursionError, _Unknown):
        return None


def template(
    value: str, key: str | None, *, wrapped: bool, key_wrapped: bool, without: Sequence[str] = ()
) -> Template | None:
    """The template of a plain envelope of a row's change, ``without`` these texts at the beginning of any value of its
    rows; None where it is not clear how records like it are written.
    """
    try:
        return None if key is None else _Writer(without).template(value, key, wrapped=wrapped, key_wrapped=key_wrapped)
    except (ValueError, RecursionError, _Unknown):
        return None


class _Unknown(Exception):
    """Something in the example of which it is not clear what else may stand there."""


class _Writer:
    """Takes an example apart, from the outside to the inside."""

    def __init__(self, without: Sequence[str]) -> None:
        texts = [in_json(text[:_ENOUGH]) for text in without]
        string, no = (_string_without(texts), f"(?!{_any_of(texts)})") if texts else (_STRING, "")
        self._column = f"(?:{string}|{_NUMBER}|null|true|false)"
        self._list = rf"(?:null|\[{no}(?:{self._column}(?:,{self._column})*+)?+\])"
        self._groups: dict[str, int] = {}
        self._constants: dict[str, str | None] = {}

    def template(self, value: str, key: str, *, wrapped: bool, key_wrapped: bool) -> Template:
        pattern = _pattern(_wrapped(key, key_wrapped, _key), _wrapped(value, wrapped, self._envelope))
        return Template(pattern, self._groups, self._constants, self._image(wrapped=wrapped))

    def _envelope(self, text: str) -> str:
        fields = slices(text, ())
        row = fields.get("after", "null")
        if not {"source", "op", "after"} <= fields.keys() <= _ENVELOPE:
            raise _Unknown
        image = row if row != "null" else fields.get("before", "null")
        return _object({name: self._field(name, raw, row, image) for name, raw in fields.items()})

    def _field(self, name: str, raw: str, row: str, image: str) -> str:
        if name == "source":
            return self._source(raw)
        if name == "op":
            return self._op(raw, has_row=row != "null")
        if name == "after":
            return "null" if row == "null" else self._captured(name, f"({self._row(row)})")
        if name == "before":
            before = "null" if image == "null" else f"(?:null|{self._row(image)})"
            return before if row != "null" else self._captured(name, f"({before})")
        return _TRANSACTION if name == "transaction" else f"(?:null|{_NUMBER})"

    def _op(self, raw: str, *, has_row: bool) -> str:
        allowed = "[cru]" if has_row else "d"
        if re.fullmatch(f'"{allowed}"', raw) is None:
            raise _Unknown
        return self._captured("op", f'"({allowed})"')

    def _image(self, *, wrapped: bool) -> str:
        """An envelope with the image that was captured, where it was wrapped without its schema; '' where none was."""
        of = (f'{{"{name}":${self._groups[name]}}}' for name in ("after", "before") if name in self._groups)
        image = next(of, "")
        return f'{{"payload":{image}}}' if wrapped and image else image

    def _row(self, text: str) -> str:
        """Each column a text, a number, a truth value, nothing, or a list of such."""
        members = _members(text).items()
        return _object({name: self._list if raw.startswith("[") else self._column for name, raw in members})

    def _source(self, raw: str) -> str:
        return _object({name: self._origin(name, told) for name, told in _members(raw).items()})

    def _origin(self, name: str, raw: str) -> str:
        """One field of ``source``. What is not captured must be no object: none is."""
        if name in CONSTANT:
            self._constants[name] = _text(raw)
            return re.escape(raw)
        if name == "sequence":
            commit, flushed = (self._captured(part, _LSN) for part in ("commit", "flushed"))
            return rf'(?:null|"\[(?:null|{commit}),{flushed}\]")'
        if name in _ELSEWHERE:
            raise _Unknown
        if name not in CAPTURED:
            return _SCALAR
        is_number = name in _NUMBERS or re.match("-?[0-9]", raw) or (raw == "null" and name == "txId")
        return self._captured(name, f"(?:null|({_BIGINT}))" if is_number else f'(?:null|"({_PLAIN})")')

    def _captured(self, name: str, pattern: str) -> str:
        self._groups[name] = len(self._groups) + 1
        return pattern


def _text(raw: str) -> str | None:
    """A text or null: a parser spells numbers in its own way."""
    told = json.loads(raw)
    if told is not None and not isinstance(told, str):
        raise _Unknown
    return told


def _pattern(in_key: str, in_value: str) -> str:
    return rf"^{BETWEEN}{in_key}{BETWEEN}{in_value}\z"


def _members(text: str) -> dict[str, str]:
    """The members of an object, of which there are some, as they are written."""
    members = slices(text, ())
    if not members:
        raise _Unknown
    return members


def _string_without(texts: Sequence[str]) -> str:
    """A text that begins with none of these, nor, a list or a map as JSON, its first element; most are told by their
    first character.
    """
    others = re.escape("[{" + "".join(sorted({text[:1] for text in texts})))
    begins = rf'(?:[^"\\{others}\x00-\x1f]|(?!(?:[\[{{](?:\\")?+)?+{_any_of(texts)}))'
    return f'"{begins}{_STRING[1:]}'


def _any_of(texts: Sequence[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, texts))})"


def _wrapped(text: str, wrapped: bool, payload: Callable[[str], str]) -> str:
    if not wrapped:
        return payload(text)
    fields = slices(text, ())
    if list(fields) != ["schema", "payload"]:
        raise _Unknown
    return _object({"schema": re.escape(fields["schema"]), "payload": payload(fields["payload"])})


def _key(text: str) -> str:
    members = _members(text)
    if members.keys() & {"schema", "payload"}:
        raise _Unknown
    return _object(dict.fromkeys(members, _KEY_SCALAR))


def _object(members: Mapping[str, str]) -> str:
    """Members one after the other, each taken as a whole: to come back into one would take a place on the stack for
    each part of all before it, and a row may have hundreds.
    """
    if len(members) > _MEMBERS:
        raise _Unknown
    named = (f"{re.escape(json.dumps(name, ensure_ascii=False))}:{told}" for name, told in members.items())
    first, *more = named
    return rf"\{{(?>{first})" + "".join(f"(?>,{each})" for each in more) + r"\}"
