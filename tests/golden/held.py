"""What silver holds, in a form in which two of them can be compared byte for byte."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import TimestampType

from replicator import names
from replicator.transforms.merge import SYSTEM_COLUMNS
from tests.golden.cases import exact
from tests.golden.universes import COLUMN

Key = tuple[str, ...]
Rows = dict[Key, dict[str, Any]]
"""Rows by key, with the source's columns and ours."""
Held = dict[int, Rows]
"""The rows of each universe."""

_BEFORE_OFFSET, _OFFSET = 40, 16
"""Digits of a ``_seq``."""


def by_universe(stored: DataFrame) -> Held:
    """All rows at rest of one table, deleted ones too; those of a table without the column are universe 0."""
    keys = [f.metadata["name"] for f in sorted(_keys(stored), key=lambda field: field.metadata["key"])]
    instants = [field.name for field in stored.schema if isinstance(field.dataType, TimestampType)]
    found: Held = {}
    for row in (each.asDict() for each in stored.collect()):
        row.update({name: row[name].astimezone() for name in instants if row[name] is not None})
        places = row.pop("_column_seq")
        [told] = exact([{name if name in SYSTEM_COLUMNS else names.decode(name): v for name, v in row.items()}])
        rows = found.setdefault(told.pop(COLUMN, 0), {})
        key = tuple(str(told[name]) for name in keys if name != COLUMN)
        assert key not in rows, "a key occurs twice"
        rows[key] = told | {"_column_seq": places}
    return found


def live(rows: Rows) -> Rows:
    """The rows that users see."""
    return {key: row for key, row in rows.items() if not row["_deleted"]}


def unknown(row: dict[str, Any]) -> set[str]:
    """Columns of a row whose value is not known."""
    return {column for column, place in (row["_column_seq"] or {}).items() if place == "" or place.endswith("-")}


def content(rows: Rows) -> Rows:
    """Rows without the offsets in their positions: what copies with new offsets have in common."""
    return {
        key: row
        | {"_seq": _cut(row["_seq"]), "_column_seq": {c: _cut(p) for c, p in (row["_column_seq"] or {}).items()}}
        for key, row in rows.items()
    }


def differing(found: Rows, expected: Rows) -> dict[Key, Any]:
    """What is not the same, key by key and column by column: (found, expected)."""
    wrong = {}
    for key in {*found, *expected}:
        one, other = found.get(key, {}), expected.get(key, {})
        pairs = {c: (one.get(c, "absent"), other.get(c, "absent")) for c in {**one, **other}}
        changed = {column: pair for column, pair in pairs.items() if pair[0] != pair[1]}
        if changed:
            wrong[key] = changed
    return wrong


def _keys(stored: DataFrame) -> list[Any]:
    return [field for field in stored.schema if "key" in field.metadata]


def _cut(place: str) -> str:
    return place[:_BEFORE_OFFSET] + place[_BEFORE_OFFSET + _OFFSET :]
