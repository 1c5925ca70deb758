"""The model whose rows violate a constraint that was checked at the end of a transaction, when no statement identifies
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psycopg2.extensions import Diagnostics
    from psycopg2.extensions import cursor as Cursor

TableName = tuple[str | None, str | None]
"""Schema and table."""

_REFERENCED = """
    SELECT n.nspname, c.relname FROM pg_constraint k
    JOIN pg_class t ON t.oid = k.conrelid JOIN pg_namespace tn ON tn.oid = t.relnamespace
    JOIN pg_class c ON c.oid = k.confrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE k.contype = 'f' AND k.conname = %s AND tn.nspname = %s AND t.relname = %s
"""


def find_model(cursor: Cursor, diag: Diagnostics, written: Mapping[TableName, str]) -> str | None:
    """Return the model whose table Postgres names, else that of the table referenced by it, among those that were
    written (by table); None if neither was. Postgres names the referencing table even if a referenced row was deleted,
    and that table may be foreign. The failed transaction is rolled back to query the catalog.
    """
    named = diag.schema_name, diag.table_name
    if named in written or diag.constraint_name is None:
        return written.get(named)
    cursor.connection.rollback()
    cursor.execute(_REFERENCED, (diag.constraint_name, *named))
    return next((written[place] for place in cursor.fetchall() if place in written), None)
