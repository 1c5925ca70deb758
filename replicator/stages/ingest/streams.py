"""The bronze streams of a continuous run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from replicator.errors import TableStopped
from replicator.stages.bronze import Ingestion
from replicator.stages.ingest.bronze_stream import Stream, ingest_stream
from replicator.stages.ingest.pace import Pace
from replicator.stages.run_report import Report, ReportLine


@contextmanager
def run_streams(
    spark: SparkSession, ingestions: Sequence[Ingestion], pace: Pace, report: Report, *, others: bool
) -> Iterator[Streams]:
    """Run the streams of these sources while the context is open. ``others``: something else has records, too."""
    streams = Streams(report, others)
    try:
        for ingestion in ingestions:
            streams.begin(spark, ingestion, pace)
        yield streams
    finally:
        for stream in streams.running:
            stream.query.stop()


@dataclass
class Streams:
    """The running streams, and the rows and seconds of each that were reported (``reported``). If a source must stop,
    that is reported once and the others continue; when the last one stops, its error is raised.
    """

    report: Report
    others: bool
    running: list[Stream] = field(default_factory=list)
    stopped: list[tuple[str, TableStopped]] = field(default_factory=list)
    reported: dict[str, tuple[int, float]] = field(default_factory=dict)

    def begin(self, spark: SparkSession, ingestion: Ingestion, pace: Pace) -> None:
        """Start one more stream."""
        try:
            self.running.append(ingest_stream(spark, ingestion, once=False, pace=pace))
        except TableStopped as error:
            self.stopped.append((ingestion.source, error))

    def poll(self) -> None:
        """Report new rows since the last call, and streams that stopped."""
        for stream in list(self.running):
            try:
                stream.check()
            except TableStopped as error:
                self.running.remove(stream)
                self.stopped.append((stream.ingestion.source, error))
            self._tell(stream)
        if self.stopped and not self.running and not self.others:
            raise self.stopped[-1][1]
        while self.stopped:
            source, stop = self.stopped.pop(0)
            self.report(ReportLine("bronze", source, error=stop))

    def _tell(self, stream: Stream) -> None:
        source, now = stream.ingestion.source, (stream.rows, stream.seconds)
        before = self.reported.get(source, (0, 0.0))
        if now[0] > before[0]:
            rows = now[0] - before[0]
            self.report(ReportLine("bronze", source, rows, rows, seconds=now[1] - before[1]))
            self.reported[source] = now
