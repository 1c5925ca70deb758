"""Whether a model's SQL is one that ``affected.py`` holds for: told from the plan that Spark makes of it.

What is looked for: operators by which a row of the model depends on other rows, or on rows that no lineage can
name (aggregates, windows, set operations, sub-queries, other joins than inner and left ones): all but those that are
known as none. And a lineage that is taken from the looked-up side of a left join, NULL once that row is gone, while
that loss can do more than empty columns: let a row through a filter, lead to another row of a later join, or give the
row another key. What comes so is in nobody's lineage, before or after, and would be missed. The referencing column
names it. An input that the SQL reads more than once. And a lineage that is not the key of its input
(``equalities.py``).
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
"""Operators that give the rows below them with the columns that they have."""
_ROW_BY_ROW = _ALIASES | {"Project", "Filter", "Join", "Generate", "Expand", "View", "CTERelationDef"}
"""Operators of which a row depends on no other rows than those that it is made of. Whatever is not named here is taken
for one across rows: computed in full, a model is right all the same.
"""
_JOINS = frozenset({"Inner", "Cross", "LeftOuter"})
_STRICT = frozenset(
    {"EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "In", "Not", "Cast", "Add",
     "Subtract", "Multiply", "UnaryMinus", "Lower", "Upper", "Substring", "StringTrim", "Like", "StartsWith"}
)  # fmt: skip
"""Expressions that are NULL if any part is; those that are not named here are taken for others."""


def obstacle(rows: DataFrame) -> str | None:
    """What in the plan of a model's rows keeps it from being refreshed incrementally, by its name in Spark's plans."""
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
    """What the plan of a model's SQL tells of its joins: over inputs with the columns of these ``views`` of which none
    can be NULL, nor anything in them, so that only a left join makes NULLs (and functions that may give one). Columns
    are looked at as what they were made of, in whichever sub-select.
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
        """Inputs that the SQL reads more than once: changed keys of such a one have one lineage for several rows."""
        often = {rdd for rdd, count in logical_plans.reads(self._plan, self._common).items() if count > 1}
        return [
            name
            for name, rows in self._inputs.items()
            if often.intersection(logical_plans.reads(logical_plans.plan(rows), {}))
        ]

    def firm(self, lineage: Collection[str]) -> set[str]:
        """Of the columns of a lineage those of the referencing side: they stay as they are where a left join finds
        nothing any more.
        """
        return {name for name in lineage if name in self._selected and not self._reach(self._selected[name])}

    def loses_lineage(self, lineage: Collection[str], key: Collection[str]) -> bool:
        """Whether a lineage column comes from the far side of a left join, and which rows there are or their key
        depends on that side in another way than by being dropped with it. True where it cannot be told.
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
        """An input, each of which is read once, and a column of its lineage that the SQL does not show to be its key
        wherever a row of it is used; None where there is none.
        """
        equal = Equalities(self._plan, self._origins)
        for name, columns in lineage.items():
            [read] = logical_plans.reads(logical_plans.plan(self._inputs[name]), {})
            for column, key in zip(columns, keys[name], strict=True):
                if not equal.shows(self._selected.get(column), read, key):
                    return name, column
        return None

    def _reach(self, expression: Any) -> bool:
        """Whether some part is NULL where a left join found nothing."""
        references = list(gateway.iterate(expression.references()))
        return any(bool(each.nullable()) for each in references) or any(map(self._reach, self._made_of(references)))

    def _is_hidden_by(self, node: Any) -> bool:
        """Whether an operator could act otherwise than by dropping the row when some column is NULL by a left join."""
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
    """No row, in the columns of *rows*, of which none can be NULL."""
    return gateway.create_frame(rows.sparkSession, (), _without_nulls(rows.schema))


def _without_nulls(schema: T.StructType) -> T.StructType:
    return T.StructType(
        [T.StructField(each.name, _type_without_nulls(each.dataType), nullable=False) for each in schema]
    )


def _type_without_nulls(kind: T.DataType) -> T.DataType:
    """The type without a NULL in it, however deep."""
    if isinstance(kind, T.StructType):
        return _without_nulls(kind)
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_type_without_nulls(kind.elementType), containsNull=False)
    if isinstance(kind, T.MapType):
        return T.MapType(kind.keyType, _type_without_nulls(kind.valueType), valueContainsNull=False)
    return kind


def _top(plan: Any) -> Any | None:
    """The projection that gives the model its columns."""
    while str(plan.nodeName()) in _ALIASES:
        plan = list(gateway.iterate(plan.children()))[-1]
    return plan if str(plan.nodeName()) == "Project" else None
