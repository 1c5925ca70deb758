"""The promises of ``TableFormat`` (replicator/protocols/), for every implementation.

Commits are dear, so that a history of many keys is written once per implementation, one key for each case.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.errors import SchemaRefused, TableMissing, VersionMissing
from replicator.formats import hudi_options
from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_merge_strategies import MergeThresholds
from replicator.formats.hudi import HudiFormat
from replicator.formats.hudi_timeline import Timeline
from replicator.formats.memory import MemoryFormat
from replicator.formats.mixed import MixedFormat
from replicator.jvm import gateway
from replicator.spec import Applied, Evolution, Progress, Table
from replicator.transforms import fold, merge
from replicator.transforms.columns.layout import key_of
from tests.builders import SILVER, UNSENT, Change, changes, delete, exact_session, gone, made, state, states, upsert

pytestmark = pytest.mark.spark


class LargeDelta(DeltaFormat):
    """Delta as it treats large tables: rows are marked, and where there are no deletion vectors files are replaced."""

    def __init__(self) -> None:
        super().__init__(MergeThresholds(rewritten_bytes=0))


class Mixed(MixedFormat):
    """Several formats in one lake."""

    def __init__(self) -> None:
        super().__init__({"memory": MemoryFormat(), "delta": DeltaFormat()})


IMPLEMENTATIONS = {
    "delta": DeltaFormat,
    "large delta": LargeDelta,
    "memory": MemoryFormat,
    "hudi": HudiFormat,
    "hudi merge on read": HudiFormat,
    "mixed": Mixed,
}

# debezium.md M, examples 1 to 10: each change in the order of its arrival, with what silver holds after it. Of 8 and 9
# the new key N, to which the value of b that the old key held was carried over at the change's own position (M7).
EXAMPLES: dict[str, list[tuple[Change, tuple[Any, ...]]]] = {
    "1 in a batch": [
        (upsert("10", 1, "X"), state(1, "X", "10")),
        (upsert("20", 2, UNSENT), state(2, "X", "20", {"b": "10"})),
    ],
    "2 across batches": [
        (upsert("10", 1, "X"), state(1, "X", "10")),
        (upsert("20", 2, UNSENT), state(2, "X", "20", {"b": "10"})),
        (upsert("30", 3, UNSENT), state(3, "X", "30", {"b": "10"})),
        (upsert("40", 4, "Y"), state(4, "Y", "40")),
    ],
    "3 late older fill": [
        (upsert("20", 2, UNSENT), state(2, None, "20", {"b": ""})),
        (upsert("10", 1, "X"), state(2, "X", "20", {"b": "10"})),
    ],
    "4 late, but a newer value known": [
        (upsert("30", 3, "Z"), state(3, "Z", "30")),
        (upsert("20", 2, "Y"), state(3, "Z", "30")),
    ],
    "5 delete and re-insert": [
        (upsert("10", 1, "X"), state(1, "X", "10")),
        (delete("20"), gone("20")),
        (upsert("30", 3, "W"), state(3, "W", "30")),
    ],
    "6 value before a delete": [
        (upsert("30", 3, UNSENT), state(3, None, "30", {"b": ""})),
        (delete("20"), state(3, None, "30", {"b": "20-"})),
        (upsert("10", 1, "X"), state(3, None, "30", {"b": "20-"})),
    ],
    "7 late insert after the delete": [
        (upsert("30", 3, UNSENT), state(3, None, "30", {"b": ""})),
        (delete("20"), state(3, None, "30", {"b": "20-"})),
        (upsert("10", 1, "X"), state(3, None, "30", {"b": "20-"})),
        (upsert("25", 0, "V"), state(3, "V", "30", {"b": "25"})),
    ],
    "8 key change, the new key": [(upsert("53", 5, "X"), state(5, "X", "53"))],
    "8 key change, the old key": [(upsert("10", 1, "X"), state(1, "X", "10")), (delete("51"), gone("51"))],
    "9 the new key had lived before": [
        (upsert("30", 1, "old"), state(1, "old", "30")),
        (delete("40"), gone("40")),
        (upsert("53", 5, "X"), state(5, "X", "53")),
    ],
    "10 duplicate at a higher offset": [
        (upsert("20", 2, "X"), state(2, "X", "20")),
        (upsert("21", 2, "X"), state(2, "X", "21")),
    ],
    "a late older change of a deleted key": [(delete("20"), gone("20")), (upsert("10", 1, "X"), gone("20"))],
    "a delete of an unknown key": [(delete("20"), gone("20"))],
    "a known null is no gap": [
        (upsert("20", 2, None), state(2, None, "20")),
        (upsert("10", 1, "X"), state(2, None, "20")),
    ],
}
CASES = list(EXAMPLES)
STEPS = max(map(len, EXAMPLES.values()))
CUTS = {"all at once": 100, "newest half first": 200}
"""The same examples in other cuts, in the same table: the first key of each cut."""
AGAIN = STEPS
"""The version of the table of examples with which every change came once more."""


@dataclass
class World:
    """An implementation, the session, a folder, and how many batches each table has taken."""

    spark: SparkSession
    format: Any
    folder: Path
    merge_on_read: bool = False
    batches: dict[str, int] = field(default_factory=dict)

    def table(self, name: str) -> Table:
        """A table of the key ``k``."""
        return Table(name, f"{self.folder}/{name}", ("k",), merge_on_read=self.merge_on_read)

    def fold(self, keyed: Sequence[tuple[int, Change]]) -> DataFrame:
        """A batch of changes as ``apply`` takes it."""
        return fold.fold(changes(self.spark, keyed), ["k"], ["b"])

    def apply(self, name: str, keyed: Sequence[tuple[int, Change]]) -> Applied:
        """One more batch of a table, at the next version of its input."""
        self.batches[name] = self.batches.get(name, 0) + 1
        done: Applied = self.format.apply(self.fold(keyed), self.table(name), Progress("bronze", self.batches[name]))
        return done

    def two_rows(self, table: Table) -> None:
        """Keys 1 and 2 at version 1 of the input; ``b`` of key 2 was never sent. Where Delta marks rows, one is marked:
        key 1 had another row in the file of key 2 before.
        """
        key = {"name": "k", "key": 0}
        rows = [(1, upsert("10", 1, "X")), (2, upsert("10", 2, UNSENT))]
        if isinstance(self.format, LargeDelta):
            single = gateway.clone_session(self.spark)
            single.conf.set("spark.sql.shuffle.partitions", "1")
            older = gateway.to_session(self.fold([(1, upsert("05", 7, "W")), *rows[1:]]), single)
            self.format.apply(older.withMetadata("k", key), table, Progress("bronze", 0))
        self.format.apply(self.fold(rows).withMetadata("k", key), table, Progress("bronze", 1))
        log = "".join(each.read_text() for each in Path(table.location, "_delta_log").glob("*.json"))
        assert ('"deletionVector":{' in log) == isinstance(self.format, LargeDelta)

    def states(self, name: str, version: int | None = None) -> dict[int, tuple[Any, ...]]:
        """What silver holds, by key."""
        return states(self.format.read(self.spark, self.table(name), version).collect())

    def rows(self, table: Table) -> list[tuple[Any, ...]]:
        """All rows, sorted."""
        return sorted(tuple(row) for row in self.format.read(self.spark, table).collect())

    def frame(self, *rows: tuple[Any, ...], ddl: str = "k INT, v STRING") -> DataFrame:
        """Rows of these columns."""
        return made(self.spark, rows, ddl)

    def changed(self, table: Table, after: int, upto: int) -> list[int]:
        """The keys that differ between two versions."""
        keys = self.format.changed_keys(self.spark, table, after, upto)
        assert keys is not None
        return sorted(row["k"] for row in keys.collect())


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.hudi] * name.startswith("hudi")) for name in IMPLEMENTATIONS],
)
def world(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp(request.param)
    on_read = request.param == "hudi merge on read"
    return World(exact_session(spark), IMPLEMENTATIONS[request.param](), folder, merge_on_read=on_read)


@pytest.fixture
def no_merge(world: World) -> None:
    """Where there are no rows at rest that could be marked, a large table of Delta's does what a small one has done."""
    if isinstance(world.format, LargeDelta):
        pytest.skip("nothing is merged here")


@pytest.fixture
def not_on_read(world: World) -> None:
    """Of a table that is not declared to be merged on read, Hudi has been asked already."""
    if world.merge_on_read:
        pytest.skip("the same table of Hudi's")


@dataclass
class Told:
    """What the table of examples held behind each batch, what each commit said, and times between the commits."""

    seen: list[dict[int, tuple[Any, ...]]]
    applied: list[Applied]
    progress: list[Progress | None]
    marks: list[datetime]

    def written(self, version: int) -> tuple[list[int], list[int]]:
        """The keys that came with a commit, and those whose rows it changed."""
        before, now = self.seen[version - 1] if version else {}, self.seen[version]
        return sorted(now.keys() - before.keys()), sorted(k for k in before if before[k] != now[k])


def _batches() -> list[list[tuple[int, Change]]]:
    """The n-th change of every example in the n-th batch; the same examples under other keys in other cuts; and every
    change once more.
    """
    arrivals = [(at, change) for at, case in enumerate(EXAMPLES.values()) for change, _ in case]
    batches = [
        [(at, case[step][0]) for at, case in enumerate(EXAMPLES.values()) if step < len(case)] for step in range(STEPS)
    ]
    newest_first = sorted(arrivals, key=lambda arrival: arrival[1].seq, reverse=True)
    half = len(newest_first) // 2
    parts = {"all at once": [random.Random(11).sample(arrivals, len(arrivals))]}
    parts["newest half first"] = [newest_first[:half], newest_first[half:]]
    for cut, first in CUTS.items():
        for batch, part in zip(batches, parts[cut], strict=False):
            batch += [(first + at, change) for at, change in part]
    return [*batches, arrivals]


@pytest.fixture(scope="module")
def told(world: World) -> Told:
    """One table of all examples, and behind them two commits of nothing: one appended, one applied."""
    table, told = world.table("told"), Told([], [], [], [])

    def behind(applied: Applied) -> None:
        told.seen.append(world.states("told"))
        told.applied.append(applied)
        told.progress.append(world.format.progress(world.spark, table, "bronze"))

    for batch in _batches():
        told.marks.append(_mark())
        behind(world.apply("told", batch))
    told.marks.append(_mark())
    nothing = world.format.read(world.spark, table).limit(0)
    behind(world.format.append(nothing, table, Progress("bronze", AGAIN + 2)))
    behind(world.format.apply(nothing, table, Progress("bronze", AGAIN + 3)))
    return told


@pytest.mark.parametrize("case", CASES)
def test_a_change_is_joined_into_what_is_there(told: Told, case: str) -> None:
    """Section M, example by example, one change per batch: after each arrival."""
    at, history = CASES.index(case), EXAMPLES[case]
    for step, seen in enumerate(told.seen[:STEPS]):
        assert seen[at] == history[min(step, len(history) - 1)][1], f"after arrival {step + 1}"


@pytest.mark.parametrize("cut", ["all at once", "newest half first"])
def test_other_cuts_and_orders_end_in_the_same_rows(told: Told, cut: str) -> None:
    """P1, P2: arrival and batches leave no trace."""
    end, keys = told.seen[STEPS - 1], range(len(CASES))
    assert {case: end[CUTS[cut] + at] for at, case in enumerate(CASES)} == {CASES[at]: end[at] for at in keys}


def test_the_same_changes_again_change_nothing(world: World, told: Told) -> None:
    """A batch that is repeated under a new progress (a lost one, a replay) writes no row."""
    assert told.applied[AGAIN] == Applied(0, 0, 0, AGAIN)
    assert told.seen[AGAIN] == told.seen[AGAIN - 1]
    assert world.changed(world.table("told"), AGAIN - 1, AGAIN) == []


def test_the_same_progress_twice_is_once(world: World, told: Told) -> None:
    """The commit holds rows and progress; the second time nothing is looked at, whatever the batch holds."""
    table, newest = world.table("told"), told.progress[-1].version
    for version in (newest, newest - 1):
        again = world.format.apply(world.fold([(1, upsert("90", 2, "Y"))]), table, Progress("bronze", version))
        assert again == Applied(0, 0, 0, told.applied[-1].version)
    assert world.states("told") == told.seen[-1]
    assert world.format.progress(world.spark, table, "bronze") == Progress("bronze", newest)
    assert world.format.progress(world.spark, table, "another") is None
    assert world.format.inputs(world.spark, table) == {"bronze": newest}


def test_a_commit_tells_what_it_did_and_old_versions_stay(world: World, told: Told) -> None:
    """Counts are rows; a version is read as it was; only keys that changed are shown (K-S1)."""
    table, (came, changed) = world.table("told"), told.written(1)
    assert [told.progress[version] for version in range(STEPS)] == [Progress("bronze", n + 1) for n in range(STEPS)]
    counts: list[Any] = [tuple(map(len, told.written(version))) for version in range(STEPS)]
    assert told.applied[:STEPS] == [Applied(one, other, 0, version) for version, (one, other) in enumerate(counts)]
    assert all(counts[1])
    assert world.states("told", 0) == told.seen[0]
    assert world.changed(table, 0, 1) == sorted(came + changed)


def test_an_empty_batch_moves_the_progress_and_no_row(world: World, told: Told) -> None:
    """There was nothing for this table in the range, and that is said in its own commit."""
    for version in (AGAIN + 1, AGAIN + 2):
        assert told.applied[version] == Applied(0, 0, 0, version)
        assert told.progress[version] == Progress("bronze", version + 1)
        assert told.seen[version] == told.seen[AGAIN]
    assert world.changed(world.table("told"), AGAIN, AGAIN + 2) == []


@pytest.mark.usefixtures("no_merge", "not_on_read")
def test_a_batch_is_appended_once_per_progress(world: World) -> None:
    """Bronze: a repeated batch is recognised; without progress, rows are simply added. Columns meet by name."""
    table = Table("log", f"{world.folder}/log")
    one, two = world.frame((1, "a"), (1, "a")), world.frame(("b", 2), ddl="v STRING, k INT")
    assert world.format.append(one, table, Progress("query", 0)).inserted == 2
    assert world.format.append(one, table, Progress("query", 0)) == Applied(0, 0, 0, 0)
    assert world.format.append(two, table, Progress("query", 1)).inserted == 1
    assert world.format.append(two, table, Progress("query", 0)).inserted == 0
    assert world.format.append(two, table, None).inserted == 1
    assert world.rows(table) == [(1, "a"), (1, "a"), (2, "b"), (2, "b")]
    assert world.format.progress(world.spark, table, "query") == Progress("query", 1)
    added = world.format.added(world.spark, table, {(): 0}, 1)
    assert [(row["k"], row["v"]) for row in added.collect()] == [(2, "b")]


@pytest.mark.usefixtures("no_merge", "not_on_read")
def test_what_commits_appended_is_found_by_partition(world: World) -> None:
    """Each topic is read from where it was left; nobody reads what is done (architecture 9.4)."""
    table, ddl = Table("topics", f"{world.folder}/topics", partition_by=("topic",)), "topic STRING, v INT"
    assert world.format.size(world.spark, table) == 0
    world.format.append(world.frame(("s.a", 1), ("s.b", 1), ddl=ddl), table, None)
    world.format.append(world.frame(("s.a", 2), ddl=ddl), table, None)
    world.format.append(world.frame(("s.a", 3), ("__debezium-heartbeat.s", 3), ddl=ddl), table, None)
    assert world.format.size(world.spark, table) > 0
    assert world.format.detail(world.spark, table).partition_by == ("topic",)
    arrivals = world.format.arrivals(world.spark, table, 0, 2)
    assert {(each.partition, each.version) for each in arrivals} == {
        (("s.a",), 1),
        (("s.a",), 2),
        (("__debezium-heartbeat.s",), 2),
    }
    assert all(each.size > 0 for each in arrivals)
    assert {each.version for each in world.format.arrivals(world.spark, table, -1, 0)} == {0}
    assert world.format.arrivals(world.spark, table, 2, 2) == []
    whole = world.format.append_only_since(world.spark, table, 0, 2)
    assert whole in (0, 2)
    assert [world.format.read(world.spark, table, version).count() for version in range(whole, 3)][-1] == 5
    for after, upto, expected in (
        ({("s.a",): 0, ("s.b",): 0}, 2, [("s.a", 2), ("s.a", 3)]),
        ({("s.a",): 1, ("s.b",): -1}, 2, [("s.a", 3), ("s.b", 1)]),
        ({("s.a",): -1}, 1, [("s.a", 1), ("s.a", 2)]),
        ({("s.b",): 1}, 2, []),
    ):
        rows = world.format.added(world.spark, table, after, upto)
        assert sorted((row["topic"], row["v"]) for row in rows.collect()) == expected


@pytest.mark.usefixtures("not_on_read")
def test_a_difference_is_written_as_it_was_decided(world: World) -> None:
    """Gold: upserts and deletes by key, NULLs included; of a delete the key counts; an unknown delete is no row; what
    changed is told of rows of any types.
    """
    table, ddl, deep = world.table("put"), "k INT, v STRING, m STRUCT<x: MAP<STRING, INT>>, _op STRING", ({"a": 1},)
    with pytest.raises(TableMissing):
        world.format.count(world.spark, table)
    first = world.frame((1, "a", None, "upsert"), (2, "b", deep, "upsert"), (3, "c", deep, "upsert"), ddl=ddl)
    assert world.format.put(first, table, Progress("model", 0)).inserted == 3
    gone = [(key, None, None, "delete") for key in (2, 9)]
    second = world.frame((1, None, None, "upsert"), *gone, (4, "d", deep, "upsert"), ddl=ddl)
    applied = world.format.put(second, table, Progress("model", 1))
    assert (applied.inserted, applied.updated, applied.deleted) == (1, 1, 1)
    assert world.rows(table) == [(1, None, None), (3, "c", deep), (4, "d", deep)]
    assert world.format.count(world.spark, table) == 3
    assert world.changed(table, 0, 1) == [1, 2, 4]
    told = world.format.changed_rows(world.spark, table, 0, 1)
    assert told is None or sorted((row["k"], row["v"]) for row in told.collect()) == [(1, None), (4, "d")]
    assert world.format.put(first, table, Progress("model", 1)) == Applied(0, 0, 0, 1)
    empty = world.format.put(second.limit(0), table, Progress("model", 2))
    assert (empty.written, empty.version) == (0, 2)
    assert world.format.progress(world.spark, table, "model") == Progress("model", 2)
    assert world.changed(table, 1, 2) == []
    again = world.frame((1, None, None, "upsert"), (3, "C", deep, "upsert"), gone[1], ddl=ddl)
    assert world.format.put(again, table, Progress("model", 3), repeats=True).version == 3
    assert world.rows(table) == [(1, None, None), (3, "C", deep), (4, "d", deep)]
    assert world.changed(table, 2, 3) in ([3], [1, 3])


@pytest.mark.usefixtures("not_on_read")
def test_what_is_noted_of_a_key_is_read_back_where_it_parts_the_table(world: World) -> None:
    """Who reads a table finds its key by its columns' notes (architecture 9.1), at every version, after new columns."""
    table = replace(world.table("noted"), keys=("k", "b"), partition_by=("b",))
    notes = {"k": {"name": "k", "key": 1}, "b": {"name": "B", "key": 0}}

    def noted(*rows: tuple[Any, ...]) -> DataFrame:
        made_ = world.frame(*rows, ddl=SILVER)
        return made_.withMetadata("k", notes["k"]).withMetadata("b", notes["b"])

    world.format.apply(noted((1, 7, "x", "10", False, None, 1)), table, Progress("bronze", 1))
    world.format.apply(noted((1, 8, "x", "20", False, None, 1), (1, 9, "y", "20", False, None, 1)), table,
                       Progress("bronze", 2))  # fmt: skip
    for version in (None, 0):
        read = world.format.read(world.spark, table, version)
        assert {each.name: each.metadata for each in read.schema if each.metadata} == notes
        assert key_of(read.schema) == ("b", "k")
    world.format.evolve(world.spark, table, Evolution(widened=(("a", "bigint"),)))
    assert key_of(world.format.read(world.spark, table).schema) == ("b", "k")
    assert sorted(row["a"] for row in world.format.read(world.spark, table).collect()) == [8, 9]


def test_a_difference_goes_back_in_the_order(world: World) -> None:
    """A rebuild by another order, a twin: a row that goes to a lower `_seq` is written, and what comes later joins.
    Of a delete the key alone counts (a purge has it, too), although all else of the difference is NULL there.
    """
    table = world.table("back")
    world.apply("back", [(1, upsert("50", 1, "X")), (2, upsert("50", 2, "Y")), (3, upsert("50", 3, "Z"))])
    lower = [(1, 7, "x", "30", False, None, 1, "upsert"), (2, None, None, None, None, None, None, "delete")]
    applied = world.format.put(world.frame(*lower, ddl=f"{SILVER}, _op STRING"), table, Progress("rebuild", 1))
    assert (applied.inserted, applied.updated, applied.deleted) == (0, 1, 1)
    assert world.changed(table, 0, 1) == [1, 2]
    assert world.states("back") == {1: state(7, "x", "30"), 3: state(3, "Z", "50")}
    world.apply("back", [(1, upsert("40", 8, "y")), (2, upsert("40", 9, "W"))])
    wanted = {1: state(8, "y", "40"), 2: state(9, "W", "40"), 3: state(3, "Z", "50")}
    assert world.states("back") == wanted
    world.format.maintain(world.spark, table, 168)
    assert world.states("back") == wanted


def test_a_table_in_hudi_that_was_made_with_an_order_goes_back_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables at rest lose the field that orders them with the next write, logs that were not merged included."""
    if not isinstance(world.format, HudiFormat):
        pytest.skip("a property of Hudi's tables")
    table, write = world.table("ordered"), hudi_options.write
    order = {"hoodie.table.ordering.fields": "_seq"}
    monkeypatch.setattr(hudi_options, "write", lambda *told: write(*told) | order)
    monkeypatch.setattr(Timeline, "order_by_commit", lambda *_: None)
    world.apply("ordered", [(1, upsert("50", 1, "X")), (2, upsert("50", 2, "Y"))])
    world.apply("ordered", [(2, upsert("60", 3, "Z"))])
    monkeypatch.undo()
    lower = [(1, 7, "x", "30", False, None, 1, "upsert"), (2, None, None, None, None, None, None, "delete")]
    world.format.put(world.frame(*lower, ddl=f"{SILVER}, _op STRING"), table, Progress("rebuild", 1))
    assert world.states("ordered") == {1: state(7, "x", "30")}
    assert order.keys().isdisjoint(Path(table.location, ".hoodie/hoodie.properties").read_text().split("="))
    world.apply("ordered", [(1, upsert("40", 8, "y")), (2, upsert("40", 9, "W"))])
    world.format.maintain(world.spark, table, 168)
    assert world.states("ordered") == {1: state(8, "y", "40"), 2: state(9, "W", "40")}


def test_a_table_that_is_not_there_is_missing(world: World) -> None:
    """TableMissing from reading; None and nothing from asking."""
    table = world.table("absent")
    with pytest.raises(TableMissing, match="absent"):
        world.format.read(world.spark, table)
    with pytest.raises(TableMissing, match="absent"):
        world.format.detail(world.spark, table)
    assert world.format.version(world.spark, table) is None
    assert world.format.identity(world.spark, table) is None
    assert world.format.progress(world.spark, table, "bronze") is None
    assert world.format.inputs(world.spark, table) == {}
    assert world.format.tables(world.spark, f"{world.folder}/nowhere") == ()


def test_columns_are_added_and_widened_around_the_rows(world: World) -> None:
    """Rows keep their values, system columns stay last, progress stays; repeating it changes nothing. Among the columns
    that come alone is the first time without a zone, which Delta allows to new tables only by itself.
    """
    table = world.table("evolve")
    world.two_rows(table)
    world.format.evolve(world.spark, table, Evolution(added=(("t", "timestamp_ntz"),)))
    evolution = Evolution(added=(("c", "decimal(10,2)"), ("d", "date")), widened=(("a", "bigint"),))
    for _ in range(2):
        world.format.evolve(world.spark, table, evolution)
        rows = world.format.read(world.spark, table)
        expected = [("k", "int"), ("a", "bigint"), ("b", "string"), ("t", "timestamp_ntz"), ("c", "decimal(10,2)")]
        assert rows.dtypes[:6] == [*expected, ("d", "date")]
        assert rows.columns[6:] == list(merge.SYSTEM_COLUMNS)
        assert states(rows.collect()) == {1: state(1, "X", "10"), 2: state(2, None, "10", {"b": ""})}
    assert world.format.progress(world.spark, table, "bronze") == Progress("bronze", 1)
    assert rows.where("c IS NOT NULL OR d IS NOT NULL").isEmpty()
    changed = world.format.changed_keys(world.spark, table, -1, world.format.version(world.spark, table))
    assert changed is None or {row["k"] for row in changed.collect()} <= {1, 2}, (
        "what cannot be told is None, not an error"
    )


def test_columns_change_places_with_what_is_known_of_them(world: World) -> None:
    """G2: an older type takes the plain name, and values, ``_column_seq`` and the key's mark follow; once only."""
    table = world.table("moved")
    world.two_rows(table)
    first = (("b", "timestamp_ntz"),)
    evolution = Evolution(added=first, widened=(("k", "bigint"),), moved=(("b", "b__v2", "string"),))
    for _ in range(2):
        world.format.evolve(world.spark, table, evolution)
        rows = world.format.read(world.spark, table)
        assert rows.dtypes[:4] == [("k", "bigint"), ("a", "int"), *first, ("b__v2", "string")]
        assert rows.columns[4:] == list(merge.SYSTEM_COLUMNS)
        found = {row["k"]: (row["b"], row["b__v2"], row["_column_seq"]) for row in rows.collect()}
        assert found == {1: (None, "X", None), 2: (None, None, {"b__v2": ""})}
        assert rows.schema["k"].metadata == {"name": "k", "key": 0}
    swapped = Evolution(moved=(("b", "b__v2", "timestamp_ntz"), ("b__v2", "b", "string")))
    for _ in range(2):
        world.format.evolve(world.spark, table, swapped)
        rows = world.format.read(world.spark, table)
        assert rows.dtypes[2:4] == [("b", "string"), ("b__v2", "timestamp_ntz")]
        assert {row["k"]: (row["b"], row["_column_seq"]) for row in rows.collect()} == {
            1: ("X", None),
            2: (None, {"b": ""}),
        }


def test_rows_under_other_columns_take_the_place_of_all_in_one_commit(world: World) -> None:
    """Identity, versions and the progress of other inputs go on; once per progress; what changed is every key or
    nobody knows; later changes join as ever.
    """
    name, table = "replaced", world.table("replaced")
    world.apply(name, [(1, upsert("10", 1, "X")), (2, upsert("10", 2, "Y"))])
    identity = world.format.identity(world.spark, table)
    ddl = f"k INT, b INT, c STRING, {merge.SYSTEM_DDL}"
    rows = world.frame((2, 7, "c", "10", False, {"b": ""}, 1), (3, 8, None, "11", False, None, 1), ddl=ddl)
    rows = rows.withMetadata("k", {"name": "k", "key": 0})
    for _ in range(2):
        applied = world.format.replace(rows, table, Progress("rebuild", 1))
        found = world.format.read(world.spark, table)
        assert (applied.version, world.format.identity(world.spark, table)) == (1, identity)
        assert found.dtypes[:3] == [("k", "int"), ("b", "int"), ("c", "string")]
        assert found.columns[3:] == list(merge.SYSTEM_COLUMNS)
        assert found.schema["k"].metadata == {"name": "k", "key": 0}
        by_key = {row["k"]: (row["b"], row["c"], row["_seq"], row["_column_seq"]) for row in found.collect()}
        assert by_key == {2: (7, "c", "10", {"b": ""}), 3: (8, None, "11", None)}
        assert world.format.progress(world.spark, table, "bronze") == Progress("bronze", 1)
        assert world.format.progress(world.spark, table, "rebuild") == Progress("rebuild", 1)
    changed = world.format.changed_keys(world.spark, table, 0, 1)
    assert changed is None or sorted(row["k"] for row in changed.collect()) == [1, 2, 3]
    world.format.apply(world.frame((3, 9, "z", "20", False, None, 2), ddl=ddl), table, Progress("bronze", 2))
    assert sorted(row["b"] for row in world.format.read(world.spark, table).collect()) == [7, 9]
    assert world.changed(table, 1, 2) == [3]


@pytest.mark.usefixtures("no_merge", "not_on_read")
def test_a_key_and_partitions_are_replaced_or_refused_and_a_dropped_table_is_gone(world: World) -> None:
    """A format that notes them for ever says so and leaves the rows; without a table the first version is made anew."""
    table = world.table("rekeyed")
    world.format.put(world.frame((1, "a", "upsert"), ddl="k INT, v STRING, _op STRING"), table, Progress("model", 0))
    other = Table("rekeyed", table.location, ("v",), ("k",))
    rows = world.frame((1, "a"), (1, "b"))
    if isinstance(world.format, HudiFormat):
        with pytest.raises(SchemaRefused, match="cannot be changed"):
            world.format.replace(rows, other, Progress("rebuild", 1))
        assert world.rows(table) == [(1, "a")]
    else:
        assert world.format.replace(rows, other, Progress("rebuild", 1)).version == 1
        assert world.rows(other) == [(1, "a"), (1, "b")]
        assert world.format.detail(world.spark, other).partition_by == ("k",)
        timed = rows.withColumn("t", F.lit(None).cast("timestamp_ntz"))
        replaced = world.format.replace(timed, other, Progress("rebuild", 2))
        assert (replaced.inserted, world.rows(other)) == (2, [(1, "a", None), (1, "b", None)])
        assert world.format.version(world.spark, other) == replaced.version
    for _ in range(2):
        world.format.drop(world.spark, table)
        assert world.format.version(world.spark, table) is None
    assert world.format.replace(rows.limit(1), other, Progress("rebuild", 1)).version == 0


@pytest.mark.usefixtures("no_merge", "not_on_read")
def test_a_table_that_is_made_again_has_another_identity(tmp_path: Path, world: World) -> None:
    """F-C6: its versions start anew, and progress that names the old one must be told apart."""
    table, seen = Table("t", f"{tmp_path}/t", ("k",)), []
    for _ in range(2):
        format_ = type(world.format)()
        assert format_.identity(world.spark, table) is None
        assert format_.version(world.spark, table) is None
        format_.append(world.frame((1, "a")), table, Progress("query", 3))
        assert format_.tables(world.spark, str(tmp_path)) == ("t",)
        seen.append(format_.identity(world.spark, table))
        assert seen[-1] == format_.identity(world.spark, table)
        shutil.rmtree(table.location, ignore_errors=True)
    assert None not in seen
    assert len(set(seen)) == 2


@pytest.mark.usefixtures("no_merge", "not_on_read")
def test_a_commit_is_told_from_another_of_its_number(tmp_path: Path, world: World) -> None:
    """F-C5: a table that is copied back keeps its identity, and goes on with numbers that it had."""
    table, format_ = Table("t", f"{tmp_path}/t", ("k",)), type(world.format)()
    assert format_.commit_id(world.spark, table, 0) is None
    format_.append(world.frame((1, "a")), table, Progress("query", 0))
    first = format_.commit_id(world.spark, table, 0)
    in_memory = format_._formats["memory"] if isinstance(format_, Mixed) else format_
    if isinstance(in_memory, MemoryFormat):
        kept = deepcopy(in_memory._tables)
    else:
        shutil.copytree(table.location, tmp_path / "copy")
    format_.append(world.frame((2, "b")), table, Progress("query", 1))
    identity, second = format_.identity(world.spark, table), format_.commit_id(world.spark, table, 1)
    if isinstance(in_memory, MemoryFormat):
        in_memory._tables = kept
    else:
        shutil.rmtree(table.location)
        (tmp_path / "copy").rename(table.location)
        format_ = type(world.format)()
    assert format_.commit_id(world.spark, table, 1) is None
    format_.append(world.frame((3, "c")), table, Progress("query", 1))
    assert (format_.identity(world.spark, table), format_.version(world.spark, table)) == (identity, 1)
    assert format_.commit_id(world.spark, table, 0) == first
    assert len({first, second, format_.commit_id(world.spark, table, 1), None}) == 4
    assert format_.commit_id(world.spark, table, 2) is None


@pytest.mark.usefixtures("no_merge")
def test_a_first_write_that_died_leaves_no_table(tmp_path: Path, world: World) -> None:
    """What has no commit is not among the tables of its folder, and the next write makes the table."""
    table = Table("t", f"{tmp_path}/t", ("k",), merge_on_read=world.merge_on_read)
    world.format.append(world.frame((1, "a")), table, Progress("query", 0))
    for commit in Path(table.location).glob("*/[0-9]*[0-9].*"):
        if commit.suffix in (".json", ".commit", ".deltacommit"):
            commit.unlink()
            commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
    if isinstance(world.format, MemoryFormat | Mixed):
        shutil.rmtree(table.location, ignore_errors=True)
        (tmp_path / "t").mkdir()
    restarted = type(world.format)()
    assert restarted.tables(world.spark, str(tmp_path)) == ()
    assert restarted.version(world.spark, table) is None
    restarted.apply(world.fold([(1, upsert("10", 1, "X"))]), table, Progress("bronze", 1))
    assert restarted.tables(world.spark, str(tmp_path)) == ("t",)
    assert states(restarted.read(world.spark, table).collect()) == {1: state(1, "X", "10")}


def test_files_without_a_commit_are_not_read(world: World) -> None:
    """A crash before the commit leaves the old table as it was, and the repeated batch is written once."""
    if not isinstance(world.format, DeltaFormat):
        pytest.skip("a crash leaves nothing of a table in memory")
    table = world.table("crashed")
    world.apply("crashed", [(1, upsert("10", 1, "X"))])
    orphan = world.fold([(1, upsert("20", 2, "Y")), (2, upsert("20", 2, "Y"))])
    orphan.coalesce(1).write.mode("append").parquet(f"{table.location}/part-of-a-crash")
    for file in Path(f"{table.location}/part-of-a-crash").glob("*.parquet"):
        file.rename(Path(table.location) / file.name)
    (Path(table.location) / "_delta_log" / "00000000000000000001.json.tmp").write_text('{"add":')
    restarted = DeltaFormat()
    assert restarted.version(world.spark, table) == 0
    assert restarted.progress(world.spark, table, "bronze") == Progress("bronze", 1)
    assert states(restarted.read(world.spark, table).collect()) == {1: state(1, "X", "10")}
    applied = restarted.apply(world.fold([(1, upsert("20", 2, "Y"))]), table, Progress("bronze", 2))
    assert (applied.updated, applied.version) == (1, 1)


@pytest.mark.usefixtures("not_on_read")
def test_odd_column_names_and_composite_keys_are_kept(world: World) -> None:
    """As stored names are encoded this is spaces and dots no more, but quotes must not depend on that."""
    ddl = SILVER.replace("k INT, a INT", "k INT, k2 STRING, `order` SMALLINT")
    table = Table("odd", f"{world.folder}/odd", ("k", "k2"))
    rows = [(1, "x", 1, "a", "10", False, None, 1), (1, "y", 2, "b", "10", False, None, 1)]
    world.format.apply(world.frame(*rows, ddl=ddl), table, Progress("bronze", 1))
    world.format.apply(world.frame((1, "y", 3, "c", "20", False, None, 2), ddl=ddl), table, Progress("bronze", 2))
    found = world.format.read(world.spark, table).select("k2", "`order`", "b").collect()
    assert sorted(map(tuple, found)) == [("x", 1, "a"), ("y", 3, "c")]
    assert dict(world.format.read(world.spark, table).dtypes)["order"] == "smallint"


def test_upkeep_changes_nothing_that_readers_see(world: World) -> None:
    """Beside a writer: rows, progress, and what changed since a version; files that nobody needs go."""
    table = world.table("kept")
    world.apply("kept", [(k, upsert("10", k, "X")) for k in (1, 2)])
    with ThreadPoolExecutor(1) as aside:
        for seq in ("20", "30"):
            upkeep = aside.submit(world.format.maintain, world.spark, table, 168)
            world.apply("kept", [(1, upsert(seq, 1, seq))])
            assert upkeep.result().files >= 0
    world.format.maintain(world.spark, table, 168)  # the last may have had its turn before the writer: a log is left
    done = world.format.maintain(world.spark, table, 0)
    assert done.files <= done.files_before
    assert world.states("kept") == {1: state(1, "30", "30"), 2: state(2, "X", "10")}
    assert world.format.progress(world.spark, table, "bronze") == Progress("bronze", 3)
    applied = world.apply("kept", [(2, upsert("50", 2, "Y"))])
    assert world.states("kept") == {1: state(1, "30", "30"), 2: state(2, "Y", "50")}
    assert world.changed(table, applied.version - 1, applied.version) == [2]
    since = world.format.changed_keys(world.spark, table, 0, applied.version)
    assert since is None or sorted(row["k"] for row in since.collect()) == [1, 2]
    try:
        assert world.format.version_at(world.spark, table, 0).version == 0
        assert world.states("kept", 0) == {1: state(1, "X", "10"), 2: state(2, "X", "10")}
    except VersionMissing as gone:
        oldest = int(re.search(r"The oldest one kept is version (\d+) of", str(gone))[1])
        assert world.format.version_at(world.spark, table, oldest).version == oldest
        assert world.states("kept", oldest)[2] == state(2, "X", "10")
    with pytest.raises(TableMissing):
        world.format.maintain(world.spark, world.table("never made"), 168)


def test_a_version_goes_by_its_number_and_by_its_time(world: World, told: Told) -> None:
    """Of a time it is the newest that was committed by then; what was never there is told with what there is."""
    table, marks, newest = world.table("told"), told.marks, told.applied[-1].version
    moments = [world.format.version_at(world.spark, table, version) for version in range(AGAIN + 1)]
    assert [each.version for each in moments] == list(range(AGAIN + 1))
    assert all(early < each.at < late for early, each, late in zip(marks[:-1], moments, marks[1:], strict=True))
    at = [*marks[1:], moments[1].at, moments[1].at - timedelta(milliseconds=1)]
    assert [world.format.version_at(world.spark, table, time).version for time in at] == [*range(AGAIN + 1), 1, 0]
    with pytest.raises(
        VersionMissing, match=rf"has no version {newest + 1} .* The newest is version {newest} of 20\d\d-"
    ):
        world.format.version_at(world.spark, table, newest + 1)
    with pytest.raises(VersionMissing, match=r"told did not exist at .* Its first version is version 0 of 20\d\d-"):
        world.format.version_at(world.spark, table, marks[0])
    with pytest.raises(TableMissing):
        world.format.version_at(world.spark, world.table("never made"), 0)


def _mark() -> datetime:
    """A time that no commit shares, whatever fractions of a second its clock has."""
    time.sleep(0.02)
    now = datetime.now(timezone.utc)
    time.sleep(0.02)
    return now


@pytest.mark.usefixtures("no_merge", "not_on_read")
def test_upkeep_appends_nothing(world: World) -> None:
    """Rows that were written together are not news; where their files are gone, the caller reads everything."""
    table, ddl = Table("tidy", f"{world.folder}/tidy", partition_by=("topic",)), "topic STRING, v INT"
    for value in range(3):
        world.format.append(world.frame(("a", value), ddl=ddl), table, Progress("query", value))
    world.format.maintain(world.spark, table, 168)
    version = world.format.version(world.spark, table)
    assert len(world.format.arrivals(world.spark, table, 0, version) or "..") == 2
    added = world.format.added(world.spark, table, {("a",): 0}, version)
    assert sorted(row["v"] for row in added.collect()) == [1, 2]
    world.format.maintain(world.spark, table, 0)
    left = world.format.added(world.spark, table, {("a",): 0}, world.format.version(world.spark, table))
    assert left is None or sorted(row["v"] for row in left.collect()) == [1, 2]
    assert sorted(row["v"] for row in world.format.read(world.spark, table).collect()) == [0, 1, 2]
    assert world.format.append(world.frame(("a", 3), ddl=ddl), table, Progress("query", 2)).inserted == 0
