"""Whether tables that must be equal are: contents, not counts, at one version of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from replicator import names
from replicator.errors import ReplicatorError, TableMissing, TableStopped
from replicator.operate.history import find_table
from replicator.spec import Table
from replicator.stages import engine, tuning
from replicator.stages.refinement import Refinement
from replicator.transforms import compare
from replicator.transforms.layout import key_of

SHOWN = 5
"""So many keys are named."""


@dataclass(frozen=True)
class Verdict:
    """One comparison of ``table`` with ``against``, the deleted rows of both included.

    ``rows`` are the table's; keys are ``missing`` from the other, ``extra`` there, or their rows ``differing``; a few
    of them are ``named``, with the columns that differ. ``columns`` are not of one type on both sides, or on one only.
    ``behind``: so many commits of the table are still to be taken over, and were not looked at. ``error``: it could not
    be told.
    """

    table: str
    against: str
    rows: int = 0
    missing: int = 0
    extra: int = 0
    differing: int = 0
    behind: int = 0
    columns: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    error: ReplicatorError | None = None

    @property
    def is_equal(self) -> bool:
        """Whether both were read, and hold the same."""
        return self.error is None and not (self.missing or self.extra or self.differing or self.columns)


def chosen(
    spark: SparkSession, sources: Sequence[Refinement], name: str | None, formats: Sequence[str]
) -> list[tuple[Refinement, str, str]]:
    """Every twin that is declared or lies in the lake, or those of the table that is named: where, of which table, in
    which format. Raises ConfigError for a name that no table has.
    """
    wanted = None if name is None else find_table(spark, sources, name)
    found: list[tuple[Refinement, str, str]] = []
    for at in sources:
        twins = {(declared.table, format_) for declared in at.source.tables for format_ in declared.twins}
        for format_ in formats:
            folders = at.silver.tables(spark, at.lake.twins_root(format_, at.source.name))
            twins |= {(names.decode_table(folder), format_) for folder in folders}
        found += [(at, table, format_) for table, format_ in sorted(twins) if wanted in (None, (at, table))]
    return found


def verify(spark: SparkSession, twins: Sequence[tuple[Refinement, str, str]]) -> Iterator[Verdict]:
    """A verdict for each, in turn; one that cannot be told does not keep the others from it."""
    for at, name, format_ in twins:
        told = Verdict(at.lake.silver(at.source.name, name).name, format_)
        try:
            yield _compared(spark, at, name, format_, told)
        except ReplicatorError as error:
            yield replace(told, error=error)
        except engine.FAILURES as error:
            yield replace(told, error=engine.failure(error, told.table))


def _compared(spark: SparkSession, at: Refinement, name: str, format_: str, told: Verdict) -> Verdict:
    table, twin = at.lake.silver(at.source.name, name), at.lake.twin(at.source.name, name, format_)
    spark = tuning.session_for(spark, at.silver.size(spark, table), exact_names=True)
    version, newest = _pinned(spark, at, table, twin)
    one, other = at.silver.read(spark, table, version), at.silver.read(spark, twin)
    with tuning.kept(compare.differences(one, other, key_of(one.schema))) as found:
        counts = {row["verdict"]: row["count"] for row in found.groupBy("verdict").count().collect()}
        named = tuple(_sentence(row.asDict()) for row in found.limit(SHOWN).collect()) if counts else ()
    unlike = compare.unlike(one, other)
    return replace(
        told,
        rows=one.count(),
        missing=counts.get(compare.MISSING, 0),
        extra=counts.get(compare.EXTRA, 0),
        differing=counts.get(compare.DIFFERING, 0),
        behind=newest - version,
        columns=tuple(f"{names.decode(column)}: {a or 'none'}, {b or 'none'}" for column, (a, b) in unlike.items()),
        named=named,
    )


def _pinned(spark: SparkSession, at: Refinement, table: Table, twin: Table) -> tuple[int, int]:
    """The table's version that the twin has taken over, and its newest. Raises TableMissing, TableStopped."""
    identity, newest = at.silver.identity(spark, table), at.silver.version(spark, table)
    if identity is None or newest is None:
        raise TableMissing("the table does not exist", where=table.location)
    if at.silver.version(spark, twin) is None:
        raise TableMissing("the twin does not exist yet", where=twin.location, mend="`replicator run silver` makes it.")
    reached = at.silver.progress(spark, twin, identity)
    if reached is None:
        raise TableStopped(
            "the twin is of another table, which lay here before",
            where=twin.location,
            mend="`replicator run silver` makes it equal again.",
        )
    return reached.version, newest


def _sentence(row: dict[str, object]) -> str:
    verdict, columns = row.pop("verdict"), row.pop("columns")
    key = ", ".join(f"{names.decode(column)}={value}" for column, value in row.items())
    return f"{key}: {', '.join(columns) if isinstance(columns, list) else verdict}"
