"""Bronze -> silver with a history beside it (SCD 2): progress, crashes, truncates, moved keys, columns that change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from replicator import failpoints, key_spans
from replicator.cli.views import register
from replicator.errors import BronzeReplaced, TableStopped
from replicator.formats.control import JsonControl, MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import retry
from replicator.operate.dead_letters import LetterFilter
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.operate.status import StatusInputs, list_statuses
from replicator.spec import Column, Declaration, SourceSpec, Transform
from replicator.stages import silver
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.transforms import history
from replicator.transforms.live import select_live
from tests.builders import UNSENT, Record, bronze, envelope, record
from tests.unit.test_schema_change import change as typed

pytestmark = pytest.mark.spark

ORDERS = "shop.orders"
COLUMNS = (Column("id", "int"), Column("v", "int"), Column("t", "string"))


class ProcessDied(BaseException):
    """Nothing of ours runs after it."""


def die(*_: Any) -> None:
    raise ProcessDied


def die_at(wanted: str, name: str) -> None:
    if name == wanted:
        raise ProcessDied


@dataclass
class World:
    """A source's silver and its histories, in memory or in Delta."""

    spark: SparkSession
    folder: Path
    format: Any = field(default_factory=MemoryFormat)
    control: Any = field(default_factory=MemoryControl)

    def __post_init__(self) -> None:
        table = Declaration(ORDERS, COLUMNS, stored_as_scd_type=2)
        spec = SourceSpec("s", ".*", tables=(table,))
        self.at = Refinement(spec, self.format, self.format, self.control, Lake(str(self.folder)))

    def declare(self, **told: Any) -> None:
        """Another declaration of the table, and another process that knows nothing of the one before."""
        table = replace(self.at.source.tables[0], **told)
        spec = replace(self.at.source, tables=(table,))
        self.at = Refinement(spec, self.format, self.format, self.control, self.at.lake)

    def take(self, *records: Record) -> Account:
        """One batch."""
        [account] = self.take_all(records)
        return account

    def take_all(self, records: Sequence[Record]) -> list[Account]:
        """One batch of all tables."""
        if records:
            self.format.append(bronze(self.spark, records), self.at.lake.bronze("s"), None)
        accounts = silver.refine(self.spark, self.at)
        assert all(account.error is not None or account.residue == 0 for account in accounts)
        return accounts

    def history(self, table: str = ORDERS) -> dict[int, list[tuple[Any, ...]]]:
        """Per key what it was: (from pos, to pos, v, t)."""
        rows = self.format.read(self.spark, self.at.lake.history("s", table))
        shown = select_live(rows).orderBy("__START_AT").collect()
        found: dict[int, list[tuple[Any, ...]]] = {}
        for row in shown:
            ends = (pos(row["__START_AT"]), pos(row["__END_AT"]))
            found.setdefault(row["id"], []).append((*ends, row["v"], row["t"]))
        return found

    def current(self, table: str = ORDERS) -> dict[int, tuple[Any, ...]]:
        """The live rows of silver: (v, t)."""
        rows = select_live(self.format.read(self.spark, self.at.lake.silver("s", table))).collect()
        return {row["id"]: (row["v"], row["t"]) for row in rows}

    def agrees(self) -> None:
        """What holds now in the history is what silver shows."""
        open_rows = {key: rows[-1][2:] for key, rows in self.history().items() if rows[-1][1] is None}
        assert open_rows == self.current()


def pos(seq: str | None) -> int | None:
    """The binlog position in a ``_seq``."""
    return None if seq is None else int(seq[12:24], 16)


@pytest.fixture
def world(exact: SparkSession, tmp_path: Path) -> World:
    return World(exact, tmp_path)


def row(key: int, v: Any, t: Any = "x") -> dict[str, Any]:
    return {"id": key, "v": v, "t": t}


def change(offset: int, op: str, key: int, v: Any = None, t: Any = "x", at: int | None = None, **more: Any) -> Record:
    """A change of a key at ``at`` of the binlog, ten times its offset if not given."""
    image, table = {"before": row(key, None)} if op == "d" else {"after": row(key, v, t)}, more.pop("table", ORDERS)
    return record(f"s.{table}", offset, {"id": key}, envelope(op, pos=at or 10 * offset, table=table, **image), **more)


def truncate(offset: int, table: str = ORDERS) -> Record:
    return record(f"s.{table}", offset, None, envelope("t", pos=10 * offset, table=table))


STORY = [
    change(1, "c", 1, 1),
    change(2, "c", 2, 1),
    change(3, "u", 1, 2, UNSENT),
    change(4, "d", 2),
    change(5, "u", 1, 2),
    truncate(6),
    change(7, "c", 2, 3),
    change(8, "c", 1, 4, "y"),
    truncate(9),
    change(10, "c", 3, 5),
    change(11, "u", 3, 6, UNSENT),
    change(12, "u", 3, 6, at=110),
]
TOLD = {
    1: [(10, 30, 1, "x"), (30, 60, 2, "x"), (80, 90, 4, "y")],
    2: [(20, 40, 1, "x"), (70, 90, 3, "x")],
    3: [(100, 110, 5, "x"), (110, None, 6, "x")],
}


def test_a_story_is_told_as_it_happened(world: World) -> None:
    """Deletes and truncates end an interval, what changes nothing begins none, what was not sent is carried on."""
    world.take(*STORY[:5])
    world.take(*STORY[5:])
    assert world.history() == TOLD
    world.agrees()


def test_in_delta_the_newest_half_may_come_first(exact: SparkSession, tmp_path: Path) -> None:
    """P1: rows that were stored are split and ended anew; the table is one that any reader of Delta asks by SQL, and
    `status` counts its intervals.
    """
    delta = World(exact, tmp_path, DeltaFormat(), JsonControl(exact))
    delta.take(*STORY[6:])
    delta.take(*STORY[:6])
    assert delta.history() == TOLD
    delta.agrees()
    session = exact.newSession()
    assert "orders__history" in register(session, DeltaFormat(), delta.at.lake, "orders__history")
    query = "SELECT v FROM orders__history WHERE id = 1 AND __START_TIME IS NOT NULL ORDER BY __START_AT"
    assert [r["v"] for r in session.sql(query).collect()] == [1, 2, 4]
    found = list_statuses(exact, StatusInputs(delta.at.lake, delta.format, delta.control, {}, {}, (), {}))
    assert [(s.rows, s.lag_events) for s in found if (s.layer, s.table) == ("history", "s/shop.orders__history")] == [
        (7, 0)
    ]


def test_of_a_large_history_no_more_is_read_than_what_may_hold_a_key_of_the_tick(
    exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files and parts of files that end below the keys, as those of older rows do, are left out."""
    world, filters, difference = World(exact, tmp_path, DeltaFormat()), list[str](), history.difference

    def watched(stored: DataFrame | None, *told: Any, **more: Any) -> DataFrame:
        if stored is not None:
            scan = stored._jdf.queryExecution().sparkPlan().collectLeaves().apply(0)
            filters.append(scan.metadata().apply("PushedFilters"))
        return difference(stored, *told, **more)

    monkeypatch.setattr(history, "difference", watched)
    world.take(*(change(n, "c", n, n) for n in range(1, 10)))
    world.take(change(10, "u", 9, 10), change(11, "c", 10, 1))
    monkeypatch.setattr(key_spans, "_READ_WHOLE_BYTES", 0)
    world.take(change(12, "u", 9, 11), change(13, "u", 10, 2))
    assert [("GreaterThanOrEqual(id,9)" in each, "LessThanOrEqual(id,10)" in each) for each in filters] == [
        (False, False),
        (True, True),
    ]
    world.agrees()
    assert world.history()[9] == [(90, 100, 9, "x"), (100, 120, 10, "x"), (120, None, 11, "x")]


def test_a_crash_between_the_two_commits_is_repaired_by_the_next_tick(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history is written before silver, each with its own progress; the older of the two decides what is read."""
    world.take(*STORY[:4])
    monkeypatch.setattr(world.format, "apply", die)
    world.format.append(bronze(world.spark, STORY[4:8]), world.at.lake.bronze("s"), None)
    with pytest.raises(ProcessDied):
        silver.refine(world.spark, world.at)
    monkeypatch.undo()
    assert len(world.history()[1]) == 3
    world.take(*STORY[8:])
    assert world.history() == TOLD
    world.agrees()


def test_an_interrupted_rebuild_begins_anew_where_the_history_alone_has_gone_on(world: World) -> None:
    """Its shadow knows nothing of what a run has told the history since, which died before it told the table."""
    world.take(change(0, "c", 1, 1, at=10))
    with failpoints.watched(partial(die_at, "rebuild.made")), pytest.raises(ProcessDied):
        rebuild(world.spark, world.at, ORDERS, RebuildOptions())
    with failpoints.watched(partial(die_at, "silver.history_kept")), pytest.raises(ProcessDied):
        world.take(change(1, "u", 1, 2, at=20))
    assert rebuild(world.spark, world.at, ORDERS, RebuildOptions()).changed == 1
    assert (world.history(), world.take_all([])) == ({1: [(10, 20, 1, "x"), (20, None, 2, "x")]}, [])
    world.agrees()


def test_a_history_that_is_asked_for_later_is_built_from_bronze(world: World) -> None:
    """The table is there already; its topics are read once more from the beginning, and silver stays as it was."""
    world.declare(stored_as_scd_type=1)
    world.take(*STORY[:8])
    assert world.format.version(world.spark, world.at.lake.history("s", "shop.orders")) is None
    world.declare(stored_as_scd_type=2)
    assert world.take(*STORY[8:]).read == len(STORY)
    assert world.history() == TOLD
    world.agrees()


def test_what_happened_while_no_history_was_kept_is_made_up_for(world: World) -> None:
    """It goes on from where it had come, whatever silver has applied since."""
    world.take(*STORY[:2])
    world.declare(stored_as_scd_type=1)
    world.take(*STORY[2:8])
    world.declare(stored_as_scd_type=2)
    assert world.take(*STORY[8:]).read == len(STORY) - 2
    assert world.history() == TOLD


def test_a_history_that_is_switched_off_gets_what_no_later_batch_brings(world: World) -> None:
    """A retry applies what lies behind where it goes on; what a rebuild makes anew it may not have as it was."""
    world.take(change(1, "c", 1, 1, "A1"), replace(change(2, "u", 1, 2, "A1"), key=None))
    world.declare(stored_as_scd_type=1, keys=("id",))
    assert [done.applied for done in retry.retry(world.spark, world.at, LetterFilter())] == [1]
    world.take(change(3, "u", 1, 3, "A1"))
    world.declare(stored_as_scd_type=2)
    world.take(change(4, "c", 2, 1, "A1"))
    assert world.history() == {
        1: [(10, 20, 1, "A1"), (20, 30, 2, "A1"), (30, None, 3, "A1")],
        2: [(40, None, 1, "A1")],
    }
    world.declare(stored_as_scd_type=1, transform=Transform(masked=("t",)))
    world.take_all([change(5, "u", 2, 5, "A1")])
    rebuild(world.spark, world.at, ORDERS, RebuildOptions(accept_gap=True))
    world.declare(stored_as_scd_type=2)
    world.take(change(6, "d", 2))
    assert world.history() == {
        1: [(10, 20, 1, "Xn"), (20, 30, 2, "Xn"), (30, None, 3, "Xn")],
        2: [(40, 50, 1, "Xn"), (50, 60, 5, "Xn")],
    }


def test_a_table_may_begin_with_a_truncate(exact: SparkSession, tmp_path: Path) -> None:
    """T4: nothing but a TRUNCATE tells no column, and makes no table, so that it empties none: it is ignored, and not
    read again with the next one. What comes late is below it all the same. So it is behind a transform, and in
    partitions.
    """
    plain = Declaration("shop.plain", COLUMNS, stored_as_scd_type=2)
    where = replace(plain, table="shop.filtered", transform=Transform(where="t <> 'gone'"))
    parts = replace(plain, table="shop.parted", partition_by=("t",))
    world, tables = World(exact, tmp_path, DeltaFormat(), JsonControl(exact)), (plain, where, parts)
    world.at = replace(world.at, source=replace(world.at.source, tables=tables))
    told = {each.table: list[tuple[Any, ...]]() for each in tables}
    for step in (
        [truncate(2, table) for table in told],
        [truncate(3, table) for table in told],
        [change(4, "c", 1, v=1, table=table) for table in told],
        [change(5, "c", 2, v=2, at=20, table=table) for table in told],
    ):
        for each in world.take_all(step):
            word = (each.error, each.applied, each.superseded, dict(each.ignored))
            told[each.table.removeprefix("s/")].append(word)
    nothing = (None, 0, 0, {"truncate_of_no_table": 1})
    both: tuple[None, int, int, dict[str, int]] = (None, 3, 0, {})
    assert told == {table: [nothing, nothing, both, (None, 0, 1, {})] for table in told}
    for table in told:
        assert world.current(table) == {1: (1, "x")}, table
        assert world.history(table) == {1: [(40, None, 1, "x")], 2: [(20, 30, 2, "x")]}, table


def test_a_row_that_changes_its_key_goes_on_under_the_new_one(world: World) -> None:
    """M7: the old key's interval ends, and the new key's first one has what was not sent again."""
    world.take(change(1, "c", 1, 1, "large"))
    moved = (("__debezium.oldkey", b'{"id":1}'),)
    gone = (("__debezium.newkey", b'{"id":2}'),)
    world.take(
        change(2, "d", 1, headers=gone),
        change(3, "c", 2, 2, UNSENT, at=20, headers=moved),
        change(4, "u", 2, 3, UNSENT),
    )
    assert world.history() == {1: [(10, 20, 1, "large")], 2: [(20, 40, 2, "large"), (40, None, 3, "large")]}
    world.agrees()


def test_columns_follow_those_of_silver(world: World) -> None:
    """A new column is NULL in what was; a wider type and one that no widening reaches are there in both tables."""
    world.declare(columns=())
    world.take(typed(1, 1, {"v": ("int32", 1)}), typed(2, 1, {"v": ("int64", 1 << 40), "w": ("string", "new")}))
    world.take(typed(3, 1, {"v": ("string", "text")}))
    rows = world.format.read(world.spark, world.at.lake.history("s", "shop.orders"))
    silver_types = dict(world.format.read(world.spark, world.at.lake.silver("s", "shop.orders")).dtypes)
    assert silver_types.items() <= dict(rows.dtypes).items()
    shown = select_live(rows).orderBy("__START_AT").drop("__START_AT", "__END_AT", "__START_TIME", "__END_TIME", "id")
    assert [tuple(each) for each in shown.collect()] == [
        (1, None, None), (1 << 40, "new", None), (None, None, "text"),
    ]  # fmt: skip


def test_a_history_of_another_bronze_is_not_mixed_with_this_one(world: World) -> None:
    """F-C6: the table stops and says which folder is left from before."""
    world.take(*STORY[:2])
    for table in (world.at.lake.bronze("s"), world.at.lake.silver("s", "shop.orders")):
        del world.format._tables[table.location]
    account = world.take(change(1, "c", 1, 1))
    assert isinstance(account.error, BronzeReplaced)
    assert "shop.orders__history" in str(account.error)


def test_a_column_is_not_rebuilt_alone_where_states_would_end_elsewhere(exact: Any, tmp_path: Path) -> None:
    """A state ends where any column changes: two that looked the same come apart with the column's other type."""
    world = World(exact, tmp_path)
    world.declare(columns=(Column("id", "int"), Column("v", "float"), Column("t", "string")))
    world.take(change(0, "c", 1, 1.00000001, at=10), change(1, "u", 1, 1.00000002, at=20))
    world.declare(columns=(Column("id", "int"), Column("v", "double"), Column("t", "string")))
    with pytest.raises(TableStopped, match="states of the history have other validity periods"):
        rebuild(exact, world.at, "shop.orders", RebuildOptions(column="v"))
    rebuild(exact, world.at, "shop.orders", RebuildOptions())
    assert [(row[0], row[1]) for row in world.history()[1]] == [(10, 20), (20, None)]
