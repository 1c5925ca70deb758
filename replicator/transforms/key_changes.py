"""Rows that change their key: what they inherit (debezium.md M7) and who left when two rows swap keys (C5).

Here changes have ``decode.MOVE_COLUMNS``. An *arrival* is the insert under the new key, a *departure* the delete under
the old one. A key change is rare, and nothing of this is planned for a batch without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import position
from replicator.transforms import decode, fold, merge
from replicator.transforms.decode import MOVE_COLUMNS


def registers(changes: DataFrame, keys: Sequence[str]) -> list[str]:
    """The columns that are neither key nor ours."""
    ours = {*merge.SYSTEM_COLUMNS, *MOVE_COLUMNS, "_unavailable", "_reject"}
    return [column for column in changes.columns if column not in keys and column not in ours]


def orphans(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Arrivals that lack values: ``_link`` (which arrival), ``_q`` (its ``_seq``), ``_old`` and ``_old_text``."""
    lacking = changes.where(F.col("_old").isNotNull() & (F.size("_unavailable") > 0))
    return lacking.select(_link(keys).alias("_link"), F.col("_seq").alias("_q"), "_old", "_old_text")


def inherited(links: DataFrame, history: DataFrame, stored: DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """What the rows of ``links`` held under their old keys, one row per link that is known in some column.

    ``history`` are changes, ``stored`` is silver. Columns: ``_link``, the registers, and ``_known`` with the names of
    those whose value is known: the newest register below the arrival, but for the departure that belongs to it (M7).
    """
    columns = registers(history, keys)
    folded = fold.fold(_below(links, history, keys, columns), ["_link"], partial=True)
    if stored is not None:
        present = [column for column in columns if column in stored.columns]
        before = links.join(stored, _is_old(keys, stored) & (stored["_seq"] < links["_q"]))
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


def overtaken(changes: DataFrame, arrivals: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Departures from a key that another row had taken earlier in the same transaction (C5), one row each.

    Columns: the keys, ``_seq`` of the departure, ``_taken`` (the ``_seq`` of the newest such arrival), ``_came`` (its
    registers as a struct) and ``_unsent`` (those of them that it does not know). ``arrivals`` are changes.
    """
    columns = registers(changes, keys)
    left = changes.where("_left").select(*map(names.spark, keys), "_seq", F.col("_tx").alias("_left_in"))
    came = arrivals.where(F.col("_old").isNotNull()).select(
        *[F.col(names.spark(key)).alias(f"_at_{index}") for index, key in enumerate(keys)],
        F.struct(
            F.col("_seq").alias("_taken"),
            F.struct(*map(names.spark, columns)).alias("_came"),
            decode.unsent().alias("_unsent"),
        ).alias("_arrival"),
        F.col("_tx").alias("_came_in"),
    )
    same_key = [F.col(names.spark(key)) == F.col(f"_at_{index}") for index, key in enumerate(keys)]
    before = (F.col("_left_in") == F.col("_came_in")) & (F.col("_arrival._taken") < F.col("_seq"))
    both = left.join(came, reduce(lambda a, b: a & b, same_key, before))
    newest = both.groupBy(*map(names.spark, keys), "_seq").agg(
        F.max_by("_arrival", "_arrival._taken").alias("_arrival")
    )
    return newest.select(*map(names.spark, keys), "_seq", "_arrival._taken", "_arrival._came", "_arrival._unsent")


def judged(suspects: DataFrame, images: DataFrame, states: DataFrame, keys: Sequence[str]) -> DataFrame:
    """What each suspect of :func:`overtaken` is: the keys, ``_seq`` and ``_verdict``, NULL where it is to be applied.

    ``key_swap``: it took away the key's former owner, so the row that is there now stays. ``key_swap_ambiguous``: the
    record does not hold the whole row (E9), and the key may have had an owner before. ``images`` are the departures
    decoded with ``decode.befores``; ``states`` have keys, ``_seq`` and ``_deleted`` of everything known.
    """
    columns = registers(images, keys)
    at = [*keys, "_seq"]
    image = images.select(*map(names.spark, at), F.struct(*map(names.spark, columns)).alias("_before"))
    former = states.select(
        *map(names.spark, keys), F.struct(F.col("_seq").alias("_was"), F.col("_deleted").alias("_dead")).alias("_state")
    )
    before = (F.col("_state._was") < F.col("_taken")) & ~_is_copy("_state._was", "_taken")
    earlier = suspects.join(former, list(keys), how="left").where(F.col("_state").isNull() | before)
    owned = earlier.groupBy(*map(names.spark, at)).agg(F.max_by(~F.col("_state._dead"), "_state._was").alias("_owned"))
    compared = suspects.join(image, at, how="left").join(owned, at, how="left")
    differs = [~_agrees(column) for column in columns]
    whole = [~_is_filler(F.col("_before").getField(column)) for column in columns]
    is_other = reduce(lambda a, b: a | b, differs, F.lit(False))
    is_whole = F.coalesce(reduce(lambda a, b: a | b, whole, F.lit(False)), F.lit(False))
    was_owned = F.coalesce("_owned", F.lit(False))
    verdict = F.when(is_whole & is_other, "key_swap").when(~is_whole & was_owned, "key_swap_ambiguous")
    return compared.select(*map(names.spark, at), verdict.alias("_verdict"))


def plain(changes: DataFrame) -> DataFrame:
    """Changes without MOVE_COLUMNS, as the fold takes them."""
    return changes.drop(*MOVE_COLUMNS)


def _link(keys: Sequence[str]) -> Column:
    return F.concat(F.to_json(F.struct(*map(names.spark, keys))), F.lit("@"), F.col("_seq"))


def _is_old(keys: Sequence[str], rows: DataFrame) -> Column:
    return reduce(lambda a, b: a & b, [F.col("_old").getField(key) == rows[names.spark(key)] for key in keys])


def _is_copy(one: str, other: str) -> Column:
    """Whether two ``_seq`` are of one place in the source: what a connector sends again has it too (J1)."""
    same = position.place(F.col(one)) == position.place(F.col(other))
    return same & ~position.is_by_offset(F.col(other))


def _below(links: DataFrame, history: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """The changes of each link's old key below it, without the departure that belongs to it."""
    past = history.drop("_old", "_old_text", "_tx")
    below = links.select("_link", "_q", "_old").join(past, _is_old(keys, past) & (past["_seq"] < F.col("_q")))
    newest = F.max(F.when(F.col("_left"), F.col("_seq"))).over(Window.partitionBy("_link"))
    below = below.withColumn("_newest", newest)
    nearest = position.is_by_offset(F.col("_q")) & (F.col("_seq") == F.col("_newest"))
    own = F.col("_left") & (_is_copy("_seq", "_q") | nearest)
    return below.where(~F.coalesce(own, F.lit(False))).select(
        "_link", *map(names.spark, columns), "_seq", "_deleted", "_source_ts_ms", "_unavailable"
    )


def _is_known(column: str) -> Column:
    place = F.coalesce(F.col("_column_seq")[F.lit(column)], merge.default_position(F.col("_seq"), F.col("_deleted")))
    return (place != "") & ~place.endswith("-")


def _agrees(column: str) -> Column:
    """A column that the arrival does not know tells nothing."""
    came, was = F.col("_came").getField(column), F.col("_before").getField(column)
    return F.array_contains("_unsent", column) | came.eqNullSafe(was)


def _is_filler(value: Column) -> Column:
    """What PostgreSQL puts where it does not know the old row (E9)."""
    return value.isNull() | value.cast("string").isin("", "0", "false", "0.0")
