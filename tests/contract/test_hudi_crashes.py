"""A process that dies inside a write or inside upkeep of a Hudi table (reliability.md K-H1 to K-H4).

Hudi's timeline has a file for each step of a commit. Beside the work each state of it is photographed: a copy of the
table as a killed process would have left it there, which a new process then opens and goes on with.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.catalog.store import Store
from replicator.catalog.tables import LakeListing
from replicator.formats import hudi_options
from replicator.formats.hudi import HudiFormat
from replicator.jvm.failures import FAILURES
from replicator.lake import Lake
from replicator.spec import Progress, Table
from replicator.transforms import fold
from tests import beside
from tests.builders import changes, state, states, upsert

pytestmark = [pytest.mark.spark, pytest.mark.hudi]

TIMELINE = ".hoodie"


def photograph(table: Path, to: Path) -> None:
    """The timeline first: what comes later is at most more than a dying process had written."""
    steps = [*_steps(table)]
    (to / TIMELINE).mkdir(parents=True)
    for step in steps:
        _if_there(str(table / TIMELINE / step), str(to / TIMELINE / step))

    def others(folder: str, names: list[str]) -> list[str]:
        return [*_steps(table)] if folder == str(table / TIMELINE) else []

    shutil.copytree(table, to, dirs_exist_ok=True, copy_function=_if_there, ignore=others)


def _if_there(source: str, to: str) -> None:
    with suppress(FileNotFoundError):  # a file that had another name while it was written
        shutil.copy2(source, to)


@contextmanager
def camera(table: Path, album: Path, wanted: Callable[[str], bool]) -> Iterator[list[tuple[str, Path]]]:
    """Photographs of every state of the timeline whose newest file is wanted, by the name of that file."""
    taken: list[Any] = []
    known = set(_steps(table))

    def watch() -> None:
        for name in sorted(set(_steps(table)) - known):
            known.add(name)
            if wanted(name):
                place = album / f"{len(taken)}" / table.name
                photograph(table, place)
                taken.append((name, place))

    with beside.repeated(watch, 0.002):
        yield taken


@contextmanager
def rolled_back(table: Path) -> Iterator[None]:
    """The next commit that is in flight leaves the timeline, as when another writer rolls it back."""
    known = set(_steps(table))

    def roll_back() -> bool:
        fresh = set(_steps(table)) - known
        is_in_flight = any(name.endswith(".inflight") for name in fresh)
        for name in fresh if is_in_flight else ():
            (table / TIMELINE / name).unlink()
        return is_in_flight

    with beside.repeated(roll_back, 0.002):
        yield


def _steps(table: Path) -> Iterator[str]:
    """Names of the timeline's files, without those that are being written under another name."""
    return (name for name in os.listdir(table / TIMELINE) if re.fullmatch(r"[0-9]+(\.[a-z]+)+", name))


class World:
    """A table of three rows and what becomes of it."""

    def __init__(self, spark: SparkSession, folder: Path, *, on_read: bool) -> None:
        self.spark, self.folder, self.on_read = spark, folder, on_read
        self.format, self.table = HudiFormat(), self.at(folder / "t")
        for n in (1, 2):
            self.apply(self.format, self.table, n)

    def at(self, place: Path) -> Table:
        return Table("t", str(place), ("k",), merge_on_read=self.on_read)

    def apply(self, format_: HudiFormat, table: Table, n: int) -> None:
        """The batch ``n``: it changes the rows 1 and 2, and brings one more."""
        batch = changes(self.spark, [(k, upsert(f"{n}0", n, f"{n}")) for k in (1, 2, 10 + n)])
        format_.apply(fold.fold(batch, ["k"], ()), table, Progress("bronze", n))

    def goes_on(self, place: Path) -> HudiFormat:
        """A new process finds a whole batch or none of it, and ends where the first would have with batch 3."""
        restarted, table = HudiFormat(), self.at(place)
        reached = restarted.progress(self.spark, table, "bronze")
        assert reached is not None
        assert self.states(restarted, table) == self.of(reached.version)
        self.apply(restarted, table, 3)
        assert self.states(restarted, table) == self.of(3)
        return restarted

    def states(self, format_: HudiFormat, table: Table) -> dict[Any, Any]:
        return states(format_.read(self.spark, table).collect())

    @staticmethod
    def of(n: int) -> dict[Any, Any]:
        brought = {10 + m: state(m, f"{m}", f"{m}0") for m in range(1, n + 1)}
        return brought | {k: state(n, f"{n}", f"{n}0") for k in (1, 2)}


@pytest.mark.parametrize("on_read", [False, True], ids=["copy on write", "merge on read"])
def test_a_write_that_dies_is_taken_back_and_repeated(exact: SparkSession, tmp_path: Path, on_read: bool) -> None:
    """Requested, in flight, completed but not cleaned: rows and progress are there together or not at all."""
    world = World(exact, tmp_path, on_read=on_read)
    with camera(tmp_path / "t", tmp_path / "album", lambda name: "clean" not in name) as taken:
        world.apply(world.format, world.table, 3)
    assert {"requested", "inflight"} <= {name.rsplit(".", 1)[-1] for name, _ in taken}
    for _, place in taken:
        world.goes_on(place)


@pytest.mark.parametrize("on_read", [False, True], ids=["copy on write", "merge on read"])
def test_files_of_a_write_that_was_rolled_back_meanwhile_are_removed(
    exact: SparkSession, tmp_path: Path, on_read: bool
) -> None:
    """A driver was suspended within a write, and another one took over: what it writes when it is resumed would be in
    the table as soon as the commits of that time are archived.
    """
    world = World(exact, tmp_path, on_read=on_read)
    before = {*(tmp_path / "t").glob("*.parquet")}
    with rolled_back(tmp_path / "t"), pytest.raises(FAILURES):
        world.apply(world.format, world.table, 3)
    assert {*(tmp_path / "t").glob("*.parquet")} == before
    assert [*(tmp_path / "t" / TIMELINE / ".temp").iterdir()] == []
    world.goes_on(tmp_path / "t")


@pytest.mark.parametrize("on_read", [False, True], ids=["copy on write", "merge on read"])
def test_a_table_whose_properties_were_being_written_anew_is_there(
    exact: SparkSession, tmp_path: Path, on_read: bool
) -> None:
    """Hudi copies them, deletes them and writes them: who dies in between leaves the copy, and the table."""
    world = World(exact, tmp_path, on_read=on_read)
    noted = tmp_path / "t" / TIMELINE / "hoodie.properties"
    noted.rename(noted.with_name("hoodie.properties.backup"))
    crc = noted.with_name(".hoodie.properties.crc")
    crc.rename(crc.with_name(".hoodie.properties.backup.crc"))
    store = Store(str(tmp_path))
    assert LakeListing(store, store.files(), Lake(str(tmp_path))).kind(str(tmp_path / "t")) == "hudi"
    world.goes_on(tmp_path / "t")


@pytest.mark.parametrize("on_read", [False, True], ids=["clustering", "compaction"])
def test_upkeep_that_dies_hinders_nobody(
    exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_read: bool
) -> None:
    """Planned or half-done compaction and clustering: the next writer goes on beside it or takes it back."""
    monkeypatch.setitem(hudi_options._ALWAYS, "hoodie.parquet.small.file.limit", "0")  # so that there are small files
    world = World(exact, tmp_path, on_read=on_read)
    steps = "compaction" if on_read else "replacecommit"
    with camera(tmp_path / "t", tmp_path / "album", lambda name: f".{steps}." in name) as taken:
        world.format.maintain(exact, world.table, 168)
    assert {name.rsplit(".", 1)[-1] for name, _ in taken} == {"requested", "inflight"}
    for _, place in taken:
        restarted, table = world.goes_on(place), world.at(place)
        restarted.maintain(exact, table, 168)
        assert world.states(restarted, table) == world.of(3)
