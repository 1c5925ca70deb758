"""Maintenance of every table of a lake: compact small files, and delete files that no retained version needs."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from replicator import names
from replicator.errors import NO_LAKE, ConfigError, LeaseLost, ReplicatorError
from replicator.jvm.failures import FAILURES
from replicator.lake import HISTORY, Lake
from replicator.protocols import TableFormat
from replicator.spec import Maintained, Table
from replicator.spelling import did_you_mean_table
from replicator.stages import engine_errors

_LAYERS = ("bronze", "silver", "gold")


@dataclass(frozen=True)
class MaintenanceResult:
    """The outcome for one table: its files before and after, or the error that left it unchanged. ``seconds`` is wall
    time.
    """

    layer: str
    table: str
    seconds: float
    result: Maintained | None = None
    error: ReplicatorError | None = None


@dataclass(frozen=True)
class LakeTables:
    """A lake and the format of its tables."""

    lake: Lake
    tables_of: TableFormat

    def tables(self, spark: SparkSession, stages: Collection[str] = _LAYERS) -> list[tuple[str, Table]]:
        """Return every table of the stages with its layer, in the order of the layers: tables of all layers but bronze
        and gold belong to silver. Those of other stages are not opened; a stage's role may have no right to.
        """
        found: list[tuple[str, Table]] = []
        sources = self._names(spark, self.lake.bronze_root()) if {"bronze", "silver"} & set(stages) else []
        if "bronze" in stages:
            found += [("bronze", self.lake.bronze(source)) for source in sources]
        if "silver" in stages:
            found += [each for source in sources for each in self._of_source(spark, source)]
        if "gold" in stages:
            found += [("gold", self.lake.gold(name)) for name in self._names(spark, self.lake.gold_root())]
        return found

    def shadows(self, spark: SparkSession) -> list[Table]:
        """Return the shadow tables that unfinished rebuilds have left."""
        roots = self.lake.shadow_roots()
        return [Table(name, f"{root}/{name}") for root in roots for name in self._folders(spark, root)]

    def _of_source(self, spark: SparkSession, source: str) -> Iterator[tuple[str, Table]]:
        lake = self.lake
        for folder in self._folders(spark, lake.silver_root(source)):
            yield "silver", lake.silver(source, names.decode_table(folder))
        for ending, root, table_of in lake.companions():
            for folder in self._folders(spark, f"{root}/{names.encode(source)}"):
                yield "history" if ending == HISTORY else "twin", table_of(source, names.decode_table(folder))
        for table in (lake.dead_letters(source), lake.dropped_letters(source)):
            if self.tables_of.version(spark, table) is not None:
                yield "dead letters", table

    def _folders(self, spark: SparkSession, folder: str) -> tuple[str, ...]:
        return self.tables_of.tables(spark, folder)

    def _names(self, spark: SparkSession, folder: str) -> list[str]:
        return [names.decode(each) for each in self._folders(spark, folder)]


def select_tables(tables: Sequence[tuple[str, Table]], name: str | None) -> list[tuple[str, Table]]:
    """Return all tables, or those with this name or last part of a name. Raises ConfigError for an unknown name."""
    found = [each for each in tables if name is None or name in _aliases(each[1])]
    if not found and name is not None:
        known = sorted(table.name for _, table in tables)
        listed = ", ".join(known) or "no tables in this lake yet"
        raise ConfigError(
            f"table {name!r} does not exist{did_you_mean_table(name, known)}", fix=f"Available: {listed}."
        )
    return found


def maintain(
    spark: SparkSession, tables_of: TableFormat, tables: Sequence[tuple[str, Table]], keep_seconds: int
) -> Iterator[MaintenanceResult]:
    """Maintain one table after the other and yield one result each; a failure is in its table's result, and the others
    continue. ``keep_seconds`` is rounded up to whole hours, the unit of the formats. Raises NO_LAKE, LeaseLost.
    """
    keep_hours = math.ceil(keep_seconds / 3600)
    for layer, table in tables:
        started = time.monotonic()
        try:
            done, error = tables_of.maintain(spark, table, keep_hours), None
        except (*NO_LAKE, LeaseLost):
            raise
        except ReplicatorError as stopped:
            done, error = None, stopped
        except FAILURES as failed:
            done, error = None, engine_errors.to_table_error(failed, table.name)
        yield MaintenanceResult(layer, table.name, time.monotonic() - started, done, error)


def drop_shadows(spark: SparkSession, keeper: LakeTables) -> list[str]:
    """Delete the :meth:`LakeTables.shadows` and return their names; the next rebuild of such a table starts from the
    beginning. No rebuild may be active.
    """
    found = keeper.shadows(spark)
    for table in found:
        keeper.tables_of.drop(spark, table)
    return sorted({table.name for table in found})


def _aliases(table: Table) -> set[str]:
    plain = table.name.partition(" (")[0]
    return {table.name, plain, plain.partition("/")[2], plain.rpartition(".")[2]}
