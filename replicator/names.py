"""Identifiers: one reversible encoder for paths and columns, and quoting for Spark and Postgres.

Letters, digits and ``_`` stay; every other UTF-8 byte becomes ``_xHH_`` (architecture 9.1). Text that already looks
like an escape is escaped too, so that :func:`decode` returns the original exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from replicator.errors import ConfigError

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The folder name for rows with NULL in the partition column."""

_SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_LOOKS_ESCAPED = re.compile(r"_x[0-9a-f]{2}[^A-Za-z0-9]")
_ESCAPE = re.compile(r"(?:_x[0-9a-f]{2}_)+")


def encode(name: str) -> str:
    """Return the name as a path part or column name: ASCII letters, digits and ``_`` only. Reversible.

    Raises ConfigError for the empty name.
    """
    if not name:
        raise ConfigError("a name is empty")
    out = []
    for index, character in enumerate(name):
        if character == "_":
            # an escape, or text that would become one when what follows is encoded
            escaped = _LOOKS_ESCAPED.match(name, index) is not None
            out.append("_x5f_" if escaped else "_")
        else:
            out.extend(chr(b) if b in _SAFE else f"_x{b:02x}_" for b in character.encode("utf-8", "surrogatepass"))
    return "".join(out)


def shorten_list(names: Sequence[str], limit: int = 10) -> str:
    """Return ``a, b and 590 more``: a list of names for a message, of which readers need only the first ones."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def decode(encoded: str) -> str:
    """Return the name that was passed to :func:`encode`. Text that it never produces, such as the name of a foreign
    folder, stays as it is.
    """

    def run(match: re.Match[str]) -> str:
        encoded = bytes.fromhex("".join(re.findall(r"_x([0-9a-f]{2})_", match.group())))
        try:
            return encoded.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return match.group()

    return _ESCAPE.sub(run, encoded)


def is_encoded(folder: str) -> bool:
    """Whether each part of a name, between dots, is one that :func:`encode` produces; others are foreign."""
    return all(part != "" and encode(decode(part)) == part for part in folder.split("."))


def encode_table(name: str) -> str:
    """Return ``<database or schema>.<table>`` with both parts encoded; the first dot separates them."""
    return ".".join(encode(part) for part in name.split(".", 1))


def decode_table(encoded: str) -> str:
    """Return the table name that was passed to :func:`encode_table`."""
    return ".".join(decode(part) for part in encoded.split("."))


def match_tables(name: str, every: Iterable[str]) -> list[str]:
    """Return the full names (``<source>/<database or schema>.<table>``) in ``every`` that match a full name, one
    without its source, or its last part alone.
    """
    every = list(every)
    found = [full for full in every if name in (full, full.split("/", 1)[1])]
    return found or [full for full in every if full.rpartition(".")[2] == name]


def refuse_case_conflict(names: Iterable[str], what: str) -> None:
    """Raise ConfigError if two names differ by case only: no table format keeps them apart (G4)."""
    twins = find_case_conflict(names)
    if twins is not None:
        raise ConfigError(f"{what} has both {twins[0]!r} and {twins[1]!r}, which no table format keeps apart")


def find_case_conflict(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two of these names that differ by case only."""
    seen: dict[str, str] = {}
    both = ((seen.setdefault(name.casefold(), name), name) for name in names)
    return next((pair for pair in both if pair[0] != pair[1]), None)


def quote_spark(name: str) -> str:
    """Quote a name for Spark SQL and column references."""
    return "`" + name.replace("`", "``") + "`"


def quote_postgres(*parts: str) -> str:
    """Quote a name for Postgres; several parts are joined by dots: ``"schema"."table"``."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
