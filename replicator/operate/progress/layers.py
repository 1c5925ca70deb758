"""Where everything stands, layer by layer and table by table: what the facts of a survey say of each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING

from replicator import names
from replicator.errors import BronzeReplaced, LoginRefused, TableMissing, Unreachable
from replicator.operate.progress.table_status import TableStatus
from replicator.operate.progress.target_status import TargetStatuses
from replicator.stages.ingest import gaps
from replicator.stages.tick import pauses

if TYPE_CHECKING:
    from replicator.operate.progress.survey import Survey, Tally
    from replicator.operate.progress.waiting import Waiting
    from replicator.spec import Model, Table
    from replicator.stages.ingest.gaps import Gap

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Inspection:
    """A table that was not looked at yet: ``take`` gives its standings, with those of what belongs to it (a history, a
    target), and raises what is wrong with it.
    """

    layer: str
    table: str
    take: Callable[[], list[TableStatus]]


@dataclass(frozen=True)
class _Source:
    """A source whose tables are looked at: ``upto`` is the identity and the newest version of its bronze, which is
    ``older`` than what a table has read.
    """

    name: str
    upto: Callable[[], tuple[str, int | None]]
    waits: Callable[[], Waiting | None]
    older: list[str] = field(default_factory=list)


def list_statuses(of: Survey) -> list[TableStatus]:
    """Every table of the lake and every target, in the order of the layers."""
    return [standing for look in inspections(of) for standing in look.take()]


def inspections(of: Survey) -> Iterator[Inspection]:
    """What :func:`list_statuses` looks at, table by table, for those who go on where one is broken."""
    taken = list(map(names.decode, of.tables(of.lake.bronze_root())))
    for source in sorted({*taken, *map(names.decode, of.folders(of.lake.silver_root()))}):
        if source in taken:
            yield Inspection("bronze", source, partial(_bronze, of, source))
            yield Inspection("gap", source, partial(_gaps, of, source))
            yield Inspection("dead_letters", source, partial(_dead_letters, of, source))
        at = _Source(source, cache(partial(_newest_bronze, of, source)), cache(partial(of.waiting, source)))
        for name in map(names.decode_table, of.tables(of.lake.silver_root(source))):
            yield Inspection("silver", f"{source}/{name}", partial(_silver, of, at, name))
            yield Inspection("silver", f"{source}/{name}", partial(_refuse_older_bronze, of, at, name))
        yield Inspection("waiting", source, partial(_waiting, at))
    served = TargetStatuses(of.sinks)
    for model in of.models:
        yield Inspection("gold", model.name, partial(_gold, of, model, served))
    configured = {model.name for model in of.models}
    for name in map(names.decode, of.tables(of.lake.gold_root())):
        if name not in configured:
            yield Inspection("gold", name, partial(_model, of, of.lake.gold(name)))


def _bronze(of: Survey, source: str) -> list[TableStatus]:
    table = of.lake.bronze(source)
    lag, found = _source_lag(of, source), of.records(table)
    seconds = None if lag is None else 0.0
    if lag:
        seconds = None if found.newest_ms is None else _age(found.newest_ms)
    return [
        TableStatus(
            "bronze", source, found.rows, f"version {of.version(table)}", lag, seconds, newest_ms=found.newest_ms
        )
    ]


def _source_lag(of: Survey, source: str) -> int | None:
    """Where what the records come from is silent nobody can say, and that is told."""
    try:
        return of.ahead(source)
    except (Unreachable, LoginRefused) as error:
        LOG.warning("source_silent source=%s reason=%s", source, error)
        return None


def _refuse_older_bronze(of: Survey, at: _Source, name: str) -> list[TableStatus]:
    """Nothing; raises BronzeReplaced, once for a source, where a table has read versions that bronze does not have
    (F-C6).
    """
    identity, upto = at.upto()
    progress = of.progress(of.lake.silver(at.name, name), identity)
    if progress is not None and upto is not None and progress.version > upto and not at.older:
        at.older.append(name)
        raise BronzeReplaced.under_silver(at.name, progress.version, upto)
    return []


def _gaps(of: Survey, source: str) -> list[TableStatus]:
    """Of a source what is not in bronze, and was not made up for by a new snapshot."""
    return [_gap(each) for each in gaps.list_open(of.facts, of.lake, source)]


def _gap(gap: Gap) -> TableStatus:
    seconds = _age(int(datetime.fromisoformat(gap.since).timestamp() * 1000))
    told = f"offsets {gap.first} to {gap.last} were passed over at {gap.since} by {gap.by}"
    return TableStatus("gap", f"{gap.topic}/{gap.partition}", gap.last - gap.first + 1, told, lag_seconds=seconds)


def _dead_letters(of: Survey, source: str) -> list[TableStatus]:
    """Of a source the records that could not be applied, where there are some."""
    table = of.lake.dead_letters(source)
    found = None if of.version(table) is None else of.records(table, "first_seen")
    if found is None or not found.rows:
        return []
    return [TableStatus("dead_letters", source, found.rows, "`dead-letters list` tells why", newest_ms=found.newest_ms)]


def _newest_bronze(of: Survey, source: str) -> tuple[str, int | None]:
    """The identity and the newest version of a source's bronze."""
    bronze = of.lake.bronze(source)
    return of.identity(bronze) or "", of.version(bronze)


def _waiting(at: _Source) -> list[TableStatus]:
    """A source of which something waits."""
    waits = at.waits()
    if waits is None:
        return []
    age = None if waits.since_ms is None else _age(waits.since_ms)
    return [TableStatus("waiting", at.name, sum(waits.records.values()), waits.reason, waits.transactions, age)]


def _silver(of: Survey, at: _Source, name: str) -> list[TableStatus]:
    table, past = of.lake.silver(at.name, name), of.lake.history(at.name, name)
    found = [_table_status("silver", table, of.rows(table), _lag(of, at, name, table))]
    if of.version(past) is not None:
        found.append(_table_status("history", past, of.intervals(past), _lag(of, at, name, past)))
    is_paused = name in pauses.load(of.facts, of.lake, at.name)
    return [replace(each, paused=is_paused) for each in found]


def _table_status(layer: str, table: Table, tally: Tally, behind: int | None) -> TableStatus:
    """One table of silver, or a history: its rows that users see, and how far it is behind bronze."""
    late = 0.0 if tally.newest_ms is None else _age(tally.newest_ms)
    seconds = None if behind is None else late if behind else 0.0
    found = TableStatus(layer, table.name, tally.rows, tally.seq, behind, seconds, newest_ms=tally.newest_ms)
    return replace(found, deleted=tally.hidden, unknown=tally.unknown) if layer == "silver" else found


def _lag(of: Survey, at: _Source, name: str, table: Table) -> int | None:
    """Bronze rows of the table's topics that its progress, or that of its history, does not cover, or that wait."""
    identity, newest = at.upto()
    progress = of.progress(table, identity)
    if progress is None or newest is None:
        return None
    waits = at.waits()
    if progress.version >= newest and waits is None:
        return 0
    routes = of.facts.get(of.lake.routes(at.name))
    if routes is None:
        return None
    topics = [topic for topic, tables in routes["tables"].items() if name in tables]
    held = 0 if waits is None else sum(waits.records.get(topic, 0) for topic in topics)
    if progress.version >= newest:
        return held
    added = of.added(at.name, dict.fromkeys(topics, progress.version), newest, waits)
    return None if added is None else held + added


def _gold(of: Survey, model: Model, served: TargetStatuses) -> list[TableStatus]:
    """A model, and its target."""
    table = of.lake.gold(model.name, model.key)
    try:
        found = _model(of, table, _unread_commits(of, model))
    except TableMissing:
        return [TableStatus("gold", model.name, None, "not built yet")]
    if model.target is not None:
        found.append(served.standing(model, model.target, of.identity(table), of.version(table)))
    return found


def _model(of: Survey, table: Table, behind: int | None = None) -> list[TableStatus]:
    found = of.model(table)
    position = f"version {of.version(table)}"
    return [TableStatus("gold", table.name, found.rows, position, behind, newest_ms=found.newest_ms)]


def _unread_commits(of: Survey, model: Model) -> int | None:
    """Commits of a model's inputs that its newest refresh did not read; None where an input is not as it was read."""
    progress = of.progress(of.lake.gold(model.name), model.name)
    kept = None if progress is None else of.facts.get(of.lake.inputs(model.name, progress.version))
    if kept is None:
        return None
    unread = 0
    for placeholder, given in model.inputs.items():
        source, slash, name = given.partition("/")
        table = of.lake.source_table(source, name) if slash else of.lake.gold(given)
        identity, version, *_ = kept["inputs"].get(placeholder, (None, 0))
        newest = of.version(table)
        if newest is None or newest < version or identity != of.identity(table):
            return None
        unread += newest - version
    return unread


def _age(milliseconds: int) -> float:
    """Seconds since then; none where another clock is ahead of this one."""
    return max(0.0, time.time() - milliseconds / 1000)
