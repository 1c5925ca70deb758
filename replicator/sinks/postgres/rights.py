"""What a role must be allowed in the database beside its own tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator import names

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

_MAY_STAGE = "SELECT has_database_privilege(current_database(), 'TEMP'), current_database(), current_user"


def lacking(cursor: Cursor) -> tuple[str, str] | None:
    """What is amiss and how to mend it, where this role may not make temporary tables, by which rows arrive (decision
    0045); None where it may.
    """
    cursor.execute(_MAY_STAGE)
    may, database, role = cursor.fetchone() or (False, "", "")
    if may:
        return None
    grant = f"GRANT TEMPORARY ON DATABASE {names.postgres(database)} TO {names.postgres(role)};"
    what = f"role {role} may not make temporary tables in database {database}, by which rows arrive."
    return what, f"As the owner of the database run: {grant}"
