"""The rows that differ between two versions of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import names
from replicator.errors import ConfigError, first_line
from replicator.jvm import sandbox
from replicator.protocols import TableFormat
from replicator.spec import CommittedVersion, Table
from replicator.spelling import suggest
from replicator.stages import tuning
from replicator.transforms import history
from replicator.transforms.columns.layout import own_key
from replicator.transforms.comparison import compare
from replicator.transforms.live import select_live


@dataclass(frozen=True)
class DiffRequest:
    """Two versions of a table, as numbers or times; without ``until`` the second one is the newest. ``where`` is a SQL
    condition that at least one of a row's two states must meet; ``raw`` compares rows as they are stored, deleted ones
    included.
    """

    table: Table
    since: int | datetime
    until: int | datetime | None = None
    where: str | None = None
    raw: bool = False


@dataclass(frozen=True)
class Changes:
    """The differences between two versions: ``rows`` as ``compare.changes`` describes them, and the number of each
    kind.
    """

    before: CommittedVersion
    after: CommittedVersion
    rows: DataFrame
    counts: Mapping[str, int]


@contextmanager
def changes(spark: SparkSession, tables_of: TableFormat, request: DiffRequest) -> Iterator[Changes]:
    """Yield the changes of a table for the duration of the block. Raises TableMissing, VersionMissing, and ConfigError
    for an invalid condition, a table whose key is not known, or versions with different keys.

    The change feed names the keys to compare, if it covers both versions; else both versions are read in full.
    """
    session = tuning.session_for(spark, tables_of.size(spark, request.table))
    sandbox.restrict(session)
    before = tables_of.version_at(spark, request.table, request.since)
    until = tables_of.version(spark, request.table) if request.until is None else request.until
    after = tables_of.version_at(spark, request.table, 0 if until is None else until)
    before_rows, after_rows = (tables_of.read(session, request.table, each.version) for each in (before, after))
    table = with_key(after_rows, request.table)
    refuse_other_key(before_rows, table, before)
    with ExitStack() as stack:
        changed = tables_of.changed_keys(session, table, *sorted((before.version, after.version)))
        if changed is not None:
            keys = stack.enter_context(tuning.persist(changed))
            before_rows, after_rows = (_filter_by_keys(side, keys, table.keys) for side in (before_rows, after_rows))
        rows = stack.enter_context(tuning.persist(_compare(before_rows, after_rows, table.keys, request)))
        counts = {row["change"]: row["count"] for row in rows.groupBy("change").count().collect()}
        yield Changes(before, after, rows, {kind: counts.get(kind, 0) for kind in compare.KINDS})


def _compare(one: DataFrame, other: DataFrame, keys: tuple[str, ...], request: DiffRequest) -> DataFrame:
    if not request.raw:
        one, other, keys = select_live(one), select_live(other), display_keys(other, keys)
    if request.where is not None:
        matching = _matching_keys(one, request.where, keys).union(_matching_keys(other, request.where, keys))
        one, other = _filter_by_keys(one, matching, keys), _filter_by_keys(other, matching, keys)
    return compare.changes(one, other, keys)


def with_key(rows: DataFrame, table: Table) -> Table:
    """Return the table with its key: silver's tables and those derived from them record their own. Raises ConfigError
    for a table whose key is neither recorded nor given, for key columns that do not exist, and for a given key that
    differs from the recorded one.
    """
    noted = own_key(rows.schema)
    requested = [key if key in rows.columns else names.encode(key) for key in table.keys if key]
    unknown = next((key for key in requested if key not in rows.columns), None)
    if unknown is not None:
        hint = suggest(names.decode(unknown), map(names.decode, rows.columns))
        fix = (
            f"Omit --key: its rows record {_join_names(noted)}."
            if noted
            else "Name the columns of its key: --key COLUMN,..."
        )
        raise ConfigError(f"{table.name} has no column {names.decode(unknown)!r}{hint}", where=table.location, fix=fix)
    if noted and requested and {*requested} - {history.KEY} != {*noted}:
        raise ConfigError(
            f"the key of {table.name} is {_join_names(noted)}, which its rows record",
            where=table.location,
            fix="Omit --key: it is for gold tables that no model here describes.",
        )
    if noted or history.KEY in rows.columns:
        return replace(table, keys=(*noted, history.KEY) if history.KEY in rows.columns else noted)
    if not requested:
        fix = f"Add --key COLUMN,...; columns: {_join_names(rows.columns)}. With --env NAME, its model states the key."
        raise ConfigError(f"the key of {table.name} is not known here", where=table.location, fix=fix)
    return replace(table, keys=tuple(requested))


def _join_names(columns: Iterable[str]) -> str:
    return ", ".join(map(names.decode, columns))


def refuse_other_key(before: DataFrame, table: Table, at: CommittedVersion) -> None:
    """Raise ConfigError where a rebuild has changed the table's key since that version: the rows cannot be matched."""
    noted = own_key(before.schema)
    missing_keys = [key for key in table.keys if key not in before.columns]
    if missing_keys or (noted and {*noted} != {*table.keys} - {history.KEY}):
        key, earlier_key = _join_names(table.keys), _join_names(noted)
        has = f"the key {earlier_key}" if earlier_key else f"no column {missing_keys[0]!r}"
        raise ConfigError(
            f"the key of {table.name} is {key}, but version {at.version} has {has}",
            where=table.location,
            fix="Compare versions with the same key: all from before the key changed, or all from after.",
        )


def display_keys(rows: DataFrame, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names under which users see the key columns of stored rows."""
    if "_deleted" not in rows.columns:
        return keys
    return tuple(str(rows.schema[key].metadata.get("name") or names.decode(key)) for key in keys)


def _filter_by_keys(rows: DataFrame, keys: DataFrame, key_columns: tuple[str, ...]) -> DataFrame:
    return rows.join(keys, list(key_columns), how="left_semi")


def _matching_keys(rows: DataFrame, condition: str, keys: tuple[str, ...]) -> DataFrame:
    """Return the keys of the rows that meet the condition."""
    try:
        return rows.where(F.expr(condition)).select(*map(names.quote_spark, keys))
    except (AnalysisException, ParseException) as error:
        raise ConfigError(f"--where {condition!r}: {first_line(error)}") from error
