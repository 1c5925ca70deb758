"""Whether the tables of a signal exist: a connector silently ignores the name of one that does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replicator.connect.configuration import CLASSES
from replicator.connect.signals import excluding_key, list_captured
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
    spelled = _last_two if is_postgres else _name  # its connector finds a table only under the exact name
    known = {spelled(table) for table in seen or ()}
    unseen = [table for table in tables if spelled(table) not in known]
    captured = [table for table in seen or () if not excluding_key(table, config)]
    signals = _name(config.get("signal.data.collection", ""))
    sees_all = is_postgres and seen is not None
    if unseen and (sees_all or any(_name(table) != signals for table in captured)):
        fix = f"Write its name as in silver; if it exists, grant {user} access to it."
        raise ConfigError(f"{user} sees no table {unseen[0]} at the source{suggest(unseen[0], captured)}", fix=fix)
    listed = {_name(table) for table in list_captured(config)}
    return [table for table in unseen if _name(table) not in listed]


def _last_two(table: str) -> str:
    return ".".join(table.split(".")[-2:])


def _name(table: str) -> str:
    """The last two parts of the name, case-insensitive, as connectors compare names."""
    return _last_two(table).casefold()
