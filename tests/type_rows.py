"""Which columns of which sources arrive in which form: the rows of docs/types.md (types.md section 2).

What silver makes of them is not written here: ``type_matrix.py`` asks the package and the vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_DBZ, _CONNECT = "io.debezium.", "org.apache.kafka.connect.data."


@dataclass(frozen=True)
class Sent:
    """How a value's schema block looks: Connect type, semantic name, parameters."""

    kind: str
    name: str = ""
    parameters: dict[str, str] = field(default_factory=dict)

    def block(self) -> dict[str, Any]:
        """The schema block."""
        block: dict[str, Any] = {"type": self.kind, "parameters": self.parameters}
        if self.kind == "map":
            block |= {"keys": {"type": "string"}, "values": {"type": "string"}}
        if self.kind == "array" and not self.name:
            block["items"] = {"type": "int32"}
        return block | ({"name": self.name} if self.name else {})

    def __str__(self) -> str:
        short = self.name.removeprefix(_DBZ).removeprefix(_CONNECT)
        return f"{short} ({self.kind})" if short else self.kind


@dataclass(frozen=True)
class Row:
    """One line of the matrix. ``declared`` is the short form; ``sent`` the schemas that mean the same."""

    columns: str
    setting: str
    declared: str
    sent: tuple[Sent, ...] = ()
    limit: str = ""


def _dbz(kind: str, name: str, **parameters: str) -> Sent:
    return Sent(kind, _DBZ + name, parameters)


def _plain(*kinds: str) -> tuple[Sent, ...]:
    return tuple(Sent(kind) for kind in kinds)


_DECIMAL_10_2 = Sent("bytes", _CONNECT + "Decimal", {"scale": "2", "connect.decimal.precision": "10"})
_MONEY = Sent("bytes", _CONNECT + "Decimal", {"scale": "4", "__debezium.source.column.type": "MONEY"})
_WIDE = Sent("bytes", _CONNECT + "Decimal", {"scale": "30", "connect.decimal.precision": "65"})
_UNSIGNED = Sent("int64", parameters={"__debezium.source.column.type": "BIGINT UNSIGNED"})
_IN_MILLIS = (_dbz("int64", "time.Timestamp"), Sent("int64", _CONNECT + "Timestamp"))

MATRIX: tuple[tuple[str, tuple[Row, ...]], ...] = (
    (
        "Integers",
        (
            Row("smallint, tinyint, tinyint unsigned", "", "smallint", _plain("int8", "int16")),
            Row("int, mediumint, smallint unsigned", "", "int", _plain("int32")),
            Row("bigint, int unsigned", "", "bigint", _plain("int64")),
            Row(
                "bigint unsigned (MySQL, MariaDB)",
                "`bigint.unsigned.handling.mode=long`",
                "bigint unsigned",
                (_UNSIGNED,),
                "in the schema block only with `column.propagate.source.type`; otherwise declare it",
            ),
            Row("year (MySQL, MariaDB)", "", "year", (_dbz("int32", "time.Year"),)),
            Row("bit(n), bit varying(n), n up to 63", "", "bits(5)", (_dbz("bytes", "data.Bits", length="5"),)),
            Row("bit(n), n from 64; bit varying", "", "bits(64)", (_dbz("bytes", "data.Bits", length="64"),)),
        ),
    ),
    (
        "Decimals and floating point",
        (
            Row("real, float(24)", "", "float", _plain("float", "float32")),
            Row("double precision, float(53)", "", "double", _plain("double", "float64")),
            Row("numeric(p,s), decimal(p,s)", "`decimal.handling.mode=precise`", "decimal(10,2)", (_DECIMAL_10_2,)),
            Row("money, smallmoney (SQL Server); money (PostgreSQL)", "the same", "decimal(19,4)", (_MONEY,)),
            Row("numeric(p,s), decimal(p,s)", "`decimal.handling.mode=string`", "decimal_string(10,2)", ()),
            Row(
                "numeric(p,s), decimal(p,s)",
                "the converter's `decimal.format=NUMERIC`",
                "decimal_number(10,2)",
                (_DECIMAL_10_2,),
                "up to 38 digits; with a schema block both encodings are accepted, but in arrays only base64",
            ),
            Row("decimals of more than 38 digits", "`precise`", "decimal(65,30)", (_WIDE,), "stored as exact text"),
            Row(
                "numeric without precision (PostgreSQL), NUMBER (Oracle)",
                "`precise`",
                "variable_decimal",
                (_dbz("struct", "data.VariableScaleDecimal"),),
                "exact text; for a DECIMAL declare `variable_decimal(p,s)`",
            ),
            Row("the same, declared with digits", "`precise`", "variable_decimal(10,2)"),
            Row("numeric without precision", "`decimal.handling.mode=string`", "variable_decimal_string"),
            Row(
                "any decimal", "`decimal.handling.mode=double`", "double", _plain("double"), "inexact, by the setting"
            ),
        ),
    ),
    (
        "Text, booleans, bytes",
        (
            Row(
                "boolean, bit(1), tinyint(1) as boolean",
                "",
                "boolean",
                _plain("boolean"),
                "MySQL's snapshot may send a tinyint(1) as `int16` and its stream as `boolean`: declare it",
            ),
            Row("char, varchar, text, citext, inet, cidr, macaddr, ranges", "", "string", _plain("string")),
            Row("json, jsonb; hstore", "hstore: `hstore.handling.mode=json`", "json", (_dbz("string", "data.Json"),)),
            Row("uuid", "", "uuid", (_dbz("string", "data.Uuid"),)),
            Row("xml", "", "xml", (_dbz("string", "data.Xml"),)),
            Row("ltree", "", "ltree", (_dbz("string", "data.Ltree"),)),
            Row("tsvector", "", "tsvector", (_dbz("string", "data.Tsvector"),)),
            Row("enum", "", "enum", (_dbz("string", "data.Enum"),), "a comma inside a value loses its backslash"),
            Row("set (MySQL, MariaDB)", "", "enum_set", (_dbz("string", "data.EnumSet"),)),
            Row("bytea, blob, binary", "`binary.handling.mode=bytes`", "bytes", _plain("bytes")),
            Row("the same", "`binary.handling.mode=base64`", "bytes_base64", (), "declare it"),
            Row("the same", "`binary.handling.mode=base64-url-safe`", "bytes_base64url", (), "declare it"),
            Row("the same", "`binary.handling.mode=hex`", "bytes_hex", (), "declare it"),
        ),
    ),
    (
        "Dates and times",
        (
            Row(
                "date", "any but `isostring`, `structured`", "date",
                (_dbz("int32", "time.Date"), Sent("int32", _CONNECT + "Date")),
            ),
            Row(
                "time, up to milliseconds", "`adaptive`, `connect`", "time",
                (_dbz("int32", "time.Time"), Sent("int32", _CONNECT + "Time")), "microseconds of the day",
            ),
            Row(
                "time; TIME of MySQL and MariaDB", "`adaptive`, `adaptive_time_microseconds`, `microseconds`",
                "micro_time", (_dbz("int64", "time.MicroTime"),), "microseconds, signed; may exceed a day",
            ),
            Row("time(7..9)", "`adaptive`, `nanoseconds`", "nano_time", (_dbz("int64", "time.NanoTime"),),
                "truncated to microseconds"),
            Row("timestamp or datetime, up to milliseconds", "`adaptive`, `connect`", "timestamp", _IN_MILLIS,
                "`connect` cuts to milliseconds"),
            Row("timestamp, datetime(4..6)", "`adaptive`, `microseconds`", "micro_timestamp",
                (_dbz("int64", "time.MicroTimestamp"),)),
            Row("datetime2(7), timestamp(7..9)", "`adaptive`, `nanoseconds`", "nano_timestamp",
                (_dbz("int64", "time.NanoTimestamp"),),
                "truncated to microseconds; the source's range is 1677 to 2262"),
            Row("timestamptz; TIMESTAMP of MySQL and MariaDB; datetimeoffset", "", "zoned_timestamp",
                (_dbz("string", "time.ZonedTimestamp"),), "an instant; the offset is not kept"),
            Row("timetz", "", "zoned_time", (_dbz("string", "time.ZonedTime"),)),
            Row("date", "`isostring`", "iso_date", (_dbz("string", "time.IsoDate"),)),
            Row("time", "`isostring`", "iso_time", (_dbz("string", "time.IsoTime"),)),
            Row("timestamp", "`isostring`", "iso_timestamp", (_dbz("string", "time.IsoTimestamp"),),
                "local time, despite its Z"),
            Row("date", "`structured`", "structured_date", (_dbz("struct", "time.StructuredDate"),)),
            Row("time", "`structured`", "structured_time", (_dbz("struct", "time.StructuredTime"),)),
            Row("timestamp", "`structured`", "structured_timestamp", (_dbz("struct", "time.StructuredTimestamp"),)),
            Row("timestamptz", "`structured`", "structured_zoned_timestamp",
                (_dbz("struct", "time.StructuredZonedTimestamp"),), "an instant; zone and offset are not kept"),
            Row("interval", "`interval.handling.mode=string`", "interval", (_dbz("string", "time.Interval"),)),
            Row("interval", "`interval.handling.mode=numeric`", "micro_duration",
                (_dbz("int64", "time.MicroDuration"),), "microseconds; the connector defines the length of a month"),
            Row("interval", "`nanoseconds`", "nano_duration", (_dbz("int64", "time.NanoDuration"),), "nanoseconds"),
        ),
    ),
    (
        "Arrays, maps, structs",
        (
            Row("int[]", "", "array<int>", (Sent("array"),)),
            Row("text[], varchar[]", "", "text[]"),
            Row("numeric(p,s)[]", "`precise`", "array<decimal(10,2)>"),
            Row("numeric[]", "`precise`", "array<variable_decimal>"),
            Row("date[]", "", "array<date>"),
            Row("timestamp[]", "", "array<micro_timestamp>"),
            Row("bytea[]", "", "array<bytes>"),
            Row("boolean[]", "", "array<boolean>"),
            Row("uuid[]", "", "array<uuid>"),
            Row("int[][]", "", "array<array<int>>", (), "JSON text; PostgreSQL's connector sends inner arrays as NULL"),
            Row("hstore", "`hstore.handling.mode=map`", "map", (Sent("map"),)),
            Row("point", "", "point", (_dbz("struct", "data.geometry.Point"),)),
            Row("geometry, geography", "", "geometry",
                (_dbz("struct", "data.geometry.Geometry"), _dbz("struct", "data.geometry.Geography"))),
            Row("vector of floats", "", "array<float>", (_dbz("array", "data.FloatVector"),)),
            Row("vector of doubles, double precision[]", "", "array<double>", (_dbz("array", "data.DoubleVector"),)),
            Row("sparsevec", "", "sparse_vector", (_dbz("struct", "data.SparseDoubleVector"),)),
        ),
    ),
)  # fmt: skip
