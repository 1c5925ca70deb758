"""Findings of readiness checks, and the rule for which tables a connector captures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from replicator.names import quote_postgres
from replicator.spec import Connector, Declaration
from replicator.spec.connectors import split_expressions

Rows = Sequence[Mapping[str, Any]]
QueryResults = Mapping[str, Rows | None]
"""Rows by column name, per query; None if the login may not run the query."""

Level = Literal["ok", "advice", "fix"]
OK: Final = "ok"
ADVICE: Final = "advice"
FIX: Final = "fix"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_NOT_LITERAL = re.compile(r"[\\^$*+?()\[\]{}|]")


@dataclass(frozen=True)
class Finding:
    """The result of one check, in words in ``message``. Level ``fix``: capture fails or loses changes until the
    ``fix``, mostly SQL, is applied; ``advice``: capture works, and would be safer with it. ``table`` is '' for a
    finding about the whole server.
    """

    what: str
    level: Level
    message: str
    fix: str = ""
    table: str = ""


_KEY: Final = "key"
_FULL: Final = "REPLICA IDENTITY FULL"
_KEYLESS = "no primary key: rows cannot be identified"


def no_primary_key(table: str, quoted: str, said: str = _KEYLESS, level: Level = FIX, also: str = "") -> Finding:
    """The finding for a table without a primary key; ``also`` is appended to the fix."""
    ways = "or declare `keys`, or `append_only`, in the source's file"
    return Finding(_KEY, level, said, f"ALTER TABLE {quoted} ADD PRIMARY KEY (…); -- {ways}{also}", table)


def unsigned_bigint(table: str, column: str) -> Finding:
    """The finding for a BIGINT UNSIGNED, which a connector sends as a signed number by default (types.md section 5)."""
    said = f"{column} is BIGINT UNSIGNED: from 2^63 it arrives as a negative number"
    fix = f"columns: {{{column}: {{type: bigint, unsigned: true}}}} -- of the table, in the source's file"
    return Finding("type", ADVICE, said, fix, table)


def apply_declarations(found: Iterable[Finding], declared: Iterable[Declaration]) -> list[Finding]:
    """The findings, with those turned into OK that the source's file already settles: rows identified by declared keys
    or, if append-only, by their place in the log, and declared unsigned numbers.
    """
    tables = {each.table: each for each in declared}
    return [_declared(each, tables[each.table]) if each.table in tables else each for each in found]


def _declared(found: Finding, declaration: Declaration) -> Finding:
    name = declaration.table
    if found.what == _KEY and declaration.append_only:
        return Finding(_KEY, OK, "append-only: a row per insert, identified by its position in the log", table=name)
    if found.what == _KEY and declaration.keys and not (found.level == FIX and _FULL in found.fix):
        return Finding(_KEY, OK, f"no primary key; declared keys: {', '.join(declaration.keys)}", table=name)
    for column in declaration.columns:
        if column.unsigned and found == unsigned_bigint(name, column.name):
            return Finding("type", OK, f"{column.name} is BIGINT UNSIGNED, and is declared so", table=name)
    return found


def no_permission(what: str, right: str) -> Finding:
    """The finding for a query that the login may not run."""
    return Finding(what, ADVICE, f"cannot be checked: this login lacks {right}")


def is_captured(connector: Connector, table: str) -> bool:
    """Whether the connector captures ``<database or schema>.<table>``; as in Debezium patterns match whole names, in
    any case.
    """
    within = not connector.tables or any(matches(pattern, table) for pattern in connector.tables)
    excluded = any(matches(pattern, table) for pattern in connector.except_tables)
    return within and not excluded and _is_schema_captured(connector, table.partition(".")[0])


def _is_schema_captured(connector: Connector, schema: str) -> bool:
    """Whether the lists in ``config``, of databases where a table is named by its database, allow this one."""
    what = "database" if connector.kind in ("mysql", "mariadb") else "schema"
    included, excluded = (
        split_expressions(connector.config.get(f"{what}.{way}.list", "")) for way in ("include", "exclude")
    )
    within = included == [""] or any(matches(pattern, schema) for pattern in included)
    return within and not any(matches(pattern, schema) for pattern in excluded)


def missing_tables(connector: Connector, present: Sequence[str]) -> list[Finding]:
    """One finding per table that the connector lists by name, not by a pattern, and that does not exist."""
    known = {table.casefold() for table in present}
    named = [table for table in connector.tables if not _NOT_LITERAL.search(table)]
    fix = "Correct `tables` of the connector, else `include`, in the source's file."
    return [
        Finding("table", FIX, "this table does not exist", fix, table)
        for table in named
        if table.casefold() not in known
    ]


def first_row(rows: Rows | None) -> Mapping[str, Any]:
    """The first row, or an empty one."""
    return rows[0] if rows else {}


def quote_table(table: str, quote: Callable[[str], str] = quote_postgres) -> str:
    """``"schema"."table"`` of ``schema.table``, with each part quoted as the server does."""
    return ".".join(map(quote, table.split(".", 1)))


def format_bytes(count: int) -> str:
    """A number of bytes in a readable unit."""
    step = 0 if count <= 0 else min((count.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{count / 1024**step:.0f} {_UNITS[step]}"


def matches(pattern: str, table: str) -> bool:
    """Whether one of Debezium's regular expressions matches a whole name, in any case."""
    try:
        return re.fullmatch(pattern, table, re.IGNORECASE) is not None
    except re.error:  # Java's syntax allows more than Python's; what does not compile is compared literally
        return pattern.casefold() == table.casefold()
