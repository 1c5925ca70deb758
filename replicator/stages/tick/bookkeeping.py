"""What a tick records for later ticks: the routes, the watermarks of the order, and which tables have nothing left to
read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Row

from replicator import failpoints
from replicator.spec import BY_POSITION
from replicator.stages.refinement import Refinement
from replicator.stages.tick import resharding, routing, ticks
from replicator.stages.tick.resharding import MovedTopics
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.tick_context import TickContext


def save_routes(at: Refinement, learned: Routes, known: Routes) -> None:
    """Write the routes if they changed."""
    if learned != known:
        at.control.put(at.lake.routes(at.source.name), learned.value())
        failpoints.hit("silver.routes_saved")


def save_moved_topics(at: Refinement, learned: Routes, topics: MovedTopics, failed: Collection[str]) -> None:
    """Update the routes of moved topics whose rows the new tables have completely taken: they carry only these now.
    Topics with a table that ``failed`` are left as they are.
    """
    done = {topic for topic in topics if set(learned.tables.get(topic, ())).isdisjoint(failed)}
    if done:
        known = routing.load_routes(at.control, at.lake.routes(at.source.name), learned.bronze)
        save_routes(at, resharding.complete_moved(known, at.source, learned, done), known)


def save_watermarks(
    context: TickContext, found: Sequence[Row], routes: Routes, orders: Mapping[str, str], failed: Collection[str]
) -> None:
    """Record the reference for checking the next range: the marks ``found`` of topics none of whose tables failed, and
    what orders the tables.
    """
    at, reached, upto = context.at, context.at.state, context.new_records.upto
    done = [topic for topic in context.new_records.after if not set(routes.tables.get(topic, ())) & set(failed)]
    changed = reached.advance(upto, found, done)
    reached.note_idle(upto, ticks.topics_of(routes, context.new_records.paused).union(context.new_records.after))
    now = {**reached.orders, **{table: order for table, order in orders.items() if table not in failed}}
    now = {table: order for table, order in now.items() if order != BY_POSITION}
    changed, reached.orders = changed or now != reached.orders, now
    reached.save(at.control, at.lake.reached(at.source.name), upto, changed=changed)


def mark_caught_up(
    context: TickContext, routes: Routes, tables: Collection[str], behind: Collection[str], unwritten: Collection[str]
) -> None:
    """Record which tables need no check of their progress until their topics get records: all but those ``behind``."""
    upto = context.new_records.upto
    applied = {table: upto for table in tables if table not in behind}
    context.at.state.settle(routes.bronze, upto, ticks.topics_of(routes, behind), applied, unwritten)
