"""Topics whose rows go into another table since ``shards`` was declared: they are read once more, from their beginning.

How far a table is tells how far the topics were read that it came in, and so nothing of a topic that carried other
tables until now. Such a topic is as one that was never read. Its route says the old tables, too, until the new ones
have taken all of it: whoever goes on after a crash, or once a table that stopped may go on, begins with it again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from replicator.spec import SourceSpec
from replicator.stages.routing import BEGINNING, Routes

Moved = Mapping[str, tuple[str, ...]]
"""Topics, each with the tables that it carried before."""


def moved(routes: Routes, source: SourceSpec, paused: Collection[str] = ()) -> Moved:
    """Topics of which some table's rows go into another one, but for ``paused`` ones, which wait."""
    if not source.reading.shards:
        return {}
    homes = {table: source.home(table) for tables in routes.tables.values() for table in tables}
    left = {table for table, home in homes.items() if home not in (table, *paused)}
    return {topic: tables for topic, tables in routes.tables.items() if not left.isdisjoint(tables)}


def unread(routes: Routes, topics: Moved) -> Routes:
    """The routes as if these topics had never been read."""
    tables = {topic: told for topic, told in routes.tables.items() if topic not in topics}
    return replace(routes, tables=tables, alone={**routes.alone, **dict.fromkeys(topics, BEGINNING)})


def both(routes: Routes, topics: Moved) -> Routes:
    """The routes with what these topics carry now and carried before: so they are ``moved`` still."""
    tables = {topic: tuple(dict.fromkeys((*routes.tables.get(topic, ()), *told))) for topic, told in topics.items()}
    return replace(routes, tables={**routes.tables, **tables})


def settled(routes: Routes, source: SourceSpec, topics: Collection[str]) -> Routes:
    """The routes once the tables that take the rows of these topics have all of them."""
    own = {t: tuple(each for each in routes.tables[t] if source.home(each) == each) for t in topics}
    tables = {topic: told for topic, told in {**routes.tables, **own}.items() if told}
    return replace(routes, tables=tables)


def topics_of(routes: Routes, source: SourceSpec, table: str) -> frozenset[str]:
    """Topics that have carried the table, or tables whose rows are its own by now."""
    joined = {topic for topic, tables in moved(routes, source).items() if table in map(source.home, tables)}
    return routes.topics(table) | joined
