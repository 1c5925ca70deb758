"""Unions of Avro, CloudEvents, the outbox router and MongoDB as plain records. All records here are synthetic."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from replicator.debezium import cloudevents, mongodb, outbox
from replicator.debezium.envelope import CLOUDEVENT, MONGODB, UNIONS
from replicator.debezium.jsontext import dumps, loads
from replicator.debezium.logical_types import Field, LogicalType
from replicator.debezium.outbox import RouterRecord
from replicator.debezium.shapes import Normalizer, for_source
from replicator.debezium.type_parser import parse_type
from replicator.debezium.unions import Unions, table_of
from replicator.spec import AGGREGATE_ID, Declaration, Outbox, SourceSpec

TOPIC = "s.shop.orders"
SOURCE = {"connector": "postgresql", "db": "shop", "table": "orders"}
DECLARED = {
    "id": parse_type("int"),
    "v": parse_type("int"),
    "name": parse_type("text"),
    "price": parse_type("decimal(10,4)"),
    "tags": parse_type("text[]"),
    "attributes": parse_type("hstore"),
    "place": parse_type("point"),
    "kind": parse_type("enum"),
    "doc": parse_type("json"),
}


def exactly(value: Any) -> Any:
    """As the record's text has it."""
    return loads(value if isinstance(value, str) else json.dumps(value))


def row_of(after: Any, unions: Unions | None = None, **source: Any) -> Any:
    """The row of an envelope without its unions."""
    unions = unions if unions is not None else Unions({"shop.orders": DECLARED})
    record = exactly({"before": None, "after": after, "source": SOURCE | source, "op": "c"})
    return json.loads(dumps(unions.record(record, TOPIC)["after"]))


def test_numbers_are_written_as_they_were_read() -> None:
    """Types.md Y1: no number passes through a double, and no text changes."""
    text = '{"a":1.50,"b":[123456789876543212345678987654321.110,-0,1e400],"c":"é\\ud800","d":null,"e":true}'
    assert dumps(loads(text)) == text.replace("é", "\\u00e9")


@pytest.mark.parametrize(
    ("column", "wrapped", "plain"),
    [
        ("v", {"int": 5}, 5),
        ("v", {"long": 5}, 5),
        ("v", None, None),
        ("v", 5, 5),
        ("name", {"string": "x"}, "x"),
        ("name", '{"string":"x"}', '{"string":"x"}'),
        ("price", {"bytes": "EtaH"}, "EtaH"),
        ("kind", {"s.shop.orders.kind.Enum": "a"}, "a"),
        ("doc", {"string": '{"string":"x"}'}, '{"string":"x"}'),
        ("tags", {"array": [{"string": "a"}, None]}, ["a", None]),
        ("tags", [{"string": "a"}, None], ["a", None]),
        ("attributes", {"map": {"string": {"string": "x"}, "b": None}}, {"string": "x", "b": None}),
        ("attributes", {"string": "x"}, {"string": "x"}),
        ("place", {"io.debezium.data.geometry.Point": {"x": 1.0, "wkb": {"bytes": "AQ=="}}}, {"x": 1.0, "wkb": "AQ=="}),
        ("place", {"x": 1.0, "y": 2.0}, {"x": 1.0, "y": 2.0}),
        ("place", None, None),
        ("v", {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        ("name", {"color": "red"}, {"color": "red"}),
        ("v", {"int": "5"}, {"int": "5"}),
    ],
)
def test_a_union_is_unwrapped_where_the_declaration_says_what_it_holds(column: str, wrapped: Any, plain: Any) -> None:
    """A5: what no union can be stays, to be judged by its type."""
    assert row_of({"id": 1, column: wrapped}) == {"id": 1, column: plain}


def test_the_row_stands_under_the_name_of_its_type() -> None:
    """A5: ``before`` and ``after`` are unions themselves."""
    assert row_of({"s.shop.orders.Value": {"id": 1, "v": {"int": 2}}}) == {"id": 1, "v": 2}
    assert row_of({"Value": {"id": 1}}) == {"id": 1}
    assert row_of({"v": {"int": 2}}) == {"v": 2}


def test_columns_that_nothing_describes_are_unwrapped_only_in_records_that_come_from_avro() -> None:
    """A5: a map of texts may look like a union; a wrapped row or a wrapped field of ``source`` leaves no doubt."""
    unknown = Unions()
    assert row_of({"id": 1, "m": {"string": "x"}}, unknown) == {"id": 1, "m": {"string": "x"}}
    assert row_of({"Value": {"id": 1, "m": {"string": "x"}}}, unknown) == {"id": 1, "m": "x"}
    assert row_of({"id": 1, "m": {"string": "x"}}, unknown, snapshot={"string": "false"}) == {"id": 1, "m": "x"}


@pytest.mark.parametrize(
    ("sent", "plain"),
    [
        ({"m": {"array": [{"string": "x"}]}}, {"m": ["x"]}),
        ({"m": {"map": {"a": {"string": "x"}}}}, {"m": {"a": "x"}}),
        ({"m": {"double": 1.5}}, {"m": 1.5}),
        ({"m": {"float": "NaN"}}, {"m": "NaN"}),
        ({"m": {"boolean": True}}, {"m": True}),
        ({"m": {"double": "1.5"}}, {"m": {"double": "1.5"}}),
        ({"attributes": {"a": {"string": "x"}, "b": None}}, {"attributes": {"a": "x", "b": None}}),
    ],
)
def test_a_record_that_comes_from_avro_is_unwrapped_inside_too(sent: Any, plain: Any) -> None:
    """A5: a list or a map that may not be NULL is no union itself, but its parts are."""
    assert row_of({"Value": {"id": 1, **sent}}) == {"id": 1, **plain}


def test_debezium_s_own_fields_are_plain_again() -> None:
    """A4: the operation and the position are read from them."""
    record = exactly(
        {
            "before": {"s.shop.orders.Value": {"id": 1}},
            "after": None,
            "source": SOURCE | {"lsn": {"long": 24023128}, "sequence": {"string": '["1","2"]'}, "schema": "shop"},
            "op": "d",
            "ts_ms": {"long": 7},
            "transaction": {"event.block": {"id": "1", "total_order": 2}},
        }
    )
    plain = json.loads(dumps(Unions().record(record, TOPIC)))
    assert (plain["source"]["lsn"], plain["source"]["sequence"]) == (24023128, '["1","2"]')
    assert (plain["ts_ms"], plain["before"], plain["transaction"]["total_order"]) == (7, {"id": 1}, 2)


def test_a_flattened_row_is_plain_again() -> None:
    """F4: its metadata fields are unions too."""
    row = {"id": 1, "v": {"int": 2}, "__op": {"string": "u"}, "__lsn": {"long": 9}, "__deleted": {"string": "false"}}
    plain = Unions({"shop.orders": DECLARED}).record(exactly(row), TOPIC)
    assert json.loads(dumps(plain)) == {"id": 1, "v": 2, "__op": "u", "__lsn": 9, "__deleted": "false"}


@pytest.mark.parametrize(
    ("head", "topic", "table"),
    [
        ({"source": {"db": "d", "schema": "s", "table": "t"}}, "x.y.z", "s.t"),
        ({"source": {"db": "d", "schema": None, "table": "t"}}, "x.y.z", "d.t"),
        ({"__schema": "s", "__table": "t"}, "x.y.z", "s.t"),
        ({"__source_db": "d", "__source_table": "t"}, "x.y.z", "d.t"),
        ({"schema": "s", "table": "t"}, "x.y.z", "y.z"),
        ({"__op": "u"}, "y.z", None),
    ],
)
def test_types_are_those_of_the_table_that_a_record_names(head: dict[str, Any], topic: str, table: str | None) -> None:
    """A5: by its source block, else by its metadata fields (F4), else by its topic."""
    assert table_of(head, topic) == table


def test_a_schema_block_says_what_a_column_holds() -> None:
    """A2: before the declaration."""
    block = {"type": "struct", "fields": [{"type": "string", "field": "m"}, {"type": "int32", "field": "__x"}]}
    record = exactly({"schema": block, "payload": {"m": {"string": "x"}}})
    assert Unions().record(record, TOPIC)["payload"] == {"m": "x"}


@pytest.mark.parametrize(
    ("sent", "plain"),
    [
        ({"y.z": {"w": 6}}, {"y.z": {"w": 6}}),
        ({"y.z": {"w": {"int": 6}}}, {"y.z": {"w": 6}}),
        ({"y.z": {"s.shop.Inner": {"w": {"int": 6}}}}, {"y.z": {"w": 6}}),
        ({"s.shop.Outer": {"y.z": {"s.shop.Inner": {"w": 6}}}}, {"y.z": {"w": 6}}),
        ({"s.shop.Outer": {"y.z": {"w": {"int": 6}}, "b": {"bytes": "EtaH"}}}, {"y.z": {"w": 6}, "b": "EtaH"}),
    ],
)
def test_a_field_of_a_struct_may_have_a_dot_in_its_name(sent: Any, plain: Any) -> None:
    """A5: what the struct knows by a name is its field, no branch of a union; what is inside is told by its type."""
    inner = LogicalType("struct", fields=(Field("w", LogicalType("int")),))
    outer = LogicalType("struct", fields=(Field("y.z", inner), Field("b", LogicalType("bytes", encoding="base64"))))
    assert row_of({"id": 1, "v": sent}, Unions({"shop.orders": {"v": outer}})) == {"id": 1, "v": plain}


@pytest.mark.parametrize(
    ("sent", "plain"),
    [
        ({"io.debezium.data.Json": "{}"}, "{}"),
        ({"string": "{}"}, "{}"),
    ],
)
def test_a_json_column_is_unwrapped_under_the_name_of_its_type(sent: Any, plain: str) -> None:
    """A5: the schema of a JSON column has a name, by which its union calls the text."""
    assert row_of({"id": 1, "doc": sent}) == {"id": 1, "doc": plain}


@pytest.mark.parametrize("name", ["a`b.c", "bytes"])
@pytest.mark.parametrize(
    "kind",
    [
        {"type": "struct", "fields": [{"type": "string", "field": "a`b.c"}, {"type": "bytes", "field": "bytes"}]},
        {"type": "map", "keys": {"type": "string"}, "values": {"type": "bytes"}},
    ],
)
def test_a_struct_or_a_map_that_is_kept_as_its_text_is_no_union(kind: dict[str, Any], name: str) -> None:
    """A5: its only member is its own, whatever it is called."""
    block = {"type": "struct", "fields": [kind | {"field": "v"}, {"type": "string", "field": "__x"}]}
    payload = Unions().record(exactly({"schema": block, "payload": {"v": {name: "AQ=="}}}), TOPIC)["payload"]
    assert payload == {"v": {name: "AQ=="}}


def test_bytes_of_avro_s_own_json_are_characters_by_declaration_only() -> None:
    """Promise D: ``EtaH`` may be four bytes or three; the text does not tell."""
    latin1 = Unions({"shop.orders": DECLARED}, latin1=True)
    assert row_of({"id": 1, "price": {"bytes": "\x12\xd6\x87"}}, latin1) == {"id": 1, "price": "EtaH"}
    assert row_of({"Value": {"id": 1, "price": "\x12\xd6\x87"}}, latin1) == {"id": 1, "price": "EtaH"}
    assert row_of({"id": 1, "price": "EtaH"}, latin1) == {"id": 1, "price": "EtaH"}
    assert row_of({"id": 1, "price": {"bytes": "\x12\xd6\x87"}}) == {"id": 1, "price": "\x12\xd6\x87"}
    place = {"io.debezium.data.geometry.Point": {"x": 1.0, "wkb": {"bytes": "\x12\xd6\x87"}}}
    assert row_of({"id": 1, "place": place}, latin1) == {"id": 1, "place": {"x": 1.0, "wkb": "EtaH"}}


def test_parts_of_a_key_are_plain_again() -> None:
    """C1: no part of a key is an object."""
    unions = Unions()
    assert unions.key(exactly({"id": {"int": 1}, "b": "x"}), None) == exactly({"id": 1, "b": "x"})
    assert unions.key(exactly({"s.shop.orders.Key": {"id": 1}}), None) == exactly({"id": 1})
    assert unions.key(exactly({"schema": None, "payload": {"id": {"int": 1}}}), None)["payload"] == exactly({"id": 1})
    assert unions.key(exactly({"Key": 1}), None) == exactly({"Key": 1})
    assert unions.key("x", None) == "x"


def test_bytes_in_the_key_of_a_record_that_is_not_from_avro_stay_base64() -> None:
    """Promise D: what only looks like a union changes nothing else."""
    latin1 = Unions({"shop.orders": {"id": parse_type("bytes"), "m": parse_type("hstore")}}, latin1=True)
    value = json.dumps({"after": {"id": "EtaH", "m": {"string": "x"}}, "source": SOURCE, "op": "c"})
    written = Normalizer(latin1).texts(TOPIC, UNIONS, RouterRecord("", '{"id":"EtaH"}', value))
    assert written is not None
    assert (written[0], json.loads(str(written[1]))) == ('{"id":"EtaH"}', json.loads(value))


EVENT = {
    "id": "name:s;lsn:9;txId:5",
    "source": "/debezium/postgresql/s",
    "specversion": "1.0",
    "type": "io.debezium.connector.postgresql.DataChangeEvent",
    "datacontenttype": "application/json",
    "iodebeziumop": "u",
    "iodebeziumtsms": "1578923739738",
    "iodebeziumdb": "prod",
    "iodebeziumschema": "shop",
    "iodebeziumtable": "orders",
    "iodebeziumlsn": "9",
    "iodebeziumsequence": '["8","9"]',
    "iodebeziumtxid": "5",
    "iodebeziumtxtotalorder": None,
    "data": {"before": None, "after": {"id": 1, "price": 1.50}},
}


def test_a_cloud_event_is_an_envelope() -> None:
    """A6: operation, table and position stand in its attributes, numbers as text."""
    event = loads(json.dumps(EVENT).replace("1.5}", "1.50}"))
    plain = cloudevents.to_envelope(event)
    assert plain is not None
    assert '"after":{"id":1,"price":1.50}' in dumps(plain)
    told = json.loads(dumps(plain))
    assert told["op"] == "u"
    assert told["source"] == {
        "connector": "postgresql", "name": "s", "db": "prod", "schema": "shop", "table": "orders", "lsn": 9,
        "sequence": '["8","9"]', "ts_ms": 1578923739738, "txId": "5",
    }  # fmt: skip


def test_a_cloud_event_keeps_the_schema_of_its_data() -> None:
    """A2, A6: ``data`` may be wrapped; as an envelope's its schema has the operation too."""
    side = {"type": "struct", "fields": [{"type": "int32", "field": "id"}], "field": "after"}
    data = {"schema": {"type": "struct", "fields": [side]}, "payload": {"after": {"id": 1}}}
    plain = cloudevents.to_envelope(exactly(EVENT | {"data": data}))
    assert plain is not None
    assert [member["field"] for member in plain["schema"]["fields"]] == ["after", "op"]
    assert (plain["payload"]["op"], plain["payload"]["after"]) == ("u", exactly({"id": 1}))


def test_an_event_of_somebody_else_is_none_of_ours() -> None:
    """A1: a row may have a column of any name."""
    assert cloudevents.to_envelope({"id": 1, "specversion": "x"}) is None


def test_an_event_may_hold_the_whole_envelope() -> None:
    """A6: then that is the record, with its schema."""
    envelope = {"before": None, "after": {"id": 1}, "source": SOURCE, "op": "c"}
    block = {"schema": {"type": "struct"}, "payload": envelope}
    for data in (envelope, block):
        assert cloudevents.to_envelope(EVENT | {"data": data}) == data


def test_an_event_that_does_not_say_its_operation_gets_none() -> None:
    """B9: ``extension.attributes.enable=false`` leaves an ``unknown_op``, not a guess."""
    bare = {name: held for name, held in EVENT.items() if not name.startswith("iodebezium")}
    plain = cloudevents.to_envelope(bare)
    assert plain is not None
    assert "op" not in plain


HEADERS = (("id", b"e-1"), ("eventType", b"OrderPlaced"), ("raw", b"\xff"), ("__debezium.context.taskId", b"0"))


def event(value: str | None, key: str | None = '"17"', **more: Any) -> RouterRecord:
    return RouterRecord("event.order", key, value, **({"headers": HEADERS} | more))


def routed(one: RouterRecord, settings: Outbox | None = None) -> tuple[Any, Any]:
    """Key and row of an event, without their schemas."""
    written = outbox.flatten(one, settings if settings is not None else Outbox("router"))
    assert written is not None
    return tuple(None if text is None else json.loads(text)["payload"] for text in written)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        ('"{\\"total\\": 1.50}"', '{"total": 1.50}'),
        ('{"total": 1.50}', '{"total": 1.50}'),
        ('{"schema":{"type":"string"},"payload":"{\\"total\\": 1.50}"}', '{"total": 1.50}'),
        ('{"schema":{"type":"struct"},"payload":{"total":1.50}}', '{"total":1.50}'),
        ('{"payload": "x", "eventType": "y"}', '{"payload": "x", "eventType": "y"}'),
        ("no json", "no json"),
        ("[1, 2]", "[1, 2]"),
    ],
)
def test_a_payload_is_the_exact_text_in_every_form(value: str, payload: str) -> None:
    """I2: a JSON string is what it says, anything else is as it stands."""
    key, row = routed(event(value))
    assert key == {"id": "e-1"}
    assert row == {
        "id": "e-1", "aggregate_id": "17", "payload": payload, "headers": {"eventType": "OrderPlaced"},
        "__op": "c", "__deleted": "false", "__schema": "event", "__table": "order",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("one", "data"),
    [
        (event(None, undecodable=b"\xff\x00"), b"\xff\x00"),
        (event("plain"), b"plain"),
        (event('"/wA="'), b"\xff\x00"),
        (event('{"schema":{"type":"bytes"},"payload":"/wA="}'), b"\xff\x00"),
    ],
)
def test_a_payload_of_bytes_is_kept_byte_by_byte(one: RouterRecord, data: bytes) -> None:
    """I2: bytes as they are, or as base64 where a JSON converter wrote them (A7)."""
    assert base64.b64decode(routed(one, Outbox("router", binary=True))[1]["payload"]) == data


def test_a_schema_tells_bytes_too() -> None:
    """A2: a router's record in a converter's wrapper needs no declaration."""
    written = outbox.flatten(event('{"schema":{"type":"bytes"},"payload":"/wA="}'), Outbox("router"))
    assert written is not None
    plain = json.loads(str(written[1]))
    kinds = {field["field"]: field["type"] for field in plain["schema"]["fields"]}
    assert (kinds["payload"], plain["payload"]["payload"]) == ("bytes", "/wA=")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ('"17"', "17"),
        ("17", "17"),
        ("a-17", "a-17"),
        ('{"schema":{"type":"string"},"payload":"17"}', "17"),
        ('{"schema":{"type":"int32"},"payload":17}', "17"),
        ('{"schema":{"type":"string"},"payload":null}', None),
        ("null", None),
        (None, None),
    ],
)
def test_an_aggregate_has_one_identity_however_its_key_is_written(key: str | None, told: str | None) -> None:
    """I1: the key is the aggregate's id."""
    assert routed(event("{}", key))[1]["aggregate_id"] == told


def test_an_event_without_payload_is_left_alone_unless_it_deletes() -> None:
    """I3: with ``route.tombstone.on.empty.payload`` it deletes its aggregate."""
    nothing = [event(None), event("null"), event('{"schema":null,"payload":null}')]
    assert [outbox.flatten(one, Outbox("router")) for one in nothing] == [None] * 3
    deletes = Outbox("router", key=AGGREGATE_ID, null_deletes=True)
    for one in nothing:
        key, row = routed(one, deletes)
        assert (key, row["__deleted"], row["payload"]) == ({"aggregate_id": "17"}, "true", None)


def test_bytes_that_are_no_text_are_judged_as_they_are_unless_declared() -> None:
    """R4: ``invalid_utf8`` is for what should have been text."""
    assert outbox.flatten(event(None, undecodable=b"\xff"), Outbox("router")) is None
    assert (
        outbox.flatten(event(None, undecodable=b"\xff"), Outbox("router", key=AGGREGATE_ID, null_deletes=True)) is None
    )


def test_an_event_without_its_id_has_no_key() -> None:
    """I1: it cannot be told from its repetition."""
    assert routed(event("{}", headers=()))[0] is None


def test_a_document_of_mongodb_is_a_row() -> None:
    """K1, K3, K4: decoded twice; numbers in either spelling; the key is the identity's text."""
    body = {
        "after": '{"_id": {"$numberLong": "5"}, "n": {"$numberLong": "7"}, "d": 1.50, '
        '"x": {"a": 1}, "o": {"$oid": "ff"}}',
        "source": {"connector": "mongodb", "db": "shop", "collection": "orders"},
        "op": "c",
    }
    key, plain = mongodb.to_envelope(exactly({"id": '{"$numberLong": "5"}'}), exactly(body))
    assert key == mongodb.to_envelope(exactly({"id": "5"}), exactly(body))[0] == {"_id": "5"}
    assert dumps(plain["after"]) == '{"_id":"5","n":7,"d":1.50,"x":{"a":1},"o":"ff"}'
    assert plain["source"]["table"] == "orders"
    wrapped = {"schema": {"type": "struct"}, "payload": exactly(body)}
    assert mongodb.to_envelope(exactly({"schema": None, "payload": {"id": "5"}}), wrapped) == (key, plain)


def test_ids_of_different_types_are_different_rows() -> None:
    """K4: MongoDB lets "5" and 5, an ObjectId and its digits, "true" and true stand side by side."""
    ids = {
        '"abc"': "abc", '"5"': '"5"', "5": "5", '{"$numberLong": "5"}': "5", '"true"': '"true"', "true": "true",
        '"507f191e810c19729de860ea"': '"507f191e810c19729de860ea"',
        '{"$oid": "507f191e810c19729de860ea"}': "507f191e810c19729de860ea",
        '"507f191e810c19729de860e"': "507f191e810c19729de860e",
        '{"a": 1}': '{"a":1}', '"{\\"a\\":1}"': '"{\\"a\\":1}"', '"\\"5\\""': '"\\"5\\""', '"NaN"': '"NaN"',
        '{"$numberDouble": "NaN"}': "NaN", "null": "null", '"null"': '"null"',
    }  # fmt: skip
    for sent, expected in ids.items():
        body = {"after": f'{{"_id": {sent}}}', "source": {"connector": "mongodb"}, "op": "c"}
        key, plain = mongodb.to_envelope(exactly({"id": sent}), exactly(body))
        assert (key["_id"], plain["after"]["_id"]) == (expected, expected), sent


@pytest.mark.parametrize("shape", [CLOUDEVENT, UNIONS, MONGODB])
@pytest.mark.parametrize(
    "hostile",
    [
        (
            '{"specversion":"1.0","type":"io.debezium.x","iodebeziumop":"c",'
            '"data":{"schema":{"fields":5},"payload":{"after":1}}}'
        ),
        '{"schema":{"type":"struct","fields":[5]},"payload":{"op":"c","source":[],"after":{"x":{"string":"y"}}}}',
        '{"schema":5,"payload":{"before":{"Value":{}},"source":{"db":{"a":1},"table":7},"op":{"string":"c"}}}',
        '{"after":"{}","source":7,"op":"c"}',
        '{"after":"[","source":{"collection":{}},"op":"u"}',
        '{"specversion":"1.0","type":"io.debezium.x","data":' + '{"a":' * 700 + "1" + "}" * 700 + "}",
    ],
)
def test_hostile_records_end_as_records_and_stop_nobody(shape: str, hostile: str) -> None:
    """R5: whatever it says, it is judged by what comes out."""
    written = Normalizer().texts(TOPIC, shape, RouterRecord("", '{"id":1}', hostile))
    assert written is None or isinstance(json.loads(str(written[1])), dict | list)


def test_a_record_that_is_nested_too_deep_is_no_row() -> None:
    """Promise D: it is not left to be taken for a flattened row."""
    deep = json.dumps(EVENT).replace('{"id": 1', '{"deep": ' + "[" * 900 + "]" * 900 + ', "id": 1')
    assert Normalizer().texts(TOPIC, CLOUDEVENT, RouterRecord("", '{"id":1}', deep)) == ('{"id":1}', "[]")


def test_a_key_that_is_no_json_stays_as_it_is() -> None:
    """R4: it is the key that will be judged, not the record."""
    written = Normalizer().texts(TOPIC, CLOUDEVENT, RouterRecord("", "no json", json.dumps(EVENT)))
    assert written is not None
    assert (written[0], json.loads(str(written[1]))["op"]) == ("no json", "u")


def test_a_source_of_routers_leaves_declared_tables_and_control_topics_alone() -> None:
    """I1: every other topic of three parts carries events."""
    one = Declaration("event.cart", outbox=Outbox("router", topic="carts"))
    spec = SourceSpec("s", "", tables=(one, Declaration("a.b")), default=Declaration("", outbox=Outbox("router")))
    readers = for_source(spec, {})
    found = {topic: readers.router(topic) for topic in ("carts", "s.a.b", "s.event.x", "s", "__debezium-heartbeat.a.b")}
    assert {topic: table[0] for topic, table in found.items() if table} == {
        "carts": "event.cart",
        "s.event.x": "event.x",
    }
