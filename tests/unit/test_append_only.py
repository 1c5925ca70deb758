"""Append-only tables: rows that no columns identify, one per change that inserted one (debezium.md C1, D4)."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import dead_letters, purge, retry
from replicator.operate.dead_letters import LetterFilter
from replicator.operate.explain import explain
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.operate.rebuilding.rebuild_result import REPLACED, WRITTEN
from replicator.operate.row.trace import find_table
from replicator.sinks.memory import MemorySink
from replicator.spec import (
    INCREMENTAL,
    Column,
    Declaration,
    Model,
    ModelColumn,
    Outbox,
    SourceSpec,
    Target,
    Transform,
)  # fmt: skip
from replicator.stages import gold, silver
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.publish import publish
from replicator.stages.refinement import Refinement
from replicator.stages.tick.source_state import SourceState
from replicator.transforms.live import select_live
from tests.builders import Record, bronze, envelope, record
from tests.unit.test_silver_stage import Silver

pytestmark = pytest.mark.spark

LOG, TABLE = "s.shop.log", "shop.log"


def log_of(exact: Any, folder: Path, **declared: Any) -> Silver:
    told = Declaration(TABLE, (Column("a", "int"), Column("b", "string")), append_only=True)
    memory, source = MemoryFormat(), SourceSpec("s", ".*", tables=(replace(told, **declared),))
    return Silver(exact, Refinement(source, memory, memory, MemoryControl(), Lake(str(folder))))


@pytest.fixture
def log(exact: Any, tmp_path: Path) -> Silver:
    return log_of(exact, tmp_path)


def sent(offset: int, op: str, a: int | None, pos: int, **more: Any) -> Record:
    """A change of the table (a, b), whose records have no key."""
    after = None if a is None else {"a": a, "b": "x"}
    return record(LOG, offset, None, envelope(op, after, pos=pos, table=TABLE, **{"ts_ms": 10 * pos, **more}))


def read(offset: int, a: int, pos: int, clock: int, **more: Any) -> Record:
    """A row of a snapshot taken at ``pos``, of a scan that began at ``clock``."""
    return sent(offset, "r", a, pos, ts_ms=clock, snapshot="true", **more)


def seen(log: Silver) -> list[Any]:
    """The rows that users see."""
    return select_live(log.at.silver.read(log.spark, log.at.lake.silver("s", TABLE))).collect()


def rows(log: Silver) -> list[int]:
    """Column ``a`` of each of them."""
    return sorted(row["a"] for row in seen(log))


def keys(log: Silver) -> set[str]:
    """Their keys."""
    return {row["_change"] for row in seen(log)}


def test_equal_rows_of_two_changes_are_two_and_a_change_sent_again_is_one(log: Silver) -> None:
    """C1, J1: by the place in the binlog and the row of its event, never by the offset. Of one place and row, as in a
    compressed transaction (Q4), other values are another row.
    """
    log.take(sent(0, "c", 1, 10), sent(1, "c", 1, 10, row=1), sent(2, "c", 1, 20), sent(3, "c", 3, 20))
    log.take(sent(4, "c", 1, 10, row=1), sent(5, "c", 1, 20), sent(6, "c", 2, 30), sent(7, "c", 2, 30))
    assert rows(log) == [1, 1, 1, 2, 3]


def test_rows_are_apart_by_their_microseconds(exact: Any, tmp_path: Path) -> None:
    """Rows of a COPY have one place; nothing of a value is cut off before they are compared."""
    log = log_of(exact, tmp_path, columns=(Column("a", "int"), Column("t", "micro_timestamp")))
    times = (1_700_000_000_000_001, 1_700_000_000_000_002, 1_700_000_000_000_001)
    told = [envelope("c", {"a": 1, "t": time}, pos=10, table=TABLE) for time in times]
    log.take(*[record(LOG, at, None, each) for at, each in enumerate(told)])
    assert rows(log) == [1, 1]


def test_a_record_of_postgresql_is_known_by_its_lsn(exact: Any, tmp_path: Path) -> None:
    """Q12: the commit before it, with which its position begins, may be told otherwise after a restart."""
    log = log_of(exact, tmp_path)

    def streamed(offset: int, commit: str | None, lsn: int) -> Record:
        told = {"connector": "postgresql", "schema": "shop", "lsn": lsn, "file": None, "row": None}
        last = "null" if commit is None else f'"{commit}"'
        return sent(offset, "c", 1, 0, **told, sequence=f'[{last},"{lsn}"]')

    log.take(streamed(0, "100", 110), streamed(1, "100", 120))
    log.take(streamed(2, None, 110), streamed(3, "90", 120), streamed(4, "120", 130))
    assert rows(log) == [1, 1, 1]


WORLD = (
    *[read(at, a, 100, 1000) for at, a in enumerate((1, 1, 2))],
    sent(3, "c", 2, 90),
    sent(4, "c", 5, 95),
    sent(5, "c", 1, 150),
    sent(6, "c", 3, 160),
    sent(7, "c", 1, 150),
    sent(8, "c", 3, 160),
    *[read(at, a, 200, 2000) for at, a in enumerate((1, 1, 1, 2), 9)],
    *[read(at, a, 200, 3000) for at, a in enumerate((1, 1, 1, 2, 3), 13)],
    sent(18, "c", 3, 250),
    sent(19, "c", 4, 260),
    sent(20, "c", 3, 250),
)
"""A snapshot; what it has read and what it has not, told again from before it; two changes and the same again; a
snapshot that broke off and was begun anew at the same place; what came after it.
"""


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_any_order_and_cut_ends_in_the_same_rows(log: Silver, seed: int | None) -> None:
    """P1, P2, D4: of each content the last snapshot that has it says how many there were, and what came later is added;
    what it has not stays, and no row is counted both as read and as streamed.
    """
    records = list(WORLD)
    if seed is not None:
        chance = random.Random(seed)
        chance.shuffle(records)
        cuts = sorted(chance.sample(range(1, len(records)), 3))
        for start, end in zip([0, *cuts], [*cuts, None], strict=True):
            log.take(*records[start:end])
    else:
        log.take(*records)
    assert rows(log) == [1, 1, 1, 2, 3, 3, 4, 5]
    assert [key[0] for key in sorted(keys(log))] == ["c"] * 3 + ["r"] * 5


def test_updates_and_deletes_are_dead_letters_of_their_own(log: Silver) -> None:
    """C1, R3: no row can be found for them, and nothing is silent; the rows stay, and the NULL behind a delete says
    nothing (measured Z2.6).
    """
    image = {"a": 1, "b": "x"}
    account = log.take(
        sent(0, "c", 1, 10),
        record(LOG, 1, None, envelope("u", {"a": 2, "b": "x"}, image, pos=20, table=TABLE)),
        record(LOG, 2, None, envelope("d", None, image, pos=30, table=TABLE)),
        record(LOG, 3, None, None),
    )["s/shop.log"]
    assert log.reasons() == {1: "append_only", 2: "append_only"}
    assert (rows(log), account.applied, account.ignored) == ([1], 1, {"tombstone": 1})


def test_a_log_ignores_them_where_that_is_declared(exact: Any, tmp_path: Path) -> None:
    """I4: with `outbox: log` beside it updates and deletes are ignored by rule, and counted."""
    log = log_of(exact, tmp_path, outbox=Outbox("log"))
    account = log.take(sent(0, "c", 1, 10), sent(1, "u", 2, 20), sent(2, "d", None, 30))["s/shop.log"]
    assert (rows(log), account.ignored) == ([1], {"outbox_update": 1, "outbox_delete": 1})


def test_a_table_of_which_no_record_has_a_key_names_both_ways_out(exact: Any, tmp_path: Path) -> None:
    """Architecture 9.15: before it is declared its records are dead letters; once it is, the next run takes them, and
    their letters leave with a retry.
    """
    log = log_of(exact, tmp_path, append_only=False)
    [account] = log.take(sent(0, "c", 1, 10), sent(1, "c", 1, 20)).values()
    assert log.reasons() == {0: "key_missing", 1: "key_missing"}
    assert any("`keys`" in told and "`append_only: true`" in told for told in account.warnings)
    told = replace(log.at.source.tables[0], append_only=True)
    log.at = replace(log.at, source=replace(log.at.source, tables=(told,)), state=SourceState())
    silver.refine(log.spark, log.at)
    assert rows(log) == [1, 1]
    retry.retry(log.spark, log.at, LetterFilter())
    assert (rows(log), log.reasons()) == ([1, 1], {})


def test_gold_reads_its_key_and_a_target_is_served_by_it(log: Silver) -> None:
    """A model over it is kept incrementally and published by what tells its rows apart, also when a snapshot has read
    rows again.
    """
    memory, sink = MemoryFormat(), MemorySink()
    at = Warehouse(log.at.silver, memory, MemoryControl(), log.at.lake, 2.0, 0)
    columns = (ModelColumn("id", "text", nullable=False), ModelColumn("a", "integer"))
    model = Model(
        "log",
        "SELECT _change AS id, a FROM {log}",
        {"log": f"s/{TABLE}"},
        ("id",),
        columns,
        lineage={"log": ("id",)},
        refresh=INCREMENTAL,
        target=Target("w", "s", "log"),
    )
    for records in ([sent(0, "c", 1, 10), sent(1, "c", 1, 20)], [read(2, 1, 30, 900), sent(3, "c", 2, 40)]):
        log.take(*records)
        [built] = gold.refresh(log.spark, [model], at)
        assert built.error is None
        [published] = publish(log.spark, [model], memory, at.lake, sink)
        assert published.error is None
    assert sorted(row["a"] for row in sink.tables["log"].values()) == rows(log) == [1, 2]


def test_a_row_is_explained_by_its_key(log: Silver) -> None:
    """No text of a record has the key: all records of the table are decoded. A row that was read again says so."""
    log.take(sent(0, "c", 1, 10), sent(1, "c", 2, 20), sent(2, "c", 1, 10))
    [one, _] = sorted(keys(log))
    table = find_table(log.spark, [log.at], TABLE)
    assert [entry.offset for entry in explain(log.spark, *table, one).entries] == [0, 2]
    log.take(read(3, 1, 30, 900))
    assert "read again by a snapshot" in explain(log.spark, *table, one).warnings[0]


def test_a_truncate_empties_it(log: Silver) -> None:
    """T1, T2: what stands before it is gone, also when it is sent again; what stands behind it is not."""
    log.take(sent(0, "c", 1, 10), sent(1, "c", 2, 40))
    log.take(sent(2, "t", None, 30), sent(3, "c", 1, 10), sent(4, "c", 3, 50))
    assert rows(log) == [2, 3]


def test_what_does_not_say_where_it_happened_is_a_dead_letter(exact: Any, tmp_path: Path) -> None:
    """A flattened row without a place could not be told from the same row sent again."""
    log = log_of(exact, tmp_path, deletes="rewrite")
    marks = {"__op": "c", "__deleted": "false"}
    placed = {"__source_file": "binlog.000001", "__source_pos": 10, "__source_row": 0}
    log.take(
        record(LOG, 0, None, {"a": 1, "b": "x", **marks}),
        record(LOG, 1, None, {"a": 2, "b": "x", **marks, **placed}),
        record(LOG, 2, None, {"a": 2, "b": "x", **marks, **placed}),
    )
    assert (rows(log), log.reasons()) == ([2], {0: "place_missing"})


def test_a_flattened_row_that_does_not_say_its_operation_is_no_update(exact: Any, tmp_path: Path) -> None:
    """F4: nobody knows what it is. It is a dead letter that says how to fix it, and not ignored as a log's update."""
    log = log_of(exact, tmp_path, deletes="rewrite", outbox=Outbox("log"))
    placed = {"__deleted": "false", "__source_file": "binlog.000001", "__source_pos": 10, "__source_row": 0}
    every = [{"a": 1, "b": "x", **placed, **op} for op in ({"__op": "c"}, {"__op": "u"}, {})]
    account = log.take(*[record(LOG, at, None, told) for at, told in enumerate(every)])["s/shop.log"]
    assert (rows(log), log.reasons(), account.ignored) == ([1], {2: "place_missing"}, {"outbox_update": 1})


@pytest.mark.parametrize(
    "names",
    [
        {"connector": "sqlserver", "commit_lsn": "00000027:00000ac0:0002"},
        {"connector": "oracle", "commit_scn": "2868546", "scn": "2868546"},
    ],
)
def test_a_snapshot_has_the_commit_that_it_names(exact: Any, tmp_path: Path, names: dict[str, str]) -> None:
    """D2, D4: it was taken at the newest commit of SQL Server or Oracle, whose rows are in it: they are not twice."""
    log = log_of(exact, tmp_path)
    told = {"schema": "shop", "file": None, "row": None, **names}
    log.take(sent(0, "c", 1, 0, **told), sent(1, "c", 2, 0, **told))
    log.take(sent(2, "r", 1, 0, **told, snapshot="true"), sent(3, "r", 2, 0, **told, snapshot="last"))
    later = {key: value.replace("0002", "0003").replace("546", "547") for key, value in told.items() if value}
    log.take(sent(4, "c", 1, 0, **{**told, **later}))
    assert rows(log) == [1, 1, 2]


def test_a_key_of_kafka_is_not_asked(log: Silver) -> None:
    """Declared so, a table with keys has a row per insert, too, also where the newest record of a key would do."""
    again = [replace(sent(at, "c", 7, 10 * at), key='{"a":7}') for at in range(6)]
    log.take(*again[:3])
    log.take(*again[3:])
    assert rows(log) == [7] * 6


def test_columns_that_come_later_make_no_other_row(log: Silver) -> None:
    """G3: a column that is NULL is none, and their order does not matter; a filter and a new name hold as elsewhere."""
    wide = envelope("c", {"c": None, "b": "x", "a": 1}, pos=10, table=TABLE)
    log.take(sent(0, "c", 1, 10))
    log.take(record(LOG, 1, None, wide), record(LOG, 2, None, envelope("c", {"a": 1, "c": "y"}, pos=20, table=TABLE)))
    assert rows(log) == [1, 1]
    stored = log.at.silver.read(log.spark, log.at.lake.silver("s", TABLE))
    assert "c" in stored.columns


def test_a_transform_changes_the_rows_and_not_what_tells_them_apart(exact: Any, tmp_path: Path) -> None:
    """Rows that are equal behind it are as many as before it."""
    log = log_of(exact, tmp_path, transform=Transform(where="a < 9", column_list=("b",), rename=(("b", "a"),)))
    log.take(sent(0, "c", 1, 10), sent(1, "c", 2, 10), sent(2, "c", 9, 20))
    table = select_live(log.at.silver.read(log.spark, log.at.lake.silver("s", TABLE)))
    assert [row["a"] for row in table.collect()] == ["x", "x"]


def test_a_column_with_the_name_of_the_key_stops_the_table(log: Silver) -> None:
    """It is not overwritten silently: the table stops with a word on how to fix it."""
    log.at.bronze.append(
        bronze(log.spark, [record(LOG, 0, None, envelope("c", {"_change": 1}, pos=10, table=TABLE))]),
        log.at.lake.bronze("s"),
        None,
    )
    [account] = silver.refine(log.spark, log.at)
    assert "ReplaceField" in str(account.error)


@pytest.mark.parametrize("first", [False, True], ids=["declared later", "no longer declared"])
def test_another_declaration_names_both_ways_out_and_a_rebuild_is_one(exact: Any, tmp_path: Path, first: bool) -> None:
    """Rows of two keys cannot be told apart in one table: it stops, and `keys` would not fix it."""
    log = log_of(exact, tmp_path, append_only=first)
    keyed = [replace(sent(at, "c", at, 10 + at), key=f'{{"a":{at}}}') for at in range(3)]
    log.take(*keyed[:2])
    other = replace(log.at.source.tables[0], append_only=not first)
    log = Silver(exact, replace(log.at, source=replace(log.at.source, tables=(other,)), state=SourceState()))
    log.at.bronze.append(bronze(exact, keyed[2:]), log.at.lake.bronze("s"), None)
    [account] = silver.refine(exact, log.at)
    assert "the key was" in str(account.error)
    assert "Restore `append_only` in conf/sources" in str(account.error)
    assert rebuild(exact, log.at, TABLE, RebuildOptions()).verdict == REPLACED
    assert rows(log) == [0, 1, 2]


def test_an_insert_that_comes_late_after_a_purge_is_a_letter_until_the_table_is_rebuilt(
    exact: Any, tmp_path: Path
) -> None:
    """M9: each insert is a key of its own, so every one below the horizon looks like one of a row that went. Those that
    were taken before it stay; a rebuild takes the late ones, and a retry removes their letters.
    """
    log = log_of(exact, tmp_path, purge_after=0)

    def letters() -> list[tuple[int, str]]:
        return [(row["offset"], row["reason"]) for row in dead_letters.load_letters(exact, log.at).collect()]

    log.take(sent(0, "c", 1, 90))
    log.take(read(1, 1, 100, 1000), read(2, 2, 100, 1000), sent(3, "c", 3, 150))
    assert purge.purge(exact, log.at, TABLE, 0).purged == 1
    log.take(sent(4, "c", 4, 80), sent(5, "c", 3, 150), sent(6, "c", 1, 90))
    assert (rows(log), letters()) == ([1, 2, 3], [(4, "below_purge_horizon")])
    assert rebuild(exact, log.at, TABLE, RebuildOptions()).verdict == WRITTEN
    retry.retry(exact, log.at, LetterFilter())
    assert (rows(log), letters()) == ([1, 2, 3, 4], [])
