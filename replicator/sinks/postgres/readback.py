"""A serving table read back: the columns of the target with the values of gold that they must show, as of
one moment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator import names
from replicator.database_snapshots import TargetColumn
from replicator.databases import column_codecs
from replicator.databases.postgresql import PostgresSnapshot
from replicator.sinks.postgres.columns import StagedColumn, plan_staging
from replicator.sinks.postgres.ddl import target_of
from replicator.sinks.postgres.types import max_timestamp
from replicator.spec import Model, Progress

_REFORMATTED_TYPES = ("inet", "cidr", "macaddr", "macaddr8", "interval", "time with time zone")
"""Types whose values Postgres prints in its own format, whatever was sent."""


@dataclass(frozen=True)
class PostgresReadback:
    """``TargetReadback`` in one transaction."""

    model: Model
    progress: Progress | None
    snapshot: PostgresSnapshot

    @property
    def table(self) -> str:
        """``<schema>.<table>``."""
        target = target_of(self.model)
        return f"{target.schema}.{target.table}"

    def as_served(self, rows: DataFrame) -> Sequence[TargetColumn]:
        """Return the columns with their values as Postgres' types print them: at the type's precision, without a CHAR's
        padding.
        """
        columns = {each.name: each for each in self.snapshot.columns(self.table)}
        found = []
        for column in plan_staging(self.model, rows.schema):
            existing = columns.get(column.name)
            type_ = "" if existing is None else existing.type
            value, kind = _expected_value(rows, column, type_)
            codec = None if existing is None or type_ in _REFORMATTED_TYPES else self.snapshot.codec(existing, kind)
            if codec is not None and type_.startswith("character("):
                codec = column_codecs.ColumnCodec(codec.sql, F.rtrim)
            found.append(TargetColumn(column.name, value, kind, codec, type_ or "the target has no such column"))
        return found


def _expected_value(rows: DataFrame, column: StagedColumn, type_: str) -> tuple[Column, T.DataType]:
    """The value of a gold column as a target column of that type shows it."""
    value, kind = F.col(names.quote_spark(column.name)), rows.schema[column.name].dataType
    if isinstance(kind, (T.ArrayType, T.MapType, T.StructType)):
        if type_.endswith("[]"):
            return value, kind
        return column.value, T.StringType()
    if type_.startswith(("text", "character")):
        text = column.value.cast("string")
        return F.rtrim(text) if type_.startswith("character(") else text, T.StringType()
    if type_ == "uuid":
        return F.lower(value), kind
    if type_.startswith(("time ", "time(")):
        return _round(value.cast("bigint"), type_), T.LongType()
    return _round_timestamp(value, kind, type_) if type_.startswith("timestamp") else (value, kind)


def _round_timestamp(value: Column, kind: T.DataType, type_: str) -> tuple[Column, T.DataType]:
    """A timestamp at the target's precision."""
    if isinstance(kind, T.TimestampType):
        return F.timestamp_micros(_clamp_year(F.unix_micros(value), type_)), kind
    micros = F.unix_micros(
        value.cast("timestamp")
    )  # the session's zone is UTC (types.md Y5), as for the conversion back
    return F.timestamp_micros(_clamp_year(micros, type_)).cast("timestamp_ntz"), T.TimestampNTZType()


def _clamp_year(micros: Column, type_: str) -> Column:
    """Rounded as Postgres does, except for the last moments of the year 9999 (``columns.py``)."""
    rounded = _round(micros, type_)
    last = (max_timestamp(_digits(type_)) - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: DTZ001 - a wall time
    return F.when(rounded > last, F.lit(last)).otherwise(rounded)


def _round(micros: Column, type_: str) -> Column:
    unit = 10 ** (6 - _digits(type_))
    return micros if unit == 1 else (F.floor((micros + F.lit(unit // 2)) / F.lit(unit)) * unit).cast("bigint")


def _digits(type_: str) -> int:
    """The number of fractional digits of a second in the target."""
    digits = re.match(r"\w+\((\d)\)", type_)
    return int(digits.group(1)) if digits else 6
