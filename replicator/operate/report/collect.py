"""Read everything that the page shows, table by table: a broken table is listed on the page, the others are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from replicator import names
from replicator.operate import dead_letters, status
from replicator.operate.progress.attempts import Attempts, UnreadableTable
from replicator.operate.report import health, sales, star
from replicator.operate.report.health import Health
from replicator.operate.report.sales import Sales
from replicator.operate.report.star import Star
from replicator.operate.runs import Runs
from replicator.operate.status import StatusInputs
from replicator.stages.refinement import Refinement

LAST_RUNS = 10


@dataclass(frozen=True)
class Report:
    """The contents of the page. ``at`` is the time at which they were read, UTC; a part is None where the lake has no
    tables for it.
    """

    lake: str
    at: datetime
    sales: Sales | None
    star: Star | None
    health: Health
    failures: tuple[UnreadableTable, ...] = ()


@dataclass(frozen=True)
class ReportInputs:
    """The inputs of the report: those of ``status``, silver of every source, and the runs."""

    status_inputs: StatusInputs
    sources: Sequence[Refinement]
    runs: Runs


def report(spark: SparkSession, at: ReportInputs, now: datetime) -> Report:
    """Read the whole report. Raises Unreachable, and what makes the lake itself unreadable."""
    attempts = Attempts()
    models = _models(spark, at.status_inputs, attempts)
    sales_figures, star_figures = _sales(models, attempts), _star(models, attempts)
    health_figures = Health(
        tuple(status.try_statuses(spark, at.status_inputs, attempts)),
        health.timeline(_batches(spark, at.status_inputs, attempts)),
        tuple(_letters(spark, at.sources, attempts)),
        tuple(at.runs.last(LAST_RUNS)),
    )
    return Report(
        at.status_inputs.lake.root, now, sales_figures, star_figures, health_figures, tuple(attempts.failures.values())
    )


def _models(spark: SparkSession, at: StatusInputs, attempts: Attempts) -> dict[str, DataFrame]:
    """Return every gold table of the lake that can be opened, by its model's name."""
    found = {}
    for name in map(names.decode, at.format.tables(spark, at.lake.gold_root())):
        rows = attempts.try_(f"gold {name}", partial(at.format.read, spark, at.lake.gold(name)))
        if rows is not None:
            found[name] = rows
    return found


def _sales(models: Mapping[str, DataFrame], attempts: Attempts) -> Sales | None:
    """Return the sales of the first model, by name, that has order lines."""
    name = next((name for name in sorted(models) if set(models[name].columns) >= sales.COLUMNS), None)
    return None if name is None else attempts.try_(f"gold {name}", partial(sales.build, name, models[name]))


def _star(models: Mapping[str, DataFrame], attempts: Attempts) -> Star | None:
    if not all(name in models and columns <= set(models[name].columns) for name, columns in star.COLUMNS.items()):
        return None
    return attempts.try_("gold fact_orders", partial(star.build, *[models[name] for name in star.COLUMNS]))


def _batches(spark: SparkSession, at: StatusInputs, attempts: Attempts) -> list[health.Batch]:
    found: list[health.Batch] = []
    for source in map(names.decode, at.format.tables(spark, at.lake.bronze_root())):
        rows = attempts.try_(f"bronze {source}", partial(at.format.read, spark, at.lake.bronze(source)))
        if rows is not None:
            found += attempts.try_(f"bronze {source}", partial(health.load_batches, source, rows)) or ()
    return found


def _letters(spark: SparkSession, sources: Sequence[Refinement], attempts: Attempts) -> list[dead_letters.Count]:
    found: list[dead_letters.Count] = []
    for source in sources:
        count = partial(dead_letters.counts, spark, source, dead_letters.LetterFilter())
        found += attempts.try_(f"dead letters {source.source.name}", count) or ()
    return sorted(found, key=lambda count: -count.letters)
