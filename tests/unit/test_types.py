"""Decoding values (types.md sections 2 to 5 and 7): one Spark job per table of cases.

Every value of a table is decoded by every type of that table, so that a poison value is also seen to raise nothing
where nobody expects it. The values are in ``tests/type_vectors.py``.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import math
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F

from replicator.debezium import field_text, integers, problem_precheck, quoting
from replicator.debezium.connect_schema import row_fields
from replicator.debezium.handling_modes import HandlingModes
from replicator.debezium.logical_types import Field, LogicalType, spark_type
from replicator.debezium.type_parser import parse_type
from replicator.debezium.types import Policies, decode, wire_type
from replicator.errors import ConfigError
from tests.builders import made
from tests.type_vectors import (
    ARRAYS,
    BITS,
    BOOLEANS,
    BYTES,
    CONNECT_DECIMALS,
    DECIMAL_NUMBERS,
    DECIMAL_TEXTS,
    DECIMALS,
    FLOATS,
    INSTANTS,
    INTEGERS,
    STRUCTS,
    TEMPORAL,
    TEXTS,
    UNSIGNED,
    VARIABLE_DECIMALS,
    Problem,
    base64_of,
)

pytestmark = pytest.mark.spark

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "recorded"


def decode_table(
    spark: SparkSession, cases: Sequence[tuple[LogicalType, str]], policies: Policies | None = None
) -> list[tuple[Any, ...]]:
    """[(value, reason)] of (type, JSON text of the value) pairs, in their order.

    By the policies of silver a value is in doubt where it has a reason, whatever its type is taken for, and nowhere
    else.
    """
    logicals = {str(kind): kind for kind, _ in cases}
    names = {name: f"c{at}" for at, name in enumerate(logicals)}
    rows = made(spark, [(at, '{"v":' + value + "}") for at, (_, value) in enumerate(cases)], "at int, j string")
    columns = []
    for name, logical in logicals.items():
        wire = F.from_json("j", f"v {wire_type(logical)}")["v"]
        text = F.from_json("j", "v string")["v"]
        decoded = decode(logical, wire, text, policies or Policies(), bare_of(logical, wire, "j", "v"))
        value = F.unix_micros(decoded.value) if spark_type(logical) == "TIMESTAMP" else decoded.value
        was_sent = field_text.was_sent(logical, wire, F.when(field_text.needs_text(logical, wire), text))
        sign = problem_precheck.marker(logical, was_sent, decoded.problem)
        parts = {
            "value": value,
            "problem": decoded.problem,
            "doubt": problem_precheck.may_have_problem(logical, decoded.value, F.lit(False) if sign is None else sign),
        }
        columns.append(F.struct(*[part.alias(part_name) for part_name, part in parts.items()]).alias(names[name]))
    found = {row["at"]: row for row in rows.select("at", *columns).collect()}
    if policies is None:
        told = [(cases[at], name, row[name]) for at, row in found.items() for name in names.values()]
        assert not [each for each in told if bool(each[2]["doubt"]) != (each[2]["problem"] is not None)]
    return [tuple(found[at][names[str(kind)]])[:2] for at, (kind, _) in enumerate(cases)]


def bare_of(logical: LogicalType, wire: Column, json: str, name: str) -> dict[str, Column]:
    """What must be quoted, read once more where it looks as if it were not."""
    asked = quoting.probe_types(logical) if quoting.is_required(logical) else {}
    return {
        reading: F.when(quoting.is_worth_probing(reading, wire), F.from_json(json, f"`{name}` {kind}")[name])
        for reading, kind in asked.items()
    }


def check(spark: SparkSession, table: Sequence[tuple[Any, str, Any]], policies: Policies | None = None) -> None:
    """Rows of ``table`` are (type, JSON, expected value or reason); a reason is a Problem."""
    cases = [(parse_type(kind) if isinstance(kind, str) else kind, value) for kind, value, _ in table]
    wrong = []
    for (kind, value, expected), (got, reason) in zip(table, decode_table(spark, cases, policies), strict=True):
        outcome = Problem(reason) if reason else got
        if not same(outcome, expected):
            wrong.append(f"{kind} {value}: expected {expected!r}, got {outcome!r}")
    assert not wrong, "\n".join(wrong)


def same(got: Any, expected: Any) -> bool:
    if isinstance(expected, Problem) or isinstance(got, Problem):
        return type(got) is type(expected) and got == expected
    if isinstance(expected, float) and got is not None:
        return (math.isnan(got) and math.isnan(expected)) or (
            got == expected and math.copysign(1, got) == math.copysign(1, expected)
        )
    if isinstance(expected, Decimal):
        return isinstance(got, Decimal) and got == expected
    if isinstance(expected, tuple):
        return got == expected  # type: ignore[no-any-return]
    return got == expected and type(got) is type(expected)


def test_an_integer_fits_or_says_why_not(spark: SparkSession) -> None:
    """Section 5: out of range is integer_overflow, no integer at all type_mismatch; JSON null stays NULL."""
    check(spark, INTEGERS)


def test_a_wrapped_unsigned_bigint_gets_its_value_back(spark: SparkSession) -> None:
    """Section 5: declared unsigned, negative values are 2^64 too small."""
    check(spark, UNSIGNED)


def test_floats_keep_their_specials_and_refuse_what_is_too_large(spark: SparkSession) -> None:
    """Section 4: NaN, infinities and -0.0 are kept; a finite literal that becomes infinite is a type_mismatch."""
    check(spark, FLOATS)


def test_booleans_are_also_0_and_1(spark: SparkSession) -> None:
    """Section 2: a TINYINT(1) snapshot may send numbers."""
    check(spark, BOOLEANS)


def test_text_is_kept_as_it_is(spark: SparkSession) -> None:
    """Section 2: nothing is trimmed; U+0000 is a nul_character unless it may be replaced."""
    check(spark, TEXTS)


def test_nul_may_be_replaced(spark: SparkSession) -> None:
    """Section 4: policy nul = replace puts U+FFFD."""
    cases = [(parse_type("string"), '"a\\u0000b"'), (parse_type("map"), '{"k\\u0000":"\\u0000"}')]
    found = decode_table(spark, cases, Policies(nul="replace"))
    assert found == [("a\ufffdb", None), ({"k\ufffd": "\ufffd"}, None)]


def test_bytes_in_every_binary_mode(spark: SparkSession) -> None:
    """Section 2: base64, its url-safe form and hex; junk is never dropped, and a bare number or word is no base64."""
    check(spark, BYTES)


def test_bits_are_little_endian(spark: SparkSession) -> None:
    """Section 3: byte order is reversed, empty bytes are zero, too many bits are no number."""
    check(spark, BITS)


def test_base64_decimals_are_exact_or_a_reason(spark: SparkSession) -> None:
    """Y7, Y8 and the checks of section 3."""
    check(spark, DECIMALS)


def test_a_decimal_of_a_schema_block_is_base64_or_the_very_number(spark: SparkSession) -> None:
    """Y10 and Y13: a block does not tell the converter's format, so quotes do; a number passes through no double."""
    check(spark, CONNECT_DECIMALS)


@pytest.mark.parametrize("seed", [7])
def test_random_integers_of_every_length_survive_base64(spark: SparkSession, seed: int) -> None:
    """Section 9.2: 1 to 39 digits and beyond; past 38 always a reason in a DECIMAL, exact in a STRING."""
    random.seed(seed)
    numbers = [sign * random.randrange(10 ** (n - 1), 10**n) for n in range(1, 80) for sign in (1, -1)]
    numbers += [sign * 2**n + d for n in range(0, 260, 7) for sign in (1, -1) for d in (-1, 0, 1)]
    numbers += [10**2000 + 7, -(10**2000)]
    rows = made(spark, [(str(n), json.loads(base64_of(n))) for n in numbers], "n string, b string")
    data = F.try_to_binary("b", F.lit("base64"))
    found = rows.select(
        "n", integers.unscaled_text(data).alias("text"), integers.unscaled(data).alias("exact")
    ).collect()
    for row in found:
        number = int(row["n"])
        assert row["text"] == row["n"]
        assert row["exact"] == (Decimal(number) if abs(number) < 10**38 else None)


def test_variable_scale_decimals_carry_their_own_scale(spark: SparkSession) -> None:
    """Section 2: exact text by default, or the declared DECIMAL if nothing is lost."""
    check(spark, VARIABLE_DECIMALS)


def test_decimal_text_is_never_rounded(spark: SparkSession) -> None:
    """Mode string: Y10 holds, exponents are understood, special words follow the policy."""
    check(spark, DECIMAL_TEXTS)
    special = [(parse_type("decimal_string(10,2)"), '"NAN"'), (parse_type("decimal_string(10,2)"), '"junk"')]
    assert decode_table(spark, special, Policies(numeric_special="null")) == [
        (None, None),
        (None, "type_mismatch"),
    ]


def test_json_numbers_reach_a_decimal_unrounded(spark: SparkSession) -> None:
    """Y1 and Y10: read as DECIMAL, with room to see digits that the column lacks."""
    check(spark, DECIMAL_NUMBERS)


def test_a_json_number_of_more_than_38_digits_is_refused_at_once() -> None:
    """No reader of Spark keeps such a number: the declaration is wrong, not the record."""
    with pytest.raises(ConfigError, match="38 digits"):
        wire_type(LogicalType("decimal", 60, 2, encoding="number"))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_no_date_or_time_depends_on_the_session_zone(spark: SparkSession, zone: str) -> None:
    """Y5 and section 9.3: the same values in every zone, and every end, infinity and misfit of section 4."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        check(spark, TEMPORAL + INSTANTS)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)  # type: ignore[arg-type] # it has one


def test_infinity_follows_its_policy(spark: SparkSession) -> None:
    """Section 4: the sentinel has no reason, null is NULL on purpose, dead_letter is temporal_range."""
    cases = [
        (parse_type("date"), "2146033979"),
        (parse_type("micro_timestamp"), "-9223372036854775808"),
        (parse_type("zoned_timestamp"), '"infinity"'),
        (parse_type("date"), "12058"),
    ]
    assert [problem for _, problem in decode_table(spark, cases)] == [None] * 4
    as_null = decode_table(spark, cases, Policies(infinity="null"))
    assert as_null == [(None, None)] * 3 + [(dt.date(2003, 1, 6), None)]
    refused = decode_table(spark, cases[:2], Policies(infinity="dead_letter"))
    assert refused == [(None, "temporal_range")] * 2


def test_arrays_keep_nulls_and_report_a_bad_element(spark: SparkSession) -> None:
    """Section 2: per element; a bad element is the column's problem, and the array is not NULLed silently."""
    check(spark, ARRAYS)


def test_structs_are_checked_field_by_field(spark: SparkSession) -> None:
    """Section 2: points, geometries, sparse vectors and plain Connect structs."""
    check(spark, STRUCTS)


def test_a_declared_mode_decides_how_decimals_and_bytes_are_read() -> None:
    """Y13: the connector's modes are declared per source."""
    modes = HandlingModes(decimals="string", binary="hex")
    assert wire_type(parse_type("decimal(10,2)", modes)) == "STRING"
    assert parse_type("decimal(10,2)", modes) == parse_type("decimal_string(10,2)")
    assert parse_type("bytea", modes) == parse_type("bytes_hex")
    assert spark_type(parse_type("decimal(10,2)", HandlingModes(decimals="double"))) == "DOUBLE"


def test_an_unknown_logical_type_is_refused_before_any_value_is_read() -> None:
    """A family without a decoder never gives wrong values."""
    with pytest.raises(ConfigError, match="cannot be decoded"):
        wire_type(LogicalType("nonsense"))


def recorded_rows(name: str, table: str) -> list[tuple[Any, list[str]]]:
    """[(schema block, rows)] of one table of a recording: each row goes with its own schema (debezium.md G2)."""
    blocks: dict[str, Any] = {}
    rows: dict[str, list[str]] = {}
    with gzip.open(RECORDED / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            value = json.loads(record["payload"]) if record["payload"] and record["topic"].endswith(table) else None
            if value and value["payload"]["after"]:
                form = json.dumps(value["schema"], sort_keys=True)
                blocks[form] = value["schema"]
                rows.setdefault(form, []).append(json.dumps(value["payload"]["after"]))
    return [(blocks[form], rows[form]) for form in blocks]


def decode_rows(spark: SparkSession, fields: Sequence[Field], rows: Sequence[str]) -> list[Row]:
    """One row per JSON row: ``j`` and per field whether its value is NULL and its problem."""
    wire = ", ".join(f"`{field.name}` {wire_type(field.logical)}" for field in fields)
    texts = ", ".join(f"`{field.name}` STRING" for field in fields)
    parsed = made(spark, [(row,) for row in rows], "j string").select(
        "j", F.from_json("j", wire).alias("w"), F.from_json("j", texts).alias("t")
    )
    columns = []
    for field in fields:
        on_wire = F.col("w")[field.name]
        bare = bare_of(field.logical, on_wire, "j", field.name)
        decoded = decode(field.logical, on_wire, F.col("t")[field.name], bare=bare)
        outcome = F.struct(decoded.value.isNull().alias("empty"), decoded.problem.alias("problem"))
        columns.append(outcome.alias(field.name))
    return parsed.select("j", F.struct(*columns).alias("d")).collect()


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recordings are not beside the repository")
@pytest.mark.parametrize(
    ("name", "table", "refused"),
    [
        ("classicmodels.labschema", "classicmodels.products", set()),
        ("classicmodels.labschema", "classicmodels.customers", set()),
        # a MEDIUMTEXT with U+0000
        ("types_maria.mtconnect", "typelab.types", {"nul_character"}),
        # years before 1 and after 9999
        ("hostile_pg.pgconnect", "h.types", {"temporal_range"}),
    ],
)
def test_recorded_rows_decode_without_a_silent_null(
    spark: SparkSession, name: str, table: str, refused: set[str]
) -> None:
    """Section 9.1 and 9.4: of every value that was sent there is a value, or a reason that the source explains."""
    reasons = set()
    for block, rows in recorded_rows(name, table):
        fields = row_fields(block)
        for row in decode_rows(spark, fields, rows):
            sent = json.loads(row["j"])
            for field in fields:
                empty, problem = row["d"][field.name]
                assert problem is None or sent.get(field.name) is not None, field.name
                assert problem is not None or empty == (sent.get(field.name) is None), field.name
                reasons |= {problem} if problem else set()
    assert reasons == refused
