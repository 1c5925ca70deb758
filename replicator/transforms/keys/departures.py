"""Departures of updates that changed their row's key (``row_keys.py``): a *departure* is the delete of the row under
its former key, at the update's own ``_seq``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import position
from replicator.transforms.columns.layout import Layout
from replicator.transforms.keys import key_changes
from replicator.transforms.keys.row_keys import CAME_FROM


def departures(changes: DataFrame, layout: Layout) -> DataFrame:
    """Deletes under the former keys, for the changes that can be applied and changed their key. The changes have
    CAME_FROM, ``_at`` and the columns of ``layout``.
    """
    kinds = dict(changes.dtypes)
    moved = changes.where(F.col("_reject").isNull() & F.col(CAME_FROM).isNotNull())
    nothing = [F.lit(None).cast(kinds[name]).alias(name) for name in ("_unavailable", "_reject")]
    return moved.select(
        *[
            (F.col(CAME_FROM).getField(column) if column in layout.keys else F.lit(None).cast(kind)).alias(column)
            for column, kind in layout.types.items()
        ],
        "_seq",
        F.lit(True).alias("_deleted"),
        "_source_ts_ms",
        *nothing,
        "_at",
    )


def unoccupied_departures(
    deletes: DataFrame, images: DataFrame, changes: DataFrame, held: DataFrame | None, keys: Sequence[str]
) -> DataFrame:
    """The departures that leave no row under their key. If a source checks keys only at the end of a transaction, rows
    can pass keys on within it (C5), and another row may have taken the key before.

    ``images`` are the rows before these updates, by ``_at``; ``changes`` are the batch's, with CAME_FROM; ``held`` is
    silver before it. No row is left if the transaction brought no more rows to the key than left it, and what it wrote
    there last is the row that leaves. A row that is not completely known is taken for another one: ``verify`` reports a
    row that wrongly stays under a former key, but a wrongly deleted row is lost.
    """
    columns = key_changes.registers(images, keys)
    came = ~F.col("_deleted") & F.col(CAME_FROM).isNotNull()
    was = images.select("_at", key_changes.image(columns).alias("_was"))
    left = deletes.join(was, "_at", how="left")
    events = _events(changes.where(F.col("_reject").isNull()), came, key_changes.change_image(columns), keys)
    events = events.unionByName(_events(left, F.lit(False), F.col("_was"), keys))
    if held is not None:
        events = events.unionByName(_events(held, F.lit(False), key_changes.stored_image(columns), keys))
    judged = left.join(_before(left, events, keys), "_at", how="left")
    is_alone = F.coalesce(F.col("_there"), F.lit(0)) <= 1
    is_last = F.col("_newest").isNull() | (F.col("_newest") == F.col("_was"))
    return judged.where(is_alone & F.coalesce(is_last, F.lit(False))).select(*map(names.quote_spark, deletes.columns))


def _events(rows: DataFrame, came: Column, image: Column, keys: Sequence[str]) -> DataFrame:
    """The events of keys: whether a row was there afterwards, whether it ``_came`` from another key, and its image, ''
    if unknown.
    """
    return rows.select(
        key_changes.key_struct(keys),
        F.col("_seq").alias("_then"),
        (~F.col("_deleted")).alias("_is_there"),
        came.alias("_came"),
        F.coalesce(image, F.lit("")).alias("_image"),
    )


def _before(deletes: DataFrame, events: DataFrame, keys: Sequence[str]) -> DataFrame:
    """For each departure (``_at``, and the row that it ``_was``), how many rows were ``_there`` under its key just
    before it, and the ``_newest`` image that its transaction wrote there. A redelivery (the same place, which other
    changes may share, and the same image) counts once. Offsets alone do not identify transactions.
    """
    own, then, is_there = F.col("_seq"), F.col("_then"), F.col("_is_there")
    place = F.struct(position.without_offset(then), "_image")
    was = F.coalesce("_was", F.lit("")).alias("_was")
    of_key = deletes.select(key_changes.key_struct(keys), "_seq", "_at", was).join(events, "_key")
    is_copy = (
        (position.without_offset(then) == position.without_offset(own)) & ~is_there & (F.col("_image") == F.col("_was"))
    )
    earlier = of_key.where(~position.is_by_offset(own) & (then < own) & ~is_copy)
    is_same = position.major(then) == position.major(own)
    return (
        earlier.groupBy("_at")
        .agg(
            F.max_by(is_there.cast("int"), F.when(~is_same, then)).alias("_prior"),
            F.size(F.collect_set(F.when(is_same & F.col("_came"), place))).alias("_in"),
            F.size(F.collect_set(F.when(is_same & ~is_there, place))).alias("_out"),
            F.max_by("_image", F.when(is_same & is_there, then)).alias("_newest"),
        )
        .select("_at", (F.coalesce("_prior", F.lit(0)) + F.col("_in") - F.col("_out")).alias("_there"), "_newest")
    )
