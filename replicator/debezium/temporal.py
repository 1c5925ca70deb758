"""Decoding of dates, times and timestamps (types.md section 4, Y5, Y11).

Wall-clock values are computed as an interval after 1970, instants are read with their offset: the session's time zone
is never used. Years outside 1 to 9999 are ``temporal_range``; infinities follow the policy ``infinity``.
"""

from __future__ import annotations

from decimal import Decimal
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium.decoding import (
    TEMPORAL_RANGE,
    TYPE_MISMATCH,
    Decoded,
    Policies,
    integer_reason,
    is_true,
    reason_if_undecoded,
)
from replicator.debezium.logical_types import LogicalType

_FIRST_MICROS, _LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY_MICROS = 86_400_000_000
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1

# Values that mean infinity and minus infinity (debezium-measured Z1.8). For dates a snapshot sends other values than
# the stream: the driver's, whose days wrapped at 32 bits, differing by a day with Connect's time zone. PostgreSQL has
# no real date that early.
_INFINITE_DAYS = (
    (2_146_033_979, -622_191_235, -622_191_234, -622_191_233),
    (-2_147_472_691, -625_821_273, -625_821_272, -625_821_271),
)
_INFINITE = {
    "timestamp": (9_223_372_036_825_200_000, -9_223_372_036_832_400_000),
    "micro_timestamp": (_LONG_MAX, _LONG_MIN),
    "nano_timestamp": (_LONG_MAX, _LONG_MIN),
}
# In ``isostring`` mode these are the same values as text; a snapshot's BC date has lost its era, and is a day later if
# Connect's time zone is east of Greenwich.
_INFINITE_TEXTS = {
    "zoned_timestamp": (("infinity", "+294247-01-10T04:00:54.775Z"), ("-infinity",)),
    "iso_date": (
        ("+5877611-06-21Z", "+292278994-08-16Z", "+292278994-08-17Z"),
        ("-5877611-06-22Z", "+292269055-12-02Z", "+292269055-12-03Z"),
    ),
    "iso_timestamp": (("+292278994-08-16T23:00:00Z",), ("-292275055-05-16T23:00:00Z",)),
}
_SPECIAL_VALUES = (("POSITIVE_INFINITY",), ("NEGATIVE_INFINITY",))

_DATE_TEXT = r"^[+-]?[0-9]{4,10}-[0-9]{2}-[0-9]{2}Z?$"
_TIME_TEXT = r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?Z?$"
_WALL_TEXT = r"^[+-]?[0-9]{4,10}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_ZONED_TEXT = _WALL_TEXT + r"(Z|[+-][0-9]{2}:[0-9]{2}(:[0-9]{2})?)$"
_SENTINELS = {
    "DATE": ("DATE'9999-12-31'", "DATE'0001-01-01'"),
    "TIMESTAMP_NTZ": ("TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'", "TIMESTAMP_NTZ'0001-01-01 00:00:00'"),
    "TIMESTAMP": ("TIMESTAMP'9999-12-31 23:59:59.999999Z'", "TIMESTAMP'0001-01-01 00:00:00Z'"),
}

_DATE_PARTS = ("year", "month", "day")
_TIME_PARTS = ("hour", "minute", "second", "nanos")
_STRUCTURED = {
    "structured_date": _DATE_PARTS,
    "structured_time": _TIME_PARTS,
    "structured_timestamp": (*_DATE_PARTS, *_TIME_PARTS),
    "structured_zoned_timestamp": (*_DATE_PARTS, *_TIME_PARTS, "offsetSeconds"),
}
_STRUCTURED_DDL = {
    "structured_date": "DATE",
    "structured_timestamp": "TIMESTAMP_NTZ",
    "structured_zoned_timestamp": "TIMESTAMP",
}
_WIRE = {
    "date": "INT",
    "time": "INT",
    "micro_time": "BIGINT",
    "nano_time": "BIGINT",
    "timestamp": "BIGINT",
    "micro_timestamp": "BIGINT",
    "nano_timestamp": "BIGINT",
    "zoned_timestamp": "STRING",
    "iso_date": "STRING",
    "iso_time": "STRING",
    "iso_timestamp": "STRING",
}
NAMES = frozenset(_WIRE) | frozenset(_STRUCTURED)


def wire_type(logical: LogicalType) -> str:
    """The DDL with which ``from_json`` must read one of ``NAMES``."""
    if logical.name in _STRUCTURED:
        return f"STRUCT<{', '.join(f'{part}: INT' for part in _STRUCTURED[logical.name])}, specialValue: STRING>"
    return _WIRE[logical.name]


def decode(logical: LogicalType, wire: Column, text: Column, policies: Policies) -> Decoded:
    """Decode a value of one of ``NAMES``."""
    if logical.name == "date":
        return _date(wire, text, policies)
    if logical.name in ("time", "micro_time", "nano_time"):
        return _time_of_day(logical.name, wire, text)
    if logical.name in _INFINITE:
        return _wall_clock(logical.name, wire, text, policies)
    if logical.name in _STRUCTURED:
        return _structured(logical.name, wire, text, policies)
    return _text(logical.name, wire, text, policies)


def _date(days: Column, text: Column, policies: Policies) -> Decoded:
    value = F.when(days.between(_FIRST_DAY, _LAST_DAY), F.date_from_unix_date(days))
    reason = F.when(days.isNull(), integer_reason(text, 32)).otherwise(TEMPORAL_RANGE)
    signs = (days.isin(*_INFINITE_DAYS[0]), days.isin(*_INFINITE_DAYS[1]))
    return _with_infinities("DATE", value, signs, text, reason, policies)


def _time_of_day(name: str, wire: Column, text: Column) -> Decoded:
    """Decode a time to microseconds, negative or beyond a day if the source's TIME is a duration."""
    if name == "time":
        value = wire.cast("bigint") * F.lit(1000).cast("bigint")
    else:
        value = wire if name == "micro_time" else floor_to_micros(wire)
    return Decoded(value, reason_if_undecoded(value, text, integer_reason(text, 32 if name == "time" else 64)))


def _wall_clock(name: str, wire: Column, text: Column, policies: Policies) -> Decoded:
    if name == "timestamp":
        in_range = wire.between(-(-_FIRST_MICROS // 1000), _LAST_MICROS // 1000)
        micros = wire * F.lit(1000).cast("bigint")
    elif name == "micro_timestamp":
        in_range, micros = wire.between(_FIRST_MICROS, _LAST_MICROS), wire
    else:
        in_range, micros = wire.between(_LONG_MIN + 1, _LONG_MAX - 1), floor_to_micros(wire)
    value = F.when(in_range, wall_time(micros))
    reason = F.when(wire.isNull(), integer_reason(text, 64)).otherwise(TEMPORAL_RANGE)
    high, low = _INFINITE[name]
    return _with_infinities("TIMESTAMP_NTZ", value, (wire == high, wire == low), text, reason, policies)


def _text(name: str, wire: Column, text: Column, policies: Policies) -> Decoded:
    if name == "iso_time":
        value = F.when(wire.rlike(_TIME_TEXT), F.regexp_replace(wire, "Z$", ""))
        return Decoded(value, reason_if_undecoded(value, text, TYPE_MISMATCH))
    signs = (wire.isin(*_INFINITE_TEXTS[name][0]), wire.isin(*_INFINITE_TEXTS[name][1]))
    if name == "zoned_timestamp":
        is_shaped = wire.rlike(_ZONED_TEXT)
        instant = F.try_to_timestamp(F.when(is_shaped, wire))
        value = F.when(F.unix_micros(instant).between(_FIRST_MICROS, _LAST_MICROS), instant)
        ddl = "TIMESTAMP"
    elif name == "iso_date":
        is_shaped = wire.rlike(_DATE_TEXT)
        midnight = F.concat(F.regexp_replace(F.when(is_shaped, wire), "Z$", ""), F.lit("T00:00:00Z"))
        value, ddl = date_of(_micros_of(midnight)), "DATE"
    else:
        is_shaped = wire.rlike(_WALL_TEXT + "Z?$")
        as_instant = F.concat(F.regexp_replace(F.when(is_shaped, wire), "Z$", ""), F.lit("Z"))
        value, ddl = wall_time(_micros_of(as_instant)), "TIMESTAMP_NTZ"
    reason = F.when(is_shaped, TEMPORAL_RANGE).otherwise(TYPE_MISMATCH)
    return _with_infinities(ddl, value, signs, text, reason, policies)


def _structured(name: str, wire: Column, text: Column, policies: Policies) -> Decoded:
    """Decode ``time.precision.mode=structured``: the parts of a date or time, or a ``specialValue``."""
    parts = {part: wire[part] for part in _STRUCTURED[name]}
    seconds = [(parts[part] * F.lit(size).cast("bigint")) for part, size in _PART_MICROS if part in parts]
    micros = _sum(seconds) + floor_to_micros(parts["nanos"].cast("bigint")) if "nanos" in parts else F.lit(0)
    if name == "structured_time":
        return Decoded(micros, reason_if_undecoded(micros, text, TYPE_MISMATCH))
    in_range = parts["year"].between(1, 9999)
    midnight = F.format_string("%04d-%02d-%02dT00:00:00Z", *(parts[part] for part in _DATE_PARTS))
    day = F.when(in_range, _micros_of(midnight))
    ddl = _STRUCTURED_DDL[name]
    value = {"DATE": date_of, "TIMESTAMP_NTZ": wall_time, "TIMESTAMP": _instant_of}[ddl](day + micros)
    signs = tuple(wire["specialValue"].isin(*words) for words in _SPECIAL_VALUES)
    is_whole = reduce(lambda so_far, part: so_far & part.isNotNull(), parts.values(), F.lit(1) == 1)
    reason = F.when(is_whole, TEMPORAL_RANGE).otherwise(TYPE_MISMATCH)
    return _with_infinities(ddl, value, (signs[0], signs[1]), text, reason, policies)


_PART_MICROS = (
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("offsetSeconds", -1_000_000),
)


def _sum(columns: list[Column]) -> Column:
    total = F.lit(0).cast("bigint")
    for column in columns:
        total = total + column
    return total


def _with_infinities(
    ddl: str, value: Column, signs: tuple[Column, Column], text: Column, reason: Column, policies: Policies
) -> Decoded:
    """The decoded value with infinities treated by the policy; ``signs``: is plus infinity, is minus infinity."""
    if policies.infinity == "dead_letter":
        return Decoded(value, reason_if_undecoded(value, text, reason))
    if policies.infinity == "null":
        return Decoded(value, F.when(~is_true(signs[0] | signs[1]), reason_if_undecoded(value, text, reason)))
    last, first = (F.expr(literal) for literal in _SENTINELS[ddl])
    settled = F.when(signs[0], last).when(signs[1], first).otherwise(value)
    return Decoded(settled, reason_if_undecoded(settled, text, reason))


def floor_to_micros(nanos: Column) -> Column:
    """Nanoseconds to microseconds, rounded down, negative ones too (Y11)."""
    thousand = F.lit(1000).cast("bigint")
    below = F.when(nanos % thousand < 0, 1).otherwise(0)
    return F.call_function("div", nanos, thousand) - below


def wall_time(micros: Column) -> Column:
    """TIMESTAMP_NTZ from microseconds after 1970-01-01; the caller keeps it within years 1 to 9999 (Y11)."""
    seconds = micros.cast("decimal(18,0)") * F.lit(Decimal("0.000001"))
    return F.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'") + F.make_dt_interval(
        F.lit(0), F.lit(0), F.lit(0), seconds.cast("decimal(18,6)")
    )


def date_of(micros: Column) -> Column:
    """DATE from a whole number of days, in microseconds after 1970-01-01."""
    return F.date_from_unix_date(F.call_function("div", micros, F.lit(_DAY_MICROS).cast("bigint")).cast("int"))


def _instant_of(micros: Column) -> Column:
    """TIMESTAMP from microseconds after 1970-01-01 in UTC; NULL outside the years 1 to 9999."""
    return F.when(micros.between(_FIRST_MICROS, _LAST_MICROS), F.timestamp_micros(micros))


def _micros_of(instant: Column) -> Column:
    """Microseconds after 1970-01-01 of a text that ends in Z; NULL if it is no moment of the years 1 to 9999."""
    micros = F.unix_micros(F.try_to_timestamp(instant))
    return F.when(micros.between(_FIRST_MICROS, _LAST_MICROS), micros)
