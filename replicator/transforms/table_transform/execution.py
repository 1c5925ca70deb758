"""Execution of a ``transform``: typed changes of a source table become changes of its silver table.

Each change is transformed by itself, so that any order, redelivery and batching of changes ends in the same rows. A row
that does not satisfy ``where`` is not in the table: its change becomes a delete at its own ``_seq``
(:func:`apply_filter`); so does one that satisfies ``as_deletes``. A column computed from one that was not sent is
unknown, too (debezium.md E4); a filter needs complete rows.
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
    """The changes, one to one, with the transform's columns, and PASSES if some may not be in the table."""
    transform = making.transform
    rows = steps.apply_steps(changes, transform, making.function, making.keys, making.table, making.over)
    rows = steps.with_passes(rows, transform, making.passes_over)
    if transform.hashed:
        rows = hashing.with_hmac_pads(rows, making.key)
    kinds = dict(rows.dtypes)
    values = [
        _hash_or_mask(F.col(names.quote_spark(before)), before, kinds[before], transform).alias(name)
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
    """The dead letter of a change: that from before, or one since it did not send a column that is needed to decide."""
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
    """Drop PASSES from changes and turn those that do not pass into deletes."""
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
    """The value to store: hashed, masked or unchanged."""
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
    """Names of the columns that are computed from one that was not sent."""
    there = [
        F.when(F.arrays_overlap("_unavailable", _texts(sources)), F.lit(name))
        for name, sources in making.sources.items()
        if sources and name not in making.keys_there
    ]
    named = F.array_compact(F.array(*there)) if there else F.array()
    return F.when(F.size("_unavailable") > 0, named.cast("array<string>"))


def _is_incomplete(making: BoundTransform, unsent: Column) -> Column:
    """Whether a change lacks a part of a row that is to be filtered."""
    asked = F.arrays_overlap("_unavailable", _texts(making.filtered_by)) if making.filtered_by else F.lit(False)
    return ~steps.is_delete(making.transform) & F.coalesce((F.size(unsent) > 0) | asked, F.lit(False))


def _old(making: BoundTransform, before: Mapping[str, str], kinds: Mapping[str, str]) -> Column:
    """The former key of a row in the types of its present columns; ``before`` are the types as sent."""
    casts = steps.cast_types(making.transform, making.keys)

    def value(key: str) -> Column:
        if key == stored_name(making.transform.shard or " "):
            return steps.shard()
        path = f"_old.{names.quote_spark(key)}"
        former = casts_of.exact_cast(path, before[key], kinds[key]) if key in casts else F.col(path)
        return _hash_or_mask(former, key, kinds[key], making.transform)

    pairs = zip(making.keys, making.keys_there, strict=True)
    return F.when(F.col("_old").isNotNull(), F.struct(*[value(key).alias(new) for key, new in pairs]))


def _texts(columns: frozenset[str]) -> Column:
    return F.array(*map(F.lit, sorted(columns)))
