"""What changed in a table from one version to another: rows, not files."""

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
    """Two versions of a table: numbers or times, without a second one the newest. ``where`` is a condition in SQL that
    one of a row's two states must meet; ``raw`` looks at rows as they are stored, the deleted ones included.
    """

    table: Table
    since: int | datetime
    until: int | datetime | None = None
    where: str | None = None
    raw: bool = False


@dataclass(frozen=True)
class Changes:
    """What differs between two versions: ``rows`` as ``compare.changes`` describes them, and how many of each kind."""

    before: CommittedVersion
    after: CommittedVersion
    rows: DataFrame
    counts: Mapping[str, int]


@contextmanager
def changes(spark: SparkSession, tables_of: TableFormat, asked: DiffRequest) -> Iterator[Changes]:
    """The changes of a table, for the time of the block. Raises TableMissing, VersionMissing, and ConfigError for a
    condition that is none, a table whose key is not known, or versions that have not the same key.

    The feed of changes tells which keys to look at, as far as it reaches; else both versions are read whole.
    """
    session = tuning.session_for(spark, tables_of.size(spark, asked.table))
    sandbox.restrict(session)
    before = tables_of.moment(spark, asked.table, asked.since)
    until = tables_of.version(spark, asked.table) if asked.until is None else asked.until
    after = tables_of.moment(spark, asked.table, 0 if until is None else until)
    one, other = (tables_of.read(session, asked.table, each.version) for each in (before, after))
    table = with_key(other, asked.table)
    refuse_other_key(one, table, before)
    with ExitStack() as kept:
        changed = tables_of.changed_keys(session, table, *sorted((before.version, after.version)))
        if changed is not None:
            keys = kept.enter_context(tuning.persist(changed))
            one, other = (_filter_by_keys(side, keys, table.keys) for side in (one, other))
        rows = kept.enter_context(tuning.persist(_compare(one, other, table.keys, asked)))
        counts = {row["change"]: row["count"] for row in rows.groupBy("change").count().collect()}
        yield Changes(before, after, rows, {kind: counts.get(kind, 0) for kind in compare.KINDS})


def _compare(one: DataFrame, other: DataFrame, keys: tuple[str, ...], asked: DiffRequest) -> DataFrame:
    if not asked.raw:
        one, other, keys = select_live(one), select_live(other), display_keys(other, keys)
    if asked.where is not None:
        wanted = _matching_keys(one, asked.where, keys).union(_matching_keys(other, asked.where, keys))
        one, other = _filter_by_keys(one, wanted, keys), _filter_by_keys(other, wanted, keys)
    return compare.changes(one, other, keys)


def with_key(rows: DataFrame, table: Table) -> Table:
    """The table with its key: silver and what lies beside it note their own. Raises ConfigError for one that does not,
    and of which nobody has said it; for a key of columns that there are not, and for another one than rows note.
    """
    noted = own_key(rows.schema)
    asked = [key if key in rows.columns else names.encode(key) for key in table.keys if key]
    unknown = next((key for key in asked if key not in rows.columns), None)
    if unknown is not None:
        hint = suggest(names.decode(unknown), map(names.decode, rows.columns))
        mend = (
            f"Leave --key out: its rows note {_join_names(noted)}."
            if noted
            else "Name columns of its key: --key COLUMN,..."
        )
        raise ConfigError(
            f"{table.name} has no column {names.decode(unknown)!r}{hint}", where=table.location, mend=mend
        )
    if noted and asked and {*asked} - {history.KEY} != {*noted}:
        raise ConfigError(
            f"the key of {table.name} is {_join_names(noted)}, which its rows note",
            where=table.location,
            mend="Leave --key out: it is for gold tables that no model here describes.",
        )
    if noted or history.KEY in rows.columns:
        return replace(table, keys=(*noted, history.KEY) if history.KEY in rows.columns else noted)
    if not asked:
        mend = f"Add --key COLUMN,...; there are: {_join_names(rows.columns)}. With --env NAME, its model tells."
        raise ConfigError(f"the key of {table.name} is not known here", where=table.location, mend=mend)
    return replace(table, keys=tuple(asked))


def _join_names(columns: Iterable[str]) -> str:
    return ", ".join(map(names.decode, columns))


def refuse_other_key(before: DataFrame, table: Table, at: CommittedVersion) -> None:
    """Raise ConfigError where a rebuild has given the table another key: its rows are not the same ones then."""
    noted = own_key(before.schema)
    lost = [key for key in table.keys if key not in before.columns]
    if lost or (noted and {*noted} != {*table.keys} - {history.KEY}):
        now, was = _join_names(table.keys), _join_names(noted)
        has = f"the key {was}" if was else f"no column {lost[0]!r}"
        raise ConfigError(
            f"the key of {table.name} is {now}, and version {at.version} has {has}",
            where=table.location,
            mend="Compare versions of one key: all before it changed, or all from then on.",
        )


def display_keys(rows: DataFrame, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The names that users see the key columns of stored rows by."""
    if "_deleted" not in rows.columns:
        return keys
    return tuple(str(rows.schema[key].metadata.get("name") or names.decode(key)) for key in keys)


def _filter_by_keys(rows: DataFrame, keys: DataFrame, of: tuple[str, ...]) -> DataFrame:
    return rows.join(keys, list(of), how="left_semi")


def _matching_keys(rows: DataFrame, condition: str, keys: tuple[str, ...]) -> DataFrame:
    """The keys of rows that meet the condition."""
    try:
        return rows.where(F.expr(condition)).select(*map(names.quote_spark, keys))
    except (AnalysisException, ParseException) as error:
        raise ConfigError(f"--where {condition!r}: {first_line(error)}") from error
