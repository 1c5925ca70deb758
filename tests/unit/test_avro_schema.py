"""``schema avro``: schema blocks in Avro's words, and what those say of columns (debezium.md A5; types.md Y13)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.debezium.avro_columns import columns
from replicator.debezium.avro_schema import avro_schema
from replicator.debezium.connect_schema import row_fields
from replicator.debezium.record_payload import schema_block
from replicator.errors import ConfigError
from replicator.jvm import gateway
from tests.builders import record, wrapped
from tests.cli import said

GOLDEN = Path(__file__).parents[1] / "golden"
DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "io.debezium.time.Date"


def struct(*fields: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A block of a row; each member says ``optional`` as a converter does."""
    return {"type": "struct", "fields": [{"optional": True, **each} for each in fields], "optional": False, **more}


ORDERS = struct(
    {"type": "int16", "optional": False, "field": "id"},
    {"type": "string", "optional": False, "field": "customer"},
    {"type": "int32", "name": DATE, "version": 1, "field": "shipped"},
    {"type": "bytes", "name": DECIMAL, "version": 1, "field": "total", "default": "BNI=",
     "parameters": {"scale": "2", "connect.decimal.precision": "10"}},
    {"type": "array", "items": {"type": "string", "optional": True}, "field": "tags"},
    {"type": "string", "field": "__op"},
    {"type": "int64", "field": "__lsn"},
    name="my-shop.sales.orders.Value",
)  # fmt: skip


def line(topic: str, offset: int, value: Any) -> str:
    """As ``kcat -C -J`` prints it."""
    told = record(topic, offset, None, value)
    return json.dumps({"topic": topic, "partition": 0, "offset": offset, "ts": 1, "key": None, "payload": told.value})


@pytest.fixture
def events(tmp_path: Path) -> Path:
    older = struct({"type": "int16", "optional": False, "field": "id"}, name="my-shop.sales.orders.Value")
    file = tmp_path / "events.jsonl"
    values = [wrapped({"id": 1}, older), wrapped({"id": 1}, ORDERS), {"id": 2}, None]
    file.write_text("".join(line("my-shop.sales.orders", at, value) + "\n" for at, value in enumerate(values)))
    return file


def test_the_newest_block_of_a_topic_is_printed_as_a_schema_file(events: Path) -> None:
    """Null first where a field may be null and has no other default; what Avro has no word for stays beside."""
    date = {"type": "int", "connect.version": 1, "connect.name": DATE}
    total = {
        "type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2, "connect.version": 1,
        "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"}, "connect.name": DECIMAL,
    }  # fmt: skip
    assert json.loads(said("schema", "avro", str(events))) == {
        "type": "record",
        "name": "Value",
        "namespace": "my_shop.sales.orders",
        "connect.name": "my-shop.sales.orders.Value",
        "fields": [
            {"name": "id", "type": {"type": "int", "connect.type": "int16"}},
            {"name": "customer", "type": "string"},
            {"name": "shipped", "type": ["null", date], "default": None},
            {"name": "total", "type": [total, "null"], "default": "\x04\xd2"},
            {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}], "default": None},
            {"name": "__op", "type": ["null", "string"], "default": None},
            {"name": "__lsn", "type": ["null", "long"], "default": None},
        ],
    }


def test_a_file_of_several_topics_is_asked_for_one(events: Path) -> None:
    """It names them; ``--topic`` takes one, and one without a block is told."""
    with events.open("a") as more:
        other = struct({"type": "string", "field": "note"}, name="my-shop.sales.notes.Value")
        more.write(line("my-shop.sales.notes", 0, wrapped({"note": "x"}, other)))
    with pytest.raises(ConfigError, match=r"several topics.*my-shop.sales.notes, my-shop.sales.orders"):
        said("schema", "avro", str(events))
    found = json.loads(said("schema", "avro", str(events), "--topic", "my-shop.sales.notes"))
    assert [each["name"] for each in found["fields"]] == ["note"]
    with pytest.raises(ConfigError, match=r"no record of my-shop.sales.other has a schema block"):
        said("schema", "avro", str(events), "--topic", "my-shop.sales.other")


def test_records_without_a_block_are_told(tmp_path: Path) -> None:
    """With the converter's setting that sends one."""
    file = tmp_path / "events.jsonl"
    file.write_text(line("s.d.t", 0, {"id": 2}) + "\n" + line("s.d.t", 1, "{no JSON"))
    with pytest.raises(ConfigError, match=r"no record has a schema block.*schemas.enable"):
        said("schema", "avro", str(file))


def test_a_field_that_avro_cannot_name_is_told_with_the_connectors_setting() -> None:
    """A name of Avro's is letters, digits and underscores."""
    with pytest.raises(ConfigError, match=r"not a valid Avro field name .unit price.*field.name.adjustment.mode"):
        avro_schema(struct({"type": "string", "field": "unit price"}))


def test_a_row_is_defined_once_whatever_types_it_has() -> None:
    """``before`` and ``after`` of an envelope are of one type, which is called by its name the second time; so are the
    named types in it. Structs of one name that differ have names of their own.
    """
    point = struct({"type": "double", "field": "x"}, name="io.debezium.data.geometry.Point")
    row = struct({**point, "field": "at"}, {**point, "field": "to"}, name="s.d.t.Value")
    other = struct({"type": "double", "field": "y"}, name="s.d.t.Value")
    members = ({**row, "field": "before"}, {**row, "field": "after"}, {**other, "field": "source"})
    before, after, source = (each["type"] for each in avro_schema(struct(*members, name="s.d.t.Envelope"))["fields"])
    assert [each["type"] if isinstance(each["type"], str) else each["type"]["name"] for each in before["fields"]] == [
        "Point",
        "io.debezium.data.geometry.Point",
    ]
    assert after == "s.d.t.Value"
    assert (source["name"], source["namespace"]) == ("Value_", "s.d.t")


def test_a_plain_row_may_have_columns_of_an_envelopes_names() -> None:
    """``op`` and ``after`` are texts there, and columns as any other."""
    fields = [{"name": "op", "type": "string"}, {"name": "after", "type": ["null", "string"]}]
    told = columns(json.dumps({"type": "record", "name": "t", "fields": fields}))
    assert told == {"op": "string", "after": "string"}


def blocks(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The distinct schema blocks of recorded values below a folder, with their topics."""
    known = set[str]()
    for file in sorted(folder.rglob("*.jsonl*")):
        with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
            for told in map(json.loads, lines):
                found = schema_block((told.get("payload") or "").encode())
                text = json.dumps(found)
                if found is not None and text not in known:
                    known.add(text)
                    yield told["topic"], found


def is_of_rows(schema: Mapping[str, Any]) -> bool:
    """Not of messages, DDL and transactions, whose ``source`` is no column."""
    names = {each["field"] for each in schema["fields"]}
    return "source" not in names or "after" in names


def holds(folder: Path) -> int:
    """How many blocks below it say in Avro's words what they say in Connect's. How decimals are written they say in
    neither.
    """
    rows = [each for _, each in blocks(folder) if is_of_rows(each)]
    for each in rows:
        own = (field for field in row_fields(each) if not field.name.startswith("__"))
        said_of = {field.name: str(field.logical).replace("decimal_connect", "decimal") for field in own}
        assert columns(json.dumps(avro_schema(each))) == said_of
    return len(rows)


def test_a_schema_file_says_of_columns_what_the_block_says() -> None:
    """Of every table of the recorded cases; a named type is defined once and called by its name from there on."""
    assert holds(GOLDEN) >= 3


def test_so_it_does_of_an_unsigned_number() -> None:
    """With `column.propagate.source.type`; as a plain BIGINT its upper half would be negative."""
    field = {"type": "int64", "field": "n", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}}
    for optional in (True, False):
        block = {"type": "struct", "fields": [{**field, "optional": optional}]}
        assert columns(json.dumps(avro_schema(block))) == {"n": "bigint unsigned"}


def test_so_it_does_of_recorded_tables(recorded: Path) -> None:
    """With hostile types: decimals of 60 digits and of negative scale, arrays, points, several of one named type."""
    assert holds(recorded) >= 20


def test_the_outbox_of_orders_has_nineteen_fields(recorded: Path) -> None:
    """As its Avro converter registers it: the key's two columns required, dates as days, JSON as text."""
    [found] = [avro_schema(each) for topic, each in blocks(recorded) if topic == "demoschema.datalake.cdc_events"]
    fields = {each["name"]: each["type"] for each in found["fields"]}
    assert len(fields) == 19
    assert [name for name, kind in fields.items() if not isinstance(kind, list)] == ["order_id", "customer_id"]
    assert fields["shipped_date"][1]["connect.name"] == DATE
    assert fields["order_items"][1]["connect.name"] == "io.debezium.data.Json"
    assert fields["__source_ts_ms"] == ["null", "long"]


@pytest.mark.spark
def test_avros_own_parser_takes_each_schema(spark: SparkSession, recorded: Path) -> None:
    """Defaults, names that come again and logical types included; it is the one in Spark's JARs."""
    avro = gateway.of(spark).org.apache.avro
    for folder in (GOLDEN, recorded):
        for topic, each in blocks(folder):
            made = avro.Schema.Parser().parse(json.dumps(avro_schema(each)))
            assert made.getFields().size() == len(each["fields"]), topic
    parsed = avro.Schema.Parser().parse(json.dumps(avro_schema(ORDERS)))
    decimal = parsed.getField("total").schema().getTypes().get(0).getLogicalType()
    assert (decimal.getPrecision(), decimal.getScale()) == (10, 2)
