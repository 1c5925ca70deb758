"""Checks that protect the order: a source that was rewound, partitions that were added, an order that was changed
(debezium.md J4, Q8, Q9; R6). A table that is stopped here has not been written to. The marks of a range come with its
survey, so a check costs nothing where they show no suspect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, Row

from replicator.debezium import position
from replicator.errors import PartitionsGrew, TableStopped
from replicator.spec import BY_GTID, BY_POSITION, BY_TIME
from replicator.stages.refinement import Refinement
from replicator.stages.tick import rewinds
from replicator.stages.tick.routing import BEGINNING, NULL_DELETES, Routes
from replicator.stages.tick.tick_context import TickContext

_ORDER_TEXTS = {
    BY_POSITION: "the table is ordered by positions",
    BY_TIME: f"`sequence_by` is {BY_TIME}",
    BY_GTID: "`binlog_position` is gtid",
    "file_pos_row": "`binlog_position` is file_pos_row",
}


def find_stops(
    context: TickContext,
    records: DataFrame,
    found: Sequence[Row],
    routes: Routes,
    orders: Mapping[str, str],
    existing: Collection[str],
) -> dict[str, TableStopped]:
    """Return the tables that must not continue, each with its error. ``found`` are rows of ``watermarks.compute`` of
    the described ``records``; ``orders`` maps each table with new records to what orders it (``SourceSpec.order``);
    ``existing`` are the tables that exist already.
    """
    by_offset = set(routes.by_offset)
    positioned = [row for row in found if row["topic"] not in by_offset and orders.get(row["table"]) != BY_TIME]
    suspects = [row for row in positioned if row["fell"] is not None]
    begun = {table: order for table, order in orders.items() if table in existing}
    new = {table: order for table, order in orders.items() if table not in existing}
    return {
        **(rewinds.find(context, records, suspects, routes) if suspects else {}),
        **_find_new_partitions(context, found, routes, by_offset),
        **_find_several_topics(context, found, routes, orders),
        **_find_several_domains(context, found, routes),
        **find_reordered(context.at, begun),
        **_find_reordered_histories(context, new),
    }


def _find_new_partitions(
    context: TickContext, found: Iterable[Row], routes: Routes, by_offset: Collection[str]
) -> dict[str, TableStopped]:
    """Stop tables whose topic, ordered by offset, has a new partition. Offsets are comparable within a partition only
    (Q8), and a partition numbered above all others may have taken over keys from them.
    """
    stopped: dict[str, TableStopped] = {}
    for row in found:
        topic, partition = row["topic"], row["partition"]
        level = context.at.state.watermarks.get(topic)
        if topic not in by_offset or level is None or context.new_records.after.get(topic, BEGINNING) == BEGINNING:
            continue
        newest = max((mark.epoch for mark in level.marks.values()), default="")
        if level.partitions and partition > max(level.partitions) and row["mark"]["place"][:4] <= newest:
            for table in routes.tables.get(topic, ()):
                stopped[table] = _new_partition_error(context.at, table, topic, partition)
    return stopped


def _new_partition_error(at: Refinement, table: str, topic: str, partition: int) -> PartitionsGrew:
    return PartitionsGrew(
        f"partition {partition} of {topic} is new, and its records are ordered only by offset",
        where=f"{at.source.name}/{table}",
        fix="If partitions were added, keys have moved: let the connector take a new snapshot. Then, or if the "
        f"partition just had no records before: `replicator epoch bump {at.source.name} --reason TEXT`.",
    )


def _find_several_topics(
    context: TickContext, found: Iterable[Row], routes: Routes, orders: Mapping[str, str]
) -> dict[str, TableStopped]:
    """Stop tables that several topics ordered by offset carry. Offsets are comparable within a topic only (Q8): a row
    that moves between topics is a delete in one and an insert in the other, in no order (C9). Tables whose shards keep
    rows of different topics apart may continue, and so may those of which all topics but one belong to an epoch that
    has ended.
    """
    newest = dict.fromkeys(routes.by_offset, "")
    for row in found:
        if row["topic"] in newest:
            newest[row["topic"]] = max(newest[row["topic"]], row["mark"]["place"][:4])
    for topic, level in context.at.state.watermarks.items():
        if topic in newest and context.new_records.after.get(topic) != BEGINNING:
            newest[topic] = max([newest[topic], *(mark.epoch for mark in level.marks.values())])
    nulls = routes.topics_of_mode(NULL_DELETES)  # deletes there have no time
    stopped: dict[str, TableStopped] = {}
    for table, order in orders.items():
        topics = routes.topics(table).intersection(nulls if order == BY_TIME else newest)
        last = max((newest[topic] for topic in topics), default="")
        current = sorted(topic for topic in topics if last and newest[topic] == last)
        if len(current) > 1 and not context.at.source.declaration(table).shards:
            stopped[table] = _several_topics_error(context.at, table, current)
    return stopped


def _several_topics_error(at: Refinement, table: str, topics: Sequence[str]) -> TableStopped:
    return TableStopped(
        f"{' and '.join(topics)} carry the table, and their records are ordered only by offset",
        where=f"{at.source.name}/{table}",
        fix="Use one topic for it (publish_via_partition_root, for a partitioned table of PostgreSQL), start a new "
        f"epoch: `replicator epoch bump {at.source.name} --reason TEXT`, and then let the connector take a new "
        "snapshot. Or make the connector send positions, under a new topic prefix.",
    )


def _find_several_domains(context: TickContext, found: Iterable[Row], routes: Routes) -> dict[str, TableStopped]:
    """Stop tables whose topic has changes of several GTID domains in its newest epoch: their numbers have no common
    order (Q4).
    """
    seen: dict[str, set[tuple[str, str]]] = {}
    for row in found:
        seen.setdefault(row["topic"], set()).add((row["mark"]["place"][:4], row["stream"]))
    stopped: dict[str, TableStopped] = {}
    for topic, streams_now in seen.items():
        level = context.at.state.watermarks.get(topic)
        before = {} if level is None else level.marks
        streams = streams_now | {(mark.epoch, stream) for (_, stream), mark in before.items()}
        newest = max(epoch for epoch, _ in streams)
        stream_parts = {stream.rpartition(position.DOMAIN_PREFIX) for epoch, stream in streams if epoch == newest}
        domains = sorted(domain for _, mark, domain in stream_parts if mark)
        if len(domains) > 1:
            for table in routes.tables.get(topic, ()):
                stopped[table] = _several_domains_error(context.at, table, topic, domains)
    return stopped


def _several_domains_error(at: Refinement, table: str, topic: str, domains: Sequence[str]) -> TableStopped:
    return TableStopped(
        f"{topic} has changes of the GTID domains {' and '.join(domains)}, whose numbers have no common order",
        where=f"{at.source.name}/{table}",
        fix="Write to one domain only, and start a new epoch after the others' changes: `replicator epoch bump "
        f"{at.source.name} --reason TEXT`.",
    )


def find_reordered(at: Refinement, orders: Mapping[str, str]) -> dict[str, TableStopped]:
    """Return an error for each existing table whose order was changed: its rows hold positions of the other kind
    (Q9).
    """
    return {
        table: TableStopped(
            f"{_ORDER_TEXTS[order]} now, but its rows were ordered by {before}",
            where=f"{at.source.name}/{table}",
            fix="Revert the setting, or rebuild the table in the other order: "
            f"`replicator rebuild {at.source.name}/{table}`.",
        )
        for table, order in orders.items()
        for before in [at.state.orders.get(table, BY_POSITION)]
        if order != before
    }


def _find_reordered_histories(context: TickContext, orders: Mapping[str, str]) -> dict[str, TableStopped]:
    """The same for a table that was removed without its history, whose positions are of the other kind."""
    at = context.at
    histories = {table: at.lake.history(at.source.name, table) for table in find_reordered(at, orders)}
    return {
        table: TableStopped(
            f"{_ORDER_TEXTS[orders[table]]} now, but its history was ordered by "
            f"{at.state.orders.get(table, BY_POSITION)}",
            where=f"{at.source.name}/{table}",
            fix=f"Revert the setting, or remove the history too, which is rebuilt from bronze: {history.location}.",
        )
        for table, history in histories.items()
        if at.silver.version(context.spark, history) is not None
    }
