"""What a record says about itself (debezium.md sections A, B, F, H): one job over a table of synthetic records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.debezium import envelope as reader
from tests.builders import bronze, envelope, exact_session, record, wrapped

pytestmark = pytest.mark.spark

TOPIC = "s.shop.orders"
ROW = {"id": 1, "price": "EtaH"}
SCHEMA = {"type": "struct", "optional": False, "name": "s.shop.orders.Envelope", "fields": []}
AT_4 = f"{1:08x}{4:012x}{0:016x}"
FLAT = {"id": 1, "price": "1.00", "__deleted": "false", "__op": "u", "__table": "orders",
        "__source_file": "binlog.000001", "__source_pos": 4, "__source_ts_ms": 7}  # fmt: skip

CHANGE = {"rule": None, "reason": None, "table": "shop.orders", "source_name": "s", "flat": False}


def _text(value: Any, note: str) -> str:
    """As JSON, with a text in it as it is written there."""
    return json.dumps(value).replace("@", note)


# label: (topic, key, value, what is expected)
CASES: dict[str, tuple[str, Any, Any, dict[str, Any]]] = {
    "insert": (TOPIC, {"id": 1}, envelope("c", ROW), CHANGE | {
        "op": "c", "position": AT_4, "wrapped": False, "key_wrapped": False, "is_snapshot": False,
        "source_ts_ms": 1700000000000, "key_names": ["id"], "row_names": ["id", "price"], "bare": False}),
    "update": (TOPIC, {"id": 1}, envelope("u", ROW, ROW), CHANGE | {"op": "u"}),
    "delete": (TOPIC, {"id": 1}, envelope("d", None, ROW), CHANGE | {"op": "d"}),
    "snapshot row": (TOPIC, {"id": 1}, envelope("r", ROW, snapshot="last"), CHANGE | {"op": "r", "is_snapshot": True}),
    "an old connector's snapshot row is an upsert": (TOPIC, {"id": 1}, envelope("c", ROW, snapshot="true"), CHANGE | {
        "op": "c", "is_snapshot": False}),
    "truncate": (TOPIC, None, envelope("t"), CHANGE | {"op": "t", "key_names": None}),
    "with a schema": (TOPIC, wrapped({"id": 1}, SCHEMA), wrapped(envelope("c", ROW), SCHEMA), CHANGE | {
        "op": "c", "wrapped": True, "key_wrapped": True, "position": AT_4}),
    "a null schema beside the payload": (TOPIC, {"id": 1}, wrapped(envelope("c", ROW)), CHANGE | {
        "op": "c", "wrapped": True, "key_wrapped": False, "row_names": ["id", "price"]}),
    "a null schema beside a key's payload": (TOPIC, wrapped({"id": 1}), wrapped(envelope("c", ROW)), CHANGE | {
        "op": "c", "wrapped": True, "key_wrapped": True, "key_names": ["id"]}),
    "a key of columns called payload and schema": (TOPIC, {"schema": None, "payload": "x"}, envelope("c", ROW),
        CHANGE | {"key_wrapped": False, "key_names": ["schema", "payload"]}),
    "key without, value with schema": (TOPIC, {"id": 1}, wrapped(envelope("c", ROW), SCHEMA), CHANGE | {
        "wrapped": True, "key_wrapped": False, "key_names": ["id"]}),
    "unknown fields are ignored": (TOPIC, {"id": 1}, envelope("c", ROW) | {"extra": {"x": [1]}}, CHANGE | {"op": "c"}),
    "the table is the source's, not the topic's": (
        "routed", {"id": 1}, envelope("c", ROW, table="h.Odd Names.é"), CHANGE | {"table": "h.Odd Names.é"}),
    "postgres names a schema": (
        TOPIC, {"id": 1},
        envelope("c", ROW, connector="postgresql", db="prod", schema="shop", lsn=9, sequence='["8","8"]'),
        CHANGE | {"table": "shop.orders", "position": f"{8:020x}{9:016x}"}),
    "a row column may be called op, source or schema": (
        TOPIC, {"id": 1}, envelope("c", {"id": 1, "op": "x", "source": "y", "schema": "z", "payload": 1}), CHANGE | {
            "op": "c", "row_names": ["id", "op", "source", "schema", "payload"]}),
    "no position": (TOPIC, {"id": 1}, envelope("c", ROW, file="", pos=0), CHANGE | {"op": "c", "position": None}),

    "flattened": (TOPIC, {"id": 1}, FLAT, {
        "rule": None, "reason": None, "op": "u", "flat": True, "table": "shop.orders", "source_name": "s",
        "position": AT_4, "rewritten": True, "source_ts_ms": 7, "bare": False}),
    "flattened with a schema": (TOPIC, {"id": 1}, wrapped(FLAT, SCHEMA), {"op": "u", "flat": True, "wrapped": True}),
    "flattened delete": (TOPIC, {"id": 1}, FLAT | {"__deleted": "true", "__op": "d"}, {"op": "d", "rule": None}),
    "flattened delete, a boolean": (TOPIC, {"id": 1}, FLAT | {"__deleted": True}, {"op": "d", "reason": None}),
    "flattened postgres": (
        TOPIC, {"id": 1}, {"id": 1, "__deleted": "false", "__lsn": 255}, {
            "op": "u", "position": f"{255:020x}{255:016x}", "table": "shop.orders"}),
    "flattened postgres names its schema in the topic if not in the row, which may name its database": (
        TOPIC, {"id": 1}, {"id": 1, "__op": "u", "__lsn": 255, "__db": "prod", "__table": "orders"}, {
            "table": "shop.orders"}),
    "so does its snapshot row, whose lsn may be null": (
        TOPIC, {"id": 1}, {"id": 1, "__op": "r", "__source_lsn": None, "__db": "prod", "__table": "orders"}, {
            "table": "shop.orders"}),
    "a topic without a schema leaves the database": (
        "routed", {"id": 1}, {"id": 1, "__op": "u", "__lsn": 255, "__db": "prod", "__table": "orders"}, {
            "table": "prod.orders"}),
    "a metadata field that is no number is no position": (
        TOPIC, {"id": 1}, {"id": 1, "__deleted": "false", "__lsn": "junk", "__source_ts_ms": "2024-01-01"}, {
            "op": "u", "position": None, "source_ts_ms": None, "table": "shop.orders"}),
    "a bare row": (TOPIC, {"id": 1}, ROW, {
        "flat": True, "bare": True, "op": "u", "rewritten": False, "position": None, "table": "shop.orders"}),

    "null": (TOPIC, {"id": 1}, None, {"rule": "tombstone", "reason": None}),
    "zero bytes": (TOPIC, {"id": 1}, "", {"rule": "tombstone", "reason": None}),
    "the text null": (TOPIC, {"id": 1}, "null", {"rule": "tombstone", "reason": None}),
    "the text null with spaces": (TOPIC, {"id": 1}, " null\n", {"rule": "tombstone", "reason": None}),
    "a wrapper around nothing": (TOPIC, {"id": 1}, wrapped(None), {"rule": "tombstone", "reason": None}),
    "a wrapper with schema around nothing": (TOPIC, {"id": 1}, wrapped(None, SCHEMA), {"rule": "tombstone"}),

    "heartbeat": ("__debezium-heartbeat.s", {"serverName": "s"}, {"ts_ms": 1}, {"rule": "heartbeat", "reason": None}),
    "transaction begins": (
        "s.transaction", {"id": "1"},
        {"status": "BEGIN", "id": "1", "event_count": None, "data_collections": None, "ts_ms": 1}, {
            "rule": "transaction"}),
    "transaction ends": (
        "s.transaction", {"id": "1"}, wrapped({"status": "END", "id": "1", "data_collections": []}, SCHEMA), {
            "rule": "transaction"}),
    "a table may be called transaction, and have a status": (
        "s.shop.transaction", {"id": 1}, FLAT | {"__table": "transaction", "status": "END"}, {
            "rule": None, "reason": None, "op": "u", "table": "shop.transaction"}),
    "so may a table without any mark of Debezium's": (
        "s.shop.transaction", {"id": 1}, {"id": 1, "status": "BEGIN"}, {"rule": None, "bare": True}),
    "schema change": ("s", {"databaseName": "shop"}, {"source": {"name": "s", "connector": "mariadb"}, "ddl": "X"}, {
        "rule": "schema_change", "reason": None}),
    "notification": ("s.notices", None, {"id": "1", "aggregate_type": "Initial Snapshot", "type": "STARTED",
                                         "additional_data": {"x": "y"}}, {"rule": "notification", "reason": None}),
    "logical message": ("s.message", {"prefix": "p"}, envelope("m", table="x.") | {"message": {"content": "QQ=="}}, {
        "rule": "message", "reason": None}),

    "not JSON": (TOPIC, {"id": 1}, "{oops", {"reason": "malformed_json", "rule": None}),
    "cut off": (TOPIC, {"id": 1}, '{"op":"c","after":{"id":', {"reason": "malformed_json", "rule": None}),
    "a word": (TOPIC, {"id": 1}, "hello", {"reason": "malformed_json", "rule": None}),
    "a number": (TOPIC, {"id": 1}, "17", {"reason": "unknown_shape", "rule": None}),
    "a text": (TOPIC, {"id": 1}, '"x"', {"reason": "unknown_shape", "rule": None}),
    "an array": (TOPIC, {"id": 1}, "[1,2]", {"reason": "unknown_shape", "rule": None}),
    "half a surrogate pair": (TOPIC, {"id": 1}, _text(envelope("c", ROW | {"note": "@"}), r"a\ud83d"),
        {"reason": "invalid_utf8", "rule": None}),
    "half a pair in the key": (TOPIC, _text({"id": "@"}, r"\uDE00"), envelope("c", ROW),
        {"reason": "invalid_utf8", "rule": None}),
    "a whole pair, and the text of half a one": (
        TOPIC, {"id": 1}, _text(envelope("c", ROW | {"note": "@"}), r"\ud83d\ude00 \\ud83d"), CHANGE),
    "unknown op": (TOPIC, {"id": 1}, envelope("x", ROW), {"reason": "unknown_op", "rule": None}),
    "op is missing": (TOPIC, {"id": 1}, {"after": ROW, "source": {"name": "s", "table": "orders", "db": "shop"}}, {
        "reason": "unknown_op", "rule": None}),
    "white space around an envelope": (TOPIC, ' \n{"id":1}', "\n\t" + json.dumps(envelope("c", ROW)) + "\r\n",
        CHANGE | {"op": "c", "key_names": ["id"]}),
    "an empty schema name": (TOPIC, {"id": 1}, envelope("c", ROW, db=""), {"reason": "unknown_table", "table": None}),
    "an empty part of the topic": ("s..orders", {"id": 1}, {"id": 1, "__deleted": "false"}, {
        "reason": "unknown_table", "table": None}),
    "no table": (TOPIC, {"id": 1}, {"op": "c", "after": ROW, "source": {"name": "s"}}, {
        "reason": "unknown_table", "rule": None}),
}  # fmt: skip


@pytest.fixture(scope="module")
def described(spark: SparkSession) -> dict[str, Any]:
    """Every case as the reader describes it, by label."""
    records = [record(topic, at, key, value) for at, (topic, key, value, _) in enumerate(CASES.values())]
    binary = record(TOPIC, len(records), {"id": 1}, None, bad_value=b'{"a":"\xff"}')
    rows = reader.describe(bronze(exact_session(spark), [*records, binary])).collect()
    labels = [*CASES, "not UTF-8"]
    assert len(rows) == len(labels), "a record was dropped or doubled"
    return {labels[row["offset"]]: row for row in rows}


@pytest.mark.parametrize("label", CASES)
def test_a_record_is_described_as_what_it_is(described: dict[str, Any], label: str) -> None:
    """Shape, operation, names, position; the rule that ignores it or the reason why it cannot be applied."""
    expected = CASES[label][3]
    assert {name: described[label][name] for name in expected} == expected


def test_bytes_that_are_no_text_are_a_dead_letter_and_no_tombstone(described: dict[str, Any]) -> None:
    """R4: the value is NULL in bronze, but something was there."""
    assert (described["not UTF-8"]["rule"], described["not UTF-8"]["reason"]) == (None, "invalid_utf8")


def test_no_record_has_both_a_rule_and_a_reason(described: dict[str, Any]) -> None:
    """R1: every record is counted once."""
    both = [label for label, row in described.items() if row["rule"] is not None and row["reason"] is not None]
    assert both == []


def test_records_that_are_decoded_alike_share_a_form(described: dict[str, Any]) -> None:
    """Shape, schema and columns make a form; the operation does not."""
    form = {label: row["form"] for label, row in described.items()}
    assert form["insert"] == form["update"] == form["snapshot row"]
    assert (
        len({form[label] for label in ("insert", "with a schema", "a null schema beside the payload", "flattened")})
        == 4
    )
