"""Topics whose rows go into another table since ``shards`` was declared: they are read once more, from their beginning.

How far a table is tells how far the topics were read that it came in, and so nothing of a topic that carried other
tables until now. Such a topic is as one that was never read. Its route says the old tables, too, until the new ones
have taken all of it: whoever goes on after a crash, or once a table that stopped may go on, begins with it again. What
shards were called before they were gathered nobody keeps: once these go into other tables than until now, all topics
are read that a table with shards has taken rows of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from replicator.spec import SourceSpec
from replicator.stages.tick.routing import BEGINNING, Routes

MovedTopics = Mapping[str, tuple[str, ...]]
"""Topics, each with the tables that it carried before."""


def find_moved(routes: Routes, source: SourceSpec, paused: Collection[str] = ()) -> MovedTopics:
    """Topics of which some table's rows go into another one, or may do so, but for ``paused`` ones, which wait."""
    if not source.reading.shards:
        return {}
    return {
        topic: tables for topic, tables in routes.tables.items() if _target_tables(tables, routes, source) - {*paused}
    }


def reset_topics(routes: Routes, topics: MovedTopics) -> Routes:
    """The routes as if these topics had never been read."""
    tables = {topic: told for topic, told in routes.tables.items() if topic not in topics}
    return replace(routes, tables=tables, alone={**routes.alone, **dict.fromkeys(topics, BEGINNING)})


def with_previous(routes: Routes, source: SourceSpec, topics: MovedTopics) -> Routes:
    """The routes with what these topics carry now and carried before: so they are ``moved`` still."""
    if not topics:
        return complete_moved(routes, source, routes, ())
    tables = {topic: tuple(dict.fromkeys((*routes.tables.get(topic, ()), *told))) for topic, told in topics.items()}
    return replace(routes, tables={**routes.tables, **tables})


def complete_moved(routes: Routes, source: SourceSpec, learned: Routes, topics: Collection[str]) -> Routes:
    """The routes once the tables that take the rows of these topics have all of them: such a topic carries what it was
    found to carry when it was read.
    """
    tables = {**routes.tables, **{topic: learned.tables.get(topic, ()) for topic in topics}}
    known = replace(routes, tables={topic: told for topic, told in tables.items() if told})
    waits = find_moved(routes, source).keys() - {*topics}
    return known if waits else replace(known, shards={**known.shards, **_declared(source)})


def topics_of(routes: Routes, source: SourceSpec, table: str) -> frozenset[str]:
    """Topics that have carried the table, or tables whose rows are its own by now, or may be."""
    joined = {topic for topic, tables in routes.tables.items() if table in _target_tables(tables, routes, source)}
    return routes.topics(table) | joined


def _target_tables(tables: Collection[str], routes: Routes, source: SourceSpec) -> set[str]:
    """The tables that take, or may take, rows of a topic that carried these until now."""
    homes = {source.home(table) for table in tables if source.home(table) != table}
    gathered = routes.shards.keys() & {*tables}
    anew = {into for into, shards in _declared(source).items() if routes.shards.get(into) != shards}
    return homes.union(*(anew - {each} for each in gathered))


def _declared(source: SourceSpec) -> dict[str, str]:
    return {into: shards for shards, into in source.reading.shards}
