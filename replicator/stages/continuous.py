"""A run that goes on: bronze streams beside a loop that takes what is new through the later stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from math import inf
from threading import Event
from typing import Any

from pyspark.sql import SparkSession

from replicator.errors import MENDED_ELSEWHERE, NO_LAKE, SHUT, ReplicatorError, Unreachable
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
"""After so long what is mended elsewhere is tried again though nothing is new, since nobody tells us of it."""

_BACK, _GOES_ON = "within reach again", "goes on again"


def run_continuously(
    spark: SparkSession,
    pipeline: Pipeline,
    stages: Collection[str],
    report: Report,
    stop: Event,
    between: Callable[[], None] = lambda: None,
) -> None:
    """Bronze streams beside a loop that takes each new version of what the stages read through silver, gold and publish
    until ``stop``, looks for new objects, and calls ``between`` after each look.

    A target that is out of reach is reported and tried again with the next pass, and reported when it is back. So is a
    source that must not go on, without another try, while some other has records; else its error ends the run, as that
    of a bronze stream that fails does, after the others were stopped.
    """
    report = report_waiting_once(throttle_unreachable(report))
    looks = [_ObjectPoller(intake) for intake in pipeline.intakes if "bronze" in stages]
    ingestions = pipeline.ingestions if "bronze" in stages else ()
    pace = Pace(is_followed="silver" in stages)
    with (
        run_streams(spark, ingestions, pace, report, others=bool(looks)) as streams,
        BackgroundTask[list[ReportLine]]("publish") as aside,
    ):
        passes = _StageLoop(spark, pipeline, stages, report, aside, pace, stop)
        with passes.finished():
            while not stop.is_set():
                streams.look()
                for look in looks:
                    look.poll_if_due(spark, report)
                passes.look()
                between()
                stop.wait(_PAUSE_SECONDS)


@dataclass
class _ObjectPoller:
    """When a run that goes on looks for objects again, and what it has said of them."""

    intake: ObjectIngestion
    due: float = 0.0
    said: frozenset[str] = frozenset()

    def poll_if_due(self, spark: SparkSession, report: Report) -> None:
        """Take what is new if it is time to; what was said before is not said again while it stays so."""
        if time.monotonic() < self.due:
            return
        try:
            line = ingest_objects(spark, self.intake, once=False)
        except NO_LAKE as error:
            line = ReportLine("bronze", self.intake.source, error=error)
        self.due = time.monotonic() + self.intake.every_seconds
        words = frozenset(line.warnings) | ({str(line.error)} if line.error is not None else set())
        if line.rows_in or words != self.said:
            report(replace(line, warnings=tuple(word for word in line.warnings if word not in self.said)))
        self.said = words


def _versions(spark: SparkSession, pipeline: Pipeline, stages: Collection[str]) -> Iterator[Any]:
    """What is different as soon as there is something to do: versions of what the stages read and do not write
    themselves, bronze's where silver is among them, with the snapshots that tell which rows are gone; and how silver's
    transactions stand, which holds gold back.
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
    """The later stages of a run that goes on. ``read`` is what they had seen to, ``away`` what was out of reach, or is
    mended elsewhere, by stage and name, and how it is told that it is back.

    Where silver is among them, publish works beside the silver of the next pass: what it takes is a version of gold,
    and gold gets no other until it is done, but for upkeep's, which keeps that one.
    """

    spark: SparkSession
    pipeline: Pipeline
    stages: Collection[str]
    report: Report
    aside: BackgroundTask[list[ReportLine]]
    pace: Pace
    stop: Event
    read: list[Any] | None = None
    away: dict[tuple[str, str], str] = field(default_factory=dict)
    again: float = inf

    def look(self) -> None:
        """A pass, if something is new or must be tried again."""
        self._published(wait=False)
        newest = self._newest()
        if newest is not None and (newest != self.read or time.monotonic() > self.again):
            self.read, self.again = newest, inf  # publish may take either back
            if not self._pass():
                self.read = None

    def _newest(self) -> list[Any] | None:
        """What there is; None where the lake is out of reach, which is told as of a pass, and looked at again."""
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
        """What is under way at the end of the block is waited for, and told; also where an error ends it, which counts
        more than one of what was under way.
        """
        try:
            yield
        except BaseException:
            try:
                self._published(wait=True)
            except Exception as also:  # noqa: BLE001 - told here, for the other one is raised
                error = also if isinstance(also, ReplicatorError) else ReplicatorError(causes.summarize(also))
                self.report(ReportLine("publish", "", error=error))
            raise
        self._published(wait=True)

    def _pass(self) -> bool:
        """False if something must be tried again: it was out of reach, or being written."""
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
                self.aside.begin(lambda: list(publish_all(spark, pipeline)))
            run_serving(spark, pipeline, stages, told)
        except Unreachable as error:
            told(ReportLine("run", "", error=error))
        return self._record_outcome(lines, (*stages, "run"))

    def _published(self, *, wait: bool) -> None:
        """What publish did beside the rest, once it is done."""
        lines = self.aside.taken(wait=wait)
        if lines is not None:
            for line in lines:
                self.report(line)
            if not self._record_outcome(lines, ("publish",)):
                self.read = None

    def _record_outcome(self, lines: Sequence[ReportLine], stages: Collection[str]) -> bool:
        """Note what is out of reach and what is back, of what these stages have told; False as :meth:`_pass`."""
        if any(map(_is_mended_elsewhere, lines)):
            self.again = time.monotonic() + _AGAIN_SECONDS
        lost = {(line.stage, line.table): _BACK for line in lines if isinstance(line.error, SHUT)}
        if ("run", "") not in lost:
            silent = {stage for stage, _ in lost}
            known = {place for place, how in self.away.items() if how == _BACK or place[0] not in silent}
            told = {(line.stage, line.table) for line in lines}
            self._report_recovered({place for place in known if place[0] in stages}, told)
        self.away |= lost
        self.away |= {(line.stage, line.table): _GOES_ON for line in lines if _is_mended_elsewhere(line)}
        if lost:
            time.sleep(1)
        return not lost and not any(line.error is not None and line.error.retry for line in lines)

    def _report_recovered(self, known: Collection[tuple[str, str]], told: Collection[tuple[str, str]]) -> None:
        """Of what had stopped and is not told of now; of a source that stopped its tables say nothing."""
        for stage, name in sorted(known):
            if (stage, name) not in told and (stage, name.partition("/")[0]) in told:
                continue
            how = self.away.pop((stage, name))
            if (stage, name) not in told:
                self.report(ReportLine(stage, name, how=how))


def _is_mended_elsewhere(line: ReportLine) -> bool:
    return isinstance(line.error, MENDED_ELSEWHERE)
