"""Whether the tables that a signal names are there: a connector passes over the name of one that is not, in silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replicator.connect.configuration import CLASSES
from replicator.connect.signals import excluding_key, list_captured
from replicator.errors import ConfigError
from replicator.spelling import suggest


def find_unverified(
    tables: Sequence[str], config: Mapping[str, str], seen: Sequence[str] | None, user: str
) -> list[str]:
    """Tables of which nobody can tell whether there are such: neither ``seen`` by the login ``user`` (None: it was not
    asked) nor named one by one for a connector that runs with ``config``.

    Raises ConfigError for one that is not there. PostgreSQL shows every table to everyone; others show a login those
    that it may read, so one that sees only the signal table, or none that is captured, has not told anything.
    """
    known = {_name(table) for table in seen or ()}
    strange = [table for table in tables if _name(table) not in known]
    captured = [table for table in seen or () if not excluding_key(table, config)]
    signals = _name(config.get("signal.data.collection", ""))
    is_told = config["connector.class"] == CLASSES["postgresql"] and seen is not None
    if strange and (is_told or any(_name(table) != signals for table in captured)):
        mend = f"Write it as silver calls it; or let {user} see it, where it is there."
        raise ConfigError(f"{user} sees no table {strange[0]} at the source{suggest(strange[0], captured)}", mend=mend)
    listed = {_name(table) for table in list_captured(config)}
    return [table for table in strange if _name(table) not in listed]


def _name(table: str) -> str:
    """Its last two parts, in whichever case: as connectors compare names."""
    return ".".join(table.split(".")[-2:]).casefold()
