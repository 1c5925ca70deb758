"""Topics whose rows belong to another table since ``shards`` was declared or changed: they are read again from their
beginning.

A table's progress tells how far the topics it came from were read, but nothing about a topic that carried other tables
until now, so such a topic is treated as never read. Its route keeps the old tables until the new ones have taken all of
it: after a crash, or once a stopped table may continue, the topic is read from its beginning again. The names that
shards had before they were merged are not stored; so if the shards of a table change, all topics are read again from
which a table with shards has taken rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from replicator.spec import SourceSpec
from replicator.stages.tick.routing import BEGINNING, Routes

MovedTopics = Mapping[str, tuple[str, ...]]
"""Topics, each with the tables that it carried before."""


def find_moved(routes: Routes, source: SourceSpec, paused: Collection[str] = ()) -> MovedTopics:
    """Return the topics with a table whose rows belong, or may belong, to another table now, unless that one is
    ``paused``: then the topic waits.
    """
    if not source.reading.shards:
        return {}
    return {
        topic: tables for topic, tables in routes.tables.items() if _target_tables(tables, routes, source) - {*paused}
    }


def reset_topics(routes: Routes, topics: MovedTopics) -> Routes:
    """Return the routes as if these topics had never been read."""
    tables = {topic: carried for topic, carried in routes.tables.items() if topic not in topics}
    return replace(routes, tables=tables, alone={**routes.alone, **dict.fromkeys(topics, BEGINNING)})


def with_previous(routes: Routes, source: SourceSpec, topics: MovedTopics) -> Routes:
    """Return the routes with both the current and the previous tables of these topics, so that they still count as
    moved.
    """
    if not topics:
        return complete_moved(routes, source, routes, ())
    tables = {
        topic: tuple(dict.fromkeys((*routes.tables.get(topic, ()), *previous))) for topic, previous in topics.items()
    }
    return replace(routes, tables={**routes.tables, **tables})


def complete_moved(routes: Routes, source: SourceSpec, learned: Routes, topics: Collection[str]) -> Routes:
    """Return the routes after the new tables have taken all rows of these topics: each carries what it was found to
    carry when it was read.
    """
    tables = {**routes.tables, **{topic: learned.tables.get(topic, ()) for topic in topics}}
    known = replace(routes, tables={topic: carried for topic, carried in tables.items() if carried})
    waits = find_moved(routes, source).keys() - {*topics}
    return known if waits else replace(known, shards={**known.shards, **_declared(source)})


def topics_of(routes: Routes, source: SourceSpec, table: str) -> frozenset[str]:
    """Return the topics that have carried the table, or tables whose rows belong, or may belong, to it now."""
    joined = {topic for topic, tables in routes.tables.items() if table in _target_tables(tables, routes, source)}
    return routes.topics(table) | joined


def _target_tables(tables: Collection[str], routes: Routes, source: SourceSpec) -> set[str]:
    """Return the tables that take, or may take, rows of a topic that carried these tables until now."""
    homes = {source.home(table) for table in tables if source.home(table) != table}
    gathered = routes.shards.keys() & {*tables}
    changed = {into for into, shards in _declared(source).items() if routes.shards.get(into) != shards}
    return homes.union(*(changed - {each} for each in gathered))


def _declared(source: SourceSpec) -> dict[str, str]:
    return {into: shards for shards, into in source.reading.shards}
