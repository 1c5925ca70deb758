"""Logical types: what users write, what a Connect schema says, and how types widen (types.md sections 2, 6 and 8)."""

from __future__ import annotations

import gzip
import itertools
import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from replicator.debezium import known_losses
from replicator.debezium.connect_schema import fields_of, logical_of, row_fields
from replicator.debezium.handling_modes import HandlingModes
from replicator.debezium.logical_types import Field, LogicalType, spark_type
from replicator.debezium.type_parser import parse_type
from replicator.debezium.widening import common_type, family_of_type, widen
from replicator.errors import ConfigError
from replicator.spec import Column, Connector, Declaration, SourceSpec

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "recorded"
CONNECT, DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium."


@pytest.mark.parametrize(
    ("text", "silver"),
    [
        ("smallint", "SMALLINT"),
        ("int", "INT"),
        ("integer", "INT"),
        ("int32", "INT"),
        ("INT64", "BIGINT"),
        ("tinyint unsigned", "SMALLINT"),
        ("smallint unsigned", "INT"),
        ("mediumint unsigned", "INT"),
        ("int unsigned", "BIGINT"),
        ("integer unsigned", "BIGINT"),
        ("int(10) unsigned zerofill", "BIGINT"),
        ("bigint unsigned", "DECIMAL(20,0)"),
        ("real", "FLOAT"),
        ("float(24)", "FLOAT"),
        ("float(25)", "DOUBLE"),
        ("double precision", "DOUBLE"),
        ("bool", "BOOLEAN"),
        ("varchar(50)", "STRING"),
        ("character varying(20)", "STRING"),
        ("char(3)", "STRING"),
        ("text", "STRING"),
        ("blob", "BINARY"),
        ("varbinary(16)", "BINARY"),
        ("bytes_hex", "BINARY"),
        ("decimal(10,2)", "DECIMAL(10,2)"),
        ("numeric(12, 4)", "DECIMAL(12,4)"),
        ("decimal(8)", "DECIMAL(8,0)"),
        ("decimal(10,-2)", "DECIMAL(12,0)"),
        ("decimal(3,5)", "DECIMAL(5,5)"),
        ("decimal(65,30)", "STRING"),
        ("decimal_string(10,2)", "DECIMAL(10,2)"),
        ("variable_decimal", "STRING"),
        ("variable_decimal(20,4)", "DECIMAL(20,4)"),
        ("date", "DATE"),
        ("time", "BIGINT"),
        ("nano_time", "BIGINT"),
        ("datetime", "TIMESTAMP_NTZ"),
        ("timestamp with time zone", "TIMESTAMP"),
        ("zoned_time", "STRING"),
        ("iso_date", "DATE"),
        ("iso_timestamp", "TIMESTAMP_NTZ"),
        ("year", "INT"),
        ("interval", "STRING"),
        ("nano_duration", "BIGINT"),
        ("bits(8)", "BIGINT"),
        ("bits(63)", "BIGINT"),
        ("bits(64)", "BINARY"),
        ("bit(1)", "BOOLEAN"),
        ("json", "STRING"),
        ("enum_set", "ARRAY<STRING>"),
        ("map", "MAP<STRING, STRING>"),
        ("geometry", "STRUCT<wkb: BINARY, srid: INT>"),
        ("array<decimal(10,2)>", "ARRAY<DECIMAL(10,2)>"),
        ("text[]", "ARRAY<STRING>"),
        ("array<array<int>>", "STRING"),
    ],
)
def test_a_declared_type_has_a_silver_type(text: str, silver: str) -> None:
    """Section 2, in the short form of Y13 and in the SQL that people write."""
    assert spark_type(parse_type(text)) == silver


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("datetime(3)", "timestamp"),
        ("datetime(6)", "micro_timestamp"),
        ("time(6)", "micro_time"),
        ("timestamp(9)", "nano_timestamp"),
    ],
)
def test_fraction_digits_choose_the_unit(text: str, name: str) -> None:
    """Section 2: DATETIME(0..3) is sent in milliseconds, (4..6) in microseconds, (7..9) in nanoseconds."""
    assert parse_type(text) == LogicalType(name)


@pytest.mark.parametrize(
    "text",
    ["int", "bigint unsigned", "decimal(10,2)", "decimal_string(10,2)", "decimal_number(10,2)", "decimal_connect(10,2)",
     "variable_decimal", "variable_decimal_string(9,1)", "bytes", "bytes_hex", "bytes_base64", "bytes_base64url",
     "bits(5)", "array<array<decimal(4,1)>>", "point"],
)  # fmt: skip
def test_the_short_form_is_read_back(text: str) -> None:
    """A stored or printed type is a declaration."""
    logical = parse_type(text)
    assert str(logical) == text
    assert parse_type(str(logical)) == logical


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("bigitn", "'bigint'"),
        ("timestmap", "'timestamp'"),
        ("decimal", "decimal(10,2)"),
        ("decimal(0,2)", "at least 1"),
        ("bits(0)", "bits(8)"),
        ("array<strng>", "'string'"),
        ("", "docs/types.md lists the short forms"),
        ("int)", "unknown type 'int)'"),
        ("decimal(10", 'type with a comma in quotation marks: "decimal(10,2)"'),
    ],
)
def test_a_wrong_type_names_itself_and_the_nearest_spelling(text: str, hint: str) -> None:
    """Configuration errors say how to fix them."""
    with pytest.raises(ConfigError) as caught:
        parse_type(text)
    assert hint in str(caught.value)


def test_modes_that_no_connector_knows_are_refused() -> None:
    """Y13: a misspelt mode would decode every value wrongly."""
    with pytest.raises(ConfigError, match=r"decimal\.handling\.mode"):
        HandlingModes(decimals="strings")


def connect(kind: str, name: str | None = None, **parameters: str) -> dict[str, Any]:
    return {
        "type": kind,
        "name": name,
        "parameters": {key.replace("__", "."): value for key, value in parameters.items()},
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (connect("int8"), "smallint"),
        (connect("int16"), "smallint"),
        (connect("int32"), "int"),
        (connect("int64"), "bigint"),
        ({"type": "int64", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}}, "bigint unsigned"),
        ({"type": "int64", "parameters": {"__debezium.source.column.type": "INT UNSIGNED"}}, "bigint"),
        (connect("float"), "float"),
        (connect("float32"), "float"),
        (connect("double"), "double"),
        (connect("boolean"), "boolean"),
        (connect("string"), "string"),
        (connect("bytes"), "bytes"),
        (connect("bytes", CONNECT + "Decimal", scale="2", connect__decimal__precision="10"), "decimal_connect(10,2)"),
        (connect("bytes", CONNECT + "Decimal", scale="4"), "decimal_connect(38,4)"),
        (
            {
                "type": "bytes",
                "name": CONNECT + "Decimal",
                "parameters": {"scale": "2", "__debezium.source.column.type": "MONEY"},
            },
            "decimal_connect(19,2)",
        ),
        (connect("struct", DEBEZIUM + "data.VariableScaleDecimal"), "variable_decimal"),
        (connect("int32", DEBEZIUM + "time.Date"), "date"),
        (connect("int32", CONNECT + "Date"), "date"),
        (connect("int32", DEBEZIUM + "time.Time"), "time"),
        (connect("int32", CONNECT + "Time"), "time"),
        (connect("int64", DEBEZIUM + "time.MicroTime"), "micro_time"),
        (connect("int64", DEBEZIUM + "time.NanoTime"), "nano_time"),
        (connect("int64", DEBEZIUM + "time.Timestamp"), "timestamp"),
        (connect("int64", CONNECT + "Timestamp"), "timestamp"),
        (connect("int64", DEBEZIUM + "time.MicroTimestamp"), "micro_timestamp"),
        (connect("int64", DEBEZIUM + "time.NanoTimestamp"), "nano_timestamp"),
        (connect("string", DEBEZIUM + "time.ZonedTimestamp"), "zoned_timestamp"),
        (connect("string", DEBEZIUM + "time.ZonedTime"), "zoned_time"),
        (connect("string", DEBEZIUM + "time.IsoDate"), "iso_date"),
        (connect("string", DEBEZIUM + "time.IsoTime"), "iso_time"),
        (connect("string", DEBEZIUM + "time.IsoTimestamp"), "iso_timestamp"),
        (connect("struct", DEBEZIUM + "time.StructuredDate"), "structured_date"),
        (connect("struct", DEBEZIUM + "time.StructuredTime"), "structured_time"),
        (connect("struct", DEBEZIUM + "time.StructuredTimestamp"), "structured_timestamp"),
        (connect("struct", DEBEZIUM + "time.StructuredZonedTimestamp"), "structured_zoned_timestamp"),
        (connect("int32", DEBEZIUM + "time.Year"), "year"),
        (connect("string", DEBEZIUM + "time.Interval"), "interval"),
        (connect("int64", DEBEZIUM + "time.MicroDuration"), "micro_duration"),
        (connect("int64", DEBEZIUM + "time.NanoDuration"), "nano_duration"),
        (connect("bytes", DEBEZIUM + "data.Bits", length="5"), "bits(5)"),
        (connect("string", DEBEZIUM + "data.Json"), "json"),
        (connect("string", DEBEZIUM + "data.Uuid"), "uuid"),
        (connect("string", DEBEZIUM + "data.Xml"), "xml"),
        (connect("string", DEBEZIUM + "data.Enum"), "enum"),
        (connect("string", DEBEZIUM + "data.EnumSet"), "enum_set"),
        ({"type": "map", "keys": {"type": "string"}, "values": {"type": "string"}}, "map"),
        ({"type": "array", "items": {"type": "int32"}}, "array<int>"),
        (connect("struct", DEBEZIUM + "data.geometry.Point"), "point"),
        (connect("struct", DEBEZIUM + "data.geometry.Geography"), "geometry"),
        (connect("array", DEBEZIUM + "data.FloatVector"), "array<float>"),
        (connect("array", DEBEZIUM + "data.DoubleVector"), "array<double>"),
        (connect("int32", DEBEZIUM + "data.NewerThanUs"), "int"),
    ],
)
def test_every_connect_schema_has_a_meaning(schema: dict[str, Any], expected: str) -> None:
    """Section 2: the semantic name decides, then the Connect type."""
    assert logical_of(schema) == parse_type(expected)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (["a", "b_1", "1st"], "struct"),
        ([], "json"),
        (["a b"], "json"),
        (["a", "A"], "json"),
        (["7"], "json"),
        (["1e5"], "json"),
    ],
)
def test_a_struct_whose_names_no_table_format_can_keep_is_kept_as_its_text(fields: list[str], kind: str) -> None:
    """Within a column names are not encoded."""
    block = {"type": "struct", "fields": [{"type": "string", "field": name} for name in fields]}
    assert logical_of(block).name == kind


@pytest.mark.parametrize("default", [["a"], {"x": 1}])
def test_a_default_within_a_struct_may_be_a_list_or_an_object(default: object) -> None:
    """G1: what is built of types is kept by them, so a type that had no hash stopped its table."""
    member = {"type": "string", "field": "tags", "default": default}
    logical = logical_of({"type": "struct", "fields": [member]})
    assert hash(logical) == hash(logical_of({"type": "struct", "fields": [member]}))
    assert logical.fields[0].default == default


def test_the_rows_of_an_envelope_a_flat_record_and_a_key_are_found() -> None:
    """Section 2 and G1: field order, optionality and the schema's default are kept."""
    row = {
        "type": "struct",
        "fields": [
            {"type": "int32", "optional": False, "field": "id"},
            {"type": "int16", "optional": True, "default": 3, "field": "tier"},
        ],
    }
    envelope = {
        "type": "struct",
        "fields": [{**row, "field": "before"}, {**row, "field": "after"}, {"type": "string", "field": "op"}],
    }
    expected = (Field("id", LogicalType("int"), optional=False), Field("tier", LogicalType("smallint"), default=3))
    assert row_fields(envelope) == row_fields(row) == fields_of(row) == expected
    with pytest.raises(ConfigError, match="not a row"):
        fields_of({"type": "string"})


@pytest.mark.parametrize(
    ("stored", "incoming", "expected"),
    [
        ("INT", "int", "INT"),
        ("SMALLINT", "INT", "INT"),
        ("BIGINT", "SMALLINT", "BIGINT"),
        ("BIGINT", "DECIMAL(20,0)", "DECIMAL(20,0)"),
        ("BIGINT", "DECIMAL(18,0)", None),
        ("INT", "DECIMAL(12,2)", "DECIMAL(12,2)"),
        ("INT", "DECIMAL(10,2)", None),
        ("FLOAT", "DOUBLE", "DOUBLE"),
        ("INT", "DOUBLE", None),
        ("DECIMAL(10,2)", "DECIMAL(14,4)", "DECIMAL(14,4)"),
        ("decimal(14, 4)", "DECIMAL(10,2)", "DECIMAL(14,4)"),
        ("DECIMAL(10,2)", "DECIMAL(10,4)", None),
        ("DECIMAL(10,2)", "DECIMAL(38,30)", "DECIMAL(38,30)"),
        ("DECIMAL(10,2)", "DECIMAL(38,31)", None),
        ("STRING", "INT", None),
        ("TIMESTAMP_NTZ", "TIMESTAMP", None),
        ("DATE", "TIMESTAMP_NTZ", None),
        ("ARRAY<INT>", "ARRAY<INT>", "ARRAY<INT>"),
        ("ARRAY<INT>", "ARRAY<BIGINT>", None),
    ],
)
def test_types_widen_only_where_nothing_is_lost(stored: str, incoming: str, expected: str | None) -> None:
    """Section 8 and G3, in both directions: an older record may arrive late."""
    assert widen(stored, incoming) == expected
    assert widen(incoming, stored) == expected


NUMBERS = ("SMALLINT", "INT", "BIGINT", "DECIMAL(5,0)", "DECIMAL(10,2)", "DECIMAL(10,4)", "DECIMAL(20,0)")


def joined(one: str, other: str) -> str:
    """The type that holds both, which there is."""
    found = common_type(one, other)
    assert found is not None
    return found


def test_exact_numbers_meet_in_one_type_whatever_the_order() -> None:
    """Section 8, G2: a least upper bound, so that a table does not depend on what arrived first."""
    for kinds in itertools.permutations(NUMBERS, 3):
        assert len({reduce(joined, order) for order in itertools.permutations(kinds)}) == 1
    assert common_type("DECIMAL(10,2)", "DECIMAL(10,4)") == "DECIMAL(12,4)"
    assert common_type("INT", "DECIMAL(10,2)") == "DECIMAL(12,2)"
    assert common_type("DECIMAL(10,2)", "DECIMAL(38,31)") is None


@pytest.mark.parametrize(
    ("one", "other", "are_kin"),
    [
        ("SMALLINT", "DECIMAL(10,2)", True),
        ("FLOAT", "DOUBLE", True),
        ("INT", "DOUBLE", False),
        ("INT", "STRING", False),
        ("DATE", "TIMESTAMP_NTZ", False),
        ("ARRAY<INT>", "ARRAY<BIGINT>", False),
    ],
)
def test_types_of_different_families_never_meet(one: str, other: str, are_kin: bool) -> None:
    """A family does not depend on what else was seen; across families nothing is common."""
    assert (family_of_type(one) == family_of_type(other)) == are_kin
    assert (common_type(one, other) is not None) == are_kin


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recordings are not beside the repository")
def test_every_recorded_schema_block_is_understood() -> None:
    """Section 9.1: each schema block of the recordings, of rows, keys and control records, has a silver type."""
    blocks = {}
    for path in sorted(RECORDED.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                for text in (record["key"], record["payload"]):
                    if text and text.startswith('{"schema":{'):
                        block = json.loads(text)["schema"]
                        blocks[json.dumps(block, sort_keys=True)] = block
    assert len(blocks) > 20
    for block in blocks.values():
        for field in row_fields(block):
            assert spark_type(field.logical)


def test_what_is_lost_by_nature_is_told_by_column_and_setting() -> None:
    """Y6: whoever declares a type of nanoseconds, or has decimals come as doubles, is told what that costs."""
    columns = (Column("at", "nano_timestamp"), Column("id", "bigint"), Column("times", "array<nano_time>"))
    config = {"decimal.handling.mode": "double", "time.precision.mode": "adaptive"}
    connector = Connector("s", "postgresql", "s", "h", 5432, "dbz", "${env:P}", databases=("shop",), config=config)
    told = list(
        known_losses.describe(SourceSpec("s", ".*", tables=(Declaration("db.t", columns),), connector=connector))
    )
    assert told == [
        "s: decimal.handling.mode is double: decimals keep about 15 digits",
        "s/db.t.at is nano_timestamp: truncated to microseconds",
        "s/db.t.times is array<nano_time>: truncated to microseconds",
    ]
