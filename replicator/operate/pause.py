"""``replicator tables``: the silver tables that are paused, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from replicator import names
from replicator.errors import ConfigError
from replicator.formats.fencing import FencedControl
from replicator.operate.progress import source_tables
from replicator.operate.progress.survey import Survey
from replicator.protocols import Fence
from replicator.spec import SourceSpec
from replicator.spelling import suggest_table
from replicator.stages.refinement import Refinement
from replicator.stages.tick import pauses

SilverTable = tuple[Refinement, str]
"""A source's silver, and the name of one of its tables."""


@dataclass(frozen=True)
class TableState:
    """A table and the time since which it is paused (ISO 8601, UTC); None if it is not paused."""

    table: str
    paused: str | None

    @property
    def name(self) -> str:
        """The table's name without its source."""
        return self.table.split("/", 1)[1]


def list_tables(spark: SparkSession, sources: Sequence[Refinement]) -> list[TableState]:
    """Return every table that silver has, that some topic has carried, that is declared, or that is paused, by source
    and sorted by name.
    """
    return [each for at in sources for each in list_source_tables(source_tables.spark_survey(spark, at), at.source)]


def list_source_tables(survey: Survey, source: SourceSpec) -> list[TableState]:
    """Return the tables of one source, by any ``Survey``."""
    since = pauses.load(survey.facts, survey.lake, source.name)
    declared = (each.table for each in source.tables)
    known = {*source_tables.list_known(survey, source), *declared, *since}
    return [TableState(f"{source.name}/{table}", since.get(table)) for table in sorted(known)]


def find_tables(spark: SparkSession, sources: Sequence[Refinement], requested: Sequence[str]) -> list[SilverTable]:
    """Return the tables that ``[<source>/]<database or schema>.<table>``, or the last parts, name. Raises ConfigError
    for a name that is unknown or ambiguous.
    """
    known = {each.table: (at, each.name) for at in sources for each in list_tables(spark, [at])}
    return [known[_resolve(name, list(known))] for name in requested]


def with_fence(places: Sequence[SilverTable], fence: Fence) -> list[SilverTable]:
    """Return the same tables with a control store that refuses writes once the lease of operator commands is lost
    (``lock.operator_lock``).
    """
    return [(replace(at, control=FencedControl(at.control, fence)), table) for at, table in places]


def pause(places: Sequence[SilverTable], now: str) -> list[TableState]:
    """Pause these tables from the next tick of silver on; a table that is paused already keeps its time."""
    return [_set_paused(at, table, now) for at, table in places]


def resume(places: Sequence[SilverTable]) -> list[TableState]:
    """Resume these tables with the next tick of silver, from where they stopped."""
    return [_set_paused(at, table, None) for at, table in places]


def _set_paused(at: Refinement, table: str, since: str | None) -> TableState:
    others = pauses.load(at.control, at.lake, at.source.name)
    before = others.pop(table, None)
    since = None if since is None else before or since
    if since != before:
        pauses.save(at.control, at.lake, at.source.name, others if since is None else {**others, table: since})
    return TableState(f"{at.source.name}/{table}", since)


def _resolve(name: str, known: Sequence[str]) -> str:
    found = names.match_tables(name, known)
    if len(found) > 1:
        raise ConfigError(f"{name!r} matches several tables", fix=f"Choose one: {', '.join(sorted(found))}.")
    if not found:
        raise ConfigError(f"table {name!r} does not exist{suggest_table(name, known)}")
    return found[0]
