"""What is found of a source, and which of its tables a connector captures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from replicator.spec import Connector, Declaration

Rows = Sequence[Mapping[str, Any]]
QueryResults = Mapping[str, Rows | None]
"""By question, rows by column; None where the login may not ask."""

Level = Literal["ok", "advice", "mend"]
OK: Final = "ok"
ADVICE: Final = "advice"
MEND: Final = "mend"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_NOT_LITERAL = re.compile(r"[\\^$*+?()\[\]{}|]")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. ``mend``: capture fails or loses changes until the ``fix``, mostly SQL, is done;
    ``advice``: it works, and would be safer. ``table`` is '' where it is about all of the server.
    """

    what: str
    level: Level
    said: str
    fix: str = ""
    table: str = ""


_KEY: Final = "key"
_FULL: Final = "REPLICA IDENTITY FULL"
_KEYLESS = "no primary key: rows cannot be told apart"


def no_primary_key(table: str, quoted: str, said: str = _KEYLESS, level: Level = MEND, also: str = "") -> Finding:
    """Said of a table without a primary key; ``also`` is more of the fix."""
    ways = "or declare `keys`, or `append_only`, in the source's file"
    return Finding(_KEY, level, said, f"ALTER TABLE {quoted} ADD PRIMARY KEY (…); -- {ways}{also}", table)


def unsigned_bigint(table: str, column: str) -> Finding:
    """Said of a BIGINT UNSIGNED, which a connector sends as a signed number by default (types.md section 5)."""
    said = f"{column} is BIGINT UNSIGNED: from 2^63 on it comes as a negative number"
    fix = f"columns: {{{column}: {{type: bigint, unsigned: true}}}} -- of the table, in the source's file"
    return Finding("type", ADVICE, said, fix, table)


def apply_declarations(found: Iterable[Finding], declared: Iterable[Declaration]) -> list[Finding]:
    """What is found, less what the source's file says already: rows that its declared keys, or nothing but their place
    in the log, tell apart, and numbers that are unsigned.
    """
    tables = {each.table: each for each in declared}
    return [_declared(each, tables[each.table]) if each.table in tables else each for each in found]


def _declared(found: Finding, declaration: Declaration) -> Finding:
    name = declaration.table
    if found.what == _KEY and declaration.append_only:
        return Finding(_KEY, OK, "append-only: a row per insert, known by its place in the log", table=name)
    if found.what == _KEY and declaration.keys and not (found.level == MEND and _FULL in found.fix):
        return Finding(_KEY, OK, f"no primary key, and declared keys: {', '.join(declaration.keys)}", table=name)
    for column in declaration.columns:
        if column.unsigned and found == unsigned_bigint(name, column.name):
            return Finding("type", OK, f"{column.name} is BIGINT UNSIGNED, and declared so", table=name)
    return found


def no_permission(what: str, right: str) -> Finding:
    """Said of a question that the login may not ask."""
    return Finding(what, ADVICE, f"this login may not look: it lacks {right}")


def is_captured(connector: Connector, table: str) -> bool:
    """Whether the connector captures ``<database or schema>.<table>``, by Debezium's rule: whole names, in any case."""
    within = not connector.tables or any(matches(pattern, table) for pattern in connector.tables)
    return within and not any(matches(pattern, table) for pattern in connector.except_tables)


def missing_tables(connector: Connector, present: Sequence[str]) -> list[Finding]:
    """A finding per table that is named, not described by a pattern, and that there is not."""
    known = {table.casefold() for table in present}
    named = [table for table in connector.tables if not _NOT_LITERAL.search(table)]
    fix = "Correct `tables` of the connector, else `include`, in the source's file."
    return [
        Finding("table", MEND, "there is no such table", fix, table) for table in named if table.casefold() not in known
    ]


def first_row(rows: Rows | None) -> Mapping[str, Any]:
    """The first row, an empty one where there is none."""
    return rows[0] if rows else {}


def quote_table(table: str) -> str:
    """``"schema"."table"`` of ``schema.table``."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in table.split(".", 1))


def format_bytes(count: int) -> str:
    """Bytes for people."""
    step = 0 if count <= 0 else min((count.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{count / 1024**step:.0f} {_UNITS[step]}"


def matches(pattern: str, table: str) -> bool:
    """Whether one of Debezium's regular expressions means a name: all of it, in any case."""
    try:
        return re.fullmatch(pattern, table, re.IGNORECASE) is not None
    except re.error:  # Java knows more than Python; names that are none are taken as they stand
        return pattern.casefold() == table.casefold()
