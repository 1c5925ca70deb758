"""A lake, a target and their configuration, on which runs start and die: in the tests' process or in their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator import assemble, failpoints, settings
from replicator.failpoints import Killed
from replicator.operate import maintain, purge, rebuild_all
from replicator.operate.rebuild import RebuildOptions
from replicator.operate.rebuilding.rebuild_result import RebuildResult
from replicator.settings import Settings
from replicator.sinks.memory_outlet import MemoryOutlet
from replicator.spec import Progress
from replicator.stages import pipeline
from replicator.stages.pipeline import Pipeline
from replicator.stages.refinement import Refinement
from replicator.stages.run_report import ReportLine
from replicator.transforms import history
from tests.kafka import consumed, create
from tests.torture import people
from tests.torture.configuration import models, sources
from tests.torture.feed import FileStream, to_kafka, to_objects
from tests.torture.origin import ENDS, ORDERS, PEOPLE, SOURCE_OF, Origin, Sent
from tests.torture.reaper import Reaper, Toll

REPOSITORY = Path(__file__).resolve().parents[2]
LATER_MS = 2_000_000_000_000
"""A time at which every delete is old."""
LAYERS = ("bronze", "silver", "gold", "publish", "upkeep")
"""What an own process of the tests does, in this order; ``upkeep`` is a purge and OPTIMIZE with VACUUM."""


@dataclass
class World:
    """``kafka``: a broker's address; without one, files stand for it. ``postgres``: where gold is published; without
    one there is no gold. ``mixed``: tables and twins in Hudi beside Delta. So many tables of silver are worked on
    ``at_once``: with one, the n-th hit of a run is always the same. ``rebuilds`` is what the layer ``rebuild`` makes
    once more, ``rebuilt`` what it said last.
    """

    folder: Path
    origin: Origin
    kafka: str = ""
    postgres: Any = None
    mixed: bool = False
    at_once: int = 3
    rebuilds: Sequence[str] = ("orders", "dim_buyers", "fact_sales")
    toll: Toll = field(default_factory=Toll)
    rebuilt: list[RebuildResult] = field(default_factory=list)
    _grown: int = 0

    def __post_init__(self) -> None:
        self._objects, self._files = self.folder / "objects", self.folder / "files"
        self._outlet = MemoryOutlet(people.TOPIC)
        for place in (self._objects, self._files, *(self.conf / name for name in ("sources", "models", "canonical"))):
            place.mkdir(parents=True)
        if self.kafka and self.has_people:
            create(self.kafka, people.TOPIC, partitions=3)
        self._write(self._source_files() | self._model_files())

    @property
    def conf(self) -> Path:
        """The configuration's folder."""
        return self.folder / "conf"

    @property
    def settings(self) -> Settings:
        """As a process finds them."""
        return settings.load(self.conf, "torture", {})

    @property
    def sources(self) -> dict[str, list[str]]:
        """Tables by source."""
        every = {SOURCE_OF[table] for table in self.origin.tables}
        return {name: [table for table in self.origin.tables if SOURCE_OF[table] == name] for name in sorted(every)}

    @property
    def has_people(self) -> bool:
        """Whether there is a table that is masked and filtered, and a feed of it."""
        return PEOPLE in self.origin.tables

    def told(self) -> list[tuple[str | None, str | None]]:
        """Keys and values of all events for others, so far."""
        if self.kafka:
            return [(key, value) for key, value, _ in consumed(self.kafka, people.TOPIC)]
        return [(each.key, each.value) for each in self._outlet.topics[people.TOPIC]]

    def pipeline(self, spark: SparkSession) -> Pipeline:
        """As a new process makes it: it remembers nothing."""
        made = assemble.pipeline(spark, self.settings)
        if self.kafka:
            return made
        if made.offer is not None:
            made = replace(made, offer=replace(made.offer, outlets={"people": self._outlet}))
        return replace(made, ingestions=tuple(replace(each, reader=self._stream()) for each in made.ingestions))

    def feed(self) -> None:
        """The next batch of the origin, to where the pipeline reads."""
        self._bring(self.origin.batch())

    def rest(self) -> None:
        """What is under way still."""
        late = self.origin.rest()
        if late:
            self._bring(late)

    def grow(self) -> None:
        """The dimension gets one more column, which is never NULL, where there are models."""
        self._grown += 1
        self._write(self._model_files())

    def damage(self, spark: SparkSession) -> None:
        """Other values in orders, in their history and in the fact if it is rebuilt, behind everybody's back."""
        made = self.pipeline(spark)
        at, gold, lake = self._shop(made), made.warehouse.gold, made.warehouse.lake
        wrong = [(at.silver, at.lake.silver("shop", ORDERS, ("id",)), "total")]
        wrong.append((at.silver, at.lake.history("shop", ORDERS, ("id", history.KEY)), "total"))
        if self.has_people:  # what is damaged there no event has
            wrong.append((at.silver, at.lake.silver("shop", PEOPLE, ("id",)), "points"))
        if "fact_sales" in self.rebuilds:
            wrong.append((gold, lake.gold("fact_sales", ("sale",)), "amount"))
        for format_, table, column in wrong:
            rows = format_.read(spark, table).withColumns({column: F.lit(-1), "_op": F.lit("upsert")})
            format_.put(rows, table, Progress("damage", (format_.version(spark, table) or 0) + 1))

    def _bring(self, sent: Sequence[Sent]) -> None:
        shop = [each for each in sent if each.topic.startswith("shop.")]
        if self.kafka:
            to_kafka(self.kafka, shop)
        else:
            self._stream().put(shop)
        to_objects(self._objects, [each for each in sent if each not in shop])

    def run(
        self,
        spark: SparkSession,
        due: Callable[[str], bool] = lambda _: False,
        layers: Collection[str] = LAYERS,
        *,
        recovering: bool = False,
    ) -> str | None:
        """One run from start to end, or to its death; where it died."""
        reaper = Reaper(self.toll, due, recovering=recovering)
        lines: list[ReportLine] = []
        try:
            with failpoints.watched(reaper):
                pipeline.run_once(spark, self.pipeline(spark), layers, lines.append)
                if "upkeep" in layers:
                    self._upkeep(spark)
                if "rebuild" in layers:
                    self._rebuild(spark)
        except Killed:
            pass
        else:
            assert reaper.died_at is None, f"somebody caught the death at {reaper.died_at}"
        assert [str(line.error) for line in lines if line.error is not None] == []
        return reaper.died_at

    def _upkeep(self, spark: SparkSession) -> None:
        purge.purge(spark, self._shop(self.pipeline(spark)), ORDERS, LATER_MS)
        keeper = assemble.lake_tables(self.settings)
        for wanted in ("shop.customers", "till.sales") if self.mixed else ("till.sales",):
            chosen = maintain.select_tables(keeper.tables(spark), wanted)
            done = list(maintain.maintain(spark, keeper.tables_of, chosen, 7 * 24 * 3600))
            assert [str(each.error) for each in done if each.error is not None] == []

    def _rebuild(self, spark: SparkSession) -> None:
        made = self.pipeline(spark)
        what = rebuild_all.resolve_selection(spark, made.refinements, made.models, self.rebuilds)
        self.rebuilt = list(rebuild_all.carry_out(spark, what, made.warehouse, RebuildOptions()))
        assert [str(each.error) for each in self.rebuilt if each.error is not None] == []

    def driver(self, failpoint: str | None, *arguments: str) -> bool:
        """``replicator`` as a process group of its own, with a point armed; whether it was killed there. Any other end
        than this and success is a failed test.
        """
        command = [str(Path(sys.executable).parent / "replicator"), *arguments, "--env", "torture"]
        variables = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        if failpoint is not None:
            variables |= {"REPLICATOR_FAILPOINT": f"{failpoint}:kill:1", "REPLICATOR_FAILPOINTS_ALLOWED": "yes"}
        done = subprocess.run(
            [*command, "--conf", str(self.conf)],
            cwd=REPOSITORY,
            env=variables,
            capture_output=True,
            text=True,
            start_new_session=True,
            timeout=900,
            check=False,
        )
        killed = failpoint is not None and done.returncode == -signal.SIGKILL
        assert killed or done.returncode == 0, (failpoint, done.returncode, done.stderr[-3000:])
        return killed

    def sigkill(self, points: Sequence[str], *arguments: str, is_over: Callable[[], bool] = lambda: False) -> list[str]:
        """Drivers one after the other, each killed at its point while it recovers from the one before, until all were
        or it ``is_over``; then one that goes on to the end. The points at which one was killed.
        """
        done: list[str] = []
        recovering = False
        for name in points:
            if is_over():
                break
            if not self.driver(name, *arguments):
                recovering = False
                continue
            done.append(name)
            for counter in (self.toll.hits, self.toll.kills, self.toll.sigkills):
                counter[name] += 1
            self.toll.recovered[name] += recovering
            recovering = True
        self.driver(None, *arguments)
        return done

    def _write(self, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            (self.conf / name).write_text(text)

    def _shop(self, made: Pipeline) -> Refinement:
        return next(each for each in made.refinements if each.source.name == "shop")

    def _model_files(self) -> dict[str, str]:
        return {} if self.postgres is None else models(self._grown)

    def _source_files(self) -> dict[str, str]:
        places: dict[str, Any] = {"lake": self.folder / "lake", "objects": self._objects}
        told: dict[str, Any] = {
            "kafka": self.kafka,
            "postgres": self.postgres,
            "mixed": self.mixed,
            "at_once": self.at_once,
        }
        return sources(**places, **told, whole=self.origin.whole, with_people=self.has_people)

    def _stream(self) -> FileStream:
        tables = [f"shop.{table}" for table in self.sources["shop"]]
        return FileStream(self._files, [*tables, *([ENDS] if self.origin.whole else [])])
