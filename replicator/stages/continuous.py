"""A continuous run: bronze streams, and beside them a loop that takes new data through the later stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from math import inf
from threading import Event
from typing import Any

from pyspark.sql import SparkSession

from replicator.errors import FIXED_ELSEWHERE, NO_LAKE, SHUT, ReplicatorError, Unreachable
from replicator.jvm import causes
from replicator.jvm.failures import FAILURES
from replicator.stages import canonical, engine_errors
from replicator.stages.ingest.landing import ObjectIngestion
from replicator.stages.ingest.pace import Pace
from replicator.stages.ingest.streams import run_streams
from replicator.stages.parallel import BackgroundTask
from replicator.stages.pipeline import Pipeline, ingest_objects, publish_all, run_gold, run_serving, run_silver
from replicator.stages.report_throttle import report_waiting_once, throttle_unreachable
from replicator.stages.run_report import CANONICAL, Report, ReportLine
from replicator.stages.tick import transaction_cut

_PAUSE_SECONDS = 0.2

_AGAIN_SECONDS = 60
"""Retry interval in seconds for what is fixed outside this process, which is not notified of it."""

_BACK, _GOES_ON = "reachable again", "continues"


def run_continuously(
    spark: SparkSession,
    pipeline: Pipeline,
    stages: Collection[str],
    report: Report,
    stop: Event,
    between: Callable[[], None] = lambda: None,
) -> None:
    """Run until ``stop`` is set: stream bronze, pass each new version of what the stages read through silver, gold and
    publish, poll for new objects, and call ``between`` after each iteration.

    A target that is unreachable is reported, retried with the next pass, and reported again when it is back. A source
    that must stop is reported the same way while another source has records, but without a retry; otherwise its error
    ends the run. So does the error of a failed bronze stream, after the others were stopped.
    """
    report = report_waiting_once(throttle_unreachable(report))
    pollers = [_ObjectPoller(intake) for intake in pipeline.intakes if "bronze" in stages]
    ingestions = pipeline.ingestions if "bronze" in stages else ()
    pace = Pace(is_followed="silver" in stages)
    with (
        run_streams(spark, ingestions, pace, report, others=bool(pollers)) as streams,
        BackgroundTask[list[ReportLine]]("publish") as aside,
    ):
        passes = _StageLoop(spark, pipeline, stages, report, aside, pace, stop)
        with passes.finished():
            while not stop.is_set():
                streams.poll()
                for poller in pollers:
                    poller.poll_if_due(spark, report)
                passes.poll()
                between()
                stop.wait(_PAUSE_SECONDS)


@dataclass
class _ObjectPoller:
    """When to poll for objects again, and which messages were already reported (``reported``)."""

    intake: ObjectIngestion
    due: float = 0.0
    reported: frozenset[str] = frozenset()

    def poll_if_due(self, spark: SparkSession, report: Report) -> None:
        """Ingest new objects if it is time to. Messages that were reported in the last poll are not repeated."""
        if time.monotonic() < self.due:
            return
        try:
            line = ingest_objects(spark, self.intake, once=False)
        except NO_LAKE as error:
            line = ReportLine("bronze", self.intake.source, error=error)
        self.due = time.monotonic() + self.intake.every_seconds
        messages = frozenset(line.warnings) | ({str(line.error)} if line.error is not None else set())
        if line.rows_in or messages != self.reported:
            report(replace(line, warnings=tuple(warning for warning in line.warnings if warning not in self.reported)))
        self.reported = messages


def _versions(spark: SparkSession, pipeline: Pipeline, stages: Collection[str]) -> Iterator[Any]:
    """Yield values that change as soon as there is something to do: versions of what the stages read and do not write
    themselves (with silver, those of bronze, and the control row of snapshots that tell which rows are missing); and,
    without silver, the state of silver's transactions, which can hold back gold.
    """
    at, models = pipeline.warehouse, pipeline.models
    if "silver" in stages:
        for each in pipeline.refinements:
            yield each.bronze.version(spark, each.lake.bronze(each.source.name))
            yield each.control.get(each.lake.snapshots(each.source.name))
    elif "gold" in stages:
        tables = {given.partition("/") for model in models for given in model.inputs.values() if "/" in given}
        for source, _, name in sorted(tables):
            yield at.silver.version(spark, at.lake.source_table(source, name))
        for source in sorted({source for source, _, _ in tables}):
            yield transaction_cut.load(at.control, at.lake, source)
    if "publish" in stages and "gold" not in stages:
        for model in models:
            yield at.gold.version(spark, at.lake.gold(model.name))
    if CANONICAL in stages and "silver" not in stages and pipeline.offer is not None:
        for feed in canonical.list_lags(spark, pipeline.offer):
            yield feed.newest


@dataclass
class _StageLoop:
    """The later stages of a continuous run. ``read`` are the versions that were processed; ``unreachable`` maps what
    was unreachable, or is fixed elsewhere, by stage and name, to the message for its recovery.

    With silver, publish runs in the background of the next pass's silver: it reads a version of gold, and gold gets no
    newer one until publish is done, except by maintenance, which keeps that version.
    """

    spark: SparkSession
    pipeline: Pipeline
    stages: Collection[str]
    report: Report
    background: BackgroundTask[list[ReportLine]]
    pace: Pace
    stop: Event
    read: list[Any] | None = None
    unreachable: dict[tuple[str, str], str] = field(default_factory=dict)
    retry_at: float = inf

    def poll(self) -> None:
        """Run a pass if something is new or must be retried."""
        self._published(wait=False)
        newest = self._newest()
        if newest is not None and (newest != self.read or time.monotonic() > self.retry_at):
            self.read, self.retry_at = newest, inf  # publish may take either back
            if not self._pass():
                self.read = None

    def _newest(self) -> list[Any] | None:
        """Return the current versions; None if the lake is unreachable, which is reported as in a pass and retried."""
        try:
            return list(_versions(self.spark, self.pipeline, self.stages))
        except Unreachable as error:
            silent = error
        except FAILURES as error:
            found = engine_errors.to_lake_error(error, "the lake")
            if found is None:
                raise
            if not isinstance(found, Unreachable):
                raise found from error
            silent = found
        self.read = None
        line = ReportLine("run", "", error=silent)
        self.report(line)
        self._record_outcome([line], ("run",))
        return None

    @contextmanager
    def finished(self) -> Iterator[None]:
        """Wait for the background work at the end of the block and report it; also if an error ends the block, which
        takes precedence over an error of that work.
        """
        try:
            yield
        except BaseException:
            try:
                self._published(wait=True)
            except Exception as also:  # noqa: BLE001 - reported here, because the other one is raised
                error = also if isinstance(also, ReplicatorError) else ReplicatorError(causes.summarize(also))
                self.report(ReportLine("publish", "", error=error))
            raise
        self._published(wait=True)

    def _pass(self) -> bool:
        """Run one pass. Return False if something must be retried: it was unreachable, or being written."""
        lines: list[ReportLine] = []

        def told(line: ReportLine) -> None:
            lines.append(line)
            self.report(line)

        spark, pipeline = self.spark, self.pipeline
        has_gold = "gold" in self.stages and bool(pipeline.models)
        is_beside = "silver" in self.stages and "publish" in self.stages
        stages = [stage for stage in self.stages if not (is_beside and stage == "publish")]
        try:
            with self.pace.held():
                with nullcontext() if has_gold else self.pace.ending():
                    run_silver(spark, pipeline, stages, told, self.stop.is_set)
                self._published(wait=True)
                with self.pace.ending() if has_gold else nullcontext():
                    run_gold(spark, pipeline, stages, told)
            if is_beside:
                self.background.begin(lambda: list(publish_all(spark, pipeline)))
            run_serving(spark, pipeline, stages, told)
        except Unreachable as error:
            told(ReportLine("run", "", error=error))
        return self._record_outcome(lines, (*stages, "run"))

    def _published(self, *, wait: bool) -> None:
        """Report what publish did in the background, once it is done."""
        lines = self.background.take_result(wait=wait)
        if lines is not None:
            for line in lines:
                self.report(line)
            if not self._record_outcome(lines, ("publish",)):
                self.read = None

    def _record_outcome(self, lines: Sequence[ReportLine], stages: Collection[str]) -> bool:
        """Record what these stages report as unreachable or back. Return False as :meth:`_pass` does."""
        if any(map(_is_fixed_elsewhere, lines)):
            self.retry_at = time.monotonic() + _AGAIN_SECONDS
        unreachable = {(line.stage, line.table): _BACK for line in lines if isinstance(line.error, SHUT)}
        if ("run", "") not in unreachable:
            silent = {stage for stage, _ in unreachable}
            known = {place for place, how in self.unreachable.items() if how == _BACK or place[0] not in silent}
            reported = {(line.stage, line.table) for line in lines}
            self._report_recovered({place for place in known if place[0] in stages}, reported)
        self.unreachable |= unreachable
        self.unreachable |= {(line.stage, line.table): _GOES_ON for line in lines if _is_fixed_elsewhere(line)}
        if unreachable:
            time.sleep(1)
        return not unreachable and not any(line.error is not None and line.error.retry for line in lines)

    def _report_recovered(self, known: Collection[tuple[str, str]], reported: Collection[tuple[str, str]]) -> None:
        """Report the recovery of what had stopped and is not in the current report; of a stopped source, its tables do
        not count.
        """
        for stage, name in sorted(known):
            if (stage, name) not in reported and (stage, name.partition("/")[0]) in reported:
                continue
            how = self.unreachable.pop((stage, name))
            if (stage, name) not in reported:
                self.report(ReportLine(stage, name, how=how))


def _is_fixed_elsewhere(line: ReportLine) -> bool:
    return isinstance(line.error, FIXED_ELSEWHERE)
