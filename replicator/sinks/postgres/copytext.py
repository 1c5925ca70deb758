"""Rows as lines of COPY's text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from psycopg2.extensions import encodings
from pyspark.sql import Column
from pyspark.sql import functions as F

# the backslash first, since the other escapes begin with one
_ESCAPED = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_NULL = r"\N"
_ANY = "utf_8"
_PIECE_BYTES = 1 << 20

ValueForm = Literal["plain", "free", "bytes"]
"""The form of a value for COPY: text without characters to escape, such as a number or a time; arbitrary
text; bytes.
"""


def to_line(values: Iterable[tuple[Column, ValueForm]]) -> Column:
    """A row as one line, including its line end."""
    fields = [F.coalesce(_field(value, form), F.lit(_NULL)) for value, form in values]
    return F.concat(F.concat_ws("\t", *fields), F.lit("\n"))


def chunks(lines: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Yield the lines in chunks of at least a mebibyte: each COPY has a cost, and so has waiting for the next chunk."""
    buffer = bytearray()
    for each in lines:
        buffer += each
        if len(buffer) >= _PIECE_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)


def codec(encoding: str | None) -> str:
    """Python's name of a server's encoding; a server without an encoding accepts every character."""
    return _ANY if encoding in (None, "SQL_ASCII") else encodings.get(str(encoding), _ANY)


def find_unreadable(lines: bytes | memoryview, codec: str) -> int | None:
    """Return the index, from 0, of the first value in its line that a server of this encoding cannot read: it is not
    UTF-8, has a character that the encoding lacks, or U+0000, which Postgres does not support. None if all can be read.
    """
    for each in bytes(lines).split(b"\n"):
        for index, value in enumerate(each.split(b"\t")):
            if not _is_readable(value, codec):
                return index
    return None


def _is_readable(value: bytes, codec: str) -> bool:
    try:
        value.decode().encode(codec)
    except UnicodeError:
        return False
    return b"\0" not in value


def _field(value: Column, form: ValueForm) -> Column:
    """The text that Postgres reads as the value; NULL for NULL."""
    if form == "bytes":
        return F.concat(F.lit(r"\\x"), F.hex(value))
    text = value.cast("string")
    return _escape(text) if form == "free" else text


def _escape(text: Column) -> Column:
    for found, written in _ESCAPED.items():
        text = F.replace(text, F.lit(found), F.lit(written))
    return text
