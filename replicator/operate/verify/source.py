"""The live source and silver: all rows of a table in one transaction, and silver's live rows at its newest version.

The two are never read at one moment of the source. So keys that differ are looked at again, in a new transaction and
with silver as it is then, until they are equal or the patience is over. What then differs only because silver already
has a change from behind the last transaction is in flight; everything else is a difference.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import and_
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from replicator import names
from replicator.config import topicnames
from replicator.database_snapshots import Database, DatabaseSnapshot
from replicator.errors import TableMissing, TableStopped
from replicator.jvm import gateway
from replicator.operate.verify import missing_tables, ranges
from replicator.operate.verify.equality import (
    KNOWN,
    Differences,
    Pair,
    find_differences,
    key_of_row,
    to_spark_key,
    to_verdict,
)
from replicator.operate.verify.parquet_extract import ComparedColumn, ExtractQuery, extract, with_text_fallback
from replicator.operate.verify.ranges import Ranges
from replicator.operate.verify.source_transform import apply_transform
from replicator.operate.verify.verdict import SOURCE, Comparison, Verdict, VerifyOptions
from replicator.spec import BY_POSITION, Declaration, Table
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.stages.table import transform_origins
from replicator.stages.tick import epochs, routing
from replicator.transforms.columns.layout import key_of, version_of
from replicator.transforms.merge import SYSTEM_COLUMNS

_PAUSE_SECONDS = 1.0
Keys = list[tuple[Any, ...]]


@dataclass(frozen=True)
class _SourceTable:
    at: Refinement
    name: str
    database: Database

    @property
    def table(self) -> Table:
        return self.at.lake.silver(self.at.source.name, self.name)

    @property
    def against(self) -> str:
        login = self.at.source.database
        return "source" if login is None else login.kind


@dataclass(frozen=True)
class _Scope:
    """What is looked at: ``ranges`` of the keys, or ``keys`` alone. None: nobody has looked yet."""

    ranges: Ranges | None = None
    keys: Keys | None = None


@dataclass(frozen=True)
class _Sides:
    """Both sides; ``later`` are keys of silver that changed after the source was read."""

    pair: Pair
    later: DataFrame
    unknown: tuple[str, ...]
    position: str


@dataclass(frozen=True)
class _Attempt:
    """One look: what was found, in which pair, what was left out, and how far both sides were."""

    found: Differences
    pair: Pair
    unknown: tuple[str, ...]
    in_flight: int
    position: str


def comparisons(spark: SparkSession, at: Refinement, database: Database, *, asked: bool = False) -> list[Comparison]:
    """Every table of silver that one table of the source stands behind, and those that its file names and silver does
    not have: those of outbox events hold something else, those of shards have several, and of append-only ones nothing
    tells which row is which. What the file leaves out (``exclude``) is as it was when it was read last, and compared
    only where it was ``asked`` for.
    """
    folders = at.silver.tables(spark, at.lake.silver_root(at.source.name))
    held = map(names.decode_table, folders)
    every = {name for name in held if asked or topicnames.includes_table(at.source, name)}
    there = {name.casefold() for name in every}
    own = at.source.tables if at.source.default.outbox is None else ()  # a router's tables are none of the database's
    declared = {each.table for each in own if topicnames.includes_table(at.source, each.table)}
    absent = {name for name in declared if name.casefold() not in there}
    behind = [name for name in sorted(every | absent) if _is_comparable(at.source.declaration(name))]
    places = [_SourceTable(at, name, database) for name in behind]
    return [_missing_table(each) if each.name in absent else _comparison(each) for each in places]


def _is_comparable(declared: Declaration) -> bool:
    return declared.outbox is None and not declared.append_only and not declared.shards


def _missing_table(place: _SourceTable) -> Comparison:
    return missing_tables.comparison(place.table.name, place.name, place.database, place.against)


def _comparison(place: _SourceTable) -> Comparison:
    def size(spark: SparkSession) -> int:
        return 3 * place.at.silver.read(spark, place.table).count()

    return Comparison(SOURCE, place.table.name, place.against, partial(_compare, place=place), size)


def _compare(spark: SparkSession, told: Verdict, look: VerifyOptions, *, place: _SourceTable) -> Verdict:
    spark = tuning.session_for(spark, place.at.silver.size(spark, place.table), exact_names=True)
    until = time.monotonic() + look.wait
    first = last = _attempt(spark, place, look, _Scope())
    while last.found.differing and time.monotonic() < until:
        time.sleep(min(_PAUSE_SECONDS, max(0.0, until - time.monotonic())))
        last = _attempt(spark, place, look, _next_scope(last))
    found = replace(last.found, total=first.found.total)
    told = replace(told, in_flight=last.in_flight, not_compared=first.unknown, position=last.position)
    told = replace(told, behind=_lag(spark, place.at, place.name))
    return to_verdict(told, first.pair, found, look)


def _next_scope(seen: _Attempt) -> _Scope:
    """The keys to look at again, or the ranges that they are in where those are too many."""
    found, parts = seen.found, seen.pair.ranges
    if found.differing <= KNOWN:
        return _Scope(parts, found.keys(seen.pair.keys))
    return _Scope(found.where(parts))


def _attempt(spark: SparkSession, place: _SourceTable, look: VerifyOptions, scope: _Scope) -> _Attempt:
    with tempfile.TemporaryDirectory(prefix="replicator-verify-") as folder:
        read = _read(spark, place, look, scope, Path(folder))
        found = find_differences(read.pair, look)
        late = _in_flight_keys(read, found)
        return _Attempt(found.without(late, read.pair), read.pair, read.unknown, len(late), read.position)


def _read(spark: SparkSession, place: _SourceTable, look: VerifyOptions, scope: _Scope, folder: Path) -> _Sides:
    """The source's rows, landed, and silver's live ones; the transaction ends with the last row."""
    with place.database.read_snapshot() as snapshot:
        version = place.at.silver.version(spark, place.table)
        if version is None:
            raise TableMissing("the table does not exist", where=place.table.location)
        silver = place.at.silver.read(spark, place.table, version)
        origin = _origin(spark, place)
        schema = silver.schema if origin is None else origin
        columns, unknown = _compared_columns(schema, snapshot, place)
        key, other = key_of(schema), silver.where(~F.col("_deleted"))
        parts, asked = Ranges(), None
        if origin is None:
            columns, asked = with_text_fallback(columns, key), _queryable_keys(scope.keys, key, columns)
            other = other.select(
                [each.beside(F.col(names.quote_spark(each.name))).alias(each.name) for each in columns]
            )
            parts = ranges.build(other, key, look.share) if scope.ranges is None else scope.ranges
        one = extract(spark, snapshot, ExtractQuery(place.name, columns, key, asked, parts), folder, look.advance)
    meanings: Mapping[str, str] = {each.name: each.told.meaning for each in columns}
    if origin is not None:
        made = apply_transform(place.at, place.name, one, origin, meanings)
        one, key, meanings, unknown = made.rows, made.keys, made.meanings, (*unknown, *made.unknown)
        other = other.select(*map(names.quote_spark, one.columns))
    pair = Pair(one, other, key, meanings, parts)
    if scope.keys is not None:
        pair = replace(pair, one=_filter_by_keys(one, pair, scope.keys), other=_filter_by_keys(other, pair, scope.keys))
    later = silver.where(_changed_later(snapshot, place)).select(*map(names.quote_spark, key))
    position = f"silver version {version}" + (f", source at {snapshot.position}" if snapshot.position else "")
    return _Sides(pair, later, unknown, position)


def _changed_later(snapshot: DatabaseSnapshot, place: _SourceTable) -> Column:
    """Whether a row of silver is of a change behind the source's log: only places of the newest epoch are of this log,
    and no order but that by place has any.
    """
    at = place.at
    if at.source.order(place.name) not in (BY_POSITION, "file_pos_row"):
        return F.lit(False)
    newest = epochs.load(at.control, at.lake.epochs(at.source.name)).newest
    return F.col("_seq").startswith(newest) & snapshot.later(F.col("_seq"))


def _origin(spark: SparkSession, place: _SourceTable) -> StructType | None:
    """The columns at the source of a transformed table; None of others. Raises TransformChanged."""
    at = place.at
    if at.source.declaration(place.name).transform is None:
        return None
    bronze = at.bronze.identity(spark, at.lake.bronze(at.source.name)) or ""
    found = transform_origins.load_by_name(at, place.name, bronze)
    transform_origins.refuse_changed(at, place.name, found)
    return None if found is None else found.columns


def _compared_columns(
    schema: StructType, snapshot: DatabaseSnapshot, place: _SourceTable
) -> tuple[tuple[ComparedColumn, ...], tuple[str, ...]]:
    """Columns that the two share, and those that nobody can compare, with why. Raises TableStopped for such a key."""
    held = {each.name: each for each in snapshot.columns(place.name)}
    own = [field for field in schema if field.name not in SYSTEM_COLUMNS]
    spelled = {name.casefold(): name for name in held}
    versions = {version_of(field.name)[0] for field in own if version_of(field.name)[1] > 1}
    carried, unknown = [], []
    for field in own:
        name = str(field.metadata.get("name") or names.decode(field.name))
        there = held.pop(name, None) or held.pop(spelled.get(name.casefold(), ""), None)
        told = None if there is None else snapshot.told(there, field.dataType)
        if version_of(field.name)[0] in versions:
            unknown.append(f"{name}: it has had several types")
        elif there is None:
            unknown.append(f"{name}: the source has no such column")
        elif told is None:
            unknown.append(f"{name}: {there.type} is written in several ways")
        else:
            carried.append(ComparedColumn(there.name, field.name, field.dataType, told))
    unknown += [f"{name}: silver has no such column" for name in held]
    _refuse_keys(own, carried, place)
    return tuple(carried), tuple(unknown)


def _refuse_keys(own: list[StructField], carried: list[ComparedColumn], place: _SourceTable) -> None:
    known = {each.name for each in carried}
    lost = [field.name for field in own if "key" in field.metadata and field.name not in known]
    if lost:
        raise TableStopped(f"its key column {names.decode(lost[0])} cannot be compared", where=place.table.name)


def _queryable_keys(keys: Keys | None, key: Sequence[str], columns: Sequence[ComparedColumn]) -> Keys | None:
    """Keys to ask the database for; None (all rows) where it may not know them by silver's values: a BIGINT UNSIGNED
    is negative in silver, a TIME a number. It compares values, since it writes them in its own way (``000042``).
    """
    told = {each.name: each.told for each in columns}
    known = all(told[name].ordered for name in key)
    certain = all(isinstance(part, (str, int)) and not isinstance(part, bool) for each in keys or () for part in each)
    return keys if known and certain else None


def _filter_by_keys(rows: DataFrame, pair: Pair, keys: Keys) -> DataFrame:
    """The rows of some keys; NULL, which the source may have in a declared key, is a key like any other."""
    kinds = [each.dataType for each in rows.select(*map(names.quote_spark, pair.keys)).schema]
    schema = StructType([StructField(f"key {at}", kind) for at, kind in enumerate(kinds)])
    wanted = F.broadcast(gateway.create_frame(rows.sparkSession, [to_spark_key(key, kinds) for key in keys], schema))
    same = [F.col(names.quote_spark(name)).eqNullSafe(F.col(f"key {at}")) for at, name in enumerate(pair.keys)]
    return rows.join(wanted, reduce(and_, same), how="left_semi")


def _in_flight_keys(read: _Sides, found: Differences) -> Keys:
    """Keys that differ because silver has a change that the source had not yet when it was read."""
    if not found.differing or found.differing > KNOWN:
        return []
    late = _filter_by_keys(read.later, read.pair, found.keys(read.pair.keys)).collect()
    return [key_of_row(row, read.pair.keys) for row in late]


def _lag(spark: SparkSession, at: Refinement, name: str) -> int:
    """Commits of bronze with records of the table's topics that silver has not read; all since then, where the log has
    forgotten some.
    """
    bronze, table = at.lake.bronze(at.source.name), at.lake.silver(at.source.name, name)
    identity, newest = at.bronze.identity(spark, bronze), at.bronze.version(spark, bronze)
    progress = None if identity is None else at.silver.progress(spark, table, identity)
    if identity is None or newest is None or progress is None or progress.version >= newest:
        return 0
    came = at.bronze.arrivals(spark, bronze, progress.version, newest)
    if came is None:
        return newest - progress.version
    topics = routing.load_routes(at.control, at.lake.routes(at.source.name), identity).topics(name)
    return len({arrival.version for arrival in came if topics.intersection(arrival.partition)})
