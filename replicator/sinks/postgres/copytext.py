"""Rows as lines of COPY's text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from psycopg2.extensions import encodings
from pyspark.sql import Column
from pyspark.sql import functions as F

# the backslash first: it begins what the others become
_ESCAPED = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_NULL = r"\N"
_ANY = "utf_8"
_PIECE_BYTES = 1 << 20

ValueForm = Literal["plain", "free", "bytes"]
"""What a value is for COPY: a text with nothing to escape, as of a number or a time; one of any characters; bytes."""


def to_line(values: Iterable[tuple[Column, ValueForm]]) -> Column:
    """A row as one line, with its end."""
    fields = [F.coalesce(_field(value, form), F.lit(_NULL)) for value, form in values]
    return F.concat(F.concat_ws("\t", *fields), F.lit("\n"))


def chunks(lines: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """The same lines in pieces of a mebibyte and more: each COPY has a price, and so has the wait for a next piece."""
    held = bytearray()
    for each in lines:
        held += each
        if len(held) >= _PIECE_BYTES:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def codec(encoding: str | None) -> str:
    """Python's name of a server's encoding; a server that has none takes every character."""
    return _ANY if encoding in (None, "SQL_ASCII") else encodings.get(str(encoding), _ANY)


def find_unreadable(lines: bytes | memoryview, codec: str) -> int | None:
    """Which value of its line, counted from 0, is the first that a server of this encoding cannot read: it is no UTF-8,
    has a character that the encoding lacks, or U+0000, which Postgres has nowhere. None where all can be read.
    """
    for each in bytes(lines).split(b"\n"):
        for place, value in enumerate(each.split(b"\t")):
            if not _is_readable(value, codec):
                return place
    return None


def _is_readable(value: bytes, codec: str) -> bool:
    try:
        value.decode().encode(codec)
    except UnicodeError:
        return False
    return b"\0" not in value


def _field(value: Column, form: ValueForm) -> Column:
    """The text that Postgres reads as the value; NULL of NULL."""
    if form == "bytes":
        return F.concat(F.lit(r"\\x"), F.hex(value))
    text = value.cast("string")
    return _escape(text) if form == "free" else text


def _escape(text: Column) -> Column:
    for found, written in _ESCAPED.items():
        text = F.replace(text, F.lit(found), F.lit(written))
    return text
