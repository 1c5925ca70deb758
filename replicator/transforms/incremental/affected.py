"""The rows of a gold model that a change of its inputs can affect, and their recomputation (gold.md, steps 1 to 4).

Correct for trees of N:1 look-ups from a grain: a row of the model is determined by at most one row of each input. The
model's SQL is passed as a function of its inputs, so that a part of an input gives a part of the model's rows. A NULL
in a lineage column means that no row of the input was used: it never matches. A lineage column is compared with the
input's key as Spark compares the two types; the caller makes sure that it can hold every value of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.transforms import spans
from replicator.transforms.spans import Spans

Query = Callable[[Mapping[str, DataFrame]], DataFrame]
"""A model's SQL: from the rows of its inputs, by placeholder, to the model's rows."""


@dataclass(frozen=True)
class InputUse:
    """One use of an input by a model: its present ``rows``, one per key (of a history all states); its key columns
    ``keys``; the model's columns ``lineage`` that hold them, in the same order; and the distinct keys that ``changed``
    (inserted, updated or deleted), in columns named as ``keys`` (None: none did). ``spans`` are the spans of the
    changed keys, as far as known.
    """

    rows: DataFrame
    keys: tuple[str, ...]
    lineage: tuple[str, ...]
    changed: DataFrame | None = None
    spans: Spans = field(default_factory=dict)


def affected_rows(query: Query, stored: DataFrame, uses: Mapping[str, InputUse], key: Sequence[str]) -> DataFrame:
    """Steps 1 to 3: the rows that the model has (``stored``) or will have and that use a changed row of some input.

    Columns: the model's key and all lineage columns. A row occurs once per side and input that affects it.
    """
    columns = [names.quote_spark(column) for column in lineage_columns(uses, key)]
    sides = [_old_side(stored.select(*columns), uses).select(*columns)]
    whole = {name: use.rows for name, use in uses.items()}
    for name, use in uses.items():
        if use.changed is not None:
            near = use.rows.where(spans.may_match(use.rows, use.keys, use.spans, use.keys))
            part = semi_join(near, use.keys, use.changed, use.keys)
            rows = query({**whole, name: part}).select(*columns)
            # a left join against a part of an input gives false rows without a match: those lack this lineage
            sides.append(semi_join(rows, use.lineage, use.changed, use.keys))
    return reduce(DataFrame.unionByName, sides)


def affected_by_key(uses: Mapping[str, InputUse], key: Sequence[str]) -> tuple[DataFrame, Spans] | None:
    """The shortcut for :func:`affected_rows` if only one input changed, used once, whose key is the model's own: the
    changed keys, including those without a row, without other lineage columns; and their spans. Otherwise None.
    """
    moved = [(use, use.changed) for use in uses.values() if use.changed is not None]
    if len(moved) != 1:
        return None
    [(use, changed)] = moved
    if sorted(use.lineage) != sorted(key):
        return None
    named = dict(zip(use.lineage, use.keys, strict=True))
    lie = {column: use.spans[name] for column, name in named.items() if name in use.spans}
    return changed.select(*[F.col(names.quote_spark(named[column])).alias(column) for column in key]), lie


def lineage_columns(uses: Mapping[str, InputUse], key: Sequence[str]) -> list[str]:
    """The model's key, followed by the lineage columns that are not in it."""
    return list(dict.fromkeys([*key, *(column for use in uses.values() for column in use.lineage)]))


def recompute(
    query: Query,
    uses: Mapping[str, InputUse],
    lines: DataFrame,
    keys: DataFrame,
    key: Sequence[str],
    *,
    near: bool,
    lie: Spans = MappingProxyType({}),
    firm: Collection[str] = (),
) -> DataFrame:
    """Step 4: the rows that the model has now under ``keys``, computed from the input rows that ``lines`` lead to.

    A row whose references (the ``firm`` columns of its lineage) occur in none of the lines is false: the model's filter
    drops it, and let it pass only because a part of an input had no match for it. Each true row of the model has a line
    with its references, as it is now or as the table has it; what it found by them it may have lost.

    ``lines`` are the rows of :func:`affected_rows`, and those of the table under the same keys: an unaffected row with
    the key of an affected one is recomputed as well, so that the duplicate is detected here and does not go unseen in
    the table. From :func:`affected_by_key` they have the key alone: their other inputs are unknown, and are read
    completely. ``near``: the keys are few enough to be broadcast. ``lie`` are the spans of the lines' values.
    """
    parts = {}
    for name, use in uses.items():
        if not set(use.lineage).issubset(lines.columns):
            parts[name] = use.rows
            continue
        used = lines.select(*map(names.quote_spark, use.lineage))
        rows = use.rows.where(spans.may_match(use.rows, use.keys, lie, use.lineage))
        parts[name] = semi_join(rows, use.keys, F.broadcast(used) if near else used, use.lineage)
    columns = list(dict.fromkeys([*key, *firm]))
    if len(columns) == len(key):
        return semi_join(query(parts), key, F.broadcast(keys) if near else keys, key)
    return semi_join(query(parts), columns, F.broadcast(lines) if near else lines, columns, or_null=True)


def semi_join(
    rows: DataFrame, columns: Sequence[str], keys: DataFrame, key: Sequence[str], *, or_null: bool = False
) -> DataFrame:
    """The rows whose ``columns`` are among ``keys``, in its columns ``key``; NULL matches nothing, or with ``or_null``
    NULL.
    """
    return rows.join(_named(keys, key), _same(columns, or_null=or_null), how="left_semi")


def _old_side(stored: DataFrame, uses: Mapping[str, InputUse]) -> DataFrame:
    """Rows of the table with a changed key in some lineage; the table is read once."""
    found, hit, near = stored, F.lit(False), F.lit(False)
    for number, use in enumerate(uses.values()):
        if use.changed is not None:
            mark = f"__hit_{number}"
            keys = _named(use.changed, use.keys).withColumn(mark, F.lit(True))
            found = found.join(keys, _same(use.lineage), how="left").drop(*_marks(use.keys))
            hit = hit | F.col(mark).isNotNull()
            near = near | spans.may_match(stored, use.lineage, use.spans, use.keys)
    return found.where(hit & near)


def _named(keys: DataFrame, key: Sequence[str]) -> DataFrame:
    """Keys, renamed to names that no column of a model or an input has."""
    return keys.select(*[F.col(names.quote_spark(c)).alias(mark) for c, mark in zip(key, _marks(key), strict=True)])


def _marks(key: Sequence[str]) -> list[str]:
    return [f"__key_{number}" for number in range(len(key))]


def _same(columns: Sequence[str], *, or_null: bool = False) -> Column:
    pairs = [
        (F.col(names.quote_spark(column)), F.col(mark)) for column, mark in zip(columns, _marks(columns), strict=True)
    ]
    equal = [one.eqNullSafe(other) if or_null else one == other for one, other in pairs]
    return reduce(and_, equal, F.lit(True))
