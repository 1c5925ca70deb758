"""What can be told of a table's ``apply_as_deletes`` before Spark has read it, by the names that it mentions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from replicator import names
from replicator.yamlfile import nearest

_TOKENS = re.compile(
    r"""'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | --[^\n]* | /\*.*?\*/ | `((?:[^`]|``)+)` | ([A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
"""Texts and comments, which are passed over; names in back-quotes and without."""


def mentioned(sql: str) -> list[str]:
    """The words of a condition that may be columns, by the source's spelling, in their order; functions and key words
    are among them.
    """
    found = (match.group(1) or match.group(2) for match in _TOKENS.finditer(sql))
    return [names.decode(word.replace("``", "`")) for word in found if word]


def fit(condition: str, columns: Sequence[str], generated: Sequence[str]) -> None:
    """Raise ValueError for a condition over none of the declared columns, where these are all that there may be, and
    over one that PostgreSQL's stream never has (debezium.md E8).
    """
    words = mentioned(condition)
    computed = next((name for name in generated if name in words), None)
    if computed is not None:
        raise ValueError(
            f"apply_as_deletes reads {computed!r}, which is generated, and not in the stream: write what it is made of"
        )
    if not words or (columns and not set(words) & set(columns)):
        hint = nearest(words[0], columns) if words else ""
        raise ValueError(f"apply_as_deletes is a condition over columns, and names none of the table's{hint}")


def refuse_hidden(condition: str, table: str, hidden: Iterable[str]) -> None:
    """Raise ValueError where it reads a column that is hidden before bronze: it would not find the value that it looks
    for, and delete nothing.
    """
    words = mentioned(condition)
    column = next((name for name in hidden if name in words), None)
    if column is not None:
        raise ValueError(
            f"apply_as_deletes of {table} reads {column!r}, which mask_before_bronze hides: hash it or leave it out in "
            "`transform` instead, which comes behind the condition"
        )
