"""Records as events for people."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import Row

from replicator.cli import diff
from replicator.debezium.event_reader import HIDDEN, UNSENT, ChangeEvent, EventReader, KafkaRecord, StartingOffset
from replicator.debezium.jsontext import Number, dumps
from replicator.debezium.source_block import format_position
from replicator.errors import BadRecording, ConfigError
from replicator.sources import kcat_files
from replicator.spec import Column, Declaration, Mask, SourceSpec, Transform
from tests.builders import UNSENT as PLACEHOLDER
from tests.builders import envelope, wrapped
from tests.cli import said

DECLARED = Declaration("shop.orders", (Column("placed", "date"), Column("total", "decimal(10,2)")))
VARIABLE = "io.debezium.data.VariableScaleDecimal"
SHOP = SourceSpec("s", "s[.].*", tables=(DECLARED,))


def spoken(value: Any, key: Any = None, topic: str = "s.shop.orders", source: SourceSpec = SHOP) -> ChangeEvent:
    texts = [
        None if each is None else each.encode() if isinstance(each, str) else json.dumps(each).encode()
        for each in (key, value)
    ]
    return EventReader(source).event(KafkaRecord(topic, 0, 7, None, *texts))


def test_an_update_tells_what_changed() -> None:
    """Both images are there: only columns that differ, by declared types, money with all its digits."""
    before = {"id": 1, "total": "BOI=", "placed": 20454, "note": "a"}
    event = spoken(envelope("u", {**before, "total": "BPY=", "note": None}, before, pos=8), {"id": 1})
    assert (event.op, event.table, event.position) == ("u", "shop.orders", "file 1, pos 8")
    assert event.changed() == {"total": (Number("12.50"), Number("12.70")), "note": ("a", None)}
    assert event.after is not None
    assert event.after["placed"] == "2026-01-01"
    assert event.key == {"id": Number("1")}
    first = spoken(envelope("c", {"id": 1, "note": None}), {"id": 1})
    assert first.changed() == {"id": (None, Number("1")), "note": (None, None)}


def decimal(scale: int) -> dict[str, Any]:
    return {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": str(scale)}}


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        (decimal(2), "IAsg", "21000.00"),
        (decimal(2), "/w==", "-0.01"),
        (decimal(-2), "AQ==", "100"),
        ({"type": "struct", "name": VARIABLE, "fields": []}, {"scale": 1, "value": "Dw=="}, "1.5"),
        ({"type": "int32", "name": "io.debezium.time.Date"}, 12058, '"2003-01-06"'),
        ({"type": "int32", "name": "io.debezium.time.Date"}, 10**9, "1000000000"),
        ({"type": "int64", "name": "io.debezium.time.Timestamp"}, -1, '"1969-12-31 23:59:59.999000"'),
        ({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}, 17 * 10**14, '"2023-11-14 22:13:20"'),
        ({"type": "int64", "name": "io.debezium.time.MicroTime"}, 3_600_000_000, '"01:00:00"'),
        ({"type": "int64", "name": "io.debezium.time.MicroTime"}, -45_015_123_000, '"-12:30:15.123000"'),
        ({"type": "int64", "name": "io.debezium.time.MicroTime"}, 3_020_399_000_000, '"838:59:59"'),
        ({"type": "int64", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}}, -1, str(2**64 - 1)),
        ({"type": "boolean"}, 1, "true"),
        ({"type": "boolean"}, 2, "2"),
        ({"type": "double"}, 1.50, "1.5"),
        (decimal(2), "?", '"?"'),
    ],
)  # fmt: skip
def test_a_value_is_read_by_the_schema_block(field: dict[str, Any], value: Any, told: str) -> None:
    """What stands for money and times on the wire becomes readable; what cannot be read stays."""
    row = {"type": "struct", "fields": [{**field, "field": "x", "optional": True}], "field": "after"}
    schema = {"type": "struct", "fields": [row, {"field": "op", "type": "string"}]}
    event = spoken(wrapped(envelope("c", {"x": value}), schema), wrapped({"id": 1}, {"type": "int32"}))
    assert event.after is not None
    assert dumps(event.after["x"]) == told
    assert event.key == {"id": Number("1")}


@pytest.mark.parametrize(
    "row",
    [
        {"type": "struct", "fields": [{"type": "int32"}]},
        {"type": "struct", "fields": ["x"]},
        {"type": "struct", "fields": 7},
        {"type": "struct", "fields": [{**decimal(2), "field": "x", "parameters": {"scale": "?"}}]},
        "int32",
    ],
)
def test_a_broken_schema_block_does_not_stop_it(row: Any) -> None:
    """A2: whatever stands there, in the key or the value, the record is shown as it is written."""
    block = {"type": "struct", "fields": [row if isinstance(row, str) else {**row, "field": "after"}, {"field": "op"}]}
    event = spoken(wrapped(envelope("c", {"x": 1}), block), wrapped({"id": 1}, row))
    assert (event.after, event.key) == ({"x": Number("1")}, {"id": Number("1")})


def test_a_text_that_is_no_unicode_is_told_by_its_escape(tmp_path: Path) -> None:
    """Half a surrogate pair, which JSON may hold, has no UTF-8; what comes behind it is told, too."""
    file = tmp_path / "events.jsonl"
    told = {"topic": "s.shop.orders", "partition": 0, "key": '{"id": "\\ud800"}'}
    rows: list[dict[str, Any]] = [{"id": "\ud800", "n\udfff": 1, "v": "a\ud800"}, {"id": "b", "v": "c"}]
    texts = [json.dumps(envelope("c", row)) for row in rows]
    file.write_text("".join(json.dumps({**told, "offset": at, "payload": t}) + "\n" for at, t in enumerate(texts)))
    first, second = said("tail", str(file)).splitlines()
    assert "id=\\ud800  n\\udfff=1, v=a\\ud800" in first
    assert "v=c" in second


def test_an_odd_operation_or_table_is_told_as_it_is_written(tmp_path: Path) -> None:
    """A number, and half a surrogate pair, which stays an escape in JSON, too."""
    assert spoken(envelope("c", {"id": 1}) | {"op": 5}).op == "5"
    assert spoken({"id": 1, "__op": 5}, topic="s.shop.orders").op == "5"
    odd = envelope("\ud800", {"id": 1})
    odd["source"] = {**odd["source"], "table": "t\ud800"}
    file = tmp_path / "events.jsonl"
    file.write_text(
        json.dumps({"topic": "a.b.c", "partition": 0, "offset": 0, "key": None, "payload": json.dumps(odd)}) + "\n"
    )
    [line] = said("tail", str(file), "--json").splitlines()
    line.encode()
    assert (json.loads(line)["op"], json.loads(line)["table"][-2:]) == ("\ud800", "t\ud800")


def test_an_event_is_a_line_whatever_its_texts_hold(tmp_path: Path) -> None:
    """A text of several lines makes no further one, and what a terminal obeys is told and not done."""
    file = tmp_path / "events.jsonl"
    row = {"id": "a\u2028b", "v\n": "one\r\ntwo\t\x1b[31m", "w": "é 😀\xa0"}
    told = {"topic": "s.shop.orders", "partition": 0, "offset": 0, "key": json.dumps({"id": row["id"]})}
    file.write_text(json.dumps({**told, "payload": json.dumps(envelope("c", row))}) + "\n")
    [line] = said("tail", str(file)).splitlines()
    assert "id=a\\u2028b  v\\n=one\\r\\ntwo\\t\\x1b[31m, w=é 😀\xa0" in line
    odd = envelope("c\n", None, {"v": {"a": "\x9b31m"}}) | {"before": {"v": {}}}
    odd["source"] = {**odd["source"], "file": None, "commit_lsn": "\x1b[31m"}
    file.write_text(json.dumps({**told, "payload": json.dumps(odd)}) + "\n")
    [line] = said("tail", str(file)).splitlines()
    assert line.isprintable()


def test_a_changed_row_of_a_table_is_a_line_too() -> None:
    """`diff`, and `tail` of a table, whose values are JSON."""
    row = {"change": "changed", "key": [("id", '"a\\nb"')], "before": [("v", '"1\\u001b[31m"')], "after": [("v", "2")]}
    told = diff.format_row(cast("Row", row))
    assert [each.plain for each in told] == ["changed", "id=a\\nb", "v: 1\\x1b[31m → 2"]


def test_a_topic_of_one_word_may_hold_flattened_rows() -> None:
    """A router may have renamed it: the record names its table, or it is not known, and then no value is shown of a
    source that hides columns.
    """
    row = {"id": 1, "__op": "u"}
    for unknown in (row, {**row, "__table": "orders"}, {**row, "__db": "shop"}):
        assert (spoken(unknown, topic="orders").op, spoken(unknown, topic="orders").table) == ("u", None)
    assert spoken({**row, "__db": "shop", "__table": "orders"}, topic="orders").table == "shop.orders"
    hiding = SourceSpec("s", "orders", masks=(Mask("shop.orders", ("id",)),))
    for value in (row, None):
        event = spoken(value, {"id": 1}, "orders", hiding)
        assert (event.key, event.after) == ({"id": HIDDEN}, value and {"id": HIDDEN})


def test_flattened_rows_tell_what_they_can() -> None:
    """Names from the topic, operation and position from Debezium's fields; a rewritten delete is one."""
    row = {"id": 1, "__op": "u", "__lsn": 23_123_456, "__deleted": "false"}
    event = spoken(row, {"id": 1}, "demo.public.orders")
    assert (event.op, event.table, event.position) == ("u", "public.orders", "lsn 0/160D600")
    assert (event.before, event.after) == (None, {"id": Number("1")})
    gone = spoken(row | {"__deleted": "true"}, {"id": 1}, "demo.public.orders")
    assert (gone.op, gone.before, gone.after) == ("d", {"id": Number("1")}, None)
    assert spoken(row | {"__db": "prod"}, {"id": 1}, "demo.public.orders").table == "public.orders"
    snapshot = {"id": 1, "__op": "r", "__source_lsn": None, "__db": "prod"}
    assert spoken(snapshot, {"id": 1}, "demo.public.orders").table == "public.orders"
    assert spoken(row | {"__db": "prod", "__table": "orders"}, {"id": 1}, "routed").table == "prod.orders"


def test_columns_that_are_called_as_debeziums_fields_hide_none_of_them() -> None:
    """F2, F4: `__deleted` and `__op` say what happened, whatever columns `deleted` and `op` of the row hold."""
    row = {"id": 1, "deleted": False, "op": "buy", "table": "T4", "file": "a.pdf", "source_file": "b.pdf"}
    marks = {"__op": "c", "__deleted": "false", "__source_file": "binlog.000001", "__source_pos": 8}
    event = spoken(row | marks, {"id": 1}, "demo.shop.trades")
    assert (event.op, event.table, event.position) == ("c", "shop.trades", "file 1, pos 8")
    assert list(event.after or ()) == list(row)
    gone = spoken(row | marks | {"__deleted": "true"}, {"id": 1}, "demo.shop.trades")
    assert (gone.op, gone.after) == ("d", None)
    assert spoken(row | {"deleted": "true"}, {"id": 1}, "demo.shop.trades").op == "u"


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_json_made_from_avro_is_read_without_its_unions(is_wrapped: bool) -> None:
    """A5: a row stands under the name of its type, a value under that of its branch; so does a part of a key."""
    row = {"id": 1, "note": {"string": "x"}, "v": {"int": 3}, "placed": {"int": 20454}}
    value = envelope("c", {"s.shop.orders.Value": row}) | {"ts_ms": {"long": 1}}
    event = spoken(wrapped(value, None) if is_wrapped else value, {"id": {"int": 1}})
    assert (event.op, event.table, dumps(event.key)) == ("c", "shop.orders", '{"id":1}')
    assert dumps(event.after) == '{"id":1,"note":"x","v":3,"placed":"2026-01-01"}'


def test_a_cloud_event_is_the_change_that_it_tells() -> None:
    """A6: what happened, to which table and where stands in attributes, the row in `data`."""
    told = {"op": "d", "connector": "mysql", "name": "s", "db": "shop", "table": "orders", "file": "b.7", "pos": "9"}
    event = {
        "specversion": "1.0",
        "id": "7",
        "source": "/debezium/mysql/s",
        "type": "io.debezium.mysql.datachangeevent",
    }
    attributes = {f"iodebezium{name}": text for name, text in told.items()}
    gone = spoken(event | attributes | {"data": {"before": {"id": 1, "v": 2}, "after": None}}, {"id": 1})
    assert (gone.op, gone.table, gone.position) == ("d", "shop.orders", "file 7, pos 9")
    assert (dumps(gone.before), gone.after) == ('{"id":1,"v":2}', None)


def test_a_document_of_mongodb_is_the_row() -> None:
    """K1 to K4: the document is a text in the record, its identity `_id`, and its collection the table."""
    source = {"connector": "mongodb", "name": "m", "db": "shop", "collection": "orders"}
    document = '{"_id": {"$oid": "5f"}, "v": {"$numberLong": "3"}}'
    event = spoken({"op": "c", "after": document, "source": source}, {"id": '{"$oid": "5f"}'})
    assert (event.op, event.table, event.key) == ("c", "shop.orders", {"_id": "5f"})
    assert dumps(event.after) == '{"_id":"5f","v":3}'
    assert spoken({"op": "c", "after": "{", "source": source}, "{").after is None


@pytest.mark.parametrize(
    ("value", "topic", "note"),
    [
        (None, "s.shop.orders", "tombstone"),
        ("null", "s.shop.orders", "tombstone"),
        (wrapped(None), "s.shop.orders", "tombstone"),
        ("{", "s.shop.orders", "malformed JSON"),
        ("[1]", "s.shop.orders", "not an object"),
        ({"ts_ms": 1}, "__debezium-heartbeat.s", "heartbeat"),
        ({"status": "END", "id": "7", "data_collections": []}, "s.transaction", "transaction"),
        ({"status": "END", "id": "7"}, "transaction", "not a Debezium event"),
        ({"ddl": "DROP TABLE x", "source": {}}, "s", "schema change"),
        ({"id": 1}, "orders", "not a Debezium event"),
    ],
)
def test_what_is_no_change_says_what_it_is(value: Any, topic: str, note: str) -> None:
    """Nothing stops a look at a topic."""
    event = spoken(value, {"id": 1}, topic)
    assert (event.op, event.note) == ("", note)


def test_a_record_about_no_row_is_shown_with_what_it_says() -> None:
    """Of a change of a schema its statement; a row of a table with such columns is a row."""
    assert spoken({"ts_ms": 1}, topic="__debezium-heartbeat.s").after == {"ts_ms": Number("1")}
    assert spoken({"ddl": "DROP TABLE x", "source": {}, "x": 1}, topic="s").after == {"ddl": "DROP TABLE x"}
    row = spoken({"status": "END", "data_collections": "x"}, {"id": 1})
    assert (row.op, row.note, row.table) == ("u", "", "shop.orders")


def test_bytes_that_are_no_text_do_not_stop_it() -> None:
    """In the value, and in the key."""
    assert EventReader().event(KafkaRecord("t", 0, 0, None, b"\xff", b"\xff")).note == "not UTF-8"
    assert EventReader().event(KafkaRecord("t", 0, 0, None, b"\xff", None)).key == {"key": "\ufffd"}


def test_a_value_that_was_not_sent_is_shown_as_such() -> None:
    """The placeholder is no value (debezium.md E)."""
    event = spoken(envelope("u", {"id": 1, "long": PLACEHOLDER}))
    assert event.after == {"id": Number("1"), "long": UNSENT}


@pytest.mark.parametrize(
    "value",
    [
        PLACEHOLDER,
        "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        [PLACEHOLDER],
        list(PLACEHOLDER.encode()),
        ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"],
        {PLACEHOLDER: PLACEHOLDER},
    ],
)
def test_what_was_not_sent_is_told_of_columns_of_every_type(value: Any) -> None:
    """E2: bytes, arrays and maps spell the placeholder in their own way, by whatever it is for the source; a table
    whose texts may be it has none (E6).
    """
    assert spoken(envelope("u", {"id": 1, "v": value})).after == {"id": Number("1"), "v": UNSENT}
    never = SourceSpec("s", "s[.].*", tables=(Declaration("shop.orders", unavailable=False),))
    shown = spoken(envelope("u", {"id": 1, "v": value}), source=never).after
    assert shown is not None
    assert json.loads(dumps(shown["v"])) == value
    own = SourceSpec("s", "s[.].*", placeholder="hex:4e2f41")
    assert spoken(envelope("u", {"id": 1, "v": "Ti9B"}), source=own).after == {"id": Number("1"), "v": UNSENT}


def test_what_the_source_hides_is_not_shown() -> None:
    """Hashed, masked, left out, kept from bronze: in rows and keys, of records that are no rows too; in whichever case
    the source spells the column (G4).
    """
    kept = Declaration(
        "shop.orders", transform=Transform(masked=("note",), hashed=("id",), except_column_list=("gone",))
    )
    source = SourceSpec("s", "s[.].*", tables=(kept,), masks=(Mask("shop.orders", ("mail",), ("phone",)),))
    row = {"id": 1, "note": "a", "gone": 2, "mail": "x", "phone": "y", "n": 3, "data": {"note": "a"}}
    event = spoken(envelope("u", row | {"n": 4}, row), {"id": 1}, source=source)
    assert event.changed() == {"n": (Number("3"), Number("4"))}
    assert event.after is not None
    assert {name for name, value in event.after.items() if value == HIDDEN} == set(row) - {"n"}
    assert event.key == {"id": HIDDEN}
    after = spoken(envelope("c", {name.upper(): value for name, value in row.items()}), source=source).after
    assert after == dict.fromkeys(map(str.upper, row), HIDDEN) | {"N": Number("3")}
    only = replace(source, tables=(Declaration("shop.orders", transform=Transform(column_list=("Id", "n"))),), masks=())
    assert spoken(envelope("c", {"ID": 1, "x": 2}), source=only).after == {"ID": Number("1"), "x": HIDDEN}
    for value in (None, "{"):
        assert spoken(value, {"id": 1}, source=source).key == {"id": HIDDEN}
    assert spoken(None, '"plain"', source=source).key == {"key": HIDDEN}
    assert spoken({"id": 1}, topic="orders", source=source).after is None


def test_a_tombstone_shows_no_hidden_key_whatever_characters_the_tables_name_has() -> None:
    """Its topic is all that names the table, with other characters for some."""
    hashed = Declaration("shop.my ñ", transform=Transform(hashed=("id",)))
    for source in (
        SourceSpec("s", "s[.].*", tables=(hashed,)),
        SourceSpec("s", "s[.].*", masks=(Mask("shop.my ñ", ("id",)),)),
    ):
        assert spoken(None, {"id": 1}, "s.shop.my__", source).key == {"id": HIDDEN}


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ({"file": "mysql-bin.000003", "pos": Number("1819"), "row": Number("2")}, "file 3, pos 1819, row 2"),
        ({"commit_lsn": "0000002e:000001bf:0002"}, "commit_lsn 0000002e:000001bf:0002"),
        ({"scn": "7", "commit_scn": "12"}, "commit_scn 12"),
        ({"lsn": None}, ""),
    ],
)
def test_a_position_is_told_in_the_sources_terms(source: dict[str, Any], told: str) -> None:
    """As ``status`` and ``explain`` tell it."""
    assert format_position(source) == told


@pytest.mark.parametrize(
    ("start", "first"),
    [
        (StartingOffset(), 3),
        (StartingOffset(offset=5), 5),
        (StartingOffset(offset=1), 3),
        (StartingOffset(offset=99), 9),
        (StartingOffset(last=0), 9),
        (StartingOffset(last=2), 7),
        (StartingOffset(last=50), 3),
    ],
)
def test_where_to_begin_stays_within_what_is_there(start: StartingOffset, first: int) -> None:
    """Of a partition that holds the offsets 3 to 8."""
    assert start.within(3, 9) == first


def line(offset: int, value: Any, topic: str = "s.shop.orders") -> str:
    return json.dumps({"topic": topic, "partition": 0, "offset": offset, "ts": 1, "key": '{"id":1}', "payload": value})


def test_a_file_is_told_from_where_it_is_asked_to(tmp_path: Path) -> None:
    """Plain or compressed; the last N of each topic, or from an offset; for people and as JSON."""
    one = json.dumps(envelope("u", {"id": 1, "a": "é", "n": 10}, {"id": 1, "a": "e", "n": 10}))
    texts = [line(0, one), line(1, None), line(2, one, "s.shop.other")]
    path = tmp_path / "events.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n\n".join(texts))
    shown = said("tail", str(path), "--from", "-1").splitlines()
    assert shown == ["0/1  tombstone  id=1", "0/2  u  shop.orders  id=1  a: e → é  (file 1, pos 4)"]
    assert len(said("tail", str(path), "--from", "beginning", "--limit", "2").splitlines()) == 2
    [second, third] = map(json.loads, said("tail", str(path), "--from", "1", "--json").splitlines())
    assert (second["note"], second["op"], second["after"]) == ("tombstone", None, None)
    assert (third["offset"], third["key"], third["after"]) == (2, {"id": 1}, {"id": 1, "a": "é", "n": 10})


def test_a_payload_that_stands_in_the_line_as_json_is_read(tmp_path: Path) -> None:
    """As silver reads it, behind a byte order mark too; its numbers as they are written."""
    path = tmp_path / "events.jsonl"
    given = json.loads(line(0, None)) | {"key": {"id": 1}, "payload": envelope("c", None, {"id": 1, "n": 1})}
    path.write_text(json.dumps(given).replace('"n": 1', '"n": 1.50'), encoding="utf-8-sig")
    assert said("tail", str(path)) == "0/0  c  shop.orders  id=1  n=1.50  (file 1, pos 4)\n"


def test_half_an_archive_is_told_as_such(tmp_path: Path) -> None:
    """As one that is no archive at all: with the file, and not as an interruption."""
    path = tmp_path / "events.jsonl.gz"
    whole = gzip.compress("\n".join(line(offset, None) for offset in range(99)).encode())
    for held in (whole[:-20], whole[:20] + bytes(20) + whole[40:], b"plain", "é".encode("latin-1")):
        path.write_bytes(held)
        with pytest.raises(BadRecording, match=r"events\.jsonl\.gz\] Check that it is complete"):
            list(kcat_files.read_records(path))


@pytest.mark.parametrize(
    "wrong",
    [{"topic": None}, {"partition": "0"}, {"partition": 1 << 31}, {"offset": True}, {"offset": 1.0}, {"ts": "now"}],
)
def test_a_record_is_in_a_place_that_kafka_has(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """As for ``run --recorded``: times that are texts ended ``schema avro`` with a TypeError."""
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps(json.loads(line(0, None)) | wrong) + "\n")
    with pytest.raises(BadRecording, match=r"events\.jsonl:1"):
        list(kcat_files.read_records(path))


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    """With the line; and nothing is followed that cannot grow."""
    path = tmp_path / "events.jsonl"
    for bad in (b'{"topic": "t"}', line(0, "x").encode().replace(b"x", b"\xe9")):
        path.write_bytes(line(0, None).encode() + b"\n" + bad + b"\n")
        with pytest.raises(BadRecording, match=r"events\.jsonl:2"):
            list(kcat_files.read_records(path))
    with pytest.raises(ConfigError, match="cannot be followed"):
        said("tail", str(path), "--follow")
    with pytest.raises(ConfigError, match="yesterday"):
        said("tail", str(path), "--from", "yesterday")
    with pytest.raises(ConfigError, match="--lake is for a table and --brokers for a topic"):
        said("tail", "shop.orders", "--lake", str(tmp_path), "--brokers", "b:9092")
