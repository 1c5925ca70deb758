"""What the lake knows about one row: the bronze records of its key as silver decodes them, letters, the stored row.

Only records that may be about the key are decoded: ``operate/row/key.py`` looks at their texts first.
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
from replicator.stages.tick.order_checks import TickContext
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import changes
from replicator.transforms.columns.layout import key_of
from replicator.transforms.dead_letters import COLUMNS, COORDINATES
from replicator.transforms.merge import SYSTEM_COLUMNS
from replicator.transforms.table_transform.steps import shard_name

Place = tuple[str, int, int]
"""Topic, partition, offset."""

_ENVELOPE_COLUMNS = ("table", "op", "key", "headers", "rule", "reason", "source_ts_ms", "ingested_at")


@dataclass(frozen=True)
class RowTrace:
    """Facts about one row, by Kafka place where they are about a record.

    ``records`` are those that may be about the key, as ``envelope.describe`` has them; ``seqs`` has the ``_seq`` of
    each record of the table; ``changes`` are those of this key; ``letters`` have ``dropped`` beside COLUMNS;
    ``unread`` has silver not read yet, and ``held`` ones wait for what ``held_back`` says. ``stored`` is silver's row
    (None: none) with columns as texts; ``spoken`` is what of ``wanted`` records have: not which shard it is;
    ``columns`` maps their stored to their source names, ``registers`` are the stored names without key and system
    columns. ``connector`` and ``order`` say how a ``_seq`` is told.
    """

    wanted: Mapping[str, str]
    spoken: Mapping[str, str]
    records: Mapping[Place, Row]
    seqs: Mapping[Place, str]
    changes: Mapping[Place, Row]
    letters: Mapping[Place, Row]
    unread: frozenset[Place]
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
    """The silver table that ``[<source>/]<database or schema>.<table>`` or its last part names. Raises ConfigError with
    the nearest name, of ``models`` too where these may be meant, and TableMissing for one of which bronze alone has
    something.
    """
    sources = tuple(sources)
    known = [
        (at, names.decode_table(folder))
        for at in sources
        for folder in at.silver.tables(spark, at.lake.silver_root(at.source.name))
    ]
    every = {f"{at.source.name}/{table}": (at, table) for at, table in known}
    found = names.match_tables(name, every)
    if not found:
        _refuse_unbuilt(spark, sources, name)
    if len(found) != 1:
        unknown = f"there is no table {name!r}{did_you_mean_table(name, [*every, *models])}"
        what = unknown if not found else f"{name!r} may be any of several tables"
        listed = ", ".join(sorted(found or every)) or "no tables in this lake yet"
        raise ConfigError(what, mend=f"There are: {listed}.")
    return every[found[0]]


def _refuse_unbuilt(spark: SparkSession, sources: Iterable[Refinement], name: str) -> None:
    """Raise TableMissing for a table that silver had, or is yet to have: its topics are known."""
    for at in sources:
        bronze = at.bronze.identity(spark, at.lake.bronze(at.source.name))
        routes = routing.load_routes(at.control, at.lake.routes(at.source.name), bronze or "")
        tables = {f"{at.source.name}/{table}": table for told in routes.tables.values() for table in told}
        for full in names.match_tables(name, tables):
            raise TableMissing(
                f"silver does not have the table {full}, of which bronze has records",
                where=at.lake.silver(at.source.name, tables[full]).location,
                mend="`replicator run silver` builds it, or names what keeps it from that.",
            )


@dataclass(frozen=True)
class _RowQuery:
    """The row that is asked for: ``wanted`` is its key in the source's words, ``kinds`` are the types of that;
    ``is_row`` says which row of silver it is, ``shard`` is the column of the key that says of which shard it is, ''
    for none.
    """

    wanted: Mapping[str, str]
    kinds: Mapping[str, str]
    is_row: Column
    shard: str

    @property
    def spoken(self) -> dict[str, str]:
        """What of the key records have."""
        return {name: text for name, text in self.wanted.items() if name != self.shard}

    def may_be_in(self, topic: str) -> bool:
        """Whether records of a topic may be about the row."""
        return not self.shard or shard_name(topic) == self.wanted[self.shard]


def read(spark: SparkSession, at: Refinement, table: str, key_text: str) -> RowTrace:
    """The history of one row. Raises ConfigError where the key is not the table's."""
    bronze = at.lake.bronze(at.source.name)
    session = tuning.session_for(spark, at.bronze.size(spark, bronze), exact_names=True)
    stored = at.silver.read(session, at.lake.silver(at.source.name, table))
    asked = _row_query(session, stored, at.source.declaration(table), key_text)
    upto, identity = at.bronze.version(spark, bronze) or 0, at.bronze.identity(spark, bronze) or ""
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), identity)
    watch = TickContext(session, at, NewRecords(upto, {}), epochs.load(at.control, at.lake.epochs(at.source.name)))
    with _records(watch, routes, table, asked) as records:
        groups = tuple(g for g in changes.survey(records).collect() if g["table"] == table)
        share = TableShare(session, at, routes, NewRecords(upto, {}), table, groups, [], watch.epochs)
        seqs, mine = _decode(share, records, asked.is_row)
        every = by_place(
            records.where(F.col("table").isNull() | (F.col("table") == table)).select(*COORDINATES, *_ENVELOPE_COLUMNS)
        )
        held = _waiting(at, identity, every)
        waits = waiting.waiting(spark, at) if held else None
        return RowTrace(
            asked.wanted,
            asked.spoken,
            records=every,
            seqs=seqs,
            changes=mine,
            letters=by_place(_letters(session, at, records)),
            unread=_unread(session, share, records),
            held=held,
            held_back="" if waits is None else waits.reason,
            stored=_as_texts(stored.where(asked.is_row)).first(),
            columns={f.name: f.metadata.get("name") or names.decode(f.name) for f in _source_fields(stored)},
            registers=tuple(f.name for f in _source_fields(stored) if "key" not in f.metadata),
            connector=next(filter(None, (seq_format.connector_of(group["value"]) for group in groups)), None),
            order=at.source.order(table),
        )


def _row_query(session: SparkSession, stored: DataFrame, declared: Declaration, key_text: str) -> _RowQuery:
    """The row of a key as typed. Raises ConfigError where that is none of the table's."""
    keys = {names.decode(name): name for name in key_of(stored.schema)}
    kinds = {name: dict(stored.dtypes)[column] for name, column in keys.items()}
    wanted = key.cast_values(session, key.parse(key_text, list(keys)), kinds)
    is_row = _is_row({keys[name]: text for name, text in wanted.items()})
    return _RowQuery(wanted, kinds, is_row, "" if declared.transform is None else declared.transform.shard)


@contextmanager
def _records(watch: TickContext, routes: Routes, table: str, asked: _RowQuery) -> Iterator[DataFrame]:
    """The records that may be about the row, each read as its topic is."""
    at = watch.at
    topics = [topic for topic in routes.topics(table) if asked.may_be_in(topic)]
    whole = at.bronze.read(watch.spark, at.lake.bronze(at.source.name), watch.news.upto)
    whole = whole.where(F.col("topic").isin(*topics))
    declared, by_time = at.source.declaration(table), [table] if at.source.by_time(table) else []
    # of an append-only table no text of a record has the key
    may_be = None if declared.append_only else key.may_match(asked.spoken, asked.kinds, in_row=bool(declared.keys))
    of_key = whole if may_be is None else whole.where(may_be)
    with (
        watch.describe_any_shape(of_key, topics) as shaped,
        with_positions(watch, shaped, whole) as described,
        tuning.persist(routing.apply_modes(described, routes, at.source, by_time=by_time)) as records,
    ):
        yield records


def by_place(rows: DataFrame) -> dict[Place, Row]:
    """Rows with topic, partition and offset, by these."""
    return {_place(row): row for row in rows.collect()}


def _decode(share: TableShare, records: DataFrame, is_row: Column) -> tuple[dict[Place, str], dict[Place, Row]]:
    """``_seq`` of what has one, and the changes of this key."""
    if not share.rows:
        return {}, {}
    with decoding.decode_share(share, records, places=True) as decoded:
        ordered = decoded.ordered.select(*COORDINATES, "_seq").where(F.col("_seq").isNotNull()).collect()
        made = [decoded.changes, *([] if decoded.departed is None else [decoded.departed])]
        told = [each.where(is_row).select(F.col("_at.*"), "_deleted", "_unavailable", "_reject") for each in made]
        return {_place(row): str(row["_seq"]) for row in ordered}, by_place(reduce(DataFrame.unionByName, told))


def _letters(session: SparkSession, at: Refinement, records: DataFrame) -> DataFrame:
    """The letters about some records, the dropped ones first."""
    every = [
        dead_letters.load_letters(session, at, dropped=dropped).select(*COLUMNS, F.lit(dropped).alias("dropped"))
        for dropped in (True, False)
    ]
    return (
        every[0]
        .unionByName(every[1])
        .join(records.select(*COORDINATES), list(COORDINATES), how="left_semi")
        .orderBy(F.desc("dropped"))
    )


def _unread(session: SparkSession, share: TableShare, records: DataFrame) -> frozenset[Place]:
    """Which of the records bronze got after the version that silver has applied."""
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
    """Which of the records wait until transactions are whole."""
    stood = transaction_cut.load_or_create(at, bronze)
    first = {} if stood is None else stood.cut.offsets
    return frozenset(place for place in records if place[:2] in first and place[2] >= first[place[:2]])


def _source_fields(stored: DataFrame) -> list[StructField]:
    return [field for field in stored.schema if field.name not in SYSTEM_COLUMNS]


def _as_texts(stored: DataFrame) -> DataFrame:
    """The row with all columns of the source's as texts."""
    texts = [F.col(names.quote_spark(f.name)).cast("string").alias(f.name) for f in _source_fields(stored)]
    return stored.select(*texts, "_seq", "_deleted", "_column_seq")


def _is_row(wanted: Mapping[str, str]) -> Column:
    """The key columns, as texts, are these: a text that is none of the type's is simply not found."""
    same = [F.col(names.quote_spark(column)).cast("string") == text for column, text in wanted.items()]
    return reduce(lambda so_far, each: so_far & each, same)


def _place(row: Row) -> Place:
    return row["topic"], row["partition"], row["offset"]
