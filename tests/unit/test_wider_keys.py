"""Tables whose declared key is more than the key of their records, through bronze and silver in memory, however the
batches are cut (debezium.md B4, C5, E9).

A batch costs seconds and its rows nothing: the histories run side by side in one table, each with ids and a partition
of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate.row import trace
from replicator.spec import Column, Declaration, SourceSpec, Transform
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from tests.builders import Record, bronze, record

pytestmark = pytest.mark.spark

TOPIC = "p.public.t"
APART = 100

Row = tuple[int, str, int]
"""id, code, v; the declared key is id and code."""


@dataclass
class History:
    """What a database does to a few rows. Records have ``id`` for a key, or none at all. All that one transaction of
    Oracle did has one place, and so have the rows of one event of MySQL.
    """

    number: int
    keyed: bool = True
    connector: str = "postgresql"
    records: list[Record] = field(default_factory=list)
    tx: int = 1

    def add(self, op: str, before: Row | None, after: Row | None, **moved: int) -> None:
        """One record at a growing LSN; ``newkey`` and ``oldkey`` are ids in the headers of a change of Kafka's key."""
        offset, tx = len(self.records), APART * self.number + self.tx
        lsn = 100_000 * (self.number + 1) + 10 * offset
        source = {"connector": self.connector, "name": "p", "db": "d", "schema": "public", "table": "t", "ts_ms": lsn}
        source |= {"txId": tx, "lsn": lsn, "sequence": f'["{100_000 * self.number + tx * 500}","{lsn}"]'}
        source |= {"file": "binlog.000007", "pos": 100 * tx, "row": offset, "scn": f"{tx}", "commit_scn": f"{tx}"}
        old, new = (None if row is None else self._own(row) for row in (before, after))
        key = {"id": (new or old or {})["id"]} if self.keyed else None
        value = {"before": old, "after": new, "source": source, "op": op}
        headers = tuple(
            (f"__debezium.{name}", json.dumps({"id": other + APART * self.number}).encode())
            for name, other in moved.items()
        )
        self.records.append(record(TOPIC, offset, key, value, partition=self.number, headers=headers))

    def insert(self, *rows: Row) -> None:
        """In a transaction of their own."""
        for each in rows:
            self.add("c", None, each)
        self.tx += 1

    def update(self, *moves: tuple[Row, Row]) -> None:
        """In one transaction."""
        for before, after in moves:
            self.add("u", before, after)
        self.tx += 1

    def send_again(self, *records: Record) -> None:
        """Some of them, behind all."""
        for each in records:
            key, value = (None if text is None else json.loads(text) for text in (each.key, each.value))
            self.records.append(record(TOPIC, len(self.records), key, value, partition=self.number))

    def _own(self, row: Row) -> dict[str, Any]:
        key, code, v = row
        return {"id": key + APART * self.number, "code": code, "v": v}


# Histories, each with the rule that it shows, and the live rows that it ends in.


def renamed(events: History) -> list[Row]:
    """A row is under its newest key alone."""
    events.insert((1, "a", 1), (2, "a", 1))
    events.update(((1, "a", 1), (1, "b", 2)))
    return [(1, "b", 2), (2, "a", 1)]


def renamed_and_back(events: History) -> list[Row]:
    """Whatever left a key may come back to it."""
    events.insert((1, "a", 1))
    events.update(((1, "a", 1), (1, "b", 2)))
    events.update(((1, "b", 2), (1, "a", 3)))
    return [(1, "a", 3)]


def deleted(events: History) -> list[Row]:
    """B4: a delete takes what the row before it says."""
    events.insert((1, "a", 1), (2, "a", 1))
    events.add("d", (1, "a", 1), None)
    return [(2, "a", 1)]


def passed_on(events: History) -> list[Row]:
    """C5: rows take each other's keys in one transaction, as where a source compares keys at its end."""
    events.insert((1, "a", 1), (1, "b", 2), (1, "c", 3))
    events.update(((1, "a", 1), (1, "b", 1)), ((1, "b", 2), (1, "c", 2)), ((1, "c", 3), (1, "d", 3)))
    return [(1, "b", 1), (1, "c", 2), (1, "d", 3)]


def swapped(events: History) -> list[Row]:
    """C5: two rows swap keys."""
    events.insert((1, "a", 1), (1, "b", 2))
    events.update(((1, "a", 1), (1, "b", 1)), ((1, "b", 2), (1, "a", 2)))
    return [(1, "a", 2), (1, "b", 1)]


def moved_twice(events: History) -> list[Row]:
    """C5: the same image moved on."""
    events.insert((1, "a", 1))
    events.update(((1, "a", 1), (1, "b", 1)), ((1, "b", 1), (1, "c", 1)))
    return [(1, "c", 1)]


def moved_under_both(events: History) -> list[Row]:
    """C3: a row whose key in Kafka changes, and then the rest of its declared one."""
    events.insert((1, "a", 1), (2, "a", 2))
    events.add("d", (1, "a", 1), None, newkey=5)
    events.add("c", None, (5, "a", 1), oldkey=1)
    events.tx += 1
    events.update(((5, "a", 1), (5, "b", 3)))
    return [(2, "a", 2), (5, "b", 3)]


def without_images(events: History) -> list[Row]:
    """E9: under the default replica identity an update does not say what its row was, and a delete has filler; which
    row it took is not guessed.
    """
    events.insert((1, "a", 1), (1, "", 5))
    events.add("u", None, (1, "b", 2))
    events.add("d", (1, "", 0), None)
    return [(1, "", 5), (1, "a", 1), (1, "b", 2)]


def sent_again(events: History) -> list[Row]:
    """J1: a copy of an update takes nothing along that came since."""
    renamed_and_back(events)
    events.send_again(events.records[1])
    return [(1, "a", 3)]


def passed_on_again(events: History) -> list[Row]:
    """J1: the end of a transaction is sent again."""
    rows = passed_on(events)
    events.send_again(*events.records[4:])
    return rows


Story = Callable[[History], list[Row]]
KEYED: tuple[Story, ...] = (
    renamed, renamed_and_back, deleted, moved_twice, moved_under_both, without_images, sent_again,
)  # fmt: skip
KEYLESS: tuple[Story, ...] = (renamed, deleted, passed_on, passed_on_again, swapped, moved_twice)
CUTS: tuple[tuple[int, ...], ...] = ((), (2,), (3,), (4,))
KINDS = (
    (KEYED, True, "postgresql"), (KEYLESS, False, "postgresql"), (KEYLESS, False, "oracle"), (KEYLESS, False, "mysql"),
)  # fmt: skip
RUNS = [(write, keyed, connector, cuts) for stories, keyed, connector in KINDS for write in stories for cuts in CUTS]


class Table:
    """Silver of that table in memory."""

    def __init__(self, spark: SparkSession, folder: Path, **declared: Any) -> None:
        columns = (Column("id", "int"), Column("code", "string"), Column("v", "int"))
        told = Declaration("public.t", columns, keys=("id", "code"), **declared)
        source = SourceSpec("p", ".*", tables=(told,), hash_key="secret")
        memory = MemoryFormat()
        self.spark, self.at = spark, Refinement(source, memory, memory, MemoryControl(), Lake(str(folder)))

    def take(self, records: Sequence[Record]) -> None:
        """One batch."""
        self.at.bronze.append(bronze(self.spark, records), self.at.lake.bronze("p"), None)
        for account in silver.refine(self.spark, self.at):
            assert (account.residue, account.error) == (0, None)
            assert account.read == account.applied + account.superseded + account.dead_lettered

    def live(self, number: int) -> list[Row]:
        """The live rows of a history, by its own ids."""
        rows = self.at.silver.read(self.spark, self.at.lake.silver("p", "public.t")).where("NOT _deleted").collect()
        own = [row for row in rows if row["id"] // APART == number]
        return sorted((row["id"] - APART * number, row["code"], row["v"]) for row in own)

    def reasons(self) -> dict[int, list[str]]:
        """Why records of a history are dead letters."""
        letters = self.at.bronze.read(self.spark, self.at.lake.dead_letters("p")).collect()
        return {number: [x["reason"] for x in letters if x["partition"] == number] for number in range(len(RUNS))}


def played(table: Table) -> list[list[Row]]:
    """The n-th batch of every history is one batch; what each ends in at its source."""
    every, expected = [], []
    for number, (write, keyed, connector, cuts) in enumerate(RUNS):
        expected.append(write(events := History(number, keyed, connector)))
        bounds = [0, *[cut for cut in cuts if cut < len(events.records)], len(events.records)]
        every.append([events.records[start:end] for start, end in pairwise(bounds)])
    for at in range(max(map(len, every))):
        table.take([each for own in every if at < len(own) for each in own[at]])
    return expected


@pytest.fixture(scope="module")
def table(exact: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, list[list[Row]]]:
    made = Table(exact, tmp_path_factory.mktemp("wider"))
    return made, played(made)


@pytest.mark.parametrize(
    "number",
    range(len(RUNS)),
    ids=lambda n: f"{RUNS[n][0].__name__} {'keyed' if RUNS[n][1] else 'keyless'} {RUNS[n][2]} {RUNS[n][3]}",
)
def test_rows_are_under_the_key_that_they_have_at_the_source(table: tuple[Table, list[list[Row]]], number: int) -> None:
    """See the histories."""
    made, expected = table
    assert made.live(number) == expected[number]


def test_a_delete_that_does_not_say_which_row_it_took_is_a_dead_letter(table: tuple[Table, list[list[Row]]]) -> None:
    """E9, R4: PostgreSQL's filler is no key."""
    expected = {n: ["key_missing"] * (write is without_images) for n, (write, *_) in enumerate(RUNS)}
    assert table[0].reasons() == expected


def test_the_life_of_a_row_has_the_update_that_took_it_elsewhere(table: tuple[Table, list[list[Row]]]) -> None:
    """The first history, ``renamed``: of its first row's former key two records are."""
    made, _ = table
    told = trace.read(made.spark, made.at, "public.t", "1,a")
    mine = {place[2]: change["_deleted"] for place, change in told.changes.items() if place[1] == 0}
    assert mine == {0: False, 2: True}


def test_behind_a_transform_and_in_a_history_rows_leave_their_key_too(exact: Any, tmp_path: Path) -> None:
    """What is made of the key leaves with it, and its state ends where the row went."""
    told = Transform(cast=(("v", "bigint"),), hashed=("code",), rename=(("id", "number"),), where="v < 50")
    table = Table(exact, tmp_path, transform=told, stored_as_scd_type=2)
    events = History(0)
    events.insert((1, "a", 1), (2, "a", 1))
    events.update(((1, "a", 1), (1, "b", 2)), ((2, "a", 1), (2, "c", 70)))
    table.take(events.records[:2])
    table.take(events.records[2:])
    lake, silver_of = table.at.lake, table.at.silver
    rows = silver_of.read(exact, lake.silver("p", "public.t")).where("NOT _deleted").collect()
    assert [(row["number"], row["v"]) for row in rows] == [(1, 2)]
    states = silver_of.read(exact, lake.history("p", "public.t")).where("__END_AT IS NULL AND NOT _deleted").collect()
    assert [(row["number"], row["v"]) for row in states] == [(1, 2)]
    assert [row["code"] for row in states] == [row["code"] for row in rows]


FILLER: dict[str, object] = {
    "decimal(10,2)": "AA==",
    "decimal_string(10,2)": "0.00",
    "decimal_number(10,2)": 0.0,
    "zoned_timestamp": "1970-01-01T00:00:00Z",
    "zoned_time": "00:00:00Z",
    "iso_date": "1970-01-01Z",
    "iso_timestamp": "1970-01-01T00:00:00Z",
    "iso_time": "00:00:00Z",
    "micro_timestamp": 0,
    "interval": "P0Y0M0DT0H0M0S",
    "json": "{}",
    "double": 0.0,
    "boolean": False,
    "bytes": "",
}
"""By declared type what PostgreSQL's connector sends for a value that it does not know and that cannot be NULL, in each
of the connector's modes (recorded: `hostile_pg`, table `required`).
"""


def test_the_zero_of_any_type_is_filler(exact: SparkSession, tmp_path: Path) -> None:
    """E9: a delete whose row before has nothing else does not say which row it took."""
    columns = [Column(f"c{number}", kind) for number, kind in enumerate(FILLER)]
    told = Declaration("public.t", (Column("id", "int"), Column("code", "string"), *columns), keys=("id", "code"))
    table = Table(exact, tmp_path)
    table.at = replace(table.at, source=replace(table.at.source, tables=(told,)))
    events = History(0)
    events.insert((1, "a", 1))
    filler = {each.name: FILLER[each.type] for each in columns}
    events.add("d", (1, "", 0), None)
    gone = json.loads(events.records[-1].value or "")
    gone["before"] = {"id": 1, "code": "", **filler}
    table.take([events.records[0], replace(events.records[1], value=json.dumps(gone))])
    assert table.reasons()[0] == ["key_missing"]
    [row] = table.at.silver.read(exact, table.at.lake.silver("p", "public.t")).collect()
    assert (row["id"], row["code"], row["_deleted"]) == (1, "a", False)
