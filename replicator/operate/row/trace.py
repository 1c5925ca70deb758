"""Everything the lake has about one row: the bronze records of its key as silver decodes them, dead letters, and the
stored row.

Only records that may be about the key are decoded: ``operate/row/key.py`` filters them by their text first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from replicator import names
from replicator.debezium import seq_format
from replicator.errors import ConfigError, TableMissing
from replicator.operate import dead_letters
from replicator.operate.progress import waiting
from replicator.operate.retry import with_positions
from replicator.operate.row import key
from replicator.spec import Declaration
from replicator.spelling import did_you_mean_table
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.stages.table import decoding
from replicator.stages.tick import epochs, routing, transaction_cut
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.table_share import TableShare
from replicator.stages.tick.tick_context import TickContext
from replicator.transforms import changes
from replicator.transforms.columns.layout import key_of
from replicator.transforms.dead_letters import COLUMNS, COORDINATES
from replicator.transforms.display import as_texts
from replicator.transforms.merge import SYSTEM_COLUMNS
from replicator.transforms.table_transform.steps import shard_name

Place = tuple[str, int, int]
"""Topic, partition, offset."""

_ENVELOPE_COLUMNS = ("table", "op", "key", "headers", "rule", "reason", "source_ts_ms", "ingested_at")


@dataclass(frozen=True)
class RowTrace:
    """The facts about one row; those about a record are keyed by its Kafka coordinates.

    ``key`` is the row's key, ``spoken`` the part of it that records carry (without the shard column). ``records``
    are those that may be about the key, as described by ``envelope.describe``; ``seqs`` has the ``_seq`` of each record
    of the table; ``changes`` are those of this key; ``letters`` have COLUMNS and ``dropped``. ``unread_places`` are
    records that silver has not read yet, ``held`` those that wait for complete transactions, ``held_back`` what they
    wait for.

    ``stored`` is silver's row with columns as texts (None: there is none); ``columns`` maps stored column names to
    source names; ``registers`` are the stored names without key and system columns. ``connector`` and ``order``
    determine how a ``_seq`` is displayed.
    """

    key: Mapping[str, str]
    spoken: Mapping[str, str]
    records: Mapping[Place, Row]
    seqs: Mapping[Place, str]
    changes: Mapping[Place, Row]
    letters: Mapping[Place, Row]
    unread_places: frozenset[Place]
    held: frozenset[Place]
    held_back: str
    stored: Row | None
    columns: Mapping[str, str]
    registers: tuple[str, ...]
    connector: str | None
    order: str


def find_table(
    spark: SparkSession, sources: Iterable[Refinement], name: str, models: Iterable[str] = ()
) -> tuple[Refinement, str]:
    """Return the silver table that ``[<source>/]<database or schema>.<table>``, or its last part, names. Raises
    ConfigError with the nearest name (also of ``models``, where these are allowed), and TableMissing for a table of
    which only bronze has records.
    """
    sources = tuple(sources)
    known = [
        (at, names.decode_table(folder))
        for at in sources
        for folder in at.silver.tables(spark, at.lake.silver_root(at.source.name))
    ]
    tables_by_name = {f"{at.source.name}/{table}": (at, table) for at, table in known}
    found = names.match_tables(name, tables_by_name)
    if not found:
        _refuse_unbuilt(spark, sources, name)
    if len(found) != 1:
        unknown = f"table {name!r} does not exist{did_you_mean_table(name, [*tables_by_name, *models])}"
        what = unknown if not found else f"{name!r} matches several tables"
        listed = ", ".join(sorted(found or tables_by_name)) or "no tables in this lake yet"
        raise ConfigError(what, fix=f"Available: {listed}.")
    return tables_by_name[found[0]]


def _refuse_unbuilt(spark: SparkSession, sources: Iterable[Refinement], name: str) -> None:
    """Raise TableMissing for a table that silver no longer has, or does not have yet: its topics are known."""
    for at in sources:
        bronze = at.bronze.identity(spark, at.lake.bronze(at.source.name))
        routes = routing.load_routes(at.control, at.lake.routes(at.source.name), bronze or "")
        tables = {f"{at.source.name}/{table}": table for table_names in routes.tables.values() for table in table_names}
        for full in names.match_tables(name, tables):
            raise TableMissing(
                f"silver does not have the table {full}, although bronze has records of it",
                where=at.lake.silver(at.source.name, tables[full]).location,
                fix="`replicator run silver` builds it, or reports what prevents that.",
            )


@dataclass(frozen=True)
class _RowQuery:
    """The requested row: ``key`` is its key by source column names, ``kinds`` are the types of the key columns.
    ``is_row`` selects the row in silver; ``shard`` is the key column that names the row's shard, '' if there is none.
    """

    key: Mapping[str, str]
    kinds: Mapping[str, str]
    is_row: Column
    shard: str

    @property
    def spoken(self) -> dict[str, str]:
        """The part of the key that records carry: all but the shard column."""
        return {name: text for name, text in self.key.items() if name != self.shard}

    def may_be_in(self, topic: str) -> bool:
        """Whether records of a topic may be about the row."""
        return not self.shard or shard_name(topic) == self.key[self.shard]


def read(spark: SparkSession, at: Refinement, table: str, key_text: str) -> RowTrace:
    """Return the facts about one row. Raises ConfigError where the key does not fit the table's."""
    bronze = at.lake.bronze(at.source.name)
    session = tuning.session_for(spark, at.bronze.size(spark, bronze), exact_names=True)
    stored = at.silver.read(session, at.lake.silver(at.source.name, table))
    query = _row_query(session, stored, at.source.declaration(table), key_text)
    upto, identity = at.bronze.version(spark, bronze) or 0, at.bronze.identity(spark, bronze) or ""
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), identity)
    context = TickContext(session, at, NewRecords(upto, {}), epochs.load(at.control, at.lake.epochs(at.source.name)))
    with _records(context, routes, table, query) as records:
        groups = tuple(g for g in changes.survey(records).collect() if g["table"] == table)
        share = TableShare(session, at, routes, NewRecords(upto, {}), table, groups, [], context.epochs)
        seqs, key_changes = _decode(share, records, query.is_row)
        records_by_place = by_place(
            records.where(F.col("table").isNull() | (F.col("table") == table)).select(*COORDINATES, *_ENVELOPE_COLUMNS)
        )
        waiting_places = _waiting(at, identity, records_by_place)
        waits = waiting.waiting(spark, at) if waiting_places else None
        return RowTrace(
            query.key,
            query.spoken,
            records=records_by_place,
            seqs=seqs,
            changes=key_changes,
            letters=by_place(_letters(session, at, records)),
            unread_places=_unread(session, share, records),
            held=waiting_places,
            held_back="" if waits is None else waits.reason,
            stored=_as_texts(stored.where(query.is_row)).first(),
            columns={f.name: f.metadata.get("name") or names.decode(f.name) for f in _source_fields(stored)},
            registers=tuple(f.name for f in _source_fields(stored) if "key" not in f.metadata),
            connector=next(filter(None, (seq_format.connector_of(group["value"]) for group in groups)), None),
            order=at.source.order(table),
        )


def _row_query(session: SparkSession, stored: DataFrame, declared: Declaration, key_text: str) -> _RowQuery:
    """Return the query for a key as typed. Raises ConfigError where it does not fit the table's key."""
    keys = {names.decode(name): name for name in key_of(stored.schema)}
    kinds = {name: dict(stored.dtypes)[column] for name, column in keys.items()}
    wanted = key.cast_values(session, key.parse(key_text, list(keys)), kinds)
    is_row = _is_row({keys[name]: text for name, text in wanted.items()})
    return _RowQuery(wanted, kinds, is_row, "" if declared.transform is None else declared.transform.shard)


@contextmanager
def _records(context: TickContext, routes: Routes, table: str, query: _RowQuery) -> Iterator[DataFrame]:
    """Yield the records that may be about the row, each decoded in the mode of its topic."""
    at = context.at
    topics = [topic for topic in routes.topics(table) if query.may_be_in(topic)]
    topic_records = at.bronze.read(context.spark, at.lake.bronze(at.source.name), context.new_records.upto)
    topic_records = topic_records.where(F.col("topic").isin(*topics))
    declared, by_time = at.source.declaration(table), [table] if at.source.by_time(table) else []
    # the key of an append-only table is in no record's text
    may_be = None if declared.append_only else key.may_match(query.spoken, query.kinds, in_row=bool(declared.keys))
    of_key = topic_records if may_be is None else topic_records.where(may_be)
    with (
        context.describe_any_shape(of_key, topics) as shaped,
        with_positions(context, shaped, topic_records) as described,
        tuning.persist(routing.apply_modes(described, routes, at.source, by_time=by_time)) as records,
    ):
        yield records


def by_place(rows: DataFrame) -> dict[Place, Row]:
    """Return rows with topic, partition and offset, keyed by these."""
    return {_place(row): row for row in rows.collect()}


def _decode(share: TableShare, records: DataFrame, is_row: Column) -> tuple[dict[Place, str], dict[Place, Row]]:
    """Return the ``_seq`` of each record that has one, and the changes of this key."""
    if not share.rows:
        return {}, {}
    with decoding.decode_share(share, records, places=True) as decoded:
        ordered = decoded.ordered.select(*COORDINATES, "_seq").where(F.col("_seq").isNotNull()).collect()
        change_frames = [decoded.changes, *([] if decoded.departed is None else [decoded.departed])]
        selected = [
            each.where(is_row).select(F.col("_at.*"), "_deleted", "_unavailable", "_reject") for each in change_frames
        ]
        return {_place(row): str(row["_seq"]) for row in ordered}, by_place(reduce(DataFrame.unionByName, selected))


def _letters(session: SparkSession, at: Refinement, records: DataFrame) -> DataFrame:
    """Return the dead letters of the given records, dropped ones first."""
    letters = [
        dead_letters.load_letters(session, at, dropped=dropped).select(*COLUMNS, F.lit(dropped).alias("dropped"))
        for dropped in (True, False)
    ]
    return (
        letters[0]
        .unionByName(letters[1])
        .join(records.select(*COORDINATES), list(COORDINATES), how="left_semi")
        .orderBy(F.desc("dropped"))
    )


def _unread(session: SparkSession, share: TableShare, records: DataFrame) -> frozenset[Place]:
    """Return those of the records that bronze received after the version that silver has applied."""
    at, topics = share.at, share.routes.topics(share.name)
    progress = at.silver.progress(session, share.table, share.routes.bronze)
    if progress is None or progress.version >= share.upto or not topics:
        return frozenset()
    after: dict[tuple[str, ...], int] = {(topic,): progress.version for topic in topics}
    added = at.bronze.added(session, at.lake.bronze(at.source.name), after, share.upto)
    if added is None:
        return frozenset()
    fresh = records.select(*COORDINATES).join(added.select(*COORDINATES), list(COORDINATES), how="left_semi")
    return frozenset(map(_place, fresh.collect()))


def _waiting(at: Refinement, bronze: str, records: Iterable[Place]) -> frozenset[Place]:
    """Return those of the records that wait until transactions are complete."""
    cut_state = transaction_cut.load_or_create(at, bronze)
    first = {} if cut_state is None else cut_state.cut.offsets
    return frozenset(place for place in records if place[:2] in first and place[2] >= first[place[:2]])


def _source_fields(stored: DataFrame) -> list[StructField]:
    return [field for field in stored.schema if field.name not in SYSTEM_COLUMNS]


def _as_texts(stored: DataFrame) -> DataFrame:
    """Return the row with all source columns as texts."""
    return stored.select(*as_texts(f.name for f in _source_fields(stored)), "_seq", "_deleted", "_column_seq")


def _is_row(wanted: Mapping[str, str]) -> Column:
    """Return the condition that the key columns, as texts, have these values. A text that is no value of its type
    matches no row.
    """
    same = [F.col(names.quote_spark(column)).cast("string") == text for column, text in wanted.items()]
    return reduce(lambda so_far, each: so_far & each, same)


def _place(row: Row) -> Place:
    return row["topic"], row["partition"], row["offset"]
