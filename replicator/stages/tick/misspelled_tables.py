"""Warn of a new table without a declaration whose name is similar to a declared table that no topic has carried. The
declared name is most likely misspelled, and then nothing that is declared takes effect, such as a mask.
"""

from __future__ import annotations

from replicator.spec import SourceSpec
from replicator.spelling import closest_match
from replicator.stages.tick.routing import Routes

_MIN_SIMILARITY = 0.9
"""The minimum similarity of two names; names of related tables (`orders`, `order_lines`) are less similar."""


def find_warnings(table: str, routes: Routes, source: SourceSpec) -> tuple[str, ...]:
    """Return the warnings about a new table, ``<database or schema>.<table>``: one sentence or none."""
    if table in source.named:
        return ()
    similar = closest_match(
        table, source.missing(each for found in routes.tables.values() for each in found), _MIN_SIMILARITY
    )
    if similar is None:
        return ()
    warning = f"the source's file declares {similar}, which no topic has carried: if this table is meant, fix the name"
    return (f"{warning}; until then that declaration is not applied",)
