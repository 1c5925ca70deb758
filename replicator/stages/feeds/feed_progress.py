"""How far a feed has sent its events, and whether further events would fit those that were sent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from replicator.errors import ChangesLost, SchemaRefused
from replicator.spec import Feed, Table
from replicator.stages.feeds.commit_events import FIX


@dataclass(frozen=True)
class FeedProgress:
    """The control row of a feed: the id of its table, and the version up to which everything is sent (None while the
    initial rows, of version ``begun``, are being sent). ``rules`` are the settings that made the events of those rows;
    ``into`` is the id of the topic that has them.
    """

    input: str
    upto: int | None = None
    begun: int | None = None
    rules: Mapping[str, Any] | None = None
    into: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any] | None) -> FeedProgress | None:
        """Parse the control row."""
        return None if row is None else cls(row["input"], row["upto"], row["begun"], row.get("rules"), row.get("into"))


def hash_rules(feed: Feed, table: Table) -> dict[str, Any]:
    """Return the settings that make events of rows and decide where they go, as stored in the control row. The key of
    silver tables is not included, because these record it themselves.
    """
    texts = {"where": feed.where, "select": feed.select}
    digests = {name: hashlib.sha256(json.dumps(text).encode()).hexdigest()[:16] for name, text in texts.items()}
    return {"version": feed.version, "topic": feed.topic, "key": list(table.keys), **digests}


def refuse_incompatible(feed: Feed, progress: FeedProgress, now: FeedProgress, table: Table) -> None:
    """Raise ChangesLost or SchemaRefused if further events would not fit those that were sent."""
    before, rules = progress.rules or now.rules or {}, now.rules or {}
    reason, advice = _reason_lost(progress, now, before, rules), FIX.format(feed.name)
    if reason is not None:
        raise ChangesLost(reason, where=table.name, fix=advice)
    if before["version"] == rules["version"] and before["select"] != rules["select"]:
        raise SchemaRefused(
            f"`select` differs from that of the events sent as version {feed.version}",
            where=f"feed {feed.name}",
            fix=f"Raise `version` in its file, or revert `select`; if the columns stay the same, {advice}",
        )


def _reason_lost(
    progress: FeedProgress, now: FeedProgress, before: Mapping[str, Any], rules: Mapping[str, Any]
) -> str | None:
    """Return the reason why further events would miss changes that the events sent do not contain; None if there is
    none.
    """
    if progress.input != now.input:
        return "the table is not the one whose events were sent"
    if (progress.upto or 0) > (now.upto or 0):
        return f"events of version {progress.upto} were sent, but the table is at version {now.upto}: it was reverted"
    if before["where"] != rules["where"]:
        return (
            "`where` differs from that of the events sent: rows that it includes or excludes since then cannot "
            "be determined"
        )
    if before.get("topic", rules["topic"]) != rules["topic"]:
        return f"events were sent to topic {before['topic']}: {rules['topic']} has none of these rows"
    if before.get("key", rules["key"]) != rules["key"]:
        return f"rows had the key {', '.join(before['key'])} in the events sent, but have another key now"
    return None
