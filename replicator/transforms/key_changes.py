"""Rows that change their key: what they inherit (debezium.md M7) and who left when two rows swap keys (C5).

Here changes have ``moved_keys.MOVE_COLUMNS``. An *arrival* is the insert under the new key, a *departure* the delete
under the old one. A key change is rare, and nothing of this is planned for a batch without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import MapType, StringType

from replicator import names
from replicator.debezium import position
from replicator.transforms import decode, fold, merge, occupants, truncate
from replicator.transforms.moved_keys import MOVE_COLUMNS
from replicator.transforms.shown import JSON
from replicator.transforms.transformed import PASSES


def registers(changes: DataFrame, keys: Sequence[str]) -> list[str]:
    """The columns that are neither key nor ours."""
    ours = {*merge.SYSTEM_COLUMNS, *MOVE_COLUMNS, "_unavailable", "_reject", PASSES}
    return [column for column in changes.columns if column not in keys and column not in ours]


def orphans(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Arrivals that lack values: ``_link`` (which arrival), ``_q`` (its ``_seq``), ``_old`` and ``_old_text``."""
    lacking = changes.where(F.col("_old").isNotNull() & (F.size("_unavailable") > 0))
    return lacking.select(_link(keys).alias("_link"), F.col("_seq").alias("_q"), "_old", "_old_text")


def departures(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Where rows left a key: the key and ``_seq``, whatever becomes of the delete."""
    return changes.where("_left").select(*map(names.spark, keys), "_seq")


def followed(links: DataFrame, left: DataFrame, stored: DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """The links whose row is known to the end under its old key: its departure was seen, among those that ``left`` or
    as what silver has of that key. Partitions may be read at different speeds, and what the row became in one that
    lags behind is still to come (C3). Offsets alone order one partition only.
    """
    by_offset = position.is_by_offset(F.col("_q"))
    gone = links.join(left, _is_old(keys, left) & position.is_copy(left["_seq"], F.col("_q"))).select("_link")
    found = links.where(by_offset).select("_link").unionByName(gone)
    if stored is not None:
        is_gone = stored["_deleted"] & position.is_copy(stored["_seq"], F.col("_q"))
        later = is_gone | (stored["_seq"] > F.col("_q"))
        found = found.unionByName(links.join(stored, _is_old(keys, stored) & later).select("_link"))
    return links.join(found, "_link", "left_semi")


def inherited(
    links: DataFrame, history: DataFrame, stored: DataFrame | None, keys: Sequence[str], truncates: Sequence[str]
) -> DataFrame:
    """What the rows of ``links`` held under their old keys, one row per link that is known in some column.

    ``history`` are changes, ``stored`` is silver; the links are :func:`followed` ones. Columns: ``_link``, the
    registers, and ``_known`` with the names of those whose value is known: the newest register below the arrival, but
    for the departure that belongs to it (M7), and above the last of the ``truncates`` (``_seq``) below it (T2).
    """
    columns = registers(history, keys)
    links = links.withColumn("_cut", truncate.last_below(F.col("_q"), truncates))
    folded = fold.fold(_below(links, history, keys, columns), ["_link"], partial=True)
    if stored is not None:
        present = [column for column in columns if column in stored.columns]
        between = (stored["_seq"] > links["_cut"]) & (stored["_seq"] < links["_q"])
        before = links.join(stored, _is_old(keys, stored) & between)
        before = before.withColumn("_column_seq", truncate.places_cleared(F.col("_cut")))
        nothing = [F.lit(None).cast(history.schema[c].dataType).alias(c) for c in columns if c not in present]
        before = before.select("_link", *map(names.spark, present), *nothing, *merge.SYSTEM_COLUMNS)
        folded = merge.join_rows(before.select(folded.columns), folded, ["_link"])
    known = F.array_compact(F.array(*[F.when(_is_known(column), F.lit(column)) for column in columns]))
    return folded.select("_link", *map(names.spark, columns), known.alias("_known")).where(F.size("_known") > 0)


def adopt(changes: DataFrame, values: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Changes whose missing values were found enter with them, as known at the arrival's own place."""
    columns = registers(changes, keys)
    renamed = values.select(
        F.col("_link").alias("_of"), F.struct(*map(names.spark, columns)).alias("_found"), F.col("_known")
    )
    joined = changes.withColumn("_link", _link(keys)).join(renamed, F.col("_link") == F.col("_of"), how="left")

    def value(column: str) -> Column:
        missing = F.array_contains("_unavailable", column) & F.array_contains("_known", column)
        own = F.col(names.spark(column))
        return F.when(missing, F.col("_found").getField(column)).otherwise(own).alias(column)

    left = F.when(F.col("_known").isNull(), F.col("_unavailable")).otherwise(F.array_except("_unavailable", "_known"))
    filled = {column: value(column) for column in columns} | {"_unavailable": left.alias("_unavailable")}
    return joined.select(*[filled.get(column, F.col(names.spark(column))) for column in changes.columns])


def contested(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Keys that some transaction gave a row and then took one from, with a change of keys on either side (C5)."""
    is_move = F.col("_left") | F.col("_old").isNotNull()
    of_transaction = (
        changes.where(F.col("_tx").isNotNull())
        .groupBy(*map(names.spark, keys), "_tx")
        .agg(
            F.min(F.when(F.col("_inserted"), F.col("_seq"))).alias("_came"),
            F.max(F.when(F.col("_deleted"), F.col("_seq"))).alias("_went"),
            F.max(is_move).alias("_moved"),
        )
    )
    return of_transaction.where("_came < _went AND _moved").select(*map(names.spark, keys)).distinct()


def judged(changes: DataFrame, images: DataFrame, held: DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """Which deletes of contested keys are not to be applied: the keys, ``_seq`` and ``_verdict`` (see `occupants`).

    ``changes`` is all that is known of these keys, ``images`` their deletes decoded with ``decode.befores``, ``held``
    the rows of silver that were there before.
    """
    columns = registers(images, keys)
    at = [*map(names.spark, keys), "_seq"]
    was = images.select(*at, _image(columns).alias("_was"), _is_whole(columns).alias("_whole"))
    kind = F.when(F.col("_deleted"), occupants.DELETE).when(F.col("_inserted"), occupants.INSERT)
    image = F.when(F.size(decode.unsent()) == 0, _image(columns))
    event = F.struct(
        "_seq",
        F.when(~position.is_by_offset(F.col("_seq")), position.place(F.col("_seq"))).alias("place"),
        "_tx",
        F.coalesce(kind, F.lit(occupants.WRITE)).alias("kind"),
        F.when(F.col("_deleted"), F.col("_was")).otherwise(image).alias("image"),
        F.coalesce("_whole", F.lit(False)).alias("whole"),
    )
    events = changes.join(was, [*keys, "_seq"], how="left").groupBy(*map(names.spark, keys))
    by_key = events.agg(F.collect_list(event).alias("_events"))
    rows = F.lit(None).cast("array<string>")
    if held is not None:
        whole = F.when(F.col("_column_seq").isNull(), _image(columns))
        before = held.select(*map(names.spark, keys), F.array(whole).alias("_held"))
        by_key, rows = by_key.join(before, list(keys), how="left"), F.col("_held")
    found = F.explode(_verdicts(F.col("_events"), rows))
    return by_key.select(*map(names.spark, keys), found.alias("_seq", "_verdict"))


def plain(changes: DataFrame) -> DataFrame:
    """Changes that know nothing of moves; where each record lies stays."""
    return changes.drop(*[column for column in MOVE_COLUMNS if column != "_at"])


def _link(keys: Sequence[str]) -> Column:
    return F.concat(F.to_json(F.struct(*map(names.spark, keys)), JSON), F.lit("@"), F.col("_seq"))


def _is_old(keys: Sequence[str], rows: DataFrame) -> Column:
    return reduce(lambda a, b: a & b, [F.col("_old").getField(key) == rows[names.spark(key)] for key in keys])


def _below(links: DataFrame, history: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """The changes of each link's old key below it, and above its cut, without the departure that belongs to it."""
    past = history.where(~F.col("_stays")).drop("_old", "_old_text", "_stays", "_tx", "_inserted")
    between = (past["_seq"] > F.col("_cut")) & (past["_seq"] < F.col("_q"))
    below = links.select("_link", "_q", "_cut", "_old").join(past, _is_old(keys, past) & between)
    newest = F.max(F.when(F.col("_left"), F.col("_seq"))).over(Window.partitionBy("_link"))
    below = below.withColumn("_newest", newest)
    nearest = position.is_by_offset(F.col("_q")) & (F.col("_seq") == F.col("_newest"))
    own = F.col("_left") & (position.is_copy(F.col("_seq"), F.col("_q")) | nearest)
    return below.where(~F.coalesce(own, F.lit(False))).select(
        "_link", *map(names.spark, columns), "_seq", "_deleted", "_source_ts_ms", "_unavailable"
    )


def _is_known(column: str) -> Column:
    place = F.coalesce(F.col("_column_seq")[F.lit(column)], merge.default_position(F.col("_seq"), F.col("_deleted")))
    return ~merge.is_unknown(place)


@F.udf(returnType=MapType(StringType(), StringType()), useArrow=False)
def _verdicts(events: Sequence[Row], held: Sequence[str | None] | None) -> dict[str, str]:
    # a fold with a list as its state, over the few events of a contested key: Spark's own aggregate was tried first
    return occupants.verdicts([occupants.Event(*event) for event in events], held or ())


def _image(columns: Sequence[str]) -> Column:
    """The values of a row as a text that is the same for equal rows."""
    return F.to_json(F.struct(*map(names.spark, columns)), JSON) if columns else F.lit("{}")


def _is_whole(columns: Sequence[str]) -> Column:
    """Whether a former row is certainly not PostgreSQL's filler."""
    known = [~_is_filler(F.col(names.spark(column))) for column in columns]
    return F.coalesce(reduce(lambda a, b: a | b, known, F.lit(False)), F.lit(False))


def _is_filler(value: Column) -> Column:
    """What PostgreSQL puts where it does not know the old row (E9)."""
    return value.isNull() | value.cast("string").isin("", "0", "false", "0.0")
