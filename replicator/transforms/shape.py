"""Whether a model's SQL is one that ``affected.py`` holds for: told from the plan that Spark makes of it.

Two things are looked for. Operators by which a row of the model depends on other rows, or on rows that no lineage can
name (aggregates, windows, set operations, sub-queries, other joins than inner and left ones). And a lineage that is
taken from the looked-up side of a left join, NULL once that row is gone, while that loss can do more than empty
columns: let a row through a filter, lead to another row of a later join, or give the row another key. What comes so is
in nobody's lineage, before or after, and would be missed. The referencing column names it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from replicator import gateway

_ACROSS_ROWS = frozenset(
    {"Aggregate", "Window", "Distinct", "Deduplicate", "Union", "Except", "Intersect", "GlobalLimit", "LocalLimit",
     "Offset", "Tail", "Sample"}
)  # fmt: skip
_JOINS = frozenset({"Inner", "Cross", "LeftOuter"})
_STRICT = frozenset(
    {"EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "In", "Not", "Cast", "Add",
     "Subtract", "Multiply", "UnaryMinus", "Lower", "Upper", "Substring", "StringTrim", "Like", "StartsWith"}
)  # fmt: skip
"""Expressions that are NULL if any part is; those that are not named here are taken for others."""
_ALIASES = frozenset({"Sort", "SubqueryAlias", "WithCTE"})


def obstacle(rows: DataFrame) -> str | None:
    """What in the plan of a model's rows keeps it from being refreshed incrementally, by its name in Spark's plans."""
    for node in _nodes(_plan(rows)):
        name = str(node.nodeName())
        if name in _ACROSS_ROWS:
            return name
        if name == "Join" and str(node.joinType().toString()) not in _JOINS:
            return f"{node.joinType().toString()} join"
        if node.subqueries().nonEmpty():
            return "subquery"
    return None


def never_null(rows: DataFrame) -> DataFrame:
    """No row, in the columns of *rows*, of which none can be NULL: in a model over such inputs only a left join makes
    NULLs (and functions that may give one).
    """
    fields = [StructField(field.name, field.dataType, nullable=False) for field in rows.schema]
    return gateway.frame(rows.sparkSession, (), StructType(fields))


def loses_track(probe: DataFrame, lineage: Collection[str], key: Collection[str]) -> bool:
    """Whether a lineage column comes from the far side of a left join, and which rows there are or their key depends on
    that side in another way than by being dropped with it. *probe*: the model over :func:`never_null` inputs. True
    where it cannot be told.
    """
    plan = _plan(probe)
    top = _top(plan)
    if top is None:
        return True
    selected = {str(each.name()): each for each in gateway.each(top.projectList())}
    if not any(name not in selected or _may_be_null(selected[name]) for name in lineage):
        return False
    keys = [selected[name] for name in key if name in selected]
    below = [node for node in _nodes(plan) if not node.equals(top)]
    return (
        len(keys) < len(key)
        or any(_may_be_null(each) and not _is_null_with_its_parts(_unnamed(each)) for each in keys)
        or any(map(_hides_a_loss, below))
    )


def _hides_a_loss(node: Any) -> bool:
    """Whether an operator could act otherwise than by dropping the row when some column is NULL by a left join."""
    name = str(node.nodeName())
    if name == "Project":
        return any(_may_be_null(each) and not each.nullable() for each in gateway.each(node.projectList()))
    if name == "Generate":
        return _may_be_null(node.generator())
    if name == "Filter":
        return _passes_null(node.condition())
    if name == "Join":
        return bool(node.condition().isDefined()) and _passes_null(node.condition().get())
    return False


def _passes_null(condition: Any) -> bool:
    if str(condition.getClass().getSimpleName()) == "And":
        return any(_passes_null(each) for each in gateway.each(condition.children()))
    if not _may_be_null(condition) or str(condition.getClass().getSimpleName()) == "IsNotNull":
        return False
    return not _is_null_with_its_parts(condition)


def _is_null_with_its_parts(expression: Any) -> bool:
    """Whether a NULL in any part makes the whole NULL."""
    parts = list(gateway.each(expression.children()))
    if not parts:
        return True
    return str(expression.getClass().getSimpleName()) in _STRICT and all(map(_is_null_with_its_parts, parts))


def _may_be_null(expression: Any) -> bool:
    return any(bool(attribute.nullable()) for attribute in gateway.each(expression.references()))


def _unnamed(expression: Any) -> Any:
    return expression.child() if str(expression.getClass().getSimpleName()) == "Alias" else expression


def _top(plan: Any) -> Any | None:
    """The projection that gives the model its columns."""
    while str(plan.nodeName()) in _ALIASES:
        plan = list(gateway.each(plan.children()))[-1]
    return plan if str(plan.nodeName()) == "Project" else None


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in gateway.each(plan.children()):
        yield from _nodes(child)


def _plan(rows: DataFrame) -> Any:
    java_rows: Any = rows._jdf  # noqa: SLF001 - Spark shows its plans to the JVM only
    return java_rows.queryExecution().analyzed()
