"""The benchmark's generator: its end state is the oracle of every run, so it is held to a replay that knows nothing."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from benchmarks.cdc_ch import dataset, gate, partitioner, star, sweep
from benchmarks.cdc_ch.contender import REFINE, Case
from benchmarks.cdc_ch.dataset import Dataset, Parameters
from benchmarks.cdc_ch.records import UNSENT
from benchmarks.cdc_ch.star import Star
from benchmarks.cdc_ch.sweep import Sweep
from benchmarks.cdc_ch.tables import KNOWN, RATE
from benchmarks.cdc_ch.tpcc import Scale

SMALL = Parameters(2_000, Scale(1, 10, 50), duplicates=0.05, disorder=0.05)
WIDENED = replace(SMALL, schema_change=True, toast=True, disorder=0.0, duplicates=0.0)
Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where workloads are made, each once."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def small(home: Path) -> Dataset:
    """A workload of a few thousand events."""
    return dataset.made(SMALL, home)


def records(data: Dataset) -> list[dict[str, Any]]:
    """All records, the snapshot's first."""
    return [json.loads(line) for line in dataset.lines(data)]


def replayed(data: Dataset) -> Rows:
    """What the records make of the tables where the greatest LSN of a key wins, whatever came when."""
    newest: dict[tuple[str, str], tuple[int, dict[str, Any] | None]] = {}
    for record in records(data):
        if record["payload"] is None:
            continue
        event = json.loads(record["payload"])
        key, lsn = (event["source"]["table"], record["key"]), event["source"]["lsn"]
        if key not in newest or lsn >= newest[key][0]:
            newest[key] = (lsn, event["after"])
    found: Rows = defaultdict(dict)
    for (table, of), (_, row) in newest.items():
        if row is not None:
            found[table][of] = row
    return found


def oracle(data: Dataset, folder: str = "state") -> Rows:
    """What the generator says of the tables, as events write it."""
    found: Rows = defaultdict(dict)
    for file in (data.folder / folder).glob("*.parquet"):
        table = KNOWN[file.stem]
        for row in pq.read_table(file).to_pylist():
            written = {name: on_wire(value) for name, value in row.items()}
            key = json.dumps({name: row[name] for name in table.keys}, separators=(",", ":"))
            found[table.name][key] = written
    return found


def on_wire(value: Any) -> Any:
    """A value as an event has it."""
    if isinstance(value, Decimal):
        return str(value)
    return value if value is None or isinstance(value, (int, str)) else int(value.timestamp() * 1_000_000)


def test_the_same_seed_makes_the_same_bytes_and_another_one_others(small: Dataset, tmp_path: Path) -> None:
    """A workload is its parameters."""
    again = dataset.made(SMALL, tmp_path)
    other = dataset.made(replace(SMALL, seed=1), tmp_path)
    assert list(dataset.lines(again)) == list(dataset.lines(small))
    assert again.meta == small.meta
    assert list(dataset.lines(other)) != list(dataset.lines(small))


def test_it_is_made_once(small: Dataset) -> None:
    """What is there with its last file is taken as it is."""
    file = small.folder / "state" / "orders.parquet"
    before = file.stat().st_mtime_ns
    assert dataset.made(SMALL, small.folder.parent).meta == small.meta
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize("more", [{}, {"before": True}, {"batches": 3}, {"per_key": 4}, {"skew": 1.2}])
def test_the_end_state_is_what_a_naive_replay_ends_in(more: dict[str, Any], home: Path) -> None:
    """The oracle, with deletes, duplicates and disorder in the stream."""
    data = dataset.made(replace(SMALL, **more), home)
    assert replayed(data) == oracle(data)
    assert len(data.batches) == more.get("batches", 1)


def test_the_changes_alone_lead_from_the_first_state_to_the_last(small: Dataset) -> None:
    """What silver starts from and what it is given end in the oracle; touched keys are those that differ or did."""
    state = oracle(small, "start")
    touched: dict[str, dict[str, bool]] = defaultdict(dict)
    for record in records(small)[small.meta["snapshot"] :]:
        table = record["topic"].rpartition(".")[2]
        touched[table][record["key"]] = record["payload"] is None
        if record["payload"] is None:
            state[table].pop(record["key"], None)
        else:
            state[table][record["key"]] = json.loads(record["payload"])["after"]
    told = {
        file.stem: {
            json.dumps({name: row[name] for name in KNOWN[file.stem].keys}, separators=(",", ":")): row["deleted"]
            for row in pq.read_table(file).to_pylist()
        }
        for file in (small.folder / "touched").glob("*.parquet")
    }
    assert {table: set(keys) for table, keys in touched.items()} == {t: set(keys) for t, keys in told.items() if keys}
    final = oracle(small)
    assert all((key in final[table]) != deleted for table, keys in told.items() for key, deleted in keys.items())
    assert sum(map(len, told.values())) == small.meta["keys"]


def test_duplicates_and_disorder_are_there_as_asked_and_each_partition_is_in_order(small: Dataset) -> None:
    """Redelivered records are the same but for when they were sent; what is late was overtaken across partitions."""
    sent = records(small)[small.meta["snapshot"] :]
    offsets = defaultdict(list)
    for record in sent:
        offsets[record["topic"], record["partition"]].append(record["offset"])
    assert all(found == sorted(found) and len(set(found)) == len(found) for found in offsets.values())
    assert len({record["partition"] for record in sent}) == SMALL.partitions
    assert 0.03 < small.meta["duplicates"] / small.meta["records"] < 0.05 + 400 / 2_000
    assert 0.02 < small.meta["late"] / small.meta["records"] < 0.12
    none = dataset.made(replace(SMALL, duplicates=0.0, disorder=0.0), small.folder.parent)
    assert (none.meta["duplicates"], none.meta["late"]) == (0, 0)
    lsns = [json.loads(r["payload"])["source"]["lsn"] for r in records(none) if r["payload"] is not None]
    assert len(set(lsns[none.meta["snapshot"] :])) == len(lsns) - none.meta["snapshot"]


def test_transactions_come_45_to_43_to_4_and_every_kind_of_change_is_there(small: Dataset) -> None:
    """TPC-C's mix, and its invariant that the warehouse has what its districts have (consistency condition 1)."""
    inserts: dict[tuple[str, str], int] = defaultdict(int)
    for record in records(small)[small.meta["snapshot"] :]:
        if record["payload"] is not None:
            event = json.loads(record["payload"])
            inserts[event["source"]["table"], event["op"]] += 1
    orders, payments = inserts["orders", "c"], inserts["history", "c"]
    assert 0.7 < orders / payments < 1.5
    assert inserts["neworder", "d"] > 0
    assert inserts["orderline", "u"] > 0
    final = oracle(small)
    paid = sum(Decimal(row["d_ytd"]) for row in final["district"].values())
    assert sum(Decimal(row["w_ytd"]) for row in final["warehouse"].values()) == paid


def test_a_long_text_that_did_not_change_is_not_sent(home: Path) -> None:
    """PostgreSQL's TOAST: the connector's placeholder stands in the event, the oracle has the text."""
    data = dataset.made(replace(SMALL, toast=True), home)
    texts = [
        json.loads(record["payload"])["after"]["c_data"]
        for record in records(data)[data.meta["snapshot"] :]
        if record["topic"].endswith(".customer")
    ]
    assert UNSENT in texts
    assert any(text != UNSENT for text in texts)
    assert all(row["c_data"] != UNSENT for row in oracle(data)["customer"].values())


def test_a_skew_makes_some_districts_and_items_hot(small: Dataset) -> None:
    """Zipf's law: the first of n ranks has the share 1 / (1 + 2^-s + ... + n^-s); without it districts are even."""
    skewed = dataset.made(replace(SMALL, skew=1.2), small.folder.parent)
    share = {}
    for data in (small, skewed):
        orders = [row["o_d_id"] for row in oracle(data)["orders"].values() if row["o_id"] > SMALL.scale.customers]
        items = [row["s_order_cnt"] for row in sorted(oracle(data)["stock"].values(), key=lambda row: row["s_i_id"])]
        share[data.folder.name] = (orders.count(1) / len(orders), items[0] / sum(items))
    assert share[small.folder.name][0] < 0.25
    assert share[small.folder.name][1] < 0.1
    assert 0.3 < share[skewed.folder.name][0] < 0.5
    assert 0.2 < share[skewed.folder.name][1] < 0.35


def test_a_column_appears_half_way_and_the_oracle_has_it(home: Path) -> None:
    """Events before lack it, events behind have it, if only as NULL; rows that no event touched since have none."""
    data = dataset.made(WIDENED, home)
    events = [json.loads(record["payload"]) for record in records(data) if record["topic"].endswith(".customer")]
    has = ["c_tier" in event["after"] for event in events]
    assert has == sorted(has)
    assert 0.2 < sum(has) / len(has[data.meta["snapshot"] :] or has) < 0.9
    assert {event["after"]["c_tier"] for event in events if "c_tier" in event["after"]} >= {"gold", "plain"}
    known = replayed(data)["customer"]
    rows = oracle(data)["customer"]
    assert {key: row["c_tier"] for key, row in rows.items()} == {k: row.get("c_tier") for k, row in known.items()}
    assert {row["c_tier"] for row in rows.values()} > {None}
    others = dataset.made(SMALL, home)
    assert oracle(data)["orders"] == oracle(others)["orders"]


def test_the_gate_asks_for_the_column_that_appeared(home: Path, tmp_path: Path) -> None:
    """A system that leaves it out is wrong."""
    data = dataset.made(WIDENED, home)
    out = tmp_path / "out"
    for file in (data.folder / "state").glob("*.parquet"):
        (out / file.stem).mkdir(parents=True)
        duckdb.sql(f"COPY (FROM '{file}') TO '{out / file.stem / 'all.parquet'}'")
    case = Case(REFINE, "a case", str(data.folder))
    assert gate.problems(case, out) == []
    file = data.folder / "state" / "customer.parquet"
    duckdb.sql(f"COPY (SELECT * EXCLUDE (c_tier) FROM '{file}') TO '{out / 'customer' / 'all.parquet'}'")
    [problem] = gate.problems(case, out)
    assert "c_tier" in problem


def test_rates_keep_four_places() -> None:
    """A value on the wire has the scale of its column."""
    assert '"w_tax":"0.0420"' in KNOWN["warehouse"].writer()([1, "n", "s", "c", "S", "z", 420, 100])
    assert KNOWN["warehouse"].spark("w_tax") == RATE.upper()


@pytest.mark.parametrize("keys", [sweep.UNIFORM, sweep.ZIPF, sweep.LATEST])
@pytest.mark.parametrize("mix", sweep.MIXES)
def test_a_sweep_changes_different_keys_as_often_as_asked(keys: str, mix: str) -> None:
    """One change per key; the latest are the last hundredth, or twice as many as change."""
    asked = Sweep(20_000, 100, keys, mix)
    updates, deletes = sweep.chosen(asked)
    share = sweep.MIXES[mix]
    assert (len(updates), len(deletes)) == (round(100 * share[0]), round(100 * share[1]))
    picked = {*updates.tolist(), *deletes.tolist()}
    assert len(picked) == len(updates) + len(deletes)
    assert all((19_800 if keys == sweep.LATEST else 0) <= key < 20_000 for key in picked)


def test_a_sweep_cannot_change_more_keys_than_there_are() -> None:
    """Else it would look for them for ever."""
    with pytest.raises(ValueError, match="cannot change"):
        sweep.chosen(Sweep(10, 11, mix="update"))


def test_a_sweeps_oracle_is_its_table_with_the_changes(tmp_path: Path) -> None:
    """Replayed key by key."""
    asked = Sweep(3_000, 200)
    folder = sweep.made(asked, tmp_path)

    def rows(files: str) -> list[tuple[Any, ...]]:
        return duckdb.sql(f"SELECT * FROM '{files}'").fetchall()

    state = {row[0]: row for row in rows(f"{tmp_path / asked.target}/*.parquet")}
    for *row, op, _ in rows(f"{folder}/changes.parquet"):
        if op == "d":
            del state[row[0]]
        else:
            assert state.get(row[0]) != tuple(row)
            state[row[0]] = tuple(row)
    told = rows(f"{folder}/state/*.parquet")
    assert len(told) == len(state) == 3_000 + 40 - 10
    assert {row[0]: row for row in told} == state


@pytest.mark.parametrize(("latest", "changing"), [(False, range(0, 200, 10)), (True, range(180, 200))])
def test_a_fact_is_its_lines_joined_with_those_that_changed(tmp_path: Path, changing: range, *, latest: bool) -> None:
    """Joined line by line; every n-th has another quantity, or the latest ones have."""
    folder = star.made(Star(200, 10, latest=latest), tmp_path)

    def rows(name: str) -> dict[int, dict[str, Any]]:
        told = pq.read_table(folder / f"{name}.parquet").to_pylist()
        return {next(iter(row.values())): row for row in told}

    lines, purchases, products = (rows(f"start/{name}") for name in star.NAMES)
    changed, facts = rows("changes/lines"), rows("state/fact")
    assert list(changed) == list(changing)
    assert all(row["quantity"] != lines[key]["quantity"] for key, row in changed.items())
    for key, row in (lines | changed).items():
        order, product = purchases[row["order_id"]], products[row["product"]]
        profit = ((row["price"] - product["cost"]) * row["quantity"]).quantize(Decimal("0.01"))
        wanted = {"line_key": key, "order_key": order["order_id"], "customer": order["customer"]}
        wanted |= {"placed": order["placed"], "product_key": product["product"], "quantity": row["quantity"]}
        assert facts[key] == wanted | {"price": row["price"], "profit": profit}


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("abc", 479470107),
    ],
)
def test_a_key_is_hashed_as_kafkas_own_tests_say(key: str, hashed: int) -> None:
    assert partitioner.murmur2(key.encode()) == hashed % 2**32
