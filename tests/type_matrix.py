"""Write docs/types.md from the vectors that the type tests decode: ``python -m tests.type_matrix`` from the root.

A row says which columns of which sources arrive under which setting of the connector in which form; what silver makes
of them, and what becomes of each value, is never written by hand.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from replicator.debezium.connect_schema import logical_of
from replicator.debezium.logical_types import LogicalType, spark_type
from replicator.debezium.reasons import REASONS
from replicator.debezium.type_parser import parse_type
from tests import type_vectors
from tests.type_rows import MATRIX, Sent
from tests.type_vectors import Problem

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "types.md"

_LONGEST = 90

_HEAD = """\
# Types

Written by `python -m tests.type_matrix` from the values that `tests/unit/test_types.py` decodes; a test compares them.

How a column of the source arrives and what it is in silver. A schema block in the records decides; without one write
the short form under `columns`. A value that does not fit its column is a dead letter with its reason, never NULL and
never rounded. `precise`, `string` and so on are values of the settings named above them; the settings of dates and
times are those of `time.precision.mode`. Where the source's file says these settings (`config` of its `connector`, or
`decimal_handling_mode`, `binary_handling_mode`, `time_precision_mode` beside `name`), `decimal(10,2)`, `bytes`, `date`,
`datetime(6)` and the like are written as they say; `decimal_string(10,2)`, `bytes_hex`, `micro_timestamp` name their
form themselves. Where a schema block says no more than `string`, a declared `decimal_string(10,2)`, `bytes_hex` or
`bytes_base64url` is heard, as `variable_decimal(10,2)` is beside one without digits; every other declaration that a
block contradicts gives way to it, with a warning as the table is made.
"""

_POLICIES = """\
Infinite dates and timestamps are stored as the first and last moment of the years 1 to 9999; NaN and the infinities of
a DECIMAL and U+0000 in a text are dead letters. In `variable_decimal_string` the special numbers are texts. A schema
name that is not listed is read by its Connect type.
"""


def vectors() -> dict[str, list[tuple[str, Any]]]:
    """(JSON, value or reason) of every declared type that has a vector."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for name in sorted(vars(type_vectors)):
        table = getattr(type_vectors, name)
        if name.isupper() and isinstance(table, list):
            for kind, text, expected in table:
                if isinstance(kind, str):
                    found.setdefault(kind, []).append((text, expected))
    return found


def means(sent: Sent, declared: LogicalType) -> LogicalType:
    """What silver takes a schema for; how a decimal is written, a block leaves to each value."""
    meant = logical_of(sent.block())
    return replace(meant, encoding=declared.encoding) if meant.encoding == "connect" else meant


def document() -> str:
    """docs/types.md."""
    known = vectors()
    lines = [_HEAD, *_matrix(), *_policies(), "## Every value that is tested", ""]
    for title, rows in MATRIX:
        lines += [f"### {title}", "", "| declared | JSON | in silver |", "|---|---|---|"]
        for declared in dict.fromkeys(row.declared for row in rows):
            lines += [f"| `{declared}` | {_code(text)} | {_told(value)} |" for text, value in known[declared]]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _matrix() -> Iterator[str]:
    known = vectors()
    for title, rows in MATRIX:
        yield f"## {title}"
        yield ""
        yield "| at the source | setting | schema block | declare | in silver | refused as | remarks |"
        yield "|---|---|---|---|---|---|---|"
        for row in rows:
            sent = ", ".join(f"`{each}`" for each in row.sent)
            refused = sorted({str(value) for _, value in known[row.declared] if isinstance(value, Problem)})
            told = ", ".join(f"`{reason}`" for reason in refused)
            kind = spark_type(parse_type(row.declared))
            yield f"| {row.columns} | {row.setting} | {sent} | `{row.declared}` | `{kind}` | {told} | {row.limit} |"
        yield ""


def _policies() -> Iterator[str]:
    yield "## Reasons and policies"
    yield ""
    yield "| reason | meaning |"
    yield "|---|---|"
    found = {str(value) for cases in vectors().values() for _, value in cases if isinstance(value, Problem)}
    for reason in sorted(found):
        yield f"| `{reason}` | {REASONS[reason].meaning} |"
    yield ""
    yield _POLICIES


def _code(text: str) -> str:
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"`{_cell(short)}`"


def _told(value: Any) -> str:
    return f"refused: `{value}`" if isinstance(value, Problem) else _code(_text(value))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)}: {_text(held)}" for key, held in value.items()) + "}"
    return _scalar(value)


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case Decimal():
            return format(value, "f")
        case bytes() | bytearray():
            return f"x'{bytes(value).hex()}'"
        case dt.datetime():
            return value.isoformat(" ")
        case _:
            return str(value)


def _cell(text: str) -> str:
    printable = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)
    return printable.replace("|", "\\|").replace("`", "'") or " "


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
