"""Decoding values (types.md sections 2 to 5 and 7): one Spark job per table of cases.

Every value of a table is decoded by every type of that table, so that a poison value is also seen to raise nothing
where nobody expects it.
"""

# ruff: noqa: DTZ001 - wall-clock values have no zone
from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
import math
import random
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from replicator.debezium import decimals
from replicator.debezium.connect_schema import row_fields
from replicator.debezium.logical import Field, Logical, Modes, parse_logical, spark_type
from replicator.debezium.types import Policies, decode, wire_type
from replicator.errors import ConfigError

pytestmark = pytest.mark.spark

NULL = "null"
RECORDED = Path(__file__).resolve().parents[3] / "shared" / "recorded"


def decode_table(spark, cases, policies=None):
    """[(value, reason, note)] of (type, JSON text of the value) pairs, in their order."""
    logicals = {str(kind): kind for kind, _ in cases}
    names = {name: f"c{at}" for at, name in enumerate(logicals)}
    rows = spark.createDataFrame(
        [(at, '{"v":' + value + "}") for at, (_, value) in enumerate(cases)], "at int, j string"
    )
    columns = []
    for name, logical in logicals.items():
        wire = F.from_json("j", f"v {wire_type(logical)}")["v"]
        decoded = decode(logical, wire, F.from_json("j", "v string")["v"], policies or Policies())
        value = F.unix_micros(decoded.value) if spark_type(logical) == "TIMESTAMP" else decoded.value
        columns.append(
            F.struct(value.alias("value"), decoded.problem.alias("problem"), decoded.note.alias("note")).alias(
                names[name]
            )
        )
    found = {row["at"]: row for row in rows.select("at", *columns).collect()}
    return [tuple(found[at][names[str(kind)]]) for at, (kind, _) in enumerate(cases)]


def check(spark, table, policies=None):
    """Rows of ``table`` are (type, JSON, expected value or reason); a reason is a Problem."""
    cases = [(parse_logical(kind) if isinstance(kind, str) else kind, value) for kind, value, _ in table]
    wrong = []
    for (kind, value, expected), (got, reason, _) in zip(table, decode_table(spark, cases, policies), strict=True):
        outcome = Problem(reason) if reason else got
        if not same(outcome, expected):
            wrong.append(f"{kind} {value}: expected {expected!r}, got {outcome!r}")
    assert not wrong, "\n".join(wrong)


class Problem(str):
    """A reason of debezium.md R4 where a value was expected."""

    __slots__ = ()


def same(got, expected):
    if isinstance(expected, Problem) or isinstance(got, Problem):
        return type(got) is type(expected) and got == expected
    if isinstance(expected, float) and got is not None:
        return (math.isnan(got) and math.isnan(expected)) or (
            got == expected and math.copysign(1, got) == math.copysign(1, expected)
        )
    if isinstance(expected, Decimal):
        return isinstance(got, Decimal) and got == expected
    if isinstance(expected, tuple):
        return got == expected
    return got == expected and type(got) is type(expected)


MISMATCH = Problem("type_mismatch")
INT_OVERFLOW = Problem("integer_overflow")
BASE64 = Problem("invalid_base64")
DEC_OVERFLOW = Problem("decimal_overflow")
DEC_SCALE = Problem("decimal_scale")
RANGE = Problem("temporal_range")
NUL = Problem("nul_character")


def test_an_integer_fits_or_says_why_not(spark):
    """Section 5: out of range is integer_overflow, no integer at all type_mismatch; JSON null stays NULL."""
    check(
        spark,
        [
            ("smallint", "-32768", -32768),
            ("smallint", "32767", 32767),
            ("smallint", "40000", INT_OVERFLOW),
            ("smallint", "-40000", INT_OVERFLOW),
            ("int", "0", 0),
            ("int", "-2147483648", -2147483648),
            ("int", "2147483647", 2147483647),
            ("int", "3000000000", INT_OVERFLOW),
            ("int", '"abc"', MISMATCH),
            ("int", NULL, None),
            ("bigint", "9223372036854775807", 2**63 - 1),
            ("bigint", "-9223372036854775808", -(2**63)),
            ("bigint", "9223372036854775808", INT_OVERFLOW),
            ("bigint", "18446744073709551615", INT_OVERFLOW),
            ("bigint", "-9223372036854775809", INT_OVERFLOW),
            ("bigint", "1.0", MISMATCH),
            ("bigint", "1e3", MISMATCH),
            ("bigint", '"7"', MISMATCH),
            ("bigint", "true", MISMATCH),
            ("bigint", "[1]", MISMATCH),
            ("bigint", '{"a":1}', MISMATCH),
            ("bigint", '""', MISMATCH),
            ("bigint", "9" * 60, MISMATCH),
            ("year", "2003", 2003),
            ("micro_duration", "-9223372036854775808", -(2**63)),
            ("nano_duration", "37091106789000", 37091106789000),
        ],
    )


def test_a_wrapped_unsigned_bigint_gets_its_value_back(spark):
    """Section 5: declared unsigned, negative values are 2^64 too small."""
    check(
        spark,
        [
            ("bigint unsigned", "-9223372036854775808", Decimal(2**63)),
            ("bigint unsigned", "-1", Decimal(2**64 - 1)),
            ("bigint unsigned", "0", Decimal(0)),
            ("bigint unsigned", "9223372036854775807", Decimal(2**63 - 1)),
            ("bigint unsigned", "18446744073709551615", INT_OVERFLOW),
            ("int unsigned", "4294967295", 4294967295),
            ("smallint unsigned", "65535", 65535),
        ],
    )


def test_floats_keep_their_specials_and_refuse_what_is_too_large(spark):
    """Section 4: NaN, infinities and -0.0 are kept; a finite literal that becomes infinite is a type_mismatch."""
    check(
        spark,
        [
            ("double", "2.25", 2.25),
            ("double", "-0.0", -0.0),
            ("double", "3", 3.0),
            ("double", "1.7976931348623157e+308", 1.7976931348623157e308),
            ("double", "-1.7976931348623157e+308", -1.7976931348623157e308),
            ("double", '"NaN"', math.nan),
            ("double", "NaN", math.nan),
            ("double", '"Infinity"', math.inf),
            ("double", '"-Infinity"', -math.inf),
            ("double", "1e400", MISMATCH),
            ("double", "-1e400", MISMATCH),
            ("double", '"1.5"', MISMATCH),
            ("double", "true", MISMATCH),
            ("double", NULL, None),
            ("float", "1.5", 1.5),
            ("float", "3.4028235e+38", 3.4028234663852886e38),
            ("float", "1.2339999675750732", 1.2339999675750732),
            ("float", "1e39", MISMATCH),
            ("float", '"NaN"', math.nan),
            ("float", '"-Infinity"', -math.inf),
        ],
    )


def test_booleans_are_also_0_and_1(spark):
    """Section 2: a TINYINT(1) snapshot may send numbers."""
    check(
        spark,
        [
            ("boolean", "true", True),
            ("boolean", "false", False),
            ("boolean", "1", True),
            ("boolean", "0", False),
            ("boolean", "2", MISMATCH),
            ("boolean", "-1", MISMATCH),
            ("boolean", '"true"', MISMATCH),
            ("boolean", '"yes"', MISMATCH),
            ("boolean", NULL, None),
        ],
    )


def test_text_is_kept_as_it_is(spark):
    """Section 2: nothing is trimmed; U+0000 is a nul_character unless it may be replaced."""
    awkward = 'tab\tnl\nbs\\ 😀𝄞 quote " zero-width \u200b ctl \x01 NULL null'
    check(
        spark,
        [
            ("string", json.dumps(awkward), awkward),
            ("string", '""', ""),
            ("string", '"ab   "', "ab   "),
            ("string", '"null"', "null"),
            ("string", '"a\\u0000b"', NUL),
            ("string", NULL, None),
            ("json", json.dumps('{"b": 1, "a":1.50, "a":2}'), '{"b": 1, "a":1.50, "a":2}'),
            ("json", '"null"', "null"),
            ("uuid", '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"', "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
            ("xml", json.dumps('<r a="1"/>'), '<r a="1"/>'),
            ("enum", '"b,c"', "b,c"),
            ("interval", '"P1Y2M3DT4H5M6.789S"', "P1Y2M3DT4H5M6.789S"),
            ("zoned_time", '"04:41:12.345678Z"', "04:41:12.345678Z"),
            ("ltree", '"Top.Science"', "Top.Science"),
            ("enum_set", '"x,z z"', ["x", "z z"]),
            ("enum_set", '""', []),
            ("enum_set", NULL, None),
        ],
    )


def test_nul_may_be_replaced_and_is_counted(spark):
    """Section 4: policy nul = replace puts U+FFFD and notes it."""
    cases = [(parse_logical("string"), '"a\\u0000b"'), (parse_logical("map"), '{"k\\u0000":"\\u0000"}')]
    found = decode_table(spark, cases, Policies(nul="replace"))
    assert found == [("a\ufffdb", None, "nul"), ({"k\ufffd": "\ufffd"}, None, "nul")]


def test_bytes_in_every_binary_mode(spark):
    """Section 2: base64, its url-safe form and hex; junk is never dropped."""
    check(
        spark,
        [
            ("bytes", '"AP8Q"', bytearray(b"\x00\xff\x10")),
            ("bytes", '""', bytearray()),
            ("bytes", '"!!"', BASE64),
            ("bytes", '"_w=="', BASE64),
            ("bytes", "[1]", BASE64),
            ("bytes", NULL, None),
            ("bytes_base64url", '"_-8="', bytearray(b"\xff\xef")),
            ("bytes_hex", '"00ff10"', bytearray(b"\x00\xff\x10")),
            ("bytes_hex", '"abc"', MISMATCH),
            ("bytes_hex", '"zz"', MISMATCH),
            ("bytes_hex", '""', bytearray()),
        ],
    )


def test_bits_are_little_endian(spark):
    """Section 3: byte order is reversed, empty bytes are zero, too many bits are no number."""
    check(
        spark,
        [
            ("bits(63)", '"xwcAAAAAAAA="', 1991),
            ("bits(5)", '"FQ=="', 21),
            ("bits(5)", '""', 0),
            ("bits(5)", '"AA=="', 0),
            ("bits(5)", '"IA=="', INT_OVERFLOW),
            ("bits(10)", '"AQI="', 513),
            ("bits(63)", '"/////////38="', 2**63 - 1),
            ("bits(63)", '"//////////8="', INT_OVERFLOW),
            ("bits(63)", '"AAAAAAAAAAAB"', INT_OVERFLOW),
            ("bits(5)", '"!"', BASE64),
            ("bits(5)", NULL, None),
            ("bits(64)", '"xwcAAAAAAMA="', bytearray(bytes.fromhex("c7070000000000c0"))),
        ],
    )


def base64_of(number):
    size = max((number if number >= 0 else ~number).bit_length() // 8 + 1, 1)
    return '"' + base64.b64encode(number.to_bytes(size, "big", signed=True)).decode() + '"'


def test_base64_decimals_are_exact_or_a_reason(spark):
    """Y7, Y8 and the checks of section 3."""
    top = 10**38 - 1
    check(
        spark,
        [
            ("decimal(10,4)", '"EtaH"', Decimal("123.4567")),
            ("decimal(10,0)", '"AVo="', Decimal(346)),
            ("decimal(10,1)", '"FJqkSQ=="', Decimal("34567892.1")),
            ("decimal(10,2)", '"+g=="', Decimal("-0.06")),
            ("decimal(10,2)", '"IAsg"', Decimal("21000.00")),
            (Logical("decimal", 10, -2, encoding="base64"), '"Aw=="', Decimal(300)),
            (Logical("decimal", 3, -2, encoding="base64"), base64_of(999), Decimal(99900)),
            (Logical("decimal", 3, -2, encoding="base64"), base64_of(1000), DEC_OVERFLOW),
            (Logical("decimal", 3, 5, encoding="base64"), base64_of(-999), Decimal("-0.00999")),
            ("decimal(10,2)", '"AA=="', Decimal("0.00")),
            ("decimal(10,2)", base64_of(9999999999), Decimal("99999999.99")),
            ("decimal(10,2)", base64_of(-9999999999), Decimal("-99999999.99")),
            ("decimal(10,2)", base64_of(10000000000), DEC_OVERFLOW),
            ("decimal(10,2)", base64_of(-10000000000), DEC_OVERFLOW),
            ("decimal(38,0)", base64_of(top), Decimal(top)),
            ("decimal(38,0)", base64_of(-top), Decimal(-top)),
            ("decimal(38,0)", base64_of(top + 1), DEC_OVERFLOW),
            ("decimal(38,0)", base64_of(-top - 1), DEC_OVERFLOW),
            ("decimal(38,0)", base64_of(2**127), DEC_OVERFLOW),
            ("decimal(38,0)", base64_of(2**200), DEC_OVERFLOW),
            ("decimal(38,10)", base64_of(1), Decimal("1E-10")),
            ("decimal(18,18)", base64_of(-(10**18 - 1)), Decimal("-0.999999999999999999")),
            ("decimal(18,0)", base64_of(10**18 - 1), Decimal(10**18 - 1)),
            ("decimal(18,0)", base64_of(10**18), DEC_OVERFLOW),
            ("decimal(18,0)", base64_of(-(2**63)), DEC_OVERFLOW),
            ("decimal(19,2)", base64_of(-(10**19 - 1)), Decimal("-99999999999999999.99")),
            ("decimal(10,2)", '""', BASE64),
            ("decimal(10,2)", '"!!"', BASE64),
            ("decimal(10,2)", "1.5", BASE64),
            ("decimal(10,2)", NULL, None),
            ("decimal(65,30)", '"Eu7C6zhpr2TfYAAAAA=="', "1.500000000000000000000000000000"),
            ("decimal(65,30)", '"AA=="', "0.000000000000000000000000000000"),
            ("decimal(65,30)", base64_of(-(10**65 - 1)), "-" + "9" * 35 + "." + "9" * 30),
            (Logical("decimal", 60, -3, encoding="base64"), base64_of(-12), "-12000"),
        ],
    )


@pytest.mark.parametrize("seed", [7])
def test_random_integers_of_every_length_survive_base64(spark, seed):
    """Section 9.2: 1 to 39 digits and beyond; past 38 always a reason in a DECIMAL, exact in a STRING."""
    random.seed(seed)
    numbers = [sign * random.randrange(10 ** (n - 1), 10**n) for n in range(1, 80) for sign in (1, -1)]
    numbers += [sign * 2**n + d for n in range(0, 260, 7) for sign in (1, -1) for d in (-1, 0, 1)]
    numbers += [10**2000 + 7, -(10**2000)]
    rows = spark.createDataFrame([(str(n), json.loads(base64_of(n))) for n in numbers], "n string, b string")
    data = F.try_to_binary("b", F.lit("base64"))
    found = rows.select(
        "n", decimals.unscaled_text(data).alias("text"), decimals.unscaled(data).alias("exact")
    ).collect()
    for row in found:
        number = int(row["n"])
        assert row["text"] == row["n"]
        assert row["exact"] == (Decimal(number) if abs(number) < 10**38 else None)


def test_variable_scale_decimals_carry_their_own_scale(spark):
    """Section 2: exact text by default, or the declared DECIMAL if nothing is lost."""
    exact, kept = "variable_decimal", "variable_decimal(10,2)"

    def value(number, scale):
        return json.dumps({"scale": scale, "value": json.loads(base64_of(number))})

    check(
        spark,
        [
            (exact, '{"scale":5,"value":"BMsv"}', "3.14159"),
            (exact, value(-5, 3), "-0.005"),
            (exact, value(0, 0), "0"),
            (exact, value(0, 2), "0.00"),
            (exact, value(-12, -3), "-12000"),
            (exact, value(10**100, 0), "1" + "0" * 100),
            (exact, value(-(10**89 + 1), 30), "-1" + "0" * 59 + "." + "0" * 29 + "1"),
            (exact, value(1, 20000), DEC_OVERFLOW),
            (exact, value(12345 * 10**2046, 2046), "12345." + "0" * 2046),
            (exact, '{"scale":null,"value":"AQ=="}', MISMATCH),
            (exact, '{"scale":1,"value":"!"}', BASE64),
            (exact, '"1.5"', MISMATCH),
            (exact, NULL, None),
            (kept, value(150, 2), Decimal("1.50")),
            (kept, value(-15000, 4), Decimal("-1.50")),
            (kept, value(15001, 4), DEC_SCALE),
            (kept, value(3, -2), Decimal("300.00")),
            (kept, value(0, 12), Decimal("0.00")),
            (kept, value(10**8, 0), DEC_OVERFLOW),
            (kept, value(-(10**100), 100), Decimal("-1.00")),
            (kept, value(10**100, 0), DEC_OVERFLOW),
        ],
    )


def test_decimal_text_is_never_rounded(spark):
    """Mode string: Y10 holds, exponents are understood, special words follow the policy."""
    check(
        spark,
        [
            ("decimal_string(10,2)", '"1234.50"', Decimal("1234.50")),
            ("decimal_string(10,2)", '"-99999999.99"', Decimal("-99999999.99")),
            ("decimal_string(10,2)", '"123.4567"', DEC_SCALE),
            ("decimal_string(10,2)", '"123.450000"', Decimal("123.45")),
            ("decimal_string(10,2)", '"0.00"', Decimal("0.00")),
            ("decimal_string(10,2)", '"-0"', Decimal("0.00")),
            ("decimal_string(10,2)", '".5"', Decimal("0.50")),
            ("decimal_string(10,2)", '"1E+3"', Decimal("1000.00")),
            ("decimal_string(10,2)", '"15E-1"', Decimal("1.50")),
            ("decimal_string(10,2)", '"1E-3"', DEC_SCALE),
            ("decimal_string(10,2)", '"100000000"', DEC_OVERFLOW),
            ("decimal_string(10,2)", '"00000000000012.5"', Decimal("12.50")),
            ("decimal_string(10,2)", '"12a"', MISMATCH),
            ("decimal_string(10,2)", '""', MISMATCH),
            ("decimal_string(10,2)", '"."', MISMATCH),
            ("decimal_string(10,2)", '" 1"', MISMATCH),
            ("decimal_string(10,2)", '"NAN"', MISMATCH),
            ("decimal_string(10,2)", NULL, None),
            (
                "decimal_string(38,10)",
                '"-9999999999999999999999999999.9999999999"',
                Decimal("-" + "9" * 28 + "." + "9" * 10),
            ),
            ("decimal_string(60,20)", '"-1.50000000000000000000"', "-1.50000000000000000000"),
            ("variable_decimal_string", '"0.1000"', "0.1000"),
            ("variable_decimal_string", '"NAN"', "NaN"),
            ("variable_decimal_string", '"POSITIVE_INFINITY"', "Infinity"),
            ("variable_decimal_string", '"NEGATIVE_INFINITY"', "-Infinity"),
            ("variable_decimal_string", '"abc"', MISMATCH),
            ("variable_decimal_string(12,3)", '"0.1000"', Decimal("0.100")),
        ],
    )
    special = [(parse_logical("decimal_string(10,2)"), '"NAN"'), (parse_logical("decimal_string(10,2)"), '"junk"')]
    assert decode_table(spark, special, Policies(numeric_special="null")) == [
        (None, None, "numeric_special"),
        (None, "type_mismatch", None),
    ]


def test_json_numbers_reach_a_decimal_unrounded(spark):
    """Y1 and Y10: read as DECIMAL, with room to see digits that the column lacks."""
    number = "decimal_number(10,2)"
    check(
        spark,
        [
            (number, "1.50", Decimal("1.50")),
            (number, "-1.5", Decimal("-1.50")),
            (number, "1.505", DEC_SCALE),
            (number, "99999999.99", Decimal("99999999.99")),
            (number, "99999999.999", DEC_SCALE),
            (number, "100000000", DEC_OVERFLOW),
            (number, "1e60", DEC_OVERFLOW),
            (number, '"abc"', MISMATCH),
            (number, "true", MISMATCH),
            (number, NULL, None),
            (
                "decimal_number(36,3)",
                "123456789876543212345678987654321.110",
                Decimal("123456789876543212345678987654321.110"),
            ),
        ],
    )


def test_a_json_number_of_more_than_38_digits_is_refused_at_once():
    """No reader of Spark keeps such a number: the declaration is wrong, not the record."""
    with pytest.raises(ConfigError, match="38 digits"):
        wire_type(Logical("decimal", 60, 2, encoding="number"))


TEMPORAL = [
    ("date", "12058", dt.date(2003, 1, 6)),
    ("date", "-1", dt.date(1969, 12, 31)),
    ("date", "-141438", dt.date(1582, 10, 4)),
    ("date", "-719162", dt.date(1, 1, 1)),
    ("date", "2932896", dt.date(9999, 12, 31)),
    ("date", "-719163", RANGE),
    ("date", "2932897", RANGE),
    ("date", "2145042905", RANGE),
    ("date", "2146033979", dt.date(9999, 12, 31)),
    ("date", "-2147472691", dt.date(1, 1, 1)),
    ("date", "3000000000", INT_OVERFLOW),
    ("date", '"2003-01-06"', MISMATCH),
    ("date", "12058.0", MISMATCH),
    ("date", NULL, None),
    ("time", "36672345", 36672345000),
    ("time", "86400000", 86400000000),
    ("micro_time", "-3020399000000", -3020399000000),
    ("micro_time", "86400000000", 86400000000),
    ("nano_time", "36672345678901", 36672345678),
    ("nano_time", "-1", -1),
    ("timestamp", "1041847872345", dt.datetime(2003, 1, 6, 10, 11, 12, 345000)),
    ("timestamp", "-1", dt.datetime(1969, 12, 31, 23, 59, 59, 999000)),
    ("timestamp", "-62135596800000", dt.datetime(1, 1, 1)),
    ("timestamp", "253402300799999", dt.datetime(9999, 12, 31, 23, 59, 59, 999000)),
    ("timestamp", "-62135596800001", RANGE),
    ("timestamp", "253402300800000", RANGE),
    ("timestamp", "9223372036825200000", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("timestamp", "-9223372036832400000", dt.datetime(1, 1, 1)),
    ("timestamp", "9223372036854775807", RANGE),
    ("timestamp", "99999999999999999999", INT_OVERFLOW),
    ("timestamp", '"1041847872345"', MISMATCH),
    ("timestamp", NULL, None),
    ("micro_timestamp", "1041847872345678", dt.datetime(2003, 1, 6, 10, 11, 12, 345678)),
    ("micro_timestamp", "-1", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("micro_timestamp", "-14831769600000001", dt.datetime(1499, 12, 31, 23, 59, 59, 999999)),
    ("micro_timestamp", "-62135596800000000", dt.datetime(1, 1, 1)),
    ("micro_timestamp", "253402300799999999", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("micro_timestamp", "-62135596800000001", RANGE),
    ("micro_timestamp", "253402300800000000", RANGE),
    ("micro_timestamp", "9223372036854775807", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("micro_timestamp", "-9223372036854775808", dt.datetime(1, 1, 1)),
    ("micro_timestamp", "1049594400000000", dt.datetime(2003, 4, 6, 2, 0)),
    ("micro_timestamp", "1049596200000000", dt.datetime(2003, 4, 6, 2, 30)),
    ("nano_timestamp", "1041847872345678901", dt.datetime(2003, 1, 6, 10, 11, 12, 345678)),
    ("nano_timestamp", "-1", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("nano_timestamp", "-1000", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("nano_timestamp", "-9223372036854775807", dt.datetime(1677, 9, 21, 0, 12, 43, 145224)),
    ("nano_timestamp", "9223372036854775807", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("iso_date", '"2017-09-15Z"', dt.date(2017, 9, 15)),
    ("iso_date", '"2017-09-15"', dt.date(2017, 9, 15)),
    ("iso_date", '"1582-10-04Z"', dt.date(1582, 10, 4)),
    ("iso_date", '"0001-01-01Z"', dt.date(1, 1, 1)),
    ("iso_date", '"-4712-01-01Z"', RANGE),
    ("iso_date", '"+294276-12-31Z"', RANGE),
    ("iso_date", '"2017-02-30Z"', RANGE),
    ("iso_date", '"15.09.2017"', MISMATCH),
    ("iso_date", "17", MISMATCH),
    ("iso_time", '"10:11:12.345678Z"', "10:11:12.345678"),
    ("iso_time", '"00:00:00Z"', "00:00:00"),
    ("iso_time", '"soon"', MISMATCH),
    ("iso_timestamp", '"2003-04-06T02:30:00.5Z"', dt.datetime(2003, 4, 6, 2, 30, 0, 500000)),
    ("iso_timestamp", '"2003-01-06T10:11:12Z"', dt.datetime(2003, 1, 6, 10, 11, 12)),
    ("iso_timestamp", '"0001-01-01T00:00:00Z"', dt.datetime(1, 1, 1)),
    ("iso_timestamp", '"-4712-01-01T00:00:00Z"', RANGE),
    ("iso_timestamp", '"2003-01-06"', MISMATCH),
    ("structured_date", '{"year":1582,"month":10,"day":4,"specialValue":null}', dt.date(1582, 10, 4)),
    ("structured_date", '{"year":-4712,"month":1,"day":1,"specialValue":null}', RANGE),
    ("structured_date", '{"year":2003,"month":2,"day":30,"specialValue":null}', RANGE),
    ("structured_date", '{"year":null,"specialValue":"POSITIVE_INFINITY"}', dt.date(9999, 12, 31)),
    ("structured_date", '{"year":null,"specialValue":null}', MISMATCH),
    ("structured_date", '{"year":2003,"month":null,"day":1}', MISMATCH),
    ("structured_date", NULL, None),
    (
        "structured_timestamp",
        '{"year":1969,"month":12,"day":31,"hour":23,"minute":59,"second":59,"nanos":999999000,"specialValue":null}',
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    ),
    ("structured_timestamp", '{"year":null,"specialValue":"NEGATIVE_INFINITY"}', dt.datetime(1, 1, 1)),
    ("structured_time", '{"hour":10,"minute":11,"second":12,"nanos":345678000,"precision":6}', 36672345678),
    ("structured_time", '{"hour":10}', MISMATCH),
]


def instant(*parts):
    return (dt.datetime(*parts) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


INSTANTS = [
    ("zoned_timestamp", '"2003-01-06T08:11:12.345678Z"', instant(2003, 1, 6, 8, 11, 12, 345678)),
    ("zoned_timestamp", '"2003-01-06T08:11:12Z"', instant(2003, 1, 6, 8, 11, 12)),
    ("zoned_timestamp", '"2003-01-06T08:11:12.5+05:30"', instant(2003, 1, 6, 2, 41, 12, 500000)),
    ("zoned_timestamp", '"2003-01-06T08:11:12.123456789+02:00"', instant(2003, 1, 6, 6, 11, 12, 123456)),
    ("zoned_timestamp", '"2003-10-25T23:30:00.000000Z"', instant(2003, 10, 25, 23, 30)),
    ("zoned_timestamp", '"1969-12-31T23:59:59.999999Z"', -1),
    ("zoned_timestamp", '"0001-01-01T00:00:00Z"', instant(1, 1, 1)),
    ("zoned_timestamp", '"9999-12-31T23:59:59.999999Z"', instant(9999, 12, 31, 23, 59, 59, 999999)),
    ("zoned_timestamp", '"9999-12-31T23:59:59-05:00"', RANGE),
    ("zoned_timestamp", '"-4712-01-02T00:00:00.000000Z"', RANGE),
    ("zoned_timestamp", '"+294276-12-31T23:59:59.999999Z"', RANGE),
    ("zoned_timestamp", '"2003-02-30T00:00:00Z"', RANGE),
    ("zoned_timestamp", '"infinity"', instant(9999, 12, 31, 23, 59, 59, 999999)),
    ("zoned_timestamp", '"+294247-01-10T04:00:54.775Z"', instant(9999, 12, 31, 23, 59, 59, 999999)),
    ("zoned_timestamp", '"-infinity"', instant(1, 1, 1)),
    ("zoned_timestamp", '"2003-01-06T08:11:12"', MISMATCH),
    ("zoned_timestamp", '"now"', MISMATCH),
    ("zoned_timestamp", "1041847872345", MISMATCH),
    ("zoned_timestamp", NULL, None),
]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_no_date_or_time_depends_on_the_session_zone(spark, zone):
    """Y5 and section 9.3: the same values in every zone, and every end, infinity and misfit of section 4."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        check(spark, TEMPORAL + INSTANTS)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_infinity_follows_its_policy(spark):
    """Section 4: the sentinel is counted; null is NULL on purpose and counted; dead_letter is temporal_range."""
    cases = [
        (parse_logical("date"), "2146033979"),
        (parse_logical("micro_timestamp"), "-9223372036854775808"),
        (parse_logical("zoned_timestamp"), '"infinity"'),
        (parse_logical("date"), "12058"),
    ]
    assert [(p, n) for _, p, n in decode_table(spark, cases)] == [(None, "infinity")] * 3 + [(None, None)]
    as_null = decode_table(spark, cases, Policies(infinity="null"))
    assert as_null == [(None, None, "infinity")] * 3 + [(dt.date(2003, 1, 6), None, None)]
    refused = decode_table(spark, cases[:2], Policies(infinity="dead_letter"))
    assert refused == [(None, "temporal_range", None)] * 2


def test_arrays_keep_nulls_and_report_a_bad_element(spark):
    """Section 2: per element; a bad element is the column's problem, and the array is not NULLed silently."""
    check(
        spark,
        [
            ("array<int>", "[1,null,3]", [1, None, 3]),
            ("array<int>", "[]", []),
            ("array<int>", "[null,null]", [None, None]),
            ("array<int>", "[1,3000000000]", INT_OVERFLOW),
            ("array<int>", '[1,"x"]', MISMATCH),
            ("array<int>", '"[1]"', MISMATCH),
            ("array<int>", '"[]"', MISMATCH),
            ("array<int>", '{"a":1}', MISMATCH),
            ("array<int>", "7", MISMATCH),
            ("array<int>", NULL, None),
            ("text[]", '["a",null,"NULL","","c,d","q\\""]', ["a", None, "NULL", "", "c,d", 'q"']),
            ("text[]", '["a\\u0000"]', NUL),
            ("array<decimal(10,2)>", '["AJY=",null,"/x8="]', [Decimal("1.50"), None, Decimal("-2.25")]),
            ("array<decimal(10,2)>", '["AJY=","!"]', BASE64),
            ("array<date>", "[12058,-171664]", [dt.date(2003, 1, 6), dt.date(1500, 1, 1)]),
            ("array<date>", "[12058,2932897]", RANGE),
            ("array<variable_decimal>", '[{"scale":1,"value":"Dw=="},null]', ["1.5", None]),
            ("array<bytes>", '["AP8="]', [bytearray(b"\x00\xff")]),
            ("array<boolean>", "[true,false,null]", [True, False, None]),
            ("array<double>", "[0.5,-2]", [0.5, -2.0]),
            ("array<array<int>>", "[[1,2],[3]]", "[[1,2],[3]]"),
            ("array<array<int>>", "7", MISMATCH),
            ("map", '{"a":"1","b":null,"q\\"k":"v"}', {"a": "1", "b": None, 'q"k': "v"}),
            ("map", "{}", {}),
            ("map", '"x"', MISMATCH),
            ("map", '{"a":"\\u0000"}', NUL),
            ("map", NULL, None),
        ],
    )


def test_structs_are_checked_field_by_field(spark):
    """Section 2: points, geometries, sparse vectors and plain Connect structs."""
    inner = Logical("struct", fields=(Field("a.b", Logical("int")), Field("when", Logical("date"))))
    wkb = "AQEAAAAAAAAAAAD4PwAAAAAAAADA"
    check(
        spark,
        [
            (
                "point",
                f'{{"x":1.5,"y":-2.0,"wkb":"{wkb}","srid":null}}',
                (1.5, -2.0, bytearray(base64.b64decode(wkb)), None),
            ),
            ("point", f'{{"x":1.5,"y":"abc","wkb":"{wkb}"}}', MISMATCH),
            ("point", f'{{"y":1,"wkb":"{wkb}"}}', MISMATCH),
            ("point", '{"x":1,"y":1,"wkb":"!"}', BASE64),
            ("point", '"(1,2)"', MISMATCH),
            ("point", NULL, None),
            ("geometry", '{"wkb":"AP8=","srid":4326,"extensions":{}}', (bytearray(b"\x00\xff"), 4326)),
            ("sparse_vector", '{"dimensions":5,"vector":[[1,0.5],[3,-2]]}', (5, [(1, 0.5), (3, -2.0)])),
            ("sparse_vector", '{"dimensions":5,"vector":[]}', (5, [])),
            ("sparse_vector", '{"dimensions":5,"vector":[[1]]}', MISMATCH),
            ("sparse_vector", '{"vector":[]}', MISMATCH),
            (inner, '{"a.b":7,"when":12058}', (7, dt.date(2003, 1, 6))),
            (inner, '{"a.b":null}', (None, None)),
            (inner, '{"a.b":3000000000}', INT_OVERFLOW),
            (inner, NULL, None),
        ],
    )


def test_a_declared_mode_decides_how_decimals_and_bytes_are_read():
    """Y13: the connector's modes are declared per source."""
    modes = Modes(decimals="string", binary="hex")
    assert wire_type(parse_logical("decimal(10,2)", modes)) == "STRING"
    assert parse_logical("decimal(10,2)", modes) == parse_logical("decimal_string(10,2)")
    assert parse_logical("bytea", modes) == parse_logical("bytes_hex")
    assert spark_type(parse_logical("decimal(10,2)", Modes(decimals="double"))) == "DOUBLE"


def test_an_unknown_logical_type_is_refused_before_any_value_is_read():
    """A family without a decoder never gives wrong values."""
    with pytest.raises(ConfigError, match="cannot be decoded"):
        wire_type(Logical("nonsense"))


def recorded_rows(name, table):
    """[(schema block, rows)] of one table of a recording: each row goes with its own schema (debezium.md G2)."""
    blocks, rows = {}, {}
    with gzip.open(RECORDED / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            value = json.loads(record["payload"]) if record["payload"] and record["topic"].endswith(table) else None
            if value and value["payload"]["after"]:
                form = json.dumps(value["schema"], sort_keys=True)
                blocks[form] = value["schema"]
                rows.setdefault(form, []).append(json.dumps(value["payload"]["after"]))
    return [(blocks[form], rows[form]) for form in blocks]


def decode_rows(spark, fields, rows):
    """One row per JSON row: ``j`` and per field whether its value is NULL and its problem."""
    wire = ", ".join(f"`{field.name}` {wire_type(field.logical)}" for field in fields)
    texts = ", ".join(f"`{field.name}` STRING" for field in fields)
    parsed = spark.createDataFrame([(row,) for row in rows], "j string").select(
        "j", F.from_json("j", wire).alias("w"), F.from_json("j", texts).alias("t")
    )
    columns = []
    for field in fields:
        decoded = decode(field.logical, F.col("w")[field.name], F.col("t")[field.name])
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
def test_recorded_rows_decode_without_a_silent_null(spark, name, table, refused):
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
