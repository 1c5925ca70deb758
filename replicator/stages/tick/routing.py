"""Which tables a topic carries, how it is read, and how far its tables have come (architecture 9.4).

A *route* says that a topic has carried a table. Routes are kept in a control row, written before the first commit of a
new table: with them a table's own progress tells how far each of its topics must be read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from replicator import names
from replicator.debezium.envelope import CLOUDEVENT, MONGODB
from replicator.errors import BronzeReplaced, ConfigError
from replicator.lake import Lake
from replicator.protocols import ControlReader, TableFormat
from replicator.spec import SourceSpec, Table
from replicator.transforms import topic_modes
from replicator.transforms.topic_modes import TopicModes

BEGINNING = -1
"""Before the first version of bronze."""

ENVELOPE, REWRITTEN, REWRITTEN_BY_OFFSET, NULL_DELETES = "envelope", "rewritten", "rewritten_by_offset", "null_deletes"
ENVELOPE_BY_OFFSET = "envelope_by_offset"
"""How a topic is read: envelopes, by position or by offset; flattened with deletes as rows, by position or by offset;
flattened with nulls as deletes."""

_NULL_DELETES = ("tombstone", "delete-to-tombstone")
_DELETE_TEXTS = {
    ENVELOPE: "envelopes",
    ENVELOPE_BY_OFFSET: "envelopes",
    NULL_DELETES: "nulls",
    REWRITTEN: "marked rows",
    REWRITTEN_BY_OFFSET: "marked rows",
}
_WITHOUT_POSITIONS = (CLOUDEVENT, MONGODB)


def mode(groups: Sequence[Row], deletes: str | None = None) -> str | None:
    """The mode of one topic from the groups of a survey; None while nothing in it is a row (Q7: once, for all).

    ``deletes`` is how deletes appear in it if it is flattened (F2), None where the records are to tell.
    """
    rows = [group for group in groups if group["rule"] is None and group["reason"] is None]
    if not rows:
        return None
    if any(not group["flat"] for group in rows):
        has_none = not any(group["positioned"] for group in rows)
        return ENVELOPE_BY_OFFSET if has_none and rows[0]["shape"] in _WITHOUT_POSITIONS else ENVELOPE
    null_deletes = not any(group["rewritten"] for group in rows) if deletes is None else deletes in _NULL_DELETES
    if null_deletes:
        return NULL_DELETES
    return REWRITTEN if all(group["positioned"] for group in rows) else REWRITTEN_BY_OFFSET


def declared_deletes(groups: Sequence[Row], source: SourceSpec) -> str | None:
    """How the source's file says that deletes appear in a flattened topic; None if it does not."""
    rows = [group for group in groups if group["rule"] is None and group["reason"] is None and group["flat"]]
    told = {source.declaration(group["table"]).deletes for group in rows} - {None}
    return min(told, key=str) if told else None


def mode_conflict(routes: Routes, topic: str, groups: Sequence[Row], source: SourceSpec) -> ConfigError | None:
    """The error of a topic that has been read in another way than is declared now: rows by offset and rows by position
    have no common order (Q7).
    """
    deletes, before = declared_deletes(groups, source), routes.modes.get(topic)
    is_other = deletes is not None and (before == NULL_DELETES) != (deletes in _NULL_DELETES)
    if not is_other or before not in _DELETE_TEXTS:
        return None
    return ConfigError(
        f"the topic was read with {_DELETE_TEXTS[before]} as deletes until now",
        where=topic,
        mend="Take `deletes` back, or start a new topic prefix: rows of the two have no common order.",
    )


@dataclass(frozen=True)
class Routes:
    """Which tables each topic has carried, the first being its home: where records without a table are counted.

    ``modes`` says how each topic is read, decided once (Q7); ``alone`` how far topics have been read that never
    carried a table (control topics); ``partial`` names tables in which some row may have unknown columns; ``shards``
    says of tables that have taken rows of shards which these were, as declared; ``bronze`` is the id of the table that
    all this is about.
    """

    bronze: str
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)
    alone: Mapping[str, int] = field(default_factory=dict)
    partial: frozenset[str] = frozenset()
    shards: Mapping[str, str] = field(default_factory=dict)

    def topics(self, table: str) -> frozenset[str]:
        """Topics that have carried the table."""
        return frozenset(topic for topic, tables in self.tables.items() if table in tables)

    def home(self, topic: str) -> str | None:
        """The table that answers for the topic's records without a table."""
        tables = self.tables.get(topic, ())
        return tables[0] if tables else None

    def only(self, topic: str) -> str | None:
        """The one table that the topic carries; None if it carries several, or none yet."""
        tables = self.tables.get(topic, ())
        return tables[0] if len(tables) == 1 else None

    def knows(self, topic: str) -> bool:
        """Whether the topic has been read before."""
        return topic in self.tables or topic in self.alone

    def within(self, newest: int) -> Routes:
        """These routes for a bronze that ends at a version: topics without a table that were read behind it, in another
        copy of it, are read again.
        """
        alone = {topic: read if read <= newest else BEGINNING for topic, read in self.alone.items()}
        return replace(self, alone=alone)

    @property
    def by_offset(self) -> list[str]:
        """Topics without positions (Q8)."""
        return self.of_mode(NULL_DELETES, REWRITTEN_BY_OFFSET, ENVELOPE_BY_OFFSET)

    def of_mode(self, *modes: str) -> list[str]:
        """Topics that are read in one of these modes."""
        return [topic for topic, mode in self.modes.items() if mode in modes]

    def learned(
        self,
        pairs: Iterable[tuple[str, str]],
        modes: Mapping[str, str],
        alone: Mapping[str, int],
        partial: Iterable[str],
    ) -> Routes:
        """These routes, new (topic, table) pairs, the modes of topics that had none, how far the others were read, and
        tables that get records with a placeholder.
        """
        tables = dict(self.tables)
        for topic, table in sorted(pairs):
            if table not in tables.get(topic, ()):
                tables[topic] = (*tables.get(topic, ()), table)
        still = {t: v for t, v in {**self.alone, **alone}.items() if t not in tables}
        found = self.partial | frozenset(partial)
        return replace(self, tables=tables, modes={**modes, **self.modes}, alone=still, partial=found)

    def value(self) -> dict[str, Any]:
        """As a control row."""
        tables = {topic: list(found) for topic, found in self.tables.items()}
        return {
            "bronze": self.bronze,
            "tables": tables,
            "modes": dict(self.modes),
            "alone": dict(self.alone),
            "partial": sorted(self.partial),
            "shards": dict(self.shards),
        }


def load_routes(control: ControlReader, path: str, bronze: str) -> Routes:
    """The routes of this bronze; none if they are about another one."""
    row = control.get(path)
    if row is None or row["bronze"] != bronze:
        return Routes(bronze)
    tables = {topic: tuple(found) for topic, found in row["tables"].items()}
    return Routes(bronze, tables, row["modes"], row["alone"], frozenset(row["partial"]), row.get("shards", {}))


def progress_of_tables(
    spark: SparkSession,
    silver: TableFormat,
    lake: Lake,
    source: SourceSpec,
    bronze: str,
    only: Collection[str] | None = None,
    without: Collection[str] = (),
) -> dict[str, int]:
    """Bronze version that each silver table of the source, or each of some, has applied, and its history where it keeps
    one; nobody looks at those ``without``. Raises BronzeReplaced (F-C6).
    """
    if only is None:
        folders = silver.tables(spark, lake.silver_root(source.name))
        tables = [name for name in map(names.decode_table, folders) if name not in without]
    else:
        asked = sorted(set(only).difference(without))
        tables = [name for name in asked if silver.version(spark, lake.silver(source.name, name)) is not None]
    found = {}
    for name in tables:
        found[name] = progress_of(spark, silver, lake.silver(source.name, name), bronze)
        if source.declaration(name).has_history:
            found[name] = min(found[name], progress_of_history(spark, silver, lake.history(source.name, name), bronze))
    return found


def rebuild_input(bronze: str) -> str:
    """The input under which a rebuild commits to a table; how far that one has read bronze is another number."""
    return f"{bronze}/rebuild"


def progress_of_history(spark: SparkSession, silver: TableFormat, history: Table, bronze: str) -> int:
    """Bronze version that a history has applied; the beginning where it is not there, or where a rebuild that made it
    was killed before it said. Raises BronzeReplaced.
    """
    is_new = silver.version(spark, history) is None
    if is_new or (
        silver.progress(spark, history, bronze) is None
        and silver.progress(spark, history, rebuild_input(bronze)) is not None
    ):
        return BEGINNING
    return progress_of(spark, silver, history, bronze)


def progress_of(spark: SparkSession, silver: TableFormat, table: Table, bronze: str) -> int:
    """Bronze version that a table has applied. Raises BronzeReplaced."""
    progress = silver.progress(spark, table, bronze)
    if progress is None:
        raise BronzeReplaced(
            "the table was made from another bronze table",
            where=table.name,
            mend="Put the old bronze back, or build the source's tables from this one: `replicator rebuild --all`.",
        )
    return progress.version


def null_deletes(routes: Routes) -> dict[str, str | None]:
    """Topics in which nulls delete, with the table that each carries (None: several)."""
    return {topic: routes.only(topic) for topic in routes.of_mode(NULL_DELETES)}


def lone_deletes(routes: Routes, source: SourceSpec) -> dict[str, str | None]:
    """Topics in which a tombstone deletes that compaction left alone (B5), with the table that each carries."""
    if not source.has_compacted_topics:
        return {}
    compacted = {
        table for told in routes.tables.values() for table in told if source.declaration(table).compacted_topic
    }
    return {topic: routes.only(topic) for topic, told in routes.tables.items() if compacted.intersection(told)}


def _marked_delete_topics(routes: Routes, source: SourceSpec) -> list[str]:
    """Topics of which only the records have told that a delete is one of them, and no null."""
    topics = routes.of_mode(ENVELOPE, ENVELOPE_BY_OFFSET, REWRITTEN, REWRITTEN_BY_OFFSET)
    return [t for t in topics if all(source.declaration(each).deletes is None for each in routes.tables.get(t, ()))]


def apply_modes(
    records: DataFrame,
    routes: Routes,
    source: SourceSpec,
    *,
    by_time: Sequence[str] = (),
    scattered: Sequence[str] = (),
) -> DataFrame:
    """Records read as their topics' modes say, and as the source's file declares them. Tables ``by_time`` have the
    order of ``source.ts_ms``; topics by offset are ``scattered`` over several partitions.
    """
    enveloped = {*routes.of_mode(ENVELOPE, ENVELOPE_BY_OFFSET), *source.enveloped}
    modes = TopicModes(
        routes.by_offset,
        null_deletes(routes),
        lone_deletes(routes, source),
        sorted(enveloped),
        _marked_delete_topics(routes, source),
        by_time,
        scattered,
    )
    return topic_modes.apply_modes(records, modes)
