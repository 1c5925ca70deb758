"""Eligibility of a model's SQL for incremental refresh (``affected.py``), from Spark's plan of it.

A model is not eligible if its plan has

- operators by which a row depends on other rows, or on rows that no lineage can name (aggregates, windows, set
  operations, sub-queries, joins other than inner and left ones): all operators but those known to be safe;
- a lineage taken from the looked-up side of a left join, which is NULL once that row is gone, if that can do more than
  empty columns: let a row through a filter, lead to another row of a later join, or change the row's key. Such a row is
  in no lineage, before or after, and would be missed. The referencing column must be the lineage instead;
- an input that the SQL reads more than once;
- a lineage that is not the key of its input (``equalities.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from replicator.jvm import gateway
from replicator.transforms.incremental import logical_plans
from replicator.transforms.incremental.affected import Query
from replicator.transforms.incremental.equalities import Equalities

_ALIASES = frozenset(
    {"Sort", "SubqueryAlias", "WithCTE", "ResolvedHint", "Repartition", "RepartitionByExpression",
     "RebalancePartitions"}
)  # fmt: skip
"""Operators that return the rows of their child with the same columns."""
_ROW_BY_ROW = _ALIASES | {"Project", "Filter", "Join", "Generate", "Expand", "View", "CTERelationDef"}
"""Operators whose rows depend only on the rows that they are made of. All others are assumed to work across rows: a
model that is refreshed in full is correct all the same.
"""
_JOINS = frozenset({"Inner", "Cross", "LeftOuter"})
_STRICT = frozenset(
    {"EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "In", "Not", "Cast", "Add",
     "Subtract", "Multiply", "UnaryMinus", "Lower", "Upper", "Substring", "StringTrim", "Like", "StartsWith"}
)  # fmt: skip
"""Expressions that are NULL if any part is; all others are assumed not to be."""


def obstacle(rows: DataFrame) -> str | None:
    """The operator, by its name in Spark's plans, that keeps a model from being refreshed incrementally; None if there
    is none.
    """
    for node in logical_plans.nodes(logical_plans.plan(rows)):
        name = str(node.nodeName())
        if name not in _ROW_BY_ROW and node.children().nonEmpty():
            return name
        if name == "Join" and str(node.joinType().toString()) not in _JOINS:
            return f"{node.joinType().toString()} join"
        if node.subqueries().nonEmpty():
            return "subquery"
    return None


class JoinAnalysis:
    """Analysis of the joins in the plan of a model's SQL. The plan is over inputs with the columns of these ``views``
    made non-nullable, also inside, so that only left joins (and functions that may return NULL) make NULLs. Columns are
    traced to the expressions that they are made of, through all sub-selects.
    """

    def __init__(self, query: Query, views: Mapping[str, DataFrame]) -> None:
        self._inputs = {name: _never_null(rows) for name, rows in views.items()}
        self._plan = logical_plans.plan(query(self._inputs))
        self._common = logical_plans.common_table_expressions(self._plan)
        self._origins: dict[int, list[Any]] = {}
        for number, expression in logical_plans.origins(self._plan, self._common):
            self._origins.setdefault(number, []).append(expression)
        self._top = _top(self._plan)
        listed = () if self._top is None else gateway.iterate(self._top.projectList())
        self._selected = {str(each.name()): each for each in listed}

    def inputs_read_twice(self) -> list[str]:
        """Inputs that the SQL reads more than once: one lineage would have to name several rows of such an input."""
        often = {rdd for rdd, count in logical_plans.reads(self._plan, self._common).items() if count > 1}
        return [
            name
            for name, rows in self._inputs.items()
            if often.intersection(logical_plans.reads(logical_plans.plan(rows), {}))
        ]

    def firm(self, lineage: Collection[str]) -> set[str]:
        """The columns of a lineage that come from the referencing side: they keep their values when a left join no
        longer finds a row.
        """
        return {name for name in lineage if name in self._selected and not self._reach(self._selected[name])}

    def loses_lineage(self, lineage: Collection[str], key: Collection[str]) -> bool:
        """Whether a lineage column comes from the looked-up side of a left join, and the model's rows or their keys
        depend on that side other than by being dropped with it. True if that is unknown.
        """
        if self._top is None:
            return True
        if self.firm(lineage) == set(lineage):
            return False
        keys = [self._selected[name] for name in key if name in self._selected]
        below = [node for node in logical_plans.nodes(self._plan) if not node.equals(self._top)]
        return len(keys) < len(key) or any(map(self._reach, keys)) or any(map(self._is_hidden_by, below))

    def untraced(
        self, lineage: Mapping[str, Sequence[str]], keys: Mapping[str, Sequence[str]]
    ) -> tuple[str, str] | None:
        """An input and a column of its lineage that the SQL does not show to equal the input's key wherever a row of it
        is used; None if there is none. Every input is read once.
        """
        equal = Equalities(self._plan, self._origins)
        for name, columns in lineage.items():
            [read] = logical_plans.reads(logical_plans.plan(self._inputs[name]), {})
            for column, key in zip(columns, keys[name], strict=True):
                if not equal.shows(self._selected.get(column), read, key):
                    return name, column
        return None

    def _reach(self, expression: Any) -> bool:
        """Whether some part of the expression is NULL if a left join finds no row."""
        references = list(gateway.iterate(expression.references()))
        return any(bool(each.nullable()) for each in references) or any(map(self._reach, self._made_of(references)))

    def _is_hidden_by(self, node: Any) -> bool:
        """Whether an operator may do something other than drop the row if a column is NULL by a left join."""
        name = str(node.nodeName())
        if name == "Generate":
            return self._reach(node.generator())
        if name == "Filter":
            return self._passes(node.condition())
        if name == "Join":
            return bool(node.condition().isDefined()) and self._passes(node.condition().get())
        return False

    def _passes(self, condition: Any) -> bool:
        kind = logical_plans.kind(condition)
        if kind == "And":
            return any(map(self._passes, gateway.iterate(condition.children())))
        if not self._reach(condition):
            return False
        return not self._is_null_propagating(condition.child() if kind == "IsNotNull" else condition)

    def _is_null_propagating(self, expression: Any) -> bool:
        """Whether a NULL in any part makes the whole NULL."""
        parts = list(gateway.iterate(expression.children()))
        if not parts:
            return all(map(self._is_null_propagating, self._made_of(gateway.iterate(expression.references()))))
        return logical_plans.kind(expression) in _STRICT and all(map(self._is_null_propagating, parts))

    def _made_of(self, attributes: Iterable[Any]) -> list[Any]:
        return [
            made for number in map(logical_plans.attribute_id, attributes) for made in self._origins.get(number, ())
        ]


def _never_null(rows: DataFrame) -> DataFrame:
    """An empty DataFrame with the columns of *rows*, made non-nullable."""
    return gateway.create_frame(rows.sparkSession, (), _without_nulls(rows.schema))


def _without_nulls(schema: T.StructType) -> T.StructType:
    return T.StructType(
        [T.StructField(each.name, _type_without_nulls(each.dataType), nullable=False) for each in schema]
    )


def _type_without_nulls(kind: T.DataType) -> T.DataType:
    """The type with all nested values non-nullable."""
    if isinstance(kind, T.StructType):
        return _without_nulls(kind)
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_type_without_nulls(kind.elementType), containsNull=False)
    if isinstance(kind, T.MapType):
        return T.MapType(kind.keyType, _type_without_nulls(kind.valueType), valueContainsNull=False)
    return kind


def _top(plan: Any) -> Any | None:
    """The projection that computes the model's columns."""
    while str(plan.nodeName()) in _ALIASES:
        plan = list(gateway.iterate(plan.children()))[-1]
    return plan if str(plan.nodeName()) == "Project" else None
