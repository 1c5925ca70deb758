"""Checks of a gold model: each rule as the rows that violate it (architecture section 4). Grain: rows of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from replicator import names
from replicator.spec.rules import AcceptedValues, Expression, NotNull, Relationship, SemiAdditive, Unique
from replicator.transforms.literals import literal

RowRule = NotNull | AcceptedValues | Expression
"""Rules that can be evaluated on each row alone."""


@dataclass(frozen=True)
class BuildRows:
    """The rows of one build of a model: those ``written``, the former rows that they replace or that are deleted
    (``deleted``), and those left unchanged (``unchanged``). All have the model's columns.
    """

    written: DataFrame
    deleted: DataFrame
    unchanged: DataFrame

    @property
    def all_rows(self) -> DataFrame:
        """The model after the build."""
        return self.unchanged.unionByName(self.written)

    @staticmethod
    def from_difference(stored: DataFrame | None, difference: DataFrame, key: Sequence[str]) -> BuildRows:
        """From the former rows (None: there were none) and a difference (``transforms/model.py``)."""
        written = difference.where(F.col("_op") == "upsert").drop("_op")
        if stored is None:
            return BuildRows.unchanged_build(written)
        keys, on = difference.select(*map(names.quote_spark, key)), list(key)
        return BuildRows(written, stored.join(keys, on, how="left_semi"), stored.join(keys, on, how="left_anti"))

    @staticmethod
    def unchanged_build(rows: DataFrame) -> BuildRows:
        """Treat all rows of a model as just written."""
        return BuildRows(rows, rows.limit(0), rows.limit(0))


def is_violation(rule: RowRule, rows: DataFrame) -> Column:
    """Whether a row violates a rule, never NULL; *rows* give the columns' types. Raises Spark's own error for an
    invalid expression.
    """
    if isinstance(rule, Expression):
        return F.coalesce(~F.expr(rule.sql), F.lit(False))
    column = F.col(names.quote_spark(rule.column))
    if isinstance(rule, NotNull):
        return column.isNull()
    kind = rows.schema[rule.column].dataType
    is_other = [~column.eqNullSafe(literal(value, kind)) for value in rule.values]
    return column.isNotNull() & _all(is_other)


def violations(rule: RowRule | Unique | SemiAdditive, rows: BuildRows) -> DataFrame:
    """The rows that violate a rule, as far as the build may have caused it."""
    if isinstance(rule, Unique):
        return _duplicates(rule.columns, rows)
    if isinstance(rule, SemiAdditive):
        return _semi_additive_violations(rule, rows)
    return rows.written.where(is_violation(rule, rows.written))


def orphans(rule: Relationship, rows: BuildRows, parents: DataFrame, left: DataFrame | None = None) -> DataFrame:
    """The rows whose parent is not among ``parents``: of the written rows, and of the others those that reference one
    of the values that ``left`` the parents (one column; None: none did).
    """
    column = F.col(names.quote_spark(rule.column))
    children = rows.written.where(column.isNotNull())
    if left is not None:
        gone = left.select(F.col(names.quote_spark(left.columns[0])).alias("__left"))
        children = children.unionByName(rows.unchanged.join(gone, column == F.col("__left"), how="left_semi"))
    known = parents.select(F.col(names.quote_spark(rule.field)).alias("__parent"))
    return children.join(known, column == F.col("__parent"), how="left_anti")


def _duplicates(columns: Sequence[str], rows: BuildRows) -> DataFrame:
    on, quoted = list(columns), [names.quote_spark(column) for column in columns]
    near = rows.all_rows.join(rows.written.select(*quoted).distinct(), on, how="left_semi")
    repeated = near.groupBy(*quoted).agg(F.count("*").alias("__count")).where("__count > 1").select(*quoted)
    return near.join(repeated, on, how="left_semi")


def _semi_additive_violations(rule: SemiAdditive, rows: BuildRows) -> DataFrame:
    """Balances with a NULL in ``by`` or ``over``, several balances of one moment, and those after a gap."""
    by, over = [names.quote_spark(column) for column in rule.by], F.col(names.quote_spark(rule.over))
    is_placed = _all([F.col(column).isNotNull() for column in by]) & over.isNotNull()
    touched = rows.written.select(*by).unionByName(rows.deleted.select(*by)).distinct()
    near = rows.all_rows.where(is_placed).join(touched, list(rule.by), how="left_semi")
    before = F.lag(over).over(Window.partitionBy(*by).orderBy(over))
    of_one_moment = F.count(F.lit(1)).over(Window.partitionBy(*by, over))
    is_behind_gap = F.lit(False) if rule.every is None else (before < over) & ~_is_next(rule.every, before, over)
    marked = near.select("*", (is_behind_gap | (of_one_moment > 1)).alias("__uneven"))
    uneven = marked.where(F.coalesce("__uneven", F.lit(False))).drop("__uneven")
    return uneven.unionByName(rows.written.where(~is_placed))


def _is_next(step: str, before: Column, moment: Column) -> Column:
    if step == "month":
        return F.trunc(moment, "month") == F.add_months(F.trunc(before, "month"), 1)
    return F.date_diff(F.to_date(moment), F.to_date(before)) == (1 if step == "day" else 7)


def _all(conditions: Sequence[Column]) -> Column:
    return reduce(lambda one, other: one & other, conditions)
