"""The status of every table, layer by layer, computed from the facts of a survey."""

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
    """A table that is still to be inspected: ``take`` returns its status with those of its history or target, and
    raises the table's error.
    """

    layer: str
    table: str
    take: Callable[[], list[TableStatus]]


@dataclass(frozen=True)
class _Source:
    """A source whose tables are inspected. ``upto`` returns the id and newest version of its bronze, ``waits`` the
    waiting records; ``older`` has the first table that has read more than that bronze contains.
    """

    name: str
    upto: Callable[[], tuple[str, int | None]]
    waits: Callable[[], Waiting | None]
    older: list[str] = field(default_factory=list)


def list_statuses(survey: Survey) -> list[TableStatus]:
    """Return the status of every table of the lake and of every target, in the order of the layers."""
    return [status for inspection in inspections(survey) for status in inspection.take()]


def inspections(survey: Survey) -> Iterator[Inspection]:
    """Yield the inspections of :func:`list_statuses`, table by table, for callers that continue where one table is
    broken.
    """
    bronze_sources = list(map(names.decode, survey.tables(survey.lake.bronze_root())))
    for source in sorted({*bronze_sources, *map(names.decode, survey.folders(survey.lake.silver_root()))}):
        if source in bronze_sources:
            yield Inspection("bronze", source, partial(_bronze, survey, source))
            yield Inspection("gap", source, partial(_gaps, survey, source))
            yield Inspection("dead_letters", source, partial(_dead_letters, survey, source))
        at = _Source(source, cache(partial(_newest_bronze, survey, source)), cache(partial(survey.waiting, source)))
        for name in map(names.decode_table, survey.tables(survey.lake.silver_root(source))):
            yield Inspection("silver", f"{source}/{name}", partial(_silver, survey, at, name))
            yield Inspection("silver", f"{source}/{name}", partial(_refuse_older_bronze, survey, at, name))
        yield Inspection("waiting", source, partial(_waiting, at))
    targets = TargetStatuses(survey.sinks)
    for model in survey.models:
        yield Inspection("gold", model.name, partial(_gold, survey, model, targets))
    configured = {model.name for model in survey.models}
    for name in map(names.decode, survey.tables(survey.lake.gold_root())):
        if name not in configured:
            yield Inspection("gold", name, partial(_model, survey, survey.lake.gold(name)))


def _bronze(survey: Survey, source: str) -> list[TableStatus]:
    table = survey.lake.bronze(source)
    lag, found = _source_lag(survey, source), survey.records(table)
    seconds = None if lag is None else 0.0
    if lag:
        seconds = None if found.newest_ms is None else _age(found.newest_ms)
    return [
        TableStatus(
            "bronze", source, found.rows, f"version {survey.version(table)}", lag, seconds, newest_ms=found.newest_ms
        )
    ]


def _source_lag(survey: Survey, source: str) -> int | None:
    """Return the number of records that bronze lacks; None, with a warning, where the source does not respond."""
    try:
        return survey.backlog(source)
    except (Unreachable, LoginRefused) as error:
        LOG.warning("source_silent source=%s reason=%s", source, error)
        return None


def _refuse_older_bronze(survey: Survey, source: _Source, name: str) -> list[TableStatus]:
    """Return nothing; raise BronzeReplaced, once per source, where a table has read versions that bronze does not have
    (F-C6).
    """
    identity, upto = source.upto()
    progress = survey.progress(survey.lake.silver(source.name, name), identity)
    if progress is not None and upto is not None and progress.version > upto and not source.older:
        source.older.append(name)
        raise BronzeReplaced.under_silver(source.name, progress.version, upto)
    return []


def _gaps(survey: Survey, source: str) -> list[TableStatus]:
    """Return the offsets of a source that bronze lacks and that no new snapshot has made up for."""
    return [_gap(each) for each in gaps.list_open(survey.facts, survey.lake, source)]


def _gap(gap: Gap) -> TableStatus:
    seconds = _age(int(datetime.fromisoformat(gap.since).timestamp() * 1000))
    description = f"offsets {gap.first} to {gap.last} were skipped at {gap.since} by {gap.by}"
    return TableStatus(
        "gap", f"{gap.topic}/{gap.partition}", gap.last - gap.first + 1, description, lag_seconds=seconds
    )


def _dead_letters(survey: Survey, source: str) -> list[TableStatus]:
    """Return the status of a source's dead letters, if it has some."""
    table = survey.lake.dead_letters(source)
    found = None if survey.version(table) is None else survey.records(table, "first_seen")
    if found is None or not found.rows:
        return []
    return [TableStatus("dead_letters", source, found.rows, "`dead-letters list` shows why", newest_ms=found.newest_ms)]


def _newest_bronze(survey: Survey, source: str) -> tuple[str, int | None]:
    """Return the id and the newest version of a source's bronze."""
    bronze = survey.lake.bronze(source)
    return survey.identity(bronze) or "", survey.version(bronze)


def _waiting(source: _Source) -> list[TableStatus]:
    """Return the status of a source's waiting records, if there are some."""
    waits = source.waits()
    if waits is None:
        return []
    age = None if waits.since_ms is None else _age(waits.since_ms)
    return [TableStatus("waiting", source.name, sum(waits.records.values()), waits.reason, waits.transactions, age)]


def _silver(survey: Survey, source: _Source, name: str) -> list[TableStatus]:
    table, history = survey.lake.silver(source.name, name), survey.lake.history(source.name, name)
    found = [_table_status("silver", table, survey.rows(table), _lag(survey, source, name, table))]
    if survey.version(history) is not None:
        found.append(_table_status("history", history, survey.intervals(history), _lag(survey, source, name, history)))
    is_paused = name in pauses.load(survey.facts, survey.lake, source.name)
    return [replace(each, paused=is_paused) for each in found]


def _table_status(layer: str, table: Table, tally: Tally, behind: int | None) -> TableStatus:
    """Return the status of a silver table or a history; ``behind`` is its lag in records."""
    age = 0.0 if tally.newest_ms is None else _age(tally.newest_ms)
    seconds = None if behind is None else age if behind else 0.0
    found = TableStatus(layer, table.name, tally.rows, tally.seq, behind, seconds, newest_ms=tally.newest_ms)
    return replace(found, deleted=tally.hidden, unknown=tally.unknown) if layer == "silver" else found


def _lag(survey: Survey, source: _Source, name: str, table: Table) -> int | None:
    """Return the number of bronze rows of the table's topics that its progress does not cover, or that wait; None if
    not known. ``table`` is the table itself or its history.
    """
    identity, newest = source.upto()
    progress = survey.progress(table, identity)
    if progress is None or newest is None:
        return None
    waits = source.waits()
    if progress.version >= newest and waits is None:
        return 0
    routes = survey.facts.get(survey.lake.routes(source.name))
    if routes is None:
        return None
    topics = [topic for topic, tables in routes["tables"].items() if name in tables]
    waiting = 0 if waits is None else sum(waits.records.get(topic, 0) for topic in topics)
    if progress.version >= newest:
        return waiting
    added = survey.added(source.name, dict.fromkeys(topics, progress.version), newest, waits)
    return None if added is None else waiting + added


def _gold(survey: Survey, model: Model, targets: TargetStatuses) -> list[TableStatus]:
    """Return the status of a model, and of its target."""
    table = survey.lake.gold(model.name, model.key)
    try:
        found = _model(survey, table, _unread_commits(survey, model))
    except TableMissing:
        return [TableStatus("gold", model.name, None, "not built yet")]
    if model.target is not None:
        found.append(targets.standing(model, model.target, survey.identity(table), survey.version(table)))
    return found


def _model(survey: Survey, table: Table, behind: int | None = None) -> list[TableStatus]:
    found = survey.model(table)
    position = f"version {survey.version(table)}"
    return [TableStatus("gold", table.name, found.rows, position, behind, newest_ms=found.newest_ms)]


def _unread_commits(survey: Survey, model: Model) -> int | None:
    """Return the number of commits of a model's inputs that its newest refresh did not read; None where an input was
    replaced or rolled back since.
    """
    progress = survey.progress(survey.lake.gold(model.name), model.name)
    recorded = None if progress is None else survey.facts.get(survey.lake.inputs(model.name, progress.version))
    if recorded is None:
        return None
    unread = 0
    for placeholder, input_name in model.inputs.items():
        source, slash, name = input_name.partition("/")
        table = survey.lake.source_table(source, name) if slash else survey.lake.gold(input_name)
        identity, version, *_ = recorded["inputs"].get(placeholder, (None, 0))
        newest = survey.version(table)
        if newest is None or newest < version or identity != survey.identity(table):
            return None
        unread += newest - version
    return unread


def _age(milliseconds: int) -> float:
    """Return the seconds since a time; 0 where that is in the future by this machine's clock."""
    return max(0.0, time.time() - milliseconds / 1000)
