"""Detect snapshots whose rows may hide newer changes: those of transactions that were open while the rows were read, if
LSNs of PostgreSQL without a ``sequence`` order the changes.

A snapshot row ranks above everything before it in its partition (Q5). Without the commit's LSN, a transaction that
commits later may have lower LSNs than that.
"""

from __future__ import annotations

from replicator.stages.tick.table_share import TableShare


def find_warnings(share: TableShare) -> list[str]:
    """Return a warning if rows of a snapshot follow changes ordered so. The first snapshot of a topic hides none: it
    has nothing before it.
    """
    topics = share.routes.topics(share.name)
    if share.is_from_start or not share.any("has_snapshot") or not share.at.state.has_unordered_commits(topics):
        return []
    cause = "LSNs came without `sequence`; if a transaction that writes to the table was open during the snapshot"
    fix = "`replicator verify` finds the rows; add `sequence` to `add.fields`, and take the snapshot again"
    return [f"snapshot_hides_changes: {cause}, changes may be missing here. {fix}"]
