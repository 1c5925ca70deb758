"""The replicator itself, running continuously beside the demo's own thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replicator import assemble, settings
from replicator.operate.runs import Entry
from replicator.session import session
from replicator.stages import continuous
from replicator.stages.run_report import STAGES
from replicator.transforms.live import select_live

if TYPE_CHECKING:
    from infra.local.endpoints import Endpoints
    from replicator.stages.pipeline import Pipeline
    from replicator.stages.run_report import ReportLine


class Driver:
    """All stages of env ``demo`` in one Spark, from a thread; ``lines`` grows with what they report."""

    def __init__(self, endpoints: Endpoints, lake: Path, conf: Path) -> None:
        os.environ.update(endpoints.env() | {"REPLICATOR_LAKE": str(lake)})
        self.settings = settings.load(conf, "demo")
        self.spark = session(self.settings, brief=True)  # it lives for a minute
        self.pipeline: Pipeline = assemble.pipeline(self.spark, self.settings)
        self.lines: list[ReportLine] = []
        self.failure: BaseException | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Replicate until the block ends; the pass at hand is finished first."""
        stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(stop,), name="replicator")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def check(self) -> None:
        """Raise what ended the run, and the first error that a table stopped with."""
        if self.failure is not None:
            raise self.failure
        for line in self.lines:
            if line.error is not None:
                raise line.error

    def totals(self) -> list[Entry]:
        """What each stage did with each table, in the order in which they came."""
        entries: dict[tuple[str, str], Entry] = {}
        for line in self.lines:
            place = (line.stage, line.table)
            entries[place] = entries.get(place, Entry(*place)).with_line(line)
        return list(entries.values())

    def _run(self, stop: threading.Event) -> None:
        try:
            continuous.run_continuously(self.spark, self.pipeline, STAGES, self.lines.append, stop)
        except BaseException as error:  # noqa: BLE001 - told by `check` in the demo's own thread
            self.failure = error

    def live_rows(self, source: str, table: str) -> list[dict[str, Any]]:
        """A silver table's live rows."""
        at = self.pipeline.warehouse
        rows = select_live(at.silver.read(self.spark, at.lake.silver(source, table)))
        return [row.asDict() for row in rows.collect()]

    def gold_rows(self, model: str) -> list[dict[str, Any]]:
        """A model's rows."""
        at = self.pipeline.warehouse
        return [row.asDict() for row in at.gold.read(self.spark, at.lake.gold(model)).collect()]
