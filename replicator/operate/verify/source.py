"""Comparison of the live source with silver: all rows of a table in one transaction, and silver's live rows at its
newest version.

The two are never read at exactly the same moment of the source. Differing keys are therefore read again, in a new
transaction and with silver's then newest version, until they are equal or the waiting time is over. Keys that still
differ only because silver already has a later change than the last transaction could see are in flight; all others are
differences.
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
from replicator.errors import TableMissing
from replicator.jvm import gateway
from replicator.operate.verify import compared_columns, missing_tables, ranges
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
from replicator.transforms.columns.layout import key_of

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
    """The keys to compare: those in ``ranges``, or only ``keys``. None: not determined yet."""

    ranges: Ranges | None = None
    keys: Keys | None = None


@dataclass(frozen=True)
class _Sides:
    """Both sides; ``later`` are keys of silver rows that changed after the source was read; ``unknown`` describes
    columns that are not compared.
    """

    pair: Pair
    later: DataFrame
    unknown: tuple[str, ...]
    position: str


@dataclass(frozen=True)
class _Attempt:
    """One comparison: the differences, the compared pair, the columns that were not compared, the number of keys in
    flight, and the position of both sides.
    """

    found: Differences
    pair: Pair
    unknown: tuple[str, ...]
    in_flight: int
    position: str


def comparisons(spark: SparkSession, at: Refinement, database: Database, *, asked: bool = False) -> list[Comparison]:
    """Return a comparison for every silver table that corresponds to one table of the source, and for those that the
    source's file names and silver does not have. Not comparable: tables of outbox events (they contain something else
    than the source's table), of shards (they have several tables), and append-only tables (their rows cannot be
    matched). A table that the file leaves out (``exclude``) stays as it was when it was last read; it is compared only
    if it was ``asked`` for by name.
    """
    folders = at.silver.tables(spark, at.lake.silver_root(at.source.name))
    silver_names = map(names.decode_table, folders)
    silver_tables = {name for name in silver_names if asked or topicnames.includes_table(at.source, name)}
    known = {name.casefold() for name in silver_tables}
    # an outbox router's tables do not exist in the database
    declarations = at.source.tables if at.source.default.outbox is None else ()
    declared = {each.table for each in declarations if topicnames.includes_table(at.source, each.table)}
    absent = {name for name in declared if name.casefold() not in known}
    comparable = [name for name in sorted(silver_tables | absent) if _is_comparable(at.source.declaration(name))]
    places = [_SourceTable(at, name, database) for name in comparable]
    return [_missing_table(place) if place.name in absent else _comparison(place) for place in places]


def _is_comparable(declared: Declaration) -> bool:
    return declared.outbox is None and not declared.append_only and not declared.shards


def _missing_table(place: _SourceTable) -> Comparison:
    return missing_tables.comparison(place.table.name, place.name, place.database, place.against)


def _comparison(place: _SourceTable) -> Comparison:
    def size(spark: SparkSession) -> int:
        return 3 * place.at.silver.read(spark, place.table).count()

    return Comparison(SOURCE, place.table.name, place.against, partial(_compare, place=place), size)


def _compare(spark: SparkSession, verdict: Verdict, options: VerifyOptions, *, place: _SourceTable) -> Verdict:
    spark = tuning.session_for(spark, place.at.silver.size(spark, place.table), exact_names=True)
    deadline = time.monotonic() + options.wait
    first_attempt = last_attempt = _attempt(spark, place, options, _Scope())
    while last_attempt.found.key_count and time.monotonic() < deadline:
        time.sleep(min(_PAUSE_SECONDS, max(0.0, deadline - time.monotonic())))
        last_attempt = _attempt(spark, place, options, _next_scope(last_attempt))
    found = replace(last_attempt.found, total=first_attempt.found.total)
    verdict = replace(
        verdict, in_flight=last_attempt.in_flight, not_compared=first_attempt.unknown, position=last_attempt.position
    )
    verdict = replace(verdict, behind=_lag(spark, place.at, place.name))
    return to_verdict(verdict, first_attempt.pair, found, options)


def _next_scope(attempt: _Attempt) -> _Scope:
    """Return the keys to compare again, or their ranges where there are too many keys."""
    found, parts = attempt.found, attempt.pair.ranges
    if found.key_count <= KNOWN:
        return _Scope(parts, found.keys(attempt.pair.keys))
    return _Scope(found.where(parts))


def _attempt(spark: SparkSession, place: _SourceTable, options: VerifyOptions, scope: _Scope) -> _Attempt:
    with tempfile.TemporaryDirectory(prefix="replicator-verify-") as folder:
        sides = _read(spark, place, options, scope, Path(folder))
        found = find_differences(sides.pair, options)
        in_flight = _in_flight_keys(sides, found)
        return _Attempt(found.without(in_flight, sides.pair), sides.pair, sides.unknown, len(in_flight), sides.position)


def _read(spark: SparkSession, place: _SourceTable, options: VerifyOptions, scope: _Scope, folder: Path) -> _Sides:
    """Read the source's rows into a file, and silver's live rows; the transaction ends with the last row."""
    with place.database.read_snapshot() as snapshot:
        version = place.at.silver.version(spark, place.table)
        if version is None:
            raise TableMissing("the table does not exist", where=place.table.location)
        silver = place.at.silver.read(spark, place.table, version)
        origin = _origin(spark, place)
        schema = silver.schema if origin is None else origin
        columns, unknown = compared_columns.match(schema, snapshot, place.name, place.table.name)
        key, silver_rows = key_of(schema), silver.where(~F.col("_deleted"))
        parts, queried_keys = Ranges(), None
        if origin is None:
            columns, queried_keys = with_text_fallback(columns, key), _queryable_keys(scope.keys, key, columns)
            silver_rows = silver_rows.select(
                [each.from_value(F.col(names.quote_spark(each.name))).alias(each.name) for each in columns]
            )
            parts = ranges.build(silver_rows, key, options.share) if scope.ranges is None else scope.ranges
        source_rows = extract(
            spark, snapshot, ExtractQuery(place.name, columns, key, queried_keys, parts), folder, options.advance
        )
    meanings: Mapping[str, str] = {each.name: each.codec.meaning for each in columns}
    if origin is not None:
        made = apply_transform(place.at, place.name, source_rows, origin, meanings)
        source_rows, key, meanings, unknown = made.rows, made.keys, made.meanings, (*unknown, *made.unknown)
        silver_rows = silver_rows.select(*map(names.quote_spark, source_rows.columns))
    pair = Pair(source_rows, silver_rows, key, meanings, parts)
    if scope.keys is not None:
        pair = replace(
            pair,
            one=_filter_by_keys(source_rows, pair, scope.keys),
            other=_filter_by_keys(silver_rows, pair, scope.keys),
        )
    later = silver.where(_changed_later(snapshot, place)).select(*map(names.quote_spark, key))
    position = f"silver version {version}" + (f", source at {snapshot.position}" if snapshot.position else "")
    return _Sides(pair, later, unknown, position)


def _changed_later(snapshot: DatabaseSnapshot, place: _SourceTable) -> Column:
    """Return the condition that a silver row's change is later than the position of the source's log. Only positions of
    the newest epoch are of this log, and only orders by position have such positions.
    """
    at = place.at
    if at.source.order(place.name) not in (BY_POSITION, "file_pos_row"):
        return F.lit(False)
    newest = epochs.load(at.control, at.lake.epochs(at.source.name)).newest
    return F.col("_seq").startswith(newest) & snapshot.is_after(F.col("_seq"))


def _origin(spark: SparkSession, place: _SourceTable) -> StructType | None:
    """Return the columns at the source of a transformed table; None for other tables. Raises TransformChanged."""
    at = place.at
    if at.source.declaration(place.name).transform is None:
        return None
    bronze = at.bronze.identity(spark, at.lake.bronze(at.source.name)) or ""
    found = transform_origins.load_by_name(at, place.name, bronze)
    transform_origins.refuse_changed(at, place.name, found)
    return None if found is None else found.columns


def _queryable_keys(keys: Keys | None, key: Sequence[str], columns: Sequence[ComparedColumn]) -> Keys | None:
    """Return the keys to query in the database; None (all rows) where the database may not find them by silver's
    values: a BIGINT UNSIGNED is negative in silver, a TIME is a number. The database compares values, not texts, since
    it formats them in its own way (``000042``).
    """
    codecs = {each.name: each.codec for each in columns}
    known = all(codecs[name].ordered for name in key)
    are_plain = all(isinstance(part, (str, int)) and not isinstance(part, bool) for each in keys or () for part in each)
    return keys if known and are_plain else None


def _filter_by_keys(rows: DataFrame, pair: Pair, keys: Keys) -> DataFrame:
    """Return the rows with these keys; NULL, which the source may have in a declared key, is a key like any other."""
    kinds = [each.dataType for each in rows.select(*map(names.quote_spark, pair.keys)).schema]
    schema = StructType([StructField(f"key {index}", kind) for index, kind in enumerate(kinds)])
    wanted = F.broadcast(gateway.create_frame(rows.sparkSession, [to_spark_key(key, kinds) for key in keys], schema))
    conditions = [
        F.col(names.quote_spark(name)).eqNullSafe(F.col(f"key {index}")) for index, name in enumerate(pair.keys)
    ]
    return rows.join(wanted, reduce(and_, conditions), how="left_semi")


def _in_flight_keys(sides: _Sides, found: Differences) -> Keys:
    """Return the keys that differ because silver has a change that the source did not have yet when it was read."""
    if not found.key_count or found.key_count > KNOWN:
        return []
    changed_later = _filter_by_keys(sides.later, sides.pair, found.keys(sides.pair.keys)).collect()
    return [key_of_row(row, sides.pair.keys) for row in changed_later]


def _lag(spark: SparkSession, at: Refinement, name: str) -> int:
    """Return the number of bronze commits with records of the table's topics that silver has not read; all commits
    since then, where the log no longer has some.
    """
    bronze, table = at.lake.bronze(at.source.name), at.lake.silver(at.source.name, name)
    identity, newest = at.bronze.identity(spark, bronze), at.bronze.version(spark, bronze)
    progress = None if identity is None else at.silver.progress(spark, table, identity)
    if identity is None or newest is None or progress is None or progress.version >= newest:
        return 0
    arrivals = at.bronze.arrivals(spark, bronze, progress.version, newest)
    if arrivals is None:
        return newest - progress.version
    topics = routing.load_routes(at.control, at.lake.routes(at.source.name), identity).topics(name)
    return len({arrival.version for arrival in arrivals if topics.intersection(arrival.partition)})
