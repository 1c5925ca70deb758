"""What a policy keeps out of bronze, in every shape that a record may have."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from replicator.config import sourcefile
from replicator.config.yamlfile import Problems
from replicator.debezium.placeholder import Placeholder
from replicator.debezium.record_masking import REDACTED
from replicator.debezium.redaction import Redaction
from replicator.spec import Declaration, Mask, SourceSpec
from replicator.transforms.table_transform import hashing

KEY = "the key of hashed columns"
POLICY = {"shop.people": Mask("shop.people", ("email", "id"), ("ssn",))}
REDACTION = Redaction("s", POLICY, partial(hashing.digest, KEY), Placeholder())
ROW = '{"id":1.50,"email":"ann@x","ssn":"078","total":12.50,"name":null}'


def digest(text: str) -> str:
    return hashing.digest(KEY, text)


KEPT = f'{{"id":"{digest("1.5")}","email":"{digest("ann@x")}","total":12.50,"name":null}}'
SOURCE = '"source":{"db":"shop","table":"people","id":7,"ssn":1},"op":"u"'


EVENT = '"type":"io.debezium.connector.postgresql.DataChangeEvent","source":"/debezium/postgresql/s"'


def redacted(value: str, topic: str = "s.shop.people") -> str:
    _, kept, _ = REDACTION.record(topic, None, value.encode(), None)
    assert kept is not None
    return kept.decode()


@pytest.mark.parametrize(
    "shape",
    [
        "%s",
        '{"before":%s,"after":null,' + SOURCE + "}",
        '{"before":null,"after":%s,' + SOURCE + "}",
        '{"schema":null,"payload":%s}',
        '{"schema":null,"payload":{"after":%s,' + SOURCE + "}}",
        '{"after":{"s.shop.people.Value":%s},' + SOURCE + "}",
        '{"specversion":"1.0","id":"x",' + EVENT + ',"data":{"payload":{"after":%s,' + SOURCE + '},"schema":null}}',
        '{"specversion":"1.0","id":"x",' + EVENT + ',"data":{"before":null,"after":%s}}',
        '{"specversion":"1.0","id":"x",' + EVENT + ',"data":{"before":%s,"after":null}}',
        '{"specversion":"1.0","id":"x",' + EVENT + ',"data":{"schema":null,"payload":{"after":%s}}}',
        '{"specversion":"1.0","data":%s}',
        '{"payload":%s}',
        '{"payload":{"after":%s},"schema":null,"more":1}',
        '{"before":%s,"op":"d"}',
        '{"after":%s,"source":null,"op":{"string":"c"}}',
        '{"before":%s,"source":{"db":"shop"}}',
        '{"s.shop.people.Envelope":{"after":{"Value":%s},' + SOURCE + "}}",
        '{"Envelope":{"after":{"Value":%s},' + SOURCE + "}}",
    ],
)
def test_columns_are_hashed_or_gone_in_every_shape(shape: str) -> None:
    """Numbers stay as they are written, and what is no column of the row is not touched."""
    assert json.loads(redacted(shape % ROW), parse_float=str) == json.loads(shape % KEPT, parse_float=str)


def test_columns_are_masked_in_whichever_case_the_source_spells_them() -> None:
    """It may change that, and silver takes such a column for the same (G4); the schema of the record says so, too."""
    row = ROW.replace("email", "Email").replace("ssn", "SSN").replace('"id"', '"ID"')
    kept = KEPT.replace("email", "Email").replace('"id"', '"ID"')
    assert redacted(f'{{"after":{row},{SOURCE}}}') == f'{{"after":{kept},{SOURCE}}}'
    schema = '{"type":"struct","fields":[{"field":"Email","type":"int32"},{"field":"SSN","type":"string"}]}'
    fields = json.loads(redacted(f'{{"schema":{schema},"payload":{row}}}'))["schema"]["fields"]
    assert [(each["field"], each["type"]) for each in fields] == [("Email", "string")]


@pytest.mark.parametrize(
    "others",
    [
        {"op": "x", "before": "y"},
        {"op": "x", "before": "y", "source": "z"},
        {"op": "c", "source": {"db": "x"}, "after": None},
        {"op": "c", "after": {"email": 1}},
        {"payload": "x", "schema": "y"},
        {"payload": {"email": 1}, "schema": {"fields": [7]}},
        {"specversion": "x", "data": "y"},
        {"specversion": "1.0", "data": {"email": 1}},
        {"specversion": "1.0", "type": "io.debezium.x"},
        {"updateDescription": "x"},
    ],
)
def test_a_row_that_looks_like_another_shape_is_masked_as_a_row(others: dict[str, Any]) -> None:
    """What a record is may be in doubt: then columns are hidden wherever it may have them, and all others stay."""
    told = json.loads(redacted(json.dumps({"id": 1, "email": "ann@x", "ssn": "078"} | others)))
    hidden = json.loads(json.dumps(others).replace('"email": 1', f'"email": "{digest("1")}"'))
    assert told == {"id": digest("1"), "email": digest("ann@x")} | hidden


def test_columns_that_are_called_as_an_envelope_has_it_are_masked_in_rows_only() -> None:
    """An envelope without its operation would be no change of a row any more."""
    names = ("op", "source", "schema", "payload", "data", "type", "before")
    redaction = Redaction("s", {"shop.people": Mask("shop.people", names, ("specversion",))}, digest, Placeholder())

    def made(value: Any) -> Any:
        return json.loads(redaction.record("s.shop.people", None, json.dumps(value).encode(), None)[1] or b"")

    row = dict.fromkeys((*names, "specversion"), "x")
    hidden = {name: digest("x") for name in names}
    envelope = {"after": row, "source": {"db": "shop"}, "op": "c"}
    event = {"specversion": "1.0", "type": "io.debezium.x", "source": "/debezium/postgresql/s", "data": envelope}
    assert made(row) == hidden
    assert made({"schema": "x", "payload": "x"}) == {"schema": digest("x"), "payload": digest("x")}
    assert made(envelope) == envelope | {"after": hidden}
    assert made({"schema": None, "payload": envelope}) == {"schema": None, "payload": envelope | {"after": hidden}}
    assert made(event) == event | {"data": envelope | {"after": hidden}}


@pytest.mark.parametrize(
    "value",
    [
        '{"after":"ann@x, but no document",' + SOURCE + "}",
        '{"after":["ann@x"],' + SOURCE + "}",
        '{"schema":{"type":"string"},"payload":"ann@x"}',
        '{"specversion":"1.0",' + EVENT + ',"data":"YW5uQHg="}',
    ],
)
def test_what_stands_where_a_row_must_be_and_is_none_is_not_kept(value: str) -> None:
    """Its columns cannot be told."""
    assert redacted(value) == REDACTED


def test_a_cloud_event_names_its_table_too() -> None:
    """In a topic of any name."""
    event = '{"specversion":"1.0","iodebeziumdb":"shop","iodebeziumtable":"people","data":{"after":{"ssn":"078"}}}'
    assert "078" not in redacted(event, "elsewhere")


def test_a_document_as_text_and_values_of_unions_are_reached() -> None:
    """MongoDB's connector sends documents as text, Avro's JSON the type beside the value."""
    told = json.loads(redacted('{"after":' + json.dumps(ROW) + "," + SOURCE + "}"))
    assert told["after"] == KEPT
    text = json.loads(redacted('{"after":{"string":' + json.dumps(ROW) + "}," + SOURCE + "}"))
    assert text["after"] == {"string": KEPT}
    union = json.loads(redacted('{"email":{"string":"ann@x"},"id":{"long":7}}'))
    assert union == {"email": {"string": digest("ann@x")}, "id": {"string": digest("7")}}


DOTTED = Redaction("s", {"shop.people": Mask("shop.people", ("a.b", "email"), ("c.d",))}, digest, Placeholder())


@pytest.mark.parametrize("shape", ["%s", '{"after":%s,' + SOURCE + "}", '{"schema":null,"payload":%s}'])
@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ('{"a.b":"ann@x"}', f'{{"a.b":"{digest("ann@x")}"}}'),
        ('{"a.b":{"x":1}}', '{"a.b":"' + digest('{"x":1}') + '"}'),
        ('{"a.b":{"string":"x","b":1}}', '{"a.b":"' + digest('{"string":"x","b":1}') + '"}'),
        ('{"a.b":"\\"7\\""}', '{"a.b":"' + digest('"7"') + '"}'),
        ('{"c.d":{"x":1}}', "{}"),
        ('{"e.f":7}', '{"e.f":7}'),
        ('{"x.Value":{"a.b":"ann@x"}}', f'{{"x.Value":{{"a.b":"{digest("ann@x")}"}}}}'),
        ('{"Value":{"email":"ann@x"}}', f'{{"Value":{{"email":"{digest("ann@x")}"}}}}'),
    ],
)
def test_a_row_of_one_column_with_a_dot_in_its_name_is_no_union(shape: str, row: str, kept: str) -> None:
    """A5: a union's branch holds a row, under the name of a type, also of one without a namespace."""
    key, value, _ = DOTTED.record("s.shop.people", (shape % row).encode(), (shape % row).encode(), None)
    assert (key, value) == ((shape % kept).encode(), (shape % kept).encode())


def test_the_schema_says_what_is_there() -> None:
    """A hash is a text whatever the column was, and a column that is gone is not described."""
    row = [{"type": "int32", "name": "io.debezium.time.Date", "field": name} for name in ("id", "ssn", "total")]
    envelope = [{"type": "struct", "fields": row, "field": "after"}, {"type": "string", "field": "op"}]
    value = {"schema": {"type": "struct", "fields": envelope}, "payload": {"after": {"id": 1}, "op": "c"}}
    told = json.loads(redacted(json.dumps(value)))
    assert told["schema"]["fields"] == [
        {"type": "struct", "fields": [{"type": "string", "optional": True, "field": "id"}, row[2]], "field": "after"},
        envelope[1],
    ]
    flat = {"schema": {"type": "struct", "fields": row}, "payload": {"id": 1}}
    assert json.loads(redacted(json.dumps(flat)))["schema"]["fields"][0]["type"] == "string"
    event = {"specversion": "1.0", "iodebeziumop": "c", "data": {"schema": {"fields": envelope[:1]}, "payload": {}}}
    assert json.loads(redacted(json.dumps(event)))["data"]["schema"]["fields"] == told["schema"]["fields"][:1]


def test_the_schema_of_a_row_that_looks_like_an_envelope_is_that_of_a_row() -> None:
    """Or a hash would be described as what the column was."""
    row = [{"type": kind, "field": name} for kind, name in (("int32", "id"), ("string", "op"), ("string", "source"))]
    value = {"schema": {"fields": row}, "payload": {"id": 1, "op": "x", "source": "y"}}
    told = json.loads(redacted(json.dumps(value)))["schema"]["fields"]
    assert told == [{"type": "string", "optional": True, "field": "id"}, *row[1:]]


def test_keys_and_the_headers_that_hold_keys_are_masked_alike() -> None:
    """A key that rests in clear beside its hashed row would tell whose row it is; NULLs stay, also tombstones."""
    headers = [("__debezium.newkey", b'{"id":2}'), ("other", b'{"id":2}'), ("__debezium.oldkey", None)]
    key, value, kept = REDACTION.record("s.shop.people", b'{"id":1}', None, headers)
    assert (key, value) == (f'{{"id":"{digest("1")}"}}'.encode(), None)
    assert kept == [("__debezium.newkey", f'{{"id":"{digest("2")}"}}'.encode()), headers[1], headers[2]]
    assert redacted("null") == "null"


DOCUMENTS = Redaction("s", {"shop.docs": Mask("shop.docs", ("_id", "owner"))}, digest, Placeholder())


def test_identities_that_differ_in_their_type_alone_stay_two_when_they_are_hashed() -> None:
    """K4: the string ``"5"`` and the number 5 are two documents."""
    kept = [
        DOCUMENTS.record("s.shop.docs", f'{{"id":{json.dumps(told)}}}'.encode(), None, None)[0] for told in ('"5"', "5")
    ]
    assert kept == [f'{{"id":"{digest(told)}"}}'.encode() for told in ('"5"', "5")]


@pytest.mark.parametrize(
    ("identity", "told"),
    [
        ('"ann@x"', "ann@x"),
        ('{"$oid": "a1"}', "a1"),
        ("5", "5"),
        ('{"$numberLong": "5"}', "5"),
        ('"1.10 m"', "1.10 m"),
        ('{"a": 1, "b": 2}', '{"a":1,"b":2}'),
    ],
)
def test_the_identity_of_a_document_is_hashed_alike_in_its_key(identity: str, told: str) -> None:
    """K1: the key calls it ``id`` and has its Extended JSON as text; what refers to it has the same hash."""
    document = json.dumps(f'{{"_id": {identity}, "owner": {identity}, "id": 7}}')
    value = f'{{"after":{document},"op":"c","source":{{"connector":"mongodb","db":"shop","collection":"docs"}}}}'
    key = f'{{"id":{json.dumps(identity)}}}'
    block = {"type": "struct", "fields": [{"type": "string", "field": "id"}]}
    hidden = f'{{"id":"{digest(told)}"}}'
    for topic in ("s.shop.docs", "elsewhere"):
        kept_key, kept, _ = DOCUMENTS.record(topic, key.encode(), value.encode(), None)
        assert kept_key == hidden.encode()
        held = {"_id": digest(told), "owner": digest(told), "id": 7}
        assert json.loads(json.loads(kept or b"")["after"]) == held
    wrapped = json.dumps({"schema": block, "payload": json.loads(key)}).encode()
    for tombstone in (None, b"null"):
        kept_key = DOCUMENTS.record("s.shop.docs", wrapped, tombstone, None)[0]
        assert json.loads(kept_key or b"")["payload"] == json.loads(hidden)


def test_the_identity_of_a_document_may_be_left_out_of_its_key() -> None:
    """What a policy drops is nowhere."""
    redaction = Redaction("s", {"shop.docs": Mask("shop.docs", (), ("_id",))}, digest, Placeholder())
    assert redaction.record("s.shop.docs", b'{"id":"5"}', b'{"_id":5,"n":1}', None)[:2] == (b"{}", b'{"n":1}')


def test_a_key_called_id_is_its_own_where_the_record_is_no_document() -> None:
    """Another connector's table may have a column ``_id`` beside its key."""
    value = b'{"before":null,"after":{"id":"5","_id":"ann@x"},"op":"c","source":{"connector":"mysql"}}'
    key, kept, _ = DOCUMENTS.record("s.shop.docs", b'{"id":"5"}', value, None)
    assert (key, kept) == (b'{"id":"5"}', value.replace(b"ann@x", digest("ann@x").encode()))


def test_what_was_not_sent_is_not_hashed() -> None:
    """E2: or nobody would know any more that it was not sent."""
    assert redacted('{"email":"__debezium_unavailable_value"}') == '{"email":"__debezium_unavailable_value"}'


def nested(levels: int) -> str:
    return f'{{"email":"ann@x","x":{"[" * levels}{"]" * levels}}}'


@pytest.mark.parametrize(
    "value",
    [
        "{oops",
        "[1]",
        '"ann@x"',
        "7",
        '{"email":' * 5000,
        nested(400),
        nested(900),
        '{"schema":{"fields":[7]},"payload":{"email":"ann@x"}}',
        '{"schema":{"fields":[{"field":["op"]}]},"payload":{"email":"ann@x"}}',
        '{"after":' + json.dumps(nested(400)) + ',"op":"c","source":{}}',
    ],
)
def test_what_cannot_be_read_is_not_kept(value: str) -> None:
    """A policy that lets through what looks odd is none; nor does such a record end the read of bronze."""
    told = value.encode()
    key, kept, headers = REDACTION.record("s.shop.people", told, told, [("__debezium.newkey", told)])
    assert (key, kept, headers) == (REDACTED.encode(), REDACTED.encode(), [("__debezium.newkey", REDACTED.encode())])


def test_bytes_that_are_no_text_are_not_kept() -> None:
    """Nor are they in ``undecodable``."""
    assert REDACTION.record("s.shop.people", b"\xff", b"\xff", None) == (REDACTED.encode(), REDACTED.encode(), None)


def test_a_table_is_known_by_its_topic_or_by_the_envelope_and_others_keep_every_byte() -> None:
    """A router may have sent it elsewhere."""
    envelope = '{"after":{"ssn": "078"},' + SOURCE + "}"
    assert "078" not in redacted(envelope, "elsewhere")
    assert "078" not in redacted(envelope.replace('"people"', '{"string":"people"}'), "elsewhere")
    other = b'{"email" : "ann@x"}'
    assert REDACTION.record("s.shop.orders", other, other, [("a", None)]) == (other, other, [("a", None)])


@pytest.mark.parametrize("images", ['"before":null,"after":%s,', '"after":null,', ""], ids=["full", "null", "none"])
def test_the_changed_fields_of_a_document_are_not_kept(images: str) -> None:
    """They are the document's own values once more, by paths that no list of columns names."""
    fields = json.dumps('{"email":"ann@x"}')
    images = images.replace("%s", json.dumps(ROW))
    told = redacted("{" + images + f'"updateDescription":{{"updatedFields":{fields}}},' + SOURCE + "}")
    assert "ann@x" not in told
    assert set(json.loads(told)) == set(json.loads("{" + images + SOURCE + "}"))
    described = [{"type": "struct", "field": name} for name in ("after", "updateDescription", "op")]
    value = {"schema": {"fields": described}, "payload": {"after": None, "op": "u"}}
    assert json.loads(redacted(json.dumps(value)))["schema"]["fields"] == [described[0], described[2]]


@pytest.mark.parametrize("value", [None, b"null", b'{"schema":null,"payload":null}'], ids=["none", "null", "wrapped"])
@pytest.mark.parametrize("topic", ["s.crm.shop.people", "s.all", "everything", "elsewhere.shop.orders"])
def test_the_key_of_a_tombstone_is_masked_wherever_it_may_be_of_a_masked_table(topic: str, value: bytes | None) -> None:
    """It names no table: its topic does (SQL Server's with the database), or nothing does."""
    key, kept, _ = REDACTION.record(topic, b'{"id":1}', value, None)
    assert (key, kept) == (f'{{"id":"{digest("1")}"}}'.encode(), value)


def test_a_tombstone_in_the_topic_of_another_table_keeps_its_key() -> None:
    """Or the deletes of tables that have no policy would find no row."""
    assert REDACTION.record("s.shop.orders", b'{"id":1}', None, None)[0] == b'{"id":1}'
    assert REDACTION.record("s.crm.shop.orders", b'{"id":1}', None, None)[0] == b'{"id":1}'
    row = b'{"id":1,"payload":null}'
    assert REDACTION.record("elsewhere", row, row, None)[:2] == (row, row)


def test_a_table_is_known_by_the_name_that_topics_can_have_and_a_collection_by_its_envelope() -> None:
    """Debezium puts ``_`` for what a topic's name cannot have; MongoDB's records name a collection."""
    policy = {"shop.pe ople": Mask("shop.pe ople", ("id",))}
    redaction = Redaction("s", policy, digest, Placeholder())
    hidden = f'{{"id":"{digest("1")}"}}'.encode()
    assert redaction.record("s.shop.pe_ople", b'{"id":1}', None, None)[0] == hidden
    document = b'{"after":null,"op":"d","source":{"db":"shop","collection":"pe ople"}}'
    assert redaction.record("elsewhere", b'{"id":1}', document, None)[0] == hidden


@pytest.mark.parametrize(
    ("table", "is_hidden"),
    [("shop.people", True), ("shop_1.people", True), ("shop_2.people", False), ("shop.orders", False)],
)
def test_what_is_hidden_in_one_shard_is_hidden_in_the_table_of_all(table: str, is_hidden: bool) -> None:
    """Readers of the lake see what bronze hides nowhere: `tail`, `explain` and `diff` ask by either name."""
    people = Declaration("shop.people", shards=r"shop_\d[.]people")
    spec = SourceSpec("s", "", tables=(people,), masks=(Mask("shop_1.people", ("ssn",)),))
    assert spec.is_masked(table, "ssn") is is_hidden


def test_a_policy_is_declared_per_table(tmp_path: Path) -> None:
    """Beside the tables, with the key from the environment; in a source's file, too."""
    path = tmp_path / "declare.yaml"
    path.write_text("hash_key: ${SECRET}\nmask_before_bronze:\n  shop.people: {hash: [email], drop: [ssn]}\n")
    found: Any = sourcefile.load_declare_file(path, {"SECRET": KEY})
    assert found.masks == (Mask("shop.people", ("email",), ("ssn",)),)
    path.write_text(f"name: s\n{path.read_text()}")
    [(found, _)] = sourcefile.load_sources(tmp_path, "", {}, {"SECRET": KEY}, Problems())
    assert found.masks == (Mask("shop.people", ("email",), ("ssn",)),)
