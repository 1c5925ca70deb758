"""The conversion of a gold column to a serving column (types.md section 2)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator import names
from replicator.errors import TargetRefused
from replicator.sinks.postgres.copytext import ValueForm
from replicator.sinks.postgres.types import PostgresType, max_timestamp, parse_type
from replicator.spec import Model
from replicator.transforms.json_values import to_json

_NATIVE: dict[type[T.DataType], str] = {
    T.ByteType: "smallint",
    T.ShortType: "smallint",
    T.IntegerType: "integer",
    T.LongType: "bigint",
    T.DecimalType: "numeric",
    T.FloatType: "real",
    T.DoubleType: "double precision",
    T.BooleanType: "boolean",
    T.BinaryType: "bytea",
}
_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_COARSE: dict[str, tuple[type[T.DataType], ...]] = {
    "real": (T.ByteType, T.ShortType),
    "double precision": (T.ByteType, T.ShortType, T.IntegerType),
}
"""Types that do not represent every integer, and the integer types whose values each represents."""
_NESTED = (T.ArrayType, T.MapType, T.StructType)
_PLAIN = (T.NumericType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType)


@dataclass(frozen=True)
class StagedColumn:
    """A column in transit: its name in the target and in staging, the types in both, and the expression that is handed
    over, with its form.
    """

    name: str
    staged_as: str
    staged_type: str
    type: PostgresType
    value: Column
    form: ValueForm


def plan_staging(model: Model, schema: T.StructType) -> tuple[StagedColumn, ...]:
    """Return how each declared column of a model travels from rows of this schema, in the model's order.

    Numbers, booleans and bytes travel as they are; everything else as text that Postgres reads as the column's own
    type, so that no time zone of a JVM is involved (types.md Y5, Y12). Staging columns have neutral names. Raises
    TargetRefused if values would be rounded or cannot be represented.
    """
    fields = {field.name: field for field in schema.fields}
    staged = []
    for index, column in enumerate(model.columns):
        target = parse_type(column.type)
        field = fields.get(column.name)
        if field is None:
            raise _column_error(model, column.name, "is declared but missing in the rows")
        if _would_round(_element(field.dataType, target), target.element):
            kinds = f"is {field.dataType.simpleString()} in gold and {target} in Postgres: values would be rounded"
            raise _column_error(model, column.name, kinds)
        if not _has_form(field.dataType, target):
            kinds = f"is {field.dataType.simpleString()} in gold, which cannot be stored as {target} in Postgres"
            raise _column_error(model, column.name, kinds)
        value, kind = _staging_value(F.col(names.quote_spark(column.name)), field.dataType, target)
        named = value.alias(f"c{index}")
        staged.append(StagedColumn(column.name, f"c{index}", kind, target, named, _form(field.dataType)))
    return tuple(staged)


def _column_error(model: Model, column: str, why: str) -> TargetRefused:
    what = f"column {column} of model {model.name} {why}."
    return TargetRefused(what, where=model.name, fix="Cast it in the model's SQL, or declare another type.")


def _element(gold: T.DataType, target: PostgresType) -> T.DataType:
    return gold.elementType if target.is_array and isinstance(gold, T.ArrayType) else gold


def _has_form(gold: T.DataType, target: PostgresType) -> bool:
    """Whether the values have a representation: nested ones as JSON, lists also as arrays of their elements'
    representation.
    """
    if target.is_array:
        return isinstance(gold, T.ArrayType) and not isinstance(gold.elementType, _NESTED)
    return not isinstance(gold, _NESTED) or target.name in ("json", "jsonb")


def _would_round(gold: T.DataType, target: PostgresType) -> bool:
    """Whether Postgres would silently round some value; a text may be a number with any number of digits."""
    if isinstance(gold, _INTEGERS):
        return target.name in _COARSE and type(gold) not in _COARSE[target.name]
    if isinstance(gold, T.StringType):
        return target.name in _COARSE or (target.name == "numeric{}" and target.scale is not None)
    if isinstance(gold, T.DecimalType):
        digits = target.scale
        return target.name in ("real", "double precision") or (digits is not None and gold.scale > digits)
    if isinstance(gold, T.DoubleType):
        return target.name != "double precision" and not target.is_text
    if isinstance(gold, (T.TimestampType, T.TimestampNTZType)):
        return target.name == "date" or target.name.startswith("time{}")
    return isinstance(gold, T.FloatType) and target.name not in ("real", "double precision") and not target.is_text


def _form(gold: T.DataType) -> ValueForm:
    """Numbers and times never contain a character that COPY would interpret."""
    if isinstance(gold, T.BinaryType):
        return "bytes"
    return "plain" if isinstance(gold, _PLAIN) else "free"


def _staging_value(value: Column, gold: T.DataType, target: PostgresType) -> tuple[Column, str]:
    """The value as it is written into staging, and the type of the staging column."""
    if target.is_array and isinstance(gold, T.ArrayType):
        kind, element = gold.elementType, target.element
        return F.to_json(F.transform(value, lambda each: _element_text(each, kind, element))), "text"
    if isinstance(gold, _INTEGERS) and target.name == "time{} without time zone":
        return _time_of_day(value), "text"
    if isinstance(gold, _INTEGERS) and target.name == "interval":
        return F.concat(value.cast("string"), F.lit(" microseconds")), "text"
    if isinstance(gold, _INTEGERS) and target.name == "boolean":
        return value.cast("string"), "text"  # as a text only 0 and 1 are valid; as a number any but 0 would be true
    if isinstance(gold, (T.FloatType, T.DoubleType)) and target.is_text:
        return value.cast("string"), "text"  # Postgres would write a number of many digits in another way than gold
    native = _NATIVE.get(type(gold))
    return (value, native) if native is not None else (_text(value, gold, target), "text")


def _text(value: Column, gold: T.DataType, target: PostgresType) -> Column:
    if isinstance(gold, T.TimestampType):
        return _instant(_clamp_year(value, "TIMESTAMP_LTZ", target))
    if isinstance(gold, T.TimestampNTZType) and not target.is_text:
        return _in_utc(_clamp_year(value, "TIMESTAMP_NTZ", target))
    if isinstance(gold, _NESTED):
        return to_json(value, gold)
    return value.cast("string")


def _element_text(value: Column, gold: T.DataType, target: PostgresType) -> Column:
    """An element as text that Postgres reads."""
    if isinstance(gold, T.BinaryType):
        return F.concat(F.lit("\\x"), F.hex(value))
    return _staging_value(value, gold, target)[0].cast("string")


def _clamp_year(value: Column, kind: str, target: PostgresType) -> Column:
    """Replace the last moments of the year 9999, one of which stands for infinity, by the last one of that year at the
    target's precision: rounding would move them to a year that many clients cannot read.
    """
    if not target.is_coarse:
        return value
    zone = "Z" if kind == "TIMESTAMP_LTZ" else ""
    last = F.expr(f"{kind}'{max_timestamp(target.arguments[0])}{zone}'")
    return F.when(value > last, last).otherwise(value)


def _instant(value: Column) -> Column:
    """An instant as wall time in UTC, whatever the session's zone (types.md Y11)."""
    seconds = F.unix_micros(value).cast("decimal(18,0)") * F.expr("0.000001BD")
    zero = F.lit(0)
    return _in_utc(F.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'") + F.make_dt_interval(zero, zero, zero, seconds))


def _in_utc(wall_time: Column) -> Column:
    """Text with a zone: ``timestamptz`` needs it, ``timestamp`` ignores it."""
    return F.concat(wall_time.cast("string"), F.lit("+00"))


def _time_of_day(micros: Column) -> Column:
    """``HH:MM:SS.ffffff`` from microseconds, so that 24:00:00 is preserved (types.md Y12)."""
    seconds = F.floor(micros / 1_000_000)
    parts = F.floor(seconds / 3600), F.floor(seconds / 60) % 60, seconds % 60, micros % 1_000_000
    text = F.format_string("%02d:%02d:%02d.%06d", *(part.cast("bigint") for part in parts))
    return F.when(micros.isNotNull(), text)
