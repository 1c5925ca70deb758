"""Athena's views as Glue keeps them: the query and its columns as JSON, in base64, inside a comment (Trino's Hive
connector: ``/* Presto View: ... */``).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Sequence

from replicator.catalog.columns import Column

EXPANDED = "/* Presto View */"
"""What stands where Hive keeps a view's expanded text."""

CATALOG = "awsdatacatalog"
"""Athena's name for Glue."""

_BEFORE, _AFTER = "/* Presto View: ", " */"


def quote(*parts: str) -> str:
    """Quoted for Trino; several parts are joined by dots."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def select(columns: Iterable[Column], database: str, table: str, condition: str) -> str:
    """The query of a view. Times are cast: Delta's come with a zone where Hudi's have none, and a view whose query has
    another type than it says is refused as stale.
    """
    told = ",\n  ".join(
        f"CAST({quote(each.name)} AS {each.trino}) AS {quote(each.name)}" if each.has_time else quote(each.name)
        for each in columns
    )
    return f"SELECT\n  {told}\nFROM {quote(CATALOG, database, table)}\nWHERE {condition}"


def encode(sql: str, database: str, columns: Sequence[Column]) -> str:
    """The text of a view for Glue's ``ViewOriginalText``."""
    told = {
        "originalSql": sql,
        "catalog": CATALOG,
        "schema": database,
        "columns": [{"name": each.name, "type": each.trino} for each in columns],
    }
    return f"{_BEFORE}{base64.b64encode(json.dumps(told).encode()).decode('ascii')}{_AFTER}"


def decode(text: str) -> str:
    """The query of a view from Glue's text; the text itself where it is none of Athena's."""
    try:
        told = json.loads(base64.b64decode(text.removeprefix(_BEFORE).removesuffix(_AFTER), validate=True))
        return str(told["originalSql"])
    except (binascii.Error, ValueError, KeyError, TypeError):
        return text
