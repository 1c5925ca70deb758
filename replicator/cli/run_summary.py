"""The report of a run: each line as it is produced, and the totals at the end."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from replicator.cli import console
from replicator.cli.best_effort import write_best_effort

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from replicator.errors import ReplicatorError
    from replicator.settings import Settings
    from replicator.stages.run_report import Report, ReportLine

_RUN_LOG_LOST = "`replicator runs` will not show all of this run"
_COLUMNS = ("stage", "table", "rows in", "applied", "superseded", "dead-lettered", "ignored", "seconds", "how")
_KEYS = tuple(name.replace(" ", "_").replace("-", "_") for name in _COLUMNS)


class RunSummary:
    """The report lines of a run. A run with ``--once`` keeps all of them and prints them at its end. A continuous one
    may run for weeks: with JSON it prints each line as it is produced, else totals at its end; it keeps one line per
    stage and table.
    """

    def __init__(self, *, once: bool, as_json: bool) -> None:
        self._once, self._as_json = once, as_json
        self._lines: list[ReportLine] = []
        self._sums: dict[tuple[str, str], ReportLine] = {}

    def add(self, line: ReportLine) -> None:
        """Add a line."""
        if self._once:
            self._lines.append(line)
            return
        place = (line.stage, line.table)
        self._sums[place] = _accumulate(self._sums.get(place), line)
        if self._as_json:
            console.print_text(json.dumps(_object(line), ensure_ascii=False))
            sys.stdout.flush()

    def errors(self) -> list[ReplicatorError]:
        """Return the errors that stopped a table; of a continuous run only those in the latest line of their table."""
        return [line.error for line in self._kept() if line.error is not None]

    def show(self) -> None:
        """Print the summary on stdout at the end of the run; on stderr, the command that lists its dead letters."""
        if self._as_json and self._once:
            console.print_json([_object(line) for line in self._lines])
        elif not self._as_json:
            _show(self._kept())
        dead = sum(line.dead_lettered for line in self._kept())
        if dead:
            what = "1 record is a dead letter" if dead == 1 else f"{dead:,} records are dead letters"
            console.narrate(f"{what}: `replicator dead-letters list`", style="yellow")

    def _kept(self) -> list[ReportLine]:
        return self._lines if self._once else list(self._sums.values())


@contextmanager
def reporting(spark: SparkSession, settings: Settings, command: str, summary: RunSummary) -> Iterator[Report]:
    """Return a callback that takes each report line: it is counted, printed on stderr and written to the run log of the
    lake. A failure to write the log (a full disk, an unreachable store) is reported and does not stop the run.
    """
    from replicator import assemble

    log = assemble.run_log(spark, settings, command)

    def report(line: ReportLine) -> None:
        summary.add(line)
        for warning in line.warnings:
            console.narrate(f"{line.table}: {warning}", style="yellow")
        if line.error is not None:
            console.narrate(f"{line.stage} {line.table} stopped: {line.error}", style="red")
        elif (text := describe(line)) is not None:
            console.narrate(f"{line.stage:8} {line.table}: {text}", style="dim")
        write_best_effort(lambda: log.add(line), _RUN_LOG_LOST)

    try:
        yield report
    finally:
        write_best_effort(log.close, _RUN_LOG_LOST)


def describe(line: ReportLine) -> str | None:
    """Describe what was done with the rows of a line without an error. Models and targets may also delete rows that are
    not among those read, hence more applied than rows in. None where the warnings of the line say everything.
    """
    how = f" ({line.how})" if line.how else ""
    if line.applied > line.rows_in:
        return f"{line.rows_in} rows in, {line.applied} written or deleted{how}"
    if line.rows_in:
        dead = f", dead letters: {line.dead_lettered}" if line.dead_lettered else ""
        return f"{line.applied} of {line.rows_in} applied{dead}{how}"
    return None if line.warnings and not how else f"nothing new{how}"


def _accumulate(known: ReportLine | None, line: ReportLine) -> ReportLine:
    if known is None:
        return replace(line, warnings=())
    return replace(
        line,
        rows_in=known.rows_in + line.rows_in,
        applied=known.applied + line.applied,
        superseded=known.superseded + line.superseded,
        dead_lettered=known.dead_lettered + line.dead_lettered,
        ignored=Counter(known.ignored) + Counter(line.ignored),
        seconds=known.seconds + line.seconds,
        warnings=(),
    )


def _show(lines: Iterable[ReportLine]) -> None:
    rows = [[str(cell) for cell in _cells(line)] for line in lines]
    if rows:
        console.print_table(_COLUMNS, rows)
    else:
        console.narrate("Nothing new.")


def _object(line: ReportLine) -> dict[str, object]:
    error = None if line.error is None else str(line.error)
    return dict(zip((*_KEYS, "error"), (*_cells(line), error), strict=True))


def _cells(line: ReportLine) -> tuple[object, ...]:
    return (
        line.stage,
        line.table,
        line.rows_in,
        line.applied,
        line.superseded,
        line.dead_lettered,
        sum(line.ignored.values()),
        round(line.seconds, 1),
        line.how,
    )
