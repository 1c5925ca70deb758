"""Gold and the serving database, as of the version of gold that the ledger names, in one transaction."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator import names
from replicator.databases import told as texts
from replicator.errors import ConfigError, TableMissing, TableStopped
from replicator.operate.verify.equality import Pair, compared, judged
from replicator.operate.verify.landed import Carried, Wanted, landed
from replicator.operate.verify.verdict import TARGET, Comparison, Look, Verdict
from replicator.protocols import Glance, Held, Inspected, Sink, Told
from replicator.sinks.postgres.columns import Carried as Sent
from replicator.sinks.postgres.columns import carry
from replicator.spec import Model, Progress, Target
from replicator.stages import tuning
from replicator.stages.warehouse import Warehouse

_OF_ITS_OWN = ("inet", "cidr", "macaddr", "interval", "time with time zone")
"""Types whose values Postgres writes in its own way, whatever was sent."""


@dataclass(frozen=True)
class _Place:
    at: Warehouse
    model: Model
    target: Target
    sink: Sink


def comparison(at: Warehouse, model: Model, target: Target, sinks: Mapping[str, Sink]) -> Comparison:
    """One model with its target. Raises ConfigError for a target that the configuration does not have."""
    if target.connection not in sinks:
        raise ConfigError(f"there is no target {target.connection!r}", where=model.name)
    place = _Place(at, model, target, sinks[target.connection])

    def size(spark: SparkSession) -> int:
        return 3 * at.gold.read(spark, at.lake.gold(model.name)).count()

    return Comparison(TARGET, model.name, target.connection, partial(_compared, place=place), size)


def _compared(spark: SparkSession, told: Verdict, look: Look, *, place: _Place) -> Verdict:
    at, model = place.at, place.model
    table = at.lake.gold(model.name, model.key)
    spark = tuning.session_for(spark, at.gold.size(spark, table))
    if not isinstance(place.sink, Inspected):
        raise ConfigError(f"target {place.target.connection} cannot be read back")
    with tempfile.TemporaryDirectory(prefix="replicator-verify-") as folder, place.sink.look(model) as looked:
        recorded, glance = looked
        version, newest = _pinned(spark, place, recorded)
        name = f"{place.target.schema}.{place.target.table}"
        shown, columns, unknown = _carried(at.gold.read(spark, table, version), model, glance.columns(name), glance)
        other = landed(spark, glance, Wanted(name, columns), Path(folder), look.advance)
        pair = Pair(shown, other, model.key, {each.name: each.told.meaning for each in columns})
        told = replace(told, behind=newest - version, position=f"gold version {version}", not_compared=unknown)
        return judged(told, pair, compared(pair, look), look)


def _pinned(spark: SparkSession, place: _Place, recorded: Progress | None) -> tuple[int, int]:
    """Gold's version that the target has, and its newest."""
    table = place.at.lake.gold(place.model.name)
    identity, newest = place.at.gold.identity(spark, table), place.at.gold.version(spark, table)
    if identity is None or newest is None:
        raise TableMissing(f"gold table {place.model.name} does not exist yet", where=table.location, mend="Run gold.")
    if recorded is None:
        raise TableMissing("it was never published", where=place.model.name, mend="`replicator run publish` does it.")
    if recorded.input != identity:
        raise TableStopped(
            "what is published is of another gold table, which lay here before",
            where=place.model.name,
            mend="`replicator run publish` sends the whole model.",
        )
    return recorded.version, newest


def _carried(
    gold: DataFrame, model: Model, held: Sequence[Held], glance: Glance
) -> tuple[DataFrame, tuple[Carried, ...], tuple[str, ...]]:
    """Gold as the target must show it, the target's columns, and those that nobody can compare."""
    by_name = {each.name: each for each in held}
    shown: list[Column] = []
    columns: list[Carried] = []
    unknown: list[str] = []
    for each in carry(model, gold.schema):
        there = by_name.get(each.name)
        value, kind = _shown(gold, each, "" if there is None else there.type)
        told = None if there is None or there.type in _OF_ITS_OWN else glance.told(there, kind)
        if there is None or told is None:
            unknown.append(f"{each.name}: {'the target has no such column' if there is None else there.type}")
            continue
        shown.append(value.alias(each.name))
        is_padded = there.type.startswith("character(")
        columns.append(Carried(each.name, each.name, kind, _trimmed(told) if is_padded else told))
    lost = [key for key in model.key if key not in {column.name for column in columns}]
    if lost:
        raise TableStopped(f"its key column {lost[0]} cannot be compared", where=model.name)
    return gold.select(*shown), tuple(columns), tuple(unknown)


def _trimmed(told: Told) -> Told:
    """Without the blanks that fill a CHAR."""
    return texts.Told(told.sql, F.rtrim)


def _shown(gold: DataFrame, column: Sent, type_: str) -> tuple[Column, T.DataType]:
    """A column of gold as one of that type of the target shows it."""
    value, kind = F.col(names.spark(column.name)), gold.schema[column.name].dataType
    if isinstance(kind, (T.ArrayType, T.MapType, T.StructType)):
        return column.value, T.StringType()
    if type_.startswith(("text", "character")):
        text = column.value.cast("string")
        return F.rtrim(text) if type_.startswith("character(") else text, T.StringType()
    if type_ == "uuid":
        return F.lower(value), kind
    if type_.startswith(("time ", "time(")):
        return _rounded(value.cast("bigint"), type_), T.LongType()
    return _moment(value, kind, type_) if type_.startswith("timestamp") else (value, kind)


def _moment(value: Column, kind: T.DataType, type_: str) -> tuple[Column, T.DataType]:
    """A time to as many digits as the target keeps."""
    if isinstance(kind, T.TimestampType):
        return F.timestamp_micros(_rounded(F.unix_micros(value), type_)), kind
    micros = F.unix_micros(value.cast("timestamp"))  # the session's zone is UTC (types.md Y5), and so is the way back
    return F.timestamp_micros(_rounded(micros, type_)).cast("timestamp_ntz"), T.TimestampNTZType()


def _rounded(micros: Column, type_: str) -> Column:
    digits = re.match(r"\w+\((\d)\)", type_)
    unit = 10 ** (6 - int(digits.group(1) if digits else 6))
    return micros if unit == 1 else (F.floor((micros + F.lit(unit // 2)) / F.lit(unit)) * unit).cast("bigint")
