"""``consistency: transaction``: silver shows transactions whole or not at all, in their order (debezium.md H3).

Every transaction writes an order and some lines of it, in topics that arrive at their own pace, repeated ones among
them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.errors import AtWork, ConfigError, TableStopped
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import epoch, pause, rebuild_all
from replicator.operate.explain import explain
from replicator.operate.progress.waiting import Waiting, waiting
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.operate.rebuilding.rebuild_result import EQUAL, PAUSED, WRITTEN
from replicator.operate.status import StatusInputs, list_statuses
from replicator.spec import Applied, Progress, SourceSpec, Table
from replicator.stages import silver
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement
from replicator.stages.tick import cut_calculation, transaction_cut
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.epochs import Epochs
from replicator.stages.tick.source_state import SourceState
from replicator.stages.tick.tick_context import TickContext
from replicator.stages.tick.transaction_cut import Cut, CutState
from replicator.transforms import transactions
from tests.builders import bronze, envelope, made
from tests.builders import record as sent
from tests.golden.run import Run

pytestmark = pytest.mark.spark

ORDERS, LINES, ENDS = "s.shop.orders", "s.shop.lines", "s.transaction"


class Log:
    """What the connector sends, by topic and partition, and how far bronze has got."""

    def __init__(self, seed: int, *, postgres: bool) -> None:
        self.random, self.postgres = Random(seed), postgres
        self.sent: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
        self.read: dict[tuple[str, int], int] = defaultdict(int)
        self.place = 0

    def transaction(self, number: int) -> None:
        """An order that has been there before or is new, and its lines; BEGIN and END around them."""
        lines = self.random.randint(0, 3)
        order = self.random.randint(1, 6)
        rows = [("orders", {"id": order}, {"id": order, "tx": number, "lines": lines})]
        rows += [("lines", {"id": 10 * number + n}, {"id": 10 * number + n, "tx": number}) for n in range(lines)]
        self.told(number, "BEGIN", {})
        for nth, (table, key, row) in enumerate(rows, 1):
            self.place += 10
            self.change(number, nth, table, key, row, self.place)
        self.told(number, "END", {"shop.orders": 1} | ({"shop.lines": lines} if lines else {}))

    def change(self, number: int, nth: int, table: str, key: dict[str, Any], row: dict[str, Any], place: int) -> None:
        source = {"name": "s", "ts_ms": 1000 * number, "snapshot": "false", "table": table}
        if self.postgres:
            order = json.dumps([str(100 * number), str(place)])
            source |= {"connector": "postgresql", "schema": "shop", "lsn": place, "txId": number, "sequence": order}
        else:
            source |= {"connector": "mariadb", "db": "shop", "file": "b.000001", "pos": place, "row": 0}
        told = {"id": self.id(number, place), "total_order": nth, "data_collection_order": 1}
        value = {"before": None, "after": row, "op": "u", "ts_ms": 1, "source": source, "transaction": told}
        self.put(f"s.shop.{table}", key, value)

    def id(self, number: int, place: int) -> str:
        return f"{number}:{place}" if self.postgres else f"0-1-{number}"

    def told(self, number: int, status: str, counts: dict[str, int]) -> None:
        each = [{"data_collection": table, "event_count": count} for table, count in counts.items()]
        value = {"status": status, "id": self.id(number, self.place), "event_count": sum(counts.values())}
        # whole seconds, so that neighbours share them
        self.put(ENDS, {"id": number}, {**value, "data_collections": each or None, "ts_ms": number // 3 * 1000})

    def put(self, topic: str, key: dict[str, Any], value: dict[str, Any]) -> None:
        place = (topic, sum(map(ord, json.dumps(key))) % 2)
        record = {"topic": topic, "partition": place[1], "offset": len(self.sent[place]), "tstype": "create", "ts": 1}
        record |= {"headers": [], "key": json.dumps(key), "payload": json.dumps(value)}
        self.sent[place].append(record)

    def repeat(self, count: int) -> None:
        """A connector that died sends its last records again, ends among them."""
        for (topic, _), records in list(self.sent.items()):
            for record in records[-count:]:
                self.put(topic, json.loads(record["key"]), json.loads(record["payload"]))

    def written(self) -> dict[int, int]:
        """How many lines each transaction has."""
        rows = [json.loads(each["payload"])["after"] for part in (0, 1) for each in self.sent[ORDERS, part]]
        return {row["tx"]: row["lines"] for row in rows}

    def arrives(self, *, all_of_it: bool = False) -> list[dict[str, Any]]:
        """What bronze gets next: of each partition some."""
        found = []
        for place, records in self.sent.items():
            left = len(records) - self.read[place]
            some = left if all_of_it else self.random.randint(0, left)
            found += records[self.read[place] : self.read[place] + some]
            self.read[place] += some
        return found


def visible(run: Run) -> tuple[dict[int, dict[str, Any]], dict[int, list[dict[str, Any]]]]:
    """Orders by the transaction that wrote them last, and the lines of each transaction."""
    orders = {row["tx"]: row for row in run.shown("shop.orders").values()} if run.exists("shop.orders") else {}
    lines = defaultdict(list)
    for row in run.shown("shop.lines").values() if run.exists("shop.lines") else ():
        lines[row["tx"]].append(row)
    return orders, lines


@pytest.mark.parametrize(("postgres", "seed"), [(False, 3), (True, 4)], ids=["gtid", "txId:lsn"])
def test_transactions_are_shown_whole_and_in_their_order(
    exact: SparkSession, tmp_path: Path, postgres: bool, seed: int
) -> None:
    """Whatever of a transaction is there, all of it is, and of every one before it: at every moment, and all in the
    end. Of bronze nothing is kept but its newest version.
    """
    log, run = Log(seed, postgres=postgres), Run(exact, tmp_path, SourceSpec("s", "", whole_transactions=True))
    number, seen, waited = 0, 0, 0
    for step in range(4):
        for _ in range(log.random.randint(1, 4)):
            number += 1
            log.transaction(number)
        if step in (1, 3):
            log.repeat(4)
        arrived = log.arrives()
        if arrived:
            run.ingest(arrived)
            run.at.bronze.maintain(exact, run.at.lake.bronze("s"), 0)
            assert [each.error for each in silver.refine(exact, run.at) if each.error or each.residue] == []
        orders, lines = visible(run)
        newest = max([*orders, *lines], default=0)
        for tx, order in orders.items():
            assert len(lines.get(tx, ())) == order["lines"], f"half of {tx}"
        written = log.written()
        for tx, count in written.items():
            assert len(lines.get(tx, ())) == (count if tx <= newest else 0), f"{tx} of {newest}"
        assert newest >= seen
        seen, waited = newest, waited + (newest < number)
    assert waited, "nothing ever had to wait"
    run.take(log.arrives(all_of_it=True) or log.arrives(all_of_it=True))
    orders, lines = visible(run)
    assert max([*orders, *lines]) == number
    stands = transaction_cut.load(run.at.control, run.at.lake, "s")
    assert stands is not None
    assert stands.cut.offsets == {}
    assert stands.lagging_tables == ()


class Killed(BaseException):
    """Nobody catches it."""


class Failing(MemoryFormat):
    """Tables in memory; what is put into ``fails`` is raised once, when orders are written: lines are then."""

    def __init__(self) -> None:
        super().__init__()
        self.fails: list[BaseException] = []

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        if self.fails and table.name.endswith("orders"):
            raise self.fails.pop()
        return super().apply(changes, table, progress)


def test_gold_waits_while_a_table_has_not_taken_what_others_show(exact: SparkSession, tmp_path: Path) -> None:
    """A table stopped, or silver is between two and may have been killed there: models of the source wait until all
    tables have it.
    """
    log, run = Log(5, postgres=False), Run(exact, tmp_path, SourceSpec("s", "", whole_transactions=True))
    tables = Failing()
    run.at = replace(run.at, bronze=tables, silver=tables)
    for number in (1, 2):
        log.transaction(number)
    run.take(log.arrives(all_of_it=True))
    transaction_cut.load_consistent(run.at.control, run.at.lake, "s")
    faults: list[tuple[BaseException, type[Exception]]] = [
        (TableStopped("orders stop"), TableStopped),
        (Killed(), AtWork),
    ]
    for first, (fault, refusal) in zip((3, 6), faults, strict=True):
        before = visible(run)
        for number in range(first, first + 3):
            log.transaction(number)
        tables.fails.append(fault)
        with suppress(Killed):
            run.feed(log.arrives(all_of_it=True))
        assert visible(run) != before, "the lines were to be written"
        with pytest.raises(refusal, match="incomplete in silver"):
            transaction_cut.load_consistent(run.at.control, run.at.lake, "s")
        run.accounts += silver.refine(exact, run.at)  # without any news
        transaction_cut.load_consistent(run.at.control, run.at.lake, "s")
        orders, lines = visible(run)
        assert {tx: len(rows) for tx, rows in lines.items()} == {tx: n for tx, n in log.written().items() if n}
        assert first + 2 in orders


def test_what_waits_is_told_with_what_holds_it_back(exact: SparkSession, tmp_path: Path) -> None:
    """`status` and `explain`: an order whose lines are late is no row yet, and is not called read."""
    log, run = Log(6, postgres=False), Run(exact, tmp_path, SourceSpec("s", "", whole_transactions=True))
    number = 1
    log.transaction(number)
    run.take(log.arrives(all_of_it=True))
    assert waiting(exact, run.at) is None
    while number == 1 or not log.written()[number]:
        number += 1
        log.transaction(number)
    arrived = log.arrives(all_of_it=True)
    run.take([record for record in arrived if record["topic"] != LINES])
    told = waiting(exact, run.at)
    assert told is not None
    assert replace(told, cut=transaction_cut.Cut()) == Waiting(transaction_cut.Cut(), {ORDERS: 1}, 1, 1, (LINES,))
    at = StatusInputs(run.at.lake, run.at.silver, run.at.control, {}, {}, (), {}, {"s": run.at})
    found = {(each.layer, each.table): each for each in list_statuses(exact, at)}
    line = found["waiting", "s"]
    assert (line.rows, line.position, line.lag_events) == (1, f"for records of {LINES}", 1)
    assert (line.lag_seconds or 0) > 3600
    assert found["silver", "s/shop.orders"].lag_events == 1
    late = next(r for part in (0, 1) for r in log.sent[ORDERS, part] if f'"tx": {number},' in r["payload"])
    life = explain(exact, run.at, "shop.orders", str(json.loads(late["key"])["id"]))
    [entry] = [e for e in life.entries if (e.partition, e.offset) == (late["partition"], late["offset"])]
    assert (entry.verdict, entry.why.endswith(f"it waits for records of {LINES}")) == ("waiting", True)
    run.take([record for record in arrived if record["topic"] == LINES])
    assert waiting(exact, run.at) is None


def test_marks_that_were_read_from_bronze_where_records_may_wait_are_rough(exact: SparkSession, tmp_path: Path) -> None:
    """Q5: they may be those of records that are yet to be taken, which no row of a snapshot has to rank above. Those of
    the process that took the records are not.
    """
    log, run = Log(3, postgres=False), Run(exact, tmp_path, SourceSpec("s", "", whole_transactions=True))
    rough = []
    for number in range(1, 7):
        log.transaction(number)
        run.at = replace(run.at, state=SourceState()) if number == 6 else run.at
        run.take(log.arrives(all_of_it=True))
        rough.append(run.at.state.watermarks[ORDERS].rough)
    assert rough == [*[False] * 5, True]


def test_ends_that_were_let_through_are_looked_for_among_the_last_records_alone(
    exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of older ones are left out by what Delta knows of their offsets: the topic grows with each transaction."""
    monkeypatch.setattr(cut_calculation, "_REPEATED", 2)
    delta, lake = DeltaFormat(), Lake(str(tmp_path))
    at = Refinement(SourceSpec("s", "", whole_transactions=True), delta, delta, MemoryControl(), lake)
    places = [(0, offset) for offset in range(9)] + [(1, offset) for offset in range(9)]
    told = [sent(ENDS, offset, None, {"status": "END"}, partition=partition) for partition, offset in places]
    delta.append(bronze(exact, told), lake.bronze("s"), None)
    stood = CutState("b", 0, Cut({(ENDS, 0): 8}))
    lately = cut_calculation._earlier_ends(TickContext(exact, at, NewRecords(0, {}), Epochs()), stood)
    assert lately is not None
    rows = sorted((row["partition"], row["offset"]) for row in lately.collect())
    assert rows == [(0, 6), (0, 7), (1, 7), (1, 8)]
    scan = lately._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    pushed = scan.metadata().apply("PushedFilters")
    assert ("GreaterThan(offset,5)" in pushed, "GreaterThan(offset,6)" in pushed) == (True, True)


def test_a_lake_that_has_rows_already_goes_on_from_where_it_stands(exact: SparkSession, tmp_path: Path) -> None:
    """Of transactions that are half here when it is switched on, the rest is shown as it comes; those behind them
    whole. Switched off, nothing waits any more.
    """
    log, run = Log(6, postgres=False), Run(exact, tmp_path, SourceSpec("s", ""))
    for number in (1, 2, 3):
        log.transaction(number)
    run.take([record for record in log.arrives(all_of_it=True) if record["topic"] != LINES])
    late = [record for part in (0, 1) for record in log.sent[LINES, part]]
    run.at = replace(run.at, source=replace(run.at.source, whole_transactions=True))
    assert silver.refine(exact, run.at) == []
    assert transaction_cut.load_consistent(run.at.control, run.at.lake, "s") is not None
    log.transaction(4)
    arrived = log.arrives(all_of_it=True)
    waits = [record for record in arrived if record["topic"] == LINES]
    run.take([record for record in arrived if record["topic"] != LINES])
    written = log.written()
    assert written[4], "it has lines that are late"
    assert 4 not in visible(run)[0]
    run.take(late)
    assert {tx for tx in (1, 2, 3) if len(visible(run)[1].get(tx, ())) != written[tx]} == set(), "those were excused"
    assert 4 not in visible(run)[0]
    run.at = replace(run.at, source=replace(run.at.source, whole_transactions=False))
    run.accounts += silver.refine(exact, run.at)
    assert 4 in visible(run)[0], "nothing waits any more"
    run.take(waits)
    orders, lines = visible(run)
    assert {tx: len(rows) for tx, rows in lines.items()} == {tx: n for tx, n in written.items() if n}
    assert 4 in orders
    assert transaction_cut.load(run.at.control, run.at.lake, "s") is None
    run.at = replace(run.at, source=replace(run.at.source, whole_transactions=True))
    assert silver.refine(exact, run.at) == []
    for number in (5, 6):
        log.transaction(number)
    run.take([r for r in log.arrives(all_of_it=True) if r["topic"] != ENDS or '"id": "0-1-5"' in r["payload"]])
    assert {5, 6} & visible(run)[0].keys() == {5}, "its table has read as far as bronze reaches"
    run.at = replace(run.at, source=replace(run.at.source, whole_transactions=False))
    run.accounts += silver.refine(exact, run.at)
    assert 6 in visible(run)[0]


def test_a_rebuild_shows_what_was_shown_and_lets_the_rest_wait(exact: SparkSession, tmp_path: Path) -> None:
    """P5 under ``consistency: transaction``: a damaged row becomes what it was, a change of a transaction that is not
    here whole stays away, and comes with its end; also into a table that stopped then, and was built again.
    """
    log, run = Log(7, postgres=False), Run(exact, tmp_path, SourceSpec("s", "", whole_transactions=True))
    tables = Failing()
    run.at = replace(run.at, bronze=tables, silver=tables)
    for number in (1, 2, 3):
        log.transaction(number)
    run.take(log.arrives(all_of_it=True))
    log.transaction(4)
    arrived = log.arrives(all_of_it=True)
    ends = [record for record in arrived if record["topic"] == ENDS]
    run.take([record for record in arrived if record["topic"] != ENDS])
    before = visible(run)
    assert 4 not in before[0]
    table = run.at.lake.silver("s", "shop.orders", ("id",))
    rows = run.read("shop.orders")
    wrong = rows.withColumn("lines", F.lit(99).cast(dict(rows.dtypes)["lines"])).withColumn("_op", F.lit("upsert"))
    run.at.silver.put(wrong, table, Progress("by mistake", 1))
    assert visible(run) != before
    done = rebuild(exact, run.at, "shop.orders", RebuildOptions())
    assert (done.verdict, done.changed, done.added) == (WRITTEN, len(before[0]), 0)
    assert visible(run) == before
    assert rebuild(exact, run.at, "shop.lines", RebuildOptions()).verdict == EQUAL
    tables.fails.append(TableStopped("orders stop"))
    run.feed(ends)
    assert 4 not in visible(run)[0], "its lines are shown, the order is not"
    assert rebuild(exact, run.at, "shop.orders", RebuildOptions()).verdict == WRITTEN
    run.accounts += silver.refine(exact, run.at)  # without any news
    orders, lines = visible(run)
    assert 4 in orders
    assert {tx: len(rows) for tx, rows in lines.items()} == {tx: n for tx, n in log.written().items() if n}
    stands = transaction_cut.load_consistent(run.at.control, run.at.lake, "s")
    assert stands is not None
    assert stands.cut.offsets == {}


def test_a_paused_table_holds_back_no_other(exact: SparkSession, tmp_path: Path) -> None:
    """Its records count for the cut as they come, and are not its rows before it is resumed; a rebuild of everything
    leaves it out, and one of it is refused.
    """
    log, run = Log(6, postgres=False), Run(exact, tmp_path, SourceSpec("s", "", whole_transactions=True))
    log.transaction(1)
    run.take(log.arrives(all_of_it=True))
    paused, number = [(run.at, "shop.orders")], 1
    pause.pause(paused, "now")
    for turn in range(2):
        number += 1
        log.transaction(number)
        while not log.written()[number]:
            number += 1
            log.transaction(number)
        arrived = log.arrives(all_of_it=True)
        late = LINES if turn else ORDERS
        run.take([record for record in arrived if record["topic"] != late])
        assert number not in visible(run)[1], "its order or its lines are late"
        run.take([record for record in arrived if record["topic"] == late])
        orders, lines = visible(run)
        assert {tx: len(rows) for tx, rows in lines.items()} == {tx: n for tx, n in log.written().items() if n}
        assert orders.keys() == {1}
    row = run.at.control.get(run.at.lake.cut("s"))
    assert silver.refine(exact, run.at) == []
    assert run.at.control.get(run.at.lake.cut("s")) == row
    with pytest.raises(TableStopped, match=r"shop\.orders stopped, or is paused"):
        transaction_cut.load_consistent(run.at.control, run.at.lake, "s")
    with pytest.raises(ConfigError, match=r"replicator tables resume shop\.orders"):
        rebuild_all.resolve_selection(exact, [run.at], (), ["orders"])
    every, at = rebuild_all.resolve_selection(exact, [run.at], (), None), run.at
    done = rebuild_all.carry_out(exact, every, Warehouse(at.silver, at.silver, at.control, at.lake), RebuildOptions())
    assert {each.table: each.verdict for each in done} == {"s/shop.orders": PAUSED, "s/shop.lines": EQUAL}
    pause.resume(paused)
    run.accounts += silver.refine(exact, run.at)
    assert max(visible(run)[0]) == number
    stands = transaction_cut.load_consistent(run.at.control, run.at.lake, "s")
    assert stands is not None
    assert stands.cut.offsets == {}


def begins_with(exact: SparkSession, folder: Path, *topics: str) -> Run:
    """A run whose source has these topics alone, or all."""
    return Run(exact, folder, SourceSpec("s", "|".join(topics), whole_transactions=True))


def told(topic: str, offset: int, value: dict[str, Any]) -> dict[str, Any]:
    place = {"topic": topic, "partition": 0, "offset": offset, "tstype": "create", "ts": 1, "headers": []}
    key = {"id": (value.get("after") or value)["id"]}
    return place | {"key": json.dumps(key), "payload": json.dumps(value)}


def change(offset: int, number: int, row: dict[str, Any], pos: int, **source: Any) -> dict[str, Any]:
    """The first event of transaction ``number``, an order."""
    value = envelope("u", row, pos=pos, **source)
    return told(ORDERS, offset, value | {"transaction": {"id": f"0-1-{number}", "total_order": 1}})


def end(offset: int, number: int, *tables: str) -> dict[str, Any]:
    each = [{"data_collection": table, "event_count": 1} for table in tables]
    counts = {"status": "END", "id": f"0-1-{number}", "event_count": len(each), "data_collections": each}
    return told(ENDS, offset, counts | {"ts_ms": 1000 * offset})


@pytest.mark.parametrize(
    ("topics", "waits"),
    [(("s[.]shop[.](orders|Order_Details)", ENDS), True), (("s[.](?!shop[.]Order_Details$).*",), False)],
    ids=["read", "excluded"],
)
def test_a_table_is_known_by_the_name_that_its_topic_has(
    exact: SparkSession, tmp_path: Path, topics: Any, waits: bool
) -> None:
    """Debezium writes `_` for signs that a topic cannot have; an end names the table as it is."""
    run = begins_with(exact, tmp_path, *topics)
    run.take([change(0, 1, {"id": 1}, 10), end(0, 1, "shop.orders", "shop.Order Details")])
    assert run.exists("shop.orders") is not waits
    if waits:
        details = envelope("c", {"id": 7}, pos=20, table="shop.Order Details")
        value = details | {"transaction": {"id": "0-1-1", "total_order": 2}}
        run.take([told("s.shop.Order_Details", 0, value)])
        assert (len(run.shown("shop.orders")), len(run.shown("shop.Order Details"))) == (1, 1)


def test_a_source_that_starts_anew_may_use_its_ids_again(exact: SparkSession, tmp_path: Path) -> None:
    """After RESET MASTER, say: the end that an older transaction had is not taken for that of a new one, whose events
    are late; nothing waits for ever.
    """
    run = begins_with(exact, tmp_path)
    before = [(number, {"id": 1, "v": number}) for number in (1, 2)]
    sent = [(change(n, n, row, 10 * n), end(n, n, "shop.orders")) for n, row in before]
    run.take([each for pair in sent for each in pair])
    epoch.bump(exact, epoch.LakeSource("s", run.at.lake, run.at.bronze, run.at.control, run.at.silver), "restored", {})
    run.take([end(3, 2, "shop.orders")])
    run.take([change(3, 2, {"id": 1, "v": 3}, 20, ts_ms=1700000999000)])
    assert [row["v"] for row in run.shown("shop.orders").values()] == [3]
    run.take([change(4, 3, {"id": 2, "v": 4}, 30, ts_ms=1700000999100), end(4, 3, "shop.orders")])
    assert sorted(row["v"] for row in run.shown("shop.orders").values()) == [3, 4]
    assert waiting(exact, run.at) is None


def test_a_flattened_topic_holds_back_no_other(exact: SparkSession, tmp_path: Path) -> None:
    """Its records say no transaction, so ends count events of it that nobody finds: they go on without the others."""
    run = begins_with(exact, tmp_path)
    flat = {"id": 1, "__op": "c", "__deleted": "false", "__db": "shop", "__table": "logs"}
    logs = told("s.shop.logs", 0, flat | {"__file": "binlog.000001", "__pos": 11})
    run.take([change(0, 1, {"id": 1}, 10), logs, end(0, 1, "shop.orders", "shop.logs")])
    run.take([change(1, 2, {"id": 2}, 20), end(1, 2, "shop.orders", "shop.logs")])
    assert (len(run.shown("shop.orders")), len(run.shown("shop.logs"))) == (2, 1)
    assert waiting(exact, run.at) is None


def test_ends_may_name_a_table_with_its_database(exact: SparkSession) -> None:
    """SQL Server and Oracle do, and two databases may have a table of one name. A name may have a dot of its own."""
    named = "_tx STRING, table STRING, "
    told = [("1", "db.dbo.t", 2, 5), ("1", "db.dbo.t", 0, 9), ("2", "db.dbo.t", 1, 6), ("2", "other.dbo.t", 1, 6)]
    told += [("3", "public.my.t", 1, 7), ("3", "db.dbo.late", 1, 7)]
    ends = made(exact, told, f"{named} expected BIGINT, ended BIGINT")
    here = [("1", "dbo.t", "1"), ("1", "dbo.t", "2"), ("2", "dbo.t", "1"), ("3", "public.my.t", "1")]
    rows = [(*row, "topic", 0, number, f"{number:04}") for number, row in enumerate(here)]
    changes = made(exact, rows, f"{named} _nth STRING, topic STRING, partition INT, offset BIGINT, place STRING")
    assert {(row["_tx"], row["whole"], row["ended"]) for row in transactions.states(changes, ends).collect()} == {
        ("1", True, 5),
        ("2", False, 6),
        ("3", False, 7),
    }
    assert {row["_tx"]: row["tables"] for row in transactions.missing_tables(changes, ends).collect()} == {
        "1": [],
        "2": ["dbo.t"],
        "3": ["db.dbo.late"],
    }
