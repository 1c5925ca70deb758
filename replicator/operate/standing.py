"""Where everything stands, whoever looks: the facts that are asked of a lake, and what they say of each table.

Spark answers for every lake (``operate/status.py``); ``operate/direct.py`` for those that can be read without it, in a
tenth of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol

from replicator import names
from replicator.errors import BronzeReplaced, LoginRefused, TableMissing, Unreachable
from replicator.stages import gaps, pauses

if TYPE_CHECKING:
    from replicator.lake import Lake
    from replicator.operate.waiting import Waiting
    from replicator.protocols import Facts, Sink
    from replicator.spec import Model, Progress, Table, Target
    from replicator.stages.gaps import Gap


@dataclass(frozen=True)
class Standing:
    """One table. ``position`` is the layer's own: bronze version, ``_seq`` of the newest row, gold version, ledger
    version.

    ``lag_events`` counts records that are in the layer before and not here, for gold and publish its commits (None:
    not known); ``lag_seconds`` is the age of the newest change that is here while there are such records, else 0.
    ``deleted`` counts rows of silver that the source deleted, ``unknown`` those of its others that lack a value which
    no record has told: it is NULL, and named in ``_column_seq`` (debezium.md M4). ``newest_ms`` is the time of the
    newest change that is here, epoch milliseconds UTC: by Kafka's clock in bronze, by the source's in silver, and in
    gold by the column ``updated_at`` where a model has one. Before bronze, of a source whose records lie in objects,
    ``lag_events`` counts these: nobody knows their lines. ``paused``: silver leaves the table as it is.

    In the layer ``waiting`` a source is told of which records wait until transactions are whole: how many (``rows``),
    what for (``position``), their transactions (``lag_events``) and how long the oldest does. They are in the
    ``lag_events`` of silver, too.

    In the layer ``gap`` a partition (``<topic>/<partition>``) is told of which offsets are not in bronze, since an
    operator passed over them: at most how many records (``rows``), which, when and by whom (``position``), and how long
    ago (``lag_seconds``). Rows of silver may be missing or old until a new snapshot.
    """

    layer: str
    table: str
    rows: int | None
    position: str
    lag_events: int | None = None
    lag_seconds: float | None = None
    deleted: int | None = None
    newest_ms: int | None = None
    paused: bool = False
    unknown: int | None = None


@dataclass(frozen=True)
class Look:
    """A table that was not looked at yet: ``take`` gives its standings, with those of what belongs to it (a history, a
    target), and raises what is wrong with it.
    """

    layer: str
    table: str
    take: Callable[[], list[Standing]]


@dataclass(frozen=True)
class Tally:
    """What the rows of a table come to: how many users see and how many they do not, the greatest ``_seq`` (''
    where there is none), the time of the newest change, epoch milliseconds UTC, and how many of those that users see
    lack a value which nobody knows.
    """

    rows: int
    hidden: int = 0
    seq: str = ""
    newest_ms: int | None = None
    unknown: int = 0

    def with_(self, other: Tally) -> Tally:
        """Of these rows and others."""
        newest = max((ms for ms in (self.newest_ms, other.newest_ms) if ms is not None), default=None)
        rows, hidden, unknown = self.rows + other.rows, self.hidden + other.hidden, self.unknown + other.unknown
        return Tally(rows, hidden, max(self.seq, other.seq), newest, unknown)


class Survey(Protocol):
    """One look at a lake and at what lies before and behind it. Raises TableMissing for rows of a table that is not
    there; what else goes wrong is the reader's own.
    """

    @property
    def lake(self) -> Lake:
        """Where tables are."""

    @property
    def facts(self) -> Facts:
        """The lake's control rows."""

    @property
    def models(self) -> Sequence[Model]:
        """What the configuration has of gold."""

    @property
    def sinks(self) -> Mapping[str, Sink]:
        """What serves it."""

    def folders(self, folder: str) -> Sequence[str]:
        """Names of the folders below ``folder``."""

    def tables(self, folder: str) -> Sequence[str]:
        """Names of the folders below ``folder`` that hold a table, sorted."""

    def version(self, table: Table) -> int | None:
        """The newest version, None if the table is missing."""

    def identity(self, table: Table) -> str | None:
        """An id that changes when the table is dropped and made again; None if the table is missing."""

    def progress(self, table: Table, application: str) -> Progress | None:
        """What the table's own commits record about this input."""

    def records(self, table: Table) -> Tally:
        """The rows of bronze; newest by Kafka's clock."""

    def rows(self, table: Table) -> Tally:
        """The rows of silver: those that are not deleted are shown."""

    def intervals(self, table: Table) -> Tally:
        """The rows of a history: intervals are shown."""

    def model(self, table: Table) -> Tally:
        """The rows of gold; newest by ``updated_at``, if that is a time."""

    def ahead(self, source: str) -> int | None:
        """Records, or objects, of a source that bronze lacks; None when nobody can say."""

    def waiting(self, source: str) -> Waiting | None:
        """What silver does not show yet, since transactions are not whole."""

    def added(self, source: str, after: Mapping[str, int], upto: int, waits: Waiting | None) -> int | None:
        """Records of the topics of ``after`` that came to bronze after those versions and up to ``upto``, without those
        that wait; None when that history is gone.
        """


@dataclass(frozen=True)
class _Source:
    """A source whose tables are looked at: ``upto`` is the identity and the newest version of its bronze, which is
    ``older`` than what a table has read.
    """

    name: str
    upto: Callable[[], tuple[str, int | None]]
    waits: Callable[[], Waiting | None]
    older: list[str] = field(default_factory=list)


def standings(of: Survey) -> list[Standing]:
    """Every table of the lake and every target, in the order of the layers."""
    return [standing for look in looks(of) for standing in look.take()]


def looks(of: Survey) -> Iterator[Look]:
    """What :func:`standings` looks at, table by table, for those who go on where one is broken."""
    taken = list(map(names.decode, of.tables(of.lake.bronze_root())))
    for source in sorted({*taken, *map(names.decode, of.folders(of.lake.silver_root()))}):
        if source in taken:
            yield Look("bronze", source, partial(_bronze, of, source))
            yield Look("gap", source, partial(_gaps, of, source))
        at = _Source(source, cache(partial(_upto, of, source)), cache(partial(of.waiting, source)))
        for name in map(names.decode_table, of.tables(of.lake.silver_root(source))):
            yield Look("silver", f"{source}/{name}", partial(_silver, of, at, name))
            yield Look("silver", f"{source}/{name}", partial(_not_older, of, at, name))
        yield Look("waiting", source, partial(_waiting, at))
    silent = set[str]()
    for model in of.models:
        yield Look("gold", model.name, partial(_gold, of, model, silent))
    configured = {model.name for model in of.models}
    for name in map(names.decode, of.tables(of.lake.gold_root())):
        if name not in configured:
            yield Look("gold", name, partial(_model, of, of.lake.gold(name)))


def _bronze(of: Survey, source: str) -> list[Standing]:
    table = of.lake.bronze(source)
    lag, found = of.ahead(source), of.records(table)
    seconds = None if lag is None else 0.0
    if lag:
        seconds = None if found.newest_ms is None else _age(found.newest_ms)
    return [
        Standing("bronze", source, found.rows, f"version {of.version(table)}", lag, seconds, newest_ms=found.newest_ms)
    ]


def _not_older(of: Survey, at: _Source, name: str) -> list[Standing]:
    """Nothing; raises BronzeReplaced, once for a source, where a table has read versions that bronze does not have
    (F-C6).
    """
    identity, upto = at.upto()
    progress = of.progress(of.lake.silver(at.name, name), identity)
    if progress is not None and upto is not None and progress.version > upto and not at.older:
        at.older.append(name)
        raise BronzeReplaced.under_silver(at.name, progress.version, upto)
    return []


def _gaps(of: Survey, source: str) -> list[Standing]:
    """Of a source what is not in bronze, and was not made up for by a new snapshot."""
    return [_gap(each) for each in gaps.still_open(of.facts, of.lake, source)]


def _gap(gap: Gap) -> Standing:
    seconds = max(0.0, _age(int(datetime.fromisoformat(gap.since).timestamp() * 1000)))
    told = f"offsets {gap.first} to {gap.last} were passed over at {gap.since} by {gap.by}"
    return Standing("gap", f"{gap.topic}/{gap.partition}", gap.last - gap.first + 1, told, lag_seconds=seconds)


def _upto(of: Survey, source: str) -> tuple[str, int | None]:
    """The identity and the newest version of a source's bronze."""
    bronze = of.lake.bronze(source)
    return of.identity(bronze) or "", of.version(bronze)


def _waiting(at: _Source) -> list[Standing]:
    """A source of which something waits."""
    waits = at.waits()
    if waits is None:
        return []
    age = None if waits.since_ms is None else max(0.0, _age(waits.since_ms))
    return [Standing("waiting", at.name, sum(waits.records.values()), waits.reason, waits.transactions, age)]


def _silver(of: Survey, at: _Source, name: str) -> list[Standing]:
    table, past = of.lake.silver(at.name, name), of.lake.history(at.name, name)
    found = [_standing("silver", table, of.rows(table), _behind(of, at, name, table))]
    if of.version(past) is not None:
        found.append(_standing("history", past, of.intervals(past), _behind(of, at, name, past)))
    is_paused = name in pauses.load(of.facts, of.lake, at.name)
    return [replace(each, paused=is_paused) for each in found]


def _standing(layer: str, table: Table, tally: Tally, behind: int | None) -> Standing:
    """One table of silver, or a history: its rows that users see, and how far it is behind bronze."""
    late = 0.0 if tally.newest_ms is None else _age(tally.newest_ms)
    seconds = None if behind is None else late if behind else 0.0
    found = Standing(layer, table.name, tally.rows, tally.seq, behind, seconds, newest_ms=tally.newest_ms)
    return replace(found, deleted=tally.hidden, unknown=tally.unknown) if layer == "silver" else found


def _behind(of: Survey, at: _Source, name: str, table: Table) -> int | None:
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


def _gold(of: Survey, model: Model, silent: set[str]) -> list[Standing]:
    """A model, and its target, which is added to those that are ``silent`` where it does not answer."""
    table = of.lake.gold(model.name, model.key)
    try:
        found = _model(of, table, _unread_commits(of, model))
    except TableMissing:
        return [Standing("gold", model.name, None, "not built yet")]
    if model.target is not None:
        found.append(_published(of, model, model.target, of.version(table), silent))
    return found


def _model(of: Survey, table: Table, behind: int | None = None) -> list[Standing]:
    found = of.model(table)
    position = f"version {of.version(table)}"
    return [Standing("gold", table.name, found.rows, position, behind, newest_ms=found.newest_ms)]


def _unread_commits(of: Survey, model: Model) -> int | None:
    """Commits of a model's inputs that its newest refresh did not read."""
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
        if newest is None or identity != of.identity(table):
            return None
        unread += newest - version
    return unread


def _published(of: Survey, model: Model, target: Target, version: int | None, silent: set[str]) -> Standing:
    where = f"{target.schema}.{target.table}"
    away = Standing("publish", where, None, "out of reach")
    if target.connection in silent:
        return away
    try:
        ledger = of.sinks[target.connection].progress(model)
    except Unreachable:
        silent.add(target.connection)
        return away
    except LoginRefused:
        return Standing("publish", where, None, "lets nobody in")
    if ledger is None:
        return Standing("publish", where, None, "never published")
    versions_behind = None if version is None else version - ledger.version
    return Standing("publish", where, None, f"gold version {ledger.version}", versions_behind)


def _age(milliseconds: int) -> float:
    """Seconds since then."""
    return time.time() - milliseconds / 1000
