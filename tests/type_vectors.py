"""What values of every type look like and what silver makes of them: (declared type, JSON text, value or reason).

``tests/unit/test_types.py`` decodes them all, ``tests/type_matrix.py`` prints them as docs/types.md.
"""

# ruff: noqa: DTZ001 - wall-clock values have no zone
from __future__ import annotations

import base64
import datetime as dt
import json
import math
from decimal import Decimal

from replicator.debezium.logical_types import Field, LogicalType

NULL = "null"


class Problem(str):
    """A reason of debezium.md R4 where a value was expected."""

    __slots__ = ()


MISMATCH = Problem("type_mismatch")
INT_OVERFLOW = Problem("integer_overflow")
BASE64 = Problem("invalid_base64")
DEC_OVERFLOW = Problem("decimal_overflow")
DEC_SCALE = Problem("decimal_scale")
RANGE = Problem("temporal_range")
NUL = Problem("nul_character")


def base64_of(number: int) -> str:
    size = max((number if number >= 0 else ~number).bit_length() // 8 + 1, 1)
    return '"' + base64.b64encode(number.to_bytes(size, "big", signed=True)).decode() + '"'


INTEGERS = [
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
]

UNSIGNED = [
    ("bigint unsigned", "-9223372036854775808", Decimal(2**63)),
    ("bigint unsigned", "-1", Decimal(2**64 - 1)),
    ("bigint unsigned", "0", Decimal(0)),
    ("bigint unsigned", "9223372036854775807", Decimal(2**63 - 1)),
    ("bigint unsigned", "18446744073709551615", INT_OVERFLOW),
    ("int unsigned", "4294967295", 4294967295),
    ("smallint unsigned", "65535", 65535),
]

FLOATS = [
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
]

BOOLEANS = [
    ("boolean", "true", True),
    ("boolean", "false", False),
    ("boolean", "1", True),
    ("boolean", "0", False),
    ("boolean", "2", MISMATCH),
    ("boolean", "-1", MISMATCH),
    ("boolean", '"true"', MISMATCH),
    ("boolean", '"yes"', MISMATCH),
    ("boolean", NULL, None),
]

_AWKWARD = 'tab\tnl\nbs\\ 😀𝄞 quote " zero-width \u200b ctl \x01 NULL null'

TEXTS = [
    ("string", json.dumps(_AWKWARD), _AWKWARD),
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
    ("tsvector", "\"'cat':3 'fat':2\"", "'cat':3 'fat':2"),
    ("string", '"[1,10)"', "[1,10)"),
    ("string", '"192.168.0.0/24"', "192.168.0.0/24"),
    ("json", json.dumps('{"a": "1", "b": null}'), '{"a": "1", "b": null}'),
    ("enum", '"b\\\\,c"', "b,c"),
    ("enum_set", '"x,z z"', ["x", "z z"]),
    ("enum_set", '""', []),
    ("enum_set", NULL, None),
]

BYTES = [
    ("bytes", '"AP8Q"', bytearray(b"\x00\xff\x10")),
    ("bytes", '""', bytearray()),
    ("bytes", '"!!"', BASE64),
    ("bytes", '"_w=="', BASE64),
    ("bytes", "[1]", BASE64),
    ("bytes", "1234", MISMATCH),
    ("bytes", '"1234"', bytearray(bytes.fromhex("d76df8"))),
    ("bytes", "12345678901234567890", MISMATCH),
    ("bytes", "true", MISMATCH),
    ("bytes", "false", MISMATCH),
    ("bytes", '"true"', bytearray(bytes.fromhex("b6bb9e"))),
    ("bytes", NULL, None),
    ("bytes_base64", '"AP8Q"', bytearray(b"\x00\xff\x10")),
    ("bytes_base64", '"_w=="', BASE64),
    ("bytes_base64url", '"_-8="', bytearray(b"\xff\xef")),
    ("bytes_base64url", "-123", MISMATCH),
    ("bytes_base64url", '"-123"', bytearray(bytes.fromhex("fb5db7"))),
    ("bytes_hex", '"00ff10"', bytearray(b"\x00\xff\x10")),
    ("bytes_hex", '"abc"', MISMATCH),
    ("bytes_hex", '"zz"', MISMATCH),
    ("bytes_hex", '""', bytearray()),
    ("bytes_hex", "1234", MISMATCH),
    ("bytes_hex", '"1234"', bytearray(b"\x12\x34")),
    ("bytes_hex", "true", MISMATCH),
]

BITS = [
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
    ("bits(31)", "1234", MISMATCH),
    ("bits(31)", '"1234"', 0xF86DD7),
    ("bits(5)", NULL, None),
    ("bits(64)", '"xwcAAAAAAMA="', bytearray(bytes.fromhex("c7070000000000c0"))),
]

_TOP = 10**38 - 1

DECIMALS = [
    ("decimal(10,4)", '"EtaH"', Decimal("123.4567")),
    ("decimal(10,0)", '"AVo="', Decimal(346)),
    ("decimal(10,1)", '"FJqkSQ=="', Decimal("34567892.1")),
    ("decimal(10,2)", '"+g=="', Decimal("-0.06")),
    ("decimal(10,2)", '"IAsg"', Decimal("21000.00")),
    (LogicalType("decimal", 10, -2, encoding="base64"), '"Aw=="', Decimal(300)),
    (LogicalType("decimal", 3, -2, encoding="base64"), base64_of(999), Decimal(99900)),
    (LogicalType("decimal", 3, -2, encoding="base64"), base64_of(1000), DEC_OVERFLOW),
    (LogicalType("decimal", 3, 5, encoding="base64"), base64_of(-999), Decimal("-0.00999")),
    ("decimal(10,2)", '"AA=="', Decimal("0.00")),
    ("decimal(10,2)", base64_of(9999999999), Decimal("99999999.99")),
    ("decimal(10,2)", base64_of(-9999999999), Decimal("-99999999.99")),
    ("decimal(10,2)", base64_of(10000000000), DEC_OVERFLOW),
    ("decimal(10,2)", base64_of(-10000000000), DEC_OVERFLOW),
    ("decimal(38,0)", base64_of(_TOP), Decimal(_TOP)),
    ("decimal(38,0)", base64_of(-_TOP), Decimal(-_TOP)),
    ("decimal(38,0)", base64_of(_TOP + 1), DEC_OVERFLOW),
    ("decimal(38,0)", base64_of(-_TOP - 1), DEC_OVERFLOW),
    ("decimal(38,0)", base64_of(2**127), DEC_OVERFLOW),
    ("decimal(38,0)", base64_of(2**200), DEC_OVERFLOW),
    ("decimal(38,10)", base64_of(1), Decimal("1E-10")),
    ("decimal(18,18)", base64_of(-(10**18 - 1)), Decimal("-0.999999999999999999")),
    ("decimal(18,0)", base64_of(10**18 - 1), Decimal(10**18 - 1)),
    ("decimal(18,0)", base64_of(10**18), DEC_OVERFLOW),
    ("decimal(18,0)", base64_of(-(2**63)), DEC_OVERFLOW),
    ("decimal(19,2)", base64_of(-(10**19 - 1)), Decimal("-99999999999999999.99")),
    ("decimal(19,4)", base64_of(-(2**63)), Decimal("-922337203685477.5808")),
    ("decimal(10,2)", '""', BASE64),
    ("decimal(10,2)", '"!!"', BASE64),
    ("decimal(10,2)", '"1.5"', BASE64),
    ("decimal(10,2)", "1.5", MISMATCH),
    ("decimal(10,0)", "1234", MISMATCH),
    ("decimal(10,0)", '"1234"', Decimal(-2658824)),
    ("decimal(10,0)", "true", MISMATCH),
    ("decimal(10,0)", '"true"', Decimal(-4801634)),
    ("decimal(38,0)", "12345678901234567890", MISMATCH),
    ("decimal(65,30)", "1234", MISMATCH),
    ("decimal(10,2)", NULL, None),
    ("decimal(65,30)", '"Eu7C6zhpr2TfYAAAAA=="', "1.500000000000000000000000000000"),
    ("decimal(65,30)", '"AA=="', "0.000000000000000000000000000000"),
    ("decimal(65,30)", base64_of(-(10**65 - 1)), "-" + "9" * 35 + "." + "9" * 30),
    (LogicalType("decimal", 60, -3, encoding="base64"), base64_of(-12), "-12000"),
]

CONNECT_DECIMALS = [
    ("decimal_connect(10,2)", '"AJY="', Decimal("1.50")),
    ("decimal_connect(10,2)", "1.50", Decimal("1.50")),
    ("decimal_connect(10,2)", "1234", Decimal(1234)),
    ("decimal_connect(10,2)", '"1234"', Decimal("-26588.24")),
    ("decimal_connect(10,2)", "-0.01", Decimal("-0.01")),
    ("decimal_connect(10,2)", "1e3", Decimal(1000)),
    ("decimal_connect(10,2)", "1.505", DEC_SCALE),
    ("decimal_connect(10,2)", "99999999.999", DEC_SCALE),
    ("decimal_connect(10,2)", "100000000", DEC_OVERFLOW),
    ("decimal_connect(10,2)", '"1.5"', BASE64),
    ("decimal_connect(10,2)", "true", MISMATCH),
    ("decimal_connect(10,2)", NULL, None),
    (
        "decimal_connect(38,18)",
        "12345678901234567890.123456789012345678",
        Decimal("12345678901234567890.123456789012345678"),
    ),
    ("decimal_connect(38,0)", "99999999999999999999999999999999999999", Decimal(_TOP)),
    ("decimal_connect(38,0)", "-99999999999999999999999999999999999999", Decimal(-_TOP)),
    ("decimal_connect(65,30)", '"AA=="', "0.000000000000000000000000000000"),
    ("decimal_connect(65,30)", "1.5", MISMATCH),
    ("decimal_connect(65,30)", "1234", MISMATCH),
]

_EXACT, _KEPT = "variable_decimal", "variable_decimal(10,2)"


def _variable(number: int, scale: int) -> str:
    return json.dumps({"scale": scale, "value": json.loads(base64_of(number))})


VARIABLE_DECIMALS = [
    (_EXACT, '{"scale":5,"value":"BMsv"}', "3.14159"),
    (_EXACT, _variable(-5, 3), "-0.005"),
    (_EXACT, _variable(0, 0), "0"),
    (_EXACT, _variable(0, 2), "0.00"),
    (_EXACT, _variable(-12, -3), "-12000"),
    (_EXACT, _variable(10**100, 0), "1" + "0" * 100),
    (_EXACT, _variable(-(10**89 + 1), 30), "-1" + "0" * 59 + "." + "0" * 29 + "1"),
    (_EXACT, _variable(1, 20000), DEC_OVERFLOW),
    (_EXACT, _variable(12345 * 10**2046, 2046), "12345." + "0" * 2046),
    (_EXACT, '{"scale":null,"value":"AQ=="}', MISMATCH),
    (_EXACT, '{"scale":1,"value":"!"}', BASE64),
    (_EXACT, '{"scale":1,"value":1234}', MISMATCH),
    (_EXACT, '{"scale":1,"value":"1234"}', "-265882.4"),
    (_EXACT, '{"scale":1,"value":true}', MISMATCH),
    (_EXACT, '"1.5"', MISMATCH),
    (_EXACT, NULL, None),
    (_KEPT, _variable(150, 2), Decimal("1.50")),
    (_KEPT, _variable(-15000, 4), Decimal("-1.50")),
    (_KEPT, _variable(15001, 4), DEC_SCALE),
    (_KEPT, _variable(3, -2), Decimal("300.00")),
    (_KEPT, _variable(0, 12), Decimal("0.00")),
    (_KEPT, _variable(10**8, 0), DEC_OVERFLOW),
    (_KEPT, _variable(-(10**100), 100), Decimal("-1.00")),
    (_KEPT, _variable(10**100, 0), DEC_OVERFLOW),
]

DECIMAL_TEXTS = [
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
]

_NUMBER = "decimal_number(10,2)"

DECIMAL_NUMBERS = [
    (_NUMBER, "1.50", Decimal("1.50")),
    (_NUMBER, "-1.5", Decimal("-1.50")),
    (_NUMBER, "1.505", DEC_SCALE),
    (_NUMBER, "99999999.99", Decimal("99999999.99")),
    (_NUMBER, "99999999.999", DEC_SCALE),
    (_NUMBER, "100000000", DEC_OVERFLOW),
    (_NUMBER, "1e60", DEC_OVERFLOW),
    (_NUMBER, '"abc"', MISMATCH),
    (_NUMBER, "true", MISMATCH),
    (_NUMBER, NULL, None),
    (
        "decimal_number(36,3)",
        "123456789876543212345678987654321.110",
        Decimal("123456789876543212345678987654321.110"),
    ),
]

ARRAYS = [
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
    ("array<decimal(10,2)>", '["AJY=",1234]', MISMATCH),
    ("array<decimal(10,2)>", '["AJY=","1234"]', [Decimal("1.50"), Decimal("-26588.24")]),
    ("array<decimal(10,2)>", "[true]", MISMATCH),
    ("array<date>", "[12058,-171664]", [dt.date(2003, 1, 6), dt.date(1500, 1, 1)]),
    ("array<date>", "[12058,2932897]", RANGE),
    ("array<variable_decimal>", '[{"scale":1,"value":"Dw=="},null]', ["1.5", None]),
    ("array<variable_decimal>", '[null,{"scale":1,"value":1234}]', MISMATCH),
    ("array<bytes>", '["AP8="]', [bytearray(b"\x00\xff")]),
    ("array<boolean>", "[true,false,null]", [True, False, None]),
    ("array<double>", "[0.5,-2]", [0.5, -2.0]),
    ("array<float>", "[0.5,null]", [0.5, None]),
    ("array<micro_timestamp>", "[1041847872345678,null]", [dt.datetime(2003, 1, 6, 10, 11, 12, 345678), None]),
    ("array<micro_timestamp>", "[253402300800000000]", RANGE),
    ("array<zoned_timestamp>", '["2003-02-30T00:00:00Z"]', RANGE),
    ("array<uuid>", '["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]', ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("array<array<int>>", "[[1,2],[3]]", "[[1,2],[3]]"),
    ("array<array<int>>", "7", MISMATCH),
    ("map", '{"a":"1","b":null,"q\\"k":"v"}', {"a": "1", "b": None, 'q"k': "v"}),
    ("map", "{}", {}),
    ("map", '"x"', MISMATCH),
    ("map", '{"a":"\\u0000"}', NUL),
    ("map", NULL, None),
]

_INNER = LogicalType("struct", fields=(Field("a.b", LogicalType("int")), Field("when", LogicalType("date"))))
_WKB = "AQEAAAAAAAAAAAD4PwAAAAAAAADA"

STRUCTS = [
    (
        "point",
        f'{{"x":1.5,"y":-2.0,"wkb":"{_WKB}","srid":null}}',
        (1.5, -2.0, bytearray(base64.b64decode(_WKB)), None),
    ),
    ("point", f'{{"x":1.5,"y":"abc","wkb":"{_WKB}"}}', MISMATCH),
    ("point", f'{{"y":1,"wkb":"{_WKB}"}}', MISMATCH),
    ("point", '{"x":1,"y":1,"wkb":"!"}', BASE64),
    ("point", '{"x":1,"y":1,"wkb":1234}', MISMATCH),
    ("point", '{"x":1,"y":1,"wkb":"1234"}', (1.0, 1.0, bytearray(bytes.fromhex("d76df8")), None)),
    ("point", '"(1,2)"', MISMATCH),
    ("point", NULL, None),
    ("geometry", '{"wkb":"AP8=","srid":4326,"extensions":{}}', (bytearray(b"\x00\xff"), 4326)),
    ("sparse_vector", '{"dimensions":5,"vector":[[1,0.5],[3,-2]]}', (5, [(1, 0.5), (3, -2.0)])),
    ("sparse_vector", '{"dimensions":5,"vector":[]}', (5, [])),
    ("sparse_vector", '{"dimensions":5,"vector":[[1]]}', MISMATCH),
    ("sparse_vector", '{"vector":[]}', MISMATCH),
    (_INNER, '{"a.b":7,"when":12058}', (7, dt.date(2003, 1, 6))),
    (_INNER, '{"a.b":null}', (None, None)),
    (_INNER, '{"a.b":3000000000}', INT_OVERFLOW),
    (_INNER, NULL, None),
]

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
    ("date", "-622191234", dt.date(9999, 12, 31)),
    ("date", "-625821272", dt.date(1, 1, 1)),
    ("date", "-622191236", RANGE),
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
    ("iso_date", '"+5877611-06-21Z"', dt.date(9999, 12, 31)),
    ("iso_date", '"+292278994-08-17Z"', dt.date(9999, 12, 31)),
    ("iso_date", '"-5877611-06-22Z"', dt.date(1, 1, 1)),
    ("iso_date", '"+292269055-12-02Z"', dt.date(1, 1, 1)),
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
    ("iso_timestamp", '"+292278994-08-16T23:00:00Z"', dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("iso_timestamp", '"-292275055-05-16T23:00:00Z"', dt.datetime(1, 1, 1)),
    ("iso_timestamp", '"+294276-12-31T23:59:59Z"', RANGE),
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


def instant(*parts: int) -> int:
    year, month, day, hour, minute, second, micro = (*parts, *[0] * (7 - len(parts)))
    at = dt.datetime(year, month, day, hour, minute, second, micro)
    return (at - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


INSTANTS = [
    (
        "structured_zoned_timestamp",
        '{"year":2003,"month":1,"day":6,"hour":10,"minute":11,"second":12,"nanos":345678901,"offsetSeconds":7200}',
        instant(2003, 1, 6, 8, 11, 12, 345678),
    ),
    ("structured_zoned_timestamp", '{"year":null,"specialValue":"NEGATIVE_INFINITY"}', instant(1, 1, 1)),
    (
        "structured_zoned_timestamp",
        '{"year":9999,"month":12,"day":31,"hour":23,"minute":0,"second":0,"nanos":0,"offsetSeconds":-7200}',
        RANGE,
    ),
    (
        "structured_zoned_timestamp",
        '{"year":2003,"month":1,"day":6,"hour":0,"minute":0,"second":0,"nanos":0}',
        MISMATCH,
    ),
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
