"""Bronze -> silver while the source's columns change: policies, order, batching, the ledger."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from replicator.cli import app
from replicator.errors import ConfigError, SchemaRefused
from replicator.formats.control import JsonControl, MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import purge, schema
from replicator.spec import Declaration, SourceSpec
from replicator.stages import silver
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.stages.table import column_backfill
from replicator.stages.tick.source_state import SourceState
from replicator.transforms.live import select_live
from tests.builders import UNSENT, Record, bronze, envelope, record, wrapped

pytestmark = pytest.mark.spark

ORDERS = "shop.orders"


@dataclass
class World:
    """A source's silver, with one table unless there are more, which take records in batches."""

    spark: SparkSession
    folder: Path
    declared: Declaration = field(default_factory=lambda: Declaration(ORDERS))
    delta: bool = False
    more: tuple[Declaration, ...] = ()

    def __post_init__(self) -> None:
        format_: Any = DeltaFormat() if self.delta else MemoryFormat()
        control: Any = JsonControl(self.spark) if self.delta else MemoryControl()
        source = SourceSpec("s", ".*", tables=(self.declared, *self.more))
        self.at = Refinement(source, format_, format_, control, Lake(str(self.folder)))

    def take(self, *records: Record) -> Account:
        """One batch, and what became of it."""
        [account] = self.take_all(records)
        return account

    def take_all(self, records: Iterable[Record]) -> list[Account]:
        """One batch, and what became of it, by table."""
        self.at.bronze.append(bronze(self.spark, records), self.at.lake.bronze("s"), None)
        accounts = silver.refine(self.spark, self.at)
        assert all(account.residue == 0 or account.error is not None for account in accounts)
        return accounts

    def rows(self, table: str = ORDERS) -> dict[int, dict[str, Any]]:
        """Every row at rest, by id, without the system columns that are told otherwise."""
        rows = self.at.silver.read(self.spark, self.at.lake.silver("s", table)).drop("_source_ts_ms")
        return {row["id"]: row.asDict() for row in rows.collect()}

    def shown(self, table: str = ORDERS) -> dict[int, dict[str, Any]]:
        """What users see of live rows, by id."""
        rows = select_live(self.at.silver.read(self.spark, self.at.lake.silver("s", table)))
        return {row["id"]: row.asDict() for row in rows.collect()}

    def states(self, table: str, condition: str) -> list[tuple[Any, ...]]:
        """(id, v, x, _column_seq) of states of its history, by id and time."""
        rows = self.at.silver.read(self.spark, self.at.lake.history("s", table)).where(condition)
        found = rows.orderBy("id", "__START_AT").collect()
        return [(row["id"], row["v"], row["x"], row["_column_seq"]) for row in found]

    def types(self, table: str = ORDERS) -> dict[str, str]:
        """The columns of the source with their types."""
        rows = self.at.silver.read(self.spark, self.at.lake.silver("s", table))
        return {column: kind for column, kind in rows.dtypes if not column.startswith("_")}

    def ledger(self, table: str = ORDERS) -> dict[str, Any]:
        """The control row of the table."""
        return self.at.control.get(self.at.lake.schema("s", table)) or {}

    def letters(self, table: str = ORDERS) -> dict[int, tuple[str, str | None]]:
        """Reason and detail of each dead letter, by offset."""
        rows = self.at.bronze.read(self.spark, self.at.lake.dead_letters("s")).where(f"topic = 's.{table}'").collect()
        return {row["offset"]: (row["reason"], row["detail"]) for row in rows}


def change(offset: int, key: int, columns: Mapping[str, tuple[str, Any]], op: str = "u", table: str = ORDERS) -> Record:
    """A record with a schema block: ``columns`` beside the id as (Connect type, value); its place is its offset."""
    kinds = {"id": "int32"} | {name: kind for name, (kind, _) in columns.items()}
    values = {"id": key} | {name: value for name, (_, value) in columns.items()}
    fields = [{"field": name, "type": kind, "optional": name != "id"} for name, kind in kinds.items()]
    row = [{"field": image, "type": "struct", "fields": fields, "optional": True} for image in ("before", "after")]
    told = wrapped(
        envelope(op, None if op == "d" else values, values if op == "d" else None, pos=100 + offset, table=table),
        {"type": "struct", "fields": [*row, {"field": "op", "type": "string"}]},
    )
    key_block = {"type": "struct", "fields": [{"field": "id", "type": "int32", "optional": False}]}
    return record(f"s.{table}", offset, wrapped({"id": key}, key_block), told)


def history(table: str = ORDERS) -> tuple[Record, ...]:
    """A column widens, becomes text, and another one comes; row 1 is written again after that."""
    return (
        change(0, 1, {"v": ("int32", 10)}, "c", table),
        change(1, 2, {"v": ("int64", 1 << 40)}, "c", table),
        change(2, 3, {"v": ("string", "three"), "w": ("int32", 3)}, "c", table),
        change(3, 1, {"v": ("string", "one"), "w": ("int32", 1)}, table=table),
    )


HISTORY = history()


def cut(records: Sequence[Record], *sizes: int) -> list[list[Record]]:
    """The records in batches of these sizes."""
    rest = iter(records)
    return [list(itertools.islice(rest, size)) for size in sizes]


WAYS = {
    "shop.at_once": ((0, 1, 2, 3), (4,)),
    ORDERS: ((0, 1, 2, 3), (1, 1, 1, 1)),
    "shop.backwards": ((3, 2, 1, 0), (1, 1, 1, 1)),
    "shop.two_schemas_in_each_batch": ((1, 3, 0, 2), (2, 2)),
}
"""The history in other orders and batches, by table: all of it in one batch is what the others have to end in."""


def end(world: World, table: str) -> tuple[Any, ...]:
    """Columns, rows and first sightings of a table."""
    return dict(sorted(world.types(table).items())), world.rows(table), world.ledger(table)["since"]


def parted(batches: Mapping[str, Sequence[Sequence[Record]]]) -> list[list[Record]]:
    """The n-th batch of every table in one."""
    every = itertools.zip_longest(*batches.values(), fillvalue=())
    return [[each for part in parts for each in part] for parts in every]


@pytest.fixture(scope="module")
def turned(exact: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    """What the history ends in, in all ways."""
    told = [Declaration(table) for table in WAYS]
    world = World(exact, tmp_path_factory.mktemp("turned"), told[0], more=tuple(told[1:]))
    batches = {table: cut([history(table)[at] for at in order], *sizes) for table, (order, sizes) in WAYS.items()}
    for batch in parted(batches):
        assert [account.error for account in world.take_all(batch) if account.error] == []
    return world


@pytest.fixture(scope="module")
def wanted(turned: World) -> tuple[Any, ...]:
    """What the history ends in: all of it in one batch."""
    return end(turned, "shop.at_once")


def test_a_column_whose_type_changed_goes_on_in_a_second_one(turned: World) -> None:
    """G3, evolve: old rows keep their values; a row that is written again has its value in the new column alone."""
    assert turned.types() == {"id": "int", "v": "bigint", "v__v2": "string", "w": "int"}
    assert turned.shown() == {
        1: {"id": 1, "v": None, "v__v2": "one", "w": 1},
        2: {"id": 2, "v": 1 << 40, "v__v2": None, "w": None},
        3: {"id": 3, "v": None, "v__v2": "three", "w": 3},
    }
    told = {
        (each["change"], each["column"], each["from"], each["to"]): each["at"] for each in turned.ledger()["changes"]
    }
    assert list(told) == [
        ("widened", "v", "int", "bigint"),
        ("versioned", "v", "bigint", "string"),
        ("added", "w", "", "int"),
    ]
    places = [turned.rows()[key]["_seq"] for key in (2, 3, 3)]
    assert list(told.values()) == places


@pytest.mark.parametrize("table", WAYS)
def test_the_same_records_in_any_order_and_batches_end_in_the_same_table(
    turned: World, wanted: tuple[Any, ...], table: str
) -> None:
    """P1, P2, G2: schemas are in the order of `_seq`; what came first and is newer has to give way."""
    assert end(turned, table) == wanted


def test_the_same_records_in_any_order_end_in_the_same_table_in_delta(
    exact: SparkSession, tmp_path: Path, wanted: tuple[Any, ...]
) -> None:
    """P1, G2: in every format."""
    world = World(exact, tmp_path, delta=True)
    for batch in cut([HISTORY[at] for at in (2, 0, 3, 1)], 1, 3):
        assert world.take(*batch).error is None
    assert end(world, ORDERS) == wanted


@pytest.mark.parametrize("sizes", [(1, 3), (1, 1, 2)], ids=str)
def test_a_row_that_moves_keeps_a_value_that_goes_to_another_column(
    exact: SparkSession, tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    """G2, M7: a late record of an older type takes the plain name, in the batch in which a row inherits the newer."""
    text, unsent = {"v": ("string", "large")}, {"v": ("string", UNSENT)}
    old, new = (f"__debezium.{name}" for name in ("oldkey", "newkey"))
    left = replace(change(10, 1, text, "d"), headers=((new, b'{"id": 2}'),))
    came = replace(change(10, 2, unsent, "c"), offset=11, headers=((old, b'{"id": 1}'),))
    world = World(exact, tmp_path)
    for batch in cut([change(5, 1, text, "c"), change(2, 9, {"v": ("int32", 9)}, "c"), left, came], *sizes):
        assert world.take(*batch).error is None
    assert world.shown() == {
        2: {"id": 2, "v": None, "v__v2": "large"},
        9: {"id": 9, "v": 9, "v__v2": None},
    }


def test_rows_that_swap_keys_beside_a_new_column_both_survive(exact: SparkSession, tmp_path: Path) -> None:
    """G3, C5: what held a key before the batch has no such column yet."""
    old, new = (f"__debezium.{name}" for name in ("oldkey", "newkey"))
    wide = {n: {"v": ("int32", 10 * n), "w": ("int32", n)} for n in (1, 2)}
    moves = [(1, 2), (2, 1)]
    told = []
    for n, (left, came) in enumerate(moves):
        tag = {name: json.dumps({"id": key}).encode() for name, key in ((new, came), (old, left))}
        gone, here = change(10, left, wide[left], "d"), change(10, came, wide[left], "c")
        told.append(replace(gone, offset=10 + 2 * n, headers=((new, tag[new]),)))
        told.append(replace(here, offset=11 + 2 * n, headers=((old, tag[old]),)))
    world = World(exact, tmp_path)
    assert world.take(change(1, 1, {"v": ("int32", 10)}, "c"), change(2, 2, {"v": ("int32", 20)}, "c")).error is None
    assert world.take(*told).error is None
    assert world.shown() == {1: {"id": 1, "v": 20, "w": 2}, 2: {"id": 2, "v": 10, "w": 1}}


def test_under_fail_the_table_stops_before_anything_is_written(exact: SparkSession, tmp_path: Path) -> None:
    """G3, fail: what widens goes on; the change is named, and the run after it says the same."""
    world = World(exact, tmp_path, Declaration("shop.orders", schema_changes="fail"))
    assert world.take(*HISTORY[:2]).error is None
    before = world.rows()
    for records in (HISTORY[2:3], HISTORY[3:]):
        error = world.take(*records).error
        assert isinstance(error, SchemaRefused)
        assert "column v changed from bigint to string" in str(error)
    assert world.rows() == before
    assert [each["change"] for each in world.ledger()["changes"]] == ["widened"]


def test_under_freeze_what_does_not_fit_is_a_dead_letter_and_the_rest_goes_on(
    exact: SparkSession, tmp_path: Path
) -> None:
    """G3, freeze: by the type of the record, in any batches; deletes need no more than their key."""
    ways = {ORDERS: (6,), "shop.in_batches": (2, 1, 3)}

    def sent(table: str) -> tuple[Record, ...]:
        four = change(4, 4, {"v": ("int32", 4), "x": ("int32", 4)}, "c", table)
        return (*history(table), four, change(5, 1, HISTORY_V, "d", table))

    told = [Declaration(table, schema_changes="freeze") for table in ways]
    world = World(exact, tmp_path, told[0], more=tuple(told[1:]))
    for batch in parted({table: cut(sent(table), *sizes) for table, sizes in ways.items()}):
        assert [account.error for account in world.take_all(batch) if account.error] == []
    for table in ways:
        assert world.types(table) == {"id": "int", "v": "int"}, table
        assert world.shown(table) == {4: {"id": 4, "v": 4}}, table
        assert world.rows(table)[1]["_deleted"], table
        assert world.letters(table) == dict.fromkeys((1, 2, 3), ("incompatible_schema", "v")), table


HISTORY_V: Mapping[str, tuple[str, Any]] = {"v": ("string", None)}


def test_diff_tells_what_the_next_run_does_and_changes_nothing(exact: SparkSession, tmp_path: Path) -> None:
    """Issue of every policy: what is applied, what needs approval, what becomes of the rest."""
    policies = {f"shop.{policy}s": policy for policy in ("evolve", "fail", "freeze")}
    told = [Declaration(table, schema_changes=policy) for table, policy in policies.items()]
    world = World(exact, tmp_path, told[0], more=tuple(told[1:]))
    world.take_all([history(table)[0] for table in policies])

    def held() -> list[Any]:
        return [(world.types(table), world.rows(table), world.ledger(table)) for table in policies]

    before = held()
    assert schema.pending_changes(exact, [world.at]) == []
    later = [each for table in policies for each in history(table)[2:]]
    world.at.bronze.append(bronze(exact, later), world.at.lake.bronze("s"), None)
    then = {}
    for table, policy in policies.items():
        found = schema.pending_changes(exact, [world.at], f"s/{table}")
        then[policy] = {(each.change, each.column, each.before, each.after): each.then for each in found}
    assert held() == before
    version, new = ("versioned", "v", "int", "string"), ("added", "w", "", "int")
    assert then == {
        "evolve": {version: "applied", new: "applied"},
        "fail": {version: "needs approval", new: "applied"},
        "freeze": {version: "dead letters", new: "stays in bronze"},
    }
    for name in ("shop.evolve", "s/shop.evolve"):
        with pytest.raises(ConfigError, match=rf"'{name}' yet; did you mean 's/shop[.]evolves'"):
            schema.pending_changes(exact, [world.at], name)


def test_an_approved_change_is_made_by_the_next_run_although_the_policy_says_fail(
    exact: SparkSession, tmp_path: Path, wanted: tuple[Any, ...]
) -> None:
    """Exactly that change: the table ends as under evolve, the approval stays, and the next change needs its own."""
    world = World(exact, tmp_path, Declaration("shop.orders", schema_changes="fail"))
    world.take(*HISTORY[:2])
    assert world.take(HISTORY[2]).error is not None
    [approved] = schema.approve(exact, [world.at], "shop.orders")
    assert (approved.column, approved.before, approved.after) == ("v", "bigint", "string")
    assert schema.approve(exact, [world.at], "shop.orders") == []
    assert world.take(HISTORY[3]).error is None
    assert (world.types(), world.rows()) == wanted[:2]
    shown = schema.describe(exact, [world.at], "s/shop.orders")
    assert [(c.column, c.name, c.type, c.key) for c in shown.columns] == [
        ("id", "id", "int", 0), ("v", "v", "bigint", None), ("v__v2", "v__v2", "string", None), ("w", "w", "int", None),
    ]  # fmt: skip
    assert [change.kind for _, change in shown.changes] == ["widened", "versioned", "added"]
    assert shown.approved == (approved,)
    assert isinstance(world.take(change(9, 1, {"v": ("boolean", True)})).error, SchemaRefused)


def test_the_command_line_shows_approves_and_tells(exact: SparkSession, tmp_path: Path) -> None:
    """`schema diff` is 1 while a table would stop, `--approve` lets it pass, `show` knows why each column is there."""
    world = World(exact, tmp_path / "lake", Declaration("shop.orders", schema_changes="fail"), delta=True)
    world.take(HISTORY[0])
    world.at.bronze.append(bronze(exact, HISTORY[2:3]), world.at.lake.bronze("s"), None)
    declared = tmp_path / "declare.yaml"
    declared.write_text("tables: {shop.orders: {schema_changes: fail}}")
    flags = ["--lake", str(tmp_path / "lake"), "--declare", str(declared), "--json"]
    code, told = call("diff", *flags)
    version = {"table": "s/shop.orders", "change": "versioned", "column": "v", "from": "int", "to": "string", "why": ""}
    new = {"table": "s/shop.orders", "change": "added", "column": "w", "from": "", "to": "int", "why": ""}
    assert (code, told) == (1, [new | {"then": "applied"}, version | {"then": "needs approval"}])
    code, told = call("diff", "--approve", "shop.orders", *flags)
    assert (code, told) == (0, [version | {"then": "applied"}, new | {"then": "applied"}])
    assert world.take(HISTORY[3]).error is None
    assert call("diff", *flags) == (0, [])
    code, told = call("show", "shop.orders", *flags[:2], "--json")
    assert (code, told["table"], told["columns"][2]["column"]) == (0, "s/shop.orders", "v__v2")
    assert [each["change"] for each in told["changes"]] == ["versioned", "added"]
    assert call("show", "orders", *flags[:2], "--json") == (code, told), "its last part is enough"
    assert call("diff", "orders", *flags) == (0, [])


def call(*words: str) -> tuple[int, Any]:
    """Exit code and JSON of ``replicator schema ...``."""
    done = CliRunner().invoke(app, ["schema", *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, json.loads(done.stdout)


def test_a_key_of_another_type_stops_the_table(exact: SparkSession, tmp_path: Path) -> None:
    """C6: whatever the policy; nothing is written."""
    world = World(exact, tmp_path)
    world.take(HISTORY[0])
    key_block = {"type": "struct", "fields": [{"field": "id", "type": "string", "optional": False}]}
    other = record(f"s.{ORDERS}", 9, wrapped({"id": "1"}, key_block), HISTORY[1].value)
    error = world.take(other).error
    assert isinstance(error, SchemaRefused)
    assert "the key changed: column id changed from int to string" in str(error)
    [told] = schema.pending_changes(exact, [world.at])
    assert told.then == "stops the table"
    assert "the key changed" in told.why


def frozen(spark: SparkSession, folder: Path, **more: Any) -> World:
    """A table that was kept from column x, also where its rows changed it: of row 2 bronze has all, row 3 is deleted,
    row 4 does not have it at the source.
    """
    world = World(spark, folder, Declaration("shop.orders", schema_changes="freeze", **more))
    world.take(change(0, 1, {"v": ("int32", 10)}, "c"), change(1, 2, {"v": ("int32", 20)}, "c"))
    two = change(2, 2, {"v": ("int32", 21), "x": ("int32", 7)}), change(3, 3, {"v": ("int32", 3), "x": ("int32", 3)})
    world.take(*two, change(4, 4, {"v": ("int32", 40)}, "c"))
    world.take(change(5, 2, {"v": ("int32", 22), "x": ("int32", 8)}), change(6, 3, {"v": ("int32", 3)}, "d"))
    assert world.types() == {"id": "int", "v": "int"}
    assert world.ledger()["left_out"] == ["x"]
    return world


@pytest.fixture(scope="module")
def ice(exact: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Such a table, which no test may change."""
    return frozen(exact, tmp_path_factory.mktemp("frozen"))


@pytest.fixture
def cold(ice: World) -> World:
    """A copy of it."""
    format_, control = deepcopy((ice.at.silver, ice.at.control))
    other = World(ice.spark, ice.folder, ice.declared)
    other.at = replace(ice.at, bronze=format_, silver=format_, control=control, state=SourceState())
    return other


def thawed(world: World, **more: Any) -> World:
    """Another process, with the policy lifted."""
    other = World(world.spark, world.folder, Declaration("shop.orders", **more))
    other.at = replace(world.at, source=other.at.source, state=SourceState())
    return other


def test_columns_that_were_left_out_are_filled_from_bronze_when_they_may_come(
    exact: SparkSession, cold: World, tmp_path: Path
) -> None:
    """Never NULL for what bronze tells: the table ends as one that was never frozen, and nothing is filled twice."""
    world = thawed(cold)
    news = change(7, 1, {"v": ("int32", 11), "x": ("int64", 1 << 40)})
    account = world.take(news)
    assert (account.error, account.read, account.applied) == (None, 1, 1)
    assert world.shown() == {
        1: {"id": 1, "v": 11, "x": 1 << 40},
        2: {"id": 2, "v": 22, "x": 8},
        4: {"id": 4, "v": 40, "x": None},
    }
    plain = World(exact, tmp_path / "plain")
    plain.at.bronze.append(world.at.bronze.read(exact, world.at.lake.bronze("s")), plain.at.lake.bronze("s"), None)
    silver.refine(exact, plain.at)
    assert (world.rows(), world.types()) == (plain.rows(), plain.types())
    assert world.ledger()["left_out"] == []
    versions = [world.at.silver.version(exact, world.at.lake.silver("s", "shop.orders"))]
    world.take(change(8, 1, {"v": ("int32", 12), "x": ("int64", 5)}))
    assert world.at.silver.version(exact, world.at.lake.silver("s", "shop.orders")) == versions[0] + 1


def test_what_bronze_has_lost_is_flagged_as_unknown(cold: World) -> None:
    """E5: NULL never passes for knowledge."""
    world = thawed(cold)
    place = world.at.lake.bronze("s")
    memory: Any = world.at.bronze
    memory._tables[place.location].versions = [
        [row for row in rows if row["offset"] > 5] for rows in memory._tables[place.location].versions
    ]
    world.take(change(7, 1, {"v": ("int32", 11), "x": ("int32", 1)}))
    assert {key: (row["x"], row["_column_seq"]) for key, row in world.rows().items() if not row["_deleted"]} == {
        1: (1, None),
        2: (None, {"x": ""}),
        4: (None, {"x": ""}),
    }


@pytest.mark.parametrize("step", ["evolve", "apply", "mark_done"])
def test_a_crash_while_columns_are_filled_is_repaired_by_the_next_run(
    exact: SparkSession, cold: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Behind each effect: the column is there, the rows are flagged, the rows are filled."""
    world = thawed(cold)
    at = column_backfill if step == "mark_done" else type(world.at.silver)
    whole = getattr(at, step)

    def killed(*args: Any, **named: Any) -> None:
        if step != "apply":
            whole(*args, **named)
        raise KeyboardInterrupt

    news = change(7, 1, {"v": ("int32", 11), "x": ("int32", 1)})
    with monkeypatch.context() as patched:
        patched.setattr(at, step, killed)
        with pytest.raises(KeyboardInterrupt):
            world.take(news)
    again = thawed(world)
    [account] = silver.refine(exact, again.at)
    assert (account.error, account.read) == (None, 1)
    assert {key: row["x"] for key, row in again.shown().items()} == {1: 1, 2: 8, 4: None}
    assert all(row["_column_seq"] is None for row in again.rows().values())


def test_an_approved_column_is_filled_although_the_table_stays_frozen(exact: SparkSession, cold: World) -> None:
    """`schema diff --approve` lets exactly that column in, with what it held before; of bronze only the newest version
    is kept.
    """
    world = cold
    news = change(7, 1, {"v": ("int32", 11), "x": ("int32", 1), "y": ("int32", 1)})
    world.at.bronze.append(bronze(exact, [news]), world.at.lake.bronze("s"), None)
    world.at.bronze.maintain(exact, world.at.lake.bronze("s"), 0)
    world.at.control.put(
        world.at.lake.schema("s", "shop.orders"),
        world.ledger() | {"approved": [{"change": "added", "column": "x", "from": "", "to": "int"}]},
    )
    [account] = silver.refine(exact, world.at)
    assert account.error is None
    assert {key: row["x"] for key, row in world.shown().items()} == {1: 1, 2: 8, 4: None}
    assert (world.types(), world.ledger()["left_out"]) == ({"id": "int", "v": "int", "x": "int"}, ["y"])


def test_a_column_that_comes_back_comes_to_the_histories_of_all_keys(exact: Any, tmp_path: Path) -> None:
    """Every state has the value that its record told; so have those of purged keys, whose records were read before the
    purge, so that none of them is late.
    """
    told = Declaration(ORDERS, schema_changes="freeze", stored_as_scd_type=2, purge_after=0)
    kept = replace(told, table="shop.kept")
    world, tables = World(exact, tmp_path, told, more=(kept,)), (ORDERS, kept.table)

    def take(*changes: tuple[int, int, Any, str]) -> None:
        accounts = world.take_all(change(*each, table) for table in tables for each in changes)
        assert [account.error for account in accounts] == [None] * len(tables)

    take((0, 1, {"v": ("int32", 10)}, "c"), (1, 2, {"v": ("int32", 20)}, "c"))
    take((2, 1, {"v": ("int32", 11), "x": ("int32", 7)}, "u"), (3, 2, {"v": ("int32", 21), "x": ("int32", 8)}, "u"))
    take((4, 1, {"v": ("int32", 11), "x": ("int32", 7)}, "d"), (5, 2, {"v": ("int32", 22), "x": ("int32", 9)}, "u"))
    assert purge.purge(exact, world.at, ORDERS, 1_800_000_000_000).purged == 1
    thawn = tuple(replace(each, schema_changes="evolve") for each in (told, kept))
    world.at = replace(world.at, source=replace(world.at.source, tables=thawn), state=SourceState())
    take((6, 3, {"v": ("int32", 3), "x": ("int32", 3)}, "c"), (7, 2, {"v": ("int32", 23), "x": ("int32", 10)}, "u"))
    states = [(1, 10, None, None), (1, 11, 7, None)]
    states += [(2, 20 + n, x, None) for n, x in enumerate([None, 8, 9, 10])]
    for table in tables:
        assert world.states(table, "id < 3 AND NOT _deleted") == states, table


def test_a_column_that_is_renamed_by_its_case_alone_is_the_same_column(spark: SparkSession, tmp_path: Path) -> None:
    """No table format tells the two apart (G4): values of either spelling land in it, whether a schema block, the table
    or a declaration says its type, and a key that is spelled anew is no other key.
    """
    world = World(spark, tmp_path, Declaration(ORDERS, keys=("id",)), delta=True)
    world.take(change(0, 1, {"Name": ("string", "a"), "v": ("int32", 1)}, "c"))
    told = change(1, 2, {"name": ("string", "b"), "V": ("int32", 2)}, "c")
    bare = record("s.shop.orders", 2, {"Id": 1}, envelope("u", {"Id": 1, "NAME": "c", "v": 3}, pos=102))
    assert world.take(told, bare).applied == 2
    assert world.shown() == {1: {"id": 1, "Name": "c", "v": 3}, 2: {"id": 2, "Name": "b", "v": 2}}
    gone = record("s.shop.orders", 3, {"ID": 2}, envelope("d", None, {"ID": 2, "name": "b", "v": 2}, pos=103))
    assert world.take(gone).applied == 1
    assert list(world.shown()) == [1]
    assert world.at.bronze.version(spark, world.at.lake.dead_letters("s")) is None
