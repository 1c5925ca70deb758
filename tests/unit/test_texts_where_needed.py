"""A value's text is read only where its type shows none, and what becomes of the value is the same."""

from __future__ import annotations

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from replicator.debezium import field_text, types
from replicator.debezium.logical_types import LogicalType
from replicator.debezium.type_parser import parse_type
from tests.builders import made

KINDS = (
    "smallint", "int", "bigint", "bigint unsigned", "float", "double", "boolean", "varchar(9)", "date", "time",
    "timestamp(6)", "decimal_string(5,2)", "decimal_number(5,2)", "decimal_base64(5,2)", "array<int>", "point",
)  # fmt: skip
VALUES = (
    "null", "1", "-5", "0", "70000", "99999999999", "9223372036854775807", "1e400", "1.5", "1.234", '"1"', '""', '"x"',
    '"Infinity"', '"NaN"', '"AQ=="', "true", '"true"', "[1,null]", '[1,"x"]', '{"x":1.0,"y":2.0,"srid":null}',
    "3000000", "-719163", '"2024-01-01"',
)  # fmt: skip


def _both(logical: LogicalType) -> tuple[Column, Column]:
    """What becomes of ``value`` with its text and without it where none is lacking."""
    wire = F.from_json("value", f"STRUCT<c: {types.wire_type(logical)}>")["c"]
    text = F.from_json("value", "STRUCT<c: STRING>")["c"]
    lazily = field_text.text_of(logical, wire, F.when(field_text.needs_text(logical, wire), text))
    told = [types.decode(logical, wire, each) for each in (text, lazily)]
    always, seldom = (F.struct(each.value.cast("string").alias("v"), each.problem.alias("p")) for each in told)
    return always, seldom


@pytest.mark.spark
def test_a_value_is_the_same_without_a_text_that_it_does_not_lack(exact: SparkSession) -> None:
    """Numbers, words and what has parts, fitting or not: value and problem do not change (decision 0046)."""
    rows = made(exact, [(f'{{"c":{value}}}',) for value in VALUES], "value STRING")
    pairs = {kind: _both(parse_type(kind)) for kind in KINDS}
    cells = [
        F.struct(always.alias("always"), seldom.alias("seldom")).alias(kind) for kind, (always, seldom) in pairs.items()
    ]
    for row in rows.select("value", *cells).collect():
        for kind in KINDS:
            assert row[kind]["seldom"] == row[kind]["always"], (kind, row["value"])
    lacking = [field_text.needs_text(parse_type("int"), F.from_json("value", "STRUCT<c: INT>")["c"]).alias("lacks")]
    assert [row["lacks"] for row in rows.select(*lacking).collect()][:3] == [True, False, False]
