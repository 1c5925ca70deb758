"""Rows as lines of COPY's text format."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

# the backslash first: it begins what the others become
_ESCAPED = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_NULL = r"\N"


def line(values: Iterable[tuple[Column, str]]) -> Column:
    """A row as one line, with its end: each value with the type of its staging column, as Postgres calls it."""
    fields = [F.coalesce(_field(value, kind), F.lit(_NULL)) for value, kind in values]
    return F.concat(F.concat_ws("\t", *fields), F.lit("\n"))


def _field(value: Column, kind: str) -> Column:
    """The text that Postgres reads as the value; NULL of NULL. Numbers and booleans have nothing to escape."""
    if kind == "bytea":
        return F.concat(F.lit(r"\\x"), F.hex(value))
    text = value.cast("string")
    return _escaped(text) if kind == "text" else text


def _escaped(text: Column) -> Column:
    for found, written in _ESCAPED.items():
        text = F.replace(text, F.lit(found), F.lit(written))
    return text
