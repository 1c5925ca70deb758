"""A table that comes for the first time, and nobody speaks of, beside one that the source's file speaks of and no topic
has carried: misspelled there, mostly, and then nothing of what is said is done, such as a mask.
"""

from __future__ import annotations

from replicator.spec import SourceSpec
from replicator.spelling import closest_match
from replicator.stages.tick.routing import Routes

_MIN_SIMILARITY = 0.9
"""Of two names: those of neighbours (`orders`, `order_lines`) are further apart."""


def find_warnings(table: str, routes: Routes, source: SourceSpec) -> tuple[str, ...]:
    """What is to be said of a new table, ``<database or schema>.<table>``: one sentence, or nothing."""
    if table in source.named:
        return ()
    near = closest_match(
        table, source.missing(each for found in routes.tables.values() for each in found), _MIN_SIMILARITY
    )
    if near is None:
        return ()
    what = f"the source's file speaks of {near}, and no topic has carried it: if this table is meant, mend the name"
    return (f"{what}; until then what is said of it is not done",)
