"""Events that real Debezium wrote, through bronze and silver, against what the database itself held in the end.

The recordings lie beside the project and are skipped where they are absent.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages.account import Account
from tests.golden.run import Rows, Run

pytestmark = pytest.mark.spark

CUSTOMERS = "classicmodels.customers"
LAB = (CUSTOMERS, "classicmodels.products", "classicmodels.productlines")
CUTS = ("snapshot", "s0_delete_501", "pk_update_customer")
RENAMED = ("loyaltyClass", "103")
"""A column that DDL renamed, and the key of the only customer that changed since: DDL sends no rows (Z1.14)."""


def read_gz(file: Path) -> str:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return lines.read()


def stream(recorded: Path, name: str, *tables: str) -> list[dict[str, Any]]:
    """The records of one recorded stream, of these tables only if there are any."""
    records = [json.loads(line) for line in read_gz(recorded / f"{name}.jsonl.gz").split("\n") if line]
    prefix = name.split(".")[1]
    return [r for r in records if not tables or r["topic"] in {f"{prefix}.{table}" for table in tables}]


@pytest.fixture(scope="module")
def truth(recorded: Path) -> dict[str, Any]:
    return dict(json.loads(read_gz(recorded / "classicmodels.truth.json.gz")))


def final(truth: dict[str, Any], table: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The table as the server printed it in the end, typed, by key."""
    told = truth["final"][table]
    columns = told["columns"]
    rows = [
        {c["name"]: value(text, c["type"], c.get("as")) for c, text in zip(columns, row, strict=True)}
        for row in told["rows"]
    ]
    return {tuple(row[key] for key in told["pk"]): row for row in rows}


def value(text: str | None, kind: str, printed_as: str | None) -> Any:
    """The server's text as the value that silver must hold."""
    if text is None:
        return None
    if printed_as == "hex":
        return bytes.fromhex(text)
    if "int" in kind:
        return int(text)
    if kind.startswith("decimal"):
        return Decimal(text)
    return dt.date.fromisoformat(text) if kind == "date" else text


def declared(truth: dict[str, Any], tables: Iterable[str], decimal: str = "decimal") -> tuple[Declaration, ...]:
    """What a user would declare about these tables: the server's own types, and how decimals are written."""
    return tuple(
        Declaration(table, tuple(Column(c["name"], c["type"].replace("decimal", decimal)) for c in known["columns"]))
        for table, known in truth["final"].items()
        if table in set(tables)
    )


def differing(found: dict[Any, dict[str, Any]], expected: dict[Any, dict[str, Any]]) -> dict[Any, Any]:
    """What is not the same, key by key and column by column: (found, expected)."""
    nothing: dict[str, Any] = {}
    pairs = {key: (found.get(key, nothing), expected.get(key, nothing)) for key in {*found, *expected}}
    return {
        key: {c: (one.get(c, "absent"), other.get(c, "absent")) for c in {*one, *other} if one.get(c) != other.get(c)}
        for key, (one, other) in pairs.items()
        if one != other
    }


def business(rows: Rows) -> Rows:
    """Without positions: the source's columns and whether the row is there."""
    ours = ("_seq", "_column_seq", "_source_ts_ms")
    return {t: {k: {c: v for c, v in row.items() if c not in ours} for k, row in by.items()} for t, by in rows.items()}


def offsets(truth: dict[str, Any], step: str) -> dict[str, int]:
    return dict(next(s["end_offsets"] for s in truth["steps"] if s["name"] == step))


def before(records: Sequence[dict[str, Any]], ends: dict[str, int]) -> list[dict[str, Any]]:
    return [r for r in records if r["offset"] < ends.get(f"{r['topic']}/{r['partition']}", 0)]


@dataclass(frozen=True)
class Lab:
    """The stream with schemas in Delta: after one run, after the same files again, after a replay of the stream."""

    shown: Rows
    once: Rows
    added_again: int
    again: Rows
    replayed: Rows
    accounts: tuple[Account, ...]


@pytest.fixture(scope="module")
def lab_records(recorded: Path) -> list[dict[str, Any]]:
    return stream(recorded, "classicmodels.labschema")


@pytest.fixture(scope="module")
def lab(
    exact: SparkSession,
    lab_records: list[dict[str, Any]],
    truth: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Lab:
    run = Run(exact, tmp_path_factory.mktemp("lab"), SourceSpec("labschema", "labschema.*"), memory=False)
    run.take(lab_records)
    once, accounts = run.stored(LAB), tuple(run.accounts)
    shown = {table: run.shown(table) for table in LAB}
    added_again = run.take(lab_records)
    again = run.stored(LAB)
    customers = [r for r in lab_records if r["topic"] == f"labschema.{CUSTOMERS}"]
    streamed = customers[len(before(customers, offsets(truth, "snapshot"))) :]
    run.take([r | {"offset": r["offset"] + 1000} for r in streamed])
    return Lab(shown, once, added_again, again, run.stored(LAB), accounts)


@pytest.mark.parametrize("table", LAB)
def test_silver_is_what_the_database_held_in_the_end(lab: Lab, truth: dict[str, Any], table: str) -> None:
    """P6: snapshot, inserts, updates, deletes, key changes and swaps, added, widened, renamed and dropped columns."""
    expected = final(truth, table)
    column, changed_since = RENAMED
    if table == CUSTOMERS:
        for (key,), row in expected.items():
            row[column] = row[column] if str(key) == changed_since else None
    wanted = next(iter(expected.values()))
    shown = {key: {name: row[name] for name in wanted} for key, row in lab.shown[table].items()}
    assert differing(shown, expected) == {}


def test_every_record_is_accounted_for(lab: Lab, lab_records: list[dict[str, Any]]) -> None:
    """P11, R1: read = applied + superseded + dead-lettered + ignored, and nothing was read twice."""
    assert sum(account.read for account in lab.accounts) == len(lab_records)
    assert sum(account.dead_lettered for account in lab.accounts) == 0
    tombstones = sum(1 for r in lab_records if r["payload"] is None)
    assert sum(account.ignored.get("tombstone", 0) for account in lab.accounts) == tombstones > 0


def test_the_same_files_again_change_nothing(lab: Lab) -> None:
    """Promise A: a record is in bronze once."""
    assert lab.added_again == 0
    assert all(differing(lab.again[table], lab.once[table]) == {} for table in LAB)


def test_a_replay_with_new_offsets_changes_no_content(lab: Lab) -> None:
    """P3: a crash of the connector sends the tail again; only positions move."""
    replayed, once = business(lab.replayed), business(lab.once)
    assert {t: changed for t in LAB if (changed := differing(replayed[t], once[t]))} == {}


def test_a_stream_cut_at_any_step_ends_the_same(
    exact: SparkSession, lab: Lab, lab_records: list[dict[str, Any]], truth: dict[str, Any], tmp_path: Path
) -> None:
    """P2: in four batches, byte for byte, in another format than the one run was in."""
    records = [r for r in lab_records if r["topic"] == f"labschema.{CUSTOMERS}"]
    run = Run(exact, tmp_path, SourceSpec("labschema", "labschema.*"))
    taken = 0
    for step in (*CUTS, None):
        upto = len(records) if step is None else len(before(records, offsets(truth, step)))
        run.take(records[taken:upto])
        taken = upto
    assert differing(run.stored([CUSTOMERS])[CUSTOMERS], lab.once[CUSTOMERS]) == {}


@pytest.mark.parametrize("seed", [5])
def test_batches_in_any_order_end_the_same(
    exact: SparkSession, lab: Lab, lab_records: list[dict[str, Any]], tmp_path: Path, seed: int
) -> None:
    """P1: three random parts, in the order of the dice; each record keeps its own offset."""
    dice = random.Random(seed)
    parts: list[list[dict[str, Any]]] = [[], [], []]
    for each in lab_records:
        if each["topic"] == f"labschema.{CUSTOMERS}":
            parts[dice.randrange(3)].append(each)
    run = Run(exact, tmp_path, SourceSpec("labschema", "labschema.*"))
    for part in parts:
        run.take(part)
    assert differing(run.stored([CUSTOMERS])[CUSTOMERS], lab.once[CUSTOMERS]) == {}


def test_declared_types_take_the_place_of_a_schema(
    exact: SparkSession, recorded: Path, truth: dict[str, Any], tmp_path: Path
) -> None:
    """Types.md Y13: without schema blocks the declaration says what base64 and day numbers mean."""
    tables = ("classicmodels.orders", "classicmodels.orderdetails", "classicmodels.payments")
    run = Run(exact, tmp_path, SourceSpec("dbserver1", "dbserver1.*", tables=declared(truth, tables)))
    run.take(stream(recorded, "classicmodels.dbserver1", *tables))
    for table in tables:
        assert differing(run.shown(table), final(truth, table)) == {}, table


def test_flattened_rows_end_the_same(
    exact: SparkSession, recorded: Path, truth: dict[str, Any], tmp_path: Path
) -> None:
    """F2: `rewrite-with-tombstone`, ordered by the position fields; decimals as text."""
    tables = ("classicmodels.orders", "classicmodels.payments")
    spec = SourceSpec("cmflat", "cmflat.*", tables=declared(truth, tables, "decimal_string"))
    run = Run(exact, tmp_path, spec)
    run.take(stream(recorded, "classicmodels.cmflat", *tables))
    for table in tables:
        assert differing(run.shown(table), final(truth, table)) == {}, table


@pytest.mark.parametrize("name", ["types_maria.mtconnect", "hostile_pg.pgconnect"])
def test_every_hostile_record_is_accounted_for(exact: SparkSession, recorded: Path, tmp_path: Path, name: str) -> None:
    """Promise D: applied, superseded, ignored by a named rule, or a dead letter with a reason; nothing is lost.

    PostgreSQL's table of all types has dates that Python cannot hold: test_types.py looks at them where they are.
    """
    records = [r for r in stream(recorded, name) if r["topic"] != "pgconnect.h.types"]
    source = name.split(".")[1]
    run = Run(exact, tmp_path, SourceSpec(source, f"{source}.*"))
    assert run.take(records) == len(records)
    assert sum(account.read for account in run.accounts) == len(records)


@pytest.mark.parametrize(("kind", "unmentioned"), [("redelivery", ()), ("redelivery_resnapshot", ((5,),))])
@pytest.mark.parametrize(("name", "table"), [("pgredeliver", "s.pay"), ("mtredeliver", "redo.pay")])
def test_what_a_connector_sends_again_ends_as_the_source(
    exact: SparkSession,
    recorded: Path,
    tmp_path: Path,
    kind: str,
    unmentioned: tuple[tuple[int, ...], ...],
    name: str,
    table: str,
) -> None:
    """J1, J4, P6: after real crashes of Connect the tail came again, or a snapshot; in two batches, no table stops.

    D7: a second snapshot does not mention the row that was deleted before it, so that one stays.
    """
    records = stream(recorded, f"{kind}.{name}")
    truth = dict(json.loads(read_gz(recorded / f"{kind}.truth.json.gz")))
    run = Run(exact, tmp_path, SourceSpec(name, f"{name}.*", tables=declared(truth, [table])))
    half = len(records) // 2
    assert run.take(records[:half]) + run.take(records[half:]) == len(records)
    assert sum(account.read for account in run.accounts) == len(records)
    assert set(differing(run.shown(table), final(truth, table))) == set(unmentioned)
