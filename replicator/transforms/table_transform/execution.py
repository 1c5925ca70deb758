"""Typed changes of a source table -> changes of the silver table that its ``transform`` makes of it.

Each change is changed by itself, so that any order, repetition and batching of changes ends in the same rows. A row for
which ``where`` does not hold is not in the table: whatever says so is a delete at its own ``_seq``
(:func:`apply_filter`), before whichever change it arrives; so is one for which ``as_deletes`` does. A column that is
made of one that was not sent is not known either (debezium.md E4); a filter needs rows that are whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.spec import Transform
from replicator.transforms.columns.layout import stored_name, version_of
from replicator.transforms.table_transform import as_deletes, hashing, steps
from replicator.transforms.table_transform import casts as casts_of
from replicator.transforms.table_transform.binding import BoundTransform
from replicator.transforms.table_transform.steps import PASSES


def transform_changes(changes: DataFrame, making: BoundTransform) -> DataFrame:
    """The changes, one for one, with the columns that the transform gives, and PASSES where some may not be in it."""
    told = making.transform
    rows = steps.apply_steps(changes, told, making.function, making.keys, making.table, making.over)
    rows = steps.with_passes(rows, told, making.passes_over)
    if told.hashed:
        rows = hashing.with_hmac_pads(rows, making.key)
    kinds = dict(rows.dtypes)
    values = [
        _hash_or_mask(F.col(names.quote_spark(before)), before, kinds[before], told).alias(name)
        for name, (before, _) in making.columns.items()
    ]
    unsent = _unsent(making)
    ours = {name: F.col(name) for name in steps.CHANGE_COLUMNS if name in rows.columns and name != as_deletes.IS_DELETE}
    ours["_unavailable"] = unsent
    if "_old" in ours:
        before = {field.name: field.dataType.simpleString() for field in changes.select("_old.*").schema}
        ours["_old"] = _old(making, before, kinds)
    if "_at" in ours:
        ours["_reject"] = _reject(making, unsent)
    return rows.select(*values, *[value.alias(name) for name, value in ours.items()])


def _reject(making: BoundTransform, unsent: Column) -> Column:
    """Why a change is a dead letter: what was wrong before, or what it did not send is needed to decide what it is."""
    wrong = F.col("_reject")
    if making.transform.as_deletes:
        lacking = as_deletes.undecided_column(making.deleted_by)
        undecided = steps.dead_letter(making.table, "delete_undecided", lacking)
        wrong = F.coalesce(wrong, F.when(lacking.isNotNull(), undecided))
    if making.transform.where:
        half = steps.dead_letter(making.table, "filter_incomplete")
        wrong = F.coalesce(wrong, F.when(_is_incomplete(making, unsent), half))
    return wrong


def apply_filter(changes: DataFrame) -> DataFrame:
    """Changes without PASSES: those that do not pass are deletes."""
    if PASSES not in changes.columns:
        return changes
    leaves = ~F.col(PASSES) & F.col("_reject").isNull()
    replaced = {
        "_deleted": F.col("_deleted") | leaves,
        "_unavailable": F.when(~leaves, F.col("_unavailable")),
    }
    kept = [name for name in changes.columns if name != PASSES]
    return changes.select(*[replaced.get(name, F.col(names.quote_spark(name))).alias(name) for name in kept])


def _hash_or_mask(value: Column, name: str, kind: str, transform: Transform) -> Column:
    """A value as it may rest."""
    first = version_of(name)[0]
    if first in steps.to_stored_names(transform.hashed, [first]):
        return hashing.hash_value(value, kind)
    return _masked(value.cast("string")) if first in steps.to_stored_names(transform.masked, [first]) else value


def _masked(text: Column) -> Column:
    """Letters as ``x`` and ``X``, digits as ``n``. Spark's ``mask`` leaves letters that have no case, and all that are
    two characters to Java; marks are the vowels of some scripts.
    """
    return F.regexp_replace(F.mask(text), r"[[\p{L}\p{M}]&&[^\x00-\x7f]]", "x")


def _unsent(making: BoundTransform) -> Column:
    """Names of the columns that are made of one that was not sent."""
    there = [
        F.when(F.arrays_overlap("_unavailable", _texts(sources)), F.lit(name))
        for name, sources in making.sources.items()
        if sources and name not in making.keys_there
    ]
    named = F.array_compact(F.array(*there)) if there else F.array()
    return F.when(F.size("_unavailable") > 0, named.cast("array<string>"))


def _is_incomplete(making: BoundTransform, unsent: Column) -> Column:
    """Whether a change does not know all of a row that is to be filtered."""
    asked = F.arrays_overlap("_unavailable", _texts(making.filtered_by)) if making.filtered_by else F.lit(False)
    return ~steps.is_delete(making.transform) & F.coalesce((F.size(unsent) > 0) | asked, F.lit(False))


def _old(making: BoundTransform, before: Mapping[str, str], kinds: Mapping[str, str]) -> Column:
    """The key that a row had before, as its columns are now; ``before`` are its types as they were sent."""
    casts = steps.cast_types(making.transform, making.keys)

    def value(key: str) -> Column:
        if key == stored_name(making.transform.shard or " "):
            return steps.shard()
        path = f"_old.{names.quote_spark(key)}"
        told = casts_of.exact_cast(path, before[key], kinds[key]) if key in casts else F.col(path)
        return _hash_or_mask(told, key, kinds[key], making.transform)

    pairs = zip(making.keys, making.keys_there, strict=True)
    return F.when(F.col("_old").isNotNull(), F.struct(*[value(key).alias(new) for key, new in pairs]))


def _texts(columns: frozenset[str]) -> Column:
    return F.array(*map(F.lit, sorted(columns)))
