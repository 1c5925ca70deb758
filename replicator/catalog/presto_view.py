"""Athena's views as stored in Glue: the query and its columns as JSON, in base64, inside a comment (Trino's Hive
connector: ``/* Presto View: ... */``).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Sequence

from replicator.catalog.columns import Column

EXPANDED = "/* Presto View */"
"""The placeholder for Hive's expanded text of a view."""

CATALOG = "awsdatacatalog"
"""Athena's name for Glue."""

_BEFORE, _AFTER = "/* Presto View: ", " */"


def quote(*parts: str) -> str:
    """Quote a name for Trino; several parts are joined by dots."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def select(columns: Iterable[Column], database: str, table: str, condition: str) -> str:
    """Return the query of a view. Times are cast: Delta's have a zone and Hudi's have none, and a view whose query has
    another type than declared is refused as stale.
    """
    expressions = ",\n  ".join(
        f"CAST({quote(each.name)} AS {each.trino}) AS {quote(each.name)}" if each.has_time else quote(each.name)
        for each in columns
    )
    return f"SELECT\n  {expressions}\nFROM {quote(CATALOG, database, table)}\nWHERE {condition}"


def encode(sql: str, database: str, columns: Sequence[Column]) -> str:
    """Return the text of a view for Glue's ``ViewOriginalText``."""
    view = {
        "originalSql": sql,
        "catalog": CATALOG,
        "schema": database,
        "columns": [{"name": each.name, "type": each.trino} for each in columns],
    }
    return f"{_BEFORE}{base64.b64encode(json.dumps(view).encode()).decode('ascii')}{_AFTER}"


def decode(text: str) -> str:
    """Return the query of a view from Glue's text; the text itself if it is not one of Athena's."""
    try:
        view = json.loads(base64.b64decode(text.removeprefix(_BEFORE).removesuffix(_AFTER), validate=True))
        return str(view["originalSql"])
    except (binascii.Error, ValueError, KeyError, TypeError):
        return text
