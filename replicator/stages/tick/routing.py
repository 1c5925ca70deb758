"""Which tables each topic carries, how it is read, and how far its tables have been applied (architecture 9.4).

A *route* says that a topic has carried a table. Routes are stored in a control row that is written before the first
commit of a new table, so that a table's own progress tells from where each of its topics must be read.
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
"""Topic modes: envelopes, ordered by position or by offset; flattened with deletes as rows, ordered by position or by
offset; flattened with nulls as deletes.
"""

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
    """Return the mode of one topic from the groups of a survey; None while it contains no rows (Q7: decided once, for
    good).

    ``deletes`` is the declared form of deletes if the topic is flattened (F2); None if the records decide.
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
    """Return how the source's file declares that deletes appear in a flattened topic; None if it does not."""
    rows = [group for group in groups if group["rule"] is None and group["reason"] is None and group["flat"]]
    found = {source.declaration(group["table"]).deletes for group in rows} - {None}
    return min(found, key=str) if found else None


def mode_conflict(routes: Routes, topic: str, groups: Sequence[Row], source: SourceSpec) -> ConfigError | None:
    """Return the error of a topic that is now declared differently from how it was read: rows ordered by offset and
    rows ordered by position have no common order (Q7).
    """
    deletes, before = declared_deletes(groups, source), routes.modes.get(topic)
    is_other = deletes is not None and (before == NULL_DELETES) != (deletes in _NULL_DELETES)
    if not is_other or before not in _DELETE_TEXTS:
        return None
    return ConfigError(
        f"the topic was read with {_DELETE_TEXTS[before]} as deletes until now",
        where=topic,
        fix="Revert `deletes`, or use a new topic prefix: rows of the two have no common order.",
    )


@dataclass(frozen=True)
class Routes:
    """The tables that each topic has carried. The first is the topic's home table, to which records without a table are
    counted.

    ``modes`` has the mode of each topic, decided once (Q7); ``alone`` the bronze version up to which topics that never
    carried a table (control topics) were read; ``partial`` the tables in which some row may have unknown columns;
    ``shards`` the declared shards of tables that have taken rows of shards, as they were then; ``bronze`` is the id of
    the bronze table that all this refers to.
    """

    bronze: str
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)
    alone: Mapping[str, int] = field(default_factory=dict)
    partial: frozenset[str] = frozenset()
    shards: Mapping[str, str] = field(default_factory=dict)

    def topics(self, table: str) -> frozenset[str]:
        """Return the topics that have carried the table."""
        return frozenset(topic for topic, tables in self.tables.items() if table in tables)

    def home(self, topic: str) -> str | None:
        """Return the table to which the topic's records without a table are counted."""
        tables = self.tables.get(topic, ())
        return tables[0] if tables else None

    def sole_table(self, topic: str) -> str | None:
        """Return the only table that the topic carries; None if it carries several, or none yet."""
        tables = self.tables.get(topic, ())
        return tables[0] if len(tables) == 1 else None

    def has_read(self, topic: str) -> bool:
        """Return whether the topic has been read before."""
        return topic in self.tables or topic in self.alone

    def up_to(self, newest: int) -> Routes:
        """Return these routes for a bronze that ends at a version. Topics without a table that were read beyond it, in
        another copy of bronze, are read again.
        """
        alone = {topic: read if read <= newest else BEGINNING for topic, read in self.alone.items()}
        return replace(self, alone=alone)

    @property
    def by_offset(self) -> list[str]:
        """Topics without positions (Q8)."""
        return self.topics_of_mode(NULL_DELETES, REWRITTEN_BY_OFFSET, ENVELOPE_BY_OFFSET)

    def topics_of_mode(self, *modes: str) -> list[str]:
        """Return the topics that are read in one of these modes."""
        return [topic for topic, mode in self.modes.items() if mode in modes]

    def with_learned(
        self,
        pairs: Iterable[tuple[str, str]],
        modes: Mapping[str, str],
        alone: Mapping[str, int],
        partial: Iterable[str],
    ) -> Routes:
        """Return these routes extended by new (topic, table) pairs, by the modes of topics that had none, by how far
        topics without a table were read, and by tables that get records with a placeholder.
        """
        tables = dict(self.tables)
        for topic, table in sorted(pairs):
            if table not in tables.get(topic, ()):
                tables[topic] = (*tables.get(topic, ()), table)
        still = {t: v for t, v in {**self.alone, **alone}.items() if t not in tables}
        found = self.partial | frozenset(partial)
        return replace(self, tables=tables, modes={**modes, **self.modes}, alone=still, partial=found)

    def value(self) -> dict[str, Any]:
        """Return the control row."""
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
    """Load the routes of this bronze; empty if the stored ones refer to another one."""
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
    """Return the bronze version that each silver table of the source, or each of ``only`` some, has applied; where a
    table has a history, the lower one of both. Tables in ``without`` are not read. Raises BronzeReplaced (F-C6).
    """
    if only is None:
        folders = silver.tables(spark, lake.silver_root(source.name))
        tables = [name for name in map(names.decode_table, folders) if name not in without]
    else:
        candidates = sorted(set(only).difference(without))
        tables = [name for name in candidates if silver.version(spark, lake.silver(source.name, name)) is not None]
    found = {}
    for name in tables:
        found[name] = progress_of(spark, silver, lake.silver(source.name, name), bronze)
        if source.declaration(name).has_history:
            found[name] = min(found[name], progress_of_history(spark, silver, lake.history(source.name, name), bronze))
    return found


def rebuild_input(bronze: str) -> str:
    """Return the name of the input under which a rebuild commits to a table, separate from its own progress in
    bronze.
    """
    return f"{bronze}/rebuild"


def progress_of_history(spark: SparkSession, silver: TableFormat, history: Table, bronze: str) -> int:
    """Return the bronze version that a history has applied; BEGINNING if it does not exist, or if the rebuild that
    created it was killed before it recorded its progress. Raises BronzeReplaced.
    """
    is_new = silver.version(spark, history) is None
    if is_new or (
        silver.progress(spark, history, bronze) is None
        and silver.progress(spark, history, rebuild_input(bronze)) is not None
    ):
        return BEGINNING
    return progress_of(spark, silver, history, bronze)


def progress_of(spark: SparkSession, silver: TableFormat, table: Table, bronze: str) -> int:
    """Return the bronze version that a table has applied. Raises BronzeReplaced."""
    progress = silver.progress(spark, table, bronze)
    if progress is None:
        raise BronzeReplaced(
            "the table was built from another bronze table",
            where=table.name,
            fix="Restore the old bronze, or rebuild the source's tables from this one: `replicator rebuild --all`.",
        )
    return progress.version


def null_deletes(routes: Routes) -> dict[str, str | None]:
    """Return the topics in which nulls are deletes, with the table that each carries (None: several)."""
    return {topic: routes.sole_table(topic) for topic in routes.topics_of_mode(NULL_DELETES)}


def lone_deletes(routes: Routes, source: SourceSpec) -> dict[str, str | None]:
    """Return the topics in which a tombstone left alone by compaction is a delete (B5), with the table that each
    carries (None: several).
    """
    if not source.has_compacted_topics:
        return {}
    compacted = {
        table for carried in routes.tables.values() for table in carried if source.declaration(table).compacted_topic
    }
    return {
        topic: routes.sole_table(topic) for topic, carried in routes.tables.items() if compacted.intersection(carried)
    }


def _marked_delete_topics(routes: Routes, source: SourceSpec) -> list[str]:
    """Return the topics whose mode was decided by their records alone, with deletes as records and not as nulls."""
    topics = routes.topics_of_mode(ENVELOPE, ENVELOPE_BY_OFFSET, REWRITTEN, REWRITTEN_BY_OFFSET)
    return [t for t in topics if all(source.declaration(each).deletes is None for each in routes.tables.get(t, ()))]


def apply_modes(
    records: DataFrame,
    routes: Routes,
    source: SourceSpec,
    *,
    by_time: Sequence[str] = (),
    scattered: Sequence[str] = (),
) -> DataFrame:
    """Return the records read in their topics' modes and as the source's file declares. Tables in ``by_time`` are
    ordered by ``source.ts_ms``; ``scattered`` are topics ordered by offset that have several partitions.
    """
    enveloped = {*routes.topics_of_mode(ENVELOPE, ENVELOPE_BY_OFFSET), *source.envelope_topics}
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
