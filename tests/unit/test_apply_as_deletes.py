"""A change whose row satisfies ``apply_as_deletes`` is a delete of its key, whatever the source called it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator.errors import TableStopped, TransformChanged
from replicator.operate.explain import explain
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.operate.rebuilding.rebuild_result import EQUAL, WRITTEN
from replicator.operate.verify.source_transform import apply_transform
from replicator.spec import Transform
from replicator.stages import silver
from replicator.stages.table import transform_origins
from replicator.transforms import merge, row_state
from replicator.transforms.table_transform import as_deletes, binding, execution
from replicator.transforms.table_transform.as_deletes import InvalidCondition
from tests.builders import UNSENT, Record, folded, made
from tests.unit.test_transforms import _CHANGES, KEY, NAME, TOPIC, World

pytestmark = pytest.mark.spark

ENDED = Transform(as_deletes="ssn = 'gone'")
"""``ssn`` stands for a column that marks rows as deleted."""


def names_of(world: World) -> dict[int, str]:
    return {row["id"]: row["name"] for row in world.rows()}


def test_a_row_that_satisfies_the_condition_leaves_and_a_later_one_comes_back(
    exact: SparkSession, tmp_path: Path
) -> None:
    """At its own place in the order: what is older and comes late changes nothing. NULL is no delete. Of one batch the
    newest decides. The condition reads what the table leaves out, and the history ends its interval.
    """
    told = replace(ENDED, except_column_list=("ssn",), masked=("phone",))
    world = World(exact, tmp_path, told, stored_as_scd_type=2)
    world.applied(*[world.change("c", key, 10, name="a") for key in (1, 2, 3)], world.change("r", 4, 10, ssn="gone"))
    late = world.change("u", 2, 15, name="late")
    world.applied(world.change("u", 1, 20, ssn=None), world.change("u", 2, 20, ssn="gone", name="secret"))
    assert names_of(world) == {1: " Ann ", 3: "a"}
    account = world.applied(late, world.change("u", 3, 20, ssn="gone"), world.change("u", 3, 30, name="back"))
    assert (account.applied, account.superseded) == (1, 2)
    assert names_of(world) == {1: " Ann ", 3: "back"}
    world.applied(world.change("u", 2, 30, name="again"))
    assert names_of(world) == {1: " Ann ", 2: "again", 3: "back"}
    assert "secret" not in world.at_rest()
    history = world.format.read(exact, world.at.lake.history("s", NAME)).where("id = 2").orderBy("__START_AT")
    found = [(row["name"], row["__END_AT"] is None) for row in history.where("NOT _deleted").collect()]
    assert found == [("a", False), ("late", False), ("again", True)]


def test_a_change_that_did_not_send_what_the_condition_reads_is_a_dead_letter(
    exact: SparkSession, tmp_path: Path
) -> None:
    """E1: neither a delete nor a row is guessed. What the condition does not read may be unsent: it keeps its value,
    unless the row was deleted in between, as after any delete (M4). A delete of the source needs no columns.
    """
    world = World(exact, tmp_path, ENDED)
    world.applied(world.change("c", 1, 10), world.change("c", 2, 11), world.change("c", 3, 12))
    account = world.take(
        world.change("u", 1, 20, ssn=UNSENT, name="guessed"),
        world.change("u", 2, 20, phone=UNSENT, name="Bob"),
        world.change("d", 3, 20),
    )
    assert (account.error, account.applied, account.dead_lettered) == (None, 2, 1)
    [letter] = world.format.read(exact, world.at.lake.dead_letters("s")).collect()
    assert (letter["offset"], letter["reason"], letter["detail"]) == (4, "delete_undecided", "ssn")
    assert {row["id"]: (row["name"], row["phone"]) for row in world.rows()} == {
        1: (" Ann ", "Tel 12-34"),
        2: ("Bob", "Tel 12-34"),
    }
    world.applied(
        world.change("u", 2, 30, phone=UNSENT, ssn="gone"), world.change("u", 2, 40, phone=UNSENT, name="Eve")
    )
    [row] = world.format.read(exact, world.at.lake.silver("s", NAME)).where("id = 2").collect()
    assert (row["name"], row["phone"], list(row["_column_seq"])) == ("Eve", None, ["phone"])


def test_a_row_that_is_deleted_so_may_hold_what_the_table_could_not(exact: SparkSession, tmp_path: Path) -> None:
    """As with a delete of the source: a value that fits no type, and one that was not sent beside a `where` (E4), of a
    column that is not of the key, keep no row shown.
    """
    world = World(exact, tmp_path, replace(ENDED, cast=(("total", "int"),), where="name <> 'hidden'"))
    world.applied(*[world.change("c", key, 10, total="1") for key in (1, 2, 3)])
    world.applied(
        world.change("u", 1, 20, ssn="gone", total="many"), world.change("u", 2, 20, ssn="gone", phone=UNSENT)
    )
    assert set(names_of(world)) == {3}


def change(key: int, kind: str, seq: str) -> tuple[Any, ...]:
    """A decoded change: the source's delete, one that satisfies the condition, one without a value, or a whole one."""
    name, total = ("gone" if kind == "ends" else f"n{seq}"), None if kind == "partial" else int(seq)
    unsent = ["total"] if kind == "partial" else []
    values = (None, None, None) if kind == "delete" else (name, f"{seq}@x", total)
    return (key, *values, seq, kind == "delete", int(seq), unsent, None, (TOPIC, None, 0, int(seq)))


def left_behind(history: Mapping[str, str]) -> row_state.State:
    """The plain twin of the merge, for which what ends a row is a delete."""
    columns = ("name", "email", "total")
    found = [
        row_state.from_change(
            seq, columns, deleted=kind in ("ends", "delete"), unsent=["total"] if kind == "partial" else []
        )
        for seq, kind in history.items()
    ]
    state = found[0]
    for each in found[1:]:
        state = row_state.merge_states(state, each)
    return state


def test_the_merge_laws_hold_for_deletes_by_a_condition(exact: SparkSession) -> None:
    """M2, M4: each history of three changes ends alike in every order, one by one or together, the last one twice."""
    wanted: dict[int, row_state.State] = {}
    batches: tuple[list[tuple[Any, ...]], ...] = ([], [], [])
    for kinds in product(("whole", "partial", "ends", "delete"), repeat=3):
        history = dict(zip(("10", "20", "30"), kinds, strict=True))
        for order in permutations(history.items()):
            for together in (False, True):
                key = len(wanted)
                wanted[key] = left_behind(history)
                for at, (seq, kind) in enumerate(order):
                    batches[at // 2 if together else at].append(change(key, kind, seq))
                batches[2].append(change(key, order[1][1], order[1][0]))
    held = None
    for batch in batches:
        rows = made(exact, batch, _CHANGES)
        making = binding.bind(Transform(as_deletes="name = 'gone'"), None, KEY, NAME, rows, ("id",))
        fresh = execution.apply_filter(execution.transform_changes(rows, making)).drop("_reject", "_at")
        once = folded(fresh, making.keys_there)
        held = once if held is None else merge.merge_rows(held, once.select(held.columns), making.keys_there)
        held = held.localCheckpoint()
    assert held is not None
    found = {}
    for row in held.collect():
        default = f"{row['_seq']}-" if row["_deleted"] else row["_seq"]
        places = dict.fromkeys(("name", "email", "total"), default) | (row["_column_seq"] or {})
        found[row["id"]] = row_state.State(row["_seq"], row["_deleted"], places)
        assert row["name"] == (None if row["_deleted"] else f"n{row['_seq']}")
        known = places["total"] if places["total"] and not places["total"].endswith("-") else None
        assert row["total"] == (None if known is None else int(known))
    assert found == wanted
    assert len(wanted) == 4**3 * 6 * 2


def moved(world: World, old: int, new: int, pos: int, **values: Any) -> list[Record]:
    """A row that changes its key (C3)."""
    left = replace(world.change("d", old, pos), headers=(("__debezium.newkey", f'{{"id":{new}}}'.encode()),))
    came = replace(world.change("c", new, pos, **values), headers=(("__debezium.oldkey", f'{{"id":{old}}}'.encode()),))
    return [left, came]


def test_a_row_may_be_deleted_or_brought_back_by_a_change_of_its_key(exact: SparkSession, tmp_path: Path) -> None:
    """M7: what the row held before it was marked as deleted is known to bronze, and handed on."""
    world = World(exact, tmp_path, ENDED)
    world.applied(world.change("c", 1, 10, phone="one"), world.change("c", 2, 10), world.change("c", 3, 10))
    world.applied(world.change("u", 1, 20, ssn="gone", phone=UNSENT))
    world.applied(*moved(world, 1, 11, 30, phone=UNSENT, name="back"), *moved(world, 2, 12, 40, ssn="gone"))
    assert names_of(world) == {11: "back", 3: " Ann "}
    assert {row["id"]: row["phone"] for row in world.rows()}[11] == "one"


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("emial = 'x'", "emial"),
        ("name =", "Syntax error"),
        ("total", "it returns int, not a boolean: compare it, as in `deleted = 1`"),
        ("NULL", "it returns void"),
        ("true", "it reads no column"),
        ("_seq > '1'", "_seq is not a column of the source"),
        ("count(name) > 1", "GROUP BY"),
        ("rand() > 0.5 AND total > 1", "is not deterministic"),
        ("total > day(current_date())", "depends on when it is computed"),
        ("sum(total) OVER (PARTITION BY name) > 1", "Window"),
        ("total IN (SELECT 1)", "subquery"),
        ("email__v2 = 1", "must also read email"),
    ],
)
def test_what_cannot_be_asked_of_each_row_is_no_condition(exact: SparkSession, condition: str, sentence: str) -> None:
    """Of each change alone, true or false, by the source's columns, of whichever type they have been."""
    rows = made(exact, [], _CHANGES.replace("total INT", "email__v2 INT, total INT"))
    with pytest.raises(InvalidCondition) as caught:
        binding.bind(Transform(as_deletes=condition), None, KEY, NAME, rows, ("id",))
    assert sentence in str(caught.value)
    columns = ("id", "name", "email", "email__v2", "total")
    for told in ("coalesce(email, email__v2) = 'x'", "email = 'x'"):
        assert as_deletes.columns_read(told, rows, columns) == {"email", "email__v2"}


def test_another_condition_stops_the_table_until_it_is_rebuilt(exact: SparkSession, tmp_path: Path) -> None:
    """Half of its rows would be of one, half of the other; one that cannot be asked writes no row at all."""
    world = World(exact, tmp_path, Transform(as_deletes="sn = 'gone'"))
    account = world.take(world.change("c", 1, 10), world.change("c", 2, 10, ssn="gone"))
    assert isinstance(account.error, TableStopped)
    assert "its `apply_as_deletes` is not a condition on single rows: " in str(account.error)
    world.declare(None)
    assert [each.error for each in silver.refine(exact, world.at)] == [None]
    assert set(names_of(world)) == {1, 2}
    world.declare(ENDED)
    account = world.take(world.change("c", 3, 10))
    assert isinstance(account.error, TransformChanged)
    done = rebuild(exact, world.at, NAME, RebuildOptions())
    assert (done.verdict, set(names_of(world))) == (WRITTEN, {1, 3})
    world.applied(world.change("u", 1, 20, ssn="gone"))
    assert set(names_of(world)) == {3}
    assert rebuild(exact, world.at, NAME, RebuildOptions(dry=True)).verdict == EQUAL


def test_verify_leaves_out_what_the_condition_deletes(exact: SparkSession, tmp_path: Path) -> None:
    """The source's rows that satisfy it are none of silver's; a condition over what nobody can compare is refused."""
    world = World(exact, tmp_path, replace(ENDED, except_column_list=("ssn",)))
    world.applied(world.change("c", 1, 10), world.change("c", 2, 10), world.change("u", 2, 20, ssn="gone"))
    origin = transform_origins.load_by_name(
        world.at, NAME, world.at.bronze.identity(exact, world.at.lake.bronze("s")) or ""
    )
    assert origin is not None
    rows = made(exact, [(1, " Ann ", None), (2, " Ann ", "gone")], "id INT, name STRING, ssn STRING")
    found = apply_transform(world.at, NAME, rows, origin.columns, {})
    assert [tuple(row) for row in found.rows.select("id", "name").collect()] == [(1, " Ann ")]
    assert names_of(world) == {1: " Ann "}
    with pytest.raises(TableStopped, match="apply_as_deletes, needs ssn, which cannot be compared"):
        apply_transform(world.at, NAME, rows.drop("ssn"), origin.columns, {})


@pytest.mark.parametrize(
    ("told", "by"),
    [(ENDED, "apply_as_deletes"), (Transform(where="coalesce(ssn, '') <> 'gone'"), "where")],
    ids=["apply_as_deletes", "where"],
)
def test_explain_tells_what_makes_a_delete_of_an_update(
    exact: SparkSession, tmp_path: Path, told: Transform, by: str
) -> None:
    """The record says `u`: whoever reads why a row is gone must see that it is the declaration's doing."""
    world = World(exact, tmp_path, told)
    world.applied(world.change("c", 1, 10), world.change("u", 1, 20, ssn="gone"), world.change("u", 1, 15))
    life = explain(exact, world.at, NAME, "1")
    assert [(entry.op, entry.verdict, entry.why.split(",")[0].split(";")[0]) for entry in life.entries] == [
        ("c", "applied", "sets the row"),
        ("u", "superseded", f"older than {TOPIC}/0/2"),
        ("u", "applied", f"deletes the row by `{by}`"),
    ]
    assert (life.deleted, life.warnings) == (True, ())


def test_a_delete_by_a_condition_is_a_delete_to_who_reads_silver(exact: SparkSession, tmp_path: Path) -> None:
    """Its key stays with NULL in every other column (M1), so that nothing of the row rests."""
    world = World(exact, tmp_path, ENDED)
    world.applied(world.change("c", 1, 10), world.change("u", 1, 20, ssn="gone"))
    [row] = world.format.read(exact, world.at.lake.silver("s", NAME)).where(F.col("_deleted")).collect()
    assert {name for name, value in row.asDict().items() if value is not None} == {
        *("id", "_seq", "_deleted", "_source_ts_ms")
    }
