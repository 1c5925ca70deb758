"""Rows that change their key, through bronze and silver in memory, however the batches are cut (debezium.md C5, M7).

A batch costs seconds and its rows nothing: the histories run side by side in one table, each with keys, transactions
and a partition of its own.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import Column, Declaration, SourceSpec, Transform
from replicator.stages import silver, tuning
from replicator.stages.refinement import Refinement
from tests.builders import UNSENT, Record, bronze, record

pytestmark = pytest.mark.spark

TOPIC = "p.public.t"
APART = 100
"""What lies between the keys of two histories."""

Live = dict[int, tuple[Any, Any]]
Image = dict[str, Any]


@dataclass
class History:
    """Events of one PostgreSQL table (id, a, b) as Debezium writes them, at growing LSNs, in a partition of their
    own; those of another ``connector``, Oracle's, have one place per transaction. ``is_first``: the connector has seen
    no commit yet.
    """

    number: int = 0
    records: list[Record] = field(default_factory=list)
    tx: int = 1
    is_first: bool = False
    connector: str = "postgresql"

    def add(self, op: str, key: int, before: Image | None = None, after: Image | None = None, **moved: int) -> None:
        """One record; ``newkey`` and ``oldkey`` are the headers of a key change, at the LSN of the record before."""
        offset, tx = len(self.records), APART * self.number + self.tx
        lsn = 100_000 * (self.number + 1) + 10 * offset - (10 if "oldkey" in moved else 0)
        source = {"connector": self.connector, "name": "p", "db": "d", "schema": "public", "table": "t", "ts_ms": 1}
        commit = "null" if self.is_first else f'"{tx * 500}"'
        source |= {"txId": tx, "lsn": lsn, "sequence": f'[{commit},"{lsn}"]', "scn": f"{tx}", "commit_scn": f"{tx}"}
        value = {"before": self._own(before), "after": self._own(after), "source": source, "op": op}
        headers = tuple(
            (f"__debezium.{name}", json.dumps(self._own({"id": other})).encode()) for name, other in moved.items()
        )
        told = record(TOPIC, offset, self._own({"id": key}), value, headers=headers)
        self.records.append(replace(told, partition=self.number))

    def move(self, old: int, new: int, after: tuple[Any, Any], before: tuple[Any, Any] = (None, None)) -> None:
        """A key change: the delete of the old key and the insert of the new one."""
        self.add("d", old, row(old, *before), newkey=new)
        self.add("c", new, None, row(new, *after), oldkey=old)

    def _own(self, image: Image | None) -> Image | None:
        return None if image is None else image | {"id": APART * self.number + image["id"]}


def row(key: int, a: Any, b: Any) -> Image:
    return {"id": key, "a": a, "b": b}


class Table:
    """Silver of that table in memory."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        key: str = "int",
        transform: Transform | None = None,
        *,
        generated: bool = False,
        scd_type: int = 1,
    ) -> None:
        columns = (Column("id", key), Column("a", "int"), Column("b", "string", generated=generated))
        told = Declaration("public.t", columns, transform=transform, stored_as_scd_type=scd_type)
        source = SourceSpec("p", ".*", tables=(told,))
        memory = MemoryFormat()
        self.spark, self.at = spark, Refinement(source, memory, memory, MemoryControl(), Lake(str(folder)))
        self.ignored: dict[str, int] = {}

    def take(self, records: Sequence[Record]) -> None:
        """One batch."""
        self.at.bronze.append(bronze(self.spark, records), self.at.lake.bronze("p"), None)
        for account in silver.refine(self.spark, self.at):
            assert (account.residue, account.error) == (0, None)
            for rule, count in account.ignored.items():
                self.ignored[rule] = self.ignored.get(rule, 0) + count

    def rows(self, number: int) -> dict[int, Any]:
        """The rows of a history, by its own keys."""
        rows = self.at.silver.read(self.spark, self.at.lake.silver("p", "public.t")).collect()
        return {row["id"] - APART * number: row for row in rows if row["id"] // APART == number}

    def live(self, number: int = 0) -> Live:
        """(a, b) of its live rows."""
        return {key: (row["a"], row["b"]) for key, row in self.rows(number).items() if not row["_deleted"]}

    def unknown(self, number: int = 0) -> dict[int, list[str]]:
        """Columns whose value is not known, by id."""
        return {key: sorted(row["_column_seq"]) for key, row in self.rows(number).items() if row["_column_seq"]}

    def reasons(self, number: int = 0) -> list[str]:
        """Why its records are dead letters."""
        letters = self.at.lake.dead_letters("p")
        if self.at.bronze.version(self.spark, letters) is None:
            return []
        rows = self.at.bronze.read(self.spark, letters).collect()
        return [row["reason"] for row in rows if row["partition"] == number]


def batches(records: Sequence[Record], cuts: Sequence[int]) -> list[Sequence[Record]]:
    """The records in batches that end where they are cut."""
    bounds = [0, *[cut for cut in cuts if cut < len(records)], len(records)]
    return [records[start:end] for start, end in pairwise(bounds)]


def run(spark: SparkSession, folder: Path, records: Sequence[Record], cuts: Sequence[int], key: str = "int") -> Table:
    """The records in a table of their own."""
    table = Table(spark, folder, key)
    for batch in batches(records, cuts):
        table.take(batch)
    return table


def truncated(events: History) -> None:
    """A TRUNCATE, which has no key."""
    events.add("t", 0)
    events.records[-1] = replace(events.records[-1], key=None)


# Histories, each with the rule that it shows.


def moved(events: History) -> None:
    """M7: what was not sent is what the row held under its old key, in this batch, in silver or in bronze alone."""
    events.add("c", 1, None, row(1, 1, "large"))
    events.tx = 2
    events.move(1, 7, (2, UNSENT))


def moved_on(events: History) -> None:
    """M7: on through the old key's own old key; each change in a transaction of its own."""
    events.add("c", 1, None, row(1, 1, "large"))
    for number, (old, new) in enumerate([(1, 2), (2, 3)]):
        events.tx = 2 + number
        events.move(old, new, (number, UNSENT))


def never_held(events: History) -> None:
    """E5: NULL never passes for knowledge."""
    events.move(1, 7, (2, UNSENT))


def swapped(events: History) -> None:
    """C5, measured Z2.5: the second of d1 c2 d2 c1 takes away the key's former owner, not the row that has just
    come.
    """
    events.add("c", 1, None, row(1, 10, "one"))
    events.add("c", 2, None, row(2, 20, "two"))
    events.tx = 2
    events.move(1, 2, (10, "one"), before=(10, "one"))
    events.move(2, 1, (20, "two"), before=(20, "two"))


def moved_twice(events: History) -> None:
    """C5: the same image moved on, so the delete is one."""
    events.add("c", 1, None, row(1, 10, "one"))
    events.tx = 2
    events.move(1, 2, (10, "one"), before=(10, "one"))
    events.move(2, 3, (10, "one"), before=(10, "one"))


def moved_twice_without_images(events: History) -> None:
    """C5 under the default replica identity: a key that nobody had is left by its newcomer."""
    events.add("c", 1, None, row(1, 10, "one"))
    events.tx = 2
    events.move(1, 2, (10, "one"))
    events.move(2, 3, (10, "one"))


def swapped_without_images(events: History) -> None:
    """C5 under the default replica identity: which row left a key that had one is said aloud to be unknown."""
    events.add("c", 1, None, row(1, 10, "one"))
    events.add("c", 2, None, row(2, 20, "two"))
    events.tx = 2
    events.move(1, 2, (10, "one"))
    events.move(2, 1, (20, "two"))


def sent_again(events: History) -> None:
    """J1, C5, M7: copies of a key change are no former owner of its key, and hide no value of the row that moved."""
    events.add("c", 1, None, row(1, 10, "large"))
    events.tx = 2
    events.move(1, 2, (10, UNSENT))
    events.move(2, 3, (10, UNSENT))
    tail = events.records[1:]
    events.records += [replace(each, offset=each.offset + len(tail)) for each in tail]


def sent_again_from_the_start(events: History) -> None:
    """Q12, C5: a copy whose transaction has lifted it elsewhere is no further row of its key."""
    events.is_first = True
    events.add("c", 1, None, row(1, 10, "large"))
    events.move(1, 2, (10, UNSENT))
    events.records += [replace(each, offset=each.offset + 3) for each in events.records]


def pushed(events: History) -> None:
    """C5: Oracle compares keys at the end of a statement: `id = id + 1`, twice in one transaction."""
    events.add("c", 1, None, row(1, 10, "one"))
    events.add("c", 2, None, row(2, 20, "two"))
    events.tx = 2
    for step in (0, 1):
        events.move(1 + step, 2 + step, (10, "one"), before=(10, "one"))
        events.move(2 + step, 3 + step, (20, "two"), before=(20, "two"))


def pushed_thrice(events: History) -> None:
    """C5: a key whose row has gone in an earlier batch of the transaction gets two more, of which one goes on."""
    one, two, three = (10, "one"), (20, "two"), (30, "three")
    for key, now in enumerate((one, two, three), 1):
        events.add("c", key, None, row(key, *now))
    events.tx = 2
    for key, now in ((3, three), (2, two), (1, one), (2, one), (3, two), (4, three)):
        events.move(key, key + 1, now, before=now)


def left_before_another_came(events: History) -> None:
    """J1: what has the place of the row at rest is no copy of it where it does not say the same."""
    events.add("c", 1, None, row(1, 10, "one"))
    events.add("c", 3, None, row(3, 30, "three"))
    events.add("d", 3, row(3, 30, "three"))
    events.tx = 2
    events.move(1, 3, (10, "one"), before=(10, "one"))
    events.move(3, 4, (10, "one"), before=(10, "one"))


@dataclass(frozen=True)
class Outcome:
    """What a history ends in, in each way that it is cut, with the places of PostgreSQL and of ``others``."""

    cuts: tuple[tuple[int, ...], ...]
    live: Live
    unknown: Mapping[int, list[str]] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    swaps: int = 0
    others: tuple[str, ...] = ()


TWO = {1: (20, "two"), 2: (10, "one")}
OUTCOMES: dict[Callable[[History], None], Outcome] = {
    moved: Outcome(((2,), (1, 2, 3)), {7: (2, "large")}),
    moved_on: Outcome(((), (1, 2, 3)), {3: (1, "large")}),
    never_held: Outcome(((),), {7: (2, None)}, unknown={7: ["b"]}),
    swapped: Outcome(((), (4,), (3, 4, 5)), TWO, swaps=1, others=("oracle",)),
    moved_twice: Outcome(((3,),), {3: (10, "one")}, others=("oracle",)),
    pushed: Outcome(((), (5,), (7,)), {3: (10, "one"), 4: (20, "two")}, swaps=2, others=("oracle",)),
    pushed_thrice: Outcome(((), (4,)), {3: (10, "one"), 4: (20, "two"), 5: (30, "three")}, swaps=2, others=("oracle",)),
    left_before_another_came: Outcome(((), (2,)), {4: (10, "one")}, others=("oracle",)),
    moved_twice_without_images: Outcome(((),), {3: (10, "one")}),
    swapped_without_images: Outcome(((),), TWO, reasons=("key_swap_ambiguous",)),
    sent_again: Outcome(((), (7,)), {3: (10, "large")}),
    sent_again_from_the_start: Outcome(((), (1,), (3,)), {2: (10, "large")}),
}
RUNS = [
    (write, cuts, connector)
    for write, outcome in OUTCOMES.items()
    for connector in ("postgresql", *outcome.others)
    for cuts in outcome.cuts
]


@pytest.fixture(scope="module")
def table(exact: Any, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The n-th batch of every history is one batch."""
    every = []
    for number, (write, cuts, connector) in enumerate(RUNS):
        write(events := History(number, connector=connector))
        every.append(batches(events.records, cuts))
    together = Table(exact, tmp_path_factory.mktemp("together"))
    for at in range(max(map(len, every))):
        together.take([each for own in every if at < len(own) for each in own[at]])
    return together


@pytest.mark.parametrize("number", range(len(RUNS)), ids=lambda n: f"{RUNS[n][0].__name__} {RUNS[n][1:]}")
def test_a_history_ends_as_the_source_did_however_it_is_cut(table: Table, number: int) -> None:
    """C5, M7, E5, J1: see the histories."""
    expected = OUTCOMES[RUNS[number][0]]
    assert table.live(number) == expected.live
    assert table.unknown(number) == expected.unknown
    assert table.reasons(number) == list(expected.reasons)


def left_unseen(events: History, *, images: bool) -> None:
    """A row that the table does not show hands its key on: at the source it held it all the same. Under the default
    replica identity, without images, which row left is said aloud to be unknown.
    """
    shown, unseen, nothing = (10, "one"), (20, "gone"), (None, None)
    events.add("c", 1, None, row(1, *shown))
    events.add("c", 2, None, row(2, *unseen))
    events.tx = 2
    events.move(1, 2, shown, before=shown if images else nothing)
    events.move(2, 3, unseen, before=unseen if images else nothing)


@pytest.mark.parametrize(
    "told",
    [Transform(as_deletes="b = 'gone'"), Transform(where="b <> 'gone'")],
    ids=["apply_as_deletes", "where"],
)
def test_a_row_that_the_table_does_not_show_takes_no_other_row_along_when_it_leaves(
    exact: Any, tmp_path: Path, told: Transform
) -> None:
    """C5: what silver has as deleted may hold its key at the source: in one batch and wherever it is cut."""
    runs = [(images, cut) for images in (True, False) for cut in ((), (2,), (3,))]
    every = []
    for number, (images, cuts) in enumerate(runs):
        left_unseen(events := History(number), images=images)
        every.append(batches(events.records, cuts))
    table = Table(exact, tmp_path, transform=told)
    for at in range(2):
        table.take([each for own in every if at < len(own) for each in own[at]])
    reasons = [[] if images else ["key_swap_ambiguous"] for images, _ in runs]
    assert [table.reasons(number) for number in range(len(runs))] == reasons
    assert [table.live(number) for number in range(len(runs))] == [{2: (10, "one")}] * len(runs)


def test_swaps_are_counted(table: Table) -> None:
    """R3: the deletes that are not to be applied are ignored by name."""
    assert table.ignored == {"key_swap": sum(OUTCOMES[write].swaps for write, *_ in RUNS)}


def test_keys_that_change_among_many_records_end_as_among_few(
    exact: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 0065: what is kept of many is not planned again with all that it was made of, which took all memory."""
    for most in ("SMALL_RECORD_BYTES", "LARGE_RECORD_BYTES"):
        monkeypatch.setattr(tuning, most, 0)
    whole = [number for number, (_, cuts, _) in enumerate(RUNS) if not cuts]
    every: list[Record] = []
    for number in whole:
        RUNS[number][0](events := History(number, connector=RUNS[number][2]))
        every += events.records
    table = run(exact, tmp_path, every, ())
    assert [table.live(number) for number in whole] == [OUTCOMES[RUNS[number][0]].live for number in whole]


@pytest.mark.parametrize(("kind", "first"), [("decimal(6,3)", 0), ("decimal(38,3)", 12345678901234567890123)])
def test_a_decimal_key_is_another_text_in_the_header(exact: Any, tmp_path: Path, kind: str, first: int) -> None:
    """C6, measured Z2.4: base64 in the key, a number in the header; keys are equal when their values are, in one batch
    and wherever it is cut, however many digits they have, in a converter's wrapper or not.
    """
    every = []
    for number, (cuts, wrapper) in enumerate([((), "%s"), ((1,), WRAPPER), ((2,), "%s"), ((), WRAPPER)]):
        moved(events := History(number))
        every.append(batches([in_base64(each, first, wrapper) for each in events.records], cuts))
    table = Table(exact, tmp_path, kind)
    for at in range(2):
        table.take([each for own in every if at < len(own) for each in own[at]])
    rows = table.at.silver.read(exact, table.at.lake.silver("p", "public.t")).where("NOT _deleted").collect()
    moved_to = {Decimal(first + APART * number + 7).scaleb(-3): (2, "large", None) for number in range(len(every))}
    assert {row["id"]: (row["a"], row["b"], row["_column_seq"] and [*row["_column_seq"]]) for row in rows} == moved_to


WRAPPER = '{"schema":{"type":"struct","fields":[],"optional":false},"payload":%s}'


def in_base64(told: Record, first: int = 0, wrapper: str = "%s") -> Record:
    """The record with its key in thousandths behind the first, as `decimal.handling.mode=precise` writes it."""

    def written(number: int) -> str:
        unscaled = first + number
        return base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big")).decode()

    key, value = json.loads(told.key or ""), json.loads(told.value or "")
    for image in ("before", "after"):
        if value[image] is not None:
            value[image]["id"] = written(value[image]["id"])
    headers = tuple(
        (name, (wrapper % f'{{"id":{Decimal(first + json.loads(text)["id"]).scaleb(-3)}}}').encode())
        for name, text in told.headers
    )
    return replace(told, key=json.dumps({"id": written(key["id"])}), value=json.dumps(value), headers=headers)


def test_a_key_has_as_many_rows_as_came_and_did_not_leave(exact: Any, tmp_path: Path) -> None:
    """C5: equal rows are two rows, a row may be written on its way, a truncate leaves none; all of it redelivered."""
    events = History()
    for key in (1, 2, 5):  # 1 and 2 look the same
        events.add("c", key, None, row(key, 10, "one"))
    truncated(events)
    for key in (1, 2):
        events.add("c", key, None, row(key, 10, "one"))
    events.tx = 2
    for old, new in ((1, 2), (2, 1)):
        events.move(old, new, (10, "one"), before=(10, "one"))
    events.add("c", 3, None, row(3, 30, "three"))
    events.move(3, 4, (30, "three"), before=(30, "three"))
    events.add("u", 4, row(4, 30, "three"), row(4, 31, "three"))
    events.move(4, 5, (31, "three"), before=(31, "three"))
    events.move(5, 6, (31, "three"))  # the key 5 was free: the truncate took its row
    again = [Record(TOPIC, r.offset + 20, r.key, r.value, headers=r.headers) for r in events.records[6:]]
    table = run(exact, tmp_path, [*events.records, *again], (9, len(events.records)))
    assert table.reasons() == []
    assert table.live() == {1: (10, "one"), 2: (10, "one"), 6: (31, "three")}


@pytest.mark.parametrize("cuts", [(), (1,), (1, 2, 3)], ids=str)
def test_a_row_inherits_nothing_from_before_a_truncate(exact: Any, tmp_path: Path, cuts: tuple[int, ...]) -> None:
    """M7, T2, E8: what the key's last row before the TRUNCATE held is no value of the one behind it that moves."""
    events = History()
    events.add("r", 1, None, row(1, 10, "computed of 10"))
    events.tx = 2
    truncated(events)
    events.tx = 3
    events.add("c", 1, None, {"id": 1, "a": 20})  # a generated column is in snapshots only
    events.tx = 4
    events.add("d", 1, row(1, None, None), newkey=2)
    events.add("c", 2, None, {"id": 2, "a": 20}, oldkey=1)
    table = Table(exact, tmp_path, generated=True)
    for batch in batches(events.records, cuts):
        table.take(batch)
    assert (table.live(), table.unknown()) == ({2: (20, None)}, {2: ["b"]})


def test_a_truncate_takes_no_value_from_what_a_row_was_before_it(exact: Any, tmp_path: Path) -> None:
    """M7, T2: in one batch with the TRUNCATE that ended it, the row that moved has what it inherited in its history."""
    moved(events := History())
    events.tx = 3
    truncated(events)
    table = Table(exact, tmp_path, scd_type=2)
    table.take(events.records)
    assert table.live() == {}
    past = table.at.silver.read(exact, table.at.lake.history("p", "public.t")).where("NOT _deleted").collect()
    assert {row["id"]: (row["a"], row["b"]) for row in past} == {1: (1, "large"), 7: (2, "large")}


def test_a_delete_without_a_key_takes_it_from_before(exact: Any, tmp_path: Path) -> None:
    """B4: the Kafka key, else ``before``; with neither it is a dead letter."""
    events = History()
    events.add("c", 1, None, row(1, 10, "one"))
    events.add("c", 2, None, row(2, 20, "two"))
    events.add("d", 1, row(1, None, None))
    events.add("d", 2)
    records = [*events.records[:2], *[Record(TOPIC, r.offset, None, r.value) for r in events.records[2:]]]
    table = Table(exact, tmp_path)
    table.take(records)
    assert table.live() == {2: (20, "two")}
    assert table.reasons() == ["key_missing"]


@pytest.mark.parametrize(
    ("kind", "one", "two", "filler"),
    [
        ("decimal_string(10,2)", "1.00", "2.00", "0.00"),
        ("date", 1, 2, 0),
        ("micro_timestamp", 1, 2, 0),
        ("zoned_timestamp", "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", "1970-01-01T00:00:00Z"),
        ("array<int>", [1], [2], []),
        ("point", {"x": 1.0, "y": 1.0}, {"x": 2.0, "y": 2.0}, {"x": 0.0, "y": 0.0}),
    ],
)
def test_the_zero_of_any_type_is_no_image(
    exact: Any, tmp_path: Path, kind: str, one: Any, two: Any, filler: Any
) -> None:
    """C5, E9: under the default replica identity, which row left a key that had one is said aloud to be unknown."""
    table = Table(exact, tmp_path)
    own = (Column("id", "int"), Column("a", kind), Column("b", "string"))
    table.at = replace(table.at, source=SourceSpec("p", ".*", tables=(Declaration("public.t", own),)))
    events = History()
    events.add("c", 1, None, row(1, one, ""))
    events.add("c", 2, None, row(2, two, ""))
    events.tx = 2
    events.move(1, 2, (one, ""), before=(filler, ""))
    events.move(2, 1, (two, ""), before=(filler, ""))
    table.take(events.records)
    assert (table.reasons(), table.ignored) == (["key_swap_ambiguous"], {})
