"""A snapshot in many ranges: its rows rank above all before them (debezium.md Q5), and bronze is not read anew."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from replicator.stages.table import ordering, snapshots
from replicator.stages.table.snapshots import FullSnapshot
from replicator.stages.tick.epochs import Epochs
from replicator.stages.tick.source_state import SourceState
from replicator.stages.tick.table_share import TableShare
from tests.builders import Record, bronze, envelope, record

pytestmark = pytest.mark.spark

TOPIC = "s.shop.orders"


BINLOG, PLAIN, LIFTED = "shop.binlog", "shop.plain", "shop.lifted"


def mariadb(offset: int, op: str, key: int, value: int, pos: int) -> Record:
    """A change, or a row of a snapshot, at a position of the binlog."""
    snapshot = "incremental" if op == "r" else "false"
    told = envelope(op, {"id": key, "v": value}, pos=pos, snapshot=snapshot, table=BINLOG)
    return record(f"s.{BINLOG}", offset, {"id": key}, told, partition=key % 2)


def postgresql(offset: int, op: str, key: int, value: int, pos: int, *, tx: int = 0, sequence: str = "") -> Record:
    """The same of PostgreSQL; without ``sequence`` its positions need not rise with the offsets."""
    table = LIFTED if sequence else PLAIN
    source = {"connector": "postgresql", "name": "s", "db": "d", "schema": "shop", "table": table[5:], "ts_ms": 1}
    source |= {"txId": tx or pos, "lsn": pos} | ({"sequence": sequence} if sequence else {})
    source["snapshot"] = "incremental" if op == "r" else "false"
    told = {"before": None, "after": {"id": key, "v": value}, "source": source, "op": op}
    return record(f"s.{table}", offset, {"id": key}, told)


def commit(number: int | None, own: int) -> str:
    """``source.sequence``."""
    return json.dumps([None if number is None else str(number), str(own)], separators=(",", ":"))


RANGES = {
    BINLOG: [
        [mariadb(0, "r", 1, 10, 50), mariadb(0, "r", 2, 20, 50)],
        [mariadb(1, "u", 1, 11, 300), mariadb(1, "u", 2, 21, 400)],
        [mariadb(2, "r", 1, 12, 100), mariadb(3, "r", 3, 32, 100)],
        [mariadb(2, "r", 2, 22, 100), mariadb(4, "u", 3, 33, 200), mariadb(5, "u", 3, 34, 350)],
        [mariadb(6, "r", 3, 34, 200), mariadb(3, "u", 2, 23, 390)],
    ],
    PLAIN: [
        [postgresql(0, "c", 1, 10, 900), postgresql(1, "c", 2, 20, 500)],
        [postgresql(2, "r", 1, 11, 700), postgresql(3, "r", 2, 21, 700)],
        [postgresql(4, "u", 2, 22, 850), postgresql(5, "u", 1, 12, 950)],
        [postgresql(6, "r", 1, 13, 800)],
    ],
    LIFTED: [
        [postgresql(0, "c", 1, 10, 600, tx=2, sequence=commit(900, 600))],
        # the connector died, and has forgotten 900
        [postgresql(1, "u", 1, 11, 610, tx=2, sequence=commit(None, 610))],
        [postgresql(2, "r", 1, 12, 300, sequence=commit(800, 300))],
        [postgresql(3, "u", 1, 9, 605, tx=2, sequence=commit(900, 605))],
    ],
}
"""Of each table: one of MariaDB, one of PostgreSQL without a sequence, one that is lifted within a transaction."""

Rows = dict[str, list[tuple[Any, ...]]]


@dataclass
class Taken:
    """Rows by table, (id, v, _seq), and the tables for which bronze was read from its beginning."""

    rows: Rows
    below: list[str]


def taken(spark: SparkSession, folder: Path, *, cut: bool = True, anew: bool = False) -> Taken:
    """All tables, the n-th range of each in one batch, or all in one; each by a process of its own if ``anew``."""
    batches = [[each for part in parts for each in part] for parts in zip_longest(*RANGES.values(), fillvalue=())]
    if not cut:
        batches = [[each for batch in batches for each in batch]]
    tables = tuple(Declaration(table, (Column("id", "int"), Column("v", "int"))) for table in RANGES)
    memory, found, real = MemoryFormat(), Taken({}, []), ordering.read_below
    at = Refinement(SourceSpec("s", ".*", tables=tables), memory, memory, MemoryControl(), Lake(str(folder)))

    def seen(share: TableShare, rows: Any) -> Any:
        found.below.append(share.name)
        return real(share, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "read_below", seen)
        for batch in batches:
            at = replace(at, state=SourceState()) if anew else at
            memory.append(bronze(spark, batch), at.lake.bronze("s"), None)
            assert {(each.error, each.dead_lettered) for each in silver.refine(spark, at)} == {(None, 0)}
    for table in RANGES:
        rows = memory.read(spark, at.lake.silver("s", table)).collect()
        found.rows[table] = sorted((row["id"], row["v"], row["_seq"]) for row in rows)
    return found


@pytest.fixture(scope="module")
def whole(exact: Any, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows that one range makes."""
    return taken(exact, tmp_path_factory.mktemp("whole"), cut=False).rows


@pytest.fixture(scope="module", params=[False, True], ids=["one process", "a process for each"])
def ranges(exact: Any, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Taken:
    """What many ranges make."""
    return taken(exact, tmp_path_factory.mktemp("cut"), anew=request.param)


@pytest.mark.parametrize("table", RANGES)
def test_rows_get_the_places_that_they_get_in_one_range(whole: Rows, ranges: Taken, table: str) -> None:
    """P2, Q5: wherever a snapshot is cut."""
    assert ranges.rows[table] == whole[table]


def test_bronze_is_asked_only_where_a_change_was_lifted(ranges: Taken) -> None:
    """No range of a snapshot reads what came before it, whatever came: else each takes longer than the one before. But
    the record of the greatest position may stand above it, which no mark tells (Q12).
    """
    assert set(ranges.below) == {LIFTED}


@pytest.mark.parametrize(("table", "told"), [(PLAIN, [0, 1, 0, 1]), (LIFTED, [0, 0, 0, 0]), (BINLOG, [0, 0, 0, 0, 0])])
def test_a_snapshot_that_may_hide_changes_of_an_open_transaction_is_told(
    exact: SparkSession, tmp_path: Path, table: str, told: list[int]
) -> None:
    """Q5: a row of it ranks above LSNs without a ``sequence`` that a transaction has which commits only then."""
    memory, tables = MemoryFormat(), (Declaration(table, (Column("id", "int"), Column("v", "int"))),)
    at = Refinement(SourceSpec("s", ".*", tables=tables), memory, memory, MemoryControl(), Lake(str(tmp_path)))
    found = []
    for batch in RANGES[table]:
        memory.append(bronze(exact, batch), at.lake.bronze("s"), None)
        [account] = silver.refine(exact, at)
        found.append(sum(warning.startswith("snapshot_hides_changes") for warning in account.warnings))
    assert found == told


LOST: dict[str, tuple[str, dict[str, Any]]] = {
    "postgresql": (
        "file_pos",
        {"connector": "postgresql", "schema": "shop", "lsn": 500, "sequence": commit(None, 500)},
    ),
    "mariadb by gtid": ("gtid", {"pos": 500}),
}
"""Rows of a snapshot of a connector that was made anew: they say no place but where the snapshot was read."""


@pytest.mark.parametrize("case", LOST)
def test_a_snapshot_that_stands_below_a_truncate_is_told_and_comes_with_an_epoch(
    exact: SparkSession, tmp_path: Path, case: str
) -> None:
    """T4, Q5: nobody can tell whether a TRUNCATE in another partition came before it."""
    binlog, place = LOST[case]
    truncate = {"lsn": 300, "sequence": commit(290, 300)} if "lsn" in place else {"pos": 300, "gtid": "0-1-9"}

    def read(offset: int, key: int, op: str = "r", **told: Any) -> Record:
        image = None if op == "t" else {"id": key, "v": key}
        return record(TOPIC, offset, image and {"id": key}, envelope(op, image, **{**place, **told}), partition=key % 2)

    tables = (Declaration("shop.orders", (Column("id", "int"), Column("v", "int"))),)
    memory, spec = MemoryFormat(), SourceSpec("s", ".*", tables=tables, binlog_position=binlog)
    at = Refinement(spec, memory, memory, MemoryControl(), Lake(str(tmp_path)))
    told = []
    for number, batch in enumerate(
        (
            [read(0, 1), read(0, 2)],
            [read(1, 2, "t", **truncate)],
            [read(1, 3), read(2, 4)],
            [read(2, 3), read(3, 4)],
        )
    ):
        if number == 3:
            starts = {TOPIC: {0: 3, 1: 2}}
            at.control.put(at.lake.epochs("s"), Epochs().next(starts, "a new connector").value())
        memory.append(bronze(exact, batch), at.lake.bronze("s"), None)
        [account] = silver.refine(exact, at)
        told.append([warning.partition(":")[0] for warning in account.warnings])
    assert told == [[], [], ["snapshot_below_truncate"], []]
    rows = memory.read(exact, at.lake.silver("s", "shop.orders")).where("NOT _deleted").collect()
    assert sorted(row["id"] for row in rows) == [3, 4]


def marked(offset: int, key: int, mark: str) -> Record:
    """A row of a snapshot with its mark, or an update (``false``)."""
    told = envelope("u" if mark == "false" else "r", {"id": key, "v": key}, pos=100 + offset, snapshot=mark)
    return record(TOPIC, offset, {"id": key}, told)


BROKEN_OFF = [marked(0, 1, "first"), marked(1, 2, "true")]
ANEW = [marked(2, 1, "first_in_data_collection"), marked(3, 3, "last_in_data_collection")]
WORD = "snapshot_again"


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ([BROKEN_OFF, ANEW, [marked(4, 3, "false")]], [[], [WORD], []]),
        ([[*BROKEN_OFF, *ANEW]], [[WORD]]),
        ([BROKEN_OFF, [marked(2, 3, "true"), marked(3, 4, "last")], [marked(4, 5, "incremental")]], [[], [], []]),
    ],
    ids=["later", "at once", "one that goes on"],
)
def test_a_snapshot_that_a_connector_took_anew_is_told(
    exact: SparkSession, tmp_path: Path, batches: list[list[Record]], words: list[list[str]]
) -> None:
    """D7: killed in the midst of one it reads all once more, and what was deleted in between (here 2) is in no event.
    Of a table that is read again behind a snapshot that said what is gone nothing is told.
    """
    memory = MemoryFormat()
    tables = (Declaration("shop.orders", (Column("id", "int"), Column("v", "int"))),)
    at = Refinement(SourceSpec("s", ".*", tables=tables), memory, memory, MemoryControl(), Lake(str(tmp_path)))
    told = []
    for batch in batches:
        memory.append(bronze(exact, batch), at.lake.bronze("s"), None)
        [account] = silver.refine(exact, at)
        told.append(account.warnings)
    assert [[each.partition(":")[0] for each in warnings] for warnings in told] == words
    for warning in chain.from_iterable(told):
        assert "`replicator connect snapshot s shop.orders --remove-missing` removes them" in warning
    snapshots.add(
        at.control, at.lake.snapshots("s"), {"shop.orders": FullSnapshot(1, {(TOPIC, 0): 9}, {(TOPIC, 0): 9})}
    )
    again = Refinement(at.source, memory, MemoryFormat(), at.control, at.lake)
    assert [each.warnings for each in silver.refine(exact, again) if each.read] == [()]
