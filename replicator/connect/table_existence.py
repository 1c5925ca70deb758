"""Whether the tables of a signal exist: a connector silently ignores the name of one that does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replicator.connect.configuration import CLASSES
from replicator.connect.signals import excluding_key, last_two, list_captured
from replicator.errors import ConfigError
from replicator.spelling import suggest


def find_unverified(
    tables: Sequence[str], config: Mapping[str, str], seen: Sequence[str] | None, user: str
) -> list[str]:
    """Return the tables whose existence cannot be determined: neither ``seen`` by the login ``user`` (None: not
    queried) nor named individually in the ``config`` of the running connector.

    Raises ConfigError for one that does not exist. PostgreSQL shows every table to everyone; other databases show a
    login only those that it may read, so a login that sees only the signal table, or no captured table, proves nothing.
    """
    is_postgres = config["connector.class"] == CLASSES["postgresql"]

    def name(table: str) -> str:
        """In lower case, as connectors compare names."""
        return last_two(table, config).casefold()

    def spelled(table: str) -> str:
        """PostgreSQL's connector finds a table only under the exact name."""
        return last_two(table, config) if is_postgres else name(table)

    known = {spelled(table) for table in seen or ()}
    unseen = [table for table in tables if spelled(table) not in known]
    captured = [table for table in seen or () if not excluding_key(table, config)]
    signals = name(config.get("signal.data.collection", ""))
    sees_all = is_postgres and seen is not None
    if unseen and (sees_all or any(name(table) != signals for table in captured)):
        fix = f"Write its name as in silver; if it exists, grant {user} access to it."
        raise ConfigError(f"{user} sees no table {unseen[0]} at the source{suggest(unseen[0], captured)}", fix=fix)
    listed = {name(table) for table in list_captured(config)}
    return [table for table in unseen if name(table) not in listed]
