"""What can be told of a table's ``apply_as_deletes`` before Spark has read it, by the names that it mentions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from replicator import names
from replicator.yamlfile import nearest

_ALL = "*"
"""Stands for all columns, as in ``struct(*)``."""

_TEXTS = re.compile(
    r"""( \br'[^']*' | \br"[^"]*" | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
    | (`(?:[^`]|``)+`) | --[^\r\n]* | /\*.*?\*/""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""Texts, names in back-quotes, and comments: in none of them another one begins."""

_WORDS = re.compile(
    r"""\.(?:`(?:[^`]|``)+` | [a-z_]\w*) | \b(as)\s+[a-z_]\w* | [a-z_]\w*(?=\s*\()
    | `((?:[^`]|``)+)` | ([a-z_]\w*) | (?<=[(,])\s*(\*)""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
"""Fields of structs, types of casts and functions, which are passed over; names in back-quotes or without, _ALL."""


def mentioned(sql: str) -> list[str]:
    """The words of a condition that may be columns, by the source's spelling, in their order; key words are among them.
    What cannot be a column is not: what stands right behind a point or ``AS``, or before a bracket.
    """
    bare = _TEXTS.sub(lambda match: "''" if match.group(1) else match.group(2) or " ", sql)
    found = (match[match.lastindex] for match in _WORDS.finditer(bare) if match.lastindex)
    return [names.decode(word.replace("``", "`")) for word in found]


def fit(condition: str, generated: Sequence[str]) -> None:
    """Raise ValueError for a condition over no column, and over one that PostgreSQL's stream never has (debezium.md
    E8).
    """
    words = mentioned(condition)
    computed = _first(generated, words)
    if computed is not None:
        raise ValueError(
            f"apply_as_deletes reads {computed!r}, which is generated, and not in the stream: write what it is made of"
        )
    if not words:
        raise ValueError("apply_as_deletes is a condition over columns and names none of the table's")


def refuse_strange(condition: str, table: str, columns: Sequence[str]) -> None:
    """Raise ValueError for a condition that is :func:`fit`, over none of the declared columns, where there are some."""
    words = mentioned(condition)
    if columns and not {_ALL, *columns} & set(words):
        hint = nearest(words[0], columns)
        raise ValueError(f"apply_as_deletes of {table} is a condition over columns and names none of the table's{hint}")


def refuse_hidden(condition: str, table: str, hidden: Iterable[str]) -> None:
    """Raise ValueError where it reads a column that is hidden before bronze: it would not find the value that it looks
    for, and delete nothing.
    """
    column = _first(hidden, mentioned(condition))
    if column is not None:
        raise ValueError(
            f"apply_as_deletes of {table} reads {column!r}, which mask_before_bronze hides: hash it or leave it out in "
            "`transform` instead, which comes behind the condition"
        )


def _first(columns: Iterable[str], words: Sequence[str]) -> str | None:
    return next((name for name in columns if name in words or _ALL in words), None)
